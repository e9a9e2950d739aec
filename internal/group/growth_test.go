package group

import (
	"fmt"
	"testing"

	"strandline.dev/internal/kafka"
)

// TestR62_NoFetchOvertakesAGrowth: with more groups than one step serves, a group whose turn has not come is told to ask again, never that
// nothing is stored; in the end all have the start of the new partitions.
func TestR62_NoFetchOvertakesAGrowth(t *testing.T) {
	w := newWorld(t, Config{})
	w.fast = true
	id := testID(1)
	const groups = recordsMax + 10
	for i := range groups {
		w.do(CommitOffsets{Group: fmt.Sprintf("g%04d", i), Generation: NoGeneration, Topics: []CommitTopic{
			{Name: "t", ID: id, Width: 1, Partitions: []CommitPartition{{Partition: 0, Offset: 5}}},
		}})
	}
	fetch := func(name string) *FetchReply {
		e := w.do(FetchOffsets{Token: 1, Group: name, Topics: []FetchTopic{{"t", id, []int32{1}}}})
		return e.Replies[0].Response.(*FetchReply)
	}
	w.do(TopicsWidened{Topics: []Widened{{"t", id, 1, 2}}})
	last := fmt.Sprintf("g%04d", groups-1)
	if r := fetch(last); r.Code != kafka.CoordinatorLoadInProgress {
		t.Errorf("a group whose turn has not come is answered with %v", r)
	}
	if w.shard.widths[id].count != 1 {
		t.Error("the width is known before the last group has its offsets")
	}
	w.advance(0)
	for i := range groups {
		if r := fetch(fmt.Sprintf("g%04d", i)); r.Code != kafka.None || r.Topics[0].Partitions[0].Offset != 0 {
			t.Fatalf("group %d: %v", i, r)
		}
	}
	if w.shard.widths[id].count != 2 {
		t.Error("the width is not known")
	}
}
