package interop

import (
	"bufio"
	"bytes"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"
)

const readyMax = 30 * time.Second

// broker is one `strandline dev` process.
type broker struct {
	t      *testing.T
	args   []string
	cmd    *exec.Cmd
	stderr *bytes.Buffer
	done   chan struct{}
	// addr is the Kafka address it printed.
	addr string
}

// startBroker starts a node over a temporary directory and waits for its ready line.
func startBroker(t *testing.T, extra ...string) *broker {
	t.Helper()
	if os.Getenv("STRANDLINE_BIN") == "" {
		t.Fatal("STRANDLINE_BIN must name the built binary; `make interop` sets it")
	}
	b := &broker{t: t, args: append([]string{"dev", "--data-dir", t.TempDir(), "--http", "127.0.0.1:0"}, extra...)}
	b.launch(net.JoinHostPort("127.0.0.1", strconv.Itoa(freePorts(t)))) // it comes back there after a kill
	t.Cleanup(b.kill)
	return b
}

func (b *broker) launch(kafka string) {
	b.t.Helper()
	cmd := exec.Command(os.Getenv("STRANDLINE_BIN"), append(b.args, "--kafka", kafka)...)
	if b.stderr == nil {
		b.stderr = &bytes.Buffer{}
	}
	cmd.Stderr = b.stderr // of all its runs: Wait ends the copying before the next begins
	out, err := cmd.StdoutPipe()
	if err != nil {
		b.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.t.Fatal(err)
	}
	lines, done := make(chan string, 4), make(chan struct{})
	go func() {
		s := bufio.NewScanner(out)
		for s.Scan() {
			lines <- s.Text()
		}
		close(lines)
		_ = cmd.Wait()
		close(done)
	}()
	b.cmd, b.done = cmd, done
	select {
	case line, ok := <-lines:
		if !ok {
			<-done
			b.t.Fatalf("the broker ended: %s", b.stderr)
		}
		for _, f := range strings.Fields(line) {
			if v, found := strings.CutPrefix(f, "kafka="); found {
				b.addr = v
			}
		}
	case <-time.After(readyMax):
		b.t.Fatalf("not ready after %v", readyMax)
	}
}

func (b *broker) kill() {
	_ = b.cmd.Process.Kill()
	<-b.done
}

// target is what a program walks: one broker, or a cluster.
type target interface {
	// brokers are the addresses for the program, separated by commas; replicas is how many copies its topics get.
	brokers() string
	replicas() int
	// halfway kills -9, and returns when the program may go on.
	halfway()
	// logs are what the processes have logged.
	logs() string
	// login is nil where everybody may do everything.
	login() *login
}

func (b *broker) brokers() string { return b.addr }
func (b *broker) replicas() int   { return 1 }
func (b *broker) halfway()        { b.restart() }
func (b *broker) logs() string    { return b.stderr.String() }
func (b *broker) login() *login   { return nil }

// restart kills the process (-9) and starts it again on the same address and data.
func (b *broker) restart() {
	b.t.Helper()
	b.kill()
	b.launch(b.addr)
}
