package wire

import (
	"math"
	"slices"
)

// The keys of the APIs that we serve.
const (
	KeyProduce                     int16 = 0
	KeyFetch                       int16 = 1
	KeyListOffsets                 int16 = 2
	KeyMetadata                    int16 = 3
	KeyOffsetCommit                int16 = 8
	KeyOffsetFetch                 int16 = 9
	KeyFindCoordinator             int16 = 10
	KeyJoinGroup                   int16 = 11
	KeyHeartbeat                   int16 = 12
	KeyLeaveGroup                  int16 = 13
	KeySyncGroup                   int16 = 14
	KeyDescribeGroups              int16 = 15
	KeyListGroups                  int16 = 16
	KeySaslHandshake               int16 = 17
	KeyApiVersions                 int16 = 18
	KeyCreateTopics                int16 = 19
	KeyDeleteTopics                int16 = 20
	KeyDeleteRecords               int16 = 21
	KeyInitProducerID              int16 = 22
	KeyOffsetForLeaderEpoch        int16 = 23
	KeyDescribeACLs                int16 = 29
	KeyCreateACLs                  int16 = 30
	KeyDeleteACLs                  int16 = 31
	KeyDescribeConfigs             int16 = 32
	KeyAlterConfigs                int16 = 33
	KeyDescribeLogDirs             int16 = 35
	KeySaslAuthenticate            int16 = 36
	KeyCreatePartitions            int16 = 37
	KeyDeleteGroups                int16 = 42
	KeyElectLeaders                int16 = 43
	KeyIncrementalAlterConfigs     int16 = 44
	KeyAlterPartitionReassignments int16 = 45
	KeyListPartitionReassignments  int16 = 46
	KeyOffsetDelete                int16 = 47
	KeyDescribeClientQuotas        int16 = 48
	KeyAlterClientQuotas           int16 = 49
	KeyDescribeUserScram           int16 = 50
	KeyAlterUserScram              int16 = 51
	KeyDescribeQuorum              int16 = 55
	KeyUpdateFeatures              int16 = 57
	KeyDescribeCluster             int16 = 60
	KeyDescribeProducers           int16 = 61
	KeyUnregisterBroker            int16 = 64
	KeyConsumerGroupHeartbeat      int16 = 68
	KeyConsumerGroupDescribe       int16 = 69
	KeyDescribeTopicPartitions     int16 = 75
	KeyAddRaftVoter                int16 = 80
	KeyRemoveRaftVoter             int16 = 81
)

// API is one row of the version table.
type API struct {
	Key  int16
	Name string
	// Min and Max are the versions that we serve.
	Min, Max int16
	// AdvertisedMin is the smallest version in ApiVersions answers. It differs from Min only for Produce: librdkafka takes a minimum
	// above 0 for a broker without magic 2 (KAFKA-18659).
	AdvertisedMin int16
	// Flexible is the first version with compact lengths and tags; math.MaxInt16 when none has them.
	Flexible int16
}

