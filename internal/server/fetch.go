package server

import (
	"context"
	"errors"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"strandline.dev/internal/auth"
	"strandline.dev/internal/kafka"
	"strandline.dev/internal/metadata"
	"strandline.dev/internal/record"
	"strandline.dev/internal/replica"
)

const (
	// The Fetch versions from which on: sessions and a top-level error exist, zstd is readable, topics are named by id, the leader's
	// address can be carried.
	fetchSessions    = 7
	fetchZstd        = 10
	fetchByID        = 13
	fetchReplicaTag  = 15
	fetchLeaderHints = 16
)

// fetchWork is one Fetch request from its start to its answer. It is the request's Pending while it is parked, and goes back to the
// pool when the answer has been written.
type fetchWork struct {
	server   *Server
	call     *Call
	req      *kmsg.FetchRequest
	session  *session    // nil: sessionless
	rules    *auth.Rules // by which codes were judged
	full     bool        // the answer names every partition
	unable   bool        // a partition has an error that is the cluster's
	parts    []fetchPart
	codes    []kafka.ErrorCode // of each part that cannot be read
	items    []replica.FetchItem
	index    []int       // items[i] is for parts[index[i]]
	news     []fetchNews // of outs[i]
	resp     kmsg.FetchResponse
	outs     []kmsg.FetchResponseTopicPartition
	topics   []kmsg.FetchResponseTopic
	options  replica.FetchOptions
	wanted   int64 // bytes: the request's limits, before the memory budget
	minBytes int
	deadline time.Time
	paced    bool // errors that the client knows are held back
	buffer   replica.FetchBuffer
	memory   lease
	wait     *replica.FetchWait
}

// handleFetch opens or continues the session, reads, and parks the request when there is less than it wants.
func (s *Server) handleFetch(_ context.Context, call *Call) Reply {
	req := call.Request.(*kmsg.FetchRequest)
	w, _ := s.fetches.Get().(*fetchWork)
	if w == nil {
		w = &fetchWork{}
	}
	w.server, w.call, w.req = s, call, req
	w.memory = lease{b: s.answers}
	if code := w.open(); code != kafka.None {
		r := w.refused(code)
		w.release()
		return r
	}
	if call.client.Wait(metadata.QuotaFetch, call.Received) > 0 {
		r := w.throttled()
		w.release()
		return r
	}
	w.limits()
	if r, done := w.attempt(req.MaxWaitMillis <= 0); done {
		return r
	}
	return Reply{Pending: w}
}

// limits brings the request's numbers within ours (K38).
func (w *fetchWork) limits() {
	s := w.server
	w.wanted = max(1, min(int64(w.req.MaxBytes), int64(s.broker().FetchMaxBytes), s.answers.limit/fetchShare))
	if most, limited := w.call.client.Burst(metadata.QuotaFetch); limited {
		w.wanted = max(1, min(w.wanted, int64(most))) // what is owed for one answer stays small
	}
	w.minBytes = int(min(max(0, int64(w.req.MinBytes)), w.wanted))
	w.options = replica.FetchOptions{ReadCommitted: w.req.IsolationLevel == isolationReadCommitted}
	wait := min(time.Duration(w.req.MaxWaitMillis)*time.Millisecond, fetchWaitMax)
	w.deadline = time.Now().Add(wait) // from the start of the work, not from the receipt: it may have waited for its turn
}

// open judges the request and fills parts: from the request, or from the session that it continues.
func (w *fetchWork) open() kafka.ErrorCode {
	req, s := w.req, w.server
	replicaID := req.ReplicaID
	if req.Version >= fetchReplicaTag {
		replicaID = req.ReplicaState.ID
	}
	if replicaID >= 0 {
		return kafka.ClusterAuthorizationFailed // replicas do not fetch here, and nobody may pose as one (K40)
	}
	byID := req.Version >= fetchByID
	if code := w.named(byID); code != kafka.None {
		return code
	}
	owner, now := w.owner(), w.call.Received
	if req.Version < fetchSessions || req.SessionEpoch == sessionless || req.SessionEpoch == sessionOpen {
		w.full = true
		if old := s.sessions.find(req.SessionID, owner, now); req.Version >= fetchSessions && old != nil {
			s.sessions.drop(old) // both epochs end the session that is named
		}
		if req.Version >= fetchSessions && req.SessionEpoch == sessionOpen && len(w.parts) > 0 && w.memorable() {
			w.session = s.sessions.open(owner, len(w.parts), s.broker().FetchSessionSlots, byID, now)
		}
		if w.session != nil {
			w.session.update(w.parts, nil)
		}
		w.resolve(byID)
		return kafka.None
	}
	return w.proceed(owner, byID, now)
}

