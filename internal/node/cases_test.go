package node

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"hash/crc32"
	"io"
	"log/slog"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/sys/systest"
)

var rewrite = flag.Bool("rewrite", false, "write testdata anew")

// TestO15_AThousandRecordsAfterFiveKillsOfAll: all nodes are killed at once and started again, five times; the topic exists, and every acknowledged
// record is read once and in order.
func TestO15_AThousandRecordsAfterFiveKillsOfAll(t *testing.T) {
	clusterBubble(t, 3, nil, func(t *testing.T, c *cluster) {
		var acked []string
		for round := range 5 {
			cl := c.client()
			if round == 0 {
				c.create(cl, "t", 1)
			}
			var records []*kgo.Record
			for range 1000 {
				value := fmt.Sprint(len(acked))
				acked = append(acked, value)
				records = append(records, &kgo.Record{Topic: "t", Value: []byte(value)})
			}
			if err := cl.ProduceSync(t.Context(), records...).FirstErr(); err != nil {
				t.Fatal(err)
			}
			cl.Close()
			for _, id := range c.ids() {
				c.kill(id)
			}
			c.start(c.ids()...)
			same(t, acked, c.read("t", 0, len(acked)))
		}
	})
}

// listed is ListOffsets' answer for one partition.
func (c *cluster) listed(cl *kgo.Client, topic string, timestamp int64) kmsg.ListOffsetsResponseTopicPartition {
	c.t.Helper()
	p := kmsg.NewListOffsetsRequestTopicPartition()
	p.Timestamp, p.CurrentLeaderEpoch = timestamp, -1
	rt := kmsg.NewListOffsetsRequestTopic()
	rt.Topic, rt.Partitions = topic, append(rt.Partitions, p)
	req := kmsg.NewPtrListOffsetsRequest()
	req.ReplicaID, req.Topics = -1, append(req.Topics, rt)
	resp, err := req.RequestWith(c.t.Context(), cl)
	if err == nil {
		err = kerr.ErrorForCode(resp.Topics[0].Partitions[0].ErrorCode)
	}
	if err != nil {
		c.t.Fatalf("list offsets of %s at %d: %v", topic, timestamp, err)
	}
	return resp.Topics[0].Partitions[0]
}

// TestO4_AStationaryTopicAfterItsLeaderMoved: nothing is published after the leadership has moved. Offsets by position and by time carry the epoch of
// the batch, not of the leader, an empty partition has none, and a group that seeks to the start reads everything.
func TestO4_AStationaryTopicAfterItsLeaderMoved(t *testing.T) {
	clusterBubble(t, 3, nil, func(t *testing.T, c *cluster) {
		cl := c.client()
		defer cl.Close()
		c.create(cl, "t", 1)
		c.create(cl, "empty", 1)
		began := time.Now()
		for i := range 10 {
			if err := cl.ProduceSync(t.Context(), &kgo.Record{Topic: "t", Value: fmt.Append(nil, i)}).FirstErr(); err != nil {
				t.Fatal(err)
			}
		}
		written := c.state("t", 0).LeaderEpoch
		for range 2 {
			leader := c.state("t", 0).Leader
			c.kill(leader)
			time.Sleep(3 * time.Second)
			c.start(leader)
			c.untilInBubble("all in sync", func() bool { return c.whole("t") && c.whole("empty") })
		}
		if now := c.state("t", 0).LeaderEpoch; now <= written {
			t.Fatalf("epoch %v, was %v: the leadership has not moved", now, written)
		}
		for _, at := range []int64{-2, began.UnixMilli()} {
			if got := c.listed(cl, "t", at); got.Offset != 0 || got.LeaderEpoch != int32(written) {
				t.Errorf("at %d: offset %d of epoch %d, want 0 of %v", at, got.Offset, got.LeaderEpoch, written)
			}
		}
		if got := c.listed(cl, "empty", -2); got.Offset != 0 || got.LeaderEpoch != -1 {
			t.Errorf("empty partition: offset %d of epoch %d, want 0 of -1", got.Offset, got.LeaderEpoch)
		}
		if got := c.listed(cl, "empty", began.UnixMilli()); got.Offset != -1 || got.LeaderEpoch != -1 {
			t.Errorf("empty partition by time: offset %d of epoch %d, want none", got.Offset, got.LeaderEpoch)
		}
		for round := range 2 { // the second has a commit to begin with, and seeks back
			if round > 0 {
				seek := c.client(kgo.ConsumerGroup("g"), kgo.ConsumeTopics("t"))
				seek.PollFetches(timed(t, 20*time.Second))
				seek.SetOffsets(map[string]map[int32]kgo.EpochOffset{"t": {0: {Epoch: c.listed(cl, "t", -2).LeaderEpoch, Offset: 0}}})
				if err := seek.CommitUncommittedOffsets(timed(t, 20*time.Second)); err != nil {
					t.Fatal(err)
				}
				seek.Close()
			}
			group := c.client(kgo.ConsumerGroup("g"), kgo.ConsumeTopics("t"), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
			var got []string
			for len(got) < 10 {
				fetched := group.PollFetches(timed(t, time.Minute))
				if err := fetched.Err0(); err != nil {
					t.Fatalf("round %d: stands at %d records: %v", round, len(got), err)
				}
				fetched.EachRecord(func(r *kgo.Record) { got = append(got, string(r.Value)) })
			}
			if !slices.Equal(got, strings.Fields("0 1 2 3 4 5 6 7 8 9")) {
				t.Errorf("round %d: read %v", round, got)
			}
			if err := group.CommitUncommittedOffsets(timed(t, 20*time.Second)); err != nil {
				t.Fatal(err)
			}
			group.Close()
		}
	})
}

func timed(t *testing.T, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

// oldDirectory is a data directory of format 1 as its first release left it: killed, with two topics, a group and a producer.
const oldDirectory = "testdata/C083_directory_1.json.gz"

// TestC083_ADirectoryOfTheOldestFormatStarts: whatever later releases write, they start from it and everything is there. A directory of a format to
// come is refused by its number.
func TestC083_ADirectoryOfTheOldestFormatStarts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		if *rewrite {
			writeOldDirectoryInBubble(t)
		}
		n := startFullNode(t, readOldDirectory(t))
		if end := n.end("t"); end != 3 {
			t.Errorf("%d records, want 3", end)
		}
		if code, message := n.publish("t", 10); code != kafka.None {
			t.Errorf("publish: %v %s", code, message)
		}
		if code := n.commit("t", 2); code != kafka.None {
			t.Errorf("commit: %v", code)
		}
		n.stop()
		fs := readOldDirectory(t)
		for _, name := range []string{"/data/meta.json", "/data/meta.copy.json"} {
			writeFile(t, fs, name, ofFormat(t, fs.Files()[name], 9))
		}
		_, err := Start(t.Context(), Options{Config: fullConfig(), Machine: systest.Machine(fs, nil, nil), Log: slog.New(slog.DiscardHandler)})
		if err == nil || !strings.Contains(err.Error(), "format version 9, this program knows 1 to") {
			t.Errorf("a directory of format 9: %v", err)
		}
	})
}

