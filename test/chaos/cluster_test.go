package chaos

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"strandline.dev/test/chaos/check"
	"strandline.dev/test/chaos/load"
	"strandline.dev/test/chaos/raw"
	"strandline.dev/test/chaos/rig"
)

var (
	keepFlag = flag.String("chaos.keep", "", "directory for the data and logs of clusters; it is kept")
	rateFlag = flag.Int("chaos.rate", 200, "records a second of each of the three writers of a cluster's load")
)

// healMax bounds the way back to a whole cluster after all faults are gone.
const healMax = 60 * time.Second

// newCluster forms three serve processes behind proxies, for one test.
func newCluster(t *testing.T, fault bool) *rig.Cluster {
	t.Helper()
	return newClusterOf(t, rig.Options{Binary: builtBinary(t, fault), Nodes: 3, Proxied: true})
}

func newClusterOf(t *testing.T, o rig.Options) *rig.Cluster {
	t.Helper()
	if o.Dir = t.TempDir(); *keepFlag != "" {
		dir, err := os.MkdirTemp(*keepFlag, filepath.Base(t.Name())+"-")
		if err != nil {
			t.Fatal(err)
		}
		o.Dir = dir
		t.Logf("data and logs are kept in %s", dir)
	}
	c, err := rig.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(c.Tail(3000))
		}
		_ = c.Close()
	})
	if err := c.Form(within(t, rig.StartMax)); err != nil {
		t.Fatal(err)
	}
	return c
}

func within(t *testing.T, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	t.Cleanup(cancel)
	return ctx
}

// trial is a cluster with a load on it.
type trial struct {
	t      *testing.T
	rng    *rand.Rand
	c      *rig.Cluster
	l      *load.Load
	topics []load.Topic
}

// syncedTopics are those that survive a power cut of all nodes; mixedTopics only the end of processes, or of one node at a time.
var (
	syncedTopics = []load.Topic{{Name: "synced", Partitions: 4}, {Name: "cut-synced", Partitions: 2, Cut: true}}
	mixedTopics  = append([]load.Topic{{Name: "replicated", Partitions: 4}}, syncedTopics...)
)

// startTrial creates topics with three replicas and min ISR 2, and begins to work on them. It prints its seed, which makes the choices; the
// interleaving is the machine's.
func startTrial(t *testing.T, c *rig.Cluster, topics []load.Topic) *trial {
	t.Helper()
	seed := *seedFlag
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("-chaos.seed %d", seed)
	for _, topic := range topics {
		flush := "synced"
		if topic.Name == "replicated" {
			flush = "replicated"
		}
		configs := map[string]string{"strandline.flush": flush, "min.insync.replicas": "2", "segment.bytes": "262144"}
		if err := c.CreateTopic(within(t, healMax), rig.Topic{Name: topic.Name, Partitions: topic.Partitions, Replicas: 3, Configs: configs}); err != nil {
			t.Fatal(err)
		}
	}
	tr := &trial{t: t, rng: rand.New(rand.NewPCG(seed, 2)), c: c, topics: topics, l: load.Start(load.Options{Brokers: c.Brokers(), Topics: topics, Rate: *rateFlag, Seed: seed, Churn: true})}
	t.Cleanup(tr.l.Stop)
	return tr
}

// via is a broker: the last node is one in every cluster.
func (tr *trial) via() *rig.Node { return tr.c.Nodes[len(tr.c.Nodes)-1] }

// progress waits until a record has been confirmed on every partition, of those sent from now on.
func (tr *trial) progress(max time.Duration) {
	tr.t.Helper()
	since := time.Now()
	err := rig.Until(within(tr.t, max), "a confirmed record on every partition", func(context.Context) error {
		if silent := tr.l.Silent(since); len(silent) > 0 {
			return fmt.Errorf("none on %v", silent)
		}
		return nil
	})
	if err != nil {
		tr.t.Fatal(err)
	}
}

