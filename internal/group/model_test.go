package group

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"strandline.dev/internal/kafka"
)

const (
	simPartitions = 6
	simGroup      = "G"
)

// simulation is clients, a coordinator that commits late and is replaced, and a network that loses replies, delays requests until their sender
// has given them up, and brings them twice. The clients behave as real ones: they revoke all when a rebalance begins, and commit only what they own.
type simulation struct {
	*world
	rt        *rapid.T
	clients   []*simClient
	token     uint64
	asked     map[uint64]*simClient
	parked    []parkedReply
	committed int // records of the log that a failover keeps
	next      int64
	sent      []Event               // the newest requests but commits
	commits   []Event               // the newest commits
	moves     [simPartitions][]move // in the order in which they were decided; a failover may have lost those that nobody was told of
	acked     [simPartitions]int    // how many of the moves there were with the newest that a client was told is stored
	granted   map[string]string     // "generation/partition" to the client that was told it owns it
	losses    bool
	session   time.Duration // of all clients
	rebalance time.Duration
}

// parkedReply waits until the log is committed up to at.
type parkedReply struct {
	at    int
	reply Reply
}

// simClient is one consumer.
type simClient struct {
	name     string
	instance string
	id       string
	gen      Generation
	owned    []int
	leads    []JoinedMember // members to assign, when it leads
	state    simState
	token    uint64
	sent     CommitOffsets
	floor    [simPartitions]int // acked when the fetch was sent
	beatAt   time.Time
	gone     bool // told that another process has its place
}

type simState uint8

const (
	simIdle simState = iota
	simJoining
	simJoined
	simSyncing
	simStable
)

func newSimulation(rt *rapid.T) *simulation {
	s := &simulation{
		world: newWorld(rt, Config{InitialDelay: time.Duration(rapid.IntRange(0, 3).Draw(rt, "delay")) * time.Second}), rt: rt,
		asked: map[uint64]*simClient{}, granted: map[string]string{}, losses: true,
	}
	s.session = time.Duration(rapid.IntRange(7, 30).Draw(rt, "session")) * time.Second
	s.rebalance = time.Duration(rapid.IntRange(3, 30).Draw(rt, "rebalance")) * time.Second
	s.fast = true
	s.seen = func(_ time.Duration, e Effects) { s.sort(e) }
	for i := range rapid.IntRange(2, 5).Draw(rt, "clients") {
		c := &simClient{name: string(rune('a' + i))}
		if i%2 == 1 {
			c.instance = "static-" + c.name
		}
		s.clients = append(s.clients, c)
	}
	return s
}

// sort parks replies or delivers them.
func (s *simulation) sort(e Effects) {
	for _, r := range e.Replies {
		if r.AfterCommit {
			s.parked = append(s.parked, parkedReply{len(s.log), r})
		} else {
			s.deliver(r)
		}
	}
	s.checkBooks()
}

// commit makes a prefix of the log durable and releases what waited for it.
func (s *simulation) commit(upTo int) {
	s.committed = max(s.committed, upTo)
	for len(s.parked) > 0 && s.parked[0].at <= s.committed {
		r := s.parked[0].reply
		s.parked = s.parked[1:]
		s.deliver(r)
	}
}

// failover replaces the coordinator: it knows what was committed, and perhaps some records more.
func (s *simulation) failover(kept int) {
	cut := len(s.log) - kept
	s.parked = nil
	for _, c := range s.clients {
		if c.token != 0 {
			s.give(c) // NOT_COORDINATOR: it asks again
		}
	}
	s.asked = map[uint64]*simClient{}
	s.restart(cut, s.rt != nil && rapid.Bool().Draw(s.rt, "compact"))
	s.committed = len(s.log)
	s.checkReplay()
}

// give lets a client forget the request that it waits for.
func (s *simulation) give(c *simClient) {
	delete(s.asked, c.token)
	c.token = 0
	switch c.state {
	case simJoining:
		c.state = simIdle
	case simSyncing:
		c.state = simJoined
	}
}

