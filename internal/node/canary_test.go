package node

import (
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"strandline.dev/internal/config"
	"strandline.dev/internal/kafka"
	"strandline.dev/internal/metadata"
	"strandline.dev/internal/sys/systest"
)

// withCanary has each node measure its publishes, where ACLs decide and no rule is about nodes.
func withCanary(n *config.Node) {
	withHTTP(n)
	host := strings.TrimSuffix(n.Cluster.Address, ":19091")
	n.Listeners = append(n.Listeners, config.Listener{Name: "login", Address: host + ":9093", Advertise: config.AdvertiseAuto, SASL: []string{"PLAIN"}})
	n.Auth.SuperUsers, n.Auth.Audit = kafka.Anonymous.String(), config.AuditOff
	n.Canary.Interval = time.Second
}

// measured is how many publishes of its canary a node shows.
func measured(page map[string]*family) float64 {
	f := page["strandline_publish_end_to_end_seconds"]
	if f == nil {
		return 0
	}
	for _, s := range f.series {
		if strings.HasSuffix(s.id, "_count") {
			return s.value
		}
	}
	return 0
}

// missed is how many of them failed for a reason, or for any.
func missed(page map[string]*family, reason string) (sum float64) {
	for _, s := range page["strandline_canary_failures_total"].series {
		if reason == "" || strings.Contains(s.id, `"`+reason+`"`) {
			sum += s.value
		}
	}
	return sum
}

// TestR180_EachNodeMeasuresPublishes: over every partition of the topic, also after a leader has died; it needs no rule, and clients have no part in it.
func TestR180_EachNodeMeasuresPublishes(t *testing.T) {
	clusterBubble(t, 3, withCanary, func(t *testing.T, c *cluster) {
		c.untilInBubble("each node has measured a publish to each partition", func() bool {
			for _, id := range c.ids() {
				if measured(c.scrape(id, "/metrics")) < 4 {
					return false
				}
			}
			return true
		})
		cl := c.client(kgo.RecordRetries(0), kgo.DisableIdempotentWrite())
		defer cl.Close()
		listed, err := kadm.NewClient(cl).ListTopicsWithInternal(t.Context(), metadata.CanaryTopic)
		if d := listed[metadata.CanaryTopic]; err != nil || !d.IsInternal || len(d.Partitions) != 3 {
			t.Errorf("the topic is shown as %+v (%v)", d, err)
		}
		if got := c.publishOnce(cl, metadata.CanaryTopic, 0); got != kafka.InvalidTopicException {
			t.Errorf("a client publishes to it: %v", got)
		}
		ct := kmsg.NewCreateTopicsRequestTopic()
		ct.Topic, ct.NumPartitions, ct.ReplicationFactor = metadata.CanaryTopic, 1, 1
		if message, err := c.askCreate(cl, ct); err == nil {
			t.Errorf("a client creates it: %q", message)
		}

		led := c.state(metadata.CanaryTopic, 0).Leader
		c.kill(led)
		before := map[kafka.NodeID]float64{}
		for _, id := range c.ids() {
			if id != led {
				before[id] = measured(c.scrape(id, "/metrics"))
			}
		}
		c.untilInBubble("those that are left go on", func() bool {
			for id, was := range before {
				if measured(c.scrape(id, "/metrics")) < was+6 {
					return false
				}
			}
			return true
		})
		for id := range before {
			if n := missed(c.scrape(id, "/metrics"), "lost"); n != 0 {
				t.Errorf("node %v has lost %v records", id, n)
			}
		}
	})
}

// TestR180_TheDiskLimitHoldsForTheCanary: at it the canary's records are refused like others, and counted as failures; with room it goes on, and
// it has no part in how long a stop takes, not even while the disk hangs.
func TestR180_TheDiskLimitHoldsForTheCanary(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := fullConfig()
		c.Disk.LimitBytes, c.Canary.Interval = 8<<20, time.Second
		n := startFullNodeAs(t, systest.NewFS(1), c)
		if code := n.create("t", "retention.ms", "600000", "strandline.delete.recovery.ms", "1000"); code != kafka.None {
			t.Fatalf("create: %v", code)
		}
		time.Sleep(10 * time.Second)
		if got := measured(n.page()); got < 5 {
			t.Fatalf("%v measurements in 10 s", got)
		}
		if got := missed(n.page(), ""); got != 0 {
			t.Errorf("%v failures of a healthy node", got)
		}
		n.slowedThenRefused("t")
		time.Sleep(20 * time.Second) // what was taken before ends
		was := measured(n.page())
		time.Sleep(time.Minute)
		if now := measured(n.page()); now != was {
			t.Errorf("%v of its records were taken at the limit", now-was)
		}
		if got := missed(n.page(), "unpublished"); got < 2 {
			t.Errorf("%v failures at the limit", got)
		}
		if code := n.remove("t"); code != kafka.None {
			t.Fatalf("delete: %v", code)
		}
		time.Sleep(2 * time.Minute)
		if now := measured(n.page()); now <= was {
			t.Error("it does not go on with room")
		}
		n.fs.SetLatency(slowRecords(time.Minute))
		time.Sleep(3 * time.Second) // a record is on its way
		began := time.Now()
		n.node.hush()
		if took := time.Since(began); took != 0 {
			t.Errorf("the canary ended after %v", took)
		}
		n.fs.SetLatency(nil)
		n.stop()
	})
}

// page is what the node shows at /metrics.
func (n *fullNode) page() map[string]*family {
	answer := httptest.NewRecorder()
	n.node.Metrics().Handler().ServeHTTP(answer, httptest.NewRequest("GET", "/metrics", nil))
	return parsePage(n.t, answer.Body.String())
}
