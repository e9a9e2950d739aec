package server

import (
	"bytes"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"strandline.dev/internal/coordinator"
	"strandline.dev/internal/kafka"
	"strandline.dev/internal/wire"
)

const testGroup = "workers"

// groupRequest returns an ordinary request of each group API; nil for other keys. Members are named that do not exist.
func groupRequest(key int16, topic string, id kafka.TopicID) kmsg.Request {
	switch key {
	case wire.KeyOffsetCommit:
		return newCommit(topic, id, 7)
	case wire.KeyOffsetFetch:
		return newOffsetFetch(topic, id)
	case wire.KeyFindCoordinator:
		r := kmsg.NewPtrFindCoordinatorRequest()
		r.CoordinatorKey, r.CoordinatorKeys = testGroup, []string{testGroup}
		return r
	case wire.KeyJoinGroup:
		return newJoin("nobody", "range")
	case wire.KeyHeartbeat:
		r := kmsg.NewPtrHeartbeatRequest()
		r.Group, r.MemberID = testGroup, "nobody"
		return r
	case wire.KeyLeaveGroup:
		r := kmsg.NewPtrLeaveGroupRequest()
		r.Group, r.MemberID = testGroup, "nobody"
		r.Members = []kmsg.LeaveGroupRequestMember{{MemberID: "nobody"}}
		return r
	case wire.KeySyncGroup:
		return newSync("nobody", 1, nil)
	case wire.KeyDescribeGroups:
		r := kmsg.NewPtrDescribeGroupsRequest()
		r.Groups = []string{testGroup}
		return r
	case wire.KeyConsumerGroupHeartbeat:
		return newConsumerHeartbeat("nobody", 5)
	case wire.KeyConsumerGroupDescribe:
		r := kmsg.NewPtrConsumerGroupDescribeRequest()
		r.Groups = []string{testGroup}
		return r
	case wire.KeyDeleteGroups:
		r := kmsg.NewPtrDeleteGroupsRequest()
		r.Groups = []string{"none"}
		return r
	case wire.KeyOffsetDelete:
		r := kmsg.NewPtrOffsetDeleteRequest()
		r.Group = testGroup
		r.Topics = []kmsg.OffsetDeleteRequestTopic{{Topic: topic, Partitions: []kmsg.OffsetDeleteRequestTopicPartition{{Partition: 0}}}}
		return r
	}
	return nil
}

// expectedOfGroup lists the errors that these requests get for a good reason.
func expectedOfGroup(key int16, code kafka.ErrorCode) bool {
	switch key {
	case wire.KeyJoinGroup, wire.KeySyncGroup, wire.KeyHeartbeat, wire.KeyLeaveGroup:
		return code == kafka.UnknownMemberID
	case wire.KeyDeleteGroups, wire.KeyConsumerGroupDescribe, wire.KeyConsumerGroupHeartbeat:
		return code == kafka.GroupIDNotFound
	}
	return false
}

// groupError finds the first error code of an answer of a group API.
func groupError(resp kmsg.Response) int16 {
	switch r := resp.(type) {
	case *kmsg.OffsetCommitResponse:
		return r.Topics[0].Partitions[0].ErrorCode
	case *kmsg.OffsetFetchResponse:
		switch {
		case r.Version >= offsetFetchBatch && r.Groups[0].ErrorCode != 0:
			return r.Groups[0].ErrorCode
		case r.Version >= offsetFetchBatch:
			return r.Groups[0].Topics[0].Partitions[0].ErrorCode
		case r.ErrorCode != 0:
			return r.ErrorCode
		}
		return r.Topics[0].Partitions[0].ErrorCode
	case *kmsg.FindCoordinatorResponse:
		if r.Version >= findCoordinatorBatch {
			return r.Coordinators[0].ErrorCode
		}
		return r.ErrorCode
	case *kmsg.JoinGroupResponse:
		return r.ErrorCode
	case *kmsg.HeartbeatResponse:
		return r.ErrorCode
	case *kmsg.LeaveGroupResponse:
		if r.ErrorCode == 0 && len(r.Members) > 0 {
			return r.Members[0].ErrorCode
		}
		return r.ErrorCode
	case *kmsg.SyncGroupResponse:
		return r.ErrorCode
	case *kmsg.ConsumerGroupHeartbeatResponse:
		return r.ErrorCode
	case *kmsg.ConsumerGroupDescribeResponse:
		return r.Groups[0].ErrorCode
	case *kmsg.DescribeGroupsResponse:
		return r.Groups[0].ErrorCode
	case *kmsg.ListGroupsResponse:
		return r.ErrorCode
	case *kmsg.DeleteGroupsResponse:
		return r.Groups[0].ErrorCode
	case *kmsg.OffsetDeleteResponse:
		return r.ErrorCode
	}
	return 0
}

