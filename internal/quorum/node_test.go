package quorum

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"hash/crc32"
	"log/slog"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/metadata"
	"strandline.dev/internal/metrics"
	"strandline.dev/internal/storage"
	"strandline.dev/internal/sys/systest"
)

var rewrite = flag.Bool("rewrite", false, "rewrite the golden files in testdata")

// dataDir is the data directory of every test node.
const dataDir = "/data"

// testNode is one quorum on a crashable disk. It lives in a bubble.
type testNode struct {
	t    *testing.T
	fs   *systest.FS
	dir  *storage.Dir
	q    *Quorum
	stop context.CancelFunc
	ran  chan error
}

type testOptions struct {
	controllers []string
	every       int // SnapshotEntries
	copyKeep    int64
	log         *slog.Logger
}

// openTestNode opens directory and quorum and does not run it.
func openTestNode(t *testing.T, fs *systest.FS, o testOptions) (*testNode, error) {
	t.Helper()
	machine := systest.Machine(fs, nil, nil)
	dir, err := storage.OpenDir(storage.DirOptions{Machine: machine, Path: dataDir, Metrics: metrics.New().Storage})
	if err != nil {
		return nil, err
	}
	if o.log == nil {
		o.log = slog.New(slog.DiscardHandler)
	}
	q, err := Open(Config{Machine: machine, Dir: dir, Node: 1, Controllers: o.controllers, Log: o.log, SnapshotEntries: o.every})
	if err != nil {
		_ = dir.Close(storage.CloseOptions{})
		return nil, err
	}
	q.start.copyKeep = o.copyKeep
	return &testNode{t: t, fs: fs, dir: dir, q: q}, nil
}

// run starts the quorum.
func (n *testNode) run() {
	ctx, stop := context.WithCancel(context.Background())
	n.stop, n.ran = stop, make(chan error, 1)
	go func() { n.ran <- n.q.Run(ctx) }()
}

// startTestNode opens and runs a node that must come up.
func startTestNode(t *testing.T, fs *systest.FS, o testOptions) *testNode {
	t.Helper()
	n, err := openTestNode(t, fs, o)
	if err != nil {
		t.Fatal(err)
	}
	n.run()
	return n
}

// close stops the node and returns what Run returned.
func (n *testNode) close() error {
	var err error
	if n.ran != nil {
		n.stop()
		err = <-n.ran
	}
	_ = n.q.Close()
	_ = n.dir.Close(storage.CloseOptions{})
	return err
}

// closeClean stops the node and leaves the clean-shutdown marker.
func (n *testNode) closeClean() {
	n.t.Helper()
	n.stop()
	err := <-n.ran
	_ = n.q.Close()
	if err = errors.Join(err, n.dir.Close(storage.CloseOptions{Clean: true})); err != nil {
		n.t.Fatal(err)
	}
}

// crash stops the machine and returns the disk of the next start.
func (n *testNode) crash(mode systest.CrashMode) *systest.FS {
	next := n.fs.Crash(mode)
	_ = n.close()
	return next
}

// waitVersion waits until the Image has reached version; false means that the quorum has stopped before.
func (n *testNode) waitVersion(version uint64) bool {
	for {
		changed := n.q.Changed()
		if n.q.Image().Version() >= version {
			return true
		}
		select {
		case <-changed:
		case <-n.q.Stopped():
			return false
		}
	}
}

// lead waits until the node leads and everything earlier is in its Image.
func (n *testNode) lead() (Leadership, bool) {
	for {
		changed := n.q.LeadershipChanged()
		if l := n.q.Leadership(); l.Leading {
			return l, n.waitVersion(l.TermStart)
		}
		select {
		case <-changed:
		case <-n.q.Stopped():
			return Leadership{}, false
		}
	}
}

// propose proposes records and does not wait for the commit.
func (n *testNode) propose(rs ...metadata.Record) (uint64, error) {
	l, ok := n.lead()
	if !ok {
		return 0, ErrStopped
	}
	index := n.q.LogEnd()
	return index, n.q.Propose(l.Term, index, rs)
}

