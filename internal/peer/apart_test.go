package peer

import (
	"testing"
	"testing/synctest"
	"time"
)

// TestR118_AFullDataConnectionDelaysNoElection: while replication takes no more requests and its answers wait, heartbeats are answered and votes
// come through at once: they have a connection of their own.
func TestR118_AFullDataConnectionDelaysNoElection(t *testing.T) {
	inBubble(t, 2, func(t *testing.T, _ *world, n []*testNode) {
		results := make(chan error, pendingMax)
		for range pendingMax {
			go func() {
				m := &note{kind: KindReplicaFetch, text: "park", big: make([]byte, 64<<10)}
				results <- n[1].Call(t.Context(), 2, m, &note{})
			}()
		}
		synctest.Wait()
		_, err := n[1].ask(2, KindReplicaFetch, "one more")
		is(t, err, ErrBusy)
		n[1].mustAsk(2, KindHeartbeat, "the first, which dials")
		asked := time.Now()
		n[1].mustAsk(2, KindHeartbeat, "beside it")
		if err := n[1].Send(2, &note{kind: KindRaft, text: "vote"}); err != nil {
			t.Fatal(err)
		}
		if got := n[2].texts(); got != "vote" {
			t.Errorf("came: %q", got)
		}
		if took := time.Since(asked); took > 0 { // the bubble's time stands still while anybody works
			t.Errorf("took %v", took)
		}
		close(n[2].park)
		for range pendingMax {
			if err := <-results; err != nil {
				t.Fatal(err)
			}
		}
	})
}
