package main

import (
	"context"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"strandline.dev/internal/record"
	"strandline.dev/test/chaos/raw"
	"strandline.dev/test/chaos/rig"
)

const (
	// retryPause paces a partition's next try when nobody has named another leader.
	retryPause = 5 * time.Millisecond
	// lookEvery paces questions for leaders while a partition is silent; a write that has waited for silentAfter makes it so.
	lookEvery   = 10 * time.Millisecond
	silentAfter = 100 * time.Millisecond
	// tryMax bounds one write. Another leader ends it sooner.
	tryMax = 10 * time.Second
)

// leaders is what the probe knows of who leads, by the highest epoch heard of.
type leaders struct {
	mu      sync.Mutex
	by      []raw.Partition
	changed []chan struct{} // closed at the next change of a partition
	silent  map[int]bool
	kick    chan struct{}
}

func (l *leaders) get(p int) (raw.Partition, <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.by[p], l.changed[p]
}

func (l *leaders) learn(p int, leader, epoch int32) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if old := l.by[p]; leader < 0 || epoch <= old.Epoch {
		return
	}
	l.by[p].Leader, l.by[p].Epoch = leader, epoch
	close(l.changed[p])
	l.changed[p] = make(chan struct{})
}

// look says whether a partition needs its leader looked for.
func (l *leaders) look(p int, silent bool) {
	l.mu.Lock()
	if silent {
		l.silent[p] = true
	} else {
		delete(l.silent, p)
	}
	l.mu.Unlock()
	if silent {
		select {
		case l.kick <- struct{}{}:
		default:
		}
	}
}

func (l *leaders) looking() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.silent) > 0
}

// run asks every node for leaders while a partition is silent.
func (l *leaders) run(ctx context.Context, c *rig.Cluster) {
	for ctx.Err() == nil {
		select {
		case <-l.kick:
		case <-ctx.Done():
			return
		}
		for l.looking() && ctx.Err() == nil {
			var asked sync.WaitGroup
			for _, n := range c.Nodes {
				asked.Go(func() {
					one, cancel := context.WithTimeout(ctx, 10*lookEvery)
					defer cancel()
					parts, _, err := raw.Topic(one, n.Advertised(), topic)
					for p := range parts {
						if err == nil {
							l.learn(p, parts[p].Leader, parts[p].Epoch)
						}
					}
				})
			}
			asked.Wait()
			<-time.After(lookEvery)
		}
	}
}

// raw starts a probe: a connection and a goroutine for each partition, one write at a time.
func (w *writer) raw(ctx context.Context, o options, c *rig.Cluster) error {
	parts, err := c.Shown(ctx, topic)
	if err != nil {
		return err
	}
	l := &leaders{by: parts, silent: map[int]bool{}, kick: make(chan struct{}, 1)}
	for range parts {
		l.changed = append(l.changed, make(chan struct{}))
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	w.stop = func() { cancel(); running.Wait() }
	running.Go(func() { l.run(ctx, c) })
	pace := time.Second * time.Duration(o.partitions) / time.Duration(o.rate)
	for p := range parts {
		one := &series{w: w, c: c, l: l, p: p, pace: pace, ids: o.recordIDs}
		running.Go(func() { one.run(ctx, pace*time.Duration(p)/time.Duration(len(parts))) })
	}
	return nil
}

// series writes to one partition.
type series struct {
	w    *writer
	c    *rig.Cluster
	l    *leaders
	p    int
	pace time.Duration
	ids  bool // each record has an id, kept when it is written again
	n    int  // acknowledged writes

	conn *raw.Conn // nil when there is none; to the leader that it was dialled for
	to   int32
}

// run makes each write at its due time, or at once when it is late.
func (s *series) run(ctx context.Context, first time.Duration) {
	defer s.drop()
	due := time.Now().Add(first)
	for ctx.Err() == nil {
		<-time.After(time.Until(due))
		at, changed := s.l.get(s.p)
		if s.to != at.Leader {
			s.drop()
		}
		if s.conn == nil {
			s.to = at.Leader
			one, cancel := context.WithTimeout(ctx, silentAfter)
			s.conn, _ = raw.Dial(one, s.c.Node(s.to).Advertised())
			cancel()
		}
		ok := s.conn != nil && s.write(ctx, changed)
		s.l.look(s.p, !ok)
		if ok {
			s.w.acked(s.p)
			s.n++
			due = later(due.Add(s.pace))
			continue
		}
		select {
		case <-changed:
		case <-time.After(retryPause):
		case <-ctx.Done():
		}
	}
}

func (s *series) drop() {
	if s.conn != nil {
		s.conn.Close()
		s.conn = nil
	}
}

// later is when, or now if that has passed.
func later(when time.Time) time.Time {
	if now := time.Now(); when.Before(now) {
		return now
	}
	return when
}

// write writes one record. A change of leader ends it.
func (s *series) write(ctx context.Context, changed <-chan struct{}) bool {
	ctx, cancel := context.WithTimeout(ctx, tryMax)
	defer cancel()
	over := make(chan struct{})
	defer close(over)
	go func() {
		slow := time.NewTimer(silentAfter)
		defer slow.Stop()
		for {
			select {
			case <-over:
				return
			case <-changed:
				cancel()
				return
			case <-slow.C:
				s.l.look(s.p, true)
			}
		}
	}()
	r, err := s.conn.Do(ctx, s.request())
	if err != nil {
		s.drop()
		return false
	}
	answer := r.(*kmsg.ProduceResponse).Topics[0].Partitions[0]
	if answer.ErrorCode != 0 {
		s.l.learn(s.p, answer.CurrentLeader.LeaderID, answer.CurrentLeader.LeaderEpoch)
	}
	return answer.ErrorCode == 0
}

func (s *series) request() *kmsg.ProduceRequest {
	req := kmsg.NewPtrProduceRequest()
	req.Acks, req.TimeoutMillis = -1, int32(tryMax.Milliseconds())
	t := kmsg.NewProduceRequestTopic()
	t.Topic = topic
	part := kmsg.NewProduceRequestTopicPartition()
	part.Partition = int32(s.p)
	part.Records = payload
	if s.ids {
		b := record.NewBuilder(record.None)
		id := s.w.recordID(s.p, s.n)
		b.Add(0, nil, make([]byte, 1024), []record.Header{{Key: id.Key, Value: id.Value}})
		part.Records = b.Build()
	}
	t.Partitions = append(t.Partitions, part)
	req.Topics = append(req.Topics, t)
	return req
}

// payload is one batch of one record of 1 KiB; the probe counts writes, not records that are kept once.
var payload = func() []byte {
	b := record.NewBuilder(record.None)
	b.Add(0, nil, make([]byte, 1024), nil)
	return b.Build()
}()
