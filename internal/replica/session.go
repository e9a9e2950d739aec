package replica

import (
	"context"
	"maps"
	"sync"
	"time"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/peer"
)

// sessions are the followers that fetch from this node, by node.
type sessions struct {
	mu sync.Mutex
	by map[kafka.NodeID]*session
	// heard is when anything was last heard from a follower; begun stands for those that have not spoken since this process began.
	heard map[kafka.NodeID]time.Time
	begun time.Time
}

// hear notes that a follower has spoken.
func (s *sessions) hear(node kafka.NodeID) {
	now := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.heard[node] = now
}

// lastHeard is when each of the nodes was last heard.
func (s *sessions) lastHeard() func(kafka.NodeID) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	heard := maps.Clone(s.heard)
	return func(n kafka.NodeID) time.Time {
		if at, ok := heard[n]; ok {
			return at
		}
		return s.begun
	}
}

// session is what a leader remembers of one follower between its fetches, so that an idle partition costs nothing in any of them: a request
// names what has changed on the follower, an answer what has changed here. A partition is in one of three states. The follower has
// everything (waiting); there is something for it (ready); or it has been given something and is to come back (neither).
//
// A follower sends one fetch at a time and counts them, so what is not under mu belongs to the one request in work. A follower that is not
// sure what the leader knows begins a new session, and the old one ends.
type session struct {
	r      *replication
	node   kafka.NodeID
	broker kafka.BrokerEpoch
	id     uint64
	wake   chan struct{}
	ended  chan struct{}
	// parts are the partitions that the follower fetches. refused are answers that its last request has brought about already.
	parts   map[kafka.TopicPartition]*followed
	refused []answerEntry

	mu struct {
		sync.Mutex
		round uint32
		ready []*followed
		// stale are partitions whose follower knows an older watermark or log start, since the first of them became so.
		stale      []*followed
		staleSince time.Time
		// poked: the follower wants an answer at once.
		poked bool
	}
}

// session finds or begins the session of a request.
func (r *replication) session(node kafka.NodeID, req *fetchRequest) (*session, answerFault) {
	if known := (*r.brokers.Load())[node]; req.broker < known.epoch {
		return nil, faultBroker
	}
	r.sessions.mu.Lock()
	defer r.sessions.mu.Unlock()
	s := r.sessions.by[node]
	if req.round == 0 {
		if s != nil {
			close(s.ended)
		}
		s = &session{
			r: r, node: node, broker: req.broker, id: req.session, wake: make(chan struct{}, 1), ended: make(chan struct{}),
			parts: make(map[kafka.TopicPartition]*followed, len(req.parts)),
		}
		r.sessions.by[node] = s
		return s, faultNone
	}
	if s == nil || s.id != req.session || s.broker != req.broker || !s.turn(req.round) {
		return nil, faultSession
	}
	return s, faultNone
}

// turn says whether it is the turn of a round, and notes that it has come.
func (s *session) turn(round uint32) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if round != s.mu.round+1 {
		return false
	}
	s.mu.round = round
	return true
}

// over says that the follower has begun another session.
func (s *session) over() bool {
	select {
	case <-s.ended:
		return true
	default:
		return false
	}
}

var requestPool = sync.Pool{New: func() any { return &fetchRequest{} }}

func newFetchRequest() peer.Message { return requestPool.Get().(*fetchRequest) }

// serveFetch answers a follower's fetch.
func (r *replication) serveFetch(ctx context.Context, from peer.Identity, m peer.Message) (peer.Message, error) {
	req := m.(*fetchRequest)
	defer requestPool.Put(req)
	r.sessions.hear(from.Node)
	a := &fetchAnswer{broker: kafka.BrokerEpoch(r.broker.Load())}
	var s *session
	if s, a.fault = r.session(from.Node, req); a.fault == faultNone {
		s.name(req)
		s.answer(ctx, req, a)
	}
	return a, nil
}

