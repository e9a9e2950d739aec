package coordinator

import (
	"bytes"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"strandline.dev/internal/group"
	"strandline.dev/internal/kafka"
	"strandline.dev/internal/record"
	"strandline.dev/internal/replica"
	"strandline.dev/internal/sys/systest"
)

// TestI8_CommitSurvivesCrash commits until the machine stops at its n-th change of the disk, also between a commit and its answer. After the
// restart no group is behind what was confirmed, and none is ahead of what was sent.
func TestI8_CommitSurvivesCrash(t *testing.T) {
	for n := int64(1); n <= 60; n++ {
		for _, mode := range []systest.CrashMode{systest.LoseAll, systest.Random} {
			commitThenPowerCut(t, n, mode)
		}
	}
}

func commitThenPowerCut(t *testing.T, n int64, mode systest.CrashMode) {
	w := newWorld(t)
	id := w.topic("orders", nil)
	groups := []string{"a", "b", "c"}
	sent, confirmed := map[string]kafka.Offset{}, map[string]kafka.Offset{}
	w.fs.CrashAt(w.fs.Ops() + n)
	for offset := kafka.Offset(1); offset < 60 && !w.fs.Crashed(); offset++ {
		g := groups[int(offset)%len(groups)]
		sent[g] = offset
		if code, err := w.commit(g, id, offset); err == nil && code == kafka.None {
			confirmed[g] = offset
		}
	}
	survived := w.fs.Crash(mode)
	w.stop(false)
	w.fs = survived
	w.start()
	for _, g := range groups {
		got := w.mustFetch(g, id)
		low := kafka.NoOffset
		if at, ok := confirmed[g]; ok {
			low = at
		}
		if got < low || got > sent[g] {
			t.Errorf("cut at operation %d, %v: group %s is at %d, confirmed %d, sent %d", n, mode, g, got, low, sent[g])
		}
	}
	w.stop(false)
}

// TestP30_CommitIsARegister commits rising offsets and reads them while the node is killed and restarted: what is read is never below what
// was confirmed before the read began, never above what was sent before it ended, and never falls.
func TestP30_CommitIsARegister(t *testing.T) {
	w := newWorld(t)
	id := w.topic("orders", nil)
	var groups []*register
	for i := range 4 {
		groups = append(groups, &register{name: fmt.Sprintf("g%d", i), topic: id})
	}
	for round := range 6 {
		var all sync.WaitGroup
		stopping := make(chan struct{})
		for _, g := range groups {
			all.Go(func() { g.write(w, stopping) })
			all.Go(func() { g.read(w, stopping) })
		}
		for _, g := range groups {
			for seen := g.reads.Load(); g.reads.Load() < seen+20; {
				runtime.Gosched()
			}
		}
		close(stopping)
		if round%2 == 0 {
			w.renewEpochs() // a new reign under way of the requests
		}
		all.Wait()
		if round%3 == 0 {
			w.restart(round%2 == 0)
		}
	}
	for _, g := range groups {
		if g.wrong.Load() != nil {
			t.Error(*g.wrong.Load())
		}
	}
	w.stop(true)
}

// register is one group's offset of one partition.
type register struct {
	name            string
	topic           kafka.TopicID
	sent, confirmed atomic.Int64
	reads           atomic.Int64
	wrong           atomic.Pointer[string]
}

func (g *register) write(w *world, stopping chan struct{}) {
	for {
		select {
		case <-stopping:
			return
		default:
		}
		next := g.sent.Add(1)
		if code, err := w.commit(g.name, g.topic, kafka.Offset(next)); err == nil && code == kafka.None {
			g.confirmed.Store(next)
		}
	}
}

func (g *register) read(w *world, stopping chan struct{}) {
	last := kafka.NoOffset
	for {
		select {
		case <-stopping:
			return
		default:
		}
		low := kafka.Offset(g.confirmed.Load())
		got, err := w.fetch(g.name, g.topic)
		high := kafka.Offset(g.sent.Load())
		if err != nil {
			continue
		}
		if got == kafka.NoOffset && low == 0 {
			got = 0
		}
		if got < low || got > high || got < last {
			text := fmt.Sprintf("group %s: read %d after %d, confirmed %d, sent %d", g.name, got, last, low, high)
			g.wrong.CompareAndSwap(nil, &text)
		}
		last = got
		g.reads.Add(1)
	}
}

