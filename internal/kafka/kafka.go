// Package kafka is the vocabulary that every other package shares.
//
// Knows: the names and number types of the Kafka protocol (offsets, epochs, ids, error codes) and the plain structs that two
// cores exchange. Does not know: any behaviour beyond printing and comparing.
//
// Vocabulary: offsets are half-open everywhere: Start is inclusive, End is exclusive, Last (rare) is inclusive. An epoch is
// always qualified (LeaderEpoch, PartitionEpoch, BrokerEpoch, ProducerEpoch). The types forbid mix-ups: a LeaderEpoch cannot be
// passed where an Offset is wanted; conversions happen only at the wire.
//
// Concurrency: values only.
package kafka

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"strconv"
)

// Offset is the position of a record in one partition, counted from 0. NoOffset means "none" or "unknown".
type Offset int64

// NoOffset is the protocol's value for "no offset".
const NoOffset Offset = -1

// LeaderEpoch numbers the reigns of a partition's leaders; for the metadata log it is the Raft term. It only rises (I3).
type LeaderEpoch int32

// NoEpoch is the protocol's value for "no leader epoch".
const NoEpoch LeaderEpoch = -1

// PartitionEpoch counts the changes of a PartitionState; it is the compare-and-set token of ISR changes.
type PartitionEpoch int32

// BrokerEpoch numbers the registrations of a broker: each start of a node gets a higher one (I3).
type BrokerEpoch int64

// ProducerID identifies an idempotent producer; NoProducerID means a batch without one.
type ProducerID int64

// NoProducerID is the protocol's value for a batch without an idempotent producer.
const NoProducerID ProducerID = -1

// ProducerEpoch fences older instances of one ProducerID.
type ProducerEpoch int16

// NodeID identifies a node. It is configured, not minted. NoNode means none.
type NodeID int32

// NoNode is the protocol's value for "no node", for example a partition without a leader.
const NoNode NodeID = -1

func (n NodeID) String() string { return strconv.Itoa(int(n)) }

// ID is a random 128-bit identity. The zero value means "none".
type ID [16]byte

// TopicID identifies a topic for ever: a topic re-created under an old name has another TopicID (P41).
type TopicID = ID

// DirectoryID identifies one data directory; it is minted once for every empty directory and never reused.
type DirectoryID = ID

// IsZero says whether the id is absent.
func (t ID) IsZero() bool { return t == ID{} }

// String returns the id as Kafka prints it: URL-safe base64 without padding, 22 characters.
func (t ID) String() string { return base64.RawURLEncoding.EncodeToString(t[:]) }

// Hex returns the id as 32 lower-case hex digits, the form used in directory names.
func (t ID) Hex() string { return hex.EncodeToString(t[:]) }

// ParseIDHex reads the form that Hex writes.
func ParseIDHex(s string) (ID, error) {
	var t ID
	if len(s) != 2*len(t) {
		return t, fmt.Errorf("id %q: want %d hex digits, have %d characters", s, 2*len(t), len(s))
	}
	if _, err := hex.Decode(t[:], []byte(s)); err != nil {
		return ID{}, fmt.Errorf("id %q: %w", s, err)
	}
	return t, nil
}

// ParseID reads the form that String writes.
func ParseID(s string) (ID, error) {
	var t ID
	b, err := base64.RawURLEncoding.DecodeString(s)
	if err != nil || len(b) != len(t) {
		return ID{}, fmt.Errorf("id %q: want 22 characters of URL-safe base64", s)
	}
	copy(t[:], b)
	return t, nil
}

// TopicPartition names one partition by its topic's id. Names never key state: ids do (P41).
type TopicPartition struct {
	Topic     TopicID
	Partition int32
}

// String returns "<topic id in hex>-<partition>", which is also the partition's directory name.
func (p TopicPartition) String() string {
	return p.Topic.Hex() + "-" + strconv.FormatInt(int64(p.Partition), 10)
}

// MetadataPartition names the metadata log in messages and metrics; its topic id is reserved and no topic ever has it.
var MetadataPartition = TopicPartition{Topic: TopicID{15: 1}}

// Principal is who performs an operation (I15): Type is "User" for clients and "Node" for brokers.
type Principal struct {
	Type string
	Name string
}

// NodePrincipal is the Type of brokers, which no client ever gets.
const NodePrincipal = "Node"

// Anonymous is the principal of an unauthenticated client on a listener that allows it.
var Anonymous = Principal{Type: "User", Name: "ANONYMOUS"}

// String returns "Type:Name", the form that ACLs and the audit trail use.
func (p Principal) String() string { return p.Type + ":" + p.Name }

// EpochEnd is the end (exclusive) of the records written in one leader epoch.
type EpochEnd struct {
	Epoch LeaderEpoch
	End   Offset
}

// PartitionState is what the cluster has agreed about one partition. It is immutable once published: to change one, make a
// copy. Leader, epochs, ISR and EffectiveMinISR are always taken together from one PartitionState (I1).
type PartitionState struct {
	// Replicas are the nodes that hold the partition, preferred leader first.
	Replicas []NodeID
	// ISR are the in-sync replicas the cluster has committed to.
	ISR []NodeID
	// ELR are the eligible leader replicas outside the ISR (I4).
	ELR []NodeID
	// LastKnown is the last ISR ∪ ELR of a partition that has no candidate left (I4).
	LastKnown []NodeID
	// Adding and Removing are the replicas of a move in progress.
	Adding, Removing []NodeID
	// Leader is the node that leads in LeaderEpoch, or NoNode.
	Leader NodeID
	// LeaderEpoch rises with every change of leader and with every registration of the node that led (I3).
	LeaderEpoch LeaderEpoch
	// PartitionEpoch rises with every change of this struct.
	PartitionEpoch PartitionEpoch
	// EffectiveMinISR is min(min.insync.replicas, replicas not being added) (I1).
	EffectiveMinISR int32
}
