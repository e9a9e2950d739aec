package server

import (
	"bytes"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/metadata"
	"strandline.dev/internal/quota"
)

// dialAs is a client with a client id.
func (b *testBroker) dialAs(id string) *testClient {
	c := b.dial()
	c.id = id
	return c
}

// newBulk is a publish of about size bytes to t-0.
func (b *testBroker) newBulk(size int, acks int16) *kmsg.ProduceRequest {
	p := newProduce("t", 0, b.newBatch(string(bytes.Repeat([]byte("x"), size))))
	p.Acks = acks
	return p
}

// A publish over the quota is stored, and its answer says at once for how long to wait; the connection is not read for that long. Other clients of
// the node notice nothing (R28, R125). Only lower bounds of times are asserted, which no slow machine can break.
func TestR28_R125_PublishOverQuota(t *testing.T) {
	b := newTestBroker(t, testOptions{})
	admin, slow, other := b.dialAs("admin"), b.dialAs("slow"), b.dialAs("other")
	admin.create("t", 1)
	setQuota(admin, "client-id", "slow", "producer_byte_rate", 20_000)
	start := time.Now()
	resp := ask[*kmsg.ProduceResponse](slow, b.newBulk(30_000, -1)) // 20,000 at once, 10,000 owed
	if p := resp.Topics[0].Partitions[0]; p.ErrorCode != 0 || p.BaseOffset != 0 {
		t.Fatalf("%+v", p)
	}
	if most := time.Duration(resp.ThrottleMillis)*time.Millisecond + time.Since(start); resp.ThrottleMillis > 600 || most < 500*time.Millisecond {
		t.Errorf("told to wait %d ms, until %v after it was sent; want some 500 ms", resp.ThrottleMillis, most)
	}
	if r := ask[*kmsg.ProduceResponse](other, b.newBulk(30_000, -1)); r.ThrottleMillis != 0 || r.Topics[0].Partitions[0].ErrorCode != 0 {
		t.Errorf("another client: %+v", r)
	}
	if r := ask[*kmsg.MetadataResponse](slow, newMetadata(12)); r.ThrottleMillis != 0 {
		t.Errorf("who has waited is told to wait %d ms", r.ThrottleMillis)
	}
	if took := time.Since(start); took < 500*time.Millisecond {
		t.Errorf("the next request was answered after %v", took)
	}
	if got := b.value(`strandline_throttled_total{quota="producer_byte_rate"}`); got != 1 {
		t.Errorf("%v requests counted as throttled", got)
	}
}

// Requests that a client has sent without waiting are taken one by one, as the quota allows; so are publishes that want no answer.
func TestR125_NobodySkipsTheWait(t *testing.T) {
	b := newTestBroker(t, testOptions{})
	admin := b.dialAs("admin")
	admin.create("t", 1)
	setQuota(admin, "client-id", defaultName, "producer_byte_rate", 40_000)
	for _, acks := range []int16{-1, 1, 0} {
		c := b.dialAs(fmt.Sprint("acks ", acks))
		start := time.Now()
		p, m := b.newBulk(20_000, acks), newMetadata(12)
		n := c.send(p, p, p, p, m) // 40,000 at once, then 0.5 s for each
		for i := range int32(4) {
			if acks != 0 {
				c.read(p, n+i)
			}
		}
		c.read(m, n+4)
		if took := time.Since(start); took < 900*time.Millisecond { // the last one is read when the third is paid for, the metadata when the fourth is
			t.Errorf("acks %d: all answered after %v", acks, took)
		}
	}
}