// TestI8_UnreadableProgressIsAnError: whatever keeps the log from being read to its end, groups get an error that tells them to wait. No
// answer is a position, and other partitions serve.
func TestI8_UnreadableProgressIsAnError(t *testing.T) {
	t.Run("a record of a newer release", func(t *testing.T) {
		w := newWorld(t)
		id := w.topic("orders", nil)
		w.mustCommit("hit", id, 3)
		strange := record.NewBuilder(record.None)
		strange.Add(0, []byte{0, 99, 1, 2, 3}, []byte{0, 0}, nil)
		p := w.host.Append([]replica.AppendItem{{TP: w.partition("hit"), Batch: strange.Build()}}, replica.AcksAll, time.Second)
		<-p.Ready()
		w.must(p.Results()[0].Err)
		w.restart(true)
		w.wantUnreadable(id)
	})
	t.Run("a disk that cannot be read", func(t *testing.T) {
		w := newWorld(t)
		id := w.topic("orders", nil)
		w.mustCommit("hit", id, 3)
		w.host.failReads.Store(true)
		w.groups.replace(w.shardOf("hit"), replica.ErrStorage)
		w.wantUnreadableOnly(id)
		w.host.failReads.Store(false) // it comes back by itself
		for {
			got, err := w.fetch("hit", id)
			if err == nil {
				if got != 3 {
					t.Errorf("offset %d, want 3", got)
				}
				break
			}
		}
		w.stop(true)
	})
	t.Run("a damaged log", func(t *testing.T) {
		w := newWorld(t)
		id := w.topic("orders", nil)
		for i := range 50 {
			w.mustCommit("hit", id, kafka.Offset(i))
		}
		tp := w.partition("hit")
		w.stop(true)
		for name, b := range w.fs.Files() {
			if strings.Contains(name, tp.String()) && strings.HasSuffix(name, ".log") && bytes.Contains(b, []byte("hit")) {
				w.must(w.fs.FlipBit(name, int64(bytes.Index(b, []byte("hit"))), 1))
			}
		}
		w.start()
		for range 20 {
			if got, err := w.fetch("hit", id); err == nil {
				t.Fatalf("offset %d of a damaged log", got)
			}
			if code, err := w.commit("hit", id, 1); err == nil {
				t.Fatalf("a commit to a damaged log: %v", code)
			}
		}
		w.must(w.groups.Create(t.Context()))
		w.mustCommit("well", id, 8)
		w.stop(false)
	})
}

// wantUnreadable checks that the group "hit" gets errors and "well" is served; the node is at its start.
func (w *world) wantUnreadable(id kafka.TopicID) {
	w.t.Helper()
	w.wantUnreadableOnly(id)
	w.mustCommit("well", id, 8)
	if got := w.mustFetch("well", id); got != 8 {
		w.t.Errorf("a group of another partition: %d, want 8", got)
	}
	if !strings.Contains(w.log.String(), "the progress of groups cannot be read") {
		w.t.Errorf("nothing about it in the log:\n%s", w.log)
	}
	w.stop(true)
}

func (w *world) wantUnreadableOnly(id kafka.TopicID) {
	w.t.Helper()
	if w.partition("hit").Partition == w.partition("well").Partition {
		w.t.Fatal("the test needs groups of two partitions")
	}
	for unreadable := 0; unreadable < 20; {
		got, err := w.fetch("hit", id)
		_, err2 := w.commit("hit", id, 1)
		_, err3 := await[group.JoinReply](w, w.join("hit", ""))
		if err == nil || err2 == nil || err3 == nil {
			w.t.Fatalf("offset %d %v, commit %v, join %v", got, err, err2, err3)
		}
		if errors.Is(err, ErrUnreadable) {
			unreadable++
		}
	}
}
