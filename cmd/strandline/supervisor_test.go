package main

import (
	"bufio"
	"bytes"
	"fmt"
	"log/slog"
	"net"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// listenAsSupervisor is the receiving end of sd_notify: each message that comes, in order.
func listenAsSupervisor(t *testing.T, name string) <-chan string {
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: name, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	heard := make(chan string, 1000)
	go func() {
		defer close(heard)
		buf := make([]byte, 4096)
		for {
			n, err := conn.Read(buf)
			if err != nil {
				return
			}
			heard <- string(buf[:n])
		}
	}()
	return heard
}

// TestServeTellsItsSupervisor: a node says when it accepts work, gives signs of life while it does, and says that it stops before it has.
func TestServeTellsItsSupervisor(t *testing.T) {
	dir := t.TempDir()
	socket := filepath.Join(dir, "notify")
	heard := listenAsSupervisor(t, socket)
	exe, err := exec.LookPath("strandline")
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	cmd := exec.Command(exe, "serve", "--node-id", "1", "--data-dir", filepath.Join(dir, "data"), "--listeners-0-name", "plain",
		"--listeners-0-address", "127.0.0.1:0", "--http-address", "127.0.0.1:0")
	cmd.Env = append(environWithoutSettings(), "NOTIFY_SOCKET="+socket, "WATCHDOG_USEC=30000")
	cmd.Stderr = &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()

	next := func() string {
		select {
		case m := <-heard:
			return m
		case err := <-ended:
			t.Fatalf("the node ended: %v\n%s", err, log.String())
		}
		return ""
	}
	if m := next(); !strings.HasPrefix(m, "READY=1\nSTATUS=accepts clients at 127.0.0.1:") {
		t.Fatalf("the first message is %q", m)
	}
	for range 3 {
		if m := next(); m != "WATCHDOG=1" {
			t.Fatalf("a running node says %q", m)
		}
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	for m := next(); m != "STOPPING=1\nSTATUS=hands over and stops"; m = next() {
		if m != "WATCHDOG=1" {
			t.Fatalf("before it stops a node says %q", m)
		}
	}
	for {
		select {
		case m := <-heard:
			if m != "WATCHDOG=1" {
				t.Fatalf("while it stops a node says %q", m)
			}
		case err := <-ended:
			if err != nil {
				t.Fatalf("%v\n%s", err, log.String())
			}
			return
		}
	}
}

// TestAStopBeforeTheStartIsDone: a node that is told to stop while it waits for others, or for itself, has done what it was told.
func TestAStopBeforeTheStartIsDone(t *testing.T) {
	exe, err := exec.LookPath("strandline")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe, "serve", "--node-id", "1", "--data-dir", filepath.Join(t.TempDir(), "data"), "--listeners-0-name", "plain",
		"--listeners-0-address", "127.0.0.1:0", "--listeners-0-advertise", "127.0.0.1:1", "--http-address", "none",
		"--cluster-address", "127.0.0.1:0", "--cluster-controllers", "1@127.0.0.1:1,2@127.0.0.1:2,3@127.0.0.1:3")
	cmd.Env = environWithoutSettings()
	log, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	lines := bufio.NewScanner(log)
	said := ""
	for lines.Scan() {
		said += lines.Text() + "\n"
		if strings.Contains(lines.Text(), "waiting") {
			if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := cmd.Wait(); err != nil || !strings.Contains(said, "stopped before it accepted work") {
		t.Errorf("%v\n%s", err, said)
	}
}

// TestSupervisorOfTheEnvironment: what systemd leaves in the environment, and for whom.
func TestSupervisorOfTheEnvironment(t *testing.T) {
	const pid = 42
	for _, c := range []struct {
		env   []string
		every time.Duration
	}{
		{nil, 0},
		{[]string{"WATCHDOG_USEC=60000000"}, 20 * time.Second},
		{[]string{"WATCHDOG_USEC=60000000", "WATCHDOG_PID=42"}, 20 * time.Second},
		{[]string{"WATCHDOG_USEC=60000000", "WATCHDOG_PID=41"}, 0},
		{[]string{"WATCHDOG_USEC=0"}, 0},
		{[]string{"WATCHDOG_USEC=-1"}, 0},
		{[]string{"WATCHDOG_USEC=soon"}, 0},
	} {
		lookup := func(name string) (string, bool) {
			i := slices.IndexFunc(c.env, func(e string) bool { return strings.HasPrefix(e, name+"=") })
			if i < 0 {
				return "", false
			}
			return strings.TrimPrefix(c.env[i], name+"="), true
		}
		if s := newSupervisor(lookup, pid, slog.New(slog.DiscardHandler)); s.every != c.every {
			t.Errorf("%v: a sign of life every %v, want %v", c.env, s.every, c.every)
		}
	}
}

// TestSupervisorAtAnAbstractName: systemd may give a name that is in no directory; one that nobody listens at costs a line of the log and no more.
func TestSupervisorAtAnAbstractName(t *testing.T) {
	name := fmt.Sprintf("@strandline-%d", time.Now().UnixNano())
	var log bytes.Buffer
	s := supervisor{socket: name, log: slog.New(slog.NewTextHandler(&log, nil))}
	s.tell("READY=1")
	if !strings.Contains(log.String(), "the supervisor was not told") {
		t.Errorf("told nobody: %q", log.String())
	}
	heard := listenAsSupervisor(t, name)
	s.tell("READY=1", "STATUS=x")
	if m := <-heard; m != "READY=1\nSTATUS=x" {
		t.Errorf("heard %q", m)
	}
}
