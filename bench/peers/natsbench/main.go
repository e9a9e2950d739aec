// Command natsbench puts the load of kbench on a NATS JetStream server: one stream on files, one subject, one connection. It prints its
// figures as kbench does, so that compare reads both alike. Latencies of mode latency count from each record's due time.
package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/nats-io/nats.go"
)

var (
	addr       = flag.String("addr", "127.0.0.1:4222", "server")
	mode       = flag.String("mode", "throughput", "throughput, latency or firstack")
	records    = flag.Int("records", 1_000_000, "records of a throughput run")
	rate       = flag.Float64("rate", 10_000, "records a second in mode latency")
	duration   = flag.Duration("duration", 5*time.Second, "length of mode latency")
	size       = flag.Int("size", 1024, "bytes of a record")
	window     = flag.Int("window", 5000, "unacknowledged records in mode throughput")
	serverPids = flag.String("server-pids", "", "process id of the server")
	since      = flag.Int64("since", 0, "count mode firstack from this Unix time in nanoseconds")
	_          = flag.String("linger", "", "ignored: each record is sent at once")
)

const subject = "bench.x"

func main() {
	flag.Parse()
	figures := map[string]float64{}
	var err error
	switch *mode {
	case "firstack":
		err = firstAck(figures)
	case "latency":
		err = openLoop(figures)
	default:
		err = throughput(figures)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "natsbench:", err)
		os.Exit(1)
	}
	json.NewEncoder(os.Stdout).Encode(map[string]any{"median": figures})
}

// connect makes the stream as well.
func connect() (*nats.Conn, nats.JetStreamContext, error) {
	nc, err := nats.Connect("nats://" + *addr)
	if err != nil {
		return nil, nil, err
	}
	js, err := nc.JetStream(nats.MaxWait(2 * time.Second))
	if err == nil {
		_, err = js.AddStream(&nats.StreamConfig{Name: "bench", Subjects: []string{subject}, Storage: nats.FileStorage})
	}
	if err != nil {
		nc.Close()
		return nil, nil, err
	}
	return nc, js, nil
}

func body() []byte { return bytes.Repeat([]byte("n"), *size) }

func firstAck(figures map[string]float64) error {
	for deadline := time.Now().Add(30 * time.Second); ; <-time.After(2 * time.Millisecond) {
		nc, js, err := connect()
		if err == nil {
			_, err = js.Publish(subject, body())
			nc.Close()
		}
		if err == nil {
			figures["firstack.seconds"] = float64(time.Now().UnixNano()-*since) / 1e9
			_, figures["firstack.server_rss_mb"], _ = server()
			return nil
		}
		if time.Now().After(deadline) {
			return err
		}
	}
}

// acks counts the answers to records, which may come in any order.
type acks struct {
	sync.Mutex
	due   []time.Time
	ms    []float64
	bad   int
	slots chan struct{}
	all   sync.WaitGroup
}

// listen takes the answers: the subject of each ends in the record's number.
func (a *acks) listen(nc *nats.Conn, inbox string) error {
	_, err := nc.Subscribe(inbox+".*", func(m *nats.Msg) {
		i, _ := strconv.Atoi(m.Subject[len(inbox)+1:])
		a.Lock()
		a.ms = append(a.ms, time.Since(a.due[i]).Seconds()*1e3)
		if len(m.Data) == 0 || bytes.Contains(m.Data, []byte(`"error"`)) {
			a.bad++
		}
		a.Unlock()
		<-a.slots
		a.all.Done()
	})
	if err == nil {
		err = nc.Flush()
	}
	return err
}

// publish sends n records, each when wait says so, and waits for all answers.
func publish(nc *nats.Conn, n, window int, wait func(i int) time.Time) (*acks, error) {
	a := &acks{due: make([]time.Time, n), slots: make(chan struct{}, window)}
	inbox := nats.NewInbox()
	if err := a.listen(nc, inbox); err != nil {
		return nil, err
	}
	a.all.Add(n)
	b := body()
	for i := range n {
		a.due[i] = wait(i)
		a.slots <- struct{}{}
		if err := nc.PublishRequest(subject, inbox+"."+strconv.Itoa(i), b); err != nil {
			return nil, err
		}
	}
	a.all.Wait()
	if a.bad > 0 {
		return nil, fmt.Errorf("%d of %d records were refused", a.bad, n)
	}
	return a, nil
}

