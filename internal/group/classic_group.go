package group

import (
	"time"

	"strandline.dev/internal/kafka"
)

// phase is where a group of the classic protocol is in its round: empty, preparing (members join), completing (the leader assigns),
// stable. A group that does not exist is what Kafka calls Dead.
type phase uint8

const (
	empty phase = iota
	preparing
	completing
	stable
)

// dead is the state of a group that does not exist, as clients are told.
const dead = "Dead"

// String returns the name that clients know.
func (p phase) String() string {
	return [...]string{"Empty", "PreparingRebalance", "CompletingRebalance", "Stable"}[p]
}

// classicGroup is the soft state of a group whose members assign among themselves. The zero value is an empty group.
type classicGroup struct {
	roster
	phase      phase
	generation Generation
	protocol   string            // chosen for this generation; "" while none is
	leader     *member           // nil until one is elected
	pending    map[string]*timer // ids that were given out and have not joined yet (KIP-394)
	joining    int               // members whose join waits
	unsynced   int               // members of this generation that have not asked for their assignment
	joinTimer  timer             // armed while preparing
	syncTimer  timer             // armed while somebody is unsynced
	initial    initialDelay
}

// initialDelay is the wait of a group that was empty for more members.
type initialDelay struct {
	active   bool
	since    time.Time // monotonic
	newcomer bool      // somebody came since the delay was last set
}

// lookup finds the member that a request speaks for. A known instance id with another member id is a process that was
// replaced: it is fenced (C056).
func (c *classicGroup) lookup(memberID, instanceID string) (*member, kafka.ErrorCode) {
	if instanceID != "" {
		m := c.instances[instanceID]
		switch {
		case m == nil:
			return nil, kafka.UnknownMemberID
		case m.id != memberID:
			return nil, kafka.FencedInstanceID
		}
		return m, kafka.None
	}
	if m := c.members[memberID]; m != nil {
		return m, kafka.None
	}
	return nil, kafka.UnknownMemberID
}

// lookupIn is lookup with the generation compared too. It is what makes requests of an older generation harmless (I7, P31).
func (c *classicGroup) lookupIn(memberID, instanceID string, gen Generation) (*member, kafka.ErrorCode) {
	m, code := c.lookup(memberID, instanceID)
	if code == kafka.None && gen != c.generation {
		return nil, kafka.IllegalGeneration
	}
	return m, code
}

// supports says whether a member with these protocols can be in the group: there must be one that all members have.
func (c *classicGroup) supports(protocolType string, protocols []Protocol) bool {
	if protocolType == "" || len(protocols) == 0 {
		return false
	}
	if len(c.members) == 0 {
		return true
	}
	if protocolType != c.protocolType {
		return false
	}
	for _, p := range protocols {
		if c.supported[p.Name] == len(c.members) {
			return true
		}
	}
	return false
}

// chooseProtocol lets each member vote for the first of its protocols that all members have. A tie goes to the one that the leader
// prefers, so that the choice does not depend on the order of a map.
func (c *classicGroup) chooseProtocol() string {
	votes := map[string]int{}
	for m := range c.all() {
		for _, p := range m.protocols {
			if c.supported[p.Name] == len(c.members) {
				votes[p.Name]++
				break
			}
		}
	}
	judge := c.leader
	if judge == nil {
		judge = c.first
	}
	chosen := ""
	for _, p := range judge.protocols {
		if votes[p.Name] > votes[chosen] {
			chosen = p.Name
		}
	}
	return chosen
}

// rebalanceTimeout is the longest that any member asks to be waited for.
func (c *classicGroup) rebalanceTimeout() time.Duration {
	var longest time.Duration
	for m := range c.all() {
		longest = max(longest, m.rebalance)
	}
	return longest
}

// nextGeneration counts on; after the last number it begins at 1 again, since negative ones mean "none".
func (c *classicGroup) nextGeneration() Generation {
	if c.generation < 0 || c.generation+1 < 0 {
		return 1
	}
	return c.generation + 1
}

// joined lists the members for the leader.
func (c *classicGroup) joined() []JoinedMember {
	list := make([]JoinedMember, 0, len(c.members))
	for m := range c.all() {
		list = append(list, JoinedMember{MemberID: m.id, InstanceID: m.instance, Metadata: m.metadata(c.protocol)})
	}
	return list
}

// leaderID is "" while there is no leader.
func (c *classicGroup) leaderID() string {
	if c.leader == nil {
		return ""
	}
	return c.leader.id
}
