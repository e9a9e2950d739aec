package group

import (
	"slices"

	"github.com/twmb/franz-go/pkg/kmsg"

	"strandline.dev/internal/kafka"
)

// joinStatic decides on a join that brings an instance id and no member id: a new static member, or a new process of one that is
// known. The new process takes the place of the old one in every phase, and the old one is fenced (C056).
func (x *step) joinStatic(g *group, ev *Join) {
	c := &g.classic
	m := c.instances[ev.InstanceID]
	if m == nil {
		x.admit(g, newMemberID(ev), ev)
		return
	}
	x.fence(g, m)
	if c.phase == stable && x.keepsAssignment(g, m, ev) {
		x.replaceQuietly(g, m, ev)
		return
	}
	c.update(m, newMemberID(ev), ev)
	x.parkJoin(g, m, ev.Token)
	if c.phase != preparing {
		x.prepare(g, "static member "+ev.InstanceID+" came back"+because(ev.Reason))
	}
}

// fence answers what the old process of a static member still waits for.
func (x *step) fence(g *group, m *member) {
	if m.join != 0 {
		g.classic.joining--
	}
	x.failJoin(m, kafka.FencedInstanceID)
	x.failSync(m, kafka.FencedInstanceID)
}

// keepsAssignment says whether the assignments of a stable group still fit when a static member comes back with this join: the
// same protocol would be chosen, and it reads the same topics.
func (x *step) keepsAssignment(g *group, m *member, ev *Join) bool {
	c := &g.classic
	if !m.sameNames(ev.Protocols) {
		before := m.protocols
		c.count(m, -1)
		m.protocols = ev.Protocols
		c.count(m, 1)
		chosen := c.chooseProtocol()
		c.count(m, -1)
		m.protocols = before
		c.count(m, 1)
		if chosen != c.protocol {
			return false
		}
	}
	if c.protocolType != consumerType {
		return true
	}
	asked := member{protocols: ev.Protocols}
	return sameTopics(m.metadata(c.protocol), asked.metadata(c.protocol))
}

// replaceQuietly gives a static member of a stable group its new id without a rebalance. The record carries the new id with
// the old assignment.
func (x *step) replaceQuietly(g *group, m *member, ev *Join) {
	c := &g.classic
	oldID, oldLeader := m.id, c.leaderID()
	c.update(m, newMemberID(ev), ev)
	x.record(g, groupRecord(g, x.stampMs(), func(n *member) []byte {
		if n == m {
			return g.stored.assignment(oldID)
		}
		return g.stored.assignment(n.id)
	}))
	r := &JoinReply{Generation: c.generation, ProtocolType: c.protocolType, Protocol: c.protocol, Leader: oldLeader, MemberID: m.id}
	if c.leader == m && ev.CanSkip {
		r.Leader, r.Members, r.SkipAssign = m.id, c.joined(), true
	}
	// Below v9 a leader is told its old id as the leader's: it takes itself for a follower and does not assign, which a stable group
	// would not hear.
	x.replyAfterCommit(ev.Token, r)
	x.refresh(m)
}

// consumerType is the protocol type whose metadata is known to everyone: the consumers' own.
const consumerType = "consumer"

// topicsOf reads the topics of a consumer's subscription; false when it is not one.
func topicsOf(metadata []byte) ([]string, bool) {
	var meta kmsg.ConsumerMemberMetadata
	if meta.ReadFrom(metadata) != nil {
		return nil, false
	}
	slices.Sort(meta.Topics)
	return slices.Compact(meta.Topics), true
}

func sameTopics(a, b []byte) bool {
	x, okX := topicsOf(a)
	y, okY := topicsOf(b)
	return okX == okY && slices.Equal(x, y)
}
