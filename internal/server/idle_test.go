package server

import (
	"fmt"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// idleHeapMax is what an idle connection may hold of the heap: its read buffer of 8 KiB and its structs, on both sides of the test.
const idleHeapMax = 16 << 10

// What a connection has sent and been answered is not what it holds afterwards: peers that ask once, with the longest client id and for the
// largest answer whose buffer is used again, and then stay, are as cheap as any (I14).
func TestIdle_NothingOfTheLastRequestIsKept(t *testing.T) {
	const conns = 200
	b := newTestBroker(t, testOptions{})
	setup := b.dial()
	setup.create("t", 1)
	for _, ask := range []struct {
		name string
		do   func(c *testClient)
	}{
		{"a large answer", func(c *testClient) {
			m := newMetadata(12)
			for i := range 1000 {
				m.Topics = append(m.Topics, kmsg.MetadataRequestTopic{Topic: kmsg.StringPtr(fmt.Sprint(strings.Repeat("n", 20), i))})
			}
			f := newFetch("t", 0, 0) // parked, so that both writers of the connection have answered
			f.MaxWaitMillis = 1
			id := c.send(m, f, m)
			c.read(m, id)
			c.read(f, id+1)
			c.read(m, id+2)
		}},
		{"a long client id", func(c *testClient) {
			c.id = strings.Repeat("i", 32_000)
			m := newMetadata(12, "t")
			c.read(m, c.send(m))
			c.id = "" // the client is in this process too
		}},
	} {
		before := liveHeap()
		for range conns {
			ask.do(b.dial())
		}
		each := (int64(liveHeap()) - int64(before)) / conns
		if each > idleHeapMax {
			t.Errorf("%s: a connection holds %d bytes afterwards, want at most %d", ask.name, each, idleHeapMax)
		}
		t.Logf("%s: %d bytes a connection", ask.name, each)
	}
}

// A request that waits for the memory budget has no buffer yet: hundreds may wait, and the budget would bound nothing. bench/overload.sh
// found it, with batches of a megabyte.
func TestBudget_WhoWaitsHasNoBuffer(t *testing.T) {
	const conns = 200
	b := newTestBroker(t, testOptions{limits: Limits{Memory: 1 << 20}})
	b.dial().create("t", 1)
	all := lease{b: b.server.budget}
	all.take(b.server.budget.limit)
	first := lease{b: b.server.budget, gone: make(chan struct{})}
	if !first.Reserve(1) { // the one that may run over
		t.Fatal("refused")
	}
	before := liveHeap()
	for range conns {
		c := b.dial()
		c.write(append(sizeFrame(4<<20), make([]byte, readBuffer)...))
	}
	eventually(t, "all wait", func() bool {
		b.server.budget.mu.Lock()
		defer b.server.budget.mu.Unlock()
		return len(b.server.budget.mu.waiters) == conns
	})
	if each := (int64(liveHeap()) - int64(before)) / conns; each > idleHeapMax {
		t.Errorf("a waiting request holds %d bytes, want at most %d, as an idle connection", each, idleHeapMax)
	}
	first.release()
	all.release()
}
