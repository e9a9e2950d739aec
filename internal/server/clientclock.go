package server

import (
	"errors"
	"time"

	"strandline.dev/internal/record"
)

// clientClock names a client that stamps records ahead of this node's clock, as a clock does that is wrong or counts in another unit (C043, O10). How
// far ahead is still taken is the topic's message.timestamp.after.max.ms; retention counts the broker's append times in any case. A clock that is
// behind looks like old events and is not told from them; the metric has both. verdict is what became of the batch: only one that could be read says anything.
func (p *publish) clientClock(batch record.Batch, verdict error, nowMs int64) {
	if invalid := (*record.InvalidError)(nil); verdict != nil && !(errors.As(verdict, &invalid) && invalid.Kind == record.InvalidTimestamp) {
		return
	}
	newest := batch.MaxTimestamp()
	p.server.cfg.Metrics.ClientClocks.Set(clip(p.call.ClientID), time.Duration(newest-nowMs)*time.Millisecond)
	if newest <= nowMs || newest-nowMs < clockAheadMin.Milliseconds() {
		return
	}
	p.server.peers.line(reasonClock, "a client stamps records ahead of this node's clock", p.call.Peer,
		"client", clip(p.call.ClientID), "principal", clip(p.call.Principal.String()), "ahead_ms", newest-nowMs, "refused", verdict != nil)
}
