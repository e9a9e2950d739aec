package group

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
	"pgregory.net/rapid"

	"strandline.dev/internal/kafka"
)

// mixedSim is clients of both protocols in one group, which come, go and change their protocol, under the faults of consumerSim but for late commits: the
// group goes from one protocol to the other as they do.
type mixedSim struct {
	*world
	rt      *rapid.T
	clients []*mixedClient
	catalog testCatalog
	token   uint64
	asked   map[uint64]*mixedClient
	late    []mixedRequest
	parked  []parkedReply
	kept    int
	whole   [][2]int
	next    int64
	acked   map[int32]int64
	losses  bool
}

type mixedRequest struct {
	from *mixedClient
	id   string
	gen  Generation
	ev   Event
}

// mixedKind is how a client shares partitions.
type mixedKind uint8

const (
	byHeartbeat mixedKind = iota // the consumer protocol
	eager                        // the classic one: owns nothing while it joins
	cooperative                  // the classic one: keeps what it owns and gives up what it is not given again
)

// mixedClient is one client. Its generation is also its epoch.
type mixedClient struct {
	name, instance, id string
	process            int
	kind               mixedKind
	gen                Generation
	owned              map[int32]bool
	stage              simState
	leads              []JoinedMember
	full               bool
	token              uint64
	sent               CommitOffsets
	beatAt             time.Time
}

const mixedPartitions = 5

func newMixedSim(rt *rapid.T) *mixedSim {
	s := &mixedSim{
		world: newWorld(rt, Config{}), rt: rt, catalog: testCatalog{1, map[string]byte{"t": 1}, map[string]int32{"t": mixedPartitions}},
		asked: map[uint64]*mixedClient{}, acked: map[int32]int64{}, losses: true,
	}
	s.fast = true
	s.seen = func(_ time.Duration, e Effects) { s.sort(e) }
	for i := range rapid.IntRange(2, 4).Draw(rt, "clients") {
		c := &mixedClient{name: string(rune('a' + i))}
		if i == 1 {
			c.instance = "static"
		}
		s.restartClient(c)
		s.clients = append(s.clients, c)
	}
	return s
}

// restartClient makes a new process of a client, perhaps of the other protocol.
func (s *mixedSim) restartClient(c *mixedClient) {
	c.kind = rapid.SampledFrom([]mixedKind{byHeartbeat, byHeartbeat, eager, cooperative}).Draw(s.rt, "kind")
	c.process++
	if c.id = ""; c.kind == byHeartbeat {
		c.id = fmt.Sprintf("%s%d", c.name, c.process)
	}
	c.drop()
}

// drop is what a client does that is out: it owns nothing and joins again.
func (c *mixedClient) drop() {
	c.gen, c.owned, c.stage, c.full = NoGeneration, map[int32]bool{}, simIdle, true
	if c.kind == byHeartbeat {
		c.gen = 0
	}
}

func (s *mixedSim) sort(e Effects) {
	if n := len(e.Records); n > 1 && keyVersion(e.Records[0].Key) != consumerEpochKey && keyVersion(e.Records[0].Key) != groupKeyVersion {
		s.whole = append(s.whole, [2]int{len(s.log) - n, len(s.log)})
	}
	for _, r := range e.Replies {
		if r.AfterCommit {
			s.parked = append(s.parked, parkedReply{len(s.log), r})
		} else {
			s.deliver(r)
		}
	}
	s.checkBooks()
}

// cut is where the log can end at the latest if it ends at or before at.
func (s *mixedSim) cut(at int) int {
	for _, r := range s.whole {
		if r[0] < at && at < r[1] {
			return r[0]
		}
	}
	return at
}

func (s *mixedSim) commit(upTo int) {
	s.kept = max(s.kept, s.cut(upTo))
	for len(s.parked) > 0 && s.parked[0].at <= s.kept {
		r := s.parked[0].reply
		s.parked = s.parked[1:]
		s.deliver(r)
	}
}

