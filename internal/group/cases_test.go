package group

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"strandline.dev/internal/kafka"
)

// crowd drives members that behave: they join, sync and send heartbeats whenever they are due.
type crowd struct {
	*world
	group string
	token uint64
	who   map[uint64]*crowdMember
	all   []*crowdMember
	sess  time.Duration
	gens  map[Generation]bool
}

type crowdMember struct {
	group        string
	id, instance string
	gen          Generation
	state        simState
	waits, dead  bool
	beatAt       time.Time
	codes        []kafka.ErrorCode
}

func newCrowd(t *testing.T, cfg Config, session time.Duration) *crowd {
	c := &crowd{world: newWorld(t, cfg), group: simGroup, who: map[uint64]*crowdMember{}, sess: session, gens: map[Generation]bool{}}
	c.fast = true
	c.seen = func(_ time.Duration, e Effects) {
		for _, r := range e.Replies {
			if m := c.who[r.Token]; m != nil {
				delete(c.who, r.Token)
				c.heard(m, r.Response)
			}
		}
	}
	return c
}

func (c *crowd) heard(m *crowdMember, response any) {
	m.waits = false
	code := kafka.None
	switch r := response.(type) {
	case *JoinReply:
		if code = r.Code; code == kafka.None || code == kafka.MemberIDRequired {
			m.id, code = r.MemberID, kafka.None
		}
		if r.Code == kafka.None {
			m.gen, m.state = r.Generation, simJoined
			c.gens[r.Generation] = true
		}
	case *SyncReply:
		if code = r.Code; code == kafka.None {
			m.state, m.beatAt = simStable, c.now.Mono.Add(c.sess/3)
		}
	case *HeartbeatReply:
		code = r.Code
		m.beatAt = c.now.Mono.Add(c.sess / 3)
	}
	if code != kafka.None {
		m.codes = append(m.codes, code)
		m.state = simIdle
		m.dead = m.dead || code == kafka.FencedInstanceID || code == kafka.GroupMaxSizeReached
		if code == kafka.UnknownMemberID {
			m.id = ""
		}
	}
}

func (c *crowd) add(instance string) *crowdMember {
	m := &crowdMember{group: c.group, instance: instance}
	c.all = append(c.all, m)
	return m
}

func (c *crowd) act(m *crowdMember) {
	if m.dead || m.waits || m.state == simStable && c.now.Mono.Before(m.beatAt) {
		return
	}
	c.token++
	c.who[c.token] = m
	m.waits = true
	switch m.state {
	case simIdle, simJoining:
		c.do(c.join(m))
	case simJoined:
		c.do(Sync{Token: c.token, Group: m.group, MemberID: m.id, InstanceID: m.instance, Generation: m.gen})
	case simStable:
		c.do(Heartbeat{Token: c.token, Group: m.group, MemberID: m.id, InstanceID: m.instance, Generation: m.gen})
	}
}

func (c *crowd) join(m *crowdMember) Join {
	ev := Join{
		Token: c.token, Group: m.group, MemberID: m.id, InstanceID: m.instance, ClientID: "c", ClientHost: "/h", ProtocolType: "consumer",
		Protocols:      []Protocol{{Name: "range", Metadata: testMetadata("consumer", "t", &command{})}},
		SessionTimeout: c.sess, RebalanceTimeout: time.Minute, RequireMemberID: true,
	}
	for i := range 8 {
		ev.Random[8+i] = byte(c.token >> (56 - 8*i))
	}
	return ev
}

// pass lets time pass in steps; at each, everybody does what is due.
func (c *crowd) pass(d, step time.Duration) {
	for end := c.now.Mono.Add(d); c.now.Mono.Before(end); {
		for _, m := range c.all {
			c.act(m)
		}
		c.advance(step)
	}
}

func (c *crowd) phase() phase { return c.shard.groups[c.group].classic.phase }

