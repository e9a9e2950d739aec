package chaos

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// damage is one way a file can be hurt while the node is down.
type damage struct {
	name string
	do   func([]byte) []byte
}

var damages = []damage{
	{"bit flipped in the middle", func(b []byte) []byte { b[len(b)/2] ^= 0x10; return b }},
	{"zeroed", func(b []byte) []byte { return make([]byte, len(b)) }},
	{"emptied", func([]byte) []byte { return nil }},
	{"truncated to half", func(b []byte) []byte { return b[:len(b)/2] }},
}

// fileKind is one kind of file in a data directory.
type fileKind struct {
	name string
	// glob is relative to the data directory; the pick-th match in name order is damaged (-1 = the last).
	glob string
	pick int
	// data says that the file holds records: the partition it belongs to may then answer with an error or with less, but never with
	// a wrong byte. Without it every record must be there.
	data bool
}

var fileKinds = []fileKind{
	{"sealed segment", "topics/*-0/*.log", 0, true},
	{"active segment", "topics/*-0/*.log", -1, true},
	{"segment append times", "topics/*-0/*.meta", 0, false},
	{"segment index", "topics/*-0/*.index", 0, false},
	{"producer snapshot", "topics/*-0/*producer*", -1, false},
	{"leader epoch cache", "topics/*-0/*epoch*", -1, false},
	{"sync point", "sync-point", 0, false},
	{"copy of the sync point", "sync-point.copy", 0, false},
	{"start numbers", "start", 0, false},
	{"clean-shutdown marker", "clean-shutdown", 0, false},
	{"identity", "meta.json", 0, false},
	{"vote", "metadata/vote", 0, false},
	{"metadata snapshot", "metadata/*.snap", -1, false},
	{"metadata log", "metadata/*.log", -1, false},
	{"copy of the metadata log", "metadata/log.copy", 0, false},
}

// TestDamage_EachFileKindInTurn damages one file of each kind in each way, after a clean stop and after kill -9. The node must start by
// itself, serve no wrong byte, keep every partition whose records were not hurt whole, and accept new records there. There is no
// exception.
func TestDamage_EachFileKindInTurn(t *testing.T) {
	for _, clean := range []bool{true, false} {
		t.Run(fmt.Sprintf("clean=%v", clean), func(t *testing.T) {
			t.Parallel()
			whole := newDamageCase(t, clean)
			for _, k := range fileKinds {
				for _, d := range damages {
					t.Run(k.name+"/"+d.name, func(t *testing.T) {
						t.Parallel()
						whole.run(t, k, d)
					})
				}
			}
		})
	}
}

// damageCase is a data directory with a known history, copied for each case.
type damageCase struct {
	dir   string
	clean bool
	h     *history
}

// damageRecords are sent to each partition: enough for several segments of segmentBytes.
const damageRecords = 600

func newDamageCase(t *testing.T, clean bool) *damageCase {
	t.Helper()
	n := newNode(t, false)
	n.start()
	n.waitReady()
	createTopic(t, n.address)
	c := &damageCase{dir: n.dir, clean: clean, h: newHistory()}
	send(t, n.address, c.h, 1, damageRecords*uint64(partitions))
	if clean {
		if code := n.stop(); code != 0 {
			t.Fatalf("stop: exit code %d: %s", code, n.log)
		}
		return c
	}
	waitQuiet(t, n)
	n.kill()
	return c
}

// waitQuiet waits until nothing is on its way to the disk: the newest metadata snapshot is younger than the metadata log, and the
// sync point is younger than both. What is promised about damage to the files they cover holds from then on.
func waitQuiet(t *testing.T, n *node) {
	t.Helper()
	for begin := time.Now(); ; pause(int64(50 * time.Millisecond)) {
		log, snapshot, point := newest(t, n, "metadata/*.log"), newest(t, n, "metadata/*.snap"), newest(t, n, "sync-point")
		if snapshot.After(log) && point.After(snapshot) {
			return
		}
		if time.Since(begin) > startTimeMax {
			t.Fatalf("not quiet after %v: log %v, snapshot %v, sync point %v", startTimeMax, log, snapshot, point)
		}
	}
}

// newest is when the youngest file of that name was written; the zero time if there is none.
func newest(t *testing.T, n *node, glob string) (at time.Time) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(n.dir, glob))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		// A file that was replaced meanwhile is looked at in the next round.
		if st, err := os.Stat(f); err == nil && st.ModTime().After(at) {
			at = st.ModTime()
		}
	}
	return at
}

