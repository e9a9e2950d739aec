package metadata

import (
	"bytes"
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"strandline.dev/internal/kafka"
)

// world drives random events against an Image and keeps every entry.
type world struct {
	image   *Image
	entries [][]Record
	now     time.Time
	ids     int
	names   []string
}

// TestSnapshotAndTail: a snapshot taken at any point, plus the entries after it, is the Image that all entries give; and so is any other grouping
// of the records into entries. Meanwhile the invariants hold after every entry.
func TestSnapshotAndTail(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := &world{image: Empty(), now: time.UnixMilli(1_700_000_000_000)}
		steps := rapid.IntRange(1, 60).Draw(t, "steps")
		cut := rapid.IntRange(0, steps).Draw(t, "cut")
		var snapshot []byte
		var at int
		for n := range steps {
			if n == cut {
				snapshot, at = EncodeImage(nil, w.image), len(w.entries)
			}
			before := w.image
			w.step(t)
			if why := faults(before, w.image); why != "" {
				t.Fatalf("after step %d: %s", n, why)
			}
		}
		if snapshot == nil {
			snapshot, at = EncodeImage(nil, w.image), len(w.entries)
		}
		fromSnapshot, err := DecodeImage(snapshot)
		if err != nil {
			t.Fatal(err)
		}
		check(t, w.image, replay(t, fromSnapshot, w.entries[at:], at), "snapshot and tail")
		check(t, w.image, replay(t, Empty(), w.entries, 0), "full replay")
		check(t, w.image, regroup(t, w), "other grouping")
	})
}

func check(t *rapid.T, want, got *Image, how string) {
	if why := differs(want, got); why != "" {
		t.Fatalf("%s: %s", how, why)
	}
	if !bytes.Equal(EncodeImage(nil, want), EncodeImage(nil, got)) {
		t.Fatalf("%s: snapshots differ", how)
	}
}

func replay(t *rapid.T, i *Image, entries [][]Record, from int) *Image {
	for n, rs := range entries {
		next, err := i.Apply(uint64(from+n+1), rs)
		if err != nil {
			t.Fatal(err)
		}
		i = next
	}
	return i
}

// regroup applies the records in random runs, all but the last at version 0.
func regroup(t *rapid.T, w *world) *Image {
	all := slices.Concat(w.entries...)
	i := Empty()
	for len(all) > 0 {
		n := rapid.IntRange(1, len(all)).Draw(t, "run")
		next, err := i.Apply(i.Version(), all[:n])
		if err != nil {
			t.Fatal(err)
		}
		i, all = next, all[n:]
	}
	i, err := i.Apply(w.image.Version(), nil)
	if err != nil {
		t.Fatal(err)
	}
	return i
}

// step decides on one random event and applies the decision.
func (w *world) step(t *rapid.T) {
	w.now = w.now.Add(time.Duration(rapid.IntRange(0, 20_000).Draw(t, "pause")) * time.Millisecond)
	if rapid.IntRange(0, 4).Draw(t, "rejoin") == 0 {
		w.rejoin(t)
		return
	}
	ev := w.event(t)
	was := EncodeImage(nil, w.image)
	d := w.image.Decide(ev)
	if !bytes.Equal(was, EncodeImage(nil, w.image)) {
		t.Fatalf("a decision changed the image: %T", ev)
	}
	w.entries = append(w.entries, d.Records)
	next, err := w.image.Apply(uint64(len(w.entries)), d.Records)
	if err != nil {
		t.Fatalf("%T: %v", ev, err)
	}
	if !bytes.Equal(was, EncodeImage(nil, w.image)) {
		t.Fatalf("Apply changed the old image: %T", ev)
	}
	w.image = next
}

// rejoin lets an unfenced replica of some partition catch up into the ISR, as its leader will ask for.
func (w *world) rejoin(t *rapid.T) {
	var rs []Record
	for top := range w.image.Topics() {
		for p, s := range top.Partitions {
			n := rapid.SampledFrom(s.Replicas).Draw(t, "replica")
			if s.Leader == kafka.NoNode || slices.Contains(s.ISR, n) || !w.image.canLead(n) {
				continue
			}
			s.ISR, s.ELR, s.PartitionEpoch = more(s.ISR, n), less(s.ELR, n), s.PartitionEpoch+1
			rs = append(rs, PartitionRecord{Topic: top.ID, Partition: int32(p), State: s})
		}
	}
	w.entries = append(w.entries, rs)
	next, err := w.image.Apply(uint64(len(w.entries)), rs)
	if err != nil {
		t.Fatal(err)
	}
	w.image = next
}

