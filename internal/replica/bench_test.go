package replica

import (
	"fmt"
	"testing"
	"time"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/record"
)

// sized makes a batch of records of 1 KiB.
func sized(records int) record.Batch {
	b := record.NewBuilder(0)
	value := make([]byte, 1000)
	for range records {
		b.Add(1, nil, value, nil)
	}
	return b.Build()
}

// BenchmarkAppend_AcksLeader is one publish of one batch, on the real file system.
func BenchmarkAppend_AcksLeader(b *testing.B) {
	for _, records := range []int{1, 16} {
		b.Run(fmt.Sprintf("records=%d", records), func(b *testing.B) {
			w := newDiskWorld(b)
			c := baseConfig()
			c.SegmentBytes = 1 << 30
			w.configs["bench"] = c
			tp := w.topic("bench", 1)
			items := []AppendItem{{TP: tp, Batch: sized(records)}}
			b.SetBytes(int64(len(items[0].Batch)))
			b.ReportAllocs()
			for b.Loop() {
				if r := w.host.Append(items, AcksLeader, 0).Results()[0]; r.Err != nil {
					b.Fatal(r.Err)
				}
			}
		})
	}
}

// BenchmarkAppend_AcksAll is one publish that waits for its sync, with 1 and with 64 in flight.
func BenchmarkAppend_AcksAll(b *testing.B) {
	for _, flight := range []int{1, 64} {
		b.Run(fmt.Sprintf("inflight=%d", flight), func(b *testing.B) {
			w := newDiskWorld(b)
			c := baseConfig()
			c.SegmentBytes = 1 << 30
			w.configs["bench"] = c
			tp := w.topic("bench", 1)
			items := []AppendItem{{TP: tp, Batch: sized(1)}}
			parked := make(chan *Produce, flight)
			b.ReportAllocs()
			for b.Loop() {
				if len(parked) == flight {
					p := <-parked
					<-p.Ready()
					if r := p.Results()[0]; r.Err != nil {
						b.Fatal(r.Err)
					}
				}
				parked <- w.host.Append(items, AcksAll, time.Minute)
			}
		})
	}
}

// BenchmarkRead is one fetch of up to 1 MiB of 16 KiB batches, from the page cache.
func BenchmarkRead(b *testing.B) {
	for _, size := range []int{16 << 10, 1 << 20} {
		b.Run(fmt.Sprintf("bytes=%d", size), func(b *testing.B) {
			w := newDiskWorld(b)
			c := baseConfig()
			c.SegmentBytes = 1 << 30
			w.configs["bench"] = c
			tp := w.topic("bench", 1)
			for range 256 {
				w.acked(tp, sized(16))
			}
			var buf FetchBuffer
			items := []FetchItem{at(tp, 0)}
			read := 0
			b.ReportAllocs()
			for b.Loop() {
				items[0].Offset = (items[0].Offset + 16) % (128 * 16)
				items[0].MaxBytes = size
				r := w.host.Read(items, FetchOptions{MaxBytes: size}, &buf)[0]
				if r.Err != nil || len(r.Records) == 0 {
					b.Fatalf("%+v", r)
				}
				read += len(r.Records)
			}
			buf.Release()
			b.SetBytes(int64(read / b.N))
		})
	}
}

// BenchmarkRead_Idle is a fetch of 100 partitions without records.
func BenchmarkRead_Idle(b *testing.B) {
	w := newDiskWorld(b)
	tp := w.topic("bench", 100)
	var items []FetchItem
	for n := range int32(100) {
		items = append(items, at(kafka.TopicPartition{Topic: tp.Topic, Partition: n}, 0))
	}
	var buf FetchBuffer
	b.ReportAllocs()
	for b.Loop() {
		w.host.Read(items, FetchOptions{MaxBytes: 1 << 20}, &buf)
	}
}
