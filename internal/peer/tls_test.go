package peer

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"strings"
	"sync"
	"testing"
	"time"

	"strandline.dev/internal/auth/certs"
	"strandline.dev/internal/auth/certs/certstest"
	"strandline.dev/internal/kafka"
	"strandline.dev/internal/sys"
)

// newIdentity makes the identity of a node.
func newIdentity(t *testing.T, ca *certstest.Authority, node kafka.NodeID) *certs.Source {
	t.Helper()
	s, err := certs.Hold(ca.Issue(certstest.Wanted{Name: "n", URIs: []string{NodeURI(node)}}), Judge(node))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// overTCP runs a test with listening nodes over real sockets, one for each of identities.
func overTCP(t *testing.T, identities []*certs.Source, test func(n []*testNode)) {
	t.Helper()
	w := newWorld(t)
	nodes := []*testNode{nil}
	for i, c := range identities {
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
	ca := certstest.NewAuthority(t, "strandline")
	for name, identities := range map[string][]*certs.Source{"plaintext": {nil, nil}, "tls": {newIdentity(t, ca, 1), newIdentity(t, ca, 2)}} {
		t.Run(name, func(t *testing.T) {
			overTCP(t, identities, func(n []*testNode) {
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
				n[2].end()
				is(t, n[1].Probe(t.Context(), 2), ErrRefused)
			})
		})
	}
}

// TestI15_OnlyNodesOfTheCAAreHeard: another CA, no certificate, plaintext, and clients' certificates of the right CA are refused (K62).
func TestI15_OnlyNodesOfTheCAAreHeard(t *testing.T) {
	ca, other := certstest.NewAuthority(t, "strandline"), certstest.NewAuthority(t, "stranger")
	overTCP(t, []*certs.Source{newIdentity(t, ca, 1), newIdentity(t, other, 2), nil}, func(n []*testNode) {
		for _, from := range []*testNode{n[2], n[3]} {
			_, err := from.ask(1, KindSubmit, "x")
			is(t, err, ErrUnreachable, ErrRefused)
			_, err = n[1].ask(from.Self().Node, KindSubmit, "x")
			is(t, err, ErrUnreachable, ErrRefused)
		}
		client := ca.Issue(certstest.Wanted{Name: "alice", Uses: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
		for name, own := range map[string][]tls.Certificate{"no certificate": nil, "client certificate": {pair(t, client)}} {
			if answer := n[1].pose(own, 3); answer != nil {
				t.Errorf("%s: heard, and answered with %+v", name, answer)
			}
		}
		n[1].end() // what is being refused has been told of then
		if n[1].log.count("reason=tls") != 1 {
			t.Errorf("want one line, the reason being the same, have\n%s", n[1].log)
		}
	})
}

// TestC098_ACertificateSpeaksForItsNodeOnly: with node 2's certificate, and with a stolen one that names no node, nobody can speak as node 3, whose
// progress would count; nor be taken for node 3 by those who dial it.
func TestC098_ACertificateSpeaksForItsNodeOnly(t *testing.T) {
	ca := certstest.NewAuthority(t, "strandline")
	second := ca.Issue(certstest.Wanted{Name: "node-3", Hosts: []string{"node-3"}, URIs: []string{NodeURI(2), "strandline://node/30", "strandline://node/3/x", "other://node/3"}})
	none := ca.Issue(certstest.Wanted{Name: "strandline://node/3", Hosts: []string{"127.0.0.1"}})
	both := ca.Issue(certstest.Wanted{Name: "n", URIs: []string{NodeURI(2), NodeURI(3)}})
	impostor, err := certs.Hold(second, nil)
	if err != nil {
		t.Fatal(err)
	}
	overTCP(t, []*certs.Source{newIdentity(t, ca, 1), newIdentity(t, ca, 2), impostor}, func(n []*testNode) {
		for name, p := range map[string]certs.PEM{"node 2's": second, "no node's": none} {
			answer := n[1].pose([]tls.Certificate{pair(t, p)}, 3)
			if answer == nil || !strings.Contains(answer.refusal, "shows a certificate with the URIs") {
				t.Errorf("%s certificate speaks for node 3: %+v", name, answer)
			}
		}
		if answer := n[1].pose([]tls.Certificate{pair(t, both)}, 3); answer == nil || answer.refusal != "" {
			t.Errorf("a certificate with two names speaks for neither: %+v", answer)
		}
		if n[1].log.count("reason=certificate") != 1 {
			t.Errorf("want one line, have\n%s", n[1].log)
		}
		for _, k := range []Kind{KindReplicaFetch, KindHeartbeat, KindSubmit} {
			_, err := n[3].ask(1, k, "x")
			is(t, err, ErrDenied)
			_, err = n[1].ask(3, k, "x")
			is(t, err, ErrDenied)
		}
		is(t, n[1].Probe(t.Context(), 3), ErrDenied)
		n[1].mustAsk(2, KindSubmit, "x")
	})
}

// pose says hello to the node with these certificates and as this node, and returns its hello; nil: it hung up.
func (n *testNode) pose(own []tls.Certificate, as kafka.NodeID) *hello {
	n.t.Helper()
	nc, err := sys.Real().Net.Dial(n.t.Context(), n.world.addresses[n.Self().Node])
	if err != nil {
		n.t.Fatal(err)
	}
	defer nc.Close()
	c := tls.Client(nc, &tls.Config{InsecureSkipVerify: true, Certificates: own})
	self := n.Self()
	self.Node = as
	if _, err := c.Write(newFrame(kindHello, 0, 0, &hello{version: protocolVersion, class: Data, self: self, expected: n.Self().Node}).head); err != nil {
		return nil
	}
	answer, err := readHello(c, bufio.NewReader(c))
	if err != nil {
		return nil
	}
	return answer
}

func pair(t *testing.T, p certs.PEM) tls.Certificate {
	t.Helper()
	c, err := tls.X509KeyPair(p.Cert, p.Key)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestJudge: what could never work is refused by name at the start.
func TestJudge(t *testing.T) {
	ca, other := certstest.NewAuthority(t, "strandline"), certstest.NewAuthority(t, "stranger")
	good := ca.Issue(certstest.Wanted{URIs: []string{NodeURI(1)}})
	past := time.Now().Add(-24 * time.Hour)
	for _, c := range []struct {
		name string
		pem  certs.PEM
		want string
	}{
		{"another CA", certs.PEM{Cert: good.Cert, Key: good.Key, CA: other.PEM()}, "cannot be a node's of this CA"},
		{"no CA", certs.PEM{Cert: good.Cert, Key: good.Key}, "CA: there is none"},
		{"a client's", ca.Issue(certstest.Wanted{URIs: []string{NodeURI(1)}, Uses: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}), "cannot be a node's of this CA"},
		{"another node's", ca.Issue(certstest.Wanted{URIs: []string{NodeURI(11)}}), "not node 1's: the URI strandline://node/1 is missing"},
		{"nobody's", ca.Issue(certstest.Wanted{Name: "node-1"}), "not node 1's"},
		{"an old one", ca.Issue(certstest.Wanted{URIs: []string{NodeURI(1)}, From: past, Until: past.Add(time.Hour)}), "expired"},
	} {
		if _, err := certs.Hold(c.pem, Judge(1)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	if _, err := certs.Hold(good, Judge(1)); err != nil {
		t.Error(err)
	}
}

// TestExpiredCertificateIsRefused: by the other side, at the handshake.
func TestExpiredCertificateIsRefused(t *testing.T) {
	ca := certstest.NewAuthority(t, "strandline")
	past := time.Now().Add(-24 * time.Hour)
	old, err := certs.Hold(ca.Issue(certstest.Wanted{URIs: []string{NodeURI(2)}, From: past, Until: past.Add(time.Hour)}), nil) // it has ended while it runs
	if err != nil {
		t.Fatal(err)
	}
	overTCP(t, []*certs.Source{newIdentity(t, ca, 1), old}, func(n []*testNode) {
		_, err := n[2].ask(1, KindSubmit, "x")
		is(t, err, ErrUnreachable, ErrRefused)
		_, err = n[1].ask(2, KindSubmit, "x")
		is(t, err, ErrUnreachable, ErrRefused)
		if !strings.Contains(err.Error(), "expired") {
			t.Fatal(err)
		}
	})
}

// TestReplacedCertificate: connections to come use the new identity, also of a new CA; those that are open go on.
func TestReplacedCertificate(t *testing.T) {
	ca, next := certstest.NewAuthority(t, "strandline"), certstest.NewAuthority(t, "next")
	first, second := newIdentity(t, ca, 1), newIdentity(t, ca, 2)
	overTCP(t, []*certs.Source{first, second}, func(n []*testNode) {
		n[2].mustAsk(1, KindSubmit, "x")
		renewed := next.Issue(certstest.Wanted{URIs: []string{NodeURI(1)}})
		if err := first.Replace(renewed); err != nil {
			t.Fatal(err)
		}
		n[2].mustAsk(1, KindSubmit, "on the open connection")
		_, err := n[2].ask(1, KindReplicaFetch, "on a new one")
		is(t, err, ErrUnreachable)
		if err := second.Replace(next.Issue(certstest.Wanted{URIs: []string{NodeURI(2)}})); err != nil {
			t.Fatal(err)
		}
		n[2].mustAsk(1, KindReplicaFetch, "with the new CA")
		if err := second.Replace(renewed); err == nil {
			t.Error("node 2 takes node 1's certificate for its own")
		}
	})
}
