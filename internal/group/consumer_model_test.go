package group

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"strandline.dev/internal/kafka"
)

// consumerSim is members of a consumer group, a coordinator that commits late and is replaced, and a network. What may happen: an answer
// is lost; a member falls silent, dies, starts again, leaves, changes what it reads; topics grow; the coordinator fails over and loses what was
// not committed; a request that its sender gave up is decided later, when its member has another epoch or is gone by then. (Within one epoch
// the requests of a member are decided in their order: a connection keeps it, and a shard too.)
type consumerSim struct {
	*world
	rt      *rapid.T
	clients []*simConsumer
	catalog testCatalog
	token   uint64
	asked   map[uint64]*simRequest
	late    []*simRequest
	parked  []parkedReply
	kept    int      // records of the log that a failover keeps
	whole   [][2]int // ranges of the log that are there or not: steps that begin no epoch
	next    int64
	acked   map[kafka.TopicPartition]int64  // the newest offset that a member was told is stored
	voided  map[kafka.TopicPartition]uint64 // answers to commits up to this token say nothing any more: an older commit came late
	losses  bool
}

// simRequest is a request with what its sender was when it was sent.
type simRequest struct {
	from  *simConsumer
	id    string
	epoch MemberEpoch
	ev    Event
}

// simConsumer is one member. It gives up at once what an answer takes from it and tells so with its next heartbeat, or holds on for a while.
type simConsumer struct {
	name     string
	instance string
	process  int
	id       string
	epoch    MemberEpoch
	topics   []string
	owned    map[kafka.TopicPartition]bool
	told     []kafka.TopicPartition // by the newest answer
	slow     bool                   // holds on to what it is to give up
	full     bool                   // the next heartbeat tells all
	tell     bool                   // it tells what it owns
	token    uint64
	beatAt   time.Time
}

func newConsumerSim(rt *rapid.T) *consumerSim {
	s := &consumerSim{
		world: newWorld(rt, Config{Assignors: []string{rapid.SampledFrom([]string{uniformAssignor, rangeAssignor}).Draw(rt, "assignor")}}), rt: rt,
		catalog: testCatalog{1, map[string]byte{"t": 1, "u": 2}, map[string]int32{"t": 4, "u": 2}},
		asked:   map[uint64]*simRequest{}, acked: map[kafka.TopicPartition]int64{}, voided: map[kafka.TopicPartition]uint64{}, losses: true,
	}
	s.fast = true
	s.seen = func(_ time.Duration, e Effects) { s.sort(e) }
	for i := range rapid.IntRange(2, 4).Draw(rt, "clients") {
		c := &simConsumer{name: string(rune('a' + i)), topics: []string{"t"}}
		if i%2 == 1 {
			c.instance = "static-" + c.name
		}
		c.restart()
		s.clients = append(s.clients, c)
	}
	return s
}

// restart makes a new process of a client, which knows nothing.
func (c *simConsumer) restart() {
	c.process++
	c.id = fmt.Sprintf("%s%d", c.name, c.process)
	c.rejoin()
}

// rejoin is what a client does that was told it is out: it drops everything and joins again.
func (c *simConsumer) rejoin() {
	c.epoch, c.owned, c.told, c.slow, c.full, c.tell = 0, map[kafka.TopicPartition]bool{}, nil, false, true, true
}