// TestC056_TwoProcessesOfOneStaticMember: whatever the order of two processes with one instance id, at the end one is in the group and
// the other was told FENCED_INSTANCE_ID.
func TestC056_TwoProcessesOfOneStaticMember(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 56))
		c := newCrowd(t, Config{InitialDelay: time.Duration(seed%2) * time.Second}, 10*time.Second)
		c.add("")
		c.add("static-other")
		twins := []*crowdMember{c.add("static"), c.add("static")}
		for range 60 {
			c.act(c.all[rng.IntN(len(c.all))])
			c.advance(time.Duration(rng.IntN(300)) * time.Millisecond)
		}
		c.pass(time.Minute, time.Second)
		if twins[0].dead == twins[1].dead {
			t.Fatalf("seed %d: dead are %v and %v", seed, twins[0].dead, twins[1].dead)
		}
		g := c.shard.groups[c.group]
		active := twins[0]
		if active.dead {
			active = twins[1]
		}
		if m := g.classic.instances["static"]; g.classic.phase != stable || len(g.classic.members) != 3 || m.id != active.id {
			t.Fatalf("seed %d: %v with %d members", seed, g.classic.phase, len(g.classic.members))
		}
		c.checkBooks()
	}
}

// TestC060_GiantGroup: 5,000 members join within 10 s; the group is stable within 30 s after that, and the members of another
// group are answered all the time.
func TestC060_GiantGroup(t *testing.T) {
	const members = 5000
	c := newCrowd(t, Config{InitialDelay: 3 * time.Second}, 45*time.Second)
	other := c.add("")
	other.group = "other"
	for range members {
		m := c.add("")
		c.act(m)
		c.act(other)
		c.advance(2 * time.Millisecond)
	}
	c.pass(30*time.Second, time.Second)
	if len(other.codes) > 0 || other.gen != 1 || other.state != simStable {
		t.Errorf("the other group's member: %+v", other)
	}
	g := c.shard.groups[c.group]
	if g.classic.phase != stable || len(g.classic.members) != members || len(c.gens) > 2 {
		t.Fatalf("%v with %d members after generations %v", g.classic.phase, len(g.classic.members), c.gens)
	}
	c.checkBooks()
}

// TestC060_CostDoesNotGrowWithTheGroup: what one join, heartbeat or departure allocates is the same with 10 members and with 5,000.
func TestC060_CostDoesNotGrowWithTheGroup(t *testing.T) {
	cost := func(members int) (join, beat float64) {
		c := newCrowd(t, Config{InitialDelay: time.Hour}, 45*time.Second)
		for range members {
			m := c.add("")
			c.act(m)
			c.act(m)
		}
		c.seen = func(time.Duration, Effects) {}
		m := c.all[members/2]
		join = testing.AllocsPerRun(50, func() {
			c.token++
			c.do(c.join(m))
		})
		beat = testing.AllocsPerRun(50, func() {
			c.do(Heartbeat{Token: 1, Group: c.group, MemberID: m.id, Generation: 0})
		})
		return join, beat
	}
	smallJoin, smallBeat := cost(10)
	bigJoin, bigBeat := cost(5000)
	if bigJoin > smallJoin+2 || bigBeat > smallBeat+1 {
		t.Errorf("allocations of a join: %v and %v, of a heartbeat: %v and %v", smallJoin, bigJoin, smallBeat, bigBeat)
	}
}

// TestC060_FullGroupIsRefusedByName: beyond group.max.size members are told so, and the group is served.
func TestC060_FullGroupIsRefusedByName(t *testing.T) {
	c := newCrowd(t, Config{InitialDelay: time.Second, MaxSize: 100}, 10*time.Second)
	for range 150 {
		c.add("")
	}
	c.pass(time.Minute, time.Second)
	refused := 0
	for _, m := range c.all {
		if m.dead {
			refused++
		}
	}
	if refused != 50 || len(c.shard.groups[c.group].classic.members) != 100 || c.phase() != stable {
		t.Errorf("%d refused, %v with %d members", refused, c.phase(), len(c.shard.groups[c.group].classic.members))
	}
}

// TestC114_OneDeathIsOneRebalance: of 10 members one dies; in the next five minutes there is exactly one more generation.
func TestC114_OneDeathIsOneRebalance(t *testing.T) {
	c := newCrowd(t, Config{InitialDelay: time.Second}, 10*time.Second)
	for range 10 {
		c.add("")
	}
	c.pass(time.Minute, time.Second)
	before := c.shard.groups[c.group].classic.generation
	c.all[3].dead = true
	c.pass(5*time.Minute, time.Second)
	g := c.shard.groups[c.group]
	if g.classic.generation != before+1 || len(g.classic.members) != 9 || g.classic.phase != stable {
		t.Errorf("generation %d after %d, %v with %d members", g.classic.generation, before, g.classic.phase, len(g.classic.members))
	}
	c.checkBooks()
}

