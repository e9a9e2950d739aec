package chaos

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"strandline.dev/test/chaos/load"
	"strandline.dev/test/chaos/rig"
)

// special are drills that need a cluster of their own shape.
var special = []struct {
	name string
	run  func(*testing.T)
}{
	{"controllers-down", controllersDown},
	{"disk-full", diskFull},
}

// adminMax bounds the wait for a refusal while nobody decides: the request's own time-out of 10 s and what the road takes.
const adminMax = 15 * time.Second

// controllersDown kills the majority of three controllers of a cluster whose brokers are other processes: publish and fetch on existing
// leaders go on, an administrative request fails retriably within its time-out, and all heals by itself.
func controllersDown(t *testing.T) {
	c := newClusterOf(t, rig.Options{Binary: builtBinary(t, false), Nodes: 3, Apart: 3})
	tr := startTrial(t, c, mixedTopics)
	for range *drillsFlag {
		tr.whole()
		tr.work()
		first := tr.active()
		second := c.Node(first.ID%3 + 1)
		first.Kill()
		second.Kill()
		pause(int64(5 * time.Second)) // past every session
		tr.progress(*progressFlag)
		ctx, cancel := context.WithTimeout(context.Background(), adminMax)
		err := rig.Create(ctx, tr.via().Kafka, rig.Topic{Name: "nobody-decides", Partitions: 1, Replicas: 3})
		if ctx.Err() != nil || err == nil || !kerr.IsRetriable(err) {
			t.Errorf("creation of a topic: %v (%v), want a retriable refusal within %v", err, ctx.Err(), adminMax)
		}
		cancel()
		t.Logf("refused: %v", err)
		tr.progress(*progressFlag)
		for _, n := range []*rig.Node{first, second} {
			tr.start(n)
		}
		tr.created(*progressFlag, tr.via())
	}
	tr.finish()
}

// diskFull fills the disk of one node: the others go on, it keeps what it has, and all is whole when there is room again.
func diskFull(t *testing.T) {
	const diskBytes = 192 << 20 // the reserve takes 64 MiB of it
	c := newClusterOf(t, rig.Options{Binary: builtBinary(t, false), Nodes: 3, Proxied: true, SmallDisk: map[int32]int{2: diskBytes}})
	tr := startTrial(t, c, []load.Topic{{Name: "synced", Partitions: 4}})
	for range *drillsFlag {
		tr.whole()
		tr.work()
		room := fill(t, c.Node(2))
		tr.progress(*progressFlag)
		pause(int64(3 * time.Second))
		tr.progress(*progressFlag)
		room()
		tr.whole()
	}
	tr.finish()
}

// fill writes zeros to the node's disk until it is full, and returns what takes them away.
func fill(t *testing.T, n *rig.Node) func() {
	t.Helper()
	file := filepath.Join(n.Disk(), "filler")
	f, err := os.Create(file)
	if err == nil {
		_, err = io.Copy(f, zeros{})
		err = errors.Join(err, f.Close())
	}
	if !errors.Is(err, syscall.ENOSPC) {
		t.Fatal(fmt.Errorf("the disk took everything: %w", err))
	}
	return func() {
		if err := os.Remove(file); err != nil {
			t.Error(err)
		}
	}
}

type zeros struct{}

func (zeros) Read(b []byte) (int, error) { clear(b); return len(b), nil }
