package node

import (
	"errors"
	"flag"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/sasl/plain"

	"strandline.dev/internal/audit"
	"strandline.dev/internal/auth/certs/certstest"
	"strandline.dev/internal/config"
	"strandline.dev/internal/kafka"
	"strandline.dev/internal/peer"
	"strandline.dev/internal/sys/systest"
)

var (
	drillsDir = flag.String("drills.dir", "", "record every drill into this directory, for promtool test rules (.ci/alerts)")
	drillsRun = flag.String("drills.run", "", "of these, those that match")
)

// drill causes what alerts are about, on real nodes in a bubble.
type drill struct {
	name  string
	nodes int
	fires []string
	long  bool // takes more than a second or two
	run   func(c *cluster, r *recorder)
}

var drills = []drill{
	{"healthy", 3, nil, true, drillBubbleHealthy},
	{"partitions", 5, []string{"StrandlineNodeDown", "StrandlineUnderReplicated", "StrandlineUnderMinISR", "StrandlineOfflinePartitions", "StrandlineLagUnknown"}, true, drillBubblePartitions},
	{"controllers", 3, []string{"StrandlineNodeDown", "StrandlineNoActiveController"}, false, drillBubbleControllers},
	{"groups", 3, []string{"StrandlineOldestUnprocessed", "StrandlineLagGrows", "StrandlineGroupLosesRecordsSoon", "StrandlineGroupLostRecords"}, true, drillBubbleGroups},
	{"disk", 1, []string{"StrandlineDiskFillsUp", "StrandlineDiskFull", "StrandlinePublishErrorBudgetBurns", "StrandlineCanaryFails"}, false, drillBubbleDisk},
	{"churn", 3, []string{"StrandlineLeadersKeepMoving"}, true, drillBubbleChurn},
	{"throttled", 1, []string{"StrandlineThrottled"}, false, drillBubbleThrottled},
	{"hot", 1, []string{"StrandlineHotPartition"}, true, drillBubbleHot},
	{"endtoend", 1, []string{"StrandlineSlowEndToEnd", "StrandlineSlowAcknowledgements"}, false, drillBubbleEndToEnd},
	{"slow", 3, []string{"StrandlineSlowAcknowledgements", "StrandlineISRShrinks", "StrandlinePublishErrorBudgetBurns", "StrandlineManyRetries"}, true, drillBubbleSlow},
	{"damage", 1, []string{"StrandlineCorruptBatches", "StrandlineFetchErrorBudgetBurns", "StrandlineSyncFailed", "StrandlinePublishErrorBudgetBurns"}, true, drillBubbleDamage},
	{"access", 3, []string{"StrandlineAuthFailures", "StrandlineAdminChange", "StrandlineAuditUnavailable", "StrandlineCertificateEnds", "StrandlineNodeDown", "StrandlineUnderReplicated", "StrandlineUnderMinISR"}, true, drillBubbleAccess},
	{"outage", 1, []string{"StrandlinePossibleLoss", "StrandlineNodeDown", "StrandlineNoActiveController"}, false, drillBubbleOutage},
	{"recovered", 6, []string{"StrandlineTruncatedBelowHighWatermark", "StrandlineCanaryLost", "StrandlineAdminChange"}, true, drillBubbleRecovered},
}

// TestR182_Drills records each drill. promtool says whether the alerts fire (.ci/alerts); here, that what they look at was there to be seen.
func TestR182_Drills(t *testing.T) {
	dir := *drillsDir
	chosen := regexp.MustCompile(*drillsRun)
	for _, d := range drills {
		if *drillsDir == "" && d.long || !chosen.MatchString(d.name) {
			continue
		}
		t.Run(d.name, func(t *testing.T) {
			into := dir
			if into == "" {
				into = t.TempDir()
			}
			preparedBubble(t, d.nodes, drillConfig(d.name), drillPrepare(d.name), func(c *cluster) {
				r := newRecorder(c)
				d.run(c, r)
				r.write(into, d.name, d.fires)
				t.Logf("%d scrapes of %d series", r.scrapes, len(r.seen))
				if r.scrapes < 4 || len(r.seen) < 10 {
					t.Error("next to nothing was recorded")
				}
			})
		})
	}
}