// TestC052_NothingExpiresWhileMembersComeAndGo: with a retention of one second (raised to 14 days) and a group that flaps for 60 days,
// no offset is lost, and a year without members ends it.
func TestC052_NothingExpiresWhileMembersComeAndGo(t *testing.T) {
	w := newWorld(t, Config{OffsetRetention: time.Second})
	w.fast = true
	join := Join{Token: 1, Group: "G", ClientID: "c", ProtocolType: "consumer", Protocols: []Protocol{{Name: "range"}}, SessionTimeout: 10 * time.Second}
	for day := range 60 {
		join.Random[0]++
		r := w.do(join).Replies[0].Response.(*JoinReply)
		w.do(Sync{Token: 2, Group: "G", MemberID: r.MemberID, Generation: r.Generation})
		if day == 0 {
			w.do(CommitOffsets{
				Token: 3, Group: "G", MemberID: r.MemberID, Generation: r.Generation,
				Topics: []CommitTopic{{Name: "t", ID: testID(1), Partitions: []CommitPartition{{Offset: 7}}}},
			})
		}
		w.advance(24 * time.Hour) // the session ends within it
		if got := w.stored("G", "t", 0); got != 7 {
			t.Fatalf("day %d: the offset is %d", day, got)
		}
	}
	w.advance(13 * 24 * time.Hour)
	if got := w.stored("G", "t", 0); got != 7 {
		t.Fatalf("13 days after the last member: the offset is %d", got)
	}
	w.advance(365 * 24 * time.Hour)
	if got := w.stored("G", "t", 0); got != kafka.NoOffset {
		t.Fatalf("a year after the last member: the offset is %d", got)
	}
}

// TestC052_NothingExpiresWhileMembersAreThere: a group that was empty before, and then is active for 60 days without a commit or a rebalance.
func TestC052_NothingExpiresWhileMembersAreThere(t *testing.T) {
	c := newCrowd(t, Config{}, 30*time.Minute)
	c.do(CommitOffsets{Group: c.group, Generation: NoGeneration, Topics: []CommitTopic{{Name: "t", ID: testID(1), Partitions: []CommitPartition{{Offset: 7}}}}})
	c.advance(13 * 24 * time.Hour)
	c.add("")
	c.pass(time.Minute, time.Second)
	c.pass(60*24*time.Hour, 10*time.Minute)
	if got := c.stored(c.group, "t", 0); got != 7 || len(c.gens) != 1 || c.phase() != stable {
		t.Errorf("the offset is %d after %d generations, %v", got, len(c.gens), c.phase())
	}
}

// TestStepCopiesWhatItKeeps: the bytes of an event belong to a request buffer, which is used again.
func TestStepCopiesWhatItKeeps(t *testing.T) {
	w := newWorld(t, Config{})
	metadata, assignment := []byte("metadata"), []byte("assignment")
	ev := goodJoin
	ev.Protocols = []Protocol{{Name: "range", Metadata: metadata}}
	m := w.do(ev).Replies[0].Response.(*JoinReply)
	copy(metadata, "XXXXXXXX")
	e := w.do(Sync{Token: 1, Group: "G", MemberID: m.MemberID, Generation: 1, Assignments: []MemberAssignment{{m.MemberID, assignment}}})
	copy(assignment, "XXXXXXXXXX")
	if got := e.Replies[0].Response.(*SyncReply).Assignment; string(got) != "assignment" {
		t.Errorf("the reply says %q", got)
	}
	d := w.do(DescribeGroups{Token: 1, Groups: []string{"G"}}).Replies[0].Response.(*DescribeReply).Groups[0].Members[0]
	if string(d.Metadata) != "metadata" || string(d.Assignment) != "assignment" {
		t.Errorf("described as %q, %q", d.Metadata, d.Assignment)
	}
}

