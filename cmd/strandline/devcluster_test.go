package main

import (
	"bytes"
	"context"
	"io"
	"slices"
	"strings"
	"testing"

	"strandline.dev/internal/config"
)

// TestDevCluster: ports go up by ten a node, a free port stays one, and three of the nodes vote.
func TestDevCluster(t *testing.T) {
	one, err := devConfig(devFlags{kafka: "127.0.0.1:9092", http: "127.0.0.1:0", dataDir: "d", logLevel: "info", nodes: 4})
	if err != nil {
		t.Fatal(err)
	}
	all, err := devCluster(one, 4)
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
	if _, err := devConfig(devFlags{kafka: "127.0.0.1:0", http: "none", nodes: devNodesMax + 1}); err == nil {
		t.Error("too many nodes were accepted")
	}
}

// TestDevThreeNodes: one ready line names all, and a stop of all ends in order.
func TestDevThreeNodes(t *testing.T) {
	one, err := devConfig(devFlags{kafka: "127.0.0.1:0", http: "none", dataDir: t.TempDir(), logLevel: "warn", nodes: 3})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	r, w := io.Pipe()
	var errOut bytes.Buffer
	done := make(chan error, 1)
	go func() {
		err := runDev(ctx, one, 3, w, &errOut)
		w.CloseWithError(io.EOF)
		done <- err
	}()
	line := make([]byte, 4096)
	n, err := r.Read(line)
	cancel()
	if stopped := <-done; err != nil || stopped != nil || strings.Count(string(line[:n]), "127.0.0.1:") != 3 {
		t.Fatalf("%q, %v, %v\n%s", line[:n], err, stopped, &errOut)
	}
}
