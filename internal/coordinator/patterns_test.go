package coordinator

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"strandline.dev/internal/group"
	"strandline.dev/internal/kafka"
)

// TestK48_ACostlyExpressionIsRefused: an expression that takes too long is refused with the reason, and stays refused without another look; one that was
// accepted is matched however long it takes.
func TestK48_ACostlyExpressionIsRefused(t *testing.T) {
	w := newWorld(t)
	w.topic("orders", nil)
	cache := &patternCache{}
	m, err := cache.look(w.quorum.Image(), "ord.*", time.Now().Add(-time.Second))
	if err != nil || m.refused == nil || m.looked != 0 || !strings.Contains(m.refused.Error(), "takes longer than 1s") {
		t.Fatalf("%+v %v", m, err)
	}
	if err := cache.check(w.quorum.Image(), "ord.*"); err != m.refused {
		t.Errorf("it is looked at again: %v", err)
	}
	w.topic("ordinary", nil)
	if err := cache.check(w.quorum.Image(), "ord.*"); err != m.refused {
		t.Errorf("it is looked at again in another Image: %v", err)
	}
	if got := fmt.Sprint(cache.matching(w.quorum.Image(), "ord.*")); got != "[orders ordinary]" {
		t.Errorf("a member that has had it reads %s", got)
	}
	w.stop(true)
}

// TestPatterns_ANameIsLookedAtOnce: what an expression has matched is kept while topics come and go, and of older Images too it gives what they have.
func TestPatterns_ANameIsLookedAtOnce(t *testing.T) {
	w := newWorld(t)
	cache := &patternCache{}
	look := func(want string) {
		t.Helper()
		if got := fmt.Sprint(cache.matching(w.quorum.Image(), "t.*")); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	w.topic("t1", nil)
	w.topic("u", nil)
	old := w.quorum.Image()
	look("[t1]")
	at := cache.patterns["t.*"].looked
	w.topic("t2", nil)
	w.topic("t0", nil)
	look("[t0 t1 t2]")
	if now := cache.patterns["t.*"].looked; now != at+2 || now != len(cache.names) {
		t.Errorf("%d names were looked at, then %d, of %d", at, now, len(cache.names))
	}
	if got := fmt.Sprint(cache.matching(old, "t.*")); got != "[t1]" {
		t.Errorf("an older Image has %s", got)
	}
	w.remove("t1")
	look("[t0 t2]")
	w.topic("t1", nil)
	look("[t0 t1 t2]")
	if len(cache.names) != len(cache.known) {
		t.Errorf("%d names, %d known", len(cache.names), len(cache.known))
	}
	for i := range namesSpare + 20 {
		cache.names = append(cache.names, fmt.Sprint("gone", i))
	}
	w.topic("t3", nil)
	look("[t0 t1 t2 t3]")
	if n := len(cache.names); n > 10 {
		t.Errorf("I14: %d names are remembered", n)
	}
	w.stop(true)
}

// TestK48_AnExpressionKeepsNoShard: an expression is matched before its heartbeat reaches the shard, which other groups wait for.
func TestK48_AnExpressionKeepsNoShard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.topic("orders", nil)
		goOn := make(chan struct{})
		w.groups.cfg.Sees = func(string, string) bool { <-goOn; return true }
		join := func(member, pattern string) *Wait {
			return w.groups.Submit("crew", func(token uint64) group.Event {
				return group.ConsumerHeartbeat{
					Token: token, Group: "crew", MemberID: member, RebalanceTimeout: time.Minute, Pattern: &pattern, Reader: "r", Owned: []kafka.TopicPartition{}, MustHaveID: true,
				}
			})
		}
		first := join("a", "ord.*")
		synctest.Wait() // the shard is at it
		second := join("b", ".*ers")
		synctest.Wait()
		select {
		case <-second.Ready():
			t.Fatal("the shard was not held up")
		default:
		}
		cache := &w.groups.patterns
		cache.mu.Lock()
		m := cache.patterns[".*ers"]
		cache.mu.Unlock()
		if m == nil || !slices.Equal(m.topics, []string{"orders"}) {
			t.Errorf("the shard is to match it: %+v", m)
		}
		close(goOn)
		for _, wait := range []*Wait{first, second} {
			if r, err := await[group.ConsumerHeartbeatReply](w, wait); err != nil || r.Code != kafka.None {
				t.Errorf("%+v %v", r, err)
			}
		}
		w.stop(true)
	})
}
