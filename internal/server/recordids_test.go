package server

import (
	"encoding/binary"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/record"
	"strandline.dev/internal/wire"
)

// identified makes a batch with one record for each record id, in that header.
func (b *testBroker) identified(codec record.Codec, header string, ids ...string) record.Batch {
	bu := record.NewBuilder(codec)
	for _, id := range ids {
		bu.Add(b.wall.Now().UnixMilli(), nil, []byte(id), []record.Header{{Key: header, Value: []byte(id)}})
	}
	return bu.Build()
}

// TestR22_R23_RecordIDsOnTheKafkaPort: the topic's window and header hold, both are shown with the configs, a repeat has the original's offset, and
// repeats that no offset answers are a success without one: by their own code for idempotent producers, else without a code. The number of ids is told beside the size of the partition.
func TestR22_R23_RecordIDsOnTheKafkaPort(t *testing.T) {
	b := newTestBroker(t, testOptions{})
	c := b.dial()
	c.create("off", 1)
	c.create("on", 1, "strandline.dedup.window.ms", "120000")
	c.create("events", 1, "strandline.dedup.window.ms", "120000", "strandline.dedup.header", "ce_id")
	for _, s := range []struct {
		topic, header string
		codec         record.Codec
		ids           []string
		base          int64
		code          kafka.ErrorCode
	}{
		{"off", "record-id", record.None, []string{"a", "b"}, 0, 0},
		{"off", "record-id", record.None, []string{"a", "b"}, 2, 0},
		{"on", "record-id", record.Zstd, []string{"a", "b", "c"}, 0, 0},
		{"on", "record-id", record.Gzip, []string{"b", "c"}, 1, 0},
		{"on", "record-id", record.LZ4, []string{"c", "a"}, -1, 0},
		{"on", "record-id", record.Snappy, []string{"a", "d"}, 3, 0},
		{"on", "ce_id", record.None, []string{"a"}, 5, 0},
		{"events", "ce_id", record.None, []string{"a"}, 0, 0},
		{"events", "ce_id", record.None, []string{"a"}, 0, 0},
		{"events", "record-id", record.None, []string{"a"}, 1, 0},
	} {
		got := c.publish(newProduce(s.topic, 0, b.identified(s.codec, s.header, s.ids...)))
		if got.BaseOffset != s.base || kafka.ErrorCode(got.ErrorCode) != s.code {
			t.Errorf("%v to %s: offset %d, %v %s", s.ids, s.topic, got.BaseOffset, kafka.ErrorCode(got.ErrorCode), str(got.ErrorMessage))
		}
	}
	scattered := b.identified(record.LZ4, "record-id", "c", "a")
	scattered.SetProducer(7, 0, 0, false)
	for range 2 {
		got := c.publish(newProduce("on", 0, scattered))
		if kafka.ErrorCode(got.ErrorCode) != kafka.DuplicateSequenceNumber || got.BaseOffset != -1 {
			t.Errorf("scattered repeats of an idempotent producer: offset %d, %v", got.BaseOffset, kafka.ErrorCode(got.ErrorCode))
		}
	}
	for name, want := range map[string]string{"strandline.dedup.window.ms": "120000", "strandline.dedup.header": "ce_id"} {
		if got := c.config("events", name); str(got.Value) != want {
			t.Errorf("%s is shown as %s", name, str(got.Value))
		}
	}
	dirs := kmsg.NewPtrDescribeLogDirsRequest()
	dirs.Version = 4
	remembered := map[string]uint64{}
	for _, topic := range ask[*kmsg.DescribeLogDirsResponse](c, dirs).Dirs[0].Topics {
		topic.Partitions[0].UnknownTags.Each(func(tag uint32, value []byte) {
			if tag == wire.TagRecordIDs {
				remembered[topic.Topic] = binary.BigEndian.Uint64(value)
			}
		})
	}
	if len(remembered) != 2 || remembered["on"] != 4 || remembered["events"] != 1 {
		t.Errorf("remembered: %v", remembered)
	}
}

// TestK35_RepeatsWithoutAnAnswer: a client that wants no answers is not cut off because its records are stored already.
func TestK35_RepeatsWithoutAnAnswer(t *testing.T) {
	b := newTestBroker(t, testOptions{})
	c := b.dial()
	c.create("on", 1, "strandline.dedup.window.ms", "120000")
	c.publish(newProduce("on", 0, b.identified(record.None, "record-id", "a", "b")))
	silent := newProduce("on", 0, b.identified(record.None, "record-id", "b", "a"))
	silent.Acks = 0
	c.send(silent)
	if got := c.publish(newProduce("on", 0, b.identified(record.None, "record-id", "b", "c"))); got.ErrorCode != 0 || got.BaseOffset != 2 {
		t.Errorf("behind it: %+v", got)
	}
}
