package server

import (
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/metrics"
)

// TestC043_O10_AClientWhoseClockIsAheadIsNamed: by how much, and whether its records were taken; a second of difference is nobody's business, and many
// such publishes make few lines.
func TestC043_O10_AClientWhoseClockIsAheadIsNamed(t *testing.T) {
	const says = "a client stamps records ahead of this node's clock"
	b := newTestBroker(t, testOptions{})
	c := b.dial()
	c.create("orders", 1, "message.timestamp.before.max.ms", "86400000")
	c.create("stamped", 1, "message.timestamp.type", "LogAppendTime")
	now := b.wall.Now().UnixMilli()
	for _, one := range []struct {
		topic string
		ahead time.Duration
		want  kafka.ErrorCode
		named bool
	}{
		{"orders", time.Second, kafka.None, false}, {"orders", clockAheadMin, kafka.None, true}, {"orders", time.Hour, kafka.None, true},
		{"orders", 365 * 24 * time.Hour, kafka.InvalidTimestamp, true}, {"stamped", 365 * 24 * time.Hour, kafka.None, true},
		{"orders", -23 * time.Hour, kafka.None, false}, {"orders", -25 * time.Hour, kafka.InvalidTimestamp, false},
	} {
		b.log.clear()
		got := kafka.ErrorCode(c.publish(newProduce(one.topic, 0, newBatchAt(now+one.ahead.Milliseconds(), "x"))).ErrorCode)
		line := fmt.Sprintf("ahead_ms=%d refused=%v", one.ahead.Milliseconds(), one.want != kafka.None)
		if log := b.log.String(); got != one.want || strings.Contains(log, says) != one.named || one.named && !strings.Contains(log, line) {
			t.Errorf("%s, %v ahead: %v, want %v; log:\n%s", one.topic, one.ahead, got, one.want, log)
		}
	}
	b.wantClock("-90000")
	c.id = "late\xff"
	c.publish(newProduce("orders", 0, newBatchAt(now-7500, "x")))
	b.wantClock("-7.5")
	b.log.clear()
	for range 3 * peerLinesMax {
		c.publish(newProduce("orders", 0, newBatchAt(now+clockAheadMin.Milliseconds(), "x")))
	}
	if n := strings.Count(b.log.String(), says); n > peerLinesMax {
		t.Errorf("%d lines", n)
	}
}

// wantClock fails unless some client's clock is shown so far ahead, in seconds.
func (b *testBroker) wantClock(ahead string) {
	b.t.Helper()
	w := httptest.NewRecorder()
	b.metrics.DetailHandler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics/detail", nil))
	for line := range strings.Lines(w.Body.String()) {
		if strings.HasPrefix(line, "strandline_client_clock_ahead_seconds{") && strings.HasSuffix(line, " "+ahead+"\n") {
			return
		}
	}
	b.t.Errorf("no client is %s s ahead: %s", ahead, w.Body.String())
}

// TestO10_ClientClocksAreBounded: however many names clients give themselves, so many are told apart (I14).
func TestO10_ClientClocksAreBounded(t *testing.T) {
	r := metrics.New()
	for i := range 5000 {
		r.Broker.ClientClocks.Set(fmt.Sprint("client-", i), time.Second)
	}
	w := httptest.NewRecorder()
	r.DetailHandler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics/detail", nil))
	if n := strings.Count(w.Body.String(), "strandline_client_clock_ahead_seconds{"); n != 1001 {
		t.Errorf("%d clients are told apart", n)
	}
}
