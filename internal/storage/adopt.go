package storage

import (
	"os"
)

// finish takes the extent that run found: it cuts what is torn, brings the caches to the log's end, and leaves the log open. What
// was found past the sync point counts as stored only after the next sync.
func (r *recovery) finish() error {
	l := r.l
	truncated, err := r.cut()
	if err != nil {
		return err
	}
	l.mu.Lock()
	r.adoptLocked()
	l.mu.Unlock()
	if err := r.caches(); err != nil {
		return err
	}
	if err := r.open(truncated); err != nil {
		return err
	}
	return r.dropBelow()
}

// open reports what was found and makes the log ready for appends.
func (r *recovery) open(truncated int64) error {
	l := r.l
	l.mu.Lock()
	defer l.mu.Unlock()
	policy := r.policy()
	l.recovered = Recovery{
		Truncated: truncated, SyncPointPolicy: policy, HighWatermark: l.mu.hw,
		Unclean: r.damaged != nil || l.dir.mayHaveLost(policy),
	}
	if r.damaged != nil {
		l.recovered.Damaged, l.mu.damaged = r.damaged, r.damaged
		l.dir.log.Error("log is damaged and takes no records until it is rebuilt", "log", l.tp.String(), "error", r.damaged)
		return nil
	}
	if err := r.activateLocked(); err != nil {
		return err
	}
	if !l.dir.isClean {
		// Also where nothing was found past the sync point: a truncation may be pending in the page cache, and a power cut would
		// bring back what it took away.
		l.inheritLocked(l.activeLocked())
	}
	if len(l.mu.dirty) > 0 || len(l.mu.unsealed) > 0 {
		l.wantFlushLocked()
	}
	return nil
}

// dropBelow removes the segments below the start, once a producer snapshot covers them.
func (r *recovery) dropBelow() error {
	l := r.l
	if len(r.below) == 0 || l.Damaged() != nil {
		return nil
	}
	l.keepProducersIO()
	l.mu.Lock()
	l.detachLocked(r.below)
	l.mu.Unlock()
	return l.unlinkIO(r.below)
}

// policyOf is the policy that ends of a log were reported under. A log without an entry in a whole sync-point file never reported
// anything under `replicated`; without the file nobody knows, so the policy that promises less is assumed (I4).
func (d *Dir) policyOf(p point, known bool) FlushPolicy {
	switch {
	case known:
		return p.policy
	case d.pointsKnown:
		return Synced
	}
	return Replicated
}

func (r *recovery) policy() FlushPolicy { return r.l.dir.policyOf(r.p, r.known) }

// cut removes a torn tail, later segments first: a crash in between leaves a tail that is cut in the same place.
func (r *recovery) cut() (int64, error) {
	if !r.torn || r.damaged != nil {
		return 0, nil
	}
	l, s := r.l, r.segments[len(r.segments)-1]
	bytes := s.size - r.cutAt
	for i := len(r.doomed) - 1; i >= 0; i-- {
		bytes += r.doomed[i].size
		if err := removeFiles(l.dir.fs, r.doomed[i]); err != nil {
			return 0, err
		}
	}
	// An index of the torn segment may speak of what is cut.
	if err := removeIfThere(l.dir.fs, s.beside(indexSuffix)); err != nil {
		return 0, err
	}
	r.ls.indexed[s.base] = false
	if err := l.dir.fs.SyncDir(l.path); err != nil {
		return 0, err
	}
	if err := r.cutTail(s); err != nil {
		return 0, err
	}
	s.size = r.cutAt
	l.dir.metrics.TornBytes.Add(float64(bytes))
	l.dir.log.Warn("a torn tail was cut", "log", l.tp.String(), "bytes", bytes, "end", int64(r.at))
	return bytes, nil
}

// cutTail shortens the torn segment. A sync that fails is final, as it is later (I11): the next attempt to open would find a whole
// segment whose pages only look clean.
func (r *recovery) cutTail(s *segment) error {
	f, err := r.l.dir.fs.OpenFile(s.path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := f.Truncate(r.cutAt); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		r.l.dir.metrics.SyncFailures.Inc()
		r.damaged = &CorruptError{File: s.path, Pos: r.cutAt, Why: "a sync failed: " + err.Error()}
		r.l.mark(r.damaged) // now: this attempt may not get as far as keeping its judgement
	}
	return nil
}

