// Package rig runs a cluster of `strandline serve` processes on this machine, and harms it.
//
// Knows: the configuration file of a node, how processes are started, killed, paused and stopped, and where the proxies stand: one for
// each direction in which a node dials another, and one in front of each node for clients. Does not know: what clients do, or what a
// good outcome is.
//
// The proxies between nodes come in at the second start: all nodes must have one and the same list of controllers while a cluster forms,
// and each needs a list of its own afterwards, because its way to another node leads through its own proxy.
//
// Concurrency: a Node is driven by one goroutine at a time; different nodes may be driven at once.
//
// Files: rig.go (the cluster), node.go (one process), ask.go (what the rig asks the cluster as a client), disk.go (small disks).
package rig

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"strandline.dev/test/chaos/proxy"
)

// StartMax bounds one start of a node or of the whole cluster: what needs longer has hung.
const StartMax = 60 * time.Second

// Options of a cluster.
type Options struct {
	// Binary is the built strandline.
	Binary string
	// Dir holds configuration, data and logs.
	Dir string
	// Nodes is 1, 3 or 5; each is a controller and a broker, in a rack of its own.
	Nodes int
	// Apart adds as many nodes that are brokers only; the others are then controllers only. Not with Proxied.
	Apart int
	// Proxied puts proxies between nodes and in front of them. Without it everything is dialled directly.
	Proxied bool
	// SmallDisk gives nodes disks of their own, of so many bytes.
	SmallDisk map[int32]int
	// Extra is appended to every configuration file.
	Extra string
}

// Cluster is a set of nodes.
type Cluster struct {
	o     Options
	Nodes []*Node
	// links[i][j] stands where node i+1 dials node j+1; nil without proxies and for i == j.
	links  [][]*proxy.Proxy
	formed bool
	// unmount takes small disks away.
	unmount []func() error
}

// New lays a cluster out; no process runs yet. Close ends it.
func New(o Options) (*Cluster, error) {
	c := &Cluster{o: o, links: make([][]*proxy.Proxy, o.Nodes+o.Apart)}
	addresses, err := FreeAddresses(3 * (o.Nodes + o.Apart))
	if err != nil {
		return nil, err
	}
	for i := range o.Nodes + o.Apart {
		n := &Node{ID: int32(i + 1), Dir: filepath.Join(o.Dir, fmt.Sprintf("n%d", i+1), "data"), cluster: c}
		n.Controller, n.Broker = i < o.Nodes, i >= o.Nodes || o.Apart == 0
		n.Kafka, n.HTTP, n.Peer = addresses[3*i], addresses[3*i+1], addresses[3*i+2]
		c.Nodes = append(c.Nodes, n)
		if bytes := o.SmallDisk[n.ID]; bytes > 0 {
			unmount, err := n.smallDisk(bytes)
			if err != nil {
				return nil, errors.Join(err, c.Close())
			}
			c.unmount = append(c.unmount, unmount)
		}
	}
	if !o.Proxied {
		return c, nil
	}
	for i, n := range c.Nodes {
		p, err := proxy.Listen("127.0.0.1:0", n.Kafka)
		if err != nil {
			return nil, errors.Join(err, c.Close())
		}
		n.Clients = p
		c.links[i] = make([]*proxy.Proxy, o.Nodes)
		for j, to := range c.Nodes {
			if i == j {
				continue
			}
			if c.links[i][j], err = proxy.Listen("127.0.0.1:0", to.Peer); err != nil {
				return nil, errors.Join(err, c.Close())
			}
		}
	}
	return c, nil
}

// Form starts all nodes until they are one cluster, and with proxies starts them again behind these.
func (c *Cluster) Form(ctx context.Context) error {
	if err := c.StartAll(ctx); err != nil {
		return err
	}
	c.formed = true
	if !c.o.Proxied {
		return nil
	}
	c.KillAll()
	return c.StartAll(ctx)
}

// StartAll starts every node that does not run and waits until all are ready.
func (c *Cluster) StartAll(ctx context.Context) error {
	for _, n := range c.Nodes {
		if n.Running() {
			continue
		}
		if err := n.Start(); err != nil {
			return err
		}
	}
	return c.each(func(n *Node) error { return n.Ready(ctx) })
}

// StopAll stops every running node with SIGTERM, all at once.
func (c *Cluster) StopAll() error {
	return c.each(func(n *Node) error {
		if !n.Running() {
			return nil
		}
		return n.Stop()
	})
}

// KillAll kills every node, all at once.
func (c *Cluster) KillAll() { _ = c.each(func(n *Node) error { n.Kill(); return nil }) }

// Close kills what runs and closes the proxies.
func (c *Cluster) Close() error {
	c.KillAll()
	var errs []error
	for _, f := range c.unmount {
		errs = append(errs, f())
	}
	for i, n := range c.Nodes {
		if n.Clients != nil {
			n.Clients.Close()
		}
		for _, p := range c.links[i] {
			if p != nil {
				p.Close()
			}
		}
	}
	return errors.Join(errs...)
}

// Node returns the node with an id.
func (c *Cluster) Node(id int32) *Node { return c.Nodes[id-1] }

// Link is the proxy where node from dials node to.
func (c *Cluster) Link(from, to int32) *proxy.Proxy { return c.links[from-1][to-1] }

// Cut cuts both connections between two nodes: nothing passes, and nobody is told.
func (c *Cluster) Cut(a, b int32) {
	c.Link(a, b).Cut()
	c.Link(b, a).Cut()
}

// CutOneWay stops what from sends to to, on the connections that either of them dialled; the other direction still passes.
func (c *Cluster) CutOneWay(from, to int32) {
	c.Link(from, to).Set(proxy.ToTarget, proxy.Fault{Blackhole: true})
	c.Link(to, from).Set(proxy.ToDialler, proxy.Fault{Blackhole: true})
}

// Heal takes every fault of the network away. Nodes that are down stay down.
func (c *Cluster) Heal() {
	for i := range c.Nodes {
		for _, p := range c.links[i] {
			if p != nil {
				p.Heal()
			}
		}
		if p := c.Nodes[i].Clients; p != nil {
			p.Heal()
		}
	}
}

// Brokers lists where clients begin: the addresses of all brokers, by node.
func (c *Cluster) Brokers() map[int32]string {
	out := map[int32]string{}
	for _, n := range c.Nodes {
		if n.Broker {
			out[n.ID] = n.Advertised()
		}
	}
	return out
}

// Seeds are the addresses of all brokers.
func (c *Cluster) Seeds() []string { return slices.Collect(maps.Values(c.Brokers())) }

// answering are the brokers that can be asked something.
func (c *Cluster) answering() (out []*Node) {
	for _, n := range c.Nodes {
		if n.Broker && n.Running() && !n.paused {
			out = append(out, n)
		}
	}
	return out
}

// Tail is the end of every node's log, for a failed test.
func (c *Cluster) Tail(bytesEach int) string {
	var out strings.Builder
	for _, n := range c.Nodes {
		b, _ := os.ReadFile(n.logPath())
		fmt.Fprintf(&out, "--- node %d\n%s\n", n.ID, b[max(0, len(b)-bytesEach):])
	}
	return out.String()
}

func (c *Cluster) each(f func(*Node) error) error {
	errs := make([]error, len(c.Nodes))
	var all sync.WaitGroup
	for i, n := range c.Nodes {
		all.Go(func() { errs[i] = f(n) })
	}
	all.Wait()
	return errors.Join(errs...)
}
