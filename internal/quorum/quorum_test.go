package quorum

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/metadata"
	"strandline.dev/internal/sys/systest"
)

func TestFormingMintsOneClusterAndKeepsIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs := systest.NewFS(1)
		began := time.Now()
		n := startTestNode(t, fs, testOptions{controllers: []string{"1@localhost:9093"}})
		l, ok := n.lead()
		if !ok || l.Leader != 1 || l.Term != 1 || l.TermStart != 1 {
			t.Fatalf("leadership %+v, %v", l, ok)
		}
		if waited := time.Since(began); waited != 0 {
			t.Errorf("the sole voter waited %v before it led", waited)
		}
		cluster := n.q.Image().ClusterID()
		if len(cluster) != 22 || n.dir.Identity().ClusterID != cluster || n.dir.Identity().NodeID != 1 {
			t.Fatalf("cluster %q, identity %+v", cluster, n.dir.Identity())
		}
		voters := n.q.Image().Voters()
		if len(voters) != 1 || voters[0].Directory != n.dir.Identity().DirectoryID || voters[0].Address != "localhost:9093" {
			t.Fatalf("voters %+v", voters)
		}
		if err := n.close(); err != nil {
			t.Fatal(err)
		}
		n = startTestNode(t, fs, testOptions{})
		if l, _ := n.lead(); l.Term != 2 || n.q.Image().ClusterID() != cluster {
			t.Errorf("after a restart: %+v, cluster %q, want %q", l, n.q.Image().ClusterID(), cluster)
		}
		if err := n.close(); err != nil {
			t.Fatal(err)
		}
	})
}

func TestSeveralControllersAreRefusedByName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, controllers := range [][]string{{"1@a:1", "2@b:1", "3@c:1"}, {"2@b:1"}} {
			_, err := openTestNode(t, systest.NewFS(1), testOptions{controllers: controllers})
			if !errors.Is(err, ErrSeveralControllers) || !strings.Contains(err.Error(), "cluster.controllers") {
				t.Errorf("%v: %v", controllers, err)
			}
		}
		if _, err := openTestNode(t, systest.NewFS(1), testOptions{controllers: []string{"localhost:9093"}}); err == nil {
			t.Error("an entry without a node id was accepted")
		}
	})
}

func TestADirectoryThatIsNotInTheTableOfVotersIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs := systest.NewFS(1)
		n := startTestNode(t, fs, testOptions{})
		n.lead()
		_ = n.close()
		s := &snapshots{fs: fs, dir: n.dir.MetadataDir()}
		if err := s.write(foreignSnapshot(t, "another-cluster")); err != nil {
			t.Fatal(err)
		}
		_, err := openTestNode(t, fs, testOptions{})
		if !errors.Is(err, ErrIdentity) {
			t.Fatalf("metadata of another cluster: %v", err)
		}
		if err := s.write(foreignSnapshot(t, n.q.Image().ClusterID())); err != nil {
			t.Fatal(err)
		}
		_, err = openTestNode(t, fs, testOptions{})
		if !errors.Is(err, ErrNotAVoter) || !strings.Contains(err.Error(), n.dir.Identity().DirectoryID.Hex()) {
			t.Fatalf("metadata without this directory: %v", err)
		}
	})
}

// foreignSnapshot is newer than what the test's node has, and its only voter is another directory.
func foreignSnapshot(t *testing.T, cluster string) snapshot {
	t.Helper()
	image, err := metadata.Empty().Apply(1000, []metadata.Record{metadata.ClusterRecord{ClusterID: cluster, Voters: []metadata.Voter{testVoter()}}})
	if err != nil {
		t.Fatal(err)
	}
	return snapshot{snapshotID: snapshotID{Index: 1000, Term: 1}, Conf: testSnapshot(t).Conf, Image: image}
}

func TestProposalsOfAnotherTermOrIndexAreRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := startTestNode(t, systest.NewFS(1), testOptions{})
		l, _ := n.lead()
		rs := []metadata.Record{metadata.ProducerIDsRecord{Next: 1000}}
		end := n.q.LogEnd()
		if err := n.q.Propose(l.Term-1, end, rs); !errors.Is(err, ErrNotLeader) {
			t.Errorf("older term: %v", err)
		}
		for _, index := range []uint64{end - 1, end + 1} {
			if err := n.q.Propose(l.Term, index, rs); !errors.Is(err, ErrMoved) {
				t.Errorf("index %d instead of %d: %v", index, end, err)
			}
		}
		big := strings.Repeat("x", EntryBytesMax)
		large := []metadata.Record{metadata.ConfigRecord{Node: kafka.NoNode, Key: "k", Value: &big}}
		if err := n.q.Propose(l.Term, end, large); !errors.Is(err, ErrTooLarge) {
			t.Errorf("too large: %v", err)
		}
		if n.q.LogEnd() != end {
			t.Errorf("a refused proposal moved the log's end from %d to %d", end, n.q.LogEnd())
		}
		_ = n.close()
		if err := n.q.Propose(l.Term, end, rs); !errors.Is(err, ErrNotLeader) {
			t.Errorf("after the end: %v", err)
		}
	})
}

