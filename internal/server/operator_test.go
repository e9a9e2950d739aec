package server

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/record"
	"strandline.dev/internal/sys"
	"strandline.dev/internal/wire"
)

// operatorRequest returns an ordinary request, on partition 0 of a topic, of each API that operators use; nil for other keys.
func operatorRequest(key int16, topic string) kmsg.Request {
	switch key {
	case wire.KeyDeleteRecords:
		return newDeleteRecords(topic, 0, -1)
	case wire.KeyDescribeLogDirs:
		return kmsg.NewPtrDescribeLogDirsRequest()
	case wire.KeyElectLeaders:
		return newElect(0, topic, 0)
	case wire.KeyAlterPartitionReassignments:
		return newReassign(topic, 0, 1)
	case wire.KeyListPartitionReassignments:
		return kmsg.NewPtrListPartitionReassignmentsRequest()
	case wire.KeyDescribeQuorum:
		return newDescribeQuorum(metadataTopic, 0)
	case wire.KeyUpdateFeatures:
		return newUpdateFeatures("group.version", 1)
	case wire.KeyDescribeProducers:
		return newDescribeProducers(topic, 0)
	}
	return nil
}

// operatorError finds the first error code of an answer to these.
func operatorError(resp kmsg.Response) int16 {
	switch r := resp.(type) {
	case *kmsg.DeleteRecordsResponse:
		return r.Topics[0].Partitions[0].ErrorCode
	case *kmsg.DescribeLogDirsResponse:
		return max(r.ErrorCode, r.Dirs[0].ErrorCode)
	case *kmsg.ElectLeadersResponse:
		return max(r.ErrorCode, r.Topics[0].Partitions[0].ErrorCode)
	case *kmsg.AlterPartitionAssignmentsResponse:
		return max(r.ErrorCode, r.Topics[0].Partitions[0].ErrorCode)
	case *kmsg.ListPartitionReassignmentsResponse:
		return r.ErrorCode
	case *kmsg.DescribeQuorumResponse:
		return max(r.ErrorCode, r.Topics[0].Partitions[0].ErrorCode)
	case *kmsg.UpdateFeaturesResponse:
		return r.ErrorCode
	case *kmsg.DescribeProducersResponse:
		return r.Topics[0].Partitions[0].ErrorCode
	case *kmsg.UnregisterBrokerResponse:
		return r.ErrorCode
	case *kmsg.AddRaftVoterResponse:
		return r.ErrorCode
	case *kmsg.RemoveRaftVoterResponse:
		return r.ErrorCode
	}
	return 0
}

func newDeleteRecords(topic string, partition int32, to int64) *kmsg.DeleteRecordsRequest {
	r := kmsg.NewPtrDeleteRecordsRequest()
	r.Version = 2
	t := kmsg.NewDeleteRecordsRequestTopic()
	t.Topic = topic
	t.Partitions = append(t.Partitions, kmsg.DeleteRecordsRequestTopicPartition{Partition: partition, Offset: to})
	r.Topics = append(r.Topics, t)
	return r
}

func newElect(kind int8, topic string, partitions ...int32) *kmsg.ElectLeadersRequest {
	r := kmsg.NewPtrElectLeadersRequest()
	r.Version, r.ElectionType = 2, kind
	r.Topics = []kmsg.ElectLeadersRequestTopic{{Topic: topic, Partitions: partitions}}
	return r
}

// newReassign asks for replicas; none is a cancellation.
func newReassign(topic string, partition int32, replicas ...int32) *kmsg.AlterPartitionAssignmentsRequest {
	r := kmsg.NewPtrAlterPartitionAssignmentsRequest()
	r.Version = 1
	t := kmsg.NewAlterPartitionAssignmentsRequestTopic()
	t.Topic = topic
	t.Partitions = append(t.Partitions, kmsg.AlterPartitionAssignmentsRequestTopicPartition{Partition: partition, Replicas: replicas})
	r.Topics = append(r.Topics, t)
	return r
}

func newDescribeQuorum(topic string, partition int32) *kmsg.DescribeQuorumRequest {
	r := kmsg.NewPtrDescribeQuorumRequest()
	r.Version = 2
	t := kmsg.NewDescribeQuorumRequestTopic()
	t.Topic = topic
	t.Partitions = append(t.Partitions, kmsg.DescribeQuorumRequestTopicPartition{Partition: partition})
	r.Topics = append(r.Topics, t)
	return r
}

