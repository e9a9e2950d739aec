package peer

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"testing"
	"time"

	"strandline.dev/internal/auth/certs"
	"strandline.dev/internal/auth/certs/certstest"
	"strandline.dev/internal/sys"
)

// TestSecurity4_WrongCertificatesBetweenNodes: a certificate that says it is node 3's and is not the CA's, is not valid now, may not both serve and
// dial, or has a key of 16384 bits, speaks for nobody: not to a node that is dialled, nor as one. A chain of ten intermediates is the CA's like any other.
func TestSecurity4_WrongCertificatesBetweenNodes(t *testing.T) {
	ca := certstest.NewAuthority(t, "strandline")
	third := certstest.Wanted{Name: "n", URIs: []string{NodeURI(3)}}
	wrong := ca.Wrong(third)
	for name, use := range map[string]x509.ExtKeyUsage{"that only serves": x509.ExtKeyUsageServerAuth, "that only dials": x509.ExtKeyUsageClientAuth} {
		w := third
		w.Uses = []x509.ExtKeyUsage{use}
		wrong[name] = certstest.Pair(t, ca.Issue(w))
	}
	long := ca.Chain(third, 10)
	overTCP(t, []*certs.Source{newIdentity(t, ca, 1), newIdentity(t, ca, 2)}, func(n []*testNode) {
		for name, c := range wrong {
			if answer := n[1].pose([]tls.Certificate{c}, 3); answer != nil {
				t.Errorf("a certificate %s is heard, and answered with %+v", name, answer)
			}
			if n[1].dialsAsThree(c) {
				t.Errorf("a certificate %s is believed", name)
			}
		}
		heard, believed := false, false
		for end := time.Now().Add(time.Minute); !(heard && believed) && time.Now().Before(end); { // a hello has a second, which a busy machine may not have
			answer := n[1].pose([]tls.Certificate{long}, 3)
			heard = heard || answer != nil && answer.refusal == ""
			believed = believed || n[1].dialsAsThree(long)
		}
		if !heard || !believed {
			t.Errorf("a chain of ten: heard %v, believed %v", heard, believed)
		}
	})
}

// dialsAsThree lets the node dial somebody who shows this certificate where node 3 is to be, and says whether it goes on after the handshake.
func (n *testNode) dialsAsThree(c tls.Certificate) bool {
	n.t.Helper()
	l, err := sys.Real().Net.Listen("127.0.0.1:0")
	if err != nil {
		n.t.Fatal(err)
	}
	defer l.Close()
	n.world.mu.Lock()
	n.world.addresses[3] = l.Addr().String()
	n.world.mu.Unlock()
	ctx, cancel := context.WithTimeout(n.t.Context(), time.Minute)
	ended := make(chan struct{})
	go func() { defer close(ended); _ = n.Probe(ctx, 3) }()
	defer func() { cancel(); <-ended }()
	nc, err := l.Accept()
	if err != nil {
		n.t.Fatal(err)
	}
	defer nc.Close()
	return tls.Server(nc, &tls.Config{Certificates: []tls.Certificate{c}, ClientAuth: tls.RequireAnyClientCert}).HandshakeContext(ctx) == nil
}
