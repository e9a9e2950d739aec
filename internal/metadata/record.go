package metadata

import (
	"strandline.dev/internal/kafka"
)

// Record is one change of the metadata. The set of records is closed.
type Record interface {
	recordType() uint8
}

// ClusterRecord is the first record of a cluster: its id and its voters.
type ClusterRecord struct {
	ClusterID string
	Voters    []Voter
}

// Voter is a member of the Raft group.
type Voter struct {
	// RaftID is the first 64 bits of the directory id.
	RaftID    uint64
	Node      kafka.NodeID
	Directory kafka.DirectoryID
	Address   string // host:port of the cluster listener
}

// BrokerRecord registers a broker, or registers it anew. It leaves the broker fenced.
type BrokerRecord struct {
	Node  kafka.NodeID
	Epoch kafka.BrokerEpoch
	// Incarnation is minted by each process, so that a repeated registration is not taken for a copied disk.
	Incarnation    kafka.ID
	Directory      kafka.DirectoryID
	StartNumber    uint64
	BootID         string
	Rack           string
	ClusterAddress string
	Listeners      []Listener
	Roles          []string
	RegisteredMs   int64 // Unix ms
}

// Listener is an advertised address for clients.
type Listener struct {
	Name string
	Host string
	Port int32
}

// BrokerStateRecord fences or unfences a broker, or marks it as stopping.
type BrokerStateRecord struct {
	Node             kafka.NodeID
	Epoch            kafka.BrokerEpoch
	Fenced, Stopping bool
}

// BrokerRemovedRecord forgets a broker.
type BrokerRemovedRecord struct {
	Node kafka.NodeID
}

// TopicRecord begins a topic in state StateCreating. Its configs and partitions follow; a TopicStateRecord makes it ready.
type TopicRecord struct {
	ID         kafka.TopicID
	Name       string
	Owner      string
	CreatedMs  int64 // Unix ms
	Partitions int32 // partitions to expect before the topic is ready
	Internal   bool
	// Unnamed begins a topic that is not entered under its name: in a snapshot, one that is deleted or purging.
	Unnamed bool
}

// TopicStateRecord closes each change of a topic: its state and its version.
type TopicStateRecord struct {
	ID      kafka.TopicID
	State   TopicState
	Version int64
	// Name is set when the change renames the topic (a restore under another name), else "".
	Name string
	// AtMs and PurgeAtMs are the times of deletion and of the end of the recovery window, Unix ms; 0 for other states.
	AtMs, PurgeAtMs int64
	// DeletedBy is the principal that deleted the topic.
	DeletedBy string
}

// PartitionRecord sets the state of one partition. EffectiveMinISR is not part of it: Apply derives it (I1).
type PartitionRecord struct {
	Topic     kafka.TopicID
	Partition int32
	State     kafka.PartitionState
}

// ConfigRecord sets or removes one config of a topic, of a broker, or of all brokers.
type ConfigRecord struct {
	// Topic is set for a topic config.
	Topic kafka.TopicID
	// Node is the broker, or NoNode for all brokers; ignored when Topic is set.
	Node  kafka.NodeID
	Key   string
	Value *string // nil removes the config
}

// ProducerIDsRecord says that all producer ids below Next have been handed out.
type ProducerIDsRecord struct {
	Next int64
}

// ReplicaPurgeRecord asks for the deletion of a replica's directory, or says that it is done (I10).
type ReplicaPurgeRecord struct {
	Topic     kafka.TopicID
	Partition int32
	Node      kafka.NodeID
	Done      bool
}

func (ClusterRecord) recordType() uint8       { return 1 }
func (BrokerRecord) recordType() uint8        { return 2 }
func (BrokerStateRecord) recordType() uint8   { return 3 }
func (BrokerRemovedRecord) recordType() uint8 { return 4 }
func (TopicRecord) recordType() uint8         { return 5 }
func (TopicStateRecord) recordType() uint8    { return 6 }
func (PartitionRecord) recordType() uint8     { return 7 }
func (ConfigRecord) recordType() uint8        { return 8 }
func (ProducerIDsRecord) recordType() uint8   { return 9 }
func (ReplicaPurgeRecord) recordType() uint8  { return 10 }