// ask sends a request of a client; make gets its token. One that is held up comes when its client has given it up, or never.
func (s *simulation) ask(c *simClient, make func(token uint64) Event) {
	s.token++
	c.token = s.token
	s.asked[s.token] = c
	ev := make(s.token)
	s.remember(ev)
	if s.losses && rapid.IntRange(0, 14).Draw(s.rt, "held up") == 0 {
		s.give(c)
		return
	}
	s.decide(ev)
}

// deliver brings a reply to its client, unless it is lost.
func (s *simulation) deliver(r Reply) {
	c := s.asked[r.Token]
	if c == nil {
		return
	}
	if s.losses && rapid.IntRange(0, 9).Draw(s.rt, "lost") == 0 {
		s.give(c)
		return
	}
	delete(s.asked, r.Token)
	c.token = 0
	switch r := r.Response.(type) {
	case *JoinReply:
		s.joined(c, r)
	case *SyncReply:
		s.synced(c, r)
	case *HeartbeatReply:
		c.heard(r.Code)
	case *CommitReply:
		s.committedBy(c, r)
	case *FetchReply:
		s.fetched(c, r)
	}
}

func (s *simulation) joined(c *simClient, r *JoinReply) {
	c.state = simIdle
	if r.Code != kafka.None {
		if r.Code == kafka.MemberIDRequired {
			c.id = r.MemberID
			return
		}
		c.heard(r.Code)
		return
	}
	c.id, c.gen, c.leads, c.state = r.MemberID, r.Generation, nil, simJoined
	if r.Leader == r.MemberID && !r.SkipAssign {
		c.leads = r.Members
	}
}

func (s *simulation) synced(c *simClient, r *SyncReply) {
	c.state = simIdle
	if r.Code != kafka.None {
		c.heard(r.Code)
		return
	}
	c.state, c.owned = simStable, nil
	for f := range strings.FieldsSeq(string(r.Assignment)) {
		p, err := strconv.Atoi(f)
		if err != nil {
			s.t.Fatalf("assignment %q", r.Assignment)
		}
		c.owned = append(c.owned, p)
		key := fmt.Sprintf("%d/%d", c.gen, p)
		if other, ok := s.granted[key]; ok && other != c.name {
			s.t.Fatalf("P29: %s and %s were both given partition %d in generation %d", other, c.name, p, c.gen)
		}
		s.granted[key] = c.name
	}
}

// heard reacts to an error as consumers do.
func (c *simClient) heard(code kafka.ErrorCode) {
	switch code {
	case kafka.None:
		return
	case kafka.UnknownMemberID:
		c.id = ""
	case kafka.FencedInstanceID:
		c.gone = true
	}
	c.owned, c.state = nil, simIdle
}

// committedBy takes in the answer to a commit.
func (s *simulation) committedBy(c *simClient, r *CommitReply) {
	for _, p := range r.Topics[0].Partitions {
		if p.Code != kafka.None {
			c.heard(p.Code)
			return
		}
		s.acknowledge(p.Partition, c.sent.Token)
	}
}

// fetched checks the register.
func (s *simulation) fetched(c *simClient, r *FetchReply) {
	for _, p := range r.Topics[0].Partitions {
		s.checkRegister(p.Partition, c.floor[p.Partition], p.Offset)
	}
}

// act lets a client do the next thing that it would do.
func (s *simulation) act(c *simClient) {
	if c.gone || c.token != 0 {
		return
	}
	switch c.state {
	case simIdle:
		c.state, c.owned = simJoining, nil
		s.ask(c, func(token uint64) Event { return s.join(c, token) })
	case simJoined:
		c.state = simSyncing
		s.ask(c, func(token uint64) Event { return c.sync(token) })
	case simStable:
		c.beatAt = s.now.Mono.Add(min(s.session, s.rebalance) / 3)
		s.ask(c, func(token uint64) Event {
			return Heartbeat{Token: token, Group: simGroup, MemberID: c.id, InstanceID: c.instance, Generation: c.gen}
		})
	}
}

