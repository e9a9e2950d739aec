package controller

import (
	"context"
	"errors"
	"fmt"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/metadata"
	"strandline.dev/internal/peer"
)

// serve takes heartbeats and events from other nodes. Every node does: one that is not the active controller says who is.
func (c *Controller) serve(p *peer.Peers) {
	p.HandleRequest(peer.KindHeartbeat, func() peer.Message { return &heartbeat{} }, func(_ context.Context, from peer.Identity, m peer.Message) (peer.Message, error) {
		beat := *m.(*heartbeat)
		if beat.Node != from.Node {
			return nil, fmt.Errorf("node %v sends a heartbeat of node %v", from.Node, beat.Node)
		}
		a := c.beat(beat)
		return &a, nil
	})
	p.HandleRequest(peer.KindSubmit, func() peer.Message { return &submission{} }, func(ctx context.Context, from peer.Identity, m peer.Message) (peer.Message, error) {
		return c.forwarded(ctx, from, m.(*submission)), nil
	})
}

// forwarded decides an event that another node has sent.
func (c *Controller) forwarded(ctx context.Context, from peer.Identity, m *submission) *submissionAnswer {
	a := &submissionAnswer{Fate: refused, Active: kafka.NoNode}
	if why := notForOthers(from.Node, m.Event); why != "" {
		c.log.Warn("an event of another node is refused", "from", from.String(), "event", fmt.Sprintf("%T", m.Event), "why", why)
		a.Text = why
		return a
	}
	if l := c.quorum.Leadership(); !l.Leading {
		// Not left to wait for a leader here: its sender does that, and finds the new one first.
		a.Fate, a.Active = elsewhere, l.Leader
		return a
	}
	if m.Wait > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, m.Wait)
		defer cancel()
	}
	reply, version, err := c.Submit(ctx, m.Event)
	switch {
	case err == nil:
		a.Fate, a.Reply, a.Version = decided, reply, version
		return a
	case errors.Is(err, ErrNotController):
		a.Fate, a.Active = elsewhere, c.quorum.Leadership().Leader
	case errors.Is(err, ErrBusy):
		a.Fate = busy
	case errors.Is(err, ErrUnknownOutcome):
		a.Fate = unsure
	}
	a.Text = err.Error()
	return a
}

// notForOthers says why a node may not have an event decided, or "". A node speaks for itself only (I15), and what the controller does by itself is
// asked for by nobody.
func notForOthers(from kafka.NodeID, ev metadata.Event) string {
	self := from
	switch ev := ev.(type) {
	case metadata.RegisterBroker:
		self = ev.Node
	case metadata.BrokerReady:
		self = ev.Node
	case metadata.FenceBroker:
		self = ev.Node
	case metadata.ReplicasPurged:
		self = ev.Node
	case metadata.AllocateProducerIDs:
		self = ev.Node
	case metadata.AlterISR:
		self = ev.Node
	case metadata.ReportDamage:
		self = ev.Node
	case metadata.ExpireTrash, metadata.FinishTopics, metadata.BalanceLeaders, metadata.ContinueDrains, metadata.RaiseInternal:
		return "only the active controller itself decides on it"
	}
	if self != from {
		return fmt.Sprintf("node %v speaks for node %v", from, self)
	}
	return ""
}
