package node

import (
	"bytes"
	"context"
	"log/slog"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"

	"strandline.dev/internal/config"
	"strandline.dev/internal/kafka"
	"strandline.dev/internal/sys"
	"strandline.dev/internal/sys/systest"
)

// fullNode is one node on a small disk, with a client.
type fullNode struct {
	t       *testing.T
	fs      *systest.FS
	machine sys.Machine
	node    *Node
	client  *kgo.Client
	lines   *lines
}

// lines is a log that may be read while it is written.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// fullConfig is the configuration of such a node.
func fullConfig() config.Node {
	c := config.Defaults()
	c.Node.ID, c.Data.Dir, c.HTTP.Address = 1, "/data", "localhost:8080"
	c.Listeners = []config.Listener{{Name: "plain", Address: "localhost:9092", Advertise: "localhost:9092"}}
	c.Kafka.OffsetsTopicPartitions = 1
	return c
}

// startFullNode starts a node on fs.
func startFullNode(t *testing.T, fs *systest.FS) *fullNode {
	t.Helper()
	return startFullNodeAs(t, fs, fullConfig())
}

func startFullNodeAs(t *testing.T, fs *systest.FS, c config.Node) *fullNode {
	t.Helper()
	n := &fullNode{t: t, fs: fs, lines: &lines{}}
	machine := systest.Machine(fs, nil, nil)
	n.machine = machine
	var err error
	log := slog.New(slog.NewTextHandler(n.lines, nil))
	if n.node, err = Start(t.Context(), Options{Config: c, Machine: machine, Log: log}); err != nil {
		t.Fatalf("%v\n%s", err, n.lines)
	}
	n.client, err = kgo.NewClient(kgo.SeedBrokers("localhost:9092"), kgo.MaxVersions(kversion.V3_8_0()),
		kgo.Dialer(func(ctx context.Context, _, address string) (net.Conn, error) { return machine.Net.Dial(ctx, address) }))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// kill leaves what the disk holds when the process is killed, with as much room as there was.
func (n *fullNode) kill() *systest.FS {
	n.t.Helper()
	room, err := n.fs.Space("/data")
	if err != nil {
		n.t.Fatal(err)
	}
	after := n.fs.Clone(systest.KillProcess)
	after.SetFree(room.Usable)
	n.stop()
	return after
}

func (n *fullNode) stop() {
	n.t.Helper()
	n.client.Close()
	if err := n.node.Stop(context.WithoutCancel(n.t.Context())); err != nil {
		n.t.Fatalf("stop: %v\n%s", err, n.lines)
	}
}

// request sends a request and gives up on errors of the connection only.
func request[R kmsg.Response](n *fullNode, req kmsg.Request) R {
	n.t.Helper()
	resp, err := n.client.Request(n.t.Context(), req)
	if err != nil {
		n.t.Fatalf("%T: %v\n%s", req, err, n.lines)
	}
	return resp.(R)
}

func (n *fullNode) create(topic string, configs ...string) kafka.ErrorCode {
	n.t.Helper()
	ct := kmsg.NewCreateTopicsRequestTopic()
	ct.Topic, ct.NumPartitions, ct.ReplicationFactor = topic, 1, 1
	configs = append(configs, "segment.bytes", "1048576")
	for i := 0; i < len(configs); i += 2 {
		one := kmsg.NewCreateTopicsRequestTopicConfig()
		one.Name, one.Value = configs[i], &configs[i+1]
		ct.Configs = append(ct.Configs, one)
	}
	req := kmsg.NewPtrCreateTopicsRequest()
	req.Topics = append(req.Topics, ct)
	return kafka.ErrorCode(request[*kmsg.CreateTopicsResponse](n, req).Topics[0].ErrorCode)
}

// publish sends one batch of that many bytes.
func (n *fullNode) publish(topic string, size int) (kafka.ErrorCode, string) {
	n.t.Helper()
	got := n.produced(topic, size).Topics[0].Partitions[0]
	message := ""
	if got.ErrorMessage != nil {
		message = *got.ErrorMessage
	}
	return kafka.ErrorCode(got.ErrorCode), message
}

// fill publishes until the disk is full, in smaller and smaller batches, and returns the number of records.
func (n *fullNode) fill(topic string) (stored int64) {
	n.t.Helper()
	for size := 256 << 10; size > 0; size /= 4 {
		for {
			code, _ := n.publish(topic, size)
			if code != kafka.None {
				if code != kafka.KafkaStorageError {
					n.t.Fatalf("record %d: %v\n%s", stored, code, n.lines)
				}
				break
			}
			stored++
		}
	}
	return stored
}

// takeRest has a foreign file take what is left of the disk.
func (n *fullNode) takeRest() {
	n.t.Helper()
	f, err := n.fs.OpenFile("/foreign", os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		n.t.Fatal(err)
	}
	if _, err := f.WriteAt(make([]byte, 16<<20), 0); !sys.IsNoSpace(err) {
		n.t.Fatalf("the disk is not full: %v", err)
	}
	if err := f.Close(); err != nil {
		n.t.Fatal(err)
	}
}

func (n *fullNode) commit(topic string, at int64) kafka.ErrorCode {
	n.t.Helper()
	p := kmsg.NewOffsetCommitRequestTopicPartition()
	p.Offset = at
	ct := kmsg.NewOffsetCommitRequestTopic()
	ct.Topic, ct.Partitions = topic, append(ct.Partitions, p)
	req := kmsg.NewPtrOffsetCommitRequest()
	req.Group, req.Topics = "g", append(req.Topics, ct)
	return kafka.ErrorCode(request[*kmsg.OffsetCommitResponse](n, req).Topics[0].Partitions[0].ErrorCode)
}

// end is the offset behind the last visible record, or -1 while the leader does not know it yet.
func (n *fullNode) end(topic string) int64 {
	n.t.Helper()
	p := kmsg.NewListOffsetsRequestTopicPartition()
	p.Timestamp = -1
	lt := kmsg.NewListOffsetsRequestTopic()
	lt.Topic, lt.Partitions = topic, append(lt.Partitions, p)
	req := kmsg.NewPtrListOffsetsRequest()
	req.Topics = append(req.Topics, lt)
	got := request[*kmsg.ListOffsetsResponse](n, req).Topics[0].Partitions[0]
	if kafka.ErrorCode(got.ErrorCode) == kafka.OffsetNotAvailable {
		return -1
	}
	if got.ErrorCode != 0 {
		n.t.Fatalf("end of %s: %v", topic, kafka.ErrorCode(got.ErrorCode))
	}
	return got.Offset
}

func (n *fullNode) deleteRecords(topic string, to int64) kafka.ErrorCode {
	n.t.Helper()
	p := kmsg.NewDeleteRecordsRequestTopicPartition()
	p.Offset = to
	dt := kmsg.NewDeleteRecordsRequestTopic()
	dt.Topic, dt.Partitions = topic, append(dt.Partitions, p)
	req := kmsg.NewPtrDeleteRecordsRequest()
	req.TimeoutMillis, req.Topics = 5000, append(req.Topics, dt)
	return kafka.ErrorCode(request[*kmsg.DeleteRecordsResponse](n, req).Topics[0].Partitions[0].ErrorCode)
}

// TestC034_StartsOnADiskFilledByItsOwnRecords: a node whose records took all the room starts again after kill -9, as often as it must,
// refuses records of user topics by name (P43), does everything else, and takes records again once deletion has made room (R90).
func TestC034_StartsOnADiskFilledByItsOwnRecords(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs := systest.NewFS(1)
		fs.SetFree(16 << 20)
		n := startFullNode(t, fs)
		if code := n.create("t"); code != kafka.None {
			t.Fatalf("create: %v", code)
		}
		n.publish("t", 100)
		for n.commit("t", 1) != kafka.None { // the topic of the groups is made by the first
			time.Sleep(time.Second)
		}
		time.Sleep(10 * time.Second) // the reserve is written
		stored := n.fill("t") + 1
		n.takeRest()

		for range 2 {
			n = startFullNode(t, n.kill())
			if err := n.node.ready(); err != nil {
				t.Fatalf("not ready: %v", err)
			}
			code, message := n.publish("t", 100)
			if code != kafka.KafkaStorageError || !strings.Contains(message, "/data") || !strings.Contains(message, "node 1") {
				t.Fatalf("publish on a full disk: %v %q", code, message)
			}
			time.Sleep(time.Second) // the end that recovery found is synced meanwhile (I2)
			if end := n.end("t"); end != stored {
				t.Fatalf("%d records after the start, %d were acknowledged", end, stored)
			}
			if code := n.commit("t", 2); code != kafka.None {
				t.Fatalf("commit on a full disk: %v\n%s", code, n.lines)
			}
		}
		if code := n.create("u"); code != kafka.None {
			t.Fatalf("create on a full disk: %v", code)
		}
		if code, _ := n.publish("u", 100); code != kafka.KafkaStorageError {
			t.Fatalf("publish to another topic on a full disk: %v", code)
		}
		if code := n.deleteRecords("t", stored); code != kafka.None {
			t.Fatalf("delete records on a full disk: %v\n%s", code, n.lines)
		}
		time.Sleep(10 * time.Second)
		if code, message := n.publish("u", 100); code != kafka.None {
			t.Fatalf("publish with room again: %v %q", code, message)
		}
		for _, line := range []string{"the disk is full: records of user topics are refused", "there is room again"} {
			if got := strings.Count(n.lines.String(), line); got != 1 {
				t.Errorf("%d log lines %q, want 1\n%s", got, line, n.lines)
			}
		}
		n.stop()
	})
}

