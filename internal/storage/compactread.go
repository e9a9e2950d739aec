package storage

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/record"
)

// errInterrupted ends a pass over a log that changed under it.
var errInterrupted = errors.New("the log changed during compaction")

// asPassError: a pass that was given up is tried again, and is no error.
func asPassError(err error) error {
	if errors.Is(err, errInterrupted) {
		return nil
	}
	return err
}

// noteCorrupt takes the log out of service when compaction met bytes that are not what was written (I11).
func (l *Log) noteCorrupt(err error) {
	var corrupt *CorruptError
	if errors.As(err, &corrupt) {
		l.dir.metrics.CorruptBatches.Inc()
		l.damage(corrupt)
	}
}

// readKeys notes the keys of the new part of the log and returns where that ends: at the end, or where the map is full.
func (c *compaction) readKeys() (upTo kafka.Offset, err error) {
	upTo = c.segments[len(c.segments)-1].end
	for _, s := range c.segments {
		if s.end <= c.from {
			continue
		}
		full := false
		err := c.eachBatch(s, func(b record.Batch) error {
			if full || b.NextOffset() <= c.from || !superseding(b) {
				return nil
			}
			for r, err := range b.Records(decompressMax) {
				if err != nil {
					return err
				}
				at := b.BaseOffset() + kafka.Offset(r.OffsetDelta)
				if r.Key != nil && at >= c.from && !c.keys.note(r.Key, at) {
					full, upTo = true, at
					return nil
				}
			}
			return nil
		})
		if err != nil || full {
			return upTo, err
		}
	}
	return upTo, nil
}

// superseding says whether the records of a batch count as the newest of their keys. A transaction may have been aborted, so its records
// neither supersede nor are superseded.
func superseding(b record.Batch) bool { return !b.IsControl() && !b.IsTransactional() && b.Count() > 0 }

// eachBatch reads a segment, checksums verified. What visit says about a batch it cannot read is damage.
func (c *compaction) eachBatch(s *segment, visit func(record.Batch) error) error {
	l := c.log
	l.mu.Lock()
	if s.gone {
		l.mu.Unlock()
		return errInterrupted
	}
	f, err := l.pinLocked(s)
	size := s.size
	l.mu.Unlock()
	if err != nil {
		return err
	}
	defer func() {
		l.mu.Lock()
		l.unpinLocked(s)
		l.mu.Unlock()
	}()
	w := newWalker(f, 0, size, s.base)
	defer w.release()
	var own []byte
	for n := 0; ; n++ {
		if n%interruptEvery == 0 && c.interrupted() {
			return errInterrupted
		}
		h, pos, err := w.next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return asCorrupt(s.path, err)
		}
		var b record.Batch
		if b, err = w.batch(pos, h.Bytes, &own); err != nil {
			return asCorrupt(s.path, err)
		}
		err = b.VerifyCRC()
		if err == nil {
			err = visit(b)
		}
		if err != nil {
			return c.batchError(s, pos, err)
		}
	}
}

// batchError tells damaged records from what happened while they were written elsewhere.
func (c *compaction) batchError(s *segment, pos int64, err error) error {
	for _, bad := range []error{record.ErrChecksum, record.ErrCodec, record.ErrCompressed, record.ErrRecord} {
		if errors.Is(err, bad) {
			return &CorruptError{File: s.path, Pos: pos, Why: fmt.Sprintf("records: %v", err)}
		}
	}
	return err
}

// batch returns the bytes of a batch at pos: a view of the window, or of own if they are more than that.
func (w *walker) batch(pos, bytes int64, own *[]byte) (record.Batch, error) {
	if bytes <= int64(w.window) {
		b, err := w.bytes(pos, int(bytes))
		return record.Batch(b), err
	}
	*own = slices.Grow((*own)[:0], int(bytes))[:bytes]
	if n, err := w.file.ReadAt(*own, pos); err != nil && !(errors.Is(err, io.EOF) && int64(n) == bytes) {
		return nil, err
	}
	return *own, nil
}
