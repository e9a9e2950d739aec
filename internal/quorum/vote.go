package quorum

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"path/filepath"
	"slices"

	"strandline.dev/internal/sys"
)

// The vote file, 28 bytes, big-endian: magic "SLVO", version (2 bytes), zero (2), term (8), vote (8; a raft id, 0 = none),
// CRC-32C of the bytes before it (4). See docs/formats/metadata-log.md.
const (
	voteFileName = "vote"
	voteSize     = 28
	voteVersion  = 1
)

var (
	voteMagic  = []byte("SLVO")
	castagnoli = crc32.MakeTable(crc32.Castagnoli)

	errVoteSize     = errors.New("the vote file has not its 28 bytes")
	errVoteMagic    = errors.New("this is no vote file")
	errVoteVersion  = errors.New("the vote file has a version that this release does not read")
	errVoteChecksum = errors.New("the vote file fails its checksum")
)

// vote is what raft must never forget: the newest term this node has seen, and for whom it voted in it.
type vote struct {
	Term uint64
	For  uint64
}

func encodeVote(v vote) []byte {
	b := make([]byte, 0, voteSize)
	b = append(b, voteMagic...)
	b = binary.BigEndian.AppendUint16(b, voteVersion)
	b = append(b, 0, 0)
	b = binary.BigEndian.AppendUint64(b, v.Term)
	b = binary.BigEndian.AppendUint64(b, v.For)
	return binary.BigEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

func decodeVote(b []byte) (vote, error) {
	switch {
	case len(b) != voteSize:
		return vote{}, errVoteSize
	case !bytes.Equal(b[:4], voteMagic):
		return vote{}, errVoteMagic
	case crc32.Checksum(b[:24], castagnoli) != binary.BigEndian.Uint32(b[24:]):
		return vote{}, errVoteChecksum
	case binary.BigEndian.Uint16(b[4:]) != voteVersion || b[6] != 0 || b[7] != 0:
		return vote{}, errVoteVersion
	}
	return vote{Term: binary.BigEndian.Uint64(b[8:]), For: binary.BigEndian.Uint64(b[16:])}, nil
}

// readVote reads the vote file; it may be missing. One that is damaged is judged by settleVote.
func (r *recovered) readVote() error {
	name := filepath.Join(r.dir, voteFileName)
	b, err := sys.ReadFile(r.machine.FS, name, voteSize)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case errors.Is(err, sys.ErrTooLarge):
		err = errVoteSize
	case err != nil:
		return err
	default:
		r.vote, err = decodeVote(b)
	}
	r.voted = true
	if err != nil {
		r.voteDamage = &CorruptError{File: name, Why: err.Error()}
	}
	return nil
}

// settleVote refuses a vote that is damaged, missing or older than the log: a guessed vote could be a second vote in one term,
// and with it a second leader. A sole voter's is rebuilt, with the newest term of snapshot and log and no vote in it. That cannot
// make two leaders in one term. Only this directory could be voted for, and one process at a time holds it, so a second leader
// could only be an earlier process of this very node, which is dead. What it may have left behind in a term T are entries; it
// answered nothing in T before one was durable, and a durable one is in the snapshot or in the log that was just verified, or
// the node would not have come so far. So T is at most the term taken here, and the next thing that happens is a campaign into
// the term above it, whose vote is durable before an entry or an answer of that term. A term that only the lost file knew has no
// entry, and may be used again.
func (r *recovered) settleVote() error {
	damage := r.voteDamage
	if damage == nil && r.vote.Term < r.tail.term {
		damage = &CorruptError{
			File: filepath.Join(r.dir, voteFileName),
			Why:  fmt.Sprintf("the vote is of term %d, but the log has term %d: an older vote file was put back", r.vote.Term, r.tail.term),
		}
		if !r.voted {
			damage.Why = fmt.Sprintf("the vote file is missing, but the log has term %d", r.tail.term)
		}
	}
	if damage == nil {
		return nil
	}
	why := "nobody else can have been voted for"
	switch {
	case r.soleVoter():
	case !r.member() && !r.tail.changes:
		// It is asked for no vote. Should it become a voter again, it first gets entries of the term that is current then.
		why = "an observer does not vote"
	default:
		return damage
	}
	r.vote = vote{Term: r.tail.term}
	r.lines.Warn("the vote is rebuilt: "+why, "file", damage.File, "why", damage.Why, "term", r.vote.Term)
	return nil
}

// soleVoter says that no other directory votes, nor will by an entry that is behind the snapshot.
func (r *recovered) soleVoter() bool {
	conf, table := r.snapshot.Conf, r.snapshot.Image.Voters()
	return !r.tail.changes && len(table) == 1 && table[0].RaftID == r.self &&
		slices.Equal(conf.GetVoters(), []uint64{r.self}) && len(conf.GetVotersOutgoing())+len(conf.GetLearners()) == 0
}

// writeVote makes v durable.
func writeVote(fsys sys.FS, dir string, v vote) error {
	return sys.WriteFileAtomic(fsys, filepath.Join(dir, voteFileName), encodeVote(v))
}
