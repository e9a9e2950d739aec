package interop

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"strandline.dev/test/chaos/rig"
)

var churnRounds = flag.Int("interop.churn", len(harms), "rounds of TestChurn for each protocol")

const (
	churnTopic, churnGroup = "orders", "workers"
	// churnMembers is how many members there are, a partition for each; each of the three clients has two to begin with.
	churnMembers    = 6
	churnPartitions = churnMembers
	// churnSettled bounds the time from a fault until every member has its share: the session of who died, rebalances, and a JVM's start.
	churnSettled = 45 * time.Second
	// heardLate is how late a line of a member may be heard.
	heardLate = time.Second
	feedEvery = 20 * time.Millisecond
)

// TestChurn lets members of Java's client, librdkafka and franz-go share one group on three nodes while members leave, join, are killed with -9, and
// the node that coordinates the group is killed: P29 (whoever commits has the partition), P30 (no confirmed commit is lost or goes back), P34
// (nothing that is published is left out). In "mixed" some members of each client speak the classic protocol and some the consumer protocol.
func TestChurn(t *testing.T) {
	for _, protocol := range []string{"classic", "consumer", "mixed"} {
		t.Run(protocol, func(t *testing.T) {
			seed := *interopSeed
			if seed == 0 {
				seed = rand.Uint64()
			}
			t.Logf("-interop.seed %d", seed)
			newChurn(t, protocol, seed).run(*churnRounds)
		})
	}
}

// churn is the group at work.
type churn struct {
	t        *testing.T
	protocol string
	rng      *rand.Rand
	c        *rig.Cluster
	admin    *kadm.Client
	ctx      context.Context
	programs map[string][]string // by client: how its member is started
	book     *churnBook
	members  []*churnMember // alive
	started  int
}

