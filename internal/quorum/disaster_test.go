package quorum

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/metadata"
	"strandline.dev/internal/metrics"
	"strandline.dev/internal/storage"
	"strandline.dev/internal/sys/systest"
)

// rescue recovers the quorum from a node that does not run.
func (c *testCluster) rescue(id kafka.NodeID) (Rescue, error) {
	machine := systest.Machine(c.disks[id], nil, nil)
	dir, err := storage.OpenDir(storage.DirOptions{Machine: machine, Path: dataDir, Metrics: metrics.New().Storage})
	if err != nil {
		return Rescue{}, err
	}
	done, err := RecoverFromThisNode(Config{Machine: machine, Dir: dir, Node: id, Controllers: c.list, Log: c.log})
	return done, errors.Join(err, dir.Close(storage.CloseOptions{}))
}

func TestTheQuorumIsRecoveredFromOneNode(t *testing.T) {
	for _, from := range []kafka.NodeID{3, 4} { // a voter; an observer, when no voter is left
		synctest.Test(t, func(t *testing.T) {
			c := newTestCluster(t, 3)
			c.start(1, 2, 3, 4, 5)
			c.registered(from)
			c.agree(c.fill(5))
			time.Sleep(2 * time.Second) // a snapshot: what a voter alone knows to be committed
			c.crash(systest.LoseAll, from)
			ahead := c.fill(5) // which from does not have
			c.agree(ahead)
			c.crash(systest.LoseAll, 1, 2)
			if from != 3 {
				c.crash(systest.LoseAll, 3)
			}
			seen := c.nodes[5].q.Image().Version()
			done, err := c.rescue(from)
			if err != nil || len(done.Lost) != 3 || done.Cluster == "" || done.Index <= seen {
				t.Fatalf("%+v, %v; an observer has seen %d", done, err, seen)
			}
			c.start(from)
			l := c.leader(time.Second)
			if l.id != from || l.q.Image().Version() <= done.Index {
				t.Fatalf("node %d leads at %d", l.id, l.q.Image().Version())
			}
			// An observer that was ahead follows, and a lost voter that comes back after all does too.
			c.start(1)
			last := c.fill(3)
			c.agree(last)
			if c.nodes[1].q.isMember.Load() {
				t.Error("a voter of the old table votes")
			}
			// The lost ones are taken in again with empty disks.
			c.wipe(2)
			c.start(2)
			c.registered(2)
			c.agree(c.fill(1))
			if err := l.q.AddVoter(t.Context(), 2); err != nil {
				t.Fatal(err)
			}
			c.agree(c.fill(1))
			c.end()
		})
	}
}

func TestARescueThatCrashesIsDoneOrNotBegun(t *testing.T) {
	var ops int64
	run := func(t *testing.T, at int64) {
		c := newTestCluster(t, 3)
		c.start(1, 2, 3)
		c.agree(c.fill(3))
		c.crash(systest.LoseAll, 1, 2, 3)
		fs := c.disks[3]
		began := fs.Ops()
		if at > 0 {
			fs.CrashAt(began + at)
		}
		if _, err := c.rescue(3); err == nil {
			ops = fs.Ops() - began
		}
		if fs.Crashed() {
			c.disks[3] = fs.Crash(systest.LoseAll)
			if _, err := c.rescue(3); err != nil {
				t.Fatalf("crash at operation %d: %v", at, err)
			}
		}
		c.start(3)
		if l := c.leader(5 * time.Second); l.q.Image().BrokerConfigs(kafka.NoNode)["key.0"] == "" {
			t.Errorf("crash at operation %d: records are lost", at)
		}
		c.commit(metadata.ProducerIDsRecord{Next: 1000})
		c.end()
	}
	synctest.Test(t, func(t *testing.T) { run(t, 0) })
	for at := int64(1); at <= ops; at += *crashStride {
		synctest.Test(t, func(t *testing.T) { run(t, at) })
	}
}
