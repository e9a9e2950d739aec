package quorum

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"strconv"
	"strings"

	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"strandline.dev/internal/metadata"
	"strandline.dev/internal/wire"
)

// A snapshot file: magic "SLSN", one message of our codec (index, term, raft's ConfState, Image with the table of voters),
// CRC-32C of everything before it. See docs/formats/metadata-log.md.

const (
	// snapshotMessage and snapshotVersion begin the message.
	snapshotMessage, snapshotVersion = 0x5101, 0

	snapshotSuffix = ".snap"
	// indexDigits and termDigits make the names sort like the numbers.
	indexDigits, termDigits = 20, 10
)

var (
	snapshotMagic = []byte("SLSN")

	errSnapshotMagic    = errors.New("this is no snapshot file")
	errSnapshotChecksum = errors.New("the snapshot fails its checksum")
	errVoters           = errors.New("the voters of raft and the table of voters differ")
	errSnapshotIndex    = errors.New("the snapshot's name, index and Image version differ")
)

// snapshotID names a snapshot: everything up to and including the entry at Index, which is of Term, is in it.
type snapshotID struct {
	Index, Term uint64
}

// compare orders by index, then term.
func (s snapshotID) compare(o snapshotID) int {
	return cmp.Or(cmp.Compare(s.Index, o.Index), cmp.Compare(s.Term, o.Term))
}

// file is the name of the snapshot's file.
func (s snapshotID) file() string {
	return fmt.Sprintf("%0*d-%0*d%s", indexDigits, s.Index, termDigits, s.Term, snapshotSuffix)
}

// parseSnapshotName reads what snapshotID.file writes; ok is false for any other name.
func parseSnapshotName(name string) (s snapshotID, ok bool) {
	stem, found := strings.CutSuffix(name, snapshotSuffix)
	if !found || len(stem) != indexDigits+1+termDigits || stem[indexDigits] != '-' {
		return snapshotID{}, false
	}
	index, err := strconv.ParseUint(stem[:indexDigits], 10, 63)
	if err != nil {
		return snapshotID{}, false
	}
	term, err := strconv.ParseUint(stem[indexDigits+1:], 10, 31)
	if err != nil {
		return snapshotID{}, false
	}
	s = snapshotID{Index: index, Term: term}
	return s, s.file() == name // refuses a sign, which ParseUint does too, and whatever else is not canonical
}

// snapshot is the state after the entry at Index.
type snapshot struct {
	snapshotID
	Conf  *raftpb.ConfState
	Image *metadata.Image
}

func encodeSnapshot(s snapshot) ([]byte, error) {
	conf, err := proto.MarshalOptions{Deterministic: true}.Marshal(s.Conf)
	if err != nil {
		return nil, fmt.Errorf("snapshot %d: %w", s.Index, err)
	}
	e := wire.Encoder{B: append([]byte(nil), snapshotMagic...)}
	e.Header(snapshotMessage, snapshotVersion)
	e.Uint64(s.Index)
	e.Uint64(s.Term)
	e.Bytes(conf)
	e.Bytes(metadata.EncodeImage(nil, s.Image))
	e.NoTags()
	return binary.BigEndian.AppendUint32(e.B, crc32.Checksum(e.B, castagnoli)), nil
}

func decodeSnapshot(b []byte) (snapshot, error) {
	if err := intact(b); err != nil {
		return snapshot{}, err
	}
	d := wire.NewDecoder(b[len(snapshotMagic) : len(b)-4])
	d.ExpectHeader(snapshotMessage, snapshotVersion)
	s := snapshot{snapshotID: snapshotID{Index: d.Uint64(), Term: d.Uint64()}}
	conf := d.Bytes()
	image := d.Bytes()
	d.Tags(nil)
	if err := d.Done(); err != nil {
		return snapshot{}, fmt.Errorf("snapshot: %w", err)
	}
	s.Conf = &raftpb.ConfState{}
	if err := proto.Unmarshal(conf, s.Conf); err != nil {
		return snapshot{}, fmt.Errorf("snapshot: %w", err)
	}
	var err error
	if s.Image, err = metadata.DecodeImage(image); err != nil {
		return snapshot{}, fmt.Errorf("snapshot: %w", err)
	}
	if s.Image.Version() != s.Index {
		return snapshot{}, errSnapshotIndex
	}
	return s, checkVoters(s.Conf, s.Image.Voters())
}

// intact verifies the checksum only.
func intact(b []byte) error {
	if len(b) < len(snapshotMagic)+4 || !bytes.Equal(b[:len(snapshotMagic)], snapshotMagic) {
		return errSnapshotMagic
	}
	if crc32.Checksum(b[:len(b)-4], castagnoli) != binary.BigEndian.Uint32(b[len(b)-4:]) {
		return errSnapshotChecksum
	}
	return nil
}
