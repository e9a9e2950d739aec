package server

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"fmt"
	"io"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"

	"strandline.dev/internal/auth"
	"strandline.dev/internal/auth/certs"
	"strandline.dev/internal/auth/certs/certstest"
	"strandline.dev/internal/kafka"
	"strandline.dev/internal/metadata"
)

const testPassword = "correct horse"

var allMechanisms = []string{auth.Scram512, auth.Scram256, auth.Plain}

// addUser gives a user a password for a mechanism.
func (b *testBroker) addUser(user string, m metadata.ScramMechanism) {
	b.t.Helper()
	c, err := auth.NewScram(user, testPassword, m)
	must(b.t, err)
	_, _, err = b.control.Controller.Submit(context.Background(), metadata.AlterScram{Set: []metadata.ScramCredential{c}, Secret: make([]byte, 32)})
	must(b.t, err)
}

func (b *testBroker) removeUser(user string, m metadata.ScramMechanism) {
	b.t.Helper()
	_, _, err := b.control.Controller.Submit(context.Background(), metadata.AlterScram{Remove: []metadata.ScramName{{User: user, Mechanism: m}}})
	must(b.t, err)
}

// login connects with franz-go and makes a topic, so that its owner shows who the broker took the client for.
func (b *testBroker) login(topic string, opts ...kgo.Opt) error {
	b.t.Helper()
	cl, err := kgo.NewClient(append([]kgo.Opt{kgo.SeedBrokers(b.addr), kgo.RequestRetries(0)}, opts...)...)
	must(b.t, err)
	defer cl.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	_, err = newCreate(topic, 1).RequestWith(ctx, cl)
	return err
}

func (b *testBroker) ownerOf(topic string) string {
	if t := b.quorum.Image().Topic(topic); t != nil {
		return t.Owner
	}
	return ""
}

// Each mechanism lets in who knows the password, and nobody else; who does not exist is told what somebody with a wrong password is (R148).
func TestR148_LoginsByPassword(t *testing.T) {
	b := newTestBroker(t, testOptions{door: Door{SASL: allMechanisms}})
	b.addUser("a", metadata.ScramSHA256)
	b.addUser("b", metadata.ScramSHA512)
	mechanism := func(name, user, pass string) sasl.Mechanism {
		switch name {
		case auth.Scram256:
			return scram.Auth{User: user, Pass: pass}.AsSha256Mechanism()
		case auth.Scram512:
			return scram.Auth{User: user, Pass: pass}.AsSha512Mechanism()
		}
		return plain.Auth{User: user, Pass: pass}.AsMechanism()
	}
	refusals := map[string]string{}
	for i, c := range []struct {
		mechanism, user, pass string
		ok                    bool
	}{
		{auth.Scram256, "a", testPassword, true},
		{auth.Scram512, "b", testPassword, true},
		{auth.Plain, "a", testPassword, true},
		{auth.Plain, "b", testPassword, true},
		{auth.Scram256, "a", "wrong", false},
		{auth.Scram256, "b", testPassword, false}, // no credential for this mechanism
		{auth.Scram256, "nobody", testPassword, false},
		{auth.Scram512, "b", "wrong", false},
		{auth.Scram512, "nobody", testPassword, false},
		{auth.Plain, "a", "wrong", false},
		{auth.Plain, "nobody", testPassword, false},
	} {
		topic := fmt.Sprintf("t%d", i)
		err := b.login(topic, kgo.SASL(mechanism(c.mechanism, c.user, c.pass)))
		if c.ok {
			if err != nil || b.ownerOf(topic) != "User:"+c.user {
				t.Errorf("%+v: %v, owner %q", c, err, b.ownerOf(topic))
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), "SASL_AUTHENTICATION_FAILED") || b.ownerOf(topic) != "" {
			t.Errorf("%+v: %v", c, err)
			continue
		}
		if first := refusals[c.mechanism]; first == "" {
			refusals[c.mechanism] = err.Error()
		} else if first != err.Error() {
			t.Errorf("%+v is told apart: %q, others %q", c, err, first)
		}
	}
	if err := b.login("anonymous"); err == nil {
		t.Error("a client that does not log in is served")
	}
	if log := b.log.String(); !strings.Contains(log, "a login failed") || !strings.Contains(log, "mechanism=PLAIN") || strings.Contains(log, testPassword) {
		t.Errorf("failed logins in the log: %s", log)
	}
	if got := b.value("strandline_auth_failures_total"); got != 7 {
		t.Errorf("%v failed logins are counted", got)
	}
}

