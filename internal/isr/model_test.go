package isr

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"strandline.dev/internal/kafka"
)

// event is one input of the core, as data, so that the model can read the whole history.
type event struct {
	kind string // stored, fetch, report, propose, state
	node kafka.NodeID
	at   kafka.Offset
	isr  []kafka.NodeID
	pe   kafka.PartitionEpoch
	min  int32
}

func (e event) apply(l *Leader) Effects {
	switch e.kind {
	case "stored":
		return l.Stored(e.at)
	case "fetch":
		return l.Fetched(said(l, e.node), e.at)
	case "report":
		return l.Reported(said(l, e.node), e.at, 0)
	case "propose":
		l.open(e.isr)
	case "state":
		return l.Update(e.state())
	}
	return Effects{}
}

// said is the origin of the next word of a node in epoch 1.
func said(l *Leader, n kafka.NodeID) Origin {
	o := Origin{Node: n, Broker: 1, Epoch: 1, Sequence: 1}
	if r := l.replica(n); r != nil {
		o.Sequence = max(r.fetchedAs, r.reportedAs) + 1
	}
	return o
}

func (e event) state() kafka.PartitionState {
	return kafka.PartitionState{
		Replicas: []kafka.NodeID{1, 2, 3}, ISR: e.isr, Leader: 1, LeaderEpoch: 1, PartitionEpoch: e.pe, EffectiveMinISR: e.min,
	}
}

// naive computes the watermark from the whole history, by the words of I1 and I2: at each moment the bound is the smallest
// stored end in committed ∪ proposed, and the watermark is the largest bound at any moment at which the committed ISR had
// enough members. It keeps no state.
func naive(history []event) kafka.Offset {
	hw := kafka.Offset(0)
	for n := range history {
		past := history[:n+1]
		committed, proposed := naiveISR(past)
		if len(committed.isr) < int(committed.min) {
			continue
		}
		bound := naiveStored(past, 1)
		for _, node := range slices.Concat(committed.isr, proposed) {
			bound = min(bound, naiveStored(past, node))
		}
		hw = max(hw, bound)
	}
	return hw
}

func naiveISR(past []event) (committed event, proposed []kafka.NodeID) {
	for _, e := range past {
		switch {
		case e.kind == "state" && e.pe > committed.pe:
			committed, proposed = e, nil
		case e.kind == "propose":
			proposed = append(proposed, e.isr...)
		}
	}
	return committed, proposed
}

// naiveStored is the smaller of where the node was last verified and what it last reported; a fetch below what it had
// counted for takes the verified end back.
func naiveStored(past []event, node kafka.NodeID) kafka.Offset {
	verified, reported, counted := kafka.NoOffset, kafka.NoOffset, kafka.NoOffset
	for _, e := range past {
		switch {
		case e.kind == "stored" && node == 1:
			verified, reported = e.at, e.at
		case e.kind == "fetch" && e.node == node && e.at >= counted:
			verified = max(verified, e.at)
		case e.kind == "fetch" && e.node == node:
			verified = e.at
		case e.kind == "report" && e.node == node:
			reported = e.at
		}
		lost := e.node == node && (e.kind == "fetch" || e.kind == "report") && e.at < counted
		if counted = max(counted, min(verified, reported)); lost {
			counted = min(verified, reported) // from now on it counts from what it has
		}
	}
	return min(verified, reported)
}

func begin(e event) *Leader {
	l, _ := New(Start{Self: 1, State: e.state()})
	return l
}

// checkHistory runs one history through core and model, and checks what holds after every event.
func checkHistory(history []event) error {
	l := begin(history[0])
	history[0].kind = "state"
	for n := 1; n < len(history); n++ {
		before := l.HighWatermark()
		e := history[n].apply(l)
		after := l.HighWatermark()
		// The leader begins with nothing stored: the model is told so.
		past := append([]event{history[0], {kind: "stored"}}, history[1:n+1]...)
		switch {
		case after < before:
			return fmt.Errorf("I2: watermark moved back from %d to %d after %+v", before, after, history[:n+1])
		case after != naive(past):
			return fmt.Errorf("I2: watermark %d, model %d after %+v", after, naive(past), history[:n+1])
		case e.Advanced != (after > before) || e.Advanced && e.HighWatermark != after:
			return fmt.Errorf("effects %+v do not tell of %d -> %d after %+v", e, before, after, history[:n+1])
		}
	}
	return nil
}

// TestI2_WatermarkEqualsModelOnEveryShortHistory tries every sequence of four events out of fourteen.
func TestI2_WatermarkEqualsModelOnEveryShortHistory(t *testing.T) {
	alphabet := []event{
		{kind: "stored", at: 1}, {kind: "stored", at: 2},
		{kind: "fetch", node: 2, at: 1}, {kind: "fetch", node: 2, at: 2}, {kind: "report", node: 2, at: 1}, {kind: "report", node: 2, at: 2},
		{kind: "fetch", node: 3, at: 2}, {kind: "report", node: 3, at: 2},
		{kind: "propose", isr: []kafka.NodeID{1, 2}}, {kind: "propose", isr: []kafka.NodeID{1, 2, 3}},
		{kind: "state", isr: []kafka.NodeID{1, 2}, pe: 2, min: 2}, {kind: "state", isr: []kafka.NodeID{1}, pe: 3, min: 1},
		{kind: "state", isr: []kafka.NodeID{1}, pe: 3, min: 2}, {kind: "state", isr: []kafka.NodeID{1, 2, 3}, pe: 4, min: 2},
	}
	starts := []event{
		{isr: []kafka.NodeID{1, 2}, pe: 1, min: 2}, {isr: []kafka.NodeID{1, 2, 3}, pe: 1, min: 1},
	}
	const depth = 4
	history := make([]event, depth+1)
	var try func(n int)
	try = func(n int) {
		if t.Failed() {
			return
		}
		if n > depth {
			if err := checkHistory(history); err != nil {
				t.Error(err)
			}
			return
		}
		for _, e := range alphabet {
			history[n] = e
			try(n + 1)
		}
	}
	for _, s := range starts {
		history[0] = s
		try(1)
	}
}

