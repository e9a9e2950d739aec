package main

import (
	"context"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"strandline.dev/internal/record"
)

// holeFetchBytes is what one look behind the last record reads; a batch that is larger comes all the same.
const holeFetchBytes = 1 << 20

// skipHoles finishes the partitions that have no record up to their end: a log may end in a hole, where compaction or a repeated record id took
// records out, and the client tells nobody when it has passed one. It is asked only after a silence.
func (c *consumption) skipHoles(ctx context.Context) {
	for p, end := range c.ends {
		if c.session.onlyHoles(ctx, c.topic, p, c.next[p], end) {
			delete(c.ends, p)
		}
	}
}

// onlyHoles says whether a partition has batches, but no record, in the offsets [from, end). What cannot be read has not been looked at.
func (s *session) onlyHoles(ctx context.Context, topic string, partition int32, from, end int64) bool {
	ctx, cancel := s.bounded(ctx)
	defer cancel()
	for from < end {
		b, err := s.fetchRaw(ctx, topic, partition, from)
		if err != nil || len(b) == 0 {
			return false
		}
		before := from
		for len(b) > 0 {
			batch, rest, err := record.Split(b)
			if err != nil {
				break // the last one may be cut
			}
			if !batch.IsControl() {
				for r, err := range batch.Records(0) {
					o := int64(batch.BaseOffset()) + int64(r.OffsetDelta)
					if err != nil || (o >= from && o < end) {
						return false
					}
				}
			}
			from, b = int64(batch.NextOffset()), rest
		}
		if from == before {
			return false
		}
	}
	return true
}

// fetchRaw reads batches of a partition as they are stored.
func (s *session) fetchRaw(ctx context.Context, topic string, partition int32, from int64) ([]byte, error) {
	topics, err := s.admin.ListTopicsWithInternal(ctx, topic)
	if err != nil {
		return nil, err
	}
	req := kmsg.NewPtrFetchRequest()
	req.MinBytes, req.MaxBytes, req.SessionEpoch = 1, holeFetchBytes, -1
	rt, rp := kmsg.NewFetchRequestTopic(), kmsg.NewFetchRequestTopicPartition()
	rp.Partition, rp.FetchOffset, rp.PartitionMaxBytes = partition, from, holeFetchBytes
	rt.Topic, rt.TopicID, rt.Partitions = topic, topics[topic].ID, append(rt.Partitions, rp)
	req.Topics = append(req.Topics, rt)
	resp, err := req.RequestWith(ctx, s.client.Broker(int(topics[topic].Partitions[partition].Leader)))
	if err != nil {
		return nil, err
	}
	for _, t := range resp.Topics {
		for _, p := range t.Partitions {
			return p.RecordBatches, kerr.ErrorForCode(p.ErrorCode)
		}
	}
	return nil, nil
}
