package record

import (
	"bytes"
	"sync"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/snappy/xerial"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
)

// Compress appends src to dst as one frame of the codec: gzip, snappy in Java's framing, lz4 with independent 64 KiB blocks, zstd.
// These are the forms that Kafka's own clients write, so every client reads them. Error: ErrCodec.
func Compress(codec Codec, dst, src []byte) ([]byte, error) {
	switch codec {
	case None:
		return append(dst, src...), nil
	case Gzip:
		w := gzipWriters.Get().(*gzip.Writer)
		defer gzipWriters.Put(w)
		out := bytes.NewBuffer(dst)
		w.Reset(out)
		return finishWriter(out, w, src)
	case Snappy:
		return append(dst, xerial.Encode(nil, src)...), nil
	case LZ4:
		w := lz4Writers.Get().(*lz4.Writer)
		defer lz4Writers.Put(w)
		out := bytes.NewBuffer(dst)
		w.Reset(out)
		return finishWriter(out, w, src)
	case Zstd:
		w := zstdEncoders.Get().(*zstd.Encoder)
		defer zstdEncoders.Put(w)
		return w.EncodeAll(src, dst), nil
	}
	return dst, ErrCodec
}

type writeCloser interface {
	Write(p []byte) (int, error)
	Close() error
}

func finishWriter(out *bytes.Buffer, w writeCloser, src []byte) ([]byte, error) {
	if _, err := w.Write(src); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

var gzipWriters = sync.Pool{New: func() any { return gzip.NewWriter(nil) }}

var lz4Writers = sync.Pool{New: func() any {
	w := lz4.NewWriter(nil)
	must(w.Apply(lz4.BlockSizeOption(lz4.Block64Kb), lz4.ChecksumOption(false), lz4.ConcurrencyOption(1)))
	return w
}}

var zstdEncoders = sync.Pool{New: func() any {
	w, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(zstdEncodeWindow), zstd.WithEncoderCRC(false))
	must(err)
	return w
}}

// must stops on an error that only wrong constants of this file can cause.
func must(err error) {
	if err != nil {
		panic("record: " + err.Error())
	}
}