// apis is the table, by key. ApiVersions answers, version checks and header layouts all come from here.
var apis = []API{
	{Key: KeyProduce, Name: "Produce", Min: 3, Max: 13, AdvertisedMin: 0, Flexible: 9},
	{Key: KeyFetch, Name: "Fetch", Min: 4, Max: 18, AdvertisedMin: 4, Flexible: 12},
	{Key: KeyListOffsets, Name: "ListOffsets", Min: 1, Max: 11, AdvertisedMin: 1, Flexible: 6},
	{Key: KeyMetadata, Name: "Metadata", Min: 0, Max: 13, AdvertisedMin: 0, Flexible: 9},
	{Key: KeyOffsetCommit, Name: "OffsetCommit", Min: 0, Max: 10, AdvertisedMin: 0, Flexible: 8},
	{Key: KeyOffsetFetch, Name: "OffsetFetch", Min: 1, Max: 10, AdvertisedMin: 1, Flexible: 6},
	{Key: KeyFindCoordinator, Name: "FindCoordinator", Min: 0, Max: 6, AdvertisedMin: 0, Flexible: 3},
	{Key: KeyJoinGroup, Name: "JoinGroup", Min: 0, Max: 9, AdvertisedMin: 0, Flexible: 6},
	{Key: KeyHeartbeat, Name: "Heartbeat", Min: 0, Max: 4, AdvertisedMin: 0, Flexible: 4},
	{Key: KeyLeaveGroup, Name: "LeaveGroup", Min: 0, Max: 5, AdvertisedMin: 0, Flexible: 4},
	{Key: KeySyncGroup, Name: "SyncGroup", Min: 0, Max: 5, AdvertisedMin: 0, Flexible: 4},
	{Key: KeyDescribeGroups, Name: "DescribeGroups", Min: 0, Max: 6, AdvertisedMin: 0, Flexible: 5},
	{Key: KeyListGroups, Name: "ListGroups", Min: 0, Max: 5, AdvertisedMin: 0, Flexible: 3},
	{Key: KeySaslHandshake, Name: "SaslHandshake", Min: 0, Max: 1, AdvertisedMin: 0, Flexible: math.MaxInt16},
	{Key: KeyApiVersions, Name: "ApiVersions", Min: 0, Max: 5, AdvertisedMin: 0, Flexible: 3},
	{Key: KeyCreateTopics, Name: "CreateTopics", Min: 0, Max: 7, AdvertisedMin: 0, Flexible: 5},
	{Key: KeyDeleteTopics, Name: "DeleteTopics", Min: 0, Max: 6, AdvertisedMin: 0, Flexible: 4},
	{Key: KeyDeleteRecords, Name: "DeleteRecords", Min: 0, Max: 2, AdvertisedMin: 0, Flexible: 2},
	{Key: KeyInitProducerID, Name: "InitProducerId", Min: 0, Max: 5, AdvertisedMin: 0, Flexible: 2},
	{Key: KeyOffsetForLeaderEpoch, Name: "OffsetForLeaderEpoch", Min: 2, Max: 4, AdvertisedMin: 2, Flexible: 4},
	{Key: KeyDescribeACLs, Name: "DescribeAcls", Min: 0, Max: 3, AdvertisedMin: 0, Flexible: 2},
	{Key: KeyCreateACLs, Name: "CreateAcls", Min: 0, Max: 3, AdvertisedMin: 0, Flexible: 2},
	{Key: KeyDeleteACLs, Name: "DeleteAcls", Min: 0, Max: 3, AdvertisedMin: 0, Flexible: 2},
	{Key: KeyDescribeConfigs, Name: "DescribeConfigs", Min: 0, Max: 4, AdvertisedMin: 0, Flexible: 4},
	{Key: KeyAlterConfigs, Name: "AlterConfigs", Min: 0, Max: 2, AdvertisedMin: 0, Flexible: 2},
	{Key: KeyDescribeLogDirs, Name: "DescribeLogDirs", Min: 0, Max: 5, AdvertisedMin: 0, Flexible: 2},
	{Key: KeySaslAuthenticate, Name: "SaslAuthenticate", Min: 0, Max: 2, AdvertisedMin: 0, Flexible: 2},
	{Key: KeyCreatePartitions, Name: "CreatePartitions", Min: 0, Max: 3, AdvertisedMin: 0, Flexible: 2},
	{Key: KeyDeleteGroups, Name: "DeleteGroups", Min: 0, Max: 3, AdvertisedMin: 0, Flexible: 2},
	{Key: KeyElectLeaders, Name: "ElectLeaders", Min: 0, Max: 2, AdvertisedMin: 0, Flexible: 2},
	{Key: KeyIncrementalAlterConfigs, Name: "IncrementalAlterConfigs", Min: 0, Max: 1, AdvertisedMin: 0, Flexible: 1},
	{Key: KeyAlterPartitionReassignments, Name: "AlterPartitionReassignments", Min: 0, Max: 1, AdvertisedMin: 0, Flexible: 0},
	{Key: KeyListPartitionReassignments, Name: "ListPartitionReassignments", Min: 0, Max: 0, AdvertisedMin: 0, Flexible: 0},
	{Key: KeyOffsetDelete, Name: "OffsetDelete", Min: 0, Max: 0, AdvertisedMin: 0, Flexible: math.MaxInt16},
	{Key: KeyDescribeClientQuotas, Name: "DescribeClientQuotas", Min: 0, Max: 1, AdvertisedMin: 0, Flexible: 1},
	{Key: KeyAlterClientQuotas, Name: "AlterClientQuotas", Min: 0, Max: 1, AdvertisedMin: 0, Flexible: 1},
	{Key: KeyDescribeUserScram, Name: "DescribeUserScramCredentials", Min: 0, Max: 0, AdvertisedMin: 0, Flexible: 0},
	{Key: KeyAlterUserScram, Name: "AlterUserScramCredentials", Min: 0, Max: 0, AdvertisedMin: 0, Flexible: 0},
	{Key: KeyDescribeQuorum, Name: "DescribeQuorum", Min: 0, Max: 2, AdvertisedMin: 0, Flexible: 0},
	{Key: KeyUpdateFeatures, Name: "UpdateFeatures", Min: 0, Max: 2, AdvertisedMin: 0, Flexible: 0},
	{Key: KeyDescribeCluster, Name: "DescribeCluster", Min: 0, Max: 2, AdvertisedMin: 0, Flexible: 0},
	{Key: KeyDescribeProducers, Name: "DescribeProducers", Min: 0, Max: 0, AdvertisedMin: 0, Flexible: 0},
	{Key: KeyUnregisterBroker, Name: "UnregisterBroker", Min: 0, Max: 0, AdvertisedMin: 0, Flexible: 0},
	{Key: KeyConsumerGroupHeartbeat, Name: "ConsumerGroupHeartbeat", Min: 0, Max: 1, AdvertisedMin: 0, Flexible: 0},
	{Key: KeyConsumerGroupDescribe, Name: "ConsumerGroupDescribe", Min: 0, Max: 1, AdvertisedMin: 0, Flexible: 0},
	{Key: KeyDescribeTopicPartitions, Name: "DescribeTopicPartitions", Min: 0, Max: 0, AdvertisedMin: 0, Flexible: 0},
	{Key: KeyAddRaftVoter, Name: "AddRaftVoter", Min: 0, Max: 1, AdvertisedMin: 0, Flexible: 0},
	{Key: KeyRemoveRaftVoter, Name: "RemoveRaftVoter", Min: 0, Max: 0, AdvertisedMin: 0, Flexible: 0},
}

// APIs returns the version table, ordered by key. The slice is the caller's.
func APIs() []API { return slices.Clone(apis) }

// Lookup returns the row of a key; false when we do not serve it.
func Lookup(key int16) (API, bool) {
	i, found := slices.BinarySearchFunc(apis, key, func(a API, k int16) int { return int(a.Key) - int(k) })
	if !found {
		return API{}, false
	}
	return apis[i], true
}

// Check judges a request's key and version. Errors: ErrUnknownKey, ErrVersionTooNew (close the connection), ErrVersionTooOld (answer
// with RefuseOld). ApiVersions above our maximum is ErrVersionTooNew too; it alone is answered, with RefuseApiVersions.
func Check(key, version int16) error {
	a, ok := Lookup(key)
	switch {
	case !ok:
		return ErrUnknownKey
	case version > a.Max:
		return ErrVersionTooNew
	case version < 0:
		return ErrUnknownKey
	case version < a.Min:
		return ErrVersionTooOld
	}
	return nil
}
