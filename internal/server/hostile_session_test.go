package server

import (
	"context"
	"encoding/binary"
	"flag"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/twmb/franz-go/pkg/kmsg"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/replica"
	"strandline.dev/internal/wire"
)

var (
	sessionsFor  = flag.Duration("hostile.for", 2*time.Second, "how long TestHostileSessions goes on")
	sessionsSeed = flag.Uint64("hostile.seed", 1, "its seed; 0 takes a random one")
	sessionsOnly = flag.Int64("hostile.session", -1, "run this one session of the seed only")
)

const (
	// sessionSteps is the most requests of one session, and sessionTopics the topics they are about.
	sessionSteps  = 12
	sessionTopics = 4
	// mutantPatience is how long a changed request may go without an answer before the client hangs up: it may ask for a long wait.
	mutantPatience = 50 * time.Millisecond
	// sessionKept bounds what a session may leave behind on average, as heap, when its topics and groups are deleted: most is the test's own.
	sessionKept = 8 << 10
	// partitionKept is what a partition may leave behind: maps of partitions that have grown stay so, at most twice as large as they must be,
	// and the metadata log has its entries in memory until the next snapshot.
	partitionKept = 768
)

// TestHostileSessions talks to a broker as clients do, with one field of one request changed in each session. The broker lives, answers or
// closes with one line in its log, logs no error of its own, gives everything back, and serves a bystander. A failure names seed and session.
func TestHostileSessions(t *testing.T) {
	seed := *sessionsSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	fmt.Printf("hostile sessions: -hostile.seed %d\n", seed) // not t.Log, which a panic elsewhere would swallow
	b := newTestBroker(t, testOptions{
		disk: t.TempDir(), // records must not count as heap
		broker: map[string]string{
			"auto.create.topics.enable": "true", "group.initial.rebalance.delay.ms": "0", "group.min.session.timeout.ms": "1",
		},
		dev:    true, // what is deleted is gone at once
		limits: Limits{FrameStall: time.Second, WriteStall: time.Second},
	})
	setup := b.dial()
	var topics []kafka.TopicID
	for i := range sessionTopics {
		topics = append(topics, setup.create(sessionTopic(i), 2, "strandline.flush", "synced"))
	}
	findCoordinator(setup)
	setup.conn.Close()
	by := startBystander(b)
	before, goroutines := liveHeap(), runtime.NumGoroutine()
	n, closed, silent := int64(0), 0, 0
	for end := time.Now().Add(*sessionsFor); time.Now().Before(end) && !t.Failed(); n++ {
		if *sessionsOnly >= 0 {
			n, end = *sessionsOnly, time.Time{}
		}
		s := newHostileSession(t, b, topics, seed, n)
		s.run()
		s.judge(goroutines)
		closed, silent = closed+s.closed, silent+s.silent
		if n%500 == 0 {
			rounds := by.rounds.Load()
			eventually(t, "the bystander goes on", func() bool { return by.rounds.Load() > rounds })
		}
	}
	by.stop(t)
	for i, id := range topics {
		if st, ok := b.host.Describe(kafka.TopicPartition{Topic: id}); ok && st.Role == replica.Offline {
			t.Errorf("%s is offline: %s", sessionTopic(i), st.Problem)
		}
	}
	made := deleteMade(b)
	grown := int64(liveHeap()) - int64(before)
	if grown > heapGrowthMax+n*sessionKept+made*partitionKept {
		t.Errorf("the heap grew by %d KiB over %d sessions that made %d partitions", grown>>10, n, made)
	}
	t.Logf("seed %d: %d sessions, %d closed by the broker, %d without an answer in time; %d rounds of the bystander; %d partitions; heap %+d KiB",
		seed, n, closed, silent, by.rounds.Load(), made, grown>>10)
}

