package server

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"slices"
	"sync"
	"time"

	"strandline.dev/internal/auth"
	"strandline.dev/internal/kafka"
	"strandline.dev/internal/quota"
	"strandline.dev/internal/wire"
)

// Door is what a listener asks of its clients. The zero value asks nothing: everybody is User:ANONYMOUS.
type Door struct {
	// TLS is the configuration of the accepting side; nil: plaintext.
	TLS *tls.Config
	// Names say who a client is by its certificate; nil: a certificate says nothing.
	Names *auth.NameRules
	// SASL are the mechanisms offered; empty: none is asked for.
	SASL []string
}

// asks says whether clients can or must prove who they are.
func (d *Door) asks() bool { return d.asksLogin() || d.Names != nil }

// asksLogin says whether clients have to log in.
func (d *Door) asksLogin() bool { return len(d.SASL) > 0 }

// guard is who the client of a connection is, and how far it has come in proving it (I15). Requests take the principal from it when they start,
// not when they arrive: what was sent behind a login that fails is nobody's.
type guard struct {
	server *Server
	door   *Door
	host   string
	client *quota.Client // of the last request; whoever starts the connection's requests has it

	mu struct { // a leaf
		sync.Mutex
		id     *auth.Identity
		grants *auth.Grants
		login  *auth.Login // begun, and not finished
		raw    bool        // its messages come without headers (SaslHandshake v0)
		ends   time.Time   // of the session, as the client was told; zero: it does not
	}
}

func (s *Server) newGuard(door *Door, host string) *guard {
	g := &guard{server: s, door: door, host: host}
	g.become(&auth.Identity{Principal: kafka.Anonymous}, time.Time{})
	return g
}

// become takes a proved identity; ends is when the client has to prove it anew.
func (g *guard) become(id *auth.Identity, ends time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.mu.id, g.mu.login, g.mu.raw, g.mu.ends = id, nil, false, ends
	if g.mu.grants == nil || g.mu.grants.Principal() != id.Principal {
		g.mu.grants = g.server.cfg.Access.Grants(id.Principal, g.host)
	}
}

// stranger says whether the client has still to prove who it is.
func (g *guard) stranger() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.strangerLocked()
}

func (g *guard) strangerLocked() bool { return g.door.asksLogin() && g.mu.id.Mechanism == "" }

// wantsRaw says whether the next frame is a message of a login, without a header.
func (g *guard) wantsRaw() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.mu.raw
}

// admit gives a request that starts its principal; a reason says why the connection ends instead.
func (g *guard) admit(call *Call) reason {
	g.mu.Lock()
	defer g.mu.Unlock()
	key := call.Request.Key()
	login := key == wire.KeySaslHandshake || key == wire.KeySaslAuthenticate
	switch {
	case login:
	case g.mu.login != nil && g.strangerLocked():
		return reasonLoginState // between handshake and proof there is nothing but the proof (K57)
	case g.strangerLocked() && key != wire.KeyApiVersions:
		return reasonStranger
	case !g.mu.ends.IsZero() && call.Received.After(g.mu.ends):
		return reasonExpired
	}
	call.Principal, call.grants = g.mu.id.Principal, g.mu.grants
	return ""
}

// holds says whether the connection may go on: its proof still holds, and the client has proved itself anew in time. A client that is about to gets
// expiredGrace: it does so with its next request.
func (g *guard) holds(now time.Time) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.mu.ends.IsZero() && now.After(g.mu.ends.Add(expiredGrace)) {
		return false
	}
	id := *g.mu.id
	if !id.Expires.IsZero() {
		id.Expires = id.Expires.Add(expiredGrace)
	}
	return g.server.cfg.Authenticator == nil || g.server.cfg.Authenticator.Holds(&id, now) == nil
}

// secure does the TLS handshake of a connection and takes the identity of its certificate; false ends the connection.
func (c *conn) secure() bool {
	door := c.guard.door
	if door.TLS == nil {
		return true
	}
	t := tls.Server(c.raw, door.TLS)
	ctx, cancel := context.WithTimeout(c.ctx, handshakeMax)
	defer cancel()
	if err := t.HandshakeContext(ctx); err != nil {
		var plain tls.RecordHeaderError
		switch {
		case errors.As(err, &plain):
			c.server.peers.closed(reasonPlaintext, c.call.Peer, "listener", c.call.Listener)
		case errors.Is(err, io.EOF), c.ctx.Err() != nil, c.draining.Load(): // a look at the port
		default:
			c.server.peers.closed(reasonHandshake, c.call.Peer, "listener", c.call.Listener, "error", err)
		}
		return false
	}
	c.net = t
	shown := t.ConnectionState().PeerCertificates
	if len(shown) == 0 || door.Names == nil || door.asksLogin() {
		return true
	}
	id, err := door.Names.Identify(shown[0])
	if err != nil {
		c.server.loginFailed(&c.call, "TLS", err)
		return false
	}
	c.guard.become(id, id.Expires)
	return true
}

// expectLogin closes a connection that has not proved who it is in time; the caller calls the returned function at its end.
func (c *conn) expectLogin() (stop func() bool) {
	return time.AfterFunc(loginMax, func() {
		if c.guard.stranger() {
			c.server.peers.closed(reasonSlowLogin, c.call.Peer, "listener", c.call.Listener, "limit", loginMax)
			c.close()
		}
	}).Stop
}

// sweep closes connections whose proof holds no longer, whatever they wait for (P42).
func (s *Server) sweep(ctx context.Context, set *connSet) {
	look := time.NewTicker(sweepEvery)
	defer look.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-look.C:
			for _, c := range set.open() {
				if !c.guard.holds(now) {
					s.peers.closed(reasonExpired, c.call.Peer, "principal", c.guard.principal().String())
					c.close()
				}
			}
		}
	}
}

func (g *guard) principal() kafka.Principal {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.mu.id.Principal
}

// offers says whether the listener offers a mechanism.
func (d *Door) offers(mechanism string) bool { return slices.Contains(d.SASL, mechanism) }
