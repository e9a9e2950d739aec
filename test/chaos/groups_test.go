package chaos

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

const (
	groupName    = "fulfillment"
	groupMembers = 2
	// offsetsTopic keeps the groups' progress.
	offsetsTopic = "__consumer_offsets"
)

// TestKill9_GroupsKeepTheirPlace kills a node under a consumer group that commits what it has processed. No confirmed commit is lost or moved
// back, and no acknowledged record is skipped. P30, P32, R44, R45, R49.
func TestKill9_GroupsKeepTheirPlace(t *testing.T) {
	groupLoop(t, false, *roundsFlag)
}

// TestKill9_ConsumerGroupsKeepTheirPlace does it with members of the consumer protocol (KIP-848).
func TestKill9_ConsumerGroupsKeepTheirPlace(t *testing.T) {
	groupLoop(t, false, *roundsFlag, kgo.ServerSideBalancer())
}

// TestPowerCut_GroupsKeepTheirPlace does the same with the build whose unsynced bytes die with it, and progress that is `synced`.
func TestPowerCut_GroupsKeepTheirPlace(t *testing.T) {
	groupLoop(t, true, *faultRoundsFlag)
}

func groupLoop(t *testing.T, fault bool, rounds int, more ...kgo.Opt) {
	seed := *seedFlag
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("seed %d, %d rounds", seed, rounds)
	rng := rand.New(rand.NewPCG(seed, 2))
	n := newNode(t, fault)
	n.start()
	n.waitReady()
	createTopic(t, n.address)
	if fault {
		syncProgress(t, n.address)
	}
	h, p := newHistory(), newProgress()
	stopProducing := produce(t, n.address, h)
	stopMembers := startMembers(t, n.address, p, more...)
	for i := range rounds {
		p.waitCommits(t, n)
		pause(rng.Int64N(int64(100 * time.Millisecond)))
		n.kill()
		before := p.snapshot()
		n.start()
		if i%2 == 1 { // inside recovery, or while the coordinator loads
			pause(rng.Int64N(int64(100 * time.Millisecond)))
			n.kill()
			n.start()
		}
		n.waitReady()
		p.audit(t, n, before)
	}
	stopProducing()
	ends, err := endOffsets(context.Background(), n.address, topicName)
	if err != nil {
		t.Fatal(err)
	}
	p.waitAll(t, n, ends)
	stopMembers()
	before := p.snapshot()
	if code := n.stop(); code != 0 {
		t.Errorf("SIGTERM: exit code %d, want 0: %s", code, n.log)
	}
	n.start()
	n.waitReady()
	p.audit(t, n, before)
	for i, v := range p.judge(h, ends) {
		if i == 20 {
			t.Fatal("more violations not shown")
		}
		t.Error(v)
	}
	t.Logf("%d commits confirmed, %d records acknowledged", p.commits, h.acked())
}

// syncProgress makes the groups' progress survive a power cut: under `dev` it does not by itself. The topic is created on its first use.
func syncProgress(t *testing.T, address string) {
	t.Helper()
	c, err := kgo.NewClient(kgo.SeedBrokers(address))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	admin := kadm.NewClient(c)
	if _, err := admin.FetchOffsets(context.Background(), groupName); err != nil {
		t.Fatal(err)
	}
	synced := "synced"
	r, err := admin.AlterTopicConfigs(context.Background(), []kadm.AlterConfig{{Op: kadm.SetConfig, Name: "strandline.flush", Value: &synced}}, offsetsTopic)
	if err != nil || len(r) != 1 || r[0].Err != nil {
		t.Fatal(r, err)
	}
}

// progress is what the members of the group did and were told.
type progress struct {
	mu sync.Mutex
	// processed holds the value found at each offset.
	processed map[int32]map[int64]uint64
	// attempted and confirmed are the largest offsets that were sent in a commit, and that the node confirmed.
	attempted, confirmed map[int32]int64
	commits              int
	wrong                []string
}

func newProgress() *progress {
	p := &progress{processed: map[int32]map[int64]uint64{}, attempted: map[int32]int64{}, confirmed: map[int32]int64{}}
	for i := range partitions {
		p.processed[i] = map[int64]uint64{}
	}
	return p
}

func (p *progress) process(r *kgo.Record) {
	p.mu.Lock()
	defer p.mu.Unlock()
	v := binary.BigEndian.Uint64(r.Value)
	if before, again := p.processed[r.Partition][r.Offset]; again && before != v {
		p.wrong = append(p.wrong, fmt.Sprintf("P2 partition %d offset %d: value %d, before %d", r.Partition, r.Offset, v, before))
	}
	p.processed[r.Partition][r.Offset] = v
}

func (p *progress) attempt(offsets map[string]map[int32]kgo.EpochOffset) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for partition, o := range offsets[topicName] {
		p.attempted[partition] = max(p.attempted[partition], o.Offset)
	}
}

// confirm takes the answer to a commit. A member that was fenced meanwhile is told so, and has changed nothing.
func (p *progress) confirm(req *kmsg.OffsetCommitRequest, resp *kmsg.OffsetCommitResponse) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range resp.Topics {
		for j := range resp.Topics[i].Partitions {
			asked, answered := req.Topics[i].Partitions[j], resp.Topics[i].Partitions[j]
			if kerr.ErrorForCode(answered.ErrorCode) == nil {
				p.confirmed[asked.Partition] = max(p.confirmed[asked.Partition], asked.Offset)
				p.commits++
			}
		}
	}
}

