package metrics

import (
	"strings"
	"sync"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
)

const (
	// clientFailuresMax bounds the lines about failed publishes by topic, client and reason: clients choose their own names (I14).
	clientFailuresMax = 2000
	// clientLabelMax is the longest client id that is a label, in bytes.
	clientLabelMax = 64
	// other labels what is beyond a bound.
	other = "other"
)

// Service are the instruments of how well clients are served.
type Service struct {
	// Publishes and Fetches are the two indicators of availability (R159).
	Publishes, Fetches *Indicator
	// Slow counts requests that took longer than log.slow.request, by API.
	Slow *prometheus.CounterVec
	// ControllerRequests counts what nodes asked of this one as the active controller, by event. Publishes ask nothing of it (R120).
	ControllerRequests *prometheus.CounterVec

	byClient *prometheus.CounterVec
	mu       sync.Mutex
	series   map[failedSeries]struct{}
}

type failedSeries struct{ topic, client, reason string }

// Indicator counts requests, and those of them that were served: an answer that refuses what must be refused is a good one. A scrape sees both
// as of one moment: what is good in one and counted in the next would be a failure to whoever compares them.
type Indicator struct {
	good, bad        atomic.Uint64
	totals, goodOnes *prometheus.Desc
}

// Served counts a request that was answered. failed says that something in it was not done for a reason that is the cluster's.
func (i *Indicator) Served(failed bool) {
	if failed {
		i.bad.Add(1)
	} else {
		i.good.Add(1)
	}
}

// Describe implements prometheus.Collector.
func (i *Indicator) Describe(ch chan<- *prometheus.Desc) { ch <- i.totals; ch <- i.goodOnes }

// Collect implements prometheus.Collector.
func (i *Indicator) Collect(ch chan<- prometheus.Metric) {
	good := i.good.Load()
	ch <- prometheus.MustNewConstMetric(i.totals, prometheus.CounterValue, float64(good+i.bad.Load()))
	ch <- prometheus.MustNewConstMetric(i.goodOnes, prometheus.CounterValue, float64(good))
}

func newService(p, detail *prometheus.Registry) *Service {
	indicator := func(what, text string) *Indicator {
		i := &Indicator{
			totals:   describe("strandline_"+what+"_requests_total", text+" requests that were answered."),
			goodOnes: describe("strandline_"+what+"_requests_good_total", text+" requests in which nothing failed for a reason of the cluster's; what a client did wrong does not count against it."),
		}
		p.MustRegister(i)
		return i
	}
	return &Service{
		Publishes:          indicator("publish", "Publish"),
		Fetches:            indicator("fetch", "Fetch"),
		Slow:               counters(p, "strandline_slow_requests_total", "Requests that took longer than log.slow.request, long polls left out.", "api"),
		ControllerRequests: counters(p, "strandline_controller_requests_total", "Requests of nodes to this one as the active controller, heartbeats left out.", "event"),
		byClient:           counters(detail, "strandline_client_produce_failures_total", "Failed publishes by topic, client id and reason.", "topic", "client", "reason"),
		series:             map[failedSeries]struct{}{},
	}
}

// clientFailed counts one failed partition of a publish for its client. Beyond the bound first the client is "other", then the topic too.
func (s *Service) clientFailed(topic, client, reason string) {
	if len(client) > clientLabelMax {
		client = client[:clientLabelMax]
	}
	f := failedSeries{topic, strings.ToValidUTF8(client, "?"), reason}
	s.mu.Lock()
	if _, ok := s.series[f]; !ok && len(s.series) >= clientFailuresMax {
		f.topic, f.client = other, other
	} else {
		s.series[f] = struct{}{}
	}
	s.mu.Unlock()
	s.byClient.WithLabelValues(f.topic, f.client, f.reason).Inc()
}
