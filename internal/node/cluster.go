package node

import (
	"context"
	"crypto/rand"
	"fmt"
	"slices"

	"strandline.dev/internal/config"
	"strandline.dev/internal/kafka"
	"strandline.dev/internal/metadata"
	"strandline.dev/internal/peer"
	"strandline.dev/internal/sys"
)

// pemBytesMax bounds a file with certificates; real ones are a few kilobytes.
const pemBytesMax = 1 << 20

// hasCluster says whether this node hears other nodes.
func (n *Node) hasCluster() bool { return n.clusterBind != nil }

// isBroker says whether this node holds partitions.
func (n *Node) isBroker() bool { return slices.Contains(n.o.Config.Roles, config.RoleBroker) }

// openPeers makes the way to other nodes. Nothing is said or heard yet: the owners of messages come first.
func (n *Node) openPeers(context.Context) error {
	if _, err := rand.Read(n.incarnation[:]); err != nil {
		return err
	}
	if !n.hasCluster() {
		return nil
	}
	certs, err := n.readCertificates()
	if err != nil {
		return err
	}
	me := peer.Identity{
		Node: n.o.Config.Node.ID, Directory: n.dir.Identity().DirectoryID, Start: n.dir.StartNumber(), Incarnation: n.incarnation,
	}
	n.peers = peer.New(peer.Config{
		Net: n.o.Machine.Net, TLS: certs, Log: n.log, Metrics: n.metrics.Peer,
		Self: func() peer.Identity {
			self := me
			self.Cluster = n.quorum.Image().ClusterID()
			return self
		},
		Resolve: n.resolve,
		Admit:   n.admit,
		Gone: func(who peer.Identity, class peer.Class) {
			n.controller.Gone(who, class)
			if class == peer.Control {
				n.quorum.Gone(who)
			}
		},
	})
	n.stops = append(n.stops, func() error { n.peers.Close(); return nil })
	return nil
}

// readCertificates reads tls.cluster, or returns nil when it is not set.
func (n *Node) readCertificates() (*peer.Certificates, error) {
	if !n.o.Config.HasClusterTLS() {
		return nil, nil
	}
	files := n.o.Config.TLS.Cluster
	var pems [3][]byte
	for i, f := range []struct{ key, path string }{{"cert", files.Cert}, {"key", files.Key}, {"ca", files.CA}} {
		var err error
		if pems[i], err = sys.ReadFile(n.o.Machine.FS, f.path, pemBytesMax); err != nil {
			return nil, fmt.Errorf("tls.cluster.%s: %w", f.key, err)
		}
	}
	certs, err := peer.ParseCertificates(pems[0], pems[1], pems[2])
	if err != nil {
		return nil, fmt.Errorf("tls.cluster: %w", err)
	}
	return certs, nil
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
