package server

import (
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"strandline.dev/internal/wire"
)

// Half-sent frames that hold the whole memory budget stop nobody for long: small requests have a budget of their own, and a large one
// that waits gets the memory of the frame that makes no progress (K60's other direction: a peer that never finishes).
func TestShortage_StalledFramesMakeRoomForOthers(t *testing.T) {
	const memory = 4 << 20
	b := newTestBroker(t, testOptions{limits: Limits{Memory: memory}})
	b.server.budget.shortage = 20 * time.Millisecond
	fine := b.dial()
	fine.create("t", 1)
	for range 3 {
		c := b.dial()
		c.write(append(sizeFrame(memory), headerOf(wire.KeyProduce, 9)...))
		c.write(make([]byte, memory-1000)) // and never the rest
	}
	eventually(t, "the half-sent frames hold the budget", func() bool { return b.server.budget.Used() >= memory/2 })
	if got := ask[*kmsg.MetadataResponse](fine, kmsg.NewPtrMetadataRequest()); len(got.Topics) == 0 && len(got.Brokers) != 1 {
		t.Errorf("a small request during the shortage: %+v", got)
	}
	large := b.newBatch(strings.Repeat("x", 200<<10))
	if got := fine.publish(newProduce("t", 0, large)); got.ErrorCode != 0 {
		t.Errorf("a large publish during the shortage: %d", got.ErrorCode)
	}
	eventually(t, "the log names what was dropped", func() bool { return strings.Contains(b.log.String(), "arrives too slowly") })
}

// A frame that keeps arriving, or that waits for the budget itself, is not dropped for others.
func TestShortage_ProgressIsNotPunished(t *testing.T) {
	b := newBudget(100)
	dropped := ""
	name := func(n string) *lease { return &lease{b: b, drop: func() { dropped += n }} }
	stalled, moving, waiting := name("stalled"), name("moving"), name("waiting")
	if !stalled.Reserve(60) || !moving.Reserve(60) {
		t.Fatal("refused")
	}
	granted := make(chan bool)
	go func() { granted <- waiting.Reserve(50) }()
	eventually(t, "the third frame waits", func() bool { b.mu.Lock(); defer b.mu.Unlock(); return len(b.mu.waiters) == 1 })
	now := time.Now()
	for range 3 {
		now = now.Add(shortageMax)
		moving.arrived.Add(2 * frameRateMin)
		b.dropSlowest(now)
	}
	if dropped != "stalled" {
		t.Errorf("dropped %q, want the stalled one alone", dropped)
	}
	stalled.release()
	moving.release()
	if !<-granted {
		t.Error("not granted")
	}
	// The frame that has just been given room is not slow yet.
	b.dropSlowest(time.Now().Add(shortageMax / 2))
	if dropped != "stalled" {
		t.Errorf("dropped %q", dropped)
	}
}
