package storage

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"sync"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/record"
)

const (
	// lengthOverhead is what a batch's length field does not count.
	lengthOverhead = 12
	// minBatchLength is the smallest length field: a header without records.
	minBatchLength = record.HeaderSize - lengthOverhead
	posMagic       = 16
	posAttributes  = 21 // the checksum covers everything from here on
	magicV2        = 2
)

// badKind says how a batch is bad. Recovery treats the kinds differently.
type badKind uint8

const (
	badShort    badKind = iota + 1 // the file ends before the batch does
	badInvalid                     // not a batch header, or one that does not continue the log
	badChecksum                    // a complete batch whose checksum does not fit
)

// badBatch is what a walk stops at.
type badBatch struct {
	pos  int64
	kind badKind
	why  string
}

func (e *badBatch) Error() string { return fmt.Sprintf("byte %d: %s", e.pos, e.why) }

// asCorrupt turns what a walk stopped at into a CorruptError of this file; other errors pass.
func asCorrupt(path string, err error) error {
	var bad *badBatch
	if errors.As(err, &bad) {
		return &CorruptError{File: path, Pos: bad.pos, Why: bad.why}
	}
	return err
}

// parseHeader reads the header fields of a batch from at least HeaderSize bytes.
func parseHeader(b []byte) BatchHeader {
	v := record.Batch(b)
	return BatchHeader{
		Base: v.BaseOffset(), End: v.NextOffset(), Bytes: int64(v.Size()), Epoch: v.LeaderEpoch(), Attributes: v.Attributes(),
		BaseTimestamp: v.BaseTimestamp(), MaxTimestamp: v.MaxTimestamp(), ProducerID: v.ProducerID(), ProducerEpoch: v.ProducerEpoch(),
		BaseSequence: v.BaseSequence(), Count: v.Count(), CRC: v.CRC(),
	}
}

// headerOf is parseHeader for a batch in memory.
func headerOf(b record.Batch) BatchHeader { return parseHeader(b) }

var windows = sync.Pool{New: func() any { b := make([]byte, walkWindow); return &b }}

// walker reads the batches of a file range one after the other: headers, and checksums if verify is set. It never holds more
// than one window of the file, whatever a length field says (I14).
type walker struct {
	file   io.ReaderAt
	pos    int64 // of the next batch
	limit  int64 // bytes of the file that count
	verify bool
	window int // bytes to read at a time
	// expect is the base offset that the next batch must have; NoOffset accepts any. With one, leader epochs must not fall either:
	// they lie outside the checksum.
	expect kafka.Offset
	epoch  kafka.LeaderEpoch

	buf    *[]byte
	bufPos int64
	have   int
}

func newWalker(file io.ReaderAt, pos, limit int64, expect kafka.Offset) *walker {
	return &walker{file: file, pos: pos, limit: limit, expect: expect, epoch: kafka.NoEpoch, window: walkWindow, buf: windows.Get().(*[]byte)}
}

func (w *walker) release() {
	if w.buf != nil {
		windows.Put(w.buf)
		w.buf = nil
	}
}

// bytes returns n bytes at pos, n at most the window; fewer at the end of the range.
func (w *walker) bytes(pos int64, n int) ([]byte, error) {
	n = int(min(int64(n), w.limit-pos))
	if pos < w.bufPos || pos+int64(n) > w.bufPos+int64(w.have) {
		want := int(min(int64(max(w.window, n)), w.limit-pos))
		got, err := w.file.ReadAt((*w.buf)[:want], pos)
		if err != nil && !(errors.Is(err, io.EOF) && got == want) {
			if !errors.Is(err, io.EOF) {
				return nil, err
			}
			if got < n {
				return nil, &badBatch{pos: pos, kind: badShort, why: "the file is shorter than it was"}
			}
		}
		w.bufPos, w.have = pos, got
	}
	from := int(pos - w.bufPos)
	return (*w.buf)[from : from+n], nil
}

