package rest_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"strandline.dev/embedded"
)

// answer is what a request of a test got.
type answer struct {
	status int
	header http.Header
	body   map[string]any
	text   string
}

func (a answer) number(name string) int {
	n, ok := a.body[name].(float64)
	if !ok {
		return -999
	}
	return int(n)
}

// api is the HTTP door of one node of a test's cluster.
type api struct {
	t     *testing.T
	base  string
	kafka string // where Kafka clients reach the same node
}

// send sends a request; kinds are "Name: value" headers.
func (a api) send(method, path, body string, headers ...string) answer {
	a.t.Helper()
	req, err := http.NewRequest(method, a.base+path, strings.NewReader(body))
	if err != nil {
		a.t.Fatal(err)
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		req.Header.Set(name, value)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		a.t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		a.t.Fatal(err)
	}
	out := answer{status: resp.StatusCode, header: resp.Header, text: string(b)}
	d := json.NewDecoder(bytes.NewReader(b))
	_ = d.Decode(&out.body) // pages for people are no JSON
	return out
}

// want fails the test unless the status is the one wanted.
func (a answer) want(t *testing.T, status int) answer {
	t.Helper()
	if a.status != status {
		t.Fatalf("status %d, want %d: %s", a.status, status, a.text)
	}
	return a
}

func newTestAPI(t *testing.T, nodes int) []api {
	b := embedded.Start(t, embedded.Options{Nodes: nodes, NoAutoCreate: true})
	var out []api
	for i, base := range b.HTTP() {
		out = append(out, api{t, base, b.Brokers()[i]})
	}
	return out
}

// TestR1_R4_R6_R8_TopicsOverREST: created, described, listed; what is wrong is refused whole.
func TestR1_R4_R6_R8_TopicsOverREST(t *testing.T) {
	a := newTestAPI(t, 1)[0]
	made := a.send("POST", "/v1/topics", `{"name":"orders","partitionCount":4,"replicationFactor":1,"retention":"14d"}`).want(t, 201)
	if made.body["name"] != "orders" || made.number("topicVersion") != 1 || len(made.body["topicId"].(string)) != 22 {
		t.Errorf("created: %s", made.text)
	}
	for _, c := range []struct {
		body   string
		status int
		says   string
	}{
		{`{"name":"orders"}`, 409, "TOPIC_ALREADY_EXISTS"},
		{`{"name":"b","replicationFactor":9}`, 422, "INVALID_REPLICATION_FACTOR"},
		{`{"name":"b","partitionCount":0}`, 422, "body.partitionCount"},
		{`{"name":"b","partitionCount":1e20}`, 422, "partitionCount"},
		{`{"name":"b","partitionCount":1000000}`, 422, "INVALID_PARTITIONS"},
		{`{"name":"b","colour":"red"}`, 422, "body.colour"},
		{`{"name":"a/../b"}`, 422, "INVALID_TOPIC_EXCEPTION"},
		{`{"name":"b","configs":{"retention.mss":"1"}}`, 422, "INVALID_CONFIG"},
		{`{"name":"b","retention":"soon"}`, 422, "body.retention"},
		{`{"name":"b","name":"c"}`, 400, "duplicate"},
		{`{"name":"b"} x`, 400, "body"},
		{`{"name":"b","partitionCount":NaN}`, 400, "body"},
	} {
		got := a.send("POST", "/v1/topics", c.body)
		if got.status != c.status || !strings.Contains(got.text, c.says) || got.header.Get("Content-Type") != "application/problem+json" || got.body["outcome"] != "none" {
			t.Errorf("%s: %d %s", c.body, got.status, got.text)
		}
	}
	a.send("GET", "/v1/topics/b", "").want(t, 404)
	d := a.send("GET", "/v1/topics/orders", "").want(t, 200)
	if d.header.Get("ETag") != `"1"` || d.number("topicVersion") != 1 || d.body["owner"] != "User:ANONYMOUS" || len(d.body["partitions"].([]any)) != 4 {
		t.Errorf("described: %v %s", d.header, d.text)
	}
	p := d.body["partitions"].([]any)[3].(map[string]any)
	if p["leader"] != 1.0 || p["logStart"] != 0.0 || p["highWatermark"] != 0.0 || p["logEnd"] != 0.0 || p["leaderEpoch"].(float64) < 0 || len(p["isr"].([]any)) != 1 {
		t.Errorf("partition: %v", p)
	}
	for _, want := range []string{`"name":"retention.ms","value":"1209600000","source":"dynamic_topic_config"`, `"name":"strandline.dedup.window.ms","value":"120000"`} {
		if !strings.Contains(d.text, want) {
			t.Errorf("configs: %s is missing in %s", want, d.text)
		}
	}
	for _, name := range []string{"a", "b", "c"} {
		a.send("POST", "/v1/topics", `{"name":"`+name+`"}`).want(t, 201)
	}
	var seen []string
	for token, pages := "", 0; pages < 9; pages++ {
		page := a.send("GET", "/v1/topics?limit=3&pageToken="+token, "").want(t, 200)
		for _, one := range page.body["topics"].([]any) {
			seen = append(seen, one.(map[string]any)["name"].(string))
		}
		var more bool
		if token, more = page.body["nextPageToken"].(string); !more {
			break
		}
	}
	if got := strings.Join(seen, " "); got != "a b c orders" {
		t.Errorf("listed: %s", got)
	}
}

