package server

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"strandline.dev/internal/kafka"
)

// A refused publish names the newest leadership that is known, whichever of the two it is: the partition's of then or the Image's of now (decision 0019).
func TestHints_NameTheNewestLeader(t *testing.T) {
	b := newTestBroker(t, testOptions{})
	ask[*kmsg.CreateTopicsResponse](b.dial(), newCreate("t", 1))
	topic := b.quorum.Image().Topic("t")
	tp, now := kafka.TopicPartition{Topic: topic.ID}, topic.Partitions[0].LeaderEpoch
	for _, c := range []struct {
		node  kafka.NodeID
		epoch kafka.LeaderEpoch
		want  kafka.NodeID
	}{{9, now - 1, 1}, {9, now, 9}, {9, now + 1, 9}, {kafka.NoNode, kafka.NoEpoch, 1}} {
		if node, epoch := b.server.newestLeader(tp, c.node, c.epoch); node != c.want || epoch != max(c.epoch, now) {
			t.Errorf("node %v in epoch %d, and the Image has 1 in %d: told %v in %d, want %v", c.node, c.epoch, now, node, epoch, c.want)
		}
	}
}
