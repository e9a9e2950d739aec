package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// The bars of many partitions.
var (
	createBar  = bar{unit: "s", limit: 30}
	servingBar = bar{unit: "s", limit: 30}
	idleBar    = bar{unit: "% a core", limit: 5}
	memoryBar  = bar{unit: "MiB", limit: 1024}
	shareBar   = bar{unit: "of 64", limit: 0.6, atLeast: true}
)

// requestTime bounds one request of this program.
const requestTime = 2 * time.Minute

// client is a franz-go client of the node.
func (n *node) client(opts ...kgo.Opt) (*kgo.Client, error) {
	return kgo.NewClient(append([]kgo.Opt{
		kgo.SeedBrokers(n.addr), kgo.RequestTimeoutOverhead(requestTime), kgo.MetadataMinAge(100 * time.Millisecond),
	}, opts...)...)
}

// create makes topics of so many partitions each, in one request, and says how long it took until every partition had a leader.
func (n *node) create(ctx context.Context, configs map[string]*string, partitions int, topics ...string) (time.Duration, error) {
	cl, err := n.client()
	if err != nil {
		return 0, err
	}
	defer cl.Close()
	adm := kadm.NewClient(cl)
	adm.SetTimeoutMillis(int32(requestTime.Milliseconds()))
	began := time.Now()
	done, err := adm.CreateTopics(ctx, int32(partitions), 1, configs, topics...)
	if err = errors.Join(err, done.Error()); err != nil {
		return 0, err
	}
	all, err := adm.ListTopics(ctx, topics...)
	if err != nil {
		return 0, err
	}
	led := 0
	all.EachPartition(func(p kadm.PartitionDetail) {
		if p.Err == nil && p.Leader == 1 {
			led++
		}
	})
	if led != partitions*len(topics) {
		return 0, fmt.Errorf("%d of %d partitions have a leader", led, partitions*len(topics))
	}
	return time.Since(began), nil
}

// touch publishes one record to each partition and returns when all are acknowledged.
func (n *node) touch(ctx context.Context, topic string, partitions int) error {
	cl, err := n.client(kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.MaxBufferedRecords(partitions+1))
	if err != nil {
		return err
	}
	defer cl.Close()
	records := make([]*kgo.Record, partitions)
	for i := range records {
		records[i] = &kgo.Record{Topic: topic, Partition: int32(i), Value: []byte("one record for each partition")}
	}
	return cl.ProduceSync(ctx, records...).FirstErr()
}

// manyTopics creates ten topics with a tenth of the partitions each.
func manyTopics(ctx context.Context, b *bench) error {
	n, err := b.start()
	if err != nil {
		return err
	}
	defer n.stop()
	var names []string
	for i := range 10 {
		names = append(names, "t"+strconv.Itoa(i))
	}
	took, err := n.create(ctx, nil, b.partitions/10, names...)
	if err != nil {
		return err
	}
	b.note(fmt.Sprintf("create 10 topics of %d", b.partitions/10), took.Seconds(), createBar)
	return nil
}

// manyPartitions creates one topic with all partitions, looks at the idle node, writes to all, kills it and waits until it serves again.
func manyPartitions(ctx context.Context, b *bench) error {
	n, err := b.start()
	if err != nil {
		return err
	}
	defer n.stop()
	took, err := n.create(ctx, nil, b.partitions, "all")
	if err != nil {
		return err
	}
	b.note(fmt.Sprintf("create 1 topic of %d", b.partitions), took.Seconds(), createBar)
	if err := n.noteIdle(ctx, "created", idleBar, memoryBar); err != nil {
		return err
	}
	began := time.Now()
	if err := n.touch(ctx, "all", b.partitions); err != nil {
		return err
	}
	b.note("one record to each partition", time.Since(began).Seconds(), bar{unit: "s"})
	if err := n.noteServing(ctx, "kill -9"); err != nil {
		return err
	}
	if err := n.noteIdle(ctx, "after kill -9", idleBar, memoryBar); err != nil {
		return err
	}
	ended, err := n.end()
	if err != nil {
		return err
	}
	b.note("graceful stop", ended.Seconds(), bar{unit: "s"})
	if err := n.launch(); err != nil {
		return err
	}
	b.note("start after it: ready", time.Since(n.began).Seconds(), bar{unit: "s"})
	return nil
}

// noteServing kills the node and measures until it has acknowledged a record in every partition again.
func (n *node) noteServing(ctx context.Context, how string) error {
	n.kill()
	began := time.Now()
	if err := n.launch(); err != nil {
		return err
	}
	n.bench.note(how+": ready", time.Since(began).Seconds(), bar{unit: "s"})
	if err := n.touch(ctx, "all", n.bench.partitions); err != nil {
		return err
	}
	n.bench.note(how+": every partition acknowledged a record", time.Since(began).Seconds(), servingBar)
	cpu, err := n.cpu()
	n.bench.note(how+": CPU until then", cpu, bar{unit: "s"})
	return err
}