func (p *progress) snapshot() map[int32]int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	out := map[int32]int64{}
	for partition, o := range p.confirmed {
		out[partition] = o
	}
	return out
}

// waitCommits waits for commits since the call, so that each kill meets some in flight.
func (p *progress) waitCommits(t *testing.T, n *node) {
	t.Helper()
	count := func() int { p.mu.Lock(); defer p.mu.Unlock(); return p.commits }
	begin, from := time.Now(), count()
	for count() < from+10 {
		if time.Since(begin) > startTimeMax {
			t.Fatalf("no commit for %v: %s", startTimeMax, n.log)
		}
		pause(int64(time.Millisecond))
	}
}

// audit reads the stored offsets and compares them with what was confirmed before.
func (p *progress) audit(t *testing.T, n *node, before map[int32]int64) {
	t.Helper()
	c, err := kgo.NewClient(kgo.SeedBrokers(n.address))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(context.Background(), startTimeMax)
	defer cancel()
	stored, err := kadm.NewClient(c).FetchOffsets(ctx, groupName)
	if err != nil {
		t.Fatalf("%v\n%s", err, n.log)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for partition := range partitions {
		o, ok := stored.Lookup(topicName, partition)
		low, had := before[partition]
		switch {
		case ok && o.Err != nil:
			t.Errorf("partition %d: %v", partition, o.Err)
		case had && (!ok || o.At < low):
			t.Errorf("P30 partition %d: stored %d (%v), confirmed %d", partition, o.At, ok, low)
		case ok && o.At > p.attempted[partition]:
			t.Errorf("P30 partition %d: stored %d, never sent more than %d", partition, o.At, p.attempted[partition])
		}
	}
}

// waitAll waits until the group has processed and committed everything.
func (p *progress) waitAll(t *testing.T, n *node, ends map[int32]int64) {
	t.Helper()
	isDone := func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		for partition, end := range ends {
			if p.confirmed[partition] < end {
				return false
			}
		}
		return true
	}
	for begin := time.Now(); !isDone(); pause(int64(5 * time.Millisecond)) {
		if time.Since(begin) > startTimeMax {
			t.Fatalf("the group does not get to the ends %v, it is at %v: %s", ends, p.snapshot(), n.log)
		}
	}
}

// judge compares what was processed with what was acknowledged: nothing skipped, nothing else in its place.
func (p *progress) judge(h *history, ends map[int32]int64) []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	h.mu.Lock()
	defer h.mu.Unlock()
	bad := p.wrong
	for partition, sent := range h.sent {
		for _, v := range sent {
			at, acked := h.acks[v]
			if got, ok := p.processed[partition][at]; acked && (!ok || got != v) {
				bad = append(bad, fmt.Sprintf("P32 partition %d offset %d: value %d was never processed (%d %v)", partition, at, v, got, ok))
			}
		}
		if int64(len(p.processed[partition])) != ends[partition] {
			bad = append(bad, fmt.Sprintf("P32 partition %d: %d of %d offsets processed", partition, len(p.processed[partition]), ends[partition]))
		}
	}
	return bad
}

// startMembers runs the members until the returned function is called.
func startMembers(t *testing.T, address string, p *progress, more ...kgo.Opt) func() {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	for range groupMembers {
		c, err := kgo.NewClient(append([]kgo.Opt{
			kgo.SeedBrokers(address), kgo.ConsumerGroup(groupName), kgo.ConsumeTopics(topicName),
			kgo.ConsumeResetOffset(kgo.NoResetOffset()), kgo.ConsumeStartOffset(kgo.NewOffset().AtStart()),
			kgo.DisableAutoCommit(), kgo.BlockRebalanceOnPoll(), kgo.MetadataMinAge(50 * time.Millisecond), kgo.FetchMaxWait(50 * time.Millisecond),
			kgo.SessionTimeout(6 * time.Second), kgo.HeartbeatInterval(100 * time.Millisecond),
			kgo.RetryBackoffFn(func(int) time.Duration { return 20 * time.Millisecond }),
		}, more...)...)
		if err != nil {
			t.Fatal(err)
		}
		all.Go(func() {
			defer c.CloseAllowingRebalance()
			consumeInGroup(ctx, c, p)
		})
	}
	return func() {
		cancel()
		all.Wait()
	}
}

// consumeInGroup processes records, then commits them.
func consumeInGroup(ctx context.Context, c *kgo.Client, p *progress) {
	for ctx.Err() == nil {
		fetches := c.PollRecords(ctx, 100)
		fetches.EachRecord(p.process)
		offsets := c.UncommittedOffsets()
		if len(offsets) > 0 {
			p.attempt(offsets)
			c.CommitOffsetsSync(context.WithoutCancel(ctx), offsets, func(_ *kgo.Client, req *kmsg.OffsetCommitRequest, resp *kmsg.OffsetCommitResponse, err error) {
				if err == nil {
					p.confirm(req, resp)
				}
			})
		}
		c.AllowRebalance()
	}
}
