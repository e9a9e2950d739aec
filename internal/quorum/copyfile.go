package quorum

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"

	"go.etcd.io/raft/v3/raftpb"

	"strandline.dev/internal/record"
)

// The copy of the newest entries, file log.copy, big-endian: magic "SLLC", version (2 bytes), zero (2), index of the first entry
// that can be in it (8), CRC-32C of the bytes before it (4); then an entry after the other, each the CRC-32C (4) of its batch and
// the batch as it is in the log. That checksum covers index, length and term too, which the batch's own does not. See
// docs/formats/metadata-log.md.
const (
	copyFileName   = "log.copy"
	copyHeaderSize = 20
	copyVersion    = 1
	copyCRCSize    = 4
)

var (
	copyMagic = []byte("SLLC")

	errCopyHeader   = errors.New("this is no copy of the log")
	errCopyVersion  = errors.New("the copy of the log has a version that this release does not read")
	errCopyEntry    = errors.New("the copy of the log has bytes that are no entry")
	errCopySequence = errors.New("the entries of the copy of the log do not follow each other")
)

// copied is what a copy of the log holds: the entries [first, end) without gaps, their terms never falling.
type copied struct {
	first   uint64
	entries []*raftpb.Entry
}

func (c *copied) end() uint64 { return c.first + uint64(len(c.entries)) }

// at returns the entry of an index, or nil when the copy does not hold it.
func (c *copied) at(index uint64) *raftpb.Entry {
	if index < c.first || index >= c.end() {
		return nil
	}
	return c.entries[index-c.first]
}

// from returns the entries from an index on.
func (c *copied) from(index uint64) []*raftpb.Entry {
	if index >= c.end() {
		return nil
	}
	return c.entries[max(index, c.first)-c.first:]
}

func appendCopyHeader(dst []byte, first uint64) []byte {
	start := len(dst)
	dst = append(dst, copyMagic...)
	dst = binary.BigEndian.AppendUint16(dst, copyVersion)
	dst = append(dst, 0, 0)
	dst = binary.BigEndian.AppendUint64(dst, first)
	return binary.BigEndian.AppendUint32(dst, crc32.Checksum(dst[start:], castagnoli))
}

// appendCopyEntry appends an entry, given as its batch.
func appendCopyEntry(dst []byte, batch []byte) []byte {
	dst = binary.BigEndian.AppendUint32(dst, crc32.Checksum(batch, castagnoli))
	return append(dst, batch...)
}

// splitCopyEntry returns the first batch of b, whose checksum is right, and what follows it.
func splitCopyEntry(b []byte) (batch record.Batch, rest []byte, err error) {
	if len(b) < copyCRCSize {
		return nil, nil, errCopyEntry
	}
	batch, rest, err = record.Split(b[copyCRCSize:])
	if err != nil {
		return nil, nil, fmt.Errorf("%w: %w", errCopyEntry, err)
	}
	if crc32.Checksum(batch, castagnoli) != binary.BigEndian.Uint32(b) {
		return nil, nil, fmt.Errorf("%w: it fails its checksum", errCopyEntry)
	}
	return batch, rest, nil
}

func decodeCopyHeader(b []byte) (first uint64, err error) {
	switch {
	case len(b) < copyHeaderSize || !bytes.Equal(b[:4], copyMagic):
		return 0, errCopyHeader
	case crc32.Checksum(b[:16], castagnoli) != binary.BigEndian.Uint32(b[16:]):
		return 0, fmt.Errorf("%w: it fails its checksum", errCopyHeader)
	case binary.BigEndian.Uint16(b[4:]) != copyVersion || b[6] != 0 || b[7] != 0:
		return 0, errCopyVersion
	}
	return binary.BigEndian.Uint64(b[8:]), nil
}

// decodeCopy reads a copy to its end. One byte that is not what was written makes all of it useless: what follows may be missing.
func decodeCopy(b []byte) (*copied, error) {
	first, err := decodeCopyHeader(b)
	if err != nil {
		return nil, err
	}
	c := &copied{first: first}
	term := uint64(0)
	for rest := b[copyHeaderSize:]; len(rest) > 0; {
		pos := len(b) - len(rest)
		var batch record.Batch
		if batch, rest, err = splitCopyEntry(rest); err != nil {
			return nil, fmt.Errorf("byte %d: %w", pos, err)
		}
		e, err := decodeEntry(batch)
		if err != nil {
			return nil, fmt.Errorf("byte %d: %w", pos, err)
		}
		if e.GetIndex() != c.end() || e.GetTerm() < term {
			return nil, fmt.Errorf("byte %d: %w: index %d, term %d where index %d should be, after term %d",
				pos, errCopySequence, e.GetIndex(), e.GetTerm(), c.end(), term)
		}
		term = e.GetTerm()
		c.entries = append(c.entries, e)
	}
	return c, nil
}
