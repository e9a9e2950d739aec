package main

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kgo"
)

func newBenchLatencyCommand(a *app) *cobra.Command {
	var f benchFlags
	cmd := &cobra.Command{
		Use:   "latency",
		Short: "Measure how long records take at a steady rate",
		Long: `Produce at a steady rate, whatever the brokers do (open loop), while --fanout consumers read along, and report two latencies: from the
time a record was due until its acknowledgement, and until each consumer got it. A stall shows in every record that was due during it.`,
		Example: `  strandline bench latency --rate 1000 --duration 30s
  strandline bench latency --rate 10000 --fanout 3 -c strandline.flush=synced -o json`,
		Args: exactArgs(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if f.rate == 0 || f.duration <= 0 || f.warmup < 0 {
				return usagef("want a --rate and a --duration above 0")
			}
			b, err := a.beginBench(cmd.Context(), f, "latency")
			if err != nil {
				return err
			}
			defer b.cleanUp()
			return b.runLatency(cmd.Context())
		},
	}
	f.add(cmd)
	cmd.Flags().IntVar(&f.rate, "rate", 1000, "records a second")
	cmd.Flags().DurationVar(&f.duration, "duration", 10*time.Second, "how long to measure")
	cmd.Flags().DurationVar(&f.warmup, "warmup", 2*time.Second, "how long to run before measuring")
	cmd.Flags().DurationVar(&f.linger, "linger", 0, "how long the client gathers a batch")
	cmd.Flags().IntVar(&f.fanout, "fanout", 1, "how many consumers read along")
	return cmd
}

// latencyRun is the state shared by the pacer, the answers and the consumers. Times are counted from began.
type latencyRun struct {
	*bench
	id       uint64 // in every record, so that other records in the topic are not taken for ours
	began    time.Time
	acks     histogram
	ends     histogram
	late     histogram
	acked    atomic.Int64
	failed   atomic.Int64
	consumed atomic.Int64
	firstErr atomic.Pointer[error]
}

func (b *bench) runLatency(ctx context.Context) error {
	r := &latencyRun{bench: b}
	var id [8]byte
	_, _ = rand.Read(id[:]) // never fails
	r.id = binary.BigEndian.Uint64(id[:])

	ends, err := b.readEnds(ctx)
	if err != nil {
		return err
	}
	consumeCtx, stopConsumers := context.WithCancel(ctx)
	defer stopConsumers()
	var consumers sync.WaitGroup
	r.began = time.Now()
	for range b.fanout {
		client, err := r.newConsumer(ends)
		if err != nil {
			return err
		}
		consumers.Go(func() { r.consume(consumeCtx, client) })
	}
	stopProgress := b.app.progress(func() string {
		return fmt.Sprintf("%v of %v", time.Since(r.began).Round(time.Second), b.warmup+b.duration)
	})
	watch := b.startWatch(ctx)
	err = r.produce(ctx)
	m := watch.stop(ctx)
	stopProgress()
	if err != nil {
		return b.session.explain(err, "cannot produce to %s", b.topic)
	}
	r.awaitConsumers(ctx)
	stopConsumers()
	consumers.Wait()

	rep := &b.report
	rep.measured(r.acked.Load(), m)
	rep.Rate, rep.Failed = b.rate, r.failed.Load()
	rep.Missing = r.acked.Load()*int64(b.fanout) - r.consumed.Load()
	rep.Ack, rep.EndToEnd, rep.PacerDelay = r.acks.summary(), r.ends.summary(), r.late.summary()
	if e := r.firstErr.Load(); e != nil && rep.Records == 0 {
		return b.session.explain(*e, "cannot produce to %s", b.topic)
	}
	return rep.print(b.app.printer(b.session.settings))
}

func (r *latencyRun) newConsumer(from map[int32]int64) (*kgo.Client, error) {
	offsets := make(map[int32]kgo.Offset, len(from))
	for p, at := range from {
		offsets[p] = kgo.NewOffset().At(at)
	}
	return r.client(kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{r.topic: offsets}),
		kgo.ConsumeResetOffset(kgo.NoResetOffset()), kgo.FetchMinBytes(1))
}

// produce sends the records when they are due, and waits for all answers.
func (r *latencyRun) produce(ctx context.Context) error {
	opts, err := r.producerOptions()
	if err != nil {
		return err
	}
	client, err := r.client(append(opts, kgo.DefaultProduceTopic(r.topic), kgo.RecordDeliveryTimeout(r.session.timeout), kgo.AllowIdempotentProduceCancellation())...)
	if err != nil {
		return err
	}
	defer client.Close()
	sleep, done := newPacer()
	defer done()
	interval := time.Second / time.Duration(r.rate)
	total := int64((r.warmup + r.duration) / interval)
	start := time.Since(r.began)
	for i := range total {
		due := start + time.Duration(i)*interval
		for {
			early := due - time.Since(r.began)
			if early <= 0 || ctx.Err() != nil {
				break
			}
			sleep(min(early, 100*time.Millisecond))
		}
		if ctx.Err() != nil {
			break
		}
		measured := due-start >= r.warmup
		if measured {
			r.late.add(time.Since(r.began) - due)
		}
		client.Produce(ctx, &kgo.Record{Value: r.stamp(i, due, measured)}, r.answer(due, measured))
	}
	return client.Flush(ctx)
}

// stamp makes a value that carries the run, the due time, and whether it is measured.
func (r *latencyRun) stamp(n int64, due time.Duration, measured bool) []byte {
	v := r.payload.fill(n)
	binary.BigEndian.PutUint64(v, r.id)
	binary.BigEndian.PutUint64(v[8:], uint64(due))
	v[16] = 0
	if measured {
		v[16] = 1
	}
	return v
}

func (r *latencyRun) answer(due time.Duration, measured bool) func(*kgo.Record, error) {
	return func(_ *kgo.Record, err error) {
		if err != nil {
			r.failed.Add(1)
			r.firstErr.CompareAndSwap(nil, &err)
			return
		}
		if measured {
			r.acks.add(time.Since(r.began) - due)
		}
		r.acked.Add(1)
	}
}

func (r *latencyRun) consume(ctx context.Context, client *kgo.Client) {
	defer client.Close()
	for ctx.Err() == nil {
		fetches := client.PollFetches(ctx)
		now := time.Since(r.began)
		fetches.EachRecord(func(rec *kgo.Record) {
			v := rec.Value
			if len(v) < benchSizeMin || binary.BigEndian.Uint64(v) != r.id {
				return
			}
			if v[16] == 1 {
				r.ends.add(now - time.Duration(binary.BigEndian.Uint64(v[8:])))
			}
			r.consumed.Add(1)
		})
	}
}

// awaitConsumers waits until everything acknowledged was consumed, or nothing has come for the time-out.
func (r *latencyRun) awaitConsumers(ctx context.Context) {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	last, since := r.consumed.Load(), time.Now()
	for last < r.acked.Load()*int64(r.fanout) && time.Since(since) < r.session.timeout {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		if now := r.consumed.Load(); now != last {
			last, since = now, time.Now()
		}
	}
}
