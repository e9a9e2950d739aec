package coordinator

import (
	"time"

	"strandline.dev/internal/replica"
)

// Wait is one request that a shard has to answer. First the core decides; then, if the answer shows or confirms progress, it waits for a
// commit. Its owner waits for Ready until Done, then takes the Result; or it calls Cancel. The owner uses it from one goroutine at a
// time.
type Wait struct {
	shard   *shard // nil when the request was refused
	token   uint64
	decided chan struct{}
	out     outcome // set before decided is closed
}

// outcome is what became of a request.
type outcome struct {
	response any
	err      error
	commit   *replica.Produce // what has to be committed first; nil for nothing
	at       time.Time        // when it was decided
}

// decidedAtOnce is the channel of requests that were refused.
var decidedAtOnce = func() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

func newWait(s *shard, token uint64) *Wait {
	return &Wait{shard: s, token: token, decided: make(chan struct{})}
}

func refused(err error) *Wait {
	return &Wait{decided: decidedAtOnce, out: outcome{err: err}}
}

// decide is called once, by the shard's goroutine.
func (w *Wait) decide(o outcome) {
	w.out = o
	close(w.decided)
}

func (w *Wait) isDecided() bool {
	select {
	case <-w.decided:
		return true
	default:
		return false
	}
}

// Ready is closed when there is news: after it, Done may be true, or Ready is another channel.
func (w *Wait) Ready() <-chan struct{} {
	if w.isDecided() && w.out.commit != nil {
		return w.out.commit.Ready()
	}
	return w.decided
}

// Done says whether Result has the answer.
func (w *Wait) Done() bool {
	if !w.isDecided() {
		return false
	}
	if w.out.commit == nil {
		return true
	}
	select {
	case <-w.out.commit.Ready():
		return true
	default:
		return false
	}
}

// Deadline is when a decided request stops waiting for its commit; the zero time before: how long a join takes is the group's business.
func (w *Wait) Deadline() time.Time {
	if !w.isDecided() || w.out.commit == nil {
		return time.Time{}
	}
	return w.out.at.Add(commitWaitMax)
}

// Result returns the reply of the core, a pointer to one of group's reply types, or an error of this package. Before Done it gives up
// waiting: ErrUncommitted when it was decided, else ErrNotCoordinator.
func (w *Wait) Result() (any, error) {
	switch {
	case !w.isDecided():
		w.Cancel()
		return nil, ErrNotCoordinator
	case w.out.err != nil:
		return nil, w.out.err
	case w.out.commit == nil:
		return w.out.response, nil
	case !w.Done():
		return nil, ErrUncommitted
	}
	if err := w.out.commit.Results()[0].Err; err != nil {
		w.shard.c.replace(w.shard, err)
		return nil, ErrNotCoordinator
	}
	return w.out.response, nil
}

// Cancel says that nobody will ask for the result. What was decided stays decided.
func (w *Wait) Cancel() {
	if w.shard != nil && !w.isDecided() {
		_ = w.shard.push(item{cancel: w.token})
	}
}
