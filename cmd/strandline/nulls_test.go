package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"strandline.dev/internal/storage"
	"strandline.dev/internal/sys"
)

// keyValue is a record with null and empty told apart.
type keyValue struct{ key, value []byte }

func (r keyValue) String() string { return asText(r.key) + "=" + asText(r.value) }

func asText(b []byte) string {
	if b == nil {
		return "null"
	}
	return fmt.Sprintf("%q", b)
}

// door is one way into the broker and out of it. A publish that is refused gives the text of the refusal.
type door struct {
	publish func(topic string, r keyValue) (refused string)
	read    func(topic string) []string
}

// doors are those of a running node.
func (c *nodeCommand) doors() map[string]door {
	rest := c.n.HTTPURL()
	return map[string]door{
		"kafka": {c.kafkaPublish, c.kafkaRead},
		"rest": {
			func(topic string, r keyValue) string { return c.restPublish(rest+"/v1/topics/"+topic+"/records", r) },
			func(topic string) []string {
				return c.restRead(rest + "/v1/topics/" + topic + "/partitions/0/records?fromOffset=0")
			},
		},
		"cli": {c.cliPublish, c.cliRead},
	}
}

func (c *nodeCommand) kafkaPublish(topic string, r keyValue) string {
	c.t.Helper()
	cl, err := kgo.NewClient(kgo.SeedBrokers(c.n.KafkaAddresses()...), kgo.ProducerBatchCompression(kgo.NoCompression()))
	if err != nil {
		c.t.Fatal(err)
	}
	defer cl.Close()
	if err := cl.ProduceSync(c.t.Context(), &kgo.Record{Topic: topic, Key: r.key, Value: r.value}).FirstErr(); err != nil {
		return err.Error()
	}
	return ""
}

