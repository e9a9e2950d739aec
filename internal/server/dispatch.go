package server

import (
	"context"
	"net"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// Do is the dispatcher: the one way from any door to a handler. call.Request must be of a version in the table. ctx ends when nobody
// waits for the answer any more.
//
// I15: what a whole request needs is judged here, by its row's need; what it needs for each thing that it names, its handler judges. What counts against a
// quota is counted here.
func (s *Server) Do(ctx context.Context, call *Call) Reply {
	r := rowOf(call.Request.Key())
	if r == nil {
		return Reply{Close: true} // the doors check the key; nothing else can be said about an unknown layout
	}
	s.counts[r.key].Inc()
	if call.Received.IsZero() {
		call.Received = time.Now()
	}
	if call.host == "" { // a door without connections
		call.host, _, _ = net.SplitHostPort(call.Peer)
	}
	m := s.meter(call)
	if no, refused := m.begin(r.key); refused {
		return no
	}
	if no, ok := s.authorise(call, r.need); !ok {
		return m.end(no)
	}
	return m.end(r.handle(s, ctx, call))
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
