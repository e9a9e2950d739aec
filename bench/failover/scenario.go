package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"strandline.dev/test/chaos/raw"
	"strandline.dev/test/chaos/rig"
)

const (
	// settleMax bounds the way back to a whole cluster between rounds, and answerMax the wait for a write after a fault.
	settleMax = 90 * time.Second
	answerMax = 60 * time.Second
	// warmUp is written before the fault; after is how long gaps are watched when every partition has been written to again.
	warmUp = time.Second
	after  = time.Second
)

// scenario is one kind of fault.
type scenario struct {
	name string
	// controller says whether the victim is the active controller or another node.
	controller bool
	proxied    bool
	// do harms; heal takes it back. other is a node that is not the victim.
	do, heal func(c *rig.Cluster, victim, other *rig.Node) error
	// watch is how long the fault lasts at least.
	watch time.Duration
	// median and worst are the bars.
	median, worst time.Duration
	// quiet says that the application must see no error.
	quiet bool
}

func scenarios() []scenario {
	kill := func(_ *rig.Cluster, v, _ *rig.Node) error { v.Kill(); return nil }
	start := func(_ *rig.Cluster, v, _ *rig.Node) error { return v.Start() }
	pause := func(_ *rig.Cluster, v, _ *rig.Node) error { v.Pause(); return nil }
	resume := func(_ *rig.Cluster, v, _ *rig.Node) error { v.Resume(); return nil }
	term := func(_ *rig.Cluster, v, _ *rig.Node) error { return errors.Join(v.Terminate(), v.Wait()) }
	cut := func(c *rig.Cluster, v, o *rig.Node) error { c.Cut(v.ID, o.ID); return nil }
	mend := func(c *rig.Cluster, _, _ *rig.Node) error { c.Heal(); return nil }
	return []scenario{
		{name: "kill", do: kill, heal: start, median: 300 * time.Millisecond, worst: time.Second},
		{name: "kill-controller", controller: true, do: kill, heal: start, worst: 2 * time.Second},
		{name: "pause", do: pause, heal: resume, worst: 3 * time.Second},
		{name: "pause-controller", controller: true, do: pause, heal: resume, worst: 4 * time.Second},
		{name: "term", do: term, heal: start, worst: 150 * time.Millisecond, quiet: true},
		{name: "term-controller", controller: true, do: term, heal: start, worst: 150 * time.Millisecond, quiet: true},
		{name: "cut", proxied: true, do: cut, heal: mend, watch: 8 * time.Second, worst: 6 * time.Second},
	}
}

// seen is what a round saw: the gap of the worst partition of all before the fault, of those that the victim led during the fault, and of all
// while healing, the longest flush of the disk's watch from the fault to the end of the gaps, and the errors that reached the application.
type seen struct {
	calm, worst, back, disk time.Duration
	errors                  int
}

// round is one fault and its healing.
func round(o options, c *rig.Cluster, disk *diskWatch, client string, s scenario) (out seen, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), settleMax)
	defer cancel()
	if err := errors.Join(c.Whole(ctx, 3, topic), c.Balance(ctx, topic)); err != nil {
		return out, err
	}
	active, err := c.Controller(ctx)
	if err != nil {
		return out, err
	}
	victim := c.Node(active)
	if !s.controller {
		victim = c.Node(active%3 + 1)
	}
	other := c.Node(victim.ID%3 + 1)
	before, err := c.Shown(ctx, topic)
	if err != nil {
		return out, err
	}
	w, err := begin(ctx, o, c, client)
	if err != nil {
		return out, err
	}
	defer w.end()
	led := ledBy(before, victim.ID)
	if err := w.wrote(ctx, all(o.partitions), time.Now()); err != nil {
		return out, err
	}
	warming := time.Now()
	<-time.After(warmUp)
	fault := time.Now()
	out.calm = w.worst(all(o.partitions), warming, fault)
	if err := s.do(c, victim, other); err != nil {
		return out, err
	}
	<-time.After(max(after, s.watch))
	answer, stop := context.WithTimeout(ctx, answerMax)
	defer stop()
	if err := w.wrote(answer, led, fault.Add(after)); err != nil {
		return out, fmt.Errorf("victim %d: %w", victim.ID, err)
	}
	healing := time.Now()
	out.worst = w.worst(led, fault, healing)
	if out.disk, err = disk.longest(fault, healing); err != nil {
		return out, err
	}
	if err := s.heal(c, victim, other); err != nil {
		return out, err
	}
	if err := victim.Ready(ctx); err != nil {
		return out, err
	}
	if err := errors.Join(c.Whole(ctx, 3, topic), c.Balance(ctx, topic)); err != nil {
		return out, fmt.Errorf("victim %d after healing: %w", victim.ID, err)
	}
	<-time.After(after / 2)
	out.back, out.errors = w.worst(all(o.partitions), healing, time.Now()), w.failures()
	return out, nil
}

func ledBy(parts []raw.Partition, node int32) []int {
	var out []int
	for p, s := range parts {
		if s.Leader == node {
			out = append(out, p)
		}
	}
	return out
}

func all(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}
