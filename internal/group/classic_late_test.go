package group

import (
	"fmt"
	"maps"
	"slices"

	"pgregory.net/rapid"

	"strandline.dev/internal/kafka"
)

// sentMax is how many of the newest requests may come again, of commits and of all others.
const sentMax = 30

// move is an accepted commit of one partition.
type move struct {
	token  uint64
	offset int64
}

// remember keeps a request, to come late or twice.
func (s *simulation) remember(ev Event) {
	list := &s.sent
	if _, ok := ev.(CommitOffsets); ok {
		list = &s.commits
	}
	if *list = append(*list, ev); len(*list) > sentMax {
		*list = (*list)[1:]
	}
}

// comesLate has a request decided that was sent before: its sender has got its answer, or has given it up, and may be in another generation, be
// another process or be gone. Nobody waits for the answer.
func (s *simulation) comesLate() {
	list := s.sent
	if len(s.commits) > 0 && rapid.Bool().Draw(s.rt, "a commit") {
		list = s.commits
	}
	if old := s.outdated(list); len(old) > 0 {
		list = old
	}
	if len(list) == 0 {
		return
	}
	s.token++
	s.decide(withToken(rapid.SampledFrom(list).Draw(s.rt, "late"), s.token))
}

// outdated are the requests of members that are in the group still, and in another generation: chance alone brings few of them.
func (s *simulation) outdated(list []Event) (old []Event) {
	g := s.shard.groups[simGroup]
	if g == nil || rapid.Bool().Draw(s.rt, "any") {
		return nil
	}
	isOld := func(id string, gen Generation) bool {
		return g.classic.members[id] != nil && gen != g.classic.generation
	}
	for _, ev := range list {
		switch r := ev.(type) {
		case Sync:
			if isOld(r.MemberID, r.Generation) {
				old = append(old, ev)
			}
		case Heartbeat:
			if isOld(r.MemberID, r.Generation) {
				old = append(old, ev)
			}
		case CommitOffsets:
			if isOld(r.MemberID, r.Generation) {
				old = append(old, ev)
			}
		}
	}
	return old
}

// withToken is a request as it comes on another connection.
func withToken(ev Event, token uint64) Event {
	switch ev := ev.(type) {
	case Join:
		ev.Token, ev.Random = token, randomOf(token)
		return ev
	case Sync:
		ev.Token = token
		return ev
	case Heartbeat:
		ev.Token = token
		return ev
	case Leave:
		ev.Token = token
		return ev
	case CommitOffsets:
		ev.Token = token
		return ev
	case FetchOffsets:
		ev.Token = token
		return ev
	}
	panic(fmt.Sprintf("no request: %T", ev))
}

// decide has the coordinator decide on a request. One that speaks for nobody, or in another generation than the group's, does nothing at all
// (P31): no record, no change of a member, no session that lives longer.
func (s *simulation) decide(ev Event) {
	stale, before, end := s.isStale(ev), s.footprint(), len(s.log)
	s.do(ev)
	if after := s.footprint(); stale && (after != before || len(s.log) != end) {
		s.t.Fatalf("P31: %+v did something: %d records\nbefore %s\nafter  %s", ev, len(s.log)-end, before, after)
	}
	if sent, ok := ev.(CommitOffsets); ok && len(s.log) > end {
		s.moved(sent)
	}
}

// isStale says whether a request is of a member that is not in the group under this id, or of another generation.
func (s *simulation) isStale(ev Event) bool {
	c := &classicGroup{}
	if g := s.shard.groups[simGroup]; g != nil {
		c = &g.classic
	}
	isOut := func(id, instance string) bool { return c.members[id] == nil || c.members[id].instance != instance }
	switch ev := ev.(type) {
	case Join:
		return ev.MemberID != "" && c.pending[ev.MemberID] == nil && isOut(ev.MemberID, ev.InstanceID)
	case Sync:
		return ev.Generation != c.generation || isOut(ev.MemberID, ev.InstanceID)
	case Heartbeat:
		return ev.Generation != c.generation || isOut(ev.MemberID, ev.InstanceID)
	case CommitOffsets:
		return ev.Generation != c.generation || isOut(ev.MemberID, ev.InstanceID)
	case Leave:
		l := ev.Members[0]
		if l.MemberID == "" { // as an administrator removes an instance
			return c.instances[l.InstanceID] == nil
		}
		return c.pending[l.MemberID] == nil && isOut(l.MemberID, l.InstanceID)
	}
	return false
}

// footprint is all that a request could change in a group, but for what is in the log.
func (s *simulation) footprint() string {
	g := s.shard.groups[simGroup]
	if g == nil {
		return "no group"
	}
	c := &g.classic
	text := fmt.Sprintf("%v in generation %d, led by %q, pending %q, until %v and %v", c.phase, c.generation, c.leaderID(), slices.Sorted(maps.Keys(c.pending)), c.joinTimer.at, c.syncTimer.at)
	for m := range c.all() {
		text += fmt.Sprintf("; %s until %v waits for %d and %d, owes %v", m.id, m.timer.at, m.join, m.sync, m.owesSync)
	}
	return text
}

// moved takes in an accepted commit, whose sender must own what it moves by the newest record of the group (P29, P31).
func (s *simulation) moved(sent CommitOffsets) {
	var owned []int
	for _, p := range sent.Topics[0].Partitions {
		s.moves[p.Partition] = append(s.moves[p.Partition], move{sent.Token, int64(p.Offset)})
		owned = append(owned, int(p.Partition))
	}
	if !s.isOwner(sent.MemberID, sent.Generation, owned) {
		s.t.Fatalf("P31: a commit of %s in generation %d changed offsets of %v that it does not own", sent.MemberID, sent.Generation, owned)
	}
}

// acknowledge notes that a client was told that its commit is stored.
func (s *simulation) acknowledge(partition int32, token uint64) {
	i := slices.IndexFunc(s.moves[partition], func(m move) bool { return m.token == token })
	if i < 0 {
		s.t.Fatalf("P30: commit %d of partition %d was acknowledged and is not in the log", token, partition)
	}
	s.acked[partition] = max(s.acked[partition], i+1)
}

// checkRegister checks a read (P30, P32): it is of the newest move that was acknowledged when it began, or of a later one. Offsets rise but for a commit of
// a member that comes late in its own generation, which moves its place back (docs/guarantees.md).
func (s *simulation) checkRegister(partition int32, acked int, got kafka.Offset) {
	if acked == 0 {
		return
	}
	if since := s.moves[partition][acked-1:]; !slices.ContainsFunc(since, func(m move) bool { return m.offset == int64(got) }) {
		s.t.Fatalf("P30: partition %d is at %d, acknowledged was %+v and since then %+v", partition, got, since[0], since[1:])
	}
}
