package main

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

const (
	// probes are connections that ask for metadata, each every probeEvery.
	probes     = 10
	probeEvery = 50 * time.Millisecond
	// probeMax is when a probe counts as failed.
	probeMax = 10 * time.Second
	rssEvery = 50 * time.Millisecond
)

// window is what was seen while something ran.
type window struct {
	err       error
	latencies []time.Duration // of the probes, from when they fell due
	failed    int
	rss       int64 // the largest, in bytes
}

// watch probes the broker while do runs. The probes are a process of their own: among the load's goroutines, thousands of which are ready to
// run at a time, they would measure how long they wait for each other.
func watch(b *broker, do func() error) *window {
	w := &window{}
	p, err := startProbes(b.address)
	if err != nil {
		w.err = err
		return w
	}
	var wg sync.WaitGroup
	stop := make(chan struct{})
	wg.Go(func() {
		tick := time.NewTicker(rssEvery)
		defer tick.Stop()
		for {
			w.rss = max(w.rss, b.resident())
			select {
			case <-stop:
				return
			case <-tick.C:
			}
		}
	})
	w.err = do()
	close(stop)
	wg.Wait()
	if err := p.finish(w); w.err == nil {
		w.err = err
	}
	slices.Sort(w.latencies)
	return w
}

// probing is the process of the probes.
type probing struct {
	cmd *exec.Cmd
	in  io.Closer // its end ends the probes
	out io.Reader
}

func startProbes(address string) (*probing, error) {
	cmd := exec.Command(os.Args[0], "-probe", address)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	return &probing{cmd, in, out}, cmd.Start()
}

// finish ends the probes and takes what they saw.
func (p *probing) finish(w *window) error {
	p.in.Close()
	for lines := bufio.NewScanner(p.out); lines.Scan(); {
		took, err := time.ParseDuration(lines.Text())
		if err != nil {
			return fmt.Errorf("probes: %w", err)
		}
		if took < 0 {
			w.failed++
		} else {
			w.latencies = append(w.latencies, took)
		}
	}
	return p.cmd.Wait()
}

// probeAll is the process of the probes: until standard input ends it asks, then it prints how long each answer took, -1s for a failure.
func probeAll(address string) {
	stop := make(chan struct{})
	go func() { _, _ = io.Copy(io.Discard, os.Stdin); close(stop) }()
	var mu sync.Mutex
	var wg sync.WaitGroup
	for range probes {
		wg.Go(func() {
			took, failed := probe(address, stop)
			mu.Lock()
			defer mu.Unlock()
			for _, d := range took {
				fmt.Println(d)
			}
			for range failed {
				fmt.Println(-time.Second)
			}
		})
	}
	wg.Wait()
}

func (w *window) percentile(p int) time.Duration {
	if len(w.latencies) == 0 {
		return 0
	}
	return w.latencies[min(len(w.latencies)-1, len(w.latencies)*p/100)].Round(10 * time.Microsecond)
}

func (w *window) print(name string, rate float64) {
	fmt.Printf("%-16s %8.1f MB/s acknowledged; metadata p50 %v p99 %v max %v (%d asked, %d failed); at most %d MiB resident\n",
		name, rate/1e6, w.percentile(50), w.percentile(99), w.percentile(100), len(w.latencies)+w.failed, w.failed, w.rss>>20)
}

// probe asks for metadata at fixed times and returns how long each answer took from then on. A failure ends it.
func probe(address string, stop chan struct{}) (took []time.Duration, failed int) {
	nc, err := net.Dial("tcp", address)
	if err != nil {
		return nil, 1
	}
	defer nc.Close()
	req := kmsg.NewPtrMetadataRequest()
	req.Version = 12
	t, name := kmsg.NewMetadataRequestTopic(), topic
	t.Topic = &name
	req.Topics = append(req.Topics, t)
	frame := kmsg.NewRequestFormatter(kmsg.FormatterClientID("probe")).AppendRequest(nil, req, 1)
	var size [4]byte
	for due := time.Now(); ; due = due.Add(probeEvery) {
		select {
		case <-stop:
			return took, failed
		case <-time.After(time.Until(due)):
		}
		_ = nc.SetDeadline(time.Now().Add(probeMax))
		if _, err := nc.Write(frame); err != nil {
			return took, failed + 1
		}
		if _, err := io.ReadFull(nc, size[:]); err != nil {
			return took, failed + 1
		}
		if _, err := io.CopyN(io.Discard, nc, int64(binary.BigEndian.Uint32(size[:]))); err != nil {
			return took, failed + 1
		}
		took = append(took, time.Since(due))
	}
}

// resident is the broker's resident memory in bytes; 0 when it is gone.
func (b *broker) resident() int64 {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", b.cmd.Process.Pid))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			kib, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
			if err != nil {
				return 0
			}
			return kib << 10
		}
	}
	return 0
}