func newUpdateFeatures(feature string, level int16) *kmsg.UpdateFeaturesRequest {
	r := kmsg.NewPtrUpdateFeaturesRequest()
	r.Version = 2
	r.FeatureUpdates = append(r.FeatureUpdates, kmsg.UpdateFeaturesRequestFeatureUpdate{Feature: feature, MaxVersionLevel: level, UpgradeType: featureUpgrade})
	return r
}

func newDescribeProducers(topic string, partitions ...int32) *kmsg.DescribeProducersRequest {
	r := kmsg.NewPtrDescribeProducersRequest()
	r.Topics = append(r.Topics, kmsg.DescribeProducersRequestTopic{Topic: topic, Partitions: partitions})
	return r
}

// numbered is a batch of one record of an idempotent producer.
func (b *testBroker) numbered(id kafka.ProducerID, sequence int32) record.Batch {
	batch := b.newBatch(fmt.Sprintf("value-%d", sequence))
	batch.SetProducer(id, 0, sequence, false)
	return batch
}

func TestDeleteRecords_OneByOne(t *testing.T) {
	b := newTestBroker(t, testOptions{})
	c := b.dial()
	c.create("orders", 1)
	findCoordinator(c)
	for range 10 {
		c.publish(newProduce("orders", 0, b.newBatch("x")))
	}
	for _, one := range []struct {
		topic     string
		partition int32
		to, low   int64
		want      kafka.ErrorCode
	}{
		{"orders", 0, 4, 4, kafka.None},
		{"orders", 0, 1, 4, kafka.None},
		{"orders", 0, 11, -1, kafka.OffsetOutOfRange},
		{"orders", 0, -2, -1, kafka.OffsetOutOfRange},
		{"orders", 1, 0, -1, kafka.UnknownTopicOrPartition},
		{"orders", -1, 0, -1, kafka.UnknownTopicOrPartition},
		{"nope", 0, 0, -1, kafka.UnknownTopicOrPartition},
		{"__consumer_offsets", 0, -1, -1, kafka.InvalidTopicException},
		{"orders", 0, -1, 10, kafka.None},
	} {
		p := ask[*kmsg.DeleteRecordsResponse](c, newDeleteRecords(one.topic, one.partition, one.to)).Topics[0].Partitions[0]
		if kafka.ErrorCode(p.ErrorCode) != one.want || p.LowWatermark != one.low || p.Partition != one.partition {
			t.Errorf("%s-%d to %d: %v, low watermark %d", one.topic, one.partition, one.to, kafka.ErrorCode(p.ErrorCode), p.LowWatermark)
		}
	}
	twice := newDeleteRecords("orders", 0, 0)
	twice.Topics = append(twice.Topics, twice.Topics[0])
	for _, rt := range ask[*kmsg.DeleteRecordsResponse](c, twice).Topics {
		if code := kafka.ErrorCode(rt.Partitions[0].ErrorCode); code != kafka.InvalidRequest {
			t.Errorf("a partition named twice: %v", code)
		}
	}
	if log := b.log.String(); !strings.Contains(log, "principal=User:ANONYMOUS") {
		t.Error("the log does not say who deleted records")
	}
}

// C048: all records of a producer are deleted, and the broker ends without a clean stop and starts again; the producer goes on where it was.
func TestC048_ProducerGoesOnAfterDeleteRecordsAndRestart(t *testing.T) {
	disk := t.TempDir()
	t.Run("before", func(t *testing.T) {
		b := newTestBroker(t, testOptions{disk: disk})
		c := b.dial()
		c.create("orders", 1)
		for seq := range int32(5) {
			if p := c.publish(newProduce("orders", 0, b.numbered(9, seq))); p.ErrorCode != 0 || p.BaseOffset != int64(seq) {
				t.Fatalf("%+v", p)
			}
		}
		if p := ask[*kmsg.DeleteRecordsResponse](c, newDeleteRecords("orders", 0, -1)).Topics[0].Partitions[0]; p.ErrorCode != 0 || p.LowWatermark != 5 {
			t.Fatalf("%+v", p)
		}
		b.goesOn(c, 4, 5)
	})
	t.Run("after", func(t *testing.T) {
		b := newTestBroker(t, testOptions{disk: disk})
		b.goesOn(b.dial(), 4, 5, 6)
	})
}

