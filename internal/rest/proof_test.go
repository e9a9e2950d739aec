package rest

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/twmb/franz-go/pkg/kmsg"

	"strandline.dev/internal/auth"
	"strandline.dev/internal/auth/certs"
	"strandline.dev/internal/auth/certs/certstest"
	"strandline.dev/internal/config"
	"strandline.dev/internal/kafka"
	"strandline.dev/internal/metadata"
	"strandline.dev/internal/metrics"
	"strandline.dev/internal/server"
	"strandline.dev/internal/sys"
	"strandline.dev/internal/sys/systest"
)

// noisyUser has everything in its name that could draw in a log.
const noisyUser = "eve\r\nlevel=ERROR msg=forged\x1b[31m\u2028"

// securedDoor is a door over TLS in front of a dispatcher that asks everybody who they are. Topic orders is there; reader may read it, super may do
// everything, and so may whom the issuer calls alice read it.
type securedDoor struct {
	t       *testing.T
	address string
	roots   *x509.CertPool
	log     *logged
	trail   noteTaker
	metrics *metrics.Registry
	token   func(change map[string]any) string
}

// noteTaker is an audit trail in memory.
type noteTaker struct {
	mu     sync.Mutex
	events []auth.Event
}

// Note implements server.Audit.
func (n *noteTaker) Note(ev auth.Event) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.events = append(n.events, ev)
}

// Begin implements server.Audit.
func (n *noteTaker) Begin(_ context.Context, ev auth.Event) (func(string), error) {
	n.Note(ev)
	return func(string) {}, nil
}

// noted counts what the trail has of a kind and an API or mechanism.
func (s *securedDoor) noted(what, api string) (n int) {
	s.trail.mu.Lock()
	defer s.trail.mu.Unlock()
	for _, ev := range s.trail.events {
		if ev.What == what && ev.API == api && strings.HasPrefix(ev.Peer, "127.0.0.1:") {
			n++
		}
	}
	return n
}

// loginsFailed reads strandline_auth_failures_total.
func (s *securedDoor) loginsFailed(mechanism, reason string) (n int) {
	w := httptest.NewRecorder()
	s.metrics.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	name := fmt.Sprintf("\nstrandline_auth_failures_total{mechanism=%q,reason=%q} ", mechanism, reason)
	_, rest, _ := strings.Cut(w.Body.String(), name)
	_, _ = fmt.Sscan(rest, &n)
	return n
}

// logged is what the door has logged.
type logged struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

// Write keeps a line.
func (l *logged) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(b)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

func newSecuredDoor(t *testing.T) *securedDoor {
	t.Helper()
	s := &securedDoor{t: t, log: &logged{}, roots: x509.NewCertPool()}
	img := securedImage(t)
	broker := config.DefaultBroker(true)
	issuer, token := newIssuer(t)
	tokens := auth.NewTokens(auth.TokenConfig{Issuer: issuer, Audience: "strandline", Claim: "sub", Dial: func(ctx context.Context, address string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "tcp", address)
	}})
	s.token = token
	authenticator := auth.NewAuthenticator(func() *metadata.Image { return img }, tokens)
	access := auth.NewAuthorizer(func() *metadata.Image { return img }, auth.Options{Enforced: true, Supers: []kafka.Principal{{Type: "User", Name: "super"}}})
	m := metrics.New()
	log := slog.New(slog.NewTextHandler(s.log, nil))
	dispatcher := server.New(server.Config{
		Node: 1, Image: func() *metadata.Image { return img }, Broker: func() config.Broker { return broker },
		TopicConfig: func(x *metadata.Topic) config.Topic {
			c, err := config.ResolveTopic(x.Configs, broker, true)
			if err != nil {
				t.Error(err)
			}
			return c
		},
		Access: access, Authenticator: authenticator, Wall: systest.NewWall(time.Now()), Log: log, Metrics: m.Broker,
		Audit: &s.trail,
	})
	s.metrics = m
	ca := certstest.NewAuthority(t, "strandline")
	s.roots.AppendCertsFromPEM(ca.PEM())
	p := ca.Issue(certstest.Wanted{Name: "node 1", Hosts: []string{"127.0.0.1"}})
	fs := systest.NewFS(1)
	files := certs.Files{Setting: "tls", Cert: "/cert", Key: "/key", CA: "/ca"}
	for name, data := range map[string][]byte{files.Cert: p.Cert, files.Key: p.Key, files.CA: p.CA} {
		if err := sys.WriteFileAtomic(fs, name, data); err != nil {
			t.Fatal(err)
		}
	}
	shown, err := certs.Open(fs, files, auth.JudgeServed(true))
	if err != nil {
		t.Fatal(err)
	}
	n := &tlsNet{Net: sys.Real().Net, config: auth.ServerTLS(shown, tls.NoClientCert)}
	address, d := newTestDoor(t, n, func(c *Config) {
		c.Server, c.Node, c.Authenticator, c.Access, c.Log = func() *server.Server { return dispatcher }, 1, authenticator, access, log
	})
	t.Cleanup(func() { _ = d.Close() })
	s.address = address
	return s
}

