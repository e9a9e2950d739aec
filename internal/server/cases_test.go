package server

import (
	"errors"
	"net"
	"slices"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/record"
	"strandline.dev/internal/wire"
)

// listOffset asks for one timestamp.
func (c *testClient) listOffset(topic string, ts int64, version int16) kmsg.ListOffsetsResponseTopicPartition {
	c.t.Helper()
	req := request(wire.KeyListOffsets, topic, kafka.TopicID{}, nil).(*kmsg.ListOffsetsRequest)
	req.Version = version
	req.Topics[0].Partitions[0].Timestamp = ts
	return ask[*kmsg.ListOffsetsResponse](c, req).Topics[0].Partitions[0]
}

// O3: record-level precision, "none" is -1 with timestamp -1, and a found answer carries the record's own timestamp.
func TestO3_ListOffsetsByTime(t *testing.T) {
	b := newTestBroker(t, testOptions{})
	c := b.dial()
	c.create("o3", 1, "message.timestamp.before.max.ms", "9223372036854775807")
	bu := record.NewBuilder(record.None)
	for _, ts := range []int64{2, 4, 6, 8} {
		bu.Add(ts, nil, []byte("v"), nil)
	}
	if got := c.publish(newProduce("o3", 0, bu.Build())); got.ErrorCode != 0 {
		t.Fatalf("publish: %v %s", kafka.ErrorCode(got.ErrorCode), str(got.ErrorMessage))
	}
	for _, one := range []struct{ ask, offset, ts int64 }{
		{2, 0, 2}, {3, 1, 4}, {5, 2, 6}, {7, 3, 8}, {9, -1, -1}, {-2, 0, -1}, {-1, 4, -1}, {-3, 3, 8}, {-4, 0, -1}, {-5, -1, -1}, {-6, -1, -1},
	} {
		got := c.listOffset("o3", one.ask, 11)
		if got.ErrorCode != 0 || got.Offset != one.offset || got.Timestamp != one.ts {
			t.Errorf("timestamp %d: offset %d, timestamp %d, error %d; want %d and %d", one.ask, got.Offset, got.Timestamp, got.ErrorCode, one.offset, one.ts)
		}
	}
	// A special timestamp that the version does not know, and nonsense (K43).
	for ts, version := range map[int64]int16{-3: 6, -4: 7, -5: 8, -6: 10, -100: 11} {
		if got := c.listOffset("o3", ts, version); kafka.ErrorCode(got.ErrorCode) != kafka.UnsupportedVersion || got.Offset != -1 {
			t.Errorf("timestamp %d at v%d: %v", ts, version, kafka.ErrorCode(got.ErrorCode))
		}
	}
	twice := request(wire.KeyListOffsets, "o3", kafka.TopicID{}, nil).(*kmsg.ListOffsetsRequest)
	twice.Version = 5
	twice.Topics[0].Partitions = append(twice.Topics[0].Partitions, twice.Topics[0].Partitions[0])
	for _, p := range ask[*kmsg.ListOffsetsResponse](c, twice).Topics[0].Partitions {
		if kafka.ErrorCode(p.ErrorCode) != kafka.InvalidRequest {
			t.Errorf("partition named twice: %v", kafka.ErrorCode(p.ErrorCode))
		}
	}
}

// O5: a describe never creates a topic, even with auto-creation on; the creation then succeeds.
func TestO5_DescribeCreatesNothing(t *testing.T) {
	b := newTestBroker(t, testOptions{broker: map[string]string{"auto.create.topics.enable": "true"}})
	c := b.dial()
	m := newMetadata(12, "nope")
	m.AllowAutoTopicCreation = false
	if got := kafka.ErrorCode(ask[*kmsg.MetadataResponse](c, m).Topics[0].ErrorCode); got != kafka.UnknownTopicOrPartition {
		t.Errorf("describe: %v", got)
	}
	all := newMetadata(12)
	all.Topics, all.AllowAutoTopicCreation = nil, true
	if got := ask[*kmsg.MetadataResponse](c, all).Topics; len(got) != 0 {
		t.Errorf("the topic list has %d topics", len(got))
	}
	c.create("nope", 3)
	if got := ask[*kmsg.MetadataResponse](c, m).Topics[0]; len(got.Partitions) != 3 {
		t.Errorf("%d partitions", len(got.Partitions))
	}
}

func TestAutoCreate_TopicIsUsableWhenAnswered(t *testing.T) {
	b := newTestBroker(t, testOptions{broker: map[string]string{"auto.create.topics.enable": "true", "num.partitions": "2"}})
	c := b.dial()
	for v := int16(0); v <= 13; v++ {
		name := "auto" + itoa(v)
		m := newMetadata(v, name)
		m.AllowAutoTopicCreation = true
		got := ask[*kmsg.MetadataResponse](c, m).Topics[0]
		if got.ErrorCode != 0 || len(got.Partitions) != 2 || got.Partitions[0].Leader != 1 {
			t.Fatalf("v%d: %v, %d partitions", v, kafka.ErrorCode(got.ErrorCode), len(got.Partitions))
		}
		if p := c.publish(newProduce(name, 1, b.newBatch("x"))); p.ErrorCode != 0 {
			t.Errorf("v%d: publish at once: %v", v, kafka.ErrorCode(p.ErrorCode))
		}
	}
	if !strings.Contains(b.log.String(), "created implicitly") {
		t.Error("an implicit creation leaves no log line")
	}
}

