package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// newToldStory is a story as it stands after a demonstration in which everything held: orders orders with events events each.
func newToldStory(t *testing.T, orders, events int) *story {
	t.Helper()
	st := newStory(t.TempDir(), orders*events)
	t.Cleanup(st.close)
	next := map[int32]int64{}
	for n := range events {
		for o := range orders {
			e := orderEvent{Order: fmt.Sprintf("order-%d", o), Number: n, Total: n*orders + o, Status: "paid"}
			value, err := json.Marshal(e)
			if err != nil {
				t.Fatal(err)
			}
			p := int32(o % 4)
			at := place{p, next[p]}
			next[p]++
			st.orders.published.Add(1)
			st.orders.acknowledge(e, at, time.Now())
			st.audit.events[p] = append(st.audit.events[p], event{offset: at.offset, id: e.id(), value: value})
			r := &kgo.Record{Partition: p, Offset: at.offset, Value: value, Headers: []kgo.RecordHeader{{Key: recordIDHeader, Value: []byte(e.id())}}}
			st.fulfillment.apply(r)
			st.analytics.apply(r)
			if n == 0 && o == 0 { // delivered again after the crash
				st.fulfillment.apply(r)
			}
		}
	}
	st.repeated, st.redelivered, st.replayed = demoRepeats, 1, events
	st.led, st.goingOn, st.restarted, st.caughtUp = 20, 20, true, demoPartitions
	return st
}

func broken(vs []verdict) string {
	var names []string
	for _, v := range vs {
		if !v.Held {
			names = append(names, v.Guarantee)
		}
	}
	return strings.Join(names, "; ")
}

// TestDemoChecksFindViolations: a demonstration that cannot fail proves nothing.
func TestDemoChecksFindViolations(t *testing.T) {
	if b := broken(newToldStory(t, 8, 5).check()); b != "" {
		t.Fatalf("a sound story does not hold: %s", b)
	}
	for name, c := range map[string]struct {
		damage func(*story)
		want   string
	}{
		"lost": {func(st *story) { st.audit.events[1] = st.audit.events[1][:3] }, "acknowledged events are stored"},
		"duplicated": {func(st *story) {
			e := st.audit.events[2]
			copied := e[0]
			copied.offset = int64(len(e))
			st.audit.events[2] = append(e, copied)
		}, "nothing is stored twice"},
		"swapped": {func(st *story) {
			e := st.audit.events[0]
			e[0].id, e[2].id = e[2].id, e[0].id
			e[0].value, e[2].value = e[2].value, e[0].value
		}, "order is kept"},
		"orders swapped": {func(st *story) { // order-0/0 and order-4/0 share a partition; each order is still in order
			e := st.audit.events[0]
			e[0].id, e[1].id = e[1].id, e[0].id
			e[0].value, e[1].value = e[1].value, e[0].value
		}, "order is kept"},
		"gap":            {func(st *story) { st.audit.events[3][4].offset += 7 }, "offsets are dense"},
		"foreign":        {func(st *story) { st.audit.events[3][4].id = "order-9/9" }, "not published"},
		"unacknowledged": {func(st *story) { delete(st.orders.places, "order-1/0") }, "acknowledged in the end"},
		"answer differs": {func(st *story) { st.repeatWrong = 1 }, "first offset"},
		"no repeat":      {func(st *story) { st.repeated = 0 }, "first offset"},
		"missed":         {func(st *story) { delete(st.analytics.seen, "order-2/1") }, "analytics reads everything"},
		"doubled": {func(st *story) {
			st.fulfillment.effects[0] = append(st.fulfillment.effects[0], st.fulfillment.effects[0][0])
		}, "fulfillment reads everything"},
		"nothing replayed": {func(st *story) { st.replayed = 0 }, "a replay"},
		"replay differs":   {func(st *story) { st.replayWrong = 1 }, "a replay"},
		"leaderless":       {func(st *story) { st.goingOn-- }, "without their dead leader"},
		"no leader killed": {func(st *story) { st.led, st.goingOn = 0, 0 }, "without their dead leader"},
		"behind":           {func(st *story) { st.caughtUp-- }, "catches up"},
		"not restarted":    {func(st *story) { st.restarted = false }, "catches up"},
		"no crash":         {func(st *story) { st.redelivered = 0 }, "a crash"},
	} {
		st := newToldStory(t, 8, 5)
		c.damage(st)
		if b := broken(st.check()); !strings.Contains(b, c.want) {
			t.Errorf("%s: found %q, want %q", name, b, c.want)
		}
	}
}

func TestDemoReplayCompares(t *testing.T) {
	st := newToldStory(t, 8, 5)
	events := st.audit.events[1]
	if n := st.fulfillment.compare(1, events); n != 0 {
		t.Errorf("%d differences in equal events", n)
	}
	if n := st.fulfillment.compare(1, events[:3]); n != len(events)-3 {
		t.Errorf("%d differences, want %d", n, len(events)-3)
	}
	changed := append([]event{{offset: events[0].offset, id: events[0].id, value: []byte("x")}}, events[1:]...)
	if n := st.fulfillment.compare(1, changed); n != 1 {
		t.Errorf("%d differences, want 1", n)
	}
}

