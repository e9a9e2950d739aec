package auth

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"

	"strandline.dev/internal/kafka"
)

// TokenConfig says which bearer tokens are accepted.
type TokenConfig struct {
	// Issuer is the URL of the OpenID provider; its keys are found by discovery.
	Issuer string
	// Audience must be in every token's aud.
	Audience string
	// Claim is the one that has the user's name.
	Claim string
	// Dial opens connections to the issuer.
	Dial func(ctx context.Context, address string) (net.Conn, error)
}

// Tokens judges bearer tokens by an issuer's keys. They are fetched when the first token comes, and again when one is signed with a key that is not
// known, but never more often than fetchAgain allows.
type Tokens struct {
	cfg    TokenConfig
	client *http.Client

	finding chan struct{} // held while the issuer is being found: once for all who wait
	found   atomic.Pointer[oidc.IDTokenVerifier]
}

// signatures are the algorithms that a token may be signed with: none that takes a shared secret, and not "none".
var signatures = []string{oidc.RS256, oidc.RS384, oidc.RS512, oidc.PS256, oidc.PS384, oidc.PS512, oidc.ES256, oidc.ES384, oidc.ES512, oidc.EdDSA}

// NewTokens returns a judge of tokens; nothing is fetched yet.
func NewTokens(c TokenConfig) *Tokens {
	transport := &http.Transport{
		DialContext:           func(ctx context.Context, _, address string) (net.Conn, error) { return c.Dial(ctx, address) },
		ResponseHeaderTimeout: fetchMax, TLSHandshakeTimeout: fetchMax, MaxIdleConns: 2, IdleConnTimeout: time.Minute, ForceAttemptHTTP2: true,
	}
	return &Tokens{cfg: c, finding: make(chan struct{}, 1), client: &http.Client{Timeout: fetchMax, Transport: &sparing{next: transport, last: map[string]time.Time{}}}}
}

// Identify judges a token. Errors: ErrToken, ErrUnavailable.
func (t *Tokens) Identify(ctx context.Context, token string) (*Identity, error) {
	v, err := t.ready(ctx)
	if err != nil {
		return nil, err
	}
	judged, err := v.Verify(ctx, token)
	switch {
	case errors.Is(err, errSparing), errors.Is(err, context.DeadlineExceeded):
		return nil, fmt.Errorf("%w: %w: %w", ErrToken, ErrUnavailable, err)
	case err != nil:
		return nil, fmt.Errorf("%w: %w", ErrToken, err)
	}
	claims := map[string]any{}
	if err := judged.Claims(&claims); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrToken, err)
	}
	name, _ := claims[t.cfg.Claim].(string)
	if name == "" || len(name) > nameMax {
		return nil, fmt.Errorf("%w: it has no claim %q that is a name", ErrToken, t.cfg.Claim)
	}
	return &Identity{Principal: kafka.Principal{Type: "User", Name: name}, Mechanism: OAuthBearer, Expires: judged.Expiry}, nil
}

// ready returns the verifier, once the issuer has been found.
func (t *Tokens) ready(ctx context.Context) (*oidc.IDTokenVerifier, error) {
	if v := t.found.Load(); v != nil {
		return v, nil
	}
	select {
	case t.finding <- struct{}{}:
		defer func() { <-t.finding }()
	case <-ctx.Done():
		return nil, fmt.Errorf("%w: %w: the issuer has not answered", ErrToken, ErrUnavailable)
	}
	if v := t.found.Load(); v != nil {
		return v, nil
	}
	// The provider keeps the context for fetches to come, so it is not the request's.
	background := oidc.ClientContext(context.WithoutCancel(ctx), t.client)
	p, err := oidc.NewProvider(background, t.cfg.Issuer)
	if err != nil {
		return nil, fmt.Errorf("%w: %w: the issuer: %w", ErrToken, ErrUnavailable, err)
	}
	var offered struct {
		Algorithms []string `json:"id_token_signing_alg_values_supported"`
	}
	if err := p.Claims(&offered); err != nil {
		return nil, fmt.Errorf("%w: the issuer: %w", ErrToken, err)
	}
	accepted := slices.Clone(signatures)
	if len(offered.Algorithms) > 0 {
		accepted = slices.DeleteFunc(accepted, func(s string) bool { return !slices.Contains(offered.Algorithms, s) })
	}
	v := p.VerifierContext(background, &oidc.Config{ClientID: t.cfg.Audience, SupportedSigningAlgs: accepted})
	t.found.Store(v)
	return v, nil
}

// sparing is a transport that asks for each URL at most every fetchAgain: a token with an unknown key makes the library fetch the keys anew, and
// anybody can send such a token.
type sparing struct {
	next http.RoundTripper

	mu   sync.Mutex // a leaf
	last map[string]time.Time
}

// errSparing means that the issuer was asked a moment ago.
var errSparing = errors.New("the issuer was asked a moment ago")

// RoundTrip implements http.RoundTripper.
func (s *sparing) RoundTrip(r *http.Request) (*http.Response, error) {
	url, now := r.URL.String(), time.Now()
	s.mu.Lock()
	last, asked := s.last[url]
	wait := asked && now.Sub(last) < fetchAgain
	if !wait {
		s.last[url] = now // two: those of discovery and of the keys, both named by the issuer
	}
	s.mu.Unlock()
	if wait {
		return nil, errSparing
	}
	resp, err := s.next.RoundTrip(r)
	if err == nil {
		resp.Body = struct {
			io.Reader
			io.Closer
		}{io.LimitReader(resp.Body, issuerBytesMax), resp.Body}
	}
	return resp, err
}