// Off means off, whatever the client allows.
func TestAutoCreate_OffMeansOff(t *testing.T) {
	b := newTestBroker(t, testOptions{broker: map[string]string{"auto.create.topics.enable": "false"}})
	c := b.dial()
	m := newMetadata(12, "no")
	m.AllowAutoTopicCreation = true
	if got := kafka.ErrorCode(ask[*kmsg.MetadataResponse](c, m).Topics[0].ErrorCode); got != kafka.UnknownTopicOrPartition {
		t.Errorf("%v", got)
	}
}

// O10: timestamps in microseconds are refused where the after-limit says so, and a LogAppendTime topic replaces the client's stamp.
func TestO10_WrongClientTimestamps(t *testing.T) {
	b := newTestBroker(t, testOptions{})
	c := b.dial()
	c.create("o10", 1, "retention.ms", "60000")
	c.create("o10-stamped", 1, "retention.ms", "60000", "message.timestamp.type", "LogAppendTime")
	micros := b.wall.Now().UnixMilli() * 1000
	if got := c.publish(newProduce("o10", 0, newBatchAt(micros, "us"))); kafka.ErrorCode(got.ErrorCode) != kafka.InvalidTimestamp {
		t.Errorf("microseconds: %v", kafka.ErrorCode(got.ErrorCode))
	}
	got := c.publish(newProduce("o10-stamped", 0, newBatchAt(micros, "us")))
	if now := b.wall.Now().UnixMilli(); got.ErrorCode != 0 || got.LogAppendTime != now {
		t.Errorf("stamped: error %v, log append time %d, want %d", kafka.ErrorCode(got.ErrorCode), got.LogAppendTime, now)
	}
	f := ask[*kmsg.FetchResponse](c, newFetch("o10-stamped", 0, 0)).Topics[0].Partitions[0]
	batch := record.Batch(f.RecordBatches)
	if batch.VerifyCRC() != nil || batch.MaxTimestamp() != b.wall.Now().UnixMilli() {
		t.Errorf("stored: max timestamp %d", batch.MaxTimestamp())
	}
}

// O14: AlterConfigs replaces the whole set; IncrementalAlterConfigs leaves the rest alone.
func TestO14_AlterAndIncrementalAlter(t *testing.T) {
	b := newTestBroker(t, testOptions{})
	c := b.dial()
	c.create("o14", 1, "retention.ms", "3600000", "segment.bytes", "16777216")
	set := c.config("o14", "segment.bytes")
	if set.Source != kmsg.ConfigSourceDynamicTopicConfig || str(set.Value) != "16777216" {
		t.Fatalf("segment.bytes as created: %s from %v", str(set.Value), set.Source)
	}
	if code := firstError(ask[kmsg.Response](c, withVersion(newAlter(wire.KeyAlterConfigs, "o14", "retention.ms", "7200000"), 2))); code != 0 {
		t.Fatalf("alter: %v", code)
	}
	if got := c.config("o14", "segment.bytes"); got.Source == kmsg.ConfigSourceDynamicTopicConfig || str(got.Value) == "16777216" {
		t.Errorf("segment.bytes after AlterConfigs: %s from %v, want the default", str(got.Value), got.Source)
	}
	if code := firstError(ask[kmsg.Response](c, withVersion(newAlter(wire.KeyIncrementalAlterConfigs, "o14", "segment.bytes", "8388608"), 1))); code != 0 {
		t.Fatalf("incremental: %v", code)
	}
	if got := c.config("o14", "retention.ms"); str(got.Value) != "7200000" {
		t.Errorf("retention.ms after IncrementalAlterConfigs: %s, want 7200000", str(got.Value))
	}
	if got := c.config("o14", "segment.bytes"); str(got.Value) != "8388608" {
		t.Errorf("segment.bytes: %s", str(got.Value))
	}
	if code := firstError(ask[kmsg.Response](c, withVersion(newAlter(wire.KeyIncrementalAlterConfigs, "o14", "retention.ms", "soon"), 1))); code != kafka.InvalidConfig {
		t.Errorf("bad value: %v", code)
	}
	if code := firstError(ask[kmsg.Response](c, withVersion(newAlter(wire.KeyIncrementalAlterConfigs, "none", "retention.ms", "1"), 1))); code != kafka.UnknownTopicOrPartition {
		t.Errorf("unknown topic: %v", code)
	}
}

func withVersion[R kmsg.Request](r R, v int16) R { r.SetVersion(v); return r }

