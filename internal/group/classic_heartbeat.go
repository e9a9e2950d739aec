package group

import "strandline.dev/internal/kafka"

// heartbeat decides on a Heartbeat. Its answer is how members learn of a rebalance.
func (x *step) heartbeat(ev *Heartbeat) {
	x.reply(ev.Token, &HeartbeatReply{Code: x.beat(ev)})
}

func (x *step) beat(ev *Heartbeat) kafka.ErrorCode {
	if code := checkGroupID(ev.Group); code != kafka.None {
		return code
	}
	g := x.groups[ev.Group]
	if g == nil {
		return kafka.UnknownMemberID
	}
	if len(g.consumer.members) > 0 {
		return x.beatConsumers(g, ev)
	}
	m, code := g.classic.lookupIn(ev.MemberID, ev.InstanceID, ev.Generation)
	if code != kafka.None {
		return code
	}
	x.refresh(m)
	if g.classic.phase == preparing {
		return kafka.RebalanceInProgress
	}
	return kafka.None
}

// sessionExpired drops a member that was silent for its session time-out.
func (x *step) sessionExpired(g *group, m *member) {
	x.touched = append(x.touched, g)
	x.dropMember(g, m, "session time-out")
	x.membersChanged(g, "member "+m.id+" left: session time-out")
}