// manyProduced compares the rate over all partitions with that over 64, under both flush policies.
func manyProduced(ctx context.Context, b *bench) error {
	if b.kbench == "" {
		fmt.Fprintln(os.Stderr, "  no -kbench: left out")
		return nil
	}
	for flush := range strings.SplitSeq(b.flush, ",") {
		if err := b.noteShare(ctx, flush); err != nil {
			return err
		}
	}
	return nil
}

// noteShare compares the two rates on one node under one flush policy.
func (b *bench) noteShare(ctx context.Context, flush string) error {
	n, err := b.start()
	if err != nil {
		return err
	}
	defer n.stop()
	config := map[string]*string{"strandline.flush": &flush}
	if _, err := n.create(ctx, config, 64, "few"); err != nil {
		return err
	}
	if _, err := n.create(ctx, config, b.partitions, "all"); err != nil {
		return err
	}
	if err := sleep(ctx, n.bench.settle); err != nil {
		return err
	}
	few, err := n.produce(ctx, "few", 64)
	if err != nil {
		return err
	}
	all, err := n.produce(ctx, "all", b.partitions)
	if err != nil {
		return err
	}
	b.note(flush+": records/s over 64 partitions", few, bar{unit: "1/s"})
	b.note(fmt.Sprintf("%s: records/s over %d partitions", flush, b.partitions), all, bar{unit: "1/s"})
	b.note(flush+": share", all/few, shareBar)
	files, err := n.files()
	b.note(flush+": open files after the load", files, bar{unit: "files"})
	return err
}

// produce runs kbench and returns records a second.
func (n *node) produce(ctx context.Context, topic string, partitions int) (float64, error) {
	cmd := exec.CommandContext(ctx, n.bench.kbench, "-brokers", n.addr, "-mode", "produce", "-topic", topic, "-keep-topic",
		"-partitions", strconv.Itoa(partitions), "-records", strconv.FormatInt(n.bench.records, 10), "-runs", "1", "-timeout", "60s",
		"-server-pids", strconv.Itoa(n.cmd.Process.Pid))
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return 0, fmt.Errorf("kbench: %w", err)
	}
	var result struct {
		Median map[string]float64 `json:"median"`
	}
	if err := json.Unmarshal(out, &result); err != nil {
		return 0, err
	}
	rate, ok := result.Median["produce.records_per_s"]
	if !ok {
		return 0, fmt.Errorf("kbench reported no rate: %s", out)
	}
	return rate, nil
}

// wideConsumer has one client read all partitions at a trickle, so that each record wakes a fetch over all of them.
func wideConsumer(ctx context.Context, b *bench) error {
	n, err := b.start()
	if err != nil {
		return err
	}
	defer n.stop()
	if _, err := n.create(ctx, nil, b.partitions, "all"); err != nil {
		return err
	}
	cl, err := n.client(kgo.ConsumeTopics("all"), kgo.RecordPartitioner(kgo.RoundRobinPartitioner()), kgo.ProducerLinger(0),
		kgo.FetchMaxWait(5*time.Second))
	if err != nil {
		return err
	}
	defer cl.Close()
	if err := sleep(ctx, n.bench.settle); err != nil {
		return err
	}
	idle, err := n.load(ctx)
	if err != nil {
		return err
	}
	b.note(fmt.Sprintf("1 idle consumer of %d partitions: CPU", b.partitions), idle, idleBar)
	var wg sync.WaitGroup
	trickle, stop := context.WithCancel(ctx)
	defer stop()
	wg.Go(func() { publishEvery(trickle, cl, "all", trickleEvery) })
	received := 0
	wg.Go(func() {
		for trickle.Err() == nil {
			received += cl.PollFetches(trickle).NumRecords()
		}
	})
	busy, err := n.load(ctx)
	stop()
	wg.Wait()
	b.note(fmt.Sprintf("1 consumer of %d partitions, 100 records/s: CPU", b.partitions), busy, bar{unit: "% a core"})
	b.note("received in that time", float64(received), bar{unit: "records"})
	return err
}

// trickleEvery is the time between two records of a slow producer.
const trickleEvery = 10 * time.Millisecond

func publishEvery(ctx context.Context, cl *kgo.Client, topic string, every time.Duration) {
	t := time.NewTicker(every)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
			cl.Produce(ctx, &kgo.Record{Topic: topic, Value: []byte("trickle")}, nil)
		}
	}
}
