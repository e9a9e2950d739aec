// Package quota holds clients to their quotas on this node.
//
// Knows: which quota of the metadata holds for a client and who shares it, and how long a client that has taken more than its share is to wait.
// Does not know: what is counted, how a client is made to wait, and what time it is: the caller counts, waits, and gives the time.
//
// Each quota is a bucket that fills at the quota's rate and holds burst's worth of it. Taking is always granted and may leave a debt: the wait is the
// time until the debt is paid, so that over any span a client gets its rate and at most one burst more. A bucket that is full says nothing that a
// new one would not: it can be forgotten.
//
// Quotas are per node, as in Kafka: a client that uses three nodes may have three times its quota in all.
//
// Invariant: I14, buckets are bounded by bucketsMax, whatever clients call themselves; beyond it, all further clients of one quota share one bucket.
//
// Concurrency: all methods may be called from any goroutine, those of one Client from one at a time. The locks are leaves.
//
// Files: quota.go (Limiter, Client), bucket.go.
package quota

import (
	"crypto/sha256"
	"sync"
	"sync/atomic"
	"time"

	"strandline.dev/internal/metadata"
)

const (
	// bucketsMax bounds the buckets of a node: some 300 bytes each, and at most two names of nameMax.
	bucketsMax = 20_000
	// nameMax is the longest name that a bucket keeps; of a longer one it keeps the hash.
	nameMax = 256
	// sweepEvery is how often buckets that are full are looked for when there is no room for another one.
	sweepEvery = time.Second
)

// Limiter has the buckets of a node.
type Limiter struct {
	image func() *metadata.Image
	rules atomic.Pointer[held]

	mu struct { // a leaf
		sync.Mutex
		buckets map[bucketKey]*bucket
		swept   time.Time
	}
}

// bucketKey says whose bucket it is: of all clients that the parts do not tell apart.
type bucketKey struct {
	kind         metadata.QuotaKind
	user, client string
	hasUser      bool
	hasClient    bool
	shared       metadata.QuotaEntity // of a bucket that clients beyond bucketsMax share
}

// New returns the limiter of the quotas in the Images that image returns.
func New(image func() *metadata.Image) *Limiter {
	l := &Limiter{image: image}
	l.mu.buckets = map[bucketKey]*bucket{}
	return l
}

// held are the quotas of one version of the Image. Both are one value: of two that look at two Images at once, the later may store the older,
// and who comes next must see that.
type held struct {
	version uint64
	quotas  *metadata.Image // nothing else is in it
}

// Rules is an Image with the quotas that hold. It stays the same for as long as they do.
func (l *Limiter) Rules() *metadata.Image {
	img, h := l.image(), l.rules.Load()
	switch {
	case h == nil || !h.quotas.SameQuotas(img):
		h = &held{img.Version(), img.OnlyQuotas()}
	case h.version == img.Version():
		return h.quotas
	default:
		h = &held{img.Version(), h.quotas}
	}
	l.rules.Store(h)
	return h.quotas
}

// Client is a client that some quota holds for.
type Client struct {
	limiter      *Limiter
	rules        *metadata.Image
	user, client string // as bucket keys have them
	buckets      [kinds]*bucket
}

// kinds is the number of kinds of quotas, and one more.
const kinds = metadata.QuotaConnection + 1

// clientKinds are the kinds that users and client ids have.
var clientKinds = [...]metadata.QuotaKind{metadata.QuotaProduce, metadata.QuotaFetch, metadata.QuotaRequest, metadata.QuotaMutation}

