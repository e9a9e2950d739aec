package server

import (
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"strandline.dev/internal/wire"
)

// largeBatch is more than a small request may have.
const largeBatch = 3 * smallFrame

// occupy takes every place of the turnstile, and returns what gives one back.
func (b *testBroker) occupy() (leave func()) {
	for range cap(b.server.places) {
		b.server.places <- struct{}{}
	}
	return func() { <-b.server.places }
}

// However many large publishes are worked on, others are answered: a large one waits for a place, a small one and metadata do not. One place
// is enough for all of them in turn, whether the reader or, behind another request, the writer starts them.
func TestTurnstile_LargeRequestsWaitOthersDoNot(t *testing.T) {
	b := newTestBroker(t, testOptions{})
	other := b.dial()
	other.create("t", 1)
	leave := b.occupy()
	large := newProduce("t", 0, b.newBatch(strings.Repeat("x", largeBatch)))
	const publishers = 10
	var clients []*testClient
	for range publishers {
		c := b.dial()
		metadata := newMetadata(12, "t")
		c.write(append(c.frame(metadata, 1), append(c.frame(large, 2), c.frame(large, 3)...)...))
		c.read(metadata, 1)
		clients = append(clients, c)
	}
	eventually(t, "all have begun", func() bool { return b.server.budget.Used() > 0 })
	if got := ask[*kmsg.MetadataResponse](other, newMetadata(12, "t")); got.Topics[0].ErrorCode != 0 {
		t.Errorf("metadata: %d", got.Topics[0].ErrorCode)
	}
	if got := other.publish(newProduce("t", 0, b.newBatch("small"))); got.ErrorCode != 0 || got.BaseOffset != 0 {
		t.Errorf("a small publish: %+v, want offset 0, before every large one", got)
	}
	leave()
	for _, c := range clients {
		for id := range int32(2) {
			if got := c.read(large, 2+id).(*kmsg.ProduceResponse).Topics[0].Partitions[0]; got.ErrorCode != 0 {
				t.Errorf("a large publish: %d", got.ErrorCode)
			}
		}
	}
	if end := b.status("t", 0).End; end != 1+2*publishers {
		t.Errorf("the log ends at %d", end)
	}
	if n := len(b.server.places); n != cap(b.server.places)-1 {
		t.Errorf("%d places are taken afterwards", n)
	}
}

// Peers that stop in the middle of a large request hold no place, nor do those that go away while they wait for one.
func TestTurnstile_NobodyWaitsForAPeerAtAPlace(t *testing.T) {
	b := newTestBroker(t, testOptions{})
	fine := b.dial()
	fine.create("t", 1)
	for i := range 3 * cap(b.server.places) {
		c := b.dial()
		c.write(append(sizeFrame(largeBatch), headerOf(wire.KeyProduce, 9)...))
		c.write(make([]byte, i*readBuffer/2)) // also as much as fills what a read asks for
	}
	eventually(t, "all have begun", func() bool {
		b.server.budget.mu.Lock()
		defer b.server.budget.mu.Unlock()
		return len(b.server.budget.mu.reading) == 3*cap(b.server.places)
	})
	large := newProduce("t", 0, b.newBatch(strings.Repeat("x", largeBatch)))
	if got := fine.publish(large); got.ErrorCode != 0 {
		t.Errorf("a large publish: %d", got.ErrorCode)
	}
	eventually(t, "no place is held", func() bool { return len(b.server.places) == 0 })
	b.occupy()
	gone := make(chan struct{})
	close(gone)
	x := &exchange{large: true, lease: lease{b: b.server.budget, gone: gone}}
	if b.server.places.enter(x) || x.placed || x.lease.waiting {
		t.Error("a connection that is gone got a place")
	}
	b.server.places.leave(x)
	if n := len(b.server.places); n != cap(b.server.places) {
		t.Errorf("%d places are taken: one was given back that was not held", n)
	}
}

// What the reader had to hold back needs a place when the writer starts it, and had none meanwhile.
func TestTurnstile_WhatIsHeldBackTakesAPlaceLater(t *testing.T) {
	b := newTestBroker(t, testOptions{})
	c, other := b.dial(), b.dial()
	other.create("t", 1)
	poll := newFetch("t", 0, 0)
	poll.MinBytes, poll.MaxWaitMillis = 1, 60_000
	large := newProduce("t", 0, b.newBatch(strings.Repeat("x", largeBatch)))
	c.write(append(c.frame(poll, 1), c.frame(large, 2)...))
	eventually(t, "it is held back, without a place", func() bool { return b.server.budget.Used() > largeBatch && len(b.server.places) == 0 })
	leave := b.occupy()
	for i := range int64(2) { // the first wakes the poll
		if got := other.publish(newProduce("t", 0, b.newBatch("small"))); got.ErrorCode != 0 || got.BaseOffset != i {
			t.Errorf("small publish %d: %+v, want it before the large one", i, got)
		}
	}
	c.read(poll, 1)
	leave()
	if got := c.read(large, 2).(*kmsg.ProduceResponse).Topics[0].Partitions[0]; got.ErrorCode != 0 || got.BaseOffset != 2 {
		t.Errorf("the large publish: %+v, want offset 2", got)
	}
}
