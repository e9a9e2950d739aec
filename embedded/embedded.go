package embedded

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"sync"

	"strandline.dev/internal/config"
	"strandline.dev/internal/node"
	"strandline.dev/internal/sys"
)

// NodesMax is the largest Options.Nodes.
const NodesMax = node.TogetherMax

// Options say what to run. The zero value is one node with a temporary directory.
type Options struct {
	// Nodes is how many nodes the cluster has, 1 to NodesMax; 0 means 1. From 3 on, topics have three replicas by default, and two must hold
	// a record before it is acknowledged.
	Nodes int
	// DataDir is where the data is kept; a later broker with as many nodes goes on from there. "": a temporary directory, removed by Stop.
	DataDir string
	// Topics are created, if they do not exist, before Open returns.
	Topics []Topic
	// NoAutoCreate refuses topics that nobody created. Without it they are created on first use, as by `strandline dev`.
	NoAutoCreate bool
	// Log receives the logs of the nodes. nil: Open discards them, and Start gives them to the test.
	Log *slog.Logger
}

// Broker is a running broker or cluster.
type Broker struct {
	nodes     []*node.Node
	temporary string // directory to remove, or ""
	ending    sync.Once
	ended     error // of Stop
}

// Open runs a broker and returns when it accepts work. The caller must Stop it.
func Open(o Options) (*Broker, error) {
	if o.Nodes < 0 || o.Nodes > NodesMax {
		return nil, fmt.Errorf("%w: Nodes is %d: want 1 to %d", ErrOptions, o.Nodes, NodesMax)
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	b := &Broker{}
	if o.DataDir == "" {
		dir, err := os.MkdirTemp("", "strandline-embedded-")
		if err != nil {
			return nil, fmt.Errorf("embedded broker: no temporary directory: %w", err)
		}
		b.temporary, o.DataDir = dir, dir
	}
	ctx, cancel := context.WithTimeout(context.Background(), readyTimeMax)
	defer cancel()
	if err := b.start(ctx, o); err != nil {
		return nil, fmt.Errorf("embedded broker: %w", errors.Join(err, b.Stop()))
	}
	return b, nil
}

// start runs the nodes and makes the topics. What runs when it fails is left to Stop.
func (b *Broker) start(ctx context.Context, o Options) error {
	c := config.Dev()
	var err error
	if c.Kafka, err = c.Kafka.WithPreset(map[string]string{"auto.create.topics.enable": strconv.FormatBool(!o.NoAutoCreate)}); err != nil {
		return err
	}
	c.Data.Dir = o.DataDir
	c.Listeners[0].Address, c.HTTP.Address = "127.0.0.1:0", "127.0.0.1:0"
	all, err := node.Together(sys.Real(), c, max(o.Nodes, 1))
	if err != nil {
		return err
	}
	for i := range all {
		if all[i].Log = o.Log; len(all) > 1 {
			all[i].Log = o.Log.With("node", all[i].Config.Node.ID)
		}
	}
	if b.nodes, err = node.StartAll(ctx, all); err != nil {
		return err
	}
	return createTopics(ctx, b.Brokers(), o.Topics)
}

// Brokers are the addresses for Kafka clients, HOST:PORT, one for each node in the order of node ids 1, 2, ...
func (b *Broker) Brokers() []string {
	var out []string
	for _, n := range b.nodes {
		out = append(out, n.KafkaAddresses()...)
	}
	return out
}

// HTTP are the base URLs of health, metrics and the REST API, http://HOST:PORT, one for each node in the order of Brokers.
func (b *Broker) HTTP() []string {
	var out []string
	for _, n := range b.nodes {
		out = append(out, n.HTTPURL())
	}
	return out
}

// Stop ends the broker as SIGTERM ends the binary: what is parked is answered, logs are flushed. It waits for the end. The error says that a
// node had failed, or could not stop cleanly; called again, Stop returns the same.
func (b *Broker) Stop() error {
	b.ending.Do(func() {
		var errs []error
		for _, n := range b.nodes {
			select {
			case err := <-n.Failed():
				errs = append(errs, err)
			default:
			}
		}
		errs = append(errs, node.StopAll(context.Background(), b.nodes))
		if b.temporary != "" {
			errs = append(errs, os.RemoveAll(b.temporary))
		}
		b.ended = errors.Join(errs...)
	})
	return b.ended
}
