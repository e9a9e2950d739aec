package server

import (
	"crypto/tls"
	"crypto/x509"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"strandline.dev/internal/auth"
	"strandline.dev/internal/auth/certs/certstest"
)

// Security test 4: a client's certificate that says it is the administrator's and is not the CA's, or not valid now, or has a key of 16384 bits, lets
// nobody in, and the log tells of it. One behind ten intermediates is the CA's like any other.
func TestSecurity4_WrongCertificatesOfClients(t *testing.T) {
	ca := certstest.NewAuthority(t, "ca")
	names, err := auth.ParseNameRules("RULE:^CN=([^,]+)(,.*)?$/$1/,DEFAULT")
	must(t, err)
	b := newTestBroker(t, testOptions{door: Door{TLS: auth.ServerTLS(testIdentity(t, ca), tls.RequireAndVerifyClientCert), Names: names}})
	admin := certstest.Wanted{Name: "admin", Uses: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
	for name, c := range ca.Wrong(admin) {
		if client := b.shows(ca, c); client != nil {
			t.Errorf("a certificate %s is served", name)
		}
	}
	eventually(t, "the log tells of it", func() bool { return strings.Contains(b.log.String(), "reason=tls_handshake") })
	for name, c := range map[string]struct {
		cert tls.Certificate
		want string
	}{
		"of-a-chain": {ca.Chain(admin, 10), "User:admin"},
		"escaped":    {certstest.Pair(t, ca.Issue(certstest.Wanted{Name: "admin,O=x"})), `User:admin\`},
		"two-names":  {certstest.Pair(t, ca.Issue(certstest.Wanted{Name: "eve\nCN=admin"})), "User:eve\nCN=admin"},
	} {
		client := b.shows(ca, c.cert)
		if client == nil {
			t.Errorf("%s is not served: %s", name, b.log)
			continue
		}
		client.create(name, 1)
		if got := b.ownerOf(name); got != c.want {
			t.Errorf("%s is %q, want %q", name, got, c.want)
		}
	}
}

// shows connects with a client's certificate and returns the client if it is served, else nil.
func (b *testBroker) shows(ca *certstest.Authority, c tls.Certificate) *testClient {
	b.t.Helper()
	config := clientTLS(ca, nil)
	config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &c, nil } // whatever is asked for
	conn, err := tls.Dial("tcp", b.addr, config)
	if err != nil {
		return nil
	}
	b.t.Cleanup(func() { _ = conn.Close() })
	client := &testClient{t: b.t, conn: conn, id: "test"}
	req := withVersion(kmsg.NewPtrApiVersionsRequest(), 0)
	if _, err := conn.Write(client.frame(req, 0)); err != nil {
		return nil
	}
	if _, err := client.tryRead(req, 0); err != nil {
		return nil
	}
	client.next++
	return client
}
