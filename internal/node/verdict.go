package node

import (
	"context"
	"sync"
	"time"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/metadata"
	"strandline.dev/internal/peer"
)

// suspectMax is how long a broker whose connection has ended is a suspect: the controller's probes take about as long.
const suspectMax = 200 * time.Millisecond

// suspects are the brokers whose connections have just ended. Most have died, and the controller is about to say so.
type suspects struct {
	mu sync.Mutex // a leaf
	at map[kafka.NodeID]suspect
}

type suspect struct {
	start uint64
	until time.Time
}

// gone takes note that a connection of a process has ended.
func (s *suspects) gone(who peer.Identity) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.at == nil {
		s.at = map[kafka.NodeID]suspect{}
	}
	s.at[who.Node] = suspect{start: who.Start, until: time.Now().Add(suspectMax)}
}

// open says whether a suspect has not been judged yet: it still counts, as the process it was. It forgets the others.
func (s *suspects) open(img *metadata.Image, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, one := range s.at {
		if b := img.Broker(id); b == nil || b.Fenced || b.StartNumber != one.start || !now.Before(one.until) {
			delete(s.at, id)
		}
	}
	return len(s.at) > 0
}

// settle returns what waits for the controller's verdict on the suspects, nil when there are none.
func (n *Node) settle() func(context.Context) {
	if !n.suspects.open(n.quorum.Image(), time.Now()) {
		return nil
	}
	return func(ctx context.Context) {
		ctx, cancel := context.WithTimeout(ctx, suspectMax)
		defer cancel()
		for {
			changed := n.quorum.Changed() // before the Image
			if !n.suspects.open(n.quorum.Image(), time.Now()) {
				return
			}
			select {
			case <-changed:
			case <-ctx.Done():
				return
			}
		}
	}
}
