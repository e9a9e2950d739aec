package coordinator

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"strandline.dev/internal/group"
	"strandline.dev/internal/kafka"
	"strandline.dev/internal/metadata"
	"strandline.dev/internal/record"
	"strandline.dev/internal/replica"
)

// Groups are found where Kafka's own tools look for them. The hashes are Java's.
func TestPartitionOf_IsJavasHash(t *testing.T) {
	for _, one := range []struct {
		id   string
		hash int32
	}{
		{"", 0}, {"a", 97}, {"Aa", 2112}, {"BB", 2112}, {"hello", 99162322}, {"consumer-group", 1344083042 - 0},
		{"polygenelubricants", -2147483648}, {"\U0001F600", 1772899}, {"é", 233},
	} {
		for _, n := range []int{1, 7, 50} {
			want := one.hash
			if want < 0 {
				want = max(-want, 0)
			}
			want %= int32(n)
			if one.id == "consumer-group" {
				want = javaHash(one.id) % int32(n)
			}
			if got := partitionOf(one.id, n); got != want {
				t.Errorf("%q of %d: %d, want %d", one.id, n, got, want)
			}
		}
	}
}

// javaHash is the definition, for ASCII.
func javaHash(s string) int32 {
	var h int32
	for i := range len(s) {
		h = h*31 + int32(s[i])
	}
	return max(h, -h, 0)
}

// What was committed is read back, after a clean stop and after kill -9, and members find their group as it was (R49, P33).
func TestCoordinator_RestartLoadsEverything(t *testing.T) {
	w := newWorld(t)
	id := w.topic("orders", nil)
	for i := range 20 {
		w.mustCommit(fmt.Sprintf("g%d", i), id, kafka.Offset(100+i))
	}
	member, generation := w.joinAlone("workers")
	before := w.describe("workers")
	for _, clean := range []bool{true, false} {
		w.restart(clean)
		for i := range 20 {
			if got := w.mustFetch(fmt.Sprintf("g%d", i), id); got != kafka.Offset(100+i) {
				t.Errorf("clean %v: group %d is at %d", clean, i, got)
			}
		}
		if after := w.describe("workers"); fmt.Sprint(after) != fmt.Sprint(before) {
			t.Errorf("clean %v: before %+v\nafter %+v", clean, before, after)
		}
		if code, err := w.heartbeat("workers", member, generation); code != kafka.None || err != nil {
			t.Errorf("clean %v: heartbeat: %v %v", clean, code, err)
		}
	}
	w.stop(true)
}

// An append that is refused changes nothing: the request is told to look for the coordinator again, and the shard is loaded anew from
// what the log has. Never is it called a failure, and never does undone state show.
func TestI8_RefusedAppendLeavesNoTrace(t *testing.T) {
	w := newWorld(t)
	id := w.topic("orders", nil)
	w.mustCommit("g", id, 7)
	parked := w.sync("workers", "nobody", 1) // decided at once
	if _, err := await[group.SyncReply](w, parked); err != nil {
		t.Fatal(err)
	}
	w.host.failAppends.Store(true)
	for range 3 {
		if _, err := w.commit("g", id, 8); !errors.Is(err, ErrNotCoordinator) && !errors.Is(err, ErrLoading) {
			t.Errorf("commit that is not appended: %v", err)
		}
	}
	if got := w.mustFetch("g", id); got != 7 {
		t.Errorf("offset %d, want 7", got)
	}
	w.host.failAppends.Store(false)
	w.mustCommit("g", id, 9)
	if got := w.mustFetch("g", id); got != 9 {
		t.Errorf("offset %d, want 9", got)
	}
	w.stop(true)
}

// Every new leader epoch ends the shard of the old one: what is parked there is told to look again, its late appends are refused, and the
// next shard knows all that was committed (I3).
func TestI3_NewEpochEndsTheShard(t *testing.T) {
	w := newWorld(t)
	id := w.topic("orders", nil)
	w.mustCommit("workers", id, 5)
	w.joinAlone("workers")
	parked := w.join("workers", "") // waits for the first to rejoin
	old := w.shardOf("workers")
	w.renewEpochs()
	if _, err := await[group.JoinReply](w, parked); !errors.Is(err, ErrNotCoordinator) {
		t.Errorf("a join parked in the old epoch: %v", err)
	}
	<-old.idle
	late := record.NewBuilder(record.None)
	late.Add(0, []byte("k"), nil, nil)
	p := w.host.Append([]replica.AppendItem{{TP: old.tp, Batch: late.Build(), Within: &old.epoch}}, replica.AcksAll, time.Second)
	<-p.Ready()
	if err := p.Results()[0].Err; !errors.Is(err, replica.ErrFencedEpoch) {
		t.Errorf("an append of the old epoch: %v", err)
	}
	if got := w.mustFetch("workers", id); got != 5 {
		t.Errorf("offset %d, want 5", got)
	}
	if s := w.shardOf("workers"); s == nil || s.epoch <= old.epoch {
		t.Errorf("no shard of a newer epoch: %+v", s)
	}
	w.stop(true)
}

