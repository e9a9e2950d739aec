package metadata

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"strandline.dev/internal/kafka"
)

// goldenRecords has every record type, with and without its optional parts.
func goldenRecords() []Record {
	topic, dir := testID("topic"), testID("directory")
	value := "60000"
	return []Record{
		ClusterRecord{ClusterID: "c1", Voters: []Voter{{RaftID: 7, Node: 1, Directory: dir, Address: "h:19091"}}},
		BrokerRecord{
			Node: 1, Epoch: 5, Incarnation: testID("process"), Directory: dir, StartNumber: 3, BootID: "boot", Rack: "a", ClusterAddress: "h:19091",
			Listeners: []Listener{{"plain", "h", 9092}, {"tls", "h", 9093}}, Roles: []string{"controller", "broker"}, RegisteredMs: 1767225600000,
		},
		BrokerRecord{Node: 2, Epoch: 6},
		BrokerStateRecord{Node: 1, Epoch: 5, Fenced: true, Stopping: true},
		BrokerStateRecord{Node: 1, Epoch: 5},
		BrokerRemovedRecord{Node: 2},
		TopicRecord{ID: topic, Name: "orders", Owner: "User:alice", CreatedMs: 1767225600000, Partitions: 3, Internal: true, Unnamed: true},
		TopicStateRecord{ID: topic, State: StateDeleted, Version: 4, Name: "old", AtMs: 1767225600000, PurgeAtMs: 1767225660000, DeletedBy: "User:bob"},
		PartitionRecord{Topic: topic, Partition: 2, State: kafka.PartitionState{
			Replicas: []kafka.NodeID{1, 2, 3, 4}, ISR: []kafka.NodeID{1}, ELR: []kafka.NodeID{2}, LastKnown: []kafka.NodeID{3},
			Adding: []kafka.NodeID{4}, Removing: []kafka.NodeID{3}, Leader: 1, LeaderEpoch: 9, PartitionEpoch: 12,
		}},
		PartitionRecord{Topic: topic, State: kafka.PartitionState{Replicas: []kafka.NodeID{1}, Leader: kafka.NoNode}},
		ConfigRecord{Topic: topic, Node: kafka.NoNode, Key: "retention.ms", Value: &value},
		ConfigRecord{Node: kafka.NoNode, Key: "num.partitions"},
		ProducerIDsRecord{Next: 2000},
		ReplicaPurgeRecord{Topic: topic, Partition: 2, Node: 3, Done: true},
		ACLRecord{ACL: testACL()},
		ACLRecord{ACL: testACL(), Removed: true},
		ScramRecord{Credential: testScram()},
		ScramRecord{Credential: ScramCredential{User: "alice", Mechanism: ScramSHA512}, Removed: true},
		ScramSecretRecord{Secret: bytes.Repeat([]byte{7}, scramSecretMin)},
		QuotaRecord{Quota: Quota{QuotaEntity{User: QuotaNamed("alice"), Client: QuotaDefault()}, QuotaProduce, 1048576}},
		QuotaRecord{Quota: Quota{QuotaEntity{IP: QuotaNamed("10.0.0.1")}, QuotaConnection, 0}, Removed: true},
	}
}

func testACL() ACL {
	return ACL{
		Resource: kmsg.ACLResourceTypeTopic, Pattern: kmsg.ACLResourcePatternTypePrefixed, Name: "orders", Principal: "User:alice", Host: AnyHost,
		Operation: kmsg.ACLOperationRead, Permission: kmsg.ACLPermissionTypeAllow,
	}
}

func testScram() ScramCredential {
	return ScramCredential{
		User: "alice", Mechanism: ScramSHA256, Iterations: 4096, Salt: []byte("salt"), StoredKey: bytes.Repeat([]byte{1}, 32), ServerKey: bytes.Repeat([]byte{2}, 32),
	}
}

// TestGoldenRecords pins the bytes of each record type. A change of these bytes is a change of the format: it needs a new version.
func TestGoldenRecords(t *testing.T) {
	var b strings.Builder
	seen := map[uint8]bool{}
	for _, r := range goldenRecords() {
		seen[r.recordType()] = true
		bytes := EncodeRecords(nil, []Record{r})
		fmt.Fprintf(&b, "%s %s\n", reflect.TypeOf(r).Name(), hex.EncodeToString(bytes))
		back, err := DecodeRecords(bytes)
		if err != nil || !reflect.DeepEqual(back, []Record{r}) {
			t.Errorf("%T does not survive: %v\n%+v\n%+v", r, err, r, back)
		}
	}
	if len(seen) != len(decoders)-1 {
		t.Errorf("%d of %d record types have golden bytes", len(seen), len(decoders)-1)
	}
	golden(t, "records.txt", b.String())
}

// TestGoldenImage pins the bytes of a snapshot with a topic in each state.
func TestGoldenImage(t *testing.T) {
	i := goldenImage(t)
	golden(t, "image.txt", hex.EncodeToString(EncodeImage(nil, i))+"\n")
}