// A fetch takes no more than the quota allows at once. Another connection of the client that comes while something is owed gets nothing yet, and keeps
// its session (R125).
func TestR125_FetchOverQuota(t *testing.T) {
	b := newTestBroker(t, testOptions{})
	admin, c, second := b.dialAs("admin"), b.dialAs("reader"), b.dialAs("reader")
	id := admin.create("t", 1)
	for range 10 {
		admin.publish(b.newBulk(5000, -1))
	}
	newSession := func(c *testClient) *kmsg.FetchRequest {
		f := newFetch("t", 0, 10) // the end
		f.Topics[0].TopicID = id
		f.SessionID, f.SessionEpoch, f.MaxWaitMillis = 0, 0, 0
		f.SessionID = ask[*kmsg.FetchResponse](c, f).SessionID
		if f.SessionEpoch = 1; f.SessionID == 0 {
			t.Fatal("no session")
		}
		f.Topics[0].Partitions[0].FetchOffset = 0
		return f
	}
	fetch := newSession(second)
	setQuota(admin, "client-id", "reader", "consumer_byte_rate", 12_000)
	whole := newFetch("t", 0, 0)
	whole.Topics[0].TopicID = id
	resp := ask[*kmsg.FetchResponse](c, whole)
	if got := len(values(t, resp.Topics[0].Partitions[0].RecordBatches)); got < 1 || got > 3 {
		t.Errorf("%d records of 5000 bytes at once, by a quota of 12,000", got)
	}
	// The owed part is small, so more is taken until something is owed.
	for resp.ThrottleMillis == 0 {
		resp = ask[*kmsg.FetchResponse](c, whole)
	}
	setQuota(admin, "client-id", "reader", "consumer_byte_rate", 10) // what is owed is owed for minutes
	empty := ask[*kmsg.FetchResponse](second, fetch)
	if empty.ErrorCode != 0 || empty.SessionID != fetch.SessionID || empty.ThrottleMillis <= 0 || len(empty.Topics) != 0 {
		t.Errorf("while something is owed: %+v", empty)
	}
	fetch.SessionEpoch = 2
	setQuota(admin, "client-id", "reader", "consumer_byte_rate", 1e9)
	for {
		r := ask[*kmsg.FetchResponse](second, fetch) // the session goes on where it was
		if r.ErrorCode != 0 || r.SessionID != fetch.SessionID {
			t.Fatalf("%+v", r)
		}
		if len(r.Topics) > 0 && len(values(t, r.Topics[0].Partitions[0].RecordBatches)) > 0 {
			break
		}
		fetch.SessionEpoch++
	}
}

// A client that owes time gets a poll that is parked answered when there is something, and pays for it then.
func TestR125_ParkedFetchIsCounted(t *testing.T) {
	b := newTestBroker(t, testOptions{})
	admin, c := b.dialAs("admin"), b.dialAs("reader")
	id := admin.create("t", 1)
	setQuota(admin, "client-id", "reader", "consumer_byte_rate", 1000)
	poll := newFetch("t", 0, 0)
	poll.Topics[0].TopicID = id
	poll.MinBytes, poll.MaxWaitMillis = 1, 20_000
	n := c.send(poll)
	eventually(t, "the poll is parked", func() bool { return b.spy.parks.Load() > 0 })
	admin.publish(b.newBulk(1500, -1))
	r := c.read(poll, n).(*kmsg.FetchResponse)
	if len(r.Topics) != 1 || len(r.Topics[0].Partitions[0].RecordBatches) == 0 || r.ThrottleMillis <= 0 {
		t.Errorf("%+v", r)
	}
}

// Denied requests count: who floods the node with them is throttled, others are not (C095, KAFKA-18764).
func TestC095_DeniedRequestsAreThrottled(t *testing.T) {
	b := newGuardedBroker(t, "user", "good")
	super := b.loggedInAs("super")
	super.create("t", 1)
	b.setACLs(right(t, "good", "Write:Topic", "t", kmsg.ACLPermissionTypeAllow))
	setQuota(super, "user", "user", "request_percentage", 0.001)
	flooder := b.loggedInAs("user")
	throttled := false
	for range 100 {
		resp := ask[*kmsg.ProduceResponse](flooder, b.newBulk(10, -1))
		if code := kafka.ErrorCode(resp.Topics[0].Partitions[0].ErrorCode); code != kafka.TopicAuthorizationFailed {
			t.Fatal(code)
		}
		if throttled = resp.ThrottleMillis > 0; throttled {
			break
		}
	}
	if !throttled {
		t.Error("a flood of denied requests is not throttled")
	}
	if r := ask[*kmsg.ProduceResponse](b.loggedInAs("good"), b.newBulk(10, -1)); r.ThrottleMillis != 0 || r.Topics[0].Partitions[0].ErrorCode != 0 {
		t.Errorf("another user: %+v", r)
	}
}