func (c *testClient) config(topic, name string) kmsg.DescribeConfigsResponseResourceConfig {
	c.t.Helper()
	req := request(wire.KeyDescribeConfigs, topic, kafka.TopicID{}, nil).(*kmsg.DescribeConfigsRequest)
	req.Version, req.Resources[0].ConfigNames = 4, []string{name}
	got := ask[*kmsg.DescribeConfigsResponse](c, req).Resources[0]
	if got.ErrorCode != 0 || len(got.Configs) != 1 {
		c.t.Fatalf("config %s: error %d, %d entries", name, got.ErrorCode, len(got.Configs))
	}
	return got.Configs[0]
}

// O17: a listener on all addresses answers each client with the address it dialled; a second listener with its own advertised name.
func TestO17_EachClientIsToldWhatItCanReach(t *testing.T) {
	second := listenLoopback(t, "127.0.0.1:0")
	b := newTestBroker(t, testOptions{
		listener: func() net.Listener { return listenLoopback(t, "0.0.0.0:0") },
		listen:   []Listener{{Name: "proxied", Net: second, Advertise: "broker.example:19092"}},
	})
	_, port, err := net.SplitHostPort(b.addr)
	must(t, err)
	told := func(addr string) string {
		c := dialTo(t, addr)
		m := ask[*kmsg.MetadataResponse](c, newMetadata(12))
		d := ask[*kmsg.DescribeClusterResponse](c, withVersion(kmsg.NewPtrDescribeClusterRequest(), 0))
		if len(m.Brokers) != 1 || len(d.Brokers) != 1 || d.Brokers[0].Host != m.Brokers[0].Host || d.Brokers[0].Port != m.Brokers[0].Port {
			t.Fatalf("Metadata and DescribeCluster disagree: %+v, %+v", m.Brokers, d.Brokers)
		}
		return net.JoinHostPort(m.Brokers[0].Host, itoa32(m.Brokers[0].Port))
	}
	for _, host := range []string{"127.0.0.1", "127.0.0.2"} {
		if got := told(net.JoinHostPort(host, port)); got != net.JoinHostPort(host, port) {
			t.Errorf("a client that dialled %s is told %s", host, got)
		}
	}
	if got := told(second.Addr().String()); got != "broker.example:19092" {
		t.Errorf("a client of the proxied listener is told %s", got)
	}
	c := dialTo(t, net.JoinHostPort("127.0.0.2", port))
	c.create("o17", 1)
	if got := c.publish(newProduce("o17", 0, b.newBatch("a"))); got.ErrorCode != 0 {
		t.Errorf("publish: %v", kafka.ErrorCode(got.ErrorCode))
	}
	if got := ask[*kmsg.FetchResponse](c, newFetch("o17", 0, 0)).Topics[0].Partitions[0]; len(values(t, got.RecordBatches)) != 1 {
		t.Error("fetch: not the record")
	}
}

// C062: when look-ups fail, answers carry an error and offsets of -1, never 0.
func TestC062_FailedLookupsAreNeverZero(t *testing.T) {
	b := newTestBroker(t, testOptions{})
	c := b.dial()
	c.create("c062", 1)
	c.publish(newProduce("c062", 0, b.newBatch("a")))
	err := errors.New("failpoint")
	b.failLookups(err)
	for ts := range timestampSince {
		if got := c.listOffset("c062", ts, 11); kafka.ErrorCode(got.ErrorCode) != kafka.UnknownServerError || got.Offset != -1 || got.Timestamp != -1 || got.LeaderEpoch != -1 {
			t.Errorf("list %d: %+v", ts, got)
		}
	}
	e := ask[*kmsg.OffsetForLeaderEpochResponse](c, withVersion(request(wire.KeyOffsetForLeaderEpoch, "c062", kafka.TopicID{}, nil), 4)).Topics[0].Partitions[0]
	if kafka.ErrorCode(e.ErrorCode) != kafka.UnknownServerError || e.EndOffset != -1 || e.LeaderEpoch != -1 {
		t.Errorf("epoch end: %+v", e)
	}
	f := ask[*kmsg.FetchResponse](c, newFetch("c062", 0, 0)).Topics[0].Partitions[0]
	if kafka.ErrorCode(f.ErrorCode) != kafka.UnknownServerError || f.HighWatermark != -1 || f.LastStableOffset != -1 || f.LogStartOffset != -1 {
		t.Errorf("fetch: %+v", f)
	}
	if !strings.Contains(b.log.String(), "failpoint") {
		t.Error("an unmapped error is not in the log")
	}
	b.failLookups(nil)
	p := c.publish(newProduce("c062", 5, b.newBatch("a")))
	if kafka.ErrorCode(p.ErrorCode) != kafka.UnknownTopicOrPartition || p.BaseOffset != -1 || p.LogStartOffset != -1 || p.LogAppendTime != -1 {
		t.Errorf("publish to a partition that is not there: %+v", p)
	}
	b.control.failWith(err)
	i := ask[*kmsg.InitProducerIDResponse](c, withVersion(kmsg.NewPtrInitProducerIDRequest(), 4))
	if i.ErrorCode == 0 || i.ProducerID != -1 || i.ProducerEpoch != -1 {
		t.Errorf("init producer id: %+v", i)
	}
}

