package coordinator

import (
	"testing"
	"testing/synctest"
	"time"

	"strandline.dev/internal/group"
	"strandline.dev/internal/kafka"
)

// TestC049_WallClockStepsMoveNoTimer steps the wall clock by an hour, both ways, while a group lives. A member that is silent is removed when
// its session is over, counted by the time that passes, and a member that is not silent stays.
func TestC049_WallClockStepsMoveNoTimer(t *testing.T) {
	for _, step := range []time.Duration{-time.Hour, time.Hour} {
		synctest.Test(t, func(t *testing.T) { wallStepBubble(t, step) })
	}
}

func wallStepBubble(t *testing.T, step time.Duration) {
	w := newWorld(t)
	id := w.topic("orders", nil)
	alive, _ := w.joinAlone("workers")
	silent := w.join("workers", "")
	rejoined, err := await[group.JoinReply](w, w.join("workers", alive))
	w.must(err)
	other, err := await[group.JoinReply](w, silent)
	w.must(err)
	generation := rejoined.Generation
	if _, err := await[group.SyncReply](w, w.sync("workers", alive, generation, alive, other.MemberID)); err != nil {
		t.Fatal(err)
	}
	if _, err := await[group.SyncReply](w, w.sync("workers", other.MemberID, generation)); err != nil {
		t.Fatal(err)
	}
	w.mustCommit("idle", id, 5)
	began := time.Now()
	w.wall.Step(step)
	for {
		time.Sleep(100 * time.Millisecond)
		code, err := w.heartbeat("workers", alive, generation)
		w.must(err)
		if code == kafka.RebalanceInProgress {
			break
		}
		if code != kafka.None || time.Since(began) > time.Minute {
			t.Fatalf("step %v: after %v: %v", step, time.Since(began), code)
		}
	}
	if took := time.Since(began); took < 9*time.Second || took > 11*time.Second { // a session of 10 s, ±10 %
		t.Errorf("step %v: the silent member was removed after %v", step, took)
	}
	j, err := await[group.JoinReply](w, w.join("workers", alive))
	w.must(err)
	if j.Code != kafka.None || len(j.Members) != 1 || j.Members[0].MemberID != alive {
		t.Errorf("step %v: %+v", step, j)
	}
	if got := w.mustFetch("idle", id); got != 5 {
		t.Errorf("step %v: a committed offset is %d", step, got)
	}
	w.stop(true)
}

// While the wall clock cannot be trusted no offset is old enough to expire.
func TestC049_NothingExpiresAfterAStep(t *testing.T) {
	w := newWorld(t)
	id := w.topic("orders", nil)
	if kept := w.groups.recordsKept(id); kept != 14*24*time.Hour {
		t.Errorf("records are kept %v", kept)
	}
	if kept := w.groups.recordsKept(kafka.TopicID{9}); kept != 0 {
		t.Errorf("records of no topic are kept %v", kept)
	}
	w.wall.Step(30 * 24 * time.Hour)
	for _, one := range []kafka.TopicID{id, {9}} {
		if kept := w.groups.recordsKept(one); kept >= 0 {
			t.Errorf("after a step of the wall clock: %v", kept)
		}
	}
	w.stop(true)
}
