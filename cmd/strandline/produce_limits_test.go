package main

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// refusingBroker speaks just enough of the protocol to refuse every batch with one error code. It serves until the test ends.
type refusingBroker struct {
	listener net.Listener
	code     int16
}

func newRefusingBroker(t *testing.T, code int16) *refusingBroker {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	b := &refusingBroker{l, code}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go b.serve(c)
		}
	}()
	return b
}

func (b *refusingBroker) serve(c net.Conn) {
	defer c.Close()
	for {
		var head [12]byte // size, key, version, correlation id
		if _, err := io.ReadFull(c, head[:]); err != nil {
			return
		}
		rest := make([]byte, binary.BigEndian.Uint32(head[:])-8)
		if _, err := io.ReadFull(c, rest); err != nil {
			return
		}
		resp := b.answer(int16(binary.BigEndian.Uint16(head[4:])), int16(binary.BigEndian.Uint16(head[6:])), rest)
		if resp == nil {
			return
		}
		out := append([]byte{0, 0, 0, 0}, head[8:]...)
		out = resp.AppendTo(out)
		binary.BigEndian.PutUint32(out, uint32(len(out)-4))
		if _, err := c.Write(out); err != nil {
			return
		}
	}
}

// answer knows versions without compact lengths only, and says so.
func (b *refusingBroker) answer(key, version int16, rest []byte) kmsg.Response {
	body := rest[2+max(int16(binary.BigEndian.Uint16(rest)), 0):]
	switch key {
	case 18:
		resp := kmsg.NewPtrApiVersionsResponse()
		for _, k := range []struct{ key, max int16 }{{0, 8}, {3, 8}, {18, 0}, {22, 1}} {
			resp.ApiKeys = append(resp.ApiKeys, kmsg.ApiVersionsResponseApiKey{ApiKey: k.key, MaxVersion: k.max})
		}
		if version > 0 {
			resp.ErrorCode = kerr.UnsupportedVersion.Code
		}
		return resp
	case 3:
		resp := kmsg.NewPtrMetadataResponse()
		resp.Version = version
		address := b.listener.Addr().(*net.TCPAddr)
		resp.Brokers = []kmsg.MetadataResponseBroker{{NodeID: 1, Host: "127.0.0.1", Port: int32(address.Port)}}
		name := "t"
		resp.Topics = []kmsg.MetadataResponseTopic{{Topic: &name, Partitions: []kmsg.MetadataResponseTopicPartition{{Leader: 1, Replicas: []int32{1}, ISR: []int32{1}}}}}
		return resp
	case 22:
		resp := kmsg.NewPtrInitProducerIDResponse()
		resp.Version, resp.ProducerID = version, 1
		return resp
	case 0:
		req := kmsg.NewPtrProduceRequest()
		req.Version = version
		if req.ReadFrom(body) != nil {
			return nil
		}
		resp := kmsg.NewPtrProduceResponse()
		resp.Version = version
		resp.Topics = []kmsg.ProduceResponseTopic{{Topic: "t", Partitions: []kmsg.ProduceResponseTopicPartition{{ErrorCode: b.code, BaseOffset: -1}}}}
		return resp
	}
	return nil
}

// TestProduceTellsTheBrokersLastError: a broker that refuses a record for now, again and again, is quoted when the time is over.
func TestProduceTellsTheBrokersLastError(t *testing.T) {
	for _, c := range []struct {
		code int16
		want string
	}{
		{kerr.KafkaStorageError.Code, "record 1 of the input may or may not be stored in t (0 before it are): KAFKA_STORAGE_ERROR"},
		{kerr.NotEnoughReplicas.Code, "record 1 of the input not stored in t (0 before it are): NOT_ENOUGH_REPLICAS"},
	} {
		b := newRefusingBroker(t, c.code)
		a := newTestApp(t, map[string]string{"STRANDLINE_BROKERS": b.listener.Addr().String(), "STRANDLINE_TIMEOUT": "1500ms"}, "")
		var stdout, stderr strings.Builder
		a.stdin, a.stdout, a.stderr = strings.NewReader("x\n"), &stdout, &stderr
		if code := run([]string{"produce", "t"}, a); code != 1 || !strings.Contains(stderr.String(), c.want) || stdout.Len() > 0 {
			t.Errorf("exit %d, %s%s\nwant %s", code, stdout.String(), stderr.String(), c.want)
		}
	}
}

// TestTopicLimits: the record limit holds before a record is sent, exactly; the client's own cap follows the topic's.
func TestTopicLimits(t *testing.T) {
	r := &kgo.Record{Key: make([]byte, 10), Value: make([]byte, 80), Headers: []kgo.RecordHeader{{Key: "12345", Value: make([]byte, 5)}}}
	l := &topicLimits{}
	if err := l.check(r); err != nil {
		t.Errorf("no limit is known: %v", err)
	}
	l.record.Store(100)
	if err := l.check(r); err != nil {
		t.Errorf("exactly the limit: %v", err)
	}
	l.record.Store(99)
	var size *tooLargeError
	if err := l.check(r); !errors.As(err, &size) || size.size != 100 || size.limit != 99 || size.key != "strandline.max.record.bytes" {
		t.Errorf("%v", err)
	}
	if defaultBatchBytes() < 1<<20 {
		t.Errorf("default batch limit %d", defaultBatchBytes())
	}
	if c, err := kgo.NewClient(l.option(), persistence(time.Millisecond)); err != nil {
		t.Error(err)
	} else {
		c.Close()
	}
}