// stored asks as a client does.
func (w *world) stored(group, topic string, partition int32) kafka.Offset {
	e := w.do(FetchOffsets{Token: 9, Group: group, Topics: []FetchTopic{{Name: topic, ID: testID(1), Partitions: []int32{partition}}}})
	return e.Replies[0].Response.(*FetchReply).Topics[0].Partitions[0].Offset
}

// TestC049_WallClockSteps: the wall clock steps back and forth by an hour and by years; sessions end on time and offsets stay.
func TestC049_WallClockSteps(t *testing.T) {
	for _, step := range []time.Duration{-time.Hour, time.Hour, -20000 * time.Hour, 20000 * time.Hour} {
		c := newCrowd(t, Config{InitialDelay: 3 * time.Second}, 10*time.Second)
		c.do(CommitOffsets{Group: "simple", Generation: NoGeneration, Topics: []CommitTopic{{Name: "t", ID: testID(1), Partitions: []CommitPartition{{Offset: 5}}}}})
		m := c.add("")
		c.act(m)
		c.act(m)
		c.stepWall(step)
		c.advance(3*time.Second - 1)
		if c.phase() != preparing {
			t.Fatalf("step %v: %v before the initial delay is over", step, c.phase())
		}
		c.advance(1)
		c.act(m)
		c.stepWall(-step)
		c.advance(10*time.Second - 1)
		if c.phase() != stable {
			t.Fatalf("step %v: %v before the session is over", step, c.phase())
		}
		c.advance(1)
		if c.phase() != empty {
			t.Fatalf("step %v: %v when the session is over", step, c.phase())
		}
		c.stepWall(step)
		c.advance(13 * 24 * time.Hour)
		if got := c.stored("simple", "t", 0); got != 5 {
			t.Errorf("step %v: the offset is %d after 13 days", step, got)
		}
	}
}

// joinCode is what a join is answered at once; None when it waits.
func joinCode(w *world, ev Join) kafka.ErrorCode {
	e := w.do(ev)
	if len(e.Replies) == 0 {
		return kafka.None
	}
	return e.Replies[0].Response.(*JoinReply).Code
}

var goodJoin = Join{Token: 1, Group: "G", ClientID: "c", ProtocolType: "consumer", Protocols: []Protocol{{Name: "range"}}, SessionTimeout: 10 * time.Second}

func TestK44_JoinRefusesSessionsAndSizes(t *testing.T) {
	w := newWorld(t, Config{})
	for _, session := range []time.Duration{0, -time.Millisecond, math.MaxInt32 * time.Millisecond, 6*time.Second - 1, 30*time.Minute + 1} {
		ev := goodJoin
		ev.SessionTimeout = session
		if code := joinCode(w, ev); code != kafka.InvalidSessionTimeout {
			t.Errorf("session %v: %v", session, code)
		}
	}
	ev := goodJoin
	ev.Protocols = nil
	metadata := make([]byte, 1<<20)
	for i := range 1000 {
		ev.Protocols = append(ev.Protocols, Protocol{Name: fmt.Sprint(i), Metadata: metadata})
	}
	if code := joinCode(w, ev); code != kafka.GroupMaxSizeReached {
		t.Errorf("1000 protocols of 1 MiB: %v", code)
	}
	ev.Protocols = []Protocol{{Name: "range", Metadata: metadata[:1<<20-5]}}
	for i := range 8 { // the record of the group would not fit
		ev.Random[0], ev.Token = byte(i), uint64(i+1)
		if code := joinCode(w, ev); (code == kafka.GroupMaxSizeReached) != (i == 7) {
			t.Errorf("member %d of 1 MiB: %v", i, code)
		}
	}
	long := strings.Repeat("x", nameBytesMax+1) // longer than a record's strings may be
	for want, change := range map[kafka.ErrorCode]func(*Join){
		kafka.InvalidRequest:            func(ev *Join) { ev.InstanceID = long },
		kafka.InconsistentGroupProtocol: func(ev *Join) { ev.ProtocolType = long },
		kafka.GroupMaxSizeReached:       func(ev *Join) { ev.Protocols = make([]Protocol, protocolsMax+1) },
	} {
		ev := goodJoin
		change(&ev)
		if code := joinCode(w, ev); code != want {
			t.Errorf("%v, want %v", code, want)
		}
	}
	ev = goodJoin
	ev.Protocols = []Protocol{{Name: long}}
	if code := joinCode(w, ev); code != kafka.InconsistentGroupProtocol {
		t.Errorf("a protocol with a long name: %v", code)
	}
	if len(w.shard.groups) != 1 {
		t.Errorf("%d groups", len(w.shard.groups))
	}
}