// What was decided in one epoch is not appended in the next, though the node and the log are the same (I3).
func TestI3_DecisionsDieWithTheirEpoch(t *testing.T) {
	w := newWorld(t)
	id := w.topic("orders", nil)
	w.mustCommit("g", id, 5)
	renew := w.renewEpochs // between the decision and the append
	w.host.beforeAppend.Store(&renew)
	if _, err := w.commit("g", id, 6); !errors.Is(err, ErrNotCoordinator) {
		t.Errorf("a commit decided in the old epoch: %v", err)
	}
	if got := w.mustFetch("g", id); got != 5 {
		t.Errorf("offset %d, want 5", got)
	}
	w.stop(true)
}

// Of a round whose first batch is refused nothing is appended, and nobody is told that it was.
func TestI8_RoundWithARefusedBatchIsVoid(t *testing.T) {
	w := newWorld(t)
	id := w.topic("orders", nil)
	w.mustCommit("g", id, 1)
	before := w.host.appends.Load()
	w.host.failOne.Store(true)
	for _, one := range w.together("g", 1000, id, strings.Repeat("x", 4000)) {
		if _, err := await[group.CommitReply](w, one); !errors.Is(err, ErrNotCoordinator) {
			t.Fatalf("a commit of the round: %v", err)
		}
	}
	if n := w.host.appends.Load() - before; n != 1 {
		t.Errorf("%d appends after the refused one", n-1)
	}
	if got := w.mustFetch("g", id); got != 1 {
		t.Errorf("offset %d, want 1", got)
	}
	w.stop(true)
}

// together hands n commits to a shard that finds them all in its inbox.
func (w *world) together(groupID string, n int, id kafka.TopicID, metadata string) []*Wait {
	s := w.shardOf(groupID)
	for idle := false; !idle; {
		s.mu.Lock()
		if idle = !s.mu.running; idle {
			s.mu.running = true // it is ours to start
		}
		s.mu.Unlock()
	}
	waits := make([]*Wait, n)
	for i := range waits {
		waits[i] = w.groups.Submit(groupID, func(token uint64) group.Event {
			return group.CommitOffsets{Token: token, Group: groupID, Generation: group.NoGeneration, Topics: []group.CommitTopic{
				{Name: "orders", ID: id, Partitions: []group.CommitPartition{{Partition: int32(i), Offset: 9, Metadata: metadata}}},
			}}
		})
	}
	go s.run()
	return waits
}

// renewEpochs makes the same node lead all partitions in a new epoch, as a change of the flush policy does.
func (w *world) renewEpochs() {
	w.t.Helper()
	before := w.quorum.Image().Topic(TopicName).Partitions[0].LeaderEpoch
	for _, policy := range []string{"replicated", "synced"} {
		_, version, err := w.control.Submit(context.Background(), metadata.AlterConfigs{
			Resource: metadata.Resource{Kind: metadata.ResourceTopic, Name: TopicName},
			Ops:      []metadata.ConfigOp{{Key: "strandline.flush", Op: metadata.OpSet, Value: &policy}},
		})
		w.must(err)
		w.must(w.host.WaitApplied(context.Background(), version))
	}
	if after := w.quorum.Image().Topic(TopicName).Partitions[0].LeaderEpoch; after <= before {
		w.t.Fatalf("the epoch is still %d", after)
	}
}

// Offsets of a topic that is purged go; those of one in the trash stay (I10, P41).
func TestI10_PurgeRemovesOffsets(t *testing.T) {
	w := newWorld(t)
	day, none := "86400000", "0"
	kept := w.topic("orders", map[string]*string{"strandline.delete.recovery.ms": &day})
	w.mustCommit("kept", kept, 11)
	w.remove("orders")
	gone := w.topic("orders", map[string]*string{"strandline.delete.recovery.ms": &none})
	w.mustCommit("gone", gone, 22)
	w.remove("orders")
	for range 2 {
		for w.mustFetch("gone", gone) != kafka.NoOffset { // asks for the old id: until the offset is removed it is there
			runtime.Gosched()
		}
		if got := w.mustFetch("kept", kept); got != 11 {
			t.Errorf("offset of a topic in the trash: %d, want 11", got)
		}
		w.restart(false)
	}
	w.stop(true)
}

func (w *world) remove(topic string) {
	w.t.Helper()
	answer, version, err := w.control.Submit(context.Background(), metadata.DeleteTopics{Topics: []metadata.DeleteTopic{{Name: topic}}})
	w.must(err)
	if r := answer.([]metadata.DeleteResult)[0]; !r.OK() {
		w.t.Fatal(r.Message)
	}
	w.must(w.host.WaitApplied(context.Background(), version))
}

// Parked joins and idle shards cost no goroutine, and a peer that goes away is forgotten.
func TestCoordinator_WaitingCostsNoGoroutine(t *testing.T) {
	synctest.Test(t, waitingCostsNoGoroutine)
}

