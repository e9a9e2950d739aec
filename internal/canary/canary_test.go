package canary

import (
	"context"
	"errors"
	"log/slog"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/metadata"
	"strandline.dev/internal/metrics"
	"strandline.dev/internal/record"
	"strandline.dev/internal/server"
	"strandline.dev/internal/sys/systest"
)

var topicID = kafka.TopicID{1}

// world is a cluster as the canary of node 1 sees it: node 2 leads its partition. Answers are scripted, one for each request.
type world struct {
	t        *testing.T
	image    *metadata.Image
	script   []answer
	asked    []string
	stored   []byte
	released int
}

// answer is what becomes of one request.
type answer struct {
	code kafka.ErrorCode
	err  error
	// hang has the request unanswered until its asker gives up.
	hang bool
	// other has a read find another record, missing none.
	other, missing bool
}

func (w *world) Read(ctx context.Context, node kafka.NodeID, call *server.Call) (kmsg.Response, func(), error) {
	name := kmsg.NameForKey(call.Request.Key())
	w.asked = append(w.asked, name)
	if node != 2 || call.Principal != (kafka.Principal{Type: kafka.NodePrincipal, Name: "1"}) {
		w.t.Errorf("%s asks node %v as %v", name, node, call.Principal)
	}
	a := answer{}
	if len(w.script) > 0 {
		a, w.script = w.script[0], w.script[1:]
	}
	release := func() { w.released++ }
	if a.hang {
		<-ctx.Done()
		return nil, release, ctx.Err()
	}
	resp := call.Request.ResponseKind()
	switch r := resp.(type) {
	case *kmsg.ProduceResponse:
		w.stored = call.Request.(*kmsg.ProduceRequest).Topics[0].Partitions[0].Records
		one := kmsg.NewProduceResponseTopicPartition()
		one.ErrorCode, one.BaseOffset = int16(a.code), 0
		r.Topics = []kmsg.ProduceResponseTopic{{Partitions: []kmsg.ProduceResponseTopicPartition{one}}}
	case *kmsg.FetchResponse:
		one := kmsg.NewFetchResponseTopicPartition()
		one.ErrorCode, one.RecordBatches = int16(a.code), w.stored
		if a.other {
			b := record.NewBuilder(record.None)
			b.Add(0, nil, []byte("of somebody else"), nil)
			one.RecordBatches = b.Build()
		}
		if a.missing {
			one.RecordBatches = nil
		}
		r.Topics = []kmsg.FetchResponseTopic{{Partitions: []kmsg.FetchResponseTopicPartition{one}}}
	}
	return resp, release, a.err
}

func (w *world) Submit(context.Context, metadata.Event) (any, uint64, error) {
	w.t.Error("a topic that is there is created")
	return nil, 0, nil
}

// imageLedBy is an Image with the topic, whose one partition that node leads.
func imageLedBy(t *testing.T, leader kafka.NodeID) *metadata.Image {
	t.Helper()
	state := kafka.PartitionState{Leader: leader, Replicas: []kafka.NodeID{2}, ISR: []kafka.NodeID{2}, EffectiveMinISR: 1}
	img, err := metadata.Empty().Apply(1, []metadata.Record{
		metadata.TopicRecord{ID: topicID, Name: metadata.CanaryTopic, Owner: "Node:1", Partitions: 1, Internal: true},
		metadata.PartitionRecord{Topic: topicID, State: state},
		metadata.TopicStateRecord{ID: topicID, State: metadata.StateReady, Version: metadata.FirstVersion},
	})
	if err != nil {
		t.Fatal(err)
	}
	return img
}

// ok is an answer as it should be, gone that of a node that is not there.
var (
	ok   = answer{}
	gone = answer{err: errors.New("unreachable")}
)

