package quorum

import (
	"crypto/rand"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"go.etcd.io/raft/v3/raftpb"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/metadata"
)

// controllerAddress returns the address under which this node is configured as the only controller, "" when none is
// configured.
func controllerAddress(c Config) (string, error) {
	switch len(c.Controllers) {
	case 0:
		return "", nil
	case 1:
	default:
		return "", fmt.Errorf("%w: cluster.controllers lists %d", ErrSeveralControllers, len(c.Controllers))
	}
	id, address, found := strings.Cut(c.Controllers[0], "@")
	node, err := strconv.ParseInt(id, 10, 32)
	if !found || err != nil || node < 0 || address == "" {
		return "", fmt.Errorf("cluster.controllers: %q is not <node id>@<host>:<port>", c.Controllers[0])
	}
	if kafka.NodeID(node) != c.Node {
		return "", fmt.Errorf("%w: cluster.controllers names node %d, this is node %d", ErrSeveralControllers, node, c.Node)
	}
	return address, nil
}

// form mints a cluster with this directory as its only voter: a snapshot at index 0 whose Image has the cluster id and the
// table of voters. A crash before the snapshot is durable leaves an empty directory; after it, a formed one.
func (r *recovered) form(c Config, address string) error {
	id, err := mintClusterID()
	if err != nil {
		return err
	}
	self := metadata.Voter{RaftID: r.self, Node: c.Node, Directory: c.Dir.Identity().DirectoryID, Address: address}
	image, err := metadata.Empty().Apply(0, []metadata.Record{metadata.ClusterRecord{ClusterID: id, Voters: []metadata.Voter{self}}})
	if err != nil {
		return err
	}
	r.snapshot = snapshot{Conf: &raftpb.ConfState{Voters: []uint64{r.self}}, Image: image}
	if err := r.snapshots.write(r.snapshot); err != nil {
		return fmt.Errorf("form a cluster: %w", err)
	}
	r.lines.Info("formed a new cluster", "cluster", id, "node", c.Node, "directory", self.Directory.Hex())
	return nil
}

// mintClusterID returns a random id in Kafka's form. It does not begin with "-": command lines would take it for a flag.
func mintClusterID() (string, error) {
	for {
		var id kafka.ID
		if _, err := rand.Read(id[:]); err != nil {
			return "", err
		}
		if s := id.String(); s[0] != '-' {
			return s, nil
		}
	}
}

// checkIdentity refuses metadata that is not this node's, by name: a copied, swapped or restored directory must not vote.
func (r *recovered) checkIdentity(c Config) error {
	id, image := c.Dir.Identity(), r.snapshot.Image
	if id.ClusterID != "" && id.ClusterID != image.ClusterID() {
		return fmt.Errorf("%w: %s says cluster %q, the metadata %q", ErrIdentity, filepath.Join(c.Dir.Path(), "meta.json"), id.ClusterID, image.ClusterID())
	}
	self, ok := findVoter(image.Voters(), r.self)
	if !ok || self.Directory != id.DirectoryID {
		return fmt.Errorf("%w: directory id %s of %s; the voters are %s", ErrNotAVoter, id.DirectoryID.Hex(), c.Dir.Path(), describeVoters(image.Voters()))
	}
	if self.Node != c.Node {
		return fmt.Errorf("%w: the directory belongs to node %d, this is node %d", ErrIdentity, self.Node, c.Node)
	}
	if !slices.Equal(r.snapshot.Conf.GetVoters(), []uint64{r.self}) || len(r.snapshot.Conf.GetVotersOutgoing()) > 0 {
		return fmt.Errorf("%w: the voters are %s", ErrSeveralControllers, describeVoters(image.Voters()))
	}
	return nil
}

func describeVoters(table []metadata.Voter) string {
	var rows []string
	for _, v := range table {
		rows = append(rows, fmt.Sprintf("node %d (directory %s)", v.Node, v.Directory.Hex()))
	}
	return strings.Join(rows, ", ")
}

// adopt writes cluster id and node id into meta.json when it has none: after forming, or after a crash in the middle of it.
func (r *recovered) adopt(c Config) error {
	if c.Dir.Identity().ClusterID != "" {
		return nil
	}
	if err := c.Dir.SetIdentity(r.snapshot.Image.ClusterID(), c.Node); err != nil {
		return fmt.Errorf("store the cluster id: %w", err)
	}
	return nil
}

// errLost says that a directory of a formed cluster has no snapshot, which every formed cluster has.
var errLost = errors.New("the metadata of a formed cluster is gone: there is no snapshot")

// checkEmpty decides whether a directory without a snapshot may form a cluster. Anything that is left of an earlier one
// means that metadata was lost, and a new cluster over old data would orphan it.
func (r *recovered) checkEmpty(c Config) error {
	switch {
	case c.Dir.Identity().ClusterID != "":
		return &CorruptError{File: r.dir, Why: fmt.Sprintf("%v, but meta.json names cluster %q", errLost, c.Dir.Identity().ClusterID)}
	case r.voted:
		return &CorruptError{File: r.dir, Why: errLost.Error() + ", but there is a vote file"}
	case r.log.End() > 1:
		return &CorruptError{File: r.dir, Why: errLost.Error() + ", but there is a log"}
	}
	return nil
}