// TestI2_WatermarkEqualsModelOnRandomHistories tries long random histories.
func TestI2_WatermarkEqualsModelOnRandomHistories(t *testing.T) {
	subsets := [][]kafka.NodeID{{1}, {1, 2}, {1, 3}, {1, 2, 3}}
	for seed := range uint64(400) {
		r := rand.New(rand.NewPCG(seed, 1))
		history := []event{{isr: subsets[r.IntN(4)], pe: 1, min: int32(1 + r.IntN(2))}}
		ends := map[kafka.NodeID]kafka.Offset{}
		for n := range 60 {
			node := kafka.NodeID(2 + r.IntN(2))
			ends[node] = max(0, ends[node]+kafka.Offset(r.IntN(6))-1) // mostly forward
			switch k := r.IntN(10); {
			case k < 2:
				ends[1] += kafka.Offset(r.IntN(4))
				history = append(history, event{kind: "stored", at: ends[1]})
			case k < 5:
				history = append(history, event{kind: "fetch", node: node, at: ends[node]})
			case k < 8:
				history = append(history, event{kind: "report", node: node, at: ends[node]})
			case k < 9:
				history = append(history, event{kind: "propose", isr: subsets[r.IntN(4)]})
			default:
				pe := kafka.PartitionEpoch(n/2 + r.IntN(10)) // now and then an old one
				history = append(history, event{kind: "state", isr: subsets[r.IntN(4)], pe: pe, min: int32(1 + r.IntN(2))})
			}
		}
		if err := checkHistory(history); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
}

// TestI1_ISRAndMinimumComeFromOneState: a minimum of another state never admits or advances anything.
func TestI1_ISRAndMinimumComeFromOneState(t *testing.T) {
	l := begin(event{isr: []kafka.NodeID{1, 2}, pe: 5, min: 2})
	l.Update(event{isr: []kafka.NodeID{1}, pe: 6, min: 2}.state())
	if l.Admits() {
		t.Fatal("one member admitted with a minimum of two")
	}
	l.Update(event{isr: []kafka.NodeID{1}, pe: 4, min: 1}.state()) // older: its minimum must not be taken
	if l.Admits() {
		t.Fatal("an older state lowered the minimum")
	}
	l.Update(event{isr: []kafka.NodeID{1}, pe: 7, min: 1}.state())
	if !l.Admits() {
		t.Fatal("the newer state was not taken")
	}
}

// TestI3_EventsOfAnotherEpochSayNothing: a state of another leader epoch is another Leader's.
func TestI3_EventsOfAnotherEpochSayNothing(t *testing.T) {
	l := begin(event{isr: []kafka.NodeID{1, 2}, pe: 1, min: 1})
	l.Stored(10)
	s := event{isr: []kafka.NodeID{1}, pe: 9, min: 1}.state()
	s.LeaderEpoch = 2
	if e := l.Update(s); e.Advanced || l.Epoch() != 1 || l.HighWatermark() != 0 {
		t.Fatalf("a state of epoch 2 was taken in epoch 1: %+v, watermark %d", e, l.HighWatermark())
	}
	l.Reported(Origin{Node: 2, Broker: 1, Epoch: 0, Sequence: 1}, 10, 0)
	if e := l.Fetched(Origin{Node: 2, Broker: 1, Epoch: 0, Sequence: 2}, 10); e.Advanced {
		t.Fatal("progress made in epoch 0 counted in epoch 1")
	}
}

// TestEvents_AllocateNothing: the core is on the road of every publish.
func TestEvents_AllocateNothing(t *testing.T) {
	l := begin(event{isr: []kafka.NodeID{1, 2, 3}, pe: 1, min: 2})
	at := kafka.Offset(0)
	n := testing.AllocsPerRun(100, func() {
		at++
		l.Stored(at)
		l.Fetched(said(l, 2), at)
		l.Reported(said(l, 2), at, 0)
		l.Fetched(said(l, 3), at)
		l.Reported(said(l, 3), at, 0)
	})
	if n != 0 || l.HighWatermark() != at {
		t.Fatalf("%v allocations a round, watermark %d of %d", n, l.HighWatermark(), at)
	}
}

// TestC018_OpenISRChangeCountsBothSets: the shrink that drops replica 3 has been proposed and no answer came. Nothing is
// committed on the smaller set before the controller's state says so; and with an open expansion nothing without the new member.
func TestC018_OpenISRChangeCountsBothSets(t *testing.T) {
	l := begin(event{isr: []kafka.NodeID{1, 2, 3}, pe: 1, min: 2})
	l.Stored(10)
	l.Fetched(said(l, 2), 10)
	l.Reported(said(l, 2), 10, 0)
	l.open([]kafka.NodeID{1, 2})
	if e := l.Stored(11); e.Advanced || l.Committed(1) {
		t.Fatalf("committed on the proposed set only: watermark %d", l.HighWatermark())
	}
	if e := l.Update(event{isr: []kafka.NodeID{1, 2}, pe: 2, min: 2}.state()); !e.Advanced || e.HighWatermark != 10 {
		t.Fatalf("the committed change had no effect: %+v", e)
	}
	l.open([]kafka.NodeID{1, 2, 3})
	l.Fetched(said(l, 2), 11)
	l.Reported(said(l, 2), 11, 0)
	if l.Committed(11) {
		t.Fatal("committed without a member that the controller may already have taken in")
	}
}
