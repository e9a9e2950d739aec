package node

import (
	"context"
	"fmt"
	"maps"
	"net"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/sasl/plain"

	"strandline.dev/internal/auth/certs/certstest"
	"strandline.dev/internal/config"
	"strandline.dev/internal/kafka"
	"strandline.dev/internal/peer"
	"strandline.dev/internal/record"
)

const (
	metricsPage      = "../../docs/reference/metrics.md"
	metricsPageIntro = `# Metrics

Made by ` + "`go test ./internal/node -run TestR178_TheMetricsPage -rewrite`" + ` from what three nodes expose after a workload; the same test fails when a metric is
missing here or there, or has another type or other labels. Names never change their meaning.

` + "`/metrics`" + ` is small, whatever there is of topics, partitions and clients; ` + "`/metrics/detail`" + ` has lines for each partition and for clients, and is to be scraped
rarely. Beside these there are the metrics of the Go runtime (` + "`go_*`" + `) and of the process (` + "`process_*`" + `). Counters begin at 0 with each start of a node.
Sums over the nodes are sums over the cluster. [Alerts](../operating/alerts.md) are made of them.

| metric | type | labels | page | meaning |
|---|---|---|---|---|
`
)

// withEverything configures a node so that each of its metrics has a reason to be there.
func withEverything(n *config.Node) {
	withCertificates(n)
	host := strings.TrimSuffix(n.Cluster.Address, ":19091")
	n.Listeners = append(n.Listeners, config.Listener{Name: "login", Address: host + ":9093", Advertise: config.AdvertiseAuto, SASL: []string{"PLAIN"}})
	n.Auth.AllowIfNoACL, n.Auth.Audit = true, config.AuditOn
}

