package controller

import (
	"bytes"
	"encoding/hex"
	"flag"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/metadata"
	"strandline.dev/internal/peer"
)

var rewrite = flag.Bool("rewrite", false, "write the present output into testdata")

// goldenMessages has every message, with and without its optional parts.
func goldenMessages() []peer.Message {
	return []peer.Message{
		&heartbeat{Node: 3, Epoch: 77},
		&heartbeatAnswer{Active: 1, Term: 5, Version: 900, Standing: fenced},
		&heartbeatAnswer{Active: kafka.NoNode},
		&submission{Wait: 3 * time.Second, Event: metadata.BrokerReady{Now: time.UnixMilli(1767225600000).UTC(), Node: 3, Epoch: 77}},
		&submission{Event: metadata.DrainBroker{Principal: kafka.Principal{Type: "User", Name: "alice"}, Node: 2}},
		&submissionAnswer{Fate: decided, Active: kafka.NoNode, Version: 901, Reply: metadata.BrokerChanged{Elected: 2}},
		&submissionAnswer{Fate: elsewhere, Active: 2, Text: "not here"},
		&askEnds{[]kafka.TopicPartition{{Topic: kafka.TopicID{1, 15: 2}, Partition: 3}}},
		&toldEnds{[]metadata.PartitionEnds{{TP: kafka.TopicPartition{Topic: kafka.TopicID{1, 15: 2}, Partition: 3}, Ends: []metadata.ReplicaEnd{{Node: 1, LastEpoch: 2, End: 30}}}}},
		&submissionAnswer{Fate: refused, Active: kafka.NoNode, Text: "node 2 speaks for node 3"},
	}
}

func fresh(m peer.Message) peer.Message {
	return reflect.New(reflect.TypeOf(m).Elem()).Interface().(peer.Message)
}

// TestGoldenMessages pins the bytes that nodes of two releases exchange.
func TestGoldenMessages(t *testing.T) {
	var b strings.Builder
	for _, m := range goldenMessages() {
		raw := m.Append(nil)
		fmt.Fprintf(&b, "%s %s\n", reflect.TypeOf(m).Elem().Name(), hex.EncodeToString(raw))
		back := fresh(m)
		if err := back.Decode(bytes.Clone(raw)); err != nil || !reflect.DeepEqual(back, m) {
			t.Errorf("%+v became %+v: %v", m, back, err)
		}
		for n := range raw {
			if fresh(m).Decode(bytes.Clone(raw[:n])) == nil {
				t.Errorf("%T: %d of %d bytes are accepted", m, n, len(raw))
			}
		}
		if fresh(m).Decode(append(bytes.Clone(raw), 0)) == nil {
			t.Errorf("%T: a byte behind it is accepted", m)
		}
		for at := range 3 {
			other := bytes.Clone(raw)
			other[at] += 100
			if fresh(m).Decode(other) == nil {
				t.Errorf("%T: another type or version is accepted", m)
			}
		}
	}
	file := "testdata/messages.txt"
	if *rewrite {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil || string(want) != b.String() {
		t.Errorf("%v\nwant %s\ngot  %s", err, want, b.String())
	}
}

func FuzzDecodeMessages(f *testing.F) {
	for i, m := range goldenMessages() {
		f.Add(uint8(i), m.Append(nil))
	}
	f.Fuzz(func(t *testing.T, kind uint8, b []byte) {
		all := goldenMessages()
		m := fresh(all[int(kind)%len(all)])
		if m.Decode(bytes.Clone(b)) != nil {
			return
		}
		back := fresh(m)
		if err := back.Decode(m.Append(nil)); err != nil || !reflect.DeepEqual(m, back) {
			t.Fatalf("%v: %+v became %+v", err, m, back)
		}
	})
}
