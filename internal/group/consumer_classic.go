package group

import (
	"bytes"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"strandline.dev/internal/kafka"
)

// Members of the classic protocol in a consumer group (KIP-848). Their generation is their epoch, nobody leads, and no request waits: a join says what
// the member owns and moves it one step, a sync tells what it has, a heartbeat says when it is to join again.

// classicSubscription is what a consumer of the classic protocol says about itself.
type classicSubscription struct {
	subscription
	owned      []kmsg.ConsumerMemberMetadataOwnedPartition
	generation Generation // in which it owns them; NoGeneration where it does not say
}

// readConsumerWords reads what a consumer says of itself in the classic protocol; false when it cannot be read.
func readConsumerWords(metadata []byte) (*classicSubscription, bool) {
	meta := kmsg.NewConsumerMemberMetadata()
	if meta.ReadFrom(bytes.Clone(metadata)) != nil {
		return nil, false
	}
	s := &classicSubscription{owned: meta.OwnedPartitions, generation: Generation(meta.Generation)}
	slices.Sort(meta.Topics)
	s.topics, s.rack = slices.Compact(meta.Topics), orEmpty(meta.Rack)
	return s, true
}

// joinConsumers decides on the join of a member of the classic protocol.
func (x *step) joinConsumers(g *group, ev *Join) {
	d := x.change(g, ev.Catalog)
	if ev.ProtocolType != consumerType || !d.supports(ev) {
		x.refuseJoin(ev, kafka.InconsistentGroupProtocol)
		return
	}
	said, ok := readConsumerWords(ev.Protocols[0].Metadata)
	if !ok {
		x.refuseJoin(ev, kafka.InconsistentGroupProtocol)
		return
	}
	if ev.MemberID == "" && ev.InstanceID == "" && ev.RequireMemberID && len(g.classic.pending) < pendingMax {
		x.assignID(g, ev)
		return
	}
	id, code := d.admitClassic(ev)
	if code != kafka.None {
		x.refuseJoin(ev, code)
		return
	}
	before := d.c.members[id]
	m := d.edit(id)
	old := m.subscription
	isLate := d.isLate(m, said)
	if !isLate {
		m.takeClassic(ev, said)
	}
	d.compare(m, &old)
	d.assign()
	if !isLate {
		d.reconcile(id, said.ownedIn(d.catalog))
	}
	d.finish()
	x.endPending(g, id)
	for _, gone := range d.removed {
		x.unwatchConsumer(g, gone)
	}
	x.watchConsumer(g, before, m)
	if !isLate {
		x.arm(&g.consumer.sessions[id].revoke, milliseconds(m.rebalanceMs)) // until it has asked what it is to have
	}
	g.consumer.seen = ev.Catalog.Version()
	x.replyAfterCommit(ev.Token, &JoinReply{
		Generation: Generation(m.epoch), ProtocolType: consumerType, Protocol: m.classic.protocols[0].Name, MemberID: id,
	})
}

// supports says whether a member with these protocols can be in the group: the others of the classic protocol must have one of them, so that they can
// go on without a member of the consumer protocol, and there must be room for them.
func (d *change) supports(ev *Join) bool {
	if len(ev.Protocols) == 0 {
		return false
	}
	others, total, by := 0, protocolBytes(ev.Protocols), map[string]int{}
	for id, m := range d.c.members {
		if m.classic == nil || id == ev.MemberID || ev.InstanceID != "" && m.instance == ev.InstanceID {
			continue
		}
		others++
		total += protocolBytes(m.classic.protocols)
		for _, p := range m.classic.protocols {
			by[p.Name]++
		}
	}
	return total <= groupProtocolBytesMax && slices.ContainsFunc(ev.Protocols, func(p Protocol) bool { return by[p.Name] == others })
}

