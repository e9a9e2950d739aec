package storage

import (
	"context"
	"errors"
	"fmt"
	"time"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/record"
	"strandline.dev/internal/recordid"
)

// idLoad is one attempt to read the remembered ids back from the log: one window, counted from the newest append time in the log. This node's
// clock may be anywhere, and the time that it was down is nobody's fault: ids are remembered that much longer.
type idLoad struct {
	generation uint64
	header     string
	table      *recordid.Table
	now        time.Duration // the table's clock when the load began
	newestMs   int64
	window     time.Duration
	// marks say of stretches of the log when they had been appended, in order; what the first one begins with is where reading begins.
	marks []idMark
	end   kafka.Offset
}

// idMark: the records from offset to the next mark had all been appended at untilMs.
type idMark struct {
	offset  kafka.Offset
	untilMs int64
}

// LoadRecordIDs reads what KeepRecordIDs said is due. Appends go on meanwhile; they are not judged until it is done. It returns without an
// error when there is nothing to do. Errors: those of Read, of ctx, and one for a log that is cut again and again; it may be called again.
func (l *Log) LoadRecordIDs(ctx context.Context) error {
	for range idLoadsMax {
		p, due, err := l.planIDs()
		if err != nil || !due {
			return err
		}
		if err := l.readIDs(ctx, p); err != nil {
			return err
		}
		if l.finishIDs(p) {
			return nil
		}
	}
	return fmt.Errorf("record ids: the log was cut %d times while they were read", idLoadsMax)
}

// planIDs begins a load: from now on the table takes what is appended, and the load reads up to here.
func (l *Log) planIDs() (p *idLoad, due bool, err error) {
	l.mu.Lock()
	k := &l.mu.ids
	if l.mu.closed || k.table == nil || k.ready {
		l.mu.Unlock()
		return nil, false, nil
	}
	k.table = recordid.NewTable(k.window)
	l.countIDsLocked()
	p = &idLoad{
		generation: k.generation, header: k.header, table: recordid.NewTable(k.window), now: k.now(), window: k.window, end: l.mu.end,
	}
	segments, err := l.youngestLocked(p)
	l.mu.Unlock()
	if err != nil {
		return nil, false, err
	}
	for _, s := range segments {
		if err := l.loadIndex(s); err != nil {
			return nil, false, err
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range segments {
		l.markLocked(p, s)
	}
	return p, true, nil
}

// youngestLocked lists the segments that may have records of the last window.
func (l *Log) youngestLocked(p *idLoad) ([]*segment, error) {
	i := len(l.mu.segments)
	for ; i > 0; i-- {
		s := l.mu.segments[i-1]
		if s.end <= s.base {
			continue
		}
		last := l.timesLocked(s).lastAppendMs
		switch {
		case last == maxMs:
			return nil, fmt.Errorf("record ids: the append times of %s are not known", s.path)
		case s.end <= l.mu.start, p.newestMs-last > p.window.Milliseconds():
			return l.mu.segments[i:len(l.mu.segments):len(l.mu.segments)], nil
		}
		p.newestMs = max(p.newestMs, last)
	}
	return l.mu.segments[:len(l.mu.segments):len(l.mu.segments)], nil
}

// markLocked takes the append times of a segment from its index. A stretch of records between two entries had been appended when the second
// entry's was, so that none counts as older than it is.
func (l *Log) markLocked(p *idLoad, s *segment) {
	last := l.timesLocked(s).lastAppendMs
	if s.index == nil || len(s.index.entries) == 0 {
		p.mark(s.base, last)
		return
	}
	for i, e := range s.index.entries {
		until := last
		if i+1 < len(s.index.entries) {
			until = max(e.appendMs, s.index.entries[i+1].appendMs)
		}
		p.mark(e.offset, until)
	}
}

// mark adds a stretch, unless the window has passed for it and for all before it.
func (p *idLoad) mark(offset kafka.Offset, untilMs int64) {
	if len(p.marks) == 0 && p.newestMs-untilMs > p.window.Milliseconds() {
		return
	}
	p.marks = append(p.marks, idMark{offset, untilMs})
}

// at is the reading of the table's clock for records of the first stretch.
func (p *idLoad) at() time.Duration {
	return p.now - time.Duration(max(0, p.newestMs-p.marks[0].untilMs))*time.Millisecond
}

// readIDs reads the records of the load.
func (l *Log) readIDs(ctx context.Context, p *idLoad) error {
	if len(p.marks) == 0 {
		return nil
	}
	at := p.at()
	buf := make([]byte, 0, idReadBytes)
	for next := max(p.marks[0].offset, l.Start()); next < p.end; {
		if err := ctx.Err(); err != nil {
			return err
		}
		out, err := l.Read(next, p.end, ReadLimits{MaxBytes: idReadBytes, AtLeastOne: true}, buf[:0])
		if start := l.Start(); errors.Is(err, ErrOutOfRange) && start > next {
			next = start // deleted meanwhile
			continue
		}
		if errors.Is(err, ErrOutOfRange) || (err == nil && len(out) == 0) {
			return nil // cut meanwhile: finishIDs finds that out
		}
		if err != nil {
			return err
		}
		buf = out
		for len(out) > 0 {
			var b record.Batch
			if b, out, err = record.Split(out); err != nil {
				return err
			}
			for len(p.marks) > 1 && p.marks[1].offset <= b.BaseOffset() {
				p.marks = p.marks[1:]
				at = max(at, p.at()) // a step of the wall clock back makes nothing older
			}
			carried, err := recordid.Read(b, p.header, decompressMax)
			if err != nil {
				return &CorruptError{File: l.path, Why: fmt.Sprintf("the records at offset %d: %v", b.BaseOffset(), err)}
			}
			p.table.Note(b.BaseOffset(), carried, at)
			next = b.NextOffset()
		}
	}
	return nil
}

// finishIDs puts what was read before what was appended meanwhile. It is false when the log was cut, and the load has to be repeated.
func (l *Log) finishIDs(p *idLoad) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	k := &l.mu.ids
	if k.generation != p.generation {
		return false
	}
	p.table.Follow(k.table)
	p.table.SetWindow(k.window)
	k.table, k.ready = p.table, true
	k.table.AdvanceStart(l.mu.start)
	k.table.Expire(k.now())
	l.countIDsLocked()
	return true
}
