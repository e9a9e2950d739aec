package load

import (
	"context"
	"errors"
	"io"
	"net"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"strandline.dev/test/chaos/check"
)

// sessionMax is how long a reader reads before another takes its place, a little further back.
const sessionMax = 20 * time.Second

// overlap is how many records a new session reads again.
const overlap = 500

// reader reads a topic from its start, in sessions.
func (l *Load) reader(t Topic) {
	next := map[int32]int64{}
	for l.ctx.Err() == nil {
		l.read(t, next)
		for p, at := range next {
			next[p] = max(0, at-overlap)
		}
	}
}

// read is one session; next is where it begins and then where it has come to.
func (l *Load) read(t Topic, next map[int32]int64) {
	from := map[int32]kgo.Offset{}
	for p := range t.Partitions {
		from[p] = kgo.NewOffset().At(next[p])
	}
	reset := kgo.NoResetOffset() // an offset out of range is an error that shows
	if t.Cut {
		reset = kgo.NewOffset().AtStart()
	}
	cl, err := kgo.NewClient(l.options(kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{t.Name: from}), kgo.ConsumeResetOffset(reset),
		kgo.FetchMaxWait(500*time.Millisecond))...)
	if err != nil {
		l.problem("reader: %v", err)
		return
	}
	defer cl.Close()
	ctx, cancel := bounded(l.ctx, sessionMax)
	defer cancel()
	session := l.newSession()
	for ctx.Err() == nil {
		f := cl.PollFetches(ctx)
		for _, e := range f.Errors() {
			l.readError("a reader", e)
		}
		f.EachRecord(func(r *kgo.Record) {
			l.polled(session, r)
			next[r.Partition] = r.Offset + 1
		})
	}
}

func (l *Load) polled(session int, r *kgo.Record) {
	k := check.Key{Topic: r.Topic, Partition: r.Partition}
	v, ok := ParseValue(r.Value)
	if !ok {
		l.problem("%s/%d offset %d: the bytes are not those of value %d", k.Topic, k.Partition, r.Offset, v)
		return
	}
	l.R.Polled(check.Poll{Key: k, Session: session, Offset: r.Offset, Value: v})
	l.count("polled")
}

// readError notes the errors that a reader must not meet; what a client retries by itself is none.
func (l *Load) readError(who string, e kgo.FetchError) {
	var lost *kgo.ErrDataLoss
	var network net.Error
	var session *kgo.ErrGroupSession // the member joins again by itself
	switch {
	case errors.As(e.Err, &network), errors.As(e.Err, &session), errors.Is(e.Err, io.EOF):
	case errors.Is(e.Err, context.Canceled), errors.Is(e.Err, context.DeadlineExceeded), kgo.IsRetryableBrokerErr(e.Err), kerr.IsRetriable(e.Err):
	case errors.As(e.Err, &lost):
		l.problem("%s of %s/%d was told that records it had read are gone: %v", who, e.Topic, e.Partition, e.Err)
	default:
		l.problem("%s of %s/%d: %v", who, e.Topic, e.Partition, e.Err)
	}
}

// cuts deletes the beginning of a topic now and then.
func (l *Load) cuts(t Topic) {
	rng := l.random(7)
	for pause(l.ctx, 3*time.Second) {
		k := check.Key{Topic: t.Name, Partition: rng.Int32N(t.Partitions)}
		l.mu.Lock()
		end := l.ends[k]
		l.mu.Unlock()
		if end > 0 {
			l.deleteRecords(k, rng.Int64N(end+1))
		}
	}
}
