package replica

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/metadata"
	"strandline.dev/internal/record"
	"strandline.dev/internal/sys/systest"
)

// filled is a topic with some segments of acknowledged records.
func (c *cluster) filled(name string) kafka.TopicPartition {
	c.t.Helper()
	tp := c.topic(name, 1, "segment.bytes=16384")
	for range 40 {
		c.acked(tp, func() record.Batch { return batch(60) })
	}
	c.alike(tp)
	return tp
}

// segments are the files of a replica's segments.
func (n *clusterNode) segments(tp kafka.TopicPartition) (names []string) {
	for name, content := range n.fs.Files() {
		if strings.HasSuffix(name, ".log") && filepath.Base(filepath.Dir(name)) == tp.String() && len(content) > 0 {
			names = append(names, name)
		}
	}
	return names
}

// TestC023_FlippedBitsAreRepairedFromAPeer: one bit in every segment of one replica, which is restarted and made the leader. Every acknowledged record
// is served, by a replica that has it; the damaged one is built anew.
func TestC023_FlippedBitsAreRepairedFromAPeer(t *testing.T) {
	inClusterBubble(t, 3, func(t *testing.T, c *cluster) {
		tp := c.filled("orders")
		want := c.content(2, tp, 0)
		n := c.nodes[1]
		n.kill(systest.KillProcess)
		c.fence(1)
		names := n.segments(tp)
		if len(names) < 3 {
			t.Fatalf("%d segments", len(names))
		}
		for _, name := range names {
			c.must(n.fs.FlipBit(name, 200, 3))
		}
		n.start()
		c.decide(metadata.ElectLeaders{All: true})
		c.alike(tp)
		c.lead(tp, 1)
		c.acked(tp, oneBatch)
		c.alike(tp)
		if got := c.content(1, tp, 0); !strings.HasPrefix(string(got), string(want)) {
			t.Fatal("acknowledged records are gone")
		}
		if n.log.count("is built anew from its leader") != 1 {
			t.Error("it was not built anew")
		}
	})
}

// TestI11_DamageFoundWhileRunningIsRepaired, on a leader, by a consumer's read: the read is refused, the controller is told, another node leads, and
// this replica is built anew.
func TestI11_DamageFoundWhileRunningIsRepaired(t *testing.T) {
	inClusterBubble(t, 3, func(t *testing.T, c *cluster) {
		tp := c.filled("orders")
		n := c.nodes[1]
		first := ""
		for _, name := range n.segments(tp) {
			if first == "" || name < first {
				first = name
			}
		}
		c.must(n.fs.FlipBit(first, 200, 3))
		var buf FetchBuffer
		r := n.host.Read([]FetchItem{at(tp, 0)}, FetchOptions{MaxBytes: 1 << 20}, &buf)[0]
		if !errors.Is(r.Err, ErrStorage) || len(r.Records) > 0 {
			t.Fatalf("damaged bytes are served: %d bytes, %v", len(r.Records), r.Err)
		}
		c.eventually("another node leads", func() bool { return c.state(tp).Leader != 1 })
		c.acked(tp, oneBatch)
		c.alike(tp)
		// One that names an epoch that passed meanwhile is made again.
		if reports := len(submitted[metadata.ReportDamage](c)); reports < 1 || reports > 2 || n.log.count("is built anew from its leader") != 1 {
			t.Errorf("%d reports; built anew %d times", reports, n.log.count("is built anew from its leader"))
		}
	})
}

// TestC031_FailedSyncOfAFollowerIsRepaired: the first failed sync is final for the log. It is reported, and built anew in new files; meanwhile
// publishes go on. So is a sync of the new files that fails.
func TestC031_FailedSyncOfAFollowerIsRepaired(t *testing.T) {
	for _, failures := range []int{1, 2} {
		id := kafka.NodeID(failures)
		inClusterBubble(t, 3, func(t *testing.T, c *cluster) {
			tp := c.filled("orders")
			n, failed := c.nodes[id], 0
			n.fs.Hook(func(op systest.Op) error {
				if op.Kind == systest.OpSync && strings.HasSuffix(op.Name, ".log") && failed < failures {
					failed++
					return errors.New("I/O error")
				}
				return nil
			})
			base := c.acked(tp, oneBatch)
			c.eventually("built anew", func() bool { return n.log.count("is built anew from its leader") == failures })
			c.acked(tp, oneBatch)
			c.alike(tp)
			if s := c.status(id, tp); s.End < base+2 || s.Problem != "" {
				t.Errorf("%+v", s)
			}
		})
	}
}

// TestRepair_EmptyDisk: a node comes back with an empty disk under its old id, and gets everything from the others.
func TestRepair_EmptyDisk(t *testing.T) {
	inClusterBubble(t, 3, func(t *testing.T, c *cluster) {
		tp := c.filled("orders")
		n := c.nodes[1]
		n.kill(systest.KillProcess)
		c.fence(1)
		n.fs = systest.NewFS(99)
		n.start()
		c.alike(tp)
		c.lead(tp, 1)
		c.acked(tp, oneBatch)
		c.alike(tp)
	})
}

// TestRepair_NothingIsWipedWhileNobodyElseLeads: the damaged replica is the only one there is for now. What is left of it stays on disk, and
// when another one comes it is built anew.
func TestRepair_NothingIsWipedWhileNobodyElseLeads(t *testing.T) {
	inClusterBubble(t, 2, func(t *testing.T, c *cluster) {
		tp := c.filled("orders")
		n := c.nodes[1]
		c.nodes[2].kill(systest.KillProcess)
		c.fence(2)
		before := len(n.segments(tp))
		c.must(n.fs.FlipBit(n.segments(tp)[0], 200, 3))
		var buf FetchBuffer
		for o := kafka.Offset(0); o < 2400; o += 60 {
			n.host.Read([]FetchItem{at(tp, o)}, FetchOptions{MaxBytes: 1 << 20}, &buf)
			buf.Release()
		}
		c.eventually("it is reported", func() bool { return len(submitted[metadata.ReportDamage](c)) > 0 }) // twice, when the first named an older epoch
		waitInBubble(time.Minute)
		if got := len(n.segments(tp)); got != before {
			t.Fatalf("%d of %d segments are left", got, before)
		}
		if s := c.status(1, tp); s.Role != Offline || s.Problem == "" {
			t.Fatalf("%+v", s)
		}
		c.nodes[2].start()
		c.alike(tp)
	})
}

// TestI11_DamagedBytesFromALeaderDamageNothingHere: what arrives with a wrong checksum is not appended, and the partition is tried again.
func TestI11_DamagedBytesFromALeaderDamageNothingHere(t *testing.T) {
	inClusterBubble(t, 2, func(t *testing.T, c *cluster) {
		tp := c.topic("orders", 1)
		c.acked(tp, oneBatch)
		c.alike(tp)
		p := c.nodes[2].host.partition(tp)
		p.mu.Lock()
		pl := p.mu.pull
		p.unlock()
		b := oneBatch()
		b.SetBaseOffset(1)
		b.SetLeaderEpoch(c.state(tp).LeaderEpoch)
		b[len(b)-1] ^= 1
		if then := p.absorb(pl, &answerEntry{tp: tp, epoch: pl.epoch, records: b, appendedMs: 1}, nil); then != retry {
			t.Errorf("then %v", then)
		}
		if s := c.status(2, tp); s.Role != Following || s.End != 1 {
			t.Errorf("%+v", s)
		}
		c.acked(tp, oneBatch)
		c.alike(tp)
	})
}