// TestR180_Measurements: what is repeated, what fails, and what is counted for it.
func TestR180_Measurements(t *testing.T) {
	for name, c := range map[string]struct {
		script   []answer
		headless bool          // nobody leads the partition
		took     time.Duration // until the acknowledgement; 0: there is none
		why      metrics.CanaryFailure
		asked    string
	}{
		"published and read":   {script: []answer{ok, ok}, took: 1, asked: "Produce Fetch"},
		"after repetitions":    {script: []answer{gone, {code: kafka.NotLeaderOrFollower}, ok, ok}, took: 2 * retryEvery, asked: "Produce Produce Produce Fetch"},
		"one is not answered":  {script: []answer{{hang: true}, ok, ok}, took: attemptMax + retryEvery, asked: "Produce Produce Fetch"},
		"visible a bit later":  {script: []answer{ok, {missing: true}, {code: kafka.NotLeaderOrFollower}, ok}, took: 1, asked: "Produce Fetch Fetch Fetch"},
		"never answered":       {script: []answer{{hang: true}, {hang: true}, {hang: true}, {hang: true}}, why: metrics.CanaryUnpublished, asked: "Produce Produce Produce Produce"},
		"no leader":            {headless: true, why: metrics.CanaryUnpublished},
		"acknowledged, unread": {script: []answer{ok, {hang: true}, {hang: true}, {hang: true}, {hang: true}}, took: 1, why: metrics.CanaryUnread, asked: "Produce Fetch Fetch Fetch Fetch"},
		"another in its place": {script: []answer{ok, {other: true}}, took: 1, why: metrics.CanaryLost, asked: "Produce Fetch"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := &world{t: t, script: c.script, image: imageLedBy(t, 2)}
				if c.headless {
					w.image = imageLedBy(t, kafka.NoNode)
				}
				canary, m := newTestCanary(t, w)
				why, err := canary.measure(t.Context())
				canary.judge(why, err)
				if (err != nil) != (c.why != "") || err != nil && why != c.why {
					t.Errorf("%v: %v, want %q", why, err, c.why)
				}
				if got := strings.Join(w.asked, " "); got != c.asked {
					t.Errorf("it asked %q, want %q", got, c.asked)
				}
				if w.released != len(w.asked) {
					t.Errorf("%d answers, of which %d were released", len(w.asked), w.released)
				}
				count, sum, failures := read(t, m)
				if count != min(uint64(c.took), 1) || time.Duration(sum*float64(time.Second)).Round(time.Millisecond) != c.took.Truncate(time.Millisecond) {
					t.Errorf("%d measurements that took %vs, want %v", count, sum, c.took)
				}
				if want := map[bool]float64{true: 1}[c.why != ""]; failures[string(c.why)] != want || failures[""] != 0 {
					t.Errorf("failures: %v", failures)
				}
			})
		})
	}
}

// TestR180_AStopEndsAMeasurement: at whatever it waits for, and what is broken off is no failure.
func TestR180_AStopEndsAMeasurement(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t, script: []answer{{hang: true}}, image: imageLedBy(t, 2)}
		canary, m := newTestCanary(t, w)
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { canary.Run(ctx); close(ended) }()
		time.Sleep(canary.cfg.Interval + time.Second) // it waits for an answer
		began := time.Now()
		stop()
		<-ended
		if took := time.Since(began); took != 0 || len(w.asked) != 1 {
			t.Errorf("it ended after %v, having asked %d times", took, len(w.asked))
		}
		if _, _, failures := read(t, m); failures[string(metrics.CanaryUnpublished)] != 0 {
			t.Errorf("failures: %v", failures)
		}
	})
}

func newTestCanary(t *testing.T, w *world) (*Canary, *metrics.Registry) {
	t.Helper()
	m := metrics.New()
	return New(Config{
		Node: 1, Interval: 5 * time.Second, Image: func() *metadata.Image { return w.image }, Broker: w, Controller: w,
		Wall: systest.NewTickingWall(time.Now()), Log: slog.New(slog.DiscardHandler), Metrics: m.Broker.Canary,
	}), m
}

// read returns what is measured and what has failed.
func read(t *testing.T, m *metrics.Registry) (count uint64, sum float64, failures map[string]float64) {
	t.Helper()
	answer := httptest.NewRecorder()
	m.Handler().ServeHTTP(answer, httptest.NewRequest("GET", "/metrics", nil))
	failures = map[string]float64{}
	for line := range strings.Lines(answer.Body.String()) {
		name, text, _ := strings.Cut(strings.TrimSpace(line), " ")
		v, err := strconv.ParseFloat(text, 64)
		reason, failed := strings.CutPrefix(name, `strandline_canary_failures_total{reason="`)
		switch {
		case err != nil:
		case name == "strandline_publish_end_to_end_seconds_count":
			count = uint64(v)
		case name == "strandline_publish_end_to_end_seconds_sum":
			sum = v
		case failed:
			failures[strings.TrimSuffix(reason, `"}`)] = v
		}
	}
	if len(failures) != 3 {
		t.Fatalf("failures are not shown: %v", failures)
	}
	return count, sum, failures
}
