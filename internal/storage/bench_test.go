package storage

import (
	"testing"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/sys"
)

// newBenchLog is a log on the real file system that is never synced: the cost of the code and of the page cache.
func newBenchLog(b *testing.B) *Log {
	d, err := openDir(DirOptions{Machine: sys.Real(), Path: b.TempDir(), Metrics: testMetrics})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { d.Close(CloseOptions{}) })
	l, err := d.OpenLog(testTP, LogOptions{})
	if err != nil {
		b.Fatal(err)
	}
	return l
}

func BenchmarkAppend16KiB(b *testing.B) {
	l := newBenchLog(b)
	batch := testBatch(1, 16, 1000, testDay.UnixMilli())
	batch.SetProducer(1, 0, 0, false)
	b.SetBytes(int64(len(batch)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := l.Append(1, batch, testDay); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkAppend1KiB(b *testing.B) {
	l := newBenchLog(b)
	batch := testBatch(1, 1, 1000, testDay.UnixMilli())
	b.SetBytes(int64(len(batch)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := l.Append(1, batch, testDay); err != nil {
			b.Fatal(err)
		}
	}
}

func benchmarkRead(b *testing.B, chunk int) {
	l := newBenchLog(b)
	batch := testBatch(1, 16, 1000, testDay.UnixMilli())
	for range 4096 {
		if _, err := l.Append(1, batch, testDay); err != nil {
			b.Fatal(err)
		}
	}
	buf := make([]byte, 0, chunk)
	at := kafka.Offset(0)
	b.SetBytes(int64(chunk))
	b.ReportAllocs()
	for b.Loop() {
		got, err := l.Read(at, l.End(), ReadLimits{MaxBytes: chunk, AtLeastOne: true}, buf[:0])
		if err != nil || len(got) == 0 {
			b.Fatal(len(got), err)
		}
		if at += kafka.Offset(16 * (len(got) / len(batch))); at >= l.End() {
			at = 0
		}
	}
}

func BenchmarkRead1MiB(b *testing.B)  { benchmarkRead(b, 1<<20) }
func BenchmarkRead16KiB(b *testing.B) { benchmarkRead(b, 17<<10) }

func BenchmarkCheckSequence(b *testing.B) {
	l := newBenchLog(b)
	for id := range kafka.ProducerID(1000) {
		if _, err := l.Append(1, producerBatch(id, 0, 0, 1), testDay); err != nil {
			b.Fatal(err)
		}
	}
	batch := producerBatch(500, 0, 1, 1)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := l.CheckSequence(batch, testDay); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkOpenClean opens logs as a clean restart does.
func BenchmarkOpenClean(b *testing.B) {
	machine, path := sys.Real(), b.TempDir()
	const logs = 100
	open := func() *Dir {
		d, err := openDir(DirOptions{Machine: machine, Path: path, Metrics: testMetrics})
		if err != nil {
			b.Fatal(err)
		}
		for i := range logs {
			l, err := d.OpenLog(kafka.TopicPartition{Topic: kafka.TopicID{1}, Partition: int32(i)}, LogOptions{})
			if err != nil {
				b.Fatal(err)
			}
			if l.End() == 0 {
				fill(b, l, 100)
			}
		}
		return d
	}
	b.ReportAllocs()
	for b.Loop() {
		b.StopTimer()
		if err := open().Close(CloseOptions{Clean: true}); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
		d := open()
		b.StopTimer()
		if err := d.Close(CloseOptions{Clean: true}); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
	b.ReportMetric(logs, "logs/op")
}
