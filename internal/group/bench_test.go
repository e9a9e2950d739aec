package group

import (
	"encoding/binary"
	"fmt"
	"testing"
	"time"

	"strandline.dev/internal/kafka"
)

// benchGroup is a stable group; it returns the shard and the ids of its members.
func benchGroup(b *testing.B, members int) (*world, []string) {
	w := newWorld(b, Config{InitialDelay: time.Second})
	w.fast = true
	ids := make([]string, 0, members)
	for i := range members {
		w.do(benchJoin(i, ""))
	}
	for _, e := range w.advance(2 * time.Second) {
		for _, r := range e.Replies {
			ids = append(ids, r.Response.(*JoinReply).MemberID)
		}
	}
	syncAll(w, ids, 1)
	return w, ids
}

func benchJoin(i int, id string) Join {
	ev := Join{
		Token: uint64(i + 1), Group: "G", MemberID: id, ClientID: "bench", ClientHost: "/10.0.0.1", ProtocolType: "consumer",
		Protocols:      []Protocol{{Name: "range", Metadata: make([]byte, 60)}, {Name: "cooperative-sticky", Metadata: make([]byte, 120)}},
		SessionTimeout: 45 * time.Second, RebalanceTimeout: 5 * time.Minute,
	}
	binary.BigEndian.PutUint64(ev.Random[8:], uint64(i+1))
	return ev
}

// syncAll asks for all assignments, the leader (the first) last.
func syncAll(w *world, ids []string, gen Generation) {
	leader := Sync{Token: 1, Group: "G", MemberID: ids[0], Generation: gen}
	for i, id := range ids {
		leader.Assignments = append(leader.Assignments, MemberAssignment{MemberID: id, Assignment: make([]byte, 40)})
		if i > 0 {
			w.do(Sync{Token: uint64(i + 1), Group: "G", MemberID: id, Generation: gen})
		}
	}
	w.do(leader)
	w.log = nil
}

// BenchmarkRebalance is one whole rebalance; the figure to watch is ns/member, which must not grow with the group (C060).
func BenchmarkRebalance(b *testing.B) {
	for _, members := range []int{10, 100, 1000, 5000} {
		b.Run(fmt.Sprint(members), func(b *testing.B) {
			w, ids := benchGroup(b, members)
			b.ReportAllocs()
			for gen := Generation(2); b.Loop(); gen++ {
				for i, id := range ids { // the leader's join starts it
					w.do(benchJoin(i, id))
				}
				syncAll(w, ids, gen)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(members), "ns/member")
		})
	}
}

// BenchmarkHeartbeat is a heartbeat of a member of a large group.
func BenchmarkHeartbeat(b *testing.B) {
	w, ids := benchGroup(b, 5000)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		w.now.Mono = w.now.Mono.Add(time.Microsecond)
		w.do(Heartbeat{Token: 1, Group: "G", MemberID: ids[i%len(ids)], Generation: 1})
	}
}

// BenchmarkCommit is a commit of ten partitions, with its records applied.
func BenchmarkCommit(b *testing.B) {
	w, ids := benchGroup(b, 100)
	ev := CommitOffsets{Token: 1, Group: "G", MemberID: ids[0], Generation: 1, Topics: []CommitTopic{{Name: "orders", ID: testID(1)}}}
	for p := range int32(10) {
		ev.Topics[0].Partitions = append(ev.Topics[0].Partitions, CommitPartition{Partition: p, Offset: kafka.Offset(p)})
	}
	b.ReportAllocs()
	for b.Loop() {
		w.do(ev)
		w.log = w.log[:0]
	}
}

// BenchmarkLoad is the replay of a compacted log of 1,000 groups with 100 offsets each.
func BenchmarkLoad(b *testing.B) {
	w := newWorld(b, Config{})
	w.fast = true
	for g := range 1000 {
		ev := CommitOffsets{Token: 1, Group: fmt.Sprint("group-", g), Generation: NoGeneration, Topics: []CommitTopic{{Name: "orders", ID: testID(1)}}}
		for p := range int32(100) {
			ev.Topics[0].Partitions = append(ev.Topics[0].Partitions, CommitPartition{Partition: p, Offset: kafka.Offset(p)})
		}
		w.do(ev)
	}
	b.ReportAllocs()
	for b.Loop() {
		replay(b, w.cfg, w.log).Step(Loaded{}, w.now)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/100_000, "ns/record")
}

// benchConsumers is a settled consumer group; every member reads one topic of 1,000 partitions.
func benchConsumers(b *testing.B, members int) (*world, []ConsumerHeartbeat) {
	w := newWorld(b, Config{})
	w.fast = true
	catalog := testCatalog{1, map[string]byte{"t": 1}, map[string]int32{"t": 1000}}
	beats := make([]ConsumerHeartbeat, members)
	for i := range beats {
		beats[i] = ConsumerHeartbeat{
			Token: uint64(i + 1), Group: "G", MemberID: fmt.Sprintf("member-%05d", i), ClientID: "bench", ClientHost: "/10.0.0.1",
			RebalanceTimeout: time.Minute, Topics: []string{"t"}, Owned: []kafka.TopicPartition{}, Catalog: catalog,
		}
	}
	for range 4 { // join, give up, take
		for i := range beats {
			r := w.do(beats[i]).Replies[0].Response.(*ConsumerHeartbeatReply)
			beats[i].Epoch = r.Epoch
			if r.Assigned != nil {
				beats[i].Owned = r.Assigned
			}
		}
	}
	for i := range beats {
		beats[i].Owned, beats[i].Topics, beats[i].RebalanceTimeout = nil, nil, -1
	}
	return w, beats
}

// BenchmarkConsumerHeartbeat: what a member costs that has nothing to learn.
func BenchmarkConsumerHeartbeat(b *testing.B) {
	for _, members := range []int{10, 1000} {
		b.Run(fmt.Sprint(members), func(b *testing.B) {
			w, beats := benchConsumers(b, members)
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				w.do(beats[i%members])
			}
		})
	}
}

// BenchmarkConsumerJoin: what it costs when one more joins and leaves: two new epochs and one target.
func BenchmarkConsumerJoin(b *testing.B) {
	for _, members := range []int{10, 1000} {
		b.Run(fmt.Sprint(members), func(b *testing.B) {
			w, beats := benchConsumers(b, members)
			more := beats[0]
			more.MemberID, more.RebalanceTimeout, more.Topics, more.Owned = "one-more", time.Minute, []string{"t"}, []kafka.TopicPartition{}
			b.ReportAllocs()
			for b.Loop() {
				more.Epoch = JoinEpoch
				w.do(more)
				more.Epoch = LeaveEpoch
				w.do(more)
			}
		})
	}
}