// TestI8_DemoReaderPosition: what a reader commits is the next record to read, in each partition, whatever the order of the batch.
func TestI8_DemoReaderPosition(t *testing.T) {
	got := nextOffsets([]*kgo.Record{{Partition: 3, Offset: 80}, {Partition: 63}, {Partition: 3, Offset: 81}, {Partition: 5, Offset: 7}, {Partition: 5, Offset: 6}})
	if len(got) != 3 || got[3] != 82 || got[63] != 1 || got[5] != 8 {
		t.Errorf("%v", got)
	}
}

// TestDemoLinkLosesAResponse: an armed link swallows the answer to a Produce, and only that.
func TestDemoLinkLosesAResponse(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	go func() { // answers every write with the same bytes
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			go func() { defer c.Close(); _, _ = io.Copy(c, c) }()
		}
	}()
	link := &demoLink{}
	lost := link.loseNextProduceResponse()
	fetch, produce := []byte{0, 0, 0, 6, 0, 1, 0, 0, 0, 0}, []byte{0, 0, 0, 6, 0, 0, 0, 0, 0, 0}
	exchange := func(request []byte) ([]byte, error) {
		c, err := link.dial(t.Context(), "tcp", ln.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if _, err := c.Write(request); err != nil {
			t.Fatal(err)
		}
		answer := make([]byte, len(request))
		_, err = io.ReadFull(c, answer)
		return answer, err
	}
	if got, err := exchange(fetch); err != nil || !bytes.Equal(got, fetch) {
		t.Errorf("the answer to a Fetch was lost: %v", err)
	}
	if _, err := exchange(produce); err == nil {
		t.Error("the answer to the Produce arrived")
	}
	select {
	case <-lost:
	default:
		t.Error("the loss was not reported")
	}
	if got, err := exchange(produce); err != nil || !bytes.Equal(got, produce) {
		t.Errorf("a second answer was lost: %v", err)
	}
}

// TestDemoMeasuresFromTheMark: only what was published after the kill says that a partition goes on.
func TestDemoMeasuresFromTheMark(t *testing.T) {
	o := newOrderService(&demoLink{}, 100)
	before := time.Now()
	o.markNow()
	o.acknowledge(orderEvent{Order: "order-1"}, place{3, 0}, before)
	if going, _ := o.sinceMark([]int32{3, 4}); going != 0 {
		t.Errorf("%d partitions go on by an event that was published before the kill", going)
	}
	o.acknowledge(orderEvent{Order: "order-1", Number: 1}, place{3, 1}, time.Now().Add(time.Millisecond))
	if going, last := o.sinceMark([]int32{3, 4}); going != 1 || last <= 0 {
		t.Errorf("%d partitions go on, the last after %v; want 1", going, last)
	}
	if busiest, used := o.busiest(); busiest != 3 || used[3] != 2 {
		t.Errorf("busiest %d of %v", busiest, used)
	}
}

// TestDemoPortsAreHeldApart: no two brokers get the same address, and another program at one is noticed.
func TestDemoPortsAreHeldApart(t *testing.T) {
	c := &demoCluster{}
	if err := c.layOut(t.TempDir()); err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, b := range c.brokers {
		seen[b.kafka], seen[b.peer] = true, true
	}
	if len(seen) != 2*demoBrokers {
		t.Errorf("addresses %v, want %d", seen, 2*demoBrokers)
	}
	ln, err := net.Listen("tcp", c.brokers[1].peer)
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	if !c.portsTaken() {
		t.Error("a port that is taken was not noticed")
	}
}

// TestDemoNamesTheBrokerThatDoesNotComeUp: which one, and its last words.
func TestDemoNamesTheBrokerThatDoesNotComeUp(t *testing.T) {
	exe, err := exec.LookPath("strandline")
	if err != nil {
		t.Fatal(err)
	}
	c := newDemoCluster(t.TempDir())
	defer c.close()
	if err := c.layOut(c.dir); err != nil {
		t.Fatal(err)
	}
	b := c.brokers[1]
	if err := os.MkdirAll(filepath.Join(b.dir, "data"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(b.dir, "data", "letters"), nil, 0o600); err != nil { // a directory with foreign files is refused
		t.Fatal(err)
	}
	if err := b.start(exe, []string{"1@" + c.brokers[0].peer, "2@" + b.peer, "3@" + c.brokers[2].peer}, c.launch); err != nil {
		t.Fatal(err)
	}
	<-b.done
	err = c.fallen()
	if err == nil {
		t.Fatal("a broker that ended was not noticed")
	}
	for _, want := range []string{"broker 2 (rack-2)", "ended before it was ready (exit status 1)", "letters"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q does not say %q", err, want)
		}
	}
}