// TestR18_R22_R41_R42_RecordsOverREST: published once however often it is sent, and read back as it was.
func TestR18_R22_R41_R42_RecordsOverREST(t *testing.T) {
	a := newTestAPI(t, 1)[0]
	a.send("POST", "/v1/topics", `{"name":"orders"}`).want(t, 201)
	a.send("POST", "/v1/topics", `{"name":"plain","configs":{"strandline.dedup.window.ms":"0"}}`).want(t, 201)
	const path = "/v1/topics/orders/partitions/0/records"
	first := a.send("POST", path, `{"routingKey":"order-42","recordId":"r1","value":{"json":{"total": 1}},"schemaVersion":"3","headers":[{"name":"h","value":"x"}]}`).want(t, 201)
	if first.number("partition") != 0 || first.number("offset") != 0 || first.body["duplicate"] != false || first.number("leaderEpoch") < 0 {
		t.Errorf("published: %s", first.text)
	}
	for range 2 {
		again := a.send("POST", path, `{"routingKey":"order-42","value":{"json":{"total": 1}},"schemaVersion":"3"}`, "Idempotency-Key: r1").want(t, 201)
		if again.number("offset") != 0 || again.body["duplicate"] != true {
			t.Errorf("repeated: %s", again.text)
		}
	}
	other := a.send("POST", path, `{"recordId":"r1","value":{"text":"other"}}`).want(t, 422)
	if other.body["code"] != "RECORD_ID_REUSED" {
		t.Errorf("other bytes: %s", other.text)
	}
	if off := a.send("POST", "/v1/topics/plain/records", `{"recordId":"r1","value":null}`).want(t, 422); off.body["code"] != "DEDUP_OFF" {
		t.Errorf("no window: %s", off.text)
	}
	a.send("POST", path, "\x00\xffraw", "Content-Type: application/octet-stream").want(t, 201)
	a.send("POST", path, `{"routingKey":"","value":null}`).want(t, 201)
	large := a.send("POST", path, `{"value":{"text":"`+strings.Repeat("a", 1<<20)+`"}}`).want(t, 413)
	if large.body["code"] != "RECORD_TOO_LARGE" {
		t.Errorf("large: %s", large.text)
	}
	read := a.send("GET", path+"?fromOffset=0", "").want(t, 200)
	for _, want := range []string{
		`"offset":0,"key":"order-42","recordId":"r1"`, `"schemaVersion":"3","value":{"json":{"total": 1}}`, `{"name":"h","value":"x"}`,
		`"offset":1,"key":null`, `"value":{"base64":"AP9yYXc="},`, `"offset":2,"key":"",`, `"value":null,"size":0,`,
		`"nextOffset":3,"logStart":0,"highWatermark":3}`, `"timestamp":"20`,
		fmt.Sprintf(`"checksum":"crc32c:%08x"`, crc32.Checksum([]byte("\x00\xffraw"), crc32.MakeTable(crc32.Castagnoli))),
	} {
		if !strings.Contains(read.text, want) {
			t.Errorf("%s is missing in %s", want, read.text)
		}
	}
	if page := a.send("GET", path+"?fromOffset=1&maxRecords=1", ""); page.number("nextOffset") != 2 || len(page.body["records"].([]any)) != 1 {
		t.Errorf("a page: %s", page.text)
	}
	if end := a.send("GET", path+"?fromOffset=3&waitMs=1", "").want(t, 200); end.number("nextOffset") != 3 || len(end.body["records"].([]any)) != 0 {
		t.Errorf("at the end: %s", end.text)
	}
	beyond := a.send("GET", path+"?fromOffset=99", "").want(t, 416)
	if r := beyond.body["validRange"].(map[string]any); beyond.body["code"] != "OFFSET_OUT_OF_RANGE" || r["logStart"] != 0.0 || r["highWatermark"] != 3.0 {
		t.Errorf("beyond: %s", beyond.text)
	}
	a.send("GET", "/v1/topics/orders/partitions/7/records", "").want(t, 404)
	a.send("POST", "/v1/topics/none/records", `{"value":null}`).want(t, 404)
}

