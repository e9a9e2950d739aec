package storage

import (
	"io"
	"math"
	"time"

	"strandline.dev/internal/kafka"
)

// AppendTimeAt is when the first record at or after an offset and below upper was appended; ok is false when there is none. Batches have no
// field for it, so it is the record's own time stamp, held between the first append to its segment and the append of what the index has
// next: a client's clock moves it within these bounds and no further. It costs one look into the index and the headers of one index interval.
// Batches without records, which compaction leaves, are passed over.
func (l *Log) AppendTimeAt(off, upper kafka.Offset) (at time.Time, ok bool, err error) {
	l.mu.Lock()
	off, upper = max(off, l.mu.start), min(upper, l.mu.end)
	if l.mu.closed || off >= upper {
		closed := l.mu.closed
		l.mu.Unlock()
		if closed {
			return time.Time{}, false, ErrClosed
		}
		return time.Time{}, false, nil
	}
	segments := l.mu.segments[l.findLocked(off):]
	l.mu.Unlock()
	for _, s := range segments {
		at, ok, err = l.appendTimeIn(s, off, upper)
		if ok || err != nil {
			return at, ok, err
		}
	}
	return time.Time{}, false, nil
}

// appendTimeIn looks in one segment.
func (l *Log) appendTimeIn(s *segment, off, upper kafka.Offset) (at time.Time, ok bool, err error) {
	if err := l.loadIndex(s); err != nil {
		return time.Time{}, false, err
	}
	l.mu.Lock()
	times := l.timesLocked(s)
	pos, latest := int64(0), times.lastAppendMs
	if s.index != nil {
		pos = s.index.floor(off)
		latest = min(latest, s.index.appendedBehind(off))
	}
	l.mu.Unlock()
	err = l.walkSegment(s, pos, func(h BatchHeader, _ io.ReaderAt, _ int64) (bool, error) {
		switch {
		case h.Base >= upper:
			return true, nil
		case h.End <= off || h.Count == 0:
			return false, nil
		}
		ms := h.BaseTimestamp
		if h.Attributes&attrAppendTime != 0 {
			ms = h.MaxTimestamp
		}
		at, ok = time.UnixMilli(min(max(ms, times.firstAppendMs), latest)), true
		return true, nil
	})
	return at, ok, err
}

// appendedBehind is the append time of the first entry behind an offset: what lies at the offset was appended no later.
func (x *index) appendedBehind(off kafka.Offset) int64 {
	for i := len(x.entries) - 1; i >= 0; i-- {
		if x.entries[i].offset <= off {
			if i+1 < len(x.entries) {
				return x.entries[i+1].appendMs
			}
			break
		}
	}
	return math.MaxInt64
}

// LossIn says in what time retention removes the record at an offset if records come in as they have lately; ok is false when it never
// does. It is 0 for what is gone or may go now. Whole segments go, so it is the age of the youngest record of the segment that counts.
// Nothing goes earlier than it says but by a faster stream of records under a limit by size.
func (l *Log) LossIn(off kafka.Offset, p RetentionPolicy, now time.Time) (in time.Duration, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case off < l.mu.start:
		return 0, true
	case off >= l.mu.end:
		return 0, false
	}
	i := l.findLocked(off)
	var behind int64
	for _, s := range l.mu.segments[i+1:] {
		behind += s.size
	}
	return p.lossIn(now.UnixMilli(), l.timesLocked(l.mu.segments[i]).lastAppendMs, behind, l.rateLocked(now.UnixMilli()))
}

// rateLocked is the bytes a second of late: what the last two segments hold, over the time since the first of it came.
func (l *Log) rateLocked(nowMs int64) float64 {
	var bytes int64
	since := nowMs
	for _, s := range l.mu.segments[max(0, len(l.mu.segments)-2):] {
		if s.size > 0 {
			bytes += s.size
			since = min(since, l.timesLocked(s).firstAppendMs)
		}
	}
	if nowMs <= since {
		return 0
	}
	return float64(bytes) / (float64(nowMs-since) / 1000)
}

// lossMax is "in a hundred years": further than anybody looks, and a duration can hold it.
const lossMax = 100 * 365 * 24 * time.Hour

// lossIn is removes with the time turned round: last is the youngest append of the segment, behind the bytes that follow it, rate how many
// come in a second.
func (p RetentionPolicy) lossIn(nowMs, last, behind int64, rate float64) (in time.Duration, ok bool) {
	if last == maxMs {
		return 0, false
	}
	age := time.Duration(nowMs-last) * time.Millisecond
	if p.Age > 0 {
		in, ok = p.Age-age, true
	}
	if p.Bytes > 0 {
		seconds := math.Inf(1)
		switch left := p.Bytes - behind; {
		case left <= 0:
			seconds = 0
		case rate > 0:
			seconds = float64(left) / rate
		}
		if seconds < lossMax.Seconds() {
			if bySize := time.Duration(seconds * float64(time.Second)); !ok || bySize < in {
				in, ok = bySize, true
			}
		}
	}
	if !ok {
		return 0, false
	}
	return max(in, p.MinimumAge-age, 0), true // I9: the promise comes before every limit
}
