package group

import "strandline.dev/internal/kafka"

// leave decides on a LeaveGroup: each member for itself, then at most one rebalance for all.
func (x *step) leave(ev *Leave) {
	if code := checkGroupID(ev.Group); code != kafka.None {
		x.reply(ev.Token, &LeaveReply{Code: code})
		return
	}
	g := x.find(ev.Group)
	if g != nil && len(g.consumer.members) > 0 {
		x.leaveConsumers(g, ev)
		return
	}
	r := &LeaveReply{Members: make([]LeftMember, len(ev.Members))}
	why := ""
	for i, l := range ev.Members {
		r.Members[i] = LeftMember{MemberID: l.MemberID, InstanceID: l.InstanceID, Code: kafka.UnknownMemberID}
		if g == nil {
			continue
		}
		if l.InstanceID == "" && x.endPending(g, l.MemberID) {
			r.Members[i].Code = kafka.None
			continue
		}
		m, code := g.classic.lookupLeaving(l)
		r.Members[i].Code = code
		if code == kafka.None {
			x.dropMember(g, m, "it left"+because(l.Reason))
			why = "member " + m.id + " left" + because(l.Reason)
		}
	}
	x.reply(ev.Token, r)
	switch {
	case why != "":
		x.membersChanged(g, why)
	case g != nil:
		x.maybeCompleteJoin(g) // it may have waited for one that was pending
	}
}

// lookupLeaving finds a member that is to go. An administrator knows no member ids and gives the instance id alone.
func (c *classicGroup) lookupLeaving(l LeavingMember) (*member, kafka.ErrorCode) {
	if l.InstanceID == "" || l.MemberID != "" {
		return c.lookup(l.MemberID, l.InstanceID)
	}
	if m := c.instances[l.InstanceID]; m != nil {
		return m, kafka.None
	}
	return nil, kafka.UnknownMemberID
}
