package metadata

import (
	"time"

	"strandline.dev/internal/kafka"
)

// Event is something the active controller decides about. The set of events is closed. An event carries everything that is not in the
// Image: the time, who asks, random ids and seeds.
type Event interface {
	event()
}

// Decision is what a decision wants to change, and what it answers. An event that is refused has no records.
type Decision struct {
	Records []Record
	// Reply is the reply type named at the event.
	Reply any
}

// RegisterBroker registers a starting node. Reply: Registered.
type RegisterBroker struct {
	Now       time.Time
	Principal kafka.Principal
	// NextVersion is the version (Raft index) that the decision's first record will get; it becomes the broker epoch.
	NextVersion uint64
	Node        kafka.NodeID
	// Incarnation is minted by the process at its start; zero if it has none.
	Incarnation    kafka.ID
	Directory      kafka.DirectoryID
	StartNumber    uint64
	BootID         string
	Rack           string
	ClusterAddress string
	Listeners      []Listener
	Roles          []string
	// Unclean are replicas whose only fault is that the operating system was restarted under unsynced bytes (I4).
	Unclean []kafka.TopicPartition
	// Damaged are replicas whose bytes were found damaged (I4).
	Damaged []kafka.TopicPartition
	// Former says that this disk was registered before, in an earlier process or in this one: the node is no newcomer.
	Former bool
	// HolderSilent is how long the present holder of the node id has not been heard by this controller; 0 when it is heard.
	HolderSilent time.Duration
}

// BrokerReady unfences a broker that has caught up with the metadata and opened its logs. Reply: BrokerChanged.
type BrokerReady struct {
	Now   time.Time
	Node  kafka.NodeID
	Epoch kafka.BrokerEpoch
}

// FenceBroker takes leadership and ISR membership from a broker, or, with Stopping, moves away the leaderships that others can take and
// leaves it unfenced. Reply: BrokerChanged.
type FenceBroker struct {
	Now      time.Time
	Node     kafka.NodeID
	Epoch    kafka.BrokerEpoch
	Stopping bool
}

// CreateTopics creates topics, each whole or not at all. Reply: []TopicResult in the order of Topics.
type CreateTopics struct {
	Now          time.Time
	Principal    kafka.Principal
	Topics       []NewTopic
	ValidateOnly bool
	// Seed makes the placement differ from topic to topic.
	Seed uint64
	// DefaultPartitions and DefaultReplicationFactor stand in for -1: num.partitions and default.replication.factor.
	DefaultPartitions        int32
	DefaultReplicationFactor int16
}

// NewTopic is a topic to create.
type NewTopic struct {
	// ID is minted by the caller.
	ID   kafka.TopicID
	Name string
	// Partitions and ReplicationFactor may be -1 for the default; both must be -1 with Assignments.
	Partitions        int32
	ReplicationFactor int16
	// Assignments are the replicas of each partition, if the client chose them.
	Assignments []Assignment
	// Configs are topic configs; a nil value is refused.
	Configs  map[string]*string
	Internal bool
}

// Assignment names the replicas of one partition, preferred leader first.
type Assignment struct {
	Partition int32
	Replicas  []kafka.NodeID
}

// DeleteTopics moves topics to the trash, or purges them at once when their recovery window is 0. Reply: []DeleteResult.
type DeleteTopics struct {
	Now       time.Time
	Principal kafka.Principal
	Topics    []DeleteTopic
	// Dev chooses the defaults of `dev` for strandline.delete.recovery.ms.
	Dev bool
}

// DeleteTopic names a topic by name or by id, not both.
type DeleteTopic struct {
	Name string
	ID   kafka.TopicID
	// ExpectedVersion, when not 0, must be the topic's version.
	ExpectedVersion int64
}

// RestoreTopic takes a topic back from the trash. Reply: RestoreResult.
type RestoreTopic struct {
	Now       time.Time
	Principal kafka.Principal
	// ID names the topic; without it Name does, and the topic deleted last is taken.
	ID   kafka.TopicID
	Name string
	// As is the name to restore under; "" for the old one.
	As string
}

// PurgeTopic ends the recovery window of a topic in the trash at once. Reply: DeleteResult.
type PurgeTopic struct {
	Now       time.Time
	Principal kafka.Principal
	ID        kafka.TopicID
}

// ExpireTrash purges the topics whose recovery window has passed. Reply: Expired.
type ExpireTrash struct {
	Now time.Time
}

// ReplicasPurged says that a node has deleted the directories of replicas. Reply: Purged.
type ReplicasPurged struct {
	Node       kafka.NodeID
	Partitions []kafka.TopicPartition
}

