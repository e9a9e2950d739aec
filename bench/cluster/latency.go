package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"strandline.dev/test/chaos/rig"
)

const (
	topic = "latency"
	// drainMax bounds the wait for what is under way when the time is over.
	drainMax = time.Minute
)

// latency is one open-loop run: each record is due at its time, whatever became of those before it, and latency counts from there.
type latency struct {
	o       options
	begin   time.Time
	faulty  atomic.Bool
	acks    [2]histogram // without and with a fault
	ends    [2]histogram
	mu      sync.Mutex
	sent    []uint64 // by partition
	wrong   []string
	reading []*group
}

// group is what one consumer group has read: by partition, the next offset and the next number.
type group struct {
	offset []int64
	number []uint64
}

func (o options) latency(c *rig.Cluster) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	configs := map[string]string{"min.insync.replicas": "2", "strandline.flush": o.flush}
	if err := c.CreateTopic(ctx, rig.Topic{Name: topic, Partitions: int32(o.partitions), Replicas: 3, Configs: configs}); err != nil {
		return err
	}
	l := &latency{o: o, sent: make([]uint64, o.partitions)}
	var running sync.WaitGroup
	for _, name := range []string{"one", "two"} {
		g := &group{offset: make([]int64, o.partitions), number: make([]uint64, o.partitions)}
		l.reading = append(l.reading, g)
		cl, err := kgo.NewClient(kgo.SeedBrokers(c.Seeds()...), kgo.ConsumerGroup(name), kgo.ConsumeTopics(topic), kgo.MetadataMinAge(50*time.Millisecond),
			kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.FetchMaxWait(500*time.Millisecond))
		if err != nil {
			return err
		}
		defer cl.Close()
		running.Go(func() { l.read(ctx, cl, g) })
	}
	other := ", while a fault is on or being healed"
	if o.chores {
		x, err := l.prepareChores(ctx, c)
		if err != nil {
			return err
		}
		defer x.cl.Close()
		running.Go(func() { x.run(ctx) })
		defer func() { fmt.Printf("moved meanwhile: %d MiB\n", x.copied>>20) }()
		other = ", while partitions are moved, records expire and metrics are read"
	}
	<-time.After(6 * time.Second) // groups are settled
	if o.every > 0 {
		running.Go(func() { l.faults(ctx, c) })
	}
	before, err := brokersAcks(ctx, c)
	if err != nil {
		return err
	}
	err = errors.Join(l.write(ctx, c), l.drained(ctx))
	after, failed := brokersAcks(ctx, c)
	err = errors.Join(err, failed)
	cancel()
	running.Wait()
	fmt.Printf("latency, %d records/s of 1 KiB, %d partitions, 3 replicas, min ISR 2, %s, two groups, %v\n", o.rate, o.partitions, o.flush, o.duration)
	if o.every == 0 { // a node that was started again has forgotten what it had counted
		fmt.Printf("brokers, receipt to reply: 99 %% within %v, 99.9 %% within %v\n", after.atMost(before, .99), after.atMost(before, .999))
	}
	for i, when := range []string{"", other} {
		if i == 0 || o.every > 0 || o.chores {
			fmt.Printf("ack%s: %v\nend to end%s: %v\n", when, &l.acks[i], when, &l.ends[i])
		}
	}
	for _, w := range l.wrong {
		err = errors.Join(err, errors.New(w))
	}
	if err == nil {
		fmt.Println("nothing lost, doubled or reordered")
	}
	return err
}

func (l *latency) phase() int {
	if l.faulty.Load() {
		return 1
	}
	return 0
}

func (l *latency) bad(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.wrong) < 20 {
		l.wrong = append(l.wrong, fmt.Sprintf(format, args...))
	}
}

// write offers records at the rate; the number of each in its partition and the time when it was due are its first 16 bytes.
func (l *latency) write(ctx context.Context, c *rig.Cluster) error {
	cl, err := kgo.NewClient(kgo.SeedBrokers(c.Seeds()...), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.MetadataMinAge(50*time.Millisecond),
		kgo.ProducerLinger(0), kgo.ProducerBatchCompression(kgo.NoCompression()), kgo.MaxBufferedRecords(2_000_000),
		kgo.ProduceRequestTimeout(3*time.Second), kgo.RequestTimeoutOverhead(2*time.Second))
	if err != nil {
		return err
	}
	defer cl.Close()
	l.begin = time.Now()
	for i, n := 0, int(float64(l.o.rate)*l.o.duration.Seconds()); i < n; i++ {
		due := time.Duration(i) * time.Second / time.Duration(l.o.rate)
		if wait := due - time.Since(l.begin); wait > 0 {
			<-time.After(wait)
		}
		p := i % l.o.partitions
		value := make([]byte, 1024)
		binary.BigEndian.PutUint64(value, l.sent[p])
		binary.BigEndian.PutUint64(value[8:], uint64(due))
		l.sent[p]++
		cl.Produce(ctx, &kgo.Record{Topic: topic, Partition: int32(p), Value: value}, func(r *kgo.Record, err error) {
			if err != nil {
				l.bad("partition %d: a record was given up: %v", p, err)
				return
			}
			l.acks[l.phase()].add(time.Since(l.begin) - due)
		})
	}
	ctx, cancel := context.WithTimeout(ctx, drainMax)
	defer cancel()
	return cl.Flush(ctx)
}

// read checks that numbers follow each other in each partition. What is delivered again after a rebalance has been checked before.
func (l *latency) read(ctx context.Context, cl *kgo.Client, g *group) {
	for ctx.Err() == nil {
		f := cl.PollFetches(ctx)
		now := time.Since(l.begin)
		l.mu.Lock()
		var wrong []string
		f.EachRecord(func(r *kgo.Record) {
			p := r.Partition
			number, due := binary.BigEndian.Uint64(r.Value), time.Duration(binary.BigEndian.Uint64(r.Value[8:]))
			if r.Offset < g.offset[p] {
				return
			}
			if number != g.number[p] {
				wrong = append(wrong, fmt.Sprintf("partition %d offset %d: record %d, want %d", p, r.Offset, number, g.number[p]))
			}
			g.offset[p], g.number[p] = r.Offset+1, number+1
			l.ends[l.phase()].add(now - due)
		})
		l.mu.Unlock()
		for _, w := range wrong {
			l.bad("%s", w)
		}
	}
}

// drained waits until both groups have read everything.
func (l *latency) drained(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, drainMax)
	defer cancel()
	return rig.Until(ctx, "the groups to read everything", func(context.Context) error {
		l.mu.Lock()
		defer l.mu.Unlock()
		for i, g := range l.reading {
			for p, n := range g.number {
				if n != l.sent[p] {
					return fmt.Errorf("group %d has %d of %d records of partition %d", i+1, n, l.sent[p], p)
				}
			}
		}
		return nil
	})
}
