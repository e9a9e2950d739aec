package metadata

import (
	"bytes"
	"cmp"
	"iter"
	"slices"
	"strings"
	"time"

	"strandline.dev/internal/config"
	"strandline.dev/internal/kafka"
)

// TopicState is where a topic is in its life.
type TopicState uint8

// The states.
const (
	// StateCreating: records of the topic are still missing; publishing gives a retriable error (R7).
	StateCreating TopicState = 1
	// StateReady: in service.
	StateReady TopicState = 2
	// StateDeleted: in the trash, with its data, under its id only.
	StateDeleted TopicState = 3
	// StatePurging: replicas are deleting their directories (I10).
	StatePurging TopicState = 4
)

// String returns the state's name in describe answers.
func (s TopicState) String() string {
	switch s {
	case StateCreating:
		return "creating"
	case StateReady:
		return "ready"
	case StateDeleted:
		return "deleted"
	case StatePurging:
		return "purging"
	}
	return "unknown"
}

// FirstVersion is the topicVersion of a topic that nobody has changed yet.
const FirstVersion int64 = 1

// Topic is a topic in an Image. It is immutable: nothing reachable from it may be changed.
//
// Its fields are what describe answers show, and what the records of topics carry.
type Topic struct {
	ID      kafka.TopicID
	Name    string
	State   TopicState
	Version int64 // topicVersion: +1 per administrative change, FirstVersion when ready for the first time
	Created time.Time
	Owner   string
	// Configs are the overrides as stored; config.ResolveTopic and config.DescribeTopic read them.
	Configs    map[string]string
	Partitions []kafka.PartitionState
	// DeletedAt, PurgeAt and DeletedBy are set in the trash.
	DeletedAt, PurgeAt time.Time
	DeletedBy          string
	Internal           bool

	expected int32 // partitions announced by the TopicRecord
	pending  int   // replicas that have still to be purged
}

// PendingPurges counts the replicas of a purged topic whose nodes have not confirmed yet that the directory is gone.
func (t *Topic) PendingPurges() int { return t.pending }

// Broker is a registered broker in an Image. It is immutable.
type Broker struct {
	ID               kafka.NodeID
	Epoch            kafka.BrokerEpoch
	Incarnation      kafka.ID
	Directory        kafka.DirectoryID
	StartNumber      uint64
	BootID           string
	Rack             string
	ClusterAddress   string
	Listeners        []Listener
	Roles            []string
	Registered       time.Time
	Fenced, Stopping bool
}

// load counts what a broker holds, for placement and election.
type load struct {
	replicas, leaders int
}

type trashKey struct {
	name    string
	deleted int64 // Unix ms
	id      kafka.TopicID
}

type purgeKey struct {
	node      kafka.NodeID
	topic     kafka.TopicID
	partition int32
}

// Image is the whole metadata at one version. It is immutable; Apply makes the next one and shares what has not changed.
type Image struct {
	version    uint64
	clusterID  string
	voters     []Voter
	brokers    []*Broker                          // in id order
	configs    map[kafka.NodeID]map[string]string // dynamic broker configs; NoNode for all brokers
	producerID int64

	topics table[kafka.TopicID, *Topic] // every state
	names  table[string, *Topic]        // creating and ready
	alike  table[string, kafka.TopicID] // names with "." and "_", by canonical name
	trash  table[trashKey, *Topic]      // deleted
	purges table[purgeKey, struct{}]    // directories to delete (I10)

	access access
	quotas table[quotaKey, float64]

	partitions int // of topics that are not purging
	loads      map[kafka.NodeID]load
}

// Empty returns the Image of a cluster that does not exist yet.
func Empty() *Image {
	return &Image{
		topics: table[kafka.TopicID, *Topic]{compare: compareIDs},
		names:  table[string, *Topic]{compare: strings.Compare},
		alike:  table[string, kafka.TopicID]{compare: strings.Compare},
		trash:  table[trashKey, *Topic]{compare: compareTrash},
		purges: table[purgeKey, struct{}]{compare: comparePurges},
		access: emptyAccess(),
		quotas: table[quotaKey, float64]{compare: compareQuotas},
	}
}

func compareIDs(a, b kafka.TopicID) int { return bytes.Compare(a[:], b[:]) }