// TestPublish_ABatchSaysWhatBecameOfEach: records that repeat have their originals' offsets, one that is refused has its own problem.
func TestPublish_ABatchSaysWhatBecameOfEach(t *testing.T) {
	a := newTestAPI(t, 1)[0]
	a.send("POST", "/v1/topics", `{"name":"orders"}`).want(t, 201)
	rec := func(id, text string) string { return fmt.Sprintf(`{"recordId":%q,"value":{"text":%q}}`, id, text) }
	a.send("POST", "/v1/topics/orders/records", `{"records":[`+rec("a", "1")+`,`+rec("b", "2")+`]}`).want(t, 201)
	got := a.send("POST", "/v1/topics/orders/records", `{"records":[`+rec("c", "3")+`,`+rec("b", "2")+`,`+rec("a", "other")+`,{"value":{"text":"4"}}]}`).want(t, 207)
	var offsets []string
	for _, one := range got.body["results"].([]any) {
		r := one.(map[string]any)
		if p, bad := r["problem"].(map[string]any); bad {
			offsets = append(offsets, p["code"].(string))
			continue
		}
		offsets = append(offsets, fmt.Sprint(r["offset"], r["duplicate"]))
	}
	if s := strings.Join(offsets, ", "); s != "2 false, 1 true, RECORD_ID_REUSED, 5 false" {
		t.Errorf("%s: %s", s, got.text)
	}
	all := a.send("POST", "/v1/topics/orders/records", `{"records":[`+rec("b", "2")+`,`+rec("a", "1")+`]}`).want(t, 201)
	if !strings.Contains(all.text, `"offset":1,`) || !strings.Contains(all.text, `"offset":0,`) {
		t.Errorf("scattered repeats: %s", all.text)
	}
}