func newCommit(topic string, id kafka.TopicID, offset int64) *kmsg.OffsetCommitRequest {
	r := kmsg.NewPtrOffsetCommitRequest()
	r.Version, r.Group = 9, testGroup
	t := kmsg.NewOffsetCommitRequestTopic()
	t.Topic, t.TopicID = topic, id
	p := kmsg.NewOffsetCommitRequestTopicPartition()
	p.Offset, p.Metadata = offset, kmsg.StringPtr("note")
	t.Partitions = append(t.Partitions, p)
	r.Topics = append(r.Topics, t)
	return r
}

func newOffsetFetch(topic string, id kafka.TopicID) *kmsg.OffsetFetchRequest {
	r := kmsg.NewPtrOffsetFetchRequest()
	r.Version, r.Group = 9, testGroup
	t := kmsg.NewOffsetFetchRequestTopic()
	t.Topic, t.Partitions = topic, []int32{0}
	r.Topics = append(r.Topics, t)
	g := kmsg.NewOffsetFetchRequestGroup()
	g.Group = testGroup
	gt := kmsg.NewOffsetFetchRequestGroupTopic()
	gt.Topic, gt.TopicID, gt.Partitions = topic, id, []int32{0}
	g.Topics = append(g.Topics, gt)
	r.Groups = append(r.Groups, g)
	return r
}

func newJoin(member string, protocols ...string) *kmsg.JoinGroupRequest {
	r := kmsg.NewPtrJoinGroupRequest()
	r.Version, r.Group, r.MemberID, r.ProtocolType = 3, testGroup, member, "consumer"
	r.SessionTimeoutMillis, r.RebalanceTimeoutMillis = 10_000, 10_000
	for _, name := range protocols {
		p := kmsg.NewJoinGroupRequestProtocol()
		p.Name, p.Metadata = name, subscriptionTo("orders")
		r.Protocols = append(r.Protocols, p)
	}
	return r
}

// subscriptionTo is what a consumer tells the leader of its group.
func subscriptionTo(topics ...string) []byte {
	m := kmsg.NewConsumerMemberMetadata()
	m.Topics = topics
	return m.AppendTo(nil)
}

func newSync(member string, generation int32, assignments map[string]string) *kmsg.SyncGroupRequest {
	r := kmsg.NewPtrSyncGroupRequest()
	r.Version, r.Group, r.MemberID, r.Generation = 5, testGroup, member, generation
	r.ProtocolType, r.Protocol = kmsg.StringPtr("consumer"), kmsg.StringPtr("range")
	for id, a := range assignments {
		ga := kmsg.NewSyncGroupRequestGroupAssignment()
		ga.MemberID, ga.MemberAssignment = id, []byte(a)
		r.GroupAssignment = append(r.GroupAssignment, ga)
	}
	return r
}

// newGroupBroker starts a broker whose groups wait for nobody, with the coordinators' topic in place.
func newGroupBroker(t *testing.T) (*testBroker, *testClient) {
	t.Helper()
	b := newTestBroker(t, testOptions{broker: map[string]string{"group.initial.rebalance.delay.ms": "0"}})
	c := b.dial()
	findCoordinator(c)
	return b, c
}

func findCoordinator(c *testClient) {
	c.t.Helper()
	resp := ask[*kmsg.FindCoordinatorResponse](c, groupRequest(wire.KeyFindCoordinator, "", kafka.TopicID{}))
	if resp.ErrorCode != 0 {
		c.t.Fatalf("find coordinator: %v", kafka.ErrorCode(resp.ErrorCode))
	}
}

// joinAlone makes the client the only member of the group, with an assignment, and returns its id and generation.
func joinAlone(c *testClient) (member string, generation int32) {
	c.t.Helper()
	j := ask[*kmsg.JoinGroupResponse](c, newJoin("", "range"))
	if j.ErrorCode != 0 || j.LeaderID != j.MemberID || len(j.Members) != 1 {
		c.t.Fatalf("join: %v %+v", kafka.ErrorCode(j.ErrorCode), j)
	}
	s := ask[*kmsg.SyncGroupResponse](c, newSync(j.MemberID, j.Generation, map[string]string{j.MemberID: "all"}))
	if s.ErrorCode != 0 || string(s.MemberAssignment) != "all" || *s.Protocol != "range" {
		c.t.Fatalf("sync: %v %+v", kafka.ErrorCode(s.ErrorCode), s)
	}
	return j.MemberID, j.Generation
}