// deleteMade deletes the topics and groups that the sessions left, since a session may have asked for thousands of partitions or offsets, and
// got them. It waits until the broker has let go of them, and returns how many partitions there were.
func deleteMade(b *testBroker) (partitions int64) {
	c := b.dial()
	defer c.conn.Close()
	groups := withVersion(kmsg.NewPtrDeleteGroupsRequest(), 2)
	for _, g := range ask[*kmsg.ListGroupsResponse](c, withVersion(kmsg.NewPtrListGroupsRequest(), 4)).Groups {
		groups.Groups = append(groups.Groups, g.Group) // one that still has members stays
	}
	ask[*kmsg.DeleteGroupsResponse](c, groups)
	for _, topic := range ask[*kmsg.MetadataResponse](c, withVersion(kmsg.NewPtrMetadataRequest(), 12)).Topics {
		if topic.IsInternal {
			continue
		}
		partitions += int64(len(topic.Partitions))
		req := withVersion(kmsg.NewPtrDeleteTopicsRequest(), 6)
		req.TimeoutMillis = int32(testWait.Milliseconds())
		req.Topics = []kmsg.DeleteTopicsRequestTopic{{TopicID: topic.TopicID}}
		if code := ask[*kmsg.DeleteTopicsResponse](c, req).Topics[0].ErrorCode; code != 0 {
			b.t.Errorf("the topic %q could not be deleted: error %d", *topic.Topic, code)
		}
	}
	must(b.t, b.host.WaitApplied(context.Background(), b.quorum.Image().Version()))
	for left := math.MaxInt; left > 0; { // thousands may take longer than one wait
		eventually(b.t, "what was deleted is purged, by and by", func() bool { return len(b.quorum.Image().PendingPurges(1)) < left })
		left = len(b.quorum.Image().PendingPurges(1))
	}
	ask[*kmsg.MetadataResponse](c, withVersion(kmsg.NewPtrMetadataRequest(), 12)) // the server forgets the Image of the request before
	return partitions
}

func sessionTopic(i int) string { return fmt.Sprint("session-", i) }

// hostileSession is one client's conversation.
type hostileSession struct {
	t      *testing.T
	b      *testBroker
	name   string
	rng    *rand.Rand
	c      *testClient
	topic  string
	id     kafka.TopicID
	group  string
	what   string // the change that was made
	closed int    // 1: the broker closed the connection
	silent int    // 1: the changed request got no answer in time

	// What answers said.
	member     string
	generation int32
	fetchID    int32
	fetchEpoch int32
	producer   int64
	sequence   int32
}

func newHostileSession(t *testing.T, b *testBroker, topics []kafka.TopicID, seed uint64, n int64) *hostileSession {
	rng := rand.New(rand.NewPCG(seed, uint64(n)))
	i := rng.IntN(len(topics))
	s := &hostileSession{
		t: t, b: b, rng: rng, c: b.dial(), topic: sessionTopic(i), id: topics[i],
		group: fmt.Sprint("group-", n), // its own: a member left behind may have asked for any patience
		name:  fmt.Sprintf("-hostile.seed %d -hostile.session %d", seed, n), producer: -1,
	}
	b.log.clear()
	b.server.peers.mu.Lock()
	clear(b.server.peers.lines)
	b.server.peers.mu.Unlock()
	return s
}

func (s *hostileSession) errorf(format string, args ...any) {
	s.t.Helper()
	s.t.Errorf("%s (%s): %s", s.name, s.what, fmt.Sprintf(format, args...))
}

// run sends a few sound requests, the changed one, and a few more while the connection lives.
func (s *hostileSession) run() {
	steps := 1 + s.rng.IntN(sessionSteps)
	bad := s.rng.IntN(steps)
	for i := range steps {
		req := s.request()
		if i != bad {
			s.sound(req)
			continue
		}
		if !s.changed(req) {
			return
		}
	}
}

// sound sends a request that must be answered in its own layout.
func (s *hostileSession) sound(req kmsg.Request) {
	resp, err := s.c.tryRead(req, s.c.send(req))
	if err != nil {
		s.t.Fatalf("%s (%s): a sound request of key %d version %d: %v", s.name, s.what, req.Key(), req.GetVersion(), err)
	}
	s.learn(resp)
}

