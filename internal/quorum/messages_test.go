package quorum

import (
	"bytes"
	"fmt"
	"reflect"
	"testing"

	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/metadata"
	"strandline.dev/internal/peer"
)

// messageCases are the messages with every field set, each with a way to make an empty one.
func messageCases() map[string]struct {
	full peer.Message
	new  func() peer.Message
} {
	voter := testVoter()
	appendEntries := &raftpb.Message{
		Type: raftpb.MsgApp.Enum(), To: proto.Uint64(2), From: proto.Uint64(1), Term: proto.Uint64(3), LogTerm: proto.Uint64(2), Index: proto.Uint64(41),
		Entries: []*raftpb.Entry{testEntry(raftpb.EntryNormal, []byte{1, 2, 3})}, Commit: proto.Uint64(40),
	}
	offer := &raftpb.Message{
		Type: raftpb.MsgSnap.Enum(), To: proto.Uint64(2), From: proto.Uint64(1), Term: proto.Uint64(3),
		Snapshot: &raftpb.Snapshot{Metadata: &raftpb.SnapshotMetadata{
			ConfState: &raftpb.ConfState{Voters: []uint64{1, 2}}, Index: proto.Uint64(42), Term: proto.Uint64(3),
		}},
	}
	type c = struct {
		full peer.Message
		new  func() peer.Message
	}
	return map[string]c{
		"raft":            {&raftMessages{messages: []*raftpb.Message{appendEntries, {Type: raftpb.MsgHeartbeat.Enum(), To: proto.Uint64(2)}}}, func() peer.Message { return &raftMessages{} }},
		"forming-ask":     {&formingAsk{Controllers: []string{"1@a:9093", "2@b:9093", "3@c:9093"}}, func() peer.Message { return &formingAsk{} }},
		"forming-answer":  {&formingAnswer{Node: 1, Directory: voter.Directory, Controllers: []string{"1@a:9093"}, Cluster: "q1bHRHpFT1mdmkfcCGfx3Q", Running: true, Table: []metadata.Voter{voter}}, func() peer.Message { return &formingAnswer{} }},
		"fetch":           {&metadataFetch{Next: 43, LastTerm: 3, WaitMs: 250}, func() peer.Message { return &metadataFetch{} }},
		"fetched":         {&metadataFetched{Term: 4, Leader: 2, Committed: 44, Behind: true, Batches: []byte{1, 2}}, func() peer.Message { return &metadataFetched{} }},
		"piece-ask":       {&pieceAsk{Newest: true, Index: 42, Term: 3, Offset: 1 << 19}, func() peer.Message { return &pieceAsk{} }},
		"piece-offer":     {&pieceAsk{Offer: offer}, func() peer.Message { return &pieceAsk{} }},
		"piece":           {&piece{Index: 42, Term: 3, Size: 1 << 20, Bytes: []byte{7}}, func() peer.Message { return &piece{} }},
		"membership":      {&membership{Change: replaceVoter, Voter: voter}, func() peer.Message { return &membership{} }},
		"membership-done": {&membershipDone{NotLeader: true, Refusal: "why"}, func() peer.Message { return &membershipDone{} }},
	}
}

func TestGoldenBytesOfMessages(t *testing.T) {
	for name, c := range messageCases() {
		b := c.full.Append(nil)
		golden(t, "message-"+name, b)
		back := c.new()
		if err := back.Decode(b); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if again := back.Append(nil); !bytes.Equal(again, b) {
			t.Errorf("%s: read back as %+v", name, back)
		}
		if back.Kind() != c.full.Kind() {
			t.Errorf("%s: kinds %v and %v", name, c.full.Kind(), back.Kind())
		}
		for n := range len(b) {
			if err := c.new().Decode(b[:n]); err == nil {
				t.Errorf("%s: cut to %d bytes: accepted", name, n)
			}
		}
		if err := c.new().Decode(append(bytes.Clone(b), 0)); err == nil {
			t.Errorf("%s: a trailing byte was accepted", name)
		}
		other := bytes.Clone(b)
		other[2] = messageVersion + 1
		if err := c.new().Decode(other); err == nil {
			t.Errorf("%s: a newer version was accepted", name)
		}
	}
}

func TestEveryFieldOfAMessageIsInItsGoldenCase(t *testing.T) {
	for name, c := range messageCases() {
		v := reflect.ValueOf(c.full).Elem()
		for i := range v.NumField() {
			zero := v.Field(i).IsZero()
			// An ask is for a piece or an offer.
			if zero && name != "piece-ask" && name != "piece-offer" {
				t.Errorf("%s: %s is not set", name, v.Type().Field(i).Name)
			}
		}
	}
}

func TestMessagesWithImpossibleValuesAreRefused(t *testing.T) {
	for name, c := range map[string]struct {
		bad peer.Message
		new func() peer.Message
	}{
		"negative offset":         {&pieceAsk{Offset: -1}, func() peer.Message { return &pieceAsk{} }},
		"a snapshot too large":    {&piece{Size: snapshotFileMax + 1}, func() peer.Message { return &piece{} }},
		"an unknown change":       {&membership{Change: 4, Voter: testVoter()}, func() peer.Message { return &membership{} }},
		"no change":               {&membership{Voter: testVoter()}, func() peer.Message { return &membership{} }},
		"a table in raft's place": {&formingAnswer{Node: kafka.NoNode}, func() peer.Message { return &raftMessages{} }},
	} {
		if err := c.new().Decode(c.bad.Append(nil)); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func FuzzDecodeMessages(f *testing.F) {
	for _, c := range messageCases() {
		f.Add(c.full.Append(nil))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		for name, c := range messageCases() {
			m := c.new()
			if m.Decode(bytes.Clone(b)) != nil {
				continue
			}
			again := c.new()
			if err := again.Decode(m.Append(nil)); err != nil {
				t.Errorf("%s: what was read cannot be written and read again: %v", name, err)
			}
		}
	})
}

func FuzzDecodeFetched(f *testing.F) {
	b, err := appendEntry(nil, testEntry(raftpb.EntryNormal, []byte("records")))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b, uint64(42), uint64(50))
	f.Fuzz(func(t *testing.T, b []byte, next, committed uint64) {
		entries, err := checkedEntries(b, next, committed)
		if err != nil {
			return
		}
		for i, e := range entries {
			if e.GetIndex() != next+uint64(i) || e.GetIndex() > committed {
				t.Error(fmt.Sprint("entry ", i, " has index ", e.GetIndex()))
			}
		}
	})
}
