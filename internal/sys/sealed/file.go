package sealed

import (
	"errors"
	"fmt"
	"io"
	"sync"

	"strandline.dev/internal/sys"
)

// errInside: a sealed file grows at its end and is cut, and nothing else.
var errInside = errors.New("an encrypted file is written at its end only")

// mark says where a frame lies: the plain bytes from plain on begin with the frame at pos.
type mark struct {
	plain, pos int64
}

// file is one open file that is sealed, or may be.
type file struct {
	inner sys.File
	keys  Keys
	path  string
	bound []byte

	mu struct {
		sync.RWMutex
		// plain: the file was there before encryption was turned on, or there are no keys. It is passed through until it is empty.
		plain bool
		seal  *sealer // nil while the file is empty
		size  int64   // plain bytes in whole frames
		// unread is the number of bytes behind them that are no frames: they read as zeros.
		unread int64
		pos    int64 // end of the last whole frame
		// ragged: the file has bytes behind pos.
		ragged bool
		marks  []mark
	}
}

// open finds out what the file is.
func (f *file) open() error {
	st, err := f.inner.Stat()
	if err != nil {
		return err
	}
	l, err := scan(f.inner, st.Size)
	if err != nil {
		return err
	}
	f.mu.plain = !l.sealed
	if st.Size == 0 {
		f.mu.plain = f.keys == nil
		return nil
	}
	if !l.sealed {
		return nil
	}
	f.mu.size, f.mu.unread, f.mu.pos, f.mu.marks = l.size, l.unread, l.pos, l.marks
	f.mu.ragged = st.Size > l.pos
	if !l.whole {
		return nil // nothing of it can be read, with any key
	}
	if f.mu.seal, err = openHeader(f.keys, l.id, l.wrapped, f.bound); err != nil {
		return fmt.Errorf("%s: %w", f.path, err)
	}
	return nil
}

// layout is what a walk over the frames of a file finds.
type layout struct {
	sealed       bool // it begins as a sealed file does
	whole        bool // its header is
	id           string
	wrapped      []byte
	size, unread int64
	pos          int64
	marks        []mark
}

// scan walks over the frames of a file of that size. It needs no key.
func scan(in io.ReaderAt, size int64) (l layout, err error) {
	if size == 0 {
		return l, nil
	}
	h := make([]byte, min(size, headerBytes))
	if _, err := in.ReadAt(h, 0); err != nil && !errors.Is(err, io.EOF) {
		return l, err
	}
	if l.sealed = len(h) >= len(headerMagic) && string(h[:len(headerMagic)]) == headerMagic; !l.sealed {
		return l, nil
	}
	if l.id, l.wrapped, l.whole = readHeader(h); !l.whole {
		l.unread = max(0, size-headerBytes)
		return l, nil
	}
	l.pos = headerBytes
	h = h[:frameHeader]
	for l.pos+frameHeader <= size {
		if _, err := in.ReadAt(h, l.pos); err != nil {
			return l, err
		}
		fr, ok := parseFrame(h)
		if !ok || !l.take(fr, size) {
			break
		}
	}
	if rest := size - l.pos; rest > frameHeader {
		if fr, ok := parseFrame(h); !ok || fr.size() <= rest {
			l.unread = rest // not a frame that was cut short
		}
	}
	return l, nil
}

// take adds the frame at the end; false if it is not whole or does not go on from what is there.
func (l *layout) take(fr frame, size int64) bool {
	switch {
	case l.pos+fr.size() > size:
		return false
	case fr.kind == kindBytes && fr.plain == l.size:
		l.marks = addMark(l.marks, mark{fr.plain, l.pos})
		l.size += fr.n
	case fr.kind == kindCut && fr.plain < l.size:
		l.marks = cutMarks(l.marks, fr.plain)
		l.size = fr.plain
	default:
		return false
	}
	l.pos += fr.size()
	return true
}

// addMark notes a frame unless the last mark is near.
func addMark(marks []mark, m mark) []mark {
	if n := len(marks); n > 0 && m.plain-marks[n-1].plain < markEvery && m.pos-marks[n-1].pos < blockMax {
		return marks
	}
	return append(marks, m)
}

// cutMarks forgets marks behind the new end. The first stays: it is where the frames begin.
func cutMarks(marks []mark, end int64) []mark {
	for len(marks) > 1 && marks[len(marks)-1].plain > end {
		marks = marks[:len(marks)-1]
	}
	return marks
}

