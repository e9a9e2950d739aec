package group

import (
	"slices"
	"strings"
	"testing"
	"time"

	"strandline.dev/internal/kafka"
)

// consumers is a world of members of one consumer group that reads topic t, of four partitions.
type consumers struct {
	*world
	t       *testing.T
	catalog testCatalog
}

func newConsumers(t *testing.T) *consumers {
	return &consumers{newWorld(t, Config{}), t, testCatalog{1, map[string]byte{"t": 1}, map[string]int32{"t": 4}}}
}

// beat sends a heartbeat of a member and returns the answer. A joining member says all about itself.
func (c *consumers) beat(id string, epoch MemberEpoch, owned []kafka.TopicPartition, change ...func(*ConsumerHeartbeat)) *ConsumerHeartbeatReply {
	ev := ConsumerHeartbeat{Token: 1, Group: "G", MemberID: id, Epoch: epoch, RebalanceTimeout: -1, MustHaveID: true, Owned: owned, Catalog: c.catalog}
	if epoch == JoinEpoch {
		ev.RebalanceTimeout, ev.Topics, ev.Owned = time.Minute, []string{"t"}, []kafka.TopicPartition{}
	}
	for _, f := range change {
		f(&ev)
	}
	return c.do(ev).Replies[0].Response.(*ConsumerHeartbeatReply)
}

// commit stores an offset of one partition.
func (c *consumers) commit(id string, epoch MemberEpoch, partition int32, offset kafka.Offset) kafka.ErrorCode {
	e := c.do(CommitOffsets{Token: 1, Group: "G", MemberID: id, Generation: Generation(epoch), KnowsGroupIDNotFound: true, Topics: []CommitTopic{{
		Name: "t", ID: testID(1), Partitions: []CommitPartition{{Partition: partition, Offset: offset}},
	}}})
	return e.Replies[0].Response.(*CommitReply).Topics[0].Partitions[0].Code
}

func ofT(partitions ...int32) []kafka.TopicPartition {
	out := []kafka.TopicPartition{}
	for _, p := range partitions {
		out = append(out, kafka.TopicPartition{Topic: testID(1), Partition: p})
	}
	return out
}

// TestK48_HeartbeatsThatNobodyCanMean: epochs that are none, and expressions that are wrong, hard for other engines, or huge. What is refused
// changes nothing.
func TestK48_HeartbeatsThatNobodyCanMean(t *testing.T) {
	c := newConsumers(t)
	c.beat("a", JoinEpoch, nil)
	reads := func(pattern string) func(*ConsumerHeartbeat) {
		return func(ev *ConsumerHeartbeat) { ev.Pattern = &pattern }
	}
	records := len(c.log)
	for _, k := range []struct {
		name  string
		id    string
		epoch MemberEpoch
		with  func(*ConsumerHeartbeat)
		want  kafka.ErrorCode
	}{
		{"epoch -3", "a", -3, nil, kafka.InvalidRequest},
		{"epoch 10^9", "a", 1_000_000_000, nil, kafka.FencedMemberEpoch},
		{"an expression that is not closed", "b", JoinEpoch, reads("(a+"), kafka.InvalidRegularExpression},
		{"an expression with a look-ahead, which RE2 has not", "b", JoinEpoch, reads("(?=a)b"), kafka.InvalidRegularExpression},
		{"an expression of 1 MiB", "b", JoinEpoch, reads(strings.Repeat("a", 1<<20)), kafka.InvalidRequest},
	} {
		with := k.with
		if with == nil {
			with = func(*ConsumerHeartbeat) {}
		}
		if r := c.beat(k.id, k.epoch, nil, with); r.Code != k.want || len(c.log) != records {
			t.Errorf("%s: %v with %d records, want %v", k.name, r.Code, len(c.log)-records, k.want)
		}
	}
	c.catalog.topics[strings.Repeat("a", 200)+"!"] = 2
	if r := c.beat("b", JoinEpoch, nil, reads("(a+)+$")); r.Code != kafka.None {
		t.Errorf("an expression that takes other engines for ever: %v", r.Code)
	}
}

// TestC057_APartitionMovesWhenItIsGivenUp: the member that gains a partition is given it after the one that loses it has said that it is without
// it, whatever answers get lost; one that gets a partition back before it gave it up goes on as its owner.
func TestC057_APartitionMovesWhenItIsGivenUp(t *testing.T) {
	c := newConsumers(t)
	all := c.beat("a", JoinEpoch, nil)
	if !slices.Equal(all.Assigned, ofT(0, 1, 2, 3)) {
		t.Fatal(all.Assigned)
	}
	b := c.beat("b", JoinEpoch, nil)
	none := func(when string) {
		t.Helper()
		if r := c.beat("b", b.Epoch, ofT()); r.Code != kafka.None || len(r.Assigned) != 0 {
			t.Fatalf("%s b has %v %v", when, r.Code, r.Assigned)
		}
	}
	none("before a knows")
	if r := c.beat("a", all.Epoch, ofT(0, 1, 2, 3)); !slices.Equal(r.Assigned, ofT(0, 1)) {
		t.Fatal(r.Assigned)
	}
	none("while a is to give up")
	if r := c.beat("a", all.Epoch, ofT(0, 1, 2, 3)); r.Code != kafka.None { // it did not see the answer
		t.Fatal(r.Code)
	}
	none("when a's answer was lost")
	again := c.beat("a", all.Epoch, ofT(0, 1))
	if r := c.beat("b", b.Epoch, ofT()); !slices.Equal(r.Assigned, ofT(2, 3)) {
		t.Fatalf("b has %v", r.Assigned)
	}
	// b leaves while a is told; a gets back what it had.
	c.beat("b", LeaveEpoch, nil)
	if r := c.beat("a", again.Epoch, ofT(0, 1)); !slices.Equal(r.Assigned, ofT(0, 1, 2, 3)) {
		t.Fatalf("a has %v", r.Assigned)
	}
}

// TestC059_ALateEpochCommitsWhatItHas: the group's epoch rises when somebody joins, before its members know. A commit with the epoch before
// passes for what the member still has, and not for what has moved on.
func TestC059_ALateEpochCommitsWhatItHas(t *testing.T) {
	c := newConsumers(t)
	a := c.beat("a", JoinEpoch, nil)
	b := c.beat("b", JoinEpoch, nil)
	for p := range int32(4) {
		if code := c.commit("a", a.Epoch, p, 10); code != kafka.None {
			t.Errorf("partition %d before a knows: %v", p, code)
		}
	}
	c.beat("a", a.Epoch, ofT(0, 1, 2, 3))
	if code := c.commit("a", a.Epoch, 3, 11); code != kafka.None {
		t.Errorf("what is to be given up and is not yet: %v", code)
	}
	if r := c.beat("a", a.Epoch, ofT(0, 1)); r.Epoch != b.Epoch {
		t.Fatalf("epoch %d, want %d", r.Epoch, b.Epoch)
	}
	c.beat("b", b.Epoch, ofT())
	for p, want := range map[int32]kafka.ErrorCode{0: kafka.None, 3: kafka.StaleMemberEpoch} {
		if code := c.commit("a", a.Epoch, p, 12); code != want {
			t.Errorf("partition %d with the epoch before: %v, want %v", p, code, want)
		}
	}
	if got := c.stored("G", "t", 3); got != 11 {
		t.Errorf("the moved partition is at %d", got)
	}
}
