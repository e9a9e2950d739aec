package storage

import (
	"errors"
	"sync"
	"testing"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/record"
	"strandline.dev/internal/sys/systest"
)

// TestConcurrent_AppendReadRetainSync runs what a broker does at once on one log: one writer, readers at their own pace, retention,
// sync-point files, the syncer. Each reader sees every record above the start once, in order. (For -race.)
func TestConcurrent_AppendReadRetainSync(t *testing.T) {
	const total = 600
	fsys := systest.NewFS(1)
	d, err := OpenDir(DirOptions{Machine: systest.Machine(fsys, nil, nil), Path: testRoot, Metrics: testMetrics})
	if err != nil {
		t.Fatal(err)
	}
	stored := make(chan struct{}, 1)
	o := smallLog
	o.OnStored = func(kafka.Offset, error) {
		select {
		case stored <- struct{}{}:
		default:
		}
	}
	l := openTestLog(t, d, o)
	var wg sync.WaitGroup
	done := make(chan struct{})
	wg.Go(func() {
		defer close(done)
		for i := range total {
			if _, err := l.Append(0, testBatch(uint64(i), 1, 50, int64(i)), testDay); err != nil {
				t.Error(err)
				return
			}
			if i%20 == 0 {
				<-stored
			}
		}
	})
	for range 2 {
		wg.Go(func() { readBehind(t, l, total) })
	}
	wg.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
			}
			if _, err := l.ApplyRetention(RetentionPolicy{Bytes: 5000}, l.StoredEnd(), testDay); err != nil {
				t.Error(err)
			}
			if err := d.SavePoints(nil); err != nil {
				t.Error(err)
			}
			l.SizeBetween(0, l.End())
			if _, _, err := l.MaxTimestamp(l.End()); err != nil {
				t.Error(err)
			}
		}
	})
	wg.Wait()
	if err := d.Close(CloseOptions{Clean: true}); err != nil {
		t.Fatal(err)
	}
}

func readBehind(t *testing.T, l *Log, total kafka.Offset) {
	var buf []byte
	for at := kafka.Offset(0); at < total; {
		got, err := l.Read(at, l.End(), ReadLimits{MaxBytes: 700, AtLeastOne: true}, buf[:0])
		if errors.Is(err, ErrOutOfRange) {
			at = max(at, l.Start())
			continue
		}
		if err != nil {
			t.Error(err)
			return
		}
		for rest := got; len(rest) > 0; {
			var b record.Batch
			b, rest, _ = record.Split(rest)
			if b.BaseOffset() != at {
				t.Errorf("batch at %d, want %d", b.BaseOffset(), at)
				return
			}
			at = b.NextOffset()
		}
		buf = got
	}
}