func waitingCostsNoGoroutine(t *testing.T) {
	w := newWorld(t)
	member, _ := w.joinAlone("workers")
	synctest.Wait()
	before := runtime.NumGoroutine()
	waits := make([]*Wait, 500)
	for i := range waits {
		waits[i] = w.join("workers", "")
	}
	for n := 0; n < 501; n = len(w.describe("workers").Members) {
	}
	synctest.Wait()
	if n := runtime.NumGoroutine(); n > before+1 { // one of the storage may be at work
		t.Errorf("%d goroutines, %d before", n, before)
	}
	for _, p := range waits {
		if p.Done() {
			t.Fatal("a join did not wait")
		}
		p.Cancel()
	}
	// The round ends without those that are gone.
	j, err := await[group.JoinReply](w, w.join("workers", member))
	w.must(err)
	if j.Code != kafka.None || len(j.Members) != 1 {
		t.Errorf("%v, %d members", j.Code, len(j.Members))
	}
	w.stop(true)
}

// Requests of many groups that come together share batches: the log is not written once for each.
func TestCoordinator_CommitsShareBatches(t *testing.T) {
	w := newWorld(t)
	id := w.topic("orders", nil)
	w.mustCommit("g", id, 1)
	before := w.host.appends.Load()
	for _, one := range w.together("g", 1000, id, "") {
		_, err := await[group.CommitReply](w, one)
		w.must(err)
	}
	if n := w.host.appends.Load() - before; n > 5 {
		t.Errorf("%d appends for 1000 commits that came together", n)
	}
	w.stop(true)
}

// At its limit a shard refuses more requests, and none is lost (I14).
func TestI14_FullInboxRefuses(t *testing.T) {
	w := newWorld(t)
	id := w.topic("orders", nil)
	w.mustCommit("g", id, 1)
	all := w.together("g", inboxMax+1, id, "")
	for i, one := range all {
		_, err := await[group.CommitReply](w, one)
		if want := i == inboxMax; errors.Is(err, ErrBusy) != want || err != nil && !want {
			t.Fatalf("request %d: %v", i, err)
		}
	}
	w.mustCommit("g", id, 3)
	w.stop(true)
}

// Lines about rebalances are bounded, lines about expired offsets are not.
func TestNotes_AreBounded(t *testing.T) {
	w := newWorld(t)
	w.joinAlone("workers")
	s := w.shardOf("workers")
	w.groups.Close() // the goroutine is gone: its fields are ours
	w.log.b.Reset()
	var notes []group.Note
	for range 1000 {
		notes = append(notes, group.Note{Kind: group.RebalanceStarted, Group: "workers"}, group.Note{Kind: group.OffsetExpired, Group: "workers"})
	}
	s.tell(notes)
	text := w.log.String()
	if n := strings.Count(text, "a group rebalances"); n == 0 || n > noteLinesMax {
		t.Errorf("%d lines about rebalances", n)
	}
	if n := strings.Count(text, "a committed offset has expired"); n != 1000 {
		t.Errorf("%d lines about expired offsets", n)
	}
	w.stop(true)
}

// No client writes a long line into the log: ids may have 32,767 bytes.
func TestI14_ClientChosenTextIsClippedInLogLines(t *testing.T) {
	w := newWorld(t)
	w.joinAlone("workers")
	s := w.shardOf("workers")
	w.groups.Close() // the goroutine is gone: its fields are ours
	w.log.b.Reset()
	long := strings.Repeat("x", 32_767)
	var notes []group.Note
	for kind := group.RebalanceStarted; kind <= group.GroupRemoved; kind++ {
		notes = append(notes, group.Note{Kind: kind, Group: long, Topic: long, Member: long, Why: long})
	}
	s.tell(notes)
	lines := strings.Split(strings.TrimSpace(w.log.String()), "\n")
	if len(lines) < len(notes) {
		t.Fatalf("%d lines of %d notes", len(lines), len(notes))
	}
	for _, line := range lines {
		if len(line) > 4*loggedTextMax+200 {
			t.Errorf("a line of %d bytes: %.300s", len(line), line)
		}
	}
	w.stop(true)
}

// The records are Kafka's own: a foreign reader finds the group in the partition that its hash names.
func TestCoordinator_RecordsAreInTheLog(t *testing.T) {
	w := newWorld(t)
	id := w.topic("orders", nil)
	w.mustCommit("a-group-of-mine", id, 42)
	var buf replica.FetchBuffer
	defer buf.Release()
	tp := w.partition("a-group-of-mine")
	r := w.host.Read([]replica.FetchItem{{TP: tp, CurrentEpoch: -1, LastFetchedEpoch: -1, MaxBytes: 1 << 20}}, replica.FetchOptions{MaxBytes: 1 << 20}, &buf)[0]
	w.must(r.Err)
	if !bytes.Contains(r.Records, []byte("a-group-of-mine")) {
		t.Errorf("%q", r.Records)
	}
	w.stop(true)
}
