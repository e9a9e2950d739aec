package main

import (
	"net"
	"slices"
	"strings"
	"testing"
	"time"
)

// A drain ends when what is left can go nowhere, and says what that is.
func TestNodeDrain_WhatHasNowhereToGo(t *testing.T) {
	v := newTestView()
	if got := v.stuckOn(3); len(got) != 0 {
		t.Errorf("node 4 can take everything: %v", got)
	}
	v.Nodes[3].Draining = true
	if got := v.stuckOn(3); !slices.Equal(got, []string{"t-0", "t-1", "t-2", "t-3"}) {
		t.Errorf("node 4 takes nothing: %v", got)
	}
	v.Partitions[0].Adding, v.Partitions[0].Removing = []int32{4}, []int32{3}
	if got := v.stuckOn(3); len(got) != 3 {
		t.Errorf("what moves is not stuck: %v", got)
	}
	if got := firstOf([]string{"a", "b", "c", "d", "e", "f"}); got != "a, b, c, d, e and 1 more" {
		t.Error(got)
	}
}

// The number of replicas changes only when that is asked for.
func TestPartitionMove_KeepsTheNumberOfReplicas(t *testing.T) {
	v := newTestView()
	_, err := moveFlags{to: []string{"2", "4"}}.plan(v, []string{"t"})
	if err == nil || !strings.Contains(err.Error(), "t-0 has 3 replicas, and --to names 2 nodes; name as many, or add --change-factor") {
		t.Error(err)
	}
	for _, f := range []moveFlags{{to: []string{"2", "4"}, changeFactor: true}, {to: []string{"2", "4", "1"}}, {cancel: true}} {
		if _, err := f.plan(v, []string{"t"}); err != nil {
			t.Errorf("%+v: %v", f, err)
		}
	}
}

// One broker that is down among those that were named costs nothing.
func TestAnswering_LeavesOutWhoIsDown(t *testing.T) {
	up, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer up.Close()
	down, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	down.Close()
	a, b := down.Addr().String(), up.Addr().String()
	if got := answering([]string{a, b}, time.Second); !slices.Equal(got, []string{b}) {
		t.Errorf("%v of %s (down) and %s", got, a, b)
	}
	if got := answering([]string{a, a}, time.Second); len(got) != 2 {
		t.Errorf("nobody answers, and %v is left", got)
	}
	if got := answering([]string{a}, time.Second); len(got) != 1 {
		t.Error("the only one was left out")
	}
}
