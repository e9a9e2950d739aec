package group

import "strandline.dev/internal/kafka"

// join decides on a JoinGroup.
func (x *step) join(ev *Join) {
	if code := x.checkJoin(ev); code != kafka.None {
		x.refuseJoin(ev, code)
		return
	}
	g := x.find(ev.Group)
	if g == nil {
		if ev.MemberID != "" {
			x.refuseJoin(ev, kafka.UnknownMemberID)
			return
		}
		if g = x.create(ev.Group); g == nil {
			x.refuseJoin(ev, kafka.PolicyViolation)
			return
		}
	}
	if x.mayGoDown(g) {
		x.convertDown(g, ev.Catalog)
	} else if len(g.consumer.members) > 0 {
		x.joinConsumers(g, ev)
		return
	}
	switch c := &g.classic; {
	case !x.hasRoom(g, ev):
		x.turnAway(g, ev)
	case !c.supports(ev.ProtocolType, ev.Protocols):
		x.refuseJoin(ev, kafka.InconsistentGroupProtocol)
	case ev.MemberID == "" && ev.InstanceID != "":
		x.joinStatic(g, ev)
	case ev.MemberID == "" && ev.RequireMemberID:
		x.assignID(g, ev)
	case ev.MemberID == "":
		x.admit(g, newMemberID(ev), ev)
	case c.pending[ev.MemberID] != nil && ev.InstanceID == "":
		x.endPending(g, ev.MemberID)
		x.admit(g, ev.MemberID, ev)
	default:
		x.rejoin(g, ev)
	}
	x.maybeCompleteJoin(g)
}

// checkJoin refuses what no group would accept (K44, K46).
func (x *step) checkJoin(ev *Join) kafka.ErrorCode {
	if code := checkGroupID(ev.Group); code != kafka.None {
		return code
	}
	if ev.SessionTimeout < x.cfg.SessionMin || ev.SessionTimeout > x.cfg.SessionMax {
		return kafka.InvalidSessionTimeout
	}
	if len(ev.InstanceID) > nameBytesMax {
		return kafka.InvalidRequest
	}
	if len(ev.Protocols) > protocolsMax || protocolBytes(ev.Protocols) > x.cfg.ProtocolBytesMax {
		return kafka.GroupMaxSizeReached
	}
	if len(ev.ProtocolType) > nameBytesMax {
		return kafka.InconsistentGroupProtocol
	}
	seen := map[string]bool{}
	for _, p := range ev.Protocols {
		if len(p.Name) > nameBytesMax || seen[p.Name] {
			return kafka.InconsistentGroupProtocol
		}
		seen[p.Name] = true
	}
	return kafka.None
}

// hasRoom applies the limits of the group. While members are joining, those that have not come back do not hold a place.
func (x *step) hasRoom(g *group, ev *Join) bool {
	c := &g.classic
	old := c.members[ev.MemberID]
	if old == nil && ev.InstanceID != "" && ev.MemberID == "" {
		old = c.instances[ev.InstanceID] // to be replaced: the group does not grow
	}
	recordBytes, protocolsBytes := c.recordBytes, c.protocolBytes
	if old != nil {
		recordBytes, protocolsBytes = recordBytes-old.recordBytes(), protocolsBytes-protocolBytes(old.protocols)
	}
	asked := member{instance: ev.InstanceID, clientID: clip(ev.ClientID, clientBytesMax), clientHost: ev.ClientHost, protocols: ev.Protocols}
	isTooLarge := recordBytes+asked.recordBytes()+len(newMemberID(ev)) > x.cfg.RecordBytesMax ||
		protocolsBytes+protocolBytes(ev.Protocols) > groupProtocolBytesMax
	switch {
	case isTooLarge || ev.MemberID == "" && len(c.pending) >= pendingMax:
		return false
	case c.phase == preparing:
		return c.joining < x.cfg.MaxSize || old != nil && old.join != 0
	}
	return old != nil || len(c.members) < x.cfg.MaxSize
}