// proceed continues a session: the request's partitions are changes to it.
func (w *fetchWork) proceed(owner sessionOwner, byID bool, now time.Time) kafka.ErrorCode {
	s := w.server
	w.session = s.sessions.find(w.req.SessionID, owner, now)
	if w.session == nil {
		return kafka.FetchSessionIDNotFound
	}
	if code := w.session.advance(w.req.SessionEpoch, byID); code != kafka.None {
		w.session = nil
		return code
	}
	if !w.memorable() { // a full request is answered, without a session
		s.sessions.drop(w.session)
		w.session = nil
		return kafka.FetchSessionIDNotFound
	}
	left := w.session.update(w.parts, w.req.ForgottenTopics)
	if !s.sessions.resize(w.session, left) {
		w.session = nil
		return kafka.FetchSessionIDNotFound
	}
	w.parts = w.session.snapshot(w.parts[:0], s.cfg.Image())
	w.resolve(byID)
	if left == 0 { // everything is forgotten: answered as without a session
		s.sessions.drop(w.session)
		w.session, w.full = nil, true
	}
	return kafka.None
}

// named turns the request's partitions into parts; a partition named twice spoils the request (K36).
func (w *fetchWork) named(byID bool) kafka.ErrorCode {
	total := 0
	for i := range w.req.Topics {
		total += len(w.req.Topics[i].Partitions)
	}
	if code := fits(total); code != kafka.None {
		return code
	}
	var once seen[fetchKey]
	for i := range w.req.Topics {
		t := &w.req.Topics[i]
		for j := range t.Partitions {
			p := &t.Partitions[j]
			k := fetchKey{t.Topic, t.TopicID, p.Partition}
			if total > 1 && once.add(k) {
				return kafka.InvalidRequest
			}
			w.parts = append(w.parts, fetchPart{
				key: k, offset: kafka.Offset(p.FetchOffset),
				current: kafka.LeaderEpoch(p.CurrentLeaderEpoch), last: kafka.LeaderEpoch(p.LastFetchedEpoch),
				maxBytes: int(max(1, p.PartitionMaxBytes)),
				hw:       kafka.NoOffset, logStart: kafka.NoOffset,
			})
		}
	}
	return kafka.None
}

// memorable says whether a session may keep the request's partitions: it counts them, not the bytes of their topics' names, so names longer
// than a topic's must not get in (I14). Other names of no topic may: the topic can be created yet.
func (w *fetchWork) memorable() bool {
	for i := range w.parts {
		if len(w.parts[i].key.topic) > topicNameMax {
			return false
		}
	}
	return true
}

// owner identifies the client for sessions.
func (w *fetchWork) owner() sessionOwner {
	return sessionOwner{principal: w.call.Principal, client: w.call.ClientID, host: w.call.host}
}

// resolve finds every part in the Image and lists those that can be read.
func (w *fetchWork) resolve(byID bool) {
	img := w.server.cfg.Image()
	w.codes, w.items, w.index = w.codes[:0], w.items[:0], w.index[:0]
	w.rules = w.server.cfg.Access.Rules()
	var last fetchKey // its topic is the one that was judged last
	may := true
	for i := range w.parts {
		p := &w.parts[i]
		code := p.resolve(img, byID)
		if i == 0 || last.topic != p.key.topic || last.id != p.key.id {
			last, may = p.key, w.mayRead(img, p, byID)
		}
		if !may {
			code = kafka.TopicAuthorizationFailed
		}
		w.codes = append(w.codes, code)
		if code != kafka.None {
			continue
		}
		w.items = append(w.items, replica.FetchItem{TP: p.tp, Offset: p.offset, CurrentEpoch: p.current, LastFetchedEpoch: p.last, MaxBytes: p.maxBytes})
		w.index = append(w.index, i)
	}
}

// mayRead judges the topic of a part; an id that is nobody's passes.
func (w *fetchWork) mayRead(img *metadata.Image, p *fetchPart, byID bool) bool {
	name := p.key.topic
	if byID {
		t := img.TopicByID(p.key.id)
		if t == nil {
			return true
		}
		name = t.Name
	}
	return w.server.mayTopic(w.call, kmsg.ACLOperationRead, name)
}