func compareTrash(a, b trashKey) int {
	return cmp.Or(strings.Compare(a.name, b.name), cmp.Compare(a.deleted, b.deleted), compareIDs(a.id, b.id))
}

func comparePurges(a, b purgeKey) int {
	return cmp.Or(cmp.Compare(a.node, b.node), compareIDs(a.topic, b.topic), cmp.Compare(a.partition, b.partition))
}

// Version is the Raft index of the last entry in the Image.
func (i *Image) Version() uint64 { return i.version }

// ClusterID returns the id of the cluster, or "".
func (i *Image) ClusterID() string { return i.clusterID }

// Voters returns the voter table. Not to be changed.
func (i *Image) Voters() []Voter { return i.voters }

// Topic returns the topic that has the name, creating or ready, or nil.
func (i *Image) Topic(name string) *Topic {
	t, _ := i.names.get(name)
	return t
}

// TopicByID returns the topic in any state, or nil.
func (i *Image) TopicByID(id kafka.TopicID) *Topic {
	t, _ := i.topics.get(id)
	return t
}

// Topics yields the topics that are creating or ready, in name order.
func (i *Image) Topics() iter.Seq[*Topic] { return values(i.names) }

// AllTopics yields the topics in every state, in id order.
func (i *Image) AllTopics() iter.Seq[*Topic] { return values(i.topics) }

// Trash yields the topics that can be restored, in name order, the one deleted first first.
func (i *Image) Trash() iter.Seq[*Topic] { return values(i.trash) }

func values[K, V any](t table[K, V]) iter.Seq[V] {
	return func(yield func(V) bool) {
		for _, v := range t.all() {
			if !yield(v) {
				return
			}
		}
	}
}

// TopicCount counts the topics that are creating or ready.
func (i *Image) TopicCount() int { return i.names.size }

// PartitionCount counts the partitions of topics that are creating, ready or in the trash.
func (i *Image) PartitionCount() int { return i.partitions }

// Broker returns the broker, or nil.
func (i *Image) Broker(id kafka.NodeID) *Broker {
	if at, ok := i.brokerAt(id); ok {
		return i.brokers[at]
	}
	return nil
}

func (i *Image) brokerAt(id kafka.NodeID) (int, bool) {
	return slices.BinarySearchFunc(i.brokers, id, func(b *Broker, id kafka.NodeID) int { return cmp.Compare(b.ID, id) })
}

// Brokers yields the brokers in id order.
func (i *Image) Brokers() iter.Seq[*Broker] { return slices.Values(i.brokers) }

// BrokerConfigs returns the dynamic configs of a broker, or with NoNode those of all brokers. Not to be changed.
func (i *Image) BrokerConfigs(id kafka.NodeID) map[string]string { return i.configs[id] }

// NextProducerID is the first producer id that has not been handed out.
func (i *Image) NextProducerID() int64 { return i.producerID }

// PendingPurges returns the replicas whose directories the node is to delete, and has not yet confirmed (I10).
func (i *Image) PendingPurges(node kafka.NodeID) []kafka.TopicPartition {
	var out []kafka.TopicPartition
	for k := range i.purges.from(purgeKey{node: node}) {
		if k.node != node {
			break
		}
		out = append(out, kafka.TopicPartition{Topic: k.topic, Partition: k.partition})
	}
	return out
}

// SamePurges says that two Images ask for the same directories to be deleted. It is cheap; false may also mean that nothing changed for one node.
func (i *Image) SamePurges(other *Image) bool { return i.purges.same(&other.purges) }

// PurgePending says whether the node is to delete its directory of the partition (I10).
func (i *Image) PurgePending(node kafka.NodeID, tp kafka.TopicPartition) bool {
	_, ok := i.purges.get(purgeKey{node, tp.Topic, tp.Partition})
	return ok
}

// Draining says that the operator takes a broker out of service: it gets nothing new, and loses what it has to others. It is a config of the broker, so
// it outlasts restarts.
func (i *Image) Draining(id kafka.NodeID) bool {
	return strings.EqualFold(i.configs[id][config.DrainKey], "true")
}

// leaving says that a broker is up but not for long.
func (i *Image) leaving(id kafka.NodeID) bool { return i.Broker(id).Stopping || i.Draining(id) }

// canLead says whether a broker may be given a leadership.
func (i *Image) canLead(id kafka.NodeID) bool {
	b := i.Broker(id)
	return b != nil && !b.Fenced
}
