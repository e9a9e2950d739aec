package controller

import (
	"context"
	"fmt"
	"time"

	"strandline.dev/internal/metadata"
	"strandline.dev/internal/quorum"
)

// reign is one term of this node as the active controller.
type reign struct {
	term uint64
	// working is the Image with everything decided in this reign, committed or not.
	working *metadata.Image
	// last is the index of the last entry that was proposed, or of the Image the reign began with.
	last uint64
	// parked are decided calls in the order of the entries they wait for.
	parked []parked
	// inFlight are the proposed entries that are not committed, and their bytes together.
	inFlight      []flight
	inFlightBytes int
	// began is when this node began to decide.
	began time.Time
	// balanced is when leaderships were last given back.
	balanced time.Time
}

// parked is an answer that waits for the entry at index.
type parked struct {
	call  *call
	index uint64
	reply any
	// first is the index of the first of several entries; 0 when the records are all in the entry at index.
	first uint64
	// admin says that the call is an administrative change and has records.
	admin bool
}

type flight struct {
	index uint64
	bytes int
}

// full says that enough waits for the disk.
func (r *reign) full() bool {
	return len(r.parked) >= parkedMax || r.inFlightBytes >= inFlightBytesMax
}

// observe follows the quorum: it begins a reign, lets answers go, or ends the reign.
func (c *Controller) observe(ctx context.Context, image *metadata.Image, l quorum.Leadership) {
	if c.reign != nil && (!l.Leading || l.Term != c.reign.term) {
		c.endReign("leadership lost")
	}
	if c.taking != nil && (!l.Leading || l.Term != c.taking.term) {
		c.dropTakeOver()
	}
	if !l.Leading {
		c.missed, c.due = nil, nil
	}
	if c.reign != nil {
		c.release(image.Version())
		c.rebase(image)
		return
	}
	// All earlier terms committed is in the Image when it has reached this term's first entry. The second condition holds at
	// once, except after a reign that ended while this node went on leading: then what that reign proposed comes first.
	if !l.Leading || image.Version() < l.TermStart || image.Version()+1 != c.quorum.LogEnd() {
		return
	}
	switch {
	case c.taking == nil:
		c.startTakeOver(ctx, image, l.Term)
	case c.taking.done:
		dead := c.taking.found
		c.dropTakeOver()
		c.beginReign(ctx, image, l.Term, dead)
	}
}

// behind says that the quorum has appended an entry of its own, a change of its voters. Until the Image holds it nothing is decided: it would be
// decided without it, and for an index that is taken.
func (c *Controller) behind() bool { return c.quorum.LogEnd() != c.reign.last+1 }

// rebase takes entries of the quorum itself into the working Image. Everything that this reign has proposed is committed when it comes to that.
func (c *Controller) rebase(image *metadata.Image) {
	if r := c.reign; len(r.inFlight) == 0 && image.Version() > r.last {
		r.working, r.last = image, image.Version()
	}
}

// beginReign starts to decide. The dead are fenced before anything else is looked at, and whatever they led is led by others with the same entry.
// Then come those whose connections have broken since: a reign may end and begin again within a term, and what happened in between is known to nobody else.
func (c *Controller) beginReign(ctx context.Context, image *metadata.Image, term uint64, dead []metadata.FenceBroker) {
	now := time.Now()
	c.reign = &reign{term: term, working: image, last: image.Version(), began: now, balanced: now}
	c.tookOver = term
	c.sessions.begin(now)
	c.reigning.Store(term)
	c.log.Info("active controller", "term", term, "version", image.Version())
	calls := c.fences(dead, "at the take-over: nobody listens at its address")
	calls = append(calls, c.own(metadata.FinishTopics{}))
	c.round(append(calls, c.expiry()...))
	missed := c.missed
	c.missed = nil
	for _, who := range missed {
		c.lost(ctx, who)
	}
}

// release answers what waited for entries up to version.
func (c *Controller) release(version uint64) {
	r := c.reign
	n := 0
	for ; n < len(r.inFlight) && r.inFlight[n].index <= version; n++ {
		r.inFlightBytes -= r.inFlight[n].bytes
	}
	r.inFlight = r.inFlight[n:]
	n = 0
	for ; n < len(r.parked) && r.parked[n].index <= version; n++ {
		p := r.parked[n]
		if p.admin {
			c.metrics.AdminChanges.Inc()
		}
		p.call.answer <- answer{reply: p.reply, version: p.index}
		r.parked[n] = parked{}
	}
	r.parked = r.parked[n:]
}

// endReign drops the working Image. What waits may be committed by the next leader, or not: nobody here can know.
func (c *Controller) endReign(why string) {
	c.dropTakeOver()
	if c.reign == nil {
		return
	}
	r := c.reign
	c.reign = nil
	c.reigning.Store(0)
	c.log.Info("no longer active controller", "term", r.term, "why", why, "waiting", len(r.parked))
	for _, p := range r.parked {
		p.call.answer <- answer{err: fmt.Errorf("%w: %s", ErrUnknownOutcome, why)}
	}
}
