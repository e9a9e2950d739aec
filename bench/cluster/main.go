// Command cluster measures three serve processes on one machine: throughput by kbench, and ack and end-to-end latency at a fixed rate with two
// groups reading everything, with or without a fault every 30 s. bench/cluster.sh builds and runs it.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"strandline.dev/test/chaos/rig"
)

// options are the flags.
type options struct {
	binary, kbench, dir, flush string
	duration, every            time.Duration
	rate, partitions           int
	records                    int
	runs                       int
	chores                     bool
	copyRate                   int64
}

func main() {
	var o options
	flag.StringVar(&o.binary, "binary", "bin/strandline", "the server")
	flag.StringVar(&o.kbench, "kbench", "", "the load generator kbench, for throughput")
	flag.StringVar(&o.dir, "dir", "", "where the data goes; empty makes a temporary directory")
	flag.StringVar(&o.flush, "flush", "synced", "strandline.flush for latency")
	flag.DurationVar(&o.duration, "duration", 10*time.Minute, "how long latency is measured")
	flag.DurationVar(&o.every, "fault-every", 0, "a random fault as often; 0 means none")
	flag.BoolVar(&o.chores, "chores", false, "for latency: in turns of 8 s partitions are moved, records expire, metrics are read; then nothing of it")
	flag.Int64Var(&o.copyRate, "copy-rate", 32<<20, "with -chores: leader.replication.throttled.rate, bytes a second of a node")
	flag.IntVar(&o.rate, "rate", 10_000, "records a second for latency")
	flag.IntVar(&o.partitions, "partitions", 64, "partitions of the topic")
	flag.IntVar(&o.records, "records", 1_000_000, "records of a throughput run")
	flag.IntVar(&o.runs, "runs", 3, "throughput runs")
	flag.Parse()
	if err := run(o, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "cluster:", err)
		os.Exit(1)
	}
}

func run(o options, parts []string) error {
	if o.dir == "" {
		dir, err := os.MkdirTemp("", "cluster-")
		if err != nil {
			return err
		}
		defer func() { _ = os.RemoveAll(dir) }()
		o.dir = dir
	}
	for _, part := range parts {
		dir := filepath.Join(o.dir, part)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
		c, err := rig.New(rig.Options{Binary: o.binary, Dir: dir, Nodes: 3, Proxied: o.every > 0})
		if err != nil {
			return err
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		if err = c.Form(ctx); err == nil {
			switch part {
			case "throughput":
				err = o.throughput(c)
			case "latency":
				err = o.latency(c)
			default:
				err = fmt.Errorf("%q: throughput or latency", part)
			}
		}
		cancel()
		if err != nil {
			fmt.Fprint(os.Stderr, c.Tail(3000))
		}
		_ = c.Close()
		if err != nil {
			return err
		}
	}
	return nil
}

// throughput runs kbench under both flush policies.
func (o options) throughput(c *rig.Cluster) error {
	if o.kbench == "" {
		return fmt.Errorf("throughput needs -kbench")
	}
	var pids []string
	for _, n := range c.Nodes {
		pids = append(pids, strconv.Itoa(n.Pid()))
	}
	for _, flush := range []string{"replicated", "synced"} {
		fmt.Printf("throughput, 3 replicas, min ISR 2, %s\n", flush)
		cmd := exec.Command(o.kbench, "-mode", "throughput", "-brokers", strings.Join(c.Seeds(), ","), "-partitions", strconv.Itoa(o.partitions),
			"-replication", "3", "-topic-config", "min.insync.replicas=2,strandline.flush="+flush, "-records", strconv.Itoa(o.records),
			"-runs", strconv.Itoa(o.runs), "-server-pids", strings.Join(pids, ","))
		cmd.Stderr = os.Stdout // a line a run; the JSON on stdout says no more
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("kbench: %w", err)
		}
	}
	return nil
}
