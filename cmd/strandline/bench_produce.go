package main

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kgo"
)

func newBenchProduceCommand(a *app) *cobra.Command {
	var f benchFlags
	cmd := &cobra.Command{
		Use:   "produce",
		Short: "Measure how fast records can be produced",
		Long:  "Produce as fast as the brokers acknowledge, and report records and bytes a second.",
		Example: `  strandline bench produce
  strandline bench produce --records 1000000 --compression lz4 -c strandline.flush=synced
  strandline bench produce --http http://127.0.0.1:8080 -o json`,
		Args: exactArgs(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			b, err := a.beginBench(cmd.Context(), f, "produce")
			if err != nil {
				return err
			}
			defer b.cleanUp()
			return b.runProduce(cmd.Context())
		},
	}
	f.add(cmd)
	cmd.Flags().Int64Var(&f.records, "records", 500_000, "how many records")
	cmd.Flags().DurationVar(&f.linger, "linger", 5*time.Millisecond, "how long the client gathers a batch")
	return cmd
}

func (b *bench) runProduce(ctx context.Context) error {
	watch := b.startWatch(ctx)
	acked, failed, err := b.produceAll(ctx, b.records)
	b.report.measured(acked, watch.stop(ctx))
	b.report.Failed = failed
	if acked == 0 && err != nil {
		return b.session.explain(err, "cannot produce to %s", b.topic)
	}
	return b.report.print(b.app.printer(b.session.settings))
}

// produceAll produces n records and waits for every answer. err is the first failure.
func (b *bench) produceAll(ctx context.Context, n int64) (acked, failed int64, err error) {
	opts, err := b.producerOptions()
	if err != nil {
		return 0, 0, err
	}
	client, err := b.client(append(opts, kgo.DefaultProduceTopic(b.topic), kgo.RecordDeliveryTimeout(b.session.timeout), kgo.AllowIdempotentProduceCancellation())...)
	if err != nil {
		return 0, 0, err
	}
	defer client.Close()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var acks, failures atomic.Int64
	defer b.app.progress(func() string { return fmt.Sprintf("%d of %d records produced", acks.Load(), n) })()
	answered := func(_ *kgo.Record, err error) {
		if err != nil {
			failures.Add(1)
			cancel(err) // figures of a load that fails mean nothing: end it
			return
		}
		acks.Add(1)
	}
	for i := int64(0); i < n && ctx.Err() == nil; i++ {
		client.Produce(ctx, &kgo.Record{Value: b.payload.fill(i)}, answered)
	}
	flushErr := client.Flush(ctx)
	if cause := context.Cause(ctx); cause != nil {
		flushErr = cause
	}
	return acks.Load(), failures.Load(), flushErr
}

func newBenchConsumeCommand(a *app) *cobra.Command {
	var f benchFlags
	cmd := &cobra.Command{
		Use:   "consume",
		Short: "Measure how fast records can be consumed",
		Long: `Consume a topic from its first record to its present end, with --fanout consumers that each read everything, and report the sum.
Without --topic, a topic is filled with --records records first (not measured).`,
		Example: `  strandline bench consume
  strandline bench consume --topic orders --fanout 4`,
		Args: exactArgs(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			filled := f.topic == ""
			b, err := a.beginBench(cmd.Context(), f, "consume")
			if err != nil {
				return err
			}
			defer b.cleanUp()
			return b.runConsume(cmd.Context(), filled)
		},
	}
	f.add(cmd)
	cmd.Flags().Int64Var(&f.records, "records", 500_000, "how many records to fill the topic with")
	cmd.Flags().DurationVar(&f.linger, "linger", 5*time.Millisecond, "how long the client gathers a batch when filling the topic")
	cmd.Flags().IntVar(&f.fanout, "fanout", 1, "how many consumers, each reading everything")
	return cmd
}

func (b *bench) runConsume(ctx context.Context, fill bool) error {
	if b.fanout == 0 {
		return usagef("--fanout 0: want 1 to %d", benchFanoutMax)
	}
	if fill {
		if _, failed, err := b.produceAll(ctx, b.records); err != nil || failed > 0 {
			return b.session.explain(err, "cannot fill %s", b.topic)
		}
	}
	starts, err := b.session.admin.ListStartOffsets(ctx, b.topic)
	if err != nil {
		return b.session.explain(err, "cannot read the offsets of %s", b.topic)
	}
	from, err := offsetsOf(starts, b.topic)
	if err != nil {
		return err
	}
	ends, err := b.readEnds(ctx)
	if err != nil {
		return err
	}
	watch := b.startWatch(ctx)
	results := make([]tally, b.fanout)
	var sofar atomic.Int64
	stopProgress := b.app.progress(func() string { return fmt.Sprintf("%d records consumed", sofar.Load()) })
	var wg sync.WaitGroup
	for i := range results {
		wg.Go(func() { results[i] = b.consumeAll(ctx, extentMap{from, ends}, &sofar) })
	}
	wg.Wait()
	stopProgress()
	m := watch.stop(ctx)
	var total tally
	for _, r := range results {
		total.records += r.records
		total.bytes += r.bytes
		if total.err == nil {
			total.err = r.err
		}
	}
	if total.err != nil {
		return b.session.explain(total.err, "cannot consume %s", b.topic)
	}
	b.report.measured(total.records, m)
	if m.elapsed > 0 {
		b.report.MBPerSecond = float64(total.bytes) / 1e6 / m.elapsed.Seconds()
	}
	if fill {
		b.report.Missing = b.records*int64(b.fanout) - total.records
	}
	return b.report.print(b.app.printer(b.session.settings))
}

// tally is what one consumer got.
type tally struct {
	records, bytes int64
	err            error
}

// extentMap holds where each partition starts and ends.
type extentMap struct{ from, ends map[int32]int64 }

// consumeAll reads every partition from its start to its end. A broker that sends nothing for the time-out ends it.
func (b *bench) consumeAll(ctx context.Context, x extentMap, sofar *atomic.Int64) tally {
	offsets := make(map[int32]kgo.Offset, len(x.from))
	open := make(map[int32]bool, len(x.from))
	for p, start := range x.from {
		if start < x.ends[p] {
			offsets[p], open[p] = kgo.NewOffset().At(start), true
		}
	}
	client, err := b.client(kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{b.topic: offsets}),
		kgo.ConsumeResetOffset(kgo.NoResetOffset()), kgo.KeepControlRecords(), kgo.FetchMinBytes(1))
	if err != nil {
		return tally{err: err}
	}
	defer client.Close()
	var t tally
	for len(open) > 0 {
		pollCtx, cancel := context.WithTimeout(ctx, b.session.timeout)
		fetches := client.PollFetches(pollCtx)
		cancel()
		if err := fetches.Err(); err != nil {
			return tally{err: err}
		}
		fetches.EachRecord(func(r *kgo.Record) {
			if r.Offset < x.ends[r.Partition] && !r.Attrs.IsControl() {
				t.records++
				t.bytes += int64(len(r.Value))
			}
			if r.Offset+1 >= x.ends[r.Partition] {
				delete(open, r.Partition)
			}
		})
		sofar.Add(int64(fetches.NumRecords()))
	}
	return t
}