// commit commits and returns the code of the one partition.
func commit(c *testClient, req *kmsg.OffsetCommitRequest) kafka.ErrorCode {
	c.t.Helper()
	return kafka.ErrorCode(groupError(ask[*kmsg.OffsetCommitResponse](c, req)))
}

// fetchOffset returns the one offset and its code.
func fetchOffset(c *testClient, req *kmsg.OffsetFetchRequest) (int64, kafka.ErrorCode) {
	c.t.Helper()
	r := ask[*kmsg.OffsetFetchResponse](c, req)
	if r.Groups[0].ErrorCode != 0 {
		return -2, kafka.ErrorCode(r.Groups[0].ErrorCode)
	}
	p := r.Groups[0].Topics[0].Partitions[0]
	return p.Offset, kafka.ErrorCode(p.ErrorCode)
}

// FindCoordinator creates the topic on first use, as Kafka's tools know it, and refuses for good what this release does not have.
func TestFindCoordinator_CreatesTheTopicOnce(t *testing.T) {
	b := newTestBroker(t, testOptions{})
	c := b.dial()
	if b.groups.Exists() {
		t.Fatal("the topic exists before its first use")
	}
	for v := int16(0); v <= 6; v++ {
		req := groupRequest(wire.KeyFindCoordinator, "", kafka.TopicID{})
		req.SetVersion(v)
		r := ask[*kmsg.FindCoordinatorResponse](c, req)
		node, port := r.NodeID, r.Port
		if v >= findCoordinatorBatch {
			node, port = r.Coordinators[0].NodeID, r.Coordinators[0].Port
		}
		if code := groupError(r); code != 0 || node != 1 || !strings.HasSuffix(b.addr, fmt.Sprint(port)) {
			t.Errorf("v%d: %v node %d port %d", v, kafka.ErrorCode(code), node, port)
		}
	}
	topic := b.quorum.Image().Topic(coordinator.TopicName)
	if topic == nil || !topic.Internal || len(topic.Partitions) != 50 || topic.Configs["cleanup.policy"] != "compact" {
		t.Fatalf("%+v", topic)
	}
	for _, one := range []struct {
		kind    int8
		version int16
		want    kafka.ErrorCode
	}{{1, 5, kafka.UnsupportedVersion}, {2, 6, kafka.UnsupportedVersion}, {2, 5, kafka.InvalidRequest}, {9, 4, kafka.InvalidRequest}} {
		req := kmsg.NewPtrFindCoordinatorRequest()
		req.Version, req.CoordinatorType, req.CoordinatorKeys = one.version, one.kind, []string{"x"}
		r := ask[*kmsg.FindCoordinatorResponse](c, req)
		if got := kafka.ErrorCode(r.Coordinators[0].ErrorCode); got != one.want || got.Retriable() || r.Coordinators[0].ErrorMessage == nil || r.Coordinators[0].NodeID != -1 {
			t.Errorf("type %d v%d: %+v, want %v", one.kind, one.version, r.Coordinators[0], one.want)
		}
	}
}

// A member joins, commits and reads back; a stale one changes nothing (P31, R46).
func TestGroups_JoinCommitFetch(t *testing.T) {
	_, c := newGroupBroker(t)
	id := c.create("orders", 1)
	member, generation := joinAlone(c)
	req := newCommit("orders", id, 82)
	req.MemberID, req.Generation = member, generation
	if code := commit(c, req); code != kafka.None {
		t.Fatalf("commit: %v", code)
	}
	stale := newCommit("orders", id, 90)
	stale.MemberID, stale.Generation = member, generation-1
	if code := commit(c, stale); code != kafka.IllegalGeneration {
		t.Errorf("commit of an older generation: %v", code)
	}
	stranger := newCommit("orders", id, 91)
	stranger.MemberID, stranger.Generation = "nobody", generation
	if code := commit(c, stranger); code != kafka.UnknownMemberID {
		t.Errorf("commit of a stranger: %v", code)
	}
	if offset, code := fetchOffset(c, newOffsetFetch("orders", id)); offset != 82 || code != kafka.None {
		t.Errorf("stored %d %v, want 82", offset, code)
	}
	hb := kmsg.NewPtrHeartbeatRequest()
	hb.Group, hb.MemberID, hb.Generation = testGroup, member, generation
	if code := groupError(ask[*kmsg.HeartbeatResponse](c, hb)); code != 0 {
		t.Errorf("heartbeat: %v", kafka.ErrorCode(code))
	}
	hb.Generation = math.MaxInt32
	if code := kafka.ErrorCode(groupError(ask[*kmsg.HeartbeatResponse](c, hb))); code != kafka.IllegalGeneration {
		t.Errorf("K47 heartbeat: %v", code)
	}
}

