package metadata

import (
	"bytes"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
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

// rejoin is what leaders ask for: of each partition, some replica that is up catches up or lags.
func (w *world) rejoin(t *rapid.T) Event {
	ev := AlterISR{Now: w.now}
	for top := range w.image.AllTopics() {
		for p, s := range top.Partitions {
			if s.Leader == kafka.NoNode || ev.Node != 0 && s.Leader != ev.Node || top.State == StatePurging {
				continue
			}
			ev.Node, ev.Epoch = s.Leader, w.image.Broker(s.Leader).Epoch
			c := ISRChange{TP: kafka.TopicPartition{Topic: top.ID, Partition: int32(p)}, LeaderEpoch: s.LeaderEpoch, PartitionEpoch: s.PartitionEpoch}
			for _, n := range s.Replicas {
				b := w.image.Broker(n)
				if n == s.Leader || b != nil && (slices.Contains(s.ISR, n) && rapid.IntRange(0, 3).Draw(t, "lags") != 0 || w.image.canLead(n) && rapid.Bool().Draw(t, "joins")) {
					c.ISR = append(c.ISR, Member{n, b.Epoch})
				} else if rapid.IntRange(0, 5).Draw(t, "lost") == 0 {
					c.Lost = append(c.Lost, n)
				}
			}
			ev.Changes = append(ev.Changes, c)
		}
	}
	return ev
}

// replicaEvent is a random event about replicas and their brokers.
func (w *world) replicaEvent(t *rapid.T, node kafka.NodeID, epoch kafka.BrokerEpoch) Event {
	var tps []kafka.TopicPartition
	var named []NamedPartition
	for top := range w.image.AllTopics() {
		for p := range top.Partitions {
			tps, named = append(tps, kafka.TopicPartition{Topic: top.ID, Partition: int32(p)}), append(named, NamedPartition{top.Name, int32(p)})
		}
	}
	at := 0
	if len(tps) > 0 {
		at = rapid.IntRange(0, len(tps)-1).Draw(t, "partition")
	}
	switch kind := rapid.IntRange(0, 9).Draw(t, "about replicas"); {
	case kind == 0:
		return DrainBroker{Node: node, Undo: rapid.Bool().Draw(t, "undo")}
	case kind == 1:
		return RemoveBroker{Node: node}
	case kind == 2:
		return BalanceLeaders{Max: 2}
	case kind == 3:
		return ContinueDrains{Seed: rapid.Uint64().Draw(t, "seed"), Max: 3}
	case kind == 4 || len(tps) == 0:
		return RaiseInternal{Seed: 1, Factor: 3, Max: 3}
	case kind == 5:
		return ReportDamage{Node: node, Epoch: epoch, Damaged: []DamagedReplica{{tps[at], kafka.LeaderEpoch(rapid.IntRange(0, 9).Draw(t, "known epoch"))}}}
	case kind == 6:
		ends := []ReplicaEnd{{node, 1, 5}, {node%4 + 1, 1, 7}}
		return RecoverPartitions{Partitions: []PartitionEnds{{tps[at], ends}}, Whole: rapid.Bool().Draw(t, "whole")}
	}
	target := rapid.Permutation([]kafka.NodeID{1, 2, 3, 4}).Draw(t, "target")[:rapid.IntRange(1, 3).Draw(t, "replicas")]
	return AlterAssignments{Partitions: []NewAssignment{{named[at], target, rapid.IntRange(0, 3).Draw(t, "cancel") == 0}}}
}

// accessEvent changes who may come in and do what.
func (w *world) accessEvent(t *rapid.T) Event {
	acl := testACL()
	acl.Principal = rapid.SampledFrom([]string{"User:a", "User:b", AnyPrincipal}).Draw(t, "principal")
	acl.Name = rapid.SampledFrom([]string{"a", "b", "ab"}).Draw(t, "resource")
	scram := testScram()
	scram.User = rapid.SampledFrom([]string{"a", "b"}).Draw(t, "user")
	entity := QuotaEntity{User: QuotaName{ScopeNamed, scram.User}, Client: rapid.SampledFrom([]QuotaName{{}, QuotaDefault(), QuotaNamed("c")}).Draw(t, "client")}
	switch rapid.IntRange(0, 4).Draw(t, "about access") {
	case 4:
		op := QuotaOp{QuotaProduce, float64(rapid.IntRange(0, 3).Draw(t, "rate")), rapid.Bool().Draw(t, "remove")}
		return AlterQuotas{Entities: []QuotaChange{{entity, []QuotaOp{op}}}, ValidateOnly: rapid.Bool().Draw(t, "validate only")}
	case 0:
		return DeleteACLs{Filters: []ACLFilter{{Resource: kmsg.ACLResourceTypeAny, Pattern: kmsg.ACLResourcePatternTypeMatch, Name: &acl.Name,
			Operation: kmsg.ACLOperationAny, Permission: kmsg.ACLPermissionTypeAny}}}
	case 1:
		return AlterScram{Remove: []ScramName{{scram.User, scram.Mechanism}}}
	case 2:
		return AlterScram{Set: []ScramCredential{scram}, Secret: bytes.Repeat([]byte{9}, scramSecretMin)}
	}
	return CreateACLs{ACLs: []ACL{acl}}
}

func (w *world) event(t *rapid.T) Event {
	node := kafka.NodeID(rapid.IntRange(1, 4).Draw(t, "node"))
	epoch := kafka.BrokerEpoch(0)
	if b := w.image.Broker(node); b != nil {
		epoch = b.Epoch
	}
	switch rapid.IntRange(0, 22).Draw(t, "event") {
	case 21, 22:
		return w.accessEvent(t)
	case 14, 15, 16:
		return w.rejoin(t)
	case 17, 18, 19, 20:
		return w.replicaEvent(t, node, epoch)
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
			ReplicationFactor: int16(rapid.IntRange(1, 3).Draw(t, "rf")), Internal: rapid.IntRange(0, 3).Draw(t, "internal") == 0,
		}}, Seed: rapid.Uint64().Draw(t, "seed")}
	case 7:
		return DeleteTopics{Now: w.now, Topics: []DeleteTopic{{Name: w.name(t)}}, Dev: rapid.Bool().Draw(t, "dev")}
	case 8:
		return RestoreTopic{Now: w.now, Name: w.name(t), As: rapid.SampledFrom([]string{"", "again"}).Draw(t, "as")}
	case 9:
		return ExpireTrash{Now: w.now.Add(time.Duration(rapid.IntRange(0, 48).Draw(t, "hours")) * time.Hour)}
	case 10:
		if ps := w.image.PendingPurges(node); len(ps) > 0 {
			return ReplicasPurged{Node: node, Partitions: ps[:rapid.IntRange(1, len(ps)).Draw(t, "purged")]}
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
			case s.EffectiveMinISR != min(t.minInsync(), int32(len(s.Replicas)-len(s.Adding))):
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
			if b, ob := after.Broker(o.Leader), before.Broker(o.Leader); b != nil && ob != nil && b.Epoch != ob.Epoch && s.LeaderEpoch == o.LeaderEpoch {
				return where + "I3: the leader registered again in the same leader epoch"
			}
		}
	}
	return ""
}
