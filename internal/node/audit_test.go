package node

import (
	"context"
	"encoding/json"
	"log/slog"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"strandline.dev/internal/audit"
	"strandline.dev/internal/config"
	"strandline.dev/internal/kafka"
	"strandline.dev/internal/sys/systest"
)

// auditTrail reads the whole trail, verifies its chains, and returns the entries without repeats.
func (c *cluster) auditTrail(atLeast int) (out []audit.Entry) {
	c.t.Helper()
	type one struct {
		run    kafka.ID
		number uint64
	}
	seen := map[one]bool{}
	chains := map[int32]*audit.Chain{}
	from := map[int32]kgo.Offset{}
	for p := range c.alive().Image().Topic(audit.TopicName).Partitions {
		chains[int32(p)], from[int32(p)] = &audit.Chain{}, kgo.NewOffset().AtStart()
	}
	cl := c.client(kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{audit.TopicName: from}))
	defer cl.Close()
	for {
		wait := 5 * time.Second
		if len(out) < atLeast {
			wait = time.Minute
		}
		ctx, cancel := context.WithTimeout(c.t.Context(), wait)
		fetched := cl.PollFetches(ctx)
		cancel()
		fetched.EachRecord(func(r *kgo.Record) {
			e, err := chains[r.Partition].Follow(r.Offset, r.Value)
			if err != nil {
				c.t.Errorf("chain %d: %v", r.Partition, err)
			}
			if id := (one{e.Run, e.Number}); !seen[id] {
				seen[id] = true
				out = append(out, e)
			}
		})
		if fetched.NumRecords() == 0 {
			return out
		}
	}
}

// changesOf counts, for a resource, the changes that were begun and that were said to be done.
func changesOf(entries []audit.Entry, resource string) (begun, done int) {
	for _, e := range entries {
		switch {
		case e.Resource != resource || e.Outcome != "":
		case e.What == audit.Begun:
			begun++
		case e.Of != 0:
			done++
		}
	}
	return begun, done
}

// TestP45_AuditSurvivesKillAndFailOver: whatever node a change is asked of, it is in the trail once, begun and done; kill -9 of each node in turn
// loses none and breaks no chain (R152, P45).
func TestP45_AuditSurvivesKillAndFailOver(t *testing.T) {
	clusterBubble(t, 3, func(n *config.Node) { n.Auth.Audit = config.AuditOn }, func(t *testing.T, c *cluster) {
		cl := c.client()
		defer cl.Close()
		c.untilInBubble("the trail is there", func() bool { return c.alive().Image().Topic(audit.TopicName) != nil })
		var made []string
		for round, id := range append(c.ids(), 0) {
			for _, name := range []string{"a", "b", "c"} {
				topic := string(rune('p'+round)) + name
				c.create(cl, topic, 1)
				made = append(made, topic)
			}
			if id == 0 {
				break
			}
			c.kill(id)
			c.untilInBubble("others lead", func() bool {
				for _, s := range c.alive().Image().Topic(audit.TopicName).Partitions {
					if s.Leader == id || s.Leader == kafka.NoNode {
						return false
					}
				}
				return true
			})
			topic := string(rune('p'+round)) + "-while-down"
			ct := kmsg.NewCreateTopicsRequestTopic()
			ct.Topic, ct.NumPartitions, ct.ReplicationFactor = topic, 1, 2
			req := kmsg.NewPtrCreateTopicsRequest()
			req.TimeoutMillis, req.Topics = 20_000, append(req.Topics, ct)
			resp, err := req.RequestWith(t.Context(), cl)
			if err == nil {
				err = kerr.ErrorForCode(resp.Topics[0].ErrorCode)
			}
			if err != nil {
				t.Fatalf("create %s: %v", topic, err)
			}
			made = append(made, topic)
			c.start(id)
			c.untilInBubble("all copies are in sync", func() bool { return c.whole(audit.TopicName) })
		}
		entries := c.auditTrail(2 * len(made))
		for _, topic := range made {
			if begun, done := changesOf(entries, "Topic:"+topic); begun != 1 || done != 1 {
				t.Errorf("%s: begun %d times, done %d times", topic, begun, done)
			}
		}
	})
}

