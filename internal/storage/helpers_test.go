package storage

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/metrics"
	"strandline.dev/internal/record"
	"strandline.dev/internal/sys/sealed"
	"strandline.dev/internal/sys/systest"
)

const testRoot = "/data"

var (
	testTP = kafka.TopicPartition{Topic: kafka.TopicID{1, 2, 3}, Partition: 7}
	// testDay is a fixed append time: nothing here depends on the real clock.
	testDay = time.UnixMilli(1_700_000_000_000)
	// testMetrics is shared: a registry is slow to build, and tests that count make their own.
	testMetrics = metrics.New().Storage
)

// dropTestLog drops the one partition of most tests.
func dropTestLog(d *Dir) error { return d.DropLogs([]kafka.TopicPartition{testTP})[testTP] }

// newTestDir opens a directory without goroutines, and commits its boot id as a registration would.
func newTestDir(t testing.TB, fsys *systest.FS) *Dir {
	t.Helper()
	d := openTestDir(t, fsys)
	if err := d.CommitBootID(); err != nil {
		t.Fatal(err)
	}
	return d
}

// openTestDir is newTestDir before the registration.
func openTestDir(t testing.TB, fsys *systest.FS) *Dir {
	t.Helper()
	d, err := tryTestDir(fsys)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// testKeys, if set, has test directories encrypted.
var testKeys sealed.Keys

func tryTestDir(fsys *systest.FS) (*Dir, error) {
	machine := systest.Machine(fsys, nil, systest.NewWall(testDay))
	if testKeys != nil {
		machine.FS = sealed.New(fsys, testKeys)
	}
	return openDir(DirOptions{Machine: machine, Path: testRoot, Metrics: testMetrics})
}

func openTestLog(t testing.TB, d *Dir, o LogOptions) *Log {
	t.Helper()
	l, err := d.OpenLog(testTP, o)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// smallLog rolls often and indexes every batch.
var smallLog = LogOptions{SegmentBytes: 1000, IndexInterval: 1}

// testBatch has count records with values derived from seed and timestamps ts, ts+1, ...
func testBatch(seed uint64, count, size int, ts int64) record.Batch {
	bu := record.NewBuilder(record.None)
	for i := range count {
		v := bytes.Repeat([]byte{byte(seed), byte(seed >> 8), byte(i)}, size/3+1)[:size]
		bu.Add(ts+int64(i), fmt.Appendf(nil, "k%d", seed), v, nil)
	}
	return bu.Build()
}

func producerBatch(id kafka.ProducerID, epoch kafka.ProducerEpoch, sequence int32, count int) record.Batch {
	b := testBatch(uint64(id), count, 20, testDay.UnixMilli())
	b.SetProducer(id, epoch, sequence, false)
	return b
}

func mustAppend(t testing.TB, l *Log, epoch kafka.LeaderEpoch, b record.Batch) Appended {
	t.Helper()
	a, err := l.Append(epoch, b, testDay)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// fill appends n batches of one record with 100 bytes.
func fill(t testing.TB, l *Log, n int) {
	t.Helper()
	for i := range n {
		mustAppend(t, l, 0, testBatch(uint64(i), 1, 100, testDay.UnixMilli()+int64(i)))
	}
}

// readAll reads the log from its start to `to` and checks that what it gets is dense.
func readAll(l *Log, to kafka.Offset, chunk int) ([]byte, error) {
	var out []byte
	from := l.Start()
	for from < to {
		before := len(out)
		var err error
		out, err = l.Read(from, to, ReadLimits{MaxBytes: chunk, AtLeastOne: true}, out)
		if err != nil {
			return out, err
		}
		if len(out) == before {
			return out, fmt.Errorf("nothing read at %d of [%d, %d)", from, l.Start(), to)
		}
		for rest := out[before:]; len(rest) > 0; {
			var b record.Batch
			if b, rest, err = record.Split(rest); err != nil {
				return out, err
			}
			if b.BaseOffset() > from || b.NextOffset() <= from {
				return out, fmt.Errorf("batch [%d, %d), want %d", b.BaseOffset(), b.NextOffset(), from)
			}
			from = b.NextOffset()
		}
	}
	return out, nil
}

func logFile(name string) string {
	return filepath.Join(testRoot, topicsDir, testTP.String(), name)
}

func dirFile(name string) string { return filepath.Join(testRoot, name) }

// closeClean stops a directory as SIGTERM does.
func closeClean(t testing.TB, d *Dir) {
	t.Helper()
	if err := d.Close(CloseOptions{Clean: true, BrokerEpoch: 5}); err != nil {
		t.Fatal(err)
	}
}

func wantErr(t testing.TB, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Fatalf("error %v, want %v", err, want)
	}
}

func isCorrupt(err error) bool {
	var c *CorruptError
	return errors.As(err, &c)
}