// CreatePartitions adds partitions. Reply: []PartitionsResult in the order of Topics.
type CreatePartitions struct {
	Now          time.Time
	Principal    kafka.Principal
	Topics       []NewPartitions
	ValidateOnly bool
	Seed         uint64
}

// NewPartitions asks for a topic to have Count partitions.
type NewPartitions struct {
	Name  string
	Count int32
	// Assignments are the replicas of each new partition, if the client chose them.
	Assignments [][]kafka.NodeID
	// ExpectedVersion, when not 0, must be the topic's version.
	ExpectedVersion int64
}

// ResourceKind says whose configs are changed. The numbers are Kafka's.
type ResourceKind int8

// The resource kinds.
const (
	ResourceTopic  ResourceKind = 2
	ResourceBroker ResourceKind = 4
)

// Resource names what has configs: a topic by name, a broker by node id as text, or all brokers by "".
type Resource struct {
	Kind ResourceKind
	Name string
}

// ConfigOpKind is an operation of IncrementalAlterConfigs. The numbers are Kafka's.
type ConfigOpKind int8

// The operations.
const (
	OpSet      ConfigOpKind = 0
	OpDelete   ConfigOpKind = 1
	OpAppend   ConfigOpKind = 2
	OpSubtract ConfigOpKind = 3
)

// ConfigOp changes one config.
type ConfigOp struct {
	Key   string
	Op    ConfigOpKind
	Value *string // nil only for OpDelete
}

// AlterConfigs changes the configs of one resource, whole or not at all. Reply: AlterResult.
type AlterConfigs struct {
	Now       time.Time
	Principal kafka.Principal
	Resource  Resource
	Ops       []ConfigOp
	// Replace removes every config that Ops does not set (the old AlterConfigs).
	Replace      bool
	ValidateOnly bool
	// ExpectedVersion, when not 0, must be the topic's version.
	ExpectedVersion int64
	// Dev chooses the defaults of `dev` for strandline.flush.
	Dev bool
}

// AllocateProducerIDs hands a block of producer ids to a broker. Reply: ProducerIDs.
type AllocateProducerIDs struct {
	Node  kafka.NodeID
	Epoch kafka.BrokerEpoch
	Count int64
}

// FinishTopics finishes what a former controller left half done: topics that never became ready are removed, and partitions without a
// leader, or with a fenced one, get one where a candidate is there. Reply: Finished.
type FinishTopics struct {
	Now time.Time
}

// NamedPartition names a partition as clients do.
type NamedPartition struct {
	Topic     string
	Partition int32
}

// ElectLeaders gives partitions their preferred leaders: the first of their replicas. Reply: []ElectionResult.
type ElectLeaders struct {
	Principal kafka.Principal
	// Unclean asks for any leader instead. A replica that may miss acknowledged records is never elected (I4).
	Unclean bool
	// All asks for every partition; else Partitions names them.
	All        bool
	Partitions []NamedPartition
}

// AlterAssignments gives partitions other replicas. Reply: []AssignmentResult in the order of Partitions.
type AlterAssignments struct {
	Principal  kafka.Principal
	Partitions []NewAssignment
	// KeepFactor refuses another number of replicas.
	KeepFactor bool
}

// NewAssignment names the replicas that one partition is to have, preferred leader first.
type NewAssignment struct {
	NamedPartition
	Replicas []kafka.NodeID
	// Cancel ends a move in progress instead.
	Cancel bool
}

// AlterISR is the wish of a leader: other in-sync replicas for partitions it leads. Reply: []ISRResult in the order of Changes.
type AlterISR struct {
	Now time.Time
	// Node is the leader, Epoch its registration.
	Node    kafka.NodeID
	Epoch   kafka.BrokerEpoch
	Changes []ISRChange
}

// ISRChange is the wish for one partition. It holds only in the epochs it names (compare and set).
type ISRChange struct {
	TP             kafka.TopicPartition
	LeaderEpoch    kafka.LeaderEpoch
	PartitionEpoch kafka.PartitionEpoch
	// ISR is the whole new list, the leader among them. The committed list again drops a pending change: the partition epoch rises.
	ISR []Member
	// Lost are replicas that no longer have what they had reported as stored: they are not in ISR and may not stay in the ELR (I4).
	Lost []kafka.NodeID
}

// Member is a replica in the registration in which the leader has seen it.
type Member struct {
	Node  kafka.NodeID
	Epoch kafka.BrokerEpoch
}

// ReportDamage says that a running node has found replicas of its own damaged (I11): they leave ISR and ELR, and where the node led, another leader
// epoch begins. Reply: DamageNoted.
type ReportDamage struct {
	Node    kafka.NodeID
	Epoch   kafka.BrokerEpoch
	Damaged []DamagedReplica
}

