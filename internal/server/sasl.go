package server

import (
	"context"
	"encoding/binary"
	"errors"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"strandline.dev/internal/auth"
	"strandline.dev/internal/kafka"
	"strandline.dev/internal/wire"
)

// handleSaslHandshake begins a login: the first one of a connection, or one by which a session with an end goes on (KIP-368).
func (s *Server) handleSaslHandshake(_ context.Context, call *Call) Reply {
	req := call.Request.(*kmsg.SASLHandshakeRequest)
	resp := reply[*kmsg.SASLHandshakeResponse](req)
	g := call.guard
	if g == nil || !g.door.asksLogin() {
		resp.ErrorCode = int16(kafka.IllegalSASLState)
		return ready(resp)
	}
	resp.SupportedMechanisms = g.door.SASL
	code := s.beginLogin(g, req)
	resp.ErrorCode = int16(code)
	r := ready(resp)
	switch code {
	case kafka.None:
	case kafka.UnsupportedSASLMechanism:
		s.loginFailed(call, "unknown", auth.ErrMechanism)
		r.Close, r.why = true, reasonLogin
	default:
		r.Close, r.why = true, reasonLoginState
	}
	return r
}

func (s *Server) beginLogin(g *guard, req *kmsg.SASLHandshakeRequest) kafka.ErrorCode {
	if !g.door.offers(req.Mechanism) || s.cfg.Authenticator == nil {
		return kafka.UnsupportedSASLMechanism
	}
	login, err := s.cfg.Authenticator.Begin(req.Mechanism)
	if err != nil {
		return kafka.UnsupportedSASLMechanism
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.mu.login != nil || !g.strangerLocked() && g.mu.ends.IsZero() {
		return kafka.IllegalSASLState // one login at a time, and none for a session without an end
	}
	g.mu.login, g.mu.raw = login, req.Version == 0
	return kafka.None
}

// handleSaslAuthenticate takes one message of a login. It runs beside the connection's goroutines: hashing and an issuer take their time.
func (s *Server) handleSaslAuthenticate(ctx context.Context, call *Call) Reply {
	req := call.Request.(*kmsg.SASLAuthenticateRequest)
	resp := reply[*kmsg.SASLAuthenticateResponse](req)
	var login *auth.Login
	if call.guard != nil {
		call.guard.mu.Lock()
		login = call.guard.mu.login
		call.guard.mu.Unlock()
	}
	if login == nil {
		resp.ErrorCode, resp.ErrorMessage = int16(kafka.IllegalSASLState), text("no SaslHandshake has begun a login")
		return Reply{Response: resp, Close: call.guard != nil && call.guard.door.asksLogin(), why: reasonLoginState}
	}
	ctx, cancel := context.WithTimeout(ctx, loginStepMax)
	p := &loginStep{done: make(chan struct{}), cancel: cancel}
	go func() {
		defer close(p.done)
		defer cancel()
		p.reply = s.loginStep(ctx, call, login, resp)
	}()
	return Reply{Pending: p}
}

// loginStep works out the answer to one message of a login.
func (s *Server) loginStep(ctx context.Context, call *Call, login *auth.Login, resp *kmsg.SASLAuthenticateResponse) Reply {
	req := call.Request.(*kmsg.SASLAuthenticateRequest)
	answer, id, err := login.Step(ctx, req.SASLAuthBytes)
	if err == nil && id != nil {
		resp.SessionLifetimeMillis, err = s.loggedIn(call.guard, id, time.Now())
	}
	if err != nil {
		s.loginFailed(call, login.Mechanism(), err)
		delay := time.NewTimer(loginFailedDelay)
		defer delay.Stop()
		select { // guessing is slow, and slows down nobody else
		case <-delay.C:
		case <-ctx.Done():
		}
		resp.ErrorCode, resp.ErrorMessage = int16(kafka.SASLAuthenticationFailed), text(loginMessage(login.Mechanism(), err))
		return Reply{Response: resp, Close: true, why: reasonLogin}
	}
	resp.SASLAuthBytes = answer
	return ready(resp)
}

// loginMessage is what the client is told: never whether a user exists.
func loginMessage(mechanism string, err error) string {
	switch {
	case errors.Is(err, auth.ErrUnavailable):
		return "authentication by " + mechanism + " is not available now; try again"
	case errors.Is(err, errOtherUser):
		return errOtherUser.Error()
	case errors.Is(err, auth.ErrToken):
		return "authentication by " + mechanism + " failed: the token is not valid here"
	}
	return "authentication by " + mechanism + " failed: unknown user or wrong password"
}

// errOtherUser means that somebody else has logged in on a connection.
var errOtherUser = errors.New("a session goes on with the user it began with")

// loggedIn takes a proved identity and returns how long it holds, in milliseconds; 0: without an end.
func (s *Server) loggedIn(g *guard, id *auth.Identity, now time.Time) (int64, error) {
	if !g.stranger() && g.principal() != id.Principal {
		return 0, errOtherUser
	}
	ends := id.Expires
	if s.cfg.SessionMax > 0 && (ends.IsZero() || ends.After(now.Add(s.cfg.SessionMax))) {
		ends = now.Add(s.cfg.SessionMax)
	}
	g.become(id, ends)
	if ends.IsZero() {
		return 0, nil
	}
	return max(1, ends.Sub(now).Milliseconds()), nil
}

// loginStep is the Pending of a message of a login.
type loginStep struct {
	done   chan struct{}
	cancel context.CancelFunc
	reply  Reply
}

// Ready is closed when the answer is known.
func (p *loginStep) Ready() <-chan struct{} { return p.done }

// Deadline is none: the step's context bounds it.
func (p *loginStep) Deadline() time.Time { return time.Time{} }

// Complete returns the answer.
func (p *loginStep) Complete(late bool) (Reply, bool) {
	if late {
		p.cancel()
		<-p.done
	}
	return p.reply, true
}

// Cancel ends the step.
func (p *loginStep) Cancel() { p.cancel() }

// rawLogin turns a frame without a header into the message of a login that SaslHandshake v0 has begun.
func rawLogin(x *exchange) {
	req := kmsg.NewPtrSASLAuthenticateRequest()
	req.SASLAuthBytes = x.frame.b
	x.call.Request, x.row, x.raw = req, rowOf(wire.KeySaslAuthenticate), true
}

// appendRaw appends the answer to such a message: a size and the bytes. A failure has no form there; the connection's end says it.
func appendRaw(dst []byte, resp kmsg.Response) []byte {
	r, ok := resp.(*kmsg.SASLAuthenticateResponse)
	if !ok || r.ErrorCode != 0 {
		return dst
	}
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(r.SASLAuthBytes)))
	return append(dst, r.SASLAuthBytes...)
}