// goesOn publishes these sequences of the producer, retries included; each is at the offset of its number.
func (b *testBroker) goesOn(c *testClient, sequences ...int32) {
	b.t.Helper()
	for _, seq := range sequences {
		if p := c.publish(newProduce("orders", 0, b.numbered(9, seq))); p.ErrorCode != 0 || p.BaseOffset != int64(seq) || p.LogStartOffset != 5 {
			b.t.Fatalf("sequence %d: %+v", seq, p)
		}
	}
}

func TestDescribeLogDirs_SizesOfWhatIsThere(t *testing.T) {
	disk := t.TempDir()
	b := newTestBroker(t, testOptions{disk: disk})
	c := b.dial()
	c.create("orders", 2)
	c.create("empty", 1)
	batch := b.newBatch("some value")
	c.publish(newProduce("orders", 1, batch))
	space, err := sys.Real().Space(disk)
	must(t, err)
	describe := func(topics []kmsg.DescribeLogDirsRequestTopic) (string, kmsg.DescribeLogDirsResponseDir) {
		r := kmsg.NewPtrDescribeLogDirsRequest()
		r.Version, r.Topics = 5, topics
		resp := ask[*kmsg.DescribeLogDirsResponse](c, r)
		if resp.ErrorCode != 0 || len(resp.Dirs) != 1 || resp.Dirs[0].ErrorCode != 0 {
			t.Fatalf("%+v", resp)
		}
		var found []string
		for _, rt := range resp.Dirs[0].Topics {
			for _, p := range rt.Partitions {
				found = append(found, fmt.Sprintf("%s-%d=%d/%d", rt.Topic, p.Partition, p.Size, p.OffsetLag))
			}
		}
		slices.Sort(found)
		return strings.Join(found, " "), resp.Dirs[0]
	}
	all := fmt.Sprintf("empty-0=0/0 orders-0=0/0 orders-1=%d/0", len(batch))
	got, dir := describe(nil)
	if got != all || dir.Dir != disk || dir.TotalBytes != space.Total || dir.UsableBytes <= 0 || dir.UsableBytes > dir.TotalBytes {
		t.Errorf("all: %s in %+v, want %s", got, dir, all)
	}
	if got, _ := describe([]kmsg.DescribeLogDirsRequestTopic{}); got != "" {
		t.Errorf("none: %s", got)
	}
	some := []kmsg.DescribeLogDirsRequestTopic{{Topic: "orders", Partitions: []int32{1, 7, 1}}, {Topic: "nope", Partitions: []int32{0}}}
	if got, _ := describe(some); got != fmt.Sprintf("orders-1=%d/0", len(batch)) {
		t.Errorf("some: %s", got)
	}
}

func TestElectLeaders_OnOneNode(t *testing.T) {
	b := newTestBroker(t, testOptions{})
	c := b.dial()
	c.create("orders", 2)
	answer := func(r *kmsg.ElectLeadersRequest) string {
		resp := ask[*kmsg.ElectLeadersResponse](c, r)
		out := kafka.ErrorCode(resp.ErrorCode).String()
		for _, rt := range resp.Topics {
			for _, p := range rt.Partitions {
				out += fmt.Sprintf(" %s-%d:%v", rt.Topic, p.Partition, kafka.ErrorCode(p.ErrorCode))
				if p.ErrorCode != 0 && str(p.ErrorMessage) == "" {
					t.Errorf("%s-%d: an error without a message", rt.Topic, p.Partition)
				}
			}
		}
		return out
	}
	everything := kmsg.NewPtrElectLeadersRequest()
	everything.Version = 2
	for _, one := range []struct {
		name string
		req  *kmsg.ElectLeadersRequest
		want string
	}{
		{"named", newElect(0, "orders", 0, 1, 2), "NONE orders-0:ELECTION_NOT_NEEDED orders-1:ELECTION_NOT_NEEDED orders-2:UNKNOWN_TOPIC_OR_PARTITION"},
		{"unknown topic", newElect(0, "nope", 0), "NONE nope-0:UNKNOWN_TOPIC_OR_PARTITION"},
		{"all", everything, "NONE"},
		{"unclean, with a leader", newElect(1, "orders", 0), "NONE orders-0:ELECTION_NOT_NEEDED"},
		{"unknown type", newElect(2, "orders", 0), "INVALID_REQUEST orders-0:INVALID_REQUEST"},
	} {
		if got := answer(one.req); got != one.want {
			t.Errorf("%s: %s, want %s", one.name, got, one.want)
		}
	}
}

