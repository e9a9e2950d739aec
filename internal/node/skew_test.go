package node

import (
	"testing"
	"time"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/metrics"
)

// TestR173_TheBusiestPartitions: by their records between two looks, each against the others of its topic.
func TestR173_TheBusiestPartitions(t *testing.T) {
	at := func(topic byte, p int32) kafka.TopicPartition {
		return kafka.TopicPartition{Topic: kafka.TopicID{topic}, Partition: p}
	}
	was, now := map[kafka.TopicPartition]held{}, map[kafka.TopicPartition]held{}
	put := func(topic byte, p int32, from, to kafka.Offset, leads bool) {
		was[at(topic, p)], now[at(topic, p)] = held{string(topic), from, leads}, held{string(topic), to, leads}
	}
	put('a', 0, 100, 700, true)
	put('a', 1, 0, 60, true)
	put('a', 2, 50, 110, false) // followed: it counts for the mean, and is its leader's to show
	put('b', 0, 0, 1200, true)  // alone in its topic
	put('c', 0, 0, 30, true)    // beside one that gets nothing
	put('c', 1, 5, 5, true)
	put('d', 0, 90, 10, true)                    // cut
	now[at('e', 0)] = held{"e", 1_000_000, true} // new here: nothing is known
	want := []metrics.Busy{{Topic: "b", Rate: 20}, {Topic: "a", Rate: 10, Skew: 10}, {Topic: "a", Partition: 1, Rate: 1, Skew: 60 / 330.0}, {Topic: "c", Rate: 0.5, Skew: skewMax}}
	got := busiest(was, now, time.Minute)
	if len(got) != len(want) {
		t.Fatalf("%+v", got)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("%d: %+v, want %+v", i, got[i], want[i])
		}
	}
	for p := range int32(3 * busiestMax) {
		put('f', p, 0, 10, true)
	}
	if got := busiest(was, now, time.Minute); len(got) != busiestMax {
		t.Errorf("%d are shown", len(got))
	}
}