// takeProgress takes in what a follower stores. It runs in the connection's reader.
func (r *replication) takeProgress(from peer.Identity, m peer.Message) {
	r.sessions.hear(from.Node)
	report := m.(*progressReport)
	if known := (*r.brokers.Load())[from.Node]; report.broker < known.epoch {
		return
	}
	for i := range report.parts {
		if p := r.lookUp(report.parts[i].tp); p != nil {
			p.progress(from.Node, report.broker, &report.parts[i])
		}
	}
	if report.session == 0 {
		return
	}
	r.sessions.mu.Lock()
	s := r.sessions.by[from.Node]
	r.sessions.mu.Unlock()
	if s != nil && s.id == report.session {
		s.mu.Lock()
		s.mu.poked = true
		s.mu.Unlock()
		wake(s.wake)
	}
}

// name takes in what a request says has changed.
func (s *session) name(req *fetchRequest) {
	for _, tp := range req.forget {
		if f := s.parts[tp]; f != nil {
			f.p.forgetFollower(s.node)
			delete(s.parts, tp)
		}
	}
	for i := range req.parts {
		e := &req.parts[i]
		p := s.r.lookUp(e.tp)
		if p == nil {
			s.refused = append(s.refused, answerEntry{tp: e.tp, code: codeNotHeld, epoch: e.epoch, hw: kafka.NoOffset, start: kafka.NoOffset})
			continue
		}
		f := s.parts[e.tp]
		if f == nil || f.p != p {
			f = &followed{s: s, p: p, hw: kafka.NoOffset, start: kafka.NoOffset}
			s.parts[e.tp] = f
		}
		switch a, ready := p.follow(f, e, req.broker); {
		case a.code != codeOK:
			s.refused = append(s.refused, a)
		case ready:
			s.push(f)
		}
	}
}

// push lists a partition that has something for the follower. Its lock may be held.
func (s *session) push(f *followed) {
	s.mu.Lock()
	listed := f.listed
	if !listed {
		f.listed = true
		s.mu.ready = append(s.mu.ready, f)
	}
	s.mu.Unlock()
	if !listed {
		wake(s.wake)
	}
}

// fallBehind lists a partition whose follower knows an older watermark. The partition's lock is held. It wakes the parked request for the
// first of them, whose time begins to run, and for an urgent one.
func (s *session) fallBehind(f *followed, urgent bool) {
	s.mu.Lock()
	first := len(s.mu.stale) == 0
	if first {
		s.mu.staleSince = time.Now()
	}
	if urgent {
		s.mu.staleSince = time.Time{}
	}
	if !f.behind {
		f.behind = true
		s.mu.stale = append(s.mu.stale, f)
	}
	s.mu.Unlock()
	if first || urgent {
		wake(s.wake)
	}
}

// answer gathers what there is for the follower, and waits when there is nothing: until something comes, the follower asks for an answer,
// or its time is up.
func (s *session) answer(ctx context.Context, req *fetchRequest, a *fetchAnswer) {
	a.memory = fetchBuffers.Get().(*FetchBuffer)
	a.memory.begin(0)
	deadline := time.Now().Add(min(req.wait, followWaitMax))
	var timer *time.Timer
	for {
		room := s.gather(req, a)
		again, ok := s.wait(deadline, len(a.parts) > 0)
		if !ok {
			return
		}
		if room > 0 {
			again = min(again, room)
		}
		if timer == nil {
			timer = time.NewTimer(again)
			defer timer.Stop()
		} else {
			timer.Reset(again)
		}
		select {
		case <-s.wake:
		case <-timer.C:
		case <-s.ended:
			return
		case <-ctx.Done():
			return
		}
	}
}

// wait says how long to wait for more, or that the answer is due.
func (s *session) wait(deadline time.Time, something bool) (time.Duration, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if something || s.mu.poked {
		s.mu.poked = false
		return 0, false
	}
	if len(s.mu.stale) > 0 {
		if due := s.mu.staleSince.Add(watermarkEvery); due.Before(deadline) {
			return max(0, time.Until(due)), true // gather tells them then
		}
	}
	left := time.Until(deadline)
	return left, left > 0
}