// attempt reads once. It is done when there is enough, or something to report, or no more time; else the request is parked.
func (w *fetchWork) attempt(late bool) (Reply, bool) {
	grant := w.memory.takeUpTo(w.wanted, fetchFloor)
	w.options.MaxBytes = int(grant)
	results := w.server.cfg.Replicas.Read(w.items, w.options, &w.buffer)
	total, speak, again := 0, len(w.parts) == 0, false
	for i, code := range w.codes {
		if code != kafka.None {
			speak, again = speak || !w.parts[i].failed, true
		}
	}
	for i := range results {
		total += len(results[i].Records)
		if hasFailed(&results[i]) {
			speak, again = speak || !w.parts[w.index[i]].failed, true
		}
		speak = speak || results[i].Diverging != nil
	}
	if late || speak || total >= min(w.minBytes, int(grant)) {
		w.memory.keep(int64(total))
		return w.answer(results), true
	}
	parked := w.items
	if again {
		parked = w.pace(results)
	}
	w.buffer.Release() // nothing is held while parked, and the results are gone with it
	w.memory.release()
	w.wait = w.server.cfg.Replicas.Park(parked, w.options, w.minBytes)
	return Reply{}, false
}

// hasFailed says whether a partition has an error that a client is told.
func hasFailed(r *replica.FetchResult) bool {
	return r.Err != nil && !errors.Is(r.Err, replica.ErrOffsetNotAvailable)
}

// pace holds the answer back for a while and returns what can be waited for.
func (w *fetchWork) pace(results []replica.FetchResult) (sound []replica.FetchItem) {
	w.paced = true
	if soon := time.Now().Add(fetchErrorPace); soon.Before(w.deadline) {
		w.deadline = soon
	}
	for i := range results {
		if !hasFailed(&results[i]) {
			sound = append(sound, w.items[i])
		}
	}
	return sound
}

// fetchErrorPace is how long an error waits that the session's client was told before: clients that fetch on at once, until their next look at
// the metadata, would be answered at once without end. What is sound again is found after this time at the latest.
const fetchErrorPace = 100 * time.Millisecond

// Ready is closed when it is worth reading again.
func (w *fetchWork) Ready() <-chan struct{} { return w.wait.Ready() }

// Deadline is the request's max_wait.
func (w *fetchWork) Deadline() time.Time { return w.deadline }

// Complete reads again; late answers with what there is.
func (w *fetchWork) Complete(late bool) (Reply, bool) {
	w.wait.Cancel()
	if w.server.cfg.Access.Rules() != w.rules || w.paced { // what was parked is read by the rules of now (P42), and found where it is now
		w.resolve(w.req.Version >= fetchByID)
	}
	return w.attempt(late)
}

// Cancel drops the parked request.
func (w *fetchWork) Cancel() {
	w.wait.Cancel()
	w.release()
}

// release gives everything back; the work must not be used any more.
func (w *fetchWork) release() {
	w.buffer.Release()
	w.memory.release()
	s := w.server
	clear(w.parts)
	clear(w.items)
	clear(w.news)
	clear(w.outs)
	clear(w.topics)
	*w = fetchWork{
		parts: w.parts[:0], codes: w.codes[:0], items: w.items[:0], index: w.index[:0],
		news: w.news[:0], outs: w.outs[:0], topics: w.topics[:0], buffer: w.buffer,
	}
	if cap(w.parts) <= fetchKeep {
		s.fetches.Put(w)
	}
}

// fetchKeep is the largest fetch, in partitions, whose memory is kept for the next one: any that is allowed, some 10 MB. The garbage
// collector takes it back when it is not used; made anew for each wake of a long poll over 10,000 partitions it was a fifth of the cost.
const fetchKeep = partitionsMax

// promisesZstd says whether a topic's own setting makes its batches zstd, which clients below v10 are told they cannot read. Batches that
// a producer chose to compress so are handed out as they are, as Kafka does: some clients know Fetch v4 only and read zstd all the same.
func (s *Server) promisesZstd(topic kafka.TopicID) bool {
	t := s.cfg.Image().TopicByID(topic)
	return t != nil && s.topicConfig(t).CompressionType == record.Zstd.String()
}
