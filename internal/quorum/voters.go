package quorum

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"go.etcd.io/raft/v3/raftpb"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/metadata"
)

// The table of voters is in the Image (metadata.Voter) and says which directory is behind a raft id. The table is what makes
// a directory a voter, not raft's ConfState: a disk that was replaced has another directory id and therefore another raft id,
// so it can never be taken for the old one. A membership change carries the new table as metadata records in its context, so
// both change with the same entry.

// raftID is the first 64 bits of a directory id. Zero and raft's two local targets are not usable: chance 3 in 2^64.
func raftID(d kafka.DirectoryID) (uint64, error) {
	id := binary.BigEndian.Uint64(d[:8])
	if id == 0 || id >= math.MaxUint64-1 {
		return 0, fmt.Errorf("directory id %s cannot be a raft id; empty the data directory to get another", d)
	}
	return id, nil
}

// findVoter returns the row of a raft id.
func findVoter(table []metadata.Voter, id uint64) (metadata.Voter, bool) {
	i := slices.IndexFunc(table, func(v metadata.Voter) bool { return v.RaftID == id })
	if i < 0 {
		return metadata.Voter{}, false
	}
	return table[i], true
}

// checkVoters refuses a configuration that no release writes: it would make raft panic, or count the vote of a directory
// that nobody knows.
func checkVoters(conf *raftpb.ConfState, table []metadata.Voter) error {
	members := slices.Concat(conf.GetVoters(), conf.GetLearners(), conf.GetVotersOutgoing(), conf.GetLearnersNext())
	if len(table) > votersMax || len(members) > 2*votersMax || len(conf.GetVoters()) == 0 {
		return errVoters
	}
	for _, id := range members {
		if _, ok := findVoter(table, id); !ok {
			return errVoters
		}
	}
	for _, v := range table {
		if id, err := raftID(v.Directory); err != nil || id != v.RaftID {
			return errVoters
		}
	}
	return nil
}
