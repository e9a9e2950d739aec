package storage

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/sys"
)

// DumpLog calls fn for every batch in a log's directory, in order, without opening the log: it takes no lock and changes nothing. A
// batch with a bad checksum is reported in DumpedBatch.Checksum; bytes that cannot be a batch end their segment with a last call
// whose Header is empty. An error from fn ends the dump and is returned.
func DumpLog(fsys sys.FS, dir string, fn func(DumpedBatch) error) error {
	segments, err := listSegments(fsys, dir)
	if err != nil {
		return err
	}
	for _, s := range segments {
		if err := dumpSegment(fsys, s, fn); err != nil {
			return err
		}
	}
	return nil
}

func listSegments(fsys sys.FS, dir string) ([]*segment, error) {
	names, err := fsys.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var segments []*segment
	for _, e := range names {
		if base, ok := parseOffsetName(e.Name, logSuffix); ok {
			s := newSegment(dir, base)
			s.size = e.Size
			segments = append(segments, s)
		}
	}
	if len(segments) == 0 {
		return nil, fmt.Errorf("%w: %s holds no segments", ErrNotFound, dir)
	}
	return segments, nil
}

func dumpSegment(fsys sys.FS, s *segment, fn func(DumpedBatch) error) error {
	f, err := fsys.OpenFile(s.path, os.O_RDONLY, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	w := newWalker(f, 0, s.size, kafka.NoOffset)
	defer w.release()
	for {
		h, pos, err := w.next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		d := DumpedBatch{File: s.path, Pos: pos, Header: h}
		if err == nil {
			var sum uint32
			if sum, err = w.checksum(pos+posAttributes, pos+h.Bytes); err == nil && sum != h.CRC {
				d.Checksum = &CorruptError{File: s.path, Pos: pos, Why: fmt.Sprintf("checksum %08x, want %08x", sum, h.CRC)}
			}
		}
		var bad *badBatch
		if errors.As(err, &bad) {
			d.Checksum = asCorrupt(s.path, err)
			return fn(d)
		}
		if err != nil {
			return err
		}
		if err := fn(d); err != nil {
			return err
		}
	}
}

// VerifyLog checks every batch, every offset and every cache file of a log's directory, offline. What it finds is in the report;
// an error is one of the file system's.
func VerifyLog(fsys sys.FS, dir string) (VerifyReport, error) {
	segments, err := listSegments(fsys, dir)
	if err != nil {
		return VerifyReport{}, err
	}
	r := VerifyReport{Segments: len(segments), Start: segments[0].base, End: segments[0].base}
	file := ""
	err = DumpLog(fsys, dir, func(d DumpedBatch) error {
		if d.File != file {
			file = d.File
			if base, _ := parseOffsetName(filepath.Base(file), logSuffix); base != r.End {
				r.problem(file, 0, fmt.Sprintf("the segment begins at offset %d, want %d", base, r.End))
				r.End = base
			}
		}
		if d.Checksum != nil {
			r.add(d.Checksum)
			if d.Header.Bytes == 0 {
				return nil
			}
		} else if d.Header.Base != r.End {
			r.problem(file, d.Pos, fmt.Sprintf("base offset %d, want %d", d.Header.Base, r.End))
		}
		r.Batches++
		r.Bytes += d.Header.Bytes
		r.End = d.Header.End
		return nil
	})
	if err != nil {
		return r, err
	}
	for i, s := range segments {
		r.verifyBeside(fsys, s, i == len(segments)-1)
	}
	return r, r.verifyCaches(fsys, dir)
}

func (r *VerifyReport) add(err error) {
	if len(r.Problems) < verifyProblemsMax {
		r.Problems = append(r.Problems, err)
	}
}

func (r *VerifyReport) problem(file string, pos int64, why string) {
	r.add(&CorruptError{File: file, Pos: pos, Why: why})
}

// verifyBeside checks a segment's .meta and .index. They may be missing; they may not be wrong. The last segment's index may stand
// for a part of it.
func (r *VerifyReport) verifyBeside(fsys sys.FS, s *segment, last bool) {
	check := func(suffix string, decode func([]byte) error) {
		b, err := sys.ReadFile(fsys, s.beside(suffix), cacheFileMax)
		if isMissing(err) {
			return
		}
		if err == nil {
			err = decode(b)
		}
		if err != nil {
			r.problem(s.beside(suffix), 0, err.Error())
		}
	}
	check(metaSuffix, func(b []byte) error {
		m, err := decodeSegmentMeta(b)
		if err == nil && (m.base != s.base || m.size != s.size) {
			err = fmt.Errorf("written for %d bytes from offset %d, the segment has %d from %d", m.size, m.base, s.size, s.base)
		}
		return err
	})
	check(indexSuffix, func(b []byte) error {
		_, ext, err := decodeIndex(b)
		if err == nil && (ext.base != s.base || ext.size > s.size || (ext.size < s.size && !last)) {
			err = fmt.Errorf("written for %d bytes from offset %d, the segment has %d from %d", ext.size, ext.base, s.size, s.base)
		}
		return err
	})
}

func (r *VerifyReport) verifyCaches(fsys sys.FS, dir string) error {
	names, err := fsys.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range names {
		name := filepath.Join(dir, e.Name)
		_, snapshot := parseOffsetName(e.Name, producersSuffix)
		if e.Name == damagedFile {
			if c, err := readDamage(fsys, dir); err == nil && c != nil {
				r.problem(name, 0, "the log was taken out of service: "+c.Error())
			}
			continue
		}
		if !snapshot && e.Name != epochsFile {
			continue
		}
		b, err := sys.ReadFile(fsys, name, cacheFileMax)
		if err == nil && snapshot {
			_, _, err = decodeProducers(b)
		} else if err == nil {
			_, _, err = decodeEpochs(b)
		}
		if err != nil {
			r.problem(name, 0, err.Error())
		}
	}
	return nil
}
