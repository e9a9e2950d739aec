package storage

import (
	"context"
	"errors"
	"slices"
	"time"

	"strandline.dev/internal/kafka"
)

// CompactionPolicy says what of a log may be compacted, and when. Ages count from the append time.
type CompactionPolicy struct {
	// Upper is where the log may still change: nothing at or above it is touched or supersedes anything. The high watermark or less.
	Upper kafka.Offset
	// MinDirtyRatio is the part of the log that must be uncompacted before it is worth a pass.
	MinDirtyRatio float64
	// MinAge leaves younger records alone.
	MinAge time.Duration
	// MaxAge has older records compacted whatever the ratio is; <= 0 means never.
	MaxAge time.Duration
	// TombstoneRetention is how long a tombstone stays after it has become clean, so that slow readers see the deletion.
	TombstoneRetention time.Duration
	// Merge makes one segment of small neighbours. Not for logs with retention: the merged segment is as young as its youngest record.
	Merge bool
	// KeysMax bounds the keys of one pass; 0 means compactKeysMax.
	KeysMax int
}

// Compaction is what one pass did.
type Compaction struct {
	// Ran is false when nothing was due, or when the log changed meanwhile and the pass was given up.
	Ran bool
	// More says that the map of keys was full: there is more to do at once.
	More bool
	// From and UpTo are the part of the log whose keys were looked at.
	From, UpTo kafka.Offset
	// Before and After are the bytes of the segments that were written anew.
	Before, After int64
	// Records counts the records removed, Tombstones those of them that were tombstones.
	Records, Tombstones int64
}

// Compact makes one pass over the log, if one is due: of records with the same key below the policy's Upper only the newest stays, and a
// tombstone only for its retention. Offsets stay as they are: what goes leaves a filler, a batch without records. Control batches,
// transactional batches and records without a key stay. Sealed segments alone are written anew; the active one is rolled when its age is up.
//
// Readers and appends go on meanwhile. When ctx ends the pass is given up: what is done so far stays, and the next pass begins anew. Any node may compact its own copy. Only one goroutine calls this for one log. Errors change nothing
// that can be seen: ErrNoSpace, ErrClosed, those of the file system, and *CorruptError for bytes that fail their checksum, which takes the
// log out of service as a read does (I11).
func (l *Log) Compact(ctx context.Context, p CompactionPolicy, now time.Time) (Compaction, error) {
	if p.KeysMax <= 0 {
		p.KeysMax = compactKeysMax
	}
	pass, err := l.planCompaction(ctx, p, now)
	var done Compaction
	if err == nil && pass != nil {
		done, err = pass.run()
	}
	if err = asPassError(err); err != nil && !errors.Is(err, ErrClosed) {
		l.dir.metrics.CompactionFailures.Inc()
		l.noteCorrupt(err)
	}
	return done, err
}

// compaction is one pass.
type compaction struct {
	ctx      context.Context // of the call that makes the pass
	log      *Log
	policy   CompactionPolicy
	nowMs    int64
	segments []*segment // that may be written anew, in order
	from     kafka.Offset
	horizon  kafka.Offset // tombstones below go
	keys     *latestKeys
	state    cleanState
	// remembered are the batches that producers may still repeat: they stay, emptied (I12).
	remembered map[kafka.ProducerID][]kafka.Offset
	resets     uint64
	done       Compaction
}

// planCompaction decides whether a pass is due; it returns nil if none is.
func (l *Log) planCompaction(ctx context.Context, p CompactionPolicy, now time.Time) (*compaction, error) {
	l.lockIO()
	defer l.unlockIO()
	if err := l.loadCleanIO(); err != nil {
		return nil, err
	}
	c := &compaction{ctx: ctx, log: l, policy: p, nowMs: now.UnixMilli(), keys: newLatestKeys(p.KeysMax)}
	l.mu.Lock()
	err := l.writableLocked()
	if err == nil {
		err = l.dir.reserve.admit() // a segment is written before its sources go
	}
	if err == nil {
		err = l.rollForCompactionLocked(p, c.nowMs)
	}
	if err != nil {
		l.mu.Unlock()
		return nil, err
	}
	c.state = *l.mu.clean
	c.state.marks = slices.Clone(c.state.marks)
	c.resets = l.mu.resets
	c.from = max(c.state.upTo, l.mu.start)
	c.collectLocked()
	c.rememberLocked()
	l.mu.Unlock()
	marked := c.state.mark(c.nowMs, p.TombstoneRetention)
	c.horizon = c.state.horizon(c.nowMs, p.TombstoneRetention)
	if !c.due() {
		if marked {
			return nil, l.saveCleanIO(c.state)
		}
		return nil, nil
	}
	return c, c.pointBehind()
}

