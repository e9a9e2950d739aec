package chaos

import (
	"context"
	"encoding/binary"
	"flag"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

var (
	roundsFlag      = flag.Int("chaos.rounds", 4, "how often the release build is killed")
	faultRoundsFlag = flag.Int("chaos.fault-rounds", 3, "how often the fault build is killed (each a power cut)")
	seedFlag        = flag.Uint64("chaos.seed", 0, "seed of the kill schedule; 0 takes a random one")
)

const (
	topicName  = "orders"
	partitions = int32(4)
	// segmentBytes is small so that rolls happen many times a second and kills land inside them.
	segmentBytes = "65536"
	valueBytes   = 512
)

// TestKill9_AcknowledgedRecordsReadableExactlyOnce kills a node under an idempotent `synced` producer: at random moments, right
// after a new segment appears (inside a roll), and before the node is ready (inside recovery). P1, P3-P5, P19, P21.
func TestKill9_AcknowledgedRecordsReadableExactlyOnce(t *testing.T) {
	killLoop(t, false, *roundsFlag)
}

// TestPowerCut_AcknowledgedRecordsReadableExactlyOnce does the same with the build whose unsynced bytes die with it.
func TestPowerCut_AcknowledgedRecordsReadableExactlyOnce(t *testing.T) {
	killLoop(t, true, *faultRoundsFlag)
}

func killLoop(t *testing.T, fault bool, rounds int) {
	seed := *seedFlag
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("seed %d, %d rounds", seed, rounds)
	rng := rand.New(rand.NewPCG(seed, 1))
	n := newNode(t, fault)
	n.start()
	n.waitReady()
	createTopic(t, n.address)
	h := newHistory()
	stop := produce(t, n.address, h)
	kinds := map[string]int{}
	startTime := 50 * time.Millisecond
	for i := range rounds {
		waitProgress(t, n, h)
		kind := []string{"random", "roll", "recovery"}[i%3]
		kinds[kind]++
		switch kind {
		case "random":
			pause(rng.Int64N(int64(200 * time.Millisecond)))
			n.kill()
		case "roll":
			waitNewSegment(t, n)
			n.kill()
		case "recovery":
			n.kill()
			n.start()
			pause(rng.Int64N(int64(startTime)))
			n.kill()
		}
		n.start()
		startTime = n.waitReady()
	}
	stop()
	logs, err := readAll(context.Background(), n.address, topicName, partitions)
	if err != nil {
		t.Fatalf("%v\n%s", err, n.log)
	}
	for i, v := range h.judge(logs) {
		if i == 20 {
			t.Fatal("more violations not shown")
		}
		t.Error(v)
	}
	t.Logf("kills by kind: %v; acknowledged %d records; %d partitions read back", kinds, h.acked(), len(logs))
	if code := n.stop(); code != 0 {
		t.Errorf("SIGTERM: exit code %d, want 0: %s", code, n.log)
	}
}

// pause waits for a kill's chosen moment; nothing is asserted about time.
func pause(d int64) { <-time.After(time.Duration(d)) }

// waitProgress waits until the producer has been acknowledged since the call, so that each kill meets work in flight.
func waitProgress(t *testing.T, n *node, h *history) {
	t.Helper()
	begin, from := time.Now(), h.acked()
	for h.acked() < from+50 {
		if time.Since(begin) > startTimeMax {
			t.Fatalf("no acknowledgement for %v: %s", startTimeMax, n.log)
		}
		pause(int64(time.Millisecond))
	}
}

// waitNewSegment returns as soon as a new segment file exists: the roll that made it is then still being carried out.
func waitNewSegment(t *testing.T, n *node) {
	t.Helper()
	pattern := filepath.Join(n.dir, "topics", "*", "*.log")
	count := func() int {
		m, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		return len(m)
	}
	begin := time.Now()
	for from := count(); count() == from; {
		if time.Since(begin) > startTimeMax {
			t.Fatalf("no segment rolled in %v; files matching %s: %d", startTimeMax, pattern, from)
		}
	}
}

func createTopic(t *testing.T, address string) {
	t.Helper()
	c, err := kgo.NewClient(kgo.SeedBrokers(address))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	synced, segment := "synced", segmentBytes
	ctx, cancel := context.WithTimeout(context.Background(), startTimeMax)
	defer cancel()
	r, err := kadm.NewClient(c).CreateTopics(ctx, partitions, 1, map[string]*string{"strandline.flush": &synced, "segment.bytes": &segment}, topicName)
	if err == nil {
		err = r[topicName].Err
	}
	if err != nil {
		t.Fatal(err)
	}
}

// produce sends numbered records from one idempotent producer until the returned function is called, which waits for all.
func produce(t *testing.T, address string, h *history) func() {
	t.Helper()
	c, err := kgo.NewClient(kgo.SeedBrokers(address), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.StopProducerOnDataLossDetected(),
		kgo.MaxBufferedRecords(200), kgo.MetadataMinAge(50*time.Millisecond), kgo.RetryBackoffFn(func(int) time.Duration { return 20 * time.Millisecond }), kgo.ProducerBatchMaxBytes(16<<10))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var loop sync.WaitGroup
	var failed error
	loop.Add(1)
	go func() {
		defer loop.Done()
		for v := uint64(1); ctx.Err() == nil; v++ {
			value := valueOf(v)
			p := int32(v % uint64(partitions))
			h.send(p, v)
			c.Produce(context.Background(), &kgo.Record{Topic: topicName, Partition: p, Value: value}, func(r *kgo.Record, err error) {
				if err == nil {
					h.ack(binary.BigEndian.Uint64(r.Value), r.Offset)
				} else if failed == nil {
					failed = fmt.Errorf("partition %d: %w", r.Partition, err)
				}
			})
		}
	}()
	return func() {
		t.Helper()
		cancel()
		loop.Wait()
		flush, done := context.WithTimeout(context.Background(), startTimeMax)
		defer done()
		if err := c.Flush(flush); err != nil {
			t.Fatalf("flush: %v", err)
		}
		c.Close()
		if failed != nil {
			t.Errorf("the producer gave up: %v", failed)
		}
	}
}

// valueOf is the record value that carries v: the number, then bytes that follow from it, so that a reader can tell a wrong byte.
func valueOf(v uint64) []byte {
	value := binary.BigEndian.AppendUint64(make([]byte, 0, valueBytes), v)
	for x := v; len(value) < valueBytes; {
		x = x*6364136223846793005 + 1442695040888963407
		value = binary.BigEndian.AppendUint64(value, x)
	}
	return value
}

func endOffsets(ctx context.Context, address, topic string) (map[int32]int64, error) {
	c, err := kgo.NewClient(kgo.SeedBrokers(address))
	if err != nil {
		return nil, err
	}
	defer c.Close()
	list, err := kadm.NewClient(c).ListEndOffsets(ctx, topic)
	if err == nil {
		err = list.Error()
	}
	if err != nil {
		return nil, fmt.Errorf("end offsets of %s: %w", topic, err)
	}
	ends := map[int32]int64{}
	list.Each(func(o kadm.ListedOffset) { ends[o.Partition] = o.Offset })
	return ends, nil
}