// O7: a reset of an active group is refused and changes nothing; once its members are gone it works.
func TestO7_ResetOfAnActiveGroupIsRefused(t *testing.T) {
	_, c := newGroupBroker(t)
	id := c.create("orders", 1)
	member, generation := joinAlone(c)
	req := newCommit("orders", id, 50)
	req.MemberID, req.Generation = member, generation
	if code := commit(c, req); code != kafka.None {
		t.Fatalf("commit: %v", code)
	}
	if code := commit(c, newCommit("orders", id, 0)); code != kafka.UnknownMemberID {
		t.Errorf("reset of an active group: %v, want UNKNOWN_MEMBER_ID", code)
	}
	if offset, _ := fetchOffset(c, newOffsetFetch("orders", id)); offset != 50 {
		t.Errorf("after the refused reset: %d, want 50", offset)
	}
	del := groupRequest(wire.KeyOffsetDelete, "orders", id).(*kmsg.OffsetDeleteRequest)
	if got := kafka.ErrorCode(ask[*kmsg.OffsetDeleteResponse](c, del).Topics[0].Partitions[0].ErrorCode); got != kafka.GroupSubscribedToTopic {
		t.Errorf("deleting an offset in use: %v", got)
	}
	leave := kmsg.NewPtrLeaveGroupRequest()
	leave.Version, leave.Group, leave.Members = 5, testGroup, []kmsg.LeaveGroupRequestMember{{MemberID: member}}
	if code := groupError(ask[*kmsg.LeaveGroupResponse](c, leave)); code != 0 {
		t.Fatalf("leave: %v", kafka.ErrorCode(code))
	}
	if code := commit(c, newCommit("orders", id, 0)); code != kafka.None {
		t.Errorf("reset of an empty group: %v", code)
	}
	if offset, _ := fetchOffset(c, newOffsetFetch("orders", id)); offset != 0 {
		t.Errorf("after the reset: %d, want 0", offset)
	}
}

// Every version of OffsetFetch says the same, in its own form; what is not stored is -1 without an error.
func TestOffsetFetch_EveryVersionSaysTheSame(t *testing.T) {
	_, c := newGroupBroker(t)
	id := c.create("orders", 2)
	other := c.create("never-committed", 1)
	if code := commit(c, newCommit("orders", id, 1234)); code != kafka.None {
		t.Fatal(code)
	}
	for v := int16(1); v <= 10; v++ {
		for _, topic := range []struct {
			name string
			id   kafka.TopicID
			want int64
		}{{"orders", id, 1234}, {"never-committed", other, -1}} {
			req := newOffsetFetch(topic.name, topic.id)
			req.Version = v
			r := ask[*kmsg.OffsetFetchResponse](c, req)
			if code := groupError(r); code != 0 {
				t.Errorf("v%d %s: %v", v, topic.name, kafka.ErrorCode(code))
			}
			got := int64(-2)
			if v >= offsetFetchBatch {
				got = r.Groups[0].Topics[0].Partitions[0].Offset
			} else {
				got = r.Topics[0].Partitions[0].Offset
			}
			if got != topic.want {
				t.Errorf("v%d %s: %d, want %d", v, topic.name, got, topic.want)
			}
		}
		if v >= offsetFetchTopCode {
			all := newOffsetFetch("orders", id)
			all.Version, all.Topics, all.Groups[0].Topics = v, nil, nil
			r := ask[*kmsg.OffsetFetchResponse](c, all)
			if n := len(r.Topics) + len(r.Groups); n != 1 || v >= offsetFetchBatch && len(r.Groups[0].Topics) != 1 {
				t.Errorf("v%d all topics: %+v", v, r)
			}
		}
	}
	unknown := newOffsetFetch("", kafka.TopicID{1})
	unknown.Version = 10
	if offset, code := fetchOffset(c, unknown); offset != -1 || code != kafka.UnknownTopicID {
		t.Errorf("unknown id: %d %v", offset, code)
	}
}

