package server

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/record"
)

// packed is one gzip batch of records of zeros, 900 KiB each.
func (b *testBroker) packed(records int) record.Batch {
	bu, value := record.NewBuilder(record.Gzip), make([]byte, 900<<10)
	for range records {
		bu.Add(b.wall.Now().UnixMilli(), nil, value, nil)
	}
	return bu.Build()
}

// C088: the size that a topic allows holds for the batch that is stored, whatever it was when it came.
func TestC088_ASmallBatchIsNotStoredAsALargeOne(t *testing.T) {
	b := newTestBroker(t, testOptions{})
	c := b.dial()
	c.create("plain", 1, "compression.type", "uncompressed")
	c.create("lz4", 1, "compression.type", "lz4")
	if got := c.publish(newProduce("plain", 0, b.packed(3))); kafka.ErrorCode(got.ErrorCode) != kafka.MessageTooLarge {
		t.Errorf("2.7 MiB of records to a topic that stores them so: %v", kafka.ErrorCode(got.ErrorCode))
	}
	if end := b.status("plain", 0).End; end != 0 {
		t.Errorf("the log ends at %d", end)
	}
	for topic, records := range map[string]int{"plain": 1, "lz4": 3} {
		if got := c.publish(newProduce(topic, 0, b.packed(records))); got.ErrorCode != 0 {
			t.Errorf("%d records to %s: %v %s", records, topic, kafka.ErrorCode(got.ErrorCode), str(got.ErrorMessage))
		}
	}
}

// C088: only so many batches are decompressed at a time. Others wait; what needs no decompression does not.
func TestC088_DecompressionsWaitForEachOther(t *testing.T) {
	b := newTestBroker(t, testOptions{})
	c, free := b.dial(), b.dial()
	c.create("t", 1)
	var ends []func()
	for range cap(b.server.inflate) {
		ends = append(ends, b.server.inflate.begin())
	}
	waits := newProduce("t", 0, b.packed(1))
	id := c.send(waits)
	if got := free.publish(newProduce("t", 0, b.newBatch("plain"))); got.ErrorCode != 0 {
		t.Errorf("a batch without compression: %v", kafka.ErrorCode(got.ErrorCode))
	}
	if p := free.listOffset("t", -1, 5); p.Offset != 1 {
		t.Errorf("the log ends at %d, want 1", p.Offset)
	}
	ends[0]()
	if got := c.read(waits, id).(*kmsg.ProduceResponse).Topics[0].Partitions[0]; got.ErrorCode != 0 || got.BaseOffset != 1 {
		t.Errorf("when there is a place: %v at %d", kafka.ErrorCode(got.ErrorCode), got.BaseOffset)
	}
	if len(b.server.inflate) != cap(b.server.inflate)-1 {
		t.Errorf("%d places are taken", len(b.server.inflate))
	}
}
