package interop

import (
	"encoding/binary"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"
)

// batchHeader is the size of a record batch before its records; the fields read below are in it.
const batchHeader = 61

// storedCodecs fetches a topic's partition 0 raw and returns the codecs of its batches.
func storedCodecs(t *testing.T, brokers, topic string, opts ...kgo.Opt) map[int16]bool {
	t.Helper()
	c := franz(t, brokers, append(opts, kgo.MaxVersions(kversion.V2_4_0()))...) // that Fetch names topics, so no id has to be looked up
	list, err := kadm.NewClient(c).ListTopics(deadline(t), topic)
	if err != nil {
		t.Fatal(err)
	}
	leader := c.Broker(int(list[topic].Partitions[0].Leader)) // a Fetch goes where it is told
	seen := map[int16]bool{}
	for at := int64(0); ; {
		raw := fetchRaw(t, leader, topic, at)
		if len(raw) == 0 {
			return seen
		}
		for len(raw) >= batchHeader {
			seen[int16(binary.BigEndian.Uint16(raw[21:]))&7] = true
			at = int64(binary.BigEndian.Uint64(raw)) + int64(binary.BigEndian.Uint32(raw[23:])) + 1
			size := 12 + int(binary.BigEndian.Uint32(raw[8:]))
			if size > len(raw) {
				t.Fatalf("%s: a batch of %d bytes in %d", topic, size, len(raw))
			}
			raw = raw[size:]
		}
	}
}

func fetchRaw(t *testing.T, c *kgo.Broker, topic string, at int64) []byte {
	t.Helper()
	req := kmsg.NewPtrFetchRequest()
	req.MaxBytes, req.MinBytes, req.MaxWaitMillis = 16<<20, 0, 0
	tp := kmsg.NewFetchRequestTopic()
	tp.Topic = topic
	p := kmsg.NewFetchRequestTopicPartition()
	p.FetchOffset, p.PartitionMaxBytes, p.CurrentLeaderEpoch = at, 16<<20, -1
	tp.Partitions = append(tp.Partitions, p)
	req.Topics = append(req.Topics, tp)
	answer, err := c.RetriableRequest(deadline(t), req)
	if err != nil {
		t.Fatal(err)
	}
	x := answer.(*kmsg.FetchResponse).Topics[0].Partitions[0]
	if x.ErrorCode != 0 {
		t.Fatalf("%s at %d: %s", topic, at, codeName(x.ErrorCode))
	}
	return x.RecordBatches
}