// ofFormat makes a meta.json of another format (docs/formats/layout.md).
func ofFormat(t *testing.T, meta []byte, format int) []byte {
	t.Helper()
	var j struct {
		Format      int    `json:"format"`
		ClusterID   string `json:"cluster_id"`
		NodeID      int32  `json:"node_id"`
		DirectoryID string `json:"directory_id"`
		Checksum    string `json:"checksum"`
	}
	err := json.Unmarshal(meta, &j)
	j.Format, j.Checksum = format, ""
	plain, _ := json.Marshal(j)
	j.Checksum = fmt.Sprintf("%08x", crc32.Checksum(plain, crc32.MakeTable(crc32.Castagnoli)))
	sealed, _ := json.Marshal(j)
	if err != nil {
		t.Fatal(err)
	}
	return sealed
}

// writeOldDirectoryInBubble makes the file. It was done once; later formats have files of their own beside it.
func writeOldDirectoryInBubble(t *testing.T) {
	t.Helper()
	n := startFullNode(t, systest.NewFS(7))
	for _, topic := range []string{"t", "u"} {
		if code := n.create(topic); code != kafka.None {
			t.Fatal(code)
		}
		for range 3 {
			n.publish(topic, 100)
		}
	}
	for n.commit("t", 1) != kafka.None {
		time.Sleep(time.Second)
	}
	time.Sleep(10 * time.Second)
	files := n.kill().Files()
	delete(files, "/data/reserve") // bytes that mean nothing
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	if err := json.NewEncoder(z).Encode(files); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Dir(oldDirectory), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(oldDirectory, packed.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}

func readOldDirectory(t *testing.T) *systest.FS {
	t.Helper()
	f, err := os.Open(oldDirectory)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{}
	if err := json.Unmarshal(text, &files); err != nil {
		t.Fatal(err)
	}
	fs := systest.NewFS(1)
	for name, data := range files {
		writeFile(t, fs, name, data)
	}
	return fs
}

func writeFile(t *testing.T, fs *systest.FS, name string, data []byte) {
	t.Helper()
	err := fs.MkdirAll(path.Dir(name), 0o700)
	if err == nil {
		var f interface {
			WriteAt([]byte, int64) (int, error)
			Close() error
		}
		if f, err = fs.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600); err == nil {
			_, err = f.WriteAt(data, 0)
			f.Close()
		}
	}
	if err != nil {
		t.Fatal(err)
	}
}
