package replica

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"strandline.dev/internal/isr"
	"strandline.dev/internal/kafka"
	"strandline.dev/internal/metadata"
)

// ISR changes of all partitions led here go to the controller together, by one goroutine: what becomes due while one request is under way
// goes with the next. A change stays open in the core until a newer partition epoch is seen (I3), so a lost answer only means that the
// core is asked again.

// proposed is a change under way.
type proposed struct {
	p        *partition
	proposal isr.Proposal
}

// proposeISR puts what the partitions want to the controller. It reports false when all is well, and true when some want to be asked again.
func (r *replication) proposeISR(ctx context.Context, ps []*partition) (failed bool) {
	ev := metadata.AlterISR{Now: r.now(), Node: r.node, Epoch: kafka.BrokerEpoch(r.broker.Load())}
	var open []proposed
	for _, p := range ps {
		if c, ok := p.propose(); ok {
			open = append(open, proposed{p, c})
			ev.Changes = append(ev.Changes, changeOf(p.tp, c, r.node, ev.Epoch))
		}
	}
	if len(open) == 0 {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, submitMax)
	defer cancel()
	reply, _, err := r.submit(ctx, ev)
	results, ok := reply.([]metadata.ISRResult)
	if err == nil && (!ok || len(results) != len(open)) {
		err = fmt.Errorf("the controller answered %d changes with %T", len(open), reply)
	}
	if err != nil {
		r.log.Debug("ISR changes are not decided yet", "partitions", len(open), "err", err)
		for _, c := range open {
			r.changes.add(c.p)
		}
		return true
	}
	for i, c := range open {
		failed = c.p.decided(c.proposal, &results[i]) || failed
	}
	return failed
}

func changeOf(tp kafka.TopicPartition, c isr.Proposal, self kafka.NodeID, broker kafka.BrokerEpoch) metadata.ISRChange {
	out := metadata.ISRChange{TP: tp, LeaderEpoch: c.LeaderEpoch, PartitionEpoch: c.PartitionEpoch, Lost: c.Lost}
	for _, m := range c.ISR {
		if m.Node == self {
			m.Broker = broker
		}
		out.ISR = append(out.ISR, metadata.Member{Node: m.Node, Epoch: m.Broker})
	}
	return out
}

// propose asks the core which ISR there should be.
func (p *partition) propose() (isr.Proposal, bool) {
	p.mu.Lock()
	defer p.unlock()
	if p.mu.core == nil {
		return isr.Proposal{}, false
	}
	return p.mu.core.Propose(p.env.repl.mayJoin)
}

// decided takes in what the controller said to a change. It reports true when the change is open still and has to be asked about again.
func (p *partition) decided(c isr.Proposal, r *metadata.ISRResult) (again bool) {
	p.mu.Lock()
	defer p.unlock()
	if p.mu.core == nil || p.mu.core.Epoch() != c.LeaderEpoch {
		return false
	}
	if r.OK() {
		p.env.metrics.ISRShrinks.Add(float64(c.Shrinks))
		p.env.metrics.ISRExpands.Add(float64(c.Expands))
		p.env.log.Info("ISR changed", "partition", p.tp.String(), "isr", r.State.ISR, "was", p.mu.state.ISR, "lost", c.Lost)
	} else {
		p.env.log.Info("ISR change refused", "partition", p.tp.String(), "code", r.Code.String(), "why", r.Message)
		p.mu.proposeAfter = time.Now().Add(proposePause)
		if r.Code == kafka.IneligibleReplica {
			p.mu.core.Refused()
		}
	}
	if s := r.State; s.LeaderEpoch == c.LeaderEpoch && s.PartitionEpoch > p.mu.state.PartitionEpoch {
		// Whole, with its minimum (I1). The Image with it comes later, and is no news then (I13).
		p.mu.state = s
		p.updatedLocked()
	}
	if !p.mu.core.Open() || r.Code == kafka.FencedLeaderEpoch {
		return false // in the latter case the metadata will tell who leads
	}
	p.env.repl.changes.add(p)
	return !r.OK() && r.Code != kafka.IneligibleReplica // that is given up at once, by proposing the committed ISR
}

// updatedLocked gives the present state to the core.
func (p *partition) updatedLocked() {
	p.carryOutLocked(p.mu.core.Update(p.mu.state))
	p.startsKnownLocked()
}

// changeDueLocked has an ISR change proposed, unless one was refused a moment ago: then the next tick asks.
func (p *partition) changeDueLocked() {
	if p.env.repl.submit != nil && !time.Now().Before(p.mu.proposeAfter) {
		p.env.repl.changes.add(p)
	}
}

// tick lets the core measure the lag of the followers, and tries again what could not be done. heard tells when a node was last heard.
func (p *partition) tick(now time.Time, heard func(kafka.NodeID) time.Time) {
	p.mu.Lock()
	defer p.unlock()
	if p.mu.unsettled && !p.mu.busy {
		p.mu.unsettled = false
		p.settleLocked()
	}
	if p.mu.core == nil || len(p.mu.state.Replicas) < 2 {
		return
	}
	for _, n := range p.mu.state.Replicas {
		p.mu.core.HeardOf(n, heard(n))
	}
	e := p.mu.core.Tick(now, p.mu.log.End(), p.env.repl.lagMax)
	p.carryOutLocked(e)
}

// tick is called some ten times in each replica.lag.max.
func (h *Host) tick() {
	now, heard := time.Now(), h.repl.sessions.lastHeard()
	for _, p := range h.all() {
		p.tick(now, heard)
	}
}

// reportDamages tells the controller of replicas found damaged while running (I11): they leave ISR and ELR and lead nothing, and are built
// anew once the metadata says who leads instead.
func (r *replication) reportDamages(ctx context.Context, ps []*partition) (failed bool) {
	ev := metadata.ReportDamage{Node: r.node, Epoch: kafka.BrokerEpoch(r.broker.Load())}
	for _, p := range ps {
		ev.Damaged = append(ev.Damaged, metadata.DamagedReplica{TP: p.tp, LeaderEpoch: p.knownEpoch()})
	}
	ctx, cancel := context.WithTimeout(ctx, submitMax)
	defer cancel()
	reply, _, err := r.submit(ctx, ev)
	noted, ok := reply.(metadata.DamageNoted)
	switch {
	case err == nil && !ok:
		err = fmt.Errorf("the controller answered a damage report with %T", reply)
	case err == nil && !noted.OK():
		err = errors.New(noted.Message)
	}
	if err != nil {
		r.log.Warn("damaged replicas are not reported yet", "partitions", len(ps), "err", err)
		for _, p := range ps {
			r.damages.add(p)
		}
		return true
	}
	for _, p := range noted.Offline {
		r.log.Error("partition stays offline: no replica that is sound is left", "topic", p.Topic, "partition", p.Partition)
	}
	for _, p := range ps {
		if slices.Contains(noted.Stale, p.tp) {
			r.damages.add(p) // again, once this node knows the present epoch
			failed = true
			continue
		}
		p.reported()
	}
	return failed
}
