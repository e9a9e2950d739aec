package quorum

import (
	"fmt"

	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/metadata"
	"strandline.dev/internal/peer"
	"strandline.dev/internal/wire"
)

// What quorums say to each other (docs/formats/metadata-log.md, "Between nodes"). Each begins with type and version of our codec; Raft's
// own messages travel as its protobuf, opaque to us.

// The types in the codec's header.
const (
	raftHeader                 = 0x5110
	formingAskHeader           = 0x5111
	formingAnswerHeader        = 0x5112
	fetchHeader                = 0x5113
	fetchedHeader              = 0x5114
	pieceAskHeader             = 0x5115
	pieceHeader                = 0x5116
	membershipHeader           = 0x5117
	membershipDoneHeader       = 0x5118
	messageVersion       uint8 = 0
)

// raftMessages are Raft messages in the order in which they were sent. They go to one directory, whatever process is at its node's address
// now: the receiver compares To.
type raftMessages struct {
	messages []*raftpb.Message
}

func (*raftMessages) Kind() peer.Kind { return peer.KindRaft }

func (m *raftMessages) Append(b []byte) []byte {
	e := wire.Encoder{B: b}
	e.Header(raftHeader, messageVersion)
	wire.AppendArray(&e, m.messages, func(e *wire.Encoder, one *raftpb.Message) {
		p, err := proto.Marshal(one)
		if err != nil {
			// Only a message with an invalid string cannot be marshalled, and Raft's have no strings.
			panic(fmt.Sprintf("quorum: marshal a raft message: %v", err))
		}
		e.Bytes(p)
	})
	e.NoTags()
	return e.B
}

func (m *raftMessages) Decode(b []byte) error {
	d := wire.NewDecoder(b)
	d.ExpectHeader(raftHeader, messageVersion)
	m.messages = wire.ReadArray(d, 1, func(d *wire.Decoder) *raftpb.Message {
		one := &raftpb.Message{}
		if p := d.Bytes(); d.Err() == nil {
			if err := proto.Unmarshal(p, one); err != nil {
				d.Fail(fmt.Errorf("%w: %w", wire.ErrMalformed, err))
			}
		}
		return one
	})
	d.Tags(nil)
	return d.Done()
}

// formingAsk asks a node what cluster it knows.
type formingAsk struct {
	// Controllers is the asker's list, in node id order: two nodes with different lists must not form a cluster.
	Controllers []string
}

func (*formingAsk) Kind() peer.Kind { return peer.KindForming }

func (m *formingAsk) Append(b []byte) []byte {
	e := wire.Encoder{B: b}
	e.Header(formingAskHeader, messageVersion)
	wire.AppendArray(&e, m.Controllers, (*wire.Encoder).String)
	e.NoTags()
	return e.B
}

func (m *formingAsk) Decode(b []byte) error {
	d := wire.NewDecoder(b)
	d.ExpectHeader(formingAskHeader, messageVersion)
	m.Controllers = wire.ReadArray(d, 1, (*wire.Decoder).String)
	d.Tags(nil)
	return d.Done()
}

// formingAnswer is what a node knows.
type formingAnswer struct {
	Node        kafka.NodeID
	Directory   kafka.DirectoryID
	Controllers []string
	// Cluster is "" when the node knows none; then there is no table.
	Cluster string
	// Running says that Raft runs there, or has run: the table is in force.
	Running bool
	Table   []metadata.Voter
}

func (*formingAnswer) Kind() peer.Kind { return peer.KindForming }

func (m *formingAnswer) Append(b []byte) []byte {
	e := wire.Encoder{B: b}
	e.Header(formingAnswerHeader, messageVersion)
	e.Int32(int32(m.Node))
	e.ID(m.Directory)
	wire.AppendArray(&e, m.Controllers, (*wire.Encoder).String)
	e.String(m.Cluster)
	e.Bool(m.Running)
	wire.AppendArray(&e, m.Table, appendVoter)
	e.NoTags()
	return e.B
}

func (m *formingAnswer) Decode(b []byte) error {
	d := wire.NewDecoder(b)
	d.ExpectHeader(formingAnswerHeader, messageVersion)
	*m = formingAnswer{Node: kafka.NodeID(d.Int32()), Directory: d.ID()}
	m.Controllers = wire.ReadArray(d, 1, (*wire.Decoder).String)
	m.Cluster = d.String()
	m.Running = d.Bool()
	m.Table = wire.ReadArray(d, voterBytesMin, readVoter)
	d.Tags(nil)
	return d.Done()
}

