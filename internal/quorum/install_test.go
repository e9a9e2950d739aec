package quorum

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/metadata"
	"strandline.dev/internal/sys/systest"
)

// behind starts three controllers and, when observing, an observer, and takes one node away until the others have dropped what it lacks. It returns
// that node.
func (c *testCluster) behind(observing bool) kafka.NodeID {
	c.t.Helper()
	c.every = 5
	c.start(1, 2, 3)
	away := kafka.NodeID(4)
	if observing {
		c.start(4)
		c.agree(c.fill(3))
	} else {
		c.agree(c.fill(3))
		away = c.leader(time.Second).id%3 + 1
	}
	c.halt(away)
	c.fill(30)
	return away
}

func TestASnapshotIsInstalledBehindTheLogsStart(t *testing.T) {
	for _, observing := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			c := newTestCluster(t, 3)
			away := c.behind(observing)
			c.start(away)
			last := c.fill(7)
			c.agree(last)
			m := c.nodes[away]
			if start := m.q.metalog.Start(); start < 20 {
				t.Errorf("node %d has a log from %d on: no snapshot was installed", away, start)
			}
			if !observing && !m.isVoter() {
				t.Errorf("node %d does not vote", away)
			}
			c.crash(systest.LoseAll, away)
			c.start(away)
			c.agree(c.fill(2))
			c.end()
		})
	}
}

func TestAnInstallationSurvivesACrashAtEveryFileOperation(t *testing.T) {
	run := func(t *testing.T, observing bool, at int64, mode systest.CrashMode) (ops int64) {
		c := newTestCluster(t, 3)
		away := c.behind(observing)
		fs := c.disks[away]
		began := fs.Ops()
		if at > 0 {
			fs.CrashAt(began + at)
		}
		if _, err := c.open(away); err != nil && !fs.Crashed() {
			t.Fatal(err)
		}
		for start := time.Now(); !fs.Crashed() && time.Since(start) < 2*time.Second; {
			sleepInBubble(10 * time.Millisecond)
		}
		ops = fs.Ops() - began
		if fs.Crashed() {
			if c.nodes[away] != nil {
				c.crash(mode, away)
			} else {
				c.disks[away] = fs.Crash(mode)
			}
			c.start(away)
		}
		fs.CrashAt(0)
		c.agree(c.fill(2))
		for name := range c.disks[away].Files() {
			if strings.HasSuffix(name, stagedSuffix) {
				t.Errorf("crash at operation %d: %s is left", at, name)
			}
		}
		c.end()
		return ops
	}
	for _, observing := range []bool{false, true} {
		var ops int64
		synctest.Test(t, func(t *testing.T) { ops = run(t, observing, 0, systest.LoseAll) })
		if ops < 20 {
			t.Fatalf("an installation takes only %d file operations", ops)
		}
		for at := int64(1); at <= ops; at += *crashStride {
			mode := []systest.CrashMode{systest.LoseAll, systest.KillProcess, systest.Random}[at%3]
			synctest.Test(t, func(t *testing.T) { run(t, observing, at, mode) })
		}
	}
}

func TestAnInstallationOnAFullDiskWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newTestCluster(t, 3)
		away := c.behind(false)
		c.start(away)
		c.nodes[away].fs.SetFree(0)
		time.Sleep(3 * time.Second)
		c.nodes[away].fs.SetFree(-1)
		c.agree(c.fill(2))
		c.end()
	})
}

// A member that is taken out may have entries that never were committed. A crash between the snapshot that says so and the cut of its log must not
// make it take them for committed.
func TestI13_AnObserverThatWasAVoterHasCommittedEntriesOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newTestCluster(t, 3)
		c.start(1, 2, 3)
		c.agree(c.fill(10))
		away := c.leader(time.Second).id%3 + 1
		dir := c.nodes[away].dir.MetadataDir()
		image, conf := c.nodes[away].q.Image(), testSnapshot(t).Conf
		self, _ := raftID(c.nodes[away].dir.Identity().DirectoryID)
		c.crash(systest.LoseAll, away)
		// The disk as the crash would have left it: the table without this directory is in a snapshot, the log goes on behind it.
		rows := slices.DeleteFunc(slices.Clone(image.Voters()), func(v metadata.Voter) bool { return v.RaftID == self })
		conf.Voters = []uint64{rows[0].RaftID, rows[1].RaftID}
		write := func(at uint64) {
			t.Helper()
			// Of the Image only its table matters: nothing is applied to it here.
			out, err := metadata.Empty().Apply(at, []metadata.Record{metadata.ClusterRecord{ClusterID: image.ClusterID(), Voters: rows}})
			if err != nil {
				t.Fatal(err)
			}
			s := &snapshots{fs: c.disks[away], dir: dir, log: c.log}
			if err := s.write(snapshot{snapshotID: snapshotID{Index: at, Term: 1}, Conf: conf, Image: out}); err != nil {
				t.Fatal(err)
			}
		}
		c.halt(1 + away%3)
		c.halt(1 + (away+1)%3)
		write(6)
		m, err := c.open(away)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		if m.q.LogEnd() != 7 || m.q.Image().Version() != 6 {
			t.Errorf("the log ends at %d, the Image is at %d; want 7 and 6", m.q.LogEnd(), m.q.Image().Version())
		}
		c.crash(systest.LoseAll, away)
		// With two such snapshots the log was an observer's when the newer one was written.
		write(4)
		m, err = c.open(away)
		if err != nil {
			t.Fatal(err)
		}
		if m.q.LogEnd() != 7 {
			t.Errorf("the log ends at %d, want 7", m.q.LogEnd())
		}
		c.end()
	})
}

func TestI11_AnObserverFetchesADamagedLogAgain(t *testing.T) {
	for _, damage := range []string{"log", "copy", "both", "vote"} {
		synctest.Test(t, func(t *testing.T) {
			c := newTestCluster(t, 3)
			c.start(1, 2, 3, 4)
			c.agree(c.fill(10))
			c.crash(systest.KillProcess, 4)
			for file := range c.disks[4].Files() {
				name := filepath.Base(file)
				isLog, isCopy, isVote := strings.HasSuffix(name, ".log"), name == copyFileName, name == voteFileName
				if isLog && (damage == "log" || damage == "both") || isCopy && (damage == "copy" || damage == "both") || isVote && damage == "vote" {
					if err := c.disks[4].Cut(file, int64(len(c.disks[4].Files()[file])/2)); err != nil {
						t.Fatal(err)
					}
				}
			}
			c.start(4)
			c.agree(c.fill(2))
			c.end()
		})
	}
}
