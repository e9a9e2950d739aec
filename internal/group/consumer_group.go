package group

import (
	"bytes"
	"cmp"
	"iter"
	"maps"
	"slices"
	"strings"

	"strandline.dev/internal/kafka"
)

// MemberEpoch numbers the changes of a consumer group: the group's own epoch counts them, a target assignment is made for one, and a
// member is in the one whose target it has reached (KIP-848). The three are points of one line.
type MemberEpoch int32

// What a heartbeat says instead of the epoch a member is in.
const (
	JoinEpoch        MemberEpoch = 0
	LeaveEpoch       MemberEpoch = -1
	LeaveStaticEpoch MemberEpoch = -2 // a static member that will come back
)

// memberState is where a member is on its way to its target. The numbers are those of Kafka's records.
type memberState int8

const (
	settled  memberState = 0 // it has what its target says
	revoking memberState = 1 // it is to give up partitions first
	waiting  memberState = 2 // others hold partitions of its target
)

// holdings are the partitions of one member, each with the epoch since which it has it.
type holdings map[kafka.TopicPartition]MemberEpoch

// consumerGroup is a group whose members are given their partitions by this package. All but sessions and seen is hard state.
type consumerGroup struct {
	isStored    bool // the group's own record is in the log
	epoch       MemberEpoch
	hash        int64 // of the topics that the members read
	sinceMs     int64 // wall clock of the newest epoch: without members, since when
	members     map[string]*consumerMember
	targetEpoch MemberEpoch
	hasTarget   bool                              // the record of targetEpoch is in the log
	targets     map[string][]kafka.TopicPartition // by member id, sorted

	// Of members alone, kept for look-ups.
	owners    map[kafka.TopicPartition]string // I7: at most one member holds a partition, whatever any target says
	instances map[string]string               // member id by instance id
	classics  int                             // members of the classic protocol

	// Soft state.
	sessions map[string]*consumerSession
	seen     uint64 // version of the catalog that hash was last compared with
}

// consumerMember is what the log says about one member.
type consumerMember struct {
	id           string
	isSubscribed bool // its own record is in the log, not only its assignment
	subscription

	epoch, previous MemberEpoch
	state           memberState
	assigned        holdings
	revoked         holdings // to be given up; owned until the member says that it has
}

// subscription is what a member says about itself.
type subscription struct {
	instance, rack       string // "" for none
	clientID, clientHost string
	topics               []string // sorted
	pattern              string   // "" for none
	reader               string   // whose rights narrow what the pattern matches; "" for nobody's
	rebalanceMs          int32
	assignor             string // "" for whatever the group uses
	classic              *classicWords
}

// classicWords is what a member of the classic protocol says beside; nil for a member of the consumer protocol. It is never changed.
type classicWords struct {
	sessionMs int32
	protocols []Protocol
}

// isSame compares what a join can change.
func (w *classicWords) isSame(o *classicWords) bool {
	if w == nil || o == nil {
		return w == o
	}
	return w.sessionMs == o.sessionMs && (&member{protocols: w.protocols}).matches(o.protocols)
}

// consumerSession is what watches a member.
type consumerSession struct {
	session timer
	revoke  timer       // armed while the member is to give partitions up or, one of the classic protocol, to join or to sync
	shown   MemberEpoch // the newest epoch that a member of the classic protocol has shown to know
}

// isThere says whether the group has any state of this kind.
func (c *consumerGroup) isThere() bool {
	return c.isStored || c.hasTarget || len(c.members) > 0 || len(c.targets) > 0 || len(c.sessions) > 0
}

// isSame compares what a heartbeat can change. Where the client runs is not among it.
func (s *subscription) isSame(o *subscription) bool {
	return s.reads(o) && s.instance == o.instance && s.rack == o.rack && s.clientID == o.clientID && s.clientHost == o.clientHost &&
		s.rebalanceMs == o.rebalanceMs && s.assignor == o.assignor && s.classic.isSame(o.classic)
}

// reads says whether both ask for the same topics.
func (s *subscription) reads(o *subscription) bool {
	return s.pattern == o.pattern && s.reader == o.reader && slices.Equal(s.topics, o.topics)
}

