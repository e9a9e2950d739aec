package server

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/wire"
)

// What is advertised has a handler, what has a handler is advertised, and each declares the operation that it needs.
func TestTable_RowsAndVersionsAgree(t *testing.T) {
	b := newTestBroker(t, testOptions{})
	resp := ask[*kmsg.ApiVersionsResponse](b.dial(), withVersion(request(wire.KeyApiVersions, "", kafka.TopicID{}, nil), 4))
	if len(resp.ApiKeys) != len(rows) {
		t.Errorf("%d keys are advertised, %d have a handler", len(resp.ApiKeys), len(rows))
	}
	for i := range rows {
		a, ok := wire.Lookup(rows[i].key)
		if !ok {
			t.Errorf("key %d has a handler and no versions", rows[i].key)
		}
		if rows[i].operation == "" {
			t.Errorf("%s declares no operation", a.Name)
		}
		if i > 0 && rows[i-1].key >= rows[i].key {
			t.Errorf("rows are not in key order at %s", a.Name)
		}
		if k := resp.ApiKeys[i]; k.ApiKey != a.Key || k.MinVersion != a.AdvertisedMin || k.MaxVersion != a.Max {
			t.Errorf("%s is advertised as %+v", a.Name, k)
		}
	}
}

// request returns an ordinary request of each API on an existing topic.
func request(key int16, topic string, id kafka.TopicID, batch []byte) kmsg.Request {
	switch key {
	case wire.KeyProduce:
		r := newProduce(topic, 0, batch)
		r.Topics[0].TopicID = id
		return r
	case wire.KeyFetch:
		r := newFetch(topic, 0, 0)
		r.Topics[0].TopicID = id
		return r
	case wire.KeyListOffsets:
		r := kmsg.NewPtrListOffsetsRequest()
		rt := kmsg.NewListOffsetsRequestTopic()
		rt.Topic = topic
		p := kmsg.NewListOffsetsRequestTopicPartition()
		p.Timestamp = -1
		rt.Partitions = append(rt.Partitions, p)
		r.Topics = append(r.Topics, rt)
		return r
	case wire.KeyMetadata:
		r := kmsg.NewPtrMetadataRequest()
		rt := kmsg.NewMetadataRequestTopic()
		rt.Topic = &topic
		r.Topics = append(r.Topics, rt)
		return r
	case wire.KeyApiVersions:
		r := kmsg.NewPtrApiVersionsRequest()
		r.ClientSoftwareName, r.ClientSoftwareVersion = "test-client", "1.0"
		return r
	}
	if r := groupRequest(key, topic, id); r != nil {
		return r
	}
	if r := operatorRequest(key, topic); r != nil {
		return r
	}
	return adminRequest(key, topic)
}

func adminRequest(key int16, topic string) kmsg.Request {
	switch key {
	case wire.KeyCreateTopics:
		return newCreate("made-by-version-test", 1)
	case wire.KeyDeleteTopics:
		r := kmsg.NewPtrDeleteTopicsRequest()
		r.TopicNames = []string{"none"}
		rt := kmsg.NewDeleteTopicsRequestTopic()
		rt.Topic = kmsg.StringPtr("none")
		r.Topics = append(r.Topics, rt)
		return r
	case wire.KeyOffsetForLeaderEpoch:
		r := kmsg.NewPtrOffsetForLeaderEpochRequest()
		rt := kmsg.NewOffsetForLeaderEpochRequestTopic()
		rt.Topic = topic
		p := kmsg.NewOffsetForLeaderEpochRequestTopicPartition()
		p.CurrentLeaderEpoch, p.LeaderEpoch = -1, 0
		rt.Partitions = append(rt.Partitions, p)
		r.Topics = append(r.Topics, rt)
		return r
	case wire.KeyDescribeConfigs:
		r := kmsg.NewPtrDescribeConfigsRequest()
		res := kmsg.NewDescribeConfigsRequestResource()
		res.ResourceType, res.ResourceName = kmsg.ConfigResourceTypeTopic, topic
		r.Resources = append(r.Resources, res)
		return r
	case wire.KeyAlterConfigs, wire.KeyIncrementalAlterConfigs:
		return newAlter(key, topic, "retention.ms", "1000")
	case wire.KeyCreatePartitions:
		r := kmsg.NewPtrCreatePartitionsRequest()
		rt := kmsg.NewCreatePartitionsRequestTopic()
		rt.Topic, rt.Count = topic, 0
		r.Topics = append(r.Topics, rt)
		return r
	case wire.KeyDescribeTopicPartitions:
		r := kmsg.NewPtrDescribeTopicPartitionsRequest()
		rt := kmsg.NewDescribeTopicPartitionsRequestTopic()
		rt.Topic = topic
		r.Topics = append(r.Topics, rt)
		return r
	}
	return kmsg.RequestForKey(key)
}

