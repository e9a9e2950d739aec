package metadata

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"strandline.dev/internal/kafka"
)

// newTestImage returns a cluster of brokers that are up.
func newTestImage(t testing.TB, brokers int) *Image {
	t.Helper()
	i := Empty()
	for n := range brokers {
		id := kafka.NodeID(n + 1)
		i = newTestStep(t, i, RegisterBroker{NextVersion: i.Version() + 1, Node: id, Directory: testID(fmt.Sprint("d", n)), StartNumber: 1})
		i = newTestStep(t, i, BrokerReady{Node: id, Epoch: i.Broker(id).Epoch})
	}
	return i
}

// newTestStep decides and applies; a decision without records is a fault of the test.
func newTestStep(t testing.TB, i *Image, ev Event) *Image {
	t.Helper()
	d := i.Decide(ev)
	if len(d.Records) == 0 {
		t.Fatalf("%T was refused: %+v", ev, d.Reply)
	}
	next, err := i.Apply(i.Version()+1, d.Records)
	if err != nil {
		t.Fatal(err)
	}
	return next
}

func testTopic(name string, partitions int32, rf int16) CreateTopics {
	return CreateTopics{Topics: []NewTopic{{ID: testID(name), Name: name, Partitions: partitions, ReplicationFactor: rf}}}
}

func TestR6_TopicNames(t *testing.T) {
	for name, ok := range map[string]bool{
		"a": true, "A.b_c-9": true, strings.Repeat("x", 249): true, "...": true,
		"": false, ".": false, "..": false, strings.Repeat("x", 250): false, "a b": false, "a\x00": false, "a/..": false, "ä": false,
	} {
		if why := topicNameFault(name); (why == "") != ok {
			t.Errorf("%q: %q", name, why)
		}
	}
	if why := topicNameFault(strings.Repeat("x", 250)); !strings.Contains(why, "250") || !strings.Contains(why, "249") {
		t.Errorf("the limit is not named: %s", why)
	}
}

func TestR6_PartitionsOfTheCluster(t *testing.T) {
	i := newTestImage(t, 1)
	i.partitions = PartitionsMax - 1
	d := i.Decide(testTopic("a", 2, 1))
	r := d.Reply.([]TopicResult)[0]
	if r.Code != kafka.InvalidPartitions || !strings.Contains(r.Message, fmt.Sprint(PartitionsMax)) || len(d.Records) > 0 {
		t.Errorf("%+v", r)
	}
}

