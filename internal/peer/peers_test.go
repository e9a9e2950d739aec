package peer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// TestCallsAndMessagesCross: every class, both directions, with payloads above a frame's pieces.
func TestCallsAndMessagesCross(t *testing.T) {
	inBubble(t, 2, func(t *testing.T, w *world, n []*testNode) {
		for _, k := range []Kind{KindHeartbeat, KindReplicaFetch, KindSubmit} {
			n[1].mustAsk(2, k, "hello")
			n[2].mustAsk(1, k, "hello")
		}
		big := bytes.Repeat([]byte("0123456789"), 300_000)
		var released atomic.Int32
		room := make([]byte, len(big)+100)
		answer := &note{room: room}
		if err := n[1].Call(t.Context(), 2, &note{kind: KindReplicaFetch, text: "x", big: big, released: &released}, answer); err != nil {
			t.Fatal(err)
		}
		synctest.Wait() // the writer may come to it after the answer has
		if !bytes.Equal(answer.big, big) || released.Load() != 1 {
			t.Fatalf("%d bytes came back, released %d times", len(answer.big), released.Load())
		}
		if !bytes.Contains(room, big) {
			t.Fatal("the answer was not read into the memory it brought")
		}
		if n[1].log.String()+n[2].log.String() != "" {
			t.Fatalf("log lines of a healthy cluster:\n%s%s", n[1].log, n[2].log)
		}
	})
}

// TestOneWayKeepsOrderBesideAParkedRequest: progress reports arrive while a fetch of the same connection is parked (architecture 5).
func TestOneWayKeepsOrderBesideAParkedRequest(t *testing.T) {
	inBubble(t, 2, func(t *testing.T, w *world, n []*testNode) {
		parked := make(chan error, 1)
		go func() {
			_, err := n[1].ask(2, KindReplicaFetch, "park")
			parked <- err
		}()
		synctest.Wait()
		var want []string
		for i := range 100 {
			text := fmt.Sprint(i)
			want = append(want, text)
			if err := n[1].Send(2, &note{kind: KindReplicaProgress, text: text}); err != nil {
				t.Fatal(err)
			}
		}
		if got := n[2].texts(); got != strings.Join(want, " ") {
			t.Fatalf("got %s", got)
		}
		close(n[2].park)
		if err := <-parked; err != nil {
			t.Fatal(err)
		}
	})
}

// TestSendBeforeTheConnection: what is sent while the first dial is in progress arrives, in order.
func TestSendBeforeTheConnection(t *testing.T) {
	inBubble(t, 2, func(t *testing.T, w *world, n []*testNode) {
		for _, text := range []string{"a", "b", "c"} {
			if err := n[1].Send(2, &note{kind: KindRaft, text: text}); err != nil {
				t.Fatal(err)
			}
		}
		if got := n[2].texts(); got != "a b c" {
			t.Fatalf("got %q", got)
		}
	})
}

