package peer

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"maps"
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
	shown := map[string]tls.Certificate{"of a chain of ten": ca.Chain(third, 10)}
	good := len(shown)
	maps.Copy(shown, ca.Wrong(third))
	for name, use := range map[string]x509.ExtKeyUsage{"that only serves": x509.ExtKeyUsageServerAuth, "that only dials": x509.ExtKeyUsageClientAuth} {
		w := third
		w.Uses = []x509.ExtKeyUsage{use}
		shown[name] = certstest.Pair(t, ca.Issue(w))
	}
	overTCP(t, []*certs.Source{newIdentity(t, ca, 1), newIdentity(t, ca, 2)}, func(n []*testNode) {
		taken := 0
		for name, c := range shown {
			answer := n[1].pose([]tls.Certificate{c}, 3)
			heard := answer != nil && answer.refusal == ""
			believed := n[1].dialsAsThree(c)
			if want := name == "of a chain of ten"; heard != want || believed != want {
				t.Errorf("a certificate %s: heard %v, believed %v, want %v", name, heard, believed, want)
			}
			if heard && believed {
				taken++
			}
		}
		if taken != good {
			t.Errorf("%d certificates are taken, want %d", taken, good)
		}
		n[2].mustAsk(1, KindSubmit, "after all that")
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
