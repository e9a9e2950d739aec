package main

import (
	"bytes"
	"context"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"strandline.dev/internal/config"
	"strandline.dev/internal/node"
	"strandline.dev/internal/sys"
)

// TestDevCluster: ports go up by ten a node, a free port stays one, and three of the nodes vote.
func TestDevCluster(t *testing.T) {
	one, err := devConfig(devFlags{kafka: "127.0.0.1:9092", http: "127.0.0.1:0", dataDir: "d", logLevel: "info", nodes: 4})
	if err != nil {
		t.Fatal(err)
	}
	all, err := node.Together(sys.Real(), one, 4)
	if err != nil {
		t.Fatal(err)
	}
	var kafkas []string
	for i, o := range all {
		defer o.ClusterListener.Close()
		kafkas = append(kafkas, o.Config.Listeners[0].Address)
		if votes := slices.Contains(o.Config.Roles, config.RoleController); votes != (i < 3) || len(o.Config.Cluster.Controllers) != 3 || o.Config.HTTP.Address != "127.0.0.1:0" {
			t.Errorf("node %d: %+v", i+1, o.Config)
		}
	}
	if got := strings.Join(kafkas, " "); got != "127.0.0.1:9092 127.0.0.1:9102 127.0.0.1:9112 127.0.0.1:9122" {
		t.Error(got)
	}
	if _, err := devConfig(devFlags{kafka: "127.0.0.1:0", http: "none", nodes: node.TogetherMax + 1}); err == nil {
		t.Error("too many nodes were accepted")
	}
}

// devRun is a `dev` that runs in this test.
type devRun struct {
	t      *testing.T
	kafkas []string
	cancel context.CancelFunc
	done   chan error
	log    *bytes.Buffer
}

// startDev starts `dev` and waits for its ready line.
func startDev(t *testing.T, dir string, nodes int) *devRun {
	t.Helper()
	one, err := devConfig(devFlags{kafka: "127.0.0.1:0", http: "none", dataDir: dir, logLevel: "warn", nodes: nodes})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	d := &devRun{t: t, cancel: cancel, done: make(chan error, 1), log: &bytes.Buffer{}}
	r, w := io.Pipe()
	go func() {
		err := runDev(ctx, one, nodes, w, d.log)
		w.CloseWithError(io.EOF)
		d.done <- err
	}()
	line := make([]byte, 4096)
	n, err := r.Read(line)
	list, _, _ := strings.Cut(strings.TrimPrefix(string(line[:n]), "ready kafka="), " ")
	if d.kafkas = strings.Split(list, ","); err != nil || len(d.kafkas) != nodes {
		cancel()
		t.Fatalf("%q, %v, %v\n%s", line[:n], err, <-d.done, d.log)
	}
	return d
}

func (d *devRun) stop() {
	d.t.Helper()
	d.cancel()
	if err := <-d.done; err != nil {
		d.t.Fatalf("%v\n%s", err, d.log)
	}
}

// TestDevThreeNodes: one ready line names all, and a stop of all ends in order.
func TestDevThreeNodes(t *testing.T) { startDev(t, t.TempDir(), 3).stop() }

// TestDevRestart: a cluster on a directory that is kept has, with other ports for clients and between its nodes, what it had. One of four nodes is no
// controller.
func TestDevRestart(t *testing.T) {
	dir := t.TempDir()
	for run := range 3 {
		d := startDev(t, dir, 4)
		c, err := kgo.NewClient(kgo.SeedBrokers(d.kafkas...), kgo.DefaultProduceTopic("kept"), kgo.AllowAutoTopicCreation(), kgo.ConsumeTopics("kept"),
			kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		if err := c.ProduceSync(ctx, kgo.StringRecord("x")).FirstErr(); err != nil {
			t.Fatalf("run %d: %v\n%s", run, err, d.log)
		}
		for read := 0; read < run+1; {
			fetched := c.PollFetches(ctx)
			if err := fetched.Err(); err != nil {
				t.Fatalf("run %d: %d records, then %v", run, read, err)
			}
			read += fetched.NumRecords()
		}
		cancel()
		c.Close()
		d.stop()
	}
}

// TestDevOtherNumberOfNodes: dev starts no empty cluster in the directory of another one, and leaves out none of its nodes.
func TestDevOtherNumberOfNodes(t *testing.T) {
	files := sys.Real().FS
	one, three, fresh := t.TempDir(), t.TempDir(), t.TempDir()
	startDev(t, one, 1).stop()
	startDev(t, three, 3).stop()
	for _, c := range []struct {
		dir   string
		count int
		want  string // "": it runs
	}{
		{one, 1, ""},
		{one, 3, "data directory " + one + " holds the data of one node, not of 3; give --nodes 1, or another directory with --data-dir"},
		{three, 1, "holds the data of 3 nodes, not of 1; give --nodes 3"},
		{three, 2, "holds the data of 3 nodes, not of 2; give --nodes 3"},
		{three, 3, ""},
		{three, 4, ""},
		{fresh, 3, ""},
		{filepath.Join(fresh, "none"), 1, ""},
	} {
		switch err := refuseOtherCluster(files, c.dir, c.count); {
		case c.want == "" && err != nil, c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%d nodes in %s: %v, want %q", c.count, c.dir, err, c.want)
		}
	}
	cfg, err := devConfig(devFlags{kafka: "127.0.0.1:0", http: "none", dataDir: one, logLevel: "warn", nodes: 3})
	if err != nil {
		t.Fatal(err)
	}
	if err := runDev(t.Context(), cfg, 3, io.Discard, io.Discard); err == nil || !strings.Contains(err.Error(), "holds the data of one node") {
		t.Errorf("three nodes in the directory of one: %v", err)
	}
	if left, err := files.ReadDir(filepath.Join(one, "n1")); err == nil {
		t.Errorf("a refused start left %v", left)
	}
}
