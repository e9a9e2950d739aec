package replica

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/metadata"
	"strandline.dev/internal/storage"
	"strandline.dev/internal/sys"
	"strandline.dev/internal/sys/systest"
)

// TestI10_UnknownDirectoryIsSetAsideAndMovedBack: nothing before the Image holds this process's registration; then it is set
// aside whole; when its topic turns up it is back with its records.
func TestI10_UnknownDirectoryIsSetAsideAndMovedBack(t *testing.T) {
	w, _ := newWorld(t)
	tp := w.topic("orders", 1)
	w.acked(tp, batch(3))
	full := w.img
	w.stop(false)

	// An Image of before the topic, as a lost or wrong metadata log would show.
	empty := metadata.Empty()
	w.img, w.version = empty, 0
	w.start()
	w.must(w.host.Reconcile(empty))
	if q, _ := w.dir.Quarantined(); len(q) != 0 {
		t.Fatalf("set aside before the Image held the registration: %v", q)
	}
	w.register()
	if q, _ := w.dir.Quarantined(); !slices.Equal(q, []kafka.TopicPartition{tp}) {
		t.Fatalf("quarantine holds %v", q)
	}
	if _, ok := w.host.Describe(tp); ok {
		t.Fatal("a quarantined partition is still listed")
	}

	w.stop(false)
	w.img, w.version = full, full.Version()
	w.start()
	w.register()
	if s := w.status(tp); s.End != 3 || s.Role != Leading {
		t.Fatalf("after its topic turned up: %+v", s)
	}
	if q, _ := w.dir.Quarantined(); len(q) != 0 {
		t.Fatalf("still in quarantine: %v", q)
	}
	if r := w.fetch(at(tp, 0)); r.Err != nil || !slices.Equal(w.offsets(r.Records), []kafka.Offset{0}) {
		t.Fatalf("its records: %+v", r)
	}
}

// TestI10_QuarantineInTheSameProcess: set aside and restored without a restart.
func TestI10_QuarantineInTheSameProcess(t *testing.T) {
	w, _ := newWorld(t)
	tp := w.topic("orders", 1)
	w.acked(tp, batch(3))
	epoch := w.host.mu.brokerEpoch
	without, err := metadata.Empty().Apply(w.version+1, []metadata.Record{metadata.BrokerRecord{Node: me, Epoch: epoch}})
	w.must(err)
	w.must(w.host.Reconcile(without))
	if q, _ := w.dir.Quarantined(); !slices.Equal(q, []kafka.TopicPartition{tp}) {
		t.Fatalf("quarantine holds %v", q)
	}
	w.version += 2
	w.change(tp, func(s *kafka.PartitionState) { s.LeaderEpoch++ })
	if s := w.status(tp); s.End != 3 || s.Role != Leading {
		t.Fatalf("restored: %+v", s)
	}
}

// TestI10_AnImageOfBeforeTheRegistrationSetsNothingAside, even when it is newer than the one before and lacks the topic.
func TestI10_AnImageOfBeforeTheRegistrationSetsNothingAside(t *testing.T) {
	w, _ := newWorld(t)
	tp := w.topic("orders", 1)
	w.acked(tp, batch(3))
	w.stop(false)
	w.start()
	w.must(w.host.Reconcile(w.img))
	without, err := metadata.Empty().Apply(w.version+1, nil)
	w.must(err)
	w.must(w.host.Reconcile(without))
	if q, _ := w.dir.Quarantined(); len(q) != 0 {
		t.Fatalf("quarantine holds %v", q)
	}
	w.version += 2
	w.register()
	w.must(w.host.WaitApplied(context.Background(), w.version))
	if s := w.status(tp); s.End != 3 || s.Role != Leading {
		t.Fatalf("%+v", s)
	}
}

