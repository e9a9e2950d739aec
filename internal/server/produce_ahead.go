package server

import (
	"context"
	"time"

	"strandline.dev/internal/metadata"
	"strandline.dev/internal/replica"
)

// A client may know of a leader before that leader does: it was told by a node whose metadata was some milliseconds newer, and follows the hint at
// once. Sent away without a newer hint it would wait its own pause, many times as long. So a publish to a follower that may be about to lead waits a
// moment for the news. It waits where it is read, so that nothing of its connection overtakes it (C067).

// awaitLead waits, no longer than aheadMax, until this node leads what is published to, or is seen not to be about to.
func (p *publish) awaitLead(ctx context.Context) {
	s := p.server
	ctx, cancel := context.WithTimeout(ctx, aheadMax)
	defer cancel()
	for {
		changed := s.cfg.Quorum.Changed() // before the Image
		img := s.cfg.Image()
		if s.cfg.Replicas.WaitApplied(ctx, img.Version()) != nil {
			return
		}
		if v := s.applied.Load(); v < img.Version() {
			s.applied.CompareAndSwap(v, img.Version())
		}
		if !p.mayComeToLead(img) {
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}

// mayComeToLead says whether this node follows one of the partitions and has not lost its leadership a moment ago: then nobody who is behind comes
// here, only who is ahead.
func (p *publish) mayComeToLead(img *metadata.Image) bool {
	for i := range p.items {
		tp := p.items[i].TP
		t := img.TopicByID(tp.Topic)
		if t == nil || int(tp.Partition) >= len(t.Partitions) || t.Partitions[tp.Partition].Leader == p.server.cfg.Node {
			continue
		}
		st, held := p.server.cfg.Replicas.Describe(tp)
		if held && st.Role == replica.Following && (st.Lost.IsZero() || time.Since(st.Lost) > lostMax) {
			return true
		}
	}
	return false
}
