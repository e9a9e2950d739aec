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

// TestDemoCleansUpAfterInterrupt: Ctrl-C in the middle leaves no process and no file behind.
func TestDemoCleansUpAfterInterrupt(t *testing.T) {
	tmp := t.TempDir()
	cmd := exec.Command("strandline", "demo", "--records", "200000")
	cmd.Env = append(environWithoutSettings(), "TMPDIR="+tmp)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var broker int
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if _, rest, ok := strings.Cut(lines.Text(), "process "); ok && broker == 0 {
			_, _ = fmt.Sscan(rest, &broker)
		}
		if strings.Contains(lines.Text(), " 3. ") {
			break
		}
	}
	if broker == 0 || syscall.Kill(broker, 0) != nil {
		t.Errorf("no broker process %d to clean up", broker)
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	for lines.Scan() { // so that the demonstration never blocks on its output
	}
	var exit *exec.ExitError
	if err := cmd.Wait(); !errors.As(err, &exit) || exit.ExitCode() != 1 {
		t.Errorf("ended with %v, want exit code 1", err)
	}
	if want := "strandline: interrupted; nothing is left behind\n"; stderr.String() != want {
		t.Errorf("stderr %q, want %q", stderr.String(), want)
	}
	if err := syscall.Kill(broker, 0); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("broker process %d: %v, want it gone", broker, err)
	}
	left, err := os.ReadDir(tmp)
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}
