package replica

import (
	"fmt"
	"time"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/peer"
	"strandline.dev/internal/wire"
)

// The messages between the replicas of a partition, byte by byte in docs/formats/replication.md.

// messageVersion is the version of all messages here.
const messageVersion = 0

// standing is what a follower says about one partition. The leader takes it in only in the leader epoch that it names.
type standing struct {
	tp    kafka.TopicPartition
	epoch kafka.LeaderEpoch
	// sequence orders what one process says about a partition, whichever message carries it.
	sequence uint64
	// stored is the end that is stored by the topic's flush policy, start the log start.
	stored, start kafka.Offset
}

// standingBytes is the size of an encoded standing.
const standingBytes = 16 + 4 + 4 + 8 + 8 + 8

func (s standing) encode(e *wire.Encoder) {
	e.ID(s.tp.Topic)
	e.Int32(s.tp.Partition)
	e.Int32(int32(s.epoch))
	e.Uint64(s.sequence)
	e.Int64(int64(s.stored))
	e.Int64(int64(s.start))
}

func (s *standing) decode(d *wire.Decoder) {
	s.tp = kafka.TopicPartition{Topic: d.ID(), Partition: d.Int32()}
	s.epoch, s.sequence = kafka.LeaderEpoch(d.Int32()), d.Uint64()
	s.stored, s.start = kafka.Offset(d.Int64()), kafka.Offset(d.Int64())
}

// fetchEntry names a partition that a follower fetches, and from where.
type fetchEntry struct {
	standing
	// offset is the end of the follower's log, last the newest epoch in it, NoEpoch for none.
	offset kafka.Offset
	last   kafka.LeaderEpoch
}

const fetchEntryBytes = standingBytes + 8 + 4

// fetchRequest asks a leader for records (ReplicaFetch). It names only what has changed since the session's last round.
type fetchRequest struct {
	broker kafka.BrokerEpoch
	// session is minted by the follower; round counts its requests. Round 0 begins the session and names every partition.
	session uint64
	round   uint32
	wait    time.Duration
	// maxBytes bounds the records of the answer, partitionBytes those of one partition, catchUpBytes those of all partitions that the
	// follower is not in sync with, together.
	maxBytes, partitionBytes, catchUpBytes int32
	// forget are partitions to take out of the session. It is carried out before parts is.
	forget []kafka.TopicPartition
	parts  []fetchEntry
}

// Kind implements peer.Message.
func (m *fetchRequest) Kind() peer.Kind { return peer.KindReplicaFetch }

// Append implements peer.Message.
func (m *fetchRequest) Append(b []byte) []byte {
	e := wire.Encoder{B: b}
	e.Header(uint16(peer.KindReplicaFetch), messageVersion)
	e.Int64(int64(m.broker))
	e.Uint64(m.session)
	e.Uint32(m.round)
	e.Int32(int32(m.wait.Milliseconds()))
	e.Int32(m.maxBytes)
	e.Int32(m.partitionBytes)
	e.Int32(m.catchUpBytes)
	e.ArrayLen(len(m.forget))
	for _, tp := range m.forget {
		e.ID(tp.Topic)
		e.Int32(tp.Partition)
	}
	e.ArrayLen(len(m.parts))
	for i := range m.parts {
		p := &m.parts[i]
		p.encode(&e)
		e.Int64(int64(p.offset))
		e.Int32(int32(p.last))
	}
	e.NoTags()
	return e.B
}

// Decode implements peer.Message.
func (m *fetchRequest) Decode(b []byte) error {
	d := wire.NewDecoder(b)
	d.ExpectHeader(uint16(peer.KindReplicaFetch), messageVersion)
	m.broker, m.session, m.round = kafka.BrokerEpoch(d.Int64()), d.Uint64(), d.Uint32()
	m.wait = time.Duration(d.Int32()) * time.Millisecond
	m.maxBytes, m.partitionBytes, m.catchUpBytes = d.Int32(), d.Int32(), d.Int32()
	m.forget, m.parts = m.forget[:0], m.parts[:0]
	for range bounded(d, standingBytes-24) {
		m.forget = append(m.forget, kafka.TopicPartition{Topic: d.ID(), Partition: d.Int32()})
	}
	for range bounded(d, fetchEntryBytes) {
		var p fetchEntry
		p.decode(d)
		p.offset, p.last = kafka.Offset(d.Int64()), kafka.LeaderEpoch(d.Int32())
		m.parts = append(m.parts, p)
	}
	d.Tags(nil)
	if m.wait < 0 || m.maxBytes < 0 || m.partitionBytes < 0 || m.catchUpBytes < 0 {
		d.Fail(fmt.Errorf("%w: a negative limit", wire.ErrMalformed))
	}
	return d.Done()
}

