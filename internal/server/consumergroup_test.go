package server

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/wire"
)

// newConsumerHeartbeat is a bare heartbeat; with epoch 0 it joins and reads orders.
func newConsumerHeartbeat(member string, epoch int32) *kmsg.ConsumerGroupHeartbeatRequest {
	r := kmsg.NewPtrConsumerGroupHeartbeatRequest()
	r.Version, r.Group, r.MemberID, r.MemberEpoch = 1, testGroup, member, epoch
	if epoch == 0 {
		r.RebalanceTimeoutMillis, r.SubscribedTopicNames = 10_000, []string{"orders"}
		r.Topics = []kmsg.ConsumerGroupHeartbeatRequestTopic{}
	}
	return r
}

// heard sends a heartbeat and returns the epoch and what is given, "-" for nothing new.
func heard(c *testClient, r *kmsg.ConsumerGroupHeartbeatRequest) (epoch int32, given string) {
	c.t.Helper()
	resp := ask[*kmsg.ConsumerGroupHeartbeatResponse](c, r)
	if resp.ErrorCode != 0 {
		return -1, kafka.ErrorCode(resp.ErrorCode).String()
	}
	if resp.Assignment == nil {
		return resp.MemberEpoch, "-"
	}
	partitions := []int32{}
	for _, t := range resp.Assignment.Topics {
		partitions = append(partitions, t.Partitions...)
	}
	return resp.MemberEpoch, fmt.Sprint(partitions)
}

// owning adds to a heartbeat what the member owns.
func owning(r *kmsg.ConsumerGroupHeartbeatRequest, id kafka.TopicID, partitions ...int32) *kmsg.ConsumerGroupHeartbeatRequest {
	r.Topics = []kmsg.ConsumerGroupHeartbeatRequestTopic{{TopicID: id, Partitions: partitions}}
	return r
}

// Two members share a topic by the wire: a partition moves after it was given up, commits count by member epoch, and the group is described,
// listed and deleted as what it is (R56, P31, C057, C059).
func TestConsumerGroup_OverTheWire(t *testing.T) {
	_, c := newGroupBroker(t)
	id := c.create("orders", 4)
	step := func(r *kmsg.ConsumerGroupHeartbeatRequest, wantEpoch int32, want string) {
		t.Helper()
		if epoch, given := heard(c, r); epoch != wantEpoch || given != want {
			t.Fatalf("epoch %d given %s, want %d %s", epoch, given, wantEpoch, want)
		}
	}
	step(newConsumerHeartbeat("a", 0), 1, "[0 1 2 3]")
	step(newConsumerHeartbeat("b", 0), 2, "[]")
	step(newConsumerHeartbeat("a", 1), 1, "[0 1]")
	step(newConsumerHeartbeat("b", 2), 2, "-")
	step(owning(newConsumerHeartbeat("a", 1), id, 0, 1), 2, "[0 1]")
	step(newConsumerHeartbeat("b", 2), 2, "[2 3]")
	step(newConsumerHeartbeat("a", 7), -1, "FENCED_MEMBER_EPOCH")
	step(newConsumerHeartbeat("x", 2), -1, "UNKNOWN_MEMBER_ID")

	offset := newCommit("orders", id, 50)
	for _, one := range []struct {
		member  string
		epoch   int32
		version int16
		want    kafka.ErrorCode
	}{
		{"a", 1, 9, kafka.None}, {"a", 2, 9, kafka.None}, {"a", 3, 9, kafka.StaleMemberEpoch}, {"a", 2, 8, kafka.UnsupportedVersion},
		{"b", 2, 9, kafka.StaleMemberEpoch}, {"x", 2, 9, kafka.UnknownMemberID}, {"", -1, 9, kafka.UnknownMemberID},
	} {
		offset.MemberID, offset.Generation, offset.Version = one.member, one.epoch, one.version
		if code := commit(c, offset); code != one.want {
			t.Errorf("commit of %q in epoch %d, version %d: %v, want %v", one.member, one.epoch, one.version, code, one.want)
		}
	}
	for _, one := range []struct {
		member string
		epoch  int32
		want   kafka.ErrorCode
	}{{"a", 2, kafka.None}, {"a", 1, kafka.StaleMemberEpoch}, {"x", 2, kafka.UnknownMemberID}} {
		f := newOffsetFetch("orders", id)
		f.Groups[0].MemberID, f.Groups[0].MemberEpoch = &one.member, one.epoch
		if at, code := fetchOffset(c, f); code != one.want || code == kafka.None && at != 50 {
			t.Errorf("fetch of %q in epoch %d: %d %v, want %v", one.member, one.epoch, at, code, one.want)
		}
	}
	checkDescribed(t, c)
	step(newConsumerHeartbeat("a", -1), -1, "-")
	step(newConsumerHeartbeat("b", -1), -1, "-")
	del := kmsg.NewPtrDeleteGroupsRequest()
	del.Version, del.Groups = 2, []string{testGroup}
	if d := ask[*kmsg.DeleteGroupsResponse](c, del); d.Groups[0].ErrorCode != 0 {
		t.Errorf("%+v", d)
	}
}

