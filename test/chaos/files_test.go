package chaos

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// The process may open so few files, and gets more partitions and more sockets than that.
const (
	fewFiles       = 256
	manyPartitions = 600
	manySockets    = 600
)

// TestC090_FewDescriptors: with `ulimit -n 256` a node holds 600 partitions and is visited by 600 sockets. It refuses sockets, not records;
// nothing is taken for damage, before or after kill -9, and once the sockets are gone new clients are heard.
func TestC090_FewDescriptors(t *testing.T) {
	n := newNode(t, false)
	limited := filepath.Join(t.TempDir(), "limited")
	script := fmt.Sprintf("#!/bin/sh\nulimit -n %d\nexec %s \"$@\"\n", fewFiles, n.bin)
	if err := os.WriteFile(limited, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	n.bin = limited
	n.start()
	n.waitReady()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	c := manualClient(t, n)
	if _, err := kadm.NewClient(c).CreateTopic(ctx, manyPartitions, 1, nil, topicName); err != nil {
		t.Fatal(err)
	}
	publishEverywhere(ctx, t, c)
	sockets := make([]net.Conn, manySockets)
	for i := range sockets {
		s, err := net.Dial("tcp", n.address)
		if err != nil {
			t.Fatal(err)
		}
		sockets[i] = s
	}
	publishEverywhere(ctx, t, c) // on the connections it has
	if open := openFiles(t, n); open >= fewFiles {
		t.Errorf("%d files are open, of %d that may be", open, fewFiles)
	}
	for _, s := range sockets {
		_ = s.Close()
	}
	publishEverywhere(ctx, t, manualClient(t, n))

	n.kill()
	n.start()
	n.waitReady()
	c = manualClient(t, n)
	publishEverywhere(ctx, t, c)
	ends, err := kadm.NewClient(c).ListEndOffsets(ctx, topicName)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]int{}
	ends.Each(func(o kadm.ListedOffset) { found[fmt.Sprintf("end %d, error %v", o.Offset, o.Err)]++ })
	if want := "end 4, error <nil>"; found[want] != manyPartitions {
		t.Errorf("after kill -9: %v, want only %q: %s", found, want, n.log)
	}
}

// manualClient chooses partitions itself and waits out refusals.
func manualClient(t *testing.T, n *node) *kgo.Client {
	t.Helper()
	c, err := kgo.NewClient(kgo.SeedBrokers(n.address), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// publishEverywhere publishes one record to each partition and waits until all are acknowledged.
func publishEverywhere(ctx context.Context, t *testing.T, c *kgo.Client) {
	t.Helper()
	records := make([]*kgo.Record, manyPartitions)
	for i := range records {
		records[i] = &kgo.Record{Topic: topicName, Partition: int32(i), Value: valueOf(uint64(i))}
	}
	if err := c.ProduceSync(ctx, records...).FirstErr(); err != nil {
		t.Fatal(err)
	}
}

// openFiles counts the descriptors of the process.
func openFiles(t *testing.T, n *node) int {
	t.Helper()
	list, err := os.ReadDir(filepath.Join("/proc", strconv.Itoa(n.cmd.Process.Pid), "fd"))
	if err != nil {
		t.Fatal(err)
	}
	return len(list)
}