// bounded reads the length of an array of partitions. Its elements take size bytes each, so no allocation is above a fraction of the
// message.
func bounded(d *wire.Decoder, size int) int {
	n := d.ArrayLen(size)
	if n > entriesMax {
		d.Fail(fmt.Errorf("%w: %d partitions, above the limit of %d", wire.ErrMalformed, n, entriesMax))
		return 0
	}
	return n
}

// answerCode says how the leader answers one partition. The numbers are fixed for ever.
type answerCode int8

const (
	codeOK answerCode = 0
	// codeDiverges: the logs part at the point that is named; there are no records.
	codeDiverges answerCode = 1
	// codeTooOld: the follower's end lies below the leader's start.
	codeTooOld answerCode = 2
	// codeNotLeader: this node does not lead the partition (any more, or yet).
	codeNotLeader answerCode = 3
	// codeFenced: the follower names an epoch older than the leader's, codeUnknownEpoch: a newer one. The metadata will tell.
	codeFenced       answerCode = 4
	codeUnknownEpoch answerCode = 5
	// codeNotHeld: the leader holds no such partition, or the follower is no replica of it.
	codeNotHeld answerCode = 6
	// codeStorage: the leader cannot read its log.
	codeStorage answerCode = 7

	codeLast = codeStorage
)

func (c answerCode) String() string {
	names := [...]string{
		"ok", "diverges", "below the leader's log start", "not the leader", "older leader epoch", "unknown leader epoch", "no such replica", "storage error",
	}
	if c < 0 || int(c) >= len(names) {
		return fmt.Sprintf("code %d", int8(c))
	}
	return names[c]
}

// answerEntry is the leader's answer for one partition.
type answerEntry struct {
	tp    kafka.TopicPartition
	code  answerCode
	epoch kafka.LeaderEpoch // as the follower named it
	// hw and start are the leader's high watermark and log start.
	hw, start kafka.Offset
	// appendedMs is a time, in Unix milliseconds, by which the records were appended by their leader.
	appendedMs int64
	// diverging is set with codeDiverges.
	diverging kafka.EpochEnd
	records   []byte
}

const answerEntryBytes = 16 + 4 + 1 + 4 + 8 + 8 + 8 + 4 + 8 + 4

// answerFault says why a fetch was not answered at all. The numbers are fixed for ever.
type answerFault int8

const (
	faultNone answerFault = 0
	// faultSession: the leader does not know the session, or not in this round: begin another one.
	faultSession answerFault = 1
	// faultBroker: the leader knows a newer registration of the follower.
	faultBroker answerFault = 2

	faultLast = faultBroker
)

// fetchAnswer answers a fetchRequest. The records of all partitions follow the body, in the order of parts.
type fetchAnswer struct {
	fault answerFault
	// broker is the leader's registration.
	broker kafka.BrokerEpoch
	parts  []answerEntry

	payload [][]byte
	// memory holds the records on the leader, until the answer is written.
	memory *FetchBuffer
	// buffer holds the answer on the follower, from one fetch to the next.
	buffer []byte
}

// Kind implements peer.Message.
func (m *fetchAnswer) Kind() peer.Kind { return peer.KindReplicaFetch }

// Append implements peer.Message.
func (m *fetchAnswer) Append(b []byte) []byte {
	e := wire.Encoder{B: b}
	e.Header(uint16(peer.KindReplicaFetch), messageVersion)
	e.Int8(int8(m.fault))
	e.Int64(int64(m.broker))
	e.ArrayLen(len(m.parts))
	for i := range m.parts {
		p := &m.parts[i]
		e.ID(p.tp.Topic)
		e.Int32(p.tp.Partition)
		e.Int8(int8(p.code))
		e.Int32(int32(p.epoch))
		e.Int64(int64(p.hw))
		e.Int64(int64(p.start))
		e.Int64(p.appendedMs)
		e.Int32(int32(p.diverging.Epoch))
		e.Int64(int64(p.diverging.End))
		e.Uint32(uint32(len(p.records)))
	}
	e.NoTags()
	return e.B
}

