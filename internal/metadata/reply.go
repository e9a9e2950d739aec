package metadata

import (
	"time"

	"strandline.dev/internal/kafka"
)

// Outcome is how a decision ended: Code None, or why it was refused, in words.
type Outcome struct {
	Code    kafka.ErrorCode
	Message string
}

// OK says that the decision was not refused.
func (o Outcome) OK() bool { return o.Code == kafka.None }

// Registered answers RegisterBroker.
type Registered struct {
	Outcome
	Epoch kafka.BrokerEpoch
	// PossibleLoss are partitions with one replica that come back although records may have been lost with a restart of the operating
	// system (I4): counted, logged and audited by the caller.
	PossibleLoss []kafka.TopicPartition
	// Offline are partitions that have no eligible leader left after this registration, by name.
	Offline []PartitionName
}

// PartitionName names a partition for people.
type PartitionName struct {
	Topic     string
	ID        kafka.TopicID
	Partition int32
}

// BrokerChanged answers BrokerReady and FenceBroker.
type BrokerChanged struct {
	Outcome
	// Elected counts the partitions that got a leader.
	Elected int
	// StillLeads counts the partitions the broker leads after the change.
	StillLeads int
}

// TopicResult is the answer for one topic of CreateTopics. Values other than the name are set only when Code is None.
type TopicResult struct {
	Outcome
	Name              string
	ID                kafka.TopicID // zero when only validated
	Partitions        int32
	ReplicationFactor int16
	// Configs are the stored overrides: what config.DescribeTopic takes.
	Configs map[string]string
	Version int64
}

// DeleteResult is the answer for one topic of DeleteTopics.
type DeleteResult struct {
	Outcome
	Name string
	ID   kafka.TopicID
	// PurgeAt is when the topic can no longer be restored; zero when it was purged at once.
	PurgeAt time.Time
}

// RestoreResult answers RestoreTopic.
type RestoreResult struct {
	Outcome
	Name    string
	ID      kafka.TopicID
	Version int64
}

// Expired answers ExpireTrash.
type Expired struct {
	Topics []kafka.TopicID
}

// Purged answers ReplicasPurged: how many of the directories were waited for.
type Purged struct {
	Done int
}

// PartitionsResult is the answer for one topic of CreatePartitions.
type PartitionsResult struct {
	Outcome
	Name    string
	Count   int32
	Version int64
}

// AlterResult answers AlterConfigs.
type AlterResult struct {
	Outcome
	// Version is the topic's version after the change; 0 for brokers.
	Version int64
}

// ProducerIDs answers AllocateProducerIDs: the block [First, First+Count).
type ProducerIDs struct {
	Outcome
	First, Count int64
}

// ElectionResult is the answer for one partition of ElectLeaders.
type ElectionResult struct {
	Outcome
	NamedPartition
}

// AssignmentResult is the answer for one partition of AlterAssignments.
type AssignmentResult struct {
	Outcome
	NamedPartition
}

// Finished answers FinishTopics.
type Finished struct {
	// Removed are the topics that were half made.
	Removed []kafka.TopicID
	// Elected counts the partitions that got a leader.
	Elected int
}

// ISRResult is the answer for one partition of AlterISR.
type ISRResult struct {
	Outcome
	TP kafka.TopicPartition
	// State is the new state, or with a refusal the one that holds; without replicas when the partition is unknown.
	State kafka.PartitionState
}

// DamageNoted answers ReportDamage.
type DamageNoted struct {
	Outcome
	// Offline are the partitions that have no eligible leader left.
	Offline []PartitionName
	// Stale are those that were reported in an older leader epoch: nothing was changed for them.
	Stale []kafka.TopicPartition
}

// Drained answers DrainBroker, and says what the broker still has.
type Drained struct {
	Outcome
	Leaders, Replicas int
}

// BrokerRemoved answers RemoveBroker.
type BrokerRemoved struct {
	Outcome
}

// Recovered is the answer for one partition of RecoverPartitions.
type Recovered struct {
	Outcome
	PartitionName
	// Leader was elected with the records up to End of epoch LastEpoch.
	Leader    kafka.NodeID
	LastEpoch kafka.LeaderEpoch
	End       kafka.Offset
}

// Balanced answers BalanceLeaders.
type Balanced struct {
	// Moved leaderships have gone to their preferred leaders, Left more could.
	Moved, Left int
}

// MovesBegun answers ContinueDrains and RaiseInternal.
type MovesBegun struct {
	// Begun partitions have a move from now on. Stuck ones should, and no broker can take the replica.
	Begun, Stuck int
}

// ACLCreated is the answer for one rule of CreateACLs.
type ACLCreated struct {
	Outcome
}

// ACLsDeleted is the answer for one filter of DeleteACLs.
type ACLsDeleted struct {
	Outcome
	ACLs []ACL
}

// ScramAltered is the answer for one credential of AlterScram.
type ScramAltered struct {
	Outcome
	User string
}

// QuotaAltered is the answer for one entity of AlterQuotas.
type QuotaAltered struct {
	Outcome
}
