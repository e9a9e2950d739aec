package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"strandline.dev/internal/audit"
	"strandline.dev/internal/config"
	"strandline.dev/internal/controller"
	"strandline.dev/internal/coordinator"
	"strandline.dev/internal/kafka"
	"strandline.dev/internal/metadata"
	"strandline.dev/internal/metrics"
	"strandline.dev/internal/peer"
	"strandline.dev/internal/quorum"
	"strandline.dev/internal/replica"
	"strandline.dev/internal/server"
	"strandline.dev/internal/storage"
	"strandline.dev/internal/sys"
)

const (
	// fenceTimeMax bounds one attempt to confirm a purge to the controller; the host repeats it.
	fenceTimeMax = 2 * time.Second
	// reconcileAgain is the pause before a failed reconciliation is tried again: a full or slow disk needs a moment, and an idle
	// cluster may publish no Image for hours.
	reconcileAgain = 2 * time.Second
	// devReserveBytes is the reserve under `dev`, whose directory is mostly thrown away: small, so that no start writes 64 MiB.
	devReserveBytes = 1 << 20
	// presenceEvery is how often the node looks whether its data directory is still there; a sync round looks by itself.
	presenceEvery = 2 * time.Second
	// httpStopMax bounds how long open HTTP requests may take once the node stops.
	httpStopMax = 2 * time.Second
	// handOverMax bounds how long a stop waits for others to take over what this node leads, handOverAgain is the pause between looks. A replica
	// that is a little behind comes into the ISR within replica.lag.max; then waiting longer only delays what cannot be helped.
	handOverMax   = 5 * time.Second
	handOverAgain = 100 * time.Millisecond
	// noControllerMax bounds how long a stop looks for a controller: with the other nodes gone too there is none to come.
	noControllerMax = 1500 * time.Millisecond
	// lingerMax bounds how long a node that has handed over goes on telling clients who leads now, lingerQuiet is how long none of them may have
	// had to be told before it stops.
	lingerMax   = time.Second
	lingerQuiet = 250 * time.Millisecond
)

// Options say what node to build.
type Options struct {
	Config config.Node
	// Dev chooses the topic defaults of `dev` and answers metadata with the address the client used.
	Dev     bool
	Machine sys.Machine
	Log     *slog.Logger
	// ClusterListener is the cluster listener if it is open already: where several nodes of one process are to know each other's ports
	// before they start. Start takes it over. nil: Config.Cluster.Address is opened.
	ClusterListener net.Listener
	// Together says that all nodes of the cluster are in one process and stop at once: nobody is left to hand over to.
	Together bool
}

// Node is a running node.
type Node struct {
	o       Options
	log     *slog.Logger
	metrics *metrics.Registry

	access      access
	listeners   []server.Listener
	httpBind    net.Listener
	clusterBind net.Listener // nil: this node is alone

	dir         *storage.Dir
	incarnation kafka.ID
	peers       *peer.Peers // nil: this node is alone
	quorum      *quorum.Quorum
	host        *replica.Host
	controller  *controller.Controller
	link        *controller.Link
	coordinator *coordinator.Coordinator
	audit       *audit.Trail // nil: there is none
	suspects    suspects
	skew        skew
	forwarder   *server.Forwarder
	server      *server.Server
	serving     atomic.Pointer[server.Server] // server, once clients are served
	hush        func()                        // ends the canary
	http        *http.Server
	// epoch is the kafka.BrokerEpoch of the newest registration, 0 before the first.
	epoch atomic.Int64
	// recovered is what the first registration has to tell (I4); registered says that it has. They belong to whoever registers, one at a time.
	recovered  replica.Recovered
	registered bool

	// settings caches the broker settings of the newest Image.
	settings atomic.Pointer[settings]
	// waiting says why the node is not ready.
	waiting atomic.Pointer[func() string]
	// broken holds the error that ended the node from inside, or nil.
	broken atomic.Pointer[error]
	// failed receives that error.
	failed chan error
	// alive ends, with that error, when the node breaks; a start in progress then gives up.
	alive context.Context
	die   context.CancelCauseFunc
	// handedOver says that others lead what this node led, farewell what is left to be said to the controller.
	handedOver bool
	farewell   farewell
	// clean says that Stop was asked for and the clean-shutdown marker may be written.
	clean bool

	stops   []func() error // in order of building; run in reverse
	running sync.WaitGroup
	clients sync.WaitGroup
	cancel  context.CancelFunc
	// cancelClients ends the listeners, before anything behind them stops.
	cancelClients context.CancelFunc
}

