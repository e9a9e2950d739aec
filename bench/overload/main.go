// Command overload offers a broker ten times what it can take and says what becomes of it: goodput, memory, the latency of others, and how
// soon it is itself again. bench/overload.sh builds and runs it.
//
// The load is open: publishes fall due at ten times the measured maximum, whether or not earlier ones were answered. A connection keeps
// at most window publishes unanswered, as clients do; what falls due beyond that, or while the socket takes no more, is counted as shed.
package main

import (
	"bufio"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"
)

const (
	topic      = "overload"
	partitions = 64
	// calibrate is how long each attempt at the maximum lasts, recoverFor how long the broker is watched afterwards.
	calibrate  = 10 * time.Second
	recoverFor = 15 * time.Second
	// times is how many times its maximum the broker is offered.
	times = 10
	// offerMore makes up for connections that begin late: what counts as offered is what fell due.
	offerMore = 1.1
)

// The bars.
const (
	goodputMin  = 0.8
	probeP99Max = 500 * time.Millisecond
	recoverMax  = 10 * time.Second
)

type options struct {
	binary, work, flush string
	memory              int64
	batch               int
	duration            time.Duration
}

func main() {
	var o options
	flag.StringVar(&o.binary, "strandline", "bin/strandline", "`FILE` to start")
	flag.StringVar(&o.work, "work", os.TempDir(), "`DIR` for data; a minute may take 10 GiB")
	flag.StringVar(&o.flush, "flush", "synced", "strandline.flush of the topic")
	flag.Int64Var(&o.memory, "memory", 256<<20, "queued.max.request.bytes, which the resident memory must stay below")
	flag.IntVar(&o.batch, "batch", 64<<10, "bytes of a batch of records of 1 KiB")
	flag.DurationVar(&o.duration, "for", 2*time.Minute, "how long the overload lasts")
	probe := flag.String("probe", "", "only ask the broker at `ADDRESS` for metadata, until standard input ends; the program starts itself so")
	flag.Parse()
	if *probe != "" {
		probeAll(*probe)
		return
	}
	ok, err := run(o)
	if err != nil {
		fmt.Fprintln(os.Stderr, "overload:", err)
	}
	if err != nil || !ok {
		os.Exit(1)
	}
}

func run(o options) (ok bool, err error) {
	dir, err := os.MkdirTemp(o.work, "overload-")
	if err != nil {
		return false, err
	}
	defer os.RemoveAll(dir)
	b, err := startBroker(o, dir)
	if err != nil {
		return false, err
	}
	defer b.stop()
	if err := b.createTopic(o.flush); err != nil {
		return false, err
	}
	fmt.Printf("%d cores; batches of %d bytes, %s, %d partitions; queued.max.request.bytes=%d\n", runtime.NumCPU(), o.batch, o.flush, partitions, o.memory)
	idle := watch(b, func() error { <-time.After(2 * time.Second); return nil })
	idle.print("idle", 0)
	most, best := 0.0, 0
	for _, conns := range []int{4, 16, 64} {
		l := &load{address: b.address, conns: conns, batch: o.batch}
		w := watch(b, func() error { return l.run(calibrate) })
		rate := l.rate(calibrate)
		w.print(fmt.Sprint(conns, " connections"), rate)
		if w.err != nil {
			return false, w.err
		}
		if rate > most {
			most, best = rate, conns
		}
	}
	heavy := &load{address: b.address, conns: times * best, batch: o.batch, offer: offerMore * times * most}
	over := watch(b, func() error { return heavy.run(o.duration) })
	over.print(fmt.Sprint(times, " times"), heavy.rate(o.duration))
	if over.err != nil {
		return false, over.err
	}
	back, err := recovery(b, o, best, most)
	if err != nil {
		return false, err
	}
	return report(o, outcome{b, heavy, over, most, back}), nil
}

// recovery offers the calibrated load again, at once, and returns after how long a whole second of it is as good as before; 0 for never.
func recovery(b *broker, o options, conns int, most float64) (time.Duration, error) {
	began := time.Now()
	for time.Since(began) < recoverFor {
		l := &load{address: b.address, conns: conns, batch: o.batch}
		w := watch(b, func() error { return l.run(time.Second) })
		w.print("after", l.rate(time.Second))
		if w.err != nil {
			return 0, w.err
		}
		if l.rate(time.Second) >= goodputMin*most && w.percentile(99) < probeP99Max/5 {
			return time.Since(began), nil
		}
	}
	return 0, nil
}

// outcome is what an overload did: the broker, the load, what was seen meanwhile, the maximum before, and the time back to normal.
type outcome struct {
	b     *broker
	heavy *load
	over  *window
	most  float64
	back  time.Duration
}

// report prints the bars and says whether all hold.
func report(o options, r outcome) bool {
	heavy, over, most, back, all := r.heavy, r.over, r.most, r.back, true
	line := func(ok bool, format string, args ...any) {
		verdict := "holds"
		if !ok {
			verdict, all = "FAILS", false
		}
		fmt.Printf("%s: %s\n", verdict, fmt.Sprintf(format, args...))
	}
	got := heavy.rate(o.duration) / most
	fmt.Printf("offered %.1f times the maximum: %d publishes fell due, %d were sent, %d shed, %d acknowledged, %d refused\n",
		float64(heavy.due.Load())*float64(o.batch)/o.duration.Seconds()/most, heavy.due.Load(), heavy.sent.Load(), heavy.due.Load()-heavy.sent.Load(),
		heavy.acked.Load(), heavy.refused.Load())
	line(float64(heavy.due.Load())*float64(o.batch)/o.duration.Seconds() >= times*most, "the load was offered")
	line(got >= goodputMin, "goodput is %.2f of the maximum, at least %.1f", got, goodputMin)
	line(over.rss < o.memory, "resident memory was at most %d MiB, queued.max.request.bytes is %d MiB", over.rss>>20, o.memory>>20)
	line(over.percentile(99) < probeP99Max, "metadata p99 on other connections is %v, below %v", over.percentile(99), probeP99Max)
	line(over.failed == 0 && len(over.latencies) > 0, "%d of %d metadata requests failed", over.failed, len(over.latencies))
	line(back > 0 && back <= recoverMax, "back to normal after %v, within %v", back.Round(time.Millisecond), recoverMax)
	line(r.b.alive(), "the process lives")
	return all
}

// broker is the process under test.
type broker struct {
	cmd     *exec.Cmd
	address string
	ended   chan struct{}
}

func startBroker(o options, dir string) (*broker, error) {
	cmd := exec.Command(o.binary, "serve", "--node-id", "1", "--data-dir", dir+"/data", "--listeners-0-name", "plain",
		"--listeners-0-address", "127.0.0.1:0", "--http-address", "none", "--log-level", "warn",
		"--kafka-queued-max-request-bytes", fmt.Sprint(o.memory))
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	b := &broker{cmd: cmd, ended: make(chan struct{})}
	line, err := bufio.NewReader(out).ReadString('\n')
	go func() { defer close(b.ended); _ = cmd.Wait() }()
	_, rest, found := strings.Cut(line, "kafka=")
	if !found {
		b.stop()
		return nil, fmt.Errorf("no ready line: %q %w", line, err)
	}
	b.address, _, _ = strings.Cut(strings.TrimSpace(rest), " ")
	return b, nil
}

func (b *broker) alive() bool {
	select {
	case <-b.ended:
		return false
	default:
		return true
	}
}

func (b *broker) stop() {
	_ = b.cmd.Process.Signal(os.Interrupt)
	<-b.ended
}