func (s *consumerSim) sort(e Effects) {
	if n := len(e.Records); n > 1 && keyVersion(e.Records[0].Key) != consumerEpochKey {
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
	if g := s.shard.groups[simGroup]; g != nil {
		for id, m := range g.consumer.members {
			if c := &g.consumer; m.epoch > c.targetEpoch || c.targetEpoch > c.epoch {
				s.t.Fatalf("%s is in epoch %d of %d of %d", id, m.epoch, c.targetEpoch, c.epoch)
			}
		}
	}
}

// cut is where the log can end at the latest if it ends at or before at.
func (s *consumerSim) cut(at int) int {
	for _, r := range s.whole {
		if r[0] < at && at < r[1] {
			return r[0]
		}
	}
	return at
}

func keyVersion(key []byte) int16 { return int16(key[0])<<8 | int16(key[1]) }

func (s *consumerSim) commit(upTo int) {
	upTo = s.cut(upTo)
	s.kept = max(s.kept, upTo)
	for len(s.parked) > 0 && s.parked[0].at <= s.kept {
		r := s.parked[0].reply
		s.parked = s.parked[1:]
		s.deliver(r)
	}
}

// failover replaces the coordinator by one that knows what was committed, and perhaps some records more.
func (s *consumerSim) failover(kept int) {
	s.parked = nil
	for token := range s.asked {
		s.giveUp(token)
	}
	kept = s.cut(kept)
	s.restart(len(s.log)-kept, s.rt != nil && rapid.Bool().Draw(s.rt, "compact"))
	s.kept, s.whole = len(s.log), nil
	s.checkReplay()
}

// giveUp lets a client forget its request.
func (s *consumerSim) giveUp(token uint64) {
	if r := s.asked[token]; r != nil {
		r.from.token, r.from.full = 0, true
		delete(s.asked, token)
	}
}

func (s *consumerSim) ask(c *simConsumer, make func(token uint64) Event) {
	s.token++
	c.token = s.token
	r := &simRequest{from: c, id: c.id, epoch: c.epoch, ev: make(s.token)}
	s.asked[s.token] = r
	if s.late = append(s.late, r); len(s.late) > 20 {
		s.late = s.late[1:]
	}
	s.do(r.ev)
}

func (s *consumerSim) deliver(r Reply) {
	req := s.asked[r.Token]
	if req == nil {
		return
	}
	if s.losses && rapid.IntRange(0, 7).Draw(s.rt, "lost") == 0 {
		s.giveUp(r.Token)
		return
	}
	c := req.from
	delete(s.asked, r.Token)
	c.token = 0
	switch r := r.Response.(type) {
	case *ConsumerHeartbeatReply:
		s.heard(c, r)
	case *CommitReply:
		sent := req.ev.(CommitOffsets)
		for i, p := range r.Topics[0].Partitions {
			tp := kafka.TopicPartition{Topic: sent.Topics[0].ID, Partition: p.Partition}
			if p.Code == kafka.None && sent.Token > s.voided[tp] {
				s.acked[tp] = max(s.acked[tp], int64(sent.Topics[0].Partitions[i].Offset))
			}
		}
	}
}

// heard takes in an answer to a heartbeat (P29: nobody else may own what it gives).
func (s *consumerSim) heard(c *simConsumer, r *ConsumerHeartbeatReply) {
	switch r.Code {
	case kafka.None:
	case kafka.UnreleasedInstanceID:
		c.full = true
		return
	case kafka.FencedInstanceID:
		c.restart()
		return
	default:
		c.rejoin()
		return
	}
	if r.Epoch < c.epoch {
		s.t.Fatalf("%s went from epoch %d to %d", c.id, c.epoch, r.Epoch)
	}
	c.epoch = r.Epoch
	if r.Assigned == nil {
		return
	}
	c.told = r.Assigned
	s.checkGiven(c)
	c.slow = s.losses && rapid.IntRange(0, 2).Draw(s.rt, "slow") == 0
	s.settle(c)
}

// settle brings what a client owns to what it was told, all of it or only what is new.
func (s *consumerSim) settle(c *simConsumer) {
	for tp := range maps.Keys(c.owned) {
		if !slices.Contains(c.told, tp) && !c.slow {
			delete(c.owned, tp)
			c.tell = true
		}
	}
	for _, tp := range c.told {
		if !c.owned[tp] {
			c.owned[tp], c.tell = true, true
		}
	}
}

// checkGiven checks P29 for what a client was just told. An answer to one that was taken out meanwhile, which it has not heard, gives nothing:
// it may read on until its next heartbeat, as any silent member, and what it commits is refused.
func (s *consumerSim) checkGiven(c *simConsumer) {
	if !s.isMember(c) {
		return
	}
	for _, tp := range c.told {
		for _, other := range s.clients {
			if other != c && other.owned[tp] && s.isMember(other) {
				s.t.Fatalf("P29: %s was given %v, which %s owns in epoch %d", c.id, tp, other.id, other.epoch)
			}
		}
	}
}

// isMember says whether the coordinator has not ended the membership that a client believes to have.
func (s *consumerSim) isMember(c *simConsumer) bool {
	g := s.shard.groups[simGroup]
	if g == nil {
		return false
	}
	m := g.consumer.members[c.id]
	return m != nil && m.epoch >= c.epoch
}

func (s *consumerSim) beat(c *simConsumer) {
	if c.token != 0 {
		return
	}
	if c.slow && (!s.losses || rapid.Bool().Draw(s.rt, "give")) {
		c.slow = false
		s.settle(c)
	}
	c.beatAt = s.now.Mono.Add(5 * time.Second)
	ev := ConsumerHeartbeat{Group: simGroup, MemberID: c.id, Epoch: c.epoch, ClientID: c.name, RebalanceTimeout: -1, MustHaveID: true, Catalog: s.catalog}
	if c.full {
		ev.RebalanceTimeout, ev.Topics = 20*time.Second, c.topics
		if c.instance != "" {
			ev.InstanceID = &c.instance
		}
	}
	if c.full || c.tell {
		ev.Owned = slices.AppendSeq([]kafka.TopicPartition{}, maps.Keys(c.owned))
		slices.SortFunc(ev.Owned, comparePartitions)
	}
	c.full, c.tell = false, false
	s.ask(c, func(token uint64) Event { ev.Token = token; return ev })
}

// store commits rising offsets of what a client owns (P31: what is stored is nobody else's).
func (s *consumerSim) store(c *simConsumer) {
	if c.token != 0 || len(c.owned) == 0 {
		return
	}
	t := CommitTopic{Name: "t", ID: testID(1)}
	for p := range s.catalog.parts["t"] {
		if c.owned[kafka.TopicPartition{Topic: t.ID, Partition: p}] {
			s.next++
			t.Partitions = append(t.Partitions, CommitPartition{Partition: p, Offset: kafka.Offset(s.next), LeaderEpoch: kafka.NoEpoch})
		}
	}
	s.checkCommit(c.id, func() {
		s.ask(c, func(token uint64) Event {
			return CommitOffsets{Token: token, Group: simGroup, MemberID: c.id, Generation: Generation(c.epoch), KnowsGroupIDNotFound: true, Topics: []CommitTopic{t}}
		})
	})
}

// checkCommit looks at what a commit stored.
func (s *consumerSim) checkCommit(id string, do func()) {
	owners := map[kafka.TopicPartition]string{}
	isMember := false
	if g := s.shard.groups[simGroup]; g != nil {
		owners, isMember = maps.Clone(g.consumer.owners), g.consumer.members[id] != nil
	}
	before := len(s.log)
	do()
	for _, kv := range s.log[before:] {
		tp := kafka.TopicPartition{Topic: testID(1), Partition: int32(kv.Key[len(kv.Key)-1])}
		if owner := owners[tp]; !isMember || owner != "" && owner != id {
			s.t.Fatalf("P31: a commit of %s (member: %v) moved %v, which is %q's", id, isMember, tp, owner)
		}
	}
}

// comesLate lets an old request be decided whose sender has another epoch or is another process now.
func (s *consumerSim) comesLate() {
	if len(s.late) == 0 {
		return
	}
	r := s.late[rapid.IntRange(0, len(s.late)-1).Draw(s.rt, "late")]
	if g := s.shard.groups[simGroup]; r.epoch == JoinEpoch || g != nil && g.consumer.members[r.id] != nil && g.consumer.members[r.id].epoch == r.epoch {
		return
	}
	if ev, ok := r.ev.(ConsumerHeartbeat); ok && ev.Topics != nil && !slices.Equal(ev.Topics, r.from.topics) {
		return // as a late join: what a member says about itself has no number, so an older word passes for a newer one (docs/deviations.md)
	}
	if ev, ok := r.ev.(CommitOffsets); ok {
		for _, p := range ev.Topics[0].Partitions { // the sender itself may move its offset back, also one whose answer still waits for its commit
			tp := kafka.TopicPartition{Topic: testID(1), Partition: p.Partition}
			s.acked[tp], s.voided[tp] = 0, s.token
		}
		s.checkCommit(r.id, func() { s.do(ev) })
		return
	}
	s.do(r.ev)
}

func (s *consumerSim) misfortune(c *simConsumer) {
	switch rapid.IntRange(0, 4).Draw(s.rt, "misfortune") {
	case 0: // its request times out
		s.giveUp(c.token)
	case 1: // it dies and starts again
		s.giveUp(c.token)
		c.restart()
	case 2: // it leaves
		s.giveUp(c.token)
		epoch := LeaveEpoch
		ev := ConsumerHeartbeat{Group: simGroup, MemberID: c.id, Epoch: epoch, RebalanceTimeout: -1, Catalog: s.catalog}
		if c.instance != "" {
			ev.Epoch, ev.InstanceID = LeaveStaticEpoch, &c.instance
		}
		c.owned = map[kafka.TopicPartition]bool{}
		s.do(ev)
		c.restart()
	case 3: // it reads something else
		c.topics = rapid.SampledFrom([][]string{{"t"}, {"t", "u"}, {"u"}}).Draw(s.rt, "topics")
		c.full = true
	case 4: // a topic grows
		s.catalog.parts = maps.Clone(s.catalog.parts)
		s.catalog.parts["t"] = min(s.catalog.parts["t"]+1, 7)
		s.catalog.version++
	}
}

func (s *consumerSim) step() {
	c := s.clients[rapid.IntRange(0, len(s.clients)-1).Draw(s.rt, "client")]
	switch n := rapid.IntRange(0, 19).Draw(s.rt, "what"); {
	case n < 9:
		s.beat(c)
	case n < 11:
		s.store(c)
	case n < 14:
		s.commit(rapid.IntRange(s.kept, len(s.log)).Draw(s.rt, "upto"))
	case n < 16:
		s.advance(time.Duration(rapid.IntRange(0, 12_000).Draw(s.rt, "ms")) * time.Millisecond)
	case n < 17:
		s.failover(rapid.IntRange(s.kept, len(s.log)).Draw(s.rt, "kept"))
	case n < 18:
		s.comesLate()
	default:
		s.misfortune(c)
	}
}

// calm lets everything go well for a time.
func (s *consumerSim) calm(d time.Duration) {
	s.losses = false
	for end := s.now.Mono.Add(d); s.now.Mono.Before(end); {
		for _, c := range s.clients {
			if !s.now.Mono.Before(c.beatAt) {
				s.beat(c)
			}
			s.commit(len(s.log))
		}
		s.advance(time.Second)
	}
}

// checkConverged checks P34: everybody is in the group, and what they read is owned once, by who knows it.
func (s *consumerSim) checkConverged() MemberEpoch {
	g := &s.shard.groups[simGroup].consumer
	if g.state() != "Stable" || len(g.members) != len(s.clients) {
		s.t.Fatalf("P34: %s with %d members of %d after a calm", g.state(), len(g.members), len(s.clients))
	}
	owned, wanted := map[kafka.TopicPartition]bool{}, map[kafka.TopicPartition]bool{}
	for _, c := range s.clients {
		m := g.members[c.id]
		if m == nil || m.epoch != c.epoch || !maps.Equal(c.owned, owns(m)) {
			s.t.Fatalf("P34: client %+v is member %+v", c, m)
		}
		maps.Copy(owned, c.owned)
		for _, name := range c.topics {
			for p := range s.catalog.parts[name] {
				wanted[kafka.TopicPartition{Topic: testID(s.catalog.topics[name]), Partition: p}] = true
			}
		}
	}
	if !maps.Equal(owned, wanted) {
		s.t.Fatalf("P34: owned are %v of %v", owned, wanted)
	}
	return g.epoch
}

func owns(m *consumerMember) map[kafka.TopicPartition]bool {
	out := map[kafka.TopicPartition]bool{}
	for tp := range m.held() {
		out[tp] = true
	}
	return out
}

// TestP29_P30_P31_P33_P34_ConsumerChurn is TestP29_P30_P31_P33_P34_Churn for consumer groups, under the faults of consumerSim. It checks at every step
// that nobody is given what another member owns (P29, C057), that commits move only what is the sender's or nobody's (P31), that what was
// acknowledged stays (P30), that the log gives the same state (P33), and at the end that calm converges and stays so (P34).
func TestP29_P30_P31_P33_P34_ConsumerChurn(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := newConsumerSim(rt)
		for range rapid.IntRange(10, 200).Draw(rt, "steps") {
			s.step()
		}
		s.checkReplay()
		s.calm(3 * time.Minute)
		epoch := s.checkConverged()
		s.calm(5 * time.Minute)
		if again := s.checkConverged(); again != epoch {
			rt.Fatalf("P34: epoch %d became %d in a calm", epoch, again)
		}
		for tp, floor := range s.acked {
			if o := s.shard.groups[simGroup].offsets["t"][tp.Partition]; int64(o.offset) < floor {
				rt.Fatalf("P30: partition %d ends at %d, acknowledged was %d", tp.Partition, o.offset, floor)
			}
		}
		s.checkReplay()
	})
}

