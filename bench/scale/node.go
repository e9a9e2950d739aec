package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// node is one running broker with a data directory of its own.
type node struct {
	bench *bench
	dir   string
	cmd   *exec.Cmd
	addr  string // of the Kafka listener
	began time.Time
}

// start starts a node on an empty directory; stop removes it.
func (b *bench) start() (*node, error) {
	dir, err := os.MkdirTemp(b.dir, "strandline-scale-")
	if err != nil {
		return nil, err
	}
	n := &node{bench: b, dir: dir}
	if err := n.launch(); err != nil {
		n.stop()
		return nil, err
	}
	return n, nil
}

// launch starts the process and waits for its ready line.
func (n *node) launch() error {
	log, err := os.OpenFile(filepath.Join(n.dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	listen := n.addr // a restarted node keeps its address: clients come back to it
	if listen == "" {
		listen = "127.0.0.1:0"
	}
	n.cmd = exec.Command(n.bench.binary, "serve", "--node-id", "1", "--data-dir", filepath.Join(n.dir, "data"),
		"--listeners-0-name", "plain", "--listeners-0-address", listen, "--http-address", "127.0.0.1:0")
	n.cmd.Stderr = log
	out, err := n.cmd.StdoutPipe()
	if err != nil {
		return err
	}
	n.began = time.Now()
	if err := n.cmd.Start(); err != nil {
		return err
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		return fmt.Errorf("no ready line: %w (log: %s)", err, log.Name())
	}
	for _, f := range strings.Fields(line) {
		if a, ok := strings.CutPrefix(f, "kafka="); ok {
			n.addr = a
		}
	}
	return nil
}

// kill ends the process as kill -9 does.
func (n *node) kill() {
	if n.cmd != nil && n.cmd.Process != nil {
		n.cmd.Process.Kill() //nolint:errcheck // it may have ended
		n.cmd.Wait()         //nolint:errcheck // killed
	}
}

// stop kills the node and removes its data, unless SCALE_KEEP is set.
func (n *node) stop() {
	n.kill()
	if os.Getenv("SCALE_KEEP") == "" {
		os.RemoveAll(n.dir) //nolint:errcheck // a directory for temporary files
	}
}

// end stops the node gracefully and says how long that took.
func (n *node) end() (time.Duration, error) {
	began := time.Now()
	if err := n.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return 0, err
	}
	err := n.cmd.Wait()
	return time.Since(began), err
}

// rss is the resident memory in MiB.
func (n *node) rss() (float64, error) {
	b, err := os.ReadFile(n.proc("status"))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(b)) {
		if f := strings.Fields(line); len(f) == 3 && f[0] == "VmRSS:" {
			kib, err := strconv.ParseFloat(f[1], 64)
			return kib / 1024, err
		}
	}
	return 0, fmt.Errorf("no VmRSS in %s", n.proc("status"))
}

// files counts the open file descriptors.
func (n *node) files() (float64, error) {
	list, err := os.ReadDir(n.proc("fd"))
	return float64(len(list)), err
}

func (n *node) proc(name string) string {
	return filepath.Join("/proc", strconv.Itoa(n.cmd.Process.Pid), name)
}

// ticksPerSecond is USER_HZ, which Linux fixes at 100 for what /proc shows.
const ticksPerSecond = 100

// cpu is the processor time used so far, in seconds.
func (n *node) cpu() (float64, error) {
	b, err := os.ReadFile(n.proc("stat"))
	if err != nil {
		return 0, err
	}
	_, rest, _ := strings.Cut(string(b), ") ")
	f := strings.Fields(rest)
	const utime, stime = 11, 12
	if len(f) <= stime {
		return 0, fmt.Errorf("%s: %d fields", n.proc("stat"), len(f))
	}
	u, err := strconv.ParseFloat(f[utime], 64)
	if err != nil {
		return 0, err
	}
	s, err := strconv.ParseFloat(f[stime], 64)
	return (u + s) / ticksPerSecond, err
}

// load is the share of one core, in percent, that the node uses during the window.
func (n *node) load(ctx context.Context) (float64, error) {
	before, err := n.cpu()
	if err != nil {
		return 0, err
	}
	began := time.Now()
	if err := sleep(ctx, n.bench.window); err != nil {
		return 0, err
	}
	after, err := n.cpu()
	return 100 * (after - before) / time.Since(began).Seconds(), err
}

// noteIdle lets the node come to rest and notes what it costs then.
func (n *node) noteIdle(ctx context.Context, when string, cpuBar, rssBar bar) error {
	if err := sleep(ctx, n.bench.settle); err != nil {
		return err
	}
	cpu, err := n.load(ctx)
	if err != nil {
		return err
	}
	rss, err := n.rss()
	if err != nil {
		return err
	}
	files, err := n.files()
	if err != nil {
		return err
	}
	n.bench.note(when+": idle CPU", cpu, cpuBar)
	n.bench.note(when+": RSS", rss, rssBar)
	n.bench.note(when+": open files", files, bar{unit: "files"})
	return nil
}