// tlsNet listens with TLS.
type tlsNet struct {
	sys.Net
	config *tls.Config
}

// Listen implements sys.Net.
func (n *tlsNet) Listen(address string) (net.Listener, error) {
	l, err := n.Net.Listen(address)
	if err != nil {
		return nil, err
	}
	return tls.NewListener(l, n.config), nil
}

func securedImage(t *testing.T) *metadata.Image {
	t.Helper()
	id := kafka.TopicID{1}
	records := []metadata.Record{
		metadata.BrokerRecord{Node: 1, Epoch: 1, Listeners: []metadata.Listener{{Name: "clients", Host: "127.0.0.1", Port: 9092}}},
		metadata.TopicRecord{ID: id, Name: "orders", Partitions: 1},
		metadata.PartitionRecord{Topic: id, State: kafka.PartitionState{Leader: 1, Replicas: []kafka.NodeID{1}, ISR: []kafka.NodeID{1}}},
		metadata.TopicStateRecord{ID: id, State: metadata.StateReady, Version: 1},
	}
	for _, user := range []string{"super", "reader", noisyUser} {
		c, err := auth.NewScram(user, "secret of "+user, metadata.ScramSHA512)
		if err != nil {
			t.Fatal(err)
		}
		records = append(records, metadata.ScramRecord{Credential: c})
	}
	for _, user := range []string{"reader", "alice"} {
		records = append(records, metadata.ACLRecord{ACL: metadata.ACL{
			Resource: kmsg.ACLResourceTypeTopic, Pattern: kmsg.ACLResourcePatternTypeLiteral, Name: "orders", Principal: "User:" + user, Host: "*",
			Operation: kmsg.ACLOperationRead, Permission: kmsg.ACLPermissionTypeAllow,
		}})
	}
	img, err := metadata.Empty().Apply(1, records)
	if err != nil {
		t.Fatal(err)
	}
	return img
}

// newIssuer runs an OpenID provider, whose tokens are good for alice unless a claim is changed.
func newIssuer(t *testing.T) (url string, token func(change map[string]any) string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	t.Cleanup(s.CloseClientConnections)
	mux.HandleFunc("/.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(map[string]any{"issuer": s.URL, "jwks_uri": s.URL + "/keys", "id_token_signing_alg_values_supported": []string{"ES256"}})
	})
	mux.HandleFunc("/keys", func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: &key.PublicKey, KeyID: "k1", Algorithm: "ES256", Use: "sig"}}})
	})
	return s.URL, func(change map[string]any) string {
		claims := map[string]any{"iss": s.URL, "aud": "strandline", "sub": "alice", "exp": time.Now().Add(time.Hour).Unix(), "iat": time.Now().Unix()}
		for name, v := range change {
			claims[name] = v
		}
		signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: key}, (&jose.SignerOptions{}).WithHeader("kid", "k1"))
		if err != nil {
			t.Fatal(err)
		}
		text, _ := json.Marshal(claims)
		signed, err := signer.Sign(text)
		if err != nil {
			t.Fatal(err)
		}
		out, _ := signed.CompactSerialize()
		return out
	}
}

// send sends one request with these Authorization headers.
func (s *securedDoor) send(method, path string, proofs ...string) (status int, header http.Header, body string) {
	s.t.Helper()
	req, err := http.NewRequestWithContext(s.t.Context(), method, "https://"+s.address+path, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	for _, p := range proofs {
		req.Header.Add("Authorization", p)
	}
	c := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: s.roots}, DisableKeepAlives: true}}
	resp, err := c.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return resp.StatusCode, resp.Header, string(b)
}