// Client returns the client of a user's name and a client id, or nil when no quota holds for it. was is what was returned last, often for the same
// client, or nil.
func (l *Limiter) Client(user, client string, was *Client, now time.Time) *Client {
	rules := l.Rules()
	if rules.QuotaCount() == 0 {
		return nil
	}
	keyUser, keyClient := short(user), short(client)
	if was != nil && was.rules == rules && was.user == keyUser && was.client == keyClient && was.lives() {
		return was
	}
	c := &Client{limiter: l, rules: rules, user: keyUser, client: keyClient}
	some := false
	for _, k := range clientKinds {
		q, ok := rules.ClientQuota(user, client, k)
		if !ok {
			continue
		}
		key := bucketKey{kind: k}
		if key.hasUser = q.Entity.User.Scope != metadata.ScopeNone; key.hasUser {
			key.user = keyUser
		}
		if key.hasClient = q.Entity.Client.Scope != metadata.ScopeNone; key.hasClient {
			key.client = keyClient
		}
		c.buckets[k], some = l.bucket(key, q, now), true
	}
	if !some {
		return nil
	}
	return c
}

// lives says whether none of the client's buckets has been forgotten.
func (c *Client) lives() bool {
	for _, b := range c.buckets {
		if b != nil && b.dead.Load() {
			return false
		}
	}
	return true
}

// short is a name as keys have it.
func short(name string) string {
	if len(name) <= nameMax {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	return string(sum[:])
}

// Has says whether the client has a quota of the kind.
func (c *Client) Has(k metadata.QuotaKind) bool { return c != nil && c.buckets[k] != nil }

// Take counts n of what the quota limits, and returns for how long the client is to wait: 0 while it is within the quota, or has none of the kind.
func (c *Client) Take(k metadata.QuotaKind, n float64, now time.Time) time.Duration {
	if !c.Has(k) {
		return 0
	}
	return c.buckets[k].take(n, now)
}

// Give puts back n that was counted with Take and then not used.
func (c *Client) Give(k metadata.QuotaKind, n float64, now time.Time) {
	if c.Has(k) && n > 0 {
		c.buckets[k].give(n, now)
	}
}

// Wait is for how long the client is to wait before it may take anything of the kind.
func (c *Client) Wait(k metadata.QuotaKind, now time.Time) time.Duration { return c.Take(k, 0, now) }

// Burst is how much of the kind may be taken at once; false when there is no limit.
func (c *Client) Burst(k metadata.QuotaKind) (float64, bool) {
	if !c.Has(k) {
		return 0, false
	}
	return c.buckets[k].holds(), true
}

// Connect counts a connection from an address, and returns for how long it is to wait.
func (l *Limiter) Connect(address string, now time.Time) time.Duration {
	rules := l.Rules()
	if rules.QuotaCount() == 0 {
		return 0
	}
	q, ok := rules.AddressQuota(address)
	if !ok {
		return 0
	}
	for {
		b := l.bucket(bucketKey{kind: q.Kind, client: short(address)}, q, now)
		if wait := b.take(1, now); !b.dead.Load() {
			return wait
		}
	}
}

// bucket finds the bucket of a key, or makes it. Its rate becomes that of the quota.
func (l *Limiter) bucket(key bucketKey, q metadata.Quota, now time.Time) *bucket {
	l.mu.Lock()
	defer l.mu.Unlock()
	b := l.mu.buckets[key]
	if b == nil && len(l.mu.buckets) >= bucketsMax {
		l.sweepLocked(now)
		if len(l.mu.buckets) >= bucketsMax {
			key = bucketKey{kind: key.kind, shared: q.Entity}
			b = l.mu.buckets[key]
		}
	}
	if b == nil {
		b = newBucket(q.Value, now)
		l.mu.buckets[key] = b
		return b
	}
	b.setRate(q.Value, now)
	return b
}

// sweepLocked forgets the buckets that are full.
func (l *Limiter) sweepLocked(now time.Time) {
	if now.Sub(l.mu.swept) < sweepEvery && !l.mu.swept.IsZero() {
		return
	}
	l.mu.swept = now
	for k, b := range l.mu.buckets {
		if b.forget(now) {
			delete(l.mu.buckets, k)
		}
	}
}

// Buckets counts the buckets.
func (l *Limiter) Buckets() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.mu.buckets)
}