// Payload implements peer.Payloader.
func (m *fetchAnswer) Payload() [][]byte {
	m.payload = m.payload[:0]
	for i := range m.parts {
		if r := m.parts[i].records; len(r) > 0 {
			m.payload = append(m.payload, r)
		}
	}
	return m.payload
}

// Release implements peer.Releaser.
func (m *fetchAnswer) Release() {
	if m.memory != nil {
		m.memory.Release()
		fetchBuffers.Put(m.memory)
		m.memory = nil
	}
}

// Buffer implements peer.Receiver.
func (m *fetchAnswer) Buffer(size int) []byte {
	switch {
	case size > answerKeep:
		return nil
	case cap(m.buffer) < size:
		m.buffer = make([]byte, max(size, chunkMin))
	}
	return m.buffer[:cap(m.buffer)]
}

// Decode implements peer.Message. Records are views of b.
func (m *fetchAnswer) Decode(b []byte) error {
	d := wire.NewDecoder(b)
	d.ExpectHeader(uint16(peer.KindReplicaFetch), messageVersion)
	m.fault, m.broker = answerFault(d.Int8()), kafka.BrokerEpoch(d.Int64())
	m.parts = m.parts[:0]
	m.payload = m.payload[:0]
	var sizes uint64
	for range bounded(d, answerEntryBytes) {
		p := answerEntry{tp: kafka.TopicPartition{Topic: d.ID(), Partition: d.Int32()}, code: answerCode(d.Int8())}
		p.epoch, p.hw, p.start = kafka.LeaderEpoch(d.Int32()), kafka.Offset(d.Int64()), kafka.Offset(d.Int64())
		p.appendedMs = d.Int64()
		p.diverging = kafka.EpochEnd{Epoch: kafka.LeaderEpoch(d.Int32()), End: kafka.Offset(d.Int64())}
		size := d.Uint32()
		sizes += uint64(size)
		if p.code < 0 || p.code > codeLast || (size > 0 && p.code != codeOK) {
			d.Fail(fmt.Errorf("%w: partition %v with code %d and %d bytes", wire.ErrMalformed, p.tp, p.code, size))
		}
		if sizes <= uint64(len(b)) { // else the sum is refused below
			p.records = b[:size]
		}
		m.parts = append(m.parts, p)
	}
	d.Tags(nil)
	if m.fault < 0 || m.fault > faultLast {
		d.Fail(fmt.Errorf("%w: fault %d", wire.ErrMalformed, m.fault))
	}
	if err := d.Err(); err != nil {
		return err
	}
	if sizes != uint64(d.Rest()) {
		return fmt.Errorf("%w: records of %d bytes are announced and %d came", wire.ErrMalformed, sizes, d.Rest())
	}
	rest := b[len(b)-d.Rest():]
	for i := range m.parts {
		p := &m.parts[i]
		n := len(p.records)
		p.records, rest = rest[:n:n], rest[n:]
	}
	return nil
}

// progressReport tells a leader what its follower stores (ReplicaProgress). Nothing answers it.
type progressReport struct {
	broker kafka.BrokerEpoch
	// session, when not 0, asks for the session's fetch to be answered at once: the follower has more to fetch.
	session uint64
	parts   []standing
}

// Kind implements peer.Message.
func (m *progressReport) Kind() peer.Kind { return peer.KindReplicaProgress }

// Append implements peer.Message.
func (m *progressReport) Append(b []byte) []byte {
	e := wire.Encoder{B: b}
	e.Header(uint16(peer.KindReplicaProgress), messageVersion)
	e.Int64(int64(m.broker))
	e.Uint64(m.session)
	e.ArrayLen(len(m.parts))
	for _, p := range m.parts {
		p.encode(&e)
	}
	e.NoTags()
	return e.B
}

// Decode implements peer.Message.
func (m *progressReport) Decode(b []byte) error {
	d := wire.NewDecoder(b)
	d.ExpectHeader(uint16(peer.KindReplicaProgress), messageVersion)
	m.broker, m.session = kafka.BrokerEpoch(d.Int64()), d.Uint64()
	m.parts = m.parts[:0]
	for range bounded(d, standingBytes) {
		var p standing
		p.decode(d)
		m.parts = append(m.parts, p)
	}
	d.Tags(nil)
	return d.Done()
}
