package quota

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"
	"weak"

	"strandline.dev/internal/metadata"
)

var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// cluster is metadata with quotas that a test changes.
type cluster struct {
	t   *testing.T
	img *metadata.Image
}

func newTestCluster(t *testing.T) (*cluster, *Limiter) {
	c := &cluster{t, metadata.Empty()}
	return c, New(func() *metadata.Image { return c.img })
}

func (c *cluster) set(e metadata.QuotaEntity, k metadata.QuotaKind, v float64) {
	c.t.Helper()
	op := metadata.QuotaOp{Kind: k, Value: v, Remove: v == 0}
	d := c.img.Decide(metadata.AlterQuotas{Entities: []metadata.QuotaChange{{Entity: e, Ops: []metadata.QuotaOp{op}}}})
	next, err := c.img.Apply(c.img.Version()+1, d.Records)
	if err != nil || len(d.Records) == 0 {
		c.t.Fatalf("%v %+v", err, d.Reply)
	}
	c.img = next
}

var (
	named      = metadata.QuotaNamed
	anyUser    = metadata.QuotaEntity{User: metadata.QuotaDefault()}
	anyClient  = metadata.QuotaEntity{Client: metadata.QuotaDefault()}
	anyPair    = metadata.QuotaEntity{User: metadata.QuotaDefault(), Client: metadata.QuotaDefault()}
	anyAddress = metadata.QuotaEntity{IP: metadata.QuotaDefault()}
)

const produce = metadata.QuotaProduce

// A client that waits as it is told gets its rate and one burst, whatever it asks for at once (R125).
func TestR125_RateIsHeld(t *testing.T) {
	for _, size := range []float64{10, 300, 1000, 25_000} {
		c, l := newTestCluster(t)
		c.set(anyUser, produce, 1000)
		client := l.Client("alice", "app", nil, start)
		now, took := start, 0.0
		for now.Sub(start) < 100*time.Second {
			wait := client.Take(produce, size, now)
			took += size
			now = now.Add(wait + time.Millisecond) // it takes a moment to send
		}
		most := 1000*now.Sub(start).Seconds() + 1000
		if least := 0.9 * min(1000*now.Sub(start).Seconds(), size*1000*now.Sub(start).Seconds()); took > most+size || took < least {
			t.Errorf("pieces of %v: %v in %v, at most %v", size, took, now.Sub(start), most)
		}
	}
}

// What is given back may be taken again, and no more than a burst is ever saved up.
func TestGive(t *testing.T) {
	c, l := newTestCluster(t)
	c.set(anyUser, produce, 1000)
	client := l.Client("alice", "app", nil, start)
	client.Take(produce, 5000, start)
	client.Give(produce, 3000, start)
	if wait := client.Wait(produce, start); wait != time.Second {
		t.Errorf("2000 of 1000 are taken: %v", wait)
	}
	client.Give(produce, 9000, start)
	if wait := client.Take(produce, 2000, start); wait != time.Second {
		t.Errorf("2000 more: %v", wait)
	}
	client.Give(metadata.QuotaFetch, 1, start) // it has no quota of that kind
}

// Who shares a bucket is what the entity of the quota tells apart (R125).
func TestR125_WhoShares(t *testing.T) {
	for _, c := range []struct {
		name   string
		entity metadata.QuotaEntity
		shares map[string]bool // "user/client", whether it waits for alice/app
	}{
		{"each user", anyUser, map[string]bool{"alice/app": true, "alice/other": true, "bob/app": false}},
		{"each client id", anyClient, map[string]bool{"alice/app": true, "bob/app": true, "alice/other": false, "alice/": false}},
		{"each pair", anyPair, map[string]bool{"alice/app": true, "bob/app": false, "alice/other": false}},
		{"a user", metadata.QuotaEntity{User: named("alice")}, map[string]bool{"alice/other": true, "bob/app": false}},
		{"a client id", metadata.QuotaEntity{Client: named("app")}, map[string]bool{"bob/app": true, "alice/other": false}},
	} {
		cl, l := newTestCluster(t)
		cl.set(c.entity, produce, 1000)
		if l.Client("alice", "app", nil, start).Take(produce, 5000, start) != 4*time.Second {
			t.Errorf("%s: alice/app does not wait", c.name)
		}
		for who, want := range c.shares {
			user, client, _ := strings.Cut(who, "/")
			if got := l.Client(user, client, nil, start).Wait(produce, start) > 0; got != want {
				t.Errorf("%s: %s waits: %v", c.name, who, got)
			}
		}
	}
}

