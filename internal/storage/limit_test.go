package storage

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/metrics"
	"strandline.dev/internal/sys/systest"
)

// newLimitedDir opens a directory with disk limits, without goroutines.
func newLimitedDir(t testing.TB, fsys *systest.FS, bytes, percent int64) *Dir {
	t.Helper()
	d, err := openDir(DirOptions{
		Machine: systest.Machine(fsys, nil, systest.NewWall(testDay)), Path: testRoot,
		Metrics: metrics.New().Storage, LimitBytes: bytes, LimitPercent: percent,
	})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// measure measures now, however long the last measuring took.
func measure(d *Dir) {
	d.limit.mu.Lock()
	d.limit.mu.walk = 0
	d.limit.mu.Unlock()
	d.MeasureRoom()
}

// otherTP is a partition beside testTP.
var otherTP = kafka.TopicPartition{Topic: kafka.TopicID{7}, Partition: 3}

// fillToLimit appends until the limit refuses, and returns the refusal.
func fillToLimit(t testing.TB, l *Log) error {
	t.Helper()
	for i := range uint64(1000) {
		if _, err := l.Append(0, testBatch(i, 1, 64<<10, 0), testDay); err != nil {
			return err
		}
	}
	t.Fatal("nothing was refused")
	return nil
}

// TestR89_RefusedByNameAtTheLimit: whichever limit is reached first, publishes stop there and never above it, with an error that names node,
// used and limit; essential logs go on; what is appended is counted without measuring; room that is freed is noticed by the next measuring
// (R90), and not before there is some.
func TestR89_RefusedByNameAtTheLimit(t *testing.T) {
	for _, c := range []struct {
		name           string
		bytes, percent int64
		free           int64
		want           string // the bound in the error
		atMost         int64
	}{
		{"bytes", 4 << 20, 0, -1, "may have 4194304 (disk.limit.bytes)", 4 << 20},
		{"percent", 0, 50, 16 << 20, "(disk.limit.percent)", 8 << 20},
		{"both, bytes first", 4 << 20, 50, 16 << 20, "may have 4194304 (disk.limit.bytes)", 4 << 20},
		{"both, percent first", 12 << 20, 50, 16 << 20, "(disk.limit.percent)", 8 << 20},
	} {
		t.Run(c.name, func(t *testing.T) {
			fsys := systest.NewFS(1)
			fsys.SetFree(c.free)
			d := newLimitedDir(t, fsys, c.bytes, c.percent)
			l := openTestLog(t, d, oneMeg)
			err := fillToLimit(t, l)
			limited := (*LimitError)(nil)
			if !errors.Is(err, ErrNoSpace) || !errors.As(err, &limited) || !strings.Contains(err.Error(), c.want) ||
				!strings.Contains(err.Error(), "node -1 has ") || !strings.Contains(err.Error(), testRoot) {
				t.Fatalf("refused with %v", err)
			}
			held, err := d.heldBytes()
			if err != nil || held > c.atMost || held < c.atMost-256<<10 {
				t.Fatalf("%d bytes are held of %d, %v", held, c.atMost, err)
			}
			if d.Refusal() == nil || testutil.ToFloat64(d.metrics.PublishesRefused) != 1 {
				t.Errorf("refusal %v, metric %v", d.Refusal(), testutil.ToFloat64(d.metrics.PublishesRefused))
			}
			e, err := d.OpenLog(otherTP, LogOptions{Essential: true})
			if err != nil {
				t.Fatal(err)
			}
			mustAppend(t, e, 0, testBatch(1, 1, 64<<10, 0))
			if err := l.AdvanceStart(1); err != nil { // frees nothing
				t.Fatal(err)
			}
			wantRefused(t, d, l, true)
			if err := l.AdvanceStart(l.End()); err != nil {
				t.Fatal(err)
			}
			wantRefused(t, d, l, false)
		})
	}
}

// TestR89_HysteresisAtTheLimit: a limit that was reached is left only with some room below it.
func TestR89_HysteresisAtTheLimit(t *testing.T) {
	fsys := systest.NewFS(1)
	d := newLimitedDir(t, fsys, 4<<20, 0)
	l := openTestLog(t, d, oneMeg)
	spare := filepath.Join(testRoot, topicsDir, "spare")
	f, err := fsys.OpenFile(spare, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	const size = 256 << 10
	if _, err := f.WriteAt(make([]byte, size), 0); err != nil {
		t.Fatal(err)
	}
	measure(d)
	fillToLimit(t, l) //nolint:errcheck // the state, not the error
	room, err := d.Room()
	if err != nil {
		t.Fatal(err)
	}
	resume := room.resume()
	if resume != 4<<20/limitFraction || room.room() >= resume {
		t.Fatalf("resumes with %d bytes of room, %d are there", resume, room.room())
	}
	if err := f.Truncate(size - (resume - room.room()) + 1); err != nil {
		t.Fatal(err)
	}
	wantRefused(t, d, l, true)
	if err := f.Truncate(size - (resume - room.room())); err != nil {
		t.Fatal(err)
	}
	wantRefused(t, d, l, false)
}

// TestR89_StartsAboveItsLimit: a directory that holds more than a new limit allows opens, reads, refuses from the first append on, and says so
// without one; what counts is files: also after kill -9, and those of the trash and in quarantine.
func TestR89_StartsAboveItsLimit(t *testing.T) {
	fsys := systest.NewFS(1)
	d := newTestDir(t, fsys)
	l := openTestLog(t, d, oneMeg)
	for i := range uint64(40) {
		mustAppend(t, l, 0, testBatch(i, 1, 64<<10, 0))
	}
	other, err := d.OpenLog(otherTP, oneMeg)
	if err != nil {
		t.Fatal(err)
	}
	mustAppend(t, other, 0, testBatch(1, 1, 64<<10, 0))
	d.syncer.runAll()
	end := l.End()

	next := fsys.Clone(systest.KillProcess)
	d = newLimitedDir(t, next, 1<<20, 0)
	if testutil.ToFloat64(d.metrics.PublishesRefused) != 1 {
		t.Error("the metric does not say so at the start")
	}
	l = openTestLog(t, d, oneMeg)
	wantRefused(t, d, l, true)
	if _, err := readAll(l, end, 1<<20); err != nil {
		t.Fatal(err)
	}
	before, _ := d.heldBytes()
	if err := d.QuarantineLog(otherTP); err != nil {
		t.Fatal(err)
	}
	if after, _ := d.heldBytes(); after < before || after > before+4096 {
		t.Errorf("%d bytes held, %d with a log in quarantine", before, after)
	}
	if err := l.AdvanceStart(end); err != nil {
		t.Fatal(err)
	}
	wantRefused(t, d, l, false)
}

// TestR89_SlowedBeforeTheLimit: nothing is slowed until the last part before the limit; from there on the more the less room is left.
func TestR89_SlowedBeforeTheLimit(t *testing.T) {
	fsys := systest.NewFS(1)
	d := newLimitedDir(t, fsys, 8<<20, 0)
	l := openTestLog(t, d, oneMeg)
	last := time.Duration(0)
	slowed := 0
	for i := range uint64(1000) {
		if _, err := l.Append(0, testBatch(i, 1, 16<<10, 0), testDay); err != nil {
			break
		}
		room, err := d.Room()
		if err != nil {
			t.Fatal(err)
		}
		slow := d.Slowdown()
		if near := room.room() < 8<<20/slowFraction; (slow > 0) != near || slow < last || slow > slowdownMax {
			t.Fatalf("slowed by %v after %v, with %d bytes of room", slow, last, room.room())
		}
		if last = slow; slow > 0 {
			slowed++
		}
	}
	if last < slowdownMax*9/10 || slowed < 20 {
		t.Errorf("slowed %d times, at last by %v", slowed, last)
	}
	if slow := d.Slowdown(); slow != 0 {
		t.Errorf("refused and slowed by %v", slow)
	}
}

// TestR89_CopiesEndLater: what other nodes lead goes on a little beyond the limit, because they have accepted it, and then ends by name too.
func TestR89_CopiesEndLater(t *testing.T) {
	fsys := systest.NewFS(1)
	d := newLimitedDir(t, fsys, 4<<20, 0)
	l := openTestLog(t, d, oneMeg)
	fillToLimit(t, l) //nolint:errcheck // the state, not the error
	copies, err := d.OpenLog(otherTP, oneMeg)
	if err != nil {
		t.Fatal(err)
	}
	taken, refused := int64(0), error(nil)
	for i := uint64(0); refused == nil && taken < 8<<20; i++ {
		b := testBatch(i, 1, 8<<10, 0)
		b.SetBaseOffset(copies.End())
		if _, refused = copies.AppendReplicated(b, testDay); refused == nil {
			taken += int64(len(b))
		}
	}
	if limited := (*LimitError)(nil); !errors.As(refused, &limited) || taken == 0 {
		t.Fatalf("%d bytes of copies were taken, then %v", taken, refused)
	}
	held, err := d.heldBytes()
	if most := int64(4<<20 + 4<<20/limitFraction/2 + 16<<10); err != nil || held > most || held <= 4<<20-64<<10 {
		t.Errorf("%d bytes held, want at most %d: %v", held, most, err)
	}
}

// TestR86_NothingYoungGoesForRoom: at the limit retention removes what is older than the promise, and nothing younger, however full the disk.
func TestR86_NothingYoungGoesForRoom(t *testing.T) {
	fsys := systest.NewFS(1)
	d := newLimitedDir(t, fsys, 4<<20, 0)
	l := openTestLog(t, d, oneMeg)
	fillToLimit(t, l) //nolint:errcheck // the state, not the error
	policy := RetentionPolicy{Age: 4 * time.Hour, MinimumAge: 2 * time.Hour, Bytes: 1}
	for _, c := range []struct {
		after   time.Duration
		removed bool
	}{{time.Hour, false}, {2*time.Hour - time.Millisecond, false}, {2 * time.Hour, true}} {
		start, err := l.ApplyRetention(policy, l.End(), testDay.Add(c.after))
		if err != nil || (start > 0) != c.removed {
			t.Fatalf("after %v: start %d, %v", c.after, start, err)
		}
		measure(d)
		if (d.Refusal() == nil) != c.removed {
			t.Fatalf("after %v: %v", c.after, d.Refusal())
		}
	}
}

// TestR89_MeasuringThatFails: the last measuring and what was written since hold.
func TestR89_MeasuringThatFails(t *testing.T) {
	fsys := systest.NewFS(1)
	d := newLimitedDir(t, fsys, 4<<20, 0)
	l := openTestLog(t, d, oneMeg)
	fsys.Hook(func(op systest.Op) error {
		if op.Kind == systest.OpReadDir {
			return fs.ErrPermission
		}
		return nil
	})
	for i := range uint64(200) {
		measure(d)
		if _, err := l.Append(0, testBatch(i, 1, 64<<10, 0), testDay); err != nil {
			break
		}
	}
	fsys.Hook(nil)
	held, err := d.heldBytes()
	if err != nil || held > 4<<20 || d.Refusal() == nil {
		t.Errorf("%d bytes held, %v, refusal %v", held, err, d.Refusal())
	}
}
