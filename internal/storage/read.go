package storage

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/record"
	"strandline.dev/internal/sys"
)

// Read appends to dst whole batches, from the one that holds `from` up to `upper`, within the limits, and returns dst. A batch that
// crosses upper is not returned; the first batch may begin below `from`. Every batch's checksum is verified (I11): bytes that fail
// are never returned, and take the log out of service.
//
// The log's lock is held only to pin a segment and to look up the position; bytes go from the file straight into dst.
//
// Errors: ErrOutOfRange below Start or above End, ErrClosed, *CorruptError, and those of the file system. Reading at End is no
// error and returns nothing.
func (l *Log) Read(from, upper kafka.Offset, r ReadLimits, dst []byte) ([]byte, error) {
	filled := len(dst)
	rebuilt := false
	for attempt := 1; ; attempt++ {
		out, raced, err := l.readOnce(from, upper, r, dst[:filled])
		if err == nil && !raced {
			return out, nil
		}
		var corrupt *CorruptError
		switch {
		case raced && attempt < readAttempts:
			// The log was cut while we read: what we saw may be bytes of two histories.
		case raced:
			return dst[:filled], fmt.Errorf("read at %d: %w: the log was cut %d times meanwhile", from, ErrOutOfRange, attempt)
		case errors.As(err, &corrupt) && !rebuilt:
			// An index is a cache: it is not believed against the segment (C029). And a second look costs little.
			rebuilt = true
			l.dropIndex(corrupt.File)
		case corrupt != nil && len(out) == filled:
			l.dir.metrics.CorruptBatches.Inc()
			l.damage(corrupt)
			return out, err
		case corrupt != nil:
			return out, nil // what lies before it is good; the next read meets it first
		default:
			return out, err
		}
		dst = out
	}
}

// cursor is a pinned place in a segment.
type cursor struct {
	segment *segment
	file    sys.File
	next    kafka.Offset // wanted offset
	pos     int64        // of a batch at or below next
	exact   bool         // pos is the batch that begins at next
	limit   int64        // bytes of the file that count
	end     kafka.Offset // of the segment
	last    bool         // no segment follows
	epoch   kafka.LeaderEpoch
	// epochEnd is where that leader epoch ends; the cursor stops there.
	epochEnd kafka.Offset
	cuts     uint64
}

func (l *Log) readOnce(from, upper kafka.Offset, r ReadLimits, dst []byte) (out []byte, raced bool, err error) {
	filled := len(dst)
	next, bare := from, r.AtLeastOne // bare: there is no record yet; what compaction has left of a gap is none (O8)
	var c cursor
	for {
		if ok, err := l.pinAt(&c, next, upper, next == from); !ok {
			return dst, false, err
		}
		before, budget := len(dst), r.MaxBytes-(len(dst)-filled)
		dst, err = c.read(dst, budget, upper, bare)
		bare = bare && isBare(dst[before:])
		progressed := c.next > next
		next = c.next
		if l.unpinCursor(&c, err == nil) {
			return dst[:filled], true, nil
		}
		more := next == c.epochEnd || (next == c.end && !c.last)
		if err != nil || !progressed || !bare && (!more || len(dst)-filled >= r.MaxBytes) {
			return dst, false, err
		}
	}
}

// isBare says whether whole batches have no record among them.
func isBare(batches []byte) bool {
	for len(batches) > 0 {
		var b record.Batch
		var err error
		if b, batches, err = record.Split(batches); err != nil || b.Count() > 0 {
			return false
		}
	}
	return true
}

// pinAt points the cursor at the segment that holds off and pins it. ok is false when there is nothing to read there.
func (l *Log) pinAt(c *cursor, off, upper kafka.Offset, first bool) (ok bool, err error) {
	for {
		l.mu.Lock()
		unindexed, ok, err := l.pinAtLocked(c, off, upper, first)
		l.mu.Unlock()
		if unindexed == nil {
			return ok, err
		}
		if err := l.loadIndex(unindexed); err != nil {
			return false, err
		}
	}
}

// pinAtLocked is one attempt of pinAt; unindexed is a segment whose index has to be loaded first.
func (l *Log) pinAtLocked(c *cursor, off, upper kafka.Offset, first bool) (unindexed *segment, ok bool, err error) {
	switch {
	case l.mu.closed:
		return nil, false, ErrClosed
	case off < l.mu.start || off > l.mu.end:
		if !first {
			return nil, false, nil // retention or a truncation came in between: what was read stands
		}
		return nil, false, fmt.Errorf("%w: %d not in [%d, %d]", ErrOutOfRange, off, l.mu.start, l.mu.end)
	case off >= min(upper, l.mu.end):
		return nil, false, nil
	}
	i := l.findLocked(off)
	s := l.mu.segments[i]
	pos, exact := l.hintedLocked(s, off)
	if !exact {
		if s.index == nil {
			return s, false, nil
		}
		pos = s.index.floor(off)
	}
	f, err := l.pinLocked(s)
	if isMissing(err) {
		return nil, false, &CorruptError{File: s.path, Why: "the segment's file is missing"}
	}
	epoch, epochEnd := l.mu.epochs.span(off)
	*c = cursor{epoch: epoch, epochEnd: epochEnd, segment: s, file: f, next: off, pos: pos, exact: exact, limit: s.size, end: s.end, last: i == len(l.mu.segments)-1, cuts: l.mu.cuts}
	return nil, err == nil, err
}

