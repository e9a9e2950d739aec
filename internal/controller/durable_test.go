package controller

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/metadata"
	"strandline.dev/internal/metrics"
	"strandline.dev/internal/quorum"
	"strandline.dev/internal/storage"
	"strandline.dev/internal/sys/systest"
)

// durableNode is a controller over a real quorum on a crashable disk.
type durableNode struct {
	*Controller
	fs   *systest.FS
	dir  *storage.Dir
	q    *quorum.Quorum
	stop context.CancelFunc
	ran  chan error
	done chan struct{}
}

func startDurableNode(t *testing.T, fs *systest.FS) *durableNode {
	t.Helper()
	machine := systest.Machine(fs, nil, nil)
	log := slog.New(slog.DiscardHandler)
	dir, err := storage.OpenDir(storage.DirOptions{Machine: machine, Path: "/data", Log: log, Metrics: metrics.New().Storage})
	if err != nil {
		t.Fatal(err)
	}
	q, err := quorum.Open(quorum.Config{Machine: machine, Dir: dir, Node: 1, Log: log, SnapshotEntries: 20})
	if err != nil {
		t.Fatal(err)
	}
	n := &durableNode{
		Controller: New(Config{Quorum: q, Wall: machine.Wall, Log: log, Metrics: metrics.New().Broker}),
		fs:         fs, dir: dir, q: q, ran: make(chan error, 1), done: make(chan struct{}),
	}
	ctx, stop := context.WithCancel(t.Context())
	n.stop = stop
	go func() { n.ran <- q.Run(ctx) }()
	go func() {
		defer close(n.done)
		n.Run(ctx)
	}()
	return n
}

// end stops the node's goroutines, whatever the disk says.
func (n *durableNode) end() {
	n.stop()
	<-n.ran
	<-n.done
	_ = n.q.Close()
	_ = n.dir.Close(storage.CloseOptions{})
}

// register brings the broker of this start up.
func (n *durableNode) register(t *testing.T) {
	t.Helper()
	ev := registration(1)
	ev.Directory, ev.StartNumber, ev.BootID = n.dir.Identity().DirectoryID, n.dir.StartNumber(), n.dir.BootID()
	ev.Incarnation = kafka.ID{byte(n.dir.StartNumber()), byte(n.dir.StartNumber() >> 8), 1}
	reply, _, err := n.Submit(t.Context(), ev)
	if err != nil || !reply.(metadata.Registered).OK() {
		t.Fatalf("registration: %+v, %v", reply, err)
	}
	epoch := reply.(metadata.Registered).Epoch
	reply, _, err = n.Submit(t.Context(), metadata.BrokerReady{Node: 1, Epoch: epoch})
	if err != nil || !reply.(metadata.BrokerChanged).OK() {
		t.Fatalf("unfence: %+v, %v", reply, err)
	}
}

func TestC025_ACreatedTopicExistsAfterEveryKill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs := systest.NewFS(25)
		created := map[string]kafka.TopicID{}
		for round := range 100 {
			n := startDurableNode(t, fs)
			n.register(t)
			image := n.q.Image()
			for name, id := range created {
				if topic := image.Topic(name); topic == nil || topic.ID != id || topic.State != metadata.StateReady {
					t.Fatalf("round %d: topic %s is %+v", round, name, topic)
				}
			}
			name := fmt.Sprintf("topic-%03d", round)
			reply, version, err := n.Submit(t.Context(), create(name, 3))
			if err != nil || codeOf(t, reply) != kafka.None {
				t.Fatalf("round %d: %+v, %v", round, reply, err)
			}
			if n.q.Image().Version() < version {
				t.Fatalf("round %d: acknowledged at %d, the Image is at %d", round, version, n.q.Image().Version())
			}
			created[name] = reply.([]metadata.TopicResult)[0].ID
			// The machine stops at the moment of the acknowledgement.
			next := fs.Crash([]systest.CrashMode{systest.LoseAll, systest.Random, systest.KillProcess}[round%3])
			n.end()
			fs = next
		}
	})
}