// TestR26_R43_AnyNodeTakesRecordsAndOnlyLeadersTakePartitions: a batch goes to the leaders of its partitions, whichever node it came to; what names a
// partition is for its leader, which others name.
func TestR26_R43_AnyNodeTakesRecordsAndOnlyLeadersTakePartitions(t *testing.T) {
	nodes := newTestAPI(t, 3)
	nodes[0].send("POST", "/v1/topics", `{"name":"orders","partitionCount":6,"replicationFactor":3}`).want(t, 201)
	var body strings.Builder
	for i := range 60 {
		fmt.Fprintf(&body, `,{"routingKey":"k%d","recordId":"r%d","value":{"text":"v%d"}}`, i, i, i)
	}
	batch := `{"records":[` + body.String()[1:] + `]}`
	first := nodes[2].eventually("POST", "/v1/topics/orders/records", batch, 201)
	again := nodes[1].send("POST", "/v1/topics/orders/records", batch).want(t, 201)
	// The first may have been sent several times, until every leader knew that it leads.
	if strings.ReplaceAll(first.text, `"duplicate":false`, `"duplicate":true`) != again.text {
		t.Errorf("repeated by another node:\n%s\n%s", first.text, again.text)
	}
	d := nodes[1].send("GET", "/v1/topics/orders", "").want(t, 200)
	total := 0
	for i, one := range d.body["partitions"].([]any) {
		p := one.(map[string]any)
		lead := int(p["leader"].(float64))
		total += int(p["highWatermark"].(float64))
		path := fmt.Sprintf("/v1/topics/orders/partitions/%d/records", i)
		for n, node := range nodes {
			read, write := node.send("GET", path, ""), node.send("POST", path, `{"recordId":"r0","value":{"text":"v0"},"routingKey":"k0"}`)
			if n+1 == lead {
				read.want(t, 200)
				write.want(t, 201)
				continue
			}
			read.want(t, 421)
			if l := write.want(t, 421).body["leader"].(map[string]any); l["nodeId"] != p["leader"] || l["port"].(float64) <= 0 || write.body["code"] != "NOT_LEADER_OR_FOLLOWER" {
				t.Errorf("leader: %s", write.text)
			}
		}
	}
	if total != 60 {
		t.Errorf("%d records are stored", total)
	}
}

// eventually sends a request until it has the status wanted: after a creation a node may lead a moment later than another knows it.
func (a api) eventually(method, path, body string, status int) answer {
	a.t.Helper()
	var got answer
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); {
		if got = a.send(method, path, body); got.status == status {
			return got
		}
	}
	return got.want(a.t, status)
}

// until sends a request until its answer has all these texts.
func (a api) until(method, path string, texts ...string) answer {
	a.t.Helper()
	var got answer
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); {
		got = a.send(method, path, "")
		all := true
		for _, text := range texts {
			all = all && strings.Contains(got.text, text)
		}
		if all {
			return got
		}
	}
	a.t.Fatalf("%s never says %q: %s", path, texts, got.text)
	return got
}

// TestREST_RecordsAreThoseOfKafkaClients: the partition by key, the headers and the bytes are what any client would write and read.
func TestREST_RecordsAreThoseOfKafkaClients(t *testing.T) {
	b := embedded.Start(t, embedded.Options{NoAutoCreate: true, Topics: []embedded.Topic{{Name: "orders", Partitions: 16}}})
	a := api{t: t, base: b.HTTP()[0]}
	got := a.send("POST", "/v1/topics/orders/records", `{"routingKey":"order-42","value":{"json":{"a":1}},"schemaVersion":"2"}`).want(t, 201)
	cl, err := kgo.NewClient(kgo.SeedBrokers(b.Brokers()...), kgo.ConsumeTopics("orders"), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	r := cl.PollFetches(t.Context()).Records()[0]
	if string(r.Key) != "order-42" || string(r.Value) != `{"a":1}` || int(r.Partition) != got.number("partition") || fmt.Sprint(r.Headers) != "[{schema-version [50]} {content-type [97 112 112 108 105 99 97 116 105 111 110 47 106 115 111 110]}]" {
		t.Errorf("%+v", r)
	}
	sent := cl.ProduceSync(t.Context(), &kgo.Record{Topic: "orders", Key: []byte("order-42"), Value: []byte("from a client")})
	if sent.FirstErr() != nil || int(sent[0].Record.Partition) != got.number("partition") {
		t.Errorf("%v", sent)
	}
	read := a.send("GET", fmt.Sprintf("/v1/topics/orders/partitions/%d/records?fromOffset=1", r.Partition), "").want(t, 200)
	if !strings.Contains(read.text, `"value":{"text":"from a client"}`) {
		t.Errorf("read: %s", read.text)
	}
}