// TestErrorsSayWhatDidNotHappen: each way of failing has its error.
func TestErrorsSayWhatDidNotHappen(t *testing.T) {
	inBubble(t, 2, func(t *testing.T, w *world, n []*testNode) {
		var remote *RemoteError
		_, err := n[1].ask(2, KindSubmit, "fail")
		if !errors.As(err, &remote) || remote.Fault != Failed || remote.NotRun() || remote.Text != "as asked" {
			t.Fatalf("a handler's error: %v", err)
		}
		_, err = n[1].ask(2, KindMetadataFetch, "")
		if !errors.As(err, &remote) || remote.Fault != NotServed || !remote.NotRun() {
			t.Fatalf("no handler: %v", err)
		}
		_, err = n[1].ask(9, KindSubmit, "")
		is(t, err, ErrUnreachable, ErrBroken, ErrRefused)

		_, err = n[1].ask(2, KindSubmit, "park") // no answer within its time
		is(t, err, ErrBroken, ErrUnreachable)
		is(t, err, context.DeadlineExceeded)

		w.net.CutBoth("n1", "n2") // a dial that nobody answers
		_, err = n[1].ask(2, KindHeartbeat, "")
		is(t, err, ErrUnreachable, ErrBroken, ErrRefused)
		w.net.HealAll()
		time.Sleep(time.Second)
		n[1].mustAsk(2, KindHeartbeat, "again")

		parked := make(chan error, 1)
		go func() {
			_, err := n[1].ask(2, KindHeartbeat, "park")
			parked <- err
		}()
		synctest.Wait()
		w.net.Kill("n2")
		err = <-parked
		is(t, err, ErrBroken, ErrUnreachable)
		_, err = n[1].ask(2, KindHeartbeat, "")
		is(t, err, ErrRefused)
		is(t, err, ErrUnreachable)
		if err := n[1].Send(2, &note{kind: KindRaft}); !errors.Is(err, ErrUnreachable) {
			t.Fatalf("a message after a failed dial: %v", err)
		}
		<-n[2].served // its listener was killed
		n[2].cancel = nil
	})
}

// TestAProcessThatIsBackIsUsedWithinABackOff: the pause between dials stays short however long a node was away.
func TestAProcessThatIsBackIsUsedWithinABackOff(t *testing.T) {
	inBubble(t, 1, func(t *testing.T, w *world, n []*testNode) {
		w.addresses[2] = "n2:1"
		for range 200 {
			_, err := n[1].ask(2, KindHeartbeat, "")
			is(t, err, ErrRefused)
		}
		two := w.newNode(2, w.net.Host("n2"), nil)
		two.listen("n2:1")
		start := time.Now()
		n[1].mustAsk(2, KindHeartbeat, "at last")
		if took := time.Since(start); took > backOffMax {
			t.Fatalf("used after %v", took)
		}
		two.stop()
	})
}

// TestProbe tells a dead process from a silent one, and leaves no trace at the other side.
func TestProbe(t *testing.T) {
	inBubble(t, 2, func(t *testing.T, w *world, n []*testNode) {
		if err := n[1].Probe(t.Context(), 2); err != nil {
			t.Fatal(err)
		}
		if got := n[2].ends(); got != "" {
			t.Fatalf("the end of a probe was told: %s", got)
		}
		w.net.CutBoth("n1", "n2")
		is(t, n[1].Probe(t.Context(), 2), ErrUnreachable, ErrRefused)
		w.net.HealAll()
		n[2].stop()
		is(t, n[1].Probe(t.Context(), 2), ErrRefused)
		n[2].cancel = nil
	})
}

// TestGoneIsToldOncePerConnection: when the other process dies, at once.
func TestGoneIsToldOncePerConnection(t *testing.T) {
	inBubble(t, 2, func(t *testing.T, w *world, n []*testNode) {
		n[1].mustAsk(2, KindHeartbeat, "x")
		n[1].mustAsk(2, KindReplicaFetch, "x")
		start := time.Now()
		w.net.Kill("n1")
		got := n[2].ends()
		if got != "1 control, 1 data" && got != "1 data, 1 control" || time.Since(start) != 0 {
			t.Fatalf("told %q after %v", got, time.Since(start))
		}
		<-n[1].served
		n[1].cancel = nil
	})
}

// TestSilentConnectionBreaks: a link that carries nothing any more is noticed by both sides without traffic, and an idle healthy one lives.
func TestSilentConnectionBreaks(t *testing.T) {
	inBubble(t, 2, func(t *testing.T, w *world, n []*testNode) {
		n[1].mustAsk(2, KindHeartbeat, "x")
		time.Sleep(time.Hour)
		if got := n[2].ends(); got != "" {
			t.Fatalf("an idle connection ended: %s", got)
		}
		w.net.Cut("n1", "n2")
		time.Sleep(idleMax + time.Millisecond)
		if got := n[2].ends(); got != "1 control" {
			t.Fatalf("told %q", got)
		}
		w.net.HealAll()
	})
}

