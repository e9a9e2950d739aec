package node

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"time"

	"strandline.dev/internal/audit"
	"strandline.dev/internal/auth"
	"strandline.dev/internal/canary"
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
		{"access", n.openAccess},
		{"http", n.serveHTTP},
		{"encryption", n.openKeyring},
		{"data directory", n.openDir},
		{"cluster", n.openPeers},
		{"metadata", n.openQuorum},
		{"partitions", n.openHost},
		{"controller", n.openController},
		{"metrics", n.openMetrics},
		{"audit", n.buildAudit},
		{"cluster", n.serveCluster},
		{"groups", n.buildCoordinator},
		{"registration", func(background context.Context) error { return n.register(ctx, background) }},
		{"audit", n.serveAudit},
		{"clients", n.serveClients},
		{"canary", n.measure},
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
	n.http = rest.NewServer(n.restConfig())
	n.run(func() {
		door := n.httpBind
		if n.o.Config.HTTP.TLS {
			door = tls.NewListener(door, auth.ServerTLS(n.access.shown, clientAuth(n.o.Config.HTTP.ClientCert)))
		}
		if err := n.http.Serve(door); err != nil && !errors.Is(err, http.ErrServerClosed) {
			n.fail("http", err)
		}
	})
	n.stops = append(n.stops, func() error {
		ctx, cancel := context.WithTimeout(context.Background(), httpStopMax)
		defer cancel()
		err := n.http.Shutdown(ctx)
		if errors.Is(err, context.DeadlineExceeded) { // requests that took too long, and connections on which none has come yet
			err = n.http.Close()
		}
		return err
	})
	return nil
}

// restConfig is what the HTTP door is given. /v1 answers 503 until clients are served.
func (n *Node) restConfig() rest.Config {
	c := rest.Config{
		Ready: n.ready, Live: n.live, Metrics: n.metrics.Handler(), Detail: n.metrics.DetailHandler(), Server: n.serving.Load,
		Node: n.o.Config.Node.ID, Authenticator: n.access.authenticator, Access: n.access.authorizer, Wall: n.o.Machine.Wall, Log: n.log,
	}
	if n.o.Config.HTTP.ClientCert != config.CertNone {
		c.Names = n.access.names
	}
	return c
}

// live is nil unless the node has failed for good.
func (n *Node) live() error {
	if err := n.broken.Load(); err != nil {
		return *err
	}
	return nil
}

// Answer returns once the node has answered a question that takes the lock of its partitions; a node that is locked up never returns. It waits
// for no disk and no other node: those may be slow, and a restart makes them no faster.
func (n *Node) Answer() { n.host.Partitions() }

func (n *Node) openDir(ctx context.Context) error {
	o := storage.DirOptions{
		Machine: n.o.Machine, Path: n.o.Config.Data.Dir, Log: n.log, Metrics: n.metrics.Storage, ReserveBytes: storage.ReserveBytesDefault,
		LimitBytes: n.o.Config.Disk.LimitBytes, LimitPercent: n.o.Config.Disk.LimitPercent,
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
		TopicConfig: n.topicConfig, Purged: n.replicasPurged, ProducerExpiry: n.o.Config.Kafka.ProducerIDExpiration,
		Peers: n.peers, LagMax: n.o.Config.Replica.LagMax,
		CopyRate: func() int64 { return n.brokerConfig().CopyRate },
		Submit:   func(ctx context.Context, ev metadata.Event) (any, uint64, error) { return n.link.Submit(ctx, ev) },
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
		Registration: n.registration, Unfit: n.host.Stalled, Registered: n.registeredAs, Dev: n.o.Dev,
		Ends: func(tps []kafka.TopicPartition) []metadata.PartitionEnds { return n.host.Ends(n.o.Config.Node.ID, tps) },
	})
	return nil
}