func TestDescribeProducers_WhatTheLeaderRemembers(t *testing.T) {
	b := newTestBroker(t, testOptions{})
	c := b.dial()
	c.create("orders", 2)
	for seq := range int32(7) {
		c.publish(newProduce("orders", 1, b.numbered(9, seq)))
	}
	c.publish(newProduce("orders", 1, b.numbered(4, 0)))
	got := ask[*kmsg.DescribeProducersResponse](c, newDescribeProducers("orders", 0, 1, 2)).Topics[0].Partitions
	if got[0].ErrorCode != 0 || len(got[0].ActiveProducers) != 0 {
		t.Errorf("nobody has written there: %+v", got[0])
	}
	if code := kafka.ErrorCode(got[2].ErrorCode); code != kafka.UnknownTopicOrPartition {
		t.Errorf("a partition that does not exist: %v", code)
	}
	want := []kmsg.DescribeProducersResponseTopicPartitionActiveProducer{
		{ProducerID: 4, LastSequence: 0, LastTimestamp: b.wall.Now().UnixMilli(), CoordinatorEpoch: -1, CurrentTxnStartOffset: -1},
		{ProducerID: 9, LastSequence: 6, LastTimestamp: b.wall.Now().UnixMilli(), CoordinatorEpoch: -1, CurrentTxnStartOffset: -1},
	}
	if have := got[1].ActiveProducers; fmt.Sprint(have) != fmt.Sprint(want) {
		t.Errorf("have %+v\nwant %+v", have, want)
	}
}

func TestDescribeQuorum_TermsAndIndexes(t *testing.T) {
	b := newTestBroker(t, testOptions{})
	c := b.dial()
	c.create("orders", 1)
	resp := ask[*kmsg.DescribeQuorumResponse](c, newDescribeQuorum(metadataTopic, 0))
	p := resp.Topics[0].Partitions[0]
	leads := b.quorum.Leadership()
	if p.ErrorCode != 0 || p.LeaderID != 1 || p.LeaderEpoch != int32(leads.Term) || p.LeaderEpoch <= 0 {
		t.Errorf("%+v, the quorum says %+v", p, leads)
	}
	end := int64(b.quorum.LogEnd())
	if p.HighWatermark != end || len(p.CurrentVoters) != 1 || p.CurrentVoters[0].LogEndOffset != end || p.CurrentVoters[0].ReplicaID != 1 || len(p.Observers) != 0 {
		t.Errorf("%+v, the log ends at %d", p, end)
	}
	if v := p.CurrentVoters[0]; v.ReplicaDirectoryID != b.quorum.Image().Voters()[0].Directory || v.LastCaughtUpTimestamp != b.wall.Now().UnixMilli() {
		t.Errorf("%+v", v)
	}
	if len(resp.Nodes) != 1 || resp.Nodes[0].NodeID != 1 {
		t.Errorf("nodes %+v", resp.Nodes)
	}
	for _, other := range []*kmsg.DescribeQuorumRequest{newDescribeQuorum(metadataTopic, 1), newDescribeQuorum("orders", 0)} {
		resp := ask[*kmsg.DescribeQuorumResponse](c, other)
		if p := resp.Topics[0].Partitions[0]; kafka.ErrorCode(p.ErrorCode) != kafka.UnknownTopicOrPartition || p.LeaderID != -1 || len(resp.Nodes) != 0 {
			t.Errorf("%s-%d: %+v", other.Topics[0].Topic, other.Topics[0].Partitions[0].Partition, p)
		}
	}
}