// checkDescribed looks at the group of members a and b by all that shows groups.
func checkDescribed(t *testing.T, c *testClient) {
	t.Helper()
	describe := groupRequest(wire.KeyConsumerGroupDescribe, "", kafka.TopicID{}).(*kmsg.ConsumerGroupDescribeRequest)
	describe.Version, describe.Groups, describe.IncludeAuthorizedOperations = 1, []string{testGroup, "none"}, true
	d := ask[*kmsg.ConsumerGroupDescribeResponse](c, describe)
	g := d.Groups[0]
	if g.State != "Stable" || g.Epoch != 2 || g.AssignmentEpoch != 2 || g.AssignorName != "uniform" || len(g.Members) != 2 || g.AuthorizedOperations != 1<<3|1<<6|1<<8 {
		t.Fatalf("%+v", g)
	}
	m := g.Members[1]
	if m.MemberID != "b" || m.MemberEpoch != 2 || m.MemberType != consumerMember || m.ClientHost != "/127.0.0.1" || !slices.Equal(m.SubscribedTopics, []string{"orders"}) ||
		m.Assignment.TopicPartitions[0].Topic != "orders" || !slices.Equal(m.Assignment.TopicPartitions[0].Partitions, []int32{2, 3}) || fmt.Sprint(m.TargetAssignment) != fmt.Sprint(m.Assignment) {
		t.Errorf("%+v", m)
	}
	if code := kafka.ErrorCode(d.Groups[1].ErrorCode); code != kafka.GroupIDNotFound || d.Groups[1].ErrorMessage == nil {
		t.Errorf("%+v", d.Groups[1])
	}
	old := groupRequest(wire.KeyDescribeGroups, "", kafka.TopicID{}).(*kmsg.DescribeGroupsRequest)
	for version, want := range map[int16]kafka.ErrorCode{5: kafka.None, 6: kafka.GroupIDNotFound} {
		old.Version = version
		if g := ask[*kmsg.DescribeGroupsResponse](c, old).Groups[0]; g.State != "Dead" || kafka.ErrorCode(g.ErrorCode) != want {
			t.Errorf("DescribeGroups %d: %+v", version, g)
		}
	}
	list := kmsg.NewPtrListGroupsRequest()
	list.Version, list.TypesFilter = 5, []string{"Consumer"}
	if l := ask[*kmsg.ListGroupsResponse](c, list); len(l.Groups) != 1 || l.Groups[0].GroupType != "consumer" || l.Groups[0].GroupState != "Stable" || l.Groups[0].ProtocolType != "consumer" {
		t.Errorf("%+v", l)
	}
	worker := newJoin("", "range")
	worker.ProtocolType = "connect"
	if code := kafka.ErrorCode(ask[*kmsg.JoinGroupResponse](c, worker).ErrorCode); code != kafka.InconsistentGroupProtocol {
		t.Errorf("a member that is no consumer: %v", code)
	}
}

// A regular expression is matched against the topics as they are: whole names, none of the cluster's own, and new ones as they come (R62).
func TestConsumerGroup_RegularExpression(t *testing.T) {
	_, c := newGroupBroker(t)
	c.create("orders-eu", 2)
	c.create("other-orders-eu", 1)
	join := newConsumerHeartbeat("a", 0)
	join.SubscribedTopicNames, join.SubscribedTopicRegex = nil, kmsg.StringPtr("orders-.*|.*offsets")
	if epoch, given := heard(c, join); epoch != 1 || given != "[0 1]" {
		t.Fatalf("epoch %d given %s", epoch, given)
	}
	c.create("orders-us", 3)
	eventually(t, "the new topic is found", func() bool {
		epoch, given := heard(c, newConsumerHeartbeat("a", 1))
		return epoch == 2 && len(given) == len("[0 1 0 1 2]")
	})
	bad := newConsumerHeartbeat("b", 0)
	bad.SubscribedTopicRegex = kmsg.StringPtr("(")
	if _, code := heard(c, bad); code != kafka.InvalidRegularExpression.String() {
		t.Errorf("a broken expression: %s", code)
	}
}

