package load

import (
	"context"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"strandline.dev/test/chaos/check"
)

// groupName is the group whose members read everything.
const groupName = "readers"

// member is one of the members of the group: it reads, and commits what it has read.
func (l *Load) member(number int) {
	var names []string
	for _, t := range l.o.Topics {
		names = append(names, t.Name)
	}
	for l.ctx.Err() == nil {
		cl, err := kgo.NewClient(l.options(kgo.ConsumeTopics(names...), kgo.ConsumerGroup(groupName), kgo.DisableAutoCommit(),
			kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.SessionTimeout(6*time.Second), kgo.FetchMaxWait(500*time.Millisecond),
			kgo.BlockRebalanceOnPoll())...)
		if err != nil {
			l.problem("member: %v", err)
			return
		}
		// The first member lives as long as the load; the other leaves now and then.
		life := time.Hour
		if number > 1 {
			life = 15 * time.Second
		}
		l.follow(cl, life)
		cl.CloseAllowingRebalance()
	}
}

// follow polls and commits until the member's life is over.
func (l *Load) follow(cl *kgo.Client, life time.Duration) {
	ctx, cancel := bounded(l.ctx, life)
	defer cancel()
	for ctx.Err() == nil {
		f := cl.PollRecords(ctx, 1000)
		for _, e := range f.Errors() {
			l.readError("a group member", e)
		}
		f.EachRecord(func(r *kgo.Record) {
			k := check.Key{Topic: r.Topic, Partition: r.Partition}
			if v, ok := ParseValue(r.Value); !ok {
				l.problem("%s/%d offset %d: the bytes are not those of value %d", k.Topic, k.Partition, r.Offset, v)
			}
			l.reached(groupKey(k), r.Offset+1)
		})
		one, done := bounded(ctx, adminMax)
		if err := cl.CommitUncommittedOffsets(one); err == nil {
			l.count("group commits")
		}
		done()
		cl.AllowRebalance()
	}
}

// register commits rising offsets under a group of its own, without members, and asks for them by way of another client: what was
// confirmed must be there.
func (l *Load) register(t Topic) {
	clients := make([]*kadm.Client, 2)
	for i := range clients {
		cl, err := kgo.NewClient(l.options()...)
		if err != nil {
			l.problem("register: %v", err)
			return
		}
		defer cl.Close()
		clients[i] = kadm.NewClient(cl)
	}
	group := "register-" + t.Name
	var both sync.WaitGroup
	both.Go(func() {
		for offset := int64(1); pause(l.ctx, 50*time.Millisecond); offset++ {
			l.commit(clients[0], group, check.Key{Topic: t.Name, Partition: int32(offset) % t.Partitions}, offset)
		}
	})
	both.Go(func() {
		for pause(l.ctx, 50*time.Millisecond) {
			l.fetch(clients[1], group, t)
		}
	})
	both.Wait()
}

func (l *Load) commit(adm *kadm.Client, group string, k check.Key, offset int64) {
	ctx, cancel := context.WithTimeout(l.ctx, adminMax)
	defer cancel()
	offsets := kadm.Offsets{}
	offsets.AddOffset(k.Topic, k.Partition, offset, -1)
	c := check.Commit{Key: k, Group: group, Offset: offset, Begin: l.R.Now()}
	r, err := adm.CommitOffsets(ctx, group, offsets)
	if err == nil && r.Error() == nil {
		c.Outcome = check.OK
		l.count("register commits")
	}
	c.End = l.R.Now()
	l.R.Committed(c)
}

func (l *Load) fetch(adm *kadm.Client, group string, t Topic) {
	ctx, cancel := context.WithTimeout(l.ctx, adminMax)
	defer cancel()
	begin := l.R.Now()
	r, err := adm.FetchOffsets(ctx, group)
	if err != nil || r.Error() != nil {
		return
	}
	end := l.R.Now()
	for p := range t.Partitions {
		at := int64(-1)
		if o, ok := r.Lookup(t.Name, p); ok {
			at = o.At
		}
		l.R.Committed(check.Commit{Key: check.Key{Topic: t.Name, Partition: p}, Group: group, Offset: at, Begin: begin, End: end, Outcome: check.OK, Fetched: true})
	}
	l.count("register fetches")
}
