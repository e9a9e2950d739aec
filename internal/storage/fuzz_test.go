package storage

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/sys/systest"
)

// fuzzFrame feeds a decoder arbitrary files, and arbitrary payloads behind a good checksum, which fuzzing would not find. What a
// decoder accepts must survive being written and read again.
func fuzzFrame(f *testing.F, magic string, good []byte, again func([]byte) ([]byte, bool)) {
	f.Add(good)
	f.Add([]byte(nil))
	f.Add(make([]byte, len(good)))
	f.Add(good[frameHeader : len(good)-frameTrailer])
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, file := range [][]byte{b, appendFrame(nil, magic, 1, func(dst []byte) []byte { return append(dst, b...) })} {
			first, ok := again(file)
			if !ok {
				continue
			}
			second, ok := again(first)
			if !ok || !bytes.Equal(first, second) {
				t.Fatalf("accepted %x, wrote %x, then %x, %t", file, first, second, ok)
			}
		}
	})
}

func FuzzIndex(f *testing.F) {
	fuzzFrame(f, indexMagic, goldenIndex(), func(b []byte) ([]byte, bool) {
		x, ext, err := decodeIndex(b)
		if err != nil {
			return nil, false
		}
		for o := kafka.Offset(-1); o < 3; o++ { // lookups stay inside
			if x.floor(ext.base+o) > ext.size {
				panic("floor behind the segment")
			}
			x.atTime(int64(o))
			x.maxBelow(ext.base + o)
		}
		return encodeIndex(x, ext.base, ext.end, ext.size), true
	})
}

func FuzzProducers(f *testing.F) {
	fuzzFrame(f, producersMagic, goldenProducers(), func(b []byte) ([]byte, bool) {
		p, at, err := decodeProducers(b)
		if err != nil {
			return nil, false
		}
		return encodeProducers(&p, at), true
	})
}

func FuzzEpochs(f *testing.F) {
	fuzzFrame(f, epochsMagic, goldenEpochs(), func(b []byte) ([]byte, bool) {
		es, covered, err := decodeEpochs(b)
		if err != nil {
			return nil, false
		}
		es.at(3)
		es.endFor(2, covered)
		return encodeEpochs(es, covered), true
	})
}

func FuzzSyncPoint(f *testing.F) {
	fuzzFrame(f, syncPointMagic, goldenSyncPoint(), func(b []byte) ([]byte, bool) {
		s, err := decodeSyncPoints(b)
		if err != nil {
			return nil, false
		}
		return encodeSyncPoints(s), true
	})
}

func FuzzSegmentMeta(f *testing.F) {
	fuzzFrame(f, metaMagic, goldenSegmentMeta(), func(b []byte) ([]byte, bool) {
		m, err := decodeSegmentMeta(b)
		return encodeSegmentMeta(m), err == nil
	})
}

func FuzzClean(f *testing.F) {
	fuzzFrame(f, cleanMagic, goldenClean(), func(b []byte) ([]byte, bool) {
		m, err := decodeClean(b)
		return encodeClean(m), err == nil
	})
}

func FuzzCompactionState(f *testing.F) {
	fuzzFrame(f, compactedMagic, encodeCleanState(goldenCleanState), func(b []byte) ([]byte, bool) {
		c, err := decodeCleanState(b)
		return encodeCleanState(c), err == nil
	})
}

func FuzzCompacting(f *testing.F) {
	fuzzFrame(f, compactingMagic, goldenCompacting(), func(b []byte) ([]byte, bool) {
		m, err := decodeCompacting(b)
		return encodeCompacting(m), err == nil
	})
}

func FuzzResetting(f *testing.F) {
	fuzzFrame(f, resettingMagic, encodeResetting(77), func(b []byte) ([]byte, bool) {
		start, err := decodeResetting(b)
		return encodeResetting(start), err == nil
	})
}

func FuzzStart(f *testing.F) {
	f.Add(goldenStart())
	f.Fuzz(func(t *testing.T, b []byte) {
		if s, slot, ok := decodeStart(b); ok && (slot > 1 || len(s.bootID) > bootIDMax) {
			t.Fatalf("slot %d, boot id of %d bytes", slot, len(s.bootID))
		}
	})
}

func FuzzIdentity(f *testing.F) {
	f.Add(goldenIdentity())
	f.Fuzz(func(t *testing.T, b []byte) {
		id, err := decodeIdentity(b)
		if err != nil {
			return
		}
		if again, err := decodeIdentity(encodeIdentity(id)); err != nil || again != id {
			t.Fatalf("%+v, then %+v, %v", id, again, err)
		}
	})
}

// FuzzSegment feeds a whole segment file to the walk, the search behind damage, and a recovery. Nothing panics, the walk never
// leaves the file, and a log that is opened serves only what is in it.
func FuzzSegment(f *testing.F) {
	var good []byte
	for i := range 3 {
		b := testBatch(uint64(i), 2, 30, 0)
		b.SetBaseOffset(kafka.Offset(2 * i))
		good = append(good, b...)
	}
	f.Add(good)
	f.Add(good[:len(good)-5])
	f.Add(append(bytes.Clone(good), make([]byte, 100)...))
	f.Add(append(bytes.Clone(good[:20]), good...))
	f.Fuzz(func(t *testing.T, b []byte) {
		w := newWalker(bytes.NewReader(b), 0, int64(len(b)), kafka.NoOffset)
		w.verify = true
		for {
			_, pos, err := w.next()
			if pos > int64(len(b)) || w.pos > int64(len(b)) {
				t.Fatalf("walked to %d of %d", w.pos, len(b))
			}
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				if _, _, err := validBatchBehind(bytes.NewReader(b), pos, int64(len(b)), 0); err != nil {
					t.Fatal(err)
				}
				break
			}
		}
		w.release()
		fsys := systest.NewFS(1)
		d := openTestDir(t, fsys)
		openTestLog(t, d, smallLog)
		writeFile(t, fsys, logFile("00000000000000000000.log"), b)
		l := openTestLog(t, openTestDir(t, fsys.Crash(systest.KeepAll)), smallLog)
		got, err := readAll(l, l.End(), 100)
		if err != nil || !strings.HasPrefix(string(b), string(got)) {
			t.Fatalf("read %d bytes of [%d, %d): %v", len(got), l.Start(), l.End(), err)
		}
	})
}