// admitClassic finds the member that a join speaks for, and makes it when it is new. A new process of a static member takes the place of the old
// one at once, as in a classic group (C056).
func (d *change) admitClassic(ev *Join) (id string, code kafka.ErrorCode) {
	static := ""
	if ev.InstanceID != "" {
		static = d.c.instances[ev.InstanceID]
	}
	id = ev.MemberID
	m := d.c.members[id]
	switch {
	case id == "" && static != "":
		id = newMemberID(ev)
		d.replaceStatic(static, id)
		return id, kafka.None
	case id == "":
		id = newMemberID(ev)
	case ev.InstanceID != "" && static == "":
		return id, kafka.UnknownMemberID
	case static != "" && static != id:
		return id, kafka.FencedInstanceID
	case m != nil && m.classic != nil:
		return id, kafka.None
	case m != nil || d.g.classic.pending[id] == nil:
		return id, kafka.UnknownMemberID
	}
	if d.size() >= d.cfg.ConsumerMaxSize {
		return id, kafka.GroupMaxSizeReached
	}
	d.edit(id)
	d.bump("member " + id + " joined" + because(ev.Reason))
	return id, kafka.None
}

// takeClassic takes in what a member says about itself with a join.
func (m *consumerMember) takeClassic(ev *Join, said *classicSubscription) {
	rebalance := ev.RebalanceTimeout
	if rebalance <= 0 {
		rebalance = ev.SessionTimeout
	}
	m.subscription = said.subscription
	m.instance, m.rebalanceMs = ev.InstanceID, millis(rebalance)
	m.clientID, m.clientHost = clip(ev.ClientID, clientBytesMax), clip(ev.ClientHost, clientBytesMax)
	w := &classicWords{sessionMs: millis(ev.SessionTimeout), protocols: make([]Protocol, len(ev.Protocols))}
	for i, p := range ev.Protocols {
		w.protocols[i] = Protocol{Name: p.Name, Metadata: bytes.Clone(p.Metadata)}
	}
	m.classic = w
}

// isLate says whether a join is of an epoch before the one that its member has shown to know: it gives nothing up (I7). Its sender is told where the member
// is now.
func (d *change) isLate(m *consumerMember, said *classicSubscription) bool {
	if said.generation < 0 || m.epoch <= 0 || MemberEpoch(said.generation) == m.epoch {
		return false
	}
	s := d.g.consumer.sessions[m.id]
	return MemberEpoch(said.generation) != m.previous || s != nil && s.shown == m.epoch
}

// ownedIn is what a member says that it owns, never nil.
func (s *classicSubscription) ownedIn(catalog Catalog) []kafka.TopicPartition {
	owned := []kafka.TopicPartition{}
	for _, t := range s.owned {
		id, _, ok := catalog.Topic(t.Topic)
		for _, p := range t.Partitions {
			if ok {
				owned = append(owned, kafka.TopicPartition{Topic: id, Partition: p})
			}
		}
	}
	return owned
}

// lookupClassic finds the member of the classic protocol that a request speaks for, in its generation.
func (c *consumerGroup) lookupClassic(memberID, instanceID string, gen Generation) (*consumerMember, kafka.ErrorCode) {
	if instanceID != "" {
		switch id, known := c.instances[instanceID]; {
		case !known:
			return nil, kafka.UnknownMemberID
		case id != memberID:
			return nil, kafka.FencedInstanceID
		}
	}
	m := c.members[memberID]
	switch {
	case m == nil || m.classic == nil:
		return nil, kafka.UnknownMemberID
	case MemberEpoch(gen) != m.epoch:
		return nil, kafka.IllegalGeneration
	}
	return m, kafka.None
}

