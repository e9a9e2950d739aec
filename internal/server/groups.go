package server

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"strandline.dev/internal/coordinator"
	"strandline.dev/internal/group"
	"strandline.dev/internal/kafka"
)

// Groups coordinates consumer groups on this node. *coordinator.Coordinator is the implementation; the interface is the seam at which
// tests make it fail.
type Groups interface {
	// Locate says which node coordinates a group.
	Locate(groupID string) (kafka.NodeID, error)
	// Exists says whether the coordinators' topic does, and Create makes it.
	Exists() bool
	Create(ctx context.Context) error
	// Submit hands an event to the shard of a group, SubmitAll to every shard here.
	Submit(groupID string, event func(token uint64) group.Event) *coordinator.Wait
	SubmitAll(event func(token uint64) group.Event) []*coordinator.Wait
	// Backlog says what a group has not read.
	Backlog(ctx context.Context, groupID string) (*group.Report, error)
}

// groupCall is the answer to a request that one or several coordinator shards have to decide. It holds neither a goroutine nor a lock
// while a join waits for others.
type groupCall struct {
	waits  []*coordinator.Wait
	answer func() kmsg.Response
}

// awaitGroups answers once all of the waits are done. The request's bytes may be gone when answer is called: it may use strings of the
// request, which are copies, and none of its byte slices. A nil wait is of a group that was not asked.
func awaitGroups(answer func() kmsg.Response, waits ...*coordinator.Wait) Reply {
	g := &groupCall{waits: asked(waits), answer: answer}
	if r, done := g.Complete(false); done {
		return r
	}
	return Reply{Pending: g}
}

// asked are the waits without the nil ones; mostly there are none.
func asked(waits []*coordinator.Wait) []*coordinator.Wait {
	if !slices.Contains(waits, nil) {
		return waits
	}
	return slices.DeleteFunc(slices.Clone(waits), func(w *coordinator.Wait) bool { return w == nil })
}

// undone is the first wait that has no result yet, or nil.
func (g *groupCall) undone() *coordinator.Wait {
	for _, w := range g.waits {
		if !w.Done() {
			return w
		}
	}
	return nil
}

// Ready is closed when there is news of the first shard that is still to answer.
func (g *groupCall) Ready() <-chan struct{} {
	if w := g.undone(); w != nil {
		return w.Ready()
	}
	return alreadyReady
}

var alreadyReady = func() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

// Deadline bounds the wait for a commit. How long a join waits for others is the group's business.
func (g *groupCall) Deadline() time.Time {
	if w := g.undone(); w != nil {
		return w.Deadline()
	}
	return time.Time{}
}

// Complete answers when all shards have. late turns what is still open into a retriable error.
func (g *groupCall) Complete(late bool) (Reply, bool) {
	if !late && g.undone() != nil {
		return Reply{}, false
	}
	return ready(g.answer()), true
}

// Cancel tells the shards that nobody waits any more.
func (g *groupCall) Cancel() {
	for _, w := range g.waits {
		w.Cancel()
	}
}

// answerOf is the reply of a shard, or the code that says why there is none.
func answerOf[R any](s *Server, w *coordinator.Wait) (*R, kafka.ErrorCode) {
	got, err := w.Result()
	if err != nil {
		return nil, s.code(err, "ask a group coordinator")
	}
	r, ok := got.(*R)
	if !ok {
		return nil, s.code(errGroupReply, "ask a group coordinator")
	}
	return r, kafka.None
}

// errGroupReply means that a shard answered an event with another event's reply: a broken invariant of ours.
var errGroupReply = errors.New("the coordinator's reply does not fit the event")

// opt is an optional string of a request; "" when it is absent.
func opt(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// clientHost is how DescribeGroups shows where a member runs: as Java prints an address without a name.
func clientHost(call *Call) string { return "/" + call.host }

func milliseconds(ms int32) time.Duration { return time.Duration(ms) * time.Millisecond }
