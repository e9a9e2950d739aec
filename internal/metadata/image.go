package metadata

import (
	"iter"
	"time"

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

// Topic is a topic in an Image. It is immutable: nothing reachable from it may be changed.
type Topic struct {
	ID      kafka.TopicID
	Name    string
	State   TopicState
	Version int64 // topicVersion: +1 per administrative change, 1 when ready for the first time
	Created time.Time
	Owner   string
	// Configs are the overrides as set.
	Configs    map[string]string
	Partitions []kafka.PartitionState
	// DeletedAt and PurgeAt are set in the trash.
	DeletedAt, PurgeAt time.Time
	DeletedBy          string
	Internal           bool

	expected  int32 // partitions announced by the TopicRecord
	minInsync int32 // resolved min.insync.replicas (I1)
	pending   int   // replicas that have still to be purged
}

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

// Image is the whole metadata at one version. It is immutable.
type Image struct {
	version uint64
}

// Empty returns the Image of a cluster that does not exist yet.
func Empty() *Image { return &Image{} }

// Version is the Raft index of the last entry in the Image.
func (i *Image) Version() uint64 { return i.version }

// ClusterID returns the id of the cluster, or "".
func (i *Image) ClusterID() string { panic("not yet") }

// Voters returns the voter table.
func (i *Image) Voters() []Voter { panic("not yet") }

// Topic returns the topic that has the name, creating or ready, or nil.
func (i *Image) Topic(name string) *Topic { panic("not yet") }

// TopicByID returns the topic in any state, or nil.
func (i *Image) TopicByID(id kafka.TopicID) *Topic { panic("not yet") }

// Topics yields the topics that are creating or ready, in name order.
func (i *Image) Topics() iter.Seq[*Topic] { panic("not yet") }

// Trash yields the topics that can be restored, in name order, the one deleted first first.
func (i *Image) Trash() iter.Seq[*Topic] { panic("not yet") }

// TopicCount counts the topics that are creating or ready.
func (i *Image) TopicCount() int { panic("not yet") }

// PartitionCount counts the partitions of topics in every state.
func (i *Image) PartitionCount() int { panic("not yet") }

// Broker returns the broker, or nil.
func (i *Image) Broker(id kafka.NodeID) *Broker { panic("not yet") }

// Brokers yields the brokers in id order.
func (i *Image) Brokers() iter.Seq[*Broker] { panic("not yet") }

// BrokerConfigs returns the dynamic configs of a broker, or with NoNode those of all brokers. Not to be changed.
func (i *Image) BrokerConfigs(id kafka.NodeID) map[string]string { panic("not yet") }

// NextProducerID is the first producer id that has not been handed out.
func (i *Image) NextProducerID() int64 { panic("not yet") }

// PendingPurges returns the replicas whose directories the node is to delete, and has not yet confirmed (I10).
func (i *Image) PendingPurges(node kafka.NodeID) []kafka.TopicPartition { panic("not yet") }

// PurgePending says whether the node is to delete its directory of the partition (I10).
func (i *Image) PurgePending(node kafka.NodeID, tp kafka.TopicPartition) bool { panic("not yet") }

// Apply returns the Image after the records of the entry at the given version. The old Image stays as it was. On an error nothing has
// been applied: the entry is not one this release can have written (C080).
func (i *Image) Apply(version uint64, rs []Record) (*Image, error) { panic("not yet") }

// Decide answers an event. It changes nothing.
func (i *Image) Decide(ev Event) Decision { panic("not yet") }

// EncodeRecords appends the records to dst.
func EncodeRecords(dst []byte, rs []Record) []byte { panic("not yet") }

// DecodeRecords reads what EncodeRecords wrote, and nothing more.
func DecodeRecords(b []byte) ([]Record, error) { panic("not yet") }

// EncodeImage appends a snapshot of the Image to dst.
func EncodeImage(dst []byte, i *Image) []byte { panic("not yet") }

// DecodeImage reads what EncodeImage wrote, and nothing more.
func DecodeImage(b []byte) (*Image, error) { panic("not yet") }
