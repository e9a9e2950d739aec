package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// demoBroker is one broker, as a process of its own.
type demoBroker struct {
	id          int32
	dir         string // holds everything of this broker: configuration, log, data
	kafka, peer string // what it listens at, for clients and for the other brokers

	cmd   *exec.Cmd
	ready chan struct{} // closed at the ready line
	done  chan struct{} // closed when the process is gone
	ended error         // how it went, once done is closed
}

func (b *demoBroker) rack() string { return fmt.Sprintf("rack-%d", b.id) }

func (b *demoBroker) String() string { return fmt.Sprintf("broker %d (%s)", b.id, b.rack()) }

func (b *demoBroker) logFile() string { return filepath.Join(b.dir, "log") }

// config is the file that the broker is started with; controllers are the addresses of all, as id@host:port.
func (b *demoBroker) config(controllers []string) string {
	quoted := make([]string, len(controllers))
	for i, c := range controllers {
		quoted[i] = fmt.Sprintf("%q", c)
	}
	return fmt.Sprintf(`node: {id: %d, rack: %s}
data: {dir: %q}
cluster:
  address: %s
  controllers: [%s]
listeners:
  - {name: plain, address: %s, advertise: %s}
http: {address: none}
log: {level: info, format: text}
kafka: {group.initial.rebalance.delay.ms: 0}
`, b.id, b.rack(), filepath.ToSlash(filepath.Join(b.dir, "data")), b.peer, strings.Join(quoted, ", "), b.kafka, b.kafka)
}

// start runs `strandline serve` of this very binary and returns at once; launch is what starts the command.
func (b *demoBroker) start(exe string, controllers []string, launch func(*exec.Cmd) error) error {
	if err := os.MkdirAll(b.dir, 0o700); err != nil {
		return err
	}
	file := filepath.Join(b.dir, "strandline.yaml")
	if err := os.WriteFile(file, []byte(b.config(controllers)), 0o600); err != nil {
		return err
	}
	log, err := os.OpenFile(b.logFile(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close() // the process has a descriptor of its own
	cmd := exec.Command(exe, "serve", "--config", file)
	cmd.Env = environWithoutSettings()
	cmd.Stderr = log
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := launch(cmd); err != nil {
		return fmt.Errorf("%s: %w", b, err)
	}
	ready, done := make(chan struct{}), make(chan struct{})
	b.cmd, b.ready, b.done = cmd, ready, done
	go func() {
		lines, said := bufio.NewScanner(stdout), false
		for lines.Scan() { // to the end, so that the process never blocks on its output and Wait comes after the last read
			if _, err := parseReady(lines.Text()); err == nil && !said {
				said = true
				close(ready)
			}
		}
		b.ended = cmd.Wait()
		close(done)
	}()
	return nil
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

func (b *demoBroker) pid() int { return b.cmd.Process.Pid }

// isReady says whether the process has said so and still runs.
func (b *demoBroker) isReady() bool { return b.cmd != nil && closed(b.ready) && !closed(b.done) }

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// kill sends SIGKILL and waits until the process is gone. A broker that was killed is not one that ended by itself.
func (b *demoBroker) kill() {
	if b.cmd == nil {
		return
	}
	_ = b.cmd.Process.Kill() // it may have ended by itself
	<-b.done
	b.cmd = nil
}

// condition says how a broker is that should run: for a demonstration that broke off.
func (b *demoBroker) condition() string {
	switch {
	case b.cmd == nil:
		return fmt.Sprintf("%s does not run", b)
	case closed(b.done):
		how := "ended by itself"
		if !closed(b.ready) {
			how = "ended before it was ready"
		}
		if b.ended != nil {
			how += " (" + b.ended.Error() + ")"
		}
		return fmt.Sprintf("%s, process %d, kafka=%s, %s, its last words: %s", b, b.pid(), b.kafka, how, b.lastWords())
	case !closed(b.ready):
		return fmt.Sprintf("%s, process %d, kafka=%s, is not ready, its last words: %s", b, b.pid(), b.kafka, b.lastWords())
	}
	return fmt.Sprintf("%s runs", b)
}

// lastWords is the last line the broker logged.
func (b *demoBroker) lastWords() string {
	text, err := os.ReadFile(b.logFile())
	if err != nil || len(bytes.TrimSpace(text)) == 0 {
		return "none"
	}
	lines := bytes.Split(bytes.TrimSpace(text), []byte("\n"))
	return string(lines[len(lines)-1])
}
