package replica

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"strandline.dev/internal/config"
	"strandline.dev/internal/kafka"
	"strandline.dev/internal/metadata"
	"strandline.dev/internal/metrics"
	"strandline.dev/internal/record"
	"strandline.dev/internal/storage"
	"strandline.dev/internal/sys"
	"strandline.dev/internal/sys/systest"
)

const me kafka.NodeID = 1

// world is one node's data directory, its Host, and the metadata it is told.
type world struct {
	metrics *metrics.Registry
	t       testing.TB
	machine sys.Machine
	path    string
	dir     *storage.Dir
	host    *Host
	img     *metadata.Image
	version uint64
	found   Recovered
	configs map[string]config.Topic // by topic name; others get baseConfig
	expiry  time.Duration           // of idempotent producers, for the next start
	minted  byte

	mu        sync.Mutex
	purged    []kafka.TopicPartition
	confirmed int // how many times purges were confirmed
}

// newWorld starts a node on a file system that lives in memory.
func newWorld(t testing.TB) (*world, *systest.FS) {
	fs := systest.NewFS(1)
	return newWorldOn(t, systest.Machine(fs, nil, nil), "/data"), fs
}

// newDiskWorld starts a node on the real file system.
func newDiskWorld(t testing.TB) *world { return newWorldOn(t, sys.Real(), t.TempDir()) }

func newWorldOn(t testing.TB, m sys.Machine, path string) *world {
	w := &world{
		t: t, machine: m, path: path, img: metadata.Empty(),
		configs: map[string]config.Topic{},
	}
	w.start()
	w.register()
	t.Cleanup(func() { w.stop(false) })
	return w
}

func baseConfig() config.Topic {
	return config.Topic{
		Retention: 7 * 24 * time.Hour, RetentionBytes: -1, SegmentBytes: 1 << 20, SegmentAge: 7 * 24 * time.Hour,
		MaxBatchBytes: 1 << 20, CleanupPolicy: []string{"delete"}, MinInsync: 1, AcksMinimum: "0", IndexInterval: 4096,
	}
}

// start opens directory and host, as a process does before it registers.
func (w *world) start() {
	w.t.Helper()
	log := slog.New(slog.DiscardHandler)
	m := metrics.New()
	w.metrics = m
	var err error
	w.dir, err = storage.OpenDir(storage.DirOptions{Machine: w.machine, Path: w.path, Log: log, Metrics: m.Storage})
	w.must(err)
	w.host, err = NewHost(Config{
		Dir: w.dir, Node: me, Machine: w.machine, Log: log, Metrics: m.Broker, TopicConfig: w.topicConfig, Purged: w.notePurged, ProducerExpiry: w.expiry,
	})
	w.must(err)
	w.found, err = w.host.Recover(context.Background())
	w.must(err)
}

func (w *world) topicConfig(t *metadata.Topic) config.Topic {
	if c, ok := w.configs[t.Name]; ok {
		return c
	}
	return baseConfig()
}

func (w *world) notePurged(gone []kafka.TopicPartition) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.purged, w.confirmed = append(w.purged, gone...), w.confirmed+1
}

// register does what the controller does for a starting node: a broker epoch, and a new leader epoch for all it led (I3).
func (w *world) register() {
	w.t.Helper()
	epoch := kafka.BrokerEpoch(w.version + 1)
	rs := []metadata.Record{metadata.BrokerRecord{Node: me, Epoch: epoch, StartNumber: w.dir.StartNumber(), BootID: w.dir.BootID()}}
	for t := range w.img.Topics() {
		for n, s := range t.Partitions {
			s.LeaderEpoch++
			s.PartitionEpoch++
			rs = append(rs, metadata.PartitionRecord{Topic: t.ID, Partition: int32(n), State: s})
		}
	}
	w.host.SetBrokerEpoch(epoch)
	w.apply(rs...)
	w.must(w.dir.CommitBootID())
}

// apply commits records and reconciles.
func (w *world) apply(rs ...metadata.Record) {
	w.t.Helper()
	w.commit(rs...)
	w.must(w.host.Reconcile(w.img))
}

// commit changes the metadata without telling the host.
func (w *world) commit(rs ...metadata.Record) {
	w.t.Helper()
	w.version++
	img, err := w.img.Apply(w.version, rs)
	w.must(err)
	w.img = img
}

// topic creates a topic with one replica of each partition, here, and returns its first partition.
func (w *world) topic(name string, partitions int) kafka.TopicPartition {
	w.t.Helper()
	id, rs := w.topicRecords(name, partitions)
	w.apply(rs...)
	return kafka.TopicPartition{Topic: id}
}

func (w *world) topicRecords(name string, partitions int) (kafka.TopicID, []metadata.Record) {
	w.minted++
	id := kafka.TopicID{0: 0xaa, 15: w.minted}
	rs := []metadata.Record{metadata.TopicRecord{ID: id, Name: name, Owner: "User:test", CreatedMs: 1, Partitions: int32(partitions)}}
	for n := range partitions {
		rs = append(rs, metadata.PartitionRecord{Topic: id, Partition: int32(n), State: alone()})
	}
	return id, append(rs, metadata.TopicStateRecord{ID: id, State: metadata.StateReady, Version: 1})
}