// mustCommit proposes records and waits for the commit.
func (n *testNode) mustCommit(rs ...metadata.Record) uint64 {
	n.t.Helper()
	index, err := n.propose(rs...)
	if err != nil {
		n.t.Fatal(err)
	}
	if !n.waitVersion(index) {
		n.t.Fatalf("entry %d was not committed", index)
	}
	return index
}

// model is what the metadata must be: every proposed entry by its index, and which of them were committed.
type model struct {
	base     *metadata.Image
	proposed map[uint64][]metadata.Record
	acked    uint64 // every proposed entry up to here was seen committed
	count    int64
	node     atomic.Pointer[testNode] // that runs now
	// limit, when set, is the log's end at the moment of a fault: nothing from there on may be confirmed.
	limit atomic.Uint64
}

func newModel() *model { return &model{proposed: map[uint64][]metadata.Record{}} }

// reopened takes note of a start: what is not in the log is gone, and must not have been committed.
func (m *model) reopened(t *testing.T, q *Quorum) {
	t.Helper()
	if m.base == nil {
		m.base = q.Image()
	}
	if q.LogEnd() <= m.acked {
		t.Fatalf("the log ends at %d but entry %d was committed", q.LogEnd(), m.acked)
	}
	for index := range m.proposed {
		if index >= q.LogEnd() {
			delete(m.proposed, index)
		}
	}
}

// start opens and runs a node that must come up. The model looks at the log before the new leader appends to it.
func (m *model) start(t *testing.T, fs *systest.FS, o testOptions) *testNode {
	t.Helper()
	n, err := openTestNode(t, fs, o)
	if err != nil {
		t.Fatal(err)
	}
	m.reopened(t, n.q)
	n.run()
	return n
}

// next proposes the next records; false means that the quorum has stopped.
func (m *model) next(n *testNode) (uint64, bool) {
	m.count++
	value := fmt.Sprint(m.count)
	rs := []metadata.Record{
		metadata.ProducerIDsRecord{Next: m.count * 1000},
		metadata.ConfigRecord{Node: kafka.NoNode, Key: fmt.Sprintf("key.%d", m.count%7), Value: &value},
	}
	index, err := n.propose(rs...)
	if err != nil {
		return 0, false
	}
	m.proposed[index] = rs
	return index, true
}

// commit is next, and waits for the commit.
func (m *model) commit(n *testNode) bool {
	index, ok := m.next(n)
	if !ok || !n.waitVersion(index) {
		return false
	}
	m.acked = max(m.acked, index)
	if limit := m.limit.Load(); limit > 0 && index >= limit {
		n.t.Errorf("entry %d was confirmed after a fault at %d", index, limit)
	}
	return true
}

// check compares the node's Image with a full replay of the model.
func (m *model) check(t *testing.T, q *Quorum) {
	t.Helper()
	got := q.Image()
	if got.Version() < m.acked {
		t.Fatalf("the Image is at %d but entry %d was committed", got.Version(), m.acked)
	}
	want := m.base
	for i := want.Version() + 1; i <= got.Version(); i++ {
		var err error
		if want, err = want.Apply(i, m.proposed[i]); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(metadata.EncodeImage(nil, got), metadata.EncodeImage(nil, want)) {
		t.Fatalf("the Image at %d is not the replay of all entries", got.Version())
	}
}

// golden compares bytes with a file of testdata in hex dump form, and rewrites it with -rewrite.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	file := filepath.Join("testdata", name+".golden")
	if *rewrite {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Fatalf("%s: the format has changed:\n got %x\nwant %x", file, got, want)
	}
}

func mustBeCorrupt(t *testing.T, err error, file string) {
	t.Helper()
	var corrupt *CorruptError
	if !errors.As(err, &corrupt) || corrupt.File != file {
		t.Fatalf("got %v, want a refusal that names %s", err, file)
	}
}

// sealed appends the checksum that a snapshot's bytes must have, so that fuzzing reaches what is behind it.
func sealed(body []byte) []byte {
	return binary.BigEndian.AppendUint32(bytes.Clone(body), crc32.Checksum(body, castagnoli))
}
