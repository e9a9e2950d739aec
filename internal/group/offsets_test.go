package group

import (
	"testing"
	"time"

	"strandline.dev/internal/kafka"
)

// TestR176_MembersOfEitherProtocolAreMembers: a group is "without members" when it has none of either protocol, not when it has no classic ones.
func TestR176_MembersOfEitherProtocolAreMembers(t *testing.T) {
	id := testID(1)
	catalog := testCatalog{1, map[string]byte{"t": 1}, map[string]int32{"t": 1}}
	commit := CommitOffsets{Group: "g", Generation: NoGeneration, Topics: []CommitTopic{
		{Name: "t", ID: id, Width: 1, Partitions: []CommitPartition{{Partition: 0, Offset: 5}}},
	}}
	for name, join := range map[string]Event{
		"classic": Join{
			Token: 1, Group: "g", Random: testID(9), SessionTimeout: time.Minute, RebalanceTimeout: time.Minute, ProtocolType: consumerType,
			Protocols: []Protocol{{Name: "range"}},
		},
		"consumer": ConsumerHeartbeat{
			Token: 1, Group: "g", MemberID: "m", MustHaveID: true, RebalanceTimeout: time.Minute, Topics: []string{"t"}, Owned: []kafka.TopicPartition{}, Catalog: catalog,
		},
	} {
		w := newWorld(t, Config{})
		w.do(commit)
		members := func() int {
			e := w.do(ListOffsets{Token: 2, Group: "g", CurrentID: func(string) kafka.TopicID { return id }})
			return e.Replies[0].Response.(*OffsetsReply).Groups[0].Members
		}
		if n := members(); n != 0 {
			t.Errorf("%s: %d members before one joins", name, n)
		}
		w.do(join)
		if n := members(); n != 1 {
			t.Errorf("%s: %d members after one joined", name, n)
		}
	}
}
