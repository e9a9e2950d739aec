package check

import (
	"sync"
	"time"
)

// Outcome of an operation as its client saw it.
type Outcome uint8

const (
	// Unknown: no answer, or an error that leaves it open.
	Unknown Outcome = iota
	// OK: confirmed.
	OK
	// Failed: refused; it did not happen.
	Failed
)

// Key names a partition of one topic, by topic id or by a name that is never used twice.
type Key struct {
	Topic     string
	Partition int32
}

// Send is one record handed to a producer. Values are unique in a history.
type Send struct {
	Key
	Value uint64
	// Producer orders sends: those of one idempotent producer to one Key were made in the order of the history (P5). 0 means none.
	Producer   int
	Begin, End time.Duration
	Outcome    Outcome
	// Offset counts when OK and not negative (acks=0 has none).
	Offset int64
	// All says that it was published with acks=all: only that promises durability.
	All bool
	// Replicas is how many in-sync replicas are known to have been there, or 0 when nobody looked; Needed is the min ISR (P18).
	Replicas, Needed int
}

// Poll is one record that a reader was given.
type Poll struct {
	Key
	// Session numbers one assignment of one reader; within it offsets rise without a gap (P7).
	Session int
	Offset  int64
	Value   uint64
	At      time.Duration
}

// Watch is an answer about the end of a partition (ListOffsets latest, or the high watermark of a fetch) to a client that carries
// leader epochs.
type Watch struct {
	Key
	// Client numbers the client; for each the end never goes back (P10).
	Client     int
	Begin, End time.Duration
	// HighWatermark is exclusive.
	HighWatermark int64
	// Epoch is the leader epoch that the client carried. It must be shown what leaders up to this epoch have acknowledged; of later ones
	// it may not have heard (P9).
	Epoch int32
}

// Commit is a committed offset of a group, or (Fetched) an answer to the question for it.
type Commit struct {
	Key
	Group      string
	Begin, End time.Duration
	Outcome    Outcome
	Offset     int64
	Fetched    bool
}

// Cut is a DeleteRecords, or a log start that retention is known to have reached.
type Cut struct {
	Key
	To      int64
	Outcome Outcome
}

// Entry is one record of a final log.
type Entry struct {
	Offset int64
	Value  uint64
	// Epoch is the leader epoch of its batch.
	Epoch int32
}

// Replica is the final log of one replica, or of what clients read from the leader (Node 0).
type Replica struct {
	Key
	Node int32
	// Start is the log start, HighWatermark what the replica knows of it (exclusive).
	Start, HighWatermark int64
	Entries              []Entry
}

// History is everything that was seen.
type History struct {
	Sends    []Send
	Polls    []Poll
	Watches  []Watch
	Commits  []Commit
	Cuts     []Cut
	Replicas []Replica
}

// Recorder collects a History.
type Recorder struct {
	begin time.Time
	mu    sync.Mutex
	h     History
}

// NewRecorder begins a history now.
func NewRecorder() *Recorder { return &Recorder{begin: time.Now()} }

// Now is the time since the history began.
func (r *Recorder) Now() time.Duration { return time.Since(r.begin) }

// Begin notes a send before it is made and returns its place, for Done.
func (r *Recorder) Begin(s Send) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	s.Begin = r.Now()
	r.h.Sends = append(r.h.Sends, s)
	return len(r.h.Sends) - 1
}

// Done notes how a send ended.
func (r *Recorder) Done(at int, o Outcome, offset int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := &r.h.Sends[at]
	s.End, s.Outcome, s.Offset = r.Now(), o, offset
}

// Polled notes a record that a reader was given.
func (r *Recorder) Polled(p Poll) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p.At = r.Now()
	r.h.Polls = append(r.h.Polls, p)
}

// Watched notes an answer about an end; Begin and End are the caller's.
func (r *Recorder) Watched(w Watch) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.h.Watches = append(r.h.Watches, w)
}

// Committed notes a commit or a fetched offset; Begin and End are the caller's.
func (r *Recorder) Committed(c Commit) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.h.Commits = append(r.h.Commits, c)
}

// Deleted notes a DeleteRecords. It must be noted as Unknown before it is asked for, so that no reader is judged too early.
func (r *Recorder) Deleted(c Cut) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.h.Cuts = append(r.h.Cuts, c)
}

// OK counts the confirmed sends.
func (r *Recorder) OK() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := 0
	for i := range r.h.Sends {
		if r.h.Sends[i].Outcome == OK {
			n++
		}
	}
	return n
}

// Take returns the history with the final logs. Nothing may be recorded after it.
func (r *Recorder) Take(final []Replica) *History {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.h.Replicas = final
	return &r.h
}
