package peer

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"math/big"
	"strings"
	"sync"
	"testing"
	"time"

	"strandline.dev/internal/sys"
)

// authority is a CA of these tests.
type authority struct {
	t    *testing.T
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pem  []byte
}

func newAuthority(t *testing.T, name string) *authority {
	t.Helper()
	a := &authority{t: t}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	a.cert, a.key, a.pem = a.sign(template)
	return a
}

// sign makes a certificate of template; a CA without a certificate signs itself.
func (a *authority) sign(template *x509.Certificate) (*x509.Certificate, *ecdsa.PrivateKey, []byte) {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	parent, signer := a.cert, a.key
	if parent == nil {
		parent, signer = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	if err != nil {
		a.t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		a.t.Fatal(err)
	}
	return cert, key, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

// issue makes a certificate with these uses, as PEM with its key.
func (a *authority) issue(from time.Time, uses ...x509.ExtKeyUsage) (cert, key []byte) {
	a.t.Helper()
	_, private, cert := a.sign(&x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "n"}, NotBefore: from, NotAfter: from.Add(2 * time.Hour), ExtKeyUsage: uses,
	})
	der, err := x509.MarshalECPrivateKey(private)
	if err != nil {
		a.t.Fatal(err)
	}
	return cert, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der})
}

// node makes a node's certificates.
func (a *authority) node() *Certificates {
	a.t.Helper()
	cert, key := a.issue(time.Now().Add(-time.Hour), nodeUses...)
	c, err := ParseCertificates(cert, key, a.pem)
	if err != nil {
		a.t.Fatal(err)
	}
	return c
}

// overTCP runs a test with listening nodes over real sockets, one for each of certs.
func overTCP(t *testing.T, certs []*Certificates, test func(n []*testNode)) {
	t.Helper()
	w := newWorld(t)
	nodes := []*testNode{nil}
	for i, c := range certs {
		n := w.newNode(nodeID(i+1), sys.Real().Net, c)
		n.listen("127.0.0.1:0")
		nodes = append(nodes, n)
	}
	defer func() {
		for _, n := range nodes[1:] {
			n.stop()
		}
	}()
	test(nodes)
}

// TestRealSockets: calls from both sides at once, plaintext and mutual TLS, big payloads among small ones.
func TestRealSockets(t *testing.T) {
	ca := newAuthority(t, "strandline")
	for name, certs := range map[string][]*Certificates{"plaintext": {nil, nil}, "tls": {ca.node(), ca.node()}} {
		t.Run(name, func(t *testing.T) {
			overTCP(t, certs, func(n []*testNode) {
				var all sync.WaitGroup
				for i := range 60 {
					big := bytes.Repeat([]byte{byte(i)}, i*40_000)
					from, to := n[1+i%2], nodeID(2-i%2)
					all.Go(func() {
						answer := &note{}
						ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
						defer cancel()
						if err := from.Call(ctx, to, &note{kind: KindReplicaFetch, text: "x", big: big}, answer); err != nil || !bytes.Equal(answer.big, big) {
							t.Errorf("%d bytes of %d came back, %v", len(answer.big), len(big), err)
						}
					})
				}
				all.Wait()
				if err := n[1].Probe(t.Context(), 2); err != nil {
					t.Error(err)
				}
				n[2].cancel()
				if err := <-n[2].served; err != nil {
					t.Error(err)
				}
				n[2].cancel = nil
				is(t, n[1].Probe(t.Context(), 2), ErrRefused)
			})
		})
	}
}

// TestI15_OnlyNodesOfTheCAAreHeard: another CA, no certificate, plaintext, and a client's certificate of the right CA are refused.
func TestI15_OnlyNodesOfTheCAAreHeard(t *testing.T) {
	ca, other := newAuthority(t, "strandline"), newAuthority(t, "stranger")
	overTCP(t, []*Certificates{ca.node(), other.node(), nil}, func(n []*testNode) {
		for _, from := range []*testNode{n[2], n[3]} {
			_, err := from.ask(1, KindSubmit, "x")
			is(t, err, ErrUnreachable, ErrRefused)
			_, err = n[1].ask(from.Self().Node, KindSubmit, "x")
			is(t, err, ErrUnreachable, ErrRefused)
		}
		address := n[1].world.addresses[1]
		cert, key := ca.issue(time.Now().Add(-time.Hour), x509.ExtKeyUsageClientAuth)
		client, err := tls.X509KeyPair(cert, key)
		if err != nil {
			t.Fatal(err)
		}
		for name, own := range map[string][]tls.Certificate{"no certificate": nil, "client certificate": {client}} {
			nc, err := sys.Real().Net.Dial(t.Context(), address)
			if err != nil {
				t.Fatal(err)
			}
			c := tls.Client(nc, &tls.Config{InsecureSkipVerify: true, Certificates: own})
			_, err = c.Write(newFrame(kindHello, 0, 0, &hello{version: protocolVersion, class: Admin, expected: 1}).head)
			if err == nil {
				_, err = io.ReadFull(c, make([]byte, 1))
			}
			if err == nil {
				t.Errorf("%s: heard", name)
			}
			nc.Close()
		}
		if n[1].open.Load() > 0 && n[1].log.count("reason=tls") != 1 {
			t.Errorf("want one line, the reason being the same, have\n%s", n[1].log)
		}
	})
}

// TestCertificatesAreJudgedWhenRead: what could never work is refused by name at the start.
func TestCertificatesAreJudgedWhenRead(t *testing.T) {
	ca, other := newAuthority(t, "strandline"), newAuthority(t, "stranger")
	good, goodKey := ca.issue(time.Now().Add(-time.Hour), nodeUses...)
	_, otherKey := ca.issue(time.Now().Add(-time.Hour), nodeUses...)
	client, clientKey := ca.issue(time.Now().Add(-time.Hour), x509.ExtKeyUsageClientAuth)
	for _, c := range []struct {
		name          string
		cert, key, ca []byte
		want          string
	}{
		{"another key", good, otherKey, ca.pem, "certificate and key"},
		{"no CA", good, goodKey, []byte("x"), "CA: no certificate"},
		{"another CA", good, goodKey, other.pem, "cannot be a node's of this CA"},
		{"a client's", client, clientKey, ca.pem, "cannot be a node's of this CA"},
	} {
		if _, err := ParseCertificates(c.cert, c.key, c.ca); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	certs := ca.node()
	if err := certs.Replace(client, clientKey, ca.pem); err == nil {
		t.Fatal("replaced by a client's certificate")
	}
	if err := certs.Replace(good, goodKey, ca.pem); err != nil {
		t.Fatal(err)
	}
}

// TestExpiredCertificateIsRefused: by the other side, at the handshake.
func TestExpiredCertificateIsRefused(t *testing.T) {
	ca := newAuthority(t, "strandline")
	cert, key := ca.issue(time.Now().Add(-24*time.Hour), nodeUses...)
	if _, err := ParseCertificates(cert, key, ca.pem); err == nil || !strings.Contains(err.Error(), "expired") {
		t.Fatalf("read: %v", err)
	}
	own, err := tls.X509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	old := ca.node() // its certificate expires while it runs
	old.now.Store(&certificates{own: own, ca: old.now.Load().ca})
	overTCP(t, []*Certificates{ca.node(), old}, func(n []*testNode) {
		_, err := n[2].ask(1, KindSubmit, "x")
		is(t, err, ErrUnreachable, ErrRefused)
		_, err = n[1].ask(2, KindSubmit, "x")
		is(t, err, ErrUnreachable, ErrRefused)
		if !strings.Contains(err.Error(), "expired") {
			t.Fatal(err)
		}
	})
}