// A topic that was made anew under the same name has no committed offsets (P41), in whatever form it is asked for.
func TestP41_OffsetsOfARecreatedTopicAreNotItsPredecessors(t *testing.T) {
	_, c := newGroupBroker(t)
	id := c.create("orders", 1)
	if code := commit(c, newCommit("orders", id, 77)); code != kafka.None {
		t.Fatal(code)
	}
	del := kmsg.NewPtrDeleteTopicsRequest()
	del.Version, del.TimeoutMillis = 5, 10_000
	del.TopicNames = []string{"orders"}
	if code := ask[*kmsg.DeleteTopicsResponse](c, del).Topics[0].ErrorCode; code != 0 {
		t.Fatal(kafka.ErrorCode(code))
	}
	if offset, code := fetchOffset(c, newOffsetFetch("orders", id)); offset != -1 || code != kafka.None {
		t.Errorf("deleted: %d %v", offset, code)
	}
	next := c.create("orders", 1)
	if offset, code := fetchOffset(c, newOffsetFetch("orders", next)); offset != -1 || code != kafka.None {
		t.Errorf("made anew: %d %v", offset, code)
	}
	if code := commit(c, newCommit("orders", next, 5)); code != kafka.None {
		t.Fatal(code)
	}
	if offset, _ := fetchOffset(c, newOffsetFetch("orders", next)); offset != 5 {
		t.Errorf("committed to the new one: %d", offset)
	}
}

// Refusals of one partition leave the others alone.
func TestOffsetCommit_PartitionsAreJudgedOneByOne(t *testing.T) {
	_, c := newGroupBroker(t)
	id := c.create("orders", 1)
	req := newCommit("orders", id, 3)
	long := kmsg.NewOffsetCommitRequestTopicPartition()
	long.Metadata = kmsg.StringPtr(strings.Repeat("x", 4097))
	absent := kmsg.NewOffsetCommitRequestTopicPartition()
	absent.Partition = 9
	negative := kmsg.NewOffsetCommitRequestTopicPartition()
	negative.Offset = -2
	req.Topics[0].Partitions = append(req.Topics[0].Partitions, long, absent, negative)
	unknown := kmsg.NewOffsetCommitRequestTopic()
	unknown.Topic, unknown.Partitions = "none", req.Topics[0].Partitions[:1]
	req.Topics = append(req.Topics, unknown)
	r := ask[*kmsg.OffsetCommitResponse](c, req)
	var got []kafka.ErrorCode
	for _, t := range r.Topics {
		for _, p := range t.Partitions {
			got = append(got, kafka.ErrorCode(p.ErrorCode))
		}
	}
	want := []kafka.ErrorCode{kafka.None, kafka.OffsetMetadataTooLarge, kafka.UnknownTopicOrPartition, kafka.InvalidRequest, kafka.UnknownTopicOrPartition}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%v, want %v", got, want)
	}
	req.Version, req.Topics[1].TopicID = 10, kafka.TopicID{9}
	req.Topics[0].TopicID = id
	r = ask[*kmsg.OffsetCommitResponse](c, req)
	if code := kafka.ErrorCode(r.Topics[1].Partitions[0].ErrorCode); code != kafka.UnknownTopicID || r.Topics[1].TopicID != [16]byte{9} {
		t.Errorf("v10: %v %v", code, r.Topics[1].TopicID)
	}
}

