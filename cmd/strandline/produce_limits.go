package main

import (
	"context"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"strandline.dev/internal/config"
)

const (
	// batchKey and recordKey are the topic configs that bound what a topic takes.
	batchKey  = "max.message.bytes"
	recordKey = "strandline.max.record.bytes"
	// batchBytesMin and batchBytesMax are what the client library accepts as its own limit.
	batchBytesMin, batchBytesMax = 512, 90 << 20
	// retryPause is the pause before a batch that a broker has refused for now is sent again; the client also waits for new metadata
	// before it does, which it asks for no more often than this (openSession).
	retryPause = 100 * time.Millisecond
)

// topicLimits are the sizes that a topic takes, in bytes; 0 where the broker does not tell. The client library caps batches by itself, at
// a size that has nothing to do with the topic's; it is told the topic's instead, so that what the topic takes can be produced.
type topicLimits struct {
	batch, record atomic.Int64
}

// option makes the client ask for the batch limit when it first meets the topic, which is after read.
func (l *topicLimits) option() kgo.Opt {
	return kgo.ProducerBatchMaxBytesFn(func(string) int32 {
		batch := l.batch.Load()
		if batch == 0 {
			batch = defaultBatchBytes()
		}
		return int32(min(max(batch, batchBytesMin), batchBytesMax))
	})
}

// defaultBatchBytes is the limit of a topic that says nothing of it: one that is about to be created, or of a broker that does not tell.
func defaultBatchBytes() int64 {
	n, _ := strconv.ParseInt(config.Lookup(config.ScopeTopic, batchKey).Default, 10, 64)
	return n
}

// read asks the broker for the topic's limits. A broker that does not tell keeps the last word: it refuses what is too large.
func (l *topicLimits) read(ctx context.Context, s *session, topic string) {
	ctx, cancel := s.bounded(ctx)
	defer cancel()
	described, err := s.admin.DescribeTopicConfigs(ctx, topic)
	if err != nil {
		return
	}
	for _, resource := range described {
		for _, c := range resource.Configs {
			n, err := strconv.ParseInt(c.MaybeValue(), 10, 64)
			switch {
			case err != nil || resource.Err != nil:
			case c.Key == batchKey:
				l.batch.Store(n)
			case c.Key == recordKey:
				l.record.Store(n)
			}
		}
	}
}

// check refuses a record that the topic cannot take, before it is sent.
func (l *topicLimits) check(r *kgo.Record) error {
	if limit := l.record.Load(); limit > 0 && recordBytes(r) > limit {
		return &tooLargeError{size: recordBytes(r), limit: limit, key: recordKey, what: "records"}
	}
	return nil
}

// tooLarge says what the broker, or the client library in its place, refused as too large.
func (l *topicLimits) tooLarge(r *kgo.Record) *tooLargeError {
	limit := l.batch.Load()
	if limit == 0 {
		limit = defaultBatchBytes()
	}
	return &tooLargeError{size: recordBytes(r), limit: limit, key: batchKey, what: "batches"}
}

// recordBytes is the size of a record as strandline.max.record.bytes counts it: key, value and headers.
func recordBytes(r *kgo.Record) int64 {
	n := len(r.Key) + len(r.Value)
	for _, h := range r.Headers {
		n += len(h.Key) + len(h.Value)
	}
	return int64(n)
}

// tooLargeError names the size of a record and the limit that it breaks.
type tooLargeError struct {
	size, limit int64
	key, what   string
}

func (e *tooLargeError) Error() string {
	return fmt.Sprintf("the record has %d bytes (key, value and headers), and the topic takes %s of at most %d (%s)", e.size, e.what, e.limit, e.key)
}

// persistence makes the client give up a record, with the broker's own last error, shortly before the time is over. Without it the client
// repeats what can be repeated until the end, and nobody learns that the broker has answered, and what.
func persistence(timeout time.Duration) kgo.Opt {
	return kgo.RecordRetries(int(max(timeout*3/4/retryPause, 1)))
}

// steadyPause is the client's pause between attempts; persistence counts on its length.
func steadyPause(int) time.Duration { return retryPause }
