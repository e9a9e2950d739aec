package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// readerPace is how fast a reader works: batch records at a time, and a rest after each batch.
type readerPace struct {
	batch int
	rest  time.Duration
}

// reader is one service: a consumer group of its own name, with one worker that reads all partitions. Its effects (what a real service
// would keep in its database) survive a crash of its worker; the position is the group's committed offsets, which the brokers keep;
// everything else dies with the worker.
type reader struct {
	name  string
	link  *demoLink
	pace  readerPace
	dying atomic.Bool // the next batch is applied and not committed, and the worker ends

	cancel context.CancelFunc
	done   chan struct{} // closed when the worker has ended

	mu          sync.Mutex
	effects     map[int32][]event // by partition, in the order of the first delivery
	seen        map[string]int    // deliveries by event id
	outOfOrder  int
	redelivered int
	unsaved     int               // records applied by the batch of a crash
	committed   map[int32]int64   // next offset to read, by partition, as far as the brokers have acknowledged commits
	again       map[int32][]event // in a replay: what is delivered once more, without an effect
	rejoined    int               // how often the worker lost its membership and joined again
	err         error
}

// event is one record as it was delivered.
type event struct {
	offset int64
	id     string
	value  []byte
}

func newReader(name string, link *demoLink, pace readerPace) *reader {
	return &reader{name: name, link: link, pace: pace, effects: map[int32][]event{}, seen: map[string]int{}, committed: map[int32]int64{}}
}

const (
	// readerPollMax bounds one wait for records, so that a commit that failed while its broker was down is tried again in silence, too.
	readerPollMax = 100 * time.Millisecond
	// readerCommitMax bounds one attempt to commit; the next attempt covers it.
	readerCommitMax = 3 * time.Second
)

// start begins a worker, which resumes at the group's committed offsets. It is a static member: a worker that crashed says no goodbye, and
// its successor takes its place at once instead of waiting until the group misses it.
func (r *reader) start(ctx context.Context) error {
	client, err := kgo.NewClient(append(r.link.options(r.name),
		kgo.ConsumerGroup(r.name), kgo.InstanceID(r.instance()), kgo.ConsumeTopics(demoTopic),
		kgo.ConsumeStartOffset(kgo.NewOffset().AtStart()), // where the group has committed nothing
		kgo.ConsumeResetOffset(kgo.NoResetOffset()),       // never jump over lost records
		kgo.DisableAutoCommit(), kgo.BlockRebalanceOnPoll(), kgo.FetchMaxWait(readerPollMax),
	)...)
	if err != nil {
		return err
	}
	ctx, r.cancel = context.WithCancel(ctx)
	done := make(chan struct{})
	r.done = done
	r.dying.Store(false)
	go func() {
		defer close(done)
		defer client.CloseAllowingRebalance()
		r.work(ctx, client)
	}()
	return nil
}

// work reads, applies, and commits after each batch, in this order: a crash in between delivers again, it loses nothing.
func (r *reader) work(ctx context.Context, client *kgo.Client) {
	var applied []*kgo.Record // and not yet committed
	for ctx.Err() == nil {
		records, err := r.poll(ctx, client)
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			r.fail(fmt.Errorf("%s: %s", r.name, reason(err)))
			return
		}
		for _, rec := range records {
			r.apply(rec)
		}
		if len(records) > 0 && r.dying.Load() {
			r.mu.Lock()
			r.unsaved = len(records)
			r.mu.Unlock()
			return // the crash: applied, not committed
		}
		if applied = append(applied, records...); r.commit(ctx, client, applied) {
			applied = applied[:0]
		}
		client.AllowRebalance()
		if r.pace.rest > 0 {
			select {
			case <-time.After(r.pace.rest):
			case <-ctx.Done():
			}
		}
	}
}

func (r *reader) poll(ctx context.Context, client *kgo.Client) ([]*kgo.Record, error) {
	ctx, cancel := context.WithTimeout(ctx, readerPollMax)
	defer cancel()
	fetches := client.PollRecords(ctx, r.pace.batch)
	for _, fault := range fetches.Errors() {
		var membership *kgo.ErrGroupSession
		switch {
		case errors.Is(fault.Err, context.DeadlineExceeded):
		case errors.As(fault.Err, &membership): // the client joins again by itself; what is not committed is delivered again
			r.mu.Lock()
			r.rejoined++
			r.mu.Unlock()
		default:
			return nil, fault.Err
		}
	}
	return fetches.Records(), nil
}

