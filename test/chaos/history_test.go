package chaos

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"sort"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// history is what a producer was told: per partition, in the order sent, each value's acknowledged offset or noAck.
type history struct {
	mu   sync.Mutex
	sent map[int32][]uint64
	acks map[uint64]int64
}

func newHistory() *history { return &history{sent: map[int32][]uint64{}, acks: map[uint64]int64{}} }

// send records that v was handed to the producer for partition p.
func (h *history) send(p int32, v uint64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.sent[p] = append(h.sent[p], v)
}

// ack records that v was acknowledged at offset o.
func (h *history) ack(v uint64, o int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.acks[v] = o
}

func (h *history) acked() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.acks)
}

// read is one record as a reader found it.
type read struct {
	offset int64
	value  uint64
}

// judge compares a history with the final log of each partition and returns every violation, worst first.
func (h *history) judge(logs map[int32][]read) []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	var bad []string
	for p, sent := range h.sent {
		order := make(map[uint64]int, len(sent))
		for i, v := range sent {
			order[v] = i
		}
		seen := map[uint64]int64{}
		last := -1
		for _, r := range logs[p] {
			i, ok := order[r.value]
			if !ok {
				bad = append(bad, fmt.Sprintf("P3 partition %d offset %d: value %d was never sent there", p, r.offset, r.value))
				continue
			}
			if first, dup := seen[r.value]; dup {
				bad = append(bad, fmt.Sprintf("P4 partition %d: value %d at offsets %d and %d", p, r.value, first, r.offset))
				continue
			}
			seen[r.value] = r.offset
			if i < last {
				bad = append(bad, fmt.Sprintf("P5 partition %d offset %d: value %d was sent before the one in front of it", p, r.offset, r.value))
			}
			last = i
		}
		for _, v := range sent {
			o, acked := h.acks[v]
			got, found := seen[v]
			switch {
			case acked && !found:
				bad = append(bad, fmt.Sprintf("P1 partition %d: acknowledged value %d (offset %d) is lost", p, v, o))
			case acked && got != o:
				bad = append(bad, fmt.Sprintf("P19 partition %d: value %d acknowledged at offset %d, read at %d", p, v, o, got))
			}
		}
	}
	sort.Strings(bad)
	return bad
}

// readAll reads every partition of topic from its start to its end as of now.
func readAll(ctx context.Context, address, topic string, partitions int32) (map[int32][]read, error) {
	ctx, cancel := context.WithTimeout(ctx, 60*time.Second)
	defer cancel()
	ends, err := endOffsets(ctx, address, topic)
	if err != nil {
		return nil, err
	}
	from := map[int32]kgo.Offset{}
	left := 0
	for p := range partitions {
		from[p] = kgo.NewOffset().AtStart()
		if ends[p] > 0 {
			left++
		}
	}
	c, err := kgo.NewClient(kgo.SeedBrokers(address), kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: from}))
	if err != nil {
		return nil, err
	}
	defer c.Close()
	logs := map[int32][]read{}
	for left > 0 {
		f := c.PollFetches(ctx)
		if err := ctx.Err(); err != nil {
			return nil, fmt.Errorf("read back %s: %w", topic, err)
		}
		for _, e := range f.Errors() {
			return nil, fmt.Errorf("read back %s/%d: %w", e.Topic, e.Partition, e.Err)
		}
		var wrong error
		f.EachRecord(func(r *kgo.Record) {
			v := binary.BigEndian.Uint64(r.Value)
			if !bytes.Equal(r.Value, valueOf(v)) {
				wrong = fmt.Errorf("P2 partition %d offset %d: the bytes are not those of value %d", r.Partition, r.Offset, v)
			}
			logs[r.Partition] = append(logs[r.Partition], read{r.Offset, v})
			if r.Offset == ends[r.Partition]-1 {
				left--
			}
		})
		if wrong != nil {
			return nil, wrong
		}
	}
	return logs, nil
}
