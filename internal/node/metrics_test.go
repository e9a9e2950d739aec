package node

import (
	"bufio"
	"strconv"
	"strings"
	"testing"
	"time"

	"strandline.dev/internal/config"
	"strandline.dev/internal/kafka"
	"strandline.dev/internal/storage"
)

// metric is what a node exposes under a name: the sum over its labels. A node that does not expose the name fails the test.
func (c *cluster) metric(id kafka.NodeID, path, name string) float64 {
	c.t.Helper()
	status, body := httpGet(c.t, c.net.Host("client"), c.member(id).host()+":8080", path)
	found, sum := false, 0.0
	for lines := bufio.NewScanner(strings.NewReader(body)); lines.Scan(); {
		rest, ok := strings.CutPrefix(lines.Text(), name)
		if !ok || rest == "" || rest[0] != ' ' && rest[0] != '{' {
			continue
		}
		v, err := strconv.ParseFloat(rest[strings.LastIndexByte(rest, ' ')+1:], 64)
		if err != nil {
			c.t.Fatalf("%s: %v", lines.Text(), err)
		}
		found, sum = true, sum+v
	}
	if !found {
		c.t.Fatalf("node %v exposes no %s at %s (status %d)", id, name, path, status)
	}
	return sum
}

// withHTTP gives nodes an HTTP address; those above 3 are brokers only.
func withHTTP(n *config.Node) {
	n.HTTP.Address = strings.Replace(n.Cluster.Address, ":19091", ":8080", 1)
	if n.Node.ID > 3 {
		n.Roles = []string{config.RoleBroker}
	}
}

// sum is what all running nodes expose under a name.
func (c *cluster) sum(path, name string) float64 {
	c.t.Helper()
	sum := 0.0
	for _, m := range c.members {
		if m.node != nil {
			sum += c.metric(m.id, path, name)
		}
	}
	return sum
}

// exposed compares what the nodes expose of a topic, the only one, with the metadata.
func (c *cluster) exposed(when, topic string) (under, underMin, offline float64) {
	c.t.Helper()
	for _, s := range c.alive().Image().Topic(topic).Partitions {
		switch {
		case s.Leader == kafka.NoNode:
			offline++
		case len(s.ISR) < 2:
			underMin++
			fallthrough
		case len(s.ISR) < 3:
			under++
		}
	}
	for name, want := range map[string]float64{
		"strandline_under_replicated_partitions": under, "strandline_under_min_isr_partitions": underMin, "strandline_offline_partitions": offline,
		"strandline_active_controller": 1,
	} {
		if got := c.sum("/metrics", name); got != want {
			c.t.Errorf("%s: %s is %v, want %v", when, name, got, want)
		}
	}
	return under, underMin, offline
}

// TestCluster_MetricsTellWhatIsWrong: five nodes, of which two brokers and then the leader of what is left die. Sums over the nodes that run are what
// is true, as read from the metadata; when all are back everything is 0 again, and nothing was truncated that must not be (R178).
func TestCluster_MetricsTellWhatIsWrong(t *testing.T) {
	clusterBubble(t, 5, withHTTP, func(t *testing.T, c *cluster) {
		cl := c.client()
		defer cl.Close()
		c.create(cl, "t", 30)
		check := func(when string) (under, underMin, offline float64) { return c.exposed(when, "t") }
		c.untilInBubble("all in sync", func() bool { return c.whole("t") })
		time.Sleep(time.Second)
		if under, underMin, offline := check("all up"); under+underMin+offline != 0 {
			t.Fatalf("%v %v %v at the start", under, underMin, offline)
		}
		if got := c.sum("/metrics/detail", "strandline_isr_size"); got != 90 {
			t.Errorf("the ISRs of 30 partitions have %v members, want 90", got)
		}
		led := c.sum("/metrics", "strandline_leader_changes_total")
		c.kill(4)
		time.Sleep(5 * time.Second)
		if under, _, _ := check("one broker down"); under == 0 {
			t.Error("nothing is under-replicated")
		}
		if got := c.sum("/metrics", "strandline_leader_changes_total"); got <= led-6 { // node 4's own count has gone with it
			t.Errorf("%v leader changes after a leader died, %v before", got, led)
		}
		c.kill(5)
		time.Sleep(5 * time.Second)
		if _, underMin, _ := check("two brokers down"); underMin == 0 {
			t.Error("nothing is below its minimum")
		}
		lonely := kafka.NoNode
		for _, s := range c.alive().Image().Topic("t").Partitions {
			if len(s.ISR) == 1 {
				lonely = s.Leader
			}
		}
		c.kill(lonely)
		time.Sleep(10 * time.Second)
		if _, _, offline := check("the last replica of some down"); offline == 0 {
			t.Error("nothing is offline")
		}
		c.start(lonely, 4, 5)
		c.untilInBubble("all in sync again", func() bool { return c.whole("t") })
		time.Sleep(time.Second)
		check("all up again")
		for _, m := range c.members {
			if got := c.metric(m.id, "/metrics", "strandline_log_truncated_below_hw_total"); got != 0 {
				t.Errorf("node %v: %v truncations below the watermark", m.id, got)
			}
			if got := c.metric(m.id, "/metrics", "strandline_fsync_seconds_count"); got == 0 {
				t.Errorf("node %v: no sync was observed", m.id)
			}
		}
	})
}

// TestCluster_MetricsOfPartitions: /metrics does not grow with partitions, /metrics/detail has each replica on its node, and the disk's numbers are those
// of the disk.
func TestCluster_MetricsOfPartitions(t *testing.T) {
	clusterBubble(t, 3, withHTTP, func(t *testing.T, c *cluster) {
		size := func(path string) int {
			_, body := httpGet(t, c.net.Host("client"), "n1:8080", path)
			return strings.Count(body, "\n")
		}
		small := size("/metrics")
		cl := c.client()
		defer cl.Close()
		c.create(cl, "t", 40)
		pub := c.publish(cl, "t", 7)
		time.Sleep(time.Second)
		acked := float64(len(pub.finish(t)))
		c.untilInBubble("the copies know that all is committed", func() bool {
			return c.sum("/metrics/detail", `strandline_partition_high_watermark{partition="7",topic="t"}`) == 3*acked
		})
		if got := size("/metrics"); got > small+20 { // one line for each API used
			t.Errorf("/metrics has grown from %d to %d lines", small, got)
		}
		if got := size("/metrics/detail"); got < 40*4 {
			t.Errorf("%d lines for 40 replicas", got)
		}
		for name, want := range map[string]float64{"log_end_offset": acked, "log_start_offset": 0} {
			for _, m := range c.members {
				if got := c.metric(m.id, "/metrics/detail", "strandline_partition_"+name+`{partition="7",topic="t"}`); got != want {
					t.Errorf("node %v: %s is %v, want %v", m.id, name, got, want)
				}
			}
		}
		for _, m := range c.members {
			m.fs.SetFree(1 << 30)
		}
		time.Sleep(time.Minute) // the reserve is written
		for _, m := range c.members {
			s, err := m.fs.Space("/data")
			if err != nil {
				t.Fatal(err)
			}
			const kept = storage.ReserveBytesDefault // for what must go on
			if used, limit := c.metric(m.id, "/metrics", "strandline_disk_used_bytes"), c.metric(m.id, "/metrics", "strandline_disk_limit_bytes"); limit != float64(s.Total-kept) || limit-used != float64(s.Usable-kept) {
				t.Errorf("node %v: %v used, limit %v, of %+v", m.id, used, limit, s)
			}
		}
	})
}
