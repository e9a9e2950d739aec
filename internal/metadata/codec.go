package metadata

import (
	"fmt"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/wire"
)

// codecVersion is the version of every record type this release writes. Reading accepts exactly the versions a row of decoders knows: an unknown
// type or version stops Apply.
const codecVersion = 0

// EncodeRecords appends the records to dst: their number, then each with its type and version first.
func EncodeRecords(dst []byte, rs []Record) []byte {
	e := &wire.Encoder{B: dst}
	e.ArrayLen(len(rs))
	for _, r := range rs {
		encodeRecord(e, r)
	}
	return e.B
}

// DecodeRecords reads what EncodeRecords wrote, and nothing more. Errors wrap ErrRecord.
func DecodeRecords(b []byte) ([]Record, error) {
	d := wire.NewDecoder(b)
	rs := wire.ReadArray(d, recordBytesMin, decodeRecord)
	if err := d.Done(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrRecord, err)
	}
	return rs, nil
}

// recordBytesMin is the size of the smallest record: type, version, one field, tags.
const recordBytesMin = 5

func encodeRecord(e *wire.Encoder, r Record) {
	e.Header(uint16(r.recordType()), codecVersion)
	switch r := r.(type) {
	case ClusterRecord:
		encodeCluster(e, r)
	case BrokerRecord:
		encodeBroker(e, r)
	case BrokerStateRecord:
		e.Int32(int32(r.Node))
		e.Int64(int64(r.Epoch))
		e.Bool(r.Fenced)
		e.Bool(r.Stopping)
	case BrokerRemovedRecord:
		e.Int32(int32(r.Node))
	case TopicRecord:
		encodeTopic(e, r)
	case TopicStateRecord:
		encodeTopicState(e, r)
	case PartitionRecord:
		encodePartition(e, r)
	case ConfigRecord:
		e.ID(r.Topic)
		e.Int32(int32(r.Node))
		e.String(r.Key)
		e.NullableString(r.Value)
	case ProducerIDsRecord:
		e.Int64(r.Next)
	case ReplicaPurgeRecord:
		e.ID(r.Topic)
		e.Int32(r.Partition)
		e.Int32(int32(r.Node))
		e.Bool(r.Done)
	default:
		panic(fmt.Sprintf("metadata: record type %T has no encoding", r))
	}
	e.NoTags()
}

// decoders has the decoding of each record type, by its number.
var decoders = [...]func(*wire.Decoder) Record{
	1: decodeCluster,
	2: decodeBroker,
	3: func(d *wire.Decoder) Record {
		return BrokerStateRecord{Node: node(d), Epoch: kafka.BrokerEpoch(d.Int64()), Fenced: d.Bool(), Stopping: d.Bool()}
	},
	4: func(d *wire.Decoder) Record { return BrokerRemovedRecord{Node: node(d)} },
	5: decodeTopic,
	6: decodeTopicState,
	7: decodePartition,
	8: func(d *wire.Decoder) Record {
		return ConfigRecord{Topic: d.ID(), Node: node(d), Key: d.String(), Value: d.NullableString()}
	},
	9: func(d *wire.Decoder) Record { return ProducerIDsRecord{Next: d.Int64()} },
	10: func(d *wire.Decoder) Record {
		return ReplicaPurgeRecord{Topic: d.ID(), Partition: d.Int32(), Node: node(d), Done: d.Bool()}
	},
}

func decodeRecord(d *wire.Decoder) Record {
	typ, version := d.Header()
	if d.Err() != nil {
		return nil
	}
	if typ == 0 || int(typ) >= len(decoders) || version != codecVersion {
		d.Fail(fmt.Errorf("type %d version %d is unknown to this release", typ, version))
		return nil
	}
	r := decoders[typ](d)
	d.Tags(nil)
	return r
}

func node(d *wire.Decoder) kafka.NodeID { return kafka.NodeID(d.Int32()) }

func encodeCluster(e *wire.Encoder, r ClusterRecord) {
	e.String(r.ClusterID)
	wire.AppendArray(e, r.Voters, func(e *wire.Encoder, v Voter) {
		e.Uint64(v.RaftID)
		e.Int32(int32(v.Node))
		e.ID(v.Directory)
		e.String(v.Address)
		e.NoTags()
	})
}