func basic(user, password string) string {
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+password))
}

// testNoProof: without a proof, with half of one, or with a wrong one, the answer is the same 401, which says nothing about who there is; a right one of
// each kind gets in.
func testNoProof(t *testing.T) {
	s := newSecuredDoor(t)
	const path = "/v1/topics"
	_, _, want := s.send("GET", path)
	for _, proofs := range [][]string{
		nil, {""}, {" "}, {"Basic"}, {"Basic "}, {"Bearer"}, {"Bearer "}, {"Digest username=\"reader\""}, {"Negotiate YII="}, {"secret of reader"},
		{"Basic !!!"}, {"Basic " + base64.StdEncoding.EncodeToString([]byte("no-colon"))}, {basic("", "")}, {basic("reader", "")},
		{basic("reader", "wrong")}, {basic("nobody", "wrong")}, {basic("reader\x00super", "secret of super")}, {basic("READER", "secret of reader")},
		{"Bearer abc"}, {"Bearer a.b.c"}, {"Bearer " + s.token(map[string]any{"aud": "another"})},
		{"Bearer " + s.token(map[string]any{"exp": time.Now().Add(-time.Hour).Unix()})}, {"Bearer " + s.token(nil) + "x"},
		{basic("reader", "secret of reader"), basic("super", "secret of super")},
	} {
		status, header, body := s.send("GET", path, proofs...)
		if status != http.StatusUnauthorized || body != want || len(header.Values("Www-Authenticate")) != 2 || !strings.Contains(body, `"code":"SASL_AUTHENTICATION_FAILED"`) {
			t.Errorf("%q: %d %v %s", proofs, status, header, body)
		}
	}
	// What Kafka clients fail at is counted and kept; here too.
	for _, f := range []struct {
		mechanism, reason string
		want              int
	}{{"none", "missing", 2}, {auth.Plain, "credentials", 5}, {auth.OAuthBearer, "token", 5}} {
		if got := s.loginsFailed(f.mechanism, f.reason); got != f.want || s.noted(auth.LoginFailed, f.mechanism) < f.want {
			t.Errorf("%s, %s: %d are counted, %d kept, want %d", f.mechanism, f.reason, got, s.noted(auth.LoginFailed, f.mechanism), f.want)
		}
	}
	if text := fmt.Sprintf("%+v", s.trail.events) + s.log.String(); strings.Contains(text, "secret of") {
		t.Errorf("a password is kept: %s", text)
	}
	for _, proof := range []string{basic("reader", "secret of reader"), "bAsIc " + basic("reader", "secret of reader")[6:], "Bearer " + s.token(nil)} {
		for range 2 { // judged, and remembered
			if status, _, _ := s.send("GET", "/metrics", proof); status != http.StatusForbidden { // not 401
				t.Errorf("%s: %d", proof, status)
			}
		}
	}
	// Passwords do not cross in the open.
	d := &door{cfg: Config{Authenticator: auth.NewAuthenticator(metadata.Empty, nil), Log: slog.New(slog.DiscardHandler)}}
	r := httptest.NewRequest("GET", path, nil)
	r.Header.Set("Authorization", basic("reader", "secret of reader"))
	r = r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, &net.TCPAddr{IP: net.IPv4(10, 0, 0, 7), Port: 8080}))
	if _, p := d.identify(r); p == nil || p.Status != http.StatusForbidden || p.Code != "TLS_REQUIRED" {
		t.Errorf("a password in the open: %+v", p)
	}
}