// C077: the epoch in Metadata is the committed one, for every version that has it, and a missing topic has no partitions made up.
func TestC077_MetadataEpochsAreCommitted(t *testing.T) {
	b := newTestBroker(t, testOptions{})
	c := b.dial()
	c.create("c077", 2)
	img := b.quorum.Image()
	for v := int16(7); v <= 13; v++ {
		m := ask[*kmsg.MetadataResponse](c, newMetadata(v, "c077", "missing"))
		for i, p := range m.Topics[0].Partitions {
			if st := img.Topic("c077").Partitions[i]; p.LeaderEpoch != int32(st.LeaderEpoch) || p.Leader != int32(st.Leader) {
				t.Errorf("v%d partition %d: leader %d epoch %d, committed %d and %d", v, i, p.Leader, p.LeaderEpoch, st.Leader, st.LeaderEpoch)
			}
		}
		if got := m.Topics[1]; kafka.ErrorCode(got.ErrorCode) != kafka.UnknownTopicOrPartition || len(got.Partitions) != 0 {
			t.Errorf("v%d missing topic: %+v", v, got)
		}
	}
}

// C079: a topic deleted and created again under its name is another topic: by its old id nothing is read, written or found.
func TestC079_RecreatedTopicIsAnotherOne(t *testing.T) {
	b := newTestBroker(t, testOptions{dev: true})
	c := b.dial()
	old := c.create("c079", 1)
	c.publish(newProduce("c079", 0, b.newBatch("old")))
	del := withVersion(request(wire.KeyDeleteTopics, "", kafka.TopicID{}, nil).(*kmsg.DeleteTopicsRequest), 6)
	del.Topics[0].Topic = kmsg.StringPtr("c079")
	if got := ask[*kmsg.DeleteTopicsResponse](c, del).Topics[0]; got.ErrorCode != 0 || got.TopicID != old {
		t.Fatalf("delete: %v, id %x", kafka.ErrorCode(got.ErrorCode), got.TopicID)
	}
	fresh := c.create("c079", 1)
	if fresh == old {
		t.Fatal("the new topic has the old id")
	}
	p := newProduce("c079", 0, b.newBatch("late"))
	p.Version, p.Topics[0].TopicID = 13, old
	if got := c.publish(p); kafka.ErrorCode(got.ErrorCode) != kafka.UnknownTopicID {
		t.Errorf("publish by the old id: %v", kafka.ErrorCode(got.ErrorCode))
	}
	f := newFetch("c079", 0, 0)
	f.Version, f.Topics[0].TopicID = 13, old
	if got := ask[*kmsg.FetchResponse](c, f).Topics[0].Partitions[0]; kafka.ErrorCode(got.ErrorCode) != kafka.UnknownTopicID {
		t.Errorf("fetch by the old id: %v", kafka.ErrorCode(got.ErrorCode))
	}
	m := newMetadata(12)
	mt := kmsg.NewMetadataRequestTopic()
	mt.TopicID = old
	m.Topics = append(m.Topics, mt)
	if got := ask[*kmsg.MetadataResponse](c, m).Topics[0]; kafka.ErrorCode(got.ErrorCode) != kafka.UnknownTopicID || got.Topic != nil {
		t.Errorf("metadata by the old id: %v", kafka.ErrorCode(got.ErrorCode))
	}
	c.publish(newProduce("c079", 0, b.newBatch("new")))
	f.Topics[0].TopicID = fresh
	if got := values(t, ask[*kmsg.FetchResponse](c, f).Topics[0].Partitions[0].RecordBatches); !slices.Equal(got, []string{"new"}) {
		t.Errorf("fetch from 0 of the new topic: %v", got)
	}
}

// acks=0: nothing is answered on success; on an error the connection is closed (K35).
func TestK35_AcksNone(t *testing.T) {
	b := newTestBroker(t, testOptions{})
	c := b.dial()
	c.create("k35", 1)
	req := newProduce("k35", 0, b.newBatch("a"))
	req.Acks = 0
	c.send(req, req)
	m := newMetadata(12, "k35")
	id := c.send(m)
	c.read(m, id)
	if end := b.status("k35", 0).End; end != 2 {
		t.Errorf("the log ends at %d, want 2", end)
	}
	bad := newProduce("missing", 0, b.newBatch("a"))
	bad.Acks = 0
	c.send(m, bad)
	c.read(m, id+1)
	c.closed()
	eventually(t, "the log says why", func() bool { return strings.Contains(b.log.String(), "reason=acks_0_error") })
}