// kafkaRead reads up to the end: to a record that is published now, and left out. It begins a segment, so what lies before it may be compacted.
func (c *nodeCommand) kafkaRead(topic string) (got []string) {
	c.t.Helper()
	end := keyValue{[]byte("end"), bytes.Repeat([]byte("x"), 900)}
	if no := c.kafkaPublish(topic, end); no != "" {
		c.t.Fatal(no)
	}
	cl, err := kgo.NewClient(kgo.SeedBrokers(c.n.KafkaAddresses()...), kgo.ConsumeTopics(topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		c.t.Fatal(err)
	}
	defer cl.Close()
	for n := len(got); ; n = len(got) {
		f := cl.PollFetches(c.t.Context())
		if err := f.Err(); err != nil {
			c.t.Fatal(err)
		}
		f.EachRecord(func(r *kgo.Record) { got = append(got, keyValue{r.Key, r.Value}.String()) })
		if slices.Contains(got[n:], end.String()) && got[len(got)-1] == end.String() {
			return withoutEnds(got)
		}
	}
}

// withoutEnds leaves out what kafkaRead has published.
func withoutEnds(records []string) []string {
	return slices.DeleteFunc(records, func(r string) bool { return strings.HasPrefix(r, `"end"=`) })
}

func (c *nodeCommand) restPublish(url string, r keyValue) string {
	c.t.Helper()
	body := map[string]any{"value": nil}
	if r.key != nil {
		body["routingKey"] = string(r.key)
	}
	if r.value != nil {
		body["value"] = map[string]string{"text": string(r.value)}
	}
	b, err := json.Marshal(body)
	if err != nil {
		c.t.Fatal(err)
	}
	resp, err := http.Post(url, "application/json", bytes.NewReader(b))
	if err != nil {
		c.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	if resp.StatusCode == http.StatusCreated {
		return ""
	}
	return string(text)
}

func (c *nodeCommand) restRead(url string) (got []string) {
	c.t.Helper()
	resp, err := http.Get(url)
	if err != nil {
		c.t.Fatal(err)
	}
	defer resp.Body.Close()
	var page struct {
		Records []struct {
			Key   *string
			Value *struct{ Text *string }
		}
	}
	if err := json.NewDecoder(resp.Body).Decode(&page); err != nil || resp.StatusCode != http.StatusOK {
		c.t.Fatalf("%v %v", resp.Status, err)
	}
	for _, r := range page.Records {
		one := keyValue{}
		if r.Key != nil {
			one.key = []byte(*r.Key)
		}
		if r.Value != nil {
			one.value = []byte(*r.Value.Text)
		}
		got = append(got, one.String())
	}
	return withoutEnds(got)
}

func (c *nodeCommand) cliPublish(topic string, r keyValue) string {
	c.t.Helper()
	line := []byte(`{"key":`)
	line = append(appendBytesJSON(line, r.key), `,"value":`...)
	line = append(appendBytesJSON(line, r.value), "}\n"...)
	if code, text := c.run(string(line), "produce", topic, "--json"); code != 0 {
		return text
	}
	return ""
}

func (c *nodeCommand) cliRead(topic string) (got []string) {
	c.t.Helper()
	code, text := c.run("", "consume", topic, "--offset", "start", "-e", "--output", "json")
	if code != 0 {
		c.t.Fatalf("exit %d: %s", code, text)
	}
	for line := range strings.Lines(text) {
		var r struct{ Key, Value *string }
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			c.t.Fatalf("%q: %v", line, err)
		}
		one := keyValue{}
		if r.Key != nil {
			one.key = []byte(*r.Key)
		}
		if r.Value != nil {
			one.value = []byte(*r.Value)
		}
		got = append(got, one.String())
	}
	return withoutEnds(got)
}

// wantEverywhere reads a topic by each door.
func (c *nodeCommand) wantEverywhere(when, topic string, want ...string) {
	c.t.Helper()
	for name, d := range c.doors() {
		if got := d.read(topic); !slices.Equal(got, want) {
			c.t.Errorf("%s, %s as read by %s: %s, want %s", when, topic, name, got, want)
		}
	}
}

// compact does on the files of the stopped node what it does itself in time, until tombstones are gone too.
func (c *nodeCommand) compact() {
	c.t.Helper()
	for range 3 { // the tombstones take more than one
		d, err := storage.OpenDir(storage.DirOptions{Machine: sys.Real(), Path: filepath.Join(c.dir, "data")})
		if err != nil {
			c.t.Fatal(err)
		}
		tps, err := d.PartitionDirs()
		if err != nil {
			c.t.Fatal(err)
		}
		for _, tp := range tps {
			l, err := d.OpenLog(tp, storage.LogOptions{SegmentBytes: 1024, IndexInterval: 4096})
			if err == nil {
				policy := storage.CompactionPolicy{Upper: l.End(), Merge: true}
				_, err = l.Compact(c.t.Context(), policy, time.Now().Add(time.Hour))
			}
			if err != nil {
				c.t.Fatalf("%v: %v", tp, err)
			}
		}
		if err := d.Close(storage.CloseOptions{Clean: true}); err != nil {
			c.t.Fatal(err)
		}
	}
}

// TestO11_NullAndEmptyByEveryDoor: null and empty, as key and as value, are four records whichever way they come in and go out: a Kafka client, REST,
// or the command line's JSON. Of a compacted topic only null removes a key. It takes no record without a key, as in Kafka.
func TestO11_NullAndEmptyByEveryDoor(t *testing.T) {
	c := &nodeCommand{t: t, dir: t.TempDir(), http: "127.0.0.1:0"}
	c.start()
	empty, k, v := []byte{}, []byte("k"), []byte("v")
	must := func(no string) {
		t.Helper()
		if no != "" {
			t.Fatal(no)
		}
	}
	names := slices.Sorted(maps.Keys(c.doors()))
	for _, name := range names {
		for _, args := range [][]string{{"topic", "create", "plain-" + name}, {"topic", "create", "state-" + name, "--config", "cleanup.policy=compact", "--config", "segment.bytes=1024"}} {
			if code, text := c.run("", append(args, "-p", "1", "-r", "1")...); code != 0 {
				t.Fatalf("%v: %s", args, text)
			}
		}
		in := c.doors()[name]
		for _, r := range []keyValue{{nil, nil}, {empty, empty}, {k, nil}, {k, empty}} {
			must(in.publish("plain-"+name, r))
		}
		c.wantEverywhere("published by "+name, "plain-"+name, `null=null`, `""=""`, `"k"=null`, `"k"=""`)
		if no := in.publish("state-"+name, keyValue{nil, nil}); !strings.Contains(no, "INVALID_RECORD") {
			t.Errorf("a record without a key in a compacted topic, by %s: %q", name, no)
		}
		for _, r := range []keyValue{{empty, v}, {k, v}, {empty, empty}, {k, empty}} {
			must(in.publish("state-"+name, r))
		}
		c.wantEverywhere("not compacted yet", "state-"+name, `""="v"`, `"k"="v"`, `""=""`, `"k"=""`)
	}
	c.stop()
	c.compact()
	c.start()
	for _, name := range names {
		c.wantEverywhere("compacted", "plain-"+name, `null=null`, `""=""`, `"k"=null`, `"k"=""`)
		c.wantEverywhere("compacted", "state-"+name, `""=""`, `"k"=""`)
		must(c.doors()[name].publish("state-"+name, keyValue{k, nil}))
		c.wantEverywhere("k is to go", "state-"+name, `""=""`, `"k"=""`, `"k"=null`)
	}
	c.stop()
	c.compact()
	c.start()
	defer c.stop()
	for _, name := range names {
		c.wantEverywhere("k is gone", "state-"+name, `""=""`)
	}
}
