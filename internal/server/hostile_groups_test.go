package server

import (
	"fmt"
	"math"
	"strings"

	"github.com/twmb/franz-go/pkg/kmsg"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/wire"
)

// hostileGroups are requests to the coordinators of groups.
var hostileGroups = []hostileCase{
	{name: "K44_join_sessions_and_sizes", attack: k44},
	{name: "K45_sync_assignments", attack: k45},
	{name: "K46_group_ids", attack: k46},
	{name: "K47_heartbeat_generations", attack: func(a *attack) {
		c := a.dial()
		member, generation := joinAlone(c)
		h := kmsg.NewPtrHeartbeatRequest()
		h.Version, h.Group, h.MemberID = 4, testGroup, member
		for _, h.Generation = range []int32{maxInt32, math.MinInt32, -2, generation + 1} {
			a.code(fmt.Sprint("generation ", h.Generation), ask[*kmsg.HeartbeatResponse](c, h).ErrorCode, kafka.IllegalGeneration)
		}
		h.Generation = generation
		a.code("the right generation", ask[*kmsg.HeartbeatResponse](c, h).ErrorCode, kafka.None)
		leave(c, testGroup, member)
	}},
	{name: "K48_consumer_heartbeats", attack: k48},
}

func leave(c *testClient, group, member string) {
	l := kmsg.NewPtrLeaveGroupRequest()
	l.Version, l.Group, l.Members = 5, group, []kmsg.LeaveGroupRequestMember{{MemberID: member}}
	ask[*kmsg.LeaveGroupResponse](c, l)
}

func k44(a *attack) {
	c := a.dial()
	for _, session := range []int32{0, -1, math.MinInt32, maxInt32, 5_999, 1_800_001} {
		j := newJoin("", "range")
		j.SessionTimeoutMillis = session
		a.code(fmt.Sprint("session of ", session, " ms"), ask[*kmsg.JoinGroupResponse](c, j).ErrorCode, kafka.InvalidSessionTimeout)
	}
	j := newJoin("", names(1000)...)
	a.code("1,000 protocols", ask[*kmsg.JoinGroupResponse](c, j).ErrorCode, kafka.GroupMaxSizeReached)
	j = newJoin("", names(20)...)
	for i := range j.Protocols {
		j.Protocols[i].Metadata = make([]byte, 1<<20)
	}
	a.code("20 protocols of 1 MiB", ask[*kmsg.JoinGroupResponse](c, j).ErrorCode, kafka.GroupMaxSizeReached)
	j = newJoin("")
	a.code("no protocol", ask[*kmsg.JoinGroupResponse](c, j).ErrorCode, kafka.InconsistentGroupProtocol)
	j = newJoin("", "range")
	j.RebalanceTimeoutMillis = math.MinInt32
	got := ask[*kmsg.JoinGroupResponse](c, j)
	if got.ErrorCode == 0 {
		leave(c, testGroup, got.MemberID)
	}
}

// k45: two members; the one that does not lead hands out assignments, then the leader one that no record can hold.
func k45(a *attack) {
	lead, follow := a.dial(), a.dial()
	first, _ := joinAlone(lead)
	join := newJoin("", "range")
	id := follow.send(join)
	// The leader learns of the rebalance by its heartbeat, and joins again.
	h := kmsg.NewPtrHeartbeatRequest()
	h.Version, h.Group, h.MemberID, h.Generation = 4, testGroup, first, 1
	eventually(a, "a rebalance", func() bool { return ask[*kmsg.HeartbeatResponse](lead, h).ErrorCode != 0 })
	again := ask[*kmsg.JoinGroupResponse](lead, newJoin(first, "range"))
	joined := follow.read(join, id).(*kmsg.JoinGroupResponse)
	if again.ErrorCode != 0 || joined.ErrorCode != 0 || again.LeaderID != first {
		a.Fatalf("not two members: %+v %+v", again, joined)
	}
	steal := newSync(joined.MemberID, joined.Generation, map[string]string{first: "", joined.MemberID: "everything"})
	a.code("a member that does not lead assigns", ask[*kmsg.SyncGroupResponse](follow, steal).ErrorCode, kafka.InvalidRequest)
	giant := newSync(first, again.Generation, map[string]string{first: strings.Repeat("x", 10<<20)})
	a.code("10 MiB", ask[*kmsg.SyncGroupResponse](lead, giant).ErrorCode, kafka.MessageTooLarge)
	unknown := newSync(first, again.Generation, map[string]string{"nobody": "x"})
	unknown.Generation++
	a.code("another generation", ask[*kmsg.SyncGroupResponse](lead, unknown).ErrorCode, kafka.IllegalGeneration)
	leave(follow, testGroup, joined.MemberID)
	leave(lead, testGroup, first)
}

