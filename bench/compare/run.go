package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Bounds of one run.
const (
	readyMax = 30 * time.Second
	// settle is how long a server is left alone before its idle memory is read.
	settle = time.Second
	// warmBytes of memory are used and let go before a server starts. On a virtual machine the host gives out memory at its first use, here
	// at 2.3 us a KiB: which broker meets such pages would be chance.
	warmBytes = 2600 << 20
)

// runOnce starts a target, runs the suite's load, and stops it.
func (f *flags) runOnce(suite string, t target) result {
	r := result{Suite: suite, Target: t.name, Values: map[string]float64{}}
	if suite == suiteThroughput {
		if err := warm(); err != nil {
			r.Error = err.Error()
			return r
		}
	}
	began := time.Now()
	s, err := f.start(t)
	if err != nil {
		r.Error = err.Error()
		return r
	}
	defer s.stop()
	if suite != suiteStart {
		if err := s.await(); err != nil {
			r.Error = err.Error() + ": " + s.tail()
			return r
		}
		<-time.After(settle)
		r.Values["idle_rss_mb"] = residentMB(s.cmd.Process.Pid)
	}
	load := f.load(suite, t, s, began)
	r.Command = filepath.Base(load.Path) + " " + strings.Join(load.Args[1:], " ")
	before := readUsage()
	values, err := runLoad(load)
	r.Foreign = foreignSince(before)
	if err != nil {
		r.Error = err.Error() + ": " + s.tail()
		return r
	}
	for k, v := range values {
		r.Values[k] = v
	}
	r.derive()
	return r
}

// derive computes CPU a record.
func (r *result) derive() {
	for _, phase := range []string{"produce", "consume", "latency"} {
		if n := r.Values[phase+".records"]; n > 0 {
			r.Values[phase+".server_us"] = r.Values[phase+".server_cpu_s"] / n * 1e6
			r.Values[phase+".client_us"] = r.Values[phase+".client_cpu_s"] / n * 1e6
		}
	}
}

// warm uses memory and lets it go.
func warm() error {
	name := filepath.Join("/dev/shm", "compare-warm-"+strconv.Itoa(os.Getpid()))
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	defer os.Remove(name)
	defer f.Close()
	_, err = io.CopyN(f, zeros{}, warmBytes)
	return err
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// await waits until the server takes connections.
func (s *server) await() error {
	for deadline := time.Now().Add(readyMax); ; <-time.After(20 * time.Millisecond) {
		c, err := net.DialTimeout("tcp", s.addr, time.Second)
		if err == nil {
			return c.Close()
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("no connection in %v: %w", readyMax, err)
		}
	}
}

// load is the client process of a suite.
func (f *flags) load(suite string, t target, s *server, began time.Time) *exec.Cmd {
	seconds := strconv.Itoa(f.seconds) + "s"
	args := []string{"-server-pids", strconv.Itoa(s.cmd.Process.Pid)}
	switch suite {
	case suiteThroughput:
		args = append(args, "-records", strconv.Itoa(f.records))
	case suiteLinger5:
		args = append(args, "-mode", "latency", "-rate", "10000", "-duration", seconds, "-linger", "5ms")
	case suiteLinger0:
		args = append(args, "-mode", "latency", "-rate", "10000", "-duration", seconds, "-linger", "0")
	case suiteStart:
		args = append(args, "-mode", "firstack", "-since", strconv.FormatInt(began.UnixNano(), 10))
	}
	if t.kind == kindNATS {
		return exec.Command(filepath.Join(f.bin, "natsbench"), append(args, "-addr", s.addr)...)
	}
	if suite == suiteStart {
		args = append(args, "-partitions", "1", "-linger", "0")
	}
	if t.nothing {
		args = append(args, "-verify=false")
	}
	if t.topicConfig != "" {
		args = append(args, "-topic-config", t.topicConfig)
	}
	return exec.Command(filepath.Join(f.bin, "kbench"), append(args, "-quiet", "-runs", "1", "-brokers", s.addr)...)
}

// runLoad runs a client and returns the figures it prints.
func runLoad(load *exec.Cmd) (map[string]float64, error) {
	var out, errOut bytes.Buffer
	load.Stdout, load.Stderr = &out, &errOut
	if err := load.Run(); err != nil {
		return nil, fmt.Errorf("%w: %s", err, errOut.Bytes()[max(0, errOut.Len()-500):])
	}
	var report struct {
		Median map[string]float64 `json:"median"`
	}
	err := json.Unmarshal(out.Bytes(), &report)
	return report.Median, err
}