// TestR178_TheMetricsPage: docs/reference/metrics.md is what nodes expose, by name, type and labels, on either side (contract section 5).
func TestR178_TheMetricsPage(t *testing.T) {
	prepare := func(c *cluster) {
		ca := certstest.NewAuthority(c.t, "strandline")
		for _, m := range c.members {
			giveCertificate(c, m, ca.Issue(certstest.Wanted{URIs: []string{peer.NodeURI(m.id)}, Until: time.Now().Add(24 * time.Hour)}))
		}
	}
	preparedBubble(t, 3, withEverything, prepare, func(c *cluster) {
		c.causeEverythingInBubble()
		rows := map[string]string{}
		for _, id := range c.ids() {
			for _, path := range []string{"/metrics", "/metrics/detail"} {
				for name, f := range c.scrape(id, path) {
					if !strings.HasPrefix(name, "strandline_") {
						continue
					}
					labels := ""
					if len(f.labels) > 0 {
						labels = "`" + strings.Join(f.labels, "` `") + "`"
					}
					key := name + " " + path
					row := fmt.Sprintf("| `%s` | %s | %s | `%s` | %s |\n", name, f.kind, labels, path, f.help)
					if before := rows[key]; before != "" && before != row && len(f.series) > 0 {
						t.Errorf("node %v: %s\nanother: %s", id, row, before)
					}
					rows[key] = row
				}
			}
		}
		var page strings.Builder
		page.WriteString(metricsPageIntro)
		for _, key := range slices.Sorted(maps.Keys(rows)) {
			page.WriteString(rows[key])
		}
		if *rewrite {
			if err := os.WriteFile(metricsPage, []byte(page.String()), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		have, err := os.ReadFile(metricsPage)
		if err != nil {
			t.Fatal(err)
		}
		is, want := strings.Split(page.String(), "\n"), strings.Split(string(have), "\n")
		for _, line := range is {
			if !slices.Contains(want, line) {
				t.Errorf("exposed, and not on the page: %s", line)
			}
		}
		for _, line := range want {
			if !slices.Contains(is, line) {
				t.Errorf("on the page, and not exposed: %s", line)
			}
		}
	})
}

// causeEverythingInBubble makes each metric with labels show: failures of publishes, of logins, of connections, denials, slow requests, groups.
func (c *cluster) causeEverythingInBubble() {
	c.t.Helper()
	cl := c.client()
	defer cl.Close()
	c.leaveBacklog(cl, time.Hour)
	must := func(err error) {
		c.t.Helper()
		if err != nil {
			c.t.Fatal(err)
		}
	}
	_, err := kadm.NewClient(cl).CreateACLs(c.t.Context(), kadm.NewACLs().Topics("secret").Allow("User:somebody").AllowHosts().Operations(kadm.OpRead).ResourcePatternType(kadm.ACLPatternLiteral))
	must(err)
	c.create(cl, "secret", 1)
	c.untilInBubble("a publish is denied", func() bool {
		return cl.ProduceSync(c.t.Context(), &kgo.Record{Topic: "secret", Value: []byte("x")}).FirstErr() != nil
	})
	if got := c.publishOnce(cl, "orders", 7); got != kafka.UnknownTopicOrPartition {
		c.t.Errorf("a publish to partition 7: %v", got)
	}
	bad := c.client(kgo.SeedBrokers("n1:9093"), kgo.SASL(plain.Auth{User: "nobody", Pass: "wrong"}.AsMechanism()), kgo.RetryTimeout(time.Second))
	defer bad.Close()
	if bad.Ping(c.t.Context()) == nil {
		c.t.Error("nobody may log in")
	}
	c.throttleInBubble(cl, must)
	for _, address := range []string{"n1:9092", "n1:19091"} {
		garbage(c, address)
	}
	for _, m := range c.members {
		m.fs.SetLatency(slowRecords(1200 * time.Millisecond))
	}
	must(cl.ProduceSync(c.t.Context(), &kgo.Record{Topic: "orders", Value: []byte("slow")}).FirstErr())
	for _, m := range c.members {
		m.fs.SetLatency(nil)
	}
	c.create(cl, "busy", 2)
	for range 30 { // the groups are looked at, and which partitions are busy
		must(cl.ProduceSync(c.t.Context(), &kgo.Record{Topic: "busy", Value: []byte("x")}).FirstErr())
		time.Sleep(5 * time.Second)
	}
}

// throttleInBubble has a client publish more than its quota.
func (c *cluster) throttleInBubble(cl *kgo.Client, must func(error)) {
	held := c.client(kgo.ClientID("held"))
	defer held.Close()
	c.limitInBubble(cl, "held", 1)
	must(held.ProduceSync(c.t.Context(), &kgo.Record{Topic: "orders", Value: []byte("held")}).FirstErr())
}

// limitInBubble gives a client id that many bytes a second to publish.
func (c *cluster) limitInBubble(cl *kgo.Client, id string, rate float64) {
	c.t.Helper()
	quota := kadm.AlterClientQuotaEntry{
		Entity: kadm.ClientQuotaEntity{{Type: "client-id", Name: &id}}, Ops: []kadm.AlterClientQuotaOp{{Key: "producer_byte_rate", Value: rate}},
	}
	answers, err := kadm.NewClient(cl).AlterClientQuotas(c.t.Context(), []kadm.AlterClientQuotaEntry{quota})
	if err == nil {
		err = answers[0].Err
	}
	if err != nil {
		c.t.Fatal(err)
	}
	time.Sleep(time.Second) // the other nodes hear of it
}

// publishOnce sends one record for a partition to the leader of partition 0, without any retry, and returns what it is answered.
func (c *cluster) publishOnce(cl *kgo.Client, topic string, partition int32) kafka.ErrorCode {
	c.t.Helper()
	b := record.NewBuilder(record.None)
	b.Add(time.Now().UnixMilli(), nil, []byte("once"), nil)
	p := kmsg.NewProduceRequestTopicPartition()
	p.Partition, p.Records = partition, b.Build()
	pt := kmsg.NewProduceRequestTopic()
	pt.Topic, pt.TopicID, pt.Partitions = topic, c.alive().Image().Topic(topic).ID, append(pt.Partitions, p)
	req := kmsg.NewPtrProduceRequest()
	req.Acks, req.TimeoutMillis, req.Topics = -1, 5000, append(req.Topics, pt)
	resp, err := cl.Broker(int(c.state(topic, 0).Leader)).RetriableRequest(c.t.Context(), req)
	if err != nil {
		c.t.Fatal(err)
	}
	return kafka.ErrorCode(resp.(*kmsg.ProduceResponse).Topics[0].Partitions[0].ErrorCode)
}

// garbage sends what is no request and waits until the connection is closed.
func garbage(c *cluster, address string) {
	c.t.Helper()
	nc, err := c.net.Host("client").Dial(context.Background(), address)
	if err != nil {
		c.t.Fatal(err)
	}
	defer nc.Close()
	_, _ = nc.Write([]byte("GET / HTTP/1.1\r\nHost: strandline\r\n\r\n"))
	buf := make([]byte, 512)
	for err == nil {
		_, err = nc.Read(buf)
	}
	if ne, ok := err.(net.Error); ok && ne.Timeout() {
		c.t.Error(err)
	}
}
