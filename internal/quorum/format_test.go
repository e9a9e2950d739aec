package quorum

import (
	"bytes"
	"errors"
	"testing"

	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/metadata"
	"strandline.dev/internal/record"
)

func testVoter() metadata.Voter {
	v := metadata.Voter{Node: 1, Directory: kafka.DirectoryID{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}, Address: "broker-1:9093"}
	v.RaftID, _ = raftID(v.Directory)
	return v
}

// formedImage is the Image of a cluster that was just formed.
func formedImage(t testing.TB) *metadata.Image {
	t.Helper()
	image, err := metadata.Empty().Apply(0, []metadata.Record{
		metadata.ClusterRecord{ClusterID: "q1bHRHpFT1mdmkfcCGfx3Q", Voters: []metadata.Voter{testVoter()}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return image
}

func testSnapshot(t testing.TB) snapshot {
	t.Helper()
	image, err := formedImage(t).Apply(42, []metadata.Record{metadata.ProducerIDsRecord{Next: 3000}})
	if err != nil {
		t.Fatal(err)
	}
	return snapshot{
		snapshotID: snapshotID{Index: 42, Term: 3},
		Conf:       &raftpb.ConfState{Voters: []uint64{testVoter().RaftID}},
		Image:      image,
	}
}

func testEntry(typ raftpb.EntryType, data []byte) *raftpb.Entry {
	return &raftpb.Entry{Type: typ.Enum(), Term: proto.Uint64(3), Index: proto.Uint64(42), Data: data}
}

func TestGoldenBytes(t *testing.T) {
	records := metadata.EncodeRecords(nil, []metadata.Record{metadata.ProducerIDsRecord{Next: 3000}})
	for name, e := range map[string]*raftpb.Entry{
		"entry-records": testEntry(raftpb.EntryNormal, records),
		"entry-empty":   testEntry(raftpb.EntryNormal, nil),
		"entry-change":  testEntry(raftpb.EntryConfChangeV2, []byte{0x08, 0x00}),
	} {
		b, err := appendEntry(nil, e)
		if err != nil {
			t.Fatal(err)
		}
		golden(t, name, b)
		back, err := decodeEntry(record.Batch(b))
		if err != nil || !proto.Equal(back, e) {
			t.Errorf("%s: decoded %v, %v; want %v", name, back, err, e)
		}
	}
	batch, err := appendEntry(nil, testEntry(raftpb.EntryNormal, records))
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "copy", appendCopyEntry(appendCopyHeader(nil, 42), batch))
	golden(t, "vote", encodeVote(vote{Term: 3, For: testVoter().RaftID}))
	b, err := encodeSnapshot(testSnapshot(t))
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "snapshot", b)
}

func TestVoteReadsBackOrIsRefused(t *testing.T) {
	want := vote{Term: 7, For: 1 << 63}
	good := encodeVote(want)
	if got, err := decodeVote(good); err != nil || got != want {
		t.Fatalf("got %v, %v", got, err)
	}
	if _, err := decodeVote(nil); !errors.Is(err, errVoteSize) {
		t.Errorf("empty: %v", err)
	}
	for bit := range 8 * len(good) {
		bad := bytes.Clone(good)
		bad[bit/8] ^= 1 << (bit % 8)
		if v, err := decodeVote(bad); err == nil {
			t.Errorf("bit %d flipped: read %v", bit, v)
		}
	}
}

func TestSnapshotReadsBackOrIsRefused(t *testing.T) {
	want := testSnapshot(t)
	good, err := encodeSnapshot(want)
	if err != nil {
		t.Fatal(err)
	}
	got, err := decodeSnapshot(good)
	if err != nil {
		t.Fatal(err)
	}
	if got.snapshotID != want.snapshotID || !proto.Equal(got.Conf, want.Conf) ||
		!bytes.Equal(metadata.EncodeImage(nil, got.Image), metadata.EncodeImage(nil, want.Image)) {
		t.Fatalf("read back %+v", got)
	}
	for n := range len(good) {
		if _, err := decodeSnapshot(good[:n]); err == nil {
			t.Errorf("cut to %d bytes: accepted", n)
		}
	}
	for bit := range 8 * len(good) {
		bad := bytes.Clone(good)
		bad[bit/8] ^= 1 << (bit % 8)
		if _, err := decodeSnapshot(bad); err == nil {
			t.Errorf("bit %d flipped: accepted", bit)
		}
	}
}

func TestSnapshotOfOtherVotersIsRefused(t *testing.T) {
	for name, change := range map[string]func(*snapshot){
		"unknown voter": func(s *snapshot) { s.Conf.Voters = append(s.Conf.Voters, 99) },
		"no voter":      func(s *snapshot) { s.Conf = &raftpb.ConfState{} },
		"other index":   func(s *snapshot) { s.Index = 41 },
	} {
		s := testSnapshot(t)
		change(&s)
		b, err := encodeSnapshot(s)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := decodeSnapshot(b); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func TestSnapshotNames(t *testing.T) {
	id := snapshotID{Index: 123, Term: 4}
	if got := id.file(); got != "00000000000000000123-0000000004.snap" {
		t.Errorf("name %q", got)
	}
	if back, ok := parseSnapshotName(id.file()); !ok || back != id {
		t.Errorf("read back %v, %v", back, ok)
	}
	for _, bad := range []string{
		"", "x.snap", "123-4.snap", id.file() + ".tmp", "+0000000000000000123-0000000004.snap",
		"00000000000000000123-9999999999.snap", "00000000000000000123_0000000004.snap", "99999999999999999999-0000000004.snap",
	} {
		if got, ok := parseSnapshotName(bad); ok {
			t.Errorf("%q was read as %v", bad, got)
		}
	}
}

func TestEntryRefusesWhatItCannotHold(t *testing.T) {
	e := testEntry(raftpb.EntryNormal, nil)
	e.Term = proto.Uint64(maxTerm + 1)
	if _, err := appendEntry(nil, e); !errors.Is(err, errTerm) {
		t.Errorf("term 2^31: %v", err)
	}
	build := func(codec record.Codec, values ...[]byte) record.Batch {
		b := record.NewBuilder(codec)
		for _, v := range values {
			b.Add(noTimestamp, nil, v, nil)
		}
		batch := b.Build()
		batch.SetBaseOffset(42)
		batch.SetLeaderEpoch(3)
		return batch
	}
	for name, b := range map[string]record.Batch{
		"two records":  build(record.None, []byte{0}, []byte{0}),
		"compressed":   build(record.Gzip, bytes.Repeat([]byte{0}, 100)),
		"no value":     build(record.None, nil),
		"unknown type": build(record.None, []byte{3}),
	} {
		if e, err := decodeEntry(b); err == nil {
			t.Errorf("%s: decoded %v", name, e)
		}
	}
}

func TestDirectoryIDsThatRaftReservesAreRefused(t *testing.T) {
	for _, d := range []kafka.DirectoryID{{}, {15: 1}, {255, 255, 255, 255, 255, 255, 255, 255}, {255, 255, 255, 255, 255, 255, 255, 254}} {
		if id, err := raftID(d); err == nil {
			t.Errorf("%s became raft id %d", d, id)
		}
	}
}

func FuzzDecodeCopy(f *testing.F) {
	b, err := appendEntry(nil, testEntry(raftpb.EntryNormal, []byte("records")))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(uint64(42), b)
	f.Add(uint64(42), []byte{})
	f.Fuzz(func(t *testing.T, first uint64, batches []byte) {
		// With the right checksums, so that fuzzing reaches what is behind them.
		file := appendCopyHeader(nil, first)
		file, _, err := appendCopyEntries(file, batches)
		if err != nil {
			return
		}
		c, err := decodeCopy(file)
		if err != nil {
			return
		}
		for i, e := range c.entries {
			if e.GetIndex() != first+uint64(i) || c.at(e.GetIndex()) != e {
				t.Errorf("entry %d of a copy from %d on has index %d", i, first, e.GetIndex())
			}
		}
		if _, err := decodeCopy(append(file, 0)); err == nil {
			t.Error("a byte more was accepted")
		}
	})
}

// FuzzDecodeCopyBytes takes bytes as they come.
func FuzzDecodeCopyBytes(f *testing.F) {
	f.Add(appendCopyHeader(nil, 42))
	f.Fuzz(func(t *testing.T, b []byte) {
		if c, err := decodeCopy(b); err == nil && c.end() < c.first {
			t.Errorf("%x was read as [%d, %d)", b, c.first, c.end())
		}
	})
}

func FuzzDecodeVote(f *testing.F) {
	f.Add(encodeVote(vote{Term: 3, For: 9}))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		if v, err := decodeVote(b); err == nil && !bytes.Equal(encodeVote(v), b) {
			t.Errorf("%x was read as %v, which is written as %x", b, v, encodeVote(v))
		}
	})
}

func FuzzDecodeSnapshot(f *testing.F) {
	b, err := encodeSnapshot(testSnapshot(f))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b[:len(b)-4])
	f.Add([]byte(snapshotMagic))
	f.Fuzz(func(t *testing.T, body []byte) {
		s, err := decodeSnapshot(sealed(body))
		if err != nil {
			return
		}
		again, err := encodeSnapshot(s)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := decodeSnapshot(again); err != nil {
			t.Errorf("what was read cannot be written and read again: %v", err)
		}
	})
}

func FuzzDecodeEntries(f *testing.F) {
	b, err := appendEntry(nil, testEntry(raftpb.EntryNormal, []byte("records")))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Add(append(bytes.Clone(b), b...))
	f.Fuzz(func(t *testing.T, b []byte) {
		entries, err := decodeEntries(b)
		if err != nil {
			return
		}
		for _, e := range entries {
			if e.GetIndex() == 0 || e.GetTerm() == 0 {
				t.Errorf("decoded an entry without index or term: %v", e)
			}
		}
	})
}