// TestI13_OlderEntriesAreRefused: an entry below the Image's version is refused, and so are records that cannot follow; the Image stays.
func TestI13_OlderEntriesAreRefused(t *testing.T) {
	i := newTestStep(t, newTestImage(t, 2), testTopic("a", 1, 2))
	if _, err := i.Apply(i.Version()-1, nil); !errors.Is(err, ErrStale) {
		t.Errorf("older entry: %v", err)
	}
	s := i.Topic("a").Partitions[0]
	s.EffectiveMinISR = 0
	with := func(fn func(*kafka.PartitionState)) Record {
		c := s
		c.PartitionEpoch++
		fn(&c)
		return PartitionRecord{Topic: testID("a"), State: c}
	}
	other := s.Replicas[1]
	v := "x"
	for name, r := range map[string]Record{
		"partition epoch stays":           with(func(c *kafka.PartitionState) { c.PartitionEpoch-- }),
		"leader epoch goes back":          with(func(c *kafka.PartitionState) { c.LeaderEpoch-- }),
		"another leader, same epoch":      with(func(c *kafka.PartitionState) { c.Leader = other }),
		"leader outside the ISR":          with(func(c *kafka.PartitionState) { c.LeaderEpoch++; c.Leader, c.ISR = other, []kafka.NodeID{s.Leader} }),
		"ISR member that is no replica":   with(func(c *kafka.PartitionState) { c.ISR = []kafka.NodeID{s.Leader, 9} }),
		"in ISR and ELR":                  with(func(c *kafka.PartitionState) { c.ELR = []kafka.NodeID{other} }),
		"no replicas":                     with(func(c *kafka.PartitionState) { c.Replicas = nil }),
		"partition beyond the end":        PartitionRecord{Topic: testID("a"), Partition: 2, State: s},
		"unknown topic":                   PartitionRecord{Topic: testID("b"), State: s},
		"topic id taken":                  TopicRecord{ID: testID("a"), Name: "b", Partitions: 1},
		"topic name taken":                TopicRecord{ID: testID("b"), Name: "a", Partitions: 1},
		"the metadata log's own id":       TopicRecord{ID: kafka.MetadataPartition.Topic, Name: "b", Partitions: 1},
		"broker epoch stays":              BrokerRecord{Node: 1, Epoch: i.Broker(1).Epoch},
		"state of another broker epoch":   BrokerStateRecord{Node: 1, Epoch: 99},
		"unknown broker removed":          BrokerRemovedRecord{Node: 9},
		"state of an unknown topic":       TopicStateRecord{ID: testID("b"), State: StateReady},
		"version goes back":               TopicStateRecord{ID: testID("a"), State: StateReady},
		"back to creating":                TopicStateRecord{ID: testID("a"), State: StateCreating, Version: 2},
		"config of an unknown topic":      ConfigRecord{Topic: testID("b"), Key: "k", Value: &v},
		"purge in an unknown topic":       ReplicaPurgeRecord{Topic: testID("b")},
		"producer ids go back":            ProducerIDsRecord{Next: -1},
		"cluster without an id":           ClusterRecord{},
		"name of the reserved kind, none": TopicRecord{ID: testID("b"), Partitions: 1},
	} {
		if _, err := i.Apply(i.Version()+1, []Record{r}); !errors.Is(err, ErrRecord) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestC080_HalfMadeTopicsAreRemoved: a topic is not ready before its last record, and a new controller removes what it finds half made, with the
// directories that exist already.
func TestC080_HalfMadeTopicsAreRemoved(t *testing.T) {
	i := newTestImage(t, 1)
	d := i.Decide(testTopic("big", 5, 1))
	half, err := i.Apply(i.Version()+1, d.Records[:4]) // topic, config, two partitions
	if err != nil {
		t.Fatal(err)
	}
	if s := half.Topic("big").State; s != StateCreating {
		t.Fatalf("state %v", s)
	}
	if _, err := half.Apply(half.Version()+1, d.Records[len(d.Records)-1:]); err == nil {
		t.Fatal("a topic with two of five partitions became ready")
	}
	after := newTestStep(t, half, FinishTopics{})
	if after.Topic("big") != nil || len(after.PendingPurges(1)) != 2 || after.PartitionCount() != 0 {
		t.Fatalf("%+v, purges %v", after.Topic("big"), after.PendingPurges(1))
	}
	for _, r := range []AlterConfigs{{Resource: Resource{ResourceTopic, "big"}}} {
		if out := half.Decide(r).Reply.(AlterResult); out.Code != kafka.UnknownTopicOrPartition {
			t.Errorf("altering a topic that is being created: %+v", out)
		}
	}
}

// TestI10_RemovedBroker: a node that is removed is not waited for.
func TestI10_RemovedBroker(t *testing.T) {
	i := newTestStep(t, newTestImage(t, 2), testTopic("a", 1, 2))
	i = newTestStep(t, i, DeleteTopics{Topics: []DeleteTopic{{Name: "a"}}, Dev: true})
	i = newTestStep(t, i, ReplicasPurged{Node: 1, Partitions: []kafka.TopicPartition{{Topic: testID("a")}}})
	if i.TopicByID(testID("a")) == nil || len(i.PendingPurges(2)) != 1 || len(i.PendingPurges(1)) != 0 {
		t.Fatal("the topic was forgotten while node 2 has its directory")
	}
	i, err := i.Apply(i.Version()+1, []Record{BrokerRemovedRecord{Node: 2}})
	if err != nil || i.TopicByID(testID("a")) != nil || len(i.PendingPurges(2)) != 0 || i.Broker(2) != nil {
		t.Fatalf("%v", err)
	}
}

// TestSiblingsShareNothingThatChanges: two Images made from one differ only in what was applied to each.
func TestSiblingsShareNothingThatChanges(t *testing.T) {
	base := newTestImage(t, 1)
	for n := range 500 {
		base = newTestStep(t, base, testTopic(fmt.Sprintf("t%03d", n), 1, 1))
	}
	before := EncodeImage(nil, base)
	a := newTestStep(t, base, DeleteTopics{Topics: []DeleteTopic{{Name: "t100"}, {Name: "t101"}}, Dev: true})
	b := newTestStep(t, base, testTopic("t100a", 1, 1))
	if a.Topic("t100") != nil || a.Topic("t100a") != nil || b.Topic("t100") == nil || b.Topic("t100a") == nil {
		t.Error("siblings are mixed up")
	}
	if string(before) != string(EncodeImage(nil, base)) {
		t.Error("the base changed")
	}
	var names []string
	for top := range b.Topics() {
		names = append(names, top.Name)
	}
	if !slices.IsSorted(names) || len(names) != 501 || b.TopicCount() != 501 {
		t.Errorf("%d names, sorted %v", len(names), slices.IsSorted(names))
	}
}

func benchImage(b *testing.B, topics int) *Image {
	i := newTestImage(b, 3)
	ev := CreateTopics{Now: time.UnixMilli(1_700_000_000_000)}
	for n := range topics {
		name := fmt.Sprintf("topic-%05d", n)
		ev.Topics = append(ev.Topics, NewTopic{ID: testID(name), Name: name, Partitions: 3, ReplicationFactor: 3})
	}
	return newTestStep(b, i, ev)
}

// BenchmarkApply10kTopics is one ISR change in a cluster of 10,000 topics.
func BenchmarkApply10kTopics(b *testing.B) {
	i := benchImage(b, 10_000)
	s := i.Topic("topic-05000").Partitions[1]
	s.EffectiveMinISR = 0
	b.ReportAllocs()
	for b.Loop() {
		s.PartitionEpoch++
		next, err := i.Apply(i.Version()+1, []Record{PartitionRecord{Topic: testID("topic-05000"), Partition: 1, State: s}})
		if err != nil {
			b.Fatal(err)
		}
		i = next
	}
}

// BenchmarkCreate10kTopics is one more topic in a cluster of 10,000: decide and apply.
func BenchmarkCreate10kTopics(b *testing.B) {
	i := benchImage(b, 10_000)
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		n++
		i = newTestStep(b, i, testTopic(fmt.Sprintf("more-%08d", n), 3, 3))
	}
}

// BenchmarkLookup is what each partition of a publish costs in the Image.
func BenchmarkLookup(b *testing.B) {
	i := benchImage(b, 10_000)
	b.ReportAllocs()
	for b.Loop() {
		if i.Topic("topic-07777") == nil {
			b.Fatal("lost")
		}
	}
}

// BenchmarkRegister10kTopics is a node's restart: decide only.
func BenchmarkRegister10kTopics(b *testing.B) {
	i := benchImage(b, 10_000)
	for b.Loop() {
		i.Decide(RegisterBroker{NextVersion: i.Version() + 1, Node: 1, Directory: testID("d0"), StartNumber: 2})
	}
}
