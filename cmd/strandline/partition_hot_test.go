package main

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// TestR173_TheSketchFindsFrequentKeys: in bounded memory, among many rare keys; no count is too low, and none too high by more than it says.
func TestR173_TheSketchFindsFrequentKeys(t *testing.T) {
	var keys topKeys
	true1, true2 := int64(0), int64(0)
	for i := range 50_000 {
		switch {
		case i%5 == 0:
			keys.add("hot")
			true1++
		case i%20 == 1:
			keys.add("warm")
			true2++
		default:
			keys.add(fmt.Sprintf("rare-%d", i))
		}
	}
	if len(keys.counters) > topKeysMax {
		t.Errorf("%d counters", len(keys.counters))
	}
	got := keys.top(2)
	if len(got) != 2 || got[0].Key != "hot" || got[1].Key != "warm" {
		t.Fatalf("%+v", got)
	}
	for i, want := range []int64{true1, true2} {
		if got[i].Count < want || got[i].Count-got[i].Over > want {
			t.Errorf("%+v, and it came %d times", got[i], want)
		}
	}
}

// TestR173_R174_R186_HotAndSparse: a partition with twice the average of its topic is hot, a topic of one partition never is, and a topic with many
// partitions for few records is named. What is printed says that more members will not help.
func TestR173_R174_R186_HotAndSparse(t *testing.T) {
	all := []hotPartition{{Topic: "one", Records: 1_000_000}}
	for p := range int32(4) {
		all = append(all, hotPartition{Topic: "orders", Partition: p, Records: 10_000})
	}
	all[2].Records = 90_000
	for p := range int32(64) {
		all = append(all, hotPartition{Topic: "idle", Partition: p, Records: 1})
	}
	found := judgeHot(all, time.Minute)
	for _, h := range found {
		if want := h.Topic == "orders" && h.Partition == 1; h.Hot != want {
			t.Errorf("%+v", h)
		}
	}
	sparse := sparseTopics(all, time.Minute)
	if len(sparse) != 1 || sparse[0] != "idle has 64 partitions for 1.07 records a second" {
		t.Errorf("%q", sparse)
	}
	found[1].Sampled, found[1].Keys = 10, []keyCount{{Key: "order-42", Count: 9}}
	var out strings.Builder
	if err := (printer{w: &out}).printHot(found[:3], sparse, time.Minute); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"hot: 3.0 times the average", `90%  "order-42"`, "more members will not help", "idle has 64 partitions"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is missing in:\n%s", want, out.String())
		}
	}
}
