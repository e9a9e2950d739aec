package storage

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"syscall"
	"testing"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/sys/systest"
)

var faultSeeds = flag.Int("storage.faultseeds", 500, "random works with failing operations")

// TestI11_NothingStoredIsLostWhenOperationsFail: random work, a window in which operations of one kind fail, then a crash. What was reported
// as stored is there with the same bytes, the start is one that was asked for, a log that no fault touched is not damaged, and one that a failed
// sync took out of service stays so. The model (model_test.go) crashes everywhere, but lets nothing fail.
func TestI11_NothingStoredIsLostWhenOperationsFail(t *testing.T) {
	for seed := range uint64(*faultSeeds) {
		w := faultWork{rand: rand.New(rand.NewPCG(seed, 77)), written: map[kafka.Offset][]byte{}}
		if err := w.run(seed); err != nil {
			t.Fatalf("-storage.faultseeds, seed %d (%v of %v): %v\n%s", seed, w.fault, w.kind, err, strings.Join(w.trace, "\n"))
		}
	}
}

// faultWork is one such work.
type faultWork struct {
	rand  *rand.Rand
	trace []string
	fsys  *systest.FS
	d     *Dir
	l     *Log

	fault  error
	kind   systest.OpKind // that fails
	chance float64
	broken bool // now

	epoch    kafka.LeaderEpoch
	sequence int32
	written  map[kafka.Offset][]byte // batches by base offset
	stored   kafka.Offset            // highest end reported and not cut since
	// startDone is the highest start that was durable, startMax one that may be.
	startDone, startMax kafka.Offset
	damaged             bool
}

func (w *faultWork) say(what string, args ...any) {
	w.trace = append(w.trace, what+" "+fmt.Sprint(args...))
}

func (w *faultWork) run(seed uint64) error {
	w.fsys = systest.NewFS(seed)
	if err := w.open(); err != nil {
		return err
	}
	w.chooseFault()
	steps := 10 + w.rand.IntN(40)
	from := w.rand.IntN(steps)
	until := from + w.rand.IntN(15)
	for i := range steps {
		w.broken = i >= from && i < until
		w.step()
		w.damaged = w.damaged || w.l.Damaged() != nil
		w.stored = max(w.stored, w.l.StoredEnd())
		w.startDone = max(w.startDone, w.l.Start()) // what is shown is on disk (P19)
	}
	w.startMax = max(w.startMax, w.l.Start())
	mode := []systest.CrashMode{systest.LoseAll, systest.KillProcess, systest.KeepAll}[w.rand.IntN(3)]
	for range 2 {
		w.say("crash", mode)
		w.fsys = w.fsys.Crash(mode)
		if err := w.open(); err != nil {
			return err
		}
		if err := w.check(mode); err != nil {
			return err
		}
		mode = systest.KillProcess
	}
	return nil
}

func (w *faultWork) open() (err error) {
	if w.d, err = tryTestDir(w.fsys); err != nil {
		return err
	}
	if err = w.d.CommitBootID(); err != nil {
		return err
	}
	w.l, err = w.d.OpenLog(testTP, smallLog)
	return err
}

func (w *faultWork) chooseFault() {
	w.fault = []error{systest.ErrNoSpace, syscall.EIO}[w.rand.IntN(2)]
	kinds := []systest.OpKind{systest.OpCreate, systest.OpWrite, systest.OpTruncate, systest.OpSync, systest.OpRename, systest.OpRemove, systest.OpSyncDir}
	w.kind = kinds[w.rand.IntN(len(kinds))]
	if w.fault == systest.ErrNoSpace && w.rand.IntN(4) > 0 {
		w.kind = kinds[w.rand.IntN(2)]
	}
	w.chance = w.rand.Float64()
	var several sync.Mutex // a sync round syncs files side by side
	w.fsys.Hook(func(op systest.Op) error {
		several.Lock()
		defer several.Unlock()
		if !w.broken || op.Kind != w.kind || w.rand.Float64() >= w.chance {
			return nil
		}
		w.say("fails:", op)
		if op.Kind == systest.OpWrite && w.rand.IntN(2) == 0 {
			return &systest.ShortWrite{Bytes: w.rand.IntN(op.Len + 1), Err: w.fault}
		}
		return w.fault
	})
}

