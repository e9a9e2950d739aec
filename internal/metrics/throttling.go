package metrics

import (
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// clientLabelsMax bounds the pairs of user and client id with a time series of their own (I14).
const clientLabelsMax = 200

// Throttling are the instruments of quotas.
type Throttling struct {
	throttled *prometheus.CounterVec
	seconds   *prometheus.CounterVec

	mu      sync.Mutex
	clients map[[2]string]struct{}
}

func newThrottling(p, detail *prometheus.Registry) *Throttling {
	return &Throttling{
		throttled: counters(p, "strandline_throttled_total", "Requests and connections that had to wait, by quota.", "quota"),
		seconds:   counters(detail, "strandline_throttled_seconds_total", "Time that clients had to wait, by quota and client.", "quota", "user", "client"),
		clients:   map[[2]string]struct{}{},
	}
}

// ThrottledBy has a quota shown before anybody had to wait for it.
func (t *Throttling) ThrottledBy(quota string) { t.throttled.WithLabelValues(quota) }

// Throttled counts that a client has to wait for a quota. Beyond clientLabelsMax pairs of user and client id all others are one.
func (t *Throttling) Throttled(quota, user, client string, wait time.Duration) {
	user, client = label(user), label(client)
	pair := [2]string{user, client}
	t.mu.Lock()
	if _, ok := t.clients[pair]; !ok {
		if len(t.clients) < clientLabelsMax {
			t.clients[pair] = struct{}{}
		} else {
			user, client = other, other
		}
	}
	t.mu.Unlock()
	t.throttled.WithLabelValues(quota).Inc()
	t.seconds.WithLabelValues(quota, user, client).Add(wait.Seconds())
}

// label is text that a client chose, as a label: the library panics on one that is not UTF-8.
func label(s string) string {
	return strings.ToValidUTF8(s[:min(len(s), clientLabelMax)], "?")
}
