package node

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"strandline.dev/internal/config"
	"strandline.dev/internal/controller"
	"strandline.dev/internal/coordinator"
	"strandline.dev/internal/kafka"
	"strandline.dev/internal/metadata"
	"strandline.dev/internal/quorum"
	"strandline.dev/internal/replica"
	"strandline.dev/internal/rest"
	"strandline.dev/internal/server"
	"strandline.dev/internal/storage"
)

// build makes every part in order; each step names what failed.
func (n *Node) build(ctx context.Context) error {
	background, cancel := context.WithCancel(context.Background())
	n.cancel = cancel
	n.stops = append(n.stops, func() error { cancel(); n.running.Wait(); return nil })
	for _, step := range []struct {
		name string
		do   func(context.Context) error
	}{
		{"listeners", n.bind},
		{"http", n.serveHTTP},
		{"data directory", n.openDir},
		{"cluster", n.openPeers},
		{"metadata", n.openQuorum},
		{"partitions", n.openHost},
		{"controller", n.openController},
		{"cluster", n.serveCluster},
		{"groups", n.buildCoordinator},
		{"registration", func(background context.Context) error { return n.register(ctx, background) }},
		{"clients", n.serveClients},
	} {
		n.setWaiting("starting: " + step.name + n.fullDisk())
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := step.do(background); err != nil {
			return stepError(step.name, err)
		}
	}
	n.waitFor(n.link.Waiting) // nothing, unless the session is lost and this broker registers anew
	return nil
}

// bind opens every listener before any file is touched, so that a taken port changes nothing.
func (n *Node) bind(context.Context) error {
	for i, l := range n.o.Config.Listeners {
		nl, err := n.o.Machine.Net.Listen(l.Address)
		if err != nil {
			return &BindError{Key: fmt.Sprintf("listeners.%d.address", i), Door: "listener " + l.Name, Address: l.Address, Err: err}
		}
		n.listeners = append(n.listeners, server.Listener{Name: l.Name, Net: nl, Advertise: l.Advertise})
		n.stops = append(n.stops, func() error { _ = nl.Close(); return nil })
	}
	if err := n.bindCluster(); err != nil {
		return err
	}
	if !n.o.Config.HasHTTP() {
		return nil
	}
	nl, err := n.o.Machine.Net.Listen(n.o.Config.HTTP.Address)
	if err != nil {
		return &BindError{Key: "http.address", Door: "http", Address: n.o.Config.HTTP.Address, Err: err}
	}
	n.httpBind = nl
	n.stops = append(n.stops, func() error { _ = nl.Close(); return nil })
	return nil
}

// bindCluster opens the listener for other nodes, unless this node is to be alone.
func (n *Node) bindCluster() error {
	n.clusterBind = n.o.ClusterListener
	address := n.o.Config.Cluster.Address
	if n.clusterBind == nil && address == "" {
		return nil
	}
	if n.clusterBind == nil {
		nl, err := n.o.Machine.Net.Listen(address)
		if err != nil {
			return &BindError{Key: "cluster.address", Door: "cluster listener", Address: address, Err: err}
		}
		n.clusterBind = nl
	}
	n.stops = append(n.stops, func() error { _ = n.clusterBind.Close(); return nil })
	return nil
}

// serveHTTP answers health and metrics from the first moment, so that a node that waits can say for what.
func (n *Node) serveHTTP(context.Context) error {
	if n.httpBind == nil {
		return nil
	}
	n.http = rest.NewServer(rest.Config{Ready: n.ready, Live: n.live, Metrics: n.metrics.Handler(), Log: n.log})
	n.run(func() {
		if err := n.http.Serve(n.httpBind); err != nil && !errors.Is(err, http.ErrServerClosed) {
			n.fail("http", err)
		}
	})
	n.stops = append(n.stops, func() error {
		ctx, cancel := context.WithTimeout(context.Background(), httpStopMax)
		defer cancel()
		return n.http.Shutdown(ctx)
	})
	return nil
}

// live is nil unless the node has failed for good.
func (n *Node) live() error {
	if err := n.broken.Load(); err != nil {
		return *err
	}
	return nil
}

func (n *Node) openDir(ctx context.Context) error {
	o := storage.DirOptions{
		Machine: n.o.Machine, Path: n.o.Config.Data.Dir, Log: n.log, Metrics: n.metrics.Storage, ReserveBytes: storage.ReserveBytesDefault,
	}
	o.OpenFilesMax, _ = fileShares(n.o.Machine.OpenFiles)
	if n.o.Dev {
		o.ReserveBytes = devReserveBytes
	}
	d, err := storage.OpenDir(o)
	if err != nil {
		return err
	}
	n.dir = d
	n.stops = append(n.stops, func() error {
		return d.Close(storage.CloseOptions{Clean: n.clean, BrokerEpoch: n.brokerEpoch()})
	})
	n.stops = append(n.stops, n.background(ctx, "data directory", n.watchDir))
	return nil
}

// watchDir ends the node when its data directory has been removed or replaced under it.
func (n *Node) watchDir(ctx context.Context) error {
	look := time.NewTicker(presenceEvery)
	defer look.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-look.C:
			if err := n.dir.Present(); err != nil {
				return err
			}
		}
	}
}

// openQuorum reads the metadata of this directory; it runs from serveCluster on.
func (n *Node) openQuorum(context.Context) error {
	q, err := quorum.Open(quorum.Config{
		Machine: n.o.Machine, Dir: n.dir, Node: n.o.Config.Node.ID, Controllers: n.o.Config.Cluster.Controllers, Peers: n.peers, Log: n.log,
	})
	if err != nil {
		return err
	}
	n.quorum = q
	n.stops = append(n.stops, q.Close)
	return nil
}

