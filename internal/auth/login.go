package auth

import (
	"bytes"
	"context"
	"fmt"

	"github.com/xdg-go/scram"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/metadata"
)

// Login is one exchange of SASL messages. It is used by one goroutine at a time.
type Login struct {
	a         *Authenticator
	mechanism string
	scram     *scram.ServerConversation
	claimed   *metadata.ScramCredential // what the SCRAM exchange goes by
	real      bool                      // claimed is a user's
	refused   error                     // a token was refused; the client is to say that it has heard
}

// Begin begins a login. Errors: ErrMechanism.
func (a *Authenticator) Begin(mechanism string) (*Login, error) {
	l := &Login{a: a, mechanism: mechanism}
	m, isScram := scramMechanism(mechanism)
	switch {
	case isScram:
		generator := scram.HashGeneratorFcn(a.hashOf(m))
		s, err := generator.NewServer(func(user string) (scram.StoredCredentials, error) { return l.lookUp(user, m) })
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrMechanism, err)
		}
		l.scram = s.NewConversation()
	case mechanism == Plain:
	case mechanism == OAuthBearer && a.tokens != nil:
	default:
		return nil, fmt.Errorf("%w: %.40q", ErrMechanism, mechanism)
	}
	return l, nil
}

// Mechanism is the one that was begun with.
func (l *Login) Mechanism() string { return l.mechanism }

// Step takes a message of the client and returns the one to answer with, and, once the client has proved who it is, its identity. An error ends the
// login: ErrCredentials, ErrToken, ErrMalformed, ErrUnavailable.
func (l *Login) Step(ctx context.Context, message []byte) ([]byte, *Identity, error) {
	switch l.mechanism {
	case Plain:
		id, err := l.plain(ctx, message)
		return nil, id, err
	case OAuthBearer:
		return l.bearer(ctx, message)
	}
	return l.scramStep(message)
}

// lookUp finds the credential that the SCRAM exchange goes by.
func (l *Login) lookUp(user string, m metadata.ScramMechanism) (scram.StoredCredentials, error) {
	if user == "" || len(user) > nameMax {
		return scram.StoredCredentials{}, ErrCredentials
	}
	c, real := l.a.claim(user, m)
	l.claimed, l.real = c, real
	return scram.StoredCredentials{
		KeyFactors: scram.KeyFactors{Salt: string(c.Salt), Iters: int(c.Iterations)}, StoredKey: c.StoredKey, ServerKey: c.ServerKey,
	}, nil
}

// scramStep answers one message. Errors of the first one are about its form: that a user does not exist shows in the last answer only, as a wrong
// password does.
func (l *Login) scramStep(message []byte) ([]byte, *Identity, error) {
	first := l.claimed == nil
	if first && !namesNonce(message) {
		return nil, nil, ErrMalformed
	}
	answer, err := l.scram.Step(string(message))
	switch {
	case err != nil && first:
		return nil, nil, ErrMalformed
	case err != nil:
		return nil, nil, ErrCredentials
	case !l.scram.Done():
		return []byte(answer), nil, nil
	case !l.scram.Valid() || !l.real:
		return nil, nil, ErrCredentials
	case l.scram.AuthzID() != "" && l.scram.AuthzID() != l.claimed.User:
		return nil, nil, fmt.Errorf("%w: to act for another user is not possible", ErrMalformed)
	}
	return []byte(answer), l.identity(), nil
}

// namesNonce says whether a first message has a nonce; the library takes an empty one.
func namesNonce(message []byte) bool {
	_, nonce, ok := bytes.Cut(message, []byte(",r="))
	return ok && len(nonce) > 0 && nonce[0] != ','
}

func (l *Login) identity() *Identity {
	return &Identity{Principal: kafka.Principal{Type: "User", Name: l.claimed.User}, Mechanism: l.mechanism, credential: l.claimed}
}

// plain reads "authorise as NUL user NUL password".
func (l *Login) plain(ctx context.Context, message []byte) (*Identity, error) {
	parts := bytes.Split(message, []byte{0})
	if len(parts) != 3 {
		return nil, ErrMalformed
	}
	as, user, password := string(parts[0]), string(parts[1]), string(parts[2])
	if as != "" && as != user {
		return nil, fmt.Errorf("%w: to act for another user is not possible", ErrMalformed)
	}
	return l.a.checkPassword(ctx, user, password)
}

// bearer reads a token. A refused one is answered with a message that says so (RFC 7628), and the login fails with the client's next message.
func (l *Login) bearer(ctx context.Context, message []byte) ([]byte, *Identity, error) {
	if l.refused != nil {
		return nil, nil, l.refused
	}
	token, err := bearerToken(message)
	if err != nil {
		return nil, nil, err
	}
	id, err := l.a.tokens.Identify(ctx, token)
	if err != nil {
		l.refused = err
		return []byte(`{"status":"invalid_token"}`), nil, nil
	}
	return nil, id, nil
}

// bearerToken takes the token out of "n,a=NAME,\x01auth=Bearer TOKEN\x01...\x01\x01".
func bearerToken(message []byte) (string, error) {
	parts := bytes.Split(message, []byte{1})
	if len(parts) < 3 || !bytes.HasPrefix(parts[0], []byte("n,")) || len(parts[len(parts)-1]) != 0 {
		return "", ErrMalformed
	}
	for _, p := range parts[1:] {
		scheme, token, ok := bytes.Cut(p, []byte(" "))
		if ok && bytes.EqualFold(scheme, []byte("auth=bearer")) && len(token) > 0 && len(token) <= TokenMax {
			return string(token), nil
		}
	}
	return "", ErrMalformed
}