// TestC079_RecreatedTopicIsAnotherPartition: the name is the same, the id is not; the old one answers nobody and the new one
// starts at 0.
func TestC079_RecreatedTopicIsAnotherPartition(t *testing.T) {
	w, _ := newWorld(t)
	old := w.topic("orders", 1)
	w.acked(old, batch(5))
	wait := w.host.Park([]FetchItem{at(old, 5)}, FetchOptions{MaxBytes: 100}, 1)
	w.apply(metadata.TopicStateRecord{ID: old.Topic, State: metadata.StateDeleted, Version: 2, AtMs: 5, PurgeAtMs: 99})
	waitFor(t, wait.Ready())
	wait.Cancel()
	fresh := w.topic("orders", 1)
	if r := w.fetch(at(old, 5)); !errors.Is(r.Err, ErrUnknownPartition) {
		t.Fatalf("fetch by the old id: %+v", r)
	}
	if r := w.publish(old, batch(1), AcksAll).Results()[0]; !errors.Is(r.Err, ErrUnknownPartition) {
		t.Fatalf("publish by the old id: %+v", r)
	}
	if r := w.fetch(at(fresh, 0)); r.Err != nil || len(r.Records) != 0 || r.HighWatermark != 0 {
		t.Fatalf("the new topic: %+v", r)
	}
	if r := w.acked(fresh, batch(1)); r.Base != 0 {
		t.Fatalf("first record of the new topic: %+v", r)
	}
	if s := w.status(old); s.Role != Kept || s.End != 5 {
		t.Fatalf("the data of the old topic: %+v", s)
	}
}

// TestTrash_RestoredTopicServesItsRecords.
func TestTrash_RestoredTopicServesItsRecords(t *testing.T) {
	w, _ := newWorld(t)
	tp := w.topic("orders", 1)
	w.acked(tp, batch(5))
	w.apply(metadata.TopicStateRecord{ID: tp.Topic, State: metadata.StateDeleted, Version: 2, AtMs: 5, PurgeAtMs: 99})
	s := w.img.TopicByID(tp.Topic).Partitions[0]
	s.LeaderEpoch, s.PartitionEpoch = s.LeaderEpoch+1, s.PartitionEpoch+1
	w.apply(partitionRecord(tp, s), metadata.TopicStateRecord{ID: tp.Topic, State: metadata.StateReady, Version: 3})
	if r := w.fetch(at(tp, 0)); r.Err != nil || r.HighWatermark != 5 || len(r.Records) == 0 {
		t.Fatalf("%+v", r)
	}
}

// TestI10_PurgeIsDoneOnCommandAndConfirmedUntilHeard.
func TestI10_PurgeIsDoneOnCommandAndConfirmedUntilHeard(t *testing.T) {
	w, _ := newWorld(t)
	tp := w.topic("orders", 1)
	keep := w.topic("keep", 1)
	w.acked(tp, batch(5))
	w.apply(metadata.TopicStateRecord{ID: tp.Topic, State: metadata.StateDeleted, Version: 2, AtMs: 5, PurgeAtMs: 9})
	w.host.emptyTrash()
	if dirs, _ := w.dir.PartitionDirs(); len(dirs) != 2 {
		t.Fatalf("deleted while it can be restored: %v", dirs)
	}
	w.apply(metadata.TopicStateRecord{ID: tp.Topic, State: metadata.StatePurging, Version: 3},
		metadata.ReplicaPurgeRecord{Topic: tp.Topic, Node: me})
	w.host.emptyTrash()
	if dirs, _ := w.dir.PartitionDirs(); !slices.Equal(dirs, []kafka.TopicPartition{keep}) {
		t.Fatalf("directories after the purge: %v", dirs)
	}
	w.host.emptyTrash() // the confirmation was lost
	if len(w.purged) != 2 || w.purged[0] != tp {
		t.Fatalf("confirmed: %v", w.purged)
	}
	w.apply(metadata.ReplicaPurgeRecord{Topic: tp.Topic, Node: me, Done: true})
	w.host.emptyTrash()
	if len(w.purged) != 2 {
		t.Fatalf("confirmed after it was heard: %v", w.purged)
	}
	if s := w.status(keep); s.Role != Leading {
		t.Fatalf("%+v", s)
	}
}