// commit tells the group's coordinator the next offset to read in each partition, and says whether that was acknowledged. A commit that
// fails, as while the broker it goes to is down, is no error: what is not committed would only be delivered again.
func (r *reader) commit(ctx context.Context, client *kgo.Client, applied []*kgo.Record) bool {
	if len(applied) == 0 {
		return true
	}
	ctx, cancel := context.WithTimeout(ctx, readerCommitMax)
	defer cancel()
	if err := client.CommitRecords(ctx, applied...); err != nil {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for p, next := range nextOffsets(applied) {
		r.committed[p] = max(r.committed[p], next)
	}
	return true
}

// nextOffsets is the next offset to read in each partition after the records.
func nextOffsets(records []*kgo.Record) map[int32]int64 {
	next := map[int32]int64{}
	for _, rec := range records {
		next[rec.Partition] = max(next[rec.Partition], rec.Offset+1)
	}
	return next
}

// lag asks the brokers how many records the group has not committed, of those below the ends.
func (r *reader) lag(ctx context.Context, client *kgo.Client, ends map[int32]int64) (int64, error) {
	offsets, err := kadm.NewClient(client).FetchOffsets(ctx, r.name)
	if err == nil {
		err = offsets.Error()
	}
	if err != nil {
		return 0, fmt.Errorf("committed offsets of %s: %s", r.name, reason(err))
	}
	var lag int64
	for p, end := range ends {
		o, _ := offsets.Lookup(demoTopic, p)
		lag += end - min(max(o.At, 0), end)
	}
	return lag, nil
}

// apply has the effect of one record, once: a record-id that was seen before changes nothing.
func (r *reader) apply(rec *kgo.Record) {
	e := event{offset: rec.Offset, id: recordID(rec), value: rec.Value}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.again != nil {
		r.again[rec.Partition] = append(r.again[rec.Partition], e)
		return
	}
	if r.seen[e.id]++; r.seen[e.id] > 1 {
		r.redelivered++
		return
	}
	before := r.effects[rec.Partition]
	if n := len(before); n > 0 && before[n-1].offset >= e.offset {
		r.outOfOrder++
	}
	r.effects[rec.Partition] = append(before, e)
}

func recordID(rec *kgo.Record) string {
	for _, h := range rec.Headers {
		if h.Key == recordIDHeader {
			return string(h.Value)
		}
	}
	return ""
}

// crash lets the worker apply one more batch and die before it commits; it returns how many records that were.
func (r *reader) crash(ctx context.Context) (int, error) {
	r.dying.Store(true)
	select {
	case <-r.done:
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	r.cancel()
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.unsaved, r.err
}

// rewind sets the group back to the first record of a partition, as an operator does: the worker ends, its membership too, since only the
// offsets of a group without members can be set from outside; then another worker begins, which reads that partition once more.
func (r *reader) rewind(ctx context.Context, client *kgo.Client, partition int32) error {
	r.stop()
	admin := kadm.NewClient(client)
	left, err := admin.LeaveGroup(ctx, kadm.LeaveGroup(r.name).InstanceIDs(r.instance()))
	if err == nil {
		err = left.Error()
	}
	if err != nil {
		return fmt.Errorf("end the membership of %s: %s", r.instance(), reason(err))
	}
	var offsets kadm.Offsets
	offsets.AddOffset(demoTopic, partition, 0, -1)
	if err := admin.CommitAllOffsets(ctx, r.name, offsets); err != nil {
		return fmt.Errorf("reset the offset of %s: %s", r.name, reason(err))
	}
	r.mu.Lock()
	r.committed[partition], r.again = 0, map[int32][]event{}
	r.mu.Unlock()
	return r.start(ctx)
}

// delivered is what a replay has delivered once more of a partition, and how many events of others, which it should not.
func (r *reader) delivered(partition int32) (events []event, others int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for p, e := range r.again {
		if p != partition {
			others += len(e)
		}
	}
	return slices.Clone(r.again[partition]), others
}

func (r *reader) instance() string { return r.name + "-worker" }

func (r *reader) stop() {
	if r.cancel != nil {
		r.cancel()
		<-r.done
	}
}

// reach waits until the committed offsets are at the ends.
func (r *reader) reach(ctx context.Context, ends map[int32]int64) error {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !r.reached(ends) {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
		if err := r.failed(); err != nil {
			return err
		}
	}
	return nil
}

func (r *reader) reached(ends map[int32]int64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for p, end := range ends {
		if r.committed[p] < end {
			return false
		}
	}
	return true
}

func (r *reader) fail(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err == nil {
		r.err = err
	}
}

func (r *reader) failed() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.err
}

// distinct counts the events that had an effect.
func (r *reader) distinct() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return int64(len(r.seen))
}

// compare counts the events that differ from those this reader got in a partition, in offset, identity or value.
func (r *reader) compare(partition int32, events []event) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	got := r.effects[partition]
	wrong := max(len(got), len(events)) - min(len(got), len(events))
	for i := range min(len(got), len(events)) {
		if got[i].offset != events[i].offset || got[i].id != events[i].id || !bytes.Equal(got[i].value, events[i].value) {
			wrong++
		}
	}
	return wrong
}
