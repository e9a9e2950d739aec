package load

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"strandline.dev/test/chaos/check"
	"strandline.dev/test/chaos/raw"
)

// routes is what our own clients know of leaders: by the highest epoch that anybody has told.
type routes struct {
	brokers map[int32]string
	mu      sync.Mutex
	by      map[check.Key]raw.Partition
}

func newRoutes(brokers map[int32]string) *routes {
	return &routes{brokers: brokers, by: map[check.Key]raw.Partition{}}
}

func (r *routes) get(k check.Key) (p raw.Partition, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p, ok = r.by[k]
	return p, ok && p.Leader > 0
}

func (r *routes) learn(k check.Key, leader, epoch int32) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if old, ok := r.by[k]; leader <= 0 || (ok && epoch <= old.Epoch) {
		return
	}
	r.by[k] = raw.Partition{Leader: leader, Epoch: epoch}
}

// anyOf is the address of a random broker.
func anyOf(brokers map[int32]string) string {
	skip := rand.IntN(len(brokers))
	for _, address := range brokers {
		if skip--; skip < 0 {
			return address
		}
	}
	return ""
}

// refresh asks any node for the leaders of a topic.
func (r *routes) refresh(ctx context.Context, topic string) {
	ctx, cancel := context.WithTimeout(ctx, 500*time.Millisecond)
	defer cancel()
	parts, _, err := raw.Topic(ctx, anyOf(r.brokers), topic)
	if err != nil {
		return
	}
	for p, s := range parts {
		r.learn(check.Key{Topic: topic, Partition: int32(p)}, s.Leader, s.Epoch)
	}
}

// line is a connection to whoever leads one partition, for one client.
type line struct {
	r    *routes
	k    check.Key
	conn *raw.Conn
	to   int32
}

// open returns a connection to the leader and the epoch that made it known, or nil when there is none for now.
func (n *line) open(ctx context.Context) (*raw.Conn, int32) {
	at, ok := n.r.get(n.k)
	if !ok {
		n.r.refresh(ctx, n.k.Topic)
		return nil, 0
	}
	if n.conn != nil && n.to != at.Leader {
		n.drop()
	}
	if n.conn == nil {
		ctx, cancel := context.WithTimeout(ctx, 500*time.Millisecond)
		defer cancel()
		conn, err := raw.Dial(ctx, n.r.brokers[at.Leader])
		if err != nil {
			n.r.refresh(ctx, n.k.Topic)
			return nil, 0
		}
		n.conn, n.to = conn, at.Leader
	}
	return n.conn, at.Epoch
}

// drop closes the connection: its answer is not waited for any more.
func (n *line) drop() {
	if n.conn != nil {
		n.conn.Close()
		n.conn = nil
	}
}
