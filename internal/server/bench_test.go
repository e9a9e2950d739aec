package server

import (
	"context"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/wire"
)

// The benchmarks measure the server's own cost of a request over real sockets on loopback, one request at a time, with a topic whose
// records count as stored when appended, so that no disk is in the numbers.
func benchBroker(b *testing.B, size int) (*testBroker, *testClient, kafka.TopicID) {
	b.Helper()
	tb := newTestBroker(b, testOptions{dev: true, disk: b.TempDir()})
	c := tb.dial()
	id := c.create("bench", 1, "strandline.flush", "replicated")
	for policyHolds := false; !policyHolds; { // it takes a moment until the directory says that the log counts what is appended
		c.publish(newProduce("bench", 0, tb.newBatch(strings.Repeat("b", size))))
		st := tb.status("bench", 0)
		policyHolds = st.Stored == st.End
	}
	b.ReportAllocs()
	return tb, c, id
}

func benchRoundTrips(b *testing.B, c *testClient, req kmsg.Request) {
	b.Helper()
	frame := c.frame(req, 0)
	buf := make([]byte, 4<<20)
	b.SetBytes(int64(len(frame)))
	for b.Loop() {
		c.write(frame)
		c.discard(buf)
	}
}

func BenchmarkRoundTrip(b *testing.B) {
	for _, one := range []struct {
		name string
		key  int16
		size int
	}{
		{"ApiVersions", wire.KeyApiVersions, 10}, {"Metadata", wire.KeyMetadata, 10},
		{"Produce1KiB", wire.KeyProduce, 1 << 10}, {"Produce64KiB", wire.KeyProduce, 64 << 10},
		{"Fetch1KiB", wire.KeyFetch, 1 << 10}, {"Fetch64KiB", wire.KeyFetch, 64 << 10},
	} {
		b.Run(one.name, func(b *testing.B) {
			tb, c, id := benchBroker(b, one.size)
			req := request(one.key, "bench", id, tb.newBatch(strings.Repeat("b", one.size)))
			benchRoundTrips(b, c, req)
		})
	}
}

// BenchmarkK48 measures heartbeats that nobody can mean, of which each is to be answered in k48Max, with a hundred topics whose names make other engines
// of regular expressions go back without end. No expression is asked for twice, so none is known.
func BenchmarkK48(b *testing.B) {
	const k48Max = 10 * time.Millisecond
	for _, one := range k48Heartbeats {
		b.Run(strings.ReplaceAll(one.name, " ", "_"), func(b *testing.B) {
			tb := newTestBroker(b, testOptions{disk: b.TempDir()})
			c := tb.dial()
			findCoordinator(c)
			for i := range 100 {
				c.create(k48Topic+strconv.Itoa(i), 1)
			}
			ask[*kmsg.ConsumerGroupHeartbeatResponse](c, k48Heartbeat("a", 0, ""))
			slowest, asked := time.Duration(0), 0
			for b.Loop() {
				member, pattern := "a", one.pattern
				if pattern != "" {
					member, pattern = "b", strconv.Itoa(asked)+pattern
					if one.want == kafka.None {
						pattern = "((a+)+_" + strconv.Itoa(asked) + "|" + one.pattern + ")"
					}
				}
				req := k48Heartbeat(member, one.epoch, pattern)
				began := time.Now()
				code := ask[*kmsg.ConsumerGroupHeartbeatResponse](c, req).ErrorCode
				slowest, asked = max(slowest, time.Since(began)), asked+1
				if kafka.ErrorCode(code) != one.want {
					b.Fatalf("%v, want %v", kafka.ErrorCode(code), one.want)
				}
			}
			b.ReportMetric(float64(slowest.Microseconds())/1000, "slowest-ms")
			if mean := b.Elapsed() / time.Duration(asked); mean > k48Max {
				b.Errorf("%v a request, want at most %v", mean, k48Max)
			}
		})
	}
}

// BenchmarkBesideCostlyExpressions measures heartbeats of a group while another client joins other groups with expressions that take half a second each.
func BenchmarkBesideCostlyExpressions(b *testing.B) {
	tb := newTestBroker(b, testOptions{disk: b.TempDir()})
	c := tb.dial()
	findCoordinator(c)
	for i := range 100 {
		c.create(k48Topic+strconv.Itoa(i), 1)
	}
	if r := ask[*kmsg.ConsumerGroupHeartbeatResponse](c, k48Heartbeat("a", 0, "")); r.ErrorCode != 0 {
		b.Fatal(kafka.ErrorCode(r.ErrorCode))
	}
	var ends atomic.Bool
	ended, costly := make(chan struct{}), 0
	go func() {
		defer close(ended)
		for other := tb.dial(); !ends.Load(); costly++ {
			join := k48Heartbeat("b", 0, "(.?){900}"+strconv.Itoa(costly))
			join.Group += strconv.Itoa(costly) // by and by in each shard
			_ = ask[*kmsg.ConsumerGroupHeartbeatResponse](other, join)
		}
	}()
	slowest := time.Duration(0)
	for b.Loop() {
		began := time.Now()
		if r := ask[*kmsg.ConsumerGroupHeartbeatResponse](c, k48Heartbeat("a", 1, "")); r.ErrorCode != 0 {
			b.Fatal(kafka.ErrorCode(r.ErrorCode))
		}
		slowest = max(slowest, time.Since(began))
	}
	b.ReportMetric(float64(slowest.Microseconds())/1000, "slowest-ms")
	ends.Store(true)
	<-ended
	b.ReportMetric(float64(costly), "costly")
}

// BenchmarkDo measures the dispatcher alone, without sockets or encoding.
func BenchmarkDo(b *testing.B) {
	for _, key := range []int16{wire.KeyApiVersions, wire.KeyMetadata, wire.KeyProduce, wire.KeyFetch, wire.KeyListOffsets} {
		a, _ := wire.Lookup(key)
		b.Run(a.Name, func(b *testing.B) {
			tb, _, id := benchBroker(b, 1<<10)
			req := request(key, "bench", id, tb.newBatch(strings.Repeat("b", 1<<10)))
			req.SetVersion(a.Max)
			call := Call{Principal: kafka.Anonymous, Request: req, Listener: "plain", Received: time.Now()}
			for b.Loop() {
				r, err := Await(context.Background(), tb.server.Do(context.Background(), &call))
				if err != nil {
					b.Fatal(err)
				}
				if r.Release != nil {
					r.Release()
				}
			}
		})
	}
}
