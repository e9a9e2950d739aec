package peer

import "fmt"

// Kind numbers what can be sent to another node. The numbers are fixed for ever, and far above Kafka's API keys: neither port can take
// the other's requests for its own (K62).
type Kind int16

// The kinds. To add one, add a constant with the next free number of its class and a row in kinds.
const (
	kindHello Kind = 20001
	kindPing  Kind = 20002

	// KindRaft carries Raft messages.
	KindRaft Kind = 20010
	// KindHeartbeat keeps a broker's session with the active controller.
	KindHeartbeat Kind = 20011

	// KindReplicaFetch reads records of a leader.
	KindReplicaFetch Kind = 20020
	// KindReplicaProgress reports stored ends to a leader.
	KindReplicaProgress Kind = 20021

	// KindSubmit forwards an event to the active controller.
	KindSubmit Kind = 20030
	// KindForming asks what a node knows of a cluster, and agrees on a new one.
	KindForming Kind = 20031
	// KindMetadataFetch reads committed metadata.
	KindMetadataFetch Kind = 20032
	// KindRaftSnapshot carries a piece of a Raft snapshot.
	KindRaftSnapshot Kind = 20033
	// KindMembership asks the leader of the quorum to change its voters.
	KindMembership Kind = 20034
	// KindReplicaEnds asks what a node's replicas hold.
	KindReplicaEnds Kind = 20035
	// KindBacklog asks leaders what lies behind offsets of their partitions.
	KindBacklog Kind = 20040

	// KindForward has a client's request carried out by the node it is for.
	KindForward Kind = 20050
	// KindAudit brings entries of the audit trail to the node that keeps them.
	KindAudit Kind = 20036
)

// Class says which of the connections between two nodes carries a kind: bulk must not delay what keeps leaders alive.
type Class uint8

// The classes; each has a connection of its own.
const (
	// Control carries Raft and heartbeats.
	Control Class = 1
	// Data carries replication.
	Data Class = 2
	// Admin carries forwarded events, forming and metadata.
	Admin Class = 3
	// Clients carries requests of clients that came to the wrong node.
	Clients Class = 4
)

func (c Class) String() string {
	switch c {
	case Control:
		return "control"
	case Data:
		return "data"
	case Admin:
		return "admin"
	case Clients:
		return "clients"
	}
	return fmt.Sprintf("class %d", uint8(c))
}

// kindRow describes one kind.
type kindRow struct {
	name   string
	class  Class
	oneWay bool
}

// kinds is the one table of what nodes send each other.
var kinds = map[Kind]kindRow{
	KindRaft:            {"raft", Control, true},
	KindHeartbeat:       {"heartbeat", Control, false},
	KindReplicaFetch:    {"replica-fetch", Data, false},
	KindReplicaProgress: {"replica-progress", Data, true},
	KindSubmit:          {"submit", Admin, false},
	KindForming:         {"forming", Admin, false},
	KindMetadataFetch:   {"metadata-fetch", Admin, false},
	KindRaftSnapshot:    {"raft-snapshot", Admin, false},
	KindMembership:      {"membership", Admin, false},
	KindReplicaEnds:     {"replica-ends", Admin, false},
	KindBacklog:         {"backlog", Admin, false},
	KindForward:         {"forward", Clients, false},
	KindAudit:           {"audit", Admin, false},
}

func (k Kind) String() string {
	switch k {
	case kindHello:
		return "hello"
	case kindPing:
		return "ping"
	}
	if r, ok := kinds[k]; ok {
		return r.name
	}
	return fmt.Sprintf("kind %d", int16(k))
}

// mustKind returns the row of a kind that is sent or handled in the way said. Anything else is a mistake in this program.
func mustKind(k Kind, oneWay bool) kindRow {
	r, ok := kinds[k]
	if !ok || r.oneWay != oneWay {
		panic(fmt.Sprintf("peer: %v is not sent this way (one-way: %v)", k, oneWay))
	}
	return r
}