func (w *world) event(t *rapid.T) Event {
	node := kafka.NodeID(rapid.IntRange(1, 4).Draw(t, "node"))
	epoch := kafka.BrokerEpoch(0)
	if b := w.image.Broker(node); b != nil {
		epoch = b.Epoch
	}
	switch rapid.IntRange(0, 13).Draw(t, "event") {
	case 0:
		return w.registration(t, node)
	case 1, 2, 3:
		return BrokerReady{Now: w.now, Node: node, Epoch: epoch}
	case 4:
		return FenceBroker{Now: w.now, Node: node, Epoch: epoch, Stopping: rapid.Bool().Draw(t, "stopping")}
	case 5, 6:
		w.ids++
		name := fmt.Sprintf("t%c%d", rapid.SampledFrom([]rune("._-")).Draw(t, "sep"), rapid.IntRange(0, 5).Draw(t, "name"))
		w.names = append(w.names, name)
		return CreateTopics{Now: w.now, Topics: []NewTopic{{
			ID: testID(fmt.Sprintf("id%d", w.ids)), Name: name, Partitions: int32(rapid.IntRange(1, 3).Draw(t, "partitions")),
			ReplicationFactor: int16(rapid.IntRange(1, 3).Draw(t, "rf")),
		}}, Seed: rapid.Uint64().Draw(t, "seed")}
	case 7:
		return DeleteTopics{Now: w.now, Topics: []DeleteTopic{{Name: w.name(t)}}, Dev: rapid.Bool().Draw(t, "dev")}
	case 8:
		return RestoreTopic{Now: w.now, Name: w.name(t), As: rapid.SampledFrom([]string{"", "again"}).Draw(t, "as")}
	case 9:
		return ExpireTrash{Now: w.now.Add(time.Duration(rapid.IntRange(0, 48).Draw(t, "hours")) * time.Hour)}
	case 10:
		if ps := w.image.PendingPurges(node); len(ps) > 0 {
			return ReplicaPurged{Topic: ps[0].Topic, Partition: ps[0].Partition, Node: node}
		}
		return AllocateProducerIDs{Node: node, Epoch: epoch, Count: 10}
	case 11:
		return CreatePartitions{Now: w.now, Topics: []NewPartitions{{Name: w.name(t), Count: int32(rapid.IntRange(1, 5).Draw(t, "count"))}}}
	case 12:
		v := fmt.Sprint(rapid.IntRange(1, 3).Draw(t, "minISR"))
		flush := rapid.SampledFrom([]string{"synced", "replicated"}).Draw(t, "flush")
		return AlterConfigs{Now: w.now, Resource: Resource{ResourceTopic, w.name(t)}, Replace: rapid.Bool().Draw(t, "replace"),
			Ops: []ConfigOp{{"min.insync.replicas", OpSet, &v}, {"strandline.flush", OpSet, &flush}}}
	}
	return FinishTopics{Now: w.now}
}

func (w *world) name(t *rapid.T) string {
	if len(w.names) == 0 {
		return "none"
	}
	return rapid.SampledFrom(w.names).Draw(t, "topic")
}

func (w *world) registration(t *rapid.T, node kafka.NodeID) Event {
	ev := RegisterBroker{
		Now: w.now, NextVersion: uint64(len(w.entries) + 1), Node: node, Directory: testID(fmt.Sprintf("d%d", node)),
		StartNumber: uint64(len(w.entries) + 1), Rack: string(rune('a' + node%2)), Roles: []string{"broker"},
	}
	if rapid.IntRange(0, 5).Draw(t, "other disk") == 0 {
		ev.Directory, ev.HolderSilent = testID(fmt.Sprintf("d%d-%d", node, len(w.entries))), time.Minute
	}
	for top := range w.image.AllTopics() {
		for p := range top.Partitions {
			tp := kafka.TopicPartition{Topic: top.ID, Partition: int32(p)}
			switch rapid.IntRange(0, 4).Draw(t, "fault") {
			case 0:
				ev.Unclean = append(ev.Unclean, tp)
			case 1:
				ev.Damaged = append(ev.Damaged, tp)
			}
		}
	}
	return ev
}

// faults checks the invariants of one Image, and of its step from the one before.
func faults(before, after *Image) string {
	for t := range after.AllTopics() {
		old := before.TopicByID(t.ID)
		for p, s := range t.Partitions {
			if t.State == StatePurging {
				continue
			}
			where := fmt.Sprintf("%s-%d %s: ", t.Name, p, stateText(s))
			switch {
			case s.Leader != kafka.NoNode && !slices.Contains(s.ISR, s.Leader):
				return where + "I4: the leader is not in the ISR"
			case s.Leader != kafka.NoNode && !after.canLead(s.Leader):
				return where + "a fenced broker leads"
			case int32(len(s.ISR)) >= s.EffectiveMinISR && len(s.ELR) > 0:
				return where + "I4: the ELR is not empty with the minimum in sync"
			case s.EffectiveMinISR != min(t.minInsync(), int32(len(s.Replicas))):
				return where + "I1: the effective minimum is wrong"
			case s.Leader == kafka.NoNode && slices.ContainsFunc(slices.Concat(s.ISR, s.ELR), after.canLead):
				return where + "a candidate is there and nobody leads"
			}
			if old == nil || p >= len(old.Partitions) {
				continue
			}
			o := old.Partitions[p]
			if s.LeaderEpoch < o.LeaderEpoch || s.PartitionEpoch < o.PartitionEpoch {
				return where + "I3: an epoch went back"
			}
			if s.Leader != o.Leader && s.LeaderEpoch == o.LeaderEpoch {
				return where + "I3: two leaders in one epoch"
			}
			if !slices.Equal(s.ISR, o.ISR) && s.PartitionEpoch == o.PartitionEpoch {
				return where + "the ISR changed in one partition epoch"
			}
			if b, ob := after.Broker(o.Leader), before.Broker(o.Leader); ob != nil && b.Epoch != ob.Epoch && s.LeaderEpoch == o.LeaderEpoch {
				return where + "I3: the leader registered again in the same leader epoch"
			}
		}
	}
	return ""
}