// Every answer that has a place for it carries the wait, whatever the request (R28).
func TestR28_EveryAnswerCarriesTheWait(t *testing.T) {
	b := newTestBroker(t, testOptions{})
	admin := b.dialAs("admin")
	id := admin.create("versions", 1)
	findCoordinator(admin)
	setQuota(admin, "client-id", "slow", "request_percentage", 1e-7)
	for _, a := range served() {
		req := withVersion(fullRequest(a.Key, id, b), a.Max)
		if p, ok := req.(*kmsg.ProduceRequest); ok {
			p.TimeoutMillis = 1000
		}
		resp := ask[kmsg.Response](b.dialAs("slow"), req)
		has, ok := resp.(kmsg.ThrottleResponse)
		if !ok || a.Name == "SaslHandshake" || a.Name == "SaslAuthenticate" {
			continue
		}
		if wait, _ := has.Throttle(); wait <= 0 {
			t.Errorf("%s v%d does not tell to wait: %+v", a.Name, a.Max, resp)
		}
	}
}

// A client that is muted by a quota that was far too small goes on when the quota has been raised.
func TestR125_ARaisedQuotaFrees(t *testing.T) {
	b := newTestBroker(t, testOptions{})
	admin, c := b.dialAs("admin"), b.dialAs("app")
	admin.create("t", 1)
	setQuota(admin, "user", "ANONYMOUS", "producer_byte_rate", 1)
	resp := ask[*kmsg.ProduceResponse](c, b.newBulk(10_000, -1))
	if want := int32(quota.WaitMax / time.Millisecond); resp.ThrottleMillis < want-60_000 || resp.ThrottleMillis > want {
		t.Errorf("told to wait %d ms, want the most, %d", resp.ThrottleMillis, want)
	}
	n := c.send(newMetadata(12))
	setQuota(admin, "user", "ANONYMOUS", "producer_byte_rate", 1e9)
	c.read(newMetadata(12), n)
}

// What a muted client has sent stays in its socket: however much it pushes, it holds none of the node's memory, and others publish (R126).
func TestR126_MutedClientsHoldNoMemory(t *testing.T) {
	b := newTestBroker(t, testOptions{})
	admin := b.dialAs("admin")
	admin.create("t", 1)
	setQuota(admin, "client-id", "flood", "producer_byte_rate", 1000)
	const connections, size = 20, 100_000
	for range connections {
		c := b.dialAs("flood")
		p := b.newBulk(size, -1)
		n := c.send(p, p, p) // as much as a socket takes without anybody reading
		if r := c.read(p, n).(*kmsg.ProduceResponse); r.ThrottleMillis <= 0 {
			t.Fatalf("%+v", r)
		}
	}
	if used := b.server.budget.Used() + b.server.small.Used(); used != 0 {
		t.Errorf("requests of muted clients hold %d bytes", used)
	}
	if r := ask[*kmsg.ProduceResponse](admin, b.newBulk(size, -1)); r.ThrottleMillis != 0 || r.Topics[0].Partitions[0].BaseOffset != connections {
		t.Errorf("another client: %+v", r.Topics[0].Partitions[0])
	}
}

// Partitions that are made count: who owes is refused by a name that clients know, and nothing is made; one that does not know it is served.
func TestControllerMutations(t *testing.T) {
	b := newTestBroker(t, testOptions{})
	admin := b.dialAs("admin")
	setQuota(admin, "client-id", "maker", "controller_mutation_rate", 0.01)
	made := ask[*kmsg.CreateTopicsResponse](b.dialAs("maker"), newCreate("one", 3))
	if made.Topics[0].ErrorCode != 0 || made.ThrottleMillis <= 0 {
		t.Errorf("the first: %+v", made)
	}
	del := kmsg.NewPtrDeleteTopicsRequest()
	del.Version, del.TopicNames = 5, []string{"one"}
	grow := kmsg.NewPtrCreatePartitionsRequest()
	grow.Version = 3
	one := kmsg.NewCreatePartitionsRequestTopic()
	one.Topic, one.Count = "one", 5
	grow.Topics = append(grow.Topics, one)
	for _, req := range []kmsg.Request{withVersion(newCreate("two", 1), 7), del, grow} {
		resp := ask[kmsg.Response](b.dialAs("maker"), req)
		codes := errorCodes(reflect.ValueOf(resp))
		if wait, _ := resp.(kmsg.ThrottleResponse).Throttle(); !slices.Contains(codes, kafka.ThrottlingQuotaExceeded) || wait <= 0 {
			t.Errorf("%T: %v, %d ms", req, codes, wait)
		}
	}
	if img := b.quorum.Image(); img.Topic("two") != nil || img.Topic("one") == nil || len(img.Topic("one").Partitions) != 3 {
		t.Error("what was refused was done")
	}
	old := ask[*kmsg.CreateTopicsResponse](b.dialAs("maker"), withVersion(newCreate("old", 1), 5))
	if old.Topics[0].ErrorCode != 0 || old.ThrottleMillis <= 0 {
		t.Errorf("an old client: %+v", old)
	}
	dry := newCreate("dry", 1)
	dry.ValidateOnly = true
	if r := ask[*kmsg.CreateTopicsResponse](b.dialAs("maker"), dry); r.Topics[0].ErrorCode != 0 || r.ThrottleMillis != 0 {
		t.Errorf("what is only validated: %+v", r)
	}
}

