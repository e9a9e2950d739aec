package storage

import (
	"bytes"
	"io"

	"strandline.dev/internal/record"
)

// pageBytes is the unit in which the kernel writes a file back, in any order.
const pageBytes = 4096

var zeroPage [pageBytes]byte

// neverWritten says whether the bad batch at pos lacks a page that never reached the disk: after a power cut a file whose size had
// grown shows zeros there, while a later page may have been written. It is asked only behind the sync point and under another boot id.
//
// Cutting at such a hole loses nothing that was acknowledged under `synced`: a sync that ended after the hole's page was written would
// have written it, so no sync covered it or anything behind it. What it cannot tell from a hole is a page of the last seconds that the
// disk itself turned into zeros; a wrong bit, a wrong length or a lost tail of a page stay damage.
func neverWritten(file io.ReaderAt, pos, limit int64) (bool, error) {
	pageEnd := (pos/pageBytes + 1) * pageBytes
	// The batch's own extent, if its length can be read; else the header may lie in the page that is missing.
	extent := pageEnd + pageBytes
	var head [record.HeaderSize]byte
	if n, err := file.ReadAt(head[:min(record.HeaderSize, limit-pos)], pos); err != nil && n == 0 {
		return false, err
	} else if int64(n) == record.HeaderSize && checkHeader(head[:], limit-pos, -1) == nil {
		extent = max(extent, pos+parseHeader(head[:]).Bytes)
	}
	for from, to := pos, pageEnd; from < min(extent, limit); from, to = to, to+pageBytes {
		zero, err := isZero(file, from, min(to, limit))
		if zero || err != nil {
			return zero, err
		}
	}
	return false, nil
}

func isZero(file io.ReaderAt, from, to int64) (bool, error) {
	var page [pageBytes]byte
	b := page[:to-from]
	if _, err := file.ReadAt(b, from); err != nil {
		return false, err
	}
	return bytes.Equal(b, zeroPage[:len(b)]), nil
}