// failover replaces the coordinator by one that knows what was committed, and perhaps some records more.
func (s *mixedSim) failover(kept int) {
	s.parked = nil
	for _, token := range slices.Sorted(maps.Keys(s.asked)) {
		s.giveUp(token)
	}
	kept = s.cut(kept)
	s.restart(len(s.log)-kept, rapid.Bool().Draw(s.rt, "compact"))
	s.kept, s.whole = min(kept, len(s.log)), nil
	s.checkReplay()
}

func (s *mixedSim) giveUp(token uint64) {
	c := s.asked[token]
	if c == nil {
		return
	}
	delete(s.asked, token)
	c.token, c.full = 0, true
	switch c.stage {
	case simJoining:
		c.stage = simIdle
	case simSyncing:
		c.stage = simJoined
	}
}

func (s *mixedSim) ask(c *mixedClient, make func(token uint64) Event) {
	s.token++
	c.token = s.token
	s.asked[s.token] = c
	ev := make(s.token)
	if s.late = append(s.late, mixedRequest{c, c.id, c.gen, ev}); len(s.late) > 20 {
		s.late = s.late[1:]
	}
	s.do(ev)
}

func (s *mixedSim) deliver(r Reply) {
	c := s.asked[r.Token]
	if c == nil {
		return
	}
	if s.losses && rapid.IntRange(0, 7).Draw(s.rt, "lost") == 0 {
		s.giveUp(r.Token)
		return
	}
	delete(s.asked, r.Token)
	c.token = 0
	switch r := r.Response.(type) {
	case *ConsumerHeartbeatReply:
		if !s.failed(c, r.Code) {
			c.gen = Generation(r.Epoch)
			if r.Assigned != nil {
				s.given(c, numbersOf(r.Assigned))
			}
		}
	case *JoinReply:
		c.stage = simIdle
		if r.Code == kafka.MemberIDRequired {
			c.id = r.MemberID
		} else if !s.failed(c, r.Code) {
			c.id, c.gen, c.leads, c.stage = r.MemberID, r.Generation, nil, simJoined
			if r.Leader == r.MemberID && !r.SkipAssign {
				c.leads = r.Members
			}
		}
	case *SyncReply:
		c.stage = simIdle
		if !s.failed(c, r.Code) {
			s.synced(c, r)
		}
	case *HeartbeatReply:
		s.failed(c, r.Code)
	case *CommitReply:
		for i, p := range r.Topics[0].Partitions {
			if p.Code == kafka.None {
				s.acked[p.Partition] = max(s.acked[p.Partition], int64(c.sent.Topics[0].Partitions[i].Offset))
			} else if p.Code != kafka.StaleMemberEpoch {
				s.failed(c, p.Code)
				return
			}
		}
	}
}

func numbersOf(list []kafka.TopicPartition) (out []int32) {
	for _, tp := range list {
		out = append(out, tp.Partition)
	}
	return out
}

// failed reacts to an error as clients do.
func (s *mixedSim) failed(c *mixedClient, code kafka.ErrorCode) bool {
	switch code {
	case kafka.None:
		return false
	case kafka.RebalanceInProgress:
		c.stage = simIdle
	case kafka.UnreleasedInstanceID:
		c.full = true
	case kafka.FencedInstanceID:
		s.restartClient(c)
	case kafka.UnknownMemberID:
		if c.drop(); c.kind != byHeartbeat {
			c.id = ""
		}
	default:
		c.drop()
	}
	return true
}

// synced takes in an assignment of the classic protocol. A cooperative client that is to give something up does, and joins again.
func (s *mixedSim) synced(c *mixedClient, r *SyncReply) {
	var a kmsg.ConsumerMemberAssignment
	if len(r.Assignment) > 0 {
		must(a.ReadFrom(r.Assignment))
	}
	var told []int32
	for _, t := range a.Topics {
		told = append(told, t.Partitions...)
	}
	c.stage = simStable
	before := c.owned
	s.given(c, told)
	for p := range before {
		if !c.owned[p] {
			c.stage = simIdle
		}
	}
}