// gather fills the answer with what is ready: first what has been decided, then partitions in sync, then those that catch up, under a limit
// and a pace of their own so that they never delay the others. room is how long it takes until those have room again; 0: they do not wait for it.
func (s *session) gather(req *fetchRequest, a *fetchAnswer) (room time.Duration) {
	a.parts = append(a.parts, s.refused...)
	s.refused = s.refused[:0]
	s.mu.Lock()
	ready := s.mu.ready
	s.mu.ready = nil
	for _, f := range ready {
		f.listed = false
	}
	s.mu.Unlock()
	inSync := helping{req: req, answer: a, limit: int(req.maxBytes)}
	slow, over := inSync.take(ready)
	late := slow
	if len(slow) > 0 {
		behind := helping{req: req, answer: a, limit: min(int(req.catchUpBytes), inSync.limit-inSync.bytes), catchUp: true}
		if room = s.r.pace.wait(time.Now()); room == 0 {
			_, late = behind.take(slow)
			s.r.pace.spend(behind.bytes)
		}
	}
	s.putBack(over, late)
	s.tellStale(a)
	return room
}

// helping fills an answer with records, until limit bytes are taken.
type helping struct {
	req     *fetchRequest
	answer  *fetchAnswer
	limit   int
	bytes   int
	catchUp bool
}

// take serves partitions in their order. It returns those put off and those without room. A batch above every limit goes alone, but for those that
// catch up: theirs goes with what partitions in sync have, which under steady traffic is something each time.
func (h *helping) take(ready []*followed) (slow, over []*followed) {
	a := h.answer
	for i, f := range ready {
		if len(a.parts) >= entriesMax {
			return slow, append(over, ready[i:]...)
		}
		room := fetchRoom{left: h.limit - h.bytes, atLeastOne: h.bytes == 0 && (h.catchUp || !a.carries()), dst: a.memory}
		var e answerEntry
		switch f.p.serve(f, room, int(h.req.partitionBytes), h.catchUp, &e) {
		case served:
			h.bytes += len(e.records)
			a.parts = append(a.parts, e)
		case catchingUp:
			slow = append(slow, f)
		case noRoom:
			over = append(over, f)
		}
	}
	return slow, over
}

// carries says whether there are records in the answer.
func (m *fetchAnswer) carries() bool {
	for i := range m.parts {
		if len(m.parts[i].records) > 0 {
			return true
		}
	}
	return false
}

// putBack lists partitions without room in front of those that became ready meanwhile: they come first the next time.
func (s *session) putBack(over, late []*followed) {
	if len(over)+len(late) == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	list := make([]*followed, 0, len(over)+len(late)+len(s.mu.ready))
	for _, fs := range [][]*followed{over, late} {
		for _, f := range fs {
			if !f.listed {
				f.listed = true
				list = append(list, f)
			}
		}
	}
	s.mu.ready = append(list, s.mu.ready...)
}

// tellStale adds the watermarks that the follower has not known for long enough.
func (s *session) tellStale(a *fetchAnswer) {
	s.mu.Lock()
	if len(s.mu.stale) == 0 || time.Since(s.mu.staleSince) < watermarkEvery {
		s.mu.Unlock()
		return
	}
	n := min(len(s.mu.stale), max(0, entriesMax-len(a.parts)))
	stale := s.mu.stale[:n:n]
	s.mu.stale = s.mu.stale[n:]
	for _, f := range stale {
		f.behind = false
	}
	s.mu.Unlock()
	for _, f := range stale {
		var e answerEntry
		if f.p.newsFor(f, &e) {
			a.parts = append(a.parts, e)
		}
	}
}

var fetchBuffers = sync.Pool{New: func() any { return &FetchBuffer{} }}
