package server

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// groupBook is what the members of a group tell about it: who owns what, and which records were processed.
type groupBook struct {
	mu        sync.Mutex
	owner     map[int32]string
	dead      map[string]bool
	processed map[string]int
	wrong     []string
}

func newGroupBook() *groupBook {
	return &groupBook{owner: map[int32]string{}, dead: map[string]bool{}, processed: map[string]int{}}
}

// assigned begins the ownership of partitions: nobody alive may own them (P29, I7).
func (g *groupBook) assigned(member string, partitions []int32) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, p := range partitions {
		if other := g.owner[p]; other != "" && other != member && !g.dead[other] {
			g.wrong = append(g.wrong, fmt.Sprintf("partition %d is given to %s while %s owns it", p, member, other))
		}
		g.owner[p] = member
	}
}

// released ends it.
func (g *groupBook) released(member string, partitions []int32) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, p := range partitions {
		if g.owner[p] == member {
			delete(g.owner, p)
		}
	}
}

func (g *groupBook) died(member string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.dead[member] = true
}

func (g *groupBook) process(r *kgo.Record) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.processed[string(r.Value)]++
}

// counts returns how many different records were processed, and by member how many partitions are owned.
func (g *groupBook) counts() (processed int, owned map[string]int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	owned = map[string]int{}
	for _, m := range g.owner {
		if !g.dead[m] {
			owned[m]++
		}
	}
	return len(g.processed), owned
}

// groupMember is one consumer of a group; it commits after it has processed.
type groupMember struct {
	name   string
	client *kgo.Client
	done   chan struct{}
}

const groupTopic = "jobs"

func startMember(t *testing.T, b *testBroker, book *groupBook, name string, more ...kgo.Opt) *groupMember {
	t.Helper()
	partitionsOf := func(m map[string][]int32) []int32 { return m[groupTopic] }
	opts := append([]kgo.Opt{
		kgo.SeedBrokers(b.addr), kgo.ConsumerGroup("crew"), kgo.ConsumeTopics(groupTopic), kgo.ClientID(name),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.DisableAutoCommit(), kgo.BlockRebalanceOnPoll(),
		kgo.SessionTimeout(time.Second), kgo.HeartbeatInterval(50 * time.Millisecond), kgo.RebalanceTimeout(10 * time.Second),
		kgo.FetchMaxWait(50 * time.Millisecond),
		kgo.OnPartitionsAssigned(func(_ context.Context, _ *kgo.Client, m map[string][]int32) { book.assigned(name, partitionsOf(m)) }),
		kgo.OnPartitionsRevoked(func(_ context.Context, _ *kgo.Client, m map[string][]int32) { book.released(name, partitionsOf(m)) }),
		kgo.OnPartitionsLost(func(_ context.Context, _ *kgo.Client, m map[string][]int32) { book.released(name, partitionsOf(m)) }),
	}, more...)
	client, err := kgo.NewClient(opts...)
	must(t, err)
	m := &groupMember{name: name, client: client, done: make(chan struct{})}
	go func() {
		defer close(m.done)
		for {
			fetches := client.PollRecords(context.Background(), 50)
			if fetches.IsClientClosed() {
				return
			}
			fetches.EachRecord(book.process)
			if err := client.CommitUncommittedOffsets(context.Background()); err != nil {
				t.Logf("%s: commit: %v", name, err) // a rebalance may have come between: what was processed is read again
			}
			client.AllowRebalance()
		}
	}()
	t.Cleanup(m.stop)
	return m
}

// stop leaves the group, unless the member is static.
func (m *groupMember) stop() {
	m.client.CloseAllowingRebalance()
	<-m.done
}

// produceJobs publishes n records and waits for them.
func produceJobs(t *testing.T, b *testBroker, from, n int) {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(b.addr), kgo.RecordPartitioner(kgo.RoundRobinPartitioner()))
	must(t, err)
	defer client.Close()
	for i := range n {
		r := &kgo.Record{Topic: groupTopic, Value: []byte(strconv.Itoa(from + i)), Timestamp: b.wall.Now()}
		client.Produce(context.Background(), r, func(_ *kgo.Record, err error) {
			if err != nil {
				t.Errorf("produce: %v", err)
			}
		})
	}
	must(t, client.Flush(context.Background()))
}

// wait waits until so many different records are processed, and each of the members owns the number of partitions that is wanted of it.
func (g *groupBook) wait(t *testing.T, processed int, owned map[string]int) {
	t.Helper()
	what := fmt.Sprintf("%d records processed, partitions %v", processed, owned)
	eventually(t, what, func() bool {
		p, o := g.counts()
		return p == processed && fmt.Sprint(o) == fmt.Sprint(owned)
	})
}