func TestAcksMinimum_WeakerPublishesAreRefused(t *testing.T) {
	b := newTestBroker(t, testOptions{})
	c := b.dial()
	c.create("strong", 1, "strandline.acks.minimum", "all")
	req := newProduce("strong", 0, b.newBatch("a"))
	req.Acks = 1
	if got := c.publish(req); kafka.ErrorCode(got.ErrorCode) != kafka.InvalidRequiredAcks || !strings.Contains(str(got.ErrorMessage), "strandline.acks.minimum") {
		t.Errorf("acks=1: %v %q", kafka.ErrorCode(got.ErrorCode), str(got.ErrorMessage))
	}
	req.Acks = -1
	if got := c.publish(req); got.ErrorCode != 0 {
		t.Errorf("acks=all: %v", kafka.ErrorCode(got.ErrorCode))
	}
}

// Administrative requests that the controller does not answer in time end with REQUEST_TIMED_OUT, and one that has lost its outcome is
// told as retriable.
func TestAdmin_TimesOut(t *testing.T) {
	b := newTestBroker(t, testOptions{})
	c := b.dial()
	open := b.control.shut()
	req := newCreate("slow", 1)
	req.TimeoutMillis = 30
	if got := kafka.ErrorCode(ask[*kmsg.CreateTopicsResponse](c, req).Topics[0].ErrorCode); got != kafka.RequestTimedOut {
		t.Errorf("%v, want REQUEST_TIMED_OUT", got)
	}
	open()
	c.create("fast", 1)
}

// A parked administrative request of a peer that is gone ends with the peer.
func TestAdmin_GonePeer(t *testing.T) {
	b := newTestBroker(t, testOptions{})
	c := b.dial()
	open := b.control.shut()
	defer open()
	c.send(newCreate("gone", 1))
	eventually(t, "the creation waits", func() bool { return b.control.waiting.Load() == 1 })
	c.conn.Close()
	eventually(t, "the connection and its work are gone", func() bool { return b.server.open.Load()+b.control.waiting.Load() == 0 })
}

func TestDeleteTopics_EveryWayToNameOne(t *testing.T) {
	b := newTestBroker(t, testOptions{})
	c := b.dial()
	id := c.create("del", 1)
	byID := func(name *string, id kafka.TopicID) kafka.ErrorCode {
		req := withVersion(kmsg.NewPtrDeleteTopicsRequest(), 6)
		rt := kmsg.NewDeleteTopicsRequestTopic()
		rt.Topic, rt.TopicID = name, id
		req.Topics = append(req.Topics, rt)
		return kafka.ErrorCode(ask[*kmsg.DeleteTopicsResponse](c, req).Topics[0].ErrorCode)
	}
	name := "del"
	for _, one := range []struct {
		name *string
		id   kafka.TopicID
		want kafka.ErrorCode
	}{
		{&name, id, kafka.InvalidRequest}, {nil, kafka.TopicID{}, kafka.InvalidRequest}, {nil, kafka.TopicID{5}, kafka.UnknownTopicID},
		{nil, id, kafka.None}, {&name, kafka.TopicID{}, kafka.UnknownTopicOrPartition},
	} {
		if got := byID(one.name, one.id); got != one.want {
			t.Errorf("name %q id %x: %v, want %v", str(one.name), one.id[0], got, one.want)
		}
	}
}

// Partitions 3 to 2: INVALID_PARTITIONS that names both numbers, and validate-only changes nothing.
func TestCreatePartitions_Shrinking(t *testing.T) {
	b := newTestBroker(t, testOptions{})
	c := b.dial()
	c.create("parts", 3)
	grow := func(count int32, validate bool) kmsg.CreatePartitionsResponseTopic {
		req := withVersion(request(wire.KeyCreatePartitions, "parts", kafka.TopicID{}, nil).(*kmsg.CreatePartitionsRequest), 3)
		req.Topics[0].Count, req.ValidateOnly = count, validate
		return ask[*kmsg.CreatePartitionsResponse](c, req).Topics[0]
	}
	got := grow(2, false)
	if m := str(got.ErrorMessage); kafka.ErrorCode(got.ErrorCode) != kafka.InvalidPartitions || !strings.Contains(m, "2") || !strings.Contains(m, "3") ||
		!strings.Contains(m, "create another topic") {
		t.Errorf("%v %q", kafka.ErrorCode(got.ErrorCode), m)
	}
	if got := grow(5, true); got.ErrorCode != 0 || len(b.quorum.Image().Topic("parts").Partitions) != 3 {
		t.Errorf("validate only: %v, %d partitions", kafka.ErrorCode(got.ErrorCode), len(b.quorum.Image().Topic("parts").Partitions))
	}
	if got := grow(5, false); got.ErrorCode != 0 {
		t.Errorf("grow: %v", kafka.ErrorCode(got.ErrorCode))
	}
	if p := c.publish(newProduce("parts", 4, b.newBatch("at once"))); p.ErrorCode != 0 {
		t.Errorf("publish to the new partition: %v", kafka.ErrorCode(p.ErrorCode))
	}
}