// pointBehind makes sure that the sync-point file on disk names no segment that may be written anew: recovery would miss it there.
func (c *compaction) pointBehind() error {
	c.log.mu.Lock()
	inside := c.log.mu.pointEnd <= c.segments[len(c.segments)-1].end
	c.log.mu.Unlock()
	if !inside {
		return nil
	}
	return diskError(c.log.dir.mustSave())
}

// rollForCompactionLocked seals an active segment that is due by the age of its segment or of its records. Appends do so too, but a log may
// be idle.
func (l *Log) rollForCompactionLocked(p CompactionPolicy, nowMs int64) error {
	s := l.activeLocked()
	if s.size == 0 || s.times.firstAppendMs == 0 {
		return nil
	}
	if l.agedLocked(s, nowMs) || (p.MaxAge > 0 && nowMs-s.times.firstAppendMs >= p.MaxAge.Milliseconds()) {
		return l.rollLocked()
	}
	return nil
}

// collectLocked lists the segments that may be touched: sealed, so that their bytes are on disk, below everything that the sync-point file
// says of the log's end, wholly committed, and old enough. It stops at the first that may not.
func (c *compaction) collectLocked() {
	l := c.log
	for _, s := range l.mu.segments[:len(l.mu.segments)-1] {
		if !s.sealed || s.base >= l.mu.durable.segment || s.end > c.policy.Upper {
			return
		}
		if last := l.timesLocked(s).lastAppendMs; last == maxMs || (c.policy.MinAge > 0 && c.nowMs-last < c.policy.MinAge.Milliseconds()) {
			return
		}
		c.segments = append(c.segments, s)
	}
}

func (c *compaction) rememberLocked() {
	c.remembered = map[kafka.ProducerID][]kafka.Offset{}
	for id, s := range c.log.mu.producers.byID {
		for _, k := range s.batches[:s.count] {
			c.remembered[id] = append(c.remembered[id], k.Base)
		}
	}
}

// due weighs what is new against what is compacted already.
func (c *compaction) due() bool {
	var clean, dirty, oldestMs int64
	for _, s := range c.segments {
		switch {
		case s.end <= c.from:
			clean += s.size
			continue
		case dirty == 0:
			oldestMs = s.times.firstAppendMs
		}
		dirty += s.size
	}
	if dirty == 0 {
		return clean > 0 && c.state.tombstones > 0 && c.horizon > c.state.purged
	}
	old := c.policy.MaxAge > 0 && c.nowMs-oldestMs >= c.policy.MaxAge.Milliseconds()
	return old || float64(dirty) >= c.policy.MinDirtyRatio*float64(clean+dirty)
}

// run reads the keys of what is new, and writes everything below anew.
func (c *compaction) run() (Compaction, error) {
	upTo, err := c.readKeys()
	if err != nil {
		return Compaction{}, err
	}
	c.done.From, c.done.UpTo, c.done.More = c.from, upTo, upTo < c.segments[len(c.segments)-1].end
	var tombstones int64
	for segments := c.below(upTo); len(segments) > 0; {
		var g *rewritten
		if g, segments, err = c.rewrite(segments, upTo); err != nil {
			return c.done, err
		}
		tombstones += g.tombstones
		if err := c.replace(g); err != nil {
			return c.done, err
		}
	}
	c.log.lockIO()
	defer c.log.unlockIO()
	if c.interrupted() {
		return c.done, errInterrupted
	}
	c.done.Ran = true
	m := c.log.dir.metrics
	m.Compactions.Inc()
	m.CompactedRecords.Add(float64(c.done.Records))
	m.CompactedBytes.Add(float64(max(0, c.done.Before-c.done.After)))
	c.state.upTo, c.state.tombstones, c.state.purged = max(c.state.upTo, upTo), tombstones, max(c.state.purged, c.horizon)
	c.state.mark(c.nowMs, c.policy.TombstoneRetention)
	return c.done, c.log.saveCleanIO(c.state)
}

// below lists the segments that begin below an offset.
func (c *compaction) below(upTo kafka.Offset) []*segment {
	n := len(c.segments)
	for n > 0 && c.segments[n-1].base >= upTo {
		n--
	}
	return c.segments[:n]
}

// interrupted says that ctx has ended, or that the log was closed, cut, begun anew or taken out of service since the pass began: what it has read means nothing.
func (c *compaction) interrupted() bool {
	l := c.log
	l.mu.Lock()
	defer l.mu.Unlock()
	return c.ctx.Err() != nil || l.writableLocked() != nil || l.mu.resets != c.resets
}