// value is the sum of a metric over its labels.
func (b *testBroker) value(name string) (sum float64) {
	w := httptest.NewRecorder()
	b.metrics.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	for line := range strings.SplitSeq(w.Body.String(), "\n") {
		if strings.HasPrefix(line, name) {
			var v float64
			fmt.Sscan(line[strings.LastIndexByte(line, ' ')+1:], &v)
			sum += v
		}
	}
	return sum
}

func newHandshake(version int16, mechanism string) *kmsg.SASLHandshakeRequest {
	r := kmsg.NewPtrSASLHandshakeRequest()
	r.Version, r.Mechanism = version, mechanism
	return r
}

func newAuthenticate(version int16, message string) *kmsg.SASLAuthenticateRequest {
	r := kmsg.NewPtrSASLAuthenticateRequest()
	r.Version, r.SASLAuthBytes = version, []byte(message)
	return r
}

// What is out of order ends the connection, and does nothing (K57).
func TestK57_LoginsOutOfOrder(t *testing.T) {
	b := newTestBroker(t, testOptions{door: Door{SASL: allMechanisms}})
	b.addUser("a", metadata.ScramSHA512)
	plainLogin := "\x00a\x00" + testPassword
	versions := withVersion(kmsg.NewPtrApiVersionsRequest(), 0)
	t.Run("any request first", func(t *testing.T) {
		for _, a := range served() {
			c := b.dial()
			req := withVersion(request(a.Key, "t", kafka.TopicID{}, b.newBatch("x")), a.Max)
			switch a.Name {
			case "ApiVersions", "SaslHandshake", "SaslAuthenticate":
				continue
			}
			c.send(req)
			c.closed()
		}
		if b.ownerOf("made-by-version-test") != "" {
			t.Error("a topic was made")
		}
	})
	t.Run("authenticate without a handshake", func(t *testing.T) {
		c := b.dial()
		if r := ask[*kmsg.SASLAuthenticateResponse](c, newAuthenticate(2, plainLogin)); r.ErrorCode != int16(kafka.IllegalSASLState) {
			t.Errorf("%d", r.ErrorCode)
		}
		c.closed()
	})
	t.Run("another request between handshake and login", func(t *testing.T) {
		c := b.dial()
		ask[*kmsg.ApiVersionsResponse](c, versions)
		ask[*kmsg.SASLHandshakeResponse](c, newHandshake(1, auth.Plain))
		c.send(versions)
		c.closed()
	})
	t.Run("two handshakes", func(t *testing.T) {
		c := b.dial()
		ask[*kmsg.SASLHandshakeResponse](c, newHandshake(1, auth.Plain))
		if r := ask[*kmsg.SASLHandshakeResponse](c, newHandshake(1, auth.Plain)); r.ErrorCode != int16(kafka.IllegalSASLState) {
			t.Errorf("%d", r.ErrorCode)
		}
		c.closed()
	})
}

// Sessions without an end take no second login, and what is sent behind a login is as good as the login (K57).
func TestK57_LoginsOutOfOrder_Later(t *testing.T) {
	b := newTestBroker(t, testOptions{door: Door{SASL: allMechanisms}})
	b.addUser("a", metadata.ScramSHA512)
	plainLogin := "\x00a\x00" + testPassword
	t.Run("a handshake in the session", func(t *testing.T) {
		c := b.dial()
		ask[*kmsg.SASLHandshakeResponse](c, newHandshake(1, auth.Plain))
		if r := ask[*kmsg.SASLAuthenticateResponse](c, newAuthenticate(2, plainLogin)); r.ErrorCode != 0 || r.SessionLifetimeMillis != 0 {
			t.Fatalf("%+v", r)
		}
		if r := ask[*kmsg.SASLHandshakeResponse](c, newHandshake(1, auth.Plain)); r.ErrorCode != int16(kafka.IllegalSASLState) {
			t.Errorf("%d", r.ErrorCode)
		}
		c.closed()
	})
	t.Run("a mechanism that is not offered", func(t *testing.T) {
		c := b.dial()
		r := ask[*kmsg.SASLHandshakeResponse](c, newHandshake(1, "GSSAPI"))
		if r.ErrorCode != int16(kafka.UnsupportedSASLMechanism) || strings.Join(r.SupportedMechanisms, " ") != strings.Join(allMechanisms, " ") {
			t.Errorf("%+v", r)
		}
		c.closed()
	})
	t.Run("a request sent behind a login that fails", func(t *testing.T) {
		c := b.dial()
		ask[*kmsg.SASLHandshakeResponse](c, newHandshake(1, auth.Plain))
		wrong := newAuthenticate(2, "\x00a\x00wrong")
		n := c.send(wrong, newCreate("behind", 1))
		if r := c.read(wrong, n).(*kmsg.SASLAuthenticateResponse); r.ErrorCode != int16(kafka.SASLAuthenticationFailed) {
			t.Errorf("%+v", r)
		}
		c.closed()
		if b.ownerOf("behind") != "" {
			t.Error("it was done")
		}
	})
}

