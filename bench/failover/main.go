// Command failover measures how long partitions take no write when a node of three is killed, paused, stopped or cut off.
//
// Each round: all partitions whole and led by their preferred replicas, writers at a steady rate, one fault, then healing. The gap of a
// partition is the longest time between two acknowledged writes to it, from the fault to the healing; the figure of a round is the gap of
// its worst partition among those that the victim led. Writes are paced, so that a gap is never shorter than the pace of one partition
// (32 ms at 2,000 records/s over 64 partitions). The gap of the second before the fault is printed beside it: what the machine itself does to
// the writes; and the longest flush, between fault and healing, of a small file beside the nodes' data: while it lasts the disk of all three
// nodes stands still. bench/failover.sh builds and runs it.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"strandline.dev/test/chaos/rig"
)

const topic = "failover"

// options are the flags.
type options struct {
	binary, dir, only, clients, flush string
	rounds, partitions, rate, beside  int
	keep, recordIDs                   bool
	log                               string
	kgoTimeout, kgoOverhead, kgoAge   time.Duration
}

func main() {
	var o options
	flag.StringVar(&o.binary, "binary", "bin/strandline", "the server")
	flag.StringVar(&o.dir, "dir", "", "where the data goes; empty makes a temporary directory")
	flag.StringVar(&o.only, "only", "", "scenarios, comma separated; empty runs all of them")
	flag.StringVar(&o.clients, "client", "raw,kgo", "who writes: raw follows hints of a new leader at once; kgo is franz-go")
	flag.StringVar(&o.flush, "flush", "synced", "strandline.flush of the topic")
	flag.IntVar(&o.rounds, "rounds", 20, "rounds of each scenario")
	flag.IntVar(&o.partitions, "partitions", 64, "partitions of the topic")
	flag.IntVar(&o.beside, "beside", 0, "producers that write to another topic as fast as it takes records")
	flag.IntVar(&o.rate, "rate", 2000, "records a second over all partitions")
	flag.StringVar(&o.log, "log", "", "a file for what franz-go says it does, to see which answers it gets; it slows the client")
	flag.DurationVar(&o.kgoTimeout, "kgo-timeout", 0, "franz-go's ProduceRequestTimeout, and RequestTimeoutOverhead unless -kgo-overhead is given; 0 leaves its 10s")
	flag.DurationVar(&o.kgoOverhead, "kgo-overhead", 0, "franz-go's RequestTimeoutOverhead; 0: as -kgo-timeout")
	flag.DurationVar(&o.kgoAge, "kgo-max-age", 0, "franz-go's MetadataMaxAge; 0 leaves its 5m")
	flag.BoolVar(&o.recordIDs, "record-ids", false, "every record has an id, and the topic keeps the ids of two minutes")
	flag.BoolVar(&o.keep, "keep", false, "keep the directory with the logs of the nodes")
	flag.Parse()
	if err := run(o); err != nil {
		fmt.Fprintln(os.Stderr, "failover:", err)
		os.Exit(1)
	}
}

func run(o options) error {
	if o.dir == "" {
		dir, err := os.MkdirTemp("", "failover-")
		if err != nil {
			return err
		}
		o.dir = dir
		if !o.keep {
			defer func() { _ = os.RemoveAll(dir) }()
		}
	}
	var figures []figure
	var failed error
	for _, client := range strings.Split(o.clients, ",") {
		for _, proxied := range []bool{false, true} {
			var wanted []scenario
			for _, s := range scenarios() {
				if s.proxied == proxied && (o.only == "" || slices.Contains(strings.Split(o.only, ","), s.name)) {
					wanted = append(wanted, s)
				}
			}
			if len(wanted) == 0 {
				continue
			}
			f, err := measure(o, client, proxied, wanted)
			figures = append(figures, f...)
			if err != nil && failed == nil {
				failed = fmt.Errorf("client %s: %w", client, err)
			}
		}
	}
	report(figures)
	return failed
}

// measure runs scenarios on one cluster.
func measure(o options, client string, proxied bool, list []scenario) (out []figure, err error) {
	dir := filepath.Join(o.dir, fmt.Sprintf("%s-%t", client, proxied))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	c, err := rig.New(rig.Options{Binary: o.binary, Dir: dir, Nodes: 3, Proxied: proxied})
	if err != nil {
		return nil, err
	}
	defer func() {
		_ = c.Close()
		if err != nil {
			fmt.Fprint(os.Stderr, c.Tail(4000))
		}
	}()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	if err := c.Form(ctx); err != nil {
		return nil, err
	}
	configs := map[string]string{"strandline.flush": o.flush, "min.insync.replicas": "2"}
	if o.recordIDs {
		configs["strandline.dedup.window.ms"] = "120000"
	}
	if err := c.CreateTopic(ctx, rig.Topic{Name: topic, Partitions: int32(o.partitions), Replicas: 3, Configs: configs}); err != nil {
		return nil, err
	}
	if o.beside > 0 {
		end, err := saturate(ctx, o, c)
		if err != nil {
			return nil, err
		}
		defer end()
	}
	disk, err := watchDisk(dir)
	if err != nil {
		return nil, err
	}
	defer disk.end()
	for _, s := range list {
		f := figure{scenario: s, client: client}
		for i := range o.rounds {
			got, err := round(o, c, disk, client, s)
			if err != nil {
				return append(out, f), fmt.Errorf("%s, round %d: %w", s.name, i+1, err)
			}
			f.calms, f.gaps, f.backs = append(f.calms, got.calm), append(f.gaps, got.worst), append(f.backs, got.back)
			if got.disk <= stillMax {
				f.still = append(f.still, got.worst)
			}
			f.errors += got.errors
			fmt.Printf("%-16s %s round %2d: before %4d ms, worst partition %5d ms, disk %4d ms, while healing %5d ms, errors %d\n",
				s.name, client, i+1, got.calm.Milliseconds(), got.worst.Milliseconds(), got.disk.Milliseconds(), got.back.Milliseconds(), got.errors)
		}
		out = append(out, f)
	}
	return out, nil
}
