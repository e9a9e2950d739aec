package embedded

import (
	"bytes"
	"log/slog"
	"slices"
	"sync"
)

// TB is what Start needs of a test; *testing.T, *testing.B and *testing.F are such. It stands here so that a program which uses Open does not
// link package testing.
type TB interface {
	Helper()
	Fatalf(format string, args ...any)
	Errorf(format string, args ...any)
	Logf(format string, args ...any)
	Failed() bool
	TempDir() string
	Cleanup(func())
}

// Start runs a broker for the rest of a test and ends it, and its data unless Options name a directory, with the test. Without options it is
// one node. The logs of the nodes are shown when the test has failed. A broker that could not start, had failed, or did not stop cleanly
// fails the test.
func Start(t TB, options ...Options) *Broker {
	t.Helper()
	var o Options
	for _, given := range options {
		o = given
	}
	if o.DataDir == "" {
		o.DataDir = t.TempDir()
	}
	var kept logTail
	if o.Log == nil {
		o.Log = slog.New(slog.NewTextHandler(&kept, nil))
	}
	b, err := Open(o)
	if err != nil {
		t.Fatalf("%v\n%s", err, kept.text())
	}
	t.Cleanup(func() {
		if err := b.Stop(); err != nil {
			t.Errorf("embedded broker: %v", err)
		}
		if text := kept.text(); t.Failed() && text != "" {
			t.Logf("logs of the embedded broker:\n%s", text)
		}
	})
	return b
}

// logTail keeps the newest lines: a goroutine of a node must not write to a test that has ended, and one that passes need not read them.
type logTail struct {
	mu    sync.Mutex
	lines [][]byte
}

// Write takes one line.
func (l *logTail) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.lines) >= logLinesMax {
		l.lines = slices.Delete(l.lines, 0, logLinesMax/2)
	}
	l.lines = append(l.lines, bytes.Clone(line))
	return len(line), nil
}

func (l *logTail) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return string(bytes.Join(l.lines, nil))
}
