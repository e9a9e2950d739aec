package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"strandline.dev/test/chaos/rig"
)

const (
	// ballast is moved from node to node, and aged loses segments to retention: ballastParts partitions of one replica with ballastRecords
	// records of 64 KiB each.
	ballast, aged  = "ballast", "aged"
	ballastParts   = 6
	ballastRecords = 256
	// agedRecords are added to each partition of aged in each round of chores, and expire soon.
	agedRecords = 64
	// choreLasts is how long chores are done, and then left: latencies of both are told apart.
	choreLasts = 8 * time.Second
	// scrapeEvery is how often each node's metrics are read meanwhile; Prometheus asks every 15 s.
	scrapeEvery = 500 * time.Millisecond
)

// chores is what a cluster does beside serving: it copies replicas, gives leaderships back, applies retention, is asked for metrics.
type chores struct {
	l      *latency
	c      *rig.Cluster
	cl     *kgo.Client
	adm    *kadm.Client
	round  int // every round the ballast is elsewhere
	copied int // bytes that were copied to another node
}

// prepareChores creates what is moved and what expires.
func (l *latency) prepareChores(ctx context.Context, c *rig.Cluster) (*chores, error) {
	cl, err := kgo.NewClient(kgo.SeedBrokers(c.Seeds()...), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerLinger(0),
		kgo.ProducerBatchCompression(kgo.NoCompression()))
	if err != nil {
		return nil, err
	}
	configs := map[string]string{"strandline.flush": "replicated", "strandline.minimum.retention.ms": "0", "segment.bytes": "4194304"}
	if err := c.CreateTopic(ctx, rig.Topic{Name: ballast, Partitions: ballastParts, Replicas: 1, Configs: configs}); err != nil {
		return nil, err
	}
	configs["retention.bytes"] = "4194304"
	if err := c.CreateTopic(ctx, rig.Topic{Name: aged, Partitions: ballastParts, Replicas: 1, Configs: configs}); err != nil {
		return nil, err
	}
	adm, rate := kadm.NewClient(cl), strconv.FormatInt(l.o.copyRate, 10)
	answers, err := adm.AlterBrokerConfigs(ctx, []kadm.AlterConfig{{Op: kadm.SetConfig, Name: "leader.replication.throttled.rate", Value: &rate}})
	for _, one := range answers {
		err = errors.Join(err, one.Err)
	}
	if err != nil {
		return nil, err
	}
	return &chores{l: l, c: c, cl: cl, adm: adm}, fill(ctx, cl, ballast, ballastRecords)
}

// fill adds records to each partition of a topic.
func fill(ctx context.Context, cl *kgo.Client, topic string, records int) error {
	value := make([]byte, 64<<10)
	for range records {
		var list []*kgo.Record
		for p := range ballastParts {
			list = append(list, &kgo.Record{Topic: topic, Partition: int32(p), Value: value})
		}
		if err := cl.ProduceSync(ctx, list...).FirstErr(); err != nil {
			return fmt.Errorf("fill %s: %w", topic, err)
		}
	}
	return nil
}

// run does chores for choreLasts and leaves them for as long, until ctx is over.
func (x *chores) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(choreLasts):
		}
		x.l.faulty.Store(true)
		until, cancel := context.WithTimeout(ctx, choreLasts)
		var both sync.WaitGroup
		both.Go(func() { x.scrape(until) })
		both.Go(func() { x.move(until, ctx) })
		both.Wait()
		cancel()
		x.l.faulty.Store(false)
	}
}

// scrape reads every node's metrics again and again.
func (x *chores) scrape(ctx context.Context) {
	for ctx.Err() == nil {
		for _, n := range x.c.Nodes {
			if _, err := page(ctx, n); err != nil && ctx.Err() == nil {
				x.l.bad("metrics of node %d: %v", n.ID, err)
			}
		}
		select {
		case <-ctx.Done():
		case <-time.After(scrapeEvery):
		}
	}
}

// move moves the ballast to the next nodes, adds records that expire at the next pass of retention, and has leaderships given back, as often as
// there is time. A move that is under way when the time is over is waited for: it would run on into the calm.
func (x *chores) move(until, ctx context.Context) {
	for until.Err() == nil {
		var to kadm.AlterPartitionAssignmentsReq
		for p := range ballastParts {
			to.Assign(ballast, int32(p), []int32{int32((x.round+p)%3 + 1)})
		}
		answers, err := x.adm.AlterPartitionAssignments(ctx, to)
		if err == nil {
			err = answers.Error()
		}
		if err == nil {
			err = fill(ctx, x.cl, aged, agedRecords)
		}
		if err == nil {
			_, err = x.adm.ElectLeaders(ctx, kadm.ElectPreferredReplica, nil)
		}
		if err == nil {
			err = x.moved(ctx)
		}
		if err != nil {
			if ctx.Err() == nil {
				x.l.bad("chores: %v", err)
			}
			return
		}
		x.round++
		x.copied += ballastParts * ballastRecords * 64 << 10
	}
}

// moved waits until no partition of the ballast is being moved.
func (x *chores) moved(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, drainMax)
	defer cancel()
	of := kadm.TopicsSet{}
	for p := range ballastParts {
		of.Add(ballast, int32(p))
	}
	return rig.Until(ctx, "the moves", func(ctx context.Context) error {
		open, err := x.adm.ListPartitionReassignments(ctx, of)
		if err == nil && len(open[ballast]) > 0 {
			err = errors.New("under way")
		}
		return err
	})
}
