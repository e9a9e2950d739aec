package server

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
	"pgregory.net/rapid"

	"strandline.dev/internal/kafka"
)

// fetcher is a client with a fetch session.
type fetcher struct {
	*testClient
	version   int16
	topic     string
	topicID   kafka.TopicID
	id, epoch int32
	wait      int32 // max_wait_ms
}

// fetch sends one request of the session: partitions to add or change (partition, offset), and partitions to forget.
func (f *fetcher) fetch(add map[int32]int64, forget ...int32) *kmsg.FetchResponse {
	f.t.Helper()
	req := kmsg.NewPtrFetchRequest()
	req.Version, req.MaxBytes, req.SessionID, req.SessionEpoch = f.version, 1<<20, f.id, f.epoch
	req.MaxWaitMillis, req.MinBytes = f.wait, min(f.wait, 1)
	if len(add) > 0 {
		t := kmsg.NewFetchRequestTopic()
		t.Topic, t.TopicID = f.topic, f.topicID
		for p := range int32(100) {
			if off, ok := add[p]; ok {
				t.Partitions = append(t.Partitions, newFetchPartition(p, off))
			}
		}
		req.Topics = append(req.Topics, t)
	}
	if len(forget) > 0 {
		t := kmsg.NewFetchRequestForgottenTopic()
		t.Topic, t.TopicID, t.Partitions = f.topic, f.topicID, forget
		req.ForgottenTopics = append(req.ForgottenTopics, t)
	}
	resp := ask[*kmsg.FetchResponse](f.testClient, req)
	if resp.ErrorCode == 0 {
		f.id = resp.SessionID
		f.epoch = nextEpoch(f.epoch)
	}
	return resp
}

// partitionsOf lists the partitions of an answer, in order.
func partitionsOf(r *kmsg.FetchResponse) []int32 {
	var out []int32
	for _, t := range r.Topics {
		for _, p := range t.Partitions {
			out = append(out, p.Partition)
		}
	}
	return out
}

func same(a []int32, b ...int32) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

func TestSession_IncrementalAnswersNameOnlyWhatChanged(t *testing.T) {
	for _, version := range []int16{7, 12, 13, 18} {
		b := newTestBroker(t, testOptions{})
		c := b.dial()
		f := &fetcher{testClient: b.dial(), version: version, topic: "sess", topicID: c.create("sess", 3)}
		if got := f.fetch(map[int32]int64{0: 0, 1: 0, 2: 0}); !same(partitionsOf(got), 0, 1, 2) || got.SessionID == 0 {
			t.Fatalf("v%d: a full fetch names %v in session %d", version, partitionsOf(got), got.SessionID)
		}
		if got := f.fetch(nil); len(partitionsOf(got)) != 0 {
			t.Errorf("v%d: nothing changed, the answer names %v", version, partitionsOf(got))
		}
		c.publish(newProduce("sess", 1, b.newBatch("x")))
		if got := f.fetch(nil); !same(partitionsOf(got), 1) || len(values(t, got.Topics[0].Partitions[0].RecordBatches)) != 1 {
			t.Errorf("v%d: after a publish the answer names %v", version, partitionsOf(got))
		}
		if got := f.fetch(map[int32]int64{1: 1}, 2); len(partitionsOf(got)) != 0 {
			t.Errorf("v%d: caught up, the answer names %v", version, partitionsOf(got))
		}
		c.publish(newProduce("sess", 2, b.newBatch("forgotten")))
		if got := f.fetch(nil); len(partitionsOf(got)) != 0 {
			t.Errorf("v%d: a forgotten partition is answered: %v", version, partitionsOf(got))
		}
		// Everything forgotten: answered as without a session, which is gone.
		if got := f.fetch(nil, 0, 1); got.ErrorCode != 0 || got.SessionID != 0 {
			t.Errorf("v%d: everything forgotten: error %d, session %d", version, got.ErrorCode, got.SessionID)
		}
	}
}

// An error is told in every answer while it lasts, and what follows it is told in full.
func TestSession_ErrorsAreToldUntilTheyEnd(t *testing.T) {
	b := newTestBroker(t, testOptions{})
	c := b.dial()
	f := &fetcher{testClient: b.dial(), version: 12, topic: "err"}
	c.create("err", 1)
	f.fetch(map[int32]int64{0: 7})
	for range 2 {
		got := f.fetch(nil)
		if !same(partitionsOf(got), 0) || kafka.ErrorCode(got.Topics[0].Partitions[0].ErrorCode) != kafka.OffsetOutOfRange {
			t.Fatalf("out of range: %v", partitionsOf(got))
		}
	}
	if got := f.fetch(map[int32]int64{0: 0}); !same(partitionsOf(got), 0) || got.Topics[0].Partitions[0].HighWatermark != 0 {
		t.Errorf("after the error: %v", partitionsOf(got))
	}
}

