package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// readerPace is how fast a reader works: batch records at a time, and a rest after each batch.
type readerPace struct {
	batch int
	rest  time.Duration
}

// reader is one service that reads all partitions from its own saved position. Its effects (what a real service would keep in its
// database) survive a crash of its worker, and so does the saved position; everything else dies with the worker.
type reader struct {
	name  string
	link  *demoLink
	file  string // the saved position
	pace  readerPace
	dying atomic.Bool // the next batch is applied and not saved, and the worker ends

	cancel context.CancelFunc
	done   chan struct{} // closed when the worker has ended

	mu          sync.Mutex
	effects     map[int32][]event // by partition, in the order of the first delivery
	seen        map[string]int    // deliveries by event id
	outOfOrder  int
	redelivered int
	unsaved     int // records applied by the batch of a crash
	saved       map[int32]int64
	err         error
}

// event is one record as it was delivered.
type event struct {
	offset int64
	id     string
	value  []byte
}

func newReader(name string, link *demoLink, file string, pace readerPace) *reader {
	return &reader{name: name, link: link, file: file, pace: pace, effects: map[int32][]event{}, seen: map[string]int{}, saved: map[int32]int64{}}
}

// start begins a worker at the saved position.
func (r *reader) start(ctx context.Context) error {
	positions, err := r.load()
	if err != nil {
		return err
	}
	offsets := make(map[int32]kgo.Offset, demoPartitions)
	for p := range int32(demoPartitions) {
		offsets[p] = kgo.NewOffset().At(positions[p])
	}
	client, err := kgo.NewClient(append(r.link.options(r.name),
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{demoTopic: offsets}),
		kgo.ConsumeResetOffset(kgo.NoResetOffset()), kgo.FetchMaxWait(100*time.Millisecond),
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
		defer client.Close()
		r.work(ctx, client, positions)
	}()
	return nil
}

// work reads, applies, and saves the position after each batch, in this order: a crash in between delivers again, it loses nothing.
func (r *reader) work(ctx context.Context, client *kgo.Client, positions map[int32]int64) {
	for ctx.Err() == nil {
		fetches := client.PollRecords(ctx, r.pace.batch)
		if ctx.Err() != nil {
			return
		}
		if err := fetches.Err(); err != nil {
			r.fail(fmt.Errorf("%s: %s", r.name, reason(err)))
			return
		}
		records := fetches.Records()
		for _, rec := range records {
			r.apply(rec)
			positions[rec.Partition] = rec.Offset + 1
		}
		if len(records) > 0 && r.dying.Load() {
			r.mu.Lock()
			r.unsaved = len(records)
			r.mu.Unlock()
			return // the crash: applied, not saved
		}
		if err := r.save(positions); err != nil {
			r.fail(err)
			return
		}
		if r.pace.rest > 0 {
			select {
			case <-time.After(r.pace.rest):
			case <-ctx.Done():
			}
		}
	}
}

// apply has the effect of one record, once: a record-id that was seen before changes nothing.
func (r *reader) apply(rec *kgo.Record) {
	e := event{offset: rec.Offset, id: recordID(rec), value: rec.Value}
	r.mu.Lock()
	defer r.mu.Unlock()
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

// crash lets the worker apply one more batch and die before it saves; it returns how many records that were.
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

func (r *reader) stop() {
	if r.cancel != nil {
		r.cancel()
		<-r.done
	}
}

// savedPosition is the file: the next offset to read in each partition.
type savedPosition struct {
	Topic string          `json:"topic"`
	Next  map[int32]int64 `json:"next"`
}

// save replaces the file in one step, so that a crash leaves the old position or the new one.
func (r *reader) save(positions map[int32]int64) error {
	text, err := json.Marshal(savedPosition{demoTopic, positions})
	if err != nil {
		return err
	}
	if err := os.WriteFile(r.file+".new", text, 0o600); err != nil {
		return err
	}
	if err := os.Rename(r.file+".new", r.file); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for p, next := range positions {
		r.saved[p] = next
	}
	return nil
}

// load reads the file; without one, everything is read from the start. A file that cannot be read is an error, never a guess.
func (r *reader) load() (map[int32]int64, error) {
	text, err := os.ReadFile(r.file)
	if errors.Is(err, fs.ErrNotExist) {
		return map[int32]int64{}, nil
	}
	if err != nil {
		return nil, err
	}
	var saved savedPosition
	if err := json.Unmarshal(text, &saved); err != nil || saved.Topic != demoTopic || saved.Next == nil {
		return nil, fmt.Errorf("%s: not a saved position", r.file)
	}
	return saved.Next, nil
}

// reach waits until the saved position is at the ends.
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
		if r.saved[p] < end {
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
