package node

import (
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"time"

	"strandline.dev/internal/auth/certs"
	"strandline.dev/internal/config"
	"strandline.dev/internal/kafka"
	"strandline.dev/internal/metadata"
	"strandline.dev/internal/peer"
	"strandline.dev/internal/server"
)

// hasCluster says whether this node hears other nodes.
func (n *Node) hasCluster() bool { return n.clusterBind != nil }

// isBroker says whether this node holds partitions.
func (n *Node) isBroker() bool { return slices.Contains(n.o.Config.Roles, config.RoleBroker) }

// openPeers makes the way to other nodes. Nothing is said or heard yet: the owners of messages come first.
func (n *Node) openPeers(ctx context.Context) error {
	if _, err := rand.Read(n.incarnation[:]); err != nil {
		return err
	}
	if !n.hasCluster() {
		n.forwarder = server.NewForwarder(nil)
		return nil
	}
	identity, err := n.clusterIdentity()
	if err != nil {
		return err
	}
	me := peer.Identity{
		Node: n.o.Config.Node.ID, Directory: n.dir.Identity().DirectoryID, Start: n.dir.StartNumber(), Incarnation: n.incarnation,
	}
	n.peers = peer.New(peer.Config{
		Net: n.o.Machine.Net, TLS: identity, Log: n.log, Metrics: n.metrics.Peer,
		Self: func() peer.Identity {
			self := me
			self.Cluster = n.quorum.Image().ClusterID()
			return self
		},
		Resolve: n.resolve,
		Admit:   n.admit,
		Gone: func(who peer.Identity, class peer.Class) {
			n.suspects.gone(who)
			n.controller.Gone(who, class)
			if class == peer.Control {
				n.quorum.Gone(who)
			}
		},
	})
	n.forwarder = server.NewForwarder(n.peers)
	n.stops = append(n.stops, func() error { n.peers.Close(); return nil })
	if identity != nil {
		n.stops = append(n.stops, n.background(ctx, "certificates", func(ctx context.Context) error { identity.Watch(ctx, n.log); return nil }))
	}
	return nil
}

// clusterIdentity reads tls.cluster, and again whenever its files change; nil when it is not set.
func (n *Node) clusterIdentity() (*certs.Source, error) {
	if !n.o.Config.HasClusterTLS() {
		return nil, nil
	}
	t := n.o.Config.TLS.Cluster
	files := certs.Files{Setting: "tls.cluster", Cert: t.Cert, Key: t.Key, CA: t.CA}
	source, err := certs.Open(n.o.Machine.FS, files, peer.Judge(n.o.Config.Node.ID))
	if err != nil {
		return nil, err
	}
	n.metrics.CertificateExpiry("cluster", func() float64 { return source.Left(time.Now()).Seconds() })
	return source, nil
}

// serveCluster begins to hear other nodes, when every part that takes messages is there.
func (n *Node) serveCluster(ctx context.Context) error {
	if n.hasCluster() {
		n.stops = append(n.stops, n.background(ctx, "cluster listener", func(ctx context.Context) error { return n.peers.Serve(ctx, n.clusterBind) }))
	}
	n.stops = append(n.stops, n.background(ctx, "metadata", n.quorum.Run))
	n.stops = append(n.stops, n.background(ctx, "controller", func(ctx context.Context) error { n.controller.Run(ctx); return nil }))
	n.stops = append(n.stops, n.background(ctx, "session", func(ctx context.Context) error { n.link.Run(ctx); return nil }))
	return nil
}

// resolve is the cluster address of a node: the configured one, which wins because an operator can change it while nobody reaches anybody;
// the one it registered; or the one in the table of voters.
func (n *Node) resolve(id kafka.NodeID) (string, bool) {
	if address := n.o.Config.ControllerAddress(id); address != "" {
		return address, true
	}
	img := n.quorum.Image()
	if b := img.Broker(id); b != nil && b.ClusterAddress != "" {
		return b.ClusterAddress, true
	}
	for _, v := range img.Voters() {
		if v.Node == id && v.Address != "" {
			return v.Address, true
		}
	}
	return "", false
}

// admit refuses processes that are older than the one registered on the same disk: a disk that was put back, or a process that should be gone
// (I3, I4). A node with another disk is heard: whether it may take the node's place is decided where it asks for it.
func (n *Node) admit(who peer.Identity) error {
	b := n.quorum.Image().Broker(who.Node)
	switch {
	case b == nil || b.Directory != who.Directory:
		return nil
	case who.Start < b.StartNumber:
		return fmt.Errorf("%v is older than the registered process (start %d): a restored disk, or a process that should have ended", who, b.StartNumber)
	case who.Start == b.StartNumber && who.Incarnation != b.Incarnation && !b.Incarnation.IsZero():
		return fmt.Errorf("%v has the start number of the registered process and is another one: a copied disk", who)
	}
	return nil
}

// processes tells which processes are registered, so that a change is noticed.
func processes(img *metadata.Image) map[kafka.NodeID]kafka.BrokerEpoch {
	out := map[kafka.NodeID]kafka.BrokerEpoch{}
	for b := range img.Brokers() {
		out[b.ID] = b.Epoch
	}
	return out
}
