package quorum

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io/fs"
	"path/filepath"

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

// readVote returns the vote in a metadata directory; found is false when there is no vote file. A damaged one is a
// *CorruptError: a guessed vote could be a second vote in one term, and with it a second leader.
func readVote(fsys sys.FS, dir string) (v vote, found bool, err error) {
	name := filepath.Join(dir, voteFileName)
	b, err := sys.ReadFile(fsys, name, voteSize)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return vote{}, false, nil
	case errors.Is(err, sys.ErrTooLarge):
		return vote{}, true, &CorruptError{File: name, Why: errVoteSize.Error()}
	case err != nil:
		return vote{}, false, err
	}
	v, err = decodeVote(b)
	if err != nil {
		return vote{}, true, &CorruptError{File: name, Why: err.Error()}
	}
	return v, true, nil
}

// writeVote makes v durable.
func writeVote(fsys sys.FS, dir string, v vote) error {
	return sys.WriteFileAtomic(fsys, filepath.Join(dir, voteFileName), encodeVote(v))
}
