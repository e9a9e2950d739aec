package server

import (
	"fmt"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/wire"
)

// Real consumers of both protocols in one group (KIP-848): members of the consumer protocol come to those of the classic one and go again, eager and
// cooperative, while records flow. At any time a partition has one owner, and no record is left out; with the last member of the consumer protocol
// the group goes back (P29, P34, R48).
func TestClients_BothProtocolsInOneGroup(t *testing.T) {
	for _, balancer := range []kgo.GroupBalancer{kgo.RangeBalancer(), kgo.CooperativeStickyBalancer()} {
		t.Run(balancer.ProtocolName(), func(t *testing.T) {
			b := newTestBroker(t, testOptions{broker: map[string]string{
				"group.initial.rebalance.delay.ms": "0", "group.consumer.heartbeat.interval.ms": "50", "offsets.topic.num.partitions": "2",
			}})
			b.dial().create(groupTopic, 4)
			book := newGroupBook()
			// The session is long: a loaded machine must not end one that the test does not end.
			start := func(name string, more ...kgo.Opt) *groupMember {
				return startMember(t, b, book, name, append(more, kgo.Balancers(balancer), kgo.SessionTimeout(10*time.Second))...)
			}
			is := func(want string) {
				t.Helper()
				eventually(t, "the group is of type "+want, func() bool { return describedType(b.dial()) == want })
			}
			produceJobs(t, b, 0, 100)
			one := start("one")
			book.wait(t, 100, map[string]int{"one": 4})
			is("classic")
			two := start("two", kgo.ServerSideBalancer())
			book.wait(t, 100, map[string]int{"one": 2, "two": 2})
			is("consumer")
			produceJobs(t, b, 100, 100)
			start("three")
			four := start("four", kgo.ServerSideBalancer())
			book.wait(t, 200, map[string]int{"one": 1, "two": 1, "three": 1, "four": 1})
			two.stop()
			produceJobs(t, b, 200, 100)
			one.stop()
			book.wait(t, 300, map[string]int{"three": 2, "four": 2})
			is("consumer")
			four.stop()
			produceJobs(t, b, 300, 100)
			book.wait(t, 400, map[string]int{"three": 4})
			is("classic")
			book.mu.Lock()
			defer book.mu.Unlock()
			for _, text := range book.wrong {
				t.Error(text)
			}
		})
	}
}

// A group of both protocols by the wire: ConsumerGroupDescribe says by which protocol a member joined, and the generation of one of the classic protocol
// is its epoch.
func TestConversion_OverTheWire(t *testing.T) {
	_, c := newGroupBroker(t)
	id := c.create("orders", 4)
	join := func(member string) *kmsg.JoinGroupResponse {
		t.Helper()
		r := ask[*kmsg.JoinGroupResponse](c, newJoin(member, "range"))
		if r.ErrorCode != 0 {
			t.Fatalf("%+v", r)
		}
		return r
	}
	if epoch, given := heard(c, newConsumerHeartbeat("x", 0)); epoch != 1 || given != "[0 1 2 3]" {
		t.Fatalf("epoch %d given %s", epoch, given)
	}
	r := join("")
	if r.Generation != 2 || r.LeaderID != "" || *r.Protocol != "range" || r.MemberID == "" {
		t.Fatalf("%+v", r)
	}
	if epoch, given := heard(c, newConsumerHeartbeat("x", 1)); epoch != 1 || given != "[0 1]" {
		t.Fatalf("epoch %d given %s", epoch, given)
	}
	if epoch, given := heard(c, owning(newConsumerHeartbeat("x", 1), id, 0, 1)); epoch != 2 || given != "[0 1]" {
		t.Fatalf("epoch %d given %s", epoch, given)
	}
	beat := kmsg.NewPtrHeartbeatRequest()
	beat.Version, beat.Group, beat.MemberID, beat.Generation = 3, testGroup, r.MemberID, 2
	if b := ask[*kmsg.HeartbeatResponse](c, beat); kafka.ErrorCode(b.ErrorCode) != kafka.RebalanceInProgress {
		t.Errorf("%+v", b)
	}
	r = join(r.MemberID)
	sync := kmsg.NewPtrSyncGroupRequest()
	sync.Version, sync.Group, sync.MemberID, sync.Generation = 3, testGroup, r.MemberID, r.Generation
	var a kmsg.ConsumerMemberAssignment
	must(t, a.ReadFrom(ask[*kmsg.SyncGroupResponse](c, sync).MemberAssignment))
	if fmt.Sprint(a.Topics[0].Topic, a.Topics[0].Partitions) != "orders[2 3]" {
		t.Errorf("%+v", a)
	}
	describe := groupRequest(wire.KeyConsumerGroupDescribe, "", kafka.TopicID{}).(*kmsg.ConsumerGroupDescribeRequest)
	describe.Version, describe.Groups = 1, []string{testGroup}
	types := map[string]int8{}
	for _, m := range ask[*kmsg.ConsumerGroupDescribeResponse](c, describe).Groups[0].Members {
		types[m.MemberID] = m.MemberType
	}
	if want := map[string]int8{"x": consumerMember, r.MemberID: classicMember}; fmt.Sprint(types) != fmt.Sprint(want) {
		t.Errorf("types %v, want %v", types, want)
	}
}
