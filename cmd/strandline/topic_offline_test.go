package main

import (
	"bytes"
	"cmp"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"strandline.dev/internal/config"
	"strandline.dev/internal/node"
	"strandline.dev/internal/sys"
)

// nodeCommand runs commands against one node with the data in dir, which is not asked for logins and keeps no audit trail.
type nodeCommand struct {
	t    *testing.T
	dir  string
	http string // "": it has no HTTP
	n    *node.Node
}

func (c *nodeCommand) start() {
	c.t.Helper()
	cfg, err := config.Build(map[string]string{
		"node.id": "1", "data.dir": filepath.Join(c.dir, "data"), "http.address": cmp.Or(c.http, config.NoHTTP),
		"listeners.0.name": "clients", "listeners.0.address": "127.0.0.1:0",
	}, false)
	if err != nil {
		c.t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if c.n, err = node.Start(ctx, node.Options{Config: cfg, Machine: sys.Real(), Log: newLogger(cfg, new(bytes.Buffer))}); err != nil {
		c.t.Fatal(err)
	}
}

func (c *nodeCommand) stop() {
	c.t.Helper()
	if err := c.n.Stop(context.Background()); err != nil {
		c.t.Error(err)
	}
}

// run is the exit code and what was printed.
func (c *nodeCommand) run(stdin string, args ...string) (code int, text string) {
	return runCommand(c.dir, c.n.KafkaAddresses()[0], stdin, args...)
}

// runCommand runs a command in this process, without any settings but those in dir.
func runCommand(dir, brokers, stdin string, args ...string) (code int, text string) {
	a := newApp()
	var out bytes.Buffer
	a.stdin, a.stdout, a.stderr = strings.NewReader(stdin), &out, &out
	a.lookup = func(string) (string, bool) { return "", false }
	a.configDir = func() (string, error) { return dir, nil }
	code = run(append(args[:len(args):len(args)], "--brokers", brokers), a)
	return code, out.String()
}

// TestDescribeWhatIsOfflineWhole: a topic none of whose partitions has a leader, because its files are gone, is described.
func TestDescribeWhatIsOfflineWhole(t *testing.T) {
	c := &nodeCommand{t: t, dir: t.TempDir()}
	c.start()
	for _, args := range [][]string{{"topic", "create", "orders", "-p", "1", "-r", "1"}, {"produce", "orders"}} {
		if code, text := c.run("x\n", args...); code != 0 {
			t.Fatalf("%v: exit %d, %s", args, code, text)
		}
	}
	c.stop()
	logs, err := filepath.Glob(filepath.Join(c.dir, "data", "topics", "*", "*.log"))
	if err != nil || len(logs) != 1 {
		t.Fatalf("%v %v", logs, err)
	}
	if err := os.Remove(logs[0]); err != nil {
		t.Fatal(err)
	}
	c.start()
	defer func() { _ = c.n.Stop(context.Background()) }() // it tells of the damage once more
	code, text := c.run("", "topic", "describe", "orders")
	if code != 0 || !strings.Contains(text, "OFFLINE: damaged, or not readable, on node 1") || !strings.Contains(text, "retention.ms") {
		t.Errorf("exit %d: %s", code, text)
	}
}

// TestNoAuditTrail: where there is none, the command says where there would be one, and advises nothing that is refused.
func TestNoAuditTrail(t *testing.T) {
	c := &nodeCommand{t: t, dir: t.TempDir()}
	c.start()
	defer c.stop()
	code, text := c.run("", "audit")
	if code != 1 || !strings.Contains(text, "there is no audit trail: it is kept where auth.audit is on") || strings.Contains(text, "topic create") {
		t.Errorf("exit %d: %s", code, text)
	}
}