// given checks P29 for what a client was just told, and lets it own that and nothing else. Another owns what it believes to own while the coordinator has
// not ended its membership, in the generation or epoch in which it believes to.
func (s *mixedSim) given(c *mixedClient, told []int32) {
	for _, p := range told {
		for _, other := range s.clients {
			if other != c && other.owned[p] && s.isOwner(other) && s.isOwner(c) {
				s.t.Fatalf("P29: %s in %d was given %d, which %s has in %d", c.id, c.gen, p, other.id, other.gen)
			}
		}
	}
	c.owned = map[int32]bool{}
	for _, p := range told {
		c.owned[p] = true
	}
}

func (s *mixedSim) isOwner(c *mixedClient) bool {
	g := s.shard.groups[simGroup]
	if g == nil {
		return false
	}
	if m := g.consumer.members[c.id]; m != nil && c.kind == byHeartbeat {
		return m.epoch >= MemberEpoch(c.gen)
	} else if m != nil {
		return MemberEpoch(c.gen) == m.epoch || MemberEpoch(c.gen) == m.previous
	}
	return g.classic.members[c.id] != nil && g.classic.generation == c.gen
}

// act lets a client do the next thing that it would do.
func (s *mixedSim) act(c *mixedClient) {
	switch {
	case c.token != 0:
	case c.kind == byHeartbeat:
		s.beat(c)
	case c.stage == simIdle:
		if c.kind == eager {
			c.owned = map[int32]bool{}
		}
		c.stage = simJoining
		s.ask(c, func(token uint64) Event { return s.join(c, token) })
	case c.stage == simJoined:
		c.stage = simSyncing
		s.ask(c, func(token uint64) Event {
			return Sync{Token: token, Group: simGroup, MemberID: c.id, InstanceID: c.instance, Generation: c.gen, Assignments: plan(c.leads), Catalog: s.catalog}
		})
	case c.stage == simStable:
		c.beatAt = s.now.Mono.Add(2 * time.Second)
		s.ask(c, func(token uint64) Event {
			return Heartbeat{Token: token, Group: simGroup, MemberID: c.id, InstanceID: c.instance, Generation: c.gen}
		})
	}
}

func (s *mixedSim) beat(c *mixedClient) {
	c.beatAt = s.now.Mono.Add(2 * time.Second)
	ev := ConsumerHeartbeat{Group: simGroup, MemberID: c.id, Epoch: MemberEpoch(c.gen), RebalanceTimeout: -1, MustHaveID: true, Catalog: s.catalog, Owned: []kafka.TopicPartition{}}
	for _, p := range slices.Sorted(maps.Keys(c.owned)) {
		ev.Owned = append(ev.Owned, kafka.TopicPartition{Topic: testID(1), Partition: p})
	}
	if c.full {
		ev.RebalanceTimeout, ev.Topics = 20*time.Second, []string{"t"}
		if c.instance != "" {
			ev.InstanceID = &c.instance
		}
	}
	c.full = false
	s.ask(c, func(token uint64) Event { ev.Token = token; return ev })
}

func (s *mixedSim) join(c *mixedClient, token uint64) Event {
	meta := kmsg.NewConsumerMemberMetadata()
	meta.Version, meta.Topics, meta.Generation = 2, []string{"t"}, int32(c.gen)
	if len(c.owned) > 0 {
		meta.OwnedPartitions = []kmsg.ConsumerMemberMetadataOwnedPartition{{Topic: "t", Partitions: slices.Sorted(maps.Keys(c.owned))}}
	}
	ev := Join{
		Token: token, Group: simGroup, MemberID: c.id, InstanceID: c.instance, ClientID: c.name, ClientHost: "/h", ProtocolType: consumerType, Catalog: s.catalog,
		Protocols: []Protocol{{Name: "plan", Metadata: meta.AppendTo(nil)}}, SessionTimeout: 10 * time.Second, RebalanceTimeout: 20 * time.Second, RequireMemberID: true,
	}
	for i := range 8 {
		ev.Random[8+i] = byte(token >> (56 - 8*i))
	}
	return ev
}

