package coordinator

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"strandline.dev/internal/group"
	"strandline.dev/internal/kafka"
	"strandline.dev/internal/sys/systest"
)

// crewMember is a member of a consumer group that gives up at once what it is told to, and tells with each heartbeat what it owns.
type crewMember struct {
	id    string
	epoch group.MemberEpoch
	owned []kafka.TopicPartition
}

// beat sends a heartbeat and takes in the answer, if one comes.
func (m *crewMember) beat(w *world) (kafka.ErrorCode, error) {
	w.t.Helper()
	ev := group.ConsumerHeartbeat{
		Group: "crew", MemberID: m.id, Epoch: m.epoch, RebalanceTimeout: time.Minute, Topics: []string{"orders"}, Owned: slices.Clone(m.owned), MustHaveID: true,
	}
	if ev.Owned == nil {
		ev.Owned = []kafka.TopicPartition{}
	}
	r, err := await[group.ConsumerHeartbeatReply](w, w.groups.Submit("crew", func(token uint64) group.Event { ev.Token = token; return ev }))
	if err != nil {
		return kafka.None, err
	}
	if r.Code == kafka.None {
		m.epoch = r.Epoch
		if r.Assigned != nil {
			m.owned = r.Assigned
		}
	}
	return r.Code, nil
}

// mustBeat sends heartbeats until one is answered.
func (m *crewMember) mustBeat(w *world) {
	w.t.Helper()
	for {
		switch code, err := m.beat(w); {
		case err == nil && code == kafka.None:
			return
		case err == nil:
			w.t.Fatalf("%s in epoch %d: %v\n%s", m.id, m.epoch, code, w.log)
		}
	}
}

// TestI7_AConsumerGroupSurvivesAPowerCut lets members share a topic until the machine stops at its n-th change of the disk. After the restart
// nobody is fenced, nobody has to join again, and no partition has two owners (P29, P33, R60).
func TestI7_AConsumerGroupSurvivesAPowerCut(t *testing.T) {
	for n := int64(1); n <= 40; n++ {
		for _, mode := range []systest.CrashMode{systest.LoseAll, systest.Random} {
			t.Run(fmt.Sprint(n, mode), func(t *testing.T) { shareThenPowerCut(t, n, mode) })
		}
	}
}

func shareThenPowerCut(t *testing.T, n int64, mode systest.CrashMode) {
	w := newWorld(t)
	w.topic("orders", nil)
	crew := []*crewMember{{id: "a"}, {id: "b"}, {id: "c"}}
	w.fs.CrashAt(w.fs.Ops() + n)
	for round := 0; round < 8 && !w.fs.Crashed(); round++ {
		for _, m := range crew[:1+min(round/2, 2)] {
			if code, err := m.beat(w); err == nil && code != kafka.None {
				t.Fatalf("%s in epoch %d: %v", m.id, m.epoch, code)
			}
		}
	}
	survived := w.fs.Crash(mode)
	w.stop(false)
	w.fs = survived
	w.start()
	for range 4 {
		for _, m := range crew {
			m.mustBeat(w)
			owners := map[kafka.TopicPartition]string{}
			for _, m := range crew {
				for _, tp := range m.owned {
					if owners[tp] != "" {
						t.Fatalf("P29: %s and %s own %v", owners[tp], m.id, tp)
					}
					owners[tp] = m.id
				}
			}
		}
	}
	if owned := len(crew[0].owned) + len(crew[1].owned) + len(crew[2].owned); owned != 2 {
		t.Errorf("P34: %d of 2 partitions are owned", owned)
	}
	w.stop(false)
}

// TestR62_TopicsAsTheyAre: expressions are matched against the topics of the Image at hand, as a whole, without the cluster's own; the cache
// gives what a fresh look gives.
func TestR62_TopicsAsTheyAre(t *testing.T) {
	w := newWorld(t)
	w.topic("orders", nil)
	cache := &patternCache{}
	look := func(pattern string) string {
		k := catalog{img: w.quorum.Image(), patterns: cache}
		if k.Check(pattern) != nil {
			return "wrong"
		}
		return fmt.Sprint(k.Matching(pattern, ""))
	}
	for pattern, want := range map[string]string{"orders": "[orders]", "order": "[]", ".*": "[orders]", "__consumer.*": "[]", "(": "wrong", ")(": "wrong"} {
		for range 2 {
			if got := look(pattern); got != want {
				t.Errorf("%q matches %s, want %s", pattern, got, want)
			}
		}
	}
	w.topic("orders-eu", nil)
	if got := look("orders.*"); got != "[orders orders-eu]" {
		t.Errorf("after a topic more: %s", got)
	}
	if got := look(".*"); got != "[orders orders-eu]" {
		t.Errorf("from the cache after a topic more: %s", got)
	}
	for i := range 3 * patternsMax {
		look(fmt.Sprint("x", i))
	}
	if n := len(cache.patterns); n > patternsMax {
		t.Errorf("I14: %d expressions are remembered", n)
	}
	k := catalog{img: w.quorum.Image(), patterns: cache}
	if id, n, ok := k.Topic("orders"); !ok || n != 2 || id != w.quorum.Image().Topic("orders").ID {
		t.Errorf("orders: %v %d %v", id, n, ok)
	}
	if _, _, ok := k.Topic("none"); ok {
		t.Error("a topic that does not exist is found")
	}
	w.stop(true)
}
