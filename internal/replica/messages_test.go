package replica

import (
	"bytes"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/peer"
	"strandline.dev/internal/wire"
)

var rewrite = flag.Bool("rewrite", false, "write the present output into testdata")

func goldenMessages() []peer.Message {
	tp := kafka.TopicPartition{Topic: kafka.TopicID{1, 15: 2}, Partition: 3}
	other := kafka.TopicPartition{Topic: kafka.TopicID{4}, Partition: 0}
	st := standing{tp: tp, epoch: 5, sequence: 900, stored: 41, start: 7}
	return []peer.Message{
		&fetchRequest{broker: 77, session: 12, wait: 500 * time.Millisecond, maxBytes: 1 << 22, partitionBytes: 1 << 20, catchUpBytes: 1 << 19},
		&fetchRequest{
			broker: 77, session: 12, round: 3, forget: []kafka.TopicPartition{other},
			parts: []fetchEntry{{standing: st, offset: 44, last: 4}, {standing: standing{tp: other, stored: kafka.NoOffset}, last: kafka.NoEpoch}},
		},
		&fetchAnswer{fault: faultSession, broker: 78},
		&fetchAnswer{broker: 78, parts: []answerEntry{
			{tp: tp, epoch: 5, hw: 44, start: 7, appendedMs: 1767225600000, records: []byte("whole batches")},
			{tp: other, code: codeDiverges, epoch: 1, hw: kafka.NoOffset, diverging: kafka.EpochEnd{Epoch: 0, End: 9}},
			{tp: other, epoch: 1, hw: 3, records: []byte("more")},
		}},
		&progressReport{broker: 77, session: 12},
		&progressReport{broker: 77, parts: []standing{st}},
		&backlogQuestion{[]backlogEntry{{tp, 42}, {other, kafka.NoOffset}}},
		&backlogAnswer{[]toldBacklog{{true, 7, 44, 61_000, 3_600_000}, noBacklog}},
	}
}

func fresh(m peer.Message) peer.Message {
	return reflect.New(reflect.TypeOf(m).Elem()).Interface().(peer.Message)
}

// encoded is what goes over the connection: body and payload.
func encoded(m peer.Message) []byte {
	b := m.Append(nil)
	if p, ok := m.(peer.Payloader); ok {
		for _, part := range p.Payload() {
			b = append(b, part...)
		}
	}
	return b
}

// same compares by what is sent: memory that a message keeps for the next one does not count.
func same(a, b peer.Message) bool { return bytes.Equal(encoded(a), encoded(b)) }

// TestGoldenMessages pins the bytes that replicas of two releases exchange.
func TestGoldenMessages(t *testing.T) {
	var text strings.Builder
	for _, m := range goldenMessages() {
		raw := encoded(m)
		fmt.Fprintf(&text, "%s %s\n", reflect.TypeOf(m).Elem().Name(), hex.EncodeToString(raw))
		back := fresh(m)
		if err := back.Decode(bytes.Clone(raw)); err != nil || !same(back, m) {
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
			mutant := bytes.Clone(raw)
			mutant[at] += 100
			if fresh(m).Decode(mutant) == nil {
				t.Errorf("%T: another type or version is accepted", m)
			}
		}
	}
	const file = "testdata/messages.txt"
	if *rewrite {
		if err := os.WriteFile(file, []byte(text.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil || text.String() != string(want) {
		t.Errorf("%v\n%s\nwant:\n%s", err, text.String(), want)
	}
}

// TestMessages_MemoryIsUsedAgain: a message decoded into memory that held a larger one shows nothing of it.
func TestMessages_MemoryIsUsedAgain(t *testing.T) {
	all := goldenMessages()
	for _, big := range all {
		for _, small := range all {
			if reflect.TypeOf(big) != reflect.TypeOf(small) {
				continue
			}
			m := fresh(big)
			if err := errors.Join(m.Decode(encoded(big)), m.Decode(encoded(small))); err != nil || !same(m, small) {
				t.Errorf("%+v after %+v became %+v: %v", small, big, m, err)
			}
		}
	}
}

// TestI14_HugeArraysAreRefusedBeforeAnythingIsAllocated.
func TestI14_HugeArraysAreRefusedBeforeAnythingIsAllocated(t *testing.T) {
	e := wire.Encoder{}
	e.Header(uint16(peer.KindReplicaProgress), 0)
	e.Int64(1)
	e.Uint64(0)
	e.ArrayLen(1 << 40)
	if (&progressReport{}).Decode(e.B) == nil {
		t.Error("accepted")
	}
	e = wire.Encoder{}
	e.Header(uint16(peer.KindReplicaProgress), 0)
	e.Int64(1)
	e.Uint64(0)
	e.ArrayLen(entriesMax + 1)
	e.B = slices.Grow(e.B, standingBytes*(entriesMax+1))
	e.B = e.B[:len(e.B)+standingBytes*(entriesMax+1)]
	e.NoTags()
	if err := (&progressReport{}).Decode(e.B); !errors.Is(err, wire.ErrMalformed) {
		t.Errorf("above the limit: %v", err)
	}
	big := fetchAnswer{parts: []answerEntry{{records: []byte{1}}}}
	raw := encoded(&big)
	raw[len(raw)-3] = 200 // the size of the records
	if (&fetchAnswer{}).Decode(raw) == nil {
		t.Error("records that did not come are accepted")
	}
}

// FuzzMessages: whatever arrives, a message is refused, or it is what was sent.
func FuzzMessages(f *testing.F) {
	for i, m := range goldenMessages() {
		f.Add(i, encoded(m))
	}
	f.Fuzz(func(t *testing.T, kind int, raw []byte) {
		all := goldenMessages()
		m := fresh(all[(kind%len(all)+len(all))%len(all)])
		if m.Decode(bytes.Clone(raw)) != nil {
			return
		}
		back := fresh(m)
		if err := back.Decode(encoded(m)); err != nil || !same(back, m) {
			t.Fatalf("%x: %+v became %+v: %v", raw, m, back, err)
		}
	})
}