func (f *file) WriteAt(b []byte, off int64) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.mu.plain {
		return f.inner.WriteAt(b, off)
	}
	if off != f.mu.size || f.mu.unread > 0 {
		return 0, fmt.Errorf("%s: write at %d of %d: %w", f.path, off, f.mu.size+f.mu.unread, errInside)
	}
	if len(b) == 0 {
		return 0, nil
	}
	w := takeWriting()
	defer w.put()
	seal, at, pos := f.mu.seal, f.mu.size, f.mu.pos
	if seal == nil {
		var err error
		if seal, w.out, err = newHeader(w.out, f.keys, f.bound); err != nil {
			return 0, fmt.Errorf("%s: %w", f.path, err)
		}
	}
	marks := f.mu.marks
	for rest := b; len(rest) > 0; {
		n := min(len(rest), frameMax)
		marks = addMark(marks, mark{at, pos + int64(len(w.out))})
		w.seal(seal, kindBytes, at, rest[:n])
		if err := f.putLocked(w.out, pos); err != nil {
			return 0, err
		}
		pos, at, rest, w.out = pos+int64(len(w.out)), at+int64(n), rest[n:], w.out[:0]
	}
	f.mu.seal, f.mu.marks, f.mu.size, f.mu.pos = seal, marks, at, pos
	return len(b), nil
}

// putLocked writes at a position that is not before the end of the last whole frame. Until f.mu.pos is moved behind it, a failure leaves the
// file as it was.
func (f *file) putLocked(out []byte, pos int64) error {
	if f.mu.ragged {
		if err := f.inner.Truncate(f.mu.pos); err != nil {
			return err
		}
		f.mu.ragged = false
	}
	n, err := f.inner.WriteAt(out, pos)
	if err == nil && n < len(out) {
		err = io.ErrShortWrite
	}
	if err != nil {
		f.mu.ragged = true
	}
	return err
}

// Truncate cuts the file: at the end of a frame by cutting the frames behind it, else by a frame that says where the file ends. So what
// was synced before stays as it is.
func (f *file) Truncate(size int64) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case size == 0:
		return f.emptyLocked()
	case f.mu.plain:
		return f.inner.Truncate(size)
	case size > f.mu.size+f.mu.unread, size > f.mu.size && size < f.mu.size+f.mu.unread:
		return fmt.Errorf("%s: size %d of %d: %w", f.path, size, f.mu.size, errInside)
	case size > f.mu.size:
		return nil
	}
	pos, found, err := f.endOfFrameLocked(size)
	if err != nil {
		return err
	}
	if !found {
		return f.cutLocked(size)
	}
	if f.mu.ragged || pos < f.mu.pos {
		f.mu.ragged = true // until it is known to be gone
		if err := f.inner.Truncate(pos); err != nil {
			return err
		}
	}
	f.mu.pos, f.mu.size, f.mu.unread, f.mu.ragged = pos, size, 0, false
	f.mu.marks = cutMarks(f.mu.marks, size)
	for n := len(f.mu.marks); n > 0 && f.mu.marks[n-1].pos >= pos; n-- {
		f.mu.marks = f.mu.marks[:n-1]
	}
	return nil
}

// cutLocked appends a frame that says where the file ends.
func (f *file) cutLocked(size int64) error {
	w := takeWriting()
	defer w.put()
	w.seal(f.mu.seal, kindCut, size, nil)
	if err := f.putLocked(w.out, f.mu.pos); err != nil {
		return err
	}
	f.mu.pos += int64(len(w.out))
	f.mu.size, f.mu.unread, f.mu.marks = size, 0, cutMarks(f.mu.marks, size)
	return nil
}

// emptyLocked cuts everything: what is written next has a new key.
func (f *file) emptyLocked() error {
	if err := f.inner.Truncate(0); err != nil {
		return err
	}
	f.mu.plain, f.mu.seal = f.keys == nil, nil
	f.mu.size, f.mu.unread, f.mu.pos, f.mu.ragged, f.mu.marks = 0, 0, 0, false, nil
	return nil
}

func (f *file) Stat() (sys.FileInfo, error) {
	st, err := f.inner.Stat()
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.mu.plain {
		st.Size = f.mu.size + f.mu.unread
	}
	return st, err
}

func (f *file) Sync() error { return f.inner.Sync() }

func (f *file) Lock() error { return f.inner.Lock() }

func (f *file) Close() error { return f.inner.Close() }
