package certs

import (
	"bytes"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"time"
)

// rsaBitsMax is the largest RSA key that crypto/tls takes from the other side of a connection.
const rsaBitsMax = 8192

// PEM is the content of the files of an identity. CA may be empty: then nobody is asked for a certificate.
type PEM struct{ Cert, Key, CA []byte }

func (p PEM) equal(o PEM) bool {
	return bytes.Equal(p.Cert, o.Cert) && bytes.Equal(p.Key, o.Key) && bytes.Equal(p.CA, o.CA)
}

// Set is an identity as it was read at one moment. It is not changed after Parse.
type Set struct {
	// Own is the certificate, with what leads to the CA, and its key.
	Own tls.Certificate
	// CA judges the certificates of others; nil when there is no CA.
	CA *x509.CertPool
	// Expires is when the first certificate of Own's chain ends.
	Expires time.Time

	pem PEM
}

// Parse reads PEM and checks that the key belongs to the certificate.
func Parse(p PEM) (*Set, error) {
	if err := checkKeySize(p.Cert); err != nil {
		return nil, err
	}
	own, err := tls.X509KeyPair(p.Cert, p.Key)
	if err != nil {
		return nil, fmt.Errorf("certificate and key: %w", err)
	}
	s := &Set{Own: own, Expires: own.Leaf.NotAfter, pem: p}
	for _, raw := range own.Certificate[1:] {
		i, err := x509.ParseCertificate(raw)
		if err != nil {
			return nil, fmt.Errorf("certificate chain: %w", err)
		}
		if i.NotAfter.Before(s.Expires) {
			s.Expires = i.NotAfter
		}
	}
	if len(p.CA) == 0 {
		return s, nil
	}
	s.CA = x509.NewCertPool()
	if !s.CA.AppendCertsFromPEM(p.CA) {
		return nil, errors.New("CA: no certificate in the PEM")
	}
	return s, nil
}

// checkKeySize refuses a certificate whose RSA key is larger than rsaBitsMax. It comes before the key is read, which such a one makes slow.
func checkKeySize(chain []byte) error {
	for rest := chain; ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			return nil // what else is wrong the standard library says
		}
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			continue
		}
		if k, ok := c.PublicKey.(*rsa.PublicKey); ok && k.N.BitLen() > rsaBitsMax {
			return fmt.Errorf("certificate: %.100q has an RSA key of %d bits; clients refuse those of more than %d", c.Subject, k.N.BitLen(), rsaBitsMax)
		}
	}
}

// Check says why a chain, leaf first, is not the CA's, is not valid now, or does not allow one of the uses. Without uses, any will do.
func (s *Set) Check(chain []*x509.Certificate, uses ...x509.ExtKeyUsage) error {
	if len(chain) == 0 {
		return errors.New("no certificate")
	}
	if len(uses) == 0 {
		uses = []x509.ExtKeyUsage{x509.ExtKeyUsageAny}
	}
	intermediates := x509.NewCertPool()
	for _, i := range chain[1:] {
		intermediates.AddCert(i)
	}
	for _, use := range uses {
		_, err := chain[0].Verify(x509.VerifyOptions{Roots: s.CA, Intermediates: intermediates, KeyUsages: []x509.ExtKeyUsage{use}})
		if err != nil {
			return err
		}
	}
	return nil
}

// CheckOwn is Check for the identity's own certificate, for a judge.
func (s *Set) CheckOwn(uses ...x509.ExtKeyUsage) error {
	chain := make([]*x509.Certificate, 0, len(s.Own.Certificate))
	for _, raw := range s.Own.Certificate {
		c, err := x509.ParseCertificate(raw)
		if err != nil {
			return err
		}
		chain = append(chain, c)
	}
	return s.Check(chain, uses...)
}
