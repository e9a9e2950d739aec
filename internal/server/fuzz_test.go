package server

import (
	"io"
	"net"
	"testing"
	"time"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/replica"
)

// Whatever bytes a peer sends, pipelined and then half-closed, the node lives, and everything the connection held is given back. The seeds
// are sound conversations: all keys at their lowest and highest version, and a fetch session.
func FuzzConnection(f *testing.F) {
	b := newTestBroker(f, testOptions{limits: Limits{FrameStall: time.Second}})
	c := b.dial()
	id := c.create("fuzz", 2)
	for _, a := range served() {
		for _, v := range []int16{a.Min, a.Max} {
			req := request(a.Key, "fuzz", id, b.newBatch("x"))
			req.SetVersion(v)
			f.Add(c.frame(req, 1))
		}
	}
	var session []byte
	for epoch := range int32(4) {
		req := newFetch("fuzz", 0, 0)
		req.SessionEpoch = epoch
		session = append(session, c.frame(req, epoch)...)
	}
	f.Add(session)
	f.Add(append(c.frame(newProduce("fuzz", 0, b.newBatch("x")), 1), c.frame(newMetadata(12, "fuzz"), 2)...))
	f.Fuzz(func(t *testing.T, data []byte) {
		nc, err := net.Dial("tcp", b.addr)
		must(t, err)
		defer nc.Close()
		nc.SetDeadline(time.Now().Add(testWait))
		if _, err := nc.Write(data); err == nil {
			nc.(*net.TCPConn).CloseWrite()
		}
		if _, err := io.Copy(io.Discard, nc); err != nil {
			if timeout, ok := err.(net.Error); ok && timeout.Timeout() {
				t.Fatal("the connection stays open after the peer's last byte")
			}
		}
		eventually(t, "the connection's memory is given back", func() bool { return b.server.budget.Used()+b.server.answers.Used() == 0 })
		if tp := b.quorum.Image().TopicByID(id); tp != nil { // the fuzzer may have deleted it
			if st, ok := b.host.Describe(kafka.TopicPartition{Topic: id}); ok && st.Role == replica.Offline {
				t.Fatalf("the partition is offline: %s", st.Problem)
			}
		}
	})
}
