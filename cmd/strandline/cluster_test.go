package main

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

// newTestView is three nodes in three racks and a spare one, and healthy partitions.
func newTestView() *clusterView {
	v := &clusterView{ClusterID: "c", Controller: 1, Term: 4, Controllers: []int32{1, 2, 3}}
	for id, rack := range []string{"a", "b", "c", "a"} {
		v.Nodes = append(v.Nodes, viewNode{ID: int32(id + 1), Rack: rack, Address: fmt.Sprintf("h%d:9092", id+1)})
	}
	for p := range int32(4) {
		v.Partitions = append(v.Partitions, viewPartition{Topic: "t", Partition: p, Leader: p%3 + 1, Replicas: []int32{1, 2, 3}, ISR: []int32{1, 2, 3}})
	}
	v.count()
	return v
}

// count fills in what nodes hold.
func (v *clusterView) count() {
	for i := range v.Nodes {
		v.Nodes[i].Replicas = 0
		for _, p := range v.Partitions {
			for _, r := range p.Replicas {
				if r == v.Nodes[i].ID {
					v.Nodes[i].Replicas++
				}
			}
		}
	}
}

func TestClusterHealth_SaysWhy(t *testing.T) {
	v := newTestView()
	var out strings.Builder
	show := func() string {
		out.Reset()
		if err := (printer{w: &out}).printHealth(judge(v)); err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	if got, want := show(), "cluster c is healthy: 4 of 4 nodes up, 4 partitions, controller 1\n"; got != want {
		t.Errorf("%q\nwant %q", got, want)
	}
	v.Controller, v.Quorum, v.Unreached = -1, "none has answered node 1 for 12s", []int32{3}
	v.Nodes[0].Silent = "connection refused"
	v.Nodes[2].Fenced, v.Nodes[3].Fenced, v.Nodes[1].Draining = true, true, true
	v.Partitions[0].ISR = []int32{1, 2}
	v.Partitions[1].ISR, v.Partitions[1].Adding = []int32{1, 2, 3}, []int32{4}
	v.Partitions[1].Replicas = []int32{1, 2, 3, 4}
	v.Partitions[2].Leader, v.Partitions[2].ISR, v.Partitions[2].ELR = -1, nil, []int32{3}
	v.Partitions[3].Leader, v.Partitions[3].ISR, v.Partitions[3].LastKnown = -1, nil, []int32{2}
	v.Nodes[3].Replicas = 0
	want := `cluster c is NOT healthy: 1 of 4 nodes up, 4 partitions, controller unknown
- no controller leads (none has answered node 1 for 12s): of the controllers 1, 2, 3, more than half must be up. Until then nodes and partitions are shown as they were last known; publishing and reading go on where enough replicas are up, changes and elections wait
- node 1 does not answer at h1:9092: connection refused; it holds 4 replicas
- node 3 is down or cannot be heard by the controller; it holds 4 replicas
- node 4 is down or cannot be heard by the controller; it holds no replica: start it, or forget it with ` + "`strandline node remove 4`" + `
- controller 3 cannot be reached by the node that was asked: it is down, or cut off
- 1 partition(s) offline, and no replica is sure to have every acknowledged record (the last that had: node 2); see ` + "`strandline partition elect --recover`" + `: t-3
- 1 partition(s) offline, waiting for node 3, which has every acknowledged record: t-2
- 1 partition(s) with fewer replicas in sync than they should have, because node 3 is down: t-0
  node 2 is being drained; 4 replicas are left
`
	if got := show(); got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
	v = newTestView()
	for p := range int32(9) {
		v.Partitions = append(v.Partitions, viewPartition{Topic: "u", Partition: p, Leader: 1, Replicas: []int32{1, 2}, ISR: []int32{1}})
	}
	if got := show(); !strings.Contains(got, "9 partition(s) with fewer replicas in sync than they should have, because node 2 is catching up: u-0, u-1, u-2, u-3, u-4 and 4 more") {
		t.Error(got)
	}
}

func TestMoves_ProgressAndETAAreMeasured(t *testing.T) {
	p := viewPartition{Topic: "t", Partition: 1, Replicas: []int32{4, 1, 2}, Adding: []int32{4}, Removing: []int32{2}}
	at := func(bytes int64) sizes { return sizes{"t-1": {1: 1000, 2: 990, 4: bytes}} }
	for _, c := range []struct {
		before, now  int64
		between      time.Duration
		copied, rate int64
		eta, share   string
	}{
		{200, 300, time.Second, 300, 100, "7s", "30%"},
		{200, 250, 500 * time.Millisecond, 250, 100, "8s", "25%"},
		{300, 300, time.Second, 300, 0, "unknown", "30%"},
		{900, 1000, time.Second, 1000, 100, "copied", "100%"},
		{500, 100, time.Second, 100, 0, "unknown", "10%"}, // built anew
		{300, 300, 0, 300, 0, "unknown", "30%"},
	} {
		m := estimate([]*viewPartition{&p}, at(c.before), at(c.now), c.between)[0]
		if m.Bytes != 1000 || m.Copied != c.copied || m.Rate != c.rate || m.eta() != c.eta || m.share() != c.share {
			t.Errorf("%+v: %+v, %s, %s", c, m, m.eta(), m.share())
		}
	}
	if m := estimate([]*viewPartition{&p}, sizes{}, sizes{}, time.Second)[0]; m.Bytes != 0 || m.share() != "-" {
		t.Errorf("sizes that are not known: %+v", m)
	}
}

// After a node was added, replicas go to it, evenly, and never into fewer racks; what is down, draining or moving is left alone.
func TestSpread_MovesToTheNewNodeByRacks(t *testing.T) {
	v := newTestView() // 1, 2 and 3 hold four replicas, 4 in the rack of 1 none
	plan := spread(v, nil)
	if len(plan) != 2 {
		t.Fatalf("%+v", plan)
	}
	for _, m := range plan {
		if fmt.Sprint(m.To) != "[4 2 3]" { // only 1 can be replaced: another would leave two replicas in rack a
			t.Errorf("%+v", m)
		}
	}
	if got := spread(v, []string{"other"}); len(got) != 0 {
		t.Errorf("another topic: %+v", got)
	}
	v.Nodes[3].Draining = true
	if got := spread(v, nil); len(got) != 0 {
		t.Errorf("onto a draining node: %+v", got)
	}
	v.Nodes[3].Draining = false
	for i := range v.Partitions {
		v.Partitions[i].Adding = []int32{2}
	}
	if got := spread(v, nil); len(got) != 0 {
		t.Errorf("while all are moving: %+v", got)
	}
}

func TestPartitionElect_WhatReplicasHoldIsShown(t *testing.T) {
	var e elected
	e.told([]byte{0x27, 0x11, 0, 0xff, 0xff, 0xff, 0xff, 2, 0, 0, 0, 2, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0, 9, 0})
	e.Topic, e.Done = "t", true
	var out strings.Builder
	if err := (printer{w: &out}).printElected([]elected{e}, true); err != nil {
		t.Fatal(err)
	}
	want := "PARTITION  RESULT     REPLICAS (NODE: LAST EPOCH, END)\nt-0        no leader  2: 7, 9\n"
	if out.String() != want {
		t.Errorf("%q\nwant %q", out.String(), want)
	}
	for _, c := range []struct {
		e    elected
		fail bool
	}{
		{elected{Topic: "t", Error: "ELECTION_NOT_NEEDED (broker 1 leads)"}, false},
		{elected{Topic: "t", Error: "PREFERRED_LEADER_NOT_AVAILABLE (down)"}, true},
	} {
		if err := (printer{w: &out}).printElected([]elected{c.e}, false); errors.Is(err, errPartial) != c.fail {
			t.Errorf("%+v: %v", c.e, err)
		}
	}
}
