package node

import (
	"context"
	"fmt"
	"maps"
	"net"
	"strconv"
	"time"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/metadata"
	"strandline.dev/internal/replica"
)

// self is the principal of the node's own requests (I15).
func (n *Node) self() kafka.Principal {
	return kafka.Principal{Type: "Node", Name: n.o.Config.Node.ID.String()}
}

// register recovers the partitions, tells the active controller who has started, and returns when this broker is unfenced, or when start or
// the node ends. Only epochs granted after it are led (I3). A node without the role broker only waits for a leader of the quorum.
func (n *Node) register(start, background context.Context) error {
	var err error
	if n.recovered, err = n.host.Recover(background); err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(start)
	defer cancel(nil)
	defer context.AfterFunc(n.alive, func() { cancel(context.Cause(n.alive)) })()
	if err := n.untilOwned(ctx); err != nil {
		return err
	}
	disk := n.fullDisk()
	n.waitFor(func() string { return "waiting for " + n.awaited() + disk })
	if n.isBroker() {
		if err = n.link.Register(ctx); err == nil {
			err = n.untilUnfenced(ctx)
		}
	} else {
		err = n.untilLed(ctx)
	}
	if broken := n.broken.Load(); err != nil && broken != nil {
		return *broken
	}
	if full := n.dir.Refusal(); err != nil && full != nil {
		return fmt.Errorf("%w: %w", err, full) // the likely reason, with the directory
	}
	return err
}

// awaited says for whom or what a start waits.
func (n *Node) awaited() string {
	if why := n.quorum.Waiting(); why != "" {
		return why
	}
	if why := n.link.Waiting(); why != "" {
		return why
	}
	return "the active controller"
}

// untilUnfenced waits until this node itself knows that it is unfenced, and leads what it was given for that: clients that come now are not sent
// away.
func (n *Node) untilUnfenced(ctx context.Context) error {
	for {
		changed := n.quorum.Changed()
		img := n.quorum.Image()
		if b := img.Broker(n.o.Config.Node.ID); b != nil && b.Epoch == n.brokerEpoch() && !b.Fenced {
			return n.host.WaitApplied(ctx, img.Version())
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// untilLed waits until a leader of the quorum is known.
func (n *Node) untilLed(ctx context.Context) error {
	for {
		changed := n.quorum.LeadershipChanged()
		if n.quorum.Leadership().Leader != kafka.NoNode {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// registration describes this process (I4). What recovery found is told until it has been taken in: afterwards those replicas may have been
// built anew, and what is found while running is reported by itself.
func (n *Node) registration() (metadata.RegisterBroker, error) {
	listeners, err := n.advertised()
	return metadata.RegisterBroker{
		Now: n.o.Machine.Wall.Now(), Principal: n.self(), Node: n.o.Config.Node.ID, Incarnation: n.incarnation,
		Directory: n.dir.Identity().DirectoryID, StartNumber: n.dir.StartNumber(), BootID: n.dir.BootID(),
		Rack: n.o.Config.Node.Rack, ClusterAddress: n.clusterAddress(), Roles: n.o.Config.Roles, Listeners: listeners,
		Unclean: n.recovered.Unclean, Damaged: n.recovered.Damaged,
		Former: n.dir.PreviousBootID() != "" || n.brokerEpoch() != 0, // a boot id is kept once a registration is committed
	}, err
}

// clusterAddress is where other nodes reach this one, or "".
func (n *Node) clusterAddress() string {
	switch {
	case !n.hasCluster():
		return ""
	case n.o.ClusterListener != nil:
		return n.clusterBind.Addr().String()
	}
	return n.o.Config.ClusterAdvertised()
}

// registeredAs takes in a registration: from here on this process leads what the Image says, in that broker epoch (I3).
func (n *Node) registeredAs(ctx context.Context, r metadata.Registered, version uint64) error {
	for _, tp := range r.PossibleLoss {
		n.metrics.Broker.PossibleLoss.Inc()
		n.log.Warn("the operating system was restarted under unsynced records; some acknowledged records may be lost", "partition", tp)
	}
	for _, p := range r.Offline {
		n.log.Error("partition stays offline: its only replica is damaged or belongs to another directory", "topic", p.Topic, "partition", p.Partition)
	}
	n.epoch.Store(int64(r.Epoch))
	n.host.SetBrokerEpoch(r.Epoch)
	if err := n.dir.CommitBootID(); err != nil {
		return err
	}
	n.recovered = replica.Recovered{}
	if !n.registered {
		n.registered = true
		background := context.Background() // both end by their stops
		n.stops = append(n.stops, n.background(background, "reconciler", n.reconcile))
		n.stops = append(n.stops, n.background(background, "partitions", func(ctx context.Context) error { n.host.Run(ctx); return nil }))
	}
	return n.host.WaitApplied(ctx, version)
}

// fullDisk adds to what the node waits for that the disk is full.
func (n *Node) fullDisk() string {
	if n.dir == nil {
		return ""
	}
	if full := n.dir.Refusal(); full != nil {
		return " (" + full.Error() + ")"
	}
	return ""
}

// reconcile makes the partitions on this node what the newest Image says, whenever one is published. The Image is the truth; which
// changes led to it does not matter.
func (n *Node) reconcile(ctx context.Context) error {
	var known map[kafka.NodeID]kafka.BrokerEpoch
	for {
		changed := n.quorum.Changed() // before Image: a publish in between is seen as a change
		img := n.quorum.Image()
		var again <-chan time.Time
		if err := n.host.Reconcile(img); err != nil {
			n.log.Error("some partitions are not what the metadata says; trying again", "error", err, "pause", reconcileAgain)
			again = time.After(reconcileAgain)
		}
		n.coordinator.Update(img)
		if now := processes(img); n.peers != nil && !maps.Equal(now, known) {
			known = now
			n.peers.Recheck()
		}
		select {
		case <-ctx.Done():
			return nil
		case <-changed:
		case <-again:
		}
	}
}

// replicasPurged confirms to the controller that directories of purged replicas are gone; the host repeats it until the Image agrees.
func (n *Node) replicasPurged(gone []kafka.TopicPartition) {
	ctx, cancel := context.WithTimeout(context.Background(), fenceTimeMax)
	n.run(func() {
		defer cancel()
		ev := metadata.ReplicasPurged{Node: n.o.Config.Node.ID, Partitions: gone}
		if _, _, err := n.link.Submit(ctx, ev); err != nil {
			n.log.Debug("purge not confirmed yet", "count", len(gone), "first", gone[0].String(), "error", err)
		}
	})
}

// advertised lists the address of each listener as it is registered for other nodes and for clients that came by another one.
func (n *Node) advertised() ([]metadata.Listener, error) {
	var out []metadata.Listener
	for _, l := range n.listeners {
		address := l.Advertise
		if address == "" || address == "auto" {
			address = l.Net.Addr().String()
		}
		host, port, err := net.SplitHostPort(address)
		if err != nil {
			return nil, fmt.Errorf("listener %s: advertised address %q: %w", l.Name, address, err)
		}
		number, err := strconv.ParseUint(port, 10, 16)
		if err != nil {
			return nil, fmt.Errorf("listener %s: advertised port %q is not a number from 0 to 65535", l.Name, port)
		}
		out = append(out, metadata.Listener{Name: l.Name, Host: host, Port: int32(number)})
	}
	return out, nil
}

// brokerEpoch is the epoch of this process's registration.
func (n *Node) brokerEpoch() kafka.BrokerEpoch { return kafka.BrokerEpoch(n.epoch.Load()) }