// A partition that returned data goes to the back, so that one busy partition does not starve the others.
func TestSession_PartitionsRotate(t *testing.T) {
	b := newTestBroker(t, testOptions{})
	c := b.dial()
	c.create("fair", 3)
	f := &fetcher{testClient: b.dial(), version: 12, topic: "fair"}
	for p := range int32(3) {
		c.publish(newProduce("fair", p, b.newBatch(strings.Repeat("z", 400))))
	}
	req := kmsg.NewPtrFetchRequest()
	req.Version, req.MaxBytes, req.SessionEpoch = 12, 300, 0 // room for one oversized batch at a time
	rt := kmsg.NewFetchRequestTopic()
	rt.Topic = "fair"
	for p := range int32(3) {
		rt.Partitions = append(rt.Partitions, newFetchPartition(p, 0))
	}
	req.Topics = append(req.Topics, rt)
	resp := ask[*kmsg.FetchResponse](f.testClient, req)
	served := map[int32]int{}
	for round := range 6 {
		for _, p := range resp.Topics[0].Partitions {
			if len(p.RecordBatches) > 0 {
				served[p.Partition]++
			}
		}
		next := kmsg.NewPtrFetchRequest()
		next.Version, next.MaxBytes, next.SessionID, next.SessionEpoch = 12, 300, resp.SessionID, int32(round+1)
		resp = ask[*kmsg.FetchResponse](f.testClient, next)
	}
	for p := range int32(3) {
		if served[p] != 2 {
			t.Errorf("partition %d was served %d times in 6 rounds, want 2: %v", p, served[p], served)
		}
	}
}

func TestSession_ChangeOfTopicIDUse(t *testing.T) {
	b := newTestBroker(t, testOptions{})
	f := &fetcher{testClient: b.dial(), version: 12, topic: "ids"}
	f.topicID = f.create("ids", 1)
	f.fetch(map[int32]int64{0: 0})
	f.version = 13
	if got := f.fetch(nil); kafka.ErrorCode(got.ErrorCode) != kafka.FetchSessionTopicIDError || got.SessionID != 0 || len(got.Topics) != 0 {
		t.Errorf("error %v, session %d", kafka.ErrorCode(got.ErrorCode), got.SessionID)
	}
}

// A session may name an id that does not resolve yet; it is told as unknown and may resolve later.
func TestSession_UnknownTopicIDStays(t *testing.T) {
	b := newTestBroker(t, testOptions{})
	f := &fetcher{testClient: b.dial(), version: 13, topicID: kafka.TopicID{9, 9}}
	for range 2 {
		got := f.fetch(map[int32]int64{0: 0})
		if kafka.ErrorCode(got.Topics[0].Partitions[0].ErrorCode) != kafka.UnknownTopicID {
			t.Fatalf("%v, want UNKNOWN_TOPIC_ID", kafka.ErrorCode(got.Topics[0].Partitions[0].ErrorCode))
		}
	}
}

func TestSession_EpochWraps(t *testing.T) {
	s := &session{}
	s.mu.epoch = math.MaxInt32
	if code := s.advance(math.MaxInt32, false); code != kafka.None || s.mu.epoch != 1 {
		t.Errorf("after the largest epoch: %v, next %d, want 1", code, s.mu.epoch)
	}
}

// The cache is bounded in sessions, in each host's share, and in partitions; idle sessions make room.
func TestSessionCache_IsBounded(t *testing.T) {
	now := time.Now()
	c := newSessionCache()
	one, two := sessionOwner{host: "one"}, sessionOwner{host: "two"}
	for range 25 {
		if c.open(one, 1, 100, false, now) == nil {
			t.Fatal("refused below the share")
		}
	}
	if c.open(one, 1, 100, false, now) != nil {
		t.Error("a host got more than its quarter")
	}
	if c.open(two, 1, 100, false, now) == nil {
		t.Error("another host got nothing")
	}
	if c.open(two, sessionPartitionsMax, 100, false, now) != nil {
		t.Error("more partitions than the bound")
	}
	if c.open(one, 1, 100, false, now.Add(sessionIdle)) == nil {
		t.Error("an idle session of the host did not make room")
	}
	if c.open(two, sessionPartitionsMax, 100, false, now.Add(3*sessionIdle)) == nil {
		t.Error("idle sessions did not make room for partitions")
	}
	if n := len(c.mu.byID); n != 1 || c.mu.parts != sessionPartitionsMax || len(c.mu.owned) != 1 {
		t.Errorf("%d sessions, %d partitions, %d owners left", n, c.mu.parts, len(c.mu.owned))
	}
	if c.open(two, 1, 0, false, now) != nil {
		t.Error("no slots, and a session")
	}
}

