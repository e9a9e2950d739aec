package group

import (
	"bytes"
	"fmt"
	"reflect"
	"time"

	"strandline.dev/internal/kafka"
)

// failer is what *testing.T and *rapid.T have in common here.
type failer interface {
	Helper()
	Fatalf(format string, args ...any)
}

// world is a shell without a machine: a shard, its log, and two clocks.
type world struct {
	t      failer
	cfg    Config
	shard  *Shard
	log    []KV
	now    Moment
	kept   map[kafka.TopicID]time.Duration
	widths map[kafka.TopicID]int32
	seen   func(passed time.Duration, e Effects)
	fast   bool // leave the checks after every step out
}

// recordTime is when a world begins. It is also the time stamp of all records of its log: our own values carry their times themselves.
var recordTime = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func newWorld(t failer, cfg Config) *world {
	if cfg.MetadataMax == 0 {
		cfg.MetadataMax = 4096
	}
	w := &world{t: t, cfg: cfg, now: Moment{Mono: recordTime, Wall: recordTime}, kept: map[kafka.TopicID]time.Duration{}, widths: map[kafka.TopicID]int32{}}
	w.seen = func(time.Duration, Effects) {}
	w.shard = NewShard(cfg)
	w.shard.Step(Loaded{}, w.now)
	return w
}

// do performs one event as a shell does: append, apply at once. The log must give the same hard state (P33).
func (w *world) do(ev Event) Effects { return w.doAt(ev, 0) }

func (w *world) doAt(ev Event, passed time.Duration) Effects {
	e := w.shard.Step(ev, w.now)
	for _, kv := range e.Records {
		w.log = append(w.log, kv)
		if err := w.shard.Apply(kv.Key, kv.Value, recordTime); err != nil {
			w.t.Fatalf("a record of the shard itself: %v", err)
		}
	}
	if len(e.Records) > 0 && !w.fast {
		w.checkReplay()
	}
	if !w.fast {
		w.checkBooks()
	}
	w.seen(passed, e)
	return e
}

// advance lets time pass, with a Tick at each deadline.
func (w *world) advance(d time.Duration) []Effects {
	var all []Effects
	start, end := w.now, w.now.Mono.Add(d)
	for {
		at, ok := w.shard.NextDeadline()
		if !ok || at.After(end) {
			break
		}
		if at.After(w.now.Mono) {
			w.now = Moment{Mono: at, Wall: w.now.Wall.Add(at.Sub(w.now.Mono))}
		}
		all = append(all, w.doAt(Tick{RecordsKept: w.recordsKept}, w.now.Mono.Sub(start.Mono)))
	}
	w.now = Moment{Mono: end, Wall: w.now.Wall.Add(end.Sub(w.now.Mono))}
	return all
}

func (w *world) recordsKept(id kafka.TopicID) time.Duration { return w.kept[id] }

func (w *world) stepWall(d time.Duration) { w.now.Wall = w.now.Wall.Add(d) }

// restart rebuilds the shard from its log, which has lost its last cut records.
func (w *world) restart(cut int, compact bool) {
	w.log = w.log[:len(w.log)-min(cut, len(w.log))]
	if compact {
		w.log = compacted(w.log)
	}
	w.shard = replay(w.t, w.cfg, w.log)
	w.do(Loaded{})
}

func replay(t failer, cfg Config, log []KV) *Shard {
	s := NewShard(cfg)
	for _, kv := range log {
		if err := s.Apply(kv.Key, kv.Value, recordTime); err != nil {
			t.Fatalf("replay: %v", err)
		}
	}
	return s
}

// compacted keeps the newest record of each key, in the order of the log. Tombstones may stay or go: here the last record of the log
// stays whatever it is.
func compacted(log []KV) []KV {
	newest := map[string]int{}
	for i, kv := range log {
		newest[string(kv.Key)] = i
	}
	var out []KV
	for i, kv := range log {
		if newest[string(kv.Key)] == i && (kv.Value != nil || i == len(log)-1) {
			out = append(out, kv)
		}
	}
	return out
}

// checkReplay compares the live hard state with that of the log, whole and compacted (P33).
func (w *world) checkReplay() {
	w.t.Helper()
	live := hardState(w.shard)
	for _, log := range [][]KV{w.log, compacted(w.log)} {
		if again := hardState(replay(w.t, w.cfg, log)); !reflect.DeepEqual(live, again) {
			w.t.Fatalf("P33: the log gives another state\nlive %v\nlog  %v", live, again)
		}
	}
}

// hardState is what the log says, as plain values.
func hardState(s *Shard) map[string]any {
	out := map[string]any{}
	for id, g := range s.groups {
		if g.stored != nil {
			out["group "+id] = *g.stored
		}
		if g.consumer.isStored || len(g.consumer.members) > 0 || len(g.consumer.targets) > 0 {
			out["consumer group "+id] = consumerHardState(&g.consumer)
		}
		for p, o := range g.sortedOffsets() {
			out[fmt.Sprintf("offset %s %s/%d", id, p.topic, p.partition)] = o
		}
		for p, o := range g.undo {
			out[fmt.Sprintf("undo %s %s/%d", id, p.topic, p.partition)] = o
		}
	}
	for id, w := range s.widths {
		out[fmt.Sprintf("width %v", id)] = w
	}
	return out
}

// consumerHardState is what the log says of a consumer group: all but what watches it.
func consumerHardState(c *consumerGroup) map[string]any {
	out := map[string]any{"epoch": c.epoch, "hash": c.hash, "since": c.sinceMs, "target epoch": c.targetEpoch}
	for id, m := range c.members {
		out["member "+id] = *m
	}
	for id, t := range c.targets {
		out["target "+id] = t
	}
	for tp, id := range c.owners {
		out["owner "+tp.String()] = id
	}
	for instance, id := range c.instances {
		out["instance "+instance] = id
	}
	return out
}

