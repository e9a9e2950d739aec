package node

import (
	"bytes"
	"context"
	"encoding/json"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/record"
	"strandline.dev/internal/sys/systest"
)

// produced sends one batch of that many bytes and returns the answer.
func (n *fullNode) produced(topic string, size int) *kmsg.ProduceResponse {
	n.t.Helper()
	b := record.NewBuilder(record.None)
	b.Add(time.Now().UnixMilli(), nil, make([]byte, size), nil)
	p := kmsg.NewProduceRequestTopicPartition()
	p.Records = b.Build()
	pt := kmsg.NewProduceRequestTopic()
	pt.Topic, pt.Partitions = topic, append(pt.Partitions, p)
	req := kmsg.NewPtrProduceRequest()
	req.Acks, req.TimeoutMillis, req.Topics = -1, 5000, append(req.Topics, pt)
	return request[*kmsg.ProduceResponse](n, req)
}

// start is the offset of the first record of a topic.
func (n *fullNode) start(topic string) int64 {
	n.t.Helper()
	p := kmsg.NewListOffsetsRequestTopicPartition()
	p.Timestamp = -2
	lt := kmsg.NewListOffsetsRequestTopic()
	lt.Topic, lt.Partitions = topic, append(lt.Partitions, p)
	req := kmsg.NewPtrListOffsetsRequest()
	req.Topics = append(req.Topics, lt)
	return request[*kmsg.ListOffsetsResponse](n, req).Topics[0].Partitions[0].Offset
}

func (n *fullNode) remove(topic string) kafka.ErrorCode {
	n.t.Helper()
	dt := kmsg.NewDeleteTopicsRequestTopic()
	dt.Topic = &topic
	req := kmsg.NewPtrDeleteTopicsRequest()
	req.TimeoutMillis, req.Topics, req.TopicNames = 5000, append(req.Topics, dt), []string{topic}
	return kafka.ErrorCode(request[*kmsg.DeleteTopicsResponse](n, req).Topics[0].ErrorCode)
}

// posted publishes over HTTP and returns status and code.
func (n *fullNode) posted(topic string) (status int, code, retryAfter string) {
	n.t.Helper()
	c := http.Client{Transport: &http.Transport{DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, address string) (net.Conn, error) {
			return n.machine.Net.Dial(ctx, address)
		}}}
	resp, err := c.Post("http://localhost:8080/v1/topics/"+topic+"/partitions/0/records", "application/json", strings.NewReader(`{"value": {"text": "x"}}`))
	if err != nil {
		n.t.Fatal(err)
	}
	defer resp.Body.Close()
	var body struct{ Code, Detail string }
	var b bytes.Buffer
	if _, err := b.ReadFrom(resp.Body); err != nil {
		n.t.Fatal(err)
	}
	if err := json.Unmarshal(b.Bytes(), &body); err != nil {
		n.t.Fatalf("%v: %s", err, b.Bytes())
	}
	return resp.StatusCode, body.Code, resp.Header.Get("Retry-After")
}

// slowedThenRefused publishes until that is refused, and returns how many records were stored and what the refusal said.
func (n *fullNode) slowedThenRefused(topic string) (stored int64, message string) {
	n.t.Helper()
	slowed := 0
	for message == "" {
		resp := n.produced(topic, 32<<10)
		p := &resp.Topics[0].Partitions[0]
		switch kafka.ErrorCode(p.ErrorCode) {
		case kafka.None:
			stored++
		case kafka.KafkaStorageError:
			message = *p.ErrorMessage
		default:
			n.t.Fatalf("publish: %v", kafka.ErrorCode(p.ErrorCode))
		}
		if slow := time.Duration(resp.ThrottleMillis) * time.Millisecond; slow > 0 {
			if slowed++; slowed == 5 {
				n.slowedOverHTTP(topic, slow)
				stored++
			}
		}
		if slowed > 0 && stored < 100 {
			n.t.Fatalf("slowed after %d records", stored)
		}
	}
	if slowed < 10 {
		n.t.Errorf("slowed %d times before the limit", slowed)
	}
	return stored, message
}