func newAlter(key int16, topic, name, value string) kmsg.Request {
	if key == wire.KeyAlterConfigs {
		r := kmsg.NewPtrAlterConfigsRequest()
		res := kmsg.NewAlterConfigsRequestResource()
		res.ResourceType, res.ResourceName = kmsg.ConfigResourceTypeTopic, topic
		c := kmsg.NewAlterConfigsRequestResourceConfig()
		c.Name, c.Value = name, &value
		res.Configs = append(res.Configs, c)
		r.Resources = append(r.Resources, res)
		return r
	}
	r := kmsg.NewPtrIncrementalAlterConfigsRequest()
	res := kmsg.NewIncrementalAlterConfigsRequestResource()
	res.ResourceType, res.ResourceName = kmsg.ConfigResourceTypeTopic, topic
	c := kmsg.NewIncrementalAlterConfigsRequestResourceConfig()
	c.Name, c.Value = name, &value
	res.Configs = append(res.Configs, c)
	r.Resources = append(r.Resources, res)
	return r
}

// Every version of every key is answered in its own layout: the client decodes it and re-encodes the same bytes.
func TestVersions_EveryKeyAndVersionIsAnswered(t *testing.T) {
	b := newTestBroker(t, testOptions{})
	c := b.dial()
	id := c.create("versions", 1)
	findCoordinator(c)
	for _, a := range served() {
		for v := a.Min; v <= a.Max; v++ {
			req := request(a.Key, "versions", id, b.newBatch("x"))
			req.SetVersion(v)
			resp := ask[kmsg.Response](c, req)
			if code := firstError(resp); code != 0 && !expected(a.Key, v, code) {
				t.Errorf("%s v%d: %v", a.Name, v, code)
			}
		}
	}
}

// expected lists the errors that the ordinary requests above get for a good reason.
func expected(key, version int16, code kafka.ErrorCode) bool {
	switch key {
	case wire.KeyDeleteTopics:
		return code == kafka.UnknownTopicOrPartition
	case wire.KeyCreateTopics:
		return code == kafka.TopicAlreadyExists && version > 0
	case wire.KeyCreatePartitions:
		return code == kafka.InvalidPartitions
	case wire.KeyUnregisterBroker:
		return code == kafka.BrokerIDNotRegistered
	case wire.KeyAddRaftVoter, wire.KeyRemoveRaftVoter:
		return code == kafka.UnsupportedVersion // one node has nobody to vote with
	}
	return expectedOfGroup(key, code) || key == wire.KeyElectLeaders && code == kafka.ElectionNotNeeded
}

// firstError finds the first error code of an answer.
func firstError(resp kmsg.Response) kafka.ErrorCode {
	var code int16
	switch r := resp.(type) {
	case *kmsg.ProduceResponse:
		code = r.Topics[0].Partitions[0].ErrorCode
	case *kmsg.FetchResponse:
		if code = r.ErrorCode; code == 0 {
			code = r.Topics[0].Partitions[0].ErrorCode
		}
	case *kmsg.ListOffsetsResponse:
		code = r.Topics[0].Partitions[0].ErrorCode
	case *kmsg.MetadataResponse:
		if code = r.Topics[0].ErrorCode; code == 0 {
			code = r.Topics[0].Partitions[0].ErrorCode
		}
	case *kmsg.ApiVersionsResponse:
		code = r.ErrorCode
	case *kmsg.CreateTopicsResponse:
		code = r.Topics[0].ErrorCode
	case *kmsg.DeleteTopicsResponse:
		code = r.Topics[0].ErrorCode
	case *kmsg.InitProducerIDResponse:
		code = r.ErrorCode
	case *kmsg.OffsetForLeaderEpochResponse:
		code = r.Topics[0].Partitions[0].ErrorCode
	case *kmsg.DescribeConfigsResponse:
		code = r.Resources[0].ErrorCode
	case *kmsg.AlterConfigsResponse:
		code = r.Resources[0].ErrorCode
	case *kmsg.CreatePartitionsResponse:
		code = r.Topics[0].ErrorCode
	case *kmsg.IncrementalAlterConfigsResponse:
		code = r.Resources[0].ErrorCode
	case *kmsg.DescribeClusterResponse:
		code = r.ErrorCode
	case *kmsg.DescribeTopicPartitionsResponse:
		code = r.Topics[0].ErrorCode
	default:
		if code = groupError(resp); code == 0 {
			code = operatorError(resp)
		}
	}
	return kafka.ErrorCode(code)
}