// next returns the next batch's header and position. io.EOF means the end of the range, *badBatch what cannot be a batch.
func (w *walker) next() (BatchHeader, int64, error) {
	pos := w.pos
	if pos == w.limit {
		return BatchHeader{}, pos, io.EOF
	}
	b, err := w.bytes(pos, record.HeaderSize)
	if err != nil {
		return BatchHeader{}, pos, err
	}
	if bad := checkHeader(b, w.limit-pos, w.expect); bad != nil {
		bad.pos = pos
		return BatchHeader{}, pos, bad
	}
	h := parseHeader(b)
	if w.expect != kafka.NoOffset && h.Epoch < w.epoch {
		return BatchHeader{}, pos, &badBatch{pos: pos, kind: badInvalid, why: fmt.Sprintf("leader epoch %d after %d", h.Epoch, w.epoch)}
	}
	if w.verify {
		sum, err := w.checksum(pos+posAttributes, pos+h.Bytes)
		if err != nil {
			return BatchHeader{}, pos, err
		}
		if sum != h.CRC {
			return BatchHeader{}, pos, &badBatch{pos: pos, kind: badChecksum, why: fmt.Sprintf("checksum %08x, want %08x", sum, h.CRC)}
		}
	}
	w.pos = pos + h.Bytes
	if w.expect != kafka.NoOffset {
		w.expect, w.epoch = h.End, h.Epoch
	}
	return h, pos, nil
}

// checkHeader judges the first bytes of what should be a batch; left is what the file holds from its beginning on.
func checkHeader(b []byte, left int64, expect kafka.Offset) *badBatch {
	if len(b) < lengthOverhead {
		return &badBatch{kind: badShort, why: fmt.Sprintf("%d bytes are no batch header", len(b))}
	}
	length := int64(int32(binary.BigEndian.Uint32(b[8:])))
	if length < minBatchLength {
		return &badBatch{kind: badInvalid, why: fmt.Sprintf("length field %d", length)}
	}
	if len(b) > posMagic && b[posMagic] != magicV2 {
		return &badBatch{kind: badInvalid, why: fmt.Sprintf("magic %d", b[posMagic])}
	}
	if length+lengthOverhead > left {
		return &badBatch{kind: badShort, why: fmt.Sprintf("a batch of %d bytes, %d are there", length+lengthOverhead, left)}
	}
	base, delta := record.Batch(b).BaseOffset(), record.Batch(b).LastOffsetDelta()
	if base < 0 || delta < 0 || base+kafka.Offset(delta) < 0 {
		return &badBatch{kind: badInvalid, why: fmt.Sprintf("offsets %d+%d", base, delta)}
	}
	if expect != kafka.NoOffset && base != expect {
		return &badBatch{kind: badInvalid, why: fmt.Sprintf("base offset %d, want %d", base, expect)}
	}
	return nil
}

func (w *walker) checksum(from, to int64) (uint32, error) {
	var sum uint32
	for from < to {
		b, err := w.bytes(from, int(min(to-from, int64(w.window))))
		if err != nil {
			return 0, err
		}
		sum = crc32.Update(sum, castagnoli, b)
		from += int64(len(b))
	}
	return sum, nil
}

// spansRest says whether the bytes from pos to limit are one batch by its checksum, whatever the fields say that the checksum does not
// cover: length, offset, epoch, version. Then nothing was torn there, and one of those fields is what is wrong.
func spansRest(file io.ReaderAt, pos, limit int64) (bool, error) {
	if limit-pos < record.HeaderSize {
		return false, nil
	}
	w := newWalker(file, pos, limit, kafka.NoOffset)
	defer w.release()
	b, err := w.bytes(pos, record.HeaderSize)
	if err != nil {
		return false, err
	}
	want := parseHeader(b).CRC
	sum, err := w.checksum(pos+posAttributes, limit)
	return err == nil && sum == want, err
}

// validBatchBehind searches for a whole, valid batch that starts at or behind pos and continues the log at or after next. Its being
// there means that pos is no torn tail. Only plausible headers cost a checksum.
func validBatchBehind(file io.ReaderAt, pos, limit int64, next kafka.Offset) (int64, bool, error) {
	budget := int64(tornSearchBytes)
	w := newWalker(file, pos, limit, kafka.NoOffset)
	defer w.release()
	w.verify = true
	scan := newWalker(file, pos, limit, kafka.NoOffset)
	defer scan.release()
	for p := pos; p+record.HeaderSize <= limit; {
		b, err := scan.bytes(p, int(min(int64(scan.window), limit-p)))
		if err != nil {
			return 0, false, err
		}
		tries := len(b) - record.HeaderSize + 1
		for i := range tries {
			c := b[i : i+record.HeaderSize]
			if c[posMagic] != magicV2 || record.Batch(c).BaseOffset() < next || checkHeader(c, limit-p-int64(i), kafka.NoOffset) != nil {
				continue
			}
			w.pos = p + int64(i)
			if budget -= parseHeader(c).Bytes; budget < 0 {
				return w.pos, true, nil
			}
			if _, _, err := w.next(); err == nil {
				return p + int64(i), true, nil
			} else if bad := (*badBatch)(nil); !errors.As(err, &bad) {
				return 0, false, err
			}
		}
		p += int64(tries)
	}
	return 0, false, nil
}