// Start builds a node and returns when it accepts work. On an error everything built so far has been closed.
func Start(ctx context.Context, o Options) (*Node, error) {
	n := &Node{o: o, log: o.Log, metrics: metrics.New(), failed: make(chan error, 1), hush: func() {}}
	n.alive, n.die = context.WithCancelCause(context.Background())
	n.setWaiting("starting")
	if err := n.build(ctx); err != nil {
		return nil, errors.Join(err, n.unwind())
	}
	return n, nil
}

// KafkaAddresses are the addresses clients can dial, in the order of the configuration.
func (n *Node) KafkaAddresses() []string {
	var out []string
	for _, l := range n.listeners {
		out = append(out, l.Net.Addr().String())
	}
	return out
}

// HTTPURL is the base URL of the HTTP door, or config.NoHTTP.
func (n *Node) HTTPURL() string {
	if n.httpBind == nil {
		return config.NoHTTP
	}
	scheme := "http://"
	if n.o.Config.HTTP.TLS {
		scheme = "https://"
	}
	return scheme + n.httpBind.Addr().String()
}

// Failed yields the error that ended the node from inside; a healthy node never sends.
func (n *Node) Failed() <-chan error { return n.failed }

// Metrics are the node's instruments.
func (n *Node) Metrics() *metrics.Registry { return n.metrics }

// Image is the node's view of the cluster's metadata (committed records only).
func (n *Node) Image() *metadata.Image { return n.quorum.Image() }

// Stop drains and ends the node: others take over what it leads while it still serves, clients are told so for a moment, parked requests finish,
// logs are flushed, the clean-shutdown marker is written.
func (n *Node) Stop(ctx context.Context) error {
	n.setWaiting("stopping")
	n.hush()
	n.link.Leave()
	n.handOver(ctx)
	n.linger(ctx)
	n.cancelClients()
	n.clients.Wait() // each listener drains its own connections, within server.Limits.Drain
	n.clean = n.broken.Load() == nil
	n.resign(ctx)
	return n.unwind()
}

// unwind runs the stop of every part built, newest first, and joins their errors.
func (n *Node) unwind() error {
	var errs []error
	if n.cancelClients != nil {
		n.cancelClients()
	}
	for i := len(n.stops) - 1; i >= 0; i-- {
		if err := n.stops[i](); err != nil {
			errs = append(errs, err)
		}
	}
	n.stops = nil
	return errors.Join(errs...)
}

// fail ends the node from inside; only the first reason is kept.
func (n *Node) fail(part string, err error) {
	err = fmt.Errorf("%s: %w", part, err)
	n.setWaiting(err.Error())
	n.broken.CompareAndSwap(nil, &err)
	n.die(err)
	select {
	case n.failed <- err:
	default:
	}
}

func (n *Node) setWaiting(why string) { n.waitFor(func() string { return why }) }

// waitFor makes the node not ready for as long as why returns a reason.
func (n *Node) waitFor(why func() string) { n.waiting.Store(&why) }

// ready is nil when the node accepts work, else it says why not.
func (n *Node) ready() error {
	if why := (*n.waiting.Load())(); why != "" {
		return errors.New(why)
	}
	return nil
}

// run starts f in a goroutine that Stop waits for.
func (n *Node) run(f func()) {
	n.running.Add(1)
	go func() {
		defer n.running.Done()
		f()
	}()
}
