package server

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/binary"
	"io"
	"net"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/xdg-go/scram"

	"strandline.dev/internal/audit"
	"strandline.dev/internal/auth"
	"strandline.dev/internal/auth/certs/certstest"
	"strandline.dev/internal/kafka"
	"strandline.dev/internal/metadata"
	"strandline.dev/internal/wire"
)

// secretText is what a record holds whose topic nobody but its owner may read.
const secretText = "the-secret-of-the-topic"

// Security test 2 (C106): a topic that a rule denies is denied through every door, though another rule allows everything everywhere: by its name, by
// its id, as a replica would fetch it, by a regular expression, by commits of a group, by the looks of its log, by its offsets. What is answered
// holds nothing of its records.
func TestSecurity2_SameDataOtherDoor(t *testing.T) {
	b := newGuardedBroker(t, "user")
	super, user := b.loggedInAs("super"), b.loggedInAs("user")
	id := super.create("t", 1)
	findCoordinator(super)
	super.publish(newProduce("t", 0, b.newBatch(secretText)))
	const allow, deny = kmsg.ACLPermissionTypeAllow, kmsg.ACLPermissionTypeDeny
	b.setACLs(right(t, "user", "All:Topic", "*", allow), right(t, "user", "All:Group", "*", allow), right(t, "user", "All:Topic", "t", deny))
	byID, byNameOld, asReplica := newFetch("t", 0, 0), newFetch("t", 0, 0), newFetch("t", 0, 0)
	byID.Topics[0].TopicID = id
	byNameOld.Version = 12
	asReplica.Version, asReplica.ReplicaID = 12, 1
	offsets := func(at int64) kmsg.Request {
		r := request(wire.KeyListOffsets, "t", id, nil).(*kmsg.ListOffsetsRequest)
		r.Topics[0].Partitions[0].Timestamp = at
		return withVersion(r, 7)
	}
	commitByID := withVersion(newCommit("t", id, 0), 10)
	for door, req := range map[string]kmsg.Request{
		"fetch by name": byNameOld, "fetch by id": byID, "fetch as a replica": asReplica,
		"earliest offset": offsets(-2), "latest offset": offsets(-1), "offset by time": offsets(1),
		"epochs": withVersion(request(wire.KeyOffsetForLeaderEpoch, "t", id, nil), 4), "producers": request(wire.KeyDescribeProducers, "t", id, nil),
		"commit": newCommit("t", id, 0), "commit by id": commitByID, "offsets of a group": newOffsetFetch("t", id),
		"metadata by id": metadataByID(id),
	} {
		resp := ask[kmsg.Response](user, req)
		codes := errorCodes(reflect.ValueOf(resp))
		if !deniedIn(codes) && !slices.Contains(codes, kafka.UnknownTopicID) {
			t.Errorf("%s: %v", door, codes)
		}
		if text := resp.AppendTo(nil); bytes.Contains(text, []byte(secretText)) {
			t.Errorf("%s hands out the record", door)
		}
	}
}

func metadataByID(id kafka.TopicID) kmsg.Request {
	r := newMetadata(12)
	one := kmsg.NewMetadataRequestTopic()
	one.TopicID = id
	r.Topics = []kmsg.MetadataRequestTopic{one}
	return r
}

// A member reads by a regular expression what it may see, and follows the rules as they change (C106, R149).
func TestC106_RegularExpressionsMatchWhatMayBeSeen(t *testing.T) {
	b := newGuardedBroker(t, "user")
	super, user := b.loggedInAs("super"), b.loggedInAs("user")
	super.create("open", 1)
	super.create("closed", 1)
	findCoordinator(super)
	const allow, deny = kmsg.ACLPermissionTypeAllow, kmsg.ACLPermissionTypeDeny
	group := right(t, "user", "All:Group", "*", allow)
	all, not := right(t, "user", "Read:Topic", "*", allow), right(t, "user", "Describe:Topic", "closed", deny)
	b.setACLs(group, all, not)
	join := newConsumerHeartbeat("m", 0)
	join.SubscribedTopicNames, join.SubscribedTopicRegex = nil, kmsg.StringPtr(".*")
	beat := func(r *kmsg.ConsumerGroupHeartbeatRequest) (epoch int32, topics []string) {
		t.Helper()
		resp := ask[*kmsg.ConsumerGroupHeartbeatResponse](user, r)
		if resp.ErrorCode != 0 {
			t.Fatal(kafka.ErrorCode(resp.ErrorCode))
		}
		if resp.Assignment != nil {
			for _, at := range resp.Assignment.Topics {
				topics = append(topics, b.quorum.Image().TopicByID(at.TopicID).Name)
			}
		}
		return resp.MemberEpoch, topics
	}
	epoch, topics := beat(join)
	if !slices.Equal(topics, []string{"open"}) {
		t.Fatalf("it is to read %v", topics)
	}
	b.setACLs(group, all)
	epoch, topics = beat(newConsumerHeartbeat("m", epoch))
	if slices.Sort(topics); !slices.Equal(topics, []string{"closed", "open"}) {
		t.Fatalf("with the right: %v", topics)
	}
	b.setACLs(group, all, not)
	if _, topics = beat(newConsumerHeartbeat("m", epoch)); !slices.Equal(topics, []string{"open"}) {
		t.Errorf("without it again: %v", topics)
	}
}

