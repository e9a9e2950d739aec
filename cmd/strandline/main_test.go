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
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/twmb/franz-go/pkg/kgo"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"strandline": main})
}

// TestScripts runs the command line as a person would, one file of testdata/script for each subject.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		Setup:               setupScript,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"broker":      cmdBroker,
			"samerecords": cmdSameRecords,
			"consumers":   cmdConsumers,
			"flipbyte":    cmdFlipByte,
			"shorten":     cmdShorten,
			"filled":      cmdFilled,
			"usage":       func(ts *testscript.TestScript, neg bool, args []string) { expectFailure(ts, 2, args) },
			"fails":       func(ts *testscript.TestScript, neg bool, args []string) { expectFailure(ts, 1, args) },
			"silence":     cmdSilence,
		},
	})
}

type brokerKey struct{}

// setupScript keeps the settings of the person who runs the tests away from the scripts.
func setupScript(env *testscript.Env) error {
	for _, k := range knobs {
		env.Setenv(k.env, "")
	}
	env.Setenv("STRANDLINE_PROFILE", "")
	env.Setenv("XDG_CONFIG_HOME", filepath.Join(env.WorkDir, "config"))
	b := &scriptBroker{}
	env.Values[brokerKey{}] = b
	env.Defer(b.kill)
	return nil
}

// scriptBroker is the broker of one script.
type scriptBroker struct {
	cmd *exec.Cmd
	log bytes.Buffer
}

func (b *scriptBroker) kill() {
	if b.cmd != nil {
		_ = b.cmd.Process.Kill()
		_ = b.cmd.Wait()
		b.cmd = nil
	}
}

// cmdBroker is `broker start [DIR]`, `broker serve CONFIG`, `broker stop` (SIGTERM, must exit 0) and `broker kill` (SIGKILL).
func cmdBroker(ts *testscript.TestScript, neg bool, args []string) {
	b := ts.Value(brokerKey{}).(*scriptBroker)
	if neg || len(args) == 0 {
		ts.Fatalf("usage: broker start [DIR] | serve CONFIG | stop | kill")
	}
	switch args[0] {
	case "start", "serve":
		flags := []string{"dev", "--kafka", "127.0.0.1:0", "--http", "127.0.0.1:0"}
		if args[0] == "serve" {
			flags = []string{"serve", "--config", ts.MkAbs(args[1])}
		} else if len(args) > 1 {
			flags = append(flags, "--data-dir", ts.MkAbs(args[1]))
		}
		ts.Check(b.start(flags))
		b.cmd.Dir = ts.MkAbs(".")
		ready := b.readReady()
		address, err := parseReady(ready)
		ts.Check(err)
		_, url, _ := strings.Cut(strings.TrimSpace(ready), "http=")
		ts.Setenv("HTTP", url)
		ts.Setenv("STRANDLINE_BROKERS", address)
		ts.Setenv("BROKER", address)
	case "stop":
		ts.Check(b.cmd.Process.Signal(syscall.SIGTERM))
		err := b.cmd.Wait()
		b.cmd = nil
		if err != nil {
			ts.Fatalf("the broker did not stop cleanly: %v\n%s", err, b.log.String())
		}
	case "kill":
		b.kill()
	}
}

func (b *scriptBroker) start(args []string) error {
	exe, err := exec.LookPath("strandline")
	if err != nil {
		return err
	}
	b.cmd = exec.Command(exe, args...)
	b.cmd.Env = environWithoutSettings()
	b.log.Reset()
	b.cmd.Stderr = &b.log
	return nil
}

// readReady starts the process and returns its first line, "" if it ends without one.
func (b *scriptBroker) readReady() string {
	out, err := b.cmd.StdoutPipe()
	if err != nil {
		return err.Error()
	}
	if err := b.cmd.Start(); err != nil {
		b.cmd = nil
		return err.Error()
	}
	// A broker that hangs before it is ready is ended, which ends the read.
	guard := time.AfterFunc(demoReadyMax, func() { _ = b.cmd.Process.Kill() })
	defer guard.Stop()
	line, _ := bufio.NewReader(out).ReadString('\n')
	return line
}

