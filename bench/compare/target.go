package main

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// The kinds of servers, by how they are started.
const (
	kindStrandline = iota
	kindKfake
	kindNATS
	kindKafka
)

// target is one server in one configuration.
type target struct {
	name        string
	kind        int
	args        []string
	topicConfig string
	// nothing says that the server keeps no records, so there is nothing to verify.
	nothing bool
	suites  []string
}

// The suites.
const (
	suiteThroughput = "throughput"
	suiteLinger5    = "linger5"
	suiteLinger0    = "linger0"
	suiteStart      = "start"
)

func targets() []target {
	every := []string{suiteThroughput, suiteLinger5, suiteLinger0, suiteStart}
	return []target{
		{name: "strandline replicated", kind: kindStrandline, suites: every},
		{name: "strandline synced", kind: kindStrandline, topicConfig: "strandline.flush=synced", suites: every},
		{name: "kfake null", kind: kindKfake, args: []string{"-blackhole", "-synthetic"}, nothing: true, suites: []string{suiteThroughput}},
		{name: "kfake disk", kind: kindKfake, args: []string{"-datadir", "{dir}"}, suites: every},
		{name: "nats", kind: kindNATS, suites: []string{suiteThroughput, suiteLinger0, suiteStart}},
		{name: "kafka", kind: kindKafka, suites: every},
	}
}

// server is a started target.
type server struct {
	cmd  *exec.Cmd
	addr string
	dir  string
	log  *os.File
}

// freePort is a loopback port that nobody listens on at the moment.
func freePort() int {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

// start runs the server on an empty data directory. It does not wait for it.
func (f *flags) start(t target) (*server, error) {
	dir, err := os.MkdirTemp(f.work, "compare-")
	if err != nil {
		return nil, err
	}
	port := freePort()
	s := &server{dir: dir, addr: "127.0.0.1:" + strconv.Itoa(port)}
	if s.log, err = os.Create(filepath.Join(dir, "log")); err != nil {
		return nil, err
	}
	if s.cmd, err = f.command(t, s, port); err != nil {
		s.stop()
		return nil, err
	}
	s.cmd.Stdout, s.cmd.Stderr = s.log, s.log
	if err := s.cmd.Start(); err != nil {
		s.stop()
		return nil, err
	}
	return s, nil
}

// command is how a target is started.
func (f *flags) command(t target, s *server, port int) (*exec.Cmd, error) {
	data := filepath.Join(s.dir, "data")
	switch t.kind {
	case kindStrandline:
		return exec.Command(filepath.Join(f.bin, "strandline"), "dev", "--data-dir", data, "--kafka", s.addr, "--http", "127.0.0.1:0", "--log-level", "warn"), nil
	case kindKfake:
		args := []string{"-port", strconv.Itoa(port)}
		for _, a := range t.args {
			args = append(args, strings.ReplaceAll(a, "{dir}", data))
		}
		return exec.Command(filepath.Join(f.bin, "kfakesrv"), args...), nil
	case kindNATS:
		return exec.Command(filepath.Join(f.bin, "nats-server"), "-a", "127.0.0.1", "-p", strconv.Itoa(port), "-js", "-sd", data), nil
	}
	return f.kafkaCommand(s, data)
}

// kafkaCommand formats a directory for a broker that is its own controller, with Kafka's defaults but for addresses and copies of its
// internal topics, and a heap of 1 GiB as in its own start script.
func (f *flags) kafkaCommand(s *server, data string) (*exec.Cmd, error) {
	file := filepath.Join(s.dir, "server.properties")
	controller := "127.0.0.1:" + strconv.Itoa(freePort())
	text := fmt.Sprintf(`process.roles=broker,controller
node.id=1
controller.quorum.bootstrap.servers=%[2]s
listeners=PLAINTEXT://%[1]s,CONTROLLER://%[2]s
advertised.listeners=PLAINTEXT://%[1]s,CONTROLLER://%[2]s
controller.listener.names=CONTROLLER
log.dirs=%[3]s
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
`, s.addr, controller, data)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return nil, err
	}
	java := []string{"-Xmx1G", "-Xms1G", "-server", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20", "-XX:InitiatingHeapOccupancyPercent=35",
		"-XX:+ExplicitGCInvokesConcurrent", "-Djava.awt.headless=true", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
		"-cp", filepath.Join(f.kafka, "*")}
	format := exec.Command("java", append(java, "kafka.tools.StorageTool", "format", "--standalone", "-t", "AAAAAAAAAAAAAAAAAAAAAQ", "-c", file)...)
	if out, err := format.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("format: %w: %s", err, out)
	}
	return exec.Command("java", append(java, "kafka.Kafka", file)...), nil
}

// stopMax bounds the wait for a server that was told to end: Kafka has been seen to go on for ten minutes.
const stopMax = 30 * time.Second

// stop ends the server and removes its data.
func (s *server) stop() {
	if s.cmd != nil && s.cmd.Process != nil {
		s.cmd.Process.Signal(os.Interrupt)
		kill := time.AfterFunc(stopMax, func() { s.cmd.Process.Kill() })
		s.cmd.Wait()
		kill.Stop()
	}
	s.log.Close()
	os.RemoveAll(s.dir)
}

// tail is the end of the server's log, for error messages.
func (s *server) tail() string {
	b, _ := os.ReadFile(s.log.Name())
	return string(b[max(0, len(b)-500):])
}