// TestR56_Assignors gives random groups to both assignors: every partition that somebody reads has one owner, who reads it; members that
// read the same differ by at most one partition (uniform); and what was balanced stays when assigned again.
func TestR56_Assignors(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 1))
		partitions := map[kafka.TopicID]int32{}
		for i := range byte(1 + r.IntN(4)) {
			partitions[testID(i+1)] = int32(r.IntN(9))
		}
		all := slices.SortedFunc(maps.Keys(partitions), func(a, b kafka.TopicID) int { return int(a[15]) - int(b[15]) })
		same, shared := r.IntN(2) == 0, newTopicSet(all)
		var members []assignable
		for i := range 1 + r.IntN(6) {
			m := assignable{id: fmt.Sprint("m", i), topics: shared}
			if !same {
				m.topics = newTopicSet(slices.DeleteFunc(slices.Clone(all), func(kafka.TopicID) bool { return r.IntN(3) == 0 }))
			}
			members = append(members, m)
		}
		for name, assign := range assignors {
			first := assign(members, partitions)
			if wrong := wrongAssignment(members, partitions, first, same && name == uniformAssignor); wrong != "" {
				t.Fatalf("seed %d: %s: %s", seed, name, wrong)
			}
			for i := range members {
				members[i].has = first[members[i].id]
			}
			second := assign(members, partitions)
			for _, m := range members {
				if !slices.Equal(slices.SortedFunc(slices.Values(first[m.id]), comparePartitions), slices.SortedFunc(slices.Values(second[m.id]), comparePartitions)) {
					t.Fatalf("seed %d: %s moved %s from %v to %v", seed, name, m.id, first[m.id], second[m.id])
				}
			}
			for i := range members {
				members[i].has = nil
			}
		}
	}
}