// voterBytesMin is the least that a row of the table takes: three numbers, an empty address, no tags.
const voterBytesMin = 8 + 4 + 16 + 1 + 1

func appendVoter(e *wire.Encoder, v metadata.Voter) {
	e.Uint64(v.RaftID)
	e.Int32(int32(v.Node))
	e.ID(v.Directory)
	e.String(v.Address)
	e.NoTags()
}

func readVoter(d *wire.Decoder) metadata.Voter {
	v := metadata.Voter{RaftID: d.Uint64(), Node: kafka.NodeID(d.Int32()), Directory: d.ID(), Address: d.String()}
	d.Tags(nil)
	return v
}

// metadataFetch asks for committed entries from Next on. The one before it, which the asker has, is of LastTerm.
type metadataFetch struct {
	Next, LastTerm uint64
	// WaitMs is how long to wait for an entry when there is none yet.
	WaitMs int32
}

func (*metadataFetch) Kind() peer.Kind { return peer.KindMetadataFetch }

func (m *metadataFetch) Append(b []byte) []byte {
	e := wire.Encoder{B: b}
	e.Header(fetchHeader, messageVersion)
	e.Uint64(m.Next)
	e.Uint64(m.LastTerm)
	e.Int32(m.WaitMs)
	e.NoTags()
	return e.B
}

func (m *metadataFetch) Decode(b []byte) error {
	d := wire.NewDecoder(b)
	d.ExpectHeader(fetchHeader, messageVersion)
	*m = metadataFetch{Next: d.Uint64(), LastTerm: d.Uint64(), WaitMs: d.Int32()}
	d.Tags(nil)
	return d.Done()
}

// metadataFetched answers a metadataFetch.
type metadataFetched struct {
	// Term and Leader are the newest the answering node knows; NoNode when no leader is known.
	Term   uint64
	Leader kafka.NodeID
	// Committed is the index of the last committed entry there.
	Committed uint64
	// Behind says that the entries asked for are not there any more, or do not continue the asker's: a snapshot is needed.
	Behind bool
	// Batches are committed entries from Next on, as they lie in the log.
	Batches []byte
}

func (*metadataFetched) Kind() peer.Kind { return peer.KindMetadataFetch }

func (m *metadataFetched) Append(b []byte) []byte {
	e := wire.Encoder{B: b}
	e.Header(fetchedHeader, messageVersion)
	e.Uint64(m.Term)
	e.Int32(int32(m.Leader))
	e.Uint64(m.Committed)
	e.Bool(m.Behind)
	e.Bytes(m.Batches)
	e.NoTags()
	return e.B
}

func (m *metadataFetched) Decode(b []byte) error {
	d := wire.NewDecoder(b)
	d.ExpectHeader(fetchedHeader, messageVersion)
	*m = metadataFetched{Term: d.Uint64(), Leader: kafka.NodeID(d.Int32()), Committed: d.Uint64(), Behind: d.Bool(), Batches: d.Bytes()}
	d.Tags(nil)
	return d.Done()
}

// pieceAsk asks for a piece of a snapshot file, or, with an Offer, tells of a snapshot that Raft wants installed: the asked node then
// fetches it from the asker and answers when it has it.
type pieceAsk struct {
	// Index and Term name the snapshot; with Newest, which is for the first piece, the one to answer with is the newest there.
	Newest      bool
	Index, Term uint64
	Offset      int64
	// Offer is Raft's MsgSnap, or nil.
	Offer *raftpb.Message
}

func (*pieceAsk) Kind() peer.Kind { return peer.KindRaftSnapshot }

func (m *pieceAsk) Append(b []byte) []byte {
	e := wire.Encoder{B: b}
	e.Header(pieceAskHeader, messageVersion)
	e.Bool(m.Newest)
	e.Uint64(m.Index)
	e.Uint64(m.Term)
	e.Int64(m.Offset)
	if m.Offer == nil {
		e.NullableBytes(nil)
	} else {
		p, err := proto.Marshal(m.Offer)
		if err != nil {
			panic(fmt.Sprintf("quorum: marshal a raft message: %v", err)) // as in raftMessages
		}
		e.Bytes(p)
	}
	e.NoTags()
	return e.B
}