// Many purges are done and confirmed in few steps, and one directory that cannot be deleted does not hold up the others.
func TestI10_PurgesGoInBatches(t *testing.T) {
	const partitions = purgeBatchMax + 10
	w, fs := newWorld(t)
	tp := w.topic("orders", partitions)
	rs := []metadata.Record{metadata.TopicStateRecord{ID: tp.Topic, State: metadata.StatePurging, Version: 2}}
	for p := range int32(partitions) {
		rs = append(rs, metadata.ReplicaPurgeRecord{Topic: tp.Topic, Partition: p, Node: me})
	}
	w.apply(rs...)
	fs.FailAt(fs.Ops()+1, systest.ErrIO)
	before := fs.Ops()
	w.host.emptyTrash()
	if len(w.purged) != partitions-1 || w.confirmed != 2 {
		t.Fatalf("%d of %d confirmed, in %d steps", len(w.purged), partitions, w.confirmed)
	}
	if ops := fs.Ops() - before; ops > 12*partitions {
		t.Errorf("%d operations for %d partitions", ops, partitions)
	}
	w.purged = nil
	w.host.emptyTrash()
	if dirs, _ := w.dir.PartitionDirs(); len(w.purged) != partitions || len(dirs) != 0 {
		t.Fatalf("%d of %d confirmed again; left: %v", len(w.purged), partitions, dirs)
	}
}

// TestI4_DamagedLogIsOfflineByNameAndTheRestWorks.
func TestI4_DamagedLogIsOfflineByNameAndTheRestWorks(t *testing.T) {
	w, fs := newWorld(t)
	tp := w.topic("orders", 2)
	other := kafka.TopicPartition{Topic: tp.Topic, Partition: 1}
	for range 5 {
		w.acked(tp, batch(3))
		w.acked(other, batch(3))
	}
	name := segmentFile(t, w, tp)
	w.must(fs.FlipBit(name, 100, 3)) // in the first batch, under valid ones
	if r := w.fetch(at(tp, 0)); !errors.Is(r.Err, ErrStorage) || len(r.Records) != 0 || r.HighWatermark != kafka.NoOffset {
		t.Fatalf("I11: a flipped bit was served: %+v", r)
	}
	if s := w.status(tp); s.Role != Offline || s.Problem == "" {
		t.Fatalf("%+v", s)
	}
	if r := w.publish(tp, batch(1), AcksLeader).Results()[0]; !errors.Is(r.Err, ErrStorage) || !strings.Contains(r.Err.Error(), tp.String()) {
		t.Fatalf("publish to a damaged log: %+v", r)
	}
	w.acked(other, batch(1))
	w.change(tp, func(s *kafka.PartitionState) { s.LeaderEpoch++ }) // no epoch makes it whole
	if s := w.status(tp); s.Role != Offline {
		t.Fatalf("led again: %+v", s)
	}
	w.acked(other, batch(1))

	w.restart(false) // the next process finds it at once
	if !slices.Equal(w.found.Damaged, []kafka.TopicPartition{tp}) || len(w.found.Unclean) != 0 {
		t.Fatalf("found %+v", w.found)
	}
	if s := w.status(tp); s.Role != Offline || s.Problem == "" {
		t.Fatalf("after a restart: %+v", s)
	}
	w.acked(other, batch(1))
}

func segmentFile(t *testing.T, w *world, tp kafka.TopicPartition) string {
	t.Helper()
	list, err := w.machine.FS.ReadDir(filepath.Join(w.path, "topics", tp.String()))
	w.must(err)
	i := slices.IndexFunc(list, func(f sys.FileInfo) bool { return strings.HasSuffix(f.Name, ".log") })
	return filepath.Join(w.path, "topics", tp.String(), list[i].Name)
}