// The trail is nobody's to write or delete, not even a super user's (security test 10, P45).
func TestSecurity10_TheTrailIsNobodysToWrite(t *testing.T) {
	b := newGuardedBroker(t)
	super := b.loggedInAs("super")
	_, _, err := b.control.Controller.Submit(t.Context(), metadata.CreateTopics{Topics: []metadata.NewTopic{
		{Name: audit.TopicName, Partitions: 1, ReplicationFactor: 1, Internal: true},
	}})
	must(t, err)
	eventually(t, "the trail is led", func() bool {
		return ask[*kmsg.FetchResponse](super, byOldName(newFetch(audit.TopicName, 0, 0))).Topics[0].Partitions[0].ErrorCode == 0
	})
	for _, req := range []kmsg.Request{
		newProduce(audit.TopicName, 0, b.newBatch("forged")), newCreate(audit.TopicName, 1),
		request(wire.KeyDeleteTopics, audit.TopicName, kafka.TopicID{}, nil), newDeleteRecords(audit.TopicName, 0, 1),
	} {
		codes := errorCodes(reflect.ValueOf(ask[kmsg.Response](super, req)))
		if !slices.ContainsFunc(codes, func(c kafka.ErrorCode) bool { return c != kafka.None }) {
			t.Errorf("%T is done: %v", req, codes)
		}
	}
}

// byOldName fetches by name.
func byOldName(r *kmsg.FetchRequest) *kmsg.FetchRequest { r.Version = 12; return r }

// Security test 3: below TLS 1.2, with weak suites, or with an SSLv2 hello nobody gets in, a connection is not renegotiated, and what a client offers is
// not weakened: what is not offered is refused by name. A listener that takes passwords in the clear is refused by the configuration (TestC108).
func TestSecurity3_Downgrade(t *testing.T) {
	ca := certstest.NewAuthority(t, "ca")
	b := newTestBroker(t, testOptions{door: Door{TLS: auth.ServerTLS(testIdentity(t, ca), tls.NoClientCert), SASL: []string{auth.Scram512}}})
	b.addUser("a", metadata.ScramSHA512)
	for name, change := range map[string]func(*tls.Config){
		"TLS 1.0":   func(c *tls.Config) { c.MinVersion, c.MaxVersion = tls.VersionTLS10, tls.VersionTLS10 },
		"TLS 1.1":   func(c *tls.Config) { c.MinVersion, c.MaxVersion = tls.VersionTLS11, tls.VersionTLS11 },
		"RC4, 3DES": func(c *tls.Config) { c.MaxVersion, c.CipherSuites = tls.VersionTLS12, insecureSuites() },
	} {
		c := clientTLS(ca, nil)
		change(c)
		if conn, err := tls.Dial("tcp", b.addr, c); err == nil {
			t.Errorf("%s: %s", name, tls.CipherSuiteName(conn.ConnectionState().CipherSuite))
			_ = conn.Close()
		}
	}
	sslv2 := b.dial()
	sslv2.write([]byte{0x80, 0x2e, 0x01, 0x00, 0x02, 0x00, 0x15, 0x00, 0x00, 0x00, 0x10, 0x01, 0x00, 0x80})
	sslv2.write(make([]byte, 34))
	must(t, sslv2.conn.SetReadDeadline(time.Now().Add(20*time.Second)))
	if alert, err := io.ReadAll(sslv2.conn); err != nil || len(alert) > 64 {
		t.Errorf("an SSLv2 hello is answered with %x, %v", alert, err)
	}
	conn, err := tls.Dial("tcp", b.addr, clientTLS(ca, nil))
	must(t, err)
	c := &testClient{t: t, conn: conn}
	defer conn.Close()
	if r := ask[*kmsg.SASLHandshakeResponse](c, newHandshake(1, auth.Plain)); r.ErrorCode != int16(kafka.UnsupportedSASLMechanism) || len(r.SupportedMechanisms) != 1 {
		t.Errorf("PLAIN where it is not offered: %+v", r)
	}
	if conn.ConnectionState().Version != tls.VersionTLS13 {
		t.Errorf("version %x", conn.ConnectionState().Version)
	}
}

// insecureSuites are those that the standard library calls so.
func insecureSuites() (ids []uint16) {
	for _, s := range tls.InsecureCipherSuites() {
		ids = append(ids, s.ID)
	}
	return ids
}