func drillConfig(name string) func(*config.Node) {
	switch name {
	case "access":
		return withEverything
	case "recovered":
		return withCanaryApart
	case "healthy", "disk", "endtoend":
		return func(n *config.Node) {
			withHTTP(n)
			n.Canary.Interval = 10 * time.Second
		}
	}
	return withHTTP
}

// drillPrepare gives the nodes of the drill about access certificates that end soon.
func drillPrepare(name string) func(*cluster) {
	if name != "access" {
		return func(*cluster) {}
	}
	return func(c *cluster) {
		ca := certstest.NewAuthority(c.t, "strandline")
		for _, m := range c.members {
			giveCertificate(c, m, ca.Issue(certstest.Wanted{URIs: []string{peer.NodeURI(m.id)}, Until: time.Now().Add(48 * time.Hour)}))
		}
	}
}

// produced publishes records in one batch and returns what became of them.
func produced(c *cluster, cl *kgo.Client, count, size int, topic string) error {
	var records []*kgo.Record
	for range count {
		records = append(records, &kgo.Record{Topic: topic, Value: make([]byte, size)})
	}
	return cl.ProduceSync(c.t.Context(), records...).FirstErr()
}

// drillBubbleHealthy: publishing and a group that keeps up, for twelve minutes: nothing fires.
func drillBubbleHealthy(c *cluster, r *recorder) {
	cl := c.client()
	defer cl.Close()
	c.create(cl, "t", 6)
	group := c.client(kgo.ConsumerGroup("g"), kgo.ConsumeTopics("t"), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	defer group.Close()
	time.Sleep(time.Minute)
	r.watchInBubble(12*time.Minute, func() {
		if err := produced(c, cl, 20, 100, "t"); err != nil {
			c.t.Error(err)
		}
		group.PollFetches(timed(c.t, 5*time.Second))
		if err := group.CommitUncommittedOffsets(timed(c.t, 5*time.Second)); err != nil {
			c.t.Error(err)
		}
	})
}

// drillBubblePartitions: brokers die one after the other until a partition has no replica left; the coordinator of its group has one.
func drillBubblePartitions(c *cluster, r *recorder) {
	cl := c.client()
	defer cl.Close()
	c.create(cl, "t", 30)
	admin := kadm.NewClient(cl)
	commit := func(topic string, partitions int32) {
		var offsets kadm.Offsets
		for p := range partitions {
			offsets.AddOffset(topic, p, 0, -1)
		}
		c.untilInBubble("a commit", func() bool { return admin.CommitAllOffsets(c.t.Context(), "g", offsets) == nil })
	}
	commit("t", 30)
	last := kafka.NodeID(1)
	for n := last; n <= 3; n++ { // the shard of the group keeps one of nodes 1 to 3 that is not the last to die
		if !slices.Contains(shardIn(c.alive().Image(), "g").Replicas, n) {
			last = n
		}
	}
	c.createOn(cl, "lonely", 4, 5, int32(last))
	commit("lonely", 1)
	time.Sleep(time.Minute)
	c.kill(4)
	r.watchInBubble(3*time.Minute, nil)
	c.kill(5)
	r.watchInBubble(90*time.Second, nil)
	c.kill(last)
	r.watchInBubble(4*time.Minute, nil)
	if unknown := c.ofGroup("strandline_group_unknown_partitions", "g"); unknown[""] == 0 {
		c.t.Errorf("the lag of a group on a partition that is offline is known: %v", unknown)
	}
}

// drillBubbleControllers: two of three controllers die.
func drillBubbleControllers(c *cluster, r *recorder) {
	r.watchInBubble(time.Minute, nil)
	c.kill(2)
	c.kill(3)
	r.watchInBubble(150*time.Second, nil)
}

// drillBubbleGroups: a group has stopped, records come, and retention passes it.
func drillBubbleGroups(c *cluster, r *recorder) {
	cl := c.client()
	defer cl.Close()
	c.leaveBacklog(cl, 15*time.Minute)
	time.Sleep(time.Minute)
	r.watchInBubble(20*time.Minute, func() {
		if err := produced(c, cl, 100, 10, "orders"); err != nil {
			c.t.Error(err)
		}
	})
}

// drillBubbleDisk: the disk fills up with records until they are refused.
func drillBubbleDisk(c *cluster, r *recorder) {
	cl := c.client(kgo.RecordRetries(0), kgo.DisableIdempotentWrite(), kgo.ProducerBatchCompression(kgo.NoCompression()))
	defer cl.Close()
	c.createDated(cl, "t", 1)
	time.Sleep(time.Minute)
	c.member(1).fs.SetFree(8 << 20)
	r.watchInBubble(4*time.Minute, nil)
	r.watchInBubble(5*time.Minute, func() {
		for range 20 {
			if produced(c, cl, 1, 500_000, "t") != nil {
				break
			}
		}
	})
}

// drillBubbleThrottled: a client publishes more than its quota, all the time.
func drillBubbleThrottled(c *cluster, r *recorder) {
	cl := c.client(kgo.ClientID("held"))
	defer cl.Close()
	c.createDated(cl, "t", 1)
	c.limitInBubble(cl, "held", 100)
	time.Sleep(time.Minute)
	r.watchInBubble(time.Minute, nil)
	r.watchInBubble(12*time.Minute, func() {
		for range 3 {
			if err := produced(c, cl, 1, 100, "t"); err != nil {
				c.t.Error(err)
			}
		}
	})
}

// drillBubbleHot: of two partitions one gets nearly everything.
func drillBubbleHot(c *cluster, r *recorder) {
	cl := c.client(kgo.RecordPartitioner(kgo.ManualPartitioner()))
	defer cl.Close()
	ct := kmsg.NewCreateTopicsRequestTopic()
	ct.Topic, ct.NumPartitions, ct.ReplicationFactor = "t", 2, 1
	c.creation(cl, ct)
	time.Sleep(time.Minute)
	r.watchInBubble(15*time.Minute, func() {
		records := []*kgo.Record{{Topic: "t", Partition: 1, Value: []byte("cold")}}
		for range 3000 { // far above the bound of the alert, also in a minute that one round less falls into
			records = append(records, &kgo.Record{Topic: "t", Value: []byte("hot")})
		}
		if err := cl.ProduceSync(c.t.Context(), records...).FirstErr(); err != nil {
			c.t.Error(err)
		}
	})
}

// drillBubbleEndToEnd: nobody publishes but the canary, and the disk becomes slow.
func drillBubbleEndToEnd(c *cluster, r *recorder) {
	time.Sleep(time.Minute)
	r.watchInBubble(2*time.Minute, nil)
	c.member(1).fs.SetLatency(slowRecords(time.Second))
	r.watchInBubble(5*time.Minute, nil)
	c.member(1).fs.SetLatency(nil)
}

// drillBubbleChurn: the leader dies and comes back, again and again.
func drillBubbleChurn(c *cluster, r *recorder) {
	cl := c.client()
	defer cl.Close()
	c.create(cl, "t", 6)
	time.Sleep(time.Minute)
	r.watchInBubble(time.Minute, nil)
	for range 9 { // 18 minutes: in each of three 5 minutes, wherever they begin, a leader changes
		led := c.state("t", 0).Leader
		c.kill(led)
		c.untilInBubble("another leads", func() bool { l := c.state("t", 0).Leader; return l != led && l != kafka.NoNode })
		c.start(led)
		r.watchInBubble(2*time.Minute, nil)
	}
}

// drillBubbleSlow: disks become slow, then those of the followers so slow that they fall out of sync; publishers repeat themselves.
func drillBubbleSlow(c *cluster, r *recorder) {
	cl := c.client()
	defer cl.Close()
	c.create(cl, "t", 1)
	window := "120000"
	if _, err := kadm.NewClient(cl).AlterTopicConfigs(c.t.Context(), []kadm.AlterConfig{{Op: kadm.SetConfig, Name: "strandline.dedup.window.ms", Value: &window}}, "t"); err != nil {
		c.t.Fatal(err)
	}
	time.Sleep(time.Minute)
	for _, m := range c.members {
		m.fs.SetLatency(slowRecords(time.Second))
	}
	again := &kgo.Record{Topic: "t", Value: []byte("again"), Headers: []kgo.RecordHeader{{Key: "record-id", Value: []byte("one")}}}
	r.watchInBubble(8*time.Minute, func() {
		copied := *again
		if err := cl.ProduceSync(c.t.Context(), &copied).FirstErr(); err != nil {
			c.t.Error(err)
		}
	})
	for _, m := range c.members {
		m.fs.SetLatency(nil)
		if m.id != c.state("t", 0).Leader {
			m.fs.SetLatency(slowRecords(12 * time.Second))
		}
	}
	r.watchInBubble(3*time.Minute, func() { c.publishOnce(cl, "t", 0) })
	for _, m := range c.members {
		m.fs.SetLatency(nil)
	}
}

// drillBubbleDamage: a bit flips in the only copy of a partition, then the disk cannot be written.
func drillBubbleDamage(c *cluster, r *recorder) {
	cl := c.client(kgo.RecordRetries(0), kgo.DisableIdempotentWrite(), kgo.ProducerBatchCompression(kgo.NoCompression()))
	defer cl.Close()
	c.createDated(cl, "t", 1)
	c.createDated(cl, "u", 1)
	if err := produced(c, cl, 10, 1000, "t"); err != nil {
		c.t.Fatal(err)
	}
	r.watchInBubble(time.Minute, nil)
	fs := c.member(1).fs
	flipped := 0
	for name, data := range fs.Files() {
		if strings.Contains(name, "/topics/") && path.Ext(name) == ".log" && len(data) > 5000 {
			if err := fs.FlipBit(name, 3000, 1); err != nil {
				c.t.Fatal(err)
			}
			flipped++
		}
	}
	if flipped != 1 {
		c.t.Fatalf("%d files with the records", flipped)
	}
	reader := c.client(kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{"t": {0: kgo.NewOffset().AtStart()}}))
	defer reader.Close()
	r.watchInBubble(3*time.Minute, func() { reader.PollFetches(timed(c.t, 5*time.Second)) })
	fs.Hook(func(op systest.Op) error {
		if op.Kind == systest.OpSync && strings.Contains(op.Name, "/topics/") {
			return errors.New("input/output error")
		}
		return nil
	})
	if produced(c, cl, 1, 1000, "u") == nil {
		c.t.Error("a record is on a disk that cannot be written")
	}
	fs.Hook(nil)
	r.watchInBubble(2*time.Minute, nil)
}