// ApiVersions says that there are consumer groups, in the form that each version bears, and says nothing under a cap that hides them.
func TestConsumerGroup_FeatureIsFinalised(t *testing.T) {
	c := newTestBroker(t, testOptions{}).dial()
	for version := int16(3); version <= 4; version++ {
		r := ask[*kmsg.ApiVersionsResponse](c, withVersion(request(wire.KeyApiVersions, "", kafka.TopicID{}, nil), version))
		if len(r.FinalizedFeatures) != 1 || r.FinalizedFeatures[0].Name != "group.version" || r.FinalizedFeatures[0].MaxVersionLevel != 1 || r.FinalizedFeaturesEpoch < 0 {
			t.Errorf("v%d: %+v", version, r.FinalizedFeatures)
		}
		if want := int(version - 3); len(r.SupportedFeatures) != want {
			t.Errorf("v%d: supported %+v", version, r.SupportedFeatures)
		}
	}
	old := newTestBroker(t, testOptions{broker: map[string]string{"strandline.protocol.cap": "2.8"}}).dial()
	if r := ask[*kmsg.ApiVersionsResponse](old, withVersion(request(wire.KeyApiVersions, "", kafka.TopicID{}, nil), 3)); len(r.FinalizedFeatures) != 0 {
		t.Errorf("under a cap: %+v", r.FinalizedFeatures)
	}
}

// Real consumers by KIP-848: members come, leave and die while records flow. At any time a partition has one owner; no record is left out; a
// member that is not needed sits idle; what dies is replaced after its session (P29, P34, R47, R48, R53, R54, R56).
func TestClients_ConsumerGroups(t *testing.T) {
	for name, balancer := range map[string]kgo.GroupBalancer{"uniform": kgo.CooperativeStickyBalancer(), "range": kgo.RangeBalancer()} {
		t.Run(name, func(t *testing.T) {
			b := newTestBroker(t, testOptions{broker: map[string]string{
				"group.consumer.session.timeout.ms": "1000", "group.consumer.heartbeat.interval.ms": "50", "offsets.topic.num.partitions": "2",
			}})
			b.dial().create(groupTopic, 4)
			book := newGroupBook()
			start := func(name string, more ...kgo.Opt) *groupMember {
				return startMember(t, b, book, name, append(more, kgo.Balancers(balancer), kgo.ServerSideBalancer())...)
			}
			produceJobs(t, b, 0, 400)
			one := start("one")
			book.wait(t, 400, map[string]int{"one": 4})
			start("two")
			book.wait(t, 400, map[string]int{"one": 2, "two": 2})
			produceJobs(t, b, 400, 400)
			book.wait(t, 800, map[string]int{"one": 2, "two": 2})
			one.stop()
			book.wait(t, 800, map[string]int{"two": 4})
			dies := start("dies", kgo.InstanceID("dies"))
			book.wait(t, 800, map[string]int{"two": 2, "dies": 2})
			book.died("dies")
			dies.stop() // a static member leaves for a time: its session has to end
			produceJobs(t, b, 800, 400)
			book.wait(t, 1200, map[string]int{"two": 4})
			for i := range 4 {
				start(fmt.Sprintf("more-%d", i))
			}
			eventually(t, "five members share four partitions", func() bool {
				_, owned := book.counts()
				return len(owned) == 4
			})
			produceJobs(t, b, 1200, 100)
			eventually(t, "all records are processed", func() bool { n, _ := book.counts(); return n == 1300 })
			if described := describedType(b.dial()); described != "consumer" {
				t.Errorf("the group is of type %q", described)
			}
			book.mu.Lock()
			defer book.mu.Unlock()
			for _, text := range book.wrong {
				t.Error(text)
			}
		})
	}
}

// describedType is the type of the only group.
func describedType(c *testClient) string {
	list := kmsg.NewPtrListGroupsRequest()
	list.Version = 5
	l := ask[*kmsg.ListGroupsResponse](c, list)
	if len(l.Groups) != 1 {
		return fmt.Sprint(l.Groups)
	}
	return l.Groups[0].GroupType
}

// A static member of a consumer group that comes back within its session takes its partitions up again, and nobody else notices.
func TestClients_StaticConsumerComesBack(t *testing.T) {
	b := newTestBroker(t, testOptions{broker: map[string]string{"group.consumer.heartbeat.interval.ms": "50", "offsets.topic.num.partitions": "2"}})
	b.dial().create(groupTopic, 4)
	book := newGroupBook()
	start := func(name, instance string) *groupMember {
		return startMember(t, b, book, name, kgo.ServerSideBalancer(), kgo.InstanceID(instance), kgo.HeartbeatInterval(50*time.Millisecond))
	}
	stays := start("stays", "stays")
	goes := start("goes", "goes")
	book.wait(t, 0, map[string]int{"stays": 2, "goes": 2})
	_, epoch := stays.client.GroupMetadata()
	eventually(t, "both are in one epoch", func() bool {
		_, other := goes.client.GroupMetadata()
		_, epoch = stays.client.GroupMetadata()
		return epoch == other
	})
	goes.stop()
	book.died("goes")
	start("back", "goes")
	produceJobs(t, b, 0, 100)
	book.wait(t, 100, map[string]int{"stays": 2, "back": 2})
	if _, now := stays.client.GroupMetadata(); now != epoch {
		t.Errorf("stays is in epoch %d, was in %d", now, epoch)
	}
}
