package replica

import (
	"context"
	"slices"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/metadata"
)

// Repair. A replica whose bytes are damaged, or whose disk failed a sync, is served to nobody (I11). Where other replicas are, it is reported:
// the controller takes it out of ISR and ELR, so nothing counts on it, and another one leads. Then it is built anew, in new files, from
// its leader. Not before: while nobody else leads, what is left of it may be what an operator recovers from.

// damage is how far the repair of a replica is.
type damage uint8

const (
	// sound: nothing is known to be wrong.
	sound damage = iota
	// found: to be reported.
	found
	// reported: the controller knows.
	reported
)

// damagedLocked has damage reported, once this node is registered, unless the partition has no other replica: that one stays offline by name.
func (p *partition) damagedLocked() {
	a := p.mu.assigned
	if p.mu.damage != found || a == nil || !a.registered || a.kept || len(p.mu.state.Replicas) < 2 || p.env.repl.submit == nil {
		return
	}
	p.env.repl.damages.add(p)
}

// knownEpoch is the leader epoch of the last state that this node has seen.
func (p *partition) knownEpoch() kafka.LeaderEpoch {
	p.mu.Lock()
	defer p.unlock()
	return p.mu.state.LeaderEpoch
}

// reported notes that the controller has taken in the damage.
func (p *partition) reported() {
	p.mu.Lock()
	defer p.unlock()
	if p.mu.damage == found {
		p.mu.damage = reported
	}
	p.repairDueLocked()
}

// repairDueLocked has the replica built anew if it may be.
func (p *partition) repairDueLocked() {
	if p.repairableLocked() {
		p.env.repl.repairs.add(p)
	}
}

// repairableLocked says that nothing counts on this replica any more, and that another one leads.
func (p *partition) repairableLocked() bool {
	a, s, self := p.mu.assigned, &p.mu.state, p.env.node
	switch {
	case p.mu.damage != reported || p.mu.log == nil || p.mu.busy || a == nil || !a.registered || a.kept:
		return false
	case s.Leader == kafka.NoNode || s.Leader == self || !slices.Contains(s.Replicas, self):
		return false
	}
	return !slices.Contains(s.ISR, self) && !slices.Contains(s.ELR, self) && !slices.Contains(s.LastKnown, self)
}

// repair builds damaged replicas anew.
func (r *replication) repair(_ context.Context, ps []*partition) (failed bool) {
	failures := make([]bool, len(ps))
	parallel(len(ps), func(i int) { failures[i] = ps[i].rebuild() })
	return slices.Contains(failures, true)
}

// rebuild empties the log, in new files. What was in it comes from the leader.
func (p *partition) rebuild() (failed bool) {
	p.mu.Lock()
	defer p.unlock()
	if !p.repairableLocked() {
		return false
	}
	l, was := p.mu.log, p.mu.problem
	p.mu.busy = true
	failure := p.failed.Swap(nil) // what comes from now on is of the new files
	p.unlock()
	err := l.Reset(0)
	p.mu.Lock()
	p.mu.busy = false
	if p.mu.log == nil {
		return false // retired meanwhile
	}
	if err != nil {
		p.failed.CompareAndSwap(nil, failure)
		p.env.log.Error("a damaged replica could not be built anew; trying again", "partition", p.tp.String(), "err", err)
		p.env.repl.repairs.add(p)
		return true
	}
	p.env.metrics.Rebuilds.Inc()
	p.env.log.Warn("a damaged replica is built anew from its leader", "partition", p.tp.String(), "leader", p.mu.state.Leader, "was", was)
	p.mu.problem, p.mu.damage, p.mu.hw = nil, sound, 0
	if f := p.failed.Load(); f != nil {
		p.failLocked(f.err)
	}
	p.settleLocked()
	return false
}

// resign gives up everything that this node leads, and its places in ISRs, because its disk does not answer: others can go on.
func (r *replication) resign(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, submitMax)
	defer cancel()
	ev := metadata.FenceBroker{Now: r.now(), Node: r.node, Epoch: kafka.BrokerEpoch(r.broker.Load())}
	if _, _, err := r.submit(ctx, ev); err != nil {
		r.log.Warn("leaderships could not be given up", "err", err)
	}
}
