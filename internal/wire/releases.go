package wire

import (
	"fmt"
	"slices"
)

// releases are the releases of Kafka whose versions a cap can name, oldest first. Those between two of them differ in little that a
// client would notice.
var releases = [...]string{"2.0", "2.8", "3.9", "4.0", "4.1", "4.2", "4.3", "4.4"}

// none is the place of a key that a release does not know.
const none = -1

// ceilings are the largest stable version of each key in each of releases, of brokers without ZooKeeper from 3.9 on. Sources:
// Kafka's message definitions from 3.9 on; before that, a test holds the numbers against kversion.
var ceilings = map[int16][len(releases)]int16{
	KeyProduce:                     {6, 9, 11, 12, 13, 13, 13, 13},
	KeyFetch:                       {8, 12, 17, 17, 18, 18, 18, 18},
	KeyListOffsets:                 {3, 6, 9, 10, 10, 11, 11, 11},
	KeyMetadata:                    {6, 11, 12, 13, 13, 13, 13, 13},
	KeyOffsetCommit:                {4, 8, 9, 9, 9, 10, 10, 10},
	KeyOffsetFetch:                 {4, 7, 9, 9, 9, 10, 10, 10},
	KeyFindCoordinator:             {2, 3, 6, 6, 6, 6, 6, 6},
	KeyJoinGroup:                   {3, 7, 9, 9, 9, 9, 9, 9},
	KeyHeartbeat:                   {2, 4, 4, 4, 4, 4, 4, 4},
	KeyLeaveGroup:                  {2, 4, 5, 5, 5, 5, 5, 5},
	KeySyncGroup:                   {2, 5, 5, 5, 5, 5, 5, 5},
	KeyDescribeGroups:              {2, 5, 5, 6, 6, 6, 6, 6},
	KeyListGroups:                  {2, 4, 5, 5, 5, 5, 5, 5},
	KeySaslHandshake:               {1, 1, 1, 1, 1, 1, 1, 1},
	KeyApiVersions:                 {2, 3, 4, 4, 4, 4, 4, 5},
	KeyCreateTopics:                {3, 7, 7, 7, 7, 7, 7, 7},
	KeyDeleteTopics:                {2, 6, 6, 6, 6, 6, 6, 6},
	KeyDeleteRecords:               {1, 2, 2, 2, 2, 2, 2, 2},
	KeyInitProducerID:              {1, 4, 5, 5, 5, 5, 5, 5},
	KeyOffsetForLeaderEpoch:        {1, 4, 4, 4, 4, 4, 4, 4},
	KeyDescribeACLs:                {1, 2, 3, 3, 3, 3, 3, 3},
	KeyCreateACLs:                  {1, 2, 3, 3, 3, 3, 3, 3},
	KeyDeleteACLs:                  {1, 2, 3, 3, 3, 3, 3, 3},
	KeyDescribeConfigs:             {2, 4, 4, 4, 4, 4, 4, 4},
	KeyAlterConfigs:                {1, 2, 2, 2, 2, 2, 2, 2},
	KeyDescribeLogDirs:             {1, 2, 4, 4, 4, 4, 5, 5},
	KeySaslAuthenticate:            {0, 2, 2, 2, 2, 2, 2, 2},
	KeyCreatePartitions:            {1, 3, 3, 3, 3, 3, 3, 3},
	KeyDeleteGroups:                {1, 2, 2, 2, 2, 2, 2, 3},
	KeyElectLeaders:                {none, 2, 2, 2, 2, 2, 2, 2},
	KeyIncrementalAlterConfigs:     {none, 1, 1, 1, 1, 1, 1, 1},
	KeyAlterPartitionReassignments: {none, 0, 0, 0, 1, 1, 1, 1},
	KeyListPartitionReassignments:  {none, 0, 0, 0, 0, 0, 0, 0},
	KeyOffsetDelete:                {none, 0, 0, 0, 0, 0, 0, 0},
	KeyDescribeClientQuotas:        {none, 1, 1, 1, 1, 1, 1, 1},
	KeyAlterClientQuotas:           {none, 1, 1, 1, 1, 1, 1, 1},
	KeyDescribeUserScram:           {none, 0, 0, 0, 0, 0, 0, 0},
	KeyAlterUserScram:              {none, 0, 0, 0, 0, 0, 0, 0},
	KeyDescribeQuorum:              {none, none, 2, 2, 2, 2, 2, 2},
	KeyUpdateFeatures:              {none, 0, 1, 2, 2, 2, 2, 2},
	KeyDescribeCluster:             {none, 0, 1, 2, 2, 2, 2, 2},
	KeyDescribeProducers:           {none, 0, 0, 0, 0, 0, 0, 0},
	KeyUnregisterBroker:            {none, none, 0, 0, 0, 0, 0, 0},
	KeyConsumerGroupHeartbeat:      {none, none, 0, 1, 1, 1, 1, 1},
	KeyConsumerGroupDescribe:       {none, none, 0, 1, 1, 1, 1, 1},
	KeyDescribeTopicPartitions:     {none, none, 0, 0, 0, 0, 0, 0},
	KeyAddRaftVoter:                {none, none, 0, 0, 0, 1, 1, 1},
	KeyRemoveRaftVoter:             {none, none, 0, 0, 0, 0, 0, 0},
}

// Releases lists the releases that Cap knows, oldest first.
func Releases() []string { return slices.Clone(releases[:]) }

// Cap returns the rows as a broker of that release of Kafka would have them, where we can: with its largest versions, and without the
// keys that it does not know or knows only below our minimum. Our minimums stay: nothing is served that the table does not serve. The
// error is ErrUnknownRelease.
func Cap(rows []API, release string) ([]API, error) {
	at := slices.Index(releases[:], release)
	if at < 0 {
		return nil, fmt.Errorf("%w: %q", ErrUnknownRelease, release)
	}
	out := make([]API, 0, len(rows))
	for _, a := range rows {
		ceiling, known := ceilings[a.Key]
		if !known || ceiling[at] < a.Min {
			continue
		}
		a.Max = min(a.Max, ceiling[at])
		out = append(out, a)
	}
	return out, nil
}