// turnAway refuses a member for which there is no room. One that was in the group before the rebalance is out of it.
func (x *step) turnAway(g *group, ev *Join) {
	if m, code := g.classic.lookup(ev.MemberID, ev.InstanceID); code == kafka.None && g.classic.phase == preparing {
		x.dropMember(g, m, "the group is full")
	}
	x.endPending(g, ev.MemberID)
	x.reply(ev.Token, &JoinReply{Code: kafka.GroupMaxSizeReached, Generation: NoGeneration})
}

func (x *step) refuseJoin(ev *Join, code kafka.ErrorCode) {
	id := ev.MemberID
	if code == kafka.GroupMaxSizeReached {
		id = ""
	}
	x.reply(ev.Token, &JoinReply{Code: code, Generation: NoGeneration, MemberID: id})
}

// assignID tells a new dynamic member its id and waits for it to join with it: a client that repeats a join whose answer it did
// not see then leaves no ghost behind (KIP-394).
func (x *step) assignID(g *group, ev *Join) {
	id := newMemberID(ev)
	if g.classic.pending == nil {
		g.classic.pending = map[string]*timer{}
	}
	t := &timer{kind: pendingTimer, group: g, id: id}
	g.classic.pending[id] = t
	x.arm(t, ev.SessionTimeout)
	x.reply(ev.Token, &JoinReply{Code: kafka.MemberIDRequired, Generation: NoGeneration, MemberID: id})
}

// endPending forgets that an id was given out; false when it was not.
func (x *step) endPending(g *group, id string) bool {
	t := g.classic.pending[id]
	if t == nil {
		return false
	}
	x.timers.disarm(t)
	delete(g.classic.pending, id)
	return true
}

// pendingExpired gives up waiting for a client that was told its id.
func (x *step) pendingExpired(g *group, id string) {
	x.touched = append(x.touched, g)
	x.endPending(g, id)
	x.maybeCompleteJoin(g)
}

// admit makes a new member.
func (x *step) admit(g *group, id string, ev *Join) {
	c := &g.classic
	if g.consumer.isThere() && len(g.consumer.members) == 0 { // else it was just converted
		x.replaceConsumer(g)
	}
	m := &member{id: id, instance: ev.InstanceID, isNew: true}
	m.timer = timer{kind: sessionTimer, group: g, member: m}
	m.take(ev)
	c.protocolType = ev.ProtocolType
	c.add(m)
	c.initial.newcomer = true
	x.parkJoin(g, m, ev.Token)
	if c.phase != preparing {
		x.prepare(g, "member "+id+" joined"+because(ev.Reason))
	}
}

// rejoin decides on the join of a known member.
func (x *step) rejoin(g *group, ev *Join) {
	c := &g.classic
	m, code := c.lookup(ev.MemberID, ev.InstanceID)
	if code != kafka.None {
		x.refuseJoin(ev, code)
		return
	}
	why := ""
	switch {
	case c.phase == preparing:
	case !m.matches(ev.Protocols):
		why = "member " + m.id + " changed what it reads" + because(ev.Reason)
	case c.phase == stable && c.leader == m:
		why = "leader " + m.id + " asks for it" + because(ev.Reason)
	default:
		// The answer to its last join was lost, or it was not: either way it is told the generation it belongs to.
		x.answerJoin(g, m, ev.Token)
		x.refresh(m)
		return
	}
	c.update(m, m.id, ev)
	x.parkJoin(g, m, ev.Token)
	if c.phase != preparing {
		x.prepare(g, why)
	}
}

// answerJoin tells a member the generation it is in.
func (x *step) answerJoin(g *group, m *member, token uint64) {
	c := &g.classic
	r := &JoinReply{Generation: c.generation, ProtocolType: c.protocolType, Protocol: c.protocol, Leader: c.leaderID(), MemberID: m.id}
	if c.leader == m {
		r.Members = c.joined()
	}
	x.reply(token, r)
}

// newMemberID makes an id that nobody else has: the client's name, for people, and the random part as a UUID.
func newMemberID(ev *Join) string {
	name := clip(ev.ClientID, clientBytesMax)
	if ev.InstanceID != "" {
		name = ev.InstanceID
	}
	h := ev.Random.Hex()
	return name + "-" + h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
}

// because adds a client's own words to a reason.
func because(reason string) string {
	if reason == "" {
		return ""
	}
	return ": " + clip(reason, reasonBytesMax)
}
