package group

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"strandline.dev/internal/kafka"
)

const goldenFile = "testdata/records.golden"

var goldenProtocols = []Protocol{{Name: "range", Metadata: []byte{0, 1, 0, 0, 0, 1, 0, 6, 'o', 'r', 'd', 'e', 'r', 's', 255, 255, 255, 255, 0, 0, 0, 0}}}

// goldenRecords are one record of each kind, as a shard makes them.
func goldenRecords(t *testing.T) (names []string, records []KV) {
	w := newWorld(t, Config{})
	keep := func(name string, e Effects, i int) {
		names, records = append(names, name), append(records, e.Records[i])
	}
	commit := CommitOffsets{Group: "billing", Generation: NoGeneration, Topics: []CommitTopic{{
		Name: "orders", ID: kafka.TopicID{0: 0xa1, 15: 0x5e}, Partitions: []CommitPartition{{Partition: 7, Offset: 82, LeaderEpoch: 3, Metadata: "note"}},
	}}}
	keep("offset", w.do(commit), 0)
	join := Join{
		Token: 1, Group: "billing", InstanceID: "node-1", ClientID: "app", ClientHost: "/10.0.0.1", ProtocolType: "consumer",
		Protocols:      goldenProtocols,
		SessionTimeout: 45 * time.Second, RebalanceTimeout: 5 * time.Minute, Random: kafka.ID{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16},
	}
	m := w.do(join).Replies[0].Response.(*JoinReply)
	keep("group-stable", w.do(Sync{
		Token: 2, Group: "billing", MemberID: m.MemberID, InstanceID: "node-1", Generation: 1, Assignments: []MemberAssignment{{m.MemberID, []byte{0, 1, 2}}},
	}), 0)
	keep("group-empty", w.do(Leave{Token: 3, Group: "billing", Members: []LeavingMember{{InstanceID: "node-1"}}}), 0)
	e := w.do(DeleteGroups{Token: 4, Groups: []string{"billing"}})
	keep("offset-tombstone", e, 0)
	keep("group-tombstone", e, 1)
	commit.Topics[0].Width = 8
	keep("width", w.do(commit), 1)
	commit.Topics[0].Partitions[0].Offset = 40
	keep("undo", w.do(SeekOffsets{Group: "billing", Topics: commit.Topics}), 0)
	e = w.do(DeleteGroups{Token: 5, Groups: []string{"billing"}})
	keep("undo-tombstone", e, 1)
	keep("width-tombstone", w.do(TopicsDeleted{IDs: []kafka.TopicID{commit.Topics[0].ID}}), 0)
	member := ConsumerHeartbeat{
		Token: 5, Group: "shipping", MemberID: "m", InstanceID: nullable("node-1"), RackID: nullable("r"), ClientID: "app", ClientHost: "/10.0.0.1",
		RebalanceTimeout: 5 * time.Minute, Topics: []string{"orders"}, Pattern: nullable("o.*"), Assignor: nullable("range"), Owned: []kafka.TopicPartition{},
		Catalog: testCatalog{1, map[string]byte{"orders": 0x5e}, map[string]int32{"orders": 3}},
	}
	e = w.do(member)
	for i, name := range []string{"consumer-epoch", "consumer-member", "consumer-target", "consumer-target-epoch", "consumer-current"} {
		keep(name, e, i)
	}
	member.Epoch = LeaveEpoch
	e = w.do(member)
	for i, name := range []string{"consumer-epoch-empty", "consumer-current-tombstone", "consumer-target-tombstone", "consumer-member-tombstone"} {
		keep(name, e, i)
	}
	e = w.do(DeleteGroups{Token: 6, Groups: []string{"shipping"}})
	keep("consumer-target-epoch-tombstone", e, 0)
	keep("consumer-epoch-tombstone", e, 1)
	// A classic group takes up a member of the consumer protocol: what the classic one said is kept with it.
	m = w.do(join).Replies[0].Response.(*JoinReply)
	owned := []byte{0, 0, 0, 0, 0, 1, 0, 6, 'o', 'r', 'd', 'e', 'r', 's', 0, 0, 0, 1, 0, 0, 0, 2, 255, 255, 255, 255} // orders/2
	w.do(Sync{
		Token: 7, Group: "billing", MemberID: m.MemberID, InstanceID: "node-1", Generation: 1, Assignments: []MemberAssignment{{m.MemberID, owned}},
	})
	member.Group, member.Epoch, member.InstanceID, member.Reader = "billing", 0, nil, "User:ann\x00/10.0.0.1"
	e = w.do(member)
	keep("consumer-member-classic", e, 1)
	keep("consumer-member-reader", e, 7)
	return names, records
}

