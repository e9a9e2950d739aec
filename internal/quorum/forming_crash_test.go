package quorum

import (
	"testing"
	"testing/synctest"
	"time"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/sys/systest"
)

// formWith starts three controllers and one observer, of which node has the given disk, and lets that node go on when its machine has crashed.
func formWith(t *testing.T, node kafka.NodeID, fs *systest.FS, mode systest.CrashMode) (ops int64) {
	t.Helper()
	c := newTestCluster(t, 3)
	c.disks[node] = fs
	for id := range kafka.NodeID(4) {
		if id+1 == node {
			if _, err := c.open(node); err != nil && fs.Crashed() {
				c.disks[node] = fs.Crash(mode)
				continue
			} else if err != nil {
				t.Fatalf("node %d: %v", node, err)
			}
			continue
		}
		c.start(id + 1)
	}
	again := func() {
		if c.nodes[node] != nil && fs.Crashed() && c.disks[node] == fs {
			c.crash(mode, node)
		}
		if c.nodes[node] == nil {
			c.start(node)
		}
	}
	for began := time.Now(); !fs.Crashed() && time.Since(began) < 2*time.Second; {
		sleepInBubble(20 * time.Millisecond)
	}
	again()
	c.leader(10 * time.Second)
	ops = fs.Ops()
	c.fill(3)
	sleepInBubble(3 * time.Second) // a snapshot
	again()
	fs.CrashAt(0)
	c.agree(c.fill(3))
	cluster := c.nodes[1].q.Image().ClusterID()
	for id, m := range c.nodes {
		if m.q.Image().ClusterID() != cluster || m.dir.Identity().ClusterID != cluster {
			t.Errorf("node %d belongs to %q, node 1 to %q", id, m.q.Image().ClusterID(), cluster)
		}
		if id <= 3 && !m.isVoter() {
			t.Errorf("node %d does not vote", id)
		}
	}
	c.end()
	return ops
}

func TestFormingSurvivesACrashAtEveryFileOperation(t *testing.T) {
	for _, node := range []kafka.NodeID{1, 2, 4} { // who mints, who stores, who joins
		var ops int64
		synctest.Test(t, func(t *testing.T) {
			fs := systest.NewFS(uint64(node))
			ops = formWith(t, node, fs, systest.LoseAll)
		})
		for at := int64(1); at <= ops; at += *crashStride {
			for _, mode := range []systest.CrashMode{systest.LoseAll, systest.KillProcess}[at%2:] { // the second at each, the first at every other
				synctest.Test(t, func(t *testing.T) {
					defer func() {
						if t.Failed() {
							t.Logf("node %d, crash at operation %d of %d, mode %s", node, at, ops, mode)
						}
					}()
					fs := systest.NewFS(uint64(node))
					fs.CrashAt(at)
					formWith(t, node, fs, mode)
				})
			}
		}
	}
}
