package peer

import (
	"fmt"

	"strandline.dev/internal/kafka"
)

// Message is what a frame carries. An answer has the kind of its request.
type Message interface {
	Kind() Kind
	// Append appends the body without the payload. The version is inside, by wire's codec.
	Append(b []byte) []byte
	// Decode reads body and payload. It may keep views of b, which belongs to the message from then on.
	Decode(b []byte) error
}

// Payloader is a Message with big parts that are written behind the body without being copied.
type Payloader interface {
	// Payload returns the parts. They must not change until the message is released or, without Releaser, ever.
	Payload() [][]byte
}

// Releaser is a Message that wants to know when it is not needed any more. It is called once for each message that was given to Send, Call or
// returned by a handler: when it has been written, or will not be. That can be after Call has returned.
type Releaser interface {
	Release()
}

// Receiver is an answer that brings its own memory.
type Receiver interface {
	// Buffer returns at least size bytes, into which the body is read, or nil for a new allocation. It is called by the
	// connection's reader at most once, before Decode. The memory is the caller's again when Call has returned.
	Buffer(size int) []byte
}

// Identity says which process of which node speaks.
type Identity struct {
	// Cluster is the cluster id, "" while the node knows none.
	Cluster string
	Node    kafka.NodeID
	// Directory and Start tell a node's disk and the process on it apart from earlier ones (I3, I4).
	Directory kafka.DirectoryID
	Start     uint64
	// Incarnation is minted by each process.
	Incarnation kafka.ID
}

// String names the process in log lines.
func (i Identity) String() string {
	return fmt.Sprintf("node %v (directory %s, start %d)", i.Node, i.Directory.Hex(), i.Start)
}
