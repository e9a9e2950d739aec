package record

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
)

// testPayloads are inputs of every size class of the streams.
func testPayloads() map[string][]byte {
	rng := rand.New(rand.NewPCG(1, 2))
	random := make([]byte, 300_000)
	for i := range random {
		random[i] = byte(rng.Uint32())
	}
	text := make([]byte, 0, 5<<20)
	for len(text) < 5<<20 {
		text = append(text, "the line the highest tide leaves on the shore "[:1+rng.IntN(46)]...)
	}
	return map[string][]byte{
		"empty": {}, "one": {7}, "text": text[:10_000], "random": random, "large text": text,
		"zeros": make([]byte, 3<<20),
	}
}

func TestCodecsRoundTrip(t *testing.T) {
	for name, src := range testPayloads() {
		for _, codec := range allCodecs {
			compressed := mustCompress(t, codec, src)
			got, err := Decompress(codec, []byte("before"), compressed, len(src)+1)
			if err != nil || !bytes.Equal(got, append([]byte("before"), src...)) {
				t.Errorf("%v %s: %d bytes, %v", codec, name, len(got)-6, err)
			}
			got, err = Decompress(codec, nil, compressed, max(len(src)-1, 1))
			if len(src) > 1 && (!errors.Is(err, ErrTooLarge) || len(got) != 0) {
				t.Errorf("%v %s one byte over the limit: %d bytes, %v", codec, name, len(got), err)
			}
		}
	}
}

