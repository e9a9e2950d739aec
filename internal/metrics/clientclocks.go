package metrics

import (
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

const (
	// clientClocksMax bounds the clients that are told apart; the rest share otherClients (I14).
	clientClocksMax = 1000
	otherClients    = "other"
)

// ClientClocks is, for each client id, how far the newest record of its last batch was ahead of this node's clock; below 0: behind. A clock that is
// behind looks like old events; one that is ahead is wrong.
type ClientClocks struct {
	ahead sync.Map // client id -> *atomic.Int64, milliseconds
	known atomic.Int64
}

var clientClockAhead = prometheus.NewDesc("strandline_client_clock_ahead_seconds",
	"How far the newest record of a client's last batch was ahead of this node's clock.", []string{"client"}, nil)

// Set takes in a batch of a client.
func (c *ClientClocks) Set(client string, ahead time.Duration) {
	v, ok := c.ahead.Load(client)
	if !ok {
		v = c.add(strings.ToValidUTF8(strings.Clone(client), "?"))
	}
	v.(*atomic.Int64).Store(ahead.Milliseconds())
}

func (c *ClientClocks) add(client string) any {
	if c.known.Load() >= clientClocksMax {
		client = otherClients
	}
	v, known := c.ahead.LoadOrStore(client, &atomic.Int64{})
	if !known {
		c.known.Add(1)
	}
	return v
}

// Describe implements prometheus.Collector.
func (*ClientClocks) Describe(ch chan<- *prometheus.Desc) { ch <- clientClockAhead }

// Collect implements prometheus.Collector.
func (c *ClientClocks) Collect(ch chan<- prometheus.Metric) {
	c.ahead.Range(func(client, ahead any) bool {
		seconds := float64(ahead.(*atomic.Int64).Load()) / 1000
		ch <- prometheus.MustNewConstMetric(clientClockAhead, prometheus.GaugeValue, seconds, client.(string))
		return true
	})
}
