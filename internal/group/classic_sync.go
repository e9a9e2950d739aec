package group

import (
	"bytes"
	"strconv"

	"strandline.dev/internal/kafka"
)

// sync decides on a SyncGroup.
func (x *step) sync(ev *Sync) {
	if g := x.find(ev.Group); g != nil && len(g.consumer.members) > 0 {
		x.syncConsumers(g, ev)
		return
	}
	g, m, code := x.checkSync(ev)
	if code != kafka.None {
		x.reply(ev.Token, &SyncReply{Code: code})
		return
	}
	c := &g.classic
	switch {
	case c.phase == completing && c.leader == m:
		x.assign(g, m, ev)
	case c.leader != m && len(ev.Assignments) > 0:
		x.reply(ev.Token, &SyncReply{Code: kafka.InvalidRequest}) // K45: only the leader assigns
	case c.phase == completing:
		x.failSync(m, kafka.RebalanceInProgress) // one that it left behind
		m.sync = ev.Token
		x.waiting[ev.Token] = m
		x.timers.disarm(&m.timer)
		x.settleSync(g, m)
	default:
		x.answerSync(g, ev.Token, g.stored.assignment(m.id))
		x.settleSync(g, m)
		x.refresh(m)
	}
}

// checkSync finds the member, in a phase in which there is something to sync.
func (x *step) checkSync(ev *Sync) (*group, *member, kafka.ErrorCode) {
	if code := checkGroupID(ev.Group); code != kafka.None {
		return nil, nil, code
	}
	g := x.find(ev.Group)
	if g == nil {
		return nil, nil, kafka.UnknownMemberID
	}
	c := &g.classic
	m, code := c.lookupIn(ev.MemberID, ev.InstanceID, ev.Generation)
	switch {
	case code != kafka.None:
		return nil, nil, code
	case ev.Protocol != nil && ev.Protocol.Type != c.protocolType:
		return nil, nil, kafka.InconsistentGroupProtocol
	case c.phase == preparing:
		x.refresh(m)
		return nil, nil, kafka.RebalanceInProgress
	case ev.Protocol != nil && ev.Protocol.Name != c.protocol:
		return nil, nil, kafka.InconsistentGroupProtocol
	}
	return g, m, kafka.None
}

// assign completes a generation with what its leader decided. Members that the leader forgot own nothing. The replies wait for
// the record: a crash before it is in the log leaves the generation before this one (I7).
func (x *step) assign(g *group, leader *member, ev *Sync) {
	c := &g.classic
	given := make(map[string][]byte, len(c.members))
	total := c.recordBytes
	for _, a := range ev.Assignments {
		if c.members[a.MemberID] == nil {
			continue
		}
		if total += len(a.Assignment); total > x.cfg.RecordBytesMax {
			// K45. The others go on waiting; a leader that has nothing better is dropped by the time-out of the syncs.
			x.reply(ev.Token, &SyncReply{Code: kafka.MessageTooLarge})
			x.refresh(leader)
			return
		}
		given[a.MemberID] = bytes.Clone(a.Assignment)
	}
	x.failSync(leader, kafka.RebalanceInProgress)
	leader.sync = ev.Token
	x.settleSync(g, leader)
	x.record(g, groupRecord(g, x.stampMs(), func(m *member) []byte { return given[m.id] }))
	c.phase = stable
	x.note(g, Note{Kind: RebalanceCompleted, Why: membersText(len(c.members))})
	for m := range c.all() {
		if m.sync == 0 {
			continue
		}
		x.answerSync(g, m.sync, given[m.id])
		delete(x.waiting, m.sync)
		m.sync = 0
		x.refresh(m)
	}
}

func (x *step) answerSync(g *group, token uint64, assignment []byte) {
	c := &g.classic
	x.replyAfterCommit(token, &SyncReply{ProtocolType: c.protocolType, Protocol: c.protocol, Assignment: assignment})
}

// settleSync notes that a member has asked for its assignment, or will never ask.
func (x *step) settleSync(g *group, m *member) {
	if !m.owesSync {
		return
	}
	m.owesSync = false
	if g.classic.unsynced--; g.classic.unsynced == 0 {
		x.timers.disarm(&g.classic.syncTimer)
	}
}

// syncExpired drops the members that were told their generation and did not ask for their assignment in time.
func (x *step) syncExpired(g *group) {
	dropped := 0
	for m := range g.classic.all() {
		if m.owesSync {
			x.dropMember(g, m, "it did not sync within the rebalance time-out")
			dropped++
		}
	}
	if dropped > 0 {
		x.membersChanged(g, membersText(dropped)+" did not sync within the rebalance time-out")
	}
}

func membersText(n int) string {
	if n == 1 {
		return "1 member"
	}
	return strconv.Itoa(n) + " members"
}