// DescribeGroups, ListGroups and DeleteGroups tell the life of a group.
func TestGroups_DescribeListDelete(t *testing.T) {
	_, c := newGroupBroker(t)
	describe := groupRequest(wire.KeyDescribeGroups, "", kafka.TopicID{}).(*kmsg.DescribeGroupsRequest)
	describe.IncludeAuthorizedOperations = true
	for v := int16(0); v <= 6; v++ {
		describe.Version = v
		g := ask[*kmsg.DescribeGroupsResponse](c, describe).Groups[0]
		want := kafka.None
		if v >= 6 {
			want = kafka.GroupIDNotFound
		}
		if g.State != "Dead" || kafka.ErrorCode(g.ErrorCode) != want || (v >= 6) != (g.ErrorMessage != nil) {
			t.Errorf("v%d of a group that does not exist: %+v", v, g)
		}
	}
	c.id = "a-worker"
	member, _ := joinAlone(c)
	g := ask[*kmsg.DescribeGroupsResponse](c, describe).Groups[0]
	if g.State != "Stable" || g.ProtocolType != "consumer" || g.Protocol != "range" || len(g.Members) != 1 || g.AuthorizedOperations != 1<<3|1<<6|1<<8 {
		t.Fatalf("%+v", g)
	}
	m := g.Members[0]
	if m.MemberID != member || m.ClientID != "a-worker" || m.ClientHost != "/127.0.0.1" || string(m.MemberAssignment) != "all" ||
		!bytes.Equal(m.ProtocolMetadata, subscriptionTo("orders")) || !strings.HasPrefix(member, "a-worker-") {
		t.Errorf("%+v", m)
	}
	list := kmsg.NewPtrListGroupsRequest()
	list.Version, list.StatesFilter, list.TypesFilter = 5, []string{"STABLE"}, []string{"classic"}
	if l := ask[*kmsg.ListGroupsResponse](c, list); l.ErrorCode != 0 || len(l.Groups) != 1 || l.Groups[0].Group != testGroup || l.Groups[0].GroupState != "Stable" || l.Groups[0].GroupType != "classic" {
		t.Errorf("%+v", l)
	}
	list.StatesFilter = []string{"Empty"}
	if l := ask[*kmsg.ListGroupsResponse](c, list); len(l.Groups) != 0 {
		t.Errorf("%+v", l)
	}
	del := kmsg.NewPtrDeleteGroupsRequest()
	del.Version, del.Groups = 2, []string{testGroup, "none"}
	d := ask[*kmsg.DeleteGroupsResponse](c, del)
	if kafka.ErrorCode(d.Groups[0].ErrorCode) != kafka.NonEmptyGroup || kafka.ErrorCode(d.Groups[1].ErrorCode) != kafka.GroupIDNotFound {
		t.Errorf("%+v", d)
	}
	leave := kmsg.NewPtrLeaveGroupRequest()
	leave.Group, leave.MemberID = testGroup, member
	if code := groupError(ask[*kmsg.LeaveGroupResponse](c, leave)); code != 0 {
		t.Fatal(kafka.ErrorCode(code))
	}
	if d = ask[*kmsg.DeleteGroupsResponse](c, del); d.Groups[0].ErrorCode != 0 {
		t.Errorf("%+v", d)
	}
}

// A join that waits for others holds up nothing: other connections go on, and a member whose peer is gone is forgotten (C116).
func TestGroups_AParkedJoinHoldsNothing(t *testing.T) {
	b, c := newGroupBroker(t)
	member, generation := joinAlone(c)
	second := b.dial()
	second.send(newJoin("", "range")) // waits for the first to rejoin
	hb := kmsg.NewPtrHeartbeatRequest()
	hb.Group, hb.MemberID, hb.Generation = testGroup, member, generation
	eventually(t, "the rebalance has begun", func() bool {
		return kafka.ErrorCode(groupError(ask[*kmsg.HeartbeatResponse](c, hb))) == kafka.RebalanceInProgress
	})
	third := b.dial()
	describe := groupRequest(wire.KeyDescribeGroups, "", kafka.TopicID{})
	if g := ask[*kmsg.DescribeGroupsResponse](third, describe).Groups[0]; g.State != "PreparingRebalance" || len(g.Members) != 2 {
		t.Errorf("%+v", g)
	}
	rejoin := newJoin(member, "range")
	j := ask[*kmsg.JoinGroupResponse](c, rejoin)
	if j.ErrorCode != 0 || j.Generation != generation+1 || len(j.Members) != 2 {
		t.Errorf("%+v", j)
	}
	if r := second.read(newJoin("", "range"), 0).(*kmsg.JoinGroupResponse); r.ErrorCode != 0 || r.Generation != generation+1 || len(r.Members) != 0 {
		t.Errorf("%+v", r)
	}
}