// Below our minimum: UNSUPPORTED_VERSION in that version's own layout, and the connection stays (K10).
func TestK10_BelowTheMinimumIsRefusedInItsLayout(t *testing.T) {
	b := newTestBroker(t, testOptions{})
	c := b.dial()
	c.create("old", 1)
	for _, a := range served() {
		for v := int16(0); v < a.Min; v++ {
			req := request(a.Key, "old", kafka.TopicID{}, b.newBatch("x"))
			req.SetVersion(v)
			if code := firstError(ask[kmsg.Response](c, req)); code != kafka.UnsupportedVersion {
				t.Errorf("%s v%d: %v, want UNSUPPORTED_VERSION", a.Name, v, code)
			}
		}
	}
	// A publish of an old version that wants no answer can only be told by closing.
	req := newProduce("old", 0, b.newBatch("x"))
	req.Version, req.Acks = 2, 0
	c.send(req)
	c.closed()
}

// O1, K9: ApiVersions of a version from the future gets version 0's layout with error 35 and our range for key 18; the connection
// stays open, and a second request at the offered version returns everything.
func TestO1_ApiVersionsFromTheFuture(t *testing.T) {
	b := newTestBroker(t, testOptions{})
	c := b.dial()
	c.send(rawRequest{key: wire.KeyApiVersions, version: 99, body: []byte("cannot be parsed")})
	v0 := kmsg.NewPtrApiVersionsRequest()
	resp := c.read(v0, 0).(*kmsg.ApiVersionsResponse)
	if resp.ErrorCode != int16(kafka.UnsupportedVersion) {
		t.Fatalf("error %d, want 35", resp.ErrorCode)
	}
	if len(resp.ApiKeys) != 1 || resp.ApiKeys[0].ApiKey != wire.KeyApiVersions {
		t.Fatalf("keys %+v, want ApiVersions alone", resp.ApiKeys)
	}
	again := request(wire.KeyApiVersions, "", kafka.TopicID{}, nil).(*kmsg.ApiVersionsRequest)
	again.Version = resp.ApiKeys[0].MaxVersion
	all := ask[*kmsg.ApiVersionsResponse](c, again)
	if all.ErrorCode != 0 || len(all.ApiKeys) != len(served()) {
		t.Fatalf("error %d with %d keys, want %d keys", all.ErrorCode, len(all.ApiKeys), len(served()))
	}
	for _, k := range all.ApiKeys {
		if k.ApiKey == wire.KeyProduce && k.MinVersion != 0 {
			t.Error("Produce must be advertised from 0 on (KAFKA-18659)")
		}
	}
}

func TestApiVersions_JudgesTheClient(t *testing.T) {
	b := newTestBroker(t, testOptions{})
	c := b.dial()
	cluster := b.quorum.Image().ClusterID()
	for _, one := range []struct {
		name    string
		change  func(*kmsg.ApiVersionsRequest)
		version int16
		want    kafka.ErrorCode
	}{
		{"good", func(*kmsg.ApiVersionsRequest) {}, 3, kafka.None},
		{"empty name", func(r *kmsg.ApiVersionsRequest) { r.ClientSoftwareName = "" }, 3, kafka.InvalidRequest},
		{"dash at the end", func(r *kmsg.ApiVersionsRequest) { r.ClientSoftwareVersion = "1.0-" }, 4, kafka.InvalidRequest},
		{"newline", func(r *kmsg.ApiVersionsRequest) { r.ClientSoftwareName = "a\nb" }, 3, kafka.InvalidRequest},
		{"our cluster", func(r *kmsg.ApiVersionsRequest) { r.ClusterID, r.NodeID = &cluster, 1 }, 5, kafka.None},
		{"other node", func(r *kmsg.ApiVersionsRequest) { r.ClusterID, r.NodeID = &cluster, 2 }, 5, kafka.RebootstrapRequired},
		{"other cluster", func(r *kmsg.ApiVersionsRequest) { r.ClusterID, r.NodeID = kmsg.StringPtr("x"), 1 }, 5, kafka.RebootstrapRequired},
		{"half", func(r *kmsg.ApiVersionsRequest) { r.ClusterID, r.NodeID = &cluster, -1 }, 5, kafka.InvalidRequest},
	} {
		req := request(wire.KeyApiVersions, "", kafka.TopicID{}, nil).(*kmsg.ApiVersionsRequest)
		req.Version = one.version
		one.change(req)
		if got := kafka.ErrorCode(ask[*kmsg.ApiVersionsResponse](c, req).ErrorCode); got != one.want {
			t.Errorf("%s: %v, want %v", one.name, got, one.want)
		}
	}
}
