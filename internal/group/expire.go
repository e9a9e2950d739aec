package group

import (
	"fmt"
	"time"
)

// watchExpiry arms the timer of a group that has no members. The first look decides when the next one is.
func (x *step) watchExpiry(g *group) {
	if len(g.offsets) == 0 && g.owed == 0 {
		x.arm(&g.expiry, emptyGroupKept)
		return
	}
	x.arm(&g.expiry, expiryCheckMax)
}

// expire removes the offsets of a group without members that have reached their retention, and the group when nothing is left of it.
// Groups with members keep all they have (C052): what a group reads is unsettled while it rebalances.
func (x *step) expire(g *group) {
	x.touched = append(x.touched, g)
	c := &g.classic
	if g.isActive() {
		return // armed again when it becomes empty
	}
	if len(c.pending) > 0 {
		x.arm(&g.expiry, expiryCheckMin)
		return
	}
	kept, wait := 0, expiryCheckMax
	for p, o := range g.sortedOffsets() {
		x.looked++
		left := x.timeLeft(g, o)
		if left > 0 {
			kept++
			wait = min(wait, max(left, expiryCheckMin))
			continue
		}
		if len(x.out.Records) >= recordsMax {
			kept++
			wait = 0
			break
		}
		x.record(g, offsetTombstone(g.id, p))
		x.note(g, Note{Kind: OffsetExpired, Topic: p.topic, Partition: p.partition, Why: fmt.Sprintf("offset %d reached its retention", o.offset)})
	}
	if kept > 0 {
		x.arm(&g.expiry, wait)
		return
	}
	x.removeGroup(g, "no members and no offsets")
}

// timeLeft is how long an offset of a group without members still lives; 0 or less when it is over. The time counts from the later of
// the group's last member and the commit. It is at least RetentionFloor, and at least as long as the topic keeps its records.
func (x *step) timeLeft(g *group, o committed) time.Duration {
	retention := x.cfg.OffsetRetention
	if x.kept != nil {
		records := x.kept(o.topic)
		if records < 0 {
			return expiryCheckMax
		}
		retention = max(retention, records)
	}
	return retention - x.age(max(o.atMs, g.emptySinceMs()))
}

// age is the time since a stamp by whichever clock says less: the wall clock, or the steady one. A step of the wall clock makes nothing old
// (C049): stamps are never behind the steady clock of their reign, so within it no age exceeds the time that has really passed.
func (x *step) age(ms int64) time.Duration {
	stamp := time.UnixMilli(ms)
	return min(x.now.Wall.Sub(stamp), x.steady().Sub(stamp))
}

// steady is the wall clock of when the shard was loaded and the monotonic time since.
func (x *step) steady() time.Time {
	return x.loadedAt.Wall.Add(x.now.Mono.Sub(x.loadedAt.Mono))
}

// stampMs is what a record of this step says about its time, in milliseconds since the Unix epoch: the later of the wall clock and
// the steady one.
func (x *step) stampMs() int64 {
	return max(x.now.Wall.UnixMilli(), x.steady().UnixMilli())
}