// checkBooks recounts everything that is kept as a sum.
func (w *world) checkBooks() {
	w.t.Helper()
	armed := map[*timer]bool{}
	for i, t := range w.shard.timers.heap {
		armed[t] = true
		if t.slot != i+1 || i > 0 && t.before(w.shard.timers.heap[(i-1)/2]) {
			w.t.Fatalf("timer %d is not where it belongs", i)
		}
	}
	waiting := 0
	for id, g := range w.shard.groups {
		waiting += w.checkGroup(id, g, armed)
	}
	if waiting != len(w.shard.waiting) {
		w.t.Fatalf("%d requests wait in groups, %d in the shard", waiting, len(w.shard.waiting))
	}
	delete(armed, &w.shard.growTimer)
	for tm := range armed {
		w.t.Fatalf("C114: a timer of kind %d belongs to nothing that lives", tm.kind)
	}
}

// checkGroup recounts one group, takes its timers out of armed, and returns how many requests wait in it.
func (w *world) checkGroup(id string, g *group, armed map[*timer]bool) (waiting int) {
	w.t.Helper()
	w.checkConsumers(id, g, armed)
	c := &g.classic
	again := roster{protocolType: c.protocolType}
	joining, unsynced, listed := 0, 0, 0
	for m := range c.all() {
		copied := *m
		again.add(&copied)
		listed++
		if m.join != 0 {
			joining++
		}
		if m.sync != 0 {
			waiting++
		}
		if m.owesSync {
			unsynced++
		}
		if !m.waits() && !m.timer.isArmed() {
			w.t.Fatalf("group %s: nothing watches %s", id, m.id)
		}
		delete(armed, &m.timer)
	}
	for _, t := range c.pending {
		if !t.isArmed() {
			w.t.Fatalf("group %s: nothing watches a pending member", id)
		}
		delete(armed, t)
	}
	if c.leader != nil && c.members[c.leader.id] != c.leader {
		w.t.Fatalf("group %s: %s leads and is no member", id, c.leader.id)
	}
	same := listed == len(c.members) && joining == c.joining && unsynced == c.unsynced && again.recordBytes == c.recordBytes &&
		again.protocolBytes == c.protocolBytes && len(again.instances) == len(c.instances) && (listed == 0 || reflect.DeepEqual(again.supported, c.supported))
	if !same {
		w.t.Fatalf("group %s: the sums differ: %+v, counted %+v joining %d unsynced %d", id, c, again, joining, unsynced)
	}
	if (c.phase == preparing) != c.joinTimer.isArmed() || (c.unsynced > 0) != c.syncTimer.isArmed() || !g.isActive() && !g.expiry.isArmed() && len(c.pending) == 0 {
		w.t.Fatalf("group %s: %v with timers join=%v sync=%v expiry=%v", id, c.phase, c.joinTimer.isArmed(), c.syncTimer.isArmed(), g.expiry.isArmed())
	}
	if c.phase == stable {
		w.checkStable(id, g)
	}
	delete(armed, &c.joinTimer)
	delete(armed, &c.syncTimer)
	delete(armed, &g.expiry)
	return waiting + joining
}

// checkConsumers recounts the consumer part of a group: who holds what (I7), and that every member is watched.
func (w *world) checkConsumers(id string, g *group, armed map[*timer]bool) {
	w.t.Helper()
	c := &g.consumer
	if len(c.members) > 0 && (g.stored != nil || g.classic.phase != empty) {
		w.t.Fatalf("group %s is of two types", id)
	}
	held, classics := 0, 0
	for member, m := range c.members {
		if m.classic != nil {
			classics++
		}
		for tp := range m.held() {
			held++
			if c.owners[tp] != member {
				w.t.Fatalf("I7: group %s: %s holds %s, which belongs to %q", id, member, tp, c.owners[tp])
			}
		}
		s := c.sessions[member]
		if s == nil || !s.session.isArmed() || m.classic == nil && (m.state == revoking) != s.revoke.isArmed() {
			w.t.Fatalf("group %s: nothing watches %s", id, member)
		}
		delete(armed, &s.session)
		delete(armed, &s.revoke)
	}
	if classics != c.classics || held != len(c.owners) || len(c.sessions) != len(c.members) {
		w.t.Fatalf("group %s: %d partitions are held and %d have owners; %d sessions of %d members", id, held, len(c.owners), len(c.sessions), len(c.members))
	}
}

// checkStable compares a stable group with its record: a restart must bring it back as it is.
func (w *world) checkStable(id string, g *group) {
	w.t.Helper()
	c, r := &g.classic, g.stored
	if r == nil || r.generation != c.generation || r.protocol != c.protocol || len(r.members) != len(c.members) {
		w.t.Fatalf("group %s is stable, its record is %+v", id, r)
	}
	if _, known := r.index[r.leader]; known && r.leader != c.leaderID() {
		w.t.Fatalf("group %s: led by %q, its record says %q", id, c.leaderID(), r.leader)
	}
	for m := range c.all() {
		i, ok := r.index[m.id]
		if !ok || !bytes.Equal(r.members[i].subscription, m.metadata(c.protocol)) {
			w.t.Fatalf("group %s: the record does not know %s as it is", id, m.id)
		}
	}
}

func testID(n byte) (id kafka.ID) {
	id[15] = n
	return id
}