// key is equal for subscriptions that ask for the same topics.
func (s *subscription) key() string {
	return s.pattern + "\x00" + s.reader + "\x00" + strings.Join(s.topics, "\x00")
}

// held visits all partitions of the member, those to be given up included.
func (m *consumerMember) held() iter.Seq[kafka.TopicPartition] {
	return func(yield func(kafka.TopicPartition) bool) {
		for _, h := range []holdings{m.assigned, m.revoked} {
			for tp := range h {
				if !yield(tp) {
					return
				}
			}
		}
	}
}

// since returns the epoch since which the member holds a partition.
func (m *consumerMember) since(tp kafka.TopicPartition) (MemberEpoch, bool) {
	if e, ok := m.assigned[tp]; ok {
		return e, true
	}
	e, ok := m.revoked[tp]
	return e, ok
}

// isSettledIn says whether the member has all that the target of an epoch gives it.
func (m *consumerMember) isSettledIn(epoch MemberEpoch) bool {
	return m.state == settled && m.epoch == epoch
}

// state returns the name that clients know.
func (c *consumerGroup) state() string {
	switch {
	case len(c.members) == 0:
		return "Empty"
	case c.epoch > c.targetEpoch:
		return "Assigning"
	}
	for _, m := range c.members {
		if !m.isSettledIn(c.targetEpoch) {
			return "Reconciling"
		}
	}
	return "Stable"
}

// sortedHoldings returns the partitions of holdings by topic id and number.
func sortedHoldings(h holdings) []kafka.TopicPartition {
	return slices.SortedFunc(maps.Keys(h), comparePartitions)
}

func comparePartitions(a, b kafka.TopicPartition) int {
	return cmp.Or(bytes.Compare(a.Topic[:], b.Topic[:]), cmp.Compare(a.Partition, b.Partition))
}

// member returns the hard state of a member, to be changed by Apply.
func (c *consumerGroup) member(id string) *consumerMember {
	m := c.members[id]
	if m == nil {
		m = &consumerMember{id: id}
		if c.members == nil {
			c.members = map[string]*consumerMember{}
		}
		c.members[id] = m
	}
	return m
}

// setSubscription takes in a member's own record; nil removes it.
func (c *consumerGroup) setSubscription(id string, s *subscription) {
	if s == nil && c.members[id] == nil {
		return
	}
	m := c.member(id)
	if m.instance != "" && c.instances[m.instance] == id {
		delete(c.instances, m.instance)
	}
	if m.classic != nil {
		c.classics--
	}
	m.subscription, m.isSubscribed = subscription{}, s != nil
	if s != nil {
		m.subscription = *s
		if s.classic != nil {
			c.classics++
		}
		if s.instance != "" {
			if c.instances == nil {
				c.instances = map[string]string{}
			}
			c.instances[s.instance] = id
		}
	}
	c.forgetMember(m)
}

// setCurrent takes in what a member holds; nil removes it.
func (c *consumerGroup) setCurrent(id string, now *consumerMember) {
	if now == nil && c.members[id] == nil {
		return
	}
	m := c.member(id)
	for tp := range m.held() {
		if c.owners[tp] == id {
			delete(c.owners, tp)
		}
	}
	if now == nil {
		now = &consumerMember{}
	}
	m.epoch, m.previous, m.state, m.assigned, m.revoked = now.epoch, now.previous, now.state, now.assigned, now.revoked
	for tp := range m.held() {
		if c.owners == nil {
			c.owners = map[kafka.TopicPartition]string{}
		}
		c.owners[tp] = id
	}
	c.forgetMember(m)
}

// forgetMember removes a member of whom the log says nothing any more.
func (c *consumerGroup) forgetMember(m *consumerMember) {
	if !m.isSubscribed && m.epoch == 0 && len(m.assigned) == 0 && len(m.revoked) == 0 {
		delete(c.members, m.id)
	}
}

// setTarget takes in what a member is to have; nil removes it.
func (c *consumerGroup) setTarget(id string, target []kafka.TopicPartition) {
	if target == nil {
		delete(c.targets, id)
		return
	}
	if c.targets == nil {
		c.targets = map[string][]kafka.TopicPartition{}
	}
	c.targets[id] = target
}