func decodeCluster(d *wire.Decoder) Record {
	return ClusterRecord{
		ClusterID: d.String(),
		Voters: wire.ReadArray(d, 30, func(d *wire.Decoder) Voter {
			v := Voter{RaftID: d.Uint64(), Node: node(d), Directory: d.ID(), Address: d.String()}
			d.Tags(nil)
			return v
		}),
	}
}

func encodeBroker(e *wire.Encoder, r BrokerRecord) {
	e.Int32(int32(r.Node))
	e.Int64(int64(r.Epoch))
	e.ID(r.Incarnation)
	e.ID(r.Directory)
	e.Uint64(r.StartNumber)
	e.String(r.BootID)
	e.String(r.Rack)
	e.String(r.ClusterAddress)
	wire.AppendArray(e, r.Listeners, func(e *wire.Encoder, l Listener) {
		e.String(l.Name)
		e.String(l.Host)
		e.Int32(l.Port)
		e.NoTags()
	})
	wire.AppendArray(e, r.Roles, (*wire.Encoder).String)
	e.Int64(r.RegisteredMs)
}

func decodeBroker(d *wire.Decoder) Record {
	return BrokerRecord{
		Node: node(d), Epoch: kafka.BrokerEpoch(d.Int64()), Incarnation: d.ID(), Directory: d.ID(), StartNumber: d.Uint64(),
		BootID: d.String(), Rack: d.String(), ClusterAddress: d.String(),
		Listeners: wire.ReadArray(d, 7, func(d *wire.Decoder) Listener {
			l := Listener{Name: d.String(), Host: d.String(), Port: d.Int32()}
			d.Tags(nil)
			return l
		}),
		Roles:        wire.ReadArray(d, 1, (*wire.Decoder).String),
		RegisteredMs: d.Int64(),
	}
}

func encodeTopic(e *wire.Encoder, r TopicRecord) {
	e.ID(r.ID)
	e.String(r.Name)
	e.String(r.Owner)
	e.Int64(r.CreatedMs)
	e.Int32(r.Partitions)
	e.Bool(r.Internal)
	e.Bool(r.Unnamed)
}

func decodeTopic(d *wire.Decoder) Record {
	return TopicRecord{
		ID: d.ID(), Name: d.String(), Owner: d.String(), CreatedMs: d.Int64(), Partitions: d.Int32(), Internal: d.Bool(), Unnamed: d.Bool(),
	}
}

func encodeTopicState(e *wire.Encoder, r TopicStateRecord) {
	e.ID(r.ID)
	e.Int8(int8(r.State))
	e.Int64(r.Version)
	e.String(r.Name)
	e.Int64(r.AtMs)
	e.Int64(r.PurgeAtMs)
	e.String(r.DeletedBy)
}

func decodeTopicState(d *wire.Decoder) Record {
	return TopicStateRecord{
		ID: d.ID(), State: TopicState(d.Int8()), Version: d.Int64(), Name: d.String(), AtMs: d.Int64(), PurgeAtMs: d.Int64(), DeletedBy: d.String(),
	}
}

func encodePartition(e *wire.Encoder, r PartitionRecord) {
	e.ID(r.Topic)
	e.Int32(r.Partition)
	e.Int32(int32(r.State.Leader))
	e.Int32(int32(r.State.LeaderEpoch))
	e.Int32(int32(r.State.PartitionEpoch))
	for _, list := range [][]kafka.NodeID{r.State.Replicas, r.State.ISR, r.State.ELR, r.State.LastKnown, r.State.Adding, r.State.Removing} {
		wire.AppendArray(e, list, func(e *wire.Encoder, n kafka.NodeID) { e.Int32(int32(n)) })
	}
}

func decodePartition(d *wire.Decoder) Record {
	r := PartitionRecord{Topic: d.ID(), Partition: d.Int32()}
	s := &r.State
	s.Leader, s.LeaderEpoch, s.PartitionEpoch = node(d), kafka.LeaderEpoch(d.Int32()), kafka.PartitionEpoch(d.Int32())
	for _, list := range []*[]kafka.NodeID{&s.Replicas, &s.ISR, &s.ELR, &s.LastKnown, &s.Adding, &s.Removing} {
		*list = wire.ReadArray(d, 4, node)
	}
	return r
}
