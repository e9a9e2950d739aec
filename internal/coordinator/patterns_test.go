package coordinator

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"strandline.dev/internal/group"
	"strandline.dev/internal/kafka"
)

// TestK48_ACostlyExpressionIsRefused: an expression that takes too long is refused with the reason, and for a while without another look; that one begins
// with the first name, so that nothing is accepted by instalments. One that was accepted is matched however long it takes.
func TestK48_ACostlyExpressionIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.topic("orders", nil)
		cache := &patternCache{}
		m, why := cache.look(w.quorum.Image(), "ord.*", 0)
		if m != nil || why == nil || !strings.Contains(why.Error(), "takes longer than 1s") || len(cache.patterns) > 0 {
			t.Fatalf("%+v %v", m, why)
		}
		if j := cache.check(w.quorum.Image(), "ord.*"); j.refused != why || j.matched != nil {
			t.Errorf("it is looked at again: %+v", j)
		}
		w.topic("ordinary", nil)
		if j := cache.check(w.quorum.Image(), "ord.*"); j.refused != why {
			t.Errorf("it is looked at again in another Image: %+v", j)
		}
		k := catalog{img: w.quorum.Image(), patterns: cache, judged: cache.check(w.quorum.Image(), "ord.*")}
		if err := k.Check("ord.*"); err != why {
			t.Errorf("the shard judges anew: %v", err)
		}
		time.Sleep(patternRefusedFor) // of the bubble
		if j := cache.check(w.quorum.Image(), "ord.*"); j.refused != nil || j.matched.looked < 2 {
			t.Errorf("it stays refused: %+v", j)
		}
		for i := range 2 * refusalsMax {
			_ = cache.refuse(fmt.Sprint(i))
		}
		if n := len(cache.refusals); n > refusalsMax {
			t.Errorf("I14: %d refused ones are remembered", n)
		}
		w.stop(true)
	})
}

// TestK48_NobodyHasTheOthersForgotten: clients that bring one expression after another have what shards decide by not forgotten; those of shards have the
// ones forgotten that were not used the longest, and the bounds hold (I14).
func TestK48_NobodyHasTheOthersForgotten(t *testing.T) {
	w := newWorld(t)
	w.topic("orders", nil)
	cache, img := &patternCache{}, w.quorum.Image()
	bring := func(pattern string) {
		t.Helper()
		if j := cache.check(img, pattern); j.refused != nil {
			t.Fatal(j.refused)
		}
	}
	cache.matching(img, "ord.*")
	for i := range 2 * patternsMax {
		bring(fmt.Sprint("x", i))
	}
	if cache.patterns["ord.*"] == nil || len(cache.patterns) > patternsMax {
		t.Errorf("of %d expressions the one of a shard is missing", len(cache.patterns))
	}
	long := strings.Repeat("x", 4000)
	fit := patternCacheBytes/(4000*group.PatternStateBytes+4000) + 1
	for i := range fit {
		cache.matching(img, "ord.*")
		cache.matching(img, fmt.Sprint(long, i))
	}
	bring("brought")
	n := len(cache.patterns)
	if cache.patterns["ord.*"] == nil || cache.patterns[long+"0"] != nil || cache.patterns[fmt.Sprint(long, fit-1)] == nil || n < fit/2 {
		t.Errorf("the wrong ones of %d are forgotten", n)
	}
	sum := 0
	for _, m := range cache.patterns {
		sum += m.size()
	}
	if sum != cache.bytes || sum > patternCacheBytes {
		t.Errorf("%d bytes are counted, and it is %d", cache.bytes, sum)
	}
	w.stop(true)
}

// TestPatterns_TheSameOneInTurn: members that come at once with the same expression look at the names one after the other, and find them looked at.
func TestPatterns_TheSameOneInTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.topic("orders", nil)
		first := make(chan struct{})
		cache := &patternCache{looking: map[string]chan struct{}{"ord.*": first}}
		var others sync.WaitGroup
		got := make([]judgement, 5)
		for i := range got {
			others.Go(func() { got[i] = cache.checkInTurn(w.quorum.Image(), "ord.*") })
		}
		synctest.Wait()
		if len(cache.patterns) != 0 {
			t.Error("looked at out of turn")
		}
		cache.mu.Lock()
		delete(cache.looking, "ord.*")
		cache.mu.Unlock()
		close(first)
		others.Wait()
		for _, j := range got {
			if j.matched == nil || j.matched != got[0].matched || len(cache.looking) != 0 {
				t.Errorf("looked at again: %+v", j)
			}
		}
		w.stop(true)
	})
}

// TestK48_CostlyLooksTakeTurns: a look that takes long waits for its turn; who brings what is known does not.
func TestK48_CostlyLooksTakeTurns(t *testing.T) {
	w := newWorld(t)
	for i := range 50 {
		w.topic(fmt.Sprint(strings.Repeat("n", 240), i), nil)
	}
	cache, img := &patternCache{}, w.quorum.Image()
	known := func() {
		t.Helper()
		if j := cache.check(img, "n.*"); j.refused != nil || len(j.matched.topics) != 50 {
			t.Errorf("what is known: %+v", j)
		}
	}
	known()
	cache.costly.Lock()
	done := make(chan struct{})
	go func() { cache.check(img, "(.?){900}x"); close(done) }()
	known()
	select {
	case <-done:
		t.Error("out of turn")
	case <-time.After(300 * time.Millisecond):
	}
	cache.costly.Unlock()
	<-done
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