// slowedOverHTTP publishes over HTTP, where the answer is held back for as long as other doors' clients are told to wait.
func (n *fullNode) slowedOverHTTP(topic string, slow time.Duration) {
	n.t.Helper()
	began := time.Now()
	if status, code, _ := n.posted(topic); status != http.StatusCreated {
		n.t.Errorf("over HTTP, near the limit: %d %s", status, code)
	}
	if took := time.Since(began); took < slow || took > slow+time.Second {
		n.t.Errorf("over HTTP a publish near the limit took %v, want %v", took, slow)
	}
}

// everythingElseWorks at the limit: commits, groups, topics that come and go.
func (n *fullNode) everythingElseWorks() {
	n.t.Helper()
	if code := n.commit("t", 2); code != kafka.None {
		n.t.Errorf("commit: %v", code)
	}
	if code := n.create("u"); code != kafka.None {
		n.t.Errorf("create: %v", code)
	}
	if code := n.remove("u"); code != kafka.None {
		n.t.Errorf("delete: %v", code)
	}
	if err := n.node.ready(); err != nil {
		n.t.Errorf("not ready: %v", err)
	}
}

// TestR86_R89_R90_P43_TheDiskLimitOnTheWire: a node with a limit slows publishes near it and refuses them at it, by name on both doors, and does
// everything else; it removes nothing younger than its promise; when retention or deletion has made room, publishes are taken again, without a
// restart. What a deleted topic holds until it is purged counts.
func TestR86_R89_R90_P43_TheDiskLimitOnTheWire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := fullConfig()
		c.Disk.LimitBytes = 8 << 20
		n := startFullNodeAs(t, systest.NewFS(1), c)
		if code := n.create("t", "retention.ms", "600000", "strandline.delete.recovery.ms", "60000"); code != kafka.None {
			t.Fatalf("create: %v", code)
		}
		for n.commit("t", 1) != kafka.None { // the topic of the groups is made by the first
			time.Sleep(time.Second)
		}
		stored, message := n.slowedThenRefused("t")
		for _, part := range []string{"node 1 has ", "/data", "may have 8388608", "disk.limit.bytes"} {
			if !strings.Contains(message, part) {
				t.Errorf("no %q in %q", part, message)
			}
		}
		if status, code, after := n.posted("t"); status != http.StatusServiceUnavailable || code != "DISK_LIMIT" || after == "" {
			t.Errorf("over HTTP: %d %s, Retry-After %q", status, code, after)
		}
		n.everythingElseWorks()

		time.Sleep(8 * time.Minute)
		if start, end := n.start("t"), n.end("t"); start != 0 || end != stored {
			t.Errorf("records [%d, %d) of [0, %d) are left before their time", start, end, stored)
		}
		if code, _ := n.publish("t", 1); code != kafka.KafkaStorageError {
			t.Errorf("publish before retention made room: %v", code)
		}
		time.Sleep(3 * time.Minute)
		if code, why := n.publish("t", 1); code != kafka.None {
			t.Fatalf("publish after retention made room: %v %s", code, why)
		}

		n.fill("t")
		if code := n.remove("t"); code != kafka.None {
			t.Fatalf("delete: %v", code)
		}
		time.Sleep(10 * time.Second)
		if code := n.create("v"); code != kafka.None {
			t.Fatalf("create: %v", code)
		}
		if code, _ := n.publish("v", 1); code != kafka.KafkaStorageError {
			t.Errorf("publish while the trash holds the room: %v", code)
		}
		time.Sleep(2 * time.Minute)
		if code, why := n.publish("v", 1); code != kafka.None {
			t.Errorf("publish after the purge: %v %s", code, why)
		}
		n.stop()
	})
}
