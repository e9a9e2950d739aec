package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// demoReadyMax bounds the start of the broker's process; it is far above what a start takes.
const demoReadyMax = 15 * time.Second

// demoBroker is the broker as a process of its own.
type demoBroker struct {
	dataDir, logFile string
	address          string // host:port for Kafka clients, once started
	cmd              *exec.Cmd
	log              *os.File
}

// start runs `strandline dev` of this very binary and returns when it is ready.
func (b *demoBroker) start(ctx context.Context, listen string) error {
	exe, err := os.Executable()
	if err != nil {
		return err
	}
	if b.log, err = os.OpenFile(b.logFile, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600); err != nil {
		return err
	}
	b.cmd = exec.Command(exe, "dev", "--data-dir", b.dataDir, "--kafka", listen, "--http", "127.0.0.1:0", "--log-level", "warn")
	b.cmd.Env = environWithoutSettings()
	b.cmd.Stderr = b.log
	stdout, err := b.cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := b.cmd.Start(); err != nil {
		b.cmd = nil
		return errors.Join(err, b.log.Close())
	}
	ready := make(chan string, 1)
	go func() {
		line, _ := bufio.NewReader(stdout).ReadString('\n')
		ready <- line
	}()
	timer := time.NewTimer(demoReadyMax)
	defer timer.Stop()
	select {
	case line := <-ready:
		if b.address, err = parseReady(line); err != nil {
			b.kill()
			return err
		}
		return nil
	case <-timer.C:
		err = fmt.Errorf("the broker was not ready within %v", demoReadyMax)
	case <-ctx.Done():
		err = ctx.Err()
	}
	b.kill()
	return err
}

// parseReady takes the first Kafka address out of the ready line.
func parseReady(line string) (string, error) {
	if line == "" {
		return "", errors.New("the broker ended before it was ready")
	}
	for field := range strings.FieldsSeq(line) {
		if list, ok := strings.CutPrefix(field, "kafka="); ok {
			address, _, _ := strings.Cut(list, ",")
			if _, _, err := net.SplitHostPort(address); err == nil {
				return address, nil
			}
		}
	}
	return "", fmt.Errorf("not a ready line: %q", line)
}

// environWithoutSettings keeps the settings of the person's own brokers away from the throw-away one.
func environWithoutSettings() []string {
	var env []string
	for _, e := range os.Environ() {
		if !strings.HasPrefix(e, "STRANDLINE_") {
			env = append(env, e)
		}
	}
	return env
}

func (b *demoBroker) pid() int {
	if b.cmd == nil {
		return 0
	}
	return b.cmd.Process.Pid
}

// kill sends SIGKILL and waits until the process is gone.
func (b *demoBroker) kill() {
	if b.cmd == nil {
		return
	}
	_ = b.cmd.Process.Kill() // it may have ended by itself
	_ = b.cmd.Wait()
	_ = b.log.Close()
	b.cmd = nil
}

// lastWords is the last line the broker logged, for a demonstration that broke off.
func (b *demoBroker) lastWords() string {
	text, err := os.ReadFile(b.logFile)
	if err != nil || len(bytes.TrimSpace(text)) == 0 {
		return "the broker logged nothing"
	}
	lines := bytes.Split(bytes.TrimSpace(text), []byte("\n"))
	return "the broker's last words: " + string(lines[len(lines)-1])
}

// demoLink is the network between the services and the broker: it knows where the broker is now, and can lose a response.
type demoLink struct {
	address atomic.Pointer[string]
	mu      sync.Mutex
	lose    chan struct{} // closed when the next response to a Produce was lost; nil when none is to be
}

func (l *demoLink) point(address string) { l.address.Store(&address) }

// options are what every client of the demonstration shares.
func (l *demoLink) options(id string) []kgo.Opt {
	return []kgo.Opt{
		kgo.SeedBrokers(*l.address.Load()), kgo.ClientID(id), kgo.DisableClientMetrics(),
		kgo.Dialer(l.dial), kgo.MetadataMinAge(50 * time.Millisecond), kgo.RetryBackoffFn(demoBackoff),
	}
}

// demoBackoff is short: the broker is on this machine, and the demonstration is not to wait for clients that are being polite.
func demoBackoff(attempt int) time.Duration {
	return min(time.Duration(attempt)*25*time.Millisecond, 200*time.Millisecond)
}

func (l *demoLink) dial(ctx context.Context, network, _ string) (net.Conn, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, network, *l.address.Load())
	if err != nil {
		return nil, err
	}
	return &demoConn{Conn: conn, link: l}, nil
}

// loseNextProduceResponse arms the link; the channel is closed when a response has been lost.
func (l *demoLink) loseNextProduceResponse() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lose = make(chan struct{})
	return l.lose
}

// takeLoss says whether the response at hand is the one to lose, and disarms the link.
func (l *demoLink) takeLoss() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lose == nil {
		return false
	}
	close(l.lose)
	l.lose = nil
	return true
}

// demoConn is one connection; produces says that it carries Produce requests, whose key is 0.
type demoConn struct {
	net.Conn
	link     *demoLink
	produces atomic.Bool
}

func (c *demoConn) Write(b []byte) (int, error) {
	wholeFrame := len(b) > 8 && int(binary.BigEndian.Uint32(b))+4 == len(b)
	if wholeFrame && binary.BigEndian.Uint16(b[4:]) == 0 {
		c.produces.Store(true)
	}
	return c.Conn.Write(b)
}

// Read loses a response by taking it off the wire, so that the broker has certainly answered, and cutting the connection.
func (c *demoConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n > 0 && c.produces.Load() && c.link.takeLoss() {
		_ = c.Conn.Close()
		return 0, io.ErrUnexpectedEOF
	}
	return n, err
}