// Whatever a stateful client does to its session, the answers say all that changed: a model that keeps what it was told always knows the
// true high watermark of every partition it fetches.
func TestSession_ModelKnowsTheWatermarks(t *testing.T) {
	b := newTestBroker(t, testOptions{})
	c := b.dial()
	id := c.create("model", 5)
	ends := map[int32]int64{}
	rapid.Check(t, func(rt *rapid.T) {
		f := &fetcher{testClient: b.dial(), version: 13, topic: "", topicID: id}
		defer f.conn.Close()
		in, told := map[int32]bool{}, map[int32]int64{}
		for range rapid.IntRange(1, 12).Draw(rt, "steps") {
			add, forget := map[int32]int64{}, []int32{}
			for _, p := range rapid.SliceOfNDistinct(rapid.Int32Range(0, 4), 0, 3, rapid.ID[int32]).Draw(rt, "touch") {
				switch rapid.IntRange(0, 2).Draw(rt, "how") {
				case 0:
					add[p] = ends[p]
				case 1:
					if in[p] && f.epoch > 0 {
						forget = append(forget, p)
					}
				default:
					ends[p] = c.publish(newProduce("model", p, b.newBatch("m"))).BaseOffset + 1
				}
			}
			if f.epoch == 0 && len(add) == 0 {
				continue
			}
			fresh := f.epoch == 0
			resp := f.fetch(add, forget...)
			if resp.ErrorCode != 0 {
				rt.Fatalf("error %v", kafka.ErrorCode(resp.ErrorCode))
			}
			for p := range add {
				in[p] = true
			}
			for _, p := range forget {
				delete(in, p)
				delete(told, p)
			}
			for _, top := range resp.Topics {
				for _, p := range top.Partitions {
					if p.ErrorCode != 0 || !in[p.Partition] {
						rt.Fatalf("partition %d: error %d, fetched %v", p.Partition, p.ErrorCode, in[p.Partition])
					}
					told[p.Partition] = p.HighWatermark
				}
			}
			for p := range in {
				if told[p] != ends[p] {
					rt.Fatalf("partition %d: told %d, true %d (fresh %v)", p, told[p], ends[p], fresh)
				}
			}
			if len(in) == 0 {
				f.id, f.epoch = 0, 0
			}
		}
	})
}

// TestSession_AnErrorIsNewsOnce: an error is answered at once when the client names the partition, and waits for a while when it was told before:
// clients that fetch on at once are not answered without end. What is sound again is read.
func TestSession_AnErrorIsNewsOnce(t *testing.T) {
	b := newTestBroker(t, testOptions{})
	f := &fetcher{testClient: b.dial(), version: 8, topic: "comes-later", wait: 30_000}
	code := func(r *kmsg.FetchResponse) kafka.ErrorCode {
		t.Helper()
		if len(r.Topics) != 1 || len(r.Topics[0].Partitions) != 1 {
			t.Fatalf("%+v", r)
		}
		return kafka.ErrorCode(r.Topics[0].Partitions[0].ErrorCode)
	}
	f.fetch(map[int32]int64{0: 0})
	if r := f.fetch(map[int32]int64{0: 0}); code(r) != kafka.UnknownTopicOrPartition {
		t.Fatalf("%+v", r)
	}
	for range 3 {
		since := time.Now()
		if r := f.fetch(nil); code(r) != kafka.UnknownTopicOrPartition || time.Since(since) < fetchErrorPace {
			t.Fatalf("after %v: %+v", time.Since(since), r)
		}
	}
	f.create(f.topic, 1)
	f.publish(newProduce(f.topic, 0, b.newBatch("a")))
	if r := f.fetch(nil); code(r) != kafka.None || len(r.Topics[0].Partitions[0].RecordBatches) == 0 {
		t.Fatalf("a topic that is there now: %+v", r)
	}
}

// An error that reading finds waits like one of the metadata, without being looked at again and again meanwhile.
func TestSession_AToldErrorIsNotWaitedOn(t *testing.T) {
	b := newTestBroker(t, testOptions{})
	f := &fetcher{testClient: b.dial(), version: 8, topic: "t", wait: 30_000}
	f.create(f.topic, 1)
	f.fetch(map[int32]int64{0: 99})
	f.fetch(map[int32]int64{0: 99})
	before, since := b.spy.parks.Load(), time.Now()
	r := f.fetch(nil)
	if len(r.Topics) != 1 || kafka.ErrorCode(r.Topics[0].Partitions[0].ErrorCode) != kafka.OffsetOutOfRange || time.Since(since) < fetchErrorPace {
		t.Fatalf("after %v: %+v", time.Since(since), r)
	}
	if n := b.spy.parks.Load() - before; n != 1 {
		t.Errorf("parked %d times", n)
	}
}
