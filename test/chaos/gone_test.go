package chaos

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// TestGone_NodeStopsWhenItsDirectoryIsRemoved removes the data directory under a running node: no publish is acknowledged any more, and
// the process ends by itself with exit code 1 and the directory's name.
func TestGone_NodeStopsWhenItsDirectoryIsRemoved(t *testing.T) {
	n := newNode(t, false)
	n.start()
	n.waitReady()
	createTopic(t, n.address)
	c, err := kgo.NewClient(kgo.SeedBrokers(n.address), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.RecordDeliveryTimeout(3*time.Second))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	publish := func() error {
		return c.ProduceSync(context.Background(), &kgo.Record{Topic: topicName, Value: valueOf(1)}).FirstErr()
	}
	if err := publish(); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(n.dir); err != nil {
		t.Fatal(err)
	}
	if err := publish(); err == nil {
		t.Error("a record was acknowledged in a directory that is gone")
	}
	select {
	case <-n.done:
	case <-time.After(startTimeMax):
		t.Fatalf("the node goes on without its directory: %s", n.log)
	}
	if code := n.cmd.ProcessState.ExitCode(); code != 1 || !strings.Contains(n.log.String(), n.dir) {
		t.Errorf("exit code %d, want 1 and the directory's name: %s", code, n.log)
	}
	if _, err := os.Stat(n.dir); err == nil {
		t.Error("the directory was made anew")
	}
}
