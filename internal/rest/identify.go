package rest

import (
	"context"
	"crypto/sha256"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"strandline.dev/internal/auth"
	"strandline.dev/internal/kafka"
)

// caller is who sends a request, and from where.
type caller struct {
	principal kafka.Principal
	peer      string
	local     netip.AddrPort
	private   bool // nobody reads what is said on the way
}

type callerKey struct{}

func (c *caller) in(ctx context.Context) context.Context {
	return context.WithValue(ctx, callerKey{}, c)
}

// callerOf is the caller of a request that went through the guard; nobody else's has rights.
func callerOf(ctx context.Context) *caller {
	if c, ok := ctx.Value(callerKey{}).(*caller); ok {
		return c
	}
	return &caller{principal: kafka.Anonymous}
}

// identify finds out who sends a request (I15): by the certificate of the connection, or by Basic or Bearer, which go over TLS or loopback only.
func (d *door) identify(r *http.Request) (*caller, *problem) {
	c := &caller{principal: kafka.Anonymous, peer: r.RemoteAddr}
	local, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if local != nil {
		c.local, _ = netip.ParseAddrPort(local.String())
	}
	c.private = r.TLS != nil || local != nil && loopback(local.String())
	given := r.Header.Values("Authorization")
	var id *auth.Identity
	var mechanism string
	var err error
	switch {
	case len(given) > 1:
		err = auth.ErrMalformed
	case len(given) == 1 && d.cfg.Authenticator != nil:
		if !c.private {
			return nil, refuse(http.StatusForbidden, "TLS_REQUIRED", "passwords and tokens are taken over TLS only")
		}
		id, mechanism, err = d.login(r.Context(), given[0])
	case d.cfg.Names != nil && r.TLS != nil && len(r.TLS.VerifiedChains) > 0:
		mechanism = "TLS"
		id, err = d.cfg.Names.Identify(r.TLS.VerifiedChains[0][0])
	case d.cfg.Access != nil && d.cfg.Access.Enforced():
		err = auth.ErrNobody
	}
	if err != nil {
		return nil, d.stranger(r, mechanism, err)
	}
	if id != nil {
		c.principal = id.Principal
	}
	return c, nil
}

// stranger refuses a request whose sender has not proved who it is. Like a failed login of a Kafka client it is counted, logged and in the audit trail,
// and answered after a pause: a connection is good for a few guesses a second.
func (d *door) stranger(r *http.Request, mechanism string, err error) *problem {
	if s := d.cfg.Server(); s != nil {
		s.LoginFailed(r.RemoteAddr, clientID, mechanism, err)
	}
	if errors.Is(err, auth.ErrUnavailable) {
		p := refuse(http.StatusServiceUnavailable, "AUTHENTICATION_UNAVAILABLE", "nobody could judge the credentials in time; try again")
		p.Retriable, p.retryAfter = true, time.Second
		return p
	}
	p := failed(kafka.SASLAuthenticationFailed, nil)
	p.Detail = "who you are is not proved: send Authorization: Basic or Bearer"
	p.headers = http.Header{"Www-Authenticate": {`Basic realm="strandline", charset="UTF-8"`, `Bearer realm="strandline"`}}
	return p
}

// mayScrape refuses metrics to whoever may not describe the cluster: topics and groups that nobody may see are absent, and they are named there.
func (d *door) mayScrape(who *caller) *problem {
	act := auth.OnCluster(kmsg.ACLOperationDescribe)
	host, _, _ := net.SplitHostPort(who.peer)
	if d.cfg.Access == nil || d.cfg.Access.Grants(who.principal, host).May(act) {
		return nil
	}
	if s := d.cfg.Server(); s != nil {
		s.Denied(callOf(who.in(context.Background()), kmsg.NewPtrDescribeClusterRequest()), act)
	}
	p := failed(kafka.ClusterAuthorizationFailed, nil)
	p.Detail = "metrics name topics and groups: they take Describe on the cluster"
	return p
}

// login judges an Authorization header. A proof that was judged a moment ago is not judged again: a password costs milliseconds.
func (d *door) login(ctx context.Context, header string) (id *auth.Identity, mechanism string, err error) {
	key := sha256.Sum256([]byte(header))
	if id := d.known.find(key); id != nil && d.cfg.Authenticator.Holds(id, time.Now()) == nil {
		return id, "", nil
	}
	ctx, cancel := context.WithTimeout(ctx, loginWait)
	defer cancel()
	mechanism, message, err := proof(header)
	if err != nil {
		return nil, mechanism, err
	}
	l, err := d.cfg.Authenticator.Begin(mechanism)
	if err != nil {
		return nil, mechanism, err
	}
	_, id, err = l.Step(ctx, message)
	if err == nil && id == nil {
		err = auth.ErrToken // a refused token is answered before it fails
	}
	if err != nil {
		return nil, mechanism, err
	}
	d.known.add(key, id)
	return id, mechanism, nil
}

// proof turns an Authorization header into the first message of a SASL mechanism.
func proof(header string) (mechanism string, message []byte, err error) {
	scheme, token, _ := strings.Cut(header, " ")
	switch strings.ToLower(scheme) {
	case "basic":
		user, password, ok := (&http.Request{Header: http.Header{"Authorization": {header}}}).BasicAuth()
		if !ok || strings.Contains(user+password, "\x00") {
			return "", nil, auth.ErrMalformed
		}
		return auth.Plain, []byte("\x00" + user + "\x00" + password), nil
	case "bearer":
		return auth.OAuthBearer, []byte("n,,\x01auth=Bearer " + strings.TrimSpace(token) + "\x01\x01"), nil
	}
	return "", nil, auth.ErrMechanism
}

// identities remembers proofs that were good, by their hash, for identityTime.
type identities struct {
	mu struct {
		sync.Mutex
		known map[[32]byte]remembered
	}
}

type remembered struct {
	id    *auth.Identity
	until time.Time
}

func (s *identities) find(key [32]byte) *auth.Identity {
	s.mu.Lock()
	defer s.mu.Unlock()
	k, ok := s.mu.known[key]
	if !ok || time.Now().After(k.until) {
		return nil
	}
	return k.id
}

// add remembers one more; at the limit all are forgotten, and judged again when they come.
func (s *identities) add(key [32]byte, id *auth.Identity) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.known == nil || len(s.mu.known) >= identitiesMax {
		s.mu.known = map[[32]byte]remembered{}
	}
	s.mu.known[key] = remembered{id, time.Now().Add(identityTime)}
}