// send produces the values [from, from+n) round robin over the partitions and waits for all acknowledgements.
func send(t *testing.T, address string, h *history, from, n uint64) {
	t.Helper()
	c, err := kgo.NewClient(kgo.SeedBrokers(address), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerBatchMaxBytes(8<<10))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for v := from; v < from+n; v++ {
		p := int32(v % uint64(partitions))
		h.send(p, v)
		c.Produce(context.Background(), &kgo.Record{Topic: topicName, Partition: p, Value: valueOf(v)}, func(r *kgo.Record, err error) {
			if err != nil {
				t.Errorf("partition %d: %v", r.Partition, err)
				return
			}
			h.ack(binary.BigEndian.Uint64(r.Value), r.Offset)
		})
	}
	if err := c.Flush(context.Background()); err != nil {
		t.Fatal(err)
	}
}

func (c *damageCase) run(t *testing.T, k fileKind, d damage) {
	n := newNode(t, false)
	n.dir = filepath.Join(t.TempDir(), "data")
	if err := os.CopyFS(n.dir, os.DirFS(c.dir)); err != nil {
		t.Fatal(err)
	}
	if !c.hurt(t, n.dir, k, d) {
		return
	}
	n.start()
	n.waitReady()
	for p := range partitions {
		hurt := k.data && p == 0
		records, err := readPartition(n.address, p, c.h.count(p), hurt)
		if err != nil && !hurt {
			t.Errorf("partition %d, whose records were not hurt: %v\n%s", p, err, n.log)
			continue
		}
		c.check(t, p, records, hurt)
	}
	// New records go where nothing was hurt.
	one := newHistory()
	send(t, n.address, one, 1_000_001, 1) // partition 1
	n.stop()
}

// hurt damages a file of the kind; found is false where this case has no such file.
func (c *damageCase) hurt(t *testing.T, dir string, k fileKind, d damage) (found bool) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, k.glob))
	if err != nil {
		t.Fatal(err)
	}
	if len(files) == 0 {
		if !c.clean && k.name == "clean-shutdown marker" {
			return false // a killed node leaves none
		}
		t.Fatalf("no file matches %s: the layout has changed", k.glob)
	}
	slices.Sort(files)
	file := files[(k.pick+len(files))%len(files)]
	before, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if len(before) == 0 {
		t.Fatalf("%s is empty already", file)
	}
	if err := os.WriteFile(file, d.do(bytes.Clone(before)), 0o600); err != nil {
		t.Fatal(err)
	}
	return true
}

// check compares what was read with the history: the same values at the same offsets; less only where the records were hurt.
func (c *damageCase) check(t *testing.T, p int32, got []read, hurt bool) {
	t.Helper()
	c.h.mu.Lock()
	defer c.h.mu.Unlock()
	for _, r := range got {
		if o, ok := c.h.acks[r.value]; !ok || o != r.offset {
			t.Errorf("P2 partition %d offset %d: value %d, acknowledged at %d", p, r.offset, r.value, o)
			return
		}
	}
	if !hurt && len(got) != len(c.h.sent[p]) {
		t.Errorf("P1 partition %d: %d of %d records", p, len(got), len(c.h.sent[p]))
	}
}

func (h *history) count(p int32) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.sent[p])
}

// readPartition reads up to want records from the start of one partition; it returns what it got with the error that ended it. From
// a partition whose records were hurt, which may end early, it takes what comes before the first pause.
func readPartition(address string, p int32, want int, hurt bool) ([]read, error) {
	c, err := kgo.NewClient(kgo.SeedBrokers(address), kgo.ConsumeResetOffset(kgo.NoResetOffset()),
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topicName: {p: kgo.NewOffset().At(0)}}))
	if err != nil {
		return nil, err
	}
	defer c.Close()
	var got []read
	for len(got) < want {
		pauseMax := startTimeMax
		if hurt {
			pauseMax = 500 * time.Millisecond
		}
		ctx, cancel := context.WithTimeout(context.Background(), pauseMax)
		f := c.PollFetches(ctx)
		cancel()
		for _, r := range f.Records() {
			v := binary.BigEndian.Uint64(r.Value)
			if !bytes.Equal(r.Value, valueOf(v)) {
				v = ^uint64(0) // a wrong byte: no history has this value
			}
			got = append(got, read{r.Offset, v})
		}
		if err := f.Err(); err != nil {
			return got, fmt.Errorf("after %d of %d records: %w", len(got), want, err)
		}
	}
	return got, nil
}
