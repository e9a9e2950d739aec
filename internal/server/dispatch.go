package server

import (
	"context"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// Do is the dispatcher: the one way from any door to a handler. call.Request must be of a version in the table. ctx ends when nobody
// waits for the answer any more.
//
// Authorisation, quota and audit belong here, before the handler, and go by the operation that the handler's row declares (I15).
func (s *Server) Do(ctx context.Context, call *Call) Reply {
	r := rowOf(call.Request.Key())
	if r == nil {
		return Reply{Close: true} // the doors check the key; nothing else can be said about an unknown layout
	}
	s.counts[r.key].Inc()
	if call.Received.IsZero() {
		call.Received = time.Now()
	}
	return r.handle(s, ctx, call)
}

// Await waits for a reply as a connection's writer does, for doors without a connection. The caller calls Release, if set, when it is
// done with the response. The error is ctx's.
func Await(ctx context.Context, r Reply) (Reply, error) {
	for r.Pending != nil {
		p, late := r.Pending, false
		var over <-chan time.Time
		if d := p.Deadline(); !d.IsZero() {
			t := time.NewTimer(time.Until(d))
			defer t.Stop()
			over = t.C
		}
		select {
		case <-p.Ready():
		case <-over:
			late = true
		case <-ctx.Done():
			p.Cancel()
			return Reply{}, ctx.Err()
		}
		if next, done := p.Complete(late); done {
			r = next
		}
	}
	return r, nil
}

// reply makes the response that belongs to a request, with its version and defaults set.
func reply[R kmsg.Response](req kmsg.Request) R { return req.ResponseKind().(R) }
