package interop

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"strandline.dev/test/chaos/raw"
	"strandline.dev/test/chaos/rig"
)

// threeFlag chooses who walks the three nodes.
var threeFlag = flag.String("interop.three", "franz-go", "clients that walk three nodes while a leader is killed: names separated by commas, or all; kafkajs has hung in it once")

// takeOverMax bounds the time until others lead what the killed node led; the session of a node that cannot be heard takes 2 s.
const takeOverMax = 30 * time.Second

// three is a cluster of three serve processes: topics have three replicas, of which two must be in sync.
type three struct {
	t     *testing.T
	dir   string
	nodes *rig.Cluster
	back  chan error // of the killed node: it is in sync and leads again, or why not
}

func startThree(t *testing.T) *three {
	t.Helper()
	dir := t.TempDir()
	c, err := rig.New(rig.Options{
		Binary: os.Getenv("STRANDLINE_BIN"), Dir: dir, Nodes: 3,
		Extra: "kafka:\n  auto.create.topics.enable: true\n  default.replication.factor: 3\n",
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := c.Form(deadline(t)); err != nil {
		t.Fatal(err)
	}
	return &three{t: t, dir: dir, nodes: c}
}

func (c *three) brokers() string {
	var out []string
	for _, n := range c.nodes.Nodes {
		out = append(out, n.Kafka)
	}
	return strings.Join(out, ",")
}

func (c *three) replicas() int { return 3 }
func (c *three) login() *login { return nil }

func (c *three) logs() string {
	var out string
	for _, n := range c.nodes.Nodes {
		out += fmt.Sprintf("--- node %d\n%s\n", n.ID, tail(filepath.Join(c.dir, fmt.Sprintf("n%d.log", n.ID))))
	}
	return out
}

// progressTopic is where groups keep their places. Not every client has groups.
const progressTopic = "__consumer_offsets"

// walked are the topics of the walk that are there half-way.
var walked = []string{progressTopic, "orders", "codec-none", "codec-gzip", "codec-snappy", "codec-lz4", "codec-zstd"}

// led counts the partitions of the walk by their leaders.
func (c *three) led(ctx context.Context, via string) (by map[int32]int, err error) {
	by = map[int32]int{}
	for _, topic := range walked {
		parts, _, err := raw.Topic(ctx, via, topic)
		if topic == progressTopic && errors.Is(err, kerr.UnknownTopicOrPartition) {
			continue
		}
		if err != nil {
			return nil, err
		}
		for _, p := range parts {
			by[p.Leader]++
		}
	}
	return by, nil
}

// halfway kills the node that leads partition 0 of orders, where a member of the group reads, and lets the program go on at once: it publishes
// and reads while others take over. When they lead everything the node is started again under it.
func (c *three) halfway() {
	ctx := deadline(c.t)
	parts, err := c.nodes.Shown(ctx, "orders")
	if err != nil {
		c.t.Error(err)
		return
	}
	id := parts[0].Leader
	by, err := c.led(ctx, c.nodes.Node(id).Kafka)
	if err != nil {
		c.t.Error(err)
		return
	}
	c.t.Logf("node %d is killed; it leads %d partitions (all: %v)", id, by[id], by)
	c.nodes.Node(id).Kill()
	c.back = make(chan error, 1)
	go func() { c.back <- c.again(id) }()
}

// again starts the killed node when the others have taken over, and lets it lead again what it led, which it would get back within 10 s anyway: one
// change of coordinators while members read, and none while they leave, which not every client does twice.
func (c *three) again(id int32) error {
	ctx, cancel := context.WithTimeout(context.Background(), takeOverMax)
	defer cancel()
	via := c.nodes.Nodes[id%3].Kafka // the node after it
	err := rig.Until(ctx, "others to lead", func(ctx context.Context) error {
		by, err := c.led(ctx, via)
		if err == nil && (by[id] > 0 || by[-1] > 0) {
			err = fmt.Errorf("leaders: %v", by)
		}
		return err
	})
	if err != nil {
		return err
	}
	n := c.nodes.Node(id)
	if err := n.Start(); err != nil {
		return err
	}
	if err := n.Ready(ctx); err != nil {
		return err
	}
	if _, err := c.nodes.Shown(ctx, progressTopic); errors.Is(err, kerr.UnknownTopicOrPartition) {
		return nil
	}
	if err := c.nodes.Whole(ctx, 3, progressTopic); err != nil {
		return err
	}
	return c.nodes.Balance(ctx, progressTopic)
}

// TestThreeNodes_LeaderKilledHalfway walks every client through three nodes, of which the leader of orders is killed with -9 half-way: while a
// member of its group reads, before the rest is published. The walk itself checks that each record is read back, at the offset that its value
// says, so that one lost or stored twice is seen.
func TestThreeNodes_LeaderKilledHalfway(t *testing.T) {
	for _, p := range programs(t) {
		if *threeFlag != "all" && !slices.Contains(strings.Split(*threeFlag, ","), p.name) {
			continue
		}
		p.name += "-three"
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			c := startThree(t)
			p.walk(t, c)
			if c.back == nil {
				t.Fatal("no leader was killed")
			}
			if err := <-c.back; err != nil {
				t.Error(err)
			}
		})
	}
}
