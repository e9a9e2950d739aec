package node

import (
	"context"
	"slices"
	"time"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/metadata"
)

// others says whether another broker is up and to stay.
func (n *Node) others() bool {
	for b := range n.quorum.Image().Brokers() {
		if b.ID != n.o.Config.Node.ID && !b.Fenced && !b.Stopping {
			return true
		}
	}
	return false
}

// farewell is how far a node has come with saying goodbye to the controller.
type farewell uint8

const (
	unsaid  farewell = iota
	said             // this broker is fenced, or as good
	unheard          // there is no controller to say it to
)

// handOver gives what this node leads to others while it still serves: clients are told who leads now, and nobody waits for a time-out.
// It ends when others lead all that others can lead, or after handOverMax; without a controller after noControllerMax.
func (n *Node) handOver(ctx context.Context) {
	if n.o.Together || !n.isBroker() || n.brokerEpoch() == 0 || n.broken.Load() != nil || !n.others() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, handOverMax)
	defer cancel()
	for {
		version, err := n.say(ctx, true)
		if err == nil {
			err = n.host.WaitApplied(ctx, version)
		}
		if err != nil {
			n.log.Warn("others have not taken over what this node leads; they will when it is gone", "error", err)
			return
		}
		if n.movable() == 0 {
			break
		}
		select {
		case <-ctx.Done():
			n.log.Warn("partitions stay without a leader until others have caught up", "partitions", n.movable())
			return
		case <-time.After(handOverAgain):
		}
	}
	// Whoever decides that this broker has gone is to be somebody who stays: else the others learn of it only after an election.
	lead, stop := context.WithTimeout(ctx, noControllerMax)
	defer stop()
	if err := n.quorum.HandOver(lead); err != nil {
		n.log.Warn("the lead of the metadata quorum was not handed over; the others will elect somebody when this node is gone", "error", err)
	}
	n.handedOver = true
}

// say tells the controller that this broker stops, or has stopped and is to be fenced. A controller that is not found in time is not looked for
// again.
func (n *Node) say(ctx context.Context, stopping bool) (version uint64, err error) {
	ctx, cancel := context.WithTimeout(ctx, noControllerMax)
	defer cancel()
	ev := metadata.FenceBroker{Now: n.o.Machine.Wall.Now(), Node: n.o.Config.Node.ID, Epoch: n.brokerEpoch(), Stopping: stopping}
	_, version, err = n.link.Submit(ctx, ev)
	switch {
	case err != nil:
		n.farewell = unheard
	case !stopping:
		n.farewell = said
	}
	return version, err
}

// linger goes on serving when others lead: clients learn from this node's refusals who does, and from everybody's metadata that it has gone. A
// listener that closed at once would send them looking, each with its own pause between attempts.
func (n *Node) linger(ctx context.Context) {
	if !n.handedOver {
		return
	}
	n.resign(ctx)
	over := time.After(lingerMax)
	for sent := n.server.SentAway(); ; {
		select {
		case <-time.After(lingerQuiet):
		case <-over:
			return
		}
		now := n.server.SentAway()
		if now == sent {
			return
		}
		sent = now
	}
}

// movable counts the partitions that this node leads and that another broker which is up may come to lead.
func (n *Node) movable() int {
	img := n.quorum.Image()
	up := map[kafka.NodeID]bool{}
	for b := range img.Brokers() {
		up[b.ID] = b.ID != n.o.Config.Node.ID && !b.Fenced && !b.Stopping
	}
	count := 0
	for t := range img.Topics() {
		for i := range t.Partitions {
			s := &t.Partitions[i]
			if s.Leader == n.o.Config.Node.ID && slices.ContainsFunc(s.Replicas, func(r kafka.NodeID) bool { return up[r] }) {
				count++
			}
		}
	}
	return count
}

// resign says goodbye before a stop. With others up this broker is fenced, so that no leader waits for its copy; a node that is alone keeps its
// leaderships, and gets them back at its next start.
func (n *Node) resign(ctx context.Context) {
	if n.o.Together || !n.isBroker() || n.brokerEpoch() == 0 || n.farewell != unsaid {
		return
	}
	if _, err := n.say(ctx, !n.others()); err != nil {
		n.log.Warn("the controller did not take the goodbye; the next start will be slower", "error", err)
	}
}