func TestK45_SyncRefusesForeignAndGiantAssignments(t *testing.T) {
	w := newWorld(t, Config{})
	a := w.do(goodJoin).Replies[0].Response.(*JoinReply)
	ev := goodJoin
	ev.Token, ev.Random = 2, kafka.ID{1}
	w.do(ev)
	ev.Token, ev.MemberID = 3, a.MemberID
	e := w.do(ev)
	b := e.Replies[1].Response.(*JoinReply)
	sync := func(who string, size int) kafka.ErrorCode {
		e := w.do(Sync{Token: 4, Group: "G", MemberID: who, Generation: 2, Assignments: []MemberAssignment{{MemberID: a.MemberID, Assignment: make([]byte, size)}}})
		return e.Replies[0].Response.(*SyncReply).Code
	}
	if code := sync(b.MemberID, 1); code != kafka.InvalidRequest {
		t.Errorf("a follower assigns: %v", code)
	}
	if code := sync(a.MemberID, 10<<20); code != kafka.MessageTooLarge {
		t.Errorf("10 MiB: %v", code)
	}
	if code := sync(a.MemberID, 1<<20); code != kafka.None {
		t.Errorf("1 MiB: %v", code)
	}
}

func TestK46_GroupIDsThatNoGroupHas(t *testing.T) {
	w := newWorld(t, Config{})
	long := strings.Repeat("g", 1<<20)
	simple := CommitOffsets{Token: 1, Group: long, Generation: NoGeneration, Topics: []CommitTopic{{Name: "t", Partitions: []CommitPartition{{}}}}}
	if code := w.do(simple).Replies[0].Response.(*CommitReply).Topics[0].Partitions[0].Code; code != kafka.InvalidGroupID {
		t.Errorf("a simple commit: %v", code)
	}
	if code := w.do(FetchOffsets{Token: 1, Group: long}).Replies[0].Response.(*FetchReply).Code; code != kafka.InvalidGroupID {
		t.Errorf("a fetch: %v", code)
	}
	for _, id := range []string{"", long} {
		ev := goodJoin
		ev.Group = id
		codes := []kafka.ErrorCode{
			joinCode(w, ev),
			w.do(Sync{Token: 1, Group: id}).Replies[0].Response.(*SyncReply).Code,
			w.do(Heartbeat{Token: 1, Group: id}).Replies[0].Response.(*HeartbeatReply).Code,
			w.do(Leave{Token: 1, Group: id}).Replies[0].Response.(*LeaveReply).Code,
			w.do(DeleteGroups{Token: 1, Groups: []string{id}}).Replies[0].Response.(*DeleteReply).Groups[0].Code,
			w.do(DeleteOffsets{Token: 1, Group: id}).Replies[0].Response.(*DeleteOffsetsReply).Code,
			w.do(CommitOffsets{
				Token: 1, Group: id, MemberID: "m", Generation: 1, Topics: []CommitTopic{{Name: "t", Partitions: []CommitPartition{{}}}},
			}).Replies[0].Response.(*CommitReply).Topics[0].Partitions[0].Code,
		}
		for i, code := range codes {
			if code != kafka.InvalidGroupID {
				t.Errorf("request %d with an id of %d bytes: %v", i, len(id), code)
			}
		}
	}
	if len(w.shard.groups) != 0 {
		t.Errorf("%d groups", len(w.shard.groups))
	}
}

func TestK47_HeartbeatOfTheLastGeneration(t *testing.T) {
	w := newWorld(t, Config{})
	m := w.do(goodJoin).Replies[0].Response.(*JoinReply)
	for gen, want := range map[Generation]kafka.ErrorCode{
		math.MaxInt32: kafka.IllegalGeneration, math.MinInt32: kafka.IllegalGeneration, 0: kafka.IllegalGeneration, 1: kafka.None,
	} {
		e := w.do(Heartbeat{Token: 1, Group: "G", MemberID: m.MemberID, Generation: gen})
		if code := e.Replies[0].Response.(*HeartbeatReply).Code; code != want {
			t.Errorf("generation %d: %v, want %v", gen, code, want)
		}
	}
}