// A graceful stop does not wait for joins: they are told to look for another coordinator.
func TestGroups_AStopAnswersParkedJoins(t *testing.T) {
	b, c := newGroupBroker(t)
	joinAlone(c)
	second := b.dial()
	req := newJoin("", "range")
	id := second.send(req)
	describe := groupRequest(wire.KeyDescribeGroups, "", kafka.TopicID{})
	eventually(t, "the join is parked", func() bool {
		return len(ask[*kmsg.DescribeGroupsResponse](c, describe).Groups[0].Members) == 2
	})
	begin := time.Now()
	b.stop()
	if r := second.read(req, id).(*kmsg.JoinGroupResponse); kafka.ErrorCode(r.ErrorCode) != kafka.NotCoordinator {
		t.Errorf("%+v", r)
	}
	<-b.served
	b.served = nil
	if d := time.Since(begin); d >= drainDefault {
		t.Errorf("the stop took %v", d)
	}
}

// While a coordinator loads, each API says so in the one way that its clients know, and no answer carries an offset (C062).
func TestGroups_WhileLoading(t *testing.T) {
	b := newTestBroker(t, testOptions{})
	c := b.dial()
	id := c.create("orders", 1)
	b.spy.blind.Store(true) // the host does not lead yet
	findCoordinator(c)
	for _, one := range []struct {
		key  int16
		want kafka.ErrorCode
	}{
		{wire.KeyOffsetCommit, kafka.CoordinatorLoadInProgress},
		{wire.KeyOffsetFetch, kafka.CoordinatorLoadInProgress},
		{wire.KeyJoinGroup, kafka.CoordinatorLoadInProgress},
		{wire.KeyHeartbeat, kafka.None},
		{wire.KeyLeaveGroup, kafka.CoordinatorLoadInProgress},
		{wire.KeySyncGroup, kafka.RebalanceInProgress},
		{wire.KeyDescribeGroups, kafka.CoordinatorLoadInProgress},
		{wire.KeyListGroups, kafka.CoordinatorLoadInProgress},
		{wire.KeyDeleteGroups, kafka.CoordinatorLoadInProgress},
		{wire.KeyOffsetDelete, kafka.CoordinatorLoadInProgress},
		{wire.KeyConsumerGroupHeartbeat, kafka.CoordinatorLoadInProgress},
		{wire.KeyConsumerGroupDescribe, kafka.CoordinatorLoadInProgress},
	} {
		a, _ := wire.Lookup(one.key)
		for v := a.Min; v <= a.Max; v++ {
			req := request(one.key, "orders", id, nil)
			req.SetVersion(v)
			resp := ask[kmsg.Response](c, req)
			if code := firstError(resp); code != one.want {
				t.Errorf("%s v%d: %v, want %v", a.Name, v, code, one.want)
			}
			if r, ok := resp.(*kmsg.OffsetFetchResponse); ok && v < offsetFetchTopCode && r.Topics[0].Partitions[0].Offset != -1 {
				t.Errorf("C062: %+v", r)
			}
		}
	}
	b.spy.blind.Store(false)
	if code := commit(c, newCommit("orders", id, 1)); code != kafka.None && code != kafka.CoordinatorLoadInProgress {
		t.Errorf("when the host leads: %v", code)
	}
}

// K20: nobody writes to the coordinators' topic but they, whatever it calls itself; nobody deletes it or makes it another one.
func TestK20_TheCoordinatorsTopicIsTheirs(t *testing.T) {
	b, c := newGroupBroker(t)
	c.id = "__admin_client" // Kafka lets this one
	if code := kafka.ErrorCode(c.publish(newProduce(coordinator.TopicName, 0, b.newBatch("x"))).ErrorCode); code != kafka.InvalidTopicException {
		t.Errorf("publish: %v", code)
	}
	del := kmsg.NewPtrDeleteTopicsRequest()
	del.Version, del.TopicNames = 5, []string{coordinator.TopicName}
	if code := kafka.ErrorCode(ask[*kmsg.DeleteTopicsResponse](c, del).Topics[0].ErrorCode); code != kafka.PolicyViolation {
		t.Errorf("delete: %v", code)
	}
	grow := kmsg.NewPtrCreatePartitionsRequest()
	grow.Topics = []kmsg.CreatePartitionsRequestTopic{{Topic: coordinator.TopicName, Count: 60}}
	if code := kafka.ErrorCode(ask[*kmsg.CreatePartitionsResponse](c, grow).Topics[0].ErrorCode); code != kafka.PolicyViolation {
		t.Errorf("more partitions: %v", code)
	}
	alter := newAlter(wire.KeyIncrementalAlterConfigs, coordinator.TopicName, "cleanup.policy", "delete")
	if code := kafka.ErrorCode(ask[*kmsg.IncrementalAlterConfigsResponse](c, alter).Resources[0].ErrorCode); code != kafka.PolicyViolation {
		t.Errorf("another policy: %v", code)
	}
	describe := request(wire.KeyDescribeConfigs, coordinator.TopicName, kafka.TopicID{}, nil)
	for _, e := range ask[*kmsg.DescribeConfigsResponse](c, describe).Resources[0].Configs {
		if e.Name == "cleanup.policy" && str(e.Value) != "compact" {
			t.Errorf("shown policy: %s", str(e.Value))
		}
	}
}

