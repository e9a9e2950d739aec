package certs

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net/netip"
	"net/url"
	"time"
)

// earlier is how long before now certificates begin to be valid, unless it is said otherwise: clocks of other machines may be behind.
const earlier = time.Hour

// Authority is a CA.
type Authority struct {
	cert *x509.Certificate
	key  crypto.Signer
	// PEM is the CA's certificate and its key. The key lets whoever has it be anybody.
	PEM PEM
}

// NewAuthority makes a CA.
func NewAuthority(name string, until time.Time) (*Authority, error) {
	return sign(nil, &x509.Certificate{
		Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-earlier), NotAfter: until,
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	})
}

// Wanted says what a certificate is to be.
type Wanted struct {
	Name string // common name
	URIs []string
	// Hosts are names and addresses of a server.
	Hosts []string
	Uses  []x509.ExtKeyUsage // nil: serving and dialling
	// From and Until are its times; From zero: an hour ago.
	From, Until time.Time
}

// Issue makes a certificate, and returns it with its key and the CA.
func (a *Authority) Issue(w Wanted) (PEM, error) {
	t := &x509.Certificate{
		Subject: pkix.Name{CommonName: w.Name}, NotBefore: w.From, NotAfter: w.Until, ExtKeyUsage: w.Uses, KeyUsage: x509.KeyUsageDigitalSignature,
	}
	if w.Uses == nil {
		t.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	}
	if w.From.IsZero() {
		t.NotBefore = time.Now().Add(-earlier)
	}
	for _, text := range w.URIs {
		u, err := url.Parse(text)
		if err != nil {
			return PEM{}, err
		}
		t.URIs = append(t.URIs, u)
	}
	for _, h := range w.Hosts {
		if ip, err := netip.ParseAddr(h); err == nil {
			t.IPAddresses = append(t.IPAddresses, ip.AsSlice())
		} else {
			t.DNSNames = append(t.DNSNames, h)
		}
	}
	made, err := sign(a, t)
	if err != nil {
		return PEM{}, err
	}
	made.PEM.CA = a.PEM.Cert
	return made.PEM, nil
}

// sign makes a certificate of a template; without a CA it signs itself.
func sign(by *Authority, template *x509.Certificate) (*Authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	if template.SerialNumber, err = rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127)); err != nil {
		return nil, err
	}
	if by == nil {
		by = &Authority{cert: template, key: key}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, by.cert, &key.PublicKey, by.key)
	if err != nil {
		return nil, err
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	a := &Authority{key: key, PEM: PEM{
		Cert: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		Key:  pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}),
	}}
	own, err := tls.X509KeyPair(a.PEM.Cert, a.PEM.Key)
	a.cert = own.Leaf
	return a, err
}