func TestInitProducerID_IdsAreNeverRepeated(t *testing.T) {
	b := newTestBroker(t, testOptions{})
	seenIDs := map[int64]bool{}
	for range 3 {
		c := b.dial()
		for v := int16(0); v <= 5; v++ {
			req := withVersion(kmsg.NewPtrInitProducerIDRequest(), v)
			got := ask[*kmsg.InitProducerIDResponse](c, req)
			if got.ErrorCode != 0 || got.ProducerEpoch != 0 || seenIDs[got.ProducerID] {
				t.Fatalf("v%d: %+v", v, got)
			}
			seenIDs[got.ProducerID] = true
		}
	}
	c := b.dial()
	for _, one := range []struct {
		name   string
		change func(*kmsg.InitProducerIDRequest)
		want   kafka.ErrorCode
	}{
		{"transactional", func(r *kmsg.InitProducerIDRequest) { r.TransactionalID = kmsg.StringPtr("tx") }, kafka.UnsupportedVersion},
		{"empty transactional id", func(r *kmsg.InitProducerIDRequest) { r.TransactionalID = kmsg.StringPtr("") }, kafka.InvalidRequest},
		{"id without epoch", func(r *kmsg.InitProducerIDRequest) { r.ProducerID = 7 }, kafka.InvalidRequest},
		{"epoch without id", func(r *kmsg.InitProducerIDRequest) { r.ProducerEpoch = 7 }, kafka.InvalidRequest},
	} {
		req := withVersion(kmsg.NewPtrInitProducerIDRequest(), 4)
		one.change(req)
		got := ask[*kmsg.InitProducerIDResponse](c, req)
		if kafka.ErrorCode(got.ErrorCode) != one.want || got.ProducerID != -1 || kafka.ErrorCode(got.ErrorCode).Retriable() {
			t.Errorf("%s: %+v", one.name, got)
		}
	}
}

func TestDescribeTopicPartitions_Pages(t *testing.T) {
	b := newTestBroker(t, testOptions{})
	c := b.dial()
	c.create("page-a", 3)
	c.create("page-b", 4)
	var got []string
	req := kmsg.NewPtrDescribeTopicPartitionsRequest()
	req.ResponsePartitionLimit = 2
	for range 10 {
		resp := ask[*kmsg.DescribeTopicPartitionsResponse](c, req)
		n := 0
		for _, top := range resp.Topics {
			for _, p := range top.Partitions {
				got = append(got, *top.Topic+itoa32(p.Partition))
				n++
			}
		}
		if n > 2 {
			t.Fatalf("a page of %d partitions", n)
		}
		if resp.NextCursor == nil {
			break
		}
		cur := kmsg.NewDescribeTopicPartitionsRequestCursor()
		cur.Topic, cur.Partition = resp.NextCursor.Topic, resp.NextCursor.Partition
		req.Cursor = &cur
	}
	want := []string{"page-a0", "page-a1", "page-a2", "page-b0", "page-b1", "page-b2", "page-b3"}
	if !slices.Equal(got, want) {
		t.Errorf("pages give %v, want %v", got, want)
	}
}

// Metadata's three ways of naming topics: null is all, an empty list is none (v0: all).
func TestMetadata_NullAndEmpty(t *testing.T) {
	b := newTestBroker(t, testOptions{})
	c := b.dial()
	c.create("m1", 1)
	c.create("m2", 1)
	for v := int16(0); v <= 13; v++ {
		empty := len(ask[*kmsg.MetadataResponse](c, newMetadata(v)).Topics)
		if want := 0; v == 0 {
			want = 2
			if empty != want {
				t.Errorf("v0 empty: %d topics", empty)
			}
		} else if empty != want {
			t.Errorf("v%d empty: %d topics", v, empty)
		}
		if v == 0 {
			continue
		}
		all := newMetadata(v)
		all.Topics = nil
		if n := len(ask[*kmsg.MetadataResponse](c, all).Topics); n != 2 {
			t.Errorf("v%d null: %d topics", v, n)
		}
	}
	byID := newMetadata(10)
	mt := kmsg.NewMetadataRequestTopic()
	mt.Topic, mt.TopicID = kmsg.StringPtr(""), kafka.TopicID{1}
	byID.Topics = append(byID.Topics, mt)
	if got := ask[*kmsg.MetadataResponse](c, byID).Topics[0]; kafka.ErrorCode(got.ErrorCode) != kafka.InvalidRequest {
		t.Errorf("by id at v10: %v", kafka.ErrorCode(got.ErrorCode))
	}
	if got := ask[*kmsg.MetadataResponse](c, newMetadata(12, "m1")); got.Topics[0].AuthorizedOperations != -2147483648 {
		t.Errorf("authorized operations that were not asked for: %d", got.Topics[0].AuthorizedOperations)
	}
}