func openLoop(figures map[string]float64) error {
	nc, _, err := connect()
	if err != nil {
		return err
	}
	defer nc.Close()
	n, start := int(*rate*duration.Seconds()), time.Now()
	end := phase(figures, "latency")
	a, err := publish(nc, n, n, func(i int) time.Time {
		due := start.Add(time.Duration(float64(i) * float64(time.Second) / *rate))
		for d := time.Until(due); d > 0; d = time.Until(due) { // Go's timers may be 1 ms late
			ts := syscall.NsecToTimespec(int64(d))
			syscall.Nanosleep(&ts, nil)
		}
		return due
	})
	if err != nil {
		return err
	}
	end(n)
	slices.Sort(a.ms)
	for name, p := range map[string]float64{"p50": .5, "p99": .99, "p99_9": .999} {
		figures["latency.latency_ms."+name] = a.ms[min(int(p*float64(n)), n-1)]
	}
	return nil
}

func throughput(figures map[string]float64) error {
	nc, js, err := connect()
	if err != nil {
		return err
	}
	defer nc.Close()
	end := phase(figures, "produce")
	if _, err := publish(nc, *records, *window, func(int) time.Time { return time.Now() }); err != nil {
		return err
	}
	end(*records)
	end = phase(figures, "consume")
	done := make(chan struct{})
	seen := 0
	_, err = js.Subscribe(subject, func(*nats.Msg) {
		if seen++; seen == *records {
			close(done)
		}
	}, nats.OrderedConsumer())
	if err != nil {
		return err
	}
	select {
	case <-done:
	case <-time.After(2 * time.Minute):
		return fmt.Errorf("not all records were consumed in time")
	}
	end(*records)
	return nil
}

// phase begins a timed phase; the function that it returns ends it.
func phase(figures map[string]float64, name string) func(n int) {
	start, own := time.Now(), ownCPU()
	cpu, _, _ := server()
	return func(n int) {
		seconds := time.Since(start).Seconds()
		after, rss, peak := server()
		figures[name+".records"], figures[name+".seconds"] = float64(n), seconds
		figures[name+".records_per_s"] = float64(n) / seconds
		figures[name+".client_cpu_s"], figures[name+".server_cpu_s"] = ownCPU()-own, after-cpu
		figures[name+".server_rss_mb"], figures[name+".server_peak_rss_mb"] = rss, peak
	}
}

func ownCPU() float64 {
	var r syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &r)
	return float64(r.Utime.Nano()+r.Stime.Nano()) / 1e9
}

// server is the CPU time and memory of the server's process.
func server() (cpu, rssMB, peakMB float64) {
	dir := "/proc/" + *serverPids + "/"
	stat, _ := os.ReadFile(dir + "stat")
	text := string(stat)
	if f := strings.Fields(text[strings.LastIndexByte(text, ')')+1:]); len(f) > 12 {
		user, _ := strconv.ParseFloat(f[11], 64)
		system, _ := strconv.ParseFloat(f[12], 64)
		cpu = (user + system) / 100 // USER_HZ
	}
	status, _ := os.ReadFile(dir + "status")
	for line := range strings.Lines(string(status)) {
		name, rest, _ := strings.Cut(line, ":")
		f := strings.Fields(rest)
		if len(f) == 0 {
			continue
		}
		kib, _ := strconv.ParseFloat(f[0], 64)
		switch name {
		case "VmRSS":
			rssMB = kib * 1024 / 1e6
		case "VmHWM":
			peakMB = kib * 1024 / 1e6
		}
	}
	return cpu, rssMB, peakMB
}
