package chaos

import (
	"bufio"
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"strandline.dev/test/chaos/rig"
)

// startTimeMax bounds one start of a node, recovery included; a node that needs longer has hung.
const startTimeMax = 30 * time.Second

var binariesFlag = flag.String("chaos.binaries", "", "directory with the builds `release` and `fault`; empty builds them")

var (
	buildOnce sync.Once
	buildErr  error
	builtIn   string
)

// builtBinary returns the path of the release or the fault build, built once for the whole test run.
func builtBinary(t *testing.T, fault bool) string {
	t.Helper()
	if *binariesFlag != "" {
		return filepath.Join(*binariesFlag, map[bool]string{false: "release", true: "fault"}[fault])
	}
	buildOnce.Do(func() {
		builtIn, buildErr = os.MkdirTemp("", "strandline-chaos-")
		for _, b := range [][]string{{"-o", filepath.Join(builtIn, "release")}, {"-tags", "fault", "-o", filepath.Join(builtIn, "fault")}} {
			if buildErr != nil {
				return
			}
			c := exec.Command("go", append(append([]string{"build"}, b...), "../../cmd/strandline")...)
			c.Env = append(os.Environ(), "CGO_ENABLED=0")
			if out, err := c.CombinedOutput(); err != nil {
				buildErr = fmt.Errorf("build: %w: %s", err, out)
			}
		}
	})
	if buildErr != nil {
		t.Fatal(buildErr)
	}
	if fault {
		return filepath.Join(builtIn, "fault")
	}
	return filepath.Join(builtIn, "release")
}

func TestMain(m *testing.M) {
	code := m.Run()
	if builtIn != "" {
		_ = os.RemoveAll(builtIn)
	}
	os.Exit(code)
}

// node is one broker process over a data directory that outlives it.
type node struct {
	t             *testing.T
	bin           string
	dir           string
	address, http string

	cmd   *exec.Cmd
	log   *bytes.Buffer
	ready chan string // the ready line; closed when stdout ends
	done  chan struct{}
}

func newNode(t *testing.T, fault bool) *node {
	t.Helper()
	free, err := rig.FreeAddresses(2)
	if err != nil {
		t.Fatal(err)
	}
	n := &node{t: t, bin: builtBinary(t, fault), dir: t.TempDir(), address: free[0], http: free[1]}
	t.Cleanup(func() {
		if n.cmd != nil {
			n.kill()
		}
	})
	return n
}

// start launches the process and returns without waiting for it to be ready.
func (n *node) start() {
	n.t.Helper()
	n.cmd = exec.Command(n.bin, "dev", "--data-dir", n.dir, "--kafka", n.address, "--http", n.http)
	n.log = &bytes.Buffer{}
	n.cmd.Stderr = n.log
	out, err := n.cmd.StdoutPipe()
	if err != nil {
		n.t.Fatal(err)
	}
	if err := n.cmd.Start(); err != nil {
		n.t.Fatal(err)
	}
	ready, done, cmd := make(chan string, 1), make(chan struct{}), n.cmd
	n.ready, n.done = ready, done
	go func() {
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			if strings.HasPrefix(lines.Text(), "ready ") {
				ready <- lines.Text()
			}
		}
		close(ready)
		_ = cmd.Wait()
		close(done)
	}()
}

// waitReady waits for the ready line and returns how long it took from now.
func (n *node) waitReady() time.Duration {
	n.t.Helper()
	begin := time.Now()
	ctx, cancel := context.WithTimeout(context.Background(), startTimeMax)
	defer cancel()
	select {
	case line, ok := <-n.ready:
		if !ok || line == "" {
			<-n.done
			n.t.Fatalf("the node ended before it was ready: %s", n.log)
		}
	case <-ctx.Done():
		n.kill()
		n.t.Fatalf("not ready after %v: %s", startTimeMax, n.log)
	}
	return time.Since(begin)
}

// kill sends SIGKILL and waits until the process is gone.
func (n *node) kill() {
	_ = n.cmd.Process.Kill()
	<-n.done
}

// stop sends SIGTERM and returns the exit code.
func (n *node) stop() int {
	n.t.Helper()
	if err := n.cmd.Process.Signal(os.Interrupt); err != nil {
		n.t.Fatal(err)
	}
	select {
	case <-n.done:
	case <-time.After(startTimeMax):
		n.kill()
		n.t.Fatalf("did not stop: %s", n.log)
	}
	return n.cmd.ProcessState.ExitCode()
}
