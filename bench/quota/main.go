// Command quota measures what a quota does: whether a producer that wants three times its quota is held to it, and what a client without a quota
// notices of it. bench/quota.sh builds and runs it.
//
// One broker serves both. A pair is two equal spans, of which the first has the other client alone and the second the producer beside it; pairs
// are interleaved (alone, beside, alone, beside), and the median of their factors counts. Producer and other client are processes of their own.
package main

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// The bars.
const (
	heldWithin = 0.05
	factorMax  = 1.3
)

const (
	heavyTopic, otherTopic = "heavy", "other"
	heavyID                = "heavy"
	// warmUp is how long a load runs before it is measured: the burst that a quota allows is spent, and code and buffers are warm.
	warmUp = 3 * time.Second
	// startMax is how long a broker may take to be ready.
	startMax = 10 * time.Second
)

type options struct {
	binary, work, flush string
	quota               float64 // bytes a second
	times               float64
	span                time.Duration
	pairs               int
}

func main() {
	var o options
	flag.StringVar(&o.binary, "strandline", "bin/strandline", "`FILE` to start")
	flag.StringVar(&o.work, "work", os.TempDir(), "`DIR` for data")
	flag.StringVar(&o.flush, "flush", "synced", "strandline.flush of the topics")
	flag.Float64Var(&o.quota, "quota", 4e6, "producer_byte_rate, `BYTES` a second")
	flag.Float64Var(&o.times, "times", 3, "how many times its quota the producer wants")
	flag.DurationVar(&o.span, "for", 30*time.Second, "how long each half of a pair is measured")
	flag.IntVar(&o.pairs, "pairs", 5, "number of pairs")
	role := flag.String("role", "", "heavy|other: be that client of the broker at -broker; the program starts itself so")
	broker := flag.String("broker", "", "`ADDRESS` of the broker, with -role")
	flag.Parse()
	if *role != "" {
		if err := play(*role, *broker, o); err != nil {
			fmt.Fprintln(os.Stderr, "quota:", *role+":", err)
			os.Exit(1)
		}
		return
	}
	ok, err := run(o)
	if err != nil {
		fmt.Fprintln(os.Stderr, "quota:", err)
	}
	if err != nil || !ok {
		os.Exit(1)
	}
}

// run measures the pairs and says whether the bars hold.
func run(o options) (bool, error) {
	dir, err := os.MkdirTemp(o.work, "quota-")
	if err != nil {
		return false, err
	}
	defer os.RemoveAll(dir)
	address, stop, err := startBroker(o.binary, filepath.Join(dir, "data"))
	if err != nil {
		return false, err
	}
	defer stop()
	if err := prepare(address, o); err != nil {
		return false, err
	}
	fmt.Printf("%d cores; quota %.0f bytes/s, wanted %g times that; %s; %d pairs of 2 x %v\n", runtime.NumCPU(), o.quota, o.times, o.flush, o.pairs, o.span)
	var factors, rates []float64
	for n := range o.pairs {
		alone, err := other(address, o)
		if err != nil {
			return false, err
		}
		heavy, err := begin("heavy", address, o)
		if err != nil {
			return false, err
		}
		beside, err := other(address, o)
		got, heavyErr := heavy.end()
		if err == nil {
			err = heavyErr
		}
		if err != nil {
			return false, err
		}
		rate, factor := got[0]/o.quota, beside[0]/alone[0]
		fmt.Printf("pair %d: producer %.1f%% of its quota (wanted %.0f%%, told to wait %.0f times); other client p99 %.2f ms alone, %.2f ms beside it: factor %.2f\n",
			n+1, 100*rate, 100*got[1]/o.quota, got[2], alone[0], beside[0], factor)
		factors, rates = append(factors, factor), append(rates, rate)
	}
	return report(factors, rates), nil
}

func report(factors, rates []float64) bool {
	all := true
	line := func(ok bool, format string, args ...any) {
		verdict := "holds"
		if !ok {
			verdict, all = "FAILS", false
		}
		fmt.Printf("%s: %s\n", verdict, fmt.Sprintf(format, args...))
	}
	slices.Sort(rates)
	low, high := rates[0], rates[len(rates)-1]
	line(low >= 1-heldWithin && high <= 1+heldWithin, "the producer gets %.1f%% to %.1f%% of its quota, median %.1f%%; at most %.0f%% off",
		100*low, 100*high, 100*rates[len(rates)/2], 100*heldWithin)
	slices.Sort(factors)
	line(factors[len(factors)/2] <= factorMax, "the other client's p99 changes by a factor of %.2f (median); at most %.1f", factors[len(factors)/2], factorMax)
	return all
}

// startBroker starts a node and returns its address.
func startBroker(binary, data string) (address string, stop func(), err error) {
	cmd := exec.Command(binary, "dev", "--data-dir", data, "--kafka", "127.0.0.1:0", "--http", "127.0.0.1:0")
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return "", nil, err
	}
	stop = func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }
	guard := time.AfterFunc(startMax, func() { _ = cmd.Process.Kill() })
	line, err := bufio.NewReader(out).ReadString('\n')
	guard.Stop()
	_, address, found := strings.Cut(line, "kafka=")
	if address, _, _ = strings.Cut(address, " "); err != nil || !found {
		stop()
		return "", nil, fmt.Errorf("the broker did not get ready: %q %w", line, err)
	}
	return address, stop, nil
}

// prepare makes the topics and sets the quota.
func prepare(address string, o options) error {
	cl, err := kgo.NewClient(kgo.SeedBrokers(address))
	if err != nil {
		return err
	}
	defer cl.Close()
	ctx, cancel := context.WithTimeout(context.Background(), startMax)
	defer cancel()
	adm := kadm.NewClient(cl)
	for _, t := range []string{heavyTopic, otherTopic} {
		made, err := adm.CreateTopic(ctx, 1, 1, map[string]*string{"strandline.flush": &o.flush}, t)
		if err == nil {
			err = made.Err
		}
		if err != nil {
			return err
		}
	}
	id := heavyID
	set, err := adm.AlterClientQuotas(ctx, []kadm.AlterClientQuotaEntry{{
		Entity: kadm.ClientQuotaEntity{{Type: "client-id", Name: &id}}, Ops: []kadm.AlterClientQuotaOp{{Key: "producer_byte_rate", Value: o.quota}},
	}})
	for _, s := range set {
		if err == nil {
			err = s.Err
		}
	}
	return err
}
