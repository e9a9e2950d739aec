package rest

import (
	"errors"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"strandline.dev/internal/record"
	"strandline.dev/internal/wire"
)

// TestPartitioner_IsThatOfKafkaClients: a key comes to the same partition as from franz-go, which does as Java does.
func TestPartitioner_IsThatOfKafkaClients(t *testing.T) {
	of := kgo.StickyKeyPartitioner(nil).ForTopic("t")
	key := []byte{}
	for i := range 300 {
		for _, count := range []int32{1, 7, 64} {
			d := draft{key: key}
			if want := int32(of.Partition(&kgo.Record{Key: key}, int(count))); len(key) > 0 && d.partitionOf(count, 0) != want {
				t.Fatalf("key %q of %d: %d, want %d", key, count, d.partitionOf(count, 0), want)
			}
		}
		key = append(key, byte(i*37))
	}
	a, b := draft{id: "order-42"}, draft{id: "order-42"}
	if a.partitionOf(64, 1) != b.partitionOf(64, 2) {
		t.Error("a repeat without a key must come to the same partition")
	}
}

// TestDrafts_WhatIsRead: values in three forms, and what is absent, null and empty (O11).
func TestDrafts_WhatIsRead(t *testing.T) {
	for _, c := range []struct {
		body string
		want draft
	}{
		{`{"value":null}`, draft{hasValue: true}},
		{`{"value":{"text":""},"routingKey":""}`, draft{hasValue: true, value: []byte{}, key: []byte{}, contentType: "text/plain; charset=utf-8"}},
		{`{"routingKey":"k\u00e9","recordId":"a","schemaVersion":"3","value":{"json":{"b": [1, 1e999],"a":"\u0041"}}}`,
			draft{hasValue: true, key: []byte("ké"), id: "a", schemaVersion: "3", value: []byte(`{"b": [1, 1e999],"a":"\u0041"}`), contentType: "application/json"}},
		{`{"value":{"base64":"AAEC\u002f/8="},"headers":[{"name":"a","value":null},{"name":"a","valueBase64":"/w=="},{"name":"b","value":""}]}`,
			draft{hasValue: true, value: []byte{0, 1, 2, 0xff, 0xff}, headers: []record.Header{{Key: "a"}, {Key: "a", Value: []byte{0xff}}, {Key: "b", Value: []byte{}}}}},
	} {
		r, err := readDrafts([]byte(c.body), true)
		if err != nil || len(r.list) != 1 || !reflect.DeepEqual(r.list[0], c.want) {
			t.Errorf("%s: %+v %v", c.body, r, err)
		}
	}
}

