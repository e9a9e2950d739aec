package auth

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"hash"
	"sync/atomic"
	"time"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/metadata"
)

// Authenticator finds out who a client is.
type Authenticator struct {
	image func() *metadata.Image
	// tokens judges bearer tokens; nil: there is no issuer.
	tokens *Tokens
	users  atomic.Pointer[Users]
	hashes chan struct{}
	// hashOf makes the hashes of a mechanism.
	hashOf func(metadata.ScramMechanism) func() hash.Hash
}

// NewAuthenticator returns an authenticator by the credentials of the newest Image. tokens may be nil.
func NewAuthenticator(image func() *metadata.Image, tokens *Tokens) *Authenticator {
	return &Authenticator{image: image, tokens: tokens, hashes: make(chan struct{}, hashesMax), hashOf: hashOf}
}

// SetUsers replaces the users of the configuration's file.
func (a *Authenticator) SetUsers(u *Users) { a.users.Store(u) }

// Identity is who somebody has proved to be.
type Identity struct {
	Principal kafka.Principal
	// Mechanism is the SASL mechanism, "TLS" for a certificate, or "" for somebody who was not asked.
	Mechanism string
	// Expires is when the proof no longer holds; the zero time: it does not end by itself.
	Expires time.Time

	credential *metadata.ScramCredential // that was proved
}

// Holds says whether an identity still holds: nil, or ErrExpired.
func (a *Authenticator) Holds(id *Identity, now time.Time) error {
	if !id.Expires.IsZero() && !now.Before(id.Expires) {
		return ErrExpired
	}
	c := id.credential
	if c == nil {
		return nil
	}
	if have := a.credential(c.User, c.Mechanism); have == nil || !bytes.Equal(have.StoredKey, c.StoredKey) {
		return ErrExpired
	}
	return nil
}

// credential is a user's credential for a mechanism, or nil. The file comes before the cluster, so that an operator always gets in.
func (a *Authenticator) credential(user string, m metadata.ScramMechanism) *metadata.ScramCredential {
	if c := a.users.Load().find(user, m); c != nil {
		return c
	}
	return a.image().Scram(user, m)
}

// nobody is the credential that is claimed for a user who has none: always the same, on every node, so that it cannot be told from a real one.
// Nobody knows its password.
func (a *Authenticator) nobody(user string, m metadata.ScramMechanism) *metadata.ScramCredential {
	secret := a.secret()
	seed := func(what string) []byte { return mac(a.hashOf(m), secret, what+" "+m.String()+" "+user) }
	return &metadata.ScramCredential{
		User: user, Mechanism: m, Iterations: DefaultIterations,
		Salt: seed("salt")[:24], StoredKey: seed("stored key"), ServerKey: seed("server key"),
	}
}

// claim is the credential that a login of a user goes by, and whether it is the user's. What is claimed of nobody is made in each case: time does not
// tell who exists either.
func (a *Authenticator) claim(user string, m metadata.ScramMechanism) (c *metadata.ScramCredential, real bool) {
	nobody := a.nobody(user, m)
	if c = a.credential(user, m); c != nil {
		return c, true
	}
	return nobody, false
}

// secret is what the claims about nobody are made of.
func (a *Authenticator) secret() []byte {
	img := a.image()
	if s := img.ScramSecret(); s != nil {
		return s
	}
	m := hmac.New(sha256.New, []byte(img.ClusterID()))
	if u := a.users.Load(); u != nil {
		for i := range u.list {
			m.Write(u.list[i].ServerKey)
		}
	}
	return m.Sum(nil)
}

// checkPassword judges a name and a password by the user's SCRAM credential. It does the same work for a user who does not exist as for one whose
// credential was made here (SHA-512, DefaultIterations). ctx bounds the wait for a free place: few passwords are hashed at the same time.
func (a *Authenticator) checkPassword(ctx context.Context, user, password string) (*Identity, error) {
	if user == "" || password == "" || len(user) > nameMax || len(password) > passwordMax {
		return nil, ErrCredentials
	}
	c, real := a.claim(user, metadata.ScramSHA512)
	if weaker := a.credential(user, metadata.ScramSHA256); !real && weaker != nil {
		c, real = weaker, true
	}
	select {
	case a.hashes <- struct{}{}:
		defer func() { <-a.hashes }()
	case <-ctx.Done():
		return nil, ErrUnavailable
	}
	if !knows(a.hashOf(c.Mechanism), c, password) || !real {
		return nil, ErrCredentials
	}
	return &Identity{Principal: kafka.Principal{Type: "User", Name: user}, Mechanism: Plain, credential: c}, nil
}