// TestC096_AdministrationStopsWithoutTheTrail: while too few copies of the trail are in sync a change is refused and not made, and records go on; when
// they are back, changes are made, and the trail has each of them once, the refused one as refused.
func TestC096_AdministrationStopsWithoutTheTrail(t *testing.T) {
	clusterBubble(t, 3, func(n *config.Node) { withHTTP(n); n.Auth.Audit = config.AuditOn }, func(t *testing.T, c *cluster) {
		cl := c.client()
		defer cl.Close()
		c.create(cl, "orders", 1)
		req := kmsg.NewPtrIncrementalAlterConfigsRequest()
		res := kmsg.NewIncrementalAlterConfigsRequestResource()
		res.ResourceType, res.ResourceName = kmsg.ConfigResourceTypeTopic, audit.TopicName
		res.Configs = append(res.Configs, kmsg.IncrementalAlterConfigsRequestResourceConfig{Name: "min.insync.replicas", Value: kmsg.StringPtr("3")})
		req.Resources = append(req.Resources, res)
		if resp, err := req.RequestWith(t.Context(), cl); err != nil || resp.Resources[0].ErrorCode != 0 {
			t.Fatal(err, resp)
		}
		c.kill(3)
		c.untilInBubble("it is out of sync", func() bool { return !c.whole(audit.TopicName) && c.state("orders", 0).Leader != 3 })
		create := func(topic string) error {
			ct := kmsg.NewCreateTopicsRequestTopic()
			ct.Topic, ct.NumPartitions, ct.ReplicationFactor = topic, 1, 2
			req := kmsg.NewPtrCreateTopicsRequest()
			req.TimeoutMillis, req.Topics = 20_000, append(req.Topics, ct)
			resp, err := req.RequestWith(t.Context(), cl)
			if err != nil {
				return err
			}
			return kerr.ErrorForCode(resp.Topics[0].ErrorCode)
		}
		if err := create("refused"); err != kerr.PolicyViolation {
			t.Errorf("a change without a trail: %v", err)
		}
		if c.alive().Image().Topic("refused") != nil {
			t.Error("it was made all the same")
		}
		if err := cl.ProduceSync(t.Context(), &kgo.Record{Topic: "orders", Value: []byte("goes on")}).FirstErr(); err != nil {
			t.Errorf("a publish without a trail: %v", err)
		}
		if c.metric(1, "/metrics", "strandline_audit_refused_changes_total")+c.metric(2, "/metrics", "strandline_audit_refused_changes_total") == 0 {
			t.Error("nothing is counted")
		}
		c.start(3)
		c.untilInBubble("all copies are in sync", func() bool { return c.whole(audit.TopicName) })
		if err := create("made"); err != nil {
			t.Fatal(err)
		}
		entries := c.auditTrail(5)
		if begun, done := changesOf(entries, "Topic:made"); begun != 1 || done != 1 {
			t.Errorf("made: begun %d times, done %d times", begun, done)
		}
		begun, done := changesOf(entries, "Topic:refused")
		refused := 0
		for _, e := range entries {
			if e.Resource == "Topic:refused" && e.Of != 0 && e.Outcome == audit.ErrUnavailable.Error() {
				refused++
			}
		}
		if begun != 1 || done != 0 || refused != 1 {
			t.Errorf("refused: begun %d times, done %d times, refused %d times", begun, done, refused)
		}
	})
}

// laterWall is a wall clock that is ahead.
type laterWall struct{ by time.Duration }

func (w laterWall) Now() time.Time { return time.Now().Add(w.by) }

// TestP45_AnEmptyTrailTellsItsEnds: when all entries are older than the trail keeps them, the chains are empty, and the API tells where they end, and no
// hash that it does not know.
func TestP45_AnEmptyTrailTellsItsEnds(t *testing.T) {
	clusterBubble(t, 1, func(n *config.Node) { withHTTP(n); n.Auth.Audit = config.AuditOn }, func(t *testing.T, c *cluster) {
		c.untilInBubble("the trail is there", func() bool { return c.alive().Image().Topic(audit.TopicName) != nil })
		cl := c.client()
		defer cl.Close()
		ct := kmsg.NewCreateTopicsRequestTopic()
		ct.Topic, ct.NumPartitions, ct.ReplicationFactor = "orders", 1, 1
		req := kmsg.NewPtrCreateTopicsRequest()
		req.TimeoutMillis, req.Topics = 20_000, append(req.Topics, ct)
		if resp, err := req.RequestWith(t.Context(), cl); err != nil || resp.Topics[0].ErrorCode != 0 {
			t.Fatal(err, resp)
		}
		var told struct {
			Entries []json.RawMessage
			Chains  []map[string]any
		}
		read := func() int {
			_, body := httpGet(t, c.net.Host("client"), c.member(1).host()+":8080", "/v1/audit")
			told.Entries, told.Chains = nil, nil
			if json.Unmarshal([]byte(body), &told) != nil || len(told.Chains) != 3 {
				return -1 // not yet
			}
			return len(told.Entries)
		}
		c.untilInBubble("the change and its end are read", func() bool { return read() == 1 && told.Chains[1]["entries"] == 2.0 })
		end := told.Chains[1]["next"]
		c.stop(1)
		m := c.member(1)
		m.process = &process{Net: c.net.Host(m.host())}
		machine := systest.Machine(m.fs, m.process, nil)
		machine.Wall = laterWall{2 * 365 * 24 * time.Hour}
		var err error
		if m.node, err = Start(t.Context(), Options{Config: c.configOf(m), Machine: machine, Log: slog.New(slog.NewTextHandler(m.log, nil))}); err != nil {
			t.Fatal(err)
		}
		c.untilInBubble("all is removed", func() bool { return read() == 0 && told.Chains[1]["entries"] == 0.0 })
		if _, hash := told.Chains[1]["lastHash"]; hash || told.Chains[1]["next"] != end || end == 0.0 {
			t.Errorf("%v, before it was empty its end was %v", told.Chains, end)
		}
	})
}
