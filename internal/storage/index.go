package storage

import (
	"encoding/binary"
	"fmt"
	"sort"

	"strandline.dev/internal/kafka"
)

const (
	indexMagic      = "SLIX"
	indexVersion    = 1
	indexEntryBytes = 32
)

// indexEntry stands for the batches from pos up to the next entry.
type indexEntry struct {
	offset kafka.Offset // base offset of the batch at pos
	pos    int64        // file position, taken from where the batch was written or read
	// appendMs is the append time of the batch at pos.
	appendMs int64
	// maxTimestamp is the largest record timestamp from the beginning of the segment up to the next entry: it never falls from
	// entry to entry, so a time is found by binary search.
	maxTimestamp int64
}

// index is the sparse index of one segment, in memory.
type index struct {
	interval int64
	entries  []indexEntry
}

func newIndex(interval int64) *index { return &index{interval: interval} }

// add notes a batch that follows all earlier ones.
func (x *index) add(offset kafka.Offset, pos, appendMs, maxTimestamp int64) {
	n := len(x.entries)
	if n > 0 {
		last := &x.entries[n-1]
		maxTimestamp = max(maxTimestamp, last.maxTimestamp)
		if pos-last.pos < x.interval {
			last.maxTimestamp = maxTimestamp
			return
		}
	}
	if n >= indexEntriesMax {
		x.thin()
	}
	x.entries = append(x.entries, indexEntry{offset: offset, pos: pos, appendMs: appendMs, maxTimestamp: maxTimestamp})
}

// thin drops every second entry and doubles the interval: the index of a segment has a bound (I14).
func (x *index) thin() {
	kept := x.entries[:0]
	for i := 0; i < len(x.entries); i += 2 {
		e := x.entries[i]
		if i+1 < len(x.entries) {
			e.maxTimestamp = x.entries[i+1].maxTimestamp
		}
		kept = append(kept, e)
	}
	x.entries = kept
	x.interval *= 2
}

// floor is the position of the last entry at or below offset, or 0.
func (x *index) floor(offset kafka.Offset) int64 {
	i := sort.Search(len(x.entries), func(i int) bool { return x.entries[i].offset > offset })
	if i == 0 {
		return 0
	}
	return x.entries[i-1].pos
}

// atTime is the position of the first entry whose batches reach the timestamp.
func (x *index) atTime(ts int64) (int64, bool) {
	i := sort.Search(len(x.entries), func(i int) bool { return x.entries[i].maxTimestamp >= ts })
	if i == len(x.entries) {
		return 0, false
	}
	return x.entries[i].pos, true
}

// maxBelow is the largest timestamp before the entry that holds offset, and that entry's position.
func (x *index) maxBelow(offset kafka.Offset) (maxTimestamp, pos int64) {
	i := sort.Search(len(x.entries), func(i int) bool { return x.entries[i].offset > offset })
	switch {
	case i == 0:
		return -1, 0
	case i == 1:
		return -1, x.entries[0].pos
	}
	return x.entries[i-2].maxTimestamp, x.entries[i-1].pos
}

// encodeIndex is the content of an index file for a segment of this extent.
func encodeIndex(x *index, base, end kafka.Offset, size int64) []byte {
	return appendFrame(make([]byte, 0, 64+len(x.entries)*indexEntryBytes), indexMagic, indexVersion, func(b []byte) []byte {
		b = appendI64(b, int64(base))
		b = appendI64(b, int64(end))
		b = appendI64(b, size)
		b = appendI64(b, x.interval)
		b = binary.BigEndian.AppendUint32(b, uint32(len(x.entries)))
		for _, e := range x.entries {
			b = appendI64(b, int64(e.offset))
			b = appendI64(b, e.pos)
			b = appendI64(b, e.appendMs)
			b = appendI64(b, e.maxTimestamp)
		}
		return b
	})
}

// indexExtent is the part of a segment that an index file stands for.
type indexExtent struct {
	base, end kafka.Offset
	size      int64
}

// decodeIndex reads an index file and checks that it cannot contradict itself. Whether it fits the segment is for the caller.
func decodeIndex(b []byte) (*index, indexExtent, error) {
	f, err := openFile(b, indexMagic, indexVersion)
	if err != nil {
		return nil, indexExtent{}, err
	}
	ext := indexExtent{base: kafka.Offset(f.i64()), end: kafka.Offset(f.i64()), size: f.i64()}
	x := &index{interval: f.i64()}
	count := int64(f.u32())
	if f.bad || count > indexEntriesMax || count*indexEntryBytes != int64(len(f.b)) {
		return nil, ext, fmt.Errorf("%w: %d index entries in %d bytes", errBadFrame, count, len(f.b))
	}
	if ext.base < 0 || ext.end < ext.base || ext.size < 0 || x.interval <= 0 || (ext.size > 0) != (count > 0) {
		return nil, ext, fmt.Errorf("%w: an index that contradicts itself", errBadFrame)
	}
	x.entries = make([]indexEntry, 0, count)
	for i := range count {
		e := indexEntry{offset: kafka.Offset(f.i64()), pos: f.i64(), appendMs: f.i64(), maxTimestamp: f.i64()}
		if i == 0 && (e.pos != 0 || e.offset != ext.base) {
			return nil, ext, fmt.Errorf("%w: an index that does not begin with its segment", errBadFrame)
		}
		if i > 0 {
			last := x.entries[i-1]
			if e.offset <= last.offset || e.pos <= last.pos || e.maxTimestamp < last.maxTimestamp {
				return nil, ext, fmt.Errorf("%w: index entry %d is out of order", errBadFrame, i)
			}
		}
		if e.offset >= ext.end || e.pos >= ext.size {
			return nil, ext, fmt.Errorf("%w: index entry %d points behind the segment", errBadFrame, i)
		}
		x.entries = append(x.entries, e)
	}
	return x, ext, nil
}
