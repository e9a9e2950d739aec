package node

import (
	"context"
	"crypto/rand"
	"fmt"
	"net"
	"strconv"
	"time"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/metadata"
)

// self is the principal of the node's own requests (I15).
func (n *Node) self() kafka.Principal {
	return kafka.Principal{Type: "Node", Name: n.o.Config.Node.ID.String()}
}

// register tells the controller who has started, with the replicas that may have lost bytes (I4), waits until this node's view includes
// the answer, and asks to be unfenced. Only epochs granted after it are led (I3).
func (n *Node) register(ctx context.Context) error {
	recovered, err := n.host.Recover(ctx)
	if err != nil {
		return err
	}
	ev := metadata.RegisterBroker{
		Now: n.o.Machine.Wall.Now(), Principal: n.self(), Node: n.o.Config.Node.ID,
		Directory: n.dir.Identity().DirectoryID, StartNumber: n.dir.StartNumber(), BootID: n.dir.BootID(),
		Rack: n.o.Config.Node.Rack, ClusterAddress: n.o.Config.Cluster.Address, Roles: n.o.Config.Roles,
		Unclean: recovered.Unclean, Damaged: recovered.Damaged,
	}
	if _, err := rand.Read(ev.Incarnation[:]); err != nil {
		return err
	}
	if ev.Listeners, err = n.advertised(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, registerTimeMax)
	defer cancel()
	reply, _, err := n.controller.Submit(ctx, ev)
	if full := n.dir.Refusal(); err != nil && full != nil {
		return fmt.Errorf("%w: %w", err, full) // the likely reason, with the directory
	}
	if err != nil {
		return err
	}
	r := reply.(metadata.Registered)
	if !r.OK() {
		return fmt.Errorf("refused: %s", r.Message)
	}
	for _, tp := range r.PossibleLoss {
		n.metrics.Broker.PossibleLoss.Inc()
		n.log.Warn("the operating system was restarted under unsynced records; some acknowledged records may be lost", "partition", tp)
	}
	for _, p := range r.Offline {
		n.log.Error("partition stays offline: its only replica is damaged or belongs to another directory", "topic", p.Topic, "partition", p.Partition)
	}
	n.epoch = r.Epoch
	n.host.SetBrokerEpoch(r.Epoch)
	if err := n.dir.CommitBootID(); err != nil {
		return err
	}
	return n.becomeReady(ctx)
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

// becomeReady starts the reconciler and the host's timers, and asks to be unfenced once this node has applied its registration.
func (n *Node) becomeReady(ctx context.Context) error {
	n.stops = append(n.stops, n.background(context.WithoutCancel(ctx), "reconciler", n.reconcile))
	n.stops = append(n.stops, n.background(context.WithoutCancel(ctx), "partitions", func(ctx context.Context) error { n.host.Run(ctx); return nil }))
	if err := n.host.WaitApplied(ctx, uint64(n.epoch)); err != nil {
		return err
	}
	reply, version, err := n.controller.Submit(ctx, metadata.BrokerReady{Now: n.o.Machine.Wall.Now(), Node: n.o.Config.Node.ID, Epoch: n.epoch})
	if err != nil {
		return err
	}
	if r := reply.(metadata.BrokerChanged); !r.OK() {
		return fmt.Errorf("not unfenced: %s", r.Message)
	}
	return n.host.WaitApplied(ctx, version)
}

// reconcile makes the partitions on this node what the newest Image says, whenever one is published. The Image is the truth; which
// changes led to it does not matter.
func (n *Node) reconcile(ctx context.Context) error {
	for {
		changed := n.quorum.Changed() // before Image: a publish in between is seen as a change
		img := n.quorum.Image()
		var again <-chan time.Time
		if err := n.host.Reconcile(img); err != nil {
			n.log.Error("some partitions are not what the metadata says; trying again", "error", err, "pause", reconcileAgain)
			again = time.After(reconcileAgain)
		}
		n.coordinator.Update(img)
		select {
		case <-ctx.Done():
			return nil
		case <-changed:
		case <-again:
		}
	}
}

// replicaPurged confirms to the controller that a purged replica's directory is gone; the host repeats it until the Image agrees.
func (n *Node) replicaPurged(topic kafka.TopicID, partition int32) {
	ctx, cancel := context.WithTimeout(context.Background(), fenceTimeMax)
	n.run(func() {
		defer cancel()
		ev := metadata.ReplicaPurged{Topic: topic, Partition: partition, Node: n.o.Config.Node.ID}
		if _, _, err := n.controller.Submit(ctx, ev); err != nil {
			n.log.Debug("purge not confirmed yet", "topic", topic, "partition", partition, "error", err)
		}
	})
}

// resign gives leaderships up before a clean stop, so that clients learn of it at once.
func (n *Node) resign(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, fenceTimeMax)
	defer cancel()
	ev := metadata.FenceBroker{Now: n.o.Machine.Wall.Now(), Node: n.o.Config.Node.ID, Epoch: n.epoch, Stopping: true}
	if _, _, err := n.controller.Submit(ctx, ev); err != nil {
		n.log.Warn("the controller did not take the goodbye; the next start will be slower", "error", err)
	}
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
func (n *Node) brokerEpoch() kafka.BrokerEpoch { return n.epoch }
