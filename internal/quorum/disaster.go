package quorum

import (
	"errors"
	"fmt"

	"go.etcd.io/raft/v3/raftpb"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/metadata"
)

// Rescue is what RecoverFromThisNode has done.
type Rescue struct {
	Cluster string
	// Lost are the voters of the table that was in force.
	Lost []metadata.Voter
	// Last is the last entry that this node had, committed or not; Index is where the metadata goes on.
	Last, Index uint64
}

// RecoverFromThisNode makes this directory the only voter of its cluster, with everything its log holds, committed or not. It is the operator's
// act when a majority of the voters is lost for good: what only those had is lost, and none of them may ever start again with its old
// directory beside another one. No quorum may run on the directory. c.Peers is not used.
//
// The metadata goes on at an index far above the last one: an observer may have seen entries that this node has not, and must not take later ones for
// them (I13). It finds itself behind and fetches the new snapshot.
func RecoverFromThisNode(c Config) (done Rescue, err error) {
	list, err := parseControllers(c.Controllers)
	if err != nil {
		return Rescue{}, err
	}
	c.rescue = true
	conf := configured{self: c.Node, list: list}
	r, err := recoverDirectory(c, conf)
	if err != nil {
		return Rescue{}, fmt.Errorf("metadata: %w", err)
	}
	defer func() {
		if r.copy != nil {
			err = errors.Join(err, r.copy.close())
		}
		err = errors.Join(err, r.log.Close())
	}()
	if !r.formed() {
		return Rescue{}, fmt.Errorf("metadata: %s: %w", r.dir, errNoCluster)
	}
	image, err := r.replayAll()
	if err != nil {
		return Rescue{}, err
	}
	done = Rescue{Cluster: image.ClusterID(), Lost: image.Voters(), Last: image.Version(), Index: image.Version() + rescueJump}
	self := metadata.Voter{RaftID: r.self, Node: c.Node, Directory: r.store.Identity().DirectoryID, Address: r.ownAddress(conf, image)}
	record := metadata.ClusterRecord{ClusterID: done.Cluster, Voters: []metadata.Voter{self}}
	if image, err = image.Apply(done.Index, []metadata.Record{record}); err != nil {
		return Rescue{}, err
	}
	snap := snapshot{
		// A term of its own: nobody has voted in it, and none of the old voters can have led in it.
		snapshotID: snapshotID{Index: done.Index, Term: max(r.vote.Term, r.tail.term) + 1},
		Conf:       &raftpb.ConfState{Voters: []uint64{r.self}},
		Image:      image,
	}
	if err := r.joinWith(snap, c.Node); err != nil {
		return Rescue{}, fmt.Errorf("recover from this node: %w", err)
	}
	r.lines.Warn("the metadata quorum was recovered from this node alone", "cluster", done.Cluster, "node", c.Node,
		"directory", self.Directory.Hex(), "lost", describeVoters(done.Lost), "last", done.Last, "index", done.Index)
	return done, nil
}

// replayAll applies the whole log to the newest snapshot's Image.
func (r *recovered) replayAll() (*metadata.Image, error) {
	image := r.snapshot.Image
	for at := r.next(); at < r.log.End(); {
		entries, err := readEntries(r.log, uint64(at), uint64(r.log.End()), readChunk)
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			data := e.GetData()
			if e.GetType() != raftpb.EntryNormal {
				change, err := decodeChange(e)
				if err != nil {
					return nil, fmt.Errorf("%w: entry %d: %w", ErrApply, e.GetIndex(), err)
				}
				data = change.GetContext()
			}
			if image, err = applyEntry(image, e.GetIndex(), data); err != nil {
				return nil, fmt.Errorf("%w: entry %d: %w", ErrApply, e.GetIndex(), err)
			}
		}
		at += kafka.Offset(len(entries))
	}
	return image, nil
}

// ownAddress is where others find this node: as configured, by the table, or as it registered.
func (r *recovered) ownAddress(conf configured, image *metadata.Image) string {
	if a := conf.own(); a != "" {
		return a
	}
	if v, ok := findVoter(image.Voters(), r.self); ok {
		return v.Address
	}
	if b := image.Broker(conf.self); b != nil {
		return b.ClusterAddress
	}
	return ""
}
