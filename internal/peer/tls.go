package peer

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"slices"

	"strandline.dev/internal/auth/certs"
	"strandline.dev/internal/kafka"
)

// nodeUses are what a node's certificate must allow. A client's certificate of the same CA, which does not serve, is no node's.
var nodeUses = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}

// NodeURI is the name that makes a certificate one of a node: a URI among its alternative names. The cluster is named by the CA alone: its id does
// not exist yet when certificates are made.
func NodeURI(node kafka.NodeID) string { return fmt.Sprintf("strandline://node/%v", node) }

// isOf says whether a certificate is a node's. One with the names of several nodes is each one's: the CA has said so.
func isOf(cert *x509.Certificate, node kafka.NodeID) bool {
	want := NodeURI(node)
	for _, u := range cert.URIs {
		if u.String() == want {
			return true
		}
	}
	return false
}

// Judge refuses a certificate with which a node could not speak to others.
func Judge(node kafka.NodeID) func(*certs.Set) error {
	return func(s *certs.Set) error {
		if s.CA == nil {
			return errors.New("CA: there is none, and only it says who is a node")
		}
		if err := s.CheckOwn(nodeUses...); err != nil {
			return fmt.Errorf("the certificate cannot be a node's of this CA (it serves and dials): %w", err)
		}
		if !isOf(s.Own.Leaf, node) {
			return fmt.Errorf("the certificate is not node %v's: the URI %s is missing among its alternative names", node, NodeURI(node))
		}
		return nil
	}
}

// serverTLS is the configuration of the accepting side.
func serverTLS(now *certs.Set) *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{now.Own},
		ClientAuth: tls.RequireAnyClientCert, VerifyConnection: func(s tls.ConnectionState) error { return verify(now, s) },
	}
}

// clientTLS is the configuration of the dialling side. Addresses are not names in certificates: verify, which stands in for the standard check, asks
// whether the CA knows the other side, and proven whether it is the node it says it is.
func clientTLS(now *certs.Set) *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{now.Own},
		InsecureSkipVerify: true, VerifyConnection: func(s tls.ConnectionState) error { return verify(now, s) },
	}
}

// verify accepts a certificate that chains to the CA and may be a node's.
func verify(now *certs.Set, s tls.ConnectionState) error {
	if err := now.Check(s.PeerCertificates, nodeUses...); err != nil {
		return fmt.Errorf("certificate of the other side: %w", err)
	}
	return nil
}

// proven says why a certificate does not stand for who is said to be on the other side, or "" (I15). Without TLS everything is believed.
func proven(nc net.Conn, there Identity) string {
	t, ok := nc.(*tls.Conn)
	if !ok {
		return ""
	}
	shown := t.ConnectionState().PeerCertificates
	if len(shown) > 0 && isOf(shown[0], there.Node) {
		return ""
	}
	var names []string
	if len(shown) > 0 {
		for _, u := range shown[0].URIs {
			names = append(names, u.String())
		}
	}
	slices.Sort(names)
	return clip(fmt.Sprintf("%v shows a certificate with the URIs %q, and that of node %v has %s", there, names, there.Node, NodeURI(there.Node)))
}