func TestK49_CommitsThatNobodyCanMean(t *testing.T) {
	w := newWorld(t, Config{})
	for _, c := range []struct {
		offset   kafka.Offset
		metadata int
		want     kafka.ErrorCode
	}{
		{-2, 0, kafka.InvalidRequest},
		{-1, 0, kafka.InvalidRequest},
		{math.MaxInt64, 0, kafka.InvalidRequest},
		{5, 1 << 20, kafka.OffsetMetadataTooLarge},
		{5, 4096, kafka.None},
		{0, 0, kafka.None},
	} {
		e := w.do(CommitOffsets{Token: 1, Group: "G", Generation: NoGeneration, Topics: []CommitTopic{{
			Name: "t", ID: testID(1), Partitions: []CommitPartition{{Offset: c.offset, Metadata: strings.Repeat("x", c.metadata)}},
		}}})
		if code := e.Replies[0].Response.(*CommitReply).Topics[0].Partitions[0].Code; code != c.want {
			t.Errorf("offset %d with %d bytes: %v, want %v", c.offset, c.metadata, code, c.want)
		}
		if (c.want == kafka.None) != (len(e.Records) == 1) || e.Replies[0].AfterCommit != (c.want == kafka.None) {
			t.Errorf("offset %d with %d bytes: %d records", c.offset, c.metadata, len(e.Records))
		}
	}
}

// TestO7_ResetOfAnActiveGroupIsRefused: what the reset tools send is refused while members are there, and changes nothing.
func TestO7_ResetOfAnActiveGroupIsRefused(t *testing.T) {
	w := newWorld(t, Config{})
	m := w.do(goodJoin).Replies[0].Response.(*JoinReply)
	w.do(Sync{Token: 1, Group: "G", MemberID: m.MemberID, Generation: 1})
	commit := func(member string, gen Generation, offset kafka.Offset) kafka.ErrorCode {
		e := w.do(CommitOffsets{Token: 1, Group: "G", MemberID: member, Generation: gen, Topics: []CommitTopic{{
			Name: "t", ID: testID(1), Partitions: []CommitPartition{{Offset: offset}},
		}}})
		return e.Replies[0].Response.(*CommitReply).Topics[0].Partitions[0].Code
	}
	if code := commit(m.MemberID, 1, 82); code != kafka.None {
		t.Fatal(code)
	}
	if code := commit("", NoGeneration, 0); code != kafka.UnknownMemberID {
		t.Errorf("reset of an active group: %v", code)
	}
	if got := w.stored("G", "t", 0); got != 82 {
		t.Errorf("the offset is %d", got)
	}
	w.do(Leave{Token: 1, Group: "G", Members: []LeavingMember{{MemberID: m.MemberID}}})
	if code := commit("", NoGeneration, 0); code != kafka.None || w.stored("G", "t", 0) != 0 {
		t.Errorf("reset of an empty group: %v", code)
	}
}

// TestC062_NothingStoredIsNeverZero: without a commit the answer is -1 and no error, for groups and partitions of every kind.
func TestC062_NothingStoredIsNeverZero(t *testing.T) {
	w := newWorld(t, Config{})
	w.do(CommitOffsets{Group: "G", Generation: NoGeneration, Topics: []CommitTopic{{Name: "t", ID: testID(1), Partitions: []CommitPartition{{Offset: 3}}}}})
	for _, c := range []struct {
		group, topic string
		partition    int32
	}{{"none", "t", 0}, {"G", "t", 1}, {"G", "u", 0}, {"G", "", -1}} {
		e := w.do(FetchOffsets{Token: 1, Group: c.group, Topics: []FetchTopic{{Name: c.topic, ID: testID(1), Partitions: []int32{c.partition}}}})
		r := e.Replies[0].Response.(*FetchReply)
		if p := r.Topics[0].Partitions[0]; r.Code != kafka.None || p.Offset != kafka.NoOffset || p.LeaderEpoch != kafka.NoEpoch {
			t.Errorf("%+v: %v %+v", c, r.Code, p)
		}
		if !e.Replies[0].AfterCommit {
			t.Errorf("%+v: a read did not wait for what is appended", c)
		}
	}
}