func TestUpdateFeatures_NothingToUpgrade(t *testing.T) {
	b := newTestBroker(t, testOptions{})
	c := b.dial()
	for _, one := range []struct {
		name   string
		change func(*kmsg.UpdateFeaturesRequest)
		want   kafka.ErrorCode
	}{
		{"level 0 is what it is", func(*kmsg.UpdateFeaturesRequest) {}, kafka.None},
		{"group.version is 1", func(r *kmsg.UpdateFeaturesRequest) {
			r.FeatureUpdates[0].Feature, r.FeatureUpdates[0].MaxVersionLevel = groupVersion, 1
		}, kafka.None},
		{"and stays so", func(r *kmsg.UpdateFeaturesRequest) { r.FeatureUpdates[0].Feature = groupVersion }, kafka.InvalidUpdateVersion},
		{"an upgrade", func(r *kmsg.UpdateFeaturesRequest) { r.FeatureUpdates[0].MaxVersionLevel = 2 }, kafka.InvalidUpdateVersion},
		{"an upgrade, only validated", func(r *kmsg.UpdateFeaturesRequest) { r.FeatureUpdates[0].MaxVersionLevel, r.ValidateOnly = 2, true }, kafka.InvalidUpdateVersion},
		{"below 0", func(r *kmsg.UpdateFeaturesRequest) { r.FeatureUpdates[0].MaxVersionLevel = -1 }, kafka.InvalidUpdateVersion},
		{"none", func(r *kmsg.UpdateFeaturesRequest) { r.FeatureUpdates = nil }, kafka.InvalidRequest},
		{"twice", func(r *kmsg.UpdateFeaturesRequest) { r.FeatureUpdates = append(r.FeatureUpdates, r.FeatureUpdates[0]) }, kafka.InvalidRequest},
	} {
		for version := range int16(3) {
			req := newUpdateFeatures("transaction.version", 0)
			req.Version = version
			one.change(req)
			resp := ask[*kmsg.UpdateFeaturesResponse](c, req)
			code := kafka.ErrorCode(resp.ErrorCode)
			for _, r := range resp.Results {
				code = max(code, kafka.ErrorCode(r.ErrorCode))
			}
			if code != one.want || (version < 2 && len(resp.Results) != len(req.FeatureUpdates)) || (version == 2 && code != 0 && str(resp.ErrorMessage) == "") {
				t.Errorf("%s in version %d: %+v, want %v", one.name, version, resp, one.want)
			}
		}
	}
	req := newUpdateFeatures("transaction.version", 0)
	req.FeatureUpdates[0].UpgradeType = 9
	if resp := ask[*kmsg.UpdateFeaturesResponse](c, req); kafka.ErrorCode(resp.ErrorCode) != kafka.InvalidUpdateVersion {
		t.Errorf("an unknown upgrade type: %+v", resp)
	}
}

func TestReassignments_OnOneNode(t *testing.T) {
	b := newTestBroker(t, testOptions{})
	c := b.dial()
	c.create("orders", 1)
	before := b.quorum.Image().Topic("orders").Partitions[0]
	cancel := newReassign("orders", 0)
	cancel.Topics[0].Partitions[0].Replicas = nil
	empty := newReassign("orders", 0)
	empty.Topics[0].Partitions[0].Replicas = []int32{}
	fixed := newReassign("orders", 0, 1, 1)
	fixed.AllowReplicationFactorChange = false
	for _, one := range []struct {
		name string
		req  *kmsg.AlterPartitionAssignmentsRequest
		want kafka.ErrorCode
	}{
		{"the same replicas", newReassign("orders", 0, 1), kafka.None},
		{"an unknown broker", newReassign("orders", 0, 7), kafka.InvalidReplicaAssignment},
		{"one twice", fixed, kafka.InvalidReplicaAssignment},
		{"none", empty, kafka.InvalidReplicaAssignment},
		{"an unknown partition", newReassign("orders", 3, 1), kafka.UnknownTopicOrPartition},
		{"cancel", cancel, kafka.NoReassignmentInProgress},
	} {
		resp := ask[*kmsg.AlterPartitionAssignmentsResponse](c, one.req)
		p := resp.Topics[0].Partitions[0]
		if resp.ErrorCode != 0 || kafka.ErrorCode(p.ErrorCode) != one.want || (p.ErrorCode != 0) != (str(p.ErrorMessage) != "") {
			t.Errorf("%s: %+v, want %v", one.name, p, one.want)
		}
		if resp.AllowReplicationFactorChange != one.req.AllowReplicationFactorChange {
			t.Errorf("%s: the answer says another thing about the replication factor", one.name)
		}
	}
	if after := b.quorum.Image().Topic("orders").Partitions[0]; fmt.Sprint(after) != fmt.Sprint(before) {
		t.Errorf("was %+v, is %+v", before, after)
	}
	for _, topics := range [][]kmsg.ListPartitionReassignmentsRequestTopic{nil, {{Topic: "orders", Partitions: []int32{0, 7}}, {Topic: "nope", Partitions: []int32{0}}}} {
		list := kmsg.NewPtrListPartitionReassignmentsRequest()
		list.Topics = topics
		if resp := ask[*kmsg.ListPartitionReassignmentsResponse](c, list); resp.ErrorCode != 0 || len(resp.Topics) != 0 {
			t.Errorf("%+v", resp)
		}
	}
}