// A changed quota holds at once for who is known already, with what it owes; a removed one holds no more.
func TestLimiter_QuotasChange(t *testing.T) {
	c, l := newTestCluster(t)
	if l.Client("alice", "app", nil, start) != nil {
		t.Error("a client without a quota")
	}
	c.set(anyUser, produce, 1000)
	was := l.Client("alice", "app", nil, start)
	if was.Take(produce, 11_000, start) != 10*time.Second || was.Has(metadata.QuotaFetch) {
		t.Errorf("%+v", was)
	}
	if again := l.Client("alice", "app", was, start); again != was {
		t.Error("nothing has changed, and it is another client")
	}
	if other := l.Client("alice", "elsewhere", was, start); other == was || other.Wait(produce, start) != 10*time.Second {
		t.Error("another client id of the user has another bucket")
	}
	rules := l.Rules()
	c.set(metadata.QuotaEntity{User: named("zoe")}, metadata.QuotaFetch, 5)
	if l.Rules() == rules {
		t.Error("the rules do not change with the quotas")
	}
	c.set(metadata.QuotaEntity{User: named("alice")}, produce, 10_000)
	is := l.Client("alice", "app", was, start)
	if wait := is.Wait(produce, start); is == was || wait != time.Second {
		t.Errorf("with ten times the quota it waits for %v", wait)
	}
	c.set(metadata.QuotaEntity{User: named("alice")}, produce, 0)
	c.set(anyUser, produce, 0)
	if l.Client("alice", "app", is, start) != nil {
		t.Error("a removed quota holds")
	}
}

// Quotas outlive the Image they came from by any time, and must not keep its topics in memory.
func TestLimiter_KeepsNoImage(t *testing.T) {
	c, l := newTestCluster(t)
	c.set(anyUser, produce, 1000)
	was, old := l.Client("alice", "app", nil, start), weak.Make(c.img)
	next, err := c.img.Apply(c.img.Version()+1, []metadata.Record{metadata.ProducerIDsRecord{Next: 5}})
	if err != nil {
		t.Fatal(err)
	}
	c.img, next = next, nil
	runtime.GC()
	if old.Value() != nil {
		t.Error("the Image that the quotas came from is kept")
	}
	if l.Client("alice", "app", was, start) != was {
		t.Error("the same quotas make another client")
	}
}

// A wait has an end, whatever is owed, and a clock that goes back gives nothing away.
func TestBucket_Bounds(t *testing.T) {
	b := newBucket(1, start)
	if wait := b.take(1e12, start); wait != WaitMax {
		t.Errorf("waits for %v", wait)
	}
	if wait := b.take(1e12, start.Add(WaitMax)); wait != WaitMax {
		t.Errorf("later it waits for %v", wait)
	}
	if wait := b.take(0, start); wait != WaitMax {
		t.Errorf("earlier it waits for %v", wait)
	}
	b = newBucket(1000, start)
	if b.take(1000, start.Add(time.Hour)) != 0 || b.take(1, start.Add(time.Hour)) == 0 {
		t.Error("a quiet hour gives another burst than one")
	}
}

// Clients that call themselves ever otherwise make bucketsMax buckets and share one more; those that are full make room (I14).
func TestI14_BucketsAreBounded(t *testing.T) {
	c, l := newTestCluster(t)
	c.set(anyClient, produce, 1000)
	long := strings.Repeat("x", 30_000)
	for n := range bucketsMax {
		l.Client("alice", fmt.Sprint(long, n), nil, start).Take(produce, 2000, start)
	}
	if n := l.Buckets(); n != bucketsMax {
		t.Fatalf("%d buckets", n)
	}
	for k := range l.mu.buckets {
		if len(k.client) > nameMax {
			t.Fatalf("a bucket keeps a name of %d bytes", len(k.client))
		}
	}
	one, other := l.Client("alice", "one more", nil, start), l.Client("bob", "and another", nil, start)
	if one.Take(produce, 3000, start) != 2*time.Second || other.Wait(produce, start) != 2*time.Second || l.Buckets() != bucketsMax+1 {
		t.Errorf("%d buckets, those beyond share none", l.Buckets())
	}
	later := start.Add(time.Minute)
	fresh := l.Client("alice", "a third", nil, later)
	if n := l.Buckets(); n != 1 || fresh.Wait(produce, later) != 0 {
		t.Errorf("%d buckets when all are full", n)
	}
	if l.Client("alice", "one more", one, later) == one {
		t.Error("a client keeps a bucket that is forgotten")
	}
}

// Connections of an address are counted for it alone.
func TestConnect(t *testing.T) {
	c, l := newTestCluster(t)
	if l.Connect("10.0.0.1", start) != 0 {
		t.Error("waits without a quota")
	}
	c.set(anyUser, produce, 1)
	if l.Connect("10.0.0.1", start) != 0 {
		t.Error("waits for another quota")
	}
	c.set(anyAddress, metadata.QuotaConnection, 2)
	var waits []time.Duration
	for range 4 {
		waits = append(waits, l.Connect("10.0.0.1", start))
	}
	if fmt.Sprint(waits) != "[0s 0s 500ms 1s]" || l.Connect("10.0.0.2", start) != 0 {
		t.Errorf("%v", waits)
	}
}
