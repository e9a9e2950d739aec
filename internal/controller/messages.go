package controller

import (
	"fmt"
	"time"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/metadata"
	"strandline.dev/internal/peer"
	"strandline.dev/internal/wire"
)

// messageVersion is the version of the messages of this package.
const messageVersion = 0

// The types of the messages, in their headers. An answer follows its request.
const (
	typeHeartbeat       = uint16(peer.KindHeartbeat)
	typeHeartbeatAnswer = uint16(peer.KindHeartbeat) + 0x4000
	typeSubmit          = uint16(peer.KindSubmit)
	typeSubmitAnswer    = uint16(peer.KindSubmit) + 0x4000
)

// heartbeat says that the broker with this registration lives. Epoch is 0 before the first one.
type heartbeat struct {
	Node  kafka.NodeID
	Epoch kafka.BrokerEpoch
}

// standing is what the active controller holds of a broker.
type standing int8

// The standings.
const (
	// notActive: the node that answers is not the active controller and cannot say.
	notActive standing = 0
	// unknown: no broker is registered with the epoch.
	unknown standing = 1
	// fenced: registered, and not counted on.
	fenced standing = 2
	// up: registered and unfenced.
	up standing = 3
)

// heartbeatAnswer names the active controller and says how the broker stands.
type heartbeatAnswer struct {
	// Active is the active controller, or NoNode if the node that answers knows none (I13). It leads in Term.
	Active kafka.NodeID
	Term   uint64
	// Version is that of the Image the answer was made from: what the broker should soon have applied.
	Version  uint64
	Standing standing
}

// submission carries an event to the active controller. The principal in it is believed, because only a node of the cluster can send one (I15).
type submission struct {
	// Wait is how long the caller waits for the answer; 0 for no limit of its own.
	Wait  time.Duration
	Event metadata.Event
}

// fate is what became of a submission.
type fate int8

// The fates. All but decided and unsure mean that nothing was decided.
const (
	decided   fate = 0 // Reply and Version are set
	elsewhere fate = 1 // another node is the active controller, perhaps Active
	busy      fate = 2
	unsure    fate = 3 // decided, and not known to be committed
	refused   fate = 4 // Text says why
)

// submissionAnswer is the answer to a submission.
type submissionAnswer struct {
	Fate    fate
	Active  kafka.NodeID
	Version uint64
	Text    string
	Reply   any
}

func (*heartbeat) Kind() peer.Kind        { return peer.KindHeartbeat }
func (*heartbeatAnswer) Kind() peer.Kind  { return peer.KindHeartbeat }
func (*submission) Kind() peer.Kind       { return peer.KindSubmit }
func (*submissionAnswer) Kind() peer.Kind { return peer.KindSubmit }

// Append implements peer.Message.
func (m *heartbeat) Append(b []byte) []byte {
	e := wire.Encoder{B: b}
	e.Header(typeHeartbeat, messageVersion)
	e.Int32(int32(m.Node))
	e.Int64(int64(m.Epoch))
	e.NoTags()
	return e.B
}

// Decode implements peer.Message.
func (m *heartbeat) Decode(b []byte) error {
	d := wire.NewDecoder(b)
	d.ExpectHeader(typeHeartbeat, messageVersion)
	*m = heartbeat{Node: kafka.NodeID(d.Int32()), Epoch: kafka.BrokerEpoch(d.Int64())}
	d.Tags(nil)
	return d.Done()
}

// Append implements peer.Message.
func (m *heartbeatAnswer) Append(b []byte) []byte {
	e := wire.Encoder{B: b}
	e.Header(typeHeartbeatAnswer, messageVersion)
	e.Int32(int32(m.Active))
	e.Uint64(m.Term)
	e.Uint64(m.Version)
	e.Int8(int8(m.Standing))
	e.NoTags()
	return e.B
}

// Decode implements peer.Message.
func (m *heartbeatAnswer) Decode(b []byte) error {
	d := wire.NewDecoder(b)
	d.ExpectHeader(typeHeartbeatAnswer, messageVersion)
	*m = heartbeatAnswer{Active: kafka.NodeID(d.Int32()), Term: d.Uint64(), Version: d.Uint64(), Standing: standing(d.Int8())}
	if m.Standing < notActive || m.Standing > up {
		d.Fail(fmt.Errorf("%w: standing %d", wire.ErrMalformed, m.Standing))
	}
	d.Tags(nil)
	return d.Done()
}

// Append implements peer.Message.
func (m *submission) Append(b []byte) []byte {
	e := wire.Encoder{B: b}
	e.Header(typeSubmit, messageVersion)
	e.Int64(int64(m.Wait))
	e.Bytes(metadata.EncodeEvent(nil, m.Event))
	e.NoTags()
	return e.B
}

// Decode implements peer.Message.
func (m *submission) Decode(b []byte) error {
	d := wire.NewDecoder(b)
	d.ExpectHeader(typeSubmit, messageVersion)
	m.Wait = time.Duration(d.Int64())
	raw := d.Bytes()
	d.Tags(nil)
	if err := d.Done(); err != nil {
		return err
	}
	var err error
	m.Event, err = metadata.DecodeEvent(raw)
	return err
}

// Append implements peer.Message.
func (m *submissionAnswer) Append(b []byte) []byte {
	e := wire.Encoder{B: b}
	e.Header(typeSubmitAnswer, messageVersion)
	e.Int8(int8(m.Fate))
	e.Int32(int32(m.Active))
	e.Uint64(m.Version)
	e.String(m.Text)
	if m.Fate == decided {
		e.Bytes(metadata.EncodeReply(nil, m.Reply))
	} else {
		e.Bytes(nil)
	}
	e.NoTags()
	return e.B
}

// Decode implements peer.Message.
func (m *submissionAnswer) Decode(b []byte) error {
	d := wire.NewDecoder(b)
	d.ExpectHeader(typeSubmitAnswer, messageVersion)
	*m = submissionAnswer{Fate: fate(d.Int8()), Active: kafka.NodeID(d.Int32()), Version: d.Uint64(), Text: d.String()}
	raw := d.Bytes()
	d.Tags(nil)
	if m.Fate < decided || m.Fate > refused || m.Fate != decided && len(raw) > 0 {
		d.Fail(fmt.Errorf("%w: fate %d", wire.ErrMalformed, m.Fate))
	}
	if err := d.Done(); err != nil || m.Fate != decided {
		return err
	}
	var err error
	m.Reply, err = metadata.DecodeReply(raw)
	return err
}
