// Package certstest makes certificates for tests.
//
// Knows: how long they are valid if a test does not say so.
//
// Does not know: what a good certificate is; tests ask for bad ones too.
//
// Concurrency: an Authority belongs to one test.
package certstest

import (
	"testing"
	"time"

	"strandline.dev/internal/auth/certs"
)

// lifetime is how long certificates are valid if a test does not say otherwise.
const lifetime = time.Hour

// Wanted says what a certificate is to be; Until zero: two hours after From.
type Wanted = certs.Wanted

// Authority is a CA.
type Authority struct {
	t  *testing.T
	ca *certs.Authority
}

// NewAuthority makes a CA.
func NewAuthority(t *testing.T, name string) *Authority {
	t.Helper()
	ca, err := certs.NewAuthority(name, time.Now().Add(24*lifetime))
	if err != nil {
		t.Fatal(err)
	}
	return &Authority{t, ca}
}

// PEM is the CA's certificate.
func (a *Authority) PEM() []byte { return a.ca.PEM.Cert }

// Issue makes a certificate and returns it with its key and the CA.
func (a *Authority) Issue(w Wanted) certs.PEM {
	a.t.Helper()
	if w.From.IsZero() {
		w.From = time.Now().Add(-lifetime)
	}
	if w.Until.IsZero() {
		w.Until = w.From.Add(2 * lifetime)
	}
	p, err := a.ca.Issue(w)
	if err != nil {
		a.t.Fatal(err)
	}
	return p
}