// Security test 5: a proof that was seen is of no use in another login, nor is a request that was seen on another connection.
func TestSecurity5_Replay(t *testing.T) {
	b := newTestBroker(t, testOptions{door: Door{SASL: []string{auth.Scram512}}})
	b.addUser("a", metadata.ScramSHA512)
	client, err := scram.SHA512.NewClient("a", testPassword, "")
	must(t, err)
	step := func(c *testClient, message string) *kmsg.SASLAuthenticateResponse {
		return ask[*kmsg.SASLAuthenticateResponse](c, newAuthenticate(2, message))
	}
	conversation := client.NewConversation()
	first, err := conversation.Step("")
	must(t, err)
	c := b.dial()
	ask[*kmsg.SASLHandshakeResponse](c, newHandshake(1, auth.Scram512))
	final, err := conversation.Step(string(step(c, first).SASLAuthBytes))
	must(t, err)
	if r := step(c, final); r.ErrorCode != 0 {
		t.Fatalf("the login itself: %+v", r)
	}
	replayed := b.dial()
	ask[*kmsg.SASLHandshakeResponse](replayed, newHandshake(1, auth.Scram512))
	step(replayed, first)
	if r := step(replayed, final); r.ErrorCode != int16(kafka.SASLAuthenticationFailed) {
		t.Errorf("the proof of another login: %+v", r)
	}
	replayed.closed()
	captured := newProduce("t", 0, b.newBatch("again"))
	c.create("t", 1)
	c.publish(captured)
	stranger := b.dial()
	stranger.send(captured)
	stranger.closed()
	if got := values(t, ask[*kmsg.FetchResponse](c, newFetch("t", 0, 0)).Topics[0].Partitions[0].RecordBatches); len(got) != 1 {
		t.Errorf("the log has %v", got)
	}
}

// Security test 5: who fails holds up nobody: while strangers fail one login after the other, another one gets in.
func TestSecurity5_FailuresHoldUpNobody(t *testing.T) {
	b := newTestBroker(t, testOptions{door: Door{SASL: allMechanisms}})
	b.addUser("a", metadata.ScramSHA512)
	stop, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
				failLogin(b.addr)
			}
		}
	}()
	defer func() { close(stop); <-ended }()
	eventually(t, "logins fail", func() bool { return b.value("strandline_auth_failures_total") > 3 })
	for range 3 {
		b.loggedInAs("a").conn.Close()
	}
}

// Security test 5: a connection is good for one guess, and its answer comes after a pause.
func TestSecurity5_OneGuessForAConnection(t *testing.T) {
	b := newTestBroker(t, testOptions{door: Door{SASL: allMechanisms}})
	b.addUser("a", metadata.ScramSHA512)
	for _, guess := range []string{"\x00a\x00wrong", "\x00nobody\x00wrong", "\x00a\x00", ""} {
		c := b.dial()
		ask[*kmsg.SASLHandshakeResponse](c, newHandshake(1, auth.Plain))
		began := time.Now()
		wrong, right := newAuthenticate(2, guess), newAuthenticate(2, "\x00a\x00"+testPassword)
		n := c.send(wrong, newHandshake(1, auth.Plain), right)
		if r := c.read(wrong, n).(*kmsg.SASLAuthenticateResponse); r.ErrorCode != int16(kafka.SASLAuthenticationFailed) {
			t.Errorf("%q: %+v", guess, r)
		}
		if took := time.Since(began); took < loginFailedDelay {
			t.Errorf("%q is answered after %v", guess, took)
		}
		c.closed()
	}
}

// failLogin tries a wrong password, whatever comes of it.
func failLogin(address string) {
	conn, err := net.DialTimeout("tcp", address, 5*time.Second)
	if err != nil {
		return
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(5 * time.Second))
	f := kmsg.NewRequestFormatter()
	for i, req := range []kmsg.Request{newHandshake(1, auth.Plain), newAuthenticate(1, "\x00a\x00wrong")} {
		size := make([]byte, 4)
		if _, err := conn.Write(f.AppendRequest(nil, req, int32(i))); err != nil {
			return
		}
		if _, err := io.ReadFull(conn, size); err != nil {
			return
		}
		if _, err := io.CopyN(io.Discard, conn, int64(binary.BigEndian.Uint32(size))); err != nil {
			return
		}
	}
}

// A PROXY header, which nobody here understands, ends the connection (K64).
func TestK64_ProxyHeader(t *testing.T) {
	b := newTestBroker(t, testOptions{})
	for _, header := range []string{"PROXY TCP4 10.0.0.1 10.0.0.2 1 2\r\n", "\r\n\r\n\x00\r\nQUIT\n\x21\x11\x00\x0c"} {
		c := b.dial()
		c.write([]byte(header))
		c.closed()
	}
	if got := b.dial(); ask[*kmsg.ApiVersionsResponse](got, withVersion(kmsg.NewPtrApiVersionsRequest(), 0)).ErrorCode != 0 {
		t.Error("the next one is not served")
	}
}