func (m *pieceAsk) Decode(b []byte) error {
	d := wire.NewDecoder(b)
	d.ExpectHeader(pieceAskHeader, messageVersion)
	*m = pieceAsk{Newest: d.Bool(), Index: d.Uint64(), Term: d.Uint64(), Offset: d.Int64()}
	if p := d.NullableBytes(); p != nil && d.Err() == nil {
		m.Offer = &raftpb.Message{}
		if err := proto.Unmarshal(p, m.Offer); err != nil {
			d.Fail(fmt.Errorf("%w: %w", wire.ErrMalformed, err))
		}
	}
	if d.Err() == nil && m.Offset < 0 {
		d.Fail(wire.ErrMalformed)
	}
	d.Tags(nil)
	return d.Done()
}

// piece is a part of a snapshot file. It answers an offer too, without bytes.
type piece struct {
	Index, Term uint64
	// Size is that of the whole file.
	Size  int64
	Bytes []byte
}

func (*piece) Kind() peer.Kind { return peer.KindRaftSnapshot }

func (m *piece) Append(b []byte) []byte {
	e := wire.Encoder{B: b}
	e.Header(pieceHeader, messageVersion)
	e.Uint64(m.Index)
	e.Uint64(m.Term)
	e.Int64(m.Size)
	e.Bytes(m.Bytes)
	e.NoTags()
	return e.B
}

func (m *piece) Decode(b []byte) error {
	d := wire.NewDecoder(b)
	d.ExpectHeader(pieceHeader, messageVersion)
	*m = piece{Index: d.Uint64(), Term: d.Uint64(), Size: d.Int64(), Bytes: d.Bytes()}
	if d.Err() == nil && (m.Size < 0 || m.Size > snapshotFileMax) {
		d.Fail(wire.ErrMalformed)
	}
	d.Tags(nil)
	return d.Done()
}

// changeKind is what a membership message asks for.
type changeKind int8

const (
	// addVoter makes the row's directory a voter.
	addVoter changeKind = 1
	// removeVoter makes the row's directory no voter.
	removeVoter changeKind = 2
	// replaceVoter lets the row's directory take the place of another one of the same node, which must be silent.
	replaceVoter changeKind = 3
)

// membership asks the leader for a change of the voters. The answer comes when the change is complete.
type membership struct {
	Change changeKind
	Voter  metadata.Voter
}

func (*membership) Kind() peer.Kind { return peer.KindMembership }

func (m *membership) Append(b []byte) []byte {
	e := wire.Encoder{B: b}
	e.Header(membershipHeader, messageVersion)
	e.Int8(int8(m.Change))
	appendVoter(&e, m.Voter)
	e.NoTags()
	return e.B
}

func (m *membership) Decode(b []byte) error {
	d := wire.NewDecoder(b)
	d.ExpectHeader(membershipHeader, messageVersion)
	*m = membership{Change: changeKind(d.Int8()), Voter: readVoter(d)}
	if d.Err() == nil && (m.Change < addVoter || m.Change > replaceVoter) {
		d.Fail(fmt.Errorf("%w: membership change %d", wire.ErrMalformed, m.Change))
	}
	d.Tags(nil)
	return d.Done()
}

// membershipDone answers a membership.
type membershipDone struct {
	// NotLeader says that the node does not lead and nothing was begun.
	NotLeader bool
	// Refusal says why the change is not made, "" when it is complete.
	Refusal string
}

func (*membershipDone) Kind() peer.Kind { return peer.KindMembership }

func (m *membershipDone) Append(b []byte) []byte {
	e := wire.Encoder{B: b}
	e.Header(membershipDoneHeader, messageVersion)
	e.Bool(m.NotLeader)
	e.String(m.Refusal)
	e.NoTags()
	return e.B
}

func (m *membershipDone) Decode(b []byte) error {
	d := wire.NewDecoder(b)
	d.ExpectHeader(membershipDoneHeader, messageVersion)
	*m = membershipDone{NotLeader: d.Bool(), Refusal: d.String()}
	d.Tags(nil)
	return d.Done()
}
