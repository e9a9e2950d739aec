//go:build linux

package hostile

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/record"
)

// C086: a thousand sockets announce a request of 100 MiB each, send its first bytes, and then one more each now and then.
func TestC086_AThousandAnnouncementsCostNothing(t *testing.T) {
	n := start(t, 0)
	c := n.client("c086", nil)
	c.roundTrip("before")
	n.resetPeak()
	var conns []net.Conn
	for range 1000 {
		nc := dial(t, n)
		_, err := nc.Write(append(binary.BigEndian.AppendUint32(nil, 100<<20), 0, 0, 0, 9, 0, 0, 0, 0, 0, 0))
		must(t, err)
		conns = append(conns, nc)
	}
	for i := range 3 {
		for _, nc := range conns {
			_, err := nc.Write([]byte{0})
			must(t, err)
		}
		c.roundTrip(fmt.Sprint("meanwhile ", i))
	}
	if peak := n.memory("VmHWM"); peak >= 100<<20 {
		t.Errorf("the process took %d MiB", peak>>20)
	}
	t.Logf("peak %d KiB with 1000 sockets", n.memory("VmHWM")>>10)
}

// C088: every codec's bombs, from many connections at once, to a topic that stores what comes and to one that compresses anew.
func TestC088_BombsFromManyConnections(t *testing.T) {
	n := start(t, 0)
	lz4 := "lz4"
	n.client("anew", map[string]*string{"compression.type": &lz4})
	c := n.client("as-sent", nil)
	c.roundTrip("before")
	all, below := bombs(t)
	flood := func(batches map[string]record.Batch, judge func(what string, code kafka.ErrorCode), topics ...string) int64 {
		before := n.memory("VmRSS")
		n.resetPeak()
		var wg sync.WaitGroup
		for range 16 {
			wg.Go(func() {
				nc := dial(t, n)
				for name, batch := range batches {
					for _, topic := range topics {
						judge(name+" to "+topic, publish(t, nc, topic, batch))
					}
				}
			})
		}
		wg.Wait()
		return n.memory("VmHWM") - before
	}
	grown := flood(all, func(what string, code kafka.ErrorCode) {
		if code != kafka.MessageTooLarge && code != kafka.CorruptMessage && code != kafka.InvalidRecord {
			t.Errorf("%s: %v", what, code)
		}
	}, "anew", "as-sent")
	if grown >= 64<<20 {
		t.Errorf("the process grew by %d MiB", grown>>20)
	}
	// What is just allowed is compressed anew, as many at a time as there are cores and at most 8.
	allowed := flood(below, func(what string, code kafka.ErrorCode) {
		if code != kafka.None {
			t.Errorf("%s, which is allowed: %v", what, code)
		}
	}, "anew")
	if most := int64(min(8, runtime.NumCPU())) * anewMax; allowed >= most {
		t.Errorf("the process grew by %d MiB for batches that are allowed, want less than %d", allowed>>20, most>>20)
	}
	c.roundTrip("after")
	t.Logf("grew by %d KiB for bombs, by %d KiB for what is just allowed", grown>>10, allowed>>10)
}

// anewMax is what one batch may cost that decompresses to 31 MiB and is compressed anew: its records, while their buffer grows, and
// garbage of the ones before.
const anewMax = 160 << 20

// bombs are batches below a megabyte: those that decompress to 256 MiB of records or say so, and those that are just allowed.
func bombs(t *testing.T) (over, below map[string]record.Batch) {
	t.Helper()
	over, below = map[string]record.Batch{}, map[string]record.Batch{}
	build := func(codec record.Codec, records int) record.Batch {
		bu, value := record.NewBuilder(codec), make([]byte, 900<<10)
		for range records {
			bu.Add(time.Now().UnixMilli(), nil, value, nil)
		}
		return bu.Build()
	}
	for codec, most := range map[record.Codec]int{record.Gzip: 280, record.Zstd: 280, record.LZ4: 200, record.Snappy: 18} {
		b := build(codec, most)
		if len(b) > 1100<<10 {
			t.Fatalf("a %v bomb of %d bytes", codec, len(b))
		}
		if codec == record.Snappy { // its ratio is too low to reach the limit in a batch that is small enough
			below[codec.String()] = b
			continue
		}
		over[codec.String()] = b
		if codec != record.LZ4 { // the topic's own
			below[codec.String()] = build(codec, 34)
		}
	}
	for name, frame := range map[string][]byte{
		"zstd with a window of 2 GiB":     {0x28, 0xb5, 0x2f, 0xfd, 0, 21 << 3, 1, 0, 0},
		"zstd of 1 GiB in a segment":      {0x28, 0xb5, 0x2f, 0xfd, 0xa0, 0, 0, 0, 0x40, 1, 0, 0},
		"gzip in gzip":                    over["gzip"].Payload(),
		"snappy block that is 4 GiB long": {0xff, 0xff, 0xff, 0xff, 0x0f, 0, 'a'},
	} {
		codec := map[byte]record.Codec{'z': record.Zstd, 'g': record.Gzip, 's': record.Snappy}[name[0]]
		if name == "gzip in gzip" {
			again, err := record.Compress(record.Gzip, nil, frame)
			must(t, err)
			frame = again
		}
		b := append(build(record.None, 1)[:record.HeaderSize:record.HeaderSize], frame...)
		binary.BigEndian.PutUint32(b[8:], uint32(len(b)-12))
		binary.BigEndian.PutUint16(b[21:], uint16(codec))
		binary.BigEndian.PutUint32(b[17:], b.ComputeCRC())
		over[name] = b
	}
	return over, below
}

// publish sends one batch and returns the code of its answer.
func publish(t *testing.T, nc net.Conn, topic string, batch []byte) kafka.ErrorCode {
	req := kmsg.NewPtrProduceRequest()
	req.Version, req.Acks, req.TimeoutMillis = 9, -1, 10_000
	rt := kmsg.NewProduceRequestTopic()
	rp := kmsg.NewProduceRequestTopicPartition()
	rt.Topic, rp.Records = topic, batch
	rt.Partitions = append(rt.Partitions, rp)
	req.Topics = append(req.Topics, rt)
	if _, err := nc.Write(kmsg.NewRequestFormatter().AppendRequest(nil, req, 1)); err != nil {
		t.Errorf("publish: %v", err)
		return -1
	}
	_ = nc.SetReadDeadline(time.Now().Add(waitMax))
	var size [4]byte
	if _, err := io.ReadFull(nc, size[:]); err != nil {
		t.Errorf("the answer to a publish: %v", err)
		return -1
	}
	body := make([]byte, binary.BigEndian.Uint32(size[:]))
	if _, err := io.ReadFull(nc, body); err != nil {
		t.Errorf("the answer to a publish: %v", err)
		return -1
	}
	resp := req.ResponseKind().(*kmsg.ProduceResponse)
	if err := resp.ReadFrom(body[5:]); err != nil {
		t.Errorf("the answer to a publish: %v", err)
		return -1
	}
	return kafka.ErrorCode(resp.Topics[0].Partitions[0].ErrorCode)
}

func dial(t *testing.T, n *node) net.Conn {
	nc, err := net.Dial("tcp", n.address)
	if err != nil {
		t.Errorf("dial: %v", err)
		nc, _ = net.Pipe()
	}
	t.Cleanup(func() { nc.Close() })
	return nc
}