// A batch that says it is transactional is refused by what is in it, whatever the request's header says (C100).
func TestC100_TransactionalBatchWithoutATransaction(t *testing.T) {
	b := newGuardedBroker(t, "user")
	super, user := b.loggedInAs("super"), b.loggedInAs("user")
	super.create("t", 1)
	b.setACLs(right(t, "user", "Write:Topic", "t", kmsg.ACLPermissionTypeAllow))
	if p := user.publish(newProduce("t", 0, b.transactional())); p.ErrorCode == 0 {
		t.Error("it is stored")
	}
	if got := ask[*kmsg.FetchResponse](super, newFetch("t", 0, 0)).Topics[0].Partitions[0]; len(got.RecordBatches) != 0 || got.HighWatermark != 0 {
		t.Errorf("%+v", got)
	}
}

// A client that fetches as a replica is refused, and moves no watermark (C098).
func TestC098_AClientIsNoReplica(t *testing.T) {
	b := newGuardedBroker(t, "user")
	super, user := b.loggedInAs("super"), b.loggedInAs("user")
	super.create("t", 1)
	b.setACLs(right(t, "user", "All:Topic", "*", kmsg.ACLPermissionTypeAllow))
	r := newFetch("t", 0, 100)
	r.Version, r.ReplicaID = 12, 1
	resp := ask[*kmsg.FetchResponse](user, r)
	if codes := errorCodes(reflect.ValueOf(resp)); !slices.Contains(codes, kafka.ClusterAuthorizationFailed) {
		t.Errorf("%v", codes)
	}
	if s := b.status("t", 0); s.HW != 0 {
		t.Errorf("%+v", s)
	}
}

// Texts that other brokers' clients have taken for addresses and files are values like any other: no setting takes one (C113).
func TestC113_NoSettingTakesAnAddress(t *testing.T) {
	b := newTestBroker(t, testOptions{})
	c := b.dial()
	c.create("t", 1)
	for _, name := range []string{"sasl.oauthbearer.token.endpoint.url", "sasl.oauthbearer.jwks.endpoint.url", "ssl.keystore.location", "log.dirs", "metric.reporters", "interceptor.classes"} {
		for _, resource := range []kmsg.ConfigResourceType{kmsg.ConfigResourceTypeTopic, kmsg.ConfigResourceTypeBroker} {
			r := kmsg.NewPtrIncrementalAlterConfigsRequest()
			one := kmsg.NewIncrementalAlterConfigsRequestResource()
			one.ResourceType, one.ResourceName = resource, map[bool]string{true: "t", false: "1"}[resource == kmsg.ConfigResourceTypeTopic]
			config := kmsg.NewIncrementalAlterConfigsRequestResourceConfig()
			config.Name, config.Value = name, kmsg.StringPtr("file:///etc/passwd")
			one.Configs = append(one.Configs, config)
			r.Resources = append(r.Resources, one)
			if got := ask[*kmsg.IncrementalAlterConfigsResponse](c, r).Resources[0]; got.ErrorCode != int16(kafka.InvalidConfig) {
				t.Errorf("%s: %v", name, kafka.ErrorCode(got.ErrorCode))
			}
		}
	}
}

// A replaced certificate is shown to the next client at once, ten times over while clients come, and none fails (C112).
func TestC112_CertificatesRotateUnderLoad(t *testing.T) {
	ca := certstest.NewAuthority(t, "ca")
	source := testIdentity(t, ca)
	b := newTestBroker(t, testOptions{door: Door{TLS: auth.ServerTLS(source, tls.NoClientCert)}})
	ctx, stop := context.WithCancel(t.Context())
	failed, ended := make(chan error, 1), make(chan struct{})
	go func() {
		defer close(ended)
		for ctx.Err() == nil {
			conn, err := tls.Dial("tcp", b.addr, clientTLS(ca, nil))
			if err != nil {
				failed <- err
				return
			}
			_ = conn.Close()
		}
	}()
	for i := range 10 {
		want := certstest.Wanted{Name: "server " + kafka.NodeID(i).String(), Hosts: []string{"127.0.0.1"}}
		must(t, source.Replace(ca.Issue(want)))
		conn, err := tls.Dial("tcp", b.addr, clientTLS(ca, nil))
		must(t, err)
		if got := conn.ConnectionState().PeerCertificates[0].Subject.CommonName; got != want.Name {
			t.Errorf("after change %d: %s", i, got)
		}
		_ = conn.Close()
	}
	stop()
	<-ended
	select {
	case err := <-failed:
		t.Error(err)
	default:
	}
}
