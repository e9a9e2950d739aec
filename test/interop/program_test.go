package interop

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"strandline.dev/test/interop/steps"
)

// programTimeMax bounds one client; the longest, with a rebalance after the restart, takes about a minute on two cores.
const programTimeMax = 4 * time.Minute

// logTail is how much of a log a failure prints, in bytes.
const logTail = 6000

// program is one foreign client, a process of its own that prints the lines of package steps.
type program struct {
	// name is the subtest's name and the README's.
	name, language string
	// pin names the line of versions.txt: kind and name, and a version where the name has several.
	pin  pin
	args []string
	env  []string
	// sendsAll: what the program says its client cannot express is so for reading only; what it sent must be stored exactly.
	sendsAll bool
}

// outcome is what a program reported.
type outcome struct {
	version string
	// steps: name -> "ok", or why the client does not offer it.
	steps map[string]string
}

// cached is a path under the directory where .ci/interop installs.
func cached(t *testing.T, path ...string) string {
	t.Helper()
	root := os.Getenv("STRANDLINE_INTEROP_CACHE")
	if root == "" {
		t.Fatal("STRANDLINE_INTEROP_CACHE must name the directory of installed clients; `make interop` sets it")
	}
	return filepath.Join(append([]string{root}, path...)...)
}

// runner is one running program.
type runner struct {
	t      *testing.T
	to     target
	mu     sync.Mutex // for log: stdout and stderr are read by two goroutines
	log    *os.File
	stdin  io.Writer
	out    outcome
	failed []string
	killed bool
	// sendsAll is the program's.
	sendsAll bool
	started  time.Time
}

// run walks the program through a broker of its own.
func (p program) run(t *testing.T) outcome {
	t.Helper()
	return p.walk(t, startBroker(t))
}

// walk starts the program and follows its lines to the end.
func (p program) walk(t *testing.T, to target) outcome {
	t.Helper()
	log, err := os.Create(cached(t, "logs", p.name+".log"))
	if err != nil {
		t.Fatal(err)
	}
	r := &runner{t: t, to: to, log: log, sendsAll: p.sendsAll, out: outcome{steps: map[string]string{}}, started: time.Now()}
	ctx, cancel := context.WithTimeout(context.Background(), programTimeMax)
	defer cancel()
	cmd := exec.CommandContext(ctx, p.args[0], append(p.args[1:], to.brokers())...)
	cmd.Env = append(append(os.Environ(), fmt.Sprintf("REPLICAS=%d", to.replicas())), p.env...)
	cmd.Env = append(cmd.Env, to.login().env()...)
	cmd.Stderr = r
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 5 * time.Second
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	r.stdin = stdin
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for lines := bufio.NewScanner(stdout); lines.Scan(); {
		r.line(lines.Text())
	}
	err = cmd.Wait()
	if ctx.Err() != nil {
		err = fmt.Errorf("ended after %v: %w", programTimeMax, err)
	}
	r.judge(err)
	return r.out
}

// line takes in one line of the program's stdout.
func (r *runner) line(line string) {
	_, _ = r.Write([]byte(line + "\n"))
	f := strings.SplitN(line, " ", 4)
	switch {
	case f[0] == "version" && len(f) == 2:
		r.out.version = f[1]
	case line == "RESTART":
		r.checkStored()
		r.to.halfway()
		r.killed = true
		_, _ = io.WriteString(r.stdin, "DONE\n")
	case f[0] == "step" && len(f) >= 3:
		r.step(f[1], f[2], strings.Join(f[3:], ""))
	}
}

// Write puts the program's stderr into the log, each piece with its time; stdout's lines go the same way.
func (r *runner) Write(text []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for line := range strings.Lines(string(text)) {
		if _, err := fmt.Fprintf(r.log, "[%6.2fs] %s", time.Since(r.started).Seconds(), line); err != nil {
			return 0, err
		}
	}
	return len(text), nil
}

func (r *runner) step(name, result, why string) {
	if _, twice := r.out.steps[name]; twice {
		r.failed = append(r.failed, name+": reported twice")
	}
	switch {
	case !slices.Contains(steps.Names, name):
		r.failed = append(r.failed, name+": no step of the walk")
	case result == "ok" && name == "kill-9" && !r.killed:
		r.failed = append(r.failed, name+": the program never asked for the restart")
	case result == "ok":
		r.out.steps[name] = "ok"
	case result == "not-offered" && why != "":
		r.out.steps[name] = why
	default:
		r.out.steps[name] = "failed"
		r.failed = append(r.failed, name+": "+why)
	}
}

// checkStored reads, with another client, what the program produced: the codec on disk and the records' every field.
func (r *runner) checkStored() {
	for codec, id := range map[string]int16{"none": 0, "gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4} {
		if r.out.steps[codec] != "ok" {
			continue
		}
		opts := r.to.login().opts(r.t)
		seen := storedCodecs(r.t, r.to.brokers(), "codec-"+codec, opts...)
		if !seen[id] {
			r.failed = append(r.failed, fmt.Sprintf("%s: no stored batch has the codec; codecs found: %v", codec, seen))
		}
		l := r.lenience()
		for i, k := range readFranz(r.t, r.to.brokers(), "codec-"+codec, len(steps.Samples()), opts...) {
			if err := steps.Compare(steps.Samples()[i], fromFranz(k), l); err != nil {
				r.failed = append(r.failed, fmt.Sprintf("%s: record %d as stored: %v", codec, i, err))
			}
		}
	}
}

// lenience forgives what the program said that its client cannot express.
func (r *runner) lenience() steps.Lenience {
	if r.sendsAll {
		return steps.Lenience{}
	}
	lacks := func(step string) bool { return r.out.steps[step] != "ok" }
	return steps.Lenience{Keys: lacks("keys"), Values: lacks("values"), HeaderValues: lacks("null-headers"), Repeats: lacks("headers")}
}

// judge fails the test with what verdict found, and prints the ends of both logs.
func (r *runner) judge(ended error) {
	r.t.Helper()
	_ = r.log.Close()
	if found := r.verdict(ended); len(found) > 0 {
		r.t.Errorf("%s\n--- %s\n%s\n--- broker\n%s", strings.Join(found, "\n"), r.log.Name(), tail(r.log.Name()), last(r.to.logs()))
	}
}

// verdict is what was wrong with the run: every step must have been reported, none failed, and the program ended well.
func (r *runner) verdict(ended error) []string {
	found := r.failed
	for _, name := range steps.Names {
		if r.out.steps[name] == "" {
			found = append(found, name+": not reported")
		}
	}
	if ended != nil {
		found = append(found, "the program: "+ended.Error())
	}
	return found
}

func tail(file string) string {
	text, err := os.ReadFile(file)
	if err != nil {
		return err.Error()
	}
	return last(string(text))
}

func last(s string) string {
	if len(s) > logTail {
		return "... " + s[len(s)-logTail:]
	}
	return s
}
