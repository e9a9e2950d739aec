package storage

import (
	"fmt"
	"sort"
	"sync"

	"strandline.dev/internal/kafka"
)

// Log is one replicated log on disk. See the package comment for who may call what from where.
type Log struct {
	dir     *Dir
	tp      kafka.TopicPartition
	path    string
	grouped bool // synced by the syncer; the metadata log is not
	// io is held by whoever works on the log's files as a whole: a sync, the writing of caches, truncation, removal of segments.
	// Appends and reads do not take it. A channel, not a mutex, because syncs happen under it.
	io        chan struct{}
	recovered Recovery

	// mu guards everything below. The groups: extent, durability, caches, failure.
	mu struct {
		sync.Mutex
		opts   LogOptions
		closed bool

		segments   []*segment // in order; the last is the active one; never empty
		start, end kafka.Offset
		// raising is the start that is being written to the sync-point file, 0 at other times. Nobody is shown it before it is there:
		// a log start never moves back (P19).
		raising  kafka.Offset
		hw       kafka.Offset // lower bound, for the sync-point file
		size     int64
		hints    [readHints]readHint
		nextHint int
		cuts     uint64 // truncations, resets and segments written anew so far: a read that overlapped one is repeated
		resets   uint64 // truncations and resets so far: a compaction that overlapped one is given up

		// leftover are segments that left the log while their files could not be removed yet.
		leftover []*segment

		durable durableEnd
		// pointEnd and startSaved are what the sync-point file on disk says.
		pointEnd   kafka.Offset
		startSaved kafka.Offset
		recovering bool       // the end found at open has not been synced by this process yet
		dirty      []*segment // segments with bytes that no sync covered
		unsealed   []*segment // rolled segments without .meta
		newNames   bool       // the directory has names that no SyncDir covered
		newDir     bool       // the directory itself is such a name
		queued     bool       // in the syncer's queue
		needTrim   bool       // an undone append left bytes behind the end
		marked     bool       // the sync-point file on disk says `replicated`
		// replicatedEnd is the highest end that may have been reported under the policy `replicated`.
		replicatedEnd kafka.Offset
		notified      kafka.Offset // stored end that OnStored knows
		noticed       bool         // in the syncer's list of callbacks to make
		failureTold   bool

		producers producers
		ids       identities
		epochs    epochs
		caches    cacheWork
		clean     *cleanState // how far the log is compacted; nil until it is asked for

		failed  error // wraps ErrSyncFailed; final (I11)
		damaged *CorruptError
		// judged is the sync-point entry of a log that was found damaged: it stays what it was until a reset. An end lowered to what can be
		// served would make the next start take a log that lost more for a young one (I4).
		judged *point
		// unmarked: the damage marker is not known to be on disk, and is written again.
		unmarked bool
	}
}

// durableEnd is how far the log is known to be on disk.
type durableEnd struct {
	end     kafka.Offset
	segment kafka.Offset // base of the segment that end lies in
	pos     int64
	times   segmentTimes // of that segment, up to pos
}

// readHint says that the batch at offset lies at pos.
type readHint struct {
	segment *segment
	offset  kafka.Offset
	pos     int64
}

func newLog(d *Dir, tp kafka.TopicPartition, o LogOptions, grouped bool) *Log {
	l := &Log{dir: d, tp: tp, path: d.partitionPath(tp), grouped: grouped, io: make(chan struct{}, 1)}
	l.mu.opts = withDefaults(o)
	l.mu.producers = newProducers()
	return l
}

func withDefaults(o LogOptions) LogOptions {
	if o.SegmentBytes <= 0 {
		o.SegmentBytes = segmentBytesDefault
	}
	if o.IndexInterval <= 0 {
		o.IndexInterval = indexIntervalDefault
	}
	if o.ProducerExpiry <= 0 {
		o.ProducerExpiry = producerExpiryDefault
	}
	return o
}

// SetOptions applies a change of the topic's configuration. Start is ignored; a nil OnStored keeps the old one. From synced to
// replicated the stored end follows the written end only once the sync-point file says so; back, it falls to the synced end.
func (l *Log) SetOptions(o LogOptions) {
	o = withDefaults(o)
	l.mu.Lock()
	defer l.mu.Unlock()
	o.Start = l.mu.opts.Start
	if o.OnStored == nil {
		o.OnStored = l.mu.opts.OnStored
	}
	l.mu.opts = o
	if o.Policy == Synced {
		l.mu.notified = min(l.mu.notified, l.storedLocked())
		l.wantFlushLocked()
	}
}

// lockIO takes the log's files for itself.
func (l *Log) lockIO() { l.io <- struct{}{} }

func (l *Log) unlockIO() { <-l.io }

// Recovered reports what opening the log found.
func (l *Log) Recovered() Recovery { return l.recovered }

// Start is the log start: the first offset that may be read.
func (l *Log) Start() kafka.Offset {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.mu.start
}

// startLocked is the log start as it is, or as it will be when a write under way has succeeded.
func (l *Log) startLocked() kafka.Offset { return max(l.mu.start, l.mu.raising) }

// End is the written end.
func (l *Log) End() kafka.Offset {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.mu.end
}

// StoredEnd is the end of what counts as stored under the flush policy.
func (l *Log) StoredEnd() kafka.Offset {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.storedLocked()
}

