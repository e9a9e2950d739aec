package group

import "strandline.dev/internal/kafka"

// prepare begins a rebalance: all members are to join again.
func (x *step) prepare(g *group, why string) {
	c := &g.classic
	for m := range c.all() {
		if m.sync != 0 {
			x.failSync(m, kafka.RebalanceInProgress)
			x.refresh(m)
		}
		m.owesSync = false
	}
	c.unsynced = 0
	x.timers.disarm(&c.syncTimer)
	wasEmpty := c.phase == empty
	c.phase = preparing
	c.initial = initialDelay{active: wasEmpty, since: x.now.Mono}
	x.note(g, Note{Kind: RebalanceStarted, Why: why})
	switch {
	case !wasEmpty:
		x.arm(&c.joinTimer, c.rebalanceTimeout())
		x.maybeCompleteJoin(g)
	case x.cfg.InitialDelay > 0:
		x.arm(&c.joinTimer, x.cfg.InitialDelay)
	default:
		x.completeJoin(g)
	}
}

// membersChanged reacts to members that are out.
func (x *step) membersChanged(g *group, why string) {
	switch g.classic.phase {
	case completing, stable:
		x.prepare(g, why)
	case preparing:
		x.maybeCompleteJoin(g)
	case empty:
	}
}

// maybeCompleteJoin ends the join phase when everybody is there. The initial delay is waited out: more may come.
func (x *step) maybeCompleteJoin(g *group) {
	c := &g.classic
	if c.phase == preparing && !c.initial.active && c.joining == len(c.members) && len(c.pending) == 0 {
		x.completeJoin(g)
	}
}

// joinExpired ends the join phase without those that did not come, or extends the initial delay while members keep coming, up to the
// longest rebalance time-out.
func (x *step) joinExpired(g *group) {
	x.touched = append(x.touched, g)
	c := &g.classic
	left := c.rebalanceTimeout() - x.now.Mono.Sub(c.initial.since)
	if c.initial.active && c.initial.newcomer && left > 0 {
		c.initial.newcomer = false
		x.arm(&c.joinTimer, min(x.cfg.InitialDelay, left))
		return
	}
	x.completeJoin(g)
}

// completeJoin ends the join phase: dynamic members that did not come back are out, static ones stay until their session ends.
func (x *step) completeJoin(g *group) {
	c := &g.classic
	x.timers.disarm(&c.joinTimer)
	c.initial.active = false
	for m := range c.all() {
		if m.join == 0 && m.instance == "" {
			x.dropMember(g, m, "it did not rejoin within the rebalance time-out")
		}
	}
	if len(c.members) > 0 && !c.electLeader() {
		// Only silent static members are left. Their sessions decide.
		x.arm(&c.joinTimer, c.rebalanceTimeout())
		return
	}
	c.generation = c.nextGeneration()
	if len(c.members) == 0 {
		x.becomeEmpty(g)
		return
	}
	c.phase = completing
	c.protocol = c.chooseProtocol()
	for m := range c.all() {
		if m.join == 0 {
			continue
		}
		x.answerJoin(g, m, m.join)
		delete(x.waiting, m.join)
		m.join, m.isNew, m.owesSync = 0, false, true
		c.unsynced++
		x.refresh(m)
	}
	c.joining = 0
	x.arm(&c.syncTimer, c.rebalanceTimeout())
}

// electLeader keeps the leader if it has joined, and takes the first that has otherwise; false when nobody has.
func (c *classicGroup) electLeader() bool {
	if c.leader != nil && c.leader.join != 0 {
		return true
	}
	for m := range c.all() {
		if m.join != 0 {
			c.leader = m
			return true
		}
	}
	return false
}

// becomeEmpty records that a group has no members: from now on its offsets age.
func (x *step) becomeEmpty(g *group) {
	c := &g.classic
	c.phase, c.protocol, c.leader = empty, "", nil
	x.watchExpiry(g)
	x.record(g, groupRecord(g, x.stampMs(), nil))
	x.note(g, Note{Kind: RebalanceCompleted, Why: "no members are left"})
}