// TestGoldenRecords: the bytes of each record are what they were; docs/formats/group-records.md shows them.
func TestGoldenRecords(t *testing.T) {
	names, records := goldenRecords(t)
	var got strings.Builder
	for i, kv := range records {
		value := "null"
		if kv.Value != nil {
			value = hex.EncodeToString(kv.Value)
		}
		fmt.Fprintf(&got, "%s\nkey   %x\nvalue %s\n", names[i], kv.Key, value)
	}
	if *rewrite {
		if err := os.WriteFile(goldenFile, []byte(got.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(goldenFile)
	if err != nil {
		t.Fatal(err)
	}
	if got.String() != string(want) {
		t.Errorf("%s: %s", goldenFile, firstDifference(string(want), got.String()))
	}
}

// readGolden returns the records of the golden file.
func readGolden(t testing.TB) (records []KV) {
	text, err := os.ReadFile(goldenFile)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		name, digits, isField := strings.Cut(strings.TrimSpace(line), " ")
		digits = strings.TrimSpace(digits)
		if !isField {
			continue
		}
		b, err := hex.DecodeString(digits)
		switch {
		case digits == "null":
		case err != nil:
			t.Fatal(err)
		case name == "key":
			records = append(records, KV{Key: b})
		default:
			records[len(records)-1].Value = b
		}
	}
	return records
}

// TestP33_GoldenRecordsAreRead: a log of golden records gives the state that they were made from.
func TestP33_GoldenRecordsAreRead(t *testing.T) {
	records := readGolden(t)
	w := newWorld(t, Config{})
	w.log = records[:2]
	w.restart(0, false)
	d := w.do(DescribeGroups{Token: 1, Groups: []string{"billing"}}).Replies[0].Response.(*DescribeReply).Groups[0]
	if d.State != "Stable" || len(d.Members) != 1 || d.Members[0].InstanceID != "node-1" || !bytes.Equal(d.Members[0].Assignment, []byte{0, 1, 2}) {
		t.Errorf("described as %+v", d)
	}
	e := w.do(FetchOffsets{Token: 1, Group: "billing", Topics: []FetchTopic{{"orders", kafka.TopicID{0: 0xa1, 15: 0x5e}, []int32{7}}}})
	want := FetchedPartition{Partition: 7, Offset: 82, LeaderEpoch: 3, Metadata: "note"}
	if p := e.Replies[0].Response.(*FetchReply).Topics[0].Partitions[0]; p != want {
		t.Errorf("fetched %+v", p)
	}
	w.log = records[9:14]
	w.restart(0, false)
	c := w.do(DescribeConsumerGroups{Token: 1, Groups: []string{"shipping"}}).Replies[0].Response.(*DescribeConsumerReply).Groups[0]
	orders := []kafka.TopicPartition{{Topic: testID(0x5e)}, {Topic: testID(0x5e), Partition: 1}, {Topic: testID(0x5e), Partition: 2}}
	want2 := DescribedConsumer{
		MemberID: "m", InstanceID: "node-1", RackID: "r", ClientID: "app", ClientHost: "/10.0.0.1", Epoch: 1,
		Topics: []string{"orders"}, Pattern: "o.*", Assigned: orders, Target: orders,
	}
	if c.State != "Stable" || c.Epoch != 1 || c.Assignor != "range" || len(c.Members) != 1 || !reflect.DeepEqual(c.Members[0], want2) {
		t.Errorf("described as %+v", c)
	}
	gone := len(records) - 2
	w.log = records[:gone]
	w.restart(0, false)
	if len(w.shard.groups) != 0 {
		t.Errorf("after the tombstones %d groups are left", len(w.shard.groups))
	}
	w.log = records[gone:]
	w.restart(0, false)
	for id, m := range w.shard.groups["billing"].consumer.members {
		switch {
		case id == "m" && m.classic == nil && m.reader == "User:ann\x00/10.0.0.1":
		case id != "m" && m.reader == "" && m.classic.isSame(&classicWords{sessionMs: 45_000, protocols: goldenProtocols}):
		default:
			t.Errorf("member %q was read as %+v", id, m.subscription)
		}
	}
	if n := len(w.shard.groups["billing"].consumer.members); n != 2 {
		t.Errorf("%d members, not 2", n)
	}
}

// TestP33_OldVersionsAreRead: values of every older version give what they hold, and safe values for what they lack.
func TestP33_OldVersionsAreRead(t *testing.T) {
	for version := range int16(5) {
		v := kmsg.NewOffsetCommitValue()
		v.Version, v.Offset, v.LeaderEpoch, v.Metadata, v.CommitTimestamp = version, 82, 3, "note", -1
		key := kmsg.OffsetCommitKey{Version: version % 2, Group: "G", Topic: "t", Partition: 7}
		s := replay(t, Config{}, []KV{{key.AppendTo(nil), v.AppendTo(nil)}})
		want := committed{offset: 82, epoch: kafka.NoEpoch, metadata: "note", atMs: recordTime.UnixMilli()}
		if version >= 3 {
			want.epoch = 3
		}
		if o := s.groups["G"].offsets["t"][7]; o != want {
			t.Errorf("offset version %d: %+v", version, o)
		}
	}
	for version := range int16(5) {
		v := kmsg.NewGroupMetadataValue()
		v.Version, v.ProtocolType, v.Generation, v.Protocol, v.Leader = version, "consumer", 4, nullable("range"), nullable("m")
		m := kmsg.NewGroupMetadataValueMember()
		m.MemberID, m.ClientID, m.SessionTimeoutMillis, m.Subscription, m.Assignment = "m", "c", 10_000, []byte{1}, []byte{2}
		v.Members = append(v.Members, m)
		w := newWorld(t, Config{})
		w.log = []KV{{groupKey("G"), v.AppendTo(nil)}}
		w.restart(0, false)
		g := w.shard.groups["G"]
		if g.classic.phase != stable || g.classic.generation != 4 || g.classic.leaderID() != "m" || g.stored.sinceMs != w.now.Wall.UnixMilli() {
			t.Errorf("group version %d: %+v", version, g.classic)
		}
		if r := g.classic.members["m"]; r.session != 10*time.Second || r.rebalance != 10*time.Second {
			t.Errorf("group version %d: session %v, rebalance %v", version, r.session, r.rebalance)
		}
	}
	// Time-outs that no member may ask for any more are brought within the bounds.
	v := kmsg.NewGroupMetadataValue()
	v.Version, v.Protocol = 3, nullable("range")
	v.Members = []kmsg.GroupMetadataValueMember{{MemberID: "m", SessionTimeoutMillis: -5}, {MemberID: "n", SessionTimeoutMillis: 1 << 30}}
	w := newWorld(t, Config{})
	w.log = []KV{{groupKey("G"), v.AppendTo(nil)}}
	w.restart(0, false)
	if ms := w.shard.groups["G"].classic.members; ms["m"].session != sessionMinDefault || ms["n"].session != sessionMaxDefault {
		t.Errorf("sessions %v and %v", ms["m"].session, ms["n"].session)
	}
}

// TestNegativeOffsetIsNone: a negative offset, as other brokers may have stored, is no commit.
func TestNegativeOffsetIsNone(t *testing.T) {
	v := kmsg.NewOffsetCommitValue()
	v.Version, v.Offset = 3, -1
	if s := replay(t, Config{}, []KV{{offsetKey("G", topicPartition{"t", 0}), v.AppendTo(nil)}}); len(s.groups) != 0 {
		t.Errorf("offset -1 makes a group")
	}
}

// FuzzApply: no record makes a shard panic, one that is refused changes nothing, and a shard that took it can be used.
func FuzzApply(f *testing.F) {
	for _, kv := range readGolden(f) {
		f.Add(kv.Key, kv.Value)
	}
	f.Fuzz(func(t *testing.T, key, value []byte) {
		w := newWorld(t, Config{})
		w.fast = true
		golden := readGolden(t)
		records := append(golden[:2:2], golden[9:14]...)
		s := replay(t, Config{}, records)
		before := fmt.Sprint(hardState(s))
		if err := s.Apply(key, value, recordTime); err != nil {
			if after := fmt.Sprint(hardState(s)); after != before {
				t.Fatalf("refused with %v, and the state changed", err)
			}
			return
		}
		w.shard = s
		w.log = append(records, KV{key, value})
		w.do(Loaded{})
		w.checkBooks()
		w.do(ListGroups{Token: 1})
		w.do(FetchOffsets{Token: 1, Group: "billing", All: true, CurrentID: func(string) kafka.TopicID { return kafka.TopicID{} }})
		w.advance(time.Hour)
		w.checkReplay()
		w.advance(400 * 24 * time.Hour)
		w.checkBooks()
	})
}