// Connections from an address that come too fast are served later, and closed when that would be too late.
func TestConnectionRate(t *testing.T) {
	b := newTestBroker(t, testOptions{})
	setQuota(b.dial(), "ip", "127.0.0.1", "connection_creation_rate", 2)
	start := time.Now()
	var last *testClient
	for range 4 { // two at once, the fourth after a second
		last = b.dial()
	}
	ask[*kmsg.MetadataResponse](last, newMetadata(12))
	if took := time.Since(start); took < 500*time.Millisecond {
		t.Errorf("the fourth connection was served after %v", took)
	}
	for range 4 * int(connectWaitMax/time.Second) { // two a second: far more than fit into the longest wait
		b.dial()
	}
	b.dial().closed()
	if got := b.value(`strandline_connections_refused_total{reason="connection_rate"}`); got < 1 {
		t.Errorf("%v connections counted as refused", got)
	}
}

// A door without connections is refused while its client owes anything, by a code and with the time after which it is not; nothing is stored (R28).
func TestR28_DoorsWithoutConnectionsAreRefused(t *testing.T) {
	b := newTestBroker(t, testOptions{})
	admin := b.dialAs("admin")
	id := admin.create("t", 1)
	setQuota(admin, "client-id", "rest", "producer_byte_rate", 1000)
	setQuota(admin, "client-id", "rest", "consumer_byte_rate", 1000)
	call := func(req kmsg.Request) kmsg.Response {
		r, err := Await(t.Context(), b.server.Do(t.Context(), &Call{Principal: kafka.Anonymous, ClientID: "rest", Peer: "10.0.0.1:5", Request: req}))
		must(t, err)
		return r.Response
	}
	first := call(b.newBulk(5000, -1)).(*kmsg.ProduceResponse)
	again := call(b.newBulk(5000, -1)).(*kmsg.ProduceResponse)
	if p := first.Topics[0].Partitions[0]; p.ErrorCode != 0 {
		t.Errorf("the first: %+v", p)
	}
	if p := again.Topics[0].Partitions[0]; p.ErrorCode != int16(kafka.ThrottlingQuotaExceeded) || again.ThrottleMillis <= 0 || p.ErrorMessage == nil {
		t.Errorf("the second: %+v, %d ms", p, again.ThrottleMillis)
	}
	if end := admin.publish(b.newBulk(1, -1)).BaseOffset; end != 1 {
		t.Errorf("the next offset is %d: something refused is stored", end)
	}
	fetch := newFetch("t", 0, 0)
	fetch.Topics[0].TopicID = id
	got := call(fetch).(*kmsg.FetchResponse)
	if len(got.Topics) != 1 || got.ErrorCode != 0 {
		t.Errorf("the first fetch: %+v", got)
	}
	if r := call(fetch).(*kmsg.FetchResponse); r.ErrorCode != int16(kafka.ThrottlingQuotaExceeded) || r.ThrottleMillis <= 0 {
		t.Errorf("the second fetch: %+v", r)
	}
	setQuota(admin, "client-id", "rest", metadata.QuotaRequest.String(), 1e-7)
	call(newMetadata(12))
	_, err := b.server.Ask(t.Context(), 1, &Call{Principal: kafka.Anonymous, ClientID: "rest", Request: newMetadata(12)})
	if over, ok := err.(*ThrottledError); !ok || over.Wait <= 0 {
		t.Errorf("request time: %v", err)
	}
}