// Real consumers, eager and cooperative: members come, leave and die while records flow. At any time a partition has one owner; no record is
// left out; a member that is not needed sits idle; what dies is replaced after its session (P29, P34, R47-R49, R53, R54, R57).
func TestClients_EagerAndCooperativeGroups(t *testing.T) {
	for _, balancer := range []kgo.GroupBalancer{kgo.RangeBalancer(), kgo.CooperativeStickyBalancer()} {
		t.Run(balancer.ProtocolName(), func(t *testing.T) {
			b := newTestBroker(t, testOptions{broker: map[string]string{
				"group.initial.rebalance.delay.ms": "0", "group.min.session.timeout.ms": "500", "offsets.topic.num.partitions": "2",
			}})
			b.dial().create(groupTopic, 4)
			book := newGroupBook()
			with := kgo.Balancers(balancer)
			produceJobs(t, b, 0, 400)
			one := startMember(t, b, book, "one", with)
			book.wait(t, 400, map[string]int{"one": 4})
			startMember(t, b, book, "two", with)
			book.wait(t, 400, map[string]int{"one": 2, "two": 2})
			produceJobs(t, b, 400, 400)
			book.wait(t, 800, map[string]int{"one": 2, "two": 2})
			one.stop() // leaves: its partitions move at once
			book.wait(t, 800, map[string]int{"two": 4})
			dies := startMember(t, b, book, "dies", with, kgo.InstanceID("dies"))
			book.wait(t, 800, map[string]int{"two": 2, "dies": 2})
			book.died("dies")
			dies.stop() // a static member says nothing when it goes
			produceJobs(t, b, 800, 400)
			book.wait(t, 1200, map[string]int{"two": 4})
			for i := range 4 {
				startMember(t, b, book, fmt.Sprintf("more-%d", i), with)
			}
			eventually(t, "five members share four partitions", func() bool {
				_, owned := book.counts()
				return len(owned) == 4
			})
			produceJobs(t, b, 1200, 100)
			eventually(t, "all records are processed", func() bool { n, _ := book.counts(); return n == 1300 })
			book.mu.Lock()
			defer book.mu.Unlock()
			for _, text := range book.wrong {
				t.Error(text)
			}
		})
	}
}

// A static member that comes back within its session takes its partitions up again, and nobody else notices.
func TestClients_StaticMemberComesBackWithoutARebalance(t *testing.T) {
	b := newTestBroker(t, testOptions{broker: map[string]string{"group.initial.rebalance.delay.ms": "0", "offsets.topic.num.partitions": "2"}})
	b.dial().create(groupTopic, 4)
	book := newGroupBook()
	// A cooperative leader that comes back asks for a rebalance of its own accord: it does not know its old plan. Range gives the same again.
	long, plan := kgo.SessionTimeout(10*time.Second), kgo.Balancers(kgo.RangeBalancer())
	stays := startMember(t, b, book, "stays", plan, long, kgo.InstanceID("stays"))
	goes := startMember(t, b, book, "goes", plan, long, kgo.InstanceID("goes"))
	book.wait(t, 0, map[string]int{"stays": 2, "goes": 2})
	_, generation := stays.client.GroupMetadata()
	eventually(t, "both are in one generation", func() bool {
		_, g1 := stays.client.GroupMetadata()
		_, g2 := goes.client.GroupMetadata()
		generation = g1
		return g1 == g2
	})
	goes.stop()
	book.died("goes")
	back := startMember(t, b, book, "back", plan, long, kgo.InstanceID("goes"))
	produceJobs(t, b, 0, 100)
	book.wait(t, 100, map[string]int{"stays": 2, "back": 2})
	for _, m := range []*groupMember{stays, back} {
		if _, g := m.client.GroupMetadata(); g != generation {
			t.Errorf("%s is in generation %d, want %d\n%s", m.name, g, generation, b.log)
		}
	}
}

// TestO16_LagWithoutMembers: the lag of each topic is there and right while the group has members for only one of them, and when it has none.
func TestO16_LagWithoutMembers(t *testing.T) {
	b := newTestBroker(t, testOptions{broker: map[string]string{"group.initial.rebalance.delay.ms": "0", "offsets.topic.num.partitions": "2"}})
	c := b.dial()
	c.create("t1", 1)
	c.create("t2", 1)
	client, err := kgo.NewClient(kgo.SeedBrokers(b.addr))
	must(t, err)
	t.Cleanup(client.Close)
	admin := kadm.NewClient(client)
	lagsOf := func(want map[string]int64, members int) {
		t.Helper()
		eventually(t, fmt.Sprintf("lag %v with %d members", want, members), func() bool {
			lags, err := admin.Lag(t.Context(), "o16")
			must(t, err)
			got := map[string]int64{}
			for topic, partitions := range lags["o16"].Lag {
				got[topic] = partitions[0].Lag
			}
			return fmt.Sprint(got) == fmt.Sprint(want) && len(lags["o16"].Members) == members
		})
	}
	reader := func(topic string) *kgo.Client {
		r, err := kgo.NewClient(kgo.SeedBrokers(b.addr), kgo.ConsumerGroup("o16"), kgo.ConsumeTopics(topic), kgo.AutoCommitInterval(100*time.Millisecond),
			kgo.FetchMaxWait(50*time.Millisecond), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
		must(t, err)
		ctx, stop := context.WithCancel(context.Background())
		t.Cleanup(func() { stop(); r.Close() })
		go func() {
			for ctx.Err() == nil {
				r.PollFetches(ctx)
			}
		}()
		return r
	}
	fill := func(n int) {
		for _, topic := range []string{"t1", "t2"} {
			for range n {
				client.Produce(t.Context(), &kgo.Record{Topic: topic, Value: []byte("x"), Timestamp: b.wall.Now()}, nil)
			}
		}
		must(t, client.Flush(t.Context()))
	}
	fill(10)
	first, second := reader("t1"), reader("t2")
	lagsOf(map[string]int64{"t1": 0, "t2": 0}, 2)
	first.Close()
	lagsOf(map[string]int64{"t1": 0, "t2": 0}, 1)
	fill(50)
	lagsOf(map[string]int64{"t1": 50, "t2": 0}, 1)
	second.Close()
	fill(50)
	lagsOf(map[string]int64{"t1": 100, "t2": 50}, 0)
}