// A stranger's frame is small (K4), and no message of a login is too strange to be refused by name (K56).
func TestK4_K56_StrangeMessages(t *testing.T) {
	b := newTestBroker(t, testOptions{door: Door{SASL: allMechanisms}})
	b.addUser("a", metadata.ScramSHA512)
	for mechanism, messages := range map[string][]string{
		auth.Scram512: {
			"", "n,,n=a", "n,,n=a,r=", "n,,r=x", "n,,m=ext,n=a,r=x", "y,,n=a,r=x,", "p=tls-unique,,n=a,r=x", "n,,n==2x,r=x", "n,a=b,n=a,r=x",
			"n,,n=" + strings.Repeat("u", 60<<10) + ",r=x", "\x00\xff\xfe", strings.Repeat("n,", 1000),
		},
		auth.Plain: {"", "a", "\x00a", "\x00a\x00", "\x00\x00x", "b\x00a\x00" + testPassword, "\x00a\x00x\x00y", strings.Repeat("\x00", 60<<10), "\x00" + strings.Repeat("u", 60<<10) + "\x00x"},
	} {
		for _, m := range messages {
			c := b.dial()
			ask[*kmsg.SASLHandshakeResponse](c, newHandshake(1, mechanism))
			r := ask[*kmsg.SASLAuthenticateResponse](c, newAuthenticate(2, m))
			if m == "n,a=b,n=a,r=x" && r.ErrorCode == 0 { // to act for another is refused with the proof, which only a's password makes
				r = ask[*kmsg.SASLAuthenticateResponse](c, newAuthenticate(2, "c=bixhPWIs,r=x,p=AAAA"))
			}
			if m == "y,,n=a,r=x," && r.ErrorCode == 0 {
				r = ask[*kmsg.SASLAuthenticateResponse](c, newAuthenticate(2, "c=!!,r=x,p=AAAA"))
			}
			if r.ErrorCode != int16(kafka.SASLAuthenticationFailed) {
				t.Errorf("%s %.60q: %d %s", mechanism, m, r.ErrorCode, str(r.ErrorMessage))
			}
			c.closed()
		}
	}
	c := b.dial()
	c.write(binary.BigEndian.AppendUint32(nil, strangerFrameMax+1))
	c.closed()
	if !strings.Contains(b.log.String(), "frame_size") {
		t.Error("a stranger's large frame is not named")
	}
}

// What is answered about a user who does not exist is what is answered about others: a salt, always the same, and the common number of iterations.
func TestR148_UnknownUsersLookAlike(t *testing.T) {
	b := newTestBroker(t, testOptions{door: Door{SASL: allMechanisms}})
	b.addUser("a", metadata.ScramSHA512)
	first := func(user string) (salt, iterations string) {
		c := b.dial()
		ask[*kmsg.SASLHandshakeResponse](c, newHandshake(1, auth.Scram512))
		r := ask[*kmsg.SASLAuthenticateResponse](c, newAuthenticate(2, "n,,n="+user+",r=nonce"))
		parts := strings.Split(string(r.SASLAuthBytes), ",")
		if r.ErrorCode != 0 || len(parts) != 3 {
			t.Fatalf("%s: %d %s", user, r.ErrorCode, r.SASLAuthBytes)
		}
		return parts[1], parts[2]
	}
	salt, iterations := first("a")
	ghost, ghosts := first("ghost")
	again, _ := first("ghost")
	other, _ := first("other")
	if ghosts != iterations || len(ghost) != len(salt) || ghost != again || ghost == other || ghost == salt {
		t.Errorf("a: %s %s, ghost: %s %s, again %s, other %s", salt, iterations, ghost, ghosts, again, other)
	}
}