// Two groups read the same records, each from its own place (R37). Reading alone moves no place (R40), committing removes no record (R52), and
// removing records moves no place (R58).
func TestGroups_PlacesAreTheirOwn(t *testing.T) {
	b, c := newGroupBroker(t)
	id := c.create("orders", 1)
	for range 10 {
		if code := c.publish(newProduce("orders", 0, b.newBatch("a", "b"))).ErrorCode; code != 0 {
			t.Fatal(kafka.ErrorCode(code))
		}
	}
	readAll := func() int {
		r := ask[*kmsg.FetchResponse](c, newFetch("orders", 0, 0))
		return len(values(t, r.Topics[0].Partitions[0].RecordBatches))
	}
	places := func(want ...int64) {
		t.Helper()
		for i, name := range []string{"fulfillment", "analytics"} {
			req := newOffsetFetch("orders", id)
			req.Groups[0].Group = name
			if offset, code := fetchOffset(c, req); offset != want[i] || code != kafka.None {
				t.Errorf("%s is at %d (%v), want %d", name, offset, code, want[i])
			}
		}
	}
	commitTo := func(name string, offset int64) {
		t.Helper()
		req := newCommit("orders", id, offset)
		req.Group = name
		if code := commit(c, req); code != kafka.None {
			t.Fatal(code)
		}
	}
	places(-1, -1)
	readAll()
	places(-1, -1)
	commitTo("fulfillment", 12)
	places(12, -1)
	commitTo("analytics", 3)
	places(12, 3)
	if n := readAll(); n != 20 {
		t.Errorf("%d records after the commits, want 20", n)
	}
	remove := kmsg.NewPtrDeleteRecordsRequest()
	remove.Version, remove.TimeoutMillis = 2, 10_000
	remove.Topics = []kmsg.DeleteRecordsRequestTopic{{Topic: "orders", Partitions: []kmsg.DeleteRecordsRequestTopicPartition{{Partition: 0, Offset: 20}}}}
	if code := ask[*kmsg.DeleteRecordsResponse](c, remove).Topics[0].Partitions[0].ErrorCode; code != 0 {
		t.Fatal(kafka.ErrorCode(code))
	}
	places(12, 3)
}

// R54: a member that is asked to rejoin can commit what it has finished first; once the next generation is known, it has to learn what it owns
// in it before.
func TestGroups_CommitBeforeRevocation(t *testing.T) {
	b, c := newGroupBroker(t)
	id := c.create("orders", 1)
	member, generation := joinAlone(c)
	second := b.dial()
	second.send(newJoin("", "range"))
	hb := kmsg.NewPtrHeartbeatRequest()
	hb.Group, hb.MemberID, hb.Generation = testGroup, member, generation
	eventually(t, "the member is asked to rejoin", func() bool {
		return kafka.ErrorCode(groupError(ask[*kmsg.HeartbeatResponse](c, hb))) == kafka.RebalanceInProgress
	})
	last := newCommit("orders", id, 81)
	last.MemberID, last.Generation = member, generation
	if code := commit(c, last); code != kafka.None {
		t.Errorf("the last commit before the revocation: %v", code)
	}
	j := ask[*kmsg.JoinGroupResponse](c, newJoin(member, "range"))
	if j.ErrorCode != 0 || j.Generation != generation+1 {
		t.Fatalf("%+v", j)
	}
	late := newCommit("orders", id, 90)
	late.MemberID, late.Generation = member, generation
	if code := commit(c, late); code != kafka.IllegalGeneration {
		t.Errorf("a commit of the generation that is over: %v", code)
	}
	late.Generation = j.Generation
	if code := commit(c, late); code != kafka.RebalanceInProgress {
		t.Errorf("a commit before the assignment: %v", code)
	}
	if offset, _ := fetchOffset(c, newOffsetFetch("orders", id)); offset != 81 {
		t.Errorf("the next owner starts at %d, want 81", offset)
	}
}