func (s *simulation) join(c *simClient, token uint64) Event {
	return Join{
		Token: token, Random: randomOf(token), Group: simGroup, MemberID: c.id, InstanceID: c.instance, ClientID: c.name, ClientHost: "/h", ProtocolType: "consumer",
		Protocols:      []Protocol{{Name: "range", Metadata: testMetadata("consumer", "t", &command{})}},
		SessionTimeout: s.session, RebalanceTimeout: s.rebalance, RequireMemberID: true, CanSkip: true,
	}
}

// randomOf is what the coordinator draws for a request.
func randomOf(token uint64) (id kafka.ID) {
	binary.BigEndian.PutUint64(id[8:], token)
	return id
}

func (c *simClient) sync(token uint64) Event {
	ev := Sync{Token: token, Group: simGroup, MemberID: c.id, InstanceID: c.instance, Generation: c.gen}
	for i, m := range c.leads {
		var give []string
		for p := i; p < simPartitions; p += len(c.leads) {
			give = append(give, strconv.Itoa(p))
		}
		ev.Assignments = append(ev.Assignments, MemberAssignment{MemberID: m.MemberID, Assignment: []byte(strings.Join(give, " "))})
	}
	return ev
}

// commitOwned commits rising offsets for what the client owns.
func (s *simulation) commitOwned(c *simClient) {
	if c.token != 0 || c.state != simStable || len(c.owned) == 0 {
		return
	}
	t := CommitTopic{Name: "t", ID: testID(1)}
	for _, p := range c.owned {
		s.next++
		t.Partitions = append(t.Partitions, CommitPartition{Partition: int32(p), Offset: kafka.Offset(s.next), LeaderEpoch: kafka.NoEpoch})
	}
	s.ask(c, func(token uint64) Event {
		c.sent = CommitOffsets{Token: token, Group: simGroup, MemberID: c.id, InstanceID: c.instance, Generation: c.gen, Topics: []CommitTopic{t}}
		return c.sent
	})
}

// isOwner says whether the newest record of the group gives a member exactly these partitions.
func (s *simulation) isOwner(id string, gen Generation, partitions []int) bool {
	r := s.shard.groups[simGroup].stored
	var owned []string
	for _, p := range partitions {
		owned = append(owned, strconv.Itoa(p))
	}
	return r != nil && r.generation == gen && string(r.assignment(id)) == strings.Join(owned, " ")
}

func (s *simulation) fetch(c *simClient) {
	if c.token != 0 {
		return
	}
	c.floor = s.acked
	s.ask(c, func(token uint64) Event {
		return FetchOffsets{Token: token, Group: simGroup, Topics: []FetchTopic{{Name: "t", ID: testID(1), Partitions: []int32{0, 1, 2, 3, 4, 5}}}}
	})
}

// misfortune is what may happen to a client.
func (s *simulation) misfortune(c *simClient) {
	switch rapid.IntRange(0, 4).Draw(s.rt, "misfortune") {
	case 0: // its connection breaks, and the coordinator sees it
		if token := c.token; token != 0 {
			s.give(c)
			s.do(Cancel{Token: token})
		}
	case 1: // it times out, and the coordinator does not see it
		if c.token != 0 {
			s.give(c)
		}
	case 2: // it dies and starts again
		s.give(c)
		c.id, c.owned, c.leads, c.state, c.gone = "", nil, nil, simIdle, false
	case 3: // it leaves
		s.give(c)
		s.ask(c, func(token uint64) Event {
			return Leave{Token: token, Group: simGroup, Members: []LeavingMember{{MemberID: c.id, InstanceID: c.instance}}}
		})
		s.give(c)
		c.id, c.owned, c.state, c.gone = "", nil, simIdle, false
	case 4: // an administrator resets offsets while nobody should be able to
		before := len(s.log)
		g := s.shard.groups[simGroup]
		active := g != nil && g.classic.phase != empty
		s.do(CommitOffsets{Group: simGroup, Generation: NoGeneration, Topics: []CommitTopic{{Name: "other", ID: testID(2), Partitions: []CommitPartition{{Offset: 0}}}}})
		if active && len(s.log) != before {
			s.t.Fatalf("O7: a reset was accepted while the group is active")
		}
	}
}