// testBodiesThatAreRefused: each with its status and the place of its fault.
func testBodiesThatAreRefused(t *testing.T) {
	value := `"value":{"text":"a"}`
	for _, c := range []struct {
		name, body string
		status     int
		says       string
	}{
		{"empty", "", 400, "needs a body"},
		{"not JSON", "hello", 400, "invalid character"},
		{"cut", `{"value":`, 400, "unexpected EOF"},
		{"deep", `{"value":{"json":` + strings.Repeat("[", 100_000), 400, "depth"},
		{"NaN", `{"value":{"json":NaN}}`, 400, "offset"},
		{"twice", `{` + value + `,` + value + `}`, 400, "duplicate"},
		{"twice, in the payload", `{"value":{"json":{"a":1,"a":2}}}`, 400, "duplicate"},
		{"trailing", `{` + value + `} {}`, 400, "follows"},
		{"bytes that are not UTF-8", "{\"value\":{\"text\":\"\xff\"}}", 400, "UTF-8"},
		{"unknown field", `{"valeu":{"text":"a"}}`, 422, "valeu: unknown field"},
		{"no value", `{"routingKey":"a"}`, 422, "value: is missing"},
		{"value of another kind", `{"value":"a"}`, 422, "value: is not an object"},
		{"two forms", `{"value":{"text":"a","base64":"YQ=="}}`, 422, "exactly one"},
		{"no form", `{"value":{}}`, 422, "exactly one"},
		{"unknown form", `{"value":{"xml":"a"}}`, 422, "value.xml"},
		{"null text", `{"value":{"text":null}}`, 422, "value.text: is null"},
		{"bad base64", `{"value":{"base64":"a"}}`, 422, "value.base64: is not base64"},
		{"a number as key", `{"routingKey":1e20,` + value + `}`, 422, "routingKey: is not a string"},
		{"long id", `{"recordId":"` + strings.Repeat("a", recordIDMax+1) + `",` + value + `}`, 422, "recordId: is longer"},
		{"empty id", `{"recordId":"",` + value + `}`, 422, "recordId: is empty"},
		{"null for an id", `{"recordId":null,` + value + `}`, 422, "recordId: is null"},
		{"null for a schema version", `{"schemaVersion":null,` + value + `}`, 422, "schemaVersion: is null"},
		{"header without a name", `{"headers":[{"value":"a"}],` + value + `}`, 422, "headers[0].name"},
		{"headers", `{"headers":[` + strings.Repeat(`{"name":"a"},`, recordHeadersMax) + `{"name":"a"}],` + value + `}`, 422, "headers: has more than"},
		{"an array", `[]`, 422, "body: is not an object"},
		{"no records", `{"records":[]}`, 422, "records: is empty"},
		{"records and fields", `{"records":[{` + value + `}],` + value + `}`, 422, "not a field of a batch"},
		{"a bad record", `{"records":[{` + value + `},{"value":1}]}`, 422, "records[1].value: is not an object"},
		{"an id twice", `{"records":[{"recordId":"a",` + value + `},{"recordId":"a",` + value + `}]}`, 422, "records[1].recordId: is also that of records[0]"},
		{"the id's header", `{"headers":[{"name":"record-id","value":"a"}],` + value + `}`, 422, "has a field of its own"},
	} {
		r, err := readDrafts([]byte(c.body), true)
		if err == nil {
			err = check(r.list, r.many, "record-id")
		}
		var p *problem
		if !errors.As(err, &p) || p.Status != c.status || !strings.Contains(p.Detail, c.says) || p.Outcome != outcomeNone {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	if _, err := readDrafts([]byte(`{"records":[]}`), false); err == nil || !strings.Contains(err.Error(), "records: unknown field") {
		t.Errorf("a batch to one partition: %v", err)
	}
}

// TestPublish_WhatAnAnswerMeans: what is known of records after each answer of a leader (R25, R26, C120).
func TestPublish_WhatAnAnswerMeans(t *testing.T) {
	for _, c := range []struct {
		name    string
		code    int16
		tag     []byte
		status  int
		outcome string
	}{
		{"timed out behind the append", 7, outcome(false, true), 504, outcomeUnknown},
		{"the leader was deposed behind the append", 6, outcome(false, true), 504, outcomeUnknown},
		{"another node leads", 6, outcome(false, false), 421, outcomeNone},
		{"refused before any leader", 3, nil, 404, outcomeNone},
		{"too few replicas", 19, outcome(false, false), 503, outcomeNone},
		{"too few replicas behind the append", 20, outcome(false, true), 504, outcomeUnknown},
		{"ids that nobody would remember", 42, outcome(true, false), 422, outcomeNone},
		{"the disk limit is reached", 56, (&wire.Outcome{LeaderEpoch: 3, DiskLimit: true}).Append(nil), 503, outcomeNone},
		{"throttled", 89, outcome(false, false), 429, outcomeNone},
	} {
		p := &publication{list: make([]draft, 1), outcomes: make([]result, 1)}
		one := kmsg.NewProduceResponseTopicPartition()
		one.ErrorCode = c.code
		if c.tag != nil {
			one.UnknownTags.Set(wire.TagOutcome, c.tag)
		}
		topic := kmsg.NewProduceResponseTopic()
		topic.Partitions = append(topic.Partitions, one)
		p.take(&kmsg.ProduceResponse{Topics: []kmsg.ProduceResponseTopic{topic}}, []*part{{records: []int{0}}})
		got := p.outcomes[0].Problem
		if got == nil || got.Status != c.status || got.Outcome != c.outcome || got.Title != http.StatusText(c.status) {
			t.Errorf("%s: %+v", c.name, got)
		}
	}
}

func outcome(dedupOff, unknown bool) []byte {
	o := wire.Outcome{LeaderEpoch: 3, DedupOff: dedupOff, Unknown: unknown}
	return o.Append(nil)
}
