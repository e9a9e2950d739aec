package main

import (
	"encoding/binary"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"strandline.dev/internal/wire"
)

// TestR105_EachReplicaShowsItsEnd: a follower behind its leader shows by how much, one that does not answer is left out, and without the leader's
// answer no lag is claimed.
func TestR105_EachReplicaShowsItsEnd(t *testing.T) {
	at := func(node int32, end uint64) map[int32]describedReplica {
		var tags kmsg.Tags
		var b []byte
		for _, v := range []uint64{3, 100, end} {
			b = binary.BigEndian.AppendUint64(b, v)
		}
		tags.Set(wire.TagReplicaEnds, b)
		r, ok := readReplica(node, tags)
		if !ok || r.LogStart != 3 || r.HighWatermark != 100 || r.LogEnd != int64(end) {
			t.Fatalf("read %+v, %v", r, ok)
		}
		return map[int32]describedReplica{7: r}
	}
	p := describedPartition{Partition: 7, Leader: 2, Replicas: []int32{2, 1, 3}}
	p.takeReplicas(map[int32]map[int32]describedReplica{1: at(1, 118), 2: at(2, 120)})
	if got := replicaEnds(p.ReplicaEnds); got != "2:120 1:118(-2)" {
		t.Errorf("shown as %q", got)
	}
	p = describedPartition{Partition: 7, Leader: 3, Replicas: []int32{2, 1, 3}}
	p.takeReplicas(map[int32]map[int32]describedReplica{1: at(1, 118), 2: at(2, 120), 3: nil})
	if len(p.ReplicaEnds) != 2 || p.ReplicaEnds[0].Lag != -1 || p.RecordIDs != nil {
		t.Errorf("without the leader: %+v", p.ReplicaEnds)
	}
	if _, ok := readReplica(1, kmsg.Tags{}); ok {
		t.Error("a broker that does not tell has told something")
	}
}