// TestI4_RecoverNamesWhatMayHaveLostBytes: a power cut under `replicated` is unclean, under `synced` it is not.
func TestI4_RecoverNamesWhatMayHaveLostBytes(t *testing.T) {
	w, fs := newWorld(t)
	c := baseConfig()
	c.Flush = 1 // replicated
	w.configs["fast"] = c
	fast, safe := w.topic("fast", 1), w.topic("safe", 1)
	w.host.savePoints(map[kafka.TopicPartition]kafka.Offset{})
	w.acked(fast, batch(3))
	w.acked(safe, batch(3))
	survived := fs.Crash(0)
	w.host.Close(false)
	w.dir.Close(storage.CloseOptions{})
	w.machine.FS, w.machine.BootID = survived, survived.BootID
	w.start()
	if !slices.Equal(w.found.Unclean, []kafka.TopicPartition{fast}) || len(w.found.Damaged) != 0 {
		t.Fatalf("found %+v, want only %v unclean", w.found, fast)
	}
	w.register()
	settled := w.host.Park([]FetchItem{at(safe, 0)}, FetchOptions{}, 1) // what was recovered counts after a sync
	waitFor(t, settled.Ready())
	settled.Cancel()
	if r := w.fetch(at(safe, 0)); r.Err != nil || !slices.Equal(w.offsets(r.Records), []kafka.Offset{0}) {
		t.Fatalf("synced records after a power cut: %+v", r)
	}
}

// TestReconcile_IsIdempotent: the same Image again, and an Image of the same content, change nothing.
func TestReconcile_IsIdempotent(t *testing.T) {
	w, fs := newWorld(t)
	tp := w.topic("orders", 8)
	w.acked(tp, batch(1))
	p := w.host.partition(tp)
	core, ops := p.mu.core, fs.Ops()
	for range 3 {
		w.must(w.host.Reconcile(w.img))
	}
	clear(w.host.rec.seen) // without the hint
	w.must(w.host.Reconcile(w.img))
	if p != w.host.partition(tp) || p.mu.core != core || fs.Ops() != ops {
		t.Fatalf("something was done again: %d operations", fs.Ops()-ops)
	}
	if n := len(w.host.Partitions()); n != 8 {
		t.Fatalf("%d partitions", n)
	}
	w.must(w.host.WaitApplied(context.Background(), w.version))
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := w.host.WaitApplied(ctx, w.version+1); !errors.Is(err, context.Canceled) {
		t.Fatalf("waiting for the future: %v", err)
	}
}

// TestReconcile_UnopenedLogIsTriedAgain.
func TestReconcile_UnopenedLogIsTriedAgain(t *testing.T) {
	w, fs := newWorld(t)
	id, rs := w.topicRecords("orders", 1)
	tp := kafka.TopicPartition{Topic: id}
	w.commit(rs...)
	fs.FailAt(fs.Ops()+1, errors.New("no such luck"))
	if err := w.host.Reconcile(w.img); err == nil {
		t.Fatal("a log that can not be opened is no error")
	}
	if s := w.status(tp); s.Role != Offline || s.Problem == "" {
		t.Fatalf("%+v", s)
	}
	w.must(w.host.Reconcile(w.img))
	w.acked(tp, batch(1))
}

// TestClose_CleanStopNeedsNoRecovery: the next start has the records, stored, and is not unclean.
func TestClose_CleanStopNeedsNoRecovery(t *testing.T) {
	w, _ := newWorld(t)
	c := baseConfig()
	c.Flush = 1
	w.configs["fast"] = c
	tp := w.topic("fast", 1)
	w.publish(tp, batch(3), AcksLeader)
	parked := w.pair("pair")
	pr := w.publish(parked, batch(1), AcksAll)
	w.stop(true)
	if r := pr.Results()[0]; !isReady(pr.Ready()) || !errors.Is(r.Err, ErrStopped) {
		t.Fatalf("parked at the stop: %+v", r)
	}
	w.start()
	if len(w.found.Unclean)+len(w.found.Damaged) != 0 {
		t.Fatalf("found %+v after a clean stop", w.found)
	}
	w.register()
	if s := w.status(tp); s.End != 3 || s.HW != 3 {
		t.Fatalf("%+v", s)
	}
}