// whole waits until all replicas of all topics are in sync.
func (tr *trial) whole() {
	tr.t.Helper()
	var names []string
	for _, topic := range tr.topics {
		names = append(names, topic.Name)
	}
	if err := tr.c.Whole(within(tr.t, healMax), 3, names...); err != nil {
		tr.t.Fatal(err)
	}
}

// finish heals everything, waits until clients have caught up and the cluster is whole, stops all nodes, and judges what everybody saw and
// what every replica holds.
func (tr *trial) finish() {
	t := tr.t
	t.Helper()
	tr.c.Heal()
	for _, n := range tr.c.Nodes {
		if n.Running() {
			n.Resume()
		}
	}
	if err := tr.c.StartAll(within(t, healMax)); err != nil {
		t.Fatal(err)
	}
	tr.progress(healMax)
	if err := tr.l.StopWriting(within(t, healMax)); err != nil {
		t.Error(err)
	}
	tr.whole()
	err := rig.Until(within(t, healMax), "the group to read everything", func(context.Context) error {
		if behind := tr.l.Behind(); len(behind) > 0 {
			return fmt.Errorf("%v", behind)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	tr.l.Stop()
	tr.churned()
	ends := tr.ends()
	if err := tr.c.StopAll(); err != nil {
		t.Error(err)
	}
	final := tr.replicas(ends)
	bad := append(tr.l.Problems(), check.Judge(tr.l.R.Take(final))...)
	for i, v := range bad {
		if i == 20 {
			t.Errorf("%d more are not shown", len(bad)-i)
			break
		}
		t.Error(v)
	}
	t.Logf("%v", tr.l.Counts())
}

// churned checks that topics whose creation or deletion was confirmed are there, or not.
func (tr *trial) churned() {
	for name, exist := range tr.l.Topics() {
		_, _, err := raw.Topic(within(tr.t, healMax), tr.via().Kafka, name)
		if exist != (err == nil) {
			tr.t.Errorf("P40 topic %s: confirmed to exist: %t; now: %v", name, exist, err)
		}
	}
}

// bounds are the start and end of a partition as its leader tells them.
type bounds struct {
	// dir is the name of the partition's directory on every node.
	dir        string
	start, end int64
}

func (tr *trial) ends() map[check.Key]bounds {
	out := map[check.Key]bounds{}
	for _, topic := range tr.topics {
		for p := range topic.Partitions {
			k := check.Key{Topic: topic.Name, Partition: p}
			err := rig.Until(within(tr.t, healMax), fmt.Sprintf("the end of %v", k), func(ctx context.Context) error {
				parts, id, err := raw.Topic(ctx, tr.via().Kafka, k.Topic)
				if err != nil {
					return err
				}
				at := tr.c.Node(parts[p].Leader).Kafka
				start, err := listOffset(ctx, at, k, -2)
				if err != nil {
					return err
				}
				end, err := listOffset(ctx, at, k, -1)
				out[k] = bounds{fmt.Sprintf("%x-%d", id, p), start, end}
				return err
			})
			if err != nil {
				tr.t.Fatal(err)
			}
		}
	}
	return out
}

func listOffset(ctx context.Context, address string, k check.Key, timestamp int64) (int64, error) {
	req := kmsg.NewPtrListOffsetsRequest()
	req.ReplicaID = -1
	rt := kmsg.NewListOffsetsRequestTopic()
	rt.Topic = k.Topic
	rp := kmsg.NewListOffsetsRequestTopicPartition()
	rp.Partition, rp.Timestamp, rp.CurrentLeaderEpoch = k.Partition, timestamp, -1
	rt.Partitions = append(rt.Partitions, rp)
	req.Topics = append(req.Topics, rt)
	r, err := raw.Ask(ctx, address, req)
	if err != nil {
		return 0, err
	}
	answer := r.(*kmsg.ListOffsetsResponse).Topics[0].Partitions[0]
	if answer.ErrorCode != 0 {
		return 0, fmt.Errorf("error code %d", answer.ErrorCode)
	}
	return answer.Offset, nil
}