// frames are the forms that foreign clients write, beside our own.
func frames(t testing.TB, src []byte) map[string]struct {
	codec Codec
	bytes []byte
} {
	t.Helper()
	type frame = struct {
		codec Codec
		bytes []byte
	}
	out := map[string]frame{}
	for _, codec := range allCodecs[1:] {
		out["own "+codec.String()] = frame{codec, mustCompress(t, codec, src)}
	}
	out["bare snappy"] = frame{Snappy, snappy.Encode(nil, src)}
	lz := func(opts ...lz4.Option) []byte {
		var b bytes.Buffer
		w := lz4.NewWriter(&b)
		if err := w.Apply(opts...); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(src); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	out["lz4 with all checksums and size"] = frame{LZ4, lz(lz4.BlockChecksumOption(true), lz4.ChecksumOption(true), lz4.SizeOption(uint64(len(src))))}
	out["lz4 with 4 MiB blocks"] = frame{LZ4, lz(lz4.BlockSizeOption(lz4.Block4Mb))}
	zs := func(streaming bool, opts ...zstd.EOption) []byte {
		var b bytes.Buffer
		w, err := zstd.NewWriter(&b, opts...)
		if err != nil {
			t.Fatal(err)
		}
		if !streaming {
			return w.EncodeAll(src, nil)
		}
		// Two writes with a flush between them keep the content size out of the frame, as Java's streams do.
		for _, part := range [][]byte{src[:len(src)/2], src[len(src)/2:]} {
			if _, err := w.Write(part); err != nil {
				t.Fatal(err)
			}
			if err := w.Flush(); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	out["zstd stream"] = frame{Zstd, zs(true, zstd.WithEncoderConcurrency(1))}
	out["zstd stream with a window of 32 MiB"] = frame{Zstd, zs(true, zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(32<<20))}
	out["zstd single segment"] = frame{Zstd, zs(false, zstd.WithSingleSegment(true))}
	return out
}

func TestForeignFramesAreRead(t *testing.T) {
	for name, src := range testPayloads() {
		if len(src) == 0 {
			continue
		}
		for form, f := range frames(t, src) {
			got, err := Decompress(f.codec, nil, f.bytes, 32<<20)
			if err != nil || !bytes.Equal(got, src) {
				t.Errorf("%s of %s: %d of %d bytes, %v", form, name, len(got), len(src), err)
			}
		}
	}
}

func TestK30_DamagedFramesAreCorrupt(t *testing.T) {
	src := newTestBatch(t, None, 30).Payload()
	for form, f := range frames(t, src) {
		damaged := map[string][]byte{
			"nothing":          {},
			"two frames":       append(bytes.Clone(f.bytes), f.bytes...),
			"trailing byte":    append(bytes.Clone(f.bytes), 0),
			"trailing garbage": append(bytes.Clone(f.bytes), "garbage"...),
		}
		for n := range len(f.bytes) {
			damaged["cut"] = f.bytes[:n]
			for what, b := range damaged {
				got, err := Decompress(f.codec, nil, b, 1<<20)
				if form == "own snappy" && err == nil && what == "cut" && len(got) < len(src) {
					// Java's framing has no end mark: a cut between two blocks shows only in the record count.
					continue
				}
				if !errors.Is(err, ErrCompressed) {
					t.Fatalf("%s, %s at %d of %d: %d bytes, %v", form, what, n, len(f.bytes), len(got), err)
				}
			}
			if n > 0 {
				delete(damaged, "two frames")
				delete(damaged, "trailing byte")
			}
		}
		for what, b := range map[string][]byte{
			"two frames": append(bytes.Clone(f.bytes), f.bytes...), "trailing": append(bytes.Clone(f.bytes), 1), "cut": f.bytes[:len(f.bytes)-1],
		} {
			batch := newTestPayload(t, f.codec, 30, b)
			err := validate(batch, testRules())
			var e *InvalidError
			if !errors.As(err, &e) || e.Kind != Corrupt {
				t.Errorf("batch with %s, %s: %v", form, what, err)
			}
		}
	}
}

func TestSkippableFramesAreRefused(t *testing.T) {
	src := []byte("payload")
	skip := []byte{0x50, 0x2a, 0x4d, 0x18, 4, 0, 0, 0, 'x', 'x', 'x', 'x'}
	for _, codec := range []Codec{Zstd, LZ4} {
		f := mustCompress(t, codec, src)
		for what, b := range map[string][]byte{
			"before": append(bytes.Clone(skip), f...), "behind": append(bytes.Clone(f), skip...), "alone": skip,
		} {
			if _, err := Decompress(codec, nil, b, 1<<20); !errors.Is(err, ErrCompressed) {
				t.Errorf("%v: skippable frame %s: %v", codec, what, err)
			}
		}
	}
}

// A batch that only our library could read would stop every consumer of the partition.
func TestSnappyExtensionIsRefused(t *testing.T) {
	src := bytes.Repeat([]byte("a b c d e f g h i j k l m n o p "), 64)
	for i := range src {
		if i%37 == 0 {
			src[i] = byte(i)
		}
	}
	for _, b := range [][]byte{s2.EncodeBetter(nil, src), s2.Encode(nil, src), {4, 0, 'a', 1, 0}} {
		if _, err := snappy.DecodeStrict(nil, b); err == nil {
			continue // this one happens to be plain snappy
		}
		if _, err := Decompress(Snappy, nil, b, 1<<20); !errors.Is(err, ErrCompressed) {
			t.Errorf("accepted an s2 block: %v", err)
		}
	}
}

// bombs are small batches that decompress to 64 MiB, or say so.
func bombs(t testing.TB) map[string]Batch {
	t.Helper()
	const size = 64 << 20
	chunk := make([]byte, 1<<20)
	out := map[string]Batch{}
	var gz bytes.Buffer
	gw, _ := gzip.NewWriterLevel(&gz, gzip.BestCompression)
	var lz bytes.Buffer
	lw := lz4.NewWriter(&lz)
	var zs bytes.Buffer
	zw, err := zstd.NewWriter(&zs, zstd.WithEncoderConcurrency(1))
	if err != nil {
		t.Fatal(err)
	}
	for range size / len(chunk) {
		for _, w := range []writeCloser{gw, lw, zw} {
			if _, err := w.Write(chunk); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, w := range []writeCloser{gw, lw, zw} {
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	}
	out["gzip"] = newTestPayload(t, Gzip, 1, gz.Bytes())
	out["lz4"] = newTestPayload(t, LZ4, 1, lz.Bytes())
	out["zstd"] = newTestPayload(t, Zstd, 1, zs.Bytes())
	out["zstd that declares a 2 GiB window"] = newTestPayload(t, Zstd, 1, []byte{0x28, 0xb5, 0x2f, 0xfd, 0, 21 << 3, 1, 0, 0})
	out["zstd that declares 1 GiB in a single segment"] = newTestPayload(t, Zstd, 1,
		[]byte{0x28, 0xb5, 0x2f, 0xfd, 0xa0, 0, 0, 0, 0x40, 1, 0, 0})
	out["snappy that declares 4 GiB"] = newTestPayload(t, Snappy, 1, []byte{0xff, 0xff, 0xff, 0xff, 0x0f, 0, 'a'})
	xerial := append([]byte(xerialMagic), 0, 0, 0, 1, 0, 0, 0, 1)
	inner := snappy.Encode(nil, chunk)
	for range size / len(chunk) {
		xerial = binary.BigEndian.AppendUint32(xerial, uint32(len(inner)))
		xerial = append(xerial, inner...)
	}
	out["snappy blocks"] = newTestPayload(t, Snappy, 1, xerial)
	return out
}

// The bombs hold zeros, which are records of length 0: Validate refuses the first one. So they also go through Decompress, which has
// nothing but the cap to stop it.
func TestC088_BombsAreStoppedAtTheCap(t *testing.T) {
	for name, b := range bombs(t) {
		r := testRules()
		r.MaxBatchBytes = 64 << 20
		r.MaxDecompressedBytes = 8 << 20
		if len(b) > 64<<20 {
			t.Fatalf("%s: %d bytes are no bomb", name, len(b))
		}
		for _, read := range []struct {
			by string
			fn func() error
		}{
			{"Validate", func() error { return validate(b, r) }},
			{"Decompress", func() error { _, err := Decompress(b.Codec(), nil, b.Payload(), 8<<20); return err }},
			{"Records", func() error {
				for _, err := range b.Records(8 << 20) {
					if err != nil {
						return err
					}
				}
				return nil
			}},
			{"FirstAt", func() error { _, _, _, err := b.FirstAt(1<<60, 8<<20); return err }},
			{"Recompress", func() error { _, err := Recompress(b, None, 8<<20); return err }},
		} {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			err := read.fn()
			runtime.ReadMemStats(&after)
			if err == nil {
				t.Errorf("%s by %s: accepted", name, read.by)
			}
			if read.by == "Decompress" && !errors.Is(err, ErrTooLarge) && !errors.Is(err, ErrCompressed) {
				t.Errorf("%s: %v", name, err)
			}
			if n := after.TotalAlloc - before.TotalAlloc; n > 48<<20 {
				t.Errorf("%s by %s: allocated %d MiB", name, read.by, n>>20)
			}
		}
	}
}

// A record whose value is larger than the cap makes Validate itself read up to the cap.
func TestC088_ValidateReadsNoFurtherThanTheCap(t *testing.T) {
	const size = 24 << 20
	payload := rawRecord(0, 0, -1, size, make([]byte, size), 0)
	for _, codec := range allCodecs[1:] {
		b := newTestPayload(t, codec, 1, mustCompress(t, codec, payload))
		r := testRules()
		r.MaxBatchBytes = 128 << 20
		r.MaxRecordBytes = 0
		r.MaxDecompressedBytes = 8 << 20
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		err := validate(b, r)
		runtime.ReadMemStats(&after)
		// The record's length alone is over the cap, which is known before its bytes are read.
		checkInvalid(t, err, BatchTooLarge, -1)
		if n := after.TotalAlloc - before.TotalAlloc; n > 16<<20 {
			t.Errorf("%v: allocated %d MiB", codec, n>>20)
		}
		r.MaxDecompressedBytes = size + 1<<10
		r.MaxRecordBytes = 1 << 20
		checkInvalid(t, validate(b, r), RecordTooLarge, 0)
		r.MaxRecordBytes = size
		checkInvalid(t, validate(b, r), 0, 0)
	}
}

func TestDecompressedLimit(t *testing.T) {
	for _, c := range []struct{ batch, want int }{{0, 32 << 20}, {1 << 20, 32 << 20}, {4 << 20, 64 << 20}, {1 << 62, maxBatchSize / 16 * 16}} {
		if got := DecompressedLimit(c.batch); got != c.want {
			t.Errorf("limit for %d is %d, want %d", c.batch, got, c.want)
		}
	}
}

func TestParseCodec(t *testing.T) {
	for _, c := range allCodecs {
		if got, err := ParseCodec(c.String()); err != nil || got != c {
			t.Errorf("%v: %v, %v", c, got, err)
		}
	}
	if _, err := ParseCodec("brotli"); !errors.Is(err, ErrCodec) {
		t.Error(err)
	}
}