// adoptLocked makes the extent the log's.
func (r *recovery) adoptLocked() {
	l := r.l
	l.mu.segments = append(r.below, r.segments...)
	for i, s := range l.mu.segments {
		l.mu.size += s.size
		s.indexed = r.ls.indexed[s.base] && i < len(l.mu.segments)-1
	}
	first := r.segments[0]
	l.mu.start, l.mu.end = first.base, r.at
	if r.known {
		l.mu.start = max(first.base, min(r.p.start, r.at))
		l.mu.hw = min(max(r.p.hw, l.mu.start), r.at)
		l.mu.startSaved, l.mu.pointEnd = r.p.start, r.p.end
	} else {
		l.mu.hw = l.mu.start
	}
	r.adoptDurableLocked()
	l.mu.notified = l.mu.durable.end
	l.mu.replicatedEnd = 0
	if r.policy() == Replicated {
		l.mu.replicatedEnd = l.mu.end
	}
	l.mu.marked = r.known && r.p.policy == Replicated && l.mu.opts.Policy == Replicated
	r.adoptTimesLocked()
}

// adoptDurableLocked sets how far the log is known to be on disk: the sync point, or further by .meta files.
func (r *recovery) adoptDurableLocked() {
	l := r.l
	first := r.segments[0]
	l.mu.durable = durableEnd{end: first.base, segment: first.base, times: noTimes}
	for i, s := range r.segments {
		if i >= r.scanned {
			break
		}
		l.mu.durable = durableEnd{end: s.end, segment: s.base, pos: s.size, times: s.times}
	}
	if r.known && r.p.end > l.mu.durable.end && r.p.end <= l.mu.end {
		l.mu.durable = durableEnd{end: r.p.end, segment: r.p.segment, pos: r.p.pos,
			times: segmentTimes{firstAppendMs: r.p.firstAppendMs, lastAppendMs: r.p.lastAppendMs, maxTimestamp: -1}}
	}
	l.mu.recovering = l.mu.durable.end < l.mu.end
	// Names were synced before anything counted as stored, and before a clean stop; else, where nothing ever did, nobody knows.
	l.mu.newNames = l.mu.recovering || (l.mu.durable.end == first.base && !(r.known && l.dir.isClean))
	l.mu.newDir = l.mu.newNames
	for _, s := range r.segments[min(r.scanned, len(r.segments)):] {
		if l.mu.recovering && s.end > l.mu.durable.end {
			l.inheritLocked(s)
		}
		if s != l.activeLocked() && !s.sealed {
			l.mu.unsealed, l.mu.newNames = append(l.mu.unsealed, s), true
		}
	}
}

// adoptTimesLocked gives scanned segments their append times: the entry's where it covers the whole segment, else the file's
// modification time, which is never earlier than the last append (I9).
func (r *recovery) adoptTimesLocked() {
	for _, s := range r.segments[min(r.scanned, len(r.segments)):] {
		if s.timesKnown {
			continue
		}
		ms := r.ls.modified[s].UnixMilli()
		// The largest record timestamp is unknown here: the largest possible makes lookups search the segment.
		s.times, s.timesKnown = segmentTimes{firstAppendMs: ms, lastAppendMs: ms, maxTimestamp: maxMs}, true
		if s.size == 0 {
			s.times = noTimes
			continue
		}
		if r.known && r.p.segment == s.base && r.p.firstAppendMs > 0 {
			s.times.firstAppendMs = r.p.firstAppendMs
			if r.p.pos == s.size {
				s.times.lastAppendMs = r.p.lastAppendMs
			}
			s.times.lastAppendMs = max(s.times.lastAppendMs, s.times.firstAppendMs)
		}
	}
}

// activateLocked makes the last segment the active one. One that is sealed stays so, and a new one is begun.
func (r *recovery) activateLocked() error {
	l := r.l
	s := l.activeLocked()
	if !s.sealed {
		return nil
	}
	active, err := l.createSegmentLocked(l.mu.end)
	if err != nil {
		return err
	}
	l.mu.segments = append(l.mu.segments, active)
	l.closeFileLocked(active) // opened again by the first append
	return nil
}