// TestNewIdentityOpensAnew: a process that has learnt its cluster is not taken for what it was; calls in progress still end.
func TestNewIdentityOpensAnew(t *testing.T) {
	inBubble(t, 2, func(t *testing.T, w *world, n []*testNode) {
		n[1].change(func(i *Identity) { i.Cluster = "" })
		parked := make(chan error, 1)
		go func() {
			answer := &note{}
			parked <- n[1].Call(t.Context(), 2, &note{kind: KindSubmit, text: "park"}, answer)
		}()
		synctest.Wait()
		_, err := n[1].ask(2, KindHeartbeat, "") // not before both know their cluster
		is(t, err, ErrDenied)
		n[1].change(func(i *Identity) { i.Cluster = "c" })
		n[1].mustAsk(2, KindSubmit, "now")
		time.Sleep(time.Second)
		n[1].mustAsk(2, KindHeartbeat, "now")
		if got := n[2].ends(); got != "" {
			t.Fatalf("ended with a call in progress: %s", got)
		}
		close(n[2].park)
		if err := <-parked; err != nil {
			t.Fatal(err)
		}
		if got := n[2].ends(); got != "1 admin" {
			t.Fatalf("the old connection did not end: %q", got)
		}
	})
}

// TestI3_RecheckEndsOlderProcesses: when a newer process of a node has registered, what the older one still holds open ends.
func TestI3_RecheckEndsOlderProcesses(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, w *world, n []*testNode) {
		n[1].mustAsk(2, KindHeartbeat, "x")
		n[3].mustAsk(2, KindHeartbeat, "x")
		n[2].mu.Lock()
		n[2].refuse[1] = "start 1 is older than 2"
		n[2].mu.Unlock()
		n[2].Recheck()
		if got := n[2].ends(); got != "1 control" {
			t.Fatalf("told %q", got)
		}
		_, err := n[1].ask(2, KindHeartbeat, "")
		is(t, err, ErrDenied)
		if !strings.Contains(err.Error(), "start 1 is older than 2") {
			t.Fatal(err)
		}
		n[3].mustAsk(2, KindHeartbeat, "still")
	})
}

// TestCallAddress reaches whoever is there, also a node without a cluster.
func TestCallAddress(t *testing.T) {
	inBubble(t, 2, func(t *testing.T, w *world, n []*testNode) {
		n[2].change(func(i *Identity) { i.Cluster = "" })
		answer := &note{}
		if err := n[1].CallAddress(t.Context(), "n2:1", &note{kind: KindSubmit, text: "who"}, answer); err != nil || answer.text != "1>2 who" {
			t.Fatalf("%q, %v", answer.text, err)
		}
		is(t, n[1].CallAddress(t.Context(), "n7:1", &note{kind: KindSubmit}, answer), ErrRefused)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		is(t, n[1].CallAddress(ctx, "n2:1", &note{kind: KindSubmit, text: "park"}, answer), ErrBroken)
		if got := n[2].ends(); got != "" {
			t.Fatalf("the end of a single call was told: %s", got)
		}
	})
}

// TestEveryKindHasARow: numbers are fixed for ever and far above Kafka's keys.
func TestEveryKindHasARow(t *testing.T) {
	for k, row := range kinds {
		if k < 20000 || row.name == "" || row.class < Control || row.class > Clients {
			t.Errorf("%d: %+v", k, row)
		}
	}
	for k, want := range map[Kind]string{
		20001: "hello", 20002: "ping", 20010: "raft", 20011: "heartbeat", 20020: "replica-fetch", 20021: "replica-progress", 20030: "submit",
		20031: "forming", 20032: "metadata-fetch", 20033: "raft-snapshot", 20034: "membership", 1: "kind 1",
	} {
		if k.String() != want {
			t.Errorf("%d is %v, want %s", int16(k), k, want)
		}
	}
}
