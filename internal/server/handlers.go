package server

import (
	"context"
	"slices"

	"strandline.dev/internal/wire"
)

// row is one API in the handler table.
type row struct {
	key    int16
	handle func(*Server, context.Context, *Call) Reply
	// operation is what the principal must be allowed to do, by Kafka's names of operations and resource types.
	operation string
	// need is the right that the request as a whole takes; nil: none, or one for each thing it names, which the handler asks for.
	need *need
	// longPoll marks waits that a graceful stop cuts short: the answer is right at any time.
	longPoll bool
}

// rows is the handler table, by key. What is advertised has a handler, and the reverse: ApiVersions lists these rows, with the ranges of
// the version table. docs/protocol.md is made of both.
var rows = []row{
	{key: wire.KeyProduce, handle: (*Server).handleProduce, operation: "Write on Topic"},
	{key: wire.KeyFetch, handle: (*Server).handleFetch, operation: "Read on Topic", longPoll: true},
	{key: wire.KeyListOffsets, handle: (*Server).handleListOffsets, operation: "Describe on Topic"},
	{key: wire.KeyMetadata, handle: (*Server).handleMetadata, operation: "Describe on Topic, Create on Topic"},
	{key: wire.KeyOffsetCommit, handle: (*Server).handleOffsetCommit, operation: "Read on Group, Read on Topic", need: readGroup},
	{key: wire.KeyOffsetFetch, handle: (*Server).handleOffsetFetch, operation: "Describe on Group, Describe on Topic"},
	{key: wire.KeyFindCoordinator, handle: (*Server).handleFindCoordinator, operation: "Describe on Group"},
	{key: wire.KeyJoinGroup, handle: (*Server).handleJoinGroup, operation: "Read on Group", need: readGroup, longPoll: true},
	{key: wire.KeyHeartbeat, handle: (*Server).handleHeartbeat, operation: "Read on Group", need: readGroup},
	{key: wire.KeyLeaveGroup, handle: (*Server).handleLeaveGroup, operation: "Read on Group", need: readGroup},
	{key: wire.KeySyncGroup, handle: (*Server).handleSyncGroup, operation: "Read on Group", need: readGroup, longPoll: true},
	{key: wire.KeyDescribeGroups, handle: (*Server).handleDescribeGroups, operation: "Describe on Group"},
	{key: wire.KeyListGroups, handle: (*Server).handleListGroups, operation: "Describe on Cluster, or on each Group"},
	{key: wire.KeySaslHandshake, handle: (*Server).handleSaslHandshake, operation: "none"},
	{key: wire.KeyApiVersions, handle: (*Server).handleApiVersions, operation: "none"},
	{key: wire.KeyCreateTopics, handle: (*Server).handleCreateTopics, operation: "Create on Topic or Cluster"},
	{key: wire.KeyDeleteTopics, handle: (*Server).handleDeleteTopics, operation: "Delete on Topic"},
	{key: wire.KeyDeleteRecords, handle: (*Server).handleDeleteRecords, operation: "Delete on Topic"},
	{key: wire.KeyInitProducerID, handle: (*Server).handleInitProducerID, operation: "IdempotentWrite on Cluster, or Write on any Topic"},
	{key: wire.KeyOffsetForLeaderEpoch, handle: (*Server).handleOffsetForLeaderEpoch, operation: "Describe on Topic"},
	{key: wire.KeyDescribeACLs, handle: (*Server).handleDescribeACLs, operation: "Describe on Cluster"},
	{key: wire.KeyCreateACLs, handle: (*Server).handleCreateACLs, operation: "Alter on Cluster"},
	{key: wire.KeyDeleteACLs, handle: (*Server).handleDeleteACLs, operation: "Alter on Cluster"},
	{key: wire.KeyDescribeConfigs, handle: (*Server).handleDescribeConfigs, operation: "DescribeConfigs on Topic or Cluster"},
	{key: wire.KeyAlterConfigs, handle: (*Server).handleAlterConfigs, operation: "AlterConfigs on Topic or Cluster"},
	{key: wire.KeyDescribeLogDirs, handle: (*Server).handleDescribeLogDirs, operation: "Describe on Cluster", need: describeCluster},
	{key: wire.KeySaslAuthenticate, handle: (*Server).handleSaslAuthenticate, operation: "none"},
	{key: wire.KeyCreatePartitions, handle: (*Server).handleCreatePartitions, operation: "Alter on Topic"},
	{key: wire.KeyDeleteGroups, handle: (*Server).handleDeleteGroups, operation: "Delete on Group"},
	{key: wire.KeyElectLeaders, handle: (*Server).handleElectLeaders, operation: "Alter on Cluster", need: alterCluster},
	{key: wire.KeyIncrementalAlterConfigs, handle: (*Server).handleIncrementalAlterConfigs, operation: "AlterConfigs on Topic or Cluster"},
	{key: wire.KeyAlterPartitionReassignments, handle: (*Server).handleAlterPartitionReassignments, operation: "Alter on Cluster", need: alterCluster},
	{key: wire.KeyListPartitionReassignments, handle: (*Server).handleListPartitionReassignments, operation: "Describe on Cluster", need: describeCluster},
	{key: wire.KeyOffsetDelete, handle: (*Server).handleOffsetDelete, operation: "Delete on Group, Read on Topic", need: deleteGroup},
	{key: wire.KeyDescribeClientQuotas, handle: (*Server).handleDescribeClientQuotas, operation: "DescribeConfigs on Cluster", need: describeClusterConfigs},
	{key: wire.KeyAlterClientQuotas, handle: (*Server).handleAlterClientQuotas, operation: "AlterConfigs on Cluster", need: alterClusterConfigs},
	{key: wire.KeyDescribeUserScram, handle: (*Server).handleDescribeUserScramCredentials, operation: "Describe on Cluster"},
	{key: wire.KeyAlterUserScram, handle: (*Server).handleAlterUserScramCredentials, operation: "Alter on Cluster"},
	{key: wire.KeyDescribeQuorum, handle: (*Server).handleDescribeQuorum, operation: "Describe on Cluster", need: describeCluster},
	{key: wire.KeyUpdateFeatures, handle: (*Server).handleUpdateFeatures, operation: "Alter on Cluster", need: alterCluster},
	{key: wire.KeyDescribeCluster, handle: (*Server).handleDescribeCluster, operation: "none"},
	{key: wire.KeyDescribeProducers, handle: (*Server).handleDescribeProducers, operation: "Read on Topic"},
	{key: wire.KeyUnregisterBroker, handle: (*Server).handleUnregisterBroker, operation: "Alter on Cluster", need: alterCluster},
	{key: wire.KeyConsumerGroupHeartbeat, handle: (*Server).handleConsumerGroupHeartbeat, operation: "Read on Group, Describe on Topic", need: readGroup},
	{key: wire.KeyConsumerGroupDescribe, handle: (*Server).handleConsumerGroupDescribe, operation: "Describe on Group, Describe on Topic"},
	{key: wire.KeyDescribeTopicPartitions, handle: (*Server).handleDescribeTopicPartitions, operation: "Describe on Topic"},
	{key: wire.KeyAddRaftVoter, handle: (*Server).handleAddRaftVoter, operation: "Alter on Cluster", need: alterCluster},
	{key: wire.KeyRemoveRaftVoter, handle: (*Server).handleRemoveRaftVoter, operation: "Alter on Cluster", need: alterCluster},
}

// rowOf returns the row of a key, or nil.
func rowOf(key int16) *row {
	for i := range rows {
		if rows[i].key == key {
			return &rows[i]
		}
	}
	return nil
}

// served returns the version table's rows of the APIs that have a handler: nothing else is advertised or answered.
func served() []wire.API {
	all := wire.APIs()
	return slices.DeleteFunc(all, func(a wire.API) bool { return rowOf(a.Key) == nil })
}
