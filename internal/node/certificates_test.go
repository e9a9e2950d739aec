package node

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"strandline.dev/internal/auth/certs"
	"strandline.dev/internal/auth/certs/certstest"
	"strandline.dev/internal/config"
	"strandline.dev/internal/peer"
	"strandline.dev/internal/sys"
	"strandline.dev/internal/sys/systest"
)

// withCertificates says where a node's certificates are.
func withCertificates(n *config.Node) {
	n.HTTP.Address = strings.Replace(n.Cluster.Address, ":19091", ":8080", 1)
	n.TLS.Cluster.Cert, n.TLS.Cluster.Key, n.TLS.Cluster.CA = "/pem/cert", "/pem/key", "/pem/ca"
}

// giveCertificate writes a member's certificate files.
func giveCertificate(c *cluster, m *member, p certs.PEM) {
	c.t.Helper()
	err := m.fs.MkdirAll("/pem", 0o700)
	for name, data := range map[string][]byte{"cert": p.Cert, "key": p.Key, "ca": p.CA} {
		if err == nil {
			err = sys.WriteFileAtomic(m.fs, "/pem/"+name, data)
		}
	}
	if err != nil {
		c.t.Fatal(err)
	}
}

// TestCluster_Certificates: three nodes replicate over mutual TLS; new files are taken up without a restart, bad ones are not, and show how long the
// certificate lasts; a node with another's certificate does not start (C098).
func TestCluster_Certificates(t *testing.T) {
	var ca *certstest.Authority
	issue := func(c *cluster, days time.Duration) {
		for _, m := range c.members {
			giveCertificate(c, m, ca.Issue(certstest.Wanted{URIs: []string{peer.NodeURI(m.id)}, Until: time.Now().Add(days * 24 * time.Hour)}))
		}
	}
	prepare := func(c *cluster) {
		ca = certstest.NewAuthority(c.t, "strandline")
		issue(c, 1)
	}
	preparedBubble(t, 3, withCertificates, prepare, func(c *cluster) {
		t := c.t
		cl := c.client()
		defer cl.Close()
		c.create(cl, "t", 1)
		pub := c.publish(cl, "t", 0)
		time.Sleep(time.Second)
		ca = certstest.NewAuthority(c.t, "the next one") // all nodes at once: this test is not about how a CA is replaced
		issue(c, 2)
		time.Sleep(10 * time.Second)
		for _, m := range c.members {
			if got := strings.Count(m.log.String(), "certificate replaced"); got != 1 {
				t.Errorf("node %v has taken up new files %d times", m.id, got)
			}
		}
		if got := c.metric(1, "/metrics", "strandline_tls_certificate_expiry_seconds"); got < 47*3600 || got > 48*3600 {
			t.Errorf("%v seconds left of two days", got)
		}
		leader := c.state("t", 0).Leader
		c.kill(leader)
		c.start(leader)
		c.untilInBubble("all in sync over the new certificates", func() bool { return c.whole("t") })
		acked := pub.finish(t)
		same(t, acked, c.read("t", 0, len(acked)))

		other := c.member(leader%3 + 1)
		giveCertificate(c, other, ca.Issue(certstest.Wanted{URIs: []string{peer.NodeURI(leader)}}))
		time.Sleep(10 * time.Second)
		if got := strings.Count(other.log.String(), "certificate files cannot be used"); got != 1 {
			t.Errorf("%d lines about another node's certificate, want one", got)
		}
		c.kill(other.id)
		other.process = &process{Net: c.net.Host(other.host())}
		_, err := Start(t.Context(), Options{Config: c.configOf(other), Machine: systest.Machine(other.fs, other.process, nil), Log: slog.New(slog.NewTextHandler(other.log, nil))})
		if err == nil || !strings.Contains(err.Error(), "tls.cluster: the certificate is not node") {
			t.Errorf("it starts with another node's certificate: %v", err)
		}
	})
}