// syncConsumers tells a member of the classic protocol what it has.
func (x *step) syncConsumers(g *group, ev *Sync) {
	c := &g.consumer
	m, code := c.lookupClassic(ev.MemberID, ev.InstanceID, ev.Generation)
	switch {
	case code != kafka.None:
	case ev.Protocol != nil && (ev.Protocol.Type != consumerType || ev.Protocol.Name != m.classic.protocols[0].Name):
		code = kafka.InconsistentGroupProtocol
	case c.epoch > m.epoch && m.state != revoking:
		code = kafka.RebalanceInProgress
	}
	if code != kafka.None {
		if code == kafka.RebalanceInProgress {
			x.heard(g, m)
			x.awaitJoin(g, m)
		}
		x.reply(ev.Token, &SyncReply{Code: code})
		return
	}
	x.heard(g, m)
	x.timers.disarm(&c.sessions[m.id].revoke)
	if m.state == revoking {
		x.awaitJoin(g, m)
	}
	x.replyAfterCommit(ev.Token, &SyncReply{
		ProtocolType: consumerType, Protocol: m.classic.protocols[0].Name, Assignment: classicAssignment(m.topics, sortedHoldings(m.assigned), ev.Catalog),
	})
}

// beatConsumers decides on the heartbeat of a member of the classic protocol. It is to join again when the group has a newer epoch, when it is to give
// partitions up or can have more, and when no member of the consumer protocol is left.
func (x *step) beatConsumers(g *group, ev *Heartbeat) kafka.ErrorCode {
	m, code := g.consumer.lookupClassic(ev.MemberID, ev.InstanceID, ev.Generation)
	if code != kafka.None {
		return code
	}
	x.heard(g, m)
	if g.consumer.epoch > m.epoch || m.state == revoking || m.state == waiting && g.consumer.canHaveMore(m) || x.mayGoDown(g) {
		x.awaitJoin(g, m)
		return kafka.RebalanceInProgress
	}
	return kafka.None
}

// canHaveMore says whether a partition of a member's target that it has not is nobody's.
func (c *consumerGroup) canHaveMore(m *consumerMember) bool {
	return slices.ContainsFunc(c.targets[m.id], func(tp kafka.TopicPartition) bool { return c.owners[tp] == "" })
}

// heard starts the session of a member of the classic protocol anew, which has shown to know its epoch.
func (x *step) heard(g *group, m *consumerMember) {
	s := g.consumer.sessions[m.id]
	s.shown = m.epoch
	x.arm(&s.session, x.consumerSession(m))
}

// awaitJoin watches that a member which was told to join again does.
func (x *step) awaitJoin(g *group, m *consumerMember) {
	if s := g.consumer.sessions[m.id]; !s.revoke.isArmed() {
		x.arm(&s.revoke, milliseconds(m.rebalanceMs))
	}
}

// leaveConsumers decides on a LeaveGroup: of members of the classic protocol, and of static ones of either that an administrator removes by their
// instance ids.
func (x *step) leaveConsumers(g *group, ev *Leave) {
	c := &g.consumer
	r := &LeaveReply{Members: make([]LeftMember, len(ev.Members))}
	var gone []string
	why := ""
	for i, l := range ev.Members {
		id := l.MemberID
		r.Members[i] = LeftMember{MemberID: l.MemberID, InstanceID: l.InstanceID, Code: kafka.UnknownMemberID}
		if l.InstanceID == "" && x.endPending(g, id) {
			r.Members[i].Code = kafka.None
			continue
		}
		static := c.instances[l.InstanceID]
		if l.InstanceID != "" && static != "" {
			if id != "" && id != static {
				r.Members[i].Code = kafka.FencedInstanceID
				continue
			}
			id = static
		}
		m := c.members[id]
		if m == nil || l.InstanceID != "" && static == "" || m.classic == nil && l.MemberID != "" || slices.Contains(gone, id) {
			continue
		}
		r.Members[i].Code = kafka.None
		gone = append(gone, id)
		why = "it left" + because(l.Reason)
	}
	if len(gone) == 0 {
		x.reply(ev.Token, r)
		return
	}
	x.fenceConsumers(g, why, gone...)
	x.replyAfterCommit(ev.Token, r)
}

// milliseconds is the duration of a record's field.
func milliseconds(ms int32) time.Duration { return time.Duration(ms) * time.Millisecond }