// TestP43_GroupsGoOnWhenRecordsFillTheDisk: without a restart, the first commit on a full disk spends the reserve; from then on records
// are refused with the reason, and commits go on; room that comes back from outside is noticed.
func TestP43_GroupsGoOnWhenRecordsFillTheDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs := systest.NewFS(2)
		fs.SetFree(16 << 20)
		n := startFullNode(t, fs)
		n.create("t")
		for n.commit("t", 0) != kafka.None {
			time.Sleep(time.Second)
		}
		time.Sleep(10 * time.Second)
		n.fill("t")
		n.takeRest()
		for i := range 1000 {
			if code := n.commit("t", int64(i)); code != kafka.None {
				t.Fatalf("commit %d on a full disk: %v\n%s", i, code, n.lines)
			}
		}
		if code, message := n.publish("t", 1); code != kafka.KafkaStorageError || !strings.Contains(message, "/data") {
			t.Fatalf("publish: %v %q", code, message)
		}
		if err := n.node.ready(); err != nil {
			t.Fatalf("not ready: %v", err)
		}
		if c := n.node.counts(); c.DiskUsed < c.DiskLimit {
			t.Errorf("records are refused, and of %d bytes allowed %d are used", c.DiskLimit, c.DiskUsed)
		}
		room, _ := fs.Space("/data")
		fs.SetFree(room.Usable + 4<<20)
		time.Sleep(10 * time.Second)
		if code, message := n.publish("t", 1); code != kafka.None {
			t.Fatalf("publish with room again: %v %q", code, message)
		}
		if c := n.node.counts(); c.DiskUsed >= c.DiskLimit {
			t.Errorf("records are taken, and of %d bytes allowed %d are used", c.DiskLimit, c.DiskUsed)
		}
		n.stop()
	})
}

// TestC034_ANewDirectoryOnAFullDiskSaysSo: there is nothing to fall back on, so the directory is named.
func TestC034_ANewDirectoryOnAFullDiskSaysSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs := systest.NewFS(3)
		fs.SetFree(100)
		c := config.Defaults()
		c.Node.ID, c.Data.Dir, c.HTTP.Address = 1, "/data", config.NoHTTP
		c.Listeners = []config.Listener{{Name: "plain", Address: "localhost:9092", Advertise: "localhost:9092"}}
		_, err := Start(t.Context(), Options{Config: c, Machine: systest.Machine(fs, nil, nil), Log: slog.New(slog.DiscardHandler)})
		if err == nil || !strings.Contains(err.Error(), "/data") || !strings.Contains(err.Error(), "no space left on the data directory's disk") {
			t.Fatalf("%v", err)
		}
	})
}
