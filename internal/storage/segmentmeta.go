package storage

import (
	"fmt"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/sys"
)

const (
	metaMagic   = "SLSM"
	metaVersion = 1
)

// segmentMeta is the content of a .meta file. It is written after the whole segment was synced, so finding it proves two things:
// the append times, which batches have no field for and retention counts from (I9), and that size bytes of the segment were on
// disk. Nothing behind a segment is ever reported as stored before its .meta is on disk; recovery leans on that when a power
// cut came in the middle of a roll.
type segmentMeta struct {
	base, end kafka.Offset
	size      int64
	times     segmentTimes
}

func encodeSegmentMeta(m segmentMeta) []byte {
	return appendFrame(nil, metaMagic, metaVersion, m.append)
}

func (m segmentMeta) append(b []byte) []byte {
	for _, v := range []int64{int64(m.base), int64(m.end), m.size, m.times.firstAppendMs, m.times.lastAppendMs, m.times.maxTimestamp} {
		b = appendI64(b, v)
	}
	return b
}

func decodeSegmentMeta(b []byte) (segmentMeta, error) { return decodeMetaAs(b, metaMagic, metaVersion) }

// decodeMetaAs reads the fields of a .meta from a file of this kind.
func decodeMetaAs(b []byte, magic string, version uint16) (segmentMeta, error) {
	f, err := openFile(b, magic, version)
	if err != nil {
		return segmentMeta{}, err
	}
	m := segmentMeta{base: kafka.Offset(f.i64()), end: kafka.Offset(f.i64()), size: f.i64()}
	m.times = segmentTimes{firstAppendMs: f.i64(), lastAppendMs: f.i64(), maxTimestamp: f.i64()}
	if !f.done() || m.base < 0 || m.end < m.base || m.size < 0 || m.times.firstAppendMs > m.times.lastAppendMs {
		return segmentMeta{}, fmt.Errorf("%w: a segment meta that contradicts itself", errBadFrame)
	}
	return m, nil
}

// readSegmentMeta returns the .meta of a segment if it is there, whole, and of this segment.
func readSegmentMeta(fsys sys.FS, s *segment) (segmentMeta, bool) {
	b, err := sys.ReadFile(fsys, s.beside(metaSuffix), stateFileMax)
	if err != nil {
		return segmentMeta{}, false
	}
	m, err := decodeSegmentMeta(b)
	return m, err == nil && m.base == s.base
}

// proves says that the segment was synced as it is now.
func (m segmentMeta) proves(s *segment) bool { return m.size == s.size }

func writeSegmentMeta(fsys sys.FS, s *segment, m segmentMeta) error {
	return sys.WriteFileAtomic(fsys, s.beside(metaSuffix), encodeSegmentMeta(m))
}
