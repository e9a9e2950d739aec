package server

import (
	"context"
	"time"
	"unicode/utf8"

	"github.com/twmb/franz-go/pkg/kmsg"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/metadata"
)

// task is a reply that another goroutine works out: an administrative request goes to the controller and must not stop the reader.
// It is bounded by its own context, so it needs no Deadline.
type task struct {
	done   chan struct{}
	cancel context.CancelFunc
	resp   kmsg.Response
}

// background runs work off the connection's goroutines for at most timeout. work must return soon after its context has ended, with
// a response that says so (REQUEST_TIMED_OUT). A connection has at most one at a time: only Produce is pipelined.
func background(ctx context.Context, timeout time.Duration, work func(context.Context) kmsg.Response) Reply {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	t := &task{done: make(chan struct{}), cancel: cancel}
	go func() {
		defer close(t.done)
		defer cancel()
		t.resp = work(ctx)
	}()
	return Reply{Pending: t}
}

// Ready is closed when the work is done.
func (t *task) Ready() <-chan struct{} { return t.done }

// Deadline is none: the work's context bounds it.
func (t *task) Deadline() time.Time { return time.Time{} }

// Complete returns what the work has answered.
func (t *task) Complete(late bool) (Reply, bool) {
	if late {
		t.cancel()
		<-t.done
	}
	return ready(t.resp), true
}

// Cancel ends the work.
func (t *task) Cancel() { t.cancel() }

// adminTimeout is timeout_ms of an administrative request within our bounds.
func adminTimeout(ms int32) time.Duration {
	if ms <= 0 {
		return adminWaitDefault
	}
	return min(time.Duration(ms)*time.Millisecond, adminWaitMax)
}

// decide submits ev and, when it changed something, waits until this node serves the change, so that a topic is usable when the answer
// to its creation arrives. R is the event's reply type. It is the one way of administrative changes, so what is changed is written down here, before
// it is.
func decide[R any](ctx context.Context, s *Server, call *Call, ev metadata.Event) (R, error) {
	var none R
	done := func(string) {}
	if what, changes := s.changeOf(ev); changes {
		var err error
		if done, err = s.begin(ctx, call, what); err != nil {
			return none, err
		}
	}
	answer, version, err := s.cfg.Controller.Submit(ctx, ev)
	if err != nil {
		done(err.Error())
		return none, err
	}
	done(decided(answer))
	out, ok := answer.(R)
	if !ok {
		return none, errReplyType
	}
	// The change is committed; that this node lags behind must not turn into a failure of the change itself. The client's next request
	// gets a retriable error at worst.
	if err := s.cfg.Replicas.WaitApplied(ctx, version); err != nil && ctx.Err() == nil {
		s.cfg.Log.Warn("a committed change is not in service on this node yet", "version", version, "error", err)
	}
	return out, nil
}

// text is an optional message of the protocol. It is cut at messageMax: messages repeat what the client sent, and one that does not fit the
// 16-bit length of the older layouts would make the rest of the answer unreadable.
func text(s string) *string {
	if s == "" {
		return nil
	}
	if len(s) > messageMax {
		end := messageMax
		for end > 0 && !utf8.RuneStart(s[end]) {
			end--
		}
		s = s[:end] + "..."
	}
	return &s
}

// refusal is an error of one item of a request: a code and a message for people.
type refusal struct {
	code    kafka.ErrorCode
	message string
}