func (n *Node) openHost(context.Context) error {
	h, err := replica.NewHost(replica.Config{
		Dir: n.dir, Node: n.o.Config.Node.ID, Machine: n.o.Machine, Log: n.log, Metrics: n.metrics.Broker,
		TopicConfig: n.topicConfig, Purged: n.replicaPurged, ProducerExpiry: n.o.Config.Kafka.ProducerIDExpiration,
		Peers: n.peers, LagMax: n.o.Config.Replica.LagMax,
		Submit: func(ctx context.Context, ev metadata.Event) (any, uint64, error) { return n.link.Submit(ctx, ev) },
	})
	if err != nil {
		return err
	}
	n.host = h
	n.stops = append(n.stops, func() error { return h.Close(n.clean) })
	return nil
}

// openController makes the controller, which decides while this node leads the quorum, and the link to whichever does.
func (n *Node) openController(context.Context) error {
	n.controller = controller.New(controller.Config{
		Quorum: n.quorum, Log: n.log, Metrics: n.metrics.Broker, Wall: n.o.Machine.Wall, Peers: n.peers, Node: n.o.Config.Node.ID,
		SessionTimeout: n.o.Config.Broker.SessionTimeout, InternalReplicas: int(n.o.Config.Kafka.OffsetsTopicReplication),
	})
	n.link = controller.NewLink(controller.LinkConfig{
		Node: n.o.Config.Node.ID, Quorum: n.quorum, Controller: n.controller, Peers: n.peers, Log: n.log,
		Registration: n.registration, Registered: n.registeredAs, Dev: n.o.Dev,
		Ends: func(tps []kafka.TopicPartition) []metadata.PartitionEnds { return n.host.Ends(n.o.Config.Node.ID, tps) },
	})
	return nil
}

// buildCoordinator makes the group coordinator. It coordinates nothing until the reconciler tells it what this node leads, and ends before
// the partitions do.
func (n *Node) buildCoordinator(context.Context) error {
	n.coordinator = coordinator.New(coordinator.Config{
		Node: n.o.Config.Node.ID, Image: n.quorum.Image, Replicas: n.host, Controller: n.link,
		Broker: n.brokerConfig, TopicConfig: n.topicConfig, Wall: n.o.Machine.Wall, Log: n.log, Metrics: n.metrics.Broker,
	})
	n.stops = append(n.stops, func() error { n.coordinator.Close(); return nil })
	return nil
}

// background runs part until its stop function is called, and fails the node when it ends by itself.
func (n *Node) background(ctx context.Context, name string, part func(context.Context) error) func() error {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	n.run(func() {
		defer close(done)
		if err := part(ctx); err != nil && ctx.Err() == nil {
			n.fail(name, err)
		}
	})
	return func() error { cancel(); <-done; return nil }
}

func (n *Node) serveClients(ctx context.Context) error {
	n.server = server.New(server.Config{
		Node: n.o.Config.Node.ID, Image: n.quorum.Image, Replicas: n.host, Logs: n.host, Quorum: n.quorum, Controller: n.link,
		Groups: n.coordinator, Broker: n.brokerConfig, TopicConfig: n.topicConfig, BrokerEpoch: n.brokerEpoch, Dev: n.o.Dev,
		Ends: n.link.Ends, Voters: n.voters(),
		Wall: n.o.Machine.Wall, Log: n.log, Metrics: n.metrics.Broker, Limits: server.Limits{Connections: n.connectionsMax()},
	})
	clients, cancel := context.WithCancel(ctx)
	n.cancelClients = cancel
	for _, l := range n.listeners {
		n.clients.Add(1)
		n.run(func() {
			defer n.clients.Done()
			if err := n.server.Serve(clients, l); err != nil {
				n.fail("listener "+l.Name, err)
			}
		})
	}
	return nil
}

// voters are the controllers to be changed, or nil: a node without a cluster listener is the only one there can be.
func (n *Node) voters() server.Voters {
	if !n.hasCluster() {
		return nil
	}
	return n.quorum
}

// brokerConfig returns the broker settings in force: the file's, overlaid by the cluster's dynamic ones. Stored values that no longer
// parse are logged and the file's hold.
func (n *Node) brokerConfig() config.Broker {
	img := n.quorum.Image()
	if c := n.settings.Load(); c != nil && c.version == img.Version() {
		return c.broker
	}
	b, err := n.o.Config.Kafka.WithDynamic(img.BrokerConfigs(kafka.NoNode), img.BrokerConfigs(n.o.Config.Node.ID))
	if err != nil {
		n.log.Error("dynamic broker settings are not valid; the configuration file's hold", "error", err)
		b = n.o.Config.Kafka
	}
	n.settings.Store(&settings{img.Version(), b})
	return b
}

// settings are the broker settings in force as of one Image.
type settings struct {
	version uint64
	broker  config.Broker
}

// topicConfig returns the settings in force for a topic. A stored override that no longer parses is logged and the defaults hold: a
// topic must not become unreadable by a setting.
func (n *Node) topicConfig(t *metadata.Topic) config.Topic {
	c, err := config.ResolveTopic(t.Configs, n.brokerConfig(), n.o.Dev)
	if err != nil {
		n.log.Error("topic settings are not valid; defaults hold", "topic", t.Name, "error", err)
		c, _ = config.ResolveTopic(nil, n.brokerConfig(), n.o.Dev)
	}
	return c
}
