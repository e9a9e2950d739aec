package sealed

import (
	"errors"
	"io"
	"slices"
	"sort"
	"sync"
)

// block is a run of plain bytes, as the frames between two marks give them.
type block struct {
	from           int64
	plain, raw, ad []byte
}

var blocks = sync.Pool{New: func() any { return new(block) }}

// ReadAt gives plain bytes. Those of a frame that was changed, or that are no frame, are zeros.
func (f *file) ReadAt(p []byte, off int64) (n int, err error) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	if f.mu.plain {
		return f.inner.ReadAt(p, off)
	}
	b := blocks.Get().(*block)
	defer blocks.Put(b)
	for n < len(p) {
		at := off + int64(n)
		switch {
		case at >= f.mu.size+f.mu.unread:
			return n, io.EOF
		case at >= f.mu.size:
			zeros := p[n:min(int64(len(p)), int64(n)+f.mu.size+f.mu.unread-at)]
			clear(zeros)
			n += len(zeros)
		default:
			if err := f.loadLocked(b, at); err != nil {
				return n, err
			}
			n += copy(p[n:], b.plain[at-b.from:])
		}
	}
	return n, nil
}

// loadLocked reads the block with this plain position.
func (f *file) loadLocked(b *block, at int64) error {
	i := sort.Search(len(f.mu.marks), func(i int) bool { return f.mu.marks[i].plain > at }) - 1
	m, end, next := f.mu.marks[i], f.mu.pos, f.mu.size
	if i+1 < len(f.mu.marks) {
		end, next = f.mu.marks[i+1].pos, f.mu.marks[i+1].plain
	}
	b.raw = slices.Grow(b.raw[:0], int(end-m.pos))[:end-m.pos]
	if n, err := f.inner.ReadAt(b.raw, m.pos); err != nil && !(errors.Is(err, io.EOF) && n == len(b.raw)) {
		return err
	}
	plain := b.plain[:0]
	for raw := b.raw; len(raw) > 0; {
		fr, ok := parseFrame(raw)
		if !ok || fr.size() > int64(len(raw)) {
			break // it was a frame when the file was opened
		}
		if fr.kind == kindCut {
			plain = plain[:max(0, min(int64(len(plain)), fr.plain-m.plain))]
		} else if out, ok := f.mu.seal.openFrame(plain, &b.ad, raw[:fr.size()]); ok {
			plain = out
		} else {
			plain = append(plain, make([]byte, fr.n)...)
		}
		raw = raw[fr.size():]
	}
	if missing := next - m.plain - int64(len(plain)); missing > 0 {
		plain = append(plain, make([]byte, missing)...)
	}
	b.from, b.plain = m.plain, plain[:next-m.plain]
	return nil
}

// endOfFrameLocked finds the position in the file at which it had exactly that many plain bytes, and behind which they were not changed.
func (f *file) endOfFrameLocked(size int64) (pos int64, found bool, err error) {
	if size == f.mu.size {
		return f.mu.pos, true, nil
	}
	i := sort.Search(len(f.mu.marks), func(i int) bool { return f.mu.marks[i].plain > size }) - 1
	at := f.mu.marks[i].pos
	end := f.mu.marks[i].plain
	if found = end == size; found {
		pos = at
	}
	h := make([]byte, frameHeader)
	for at < f.mu.pos {
		if _, err := f.inner.ReadAt(h, at); err != nil {
			return 0, false, err
		}
		fr, ok := parseFrame(h)
		if !ok {
			return 0, false, nil
		}
		if at += fr.size(); fr.kind == kindCut {
			end = fr.plain
			found = found && end >= size
		} else {
			end += fr.n
		}
		if end == size {
			pos, found = at, true
		}
	}
	return pos, found, nil
}