func (l *Log) hintedLocked(s *segment, off kafka.Offset) (int64, bool) {
	for i := range l.mu.hints {
		if h := &l.mu.hints[i]; h.segment == s && h.offset == off {
			return h.pos, true
		}
	}
	return 0, false
}

// unpinCursor gives the segment back, remembers where the read ended, and says whether the log was cut meanwhile.
func (l *Log) unpinCursor(c *cursor, remember bool) (raced bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.unpinLocked(c.segment)
	if c.cuts != l.mu.cuts {
		return true
	}
	if remember && c.exact {
		if _, known := l.hintedLocked(c.segment, c.next); !known {
			l.mu.nextHint = l.mu.nextHint%(readHints-1) + 1 // slot 0 is the tail's
			l.mu.hints[l.mu.nextHint] = readHint{c.segment, c.next, c.pos}
		}
	}
	return false
}

// read appends batches of the segment to dst and moves the cursor behind them.
func (c *cursor) read(dst []byte, budget int, upper kafka.Offset, atLeastOne bool) ([]byte, error) {
	if !c.exact {
		if err := c.seek(); err != nil {
			return dst, err
		}
	}
	if budget < record.HeaderSize && !atLeastOne {
		return dst, nil
	}
	want := int(min(int64(max(budget, record.HeaderSize)), c.limit-c.pos))
	out, needed, err := c.take(dst, want, upper)
	if err == nil && needed > 0 && len(out) == len(dst) && atLeastOne {
		out, _, err = c.take(out, needed, upper) // one batch larger than the limit (KIP-74)
	}
	return out, err
}

// take reads want bytes at the cursor and keeps the whole batches among them. needed is the size of the batch that did not fit,
// when it was the first.
func (c *cursor) take(dst []byte, want int, upper kafka.Offset) (out []byte, needed int, err error) {
	kept := len(dst)
	dst = slices.Grow(dst, want)[:kept+want]
	n, err := c.file.ReadAt(dst[kept:], c.pos)
	if err != nil && !(errors.Is(err, io.EOF) && n == want) {
		if errors.Is(err, io.EOF) {
			return dst[:kept], 0, c.corrupt("the file is shorter than it was")
		}
		return dst[:kept], 0, err
	}
	for rest := dst[kept:]; len(rest) > 0; {
		if len(rest) >= record.HeaderSize {
			if bad := checkHeader(rest, c.limit-c.pos, kafka.NoOffset); bad != nil {
				return dst[:kept], 0, c.corrupt(bad.why)
			}
		}
		b, after, err := record.Split(rest)
		if errors.Is(err, record.ErrTruncated) {
			return c.partial(dst[:kept], rest, upper)
		}
		if err != nil {
			return dst[:kept], 0, c.corrupt(err.Error())
		}
		if b.BaseOffset() > c.next || b.NextOffset() <= c.next || b.NextOffset() > c.end {
			return dst[:kept], 0, c.corrupt(fmt.Sprintf("a batch of offsets %d to %d, want %d", b.BaseOffset(), b.LastOffset(), c.next))
		}
		if b.NextOffset() > upper || b.BaseOffset() >= c.epochEnd {
			return dst[:kept], 0, nil
		}
		if c.epoch != kafka.NoEpoch && b.LeaderEpoch() != c.epoch {
			return dst[:kept], 0, c.corrupt(fmt.Sprintf("leader epoch %d, want %d", b.LeaderEpoch(), c.epoch))
		}
		if err := b.VerifyCRC(); err != nil {
			return dst[:kept], 0, c.corrupt(err.Error())
		}
		kept += len(b)
		c.pos += int64(len(b))
		c.next, c.exact, rest = b.NextOffset(), true, after
	}
	if c.pos == c.limit && c.next != c.end {
		return dst[:kept], 0, c.corrupt(fmt.Sprintf("the segment ends at offset %d, want %d", c.next, c.end))
	}
	return dst[:kept], 0, nil
}

// partial judges a batch that the bytes read end in.
func (c *cursor) partial(dst, rest []byte, upper kafka.Offset) (out []byte, needed int, err error) {
	switch {
	case len(rest) >= record.HeaderSize && record.Batch(rest).NextOffset() > upper:
		return dst, 0, nil
	case len(rest) >= record.HeaderSize:
		return dst, record.Batch(rest).Size(), nil
	case c.pos+int64(len(rest)) >= c.limit:
		return dst, 0, c.corrupt("the segment ends inside a batch header")
	}
	return dst, record.HeaderSize, nil
}

// seek walks headers from the cursor's position to the batch that holds the wanted offset.
func (c *cursor) seek() error {
	w := newWalker(c.file, c.pos, c.limit, kafka.NoOffset)
	defer w.release()
	w.window = seekWindow
	for {
		h, pos, err := w.next()
		if errors.Is(err, io.EOF) {
			return c.corrupt(fmt.Sprintf("the segment ends before offset %d", c.next))
		}
		if err != nil {
			return asCorrupt(c.segment.path, err)
		}
		if h.End > c.next {
			if h.Base > c.next {
				c.pos = pos
				return c.corrupt(fmt.Sprintf("a batch of offset %d, want %d", h.Base, c.next))
			}
			c.pos, c.exact = pos, true
			return nil
		}
	}
}

func (c *cursor) corrupt(why string) error {
	return &CorruptError{File: c.segment.path, Pos: c.pos, Why: why}
}
