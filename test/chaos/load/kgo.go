package load

import (
	"context"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"strandline.dev/test/chaos/check"
)

// options are those of every franz-go client here: quick to look for another leader, and to give a silent broker up.
func (l *Load) options(more ...kgo.Opt) []kgo.Opt {
	return append([]kgo.Opt{
		kgo.SeedBrokers(l.seeds()...), kgo.MetadataMinAge(50 * time.Millisecond), kgo.MetadataMaxAge(5 * time.Second),
		kgo.RetryBackoffFn(func(int) time.Duration { return 50 * time.Millisecond }),
		kgo.DialTimeout(time.Second), kgo.RequestTimeoutOverhead(2 * time.Second),
	}, more...)
}

// kgoWriter is producer 1: franz-go's idempotent one, with its own retries and several requests in flight a broker.
func (l *Load) kgoWriter() {
	cl, err := kgo.NewClient(l.options(kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.StopProducerOnDataLossDetected(),
		kgo.ProducerLinger(2*time.Millisecond), kgo.ProduceRequestTimeout(3*time.Second), kgo.MaxBufferedRecords(20_000))...)
	if err != nil {
		l.problem("kgo: %v", err)
		return
	}
	defer cl.Close()
	rng := l.random(1)
	for begin, sent := time.Now(), 0; pause(l.writing, 5*time.Millisecond); {
		for due := int(time.Since(begin).Seconds() * float64(l.o.Rate)); sent < due && l.writing.Err() == nil; sent++ {
			t := l.o.Topics[rng.IntN(len(l.o.Topics))]
			k := check.Key{Topic: t.Name, Partition: rng.Int32N(t.Partitions)}
			v := l.value()
			at := l.R.Begin(check.Send{Key: k, Value: v, Producer: 1, All: true})
			cl.Produce(l.ctx, &kgo.Record{Topic: k.Topic, Partition: k.Partition, Value: Value(v)}, func(r *kgo.Record, err error) {
				switch {
				case err == nil:
					l.confirmed(at, k, r.Offset)
				case l.ctx.Err() == nil:
					l.problem("kgo gave a record of %s/%d up: %v", k.Topic, k.Partition, err)
				}
			})
		}
	}
	_ = cl.Flush(l.ctx) // what is left has no outcome
}

// bounded is ctx for at most d.
func bounded(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, d)
}