// A fetch that waits is answered as soon as there is enough, across partitions, and what exists when the time is over.
func TestFetch_WaitsForMinBytesAcrossPartitions(t *testing.T) {
	b := newTestBroker(t, testOptions{})
	c, p := b.dial(), b.dial()
	c.create("min", 2)
	batch := b.newBatch("x")
	f := newFetch("min", 0, 0)
	f.Topics[0].Partitions = append(f.Topics[0].Partitions, newFetchPartition(1, 0))
	f.MinBytes, f.MaxWaitMillis = int32(2*len(batch)), 30_000
	id := c.send(f)
	p.publish(newProduce("min", 0, b.newBatch("x")))
	p.publish(newProduce("min", 1, b.newBatch("x")))
	resp := c.read(f, id).(*kmsg.FetchResponse)
	for _, part := range resp.Topics[0].Partitions {
		if len(values(t, part.RecordBatches)) != 1 {
			t.Errorf("partition %d: no record", part.Partition)
		}
	}
	f = newFetch("min", 0, 0)
	f.MinBytes, f.MaxWaitMillis = 1<<19, 40
	if got := ask[*kmsg.FetchResponse](c, f).Topics[0].Partitions[0]; len(values(t, got.RecordBatches)) != 1 {
		t.Error("after max_wait what exists is answered")
	}
}

// The first batch is returned even if it is larger than every limit, and only the first (KIP-74).
func TestFetch_OneOversizedBatch(t *testing.T) {
	b := newTestBroker(t, testOptions{})
	c := b.dial()
	c.create("big", 2)
	for p := range int32(2) {
		c.publish(newProduce("big", p, b.newBatch(strings.Repeat("b", 5000))))
	}
	f := newFetch("big", 0, 0)
	f.Topics[0].Partitions = append(f.Topics[0].Partitions, newFetchPartition(1, 0))
	f.MaxBytes = 100
	for i := range f.Topics[0].Partitions {
		f.Topics[0].Partitions[i].PartitionMaxBytes = 100
	}
	got := ask[*kmsg.FetchResponse](c, f).Topics[0].Partitions
	if len(values(t, got[0].RecordBatches)) != 1 || got[1].RecordBatches == nil || len(got[1].RecordBatches) != 0 {
		t.Errorf("records: %d and %d bytes", len(got[0].RecordBatches), len(got[1].RecordBatches))
	}
}

// Aborted transactions: null for read_uncommitted, an empty list for read_committed. Records: empty, never null.
func TestFetch_NullAndEmpty(t *testing.T) {
	b := newTestBroker(t, testOptions{})
	c := b.dial()
	c.create("nulls", 1)
	for level, wantNull := range map[int8]bool{0: true, 1: false} {
		f := newFetch("nulls", 0, 0)
		f.IsolationLevel = level
		p := ask[*kmsg.FetchResponse](c, f).Topics[0].Partitions[0]
		if (p.AbortedTransactions == nil) != wantNull || p.RecordBatches == nil {
			t.Errorf("isolation %d: aborted null %v, records null %v", level, p.AbortedTransactions == nil, p.RecordBatches == nil)
		}
	}
}

// Epochs of the request against ours, and divergence (KIP-320, KIP-595).
func TestFetch_Epochs(t *testing.T) {
	b := newTestBroker(t, testOptions{})
	c := b.dial()
	c.create("epochs", 1)
	c.publish(newProduce("epochs", 0, b.newBatch("a", "b")))
	now := int32(b.status("epochs", 0).Epoch)
	for _, one := range []struct {
		current int32
		want    kafka.ErrorCode
	}{{now, kafka.None}, {-1, kafka.None}, {now - 1, kafka.FencedLeaderEpoch}, {now + 1, kafka.UnknownLeaderEpoch}} {
		if one.current < -1 {
			continue
		}
		f := newFetch("epochs", 0, 0)
		f.Topics[0].Partitions[0].CurrentLeaderEpoch = one.current
		if got := kafka.ErrorCode(ask[*kmsg.FetchResponse](c, f).Topics[0].Partitions[0].ErrorCode); got != one.want && now > 0 {
			t.Errorf("current epoch %d (ours %d): %v, want %v", one.current, now, got, one.want)
		}
	}
	f := newFetch("epochs", 0, 5)
	f.Topics[0].Partitions[0].LastFetchedEpoch = now
	p := ask[*kmsg.FetchResponse](c, f).Topics[0].Partitions[0]
	if p.ErrorCode != 0 || p.DivergingEpoch.Epoch != now || p.DivergingEpoch.EndOffset != 2 || len(p.RecordBatches) != 0 {
		t.Errorf("diverging: error %v, %+v", kafka.ErrorCode(p.ErrorCode), p.DivergingEpoch)
	}
	e := withVersion(request(wire.KeyOffsetForLeaderEpoch, "epochs", kafka.TopicID{}, nil).(*kmsg.OffsetForLeaderEpochRequest), 4)
	e.Topics[0].Partitions[0].LeaderEpoch = now
	if got := ask[*kmsg.OffsetForLeaderEpochResponse](c, e).Topics[0].Partitions[0]; got.LeaderEpoch != now || got.EndOffset != 2 {
		t.Errorf("epoch end: %+v", got)
	}
}