func goldenImage(t testing.TB) *Image {
	i := Empty()
	apply := func(rs ...Record) {
		t.Helper()
		next, err := i.Apply(i.Version()+1, rs)
		if err != nil {
			t.Fatal(err)
		}
		i = next
	}
	one := kafka.PartitionState{Replicas: []kafka.NodeID{1, 2}, ISR: []kafka.NodeID{1}, ELR: []kafka.NodeID{2}, Leader: 1, LeaderEpoch: 2, PartitionEpoch: 3}
	two, v := "2", "5"
	apply(goldenRecords()[0], goldenRecords()[1], BrokerStateRecord{Node: 1, Epoch: 5}, BrokerRecord{Node: 2, Epoch: 6, Directory: testID("other")})
	apply(ConfigRecord{Node: kafka.NoNode, Key: "num.partitions", Value: &v}, ConfigRecord{Node: 1, Key: "num.partitions", Value: &two}, ProducerIDsRecord{Next: 1000})
	for n, name := range []string{"creating", "ready", "deleted", "purging"} {
		id := testID(name)
		apply(TopicRecord{ID: id, Name: name + ".x", Owner: "User:a", CreatedMs: 1767225600000, Partitions: 2},
			ConfigRecord{Topic: id, Node: kafka.NoNode, Key: "min.insync.replicas", Value: &two},
			PartitionRecord{Topic: id, Partition: 0, State: one})
		if n == 0 {
			continue
		}
		apply(PartitionRecord{Topic: id, Partition: 1, State: one}, TopicStateRecord{ID: id, State: StateReady, Version: 1})
		if n == 2 {
			apply(TopicStateRecord{ID: id, State: StateDeleted, Version: 2, AtMs: 1767225600000, PurgeAtMs: 1767225660000, DeletedBy: "User:b"})
		}
		if n == 3 {
			apply(TopicStateRecord{ID: id, State: StatePurging, Version: 2}, ReplicaPurgeRecord{Topic: id, Partition: 1, Node: 2, Done: true})
		}
	}
	apply(ACLRecord{ACL: testACL()}, ScramSecretRecord{Secret: bytes.Repeat([]byte{7}, scramSecretMin)}, ScramRecord{Credential: testScram()})
	apply(QuotaRecord{Quota: Quota{QuotaEntity{Client: QuotaNamed("batch")}, QuotaRequest, 12.5}})
	moved := one
	moved.Replicas, moved.ELR, moved.PartitionEpoch = []kafka.NodeID{1}, nil, 4
	apply(PartitionRecord{Topic: testID("ready"), Partition: 1, State: moved})
	return i
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	file := "testdata/golden/" + name
	if *rewrite {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil || string(want) != got {
		t.Errorf("%s: %v\nwant %s\ngot  %s", file, err, want, got)
	}
}

// TestUnknownRecordsStop shows that a record type or version of another release stops decoding instead of being skipped (C080).
func TestUnknownRecordsStop(t *testing.T) {
	b := EncodeRecords(nil, []Record{ProducerIDsRecord{Next: 1}})
	for at, why := range map[int]string{2: "type", 3: "version"} {
		c := bytes.Clone(b)
		c[at] += 100
		if _, err := DecodeRecords(c); err == nil {
			t.Errorf("another %s is accepted", why)
		}
	}
	if _, err := DecodeRecords(append(bytes.Clone(b), 0)); err == nil {
		t.Error("trailing bytes are accepted")
	}
	for n := range b {
		if _, err := DecodeRecords(b[:n]); err == nil {
			t.Errorf("%d of %d bytes are accepted", n, len(b))
		}
	}
}

func FuzzDecodeRecords(f *testing.F) {
	f.Add(EncodeRecords(nil, goldenRecords()))
	for _, r := range goldenRecords() {
		f.Add(EncodeRecords(nil, []Record{r}))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		rs, err := DecodeRecords(b)
		if err != nil {
			return
		}
		back, err := DecodeRecords(EncodeRecords(nil, rs))
		if err != nil || !reflect.DeepEqual(rs, back) {
			t.Fatalf("%v: %+v became %+v", err, rs, back)
		}
		if _, err := Empty().Apply(1, rs); err != nil {
			return
		}
	})
}

func FuzzDecodeImage(f *testing.F) {
	f.Add(EncodeImage(nil, goldenImage(f)))
	f.Add(EncodeImage(nil, Empty()))
	f.Fuzz(func(t *testing.T, b []byte) {
		i, err := DecodeImage(b)
		if err != nil {
			return
		}
		back, err := DecodeImage(EncodeImage(nil, i))
		if err != nil {
			t.Fatalf("a decoded image does not survive: %v", err)
		}
		if why := differs(i, back); why != "" {
			t.Fatal(why)
		}
	})
}