func (w *faultWork) step() {
	switch k := w.rand.IntN(20); {
	case k < 9:
		w.append()
	case k < 12:
		w.d.syncer.round()
		w.say("round")
	case k < 13:
		w.d.syncer.runAll()
		w.say("round and caches")
	case k < 15:
		w.say("save", w.d.SavePoints(nil))
	case k < 16:
		to := w.l.Start() + kafka.Offset(w.rand.IntN(int(w.l.StoredEnd()-w.l.Start())+1))
		err := w.l.AdvanceStart(to)
		w.say("advance to", to, err)
		w.startMax = max(w.startMax, to)
		if err == nil {
			w.startDone = max(w.startDone, to)
		}
	case k < 17:
		w.truncate()
	case k < 18:
		w.epoch++
		w.say("epoch", w.epoch, w.l.AssignEpoch(w.epoch))
	default:
		start, err := w.l.ApplyRetention(RetentionPolicy{Bytes: 1500}, w.l.StoredEnd(), testDay)
		w.say("retention to", start, err)
		w.startMax = max(w.startMax, w.l.Start())
		if err != nil {
			w.startMax = max(w.startMax, w.l.activeLocked().base) // it may have been written, or half of it
		}
	}
}

func (w *faultWork) append() {
	b := testBatch(w.rand.Uint64(), 1+w.rand.IntN(3), 30+w.rand.IntN(200), testDay.UnixMilli())
	idempotent := w.rand.IntN(2) == 0
	if idempotent {
		b.SetProducer(42, 0, w.sequence, false)
	}
	a, err := w.l.Append(w.epoch, b, testDay)
	w.say("append at", a.Base, err)
	if err != nil {
		return
	}
	w.written[a.Base] = bytes.Clone(b)
	if idempotent {
		w.sequence = b.LastSequence() + 1
	}
}

// truncate cuts back, mostly what is not stored.
func (w *faultWork) truncate() {
	from := w.l.StoredEnd()
	if w.rand.IntN(3) == 0 {
		from = w.l.Start()
	}
	before := w.l.End()
	to := from + kafka.Offset(w.rand.IntN(int(before-from)+1))
	err := w.l.TruncateTo(to)
	w.say("truncate to", to, err)
	if to == before {
		return
	}
	if err != nil {
		w.stored = min(w.stored, to) // it may have been cut or not
	}
	w.stored = min(w.stored, w.l.End())
	for base := range w.written {
		if base >= w.l.End() {
			delete(w.written, base)
		}
	}
}

// check compares what came back, and goes on with it.
func (w *faultWork) check(mode systest.CrashMode) error {
	l := w.l
	if l.Damaged() != nil && w.damaged {
		return nil
	}
	if l.Damaged() != nil {
		return fmt.Errorf("damaged: %w", l.Damaged())
	}
	// A failed sync is remembered while what it did not write may seem to be there; after a power cut that is seen for what it is. What
	// else could not be finished is finished now, or found again by what it left.
	if w.damaged && mode == systest.KillProcess && (w.kind == systest.OpSync || w.kind == systest.OpSyncDir) {
		return errors.New("the damage is forgotten")
	}
	w.damaged = false
	if l.End() < w.stored {
		return fmt.Errorf("end %d, stored was %d", l.End(), w.stored)
	}
	if l.Start() < w.startDone || l.Start() > w.startMax {
		return fmt.Errorf("start %d, want %d to %d", l.Start(), w.startDone, w.startMax)
	}
	got, err := readAll(l, l.End(), 1000)
	if err != nil {
		return err
	}
	for len(got) > 0 {
		h := parseHeader(got)
		if h.Base < w.stored && !bytes.Equal(w.written[h.Base], got[:h.Bytes]) {
			return fmt.Errorf("other bytes at %d", h.Base)
		}
		w.written[h.Base] = bytes.Clone(got[:h.Bytes]) // also what a truncation that failed left
		got = got[h.Bytes:]
	}
	w.epoch++
	w.append()
	w.d.syncer.runAll()
	w.stored = l.StoredEnd()
	if w.stored != l.End() {
		return fmt.Errorf("goes on with end %d, stored %d", l.End(), w.stored)
	}
	return nil
}