func newChurn(t *testing.T, protocol string, seed uint64) *churn {
	c, err := rig.New(rig.Options{Binary: os.Getenv("STRANDLINE_BIN"), Dir: t.TempDir(), Nodes: 3, Extra: `kafka:
  group.consumer.session.timeout.ms: 6000
  group.consumer.heartbeat.interval.ms: 500
  group.initial.rebalance.delay.ms: 0
`})
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
	if err := c.CreateTopic(deadline(t), rig.Topic{Name: churnTopic, Partitions: churnPartitions, Replicas: 3}); err != nil {
		t.Fatal(err)
	}
	client, err := kgo.NewClient(kgo.SeedBrokers(c.Seeds()...), kgo.MetadataMinAge(100*time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	class := cached(t, "java", "classes") + ":" + cached(t, "java", "kafka-clients-4.4.0") + "/*"
	n := &churn{
		t: t, protocol: protocol, rng: rand.New(rand.NewPCG(seed, 7)), c: c, admin: kadm.NewClient(client), book: newChurnBook(),
		programs: map[string][]string{
			"java":       {"java", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx128m", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-cp", class, "Member"},
			"librdkafka": {cached(t, "venv", "bin", "python"), "-u", "clients/python/confluent_member.py"},
			"franz-go":   {cached(t, "bin", "member")},
		},
	}
	ctx, stop := context.WithCancel(context.Background())
	n.ctx = ctx
	var all sync.WaitGroup
	t.Cleanup(func() {
		stop()
		for _, m := range n.members {
			m.kill()
		}
		all.Wait()
	})
	for p := range int32(churnPartitions) {
		all.Go(func() { n.feed(p) })
	}
	all.Go(n.watch)
	return n
}

// feed publishes to one partition at a steady pace: the record at offset N says N, since it is the only one that does.
func (n *churn) feed(p int32) {
	cl, err := kgo.NewClient(kgo.SeedBrokers(n.c.Seeds()...), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.MetadataMinAge(100*time.Millisecond))
	if err != nil {
		n.t.Error(err)
		return
	}
	defer cl.Close()
	for i := int64(0); n.ctx.Err() == nil; i++ {
		cl.Produce(n.ctx, &kgo.Record{Topic: churnTopic, Partition: p, Value: fmt.Append(nil, i)}, func(r *kgo.Record, err error) {
			if err == nil {
				n.book.published(p, r.Offset, i)
			}
		})
		if !wait(n.ctx, feedEvery) || n.book.isFed() {
			break
		}
	}
	if err := cl.Flush(n.ctx); err != nil && n.ctx.Err() == nil {
		n.t.Error(err)
	}
	n.book.done()
}

// watch asks for the group's committed offsets again and again.
func (n *churn) watch() {
	for wait(n.ctx, 200*time.Millisecond) {
		begin := n.book.confirmed()
		r, err := n.admin.FetchOffsets(n.ctx, churnGroup)
		if err != nil || r.Error() != nil {
			continue
		}
		for p := range int32(churnPartitions) {
			at := int64(0)
			if o, ok := r.Lookup(churnTopic, p); ok {
				at = max(at, o.At) // -1: there is none yet
			}
			n.book.asked(p, at, begin[p])
		}
	}
}

func (n *churn) run(rounds int) {
	clients := slices.Sorted(maps.Keys(n.programs))
	for i := range churnMembers {
		n.join(clients[i%len(clients)])
	}
	n.progress("the group has come together")
	for round := range rounds {
		begin := time.Now()
		what := n.harm(round, clients)
		n.progress(what)
		n.t.Logf("round %d: %s; every member has its share after %v", round, what, time.Since(begin).Round(time.Millisecond))
		if err := n.c.Whole(deadline(n.t), 3, churnTopic, progressTopic); err != nil {
			n.t.Fatal(err)
		}
	}
	n.book.stopFeeding()
	err := rig.Until(deadline(n.t), "the group to commit all that was published", func(context.Context) error { return n.book.behind(churnPartitions) })
	if err != nil {
		n.t.Error(err)
	}
	for _, m := range n.members {
		if err := m.leave(); err != nil {
			n.t.Errorf("%s: %v", m.name, err)
		}
	}
	for _, wrong := range n.book.judge(churnPartitions) {
		n.t.Error(wrong)
	}
	if n.t.Failed() {
		n.t.Log(n.c.Tail(logTail))
	}
	n.t.Log(n.book.counts())
}

// harms are the kinds of harm; each round does the next one, to a member and with a client that comes for it.
var harms = []func(n *churn, m *churnMember, joins string) string{
	(*churn).killWithCoordinator, (*churn).letLeave, (*churn).killAlone,
}

// harm does a round's harm.
func (n *churn) harm(round int, clients []string) string {
	i := n.rng.IntN(len(n.members))
	m := n.members[i]
	n.members = slices.Delete(n.members, i, i+1)
	return harms[round%len(harms)](n, m, clients[n.rng.IntN(len(clients))])
}

// killWithCoordinator kills a member and the node that coordinates the group, and starts the node again when the group has got over it.
func (n *churn) killWithCoordinator(m *churnMember, joins string) string {
	coordinator := n.admin.FindGroupCoordinators(deadline(n.t), churnGroup)[churnGroup]
	if coordinator.Err != nil {
		n.t.Fatalf("who coordinates the group: %v", coordinator.Err)
	}
	node := n.c.Node(coordinator.NodeID)
	m.kill()
	node.Kill()
	n.join(joins)
	n.progress("a member and the coordinator died")
	if err := node.Start(); err != nil {
		n.t.Fatal(err)
	}
	if err := node.Ready(deadline(n.t)); err != nil {
		n.t.Fatal(err)
	}
	return fmt.Sprintf("%s and the coordinator, node %d, died, %s joined, the node is back", m.name, node.ID, joins)
}

// letLeave has a member leave in order, beside the one that comes.
func (n *churn) letLeave(m *churnMember, joins string) string {
	n.join(joins)
	if err := m.leave(); err != nil {
		n.t.Errorf("%s: %v", m.name, err)
	}
	return fmt.Sprintf("%s joined, %s left", joins, m.name)
}

func (n *churn) killAlone(m *churnMember, joins string) string {
	m.kill()
	n.join(joins)
	return fmt.Sprintf("%s died, %s joined", m.name, joins)
}

// progress waits until each member that is alive has a partition, and has committed what it read from it from now on.
func (n *churn) progress(after string) {
	n.t.Helper()
	since := time.Now()
	ctx, cancel := context.WithTimeout(context.Background(), churnSettled)
	defer cancel()
	var alive []string
	for _, m := range n.members {
		alive = append(alive, m.name)
	}
	err := rig.Until(ctx, "a share for each member", func(context.Context) error { return n.book.shared(since, alive) })
	if err != nil {
		n.t.Fatalf("%s: %v\n%s\n%s", after, err, n.book.tail(), n.c.Tail(logTail))
	}
}

// join starts a member.
func (n *churn) join(client string) {
	n.t.Helper()
	n.started++
	protocol := n.protocol
	if protocol == "mixed" {
		protocol = []string{"classic", "consumer"}[n.started%2]
	}
	name := fmt.Sprintf("m%d-%s-%s", n.started, client, protocol)
	args := append(slices.Clone(n.programs[client]), strings.Join(n.c.Seeds(), ","), churnGroup, churnTopic, protocol)
	m, err := startMember(name, args, cached(n.t, "logs", "churn-"+n.protocol+"-"+name+".log"), n.book)
	if err != nil {
		n.t.Fatal(err)
	}
	n.members = append(n.members, m)
}

func wait(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}
