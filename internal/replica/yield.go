package replica

import (
	"context"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/metadata"
)

// A full disk takes no records of users, so a partition led here takes none, while its other replicas may have room. Then this node yields: it
// lets others that are in sync lead, and enters no ISR, as a broker that is about to stop, but goes on serving what nobody can take over. When
// there is room again, or when nobody else is left, it says so. Places in ISRs are not given up: a follower that cannot write leaves by its lag,
// and where all disks are full, which is how even clusters fill up, nobody is worse off than before.

// yield gives leaderships to others while user records are refused for want of space. One goroutine calls it, again and again.
func (h *Host) yield(ctx context.Context) {
	full := h.dir.Refusal() != nil
	switch others := h.repl.othersUp(); {
	case full && others && (!h.yielded || h.leadsShared()):
		if !h.yielded {
			h.log.Warn("the disk is full: others are to lead")
		}
		h.yielded = true
		h.repl.say(ctx, metadata.FenceBroker{Now: h.repl.now(), Node: h.repl.node, Epoch: kafka.BrokerEpoch(h.repl.broker.Load()), Stopping: true})
	case h.yielded && (!full || !others):
		if h.repl.say(ctx, metadata.BrokerReady{Now: h.repl.now(), Node: h.repl.node, Epoch: kafka.BrokerEpoch(h.repl.broker.Load())}) {
			h.yielded = false
			h.log.Info("this node may lead again", "room", !full)
		}
	}
}

// leadsShared says whether a partition is led here that others hold too.
func (h *Host) leadsShared() bool {
	for _, p := range h.all() {
		if p.leadsShared() {
			return true
		}
	}
	return false
}

func (p *partition) leadsShared() bool {
	p.mu.Lock()
	defer p.unlock()
	return p.mu.core != nil && len(p.mu.state.Replicas) > 1
}

// othersUp says whether another broker may lead.
func (r *replication) othersUp() bool {
	for id, b := range *r.brokers.Load() {
		if id != r.node && b.up {
			return true
		}
	}
	return false
}

// say puts an event to the controller whose answer changes nothing here.
func (r *replication) say(ctx context.Context, ev metadata.Event) bool {
	ctx, cancel := context.WithTimeout(ctx, submitMax)
	defer cancel()
	reply, _, err := r.submit(ctx, ev)
	if err != nil {
		r.log.Warn("the controller could not be told", "err", err)
		return false
	}
	changed, ok := reply.(metadata.BrokerChanged)
	return ok && changed.OK()
}