// buildCoordinator makes the group coordinator. It coordinates nothing until the reconciler tells it what this node leads, and ends before
// the partitions do.
func (n *Node) buildCoordinator(ctx context.Context) error {
	n.coordinator = coordinator.New(coordinator.Config{
		Node: n.o.Config.Node.ID, Image: n.quorum.Image, Replicas: n.host, Controller: n.link,
		Broker: n.brokerConfig, TopicConfig: n.topicConfig, Wall: n.o.Machine.Wall, Log: n.log, Metrics: n.metrics.Broker,
		Sees: n.access.authorizer.Sees,
	})
	n.stops = append(n.stops, func() error { n.coordinator.Close(); return nil })
	n.stops = append(n.stops, n.background(ctx, "backlogs", func(ctx context.Context) error { n.coordinator.Watch(ctx); return nil }))
	return nil
}

// buildAudit makes the audit trail, unless the configuration wants none, and takes entries of other nodes. It is kept from serveAudit on, when this
// node can lead partitions.
func (n *Node) buildAudit(context.Context) error {
	if n.o.Config.Audits() {
		n.audit = audit.New(audit.Config{
			Node: n.o.Config.Node.ID, Run: n.incarnation, Image: n.quorum.Image, Replicas: n.host, Controller: n.link, Peers: n.peers, Dev: n.o.Dev,
			Wall: n.o.Machine.Wall, Log: n.log, Metrics: n.metrics.Broker,
		})
	}
	return nil
}

func (n *Node) serveAudit(ctx context.Context) error {
	if n.audit != nil {
		n.stops = append(n.stops, n.background(ctx, "audit", func(ctx context.Context) error { n.audit.Run(ctx); return nil }))
		n.stops = append(n.stops, n.background(ctx, "offline acts", func(ctx context.Context) error {
			n.audit.TakeOffline(ctx, n.o.Machine.FS, n.o.Config.Data.Dir)
			<-ctx.Done()
			return nil
		}))
	}
	return nil
}

// trail is the audit trail of the server, nil where there is none.
func (n *Node) trail() server.Audit {
	if n.audit == nil {
		return nil
	}
	return n.audit
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
		Ends: n.link.Ends, Voters: n.voters(), Settle: n.settle, Unanswered: n.unanswered(), Reach: n.reach(), Forwarder: n.forwarder,
		Access: n.access.authorizer, Authenticator: n.access.authenticator, SessionMax: n.o.Config.Auth.SessionMax, Audit: n.trail(),
		SlowAfter: n.o.Config.Log.SlowRequest,
		Wall:      n.o.Machine.Wall, Log: n.log, Metrics: n.metrics.Broker, Limits: server.Limits{Connections: n.connectionsMax()},
	})
	n.serving.Store(n.server)
	clients, cancel := context.WithCancel(ctx)
	n.cancelClients = cancel
	for i, l := range n.listeners {
		l.Door = n.door(n.o.Config.Listeners[i])
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

// measure has this node measure its own publishes, where it is to.
func (n *Node) measure(ctx context.Context) error {
	if n.o.Config.Canary.Interval == 0 {
		return nil
	}
	c := canary.New(canary.Config{
		Node: n.o.Config.Node.ID, Interval: n.o.Config.Canary.Interval, Image: n.quorum.Image, Broker: n.server, Controller: n.link, Dev: n.o.Dev,
		Wall: n.o.Machine.Wall, Log: n.log, Metrics: n.metrics.Broker.Canary,
	})
	stop := n.background(ctx, "canary", func(ctx context.Context) error { c.Run(ctx); return nil })
	n.hush = func() { _ = stop() }
	n.stops = append(n.stops, stop)
	return nil
}

// unanswered tells for how long no controller has answered, or is nil where there is no other node.
func (n *Node) unanswered() func() time.Duration {
	if !n.hasCluster() {
		return nil
	}
	return n.link.Unanswered
}

// reach dials another node, or is nil where there is none.
func (n *Node) reach() func(context.Context, kafka.NodeID) error {
	if !n.hasCluster() {
		return nil
	}
	return n.peers.Probe
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
