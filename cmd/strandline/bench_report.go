package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"runtime/debug"
	"time"
)

// benchReport is what a run prints, with -o json as one object. Figures that were not measured are left out.
type benchReport struct {
	Kind        string  `json:"kind"`
	Machine     machine `json:"machine"`
	Client      string  `json:"client"`
	Brokers     string  `json:"brokers"`
	Topic       string  `json:"topic"`
	Partitions  int     `json:"partitions"`
	Replicas    int     `json:"replicas"`
	MinISR      string  `json:"minInsyncReplicas"`
	Flush       string  `json:"flush"`
	Acks        string  `json:"acks"`
	Compression string  `json:"compression"`
	RecordBytes int     `json:"recordBytes"`
	Fanout      int     `json:"fanout"`

	Records          int64   `json:"records"`
	Seconds          float64 `json:"seconds"`
	RecordsPerSecond float64 `json:"recordsPerSecond"`
	MBPerSecond      float64 `json:"mbPerSecond"` // 10^6 bytes of values
	Failed           int64   `json:"failed"`
	Missing          int64   `json:"missing"` // acknowledged and not consumed

	ClientMicrosPerRecord float64 `json:"clientCpuMicrosPerRecord,omitempty"`
	ServerMicrosPerRecord float64 `json:"serverCpuMicrosPerRecord,omitempty"`
	ServerMemoryBytes     float64 `json:"serverMemoryBytes,omitempty"`

	Rate       int      `json:"rate,omitempty"`
	Ack        *latency `json:"ack,omitempty"`
	EndToEnd   *latency `json:"endToEnd,omitempty"`
	PacerDelay *latency `json:"pacerDelay,omitempty"`
}

// measured sets the figures that follow from a number of records and the resources used over a time.
func (r *benchReport) measured(records int64, m measurement) {
	r.Records, r.Seconds = records, m.elapsed.Seconds()
	if records > 0 && r.Seconds > 0 {
		r.RecordsPerSecond = float64(records) / r.Seconds
		r.MBPerSecond = r.RecordsPerSecond * float64(r.RecordBytes) / 1e6
		r.ClientMicrosPerRecord = float64(m.clientCPU.Microseconds()) / float64(records)
		r.ServerMicrosPerRecord = m.serverCPU.Seconds() * 1e6 / float64(records)
	}
	r.ServerMemoryBytes = m.serverMemory
}

// print writes the report; the error says when a run that finished must not be trusted.
func (r *benchReport) print(p printer) error {
	if p.json {
		if err := p.object(r); err != nil {
			return err
		}
	} else if err := r.printText(p.w); err != nil {
		return err
	}
	switch {
	case r.Failed > 0:
		return &failure{what: fmt.Sprintf("%d of %d records failed", r.Failed, r.Failed+r.Records)}
	case r.Missing > 0:
		return &failure{what: fmt.Sprintf("%d acknowledged records were not consumed", r.Missing)}
	}
	return nil
}

func (r *benchReport) printText(w io.Writer) error {
	b := bufio.NewWriter(w)
	m := r.Machine
	fmt.Fprintf(b, "machine      %s, %d CPUs, %.1f GiB, %s, %s\n", m.CPU, m.CPUs, float64(m.MemoryBytes)/(1<<30), m.OS, m.Go)
	fmt.Fprintf(b, "client       %s against %s\n", r.Client, r.Brokers)
	fmt.Fprintf(b, "topic        %s: %d partitions, %d replicas, min.insync.replicas=%s, flush policy %s\n", r.Topic, r.Partitions, r.Replicas, r.MinISR, r.Flush)
	fmt.Fprintf(b, "load         %d-byte values, acks=%s, compression=%s, fan-out %d\n", r.RecordBytes, r.Acks, r.Compression, r.Fanout)
	if r.Rate > 0 {
		fmt.Fprintf(b, "schedule     %d records a second, open loop: a latency counts from the time a record was due\n", r.Rate)
	}
	fmt.Fprintf(b, "%-12s %d records in %.2f s: %.0f records/s, %.1f MB/s; %d failed, %d missing\n", r.Kind, r.Records, r.Seconds, r.RecordsPerSecond, r.MBPerSecond, r.Failed, r.Missing)
	if r.ClientMicrosPerRecord > 0 {
		fmt.Fprintf(b, "CPU          client %.2f us a record", r.ClientMicrosPerRecord)
		if r.ServerMicrosPerRecord > 0 {
			fmt.Fprintf(b, ", broker %.2f us a record, broker memory %.1f MiB", r.ServerMicrosPerRecord, r.ServerMemoryBytes/(1<<20))
		}
		fmt.Fprintln(b)
	}
	for _, l := range []struct {
		name string
		l    *latency
	}{{"ack", r.Ack}, {"end to end", r.EndToEnd}, {"pacer late", r.PacerDelay}} {
		if l.l != nil {
			fmt.Fprintf(b, "%-12s p50 %.2f  p90 %.2f  p99 %.2f  p99.9 %.2f  max %.2f ms (%d measured)\n", l.name, l.l.P50, l.l.P90, l.l.P99, l.l.P999, l.l.Max, l.l.Count)
		}
	}
	return b.Flush()
}

// measurement is what a stretch of load used.
type measurement struct {
	elapsed, clientCPU, serverCPU time.Duration
	serverMemory                  float64 // bytes
}

// stopwatch measures from its start to stop.
type stopwatch struct {
	url       string // of the broker's metrics, "" when nobody named it
	began     time.Time
	clientCPU time.Duration
	server    serverUsage
}

func (b *bench) startWatch(ctx context.Context) stopwatch {
	w := stopwatch{}
	if b.session.httpGiven {
		w.url = b.session.http + "/metrics"
		w.server = readServerUsage(ctx, w.url)
	}
	w.clientCPU, w.began = processCPU(), time.Now()
	return w
}

func (w stopwatch) stop(ctx context.Context) measurement {
	m := measurement{elapsed: time.Since(w.began), clientCPU: processCPU() - w.clientCPU}
	if w.url == "" || !w.server.known {
		return m
	}
	if now := readServerUsage(ctx, w.url); now.known {
		m.serverCPU, m.serverMemory = now.cpu-w.server.cpu, now.memory
	}
	return m
}

// serverUsage is what the broker says it has used.
type serverUsage struct {
	known  bool
	cpu    time.Duration
	memory float64 // bytes
}

// readServerUsage reads the two figures from a Prometheus page; not known when it cannot be read, which costs only these figures.
func readServerUsage(ctx context.Context, url string) serverUsage {
	const cpu, memory = "process_cpu_seconds_total", "process_resident_memory_bytes"
	read := readMetrics(ctx, url, cpu, memory)
	_, known := read[cpu]
	return serverUsage{known: known, cpu: time.Duration(read[cpu] * float64(time.Second)), memory: read[memory]}
}

// moduleVersion is the version of a library in this binary.
func moduleVersion(path string) string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, d := range info.Deps {
			if d.Path == path {
				return d.Version
			}
		}
	}
	return "(unknown version)"
}
