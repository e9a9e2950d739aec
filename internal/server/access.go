package server

import (
	"context"
	"errors"
	"net"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"strandline.dev/internal/auth"
	"strandline.dev/internal/config"
	"strandline.dev/internal/kafka"
	"strandline.dev/internal/metadata"
	"strandline.dev/internal/wire"
)

// Audit keeps what happened about access. *audit.Trail is the implementation; the interface is the seam at which tests make it fail.
type Audit interface {
	// Note keeps a failed login or a denial, without waiting.
	Note(auth.Event)
	// Begin keeps a change before it is made; an error means that it must not be. done says what became of it, "" for done.
	Begin(ctx context.Context, ev auth.Event) (done func(outcome string), err error)
}

// note hands an event to the audit trail, if there is one.
func (s *Server) note(call *Call, ev auth.Event) {
	if s.cfg.Audit == nil {
		return
	}
	ev.Principal, ev.Peer, ev.Client = call.Principal, call.Peer, clip(call.ClientID)
	s.cfg.Audit.Note(ev)
}

// loginReasons are the labels of failed logins.
var loginReasons = []string{"credentials", "unavailable", "token", "mechanism", "malformed", "other_user"}

// noMechanism and missing are the labels of a request over HTTP that proves nothing.
const noMechanism, missing = "none", "missing"

// showLoginFailures exposes every kind of failed login at 0: what first appears with a 1 is no increase to those who watch it.
func (s *Server) showLoginFailures() {
	for _, mechanism := range append([]string{"TLS"}, config.SASLMechanisms...) {
		for _, why := range loginReasons {
			s.cfg.Metrics.AuthFailures.WithLabelValues(mechanism, why)
		}
	}
	s.cfg.Metrics.AuthFailures.WithLabelValues(noMechanism, missing)
}

// LoginFailed counts, logs and notes a failed login at a door without connections: from where, by which client, by which mechanism ("": none). It
// returns when the failure may be answered, whatever has become of the client: one that has closed its half of a connection can have sent more guesses.
func (s *Server) LoginFailed(peer, client, mechanism string, err error) {
	if mechanism == "" {
		mechanism = noMechanism
	}
	s.loginFailed(&Call{Principal: kafka.Anonymous, Peer: peer, ClientID: client}, mechanism, err)
	<-time.After(loginFailedDelay)
}

// loginFailed counts, logs and notes a failed login.
func (s *Server) loginFailed(call *Call, mechanism string, err error) {
	why := "credentials"
	switch {
	case errors.Is(err, auth.ErrUnavailable):
		why = "unavailable"
	case errors.Is(err, auth.ErrToken):
		why = "token"
	case errors.Is(err, auth.ErrMechanism):
		why = "mechanism"
	case errors.Is(err, auth.ErrMalformed):
		why = "malformed"
	case errors.Is(err, errOtherUser):
		why = "other_user"
	case errors.Is(err, auth.ErrNobody):
		why = missing
	}
	s.cfg.Metrics.AuthFailures.WithLabelValues(mechanism, why).Inc()
	s.peers.line(reasonLogin, "a login failed", call.Peer, "mechanism", mechanism, "error", err, "client", clip(call.ClientID))
	s.note(call, auth.Event{What: auth.LoginFailed, API: mechanism, Outcome: err.Error()})
}

// may says whether the caller may do something. A denial is counted, logged with the rule that is missing or denies, and noted.
func (s *Server) may(call *Call, op kmsg.ACLOperation, resource kmsg.ACLResourceType, name string) bool {
	return s.mayDo(call, auth.Action{Operation: op, Resource: resource, Name: name})
}

// mayCluster is may for the cluster as a resource.
func (s *Server) mayCluster(call *Call, op kmsg.ACLOperation) bool {
	return s.mayDo(call, auth.OnCluster(op))
}

// Denied counts, logs and notes what another door has denied, as a denial of the call's API.
func (s *Server) Denied(call *Call, act auth.Action) {
	call.host, _, _ = net.SplitHostPort(call.Peer)
	if !s.sees(call, act) {
		s.denied(call, act)
	}
}

func (s *Server) mayDo(call *Call, act auth.Action) bool {
	if s.sees(call, act) {
		return true
	}
	s.denied(call, act)
	return false
}

// sees is mayDo without a denial: for what is left out of lists.
func (s *Server) sees(call *Call, act auth.Action) bool {
	if act.Resource == kmsg.ACLResourceTypeTopic && canaryOf(call, act.Name) {
		return true
	}
	if call.grants == nil { // a door without connections
		call.grants = s.cfg.Access.Grants(call.Principal, call.host)
	}
	return call.grants.May(act)
}

// denied counts, logs and notes a denial.
func (s *Server) denied(call *Call, act auth.Action) {
	api, _ := wire.Lookup(call.Request.Key())
	s.cfg.Metrics.Denials.WithLabelValues(api.Name).Inc()
	why := call.grants.Explain(act).Why
	s.peers.line(reasonDenied, "denied", call.Peer, "principal", clip(call.Principal.String()), "api", api.Name, "action", clip(act.String()), "why", clip(why))
	s.note(call, auth.Event{What: auth.Denied, API: api.Name, Resource: act.String(), Outcome: why})
}

// canaryOf says that a node publishes or reads its own measurements, for which it needs no rule. No client has a principal of this kind (I15).
func canaryOf(call *Call, topic string) bool {
	return call.Principal.Type == kafka.NodePrincipal && topic == metadata.CanaryTopic
}

// operations is the bit set of what the caller may do with a resource (bit n is Kafka's operation n).
func (s *Server) operations(call *Call, resource kmsg.ACLResourceType, name string, all []kmsg.ACLOperation) int32 {
	var bits int32
	for _, op := range all {
		if s.sees(call, auth.Action{Operation: op, Resource: resource, Name: name}) {
			bits |= 1 << op
		}
	}
	return bits
}

// loginFailedDelay is the pause before a failed login is answered (Kafka: 100 ms).
const loginFailedDelay = 100 * time.Millisecond