// storedLocked: an end found at open counts only after a sync that followed it, whatever the policy; a failed or damaged log's
// stored end does not move any more. An end that counts under `replicated` is noted here, on whichever way it is told: until it is
// synced the sync-point file must not say `synced` (I4).
func (l *Log) storedLocked() kafka.Offset {
	if l.mu.opts.Policy == Replicated && l.mu.marked && !l.mu.recovering && l.refusalLocked() == nil {
		l.mu.replicatedEnd = max(l.mu.replicatedEnd, l.mu.end)
		return l.mu.end
	}
	return l.mu.durable.end
}

// Size is the number of bytes of all segments.
func (l *Log) Size() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.mu.size
}

// LastStable is the end of what read_committed consumers see below hw. It is hw until there are transactions.
func (l *Log) LastStable(hw kafka.Offset) kafka.Offset { return hw }

// Damaged is nil, or the *CorruptError that took the log out of service: it refuses appends and serves what lies below.
func (l *Log) Damaged() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.mu.damaged == nil {
		return nil
	}
	return l.mu.damaged
}

// activeLocked is the segment that takes appends, or nil while the log is being opened.
func (l *Log) activeLocked() *segment {
	if len(l.mu.segments) == 0 {
		return nil
	}
	return l.mu.segments[len(l.mu.segments)-1]
}

// findLocked is the index of the segment that holds off, or the first one if off lies before it.
func (l *Log) findLocked(off kafka.Offset) int {
	i := sort.Search(len(l.mu.segments), func(i int) bool { return l.mu.segments[i].base > off })
	return max(i-1, 0)
}

// writableLocked says why the log takes no changes, or nil.
func (l *Log) writableLocked() error {
	if l.mu.closed {
		return ErrClosed
	}
	return l.refusalLocked()
}

func (l *Log) refusalLocked() error {
	if l.mu.failed != nil {
		return l.mu.failed
	}
	if l.mu.damaged != nil {
		return l.mu.damaged
	}
	return nil
}

// raiseHighWatermark notes a high watermark for the sync-point file.
func (l *Log) raiseHighWatermark(hw kafka.Offset) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mu.hw = max(l.mu.hw, min(hw, l.mu.end))
}

// point is the log's entry for the sync-point file.
func (l *Log) point() point {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := l.pointLocked()
	// From here until pointSaved the file on disk may say either, so only what both allow may be promised.
	l.mu.marked = l.mu.marked && p.policy == Replicated
	l.mu.pointEnd = max(l.mu.pointEnd, p.end)
	return p
}

func (l *Log) pointLocked() point {
	if l.mu.judged != nil {
		return *l.mu.judged
	}
	// Segments wholly below the start may be there or not at the next start.
	segments, start := l.mu.segments, l.startLocked()
	for len(segments) > 1 && segments[1].base <= start {
		segments = segments[1:]
	}
	first, d := segments[0], l.mu.durable
	if d.segment < first.base {
		d = durableEnd{end: first.base, segment: first.base, times: noTimes}
	}
	p := point{
		damaged: l.refusalLocked() != nil,
		start:   start, hw: max(min(l.mu.hw, l.mu.end), start), end: d.end, segment: d.segment, pos: d.pos, firstBase: first.base,
		firstAppendMs: d.times.firstAppendMs, lastAppendMs: d.times.lastAppendMs,
	}
	for _, s := range segments {
		if s.base < d.segment {
			p.before += s.size
		}
	}
	// `synced` may be said again only after a sync of everything that was reported under `replicated`.
	if l.mu.opts.Policy == Replicated || d.end < l.mu.replicatedEnd {
		p.policy = Replicated
	}
	return p
}

// pointSaved: the sync-point file on disk now holds p.
func (l *Log) pointSaved(p point) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mu.pointEnd, l.mu.startSaved = p.end, p.start
	if p.policy == Replicated && l.mu.opts.Policy == Replicated && !l.mu.closed {
		l.mu.marked = true
		l.noticeLocked()
	}
}

// noticeLocked has the waiters told if the stored end moved.
func (l *Log) noticeLocked() {
	if l.storedLocked() != l.mu.notified {
		l.notifyLocked()
	}
}

// notify has OnStored called soon, on the syncer's goroutine: the caller may hold locks that the callback wants.
func (l *Log) notifyLocked() {
	if !l.mu.noticed {
		l.mu.noticed = true
		l.dir.syncer.enqueueNotice(l)
	}
}

// tellStored calls OnStored if the stored end moved, or if a sync failed and that was not told yet. It runs without locks.
func (l *Log) tellStored() {
	l.mu.Lock()
	l.mu.noticed = false
	stored, tell := l.storedLocked(), l.mu.opts.OnStored
	moved := stored != l.mu.notified
	l.mu.notified = stored
	var failed error
	if l.mu.failed != nil && !l.mu.failureTold {
		failed, l.mu.failureTold = l.mu.failed, true
	}
	closed := l.mu.closed
	l.mu.Unlock()
	if tell == nil || closed {
		return
	}
	if moved && failed == nil {
		tell(stored, nil)
	}
	if failed != nil {
		tell(stored, failed)
	}
}

// fail records a failed sync: final for the log (I11).
func (l *Log) fail(err error) {
	l.mu.Lock()
	first := l.mu.failed == nil
	if first {
		l.mu.failed = fmt.Errorf("%w: %w", ErrSyncFailed, err)
	}
	file := l.activeLocked().path
	l.mu.Unlock()
	if !first {
		return
	}
	l.dir.metrics.SyncFailures.Inc()
	// The marker first: a process that ends here must not find clean-looking pages at its next start and trust them.
	l.damage(&CorruptError{File: file, Why: "a sync failed: " + err.Error()})
	l.mu.Lock()
	l.notifyLocked()
	l.mu.Unlock()
}
