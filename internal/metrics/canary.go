package metrics

import "github.com/prometheus/client_golang/prometheus"

// CanaryFailure is why a measurement of the canary failed.
type CanaryFailure string

// The failures.
const (
	// CanaryUnpublished: no acknowledgement in time; whether the record is stored is not known.
	CanaryUnpublished CanaryFailure = "unpublished"
	// CanaryUnread: it was acknowledged, and not to be read in time.
	CanaryUnread CanaryFailure = "unread"
	// CanaryLost: it was acknowledged, and something else is where it should be. It must never happen, unless an operator had a replica lead that lacks records.
	CanaryLost CanaryFailure = "lost"
)

// Canary are the instruments of what nodes publish to measure themselves (R180).
type Canary struct {
	// EndToEnd observes seconds from the beginning of a measurement to the acknowledgement of its record, with every repetition and search for a leader.
	EndToEnd prometheus.Observer
	failures *prometheus.CounterVec
}

func newCanary(p *prometheus.Registry) *Canary {
	c := &Canary{
		EndToEnd: histogram(p, "strandline_publish_end_to_end_seconds",
			"Time from the beginning of a measurement of the canary to the acknowledgement of its record, repetitions included (canary.interval)."),
		failures: counters(p, "strandline_canary_failures_total",
			"Records of the canary that were not acknowledged in time, or acknowledged and not read back.", "reason"),
	}
	for _, why := range []CanaryFailure{CanaryUnpublished, CanaryUnread, CanaryLost} {
		c.failures.WithLabelValues(string(why))
	}
	return c
}

// Failed counts a measurement that failed.
func (c *Canary) Failed(why CanaryFailure) { c.failures.WithLabelValues(string(why)).Inc() }
