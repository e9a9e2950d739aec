package peer

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"sync/atomic"
)

// Certificates are a node's certificate and the CA of its cluster. They can be replaced while in use; open connections go on.
type Certificates struct{ now atomic.Pointer[certificates] }

type certificates struct {
	own tls.Certificate
	ca  *x509.CertPool
}

// ParseCertificates reads PEM: the node's certificate with what leads to the CA, its key, and the CA.
func ParseCertificates(cert, key, ca []byte) (*Certificates, error) {
	c := &Certificates{}
	return c, c.Replace(cert, key, ca)
}

// Replace takes new PEM for connections to come. After an error the old certificates stay.
func (c *Certificates) Replace(cert, key, ca []byte) error {
	own, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return fmt.Errorf("certificate and key: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(ca) {
		return errors.New("CA: no certificate in the PEM")
	}
	next := &certificates{own, pool}
	intermediates := x509.NewCertPool()
	for _, raw := range own.Certificate[1:] {
		if i, err := x509.ParseCertificate(raw); err == nil {
			intermediates.AddCert(i)
		}
	}
	for _, use := range nodeUses {
		_, err := own.Leaf.Verify(x509.VerifyOptions{Roots: pool, Intermediates: intermediates, KeyUsages: []x509.ExtKeyUsage{use}})
		if err != nil {
			return fmt.Errorf("the certificate cannot be a node's of this CA (it serves and dials): %w", err)
		}
	}
	c.now.Store(next)
	return nil
}

// nodeUses are what a node's certificate must allow. A client's certificate of the same CA, which does not serve, is no node's.
var nodeUses = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}

// server is the configuration of the accepting side.
func (c *Certificates) server() *tls.Config {
	now := c.now.Load()
	return &tls.Config{
		MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{now.own},
		ClientAuth: tls.RequireAnyClientCert, VerifyConnection: now.verify,
	}
}

// client is the configuration of the dialling side. Addresses are not names in certificates: the hello says which node answers, and
// verify, which stands in for the standard check, that the CA knows it.
func (c *Certificates) client() *tls.Config {
	now := c.now.Load()
	return &tls.Config{
		MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{now.own},
		InsecureSkipVerify: true, VerifyConnection: now.verify,
	}
}

// verify accepts a node's certificate that chains to the CA.
func (c *certificates) verify(s tls.ConnectionState) error {
	if len(s.PeerCertificates) == 0 {
		return errors.New("no certificate")
	}
	intermediates := x509.NewCertPool()
	for _, i := range s.PeerCertificates[1:] {
		intermediates.AddCert(i)
	}
	for _, use := range nodeUses {
		_, err := s.PeerCertificates[0].Verify(x509.VerifyOptions{
			Roots: c.ca, Intermediates: intermediates, KeyUsages: []x509.ExtKeyUsage{use},
		})
		if err != nil {
			return fmt.Errorf("certificate of the other side: %w", err)
		}
	}
	return nil
}