// drillBubbleAccess: wrong passwords, certificates that end, changes, and an audit trail that cannot be kept.
func drillBubbleAccess(c *cluster, r *recorder) {
	cl := c.client()
	defer cl.Close()
	c.untilInBubble("the trail is there", func() bool { return c.alive().Image().Topic(audit.TopicName) != nil })
	time.Sleep(time.Minute)
	r.watchInBubble(90*time.Second, nil)
	c.create(cl, "t", 1)
	for range 15 {
		bad := c.client(kgo.SeedBrokers("n1:9093"), kgo.SASL(plain.Auth{User: "nobody", Pass: "wrong"}.AsMechanism()), kgo.RetryTimeout(time.Second))
		_ = bad.Ping(c.t.Context())
		bad.Close()
	}
	r.watchInBubble(time.Minute, nil)
	three := "3"
	if _, err := kadm.NewClient(cl).AlterTopicConfigs(c.t.Context(), []kadm.AlterConfig{{Op: kadm.SetConfig, Name: "min.insync.replicas", Value: &three}}, audit.TopicName); err != nil {
		c.t.Fatal(err)
	}
	c.kill(3)
	c.untilInBubble("it is out of sync", func() bool {
		return !slices.ContainsFunc(c.alive().Image().Topic(audit.TopicName).Partitions, func(s kafka.PartitionState) bool { return len(s.ISR) > 2 || s.Leader == 3 })
	})
	ct := kmsg.NewCreateTopicsRequestTopic()
	ct.Topic, ct.NumPartitions, ct.ReplicationFactor = "refused", 1, 2
	req := kmsg.NewPtrCreateTopicsRequest()
	req.TimeoutMillis, req.Topics = 20_000, append(req.Topics, ct)
	if resp, err := req.RequestWith(c.t.Context(), cl); err != nil || resp.Topics[0].ErrorCode == 0 {
		c.t.Errorf("a change without a trail: %v", err)
	}
	r.watchInBubble(4*time.Minute, nil)
}
