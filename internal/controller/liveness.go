package controller

import (
	"context"
	"errors"
	"slices"
	"time"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/metadata"
	"strandline.dev/internal/peer"
)

// takeOver is the time between winning an election and deciding: every unfenced broker is dialled, so that those that died with the last
// controller lose their leaderships in the first entry.
type takeOver struct {
	term   uint64
	cancel context.CancelFunc
	dead   chan []metadata.FenceBroker // holds one
	done   bool                        // found is set
	found  []metadata.FenceBroker
}

// probed is the end of a probe of one broker.
type probed struct {
	fence   metadata.FenceBroker
	refused bool
}

// Gone says that an accepted connection of a node has ended. It never blocks: what does not fit is found by the session's time-out.
func (c *Controller) Gone(who peer.Identity, class peer.Class) {
	if class != peer.Control {
		return
	}
	select {
	case c.gone <- who:
	default:
	}
}

// startTakeOver dials all that might have to be fenced, or begins the reign when there is nobody.
func (c *Controller) startTakeOver(ctx context.Context, image *metadata.Image, term uint64) {
	var others []metadata.FenceBroker
	for b := range image.Brokers() {
		if b.ID != c.node && !b.Fenced {
			others = append(others, metadata.FenceBroker{Node: b.ID, Epoch: b.Epoch})
		}
	}
	if c.peers == nil || len(others) == 0 || c.tookOver == term {
		c.beginReign(ctx, image, term, nil)
		return
	}
	ctx, cancel := context.WithTimeout(ctx, takeOverMax)
	t := &takeOver{term: term, cancel: cancel, dead: make(chan []metadata.FenceBroker, 1)}
	c.taking = t
	c.log.Info("taking over", "term", term, "version", image.Version(), "brokers", len(others))
	c.running.Go(func() {
		defer cancel()
		results := make(chan probed, len(others))
		for _, o := range others {
			c.running.Go(func() { results <- probed{o, c.refusesDials(ctx, o.Node)} })
		}
		var dead []metadata.FenceBroker
		for range others {
			if r := <-results; r.refused {
				dead = append(dead, r.fence)
			}
		}
		t.dead <- dead
	})
}

// dropTakeOver ends a take-over that is not to be finished.
func (c *Controller) dropTakeOver() {
	if c.taking != nil {
		c.taking.cancel()
		c.taking = nil
	}
}

// takenOver is the channel of the take-over in progress, or nil.
func (c *Controller) takenOver() chan []metadata.FenceBroker {
	if c.taking == nil {
		return nil
	}
	return c.taking.dead
}

// refusesDials says that nobody listens at a node's address. A process that is being killed closes its connections and its listener one after the
// other, so an answer that is neither yes nor no is asked for again.
func (c *Controller) refusesDials(ctx context.Context, node kafka.NodeID) bool {
	for _, pause := range probePauses {
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return false
		}
		switch err := c.peers.Probe(ctx, node); {
		case err == nil:
			return false
		case errors.Is(err, peer.ErrRefused):
			return true
		}
	}
	return false
}

// lost looks after a broker whose connection has broken: if the process is gone, waiting for its session to end would only cost time.
func (c *Controller) lost(ctx context.Context, who peer.Identity) {
	if c.reign == nil {
		if len(c.missed) < goneMax {
			c.missed = append(c.missed, who) // a reign may be about to begin
		}
		return
	}
	if who.Node == c.node || slices.Contains(c.probing, who.Node) {
		return
	}
	b := c.reign.working.Broker(who.Node)
	if b == nil || b.Fenced || b.StartNumber != who.Start || b.Directory != who.Directory {
		return
	}
	fence := metadata.FenceBroker{Node: b.ID, Epoch: b.Epoch}
	c.probing = append(c.probing, b.ID)
	c.running.Go(func() { c.probed <- probed{fence, c.refusesDials(ctx, fence.Node)} })
}

// afterProbe fences a broker whose process is gone.
func (c *Controller) afterProbe(p probed) {
	c.probing = slices.DeleteFunc(c.probing, func(n kafka.NodeID) bool { return n == p.fence.Node })
	if !p.refused {
		return
	}
	c.due = append(c.due, p.fence)
	c.fenceDue()
}

// fenceDue fences the brokers whose processes are gone.
func (c *Controller) fenceDue() {
	if c.reign == nil || c.behind() {
		return
	}
	due := c.due
	c.due = nil
	c.fence(due, "its process is gone: nobody listens at its address")
}

// checkSessions fences the brokers that have been silent for too long.
func (c *Controller) checkSessions() {
	now := time.Now()
	if slept := now.Sub(c.checked) - checkEvery; slept > checkLateMax {
		c.sessions.forgive(slept)
	}
	c.checked = now
	c.fenceDue()
	if c.reign == nil || c.behind() {
		return
	}
	var silent []metadata.FenceBroker
	for b := range c.reign.working.Brokers() {
		if !b.Fenced && c.sessions.silent(b.ID, now) > c.sessionTimeout {
			silent = append(silent, metadata.FenceBroker{Node: b.ID, Epoch: b.Epoch})
		}
	}
	c.fence(silent, "no heartbeat for "+c.sessionTimeout.String())
}

// fence decides that brokers are not counted on any more.
func (c *Controller) fence(brokers []metadata.FenceBroker, why string) {
	if len(brokers) == 0 {
		return
	}
	c.round(c.fences(brokers, why))
}

func (c *Controller) fences(brokers []metadata.FenceBroker, why string) []*call {
	var calls []*call
	for _, f := range brokers {
		c.log.Warn("broker fenced", "broker", f.Node, "epoch", f.Epoch, "why", why)
		calls = append(calls, c.own(f))
	}
	return calls
}

// beat answers a heartbeat. It is called from any goroutine.
func (c *Controller) beat(m heartbeat) heartbeatAnswer {
	// The term comes first: a reign that begins in between is one this node leads in the Image that is read next.
	reigning := c.reigning.Load()
	l, image := c.quorum.Leadership(), c.quorum.Image()
	a := heartbeatAnswer{Active: l.Leader, Term: l.Term, Version: image.Version()}
	if !l.Leading || reigning != l.Term {
		return a
	}
	b := image.Broker(m.Node)
	if b == nil || b.Epoch != m.Epoch {
		a.Standing = unknown
		return a
	}
	c.sessions.touch(m.Node, time.Now())
	a.Standing = up
	if b.Fenced {
		a.Standing = fenced
	}
	return a
}