// changed sends req with one change; false when the connection is over.
func (s *hostileSession) changed(req kmsg.Request) bool {
	frame, byField := s.mutate(req)
	if _, err := s.c.conn.Write(frame); err != nil {
		return s.over(err)
	}
	correlation := s.c.next
	s.c.next++
	s.c.conn.SetReadDeadline(time.Now().Add(mutantPatience))
	var head [4]byte
	if _, err := io.ReadFull(s.c.conn, head[:]); err != nil {
		return s.over(err)
	}
	s.c.conn.SetReadDeadline(time.Now().Add(testWait))
	body := make([]byte, binary.BigEndian.Uint32(head[:]))
	if _, err := io.ReadFull(s.c.conn, body); err != nil {
		s.errorf("an answer that ends early: %v", err)
		return false
	}
	if !byField { // the version may be another, and more than one request may have come of it
		return false
	}
	if got := int32(binary.BigEndian.Uint32(body)); got != correlation {
		s.errorf("answered under correlation id %d, want %d", got, correlation)
	}
	s.decode(req, body[4:])
	if key := req.Key(); key == wire.KeyJoinGroup || key == wire.KeyConsumerGroupHeartbeat {
		s.group, s.member, s.generation = s.group+"-after", "", 0 // who joined by it may keep others waiting for as long as it asked for
	}
	return true
}

// decode checks that an answer is what the schema says.
func (s *hostileSession) decode(req kmsg.Request, body []byte) {
	if req.IsFlexible() && req.Key() != wire.KeyApiVersions {
		body = body[1:]
	}
	resp := req.ResponseKind()
	if err := resp.ReadFrom(body); err != nil {
		s.errorf("the answer does not parse: %v", err)
	} else if again := resp.AppendTo(nil); string(again) != string(body) {
		s.errorf("the answer is not what its schema says:\n%x\n%x", body, again)
	}
}

// over ends the conversation: the broker has closed, or has not answered; then the client hangs up and the broker must follow.
func (s *hostileSession) over(err error) bool {
	if timeout, ok := err.(net.Error); !ok || !timeout.Timeout() {
		s.closed = 1
		return false
	}
	s.silent = 1
	s.c.conn.(*net.TCPConn).CloseWrite()
	s.c.conn.SetReadDeadline(time.Now().Add(testWait))
	if _, err := io.Copy(io.Discard, s.c.conn); err != nil {
		if timeout, ok := err.(net.Error); ok && timeout.Timeout() {
			s.errorf("the connection stays open after the client's last byte")
		}
	}
	return false
}

// judge checks what holds after every session.
func (s *hostileSession) judge(goroutines int) {
	s.c.conn.Close()
	b := s.b
	eventually(s.t, s.name+" ("+s.what+"): everything is given back", func() bool {
		return b.server.open.Load() == 1 && b.server.budget.Used()+b.server.answers.Used() < 1<<10 && b.server.small.Used() < 1<<10
	})
	log, peer, lines := b.log.String(), "peer="+s.c.conn.LocalAddr().String()+" ", 0
	for line := range strings.Lines(log) {
		if strings.Contains(line, peer) && !strings.Contains(line, "level=INFO") { // those say what was done for it, such as a topic made implicitly
			lines++
		}
		if words := strings.Fields(line); len(words) < 2 || words[1] == "level=ERROR" || !strings.HasPrefix(line, "time=") {
			s.errorf("the broker's log says: %s", line)
		}
	}
	if lines > 1 || lines < s.closed {
		s.errorf("the log has %d lines about a connection that the broker closed %d times:\n%s", lines, s.closed, log)
	}
	if n := runtime.NumGoroutine(); n > goroutines+1000 {
		s.errorf("%d goroutines, %d at the start", n, goroutines)
	}
}

