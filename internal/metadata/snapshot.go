package metadata

import (
	"fmt"
	"maps"
	"slices"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/wire"
)

// The header of an Image snapshot. The type number is outside those of records.
const (
	imageType    = 0x494d // "IM"
	imageVersion = 0
)

// EncodeImage appends a snapshot of the Image to dst: a header, the version, and the shortest list of records that leads from the empty Image
// to this one. Equal Images have equal bytes.
func EncodeImage(dst []byte, i *Image) []byte {
	e := &wire.Encoder{B: dst}
	e.Header(imageType, imageVersion)
	e.Uint64(i.version)
	return EncodeRecords(e.B, i.records())
}

// DecodeImage reads what EncodeImage wrote, and nothing more. Errors wrap ErrRecord.
func DecodeImage(b []byte) (*Image, error) {
	d := wire.NewDecoder(b)
	d.ExpectHeader(imageType, imageVersion)
	version := d.Uint64()
	if d.Err() != nil {
		return nil, fmt.Errorf("%w: snapshot: %w", ErrRecord, d.Err())
	}
	rs, err := DecodeRecords(b[len(b)-d.Rest():])
	if err != nil {
		return nil, fmt.Errorf("snapshot of version %d: %w", version, err)
	}
	return Empty().Apply(version, rs)
}

// records is the shortest list of records that leads from the empty Image to this one.
func (i *Image) records() []Record {
	var rs []Record
	if i.clusterID != "" {
		rs = append(rs, ClusterRecord{ClusterID: i.clusterID, Voters: i.voters})
	}
	for _, b := range i.brokers {
		rs = append(rs, b.record(), b.state())
	}
	for _, n := range slices.Sorted(maps.Keys(i.configs)) {
		rs = appendConfigs(rs, kafka.TopicID{}, n, i.configs[n])
	}
	if i.producerID != 0 {
		rs = append(rs, ProducerIDsRecord{Next: i.producerID})
	}
	rs = i.quotaRecords(i.access.records(rs))
	for _, t := range i.topics.all() {
		rs = i.appendTopic(rs, t)
	}
	for k := range i.purges.all() {
		t := i.TopicByID(k.topic)
		if t == nil || t.State != StatePurging || !t.isReplica(k.node, k.partition) {
			rs = append(rs, ReplicaPurgeRecord{Topic: k.topic, Partition: k.partition, Node: k.node})
		}
	}
	return append(rs, i.donePurges()...)
}

// donePurges lists the replicas of purging topics whose directories are gone already.
func (i *Image) donePurges() []Record {
	var rs []Record
	for _, t := range i.topics.all() {
		if t.State != StatePurging {
			continue
		}
		for p := range t.Partitions {
			for _, n := range t.Partitions[p].Replicas {
				if !i.PurgePending(n, kafka.TopicPartition{Topic: t.ID, Partition: int32(p)}) {
					rs = append(rs, ReplicaPurgeRecord{Topic: t.ID, Partition: int32(p), Node: n, Done: true})
				}
			}
		}
	}
	return rs
}

func (t *Topic) isReplica(n kafka.NodeID, partition int32) bool {
	return int(partition) < len(t.Partitions) && slices.Contains(t.Partitions[partition].Replicas, n)
}

func (b *Broker) record() BrokerRecord {
	return BrokerRecord{
		Node: b.ID, Epoch: b.Epoch, Incarnation: b.Incarnation, Directory: b.Directory, StartNumber: b.StartNumber, BootID: b.BootID,
		Rack: b.Rack, ClusterAddress: b.ClusterAddress, Listeners: b.Listeners, Roles: b.Roles, RegisteredMs: b.Registered.UnixMilli(),
	}
}

// state is the record of what a broker may do.
func (b *Broker) state() BrokerStateRecord {
	return BrokerStateRecord{Node: b.ID, Epoch: b.Epoch, Fenced: b.Fenced, Stopping: b.Stopping}
}

// appendTopic writes configs before partitions, so that applying them raises no partition epoch, and the state last.
func (i *Image) appendTopic(rs []Record, t *Topic) []Record {
	expected := int32(len(t.Partitions))
	if t.State == StateCreating {
		expected = t.expected
	}
	named := t.State == StateCreating || t.State == StateReady
	rs = append(rs, TopicRecord{
		ID: t.ID, Name: t.Name, Owner: t.Owner, CreatedMs: t.Created.UnixMilli(), Partitions: max(expected, 1), Internal: t.Internal, Unnamed: !named,
	})
	rs = appendConfigs(rs, t.ID, kafka.NoNode, t.Configs)
	for p, s := range t.Partitions {
		s.EffectiveMinISR = 0
		rs = append(rs, PartitionRecord{Topic: t.ID, Partition: int32(p), State: s})
	}
	if t.State == StateCreating {
		return rs
	}
	state := TopicStateRecord{ID: t.ID, State: t.State, Version: t.Version, DeletedBy: t.DeletedBy}
	if !named {
		state.AtMs, state.PurgeAtMs = t.DeletedAt.UnixMilli(), t.PurgeAt.UnixMilli()
	}
	return append(rs, state)
}

func appendConfigs(rs []Record, topic kafka.TopicID, node kafka.NodeID, configs map[string]string) []Record {
	for _, k := range slices.Sorted(maps.Keys(configs)) {
		v := configs[k]
		rs = append(rs, ConfigRecord{Topic: topic, Node: node, Key: k, Value: &v})
	}
	return rs
}
