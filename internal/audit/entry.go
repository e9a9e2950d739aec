package audit

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/wire"
)

// The header of an entry (docs/formats/audit.md).
const (
	typeEntry    = 22001
	entryVersion = 0
)

// Begun is what an entry about a change is before the change is made; the entry that says what became of it names it in Of, and is an auth.Change.
const Begun = "change begun"

// Hash is the SHA-256 of an entry as it is stored.
type Hash [sha256.Size]byte

// String is the hash in hex.
func (h Hash) String() string { return hex.EncodeToString(h[:]) }

// HashOf is the hash of a stored entry.
func HashOf(value []byte) Hash { return sha256.Sum256(value) }

// Entry is one entry of the audit trail.
type Entry struct {
	// Sequence is the entry's offset in its chain, and Previous the hash of the entry before it: both are set by the leader of the partition.
	Sequence uint64
	Previous Hash
	// Node saw it happen, as number Number of its process Run. An entry that is delivered twice has the same numbers.
	Node   kafka.NodeID
	Run    kafka.ID
	Number uint64
	// Of is the number of the Begun entry that this one ends; 0: none.
	Of uint64
	// At is when it happened, and Until when it did for the last of Count times.
	At, Until time.Time
	Count     uint32

	What, Principal, Peer, Client, API, Resource string
	Before, After                                string
	// Outcome is why it failed or was denied, "" when it was done.
	Outcome string
}

// Append encodes the entry.
func (n *Entry) Append(b []byte) []byte {
	e := wire.Encoder{B: b}
	e.Header(typeEntry, entryVersion)
	e.Uint64(n.Sequence)
	e.Bytes(n.Previous[:])
	e.Int32(int32(n.Node))
	e.ID(n.Run)
	e.Uint64(n.Number)
	e.Uint64(n.Of)
	e.Int64(n.At.UnixMilli())
	e.Int64(n.Until.UnixMilli())
	e.Uint32(n.Count)
	for _, s := range n.texts() {
		e.String(*s)
	}
	e.NoTags()
	return e.B
}

// Decode reads what Append wrote.
func (n *Entry) Decode(b []byte) error {
	d := wire.NewDecoder(b)
	d.ExpectHeader(typeEntry, entryVersion)
	*n = Entry{Sequence: d.Uint64()}
	previous := d.Bytes()
	if len(previous) != len(n.Previous) && d.Err() == nil {
		d.Fail(fmt.Errorf("%w: a hash of %d bytes", wire.ErrMalformed, len(previous)))
	}
	copy(n.Previous[:], previous)
	n.Node, n.Run, n.Number, n.Of = kafka.NodeID(d.Int32()), d.ID(), d.Uint64(), d.Uint64()
	n.At, n.Until, n.Count = time.UnixMilli(d.Int64()).UTC(), time.UnixMilli(d.Int64()).UTC(), d.Uint32()
	for _, s := range n.texts() {
		*s = d.String()
	}
	d.Tags(nil)
	return d.Done()
}

// texts are the texts of an entry in the order of the format.
func (n *Entry) texts() []*string {
	return []*string{&n.What, &n.Principal, &n.Peer, &n.Client, &n.API, &n.Resource, &n.Before, &n.After, &n.Outcome}
}

// size is about what the entry takes in the trail.
func (n *Entry) size() int {
	size := entryBytes
	for _, s := range n.texts() {
		size += len(*s)
	}
	return size
}

// cut bounds the texts (I14): clients choose most of them.
func (n *Entry) cut() {
	for _, s := range n.texts() {
		if len(*s) > textMax {
			*s = (*s)[:textMax] + "..."
		}
	}
}
