//go:build unix

package main

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// startedDemo is a demonstration that is in the middle of its story.
type startedDemo struct {
	cmd     *exec.Cmd
	lines   *bufio.Scanner
	stderr  strings.Builder
	brokers []int    // process ids
	kafkas  []string // their addresses for clients
}

func startDemo(t *testing.T, tmp string) *startedDemo {
	t.Helper()
	d := &startedDemo{cmd: exec.Command("strandline", "demo", "--records", "60000")}
	d.cmd.Env = append(environWithoutSettings(), "TMPDIR="+tmp)
	d.cmd.Stderr = &d.stderr
	out, err := d.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := d.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	d.lines = bufio.NewScanner(out)
	began := false
	for !began && d.lines.Scan() {
		if _, rest, ok := strings.Cut(d.lines.Text(), "process "); ok {
			var pid int
			_, _ = fmt.Sscan(rest, &pid)
			_, kafka, _ := strings.Cut(rest, "kafka=")
			d.brokers, d.kafkas = append(d.brokers, pid), append(d.kafkas, kafka)
		}
		began = strings.Contains(d.lines.Text(), " 3. ")
	}
	if !began {
		t.Fatalf("it ended before step 3: %v, %s", d.cmd.Wait(), d.stderr.String())
	}
	if len(d.brokers) != demoBrokers {
		t.Errorf("broker processes %v, want %d", d.brokers, demoBrokers)
	}
	for _, pid := range d.brokers {
		if err := syscall.Kill(pid, 0); err != nil {
			t.Errorf("no broker process %d to clean up: %v", pid, err)
		}
	}
	return d
}

// wait waits for the end, reading on so that the demonstration never blocks on its output.
func (d *startedDemo) wait() error {
	for d.lines.Scan() {
	}
	return d.cmd.Wait()
}

// TestDemoCleansUpAfterInterrupt: Ctrl-C in the middle leaves no process and no file behind.
func TestDemoCleansUpAfterInterrupt(t *testing.T) {
	tmp := t.TempDir()
	d := startDemo(t, tmp)
	if err := d.cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	var exit *exec.ExitError
	if err := d.wait(); !errors.As(err, &exit) || exit.ExitCode() != 1 {
		t.Errorf("ended with %v, want exit code 1", err)
	}
	if want := "strandline: interrupted; nothing is left behind\n"; d.stderr.String() != want {
		t.Errorf("stderr %q, want %q", d.stderr.String(), want)
	}
	for _, pid := range d.brokers {
		if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
			t.Errorf("broker process %d: %v, want it gone", pid, err)
		}
	}
	left, err := os.ReadDir(tmp)
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}