func alone() kafka.PartitionState {
	return kafka.PartitionState{Replicas: []kafka.NodeID{me}, ISR: []kafka.NodeID{me}, Leader: me}
}

// change commits a changed state of a partition.
func (w *world) change(tp kafka.TopicPartition, f func(*kafka.PartitionState)) {
	w.t.Helper()
	s := w.img.TopicByID(tp.Topic).Partitions[tp.Partition]
	s.PartitionEpoch++
	f(&s)
	w.apply(metadata.PartitionRecord{Topic: tp.Topic, Partition: tp.Partition, State: s})
}

// pair makes a partition one of two replicas, both in sync, of which both must be. Its topic has min.insync.replicas=2.
func (w *world) pair(name string) kafka.TopicPartition {
	w.t.Helper()
	id, rs := w.topicRecords(name, 1)
	two := "2"
	last := rs[len(rs)-1]
	s := alone()
	s.Replicas, s.ISR = []kafka.NodeID{me, 2}, []kafka.NodeID{me, 2}
	w.apply(append(rs[:1:1], metadata.ConfigRecord{Topic: id, Node: kafka.NoNode, Key: "min.insync.replicas", Value: &two},
		metadata.PartitionRecord{Topic: id, State: s}, last)...)
	return kafka.TopicPartition{Topic: id}
}

// stop ends the process; clean or as kill -9 would: nothing is flushed.
func (w *world) stop(clean bool) {
	if w.dir == nil {
		return
	}
	err := w.host.Close(clean)
	if clean {
		w.must(err)
	}
	w.dir.Close(storage.CloseOptions{Clean: clean && err == nil, BrokerEpoch: kafka.BrokerEpoch(w.version)})
	w.dir = nil
}

// restart stops and starts the node on the same disk.
func (w *world) restart(clean bool) {
	w.t.Helper()
	w.stop(clean)
	w.start()
	w.register()
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// batch makes a batch of records of about 20 bytes each.
func batch(records int) record.Batch { return batchAt(0, records) }

func batchAt(ts int64, records int) record.Batch {
	b := record.NewBuilder(0)
	for n := range records {
		b.Add(ts, fmt.Appendf(nil, "key-%d", n), []byte("some value"), nil)
	}
	return b.Build()
}

// numbered makes a batch of an idempotent producer.
func numbered(id kafka.ProducerID, sequence int32, records int) record.Batch {
	b := batch(records)
	b.SetProducer(id, 0, sequence, false)
	return b
}

// publish appends one batch without waiting.
func (w *world) publish(tp kafka.TopicPartition, b record.Batch, acks int16) *Produce {
	return w.host.Append([]AppendItem{{TP: tp, Batch: b}}, acks, time.Minute)
}

// acked appends one batch with acks=all and waits for the acknowledgement.
func (w *world) acked(tp kafka.TopicPartition, b record.Batch) AppendResult {
	w.t.Helper()
	p := w.publish(tp, b, AcksAll)
	waitFor(w.t, p.Ready())
	r := p.Results()[0]
	w.must(r.Err)
	return r
}

// waitFor waits for something that must happen; the limit only ends a test that hangs.
func waitFor(t testing.TB, c <-chan struct{}) {
	t.Helper()
	select {
	case <-c:
	case <-time.After(20 * time.Second):
		t.Fatal("nothing happened for 20 s")
	}
}

func isReady(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func at(tp kafka.TopicPartition, offset kafka.Offset) FetchItem {
	return FetchItem{TP: tp, Offset: offset, CurrentEpoch: kafka.NoEpoch, LastFetchedEpoch: kafka.NoEpoch, MaxBytes: 1 << 20}
}

// fetch reads one partition once.
func (w *world) fetch(it FetchItem) FetchResult {
	var buf FetchBuffer
	r := w.host.Read([]FetchItem{it}, FetchOptions{MaxBytes: 1 << 20}, &buf)[0]
	r.Records = slices.Clone(r.Records)
	buf.Release()
	return r
}

// batches splits records.
func (w *world) batches(records []byte) (out []record.Batch) {
	w.t.Helper()
	for len(records) > 0 {
		b, rest, err := record.Split(records)
		w.must(err)
		w.must(b.VerifyCRC())
		out = append(out, b)
		records = rest
	}
	return out
}

// offsets lists the base offsets of the batches in records.
func (w *world) offsets(records []byte) (bases []kafka.Offset) {
	w.t.Helper()
	for _, b := range w.batches(records) {
		bases = append(bases, b.BaseOffset())
	}
	return bases
}

func (w *world) status(tp kafka.TopicPartition) PartitionStatus {
	w.t.Helper()
	s, ok := w.host.Describe(tp)
	if !ok {
		w.t.Fatalf("no partition %v", tp)
	}
	return s
}
