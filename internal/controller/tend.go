package controller

import (
	"time"

	"strandline.dev/internal/metadata"
)

// tend does what nobody asks for: moves that drains and internal topics need, and leaderships that have strayed.
func (c *Controller) tend(now time.Time) {
	r := c.reign
	if r == nil || r.full() || c.behind() || c.peers == nil {
		return
	}
	var calls []*call
	for b := range r.working.Brokers() {
		if r.working.Draining(b.ID) {
			calls = append(calls, c.own(metadata.ContinueDrains{Max: drainMovesMax}))
			break
		}
	}
	if c.internalReplicas > 1 {
		calls = append(calls, c.own(metadata.RaiseInternal{Factor: c.internalReplicas, Max: raiseMovesMax}))
	}
	if now.Sub(r.balanced) >= balanceEvery {
		r.balanced = now
		calls = append(calls, c.own(metadata.BalanceLeaders{Max: balanceMax}))
	}
	if len(calls) > 0 {
		c.round(calls)
	}
}
