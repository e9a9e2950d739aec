package node

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/peer"
)

const (
	// probeTimeMax bounds the question to one controller whether it knows this node; one that hangs holds up a start no longer.
	probeTimeMax = 500 * time.Millisecond
	// probeAgain is the pause before they are asked again.
	probeAgain = time.Second
)

// untilOwned waits while every configured controller that answers refuses this node. A disk that was put into the wrong machine holds another
// cluster, perhaps one of which it is the only voter: it would serve what it holds, alone, to clients that mean the cluster of its
// configuration. Controllers that do not answer say nothing, so a start does not wait for them here.
func (n *Node) untilOwned(ctx context.Context) error {
	for said := false; ; said = true {
		denied := n.disowned(ctx)
		if denied == nil || ctx.Err() != nil {
			return context.Cause(ctx)
		}
		why := fmt.Sprintf("waiting: the configured controllers refuse this node, whose data directory %s is of cluster %q: %v",
			n.o.Config.Data.Dir, n.quorum.Image().ClusterID(), denied)
		n.setWaiting(why)
		if !said {
			n.log.Error("not serving: the configured controllers refuse this node; it may have the data directory of another cluster",
				"dir", n.o.Config.Data.Dir, "cluster", n.quorum.Image().ClusterID(), "err", denied)
		}
		select {
		case <-time.After(probeAgain):
		case <-ctx.Done():
		}
	}
}

// disowned is why the configured controllers refuse this node, or nil when one accepts it or none answers.
func (n *Node) disowned(ctx context.Context) (denied error) {
	for _, c := range n.o.Config.Cluster.Controllers {
		name, _, _ := strings.Cut(c, "@")
		id, err := strconv.ParseInt(name, 10, 32)
		if err != nil || kafka.NodeID(id) == n.o.Config.Node.ID || n.peers == nil {
			continue
		}
		probe, cancel := context.WithTimeout(ctx, probeTimeMax)
		err = n.peers.Probe(probe, kafka.NodeID(id))
		cancel()
		if err == nil {
			return nil
		}
		if errors.Is(err, peer.ErrDenied) {
			denied = err
		}
	}
	return denied
}