// testReaderDeletes: who may read a topic may not delete it, nor anything else; who may not see it is told nothing of it.
func testReaderDeletes(t *testing.T) {
	s := newSecuredDoor(t)
	for _, c := range []struct{ method, path, code string }{
		{"DELETE", "/v1/topics/orders", "TOPIC_AUTHORIZATION_FAILED"}, {"GET", "/v1/acls", "CLUSTER_AUTHORIZATION_FAILED"},
		{"GET", "/v1/users", "CLUSTER_AUTHORIZATION_FAILED"}, {"DELETE", "/v1/acls?user=reader", "CLUSTER_AUTHORIZATION_FAILED"},
		{"PUT", "/v1/nodes/1/drain", "CLUSTER_AUTHORIZATION_FAILED"}, {"DELETE", "/v1/nodes/1", "CLUSTER_AUTHORIZATION_FAILED"},
		{"GET", "/v1/acls/explain?user=super&operation=read&resource=topic:orders", "CLUSTER_AUTHORIZATION_FAILED"},
	} {
		for _, proof := range []string{basic("reader", "secret of reader"), "Bearer " + s.token(nil)} {
			if status, _, body := s.send(c.method, c.path, proof); status != http.StatusForbidden || !strings.Contains(body, `"code":"`+c.code+`"`) {
				t.Errorf("%s %s: %d %s", c.method, c.path, status, body)
			}
		}
	}
	explained, _, body := s.send("GET", "/v1/acls/explain?user=reader&operation=delete&resource=topic:orders", basic("super", "secret of super"))
	if explained != http.StatusOK || !strings.Contains(body, `"allowed":false`) {
		t.Errorf("explained: %d %s", explained, body)
	}
	there, _, first := s.send("DELETE", "/v1/topics/orders", basic(noisyUser, "secret of "+noisyUser))
	absent, _, second := s.send("DELETE", "/v1/topics/absent", basic(noisyUser, "secret of "+noisyUser))
	if there != absent || strings.ReplaceAll(first, "orders", "absent") != second {
		t.Errorf("a topic that is not for this user: %d %s, one that is not there: %d %s", there, first, absent, second)
	}
}

// testMetricsWantAUser: metrics name topics and groups, so they are shown to those who may describe the cluster; health is for everybody, and nothing
// else is open.
func testMetricsWantAUser(t *testing.T) {
	s := newSecuredDoor(t)
	for _, path := range []string{"/metrics", "/metrics/detail"} {
		if status, _, body := s.send("GET", path); status != http.StatusUnauthorized || strings.Contains(body, "strandline_") {
			t.Errorf("%s without a proof: %d %s", path, status, body)
		}
		if status, _, body := s.send("GET", path, basic("reader", "secret of reader")); status != http.StatusForbidden || strings.Contains(body, "orders") {
			t.Errorf("%s without the right: %d %s", path, status, body)
		}
		if status, _, _ := s.send("GET", path, basic("super", "secret of super")); status != http.StatusOK {
			t.Errorf("%s: %d", path, status)
		}
	}
	if s.noted(auth.Denied, "DescribeCluster") != 2 {
		t.Errorf("denied metrics are not in the audit trail: %+v", s.trail.events)
	}
	if status, _, _ := s.send("GET", "/livez"); status != http.StatusOK {
		t.Errorf("health: %d", status)
	}
}

// testNoHTTP2: the door speaks HTTP/1.1 only, so there are no streams to reset or to flood.
func testNoHTTP2(t *testing.T) {
	s := newSecuredDoor(t)
	c, err := tls.Dial("tcp", s.address, &tls.Config{RootCAs: s.roots, NextProtos: []string{"h2", "http/1.1"}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if p := c.ConnectionState().NegotiatedProtocol; p == "h2" {
		t.Errorf("%s is offered", p)
	}
	if _, err := io.WriteString(c, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if status, _ := readAnswer(t, c); status != http.StatusBadRequest {
		t.Errorf("a preface is answered %d", status)
	}
}

// testNamesInTheLog: what a name does to a terminal or to a line, it does not do in the log, where failed logins and denials are told.
func testNamesInTheLog(t *testing.T) {
	s := newSecuredDoor(t)
	s.send("GET", "/v1/topics", basic(noisyUser, "wrong"))
	s.send("GET", "/v1/users", basic(noisyUser, "secret of "+noisyUser))
	s.send("DELETE", "/v1/topics/"+strings.ReplaceAll("a%0d%0ab%1b[31m", "[", "%5b"), basic(noisyUser, "secret of "+noisyUser))
	text := s.log.String()
	if !strings.Contains(text, "login failed") {
		t.Errorf("the log does not tell of a failed login: %q", text)
	}
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "time=") || strings.ContainsAny(strings.TrimSuffix(line, "\n"), "\r\x1b\u2028") {
			t.Errorf("a line that a client has drawn: %q", line)
		}
	}
}
