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
	{key: wire.KeyOffsetCommit, handle: (*Server).handleOffsetCommit, operation: "Read on Group, Read on Topic"},
	{key: wire.KeyOffsetFetch, handle: (*Server).handleOffsetFetch, operation: "Describe on Group, Describe on Topic"},
	{key: wire.KeyFindCoordinator, handle: (*Server).handleFindCoordinator, operation: "Describe on Group"},
	{key: wire.KeyJoinGroup, handle: (*Server).handleJoinGroup, operation: "Read on Group", longPoll: true},
	{key: wire.KeyHeartbeat, handle: (*Server).handleHeartbeat, operation: "Read on Group"},
	{key: wire.KeyLeaveGroup, handle: (*Server).handleLeaveGroup, operation: "Read on Group"},
	{key: wire.KeySyncGroup, handle: (*Server).handleSyncGroup, operation: "Read on Group", longPoll: true},
	{key: wire.KeyDescribeGroups, handle: (*Server).handleDescribeGroups, operation: "Describe on Group"},
	{key: wire.KeyListGroups, handle: (*Server).handleListGroups, operation: "Describe on Cluster"},
	{key: wire.KeyApiVersions, handle: (*Server).handleApiVersions, operation: "none"},
	{key: wire.KeyCreateTopics, handle: (*Server).handleCreateTopics, operation: "Create on Topic"},
	{key: wire.KeyDeleteTopics, handle: (*Server).handleDeleteTopics, operation: "Delete on Topic"},
	{key: wire.KeyDeleteRecords, handle: (*Server).handleDeleteRecords, operation: "Delete on Topic"},
	{key: wire.KeyInitProducerID, handle: (*Server).handleInitProducerID, operation: "IdempotentWrite on Cluster"},
	{key: wire.KeyOffsetForLeaderEpoch, handle: (*Server).handleOffsetForLeaderEpoch, operation: "Describe on Topic"},
	{key: wire.KeyDescribeConfigs, handle: (*Server).handleDescribeConfigs, operation: "DescribeConfigs on Topic or Cluster"},
	{key: wire.KeyAlterConfigs, handle: (*Server).handleAlterConfigs, operation: "AlterConfigs on Topic or Cluster"},
	{key: wire.KeyDescribeLogDirs, handle: (*Server).handleDescribeLogDirs, operation: "Describe on Cluster"},
	{key: wire.KeyCreatePartitions, handle: (*Server).handleCreatePartitions, operation: "Alter on Topic"},
	{key: wire.KeyDeleteGroups, handle: (*Server).handleDeleteGroups, operation: "Delete on Group"},
	{key: wire.KeyElectLeaders, handle: (*Server).handleElectLeaders, operation: "Alter on Cluster"},
	{key: wire.KeyIncrementalAlterConfigs, handle: (*Server).handleIncrementalAlterConfigs, operation: "AlterConfigs on Topic or Cluster"},
	{key: wire.KeyAlterPartitionReassignments, handle: (*Server).handleAlterPartitionReassignments, operation: "Alter on Cluster"},
	{key: wire.KeyListPartitionReassignments, handle: (*Server).handleListPartitionReassignments, operation: "Describe on Cluster"},
	{key: wire.KeyOffsetDelete, handle: (*Server).handleOffsetDelete, operation: "Delete on Group, Read on Topic"},
	{key: wire.KeyDescribeQuorum, handle: (*Server).handleDescribeQuorum, operation: "Describe on Cluster"},
	{key: wire.KeyUpdateFeatures, handle: (*Server).handleUpdateFeatures, operation: "Alter on Cluster"},
	{key: wire.KeyDescribeCluster, handle: (*Server).handleDescribeCluster, operation: "Describe on Cluster"},
	{key: wire.KeyDescribeProducers, handle: (*Server).handleDescribeProducers, operation: "Read on Topic"},
	{key: wire.KeyUnregisterBroker, handle: (*Server).handleUnregisterBroker, operation: "Alter on Cluster"},
	{key: wire.KeyDescribeTopicPartitions, handle: (*Server).handleDescribeTopicPartitions, operation: "Describe on Topic"},
	{key: wire.KeyAddRaftVoter, handle: (*Server).handleAddRaftVoter, operation: "Alter on Cluster"},
	{key: wire.KeyRemoveRaftVoter, handle: (*Server).handleRemoveRaftVoter, operation: "Alter on Cluster"},
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
