package group

import (
	"bytes"
	"iter"
	"slices"
	"time"

	"strandline.dev/internal/kafka"
)

// member is a member of a classic group, or one that is joining it.
type member struct {
	id, instance         string // instance is "" for a dynamic member
	clientID, clientHost string
	session, rebalance   time.Duration
	protocols            []Protocol
	isNew                bool   // its first join has not been answered
	owesSync             bool   // it was told the generation and has not asked for its assignment
	join, sync           uint64 // tokens of requests that wait; 0 = none
	timer                timer  // its session; not armed while a request waits, but for new members
	prev, next           *member
}

// waits says whether a request of the member is parked: then its silence means nothing.
func (m *member) waits() bool { return m.join != 0 || m.sync != 0 }

// metadata is what the member says for a protocol.
func (m *member) metadata(protocol string) []byte {
	for _, p := range m.protocols {
		if p.Name == protocol {
			return p.Metadata
		}
	}
	return nil
}

// matches says whether a join brings nothing new.
func (m *member) matches(protocols []Protocol) bool {
	return slices.EqualFunc(m.protocols, protocols, func(a, b Protocol) bool {
		return a.Name == b.Name && bytes.Equal(a.Metadata, b.Metadata)
	})
}

// sameNames says whether the protocols are the same in the same order, whatever they say.
func (m *member) sameNames(protocols []Protocol) bool {
	return slices.EqualFunc(m.protocols, protocols, func(a, b Protocol) bool { return a.Name == b.Name })
}

// memberFixedBytes is what a record has for a member beside its strings and bytes: lengths and time-outs.
const memberFixedBytes = 24

// recordBytes is the most that the member takes in a group record, without its assignment.
func (m *member) recordBytes() int {
	longest := 0
	for _, p := range m.protocols {
		longest = max(longest, len(p.Metadata))
	}
	return len(m.id) + len(m.instance) + len(m.clientID) + len(m.clientHost) + longest + memberFixedBytes
}

// protocolBytes is what protocols take in memory.
func protocolBytes(protocols []Protocol) int {
	n := 0
	for _, p := range protocols {
		n += len(p.Name) + len(p.Metadata)
	}
	return n
}

// roster is the list of members in the order in which they came, with all that is counted over them, so that adding and removing
// one costs the same in any group (C060).
type roster struct {
	protocolType  string // of the members, or of those that were last
	members       map[string]*member
	instances     map[string]*member
	first, last   *member
	supported     map[string]int // members that have a protocol, by its name
	recordBytes   int            // sum of member.recordBytes
	protocolBytes int
}

// all visits the members in their order. The visited one may be removed.
func (r *roster) all() iter.Seq[*member] {
	return func(yield func(*member) bool) {
		for m := r.first; m != nil; {
			next := m.next
			if !yield(m) {
				return
			}
			m = next
		}
	}
}

func (r *roster) add(m *member) {
	if r.members == nil {
		r.members, r.instances, r.supported = map[string]*member{}, map[string]*member{}, map[string]int{}
	}
	r.members[m.id] = m
	if m.instance != "" {
		r.instances[m.instance] = m
	}
	m.prev, m.next = r.last, nil
	if r.last != nil {
		r.last.next = m
	} else {
		r.first = m
	}
	r.last = m
	r.count(m, 1)
}

func (r *roster) remove(m *member) {
	r.count(m, -1)
	delete(r.members, m.id)
	if m.instance != "" {
		delete(r.instances, m.instance)
	}
	if m.prev != nil {
		m.prev.next = m.next
	} else {
		r.first = m.next
	}
	if m.next != nil {
		m.next.prev = m.prev
	} else {
		r.last = m.prev
	}
	m.prev, m.next = nil, nil
}

// count adds a member to the sums, or takes it out with sign -1. What it counts must be changed only between the two.
func (r *roster) count(m *member, sign int) {
	r.recordBytes += sign * m.recordBytes()
	r.protocolBytes += sign * protocolBytes(m.protocols)
	for _, p := range m.protocols {
		r.supported[p.Name] += sign
		if r.supported[p.Name] == 0 {
			delete(r.supported, p.Name)
		}
	}
}

// update gives a member what its newest join says, under an id that may be new. It copies what it keeps: the event's bytes
// belong to a request buffer.
func (r *roster) update(m *member, id string, ev *Join) {
	r.count(m, -1)
	delete(r.members, m.id)
	m.id = id
	r.members[id] = m
	m.take(ev)
	r.count(m, 1)
}

// take copies the member's own words out of a join.
func (m *member) take(ev *Join) {
	m.clientID, m.clientHost = clip(ev.ClientID, clientBytesMax), clip(ev.ClientHost, clientBytesMax)
	m.session, m.rebalance = ev.SessionTimeout, ev.RebalanceTimeout
	if m.rebalance <= 0 {
		m.rebalance = m.session
	}
	m.protocols = make([]Protocol, len(ev.Protocols))
	for i, p := range ev.Protocols {
		m.protocols[i] = Protocol{Name: p.Name, Metadata: bytes.Clone(p.Metadata)}
	}
}

// refresh starts the session of a member anew: it has shown that it lives. While a request of it waits there is nothing to show.
func (x *step) refresh(m *member) {
	if !m.waits() {
		x.arm(&m.timer, m.session)
	}
}

// parkJoin lets a join wait for the end of the phase. A join that the same member left behind is answered.
func (x *step) parkJoin(g *group, m *member, token uint64) {
	if m.join == 0 {
		g.classic.joining++
	}
	x.failJoin(m, kafka.RebalanceInProgress)
	m.join = token
	x.waiting[token] = m
	if m.isNew {
		x.arm(&m.timer, max(newMemberMax, m.session))
		return
	}
	x.timers.disarm(&m.timer)
}

// failJoin answers a waiting join with an error; the caller keeps the count of joins that wait.
func (x *step) failJoin(m *member, code kafka.ErrorCode) {
	if m.join == 0 {
		return
	}
	x.reply(m.join, &JoinReply{Code: code, Generation: NoGeneration, MemberID: m.id})
	delete(x.waiting, m.join)
	m.join = 0
}

// failSync answers a waiting sync with an error.
func (x *step) failSync(m *member, code kafka.ErrorCode) {
	if m.sync == 0 {
		return
	}
	x.reply(m.sync, &SyncReply{Code: code})
	delete(x.waiting, m.sync)
	m.sync = 0
}

// dropMember takes a member out, with its timer (C114) and its waiting requests. The caller goes on with membersChanged, which also
// starts the count of those that owe a sync anew.
func (x *step) dropMember(g *group, m *member, why string) {
	c := &g.classic
	if m.join != 0 {
		c.joining--
	}
	x.failJoin(m, kafka.UnknownMemberID)
	x.failSync(m, kafka.UnknownMemberID)
	x.timers.disarm(&m.timer)
	c.remove(m)
	if c.leader == m {
		c.leader = nil
	}
	x.note(g, Note{Kind: MemberRemoved, Member: m.id, Why: why})
}

// cancel forgets a waiting request whose peer is gone. Its member lives on for one session: the client may come back with its id.
func (x *step) cancel(token uint64) {
	m := x.waiting[token]
	if m == nil {
		return
	}
	delete(x.waiting, token)
	if m.join == token {
		m.join = 0
		m.timer.group.classic.joining--
	} else {
		m.sync = 0
	}
	x.refresh(m)
}

// clip cuts a text of a client to n bytes.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && s[n]&0xc0 == 0x80 { // not within a character
		n--
	}
	return s[:n]
}