// request is a sound request of any API, with what earlier answers said.
func (s *hostileSession) request() kmsg.Request {
	all := served()
	api := all[s.rng.IntN(len(all))]
	if s.rng.IntN(3) == 0 { // these hold state
		often := []int16{wire.KeyProduce, wire.KeyFetch, wire.KeyFetch, wire.KeyJoinGroup, wire.KeySyncGroup, wire.KeyOffsetCommit}
		api, _ = wire.Lookup(often[s.rng.IntN(len(often))])
	}
	batch := s.b.newBatch(strings.Repeat("v", s.rng.IntN(200)), "w")
	if s.producer >= 0 && s.rng.IntN(2) == 0 {
		batch.SetProducer(kafka.ProducerID(s.producer), 0, s.sequence, false)
		s.sequence += 2
	}
	req := request(api.Key, s.topic, s.id, batch)
	req.SetVersion(api.Min + int16(s.rng.IntN(int(api.Max-api.Min)+1)))
	switch r := req.(type) {
	case *kmsg.FetchRequest:
		r.SessionID, r.SessionEpoch, r.MaxWaitMillis = s.fetchID, s.fetchEpoch, int32(s.rng.IntN(3))
		if s.fetchEpoch > 0 && s.rng.IntN(2) == 0 {
			r.Topics = nil
		}
	case *kmsg.JoinGroupRequest:
		r.SessionTimeoutMillis, r.RebalanceTimeoutMillis = 50, 50 // an earlier member of the session is given up soon
	case *kmsg.CreateTopicsRequest:
		r.Topics[0].Topic, r.TimeoutMillis = fmt.Sprint("made-", s.rng.IntN(20)), 10_000
	case *kmsg.DeleteTopicsRequest:
		name := fmt.Sprint("made-", s.rng.IntN(20))
		r.TopicNames, r.Topics[0].Topic = []string{name}, &name
	case *kmsg.SyncGroupRequest:
		r.GroupAssignment = []kmsg.SyncGroupRequestGroupAssignment{{MemberID: s.member, MemberAssignment: []byte("all")}}
	}
	for name, value := range map[string]any{"Group": s.group, "MemberID": s.member, "Generation": s.generation} {
		if f := reflect.ValueOf(req).Elem().FieldByName(name); f.IsValid() && f.Type() == reflect.TypeOf(value) {
			f.Set(reflect.ValueOf(value))
		}
	}
	return req
}

// learn keeps what later requests need.
func (s *hostileSession) learn(resp kmsg.Response) {
	switch r := resp.(type) {
	case *kmsg.FetchResponse:
		s.fetchID, s.fetchEpoch = r.SessionID, nextEpoch(s.fetchEpoch)
		if r.ErrorCode != 0 || r.SessionID == 0 {
			s.fetchID, s.fetchEpoch = 0, 0
		}
	case *kmsg.JoinGroupResponse:
		if r.MemberID != "" {
			s.member, s.generation = r.MemberID, r.Generation
		}
	case *kmsg.InitProducerIDResponse:
		if r.ErrorCode == 0 {
			s.producer, s.sequence = r.ProducerID, 0
		}
	}
}

// An error repeats what the client sent, but never so much of it that the 16-bit length of the older layouts overflows: the client would
// read the rest of the answer as something else. TestHostileSessions found it.
func TestMessages_FitTheOldestLayout(t *testing.T) {
	b := newTestBroker(t, testOptions{})
	c := b.dial()
	c.create("t", 1)
	long := strings.Repeat("\u00e4", math.MaxInt16/2)
	resp := ask[*kmsg.IncrementalAlterConfigsResponse](c, newAlter(wire.KeyIncrementalAlterConfigs, "t", long, "1").(*kmsg.IncrementalAlterConfigsRequest))
	got := str(resp.Resources[0].ErrorMessage)
	if resp.Resources[0].ErrorCode == 0 || len(got) < messageMax-utf8.UTFMax || len(got) > messageMax+len("...") || !utf8.ValidString(got) {
		t.Errorf("error %d with a message of %d bytes, valid: %v", resp.Resources[0].ErrorCode, len(got), utf8.ValidString(got))
	}
}