// expectFailure is `usage PATTERN ARG...` and `fails PATTERN ARG...`: strandline ARG... exits with the code, and with exactly one line
// on stderr, which matches the pattern. The input is the one that `stdin` gave.
func expectFailure(ts *testscript.TestScript, code int, args []string) {
	if len(args) < 2 {
		ts.Fatalf("usage: usage|fails PATTERN ARG...")
	}
	err := ts.Exec("strandline", args[1:]...)
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != code {
		ts.Fatalf("strandline %q: %v, want exit code %d", args[1:], err, code)
	}
	line := ts.ReadFile("stderr")
	if strings.Count(line, "\n") != 1 || !strings.HasPrefix(line, "strandline: ") {
		ts.Fatalf("stderr is not one line of ours: %q", line)
	}
	if !regexp.MustCompile(args[0]).MatchString(line) {
		ts.Fatalf("stderr is %q, want a match of %q", line, args[0])
	}
}

// cmdSilence starts a server that accepts and never answers, and names it as the broker.
func cmdSilence(ts *testscript.TestScript, neg bool, args []string) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	ts.Check(err)
	ts.Defer(func() { _ = l.Close() })
	ts.Setenv("STRANDLINE_BROKERS", l.Addr().String())
}

// cmdSameRecords is `samerecords FILE FILE`: two outputs of consume --json hold, partition by partition, the same records, whatever
// the topic, leader epoch and order of partitions.
func cmdSameRecords(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: samerecords FILE FILE")
	}
	x, y := readPartitions(ts, args[0]), readPartitions(ts, args[1])
	if x != y {
		ts.Fatalf("%s and %s differ:\n%s\n--- and ---\n%s", args[0], args[1], x, y)
	}
}

func readPartitions(ts *testscript.TestScript, file string) string {
	byPartition := map[int32][]string{}
	for line := range bytes.Lines([]byte(ts.ReadFile(file))) {
		r, err := parseRecordJSON(bytes.TrimSpace(line))
		ts.Check(err)
		byPartition[r.Partition] = append(byPartition[r.Partition], string(appendRecordJSON(nil, r)))
	}
	var out string
	for p := range int32(1024) {
		for _, r := range byPartition[p] {
			out += r + "\n"
		}
	}
	return out
}

// cmdFilled is `filled FILE N`: a file of N letters.
func cmdFilled(ts *testscript.TestScript, neg bool, args []string) {
	var n int
	if neg || len(args) != 2 {
		ts.Fatalf("usage: filled FILE N")
	}
	_, err := fmt.Sscan(args[1], &n)
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), bytes.Repeat([]byte("x"), n), 0o600))
}

// cmdFlipByte is `flipbyte FILE POSITION`: damage one byte of the only file that matches the pattern FILE.
func cmdFlipByte(ts *testscript.TestScript, neg bool, args []string) {
	var position int64
	if neg || len(args) != 2 {
		ts.Fatalf("usage: flipbyte FILE POSITION")
	}
	_, err := fmt.Sscan(args[1], &position)
	ts.Check(err)
	name := onlyMatch(ts, args[0])
	b, err := os.ReadFile(name)
	ts.Check(err)
	if position >= int64(len(b)) {
		ts.Fatalf("%s has only %d bytes", name, len(b))
	}
	b[position] ^= 0xff
	ts.Check(os.WriteFile(name, b, 0o600))
}

// cmdShorten takes the last byte of a file away.
func cmdShorten(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: shorten FILE")
	}
	name := onlyMatch(ts, args[0])
	st, err := os.Stat(name)
	ts.Check(err)
	ts.Check(os.Truncate(name, st.Size()-1))
}

func onlyMatch(ts *testscript.TestScript, pattern string) string {
	names, err := filepath.Glob(ts.MkAbs(pattern))
	ts.Check(err)
	if len(names) != 1 {
		ts.Fatalf("%s matches %d files", pattern, len(names))
	}
	return names[0]
}

// sameRecord says whether two records are equal as a consumer sees them; null and empty differ.
func sameRecord(x, y *kgo.Record) bool {
	sameBytes := func(a, b []byte) bool { return (a == nil) == (b == nil) && bytes.Equal(a, b) }
	sameHeaders := slices.EqualFunc(x.Headers, y.Headers, func(a, b kgo.RecordHeader) bool { return a.Key == b.Key && sameBytes(a.Value, b.Value) })
	return sameHeaders && sameBytes(x.Key, y.Key) && sameBytes(x.Value, y.Value) &&
		x.Partition == y.Partition && x.Timestamp.Equal(y.Timestamp)
}
