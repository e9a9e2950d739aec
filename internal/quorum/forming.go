package quorum

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"go.etcd.io/raft/v3/raftpb"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/metadata"
)

// mint mints a cluster: the voters are this directory and those that answered. A crash before the snapshot is durable leaves an empty
// directory; after it, a formed one.
func (r *recovered) mint(conf configured, others []formingAnswer) error {
	id, err := mintClusterID()
	if err != nil {
		return err
	}
	table := []metadata.Voter{{RaftID: r.self, Node: conf.self, Directory: r.store.Identity().DirectoryID, Address: conf.own()}}
	for _, o := range others {
		v := metadata.Voter{Node: o.Node, Directory: o.Directory, Address: conf.addressOf(o.Node)}
		if v.RaftID, err = raftID(o.Directory); err != nil {
			return err
		}
		table = append(table, v)
	}
	slices.SortFunc(table, func(a, b metadata.Voter) int { return cmp.Compare(a.Node, b.Node) })
	if err := r.storeTable(id, table, conf.self); err != nil {
		return err
	}
	r.lines.Info("formed a new cluster", "cluster", id, "node", conf.self, "directory", r.store.Identity().DirectoryID.Hex(), "voters", len(table))
	return nil
}

// storeTable makes a cluster's beginning durable here: a snapshot at index 0 whose Image has the cluster id and the table of voters, then
// the id in meta.json.
func (r *recovered) storeTable(cluster string, table []metadata.Voter, node kafka.NodeID) error {
	image, err := metadata.Empty().Apply(0, []metadata.Record{metadata.ClusterRecord{ClusterID: cluster, Voters: table}})
	if err != nil {
		return err
	}
	snap := snapshot{Conf: &raftpb.ConfState{}, Image: image}
	for _, v := range table {
		snap.Conf.Voters = append(snap.Conf.Voters, v.RaftID)
	}
	slices.Sort(snap.Conf.Voters)
	if err := checkVoters(snap.Conf, table); err != nil {
		return fmt.Errorf("form a cluster: %w", err)
	}
	if err := r.store.WithReserve(func() error { return r.snapshots.write(snap) }); err != nil {
		return fmt.Errorf("form a cluster: %w", err)
	}
	r.snapshot = snap
	return r.adopt(node)
}

// joinWith makes a fetched snapshot what this empty directory holds.
func (r *recovered) joinWith(snap snapshot, node kafka.NodeID) error {
	if snap.Index == 0 {
		return r.storeTable(snap.Image.ClusterID(), snap.Image.Voters(), node)
	}
	// In this order: without a snapshot a vote that is for nobody says nothing, and a snapshot of a later term than the vote is damage.
	v := vote{Term: snap.Term}
	err := r.store.WithReserve(func() error {
		return errors.Join(writeVote(r.machine.FS, r.dir, v), r.snapshots.stage(snap))
	})
	if err != nil {
		return fmt.Errorf("join a cluster: %w", err)
	}
	r.vote, r.voted = v, true
	r.snapshots.staged, r.snapshot = &snap, snap
	if err := r.finishInstall(); err != nil {
		return fmt.Errorf("join a cluster: %w", err)
	}
	r.tail = tail{term: snap.Term}
	return r.adopt(node)
}

// finishInstall does what is left of an installation: the snapshot is durable under its first name.
func (r *recovered) finishInstall() error {
	r.found.copied = nil // of entries that the snapshot replaces
	if err := r.log.Reset(r.next()); err != nil {
		return err
	}
	err := r.snapshots.adopt(r.snapshot.snapshotID)
	r.snapshots.staged = nil
	return err
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
func (r *recovered) checkIdentity(c Config, conf configured) error {
	id, image := c.Dir.Identity(), r.snapshot.Image
	if id.ClusterID != "" && id.ClusterID != image.ClusterID() {
		return fmt.Errorf("%w: %s says cluster %q, the metadata %q", ErrIdentity, filepath.Join(c.Dir.Path(), "meta.json"), id.ClusterID, image.ClusterID())
	}
	self, ok := findVoter(image.Voters(), r.self)
	inTable := ok && self.Directory == id.DirectoryID
	switch {
	case inTable && self.Node != c.Node:
		return fmt.Errorf("%w: the directory belongs to node %d, this is node %d", ErrIdentity, self.Node, c.Node)
	case c.rescue:
		return nil
	case !inTable && conf.alone():
		return fmt.Errorf("%w: directory id %s of %s; the voters are %s", ErrNotAVoter, id.DirectoryID.Hex(), c.Dir.Path(), describeVoters(image.Voters()))
	case c.Peers == nil && !r.onlyVoter():
		return fmt.Errorf("%w: the voters are %s", ErrSeveralControllers, describeVoters(image.Voters()))
	}
	return nil
}

// member says whether the newest snapshot has this directory as a voter or learner. Every id in its configuration has a row in its table.
func (r *recovered) member() bool { return isMember(r.snapshot.Conf, r.self) }

// onlyVoter says that this directory is the quorum, as of the newest snapshot.
func (r *recovered) onlyVoter() bool {
	conf := r.snapshot.Conf
	return slices.Equal(conf.GetVoters(), []uint64{r.self}) && len(conf.GetVotersOutgoing()) == 0
}

// formed says that the directory holds a table.
func (r *recovered) formed() bool { return r.snapshot.Image.ClusterID() != "" }

// ran says that the table has been in force: Raft may start at once. A lone voter needs nobody's word, and an observer has joined what runs.
func (r *recovered) ran() bool {
	return r.vote.For != 0 || r.snapshot.Index > 0 || r.log.End() > 1 || r.onlyVoter() || !r.member()
}

func describeVoters(table []metadata.Voter) string {
	var rows []string
	for _, v := range table {
		rows = append(rows, fmt.Sprintf("node %d (directory %s)", v.Node, v.Directory.Hex()))
	}
	return strings.Join(rows, ", ")
}

// adopt writes cluster id and node id into meta.json when it has none: after forming, or after a crash in the middle of it.
func (r *recovered) adopt(node kafka.NodeID) error {
	if r.store.Identity().ClusterID != "" {
		return nil
	}
	if err := r.store.SetIdentity(r.snapshot.Image.ClusterID(), node); err != nil {
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
	case r.voteDamage != nil || r.vote.For != 0:
		return &CorruptError{File: r.dir, Why: errLost.Error() + ", but there is a vote file"}
	case r.log.End() > 1:
		return &CorruptError{File: r.dir, Why: errLost.Error() + ", but there is a log"}
	}
	return nil
}