// k46: an id that no group can have is refused by every group API, in its highest version.
func k46(a *attack) {
	c := a.dial()
	for _, group := range []string{"", strings.Repeat("g", 1<<20)} {
		change := map[int16]func(kmsg.Request){
			wire.KeyJoinGroup:    func(r kmsg.Request) { r.(*kmsg.JoinGroupRequest).Group = group },
			wire.KeySyncGroup:    func(r kmsg.Request) { r.(*kmsg.SyncGroupRequest).Group = group },
			wire.KeyHeartbeat:    func(r kmsg.Request) { r.(*kmsg.HeartbeatRequest).Group = group },
			wire.KeyLeaveGroup:   func(r kmsg.Request) { r.(*kmsg.LeaveGroupRequest).Group = group },
			wire.KeyDeleteGroups: func(r kmsg.Request) { r.(*kmsg.DeleteGroupsRequest).Groups = []string{group} },
			wire.KeyOffsetCommit: func(r kmsg.Request) {
				r.(*kmsg.OffsetCommitRequest).Group, r.(*kmsg.OffsetCommitRequest).Generation = group, 1
			},
		}
		if group == "" {
			change[wire.KeyOffsetDelete] = func(r kmsg.Request) { r.(*kmsg.OffsetDeleteRequest).Group = group }
		} else { // without a member an offset may belong to the group "", as in Kafka
			change[wire.KeyConsumerGroupHeartbeat] = func(r kmsg.Request) { r.(*kmsg.ConsumerGroupHeartbeatRequest).Group = group }
			change[wire.KeyOffsetFetch] = func(r kmsg.Request) { r.(*kmsg.OffsetFetchRequest).Groups[0].Group = group }
		}
		for key, do := range change {
			api, _ := wire.Lookup(key)
			req := request(key, "target", a.topic, nil)
			do(req)
			req.SetVersion(api.Max)
			a.code(fmt.Sprintf("%s of an id of %d bytes", api.Name, len(group)), int16(firstError(ask[kmsg.Response](c, req))), kafka.InvalidGroupID)
		}
	}
	f := kmsg.NewPtrFindCoordinatorRequest()
	f.Version, f.CoordinatorKeys = 6, []string{strings.Repeat("g", 1<<20)}
	ask[*kmsg.FindCoordinatorResponse](c, f) // any text has a coordinator; it is asked in vain
}

// k48Heartbeats are heartbeats of consumer groups that nobody can mean, with their answers.
var k48Heartbeats = []struct {
	name    string
	epoch   int32
	pattern string // "": none
	want    kafka.ErrorCode
}{
	{"epoch -3", -3, "", kafka.InvalidRequest},
	{"the least epoch", math.MinInt32, "", kafka.InvalidRequest},
	{"epoch 10^9", 1_000_000_000, "", kafka.FencedMemberEpoch}, // as Kafka says it of an epoch that the member has not reached
	{"an expression for which others go back without end", 0, "(a+)+$", kafka.None},
	{"one that is not closed", 0, "(a+", kafka.InvalidRegularExpression},
	{"one with a look-behind", 0, "(?<=a)b", kafka.InvalidRegularExpression},
	{"one that would be 10^9 states", 0, "((a{1000}){1000}){1000}", kafka.InvalidRegularExpression},
	{"one that may repeat a million times", 0, strings.Repeat("(.?){1000}", 400), kafka.InvalidRegularExpression},
	{"one of 1 MiB", 0, strings.Repeat("a", 1<<20), kafka.InvalidRequest},
	{"one of 1 MiB that repeats itself", 0, strings.Repeat("(a+)+", 1<<20/5) + "$", kafka.InvalidRequest},
}

const k48Group = "k48"

// k48Heartbeat is one of them. Member "a" is in the group, "b" joins with an expression.
func k48Heartbeat(member string, epoch int32, pattern string) *kmsg.ConsumerGroupHeartbeatRequest {
	r := newConsumerHeartbeat(member, epoch)
	r.Group = k48Group
	if pattern != "" {
		r.SubscribedTopicNames, r.SubscribedTopicRegex = nil, &pattern
	}
	return r
}

// k48: there is a topic on which the first expression takes other engines for ever. What is refused changes nothing; what is accepted matches nothing.
func k48(a *attack) {
	c := a.dial()
	c.create(k48Topic, 1)
	members := func() string {
		d := groupRequest(wire.KeyConsumerGroupDescribe, "", kafka.TopicID{}).(*kmsg.ConsumerGroupDescribeRequest)
		d.Version, d.Groups = 1, []string{k48Group}
		var all string
		for _, m := range ask[*kmsg.ConsumerGroupDescribeResponse](c, d).Groups[0].Members {
			all += fmt.Sprint(m.MemberID, m.MemberEpoch, m.Assignment.TopicPartitions, " ")
		}
		return all
	}
	a.code("a member joins", ask[*kmsg.ConsumerGroupHeartbeatResponse](c, k48Heartbeat("a", 0, "")).ErrorCode, kafka.None)
	for _, one := range k48Heartbeats {
		member, before := "a", members()
		if one.pattern != "" {
			member = "b"
		}
		r := ask[*kmsg.ConsumerGroupHeartbeatResponse](c, k48Heartbeat(member, one.epoch, one.pattern))
		a.code(one.name, r.ErrorCode, one.want)
		if r.ErrorCode == 0 {
			if r.Assignment == nil || len(r.Assignment.Topics) != 0 {
				a.Errorf("%s: it is given %+v", one.name, r.Assignment)
			}
			ask[*kmsg.ConsumerGroupHeartbeatResponse](c, k48Heartbeat(member, -1, ""))
		} else if after := members(); after != before || !strings.HasPrefix(before, "a") {
			a.Errorf("%s: the group was %q and is %q", one.name, before, after)
		}
	}
	ask[*kmsg.ConsumerGroupHeartbeatResponse](c, k48Heartbeat("a", -1, ""))
}

// k48Topic is a name that (a+)+$ does not match, as it finds at the end.
var k48Topic = strings.Repeat("a", 240) + "_"
