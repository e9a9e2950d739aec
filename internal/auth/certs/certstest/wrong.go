package certstest

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"math/big"
	"testing"
	"time"

	"strandline.dev/internal/auth/certs"
)

// hugeBits is the size of an RSA key that nobody uses: each use of it would take a core for most of a second.
const hugeBits = 16384

// Wrong are certificates that say what w says and must be refused, by what is wrong with them. Each has a key with which its owner can speak, so that
// only the certificate is a reason to refuse it.
func (a *Authority) Wrong(w Wanted) map[string]tls.Certificate {
	a.t.Helper()
	good := Pair(a.t, a.Issue(w))
	past, future := w, w
	past.From, past.Until = time.Now().Add(-2*lifetime), time.Now().Add(-lifetime)
	future.From, future.Until = time.Now().Add(lifetime), time.Now().Add(2*lifetime)
	selfCA := *good.Leaf
	selfCA.IsCA, selfCA.BasicConstraintsValid, selfCA.KeyUsage = true, true, x509.KeyUsageDigitalSignature|x509.KeyUsageCertSign
	ca := Pair(a.t, a.ca.PEM)
	twin := signed(a.t, ca.Leaf, nil, nil) // its name and its key's id are the CA's
	byTwin := signed(a.t, good.Leaf, &twin, nil)
	shown := byTwin
	shown.Certificate = append([][]byte{byTwin.Certificate[0]}, twin.Certificate...)
	byGood := signed(a.t, good.Leaf, &good, nil)
	byGood.Certificate = append(byGood.Certificate, good.Certificate...)
	return map[string]tls.Certificate{
		"signed by itself":                                  signed(a.t, good.Leaf, nil, nil),
		"signed by itself, and a CA":                        signed(a.t, &selfCA, nil, nil),
		"of a CA of the same name with another key":         byTwin,
		"of such a CA, which is shown too":                  shown,
		"signed by one that is no CA":                       byGood,
		"expired":                                           Pair(a.t, a.Issue(past)),
		"not yet valid":                                     Pair(a.t, a.Issue(future)),
		fmt.Sprintf("with an RSA key of %d bits", hugeBits): a.huge(good.Leaf, &ca),
		"behind an intermediate that is no CA's":            a.chain(w, 2, func(i *x509.Certificate) { i.IsCA = false }),
		"behind an expired intermediate":                    a.chain(w, 2, func(i *x509.Certificate) { i.NotAfter = time.Now().Add(-time.Minute) }),
		"behind an intermediate that may sign no other":     a.chain(w, 3, func(i *x509.Certificate) { i.MaxPathLen, i.MaxPathLenZero = 0, true }),
	}
}

// Chain is a good certificate with a number of intermediates between it and the CA.
func (a *Authority) Chain(w Wanted, intermediates int) tls.Certificate {
	a.t.Helper()
	return a.chain(w, intermediates, func(*x509.Certificate) {})
}

// chain is Chain with every intermediate changed.
func (a *Authority) chain(w Wanted, intermediates int, change func(*x509.Certificate)) tls.Certificate {
	a.t.Helper()
	ca := Pair(a.t, a.ca.PEM)
	by, above := ca, [][]byte(nil)
	for i := range intermediates {
		template := *ca.Leaf
		template.Subject.CommonName = fmt.Sprint("intermediate ", i)
		template.SerialNumber, template.SubjectKeyId = big.NewInt(int64(i)+2), nil
		change(&template)
		by = signed(a.t, &template, &by, nil)
		above = append([][]byte{by.Certificate[0]}, above...)
	}
	c := signed(a.t, Pair(a.t, a.Issue(w)).Leaf, &by, nil)
	c.Certificate = append(c.Certificate, above...)
	return c
}

// Pair is PEM as crypto/tls takes it.
func Pair(t *testing.T, p certs.PEM) tls.Certificate {
	t.Helper()
	c, err := tls.X509KeyPair(p.Cert, p.Key)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// signed makes a certificate of a template with a key of its own, or with one that is given; nil: it signs itself.
func signed(t *testing.T, template *x509.Certificate, by *tls.Certificate, key crypto.Signer) tls.Certificate {
	t.Helper()
	var err error
	if key == nil {
		if key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
			t.Fatal(err)
		}
	}
	made := *template
	made.PublicKey, made.SignatureAlgorithm = nil, x509.UnknownSignatureAlgorithm // those of the keys here
	issuer, with := &made, key
	if by != nil {
		issuer, with = by.Leaf, by.PrivateKey.(crypto.Signer)
	}
	der, err := x509.CreateCertificate(rand.Reader, &made, issuer, key.Public(), with)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}
}

// huge is a certificate of the CA for an RSA key of hugeBits. The key is a number of that size and nothing more: a real one takes minutes to make, and
// nobody may come as far as to use it.
func (a *Authority) huge(template *x509.Certificate, ca *tls.Certificate) tls.Certificate {
	a.t.Helper()
	n := new(big.Int).Lsh(big.NewInt(1), hugeBits-1)
	return signed(a.t, template, ca, &hugeKey{rsa.PublicKey{N: n.SetBit(n, 0, 1), E: 65537}})
}

type hugeKey struct{ public rsa.PublicKey }

// Public implements crypto.Signer.
func (k *hugeKey) Public() crypto.PublicKey { return &k.public }

// Sign implements crypto.Signer with something of the right size.
func (k *hugeKey) Sign(io.Reader, []byte, crypto.SignerOpts) ([]byte, error) {
	return make([]byte, hugeBits/8), nil
}