// DamagedReplica names a replica, and the leader epoch that its node knew when it reported the damage. A report from an older epoch changes nothing:
// it may be a late copy of one that was heeded, and the replica built anew since. Who is still damaged reports again.
type DamagedReplica struct {
	TP          kafka.TopicPartition
	LeaderEpoch kafka.LeaderEpoch
}

// DrainBroker takes a broker out of service for good, without loss: it gets nothing new, its leaderships go to others at once, and its replicas are
// moved away by ContinueDrains. The mark is the broker's config strandline.drain, so AlterConfigs does the same. Reply: Drained.
type DrainBroker struct {
	Principal kafka.Principal
	Node      kafka.NodeID
	// Undo takes the mark off; moves in progress go on.
	Undo bool
}

// RemoveBroker forgets a broker that holds no replica and runs no more. Reply: BrokerRemoved.
type RemoveBroker struct {
	Principal kafka.Principal
	Node      kafka.NodeID
}

// RecoverPartitions elects a leader where no replica is sure to have every acknowledged record: the replica with the highest (last epoch, end) of
// those that are up. Records may be lost, so it is the operator's act (I4). Reply: []Recovered in the order of Partitions.
type RecoverPartitions struct {
	Principal  kafka.Principal
	Partitions []PartitionEnds
	// Whole refuses until every replica that was last known to be in sync or eligible is up and has told its end.
	Whole bool
}

// PartitionEnds are what replicas of a partition have, as they told the caller.
type PartitionEnds struct {
	TP   kafka.TopicPartition
	Ends []ReplicaEnd
}

// ReplicaEnd is what one replica has: the epoch of its last record, and the offset after it.
type ReplicaEnd struct {
	Node      kafka.NodeID
	LastEpoch kafka.LeaderEpoch
	End       kafka.Offset
}

// BalanceLeaders gives leaderships back to the preferred leaders that are up and in sync, at most Max of them. Reply: Balanced.
type BalanceLeaders struct {
	Max int
}

// ContinueDrains begins moves of replicas away from brokers that are being drained, so that at most Max are on the way. Reply: MovesBegun.
type ContinueDrains struct {
	Seed uint64
	Max  int
}

// RaiseInternal begins moves that give the brokers' own topics Factor replicas, in as many racks as there are, as far as there are brokers for it.
// At most Max moves of these topics are on the way. Reply: MovesBegun.
type RaiseInternal struct {
	Seed   uint64
	Factor int
	Max    int
}

// CreateACLs adds rules of access. Reply: []ACLCreated in the order of ACLs.
type CreateACLs struct {
	Principal kafka.Principal
	ACLs      []ACL
}

// DeleteACLs removes the rules of access that any of the filters selects. Reply: []ACLsDeleted in the order of Filters.
type DeleteACLs struct {
	Principal kafka.Principal
	Filters   []ACLFilter
}

// AlterScram removes and sets credentials of users. Reply: []ScramAltered, those of Remove first.
type AlterScram struct {
	Principal kafka.Principal
	Remove    []ScramName
	Set       []ScramCredential
	// Secret is random: it becomes the Image's ScramSecret if that has none.
	Secret []byte
}

// ScramName names a credential.
type ScramName struct {
	User      string
	Mechanism ScramMechanism
}

// AlterQuotas changes quotas, those of each entity whole or not at all. Reply: []QuotaAltered in the order of Entities.
type AlterQuotas struct {
	Principal    kafka.Principal
	Entities     []QuotaChange
	ValidateOnly bool
}

// QuotaChange changes the quotas of one entity.
type QuotaChange struct {
	Entity QuotaEntity
	Ops    []QuotaOp
}

// QuotaOp sets or removes one quota.
type QuotaOp struct {
	Kind   QuotaKind
	Value  float64
	Remove bool
}

func (AlterQuotas) event()         {}
func (CreateACLs) event()          {}
func (DeleteACLs) event()          {}
func (AlterScram) event()          {}
func (RegisterBroker) event()      {}
func (BrokerReady) event()         {}
func (FenceBroker) event()         {}
func (CreateTopics) event()        {}
func (DeleteTopics) event()        {}
func (RestoreTopic) event()        {}
func (PurgeTopic) event()          {}
func (ExpireTrash) event()         {}
func (ReplicasPurged) event()      {}
func (CreatePartitions) event()    {}
func (AlterConfigs) event()        {}
func (AllocateProducerIDs) event() {}
func (FinishTopics) event()        {}
func (ElectLeaders) event()        {}
func (AlterAssignments) event()    {}
func (AlterISR) event()            {}
func (ReportDamage) event()        {}
func (DrainBroker) event()         {}
func (RemoveBroker) event()        {}
func (RecoverPartitions) event()   {}
func (BalanceLeaders) event()      {}
func (ContinueDrains) event()      {}
func (RaiseInternal) event()       {}