func TestI13_ImagesAreCommittedAndRise(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs := systest.NewFS(1)
		n := startTestNode(t, fs, testOptions{})
		n.lead()
		// The disk does not answer: nothing may be published.
		release := make(chan struct{})
		fs.Hook(func(op systest.Op) error {
			if op.Kind == systest.OpSync {
				<-release
			}
			return nil
		})
		before := n.q.Image()
		first, err := n.propose(metadata.ProducerIDsRecord{Next: 1000})
		if err != nil {
			t.Fatal(err)
		}
		second, err := n.propose(metadata.ProducerIDsRecord{Next: 2000})
		if err != nil || second != first+1 {
			t.Fatalf("second proposal: index %d after %d, %v", second, first, err)
		}
		synctest.Wait()
		if n.q.Image() != before {
			t.Fatal("an Image was published before its entry was durable")
		}
		close(release)
		if !n.waitVersion(second) || n.q.Image().NextProducerID() != 2000 {
			t.Errorf("the Image at %d has next producer id %d", n.q.Image().Version(), n.q.Image().NextProducerID())
		}
		_ = n.close()
	})
}

func TestP40_SnapshotAndTailAreTheFullReplay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs := systest.NewFS(1)
		m := newModel()
		for range 4 {
			n := m.start(t, fs, testOptions{every: 10})
			for range 33 {
				if !m.commit(n) {
					t.Fatal("not committed")
				}
			}
			m.check(t, n.q)
			if err := n.close(); err != nil {
				t.Fatal(err)
			}
		}
		kept := snapshotFiles(fs)
		if len(kept) != snapshotsKept {
			t.Errorf("snapshots on disk: %v", kept)
		}
	})
}

func snapshotFiles(fs *systest.FS) []string {
	var names []string
	for name := range fs.Files() {
		if strings.HasSuffix(name, snapshotSuffix) {
			names = append(names, filepath.Base(name))
		}
	}
	return names
}

func TestAMembershipChangeIsInASnapshotBeforeAnythingElseIsSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs := systest.NewFS(1)
		n, err := openTestNode(t, fs, testOptions{})
		if err != nil {
			t.Fatal(err)
		}
		l, err := newLoop(n.q, n.q.start)
		if err != nil {
			t.Fatal(err)
		}
		learner := testVoter()
		learner.Node = 2
		table := slices.Concat(n.q.Image().Voters(), []metadata.Voter{learner})
		context := metadata.EncodeRecords(nil, []metadata.Record{metadata.ClusterRecord{ClusterID: n.q.Image().ClusterID(), Voters: table}})
		data, err := proto.Marshal(&raftpb.ConfChangeV2{
			Changes: []*raftpb.ConfChangeSingle{{Type: raftpb.ConfChangeAddLearnerNode.Enum(), NodeId: proto.Uint64(learner.RaftID)}},
			Context: context,
		})
		if err != nil {
			t.Fatal(err)
		}
		go l.disk.run(t.Context())
		entry := &raftpb.Entry{Type: raftpb.EntryConfChangeV2.Enum(), Term: proto.Uint64(1), Index: proto.Uint64(1), Data: data}
		if err := l.apply(t.Context(), []*raftpb.Entry{entry}); err != nil {
			t.Fatal(err)
		}
		// Durable now, at the moment apply returned.
		_, newest, found, err := openSnapshots(fs.Clone(systest.LoseAll), n.dir.MetadataDir(), n.q.log)
		if err != nil || !found {
			t.Fatalf("found %v, %v", found, err)
		}
		if newest.Index != 1 || len(newest.Conf.GetLearners()) != 1 || len(newest.Image.Voters()) != 2 {
			t.Errorf("the newest durable snapshot is %+v with conf %v", newest.snapshotID, newest.Conf)
		}
		if first, _ := l.log.FirstIndex(); first != 2 {
			t.Errorf("raft's first index is %d", first)
		}
		_ = n.close()
	})
}

func TestI11_AFullDiskIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs := systest.NewFS(1)
		m := newModel()
		n := m.start(t, fs, testOptions{every: 5})
		for range 12 {
			if !m.commit(n) {
				t.Fatal("not committed")
			}
		}
		fs.SetFree(0)
		index, ok := m.next(n)
		if !ok {
			t.Fatal("the proposal was refused")
		}
		time.Sleep(5 * time.Second)
		if v := n.q.Image().Version(); v >= index {
			t.Fatalf("committed %d on a full disk", v)
		}
		if !n.q.Leadership().Leading {
			t.Error("a full disk ended the leadership of the only voter")
		}
		fs.SetFree(-1)
		if !n.waitVersion(index) {
			t.Fatal("the entry was not committed when there was space again")
		}
		m.acked = index
		m.check(t, n.q)
		if err := n.close(); err != nil {
			t.Fatal(err)
		}
	})
}

func TestWritesOfAFullDiskAreTheOnesThatWait(t *testing.T) {
	for err, want := range map[error]bool{syscall.ENOSPC: true, syscall.EIO: false, systest.ErrCrashed: false} {
		if noSpace(err) != want {
			t.Errorf("%v: %v", err, !want)
		}
	}
}

func TestI14_ProposalsInFlightAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs := systest.NewFS(1)
		n := startTestNode(t, fs, testOptions{})
		n.lead()
		release := make(chan struct{})
		fs.Hook(func(op systest.Op) error {
			if op.Kind == systest.OpSync {
				<-release
			}
			return nil
		})
		big := strings.Repeat("x", EntryBytesMax/2)
		var last uint64
		var err error
		for range 2 * uncommittedBytesMax / len(big) {
			var index uint64
			if index, err = n.propose(metadata.ConfigRecord{Node: kafka.NoNode, Key: "k", Value: &big}); err != nil {
				break
			}
			last = index
		}
		if !errors.Is(err, ErrBusy) {
			t.Fatalf("the last proposal ended with %v", err)
		}
		close(release)
		if !n.waitVersion(last) {
			t.Fatal("accepted proposals were not committed")
		}
		n.mustCommit(metadata.ProducerIDsRecord{Next: 1000})
		_ = n.close()
	})
}