// zstd from a client that is too old for it is refused, and zstd data is not handed to one.
func TestZstd_OldClients(t *testing.T) {
	b := newTestBroker(t, testOptions{})
	c := b.dial()
	c.create("z", 1, "compression.type", "zstd")
	c.create("chosen", 1)
	bu := record.NewBuilder(record.Zstd)
	bu.Add(b.wall.Now().UnixMilli(), nil, []byte(strings.Repeat("q", 100)), nil)
	req := newProduce("z", 0, bu.Build())
	req.Version = 6
	if got := kafka.ErrorCode(c.publish(req).ErrorCode); got != kafka.UnsupportedCompressionType {
		t.Errorf("publish v6: %v", got)
	}
	req.Version = 7
	if got := c.publish(req); got.ErrorCode != 0 {
		t.Fatalf("publish v7: %v", kafka.ErrorCode(got.ErrorCode))
	}
	f := newFetch("z", 0, 0)
	f.Version = 9
	if got := kafka.ErrorCode(ask[*kmsg.FetchResponse](c, f).Topics[0].Partitions[0].ErrorCode); got != kafka.UnsupportedCompressionType {
		t.Errorf("fetch v9: %v", got)
	}
	f.Version = 10
	if got := ask[*kmsg.FetchResponse](c, f).Topics[0].Partitions[0]; got.ErrorCode != 0 || len(got.RecordBatches) == 0 {
		t.Errorf("fetch v10: %v", kafka.ErrorCode(got.ErrorCode))
	}
	// A batch that its producer chose to compress so is handed out at any version.
	req = newProduce("chosen", 0, bu.Build())
	req.Version = 7
	if got := c.publish(req); got.ErrorCode != 0 {
		t.Fatalf("publish to the other topic: %v", kafka.ErrorCode(got.ErrorCode))
	}
	f = newFetch("chosen", 0, 0)
	f.Version = 4
	if got := ask[*kmsg.FetchResponse](c, f).Topics[0].Partitions[0]; got.ErrorCode != 0 || len(got.RecordBatches) == 0 {
		t.Errorf("fetch v4 of a producer's zstd: %v", kafka.ErrorCode(got.ErrorCode))
	}
}

// compression.type other than producer: stored as the topic says.
func TestCompressionType_Recompresses(t *testing.T) {
	b := newTestBroker(t, testOptions{})
	c := b.dial()
	c.create("gz", 1, "compression.type", "gzip")
	c.publish(newProduce("gz", 0, b.newBatch(strings.Repeat("w", 1000))))
	got := ask[*kmsg.FetchResponse](c, newFetch("gz", 0, 0)).Topics[0].Partitions[0]
	if batch := record.Batch(got.RecordBatches); batch.Codec() != record.Gzip || len(values(t, got.RecordBatches)) != 1 {
		t.Errorf("stored with %v", batch.Codec())
	}
}

// TestR21_TheLargestRecord: with the limits that a topic has by itself a record of 1,048,576 bytes is stored, and one with a byte more is refused,
// appends nothing, and leaves the connection as it was.
func TestR21_TheLargestRecord(t *testing.T) {
	b := newTestBroker(t, testOptions{})
	c := b.dial()
	c.create("large", 1)
	const limit = 1 << 20
	for i, size := range []int{limit, limit + 1, limit} {
		got := c.publish(newProduce("large", 0, b.newBatch(strings.Repeat("r", size))))
		code, offset := kafka.ErrorCode(got.ErrorCode), got.BaseOffset
		switch {
		case size > limit && (code != kafka.MessageTooLarge || !strings.Contains(str(got.ErrorMessage), "1048577 bytes, limit 1048576")):
			t.Errorf("%d bytes: %v %q", size, code, str(got.ErrorMessage))
		case size <= limit && (code != kafka.None || offset != int64(i/2)):
			t.Errorf("%d bytes: %v at %d", size, code, offset)
		}
	}
}

// Size limits name the record, its size and the limit (pain 18).
func TestSizes_TheErrorNamesRecordSizeAndLimit(t *testing.T) {
	b := newTestBroker(t, testOptions{})
	c := b.dial()
	c.create("small", 1, "strandline.max.record.bytes", "100")
	got := c.publish(newProduce("small", 0, b.newBatch("ok", strings.Repeat("r", 500))))
	m := str(got.ErrorMessage)
	if kafka.ErrorCode(got.ErrorCode) != kafka.MessageTooLarge || !strings.Contains(m, "record 1") || !strings.Contains(m, "500") || !strings.Contains(m, "100") {
		t.Errorf("%v %q", kafka.ErrorCode(got.ErrorCode), m)
	}
	if len(got.ErrorRecords) != 1 || got.ErrorRecords[0].RelativeOffset != 1 {
		t.Errorf("error records: %+v", got.ErrorRecords)
	}
}

func itoa32(n int32) string { return kafka.NodeID(n).String() }