// A session ends when the client does not prove itself anew, goes on when it does, and never with another user (KIP-368).
func TestR148_Reauthentication(t *testing.T) {
	b := newTestBroker(t, testOptions{door: Door{SASL: allMechanisms}, session: time.Hour})
	b.addUser("a", metadata.ScramSHA512)
	b.addUser("b", metadata.ScramSHA512)
	c := b.dial()
	login := func(user string) *kmsg.SASLAuthenticateResponse {
		ask[*kmsg.SASLHandshakeResponse](c, newHandshake(1, auth.Plain))
		return ask[*kmsg.SASLAuthenticateResponse](c, newAuthenticate(1, "\x00"+user+"\x00"+testPassword))
	}
	for i := range 3 {
		if r := login("a"); r.ErrorCode != 0 || r.SessionLifetimeMillis <= 0 || r.SessionLifetimeMillis > time.Hour.Milliseconds() {
			t.Fatalf("%+v", r)
		}
		c.create(fmt.Sprint("t", i), 1)
	}
	if r := login("b"); r.ErrorCode != int16(kafka.SASLAuthenticationFailed) || !strings.Contains(str(r.ErrorMessage), "goes on with the user") {
		t.Errorf("%+v", r)
	}
	c.closed()
}

// When a session ends by the clock, and when its proof is gone, the connection does (P42): the rule, without waiting.
func TestP42_WhatEndsASession(t *testing.T) {
	b := newTestBroker(t, testOptions{door: Door{SASL: allMechanisms}})
	b.addUser("a", metadata.ScramSHA512)
	l, err := b.auth.Begin(auth.Plain)
	must(t, err)
	_, id, err := l.Step(context.Background(), []byte("\x00a\x00"+testPassword))
	must(t, err)
	now := time.Now()
	g := b.server.newGuard(&Door{SASL: allMechanisms}, "h")
	metadataCall := func(at time.Time) *Call { return &Call{Request: kmsg.NewPtrMetadataRequest(), Received: at} }
	if no := g.admit(metadataCall(now)); no != reasonStranger {
		t.Errorf("a stranger: %q", no)
	}
	g.become(id, now.Add(time.Minute))
	for _, c := range []struct {
		at       time.Time
		reason   reason
		goesOn   bool
		whatever string
	}{
		{now, "", true, "at first"},
		{now.Add(59 * time.Second), "", true, "before the end"},
		{now.Add(61 * time.Second), reasonExpired, true, "behind the end, within the grace of idle clients"},
		{now.Add(time.Minute + expiredGrace + time.Second), reasonExpired, false, "behind the grace"},
	} {
		if no := g.admit(metadataCall(c.at)); no != c.reason || g.holds(c.at) != c.goesOn {
			t.Errorf("%s: %q, holds %v", c.whatever, no, g.holds(c.at))
		}
	}
	call := &Call{Request: newHandshake(1, auth.Plain), Received: now.Add(2 * time.Minute)}
	if no := g.admit(call); no != "" {
		t.Errorf("the handshake that lets the session go on: %q", no)
	}
	b.addUser("a", metadata.ScramSHA512) // the same password, another salt
	if g.holds(now) {
		t.Error("a changed password leaves the session open")
	}
}

// Removing a user ends its connections, whatever they wait for (P42).
func TestP42_RemovedUserIsDisconnected(t *testing.T) {
	b := newTestBroker(t, testOptions{door: Door{SASL: allMechanisms}})
	b.addUser("a", metadata.ScramSHA512)
	b.addUser("b", metadata.ScramSHA512)
	connect := func(user string) *testClient {
		c := b.dial()
		ask[*kmsg.SASLHandshakeResponse](c, newHandshake(1, auth.Plain))
		ask[*kmsg.SASLAuthenticateResponse](c, newAuthenticate(2, "\x00"+user+"\x00"+testPassword))
		return c
	}
	gone, stays := connect("a"), connect("b")
	gone.create("t", 1)
	poll := newFetch("t", 0, 0)
	poll.MinBytes, poll.MaxWaitMillis = 1, 60_000
	gone.send(poll)
	b.removeUser("a", metadata.ScramSHA512)
	gone.closed()
	ask[*kmsg.MetadataResponse](stays, newMetadata(12))
}

// The messages of a login that SaslHandshake v0 has begun come without headers.
func TestR148_OldHandshake(t *testing.T) {
	b := newTestBroker(t, testOptions{door: Door{SASL: allMechanisms}})
	b.addUser("a", metadata.ScramSHA512)
	raw := func(c *testClient, message string) {
		c.write(append(binary.BigEndian.AppendUint32(nil, uint32(len(message))), message...))
	}
	c := b.dial()
	ask[*kmsg.SASLHandshakeResponse](c, newHandshake(0, auth.Plain))
	raw(c, "\x00a\x00"+testPassword)
	size := make([]byte, 4)
	if _, err := io.ReadFull(c.conn, size); err != nil || binary.BigEndian.Uint32(size) != 0 {
		t.Fatalf("%v %v", size, err)
	}
	c.create("by-old-client", 1)
	if got := b.ownerOf("by-old-client"); got != "User:a" {
		t.Error(got)
	}
	c = b.dial()
	ask[*kmsg.SASLHandshakeResponse](c, newHandshake(0, auth.Plain))
	raw(c, "\x00a\x00wrong")
	c.closed()
}

