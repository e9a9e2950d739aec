package metadata

import (
	"fmt"
	"math"
	"slices"

	"github.com/twmb/franz-go/pkg/kmsg"

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
	case ACLRecord:
		encodeACL(e, r)
	case ScramRecord:
		encodeScram(e, r)
	case ScramSecretRecord:
		e.Bytes(r.Secret)
	case QuotaRecord:
		encodeQuota(e, r)
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
	11: decodeACL,
	12: decodeScram,
	13: func(d *wire.Decoder) Record { return ScramSecretRecord{Secret: ownBytes(d)} },
	14: decodeQuota,
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

func encodeACL(e *wire.Encoder, r ACLRecord) {
	e.Int8(int8(r.ACL.Resource))
	e.Int8(int8(r.ACL.Pattern))
	e.String(r.ACL.Name)
	e.String(r.ACL.Principal)
	e.String(r.ACL.Host)
	e.Int8(int8(r.ACL.Operation))
	e.Int8(int8(r.ACL.Permission))
	e.Bool(r.Removed)
}

func decodeACL(d *wire.Decoder) Record {
	return ACLRecord{
		ACL: ACL{
			Resource: kmsg.ACLResourceType(d.Int8()), Pattern: kmsg.ACLResourcePatternType(d.Int8()), Name: d.String(), Principal: d.String(),
			Host: d.String(), Operation: kmsg.ACLOperation(d.Int8()), Permission: kmsg.ACLPermissionType(d.Int8()),
		},
		Removed: d.Bool(),
	}
}

// ownBytes reads bytes that the record keeps; none are nil.
func ownBytes(d *wire.Decoder) []byte {
	if b := d.Bytes(); len(b) > 0 {
		return slices.Clone(b)
	}
	return nil
}

func encodeScram(e *wire.Encoder, r ScramRecord) {
	c := r.Credential
	e.String(c.User)
	e.Int8(int8(c.Mechanism))
	e.Int32(c.Iterations)
	e.Bytes(c.Salt)
	e.Bytes(c.StoredKey)
	e.Bytes(c.ServerKey)
	e.Bool(r.Removed)
}

func decodeScram(d *wire.Decoder) Record {
	return ScramRecord{
		Credential: ScramCredential{
			User: d.String(), Mechanism: ScramMechanism(d.Int8()), Iterations: d.Int32(),
			Salt: ownBytes(d), StoredKey: ownBytes(d), ServerKey: ownBytes(d),
		},
		Removed: d.Bool(),
	}
}

func encodeQuota(e *wire.Encoder, r QuotaRecord) {
	q := r.Quota
	for _, p := range []QuotaName{q.Entity.User, q.Entity.Client, q.Entity.IP} {
		e.Int8(int8(p.Scope))
		e.String(p.Name)
	}
	e.Int8(int8(q.Kind))
	e.Uint64(math.Float64bits(q.Value))
	e.Bool(r.Removed)
}

func decodeQuota(d *wire.Decoder) Record {
	var r QuotaRecord
	for _, p := range []*QuotaName{&r.Quota.Entity.User, &r.Quota.Entity.Client, &r.Quota.Entity.IP} {
		p.Scope, p.Name = QuotaScope(d.Int8()), d.String()
	}
	r.Quota.Kind, r.Quota.Value = QuotaKind(d.Int8()), math.Float64frombits(d.Uint64())
	if math.IsNaN(r.Quota.Value) {
		d.Fail(wire.ErrMalformed) // many encodings of no value
	}
	r.Removed = d.Bool()
	return r
}
