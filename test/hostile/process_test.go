//go:build linux

package hostile

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// waitMax bounds what the tests wait for; it only ends a hopeless test.
const waitMax = 30 * time.Second

var (
	buildOnce sync.Once
	errBuild  error
	builtIn   string
)

func TestMain(m *testing.M) {
	code := m.Run()
	if builtIn != "" {
		_ = os.RemoveAll(builtIn)
	}
	os.Exit(code)
}

// builtBinary returns the path of the binary, built once for the whole test run.
func builtBinary(t *testing.T) string {
	t.Helper()
	buildOnce.Do(func() {
		if builtIn, errBuild = os.MkdirTemp("", "strandline-hostile-"); errBuild != nil {
			return
		}
		c := exec.Command("go", "build", "-o", filepath.Join(builtIn, "strandline"), "../../cmd/strandline")
		c.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := c.CombinedOutput(); err != nil {
			errBuild = fmt.Errorf("build: %w: %s", err, out)
		}
	})
	if errBuild != nil {
		t.Fatal(errBuild)
	}
	return filepath.Join(builtIn, "strandline")
}

// node is one broker process.
type node struct {
	t       *testing.T
	pid     int
	address string
	log     *lockedBuffer
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// start runs `dev` with at most files open files (0: as many as the test itself), until the test ends; it must live until then.
func start(t *testing.T, files int) *node {
	t.Helper()
	limit := ":"
	if files > 0 {
		limit = fmt.Sprintf("ulimit -n %d", files)
	}
	cmd := exec.Command("sh", "-c", limit+`; exec "$0" dev --data-dir "$1" --kafka 127.0.0.1:0 --http 127.0.0.1:0`, builtBinary(t), t.TempDir())
	n := &node{t: t, log: &lockedBuffer{}}
	cmd.Stderr = n.log
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	n.pid = cmd.Process.Pid
	ready, ended := make(chan string, 1), make(chan struct{})
	go func() {
		defer close(ended)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			if m := regexp.MustCompile(`^ready kafka=(\S+)`).FindStringSubmatch(lines.Text()); m != nil {
				ready <- m[1]
			}
		}
		_ = cmd.Wait()
	}()
	t.Cleanup(func() {
		select {
		case <-ended:
			t.Errorf("the node has ended: %s", n.log)
		default:
			_ = cmd.Process.Kill()
			<-ended
		}
	})
	select {
	case n.address = <-ready:
	case <-ended:
		t.Fatalf("the node ended before it was ready: %s", n.log)
	case <-time.After(waitMax):
		t.Fatalf("the node is not ready: %s", n.log)
	}
	return n
}

// memory returns a value of /proc/PID/status in bytes: VmRSS, or VmHWM for its highest since resetPeak.
func (n *node) memory(name string) int64 {
	n.t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", n.pid))
	must(n.t, err)
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, name+":"); ok {
			kib, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
			must(n.t, err)
			return kib << 10
		}
	}
	n.t.Fatalf("no %s in the status of the process", name)
	return 0
}

// resetPeak makes VmHWM start anew.
func (n *node) resetPeak() {
	n.t.Helper()
	must(n.t, os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", n.pid), []byte("5"), 0))
}

// openFiles is how many descriptors the process holds.
func (n *node) openFiles() int {
	n.t.Helper()
	all, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", n.pid))
	must(n.t, err)
	return len(all)
}

// client connects a real client, and creates the topic that it works with.
func (n *node) client(topic string, configs map[string]*string) *client {
	n.t.Helper()
	cl, err := kgo.NewClient(kgo.SeedBrokers(n.address), kgo.DefaultProduceTopic(topic), kgo.ConsumeTopics(topic))
	must(n.t, err)
	n.t.Cleanup(cl.Close)
	ctx, cancel := context.WithTimeout(context.Background(), waitMax)
	defer cancel()
	_, err = kadm.NewClient(cl).CreateTopic(ctx, 1, 1, configs, topic)
	must(n.t, err)
	return &client{n.t, cl}
}

// client is a real client that publishes and reads back.
type client struct {
	t *testing.T
	*kgo.Client
}

// roundTrip publishes a value and reads up to it.
func (c *client) roundTrip(value string) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), waitMax)
	defer cancel()
	if err := c.ProduceSync(ctx, kgo.StringRecord(value)).FirstErr(); err != nil {
		c.t.Fatalf("publish %.40s: %v", value, err)
	}
	for {
		fs := c.PollFetches(ctx)
		if err := fs.Err(); err != nil {
			c.t.Fatalf("fetch up to %.40s: %v", value, err)
		}
		for _, r := range fs.Records() {
			if string(r.Value) == value {
				return
			}
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// eventually waits for a condition that something else makes true; the bound only ends a hopeless test.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(waitMax); !ok(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not in time: %s", what)
		}
	}
}
