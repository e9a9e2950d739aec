package audit

import (
	"context"
	"errors"
	"fmt"
	"time"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/record"
	"strandline.dev/internal/replica"
)

// keeper appends to one chain while this node leads its partition. Its fields belong to its goroutine.
type keeper struct {
	trail *Trail
	chain int32
	jobs  chan job

	// What is known of the log's end, as long as it is loaded: the epoch, the next offset, the hash of the last entry, and the newest entry
	// of each process.
	loaded bool
	tp     kafka.TopicPartition
	epoch  kafka.LeaderEpoch
	next   kafka.Offset
	last   Hash
	seen   map[kafka.ID]uint64
}

// job is a delivery that waits.
type job struct {
	entries []Entry
	done    chan error // holds one
}

// run keeps what is delivered until ctx ends.
func (k *keeper) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case j := <-k.jobs:
			j.done <- k.keep(ctx, j.entries)
		}
	}
}

// deliver hands entries to the keeper and waits for what becomes of them.
func (k *keeper) deliver(ctx context.Context, entries []Entry) error {
	j := job{entries: entries, done: make(chan error, 1)}
	select {
	case k.jobs <- j:
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case err := <-j.done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// keep appends entries to the chain and waits until they are committed. After an error nothing is believed of the log's end: it is read again.
func (k *keeper) keep(ctx context.Context, entries []Entry) error {
	tp, _ := k.trail.leader(k.chain)
	st, ok := k.trail.cfg.Replicas.Describe(tp)
	if !ok || st.Role != replica.Leading {
		return errElsewhere
	}
	if !k.loaded || k.tp != tp || k.epoch != st.Epoch {
		if err := k.load(tp, st); err != nil {
			return fmt.Errorf("chain %d: %w", k.chain, err)
		}
	}
	k.loaded = false
	next, last := k.next, k.last
	b := record.NewBuilder(record.None)
	for i := range entries {
		e := entries[i]
		if e.Number <= k.seen[e.Run] {
			continue // delivered before, and the answer was lost
		}
		e.Sequence, e.Previous = uint64(next), last
		value := e.Append(nil)
		b.Add(e.Until.UnixMilli(), nil, value, nil)
		next, last = next+1, HashOf(value)
	}
	if b.Count() > 0 {
		if err := k.commit(ctx, b.Build()); err != nil {
			return fmt.Errorf("chain %d: %w", k.chain, err)
		}
	}
	for i := range entries {
		k.remember(&entries[i])
	}
	k.loaded, k.next, k.last = true, next, last
	return nil
}

// commit appends a batch within the epoch in which the chain was read (I3), and waits until it is committed.
func (k *keeper) commit(ctx context.Context, b record.Batch) error {
	p := k.trail.cfg.Replicas.Append([]replica.AppendItem{{TP: k.tp, Batch: b, Within: &k.epoch}}, replica.AcksAll, commitMax)
	late := time.NewTimer(commitMax)
	defer late.Stop()
	select {
	case <-p.Ready():
	case <-late.C:
		p.Expire()
	case <-ctx.Done():
		p.Cancel()
	}
	r := p.Results()[0]
	if r.Err == nil && r.Base != k.next {
		return fmt.Errorf("an entry was to be at offset %d and is at %d: somebody else writes to the trail", k.next, r.Base)
	}
	return r.Err
}

// load reads the end of the chain. All of it has to be committed: what is not may still go.
func (k *keeper) load(tp kafka.TopicPartition, st replica.PartitionStatus) error {
	if st.HW != st.End {
		return replica.ErrOffsetNotAvailable
	}
	*k = keeper{trail: k.trail, chain: k.chain, jobs: k.jobs, tp: tp, epoch: st.Epoch, seen: map[kafka.ID]uint64{}}
	at := max(st.Start, st.End-tailEntries)
	for range tailReads {
		if at >= st.End {
			break
		}
		end, err := k.read(at)
		if err != nil {
			return err
		}
		if end <= at {
			return replica.ErrOffsetNotAvailable
		}
		at = end
	}
	if at < st.End {
		return errors.New("its end takes too many reads")
	}
	k.loaded, k.next = true, at
	return nil
}

// read takes in a part of the log's end and returns where the next begins.
func (k *keeper) read(at kafka.Offset) (kafka.Offset, error) {
	var buf replica.FetchBuffer
	defer buf.Release()
	items := []replica.FetchItem{{TP: k.tp, Offset: at, CurrentEpoch: k.epoch, LastFetchedEpoch: kafka.NoEpoch, MaxBytes: tailBytes}}
	r := &k.trail.cfg.Replicas.Read(items, replica.FetchOptions{MaxBytes: tailBytes}, &buf)[0]
	if r.Err != nil {
		return at, r.Err
	}
	for left := r.Records; len(left) > 0; {
		var b record.Batch
		var err error
		if b, left, err = record.Split(left); err != nil {
			return at, err
		}
		for rec, err := range b.Records(0) {
			if err != nil {
				return at, err
			}
			var e Entry
			if err := e.Decode(rec.Value); err != nil {
				return at, fmt.Errorf("its end cannot be read: %w", err)
			}
			k.last = HashOf(rec.Value)
			k.remember(&e)
		}
		at = max(at, b.NextOffset())
	}
	return at, nil
}

// remember notes the newest entry of a process. When there are too many processes all are forgotten: readers tell repeats apart too.
func (k *keeper) remember(e *Entry) {
	if _, known := k.seen[e.Run]; !known && len(k.seen) >= runsMax {
		clear(k.seen)
	}
	k.seen[e.Run] = max(k.seen[e.Run], e.Number)
}