// testIdentity is a server's certificate of an authority.
func testIdentity(t *testing.T, ca *certstest.Authority) *certs.Source {
	s, err := certs.Hold(ca.Issue(certstest.Wanted{Name: "server", Hosts: []string{"127.0.0.1"}}), nil)
	must(t, err)
	return s
}

func clientTLS(ca *certstest.Authority, own *certs.PEM) *tls.Config {
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(ca.PEM())
	c := &tls.Config{RootCAs: pool}
	if own != nil {
		pair, err := tls.X509KeyPair(own.Cert, own.Key)
		orPanic(err)
		c.Certificates = []tls.Certificate{pair}
	}
	return c
}

// A TLS listener serves TLS 1.2 and 1.3 and nothing else, and says to a client without TLS what is wrong (R147, K7).
func TestR147_K7_TLSListener(t *testing.T) {
	ca := certstest.NewAuthority(t, "ca")
	b := newTestBroker(t, testOptions{door: Door{TLS: auth.ServerTLS(testIdentity(t, ca), tls.NoClientCert)}})
	for version, ok := range map[uint16]bool{tls.VersionTLS10: false, tls.VersionTLS11: false, tls.VersionTLS12: true, tls.VersionTLS13: true} {
		c := clientTLS(ca, nil)
		c.MinVersion, c.MaxVersion = version, version
		if err := b.login(fmt.Sprintf("v%x", version), kgo.DialTLSConfig(c)); (err == nil) != ok {
			t.Errorf("%s: %v", tls.VersionName(version), err)
		}
	}
	if err := b.login("other-ca", kgo.DialTLSConfig(clientTLS(certstest.NewAuthority(t, "other"), nil))); err == nil {
		t.Error("a client takes the certificate of another CA")
	}
	c := b.dial()
	c.send(withVersion(kmsg.NewPtrApiVersionsRequest(), 0))
	c.closed()
	if log := b.log.String(); !strings.Contains(log, "reason=plaintext") || !strings.Contains(log, "set security.protocol=SSL") {
		t.Errorf("the log does not name a client without TLS: %s", log)
	}
}

// A client's certificate says who it is, by the rules; without one, or with one of another CA, nobody is served (R148).
func TestR148_ClientCertificates(t *testing.T) {
	ca := certstest.NewAuthority(t, "ca")
	source := testIdentity(t, ca)
	names, err := auth.ParseNameRules(`RULE:^CN=svc-(.*)$/$1/U,DEFAULT`)
	must(t, err)
	b := newTestBroker(t, testOptions{door: Door{TLS: auth.ServerTLS(source, tls.RequireAndVerifyClientCert), Names: names}})
	for name, want := range map[string]string{"svc-orders": "User:ORDERS", "alice": "User:CN=alice"} {
		own := ca.Issue(certstest.Wanted{Name: name, Uses: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
		if err := b.login("of-"+name, kgo.DialTLSConfig(clientTLS(ca, &own))); err != nil || b.ownerOf("of-"+name) != want {
			t.Errorf("%s: %v, owner %q", name, err, b.ownerOf("of-"+name))
		}
	}
	other := certstest.NewAuthority(t, "other").Issue(certstest.Wanted{Name: "alice"})
	late := ca.Issue(certstest.Wanted{Name: "late", From: time.Now().Add(-2 * time.Hour), Until: time.Now().Add(-time.Hour)})
	serving := ca.Issue(certstest.Wanted{Name: "a server", Uses: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}})
	early := ca.Issue(certstest.Wanted{Name: "early", From: time.Now().Add(time.Hour), Until: time.Now().Add(2 * time.Hour)})
	for why, own := range map[string]*certs.PEM{"none": nil, "one of tomorrow": &early, "another CA's": &other, "an expired one": &late, "a server's": &serving} {
		if err := b.login("refused", kgo.DialTLSConfig(clientTLS(ca, own))); err == nil {
			t.Errorf("%s is served", why)
		}
	}
	next := ca.Issue(certstest.Wanted{Name: "the next server", Hosts: []string{"127.0.0.1"}})
	must(t, source.Replace(next))
	own := ca.Issue(certstest.Wanted{Name: "alice"})
	conn, err := tls.Dial("tcp", b.addr, clientTLS(ca, &own))
	must(t, err)
	defer conn.Close()
	if got := conn.ConnectionState().PeerCertificates[0].Subject.CommonName; got != "the next server" {
		t.Errorf("after a replacement %q is shown", got)
	}
}