// plan shares the partitions among the members of a classic group. What one owns and another is to have goes to nobody at first.
func plan(members []JoinedMember) (out []MemberAssignment) {
	owner := map[int32]int{}
	for i, m := range members {
		said, _ := readConsumerWords(m.Metadata)
		for _, t := range said.owned {
			for _, p := range t.Partitions {
				owner[p] = i
			}
		}
	}
	for i, m := range members {
		t := kmsg.ConsumerMemberAssignmentTopic{Topic: "t"}
		for p := int32(i); p < mixedPartitions; p += int32(len(members)) {
			if o, owned := owner[p]; !owned || o == i {
				t.Partitions = append(t.Partitions, p)
			}
		}
		a := kmsg.NewConsumerMemberAssignment()
		a.Topics = append(a.Topics, t)
		out = append(out, MemberAssignment{MemberID: m.MemberID, Assignment: a.AppendTo(nil)})
	}
	return out
}

// store commits rising offsets of what a client owns, and looks at what that stored (P31).
func (s *mixedSim) store(c *mixedClient) {
	if c.token != 0 || len(c.owned) == 0 || c.kind != byHeartbeat && c.stage != simStable {
		return
	}
	t := CommitTopic{Name: "t", ID: testID(1)}
	for _, p := range slices.Sorted(maps.Keys(c.owned)) {
		s.next++
		t.Partitions = append(t.Partitions, CommitPartition{Partition: p, Offset: kafka.Offset(s.next), LeaderEpoch: kafka.NoEpoch})
	}
	owners, isOwner := map[kafka.TopicPartition]string{}, s.isOwner(c)
	if g := s.shard.groups[simGroup]; g != nil {
		owners = maps.Clone(g.consumer.owners)
	}
	before := len(s.log)
	s.ask(c, func(token uint64) Event {
		c.sent = CommitOffsets{
			Token: token, Group: simGroup, MemberID: c.id, InstanceID: c.instance, Generation: c.gen, KnowsGroupIDNotFound: true, Topics: []CommitTopic{t},
		}
		return c.sent
	})
	for _, kv := range s.log[before:] {
		tp := kafka.TopicPartition{Topic: testID(1), Partition: int32(kv.Key[len(kv.Key)-1])}
		if !isOwner || owners[tp] != "" && owners[tp] != c.id {
			s.t.Fatalf("P31: a commit of %s in %d (owner: %v) moved %v, which is %q's", c.id, c.gen, isOwner, tp, owners[tp])
		}
	}
}

// comesLate lets an old request be decided whose sender has another generation or is another process now. A join that says no generation is not among
// them: nothing tells it from a new one (docs/decisions/0032).
func (s *mixedSim) comesLate() {
	if len(s.late) == 0 {
		return
	}
	r := s.late[rapid.IntRange(0, len(s.late)-1).Draw(s.rt, "late")]
	if r.id == r.from.id && r.gen == r.from.gen || r.gen <= 0 || r.id == r.from.id && r.from.stage != simStable && r.from.kind != byHeartbeat {
		return
	}
	switch ev := r.ev.(type) {
	case Join:
		s.do(ev)
	case ConsumerHeartbeat:
		if g := s.shard.groups[simGroup]; g == nil || g.consumer.members[r.id] == nil || g.consumer.members[r.id].epoch != ev.Epoch {
			s.do(ev)
		}
	}
}