func newTopicSet(ids []kafka.TopicID) *topicSet {
	s := &topicSet{sorted: ids, set: map[kafka.TopicID]struct{}{}}
	for _, id := range ids {
		s.set[id] = struct{}{}
	}
	return s
}

// wrongAssignment says what is wrong with an assignment; even wants members to differ by at most one partition.
func wrongAssignment(members []assignable, partitions map[kafka.TopicID]int32, given map[string][]kafka.TopicPartition, even bool) string {
	owners := map[kafka.TopicPartition]string{}
	least, most := 1<<30, 0
	for _, m := range members {
		least, most = min(least, len(given[m.id])), max(most, len(given[m.id]))
		for _, tp := range given[m.id] {
			if _, reads := m.topics.set[tp.Topic]; !reads || owners[tp] != "" || tp.Partition >= partitions[tp.Topic] {
				return fmt.Sprintf("%v is given to %s, owner %q", tp, m.id, owners[tp])
			}
			owners[tp] = m.id
		}
	}
	want := 0
	for id, n := range partitions {
		if slices.ContainsFunc(members, func(m assignable) bool { _, reads := m.topics.set[id]; return reads }) {
			want += int(n)
		}
	}
	if len(owners) != want || even && most-least > 1 {
		return fmt.Sprintf("%d of %d partitions are given, from %d to %d a member", len(owners), want, least, most)
	}
	return ""
}