// step draws what happens next.
func (s *simulation) step() {
	c := s.clients[rapid.IntRange(0, len(s.clients)-1).Draw(s.rt, "client")]
	switch n := rapid.IntRange(0, 22).Draw(s.rt, "what"); {
	case n < 9:
		s.act(c)
	case n < 11:
		s.commitOwned(c)
	case n < 12:
		s.fetch(c)
	case n < 14:
		s.commit(rapid.IntRange(s.committed, len(s.log)).Draw(s.rt, "upto"))
	case n < 17:
		s.advance(time.Duration(rapid.IntRange(0, 6000).Draw(s.rt, "ms")) * time.Millisecond)
	case n < 18:
		s.failover(rapid.IntRange(s.committed, len(s.log)).Draw(s.rt, "kept"))
	case n < 21:
		s.comesLate()
	default:
		s.misfortune(c)
	}
}

// calm lets everything go well for a time: all clients act, all replies arrive.
func (s *simulation) calm(d time.Duration) {
	s.losses = false
	for end := s.now.Mono.Add(d); s.now.Mono.Before(end); {
		for _, c := range s.clients {
			if c.gone {
				c.gone, c.id, c.state = false, "", simIdle
			}
			if c.state != simStable || !s.now.Mono.Before(c.beatAt) {
				s.act(c)
			}
			s.commit(len(s.log))
		}
		s.advance(time.Second)
	}
}

// checkConverged checks P34: stable, everybody in it, each partition with exactly one owner who knows it.
func (s *simulation) checkConverged() Generation {
	g := s.shard.groups[simGroup]
	if g.classic.phase != stable || len(g.classic.members) != len(s.clients) {
		s.t.Fatalf("P34: %v with %d members of %d after a calm", g.classic.phase, len(g.classic.members), len(s.clients))
	}
	var owned []int
	for _, c := range s.clients {
		if c.state != simStable || c.gen != g.classic.generation || !s.isOwner(c.id, c.gen, c.owned) {
			s.t.Fatalf("P34: client %+v in generation %d", c, g.classic.generation)
		}
		owned = append(owned, c.owned...)
	}
	slices.Sort(owned)
	if !slices.Equal(owned, []int{0, 1, 2, 3, 4, 5}) {
		s.t.Fatalf("P34: owned are %v", owned)
	}
	return g.classic.generation
}

// TestP29_P30_P31_P33_P34_Churn lets clients with lost replies, late and repeated requests, restarts and departures meet a coordinator that fails
// over, and checks at every step that a partition is given to one client in a generation (P29), that acknowledged offsets stay (P30, P32), that
// requests of another generation or of who is no member change nothing (P31), that the log gives the same state (P33), and at the end that calm
// converges (P34).
func TestP29_P30_P31_P33_P34_Churn(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := newSimulation(rt)
		for range rapid.IntRange(10, 150).Draw(rt, "steps") {
			s.step()
		}
		s.checkReplay()
		s.calm(2 * time.Minute)
		gen := s.checkConverged()
		s.calm(5 * time.Minute)
		if again := s.checkConverged(); again != gen {
			rt.Fatalf("P34, C114: generation %d became %d in a calm", gen, again)
		}
		for p, acked := range s.acked {
			s.checkRegister(int32(p), acked, s.shard.groups[simGroup].offsets["t"][int32(p)].offset)
		}
		s.checkReplay()
	})
}