func (s *mixedSim) misfortune(c *mixedClient) {
	s.giveUp(c.token)
	switch rapid.IntRange(0, 3).Draw(s.rt, "misfortune") {
	case 0: // its request times out
	case 1: // it dies and starts again
		s.restartClient(c)
	default: // it leaves, and another comes
		if c.kind == byHeartbeat {
			s.do(ConsumerHeartbeat{Group: simGroup, MemberID: c.id, Epoch: LeaveEpoch, RebalanceTimeout: -1, Catalog: s.catalog})
		} else {
			s.do(Leave{Group: simGroup, Members: []LeavingMember{{MemberID: c.id, InstanceID: c.instance}}})
		}
		s.restartClient(c)
	}
}

func (s *mixedSim) step() {
	c := s.clients[rapid.IntRange(0, len(s.clients)-1).Draw(s.rt, "client")]
	switch n := rapid.IntRange(0, 19).Draw(s.rt, "what"); {
	case n < 9:
		s.act(c)
	case n < 11:
		s.store(c)
	case n < 14:
		s.commit(rapid.IntRange(s.kept, len(s.log)).Draw(s.rt, "upto"))
	case n < 16:
		s.advance(time.Duration(rapid.IntRange(0, 6_000).Draw(s.rt, "ms")) * time.Millisecond)
	case n < 17:
		s.failover(rapid.IntRange(s.kept, len(s.log)).Draw(s.rt, "kept"))
	case n < 18:
		s.comesLate()
	default:
		s.misfortune(c)
	}
}

// calm lets everything go well for a time.
func (s *mixedSim) calm(d time.Duration) {
	s.losses = false
	for end := s.now.Mono.Add(d); s.now.Mono.Before(end); {
		for _, c := range s.clients {
			if c.kind != byHeartbeat && c.stage != simStable || !s.now.Mono.Before(c.beatAt) {
				s.act(c)
			}
			s.commit(len(s.log))
		}
		s.advance(time.Second)
	}
}

// checkConverged checks P34: the group is of the type that its members want, everybody is in it, and every partition has one owner who knows it.
func (s *mixedSim) checkConverged() Generation {
	g := s.shard.groups[simGroup]
	owned, isConsumer := map[int32]string{}, false
	for _, c := range s.clients {
		isConsumer = isConsumer || c.kind == byHeartbeat
		if !s.isOwner(c) {
			s.t.Fatalf("P34: client %+v is not in the group", c)
		}
		for p := range c.owned {
			if owned[p] != "" {
				s.t.Fatalf("P34: %d is owned by %s and %s", p, owned[p], c.id)
			}
			owned[p] = c.id
		}
	}
	if len(owned) != mixedPartitions || len(g.consumer.members)+len(g.classic.members) != len(s.clients) || isConsumer != g.consumer.isThere() {
		s.t.Fatalf("P34: owned are %v, %d and %d members of %d, a consumer group: %v", owned, len(g.consumer.members), len(g.classic.members), len(s.clients), isConsumer)
	}
	if isConsumer {
		return Generation(g.consumer.epoch)
	}
	return g.classic.generation
}

// TestP29_P30_P31_P33_P34_ConversionChurn is TestP29_P30_P31_P33_P34_Churn for groups whose members speak both protocols and change between them.
func TestP29_P30_P31_P33_P34_ConversionChurn(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := newMixedSim(rt)
		for range rapid.IntRange(10, 200).Draw(rt, "steps") {
			s.step()
		}
		s.checkReplay()
		s.calm(3 * time.Minute)
		gen := s.checkConverged()
		s.calm(3 * time.Minute)
		if again := s.checkConverged(); again != gen {
			rt.Fatalf("P34: %d became %d in a calm", gen, again)
		}
		for p, floor := range s.acked {
			if o := s.shard.groups[simGroup].offsets["t"][p]; int64(o.offset) < floor {
				rt.Fatalf("P30: partition %d ends at %d, acknowledged was %d", p, o.offset, floor)
			}
		}
		s.checkReplay()
	})
}
