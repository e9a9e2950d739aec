package wire

import (
	"encoding/hex"
	"errors"
	"reflect"
	"testing"

	"strandline.dev/internal/kafka"
)

// TestGolden_TopicLife: the bytes of docs/formats/topic-requests.md; what they hold is read back, and nothing is read from a part of them.
func TestGolden_TopicLife(t *testing.T) {
	id := kafka.TopicID(testID())
	for _, one := range []struct {
		name   string
		golden string
		append func(*Encoder)
		decode func([]byte) (any, error)
		want   any
	}{
		{
			"life", "271400" + "0000000000000003" + "00000000000003e8" + "07557365723a61" + "00", TopicLife{3, 1000, "User:a"}.Append,
			func(b []byte) (any, error) { return DecodeTopicLife(b) }, TopicLife{3, 1000, "User:a"},
		},
		{
			"restoration by id", "271700" + "0102030405060708090a0b0c0d0e0f10" + "0100", Restoration{ID: id}.Append,
			func(b []byte) (any, error) { return DecodeRestoration(b) }, Restoration{ID: id},
		},
		{
			"restoration by name", "271700" + "00000000000000000000000000000000" + "046f6c64" + "00", Restoration{Name: "old"}.Append,
			func(b []byte) (any, error) { return DecodeRestoration(b) }, Restoration{Name: "old"},
		},
		{
			"trash",
			"271500" + "00000002" + "02" + "0102030405060708090a0b0c0d0e0f10" + "046f6c64" + "0000000000000002" + "00000004" + "00000000000003e8" +
				"00000000000007d0" + "0262" + "01" + "00000001" + "00",
			Trash{2, []TrashedTopic{{id, "old", 2, 4, 1000, 2000, "b", true, 1}}}.Append,
			func(b []byte) (any, error) { return DecodeTrash(b) }, Trash{2, []TrashedTopic{{id, "old", 2, 4, 1000, 2000, "b", true, 1}}},
		},
		{
			"number", "0000000000000007", func(e *Encoder) { e.B = NumberTag(7) },
			func(b []byte) (any, error) { return ReadNumberTag(b) }, int64(7),
		},
	} {
		var e Encoder
		one.append(&e)
		if got := hex.EncodeToString(e.B); got != one.golden {
			t.Errorf("%s:\n%s, want\n%s", one.name, got, one.golden)
		}
		if got, err := one.decode(e.B); err != nil || !reflect.DeepEqual(got, one.want) {
			t.Errorf("%s: %+v, %v", one.name, got, err)
		}
		for n := range e.B {
			if _, err := one.decode(e.B[:n]); err == nil {
				t.Errorf("%s: read from its first %d bytes", one.name, n)
			}
		}
		if _, err := one.decode(append(e.B, 0)); err == nil {
			t.Errorf("%s: read with a byte too many", one.name)
		}
	}
	for name, v := range map[string]Restoration{"nameless": {}, "named twice": {id, "old"}} {
		var e Encoder
		v.Append(&e)
		if _, err := DecodeRestoration(e.B); !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := ReadNumberTag(NumberTag(-1)); !errors.Is(err, ErrMalformed) {
		t.Errorf("a number below 0: %v", err)
	}
}

func FuzzTopicLife(f *testing.F) {
	var e Encoder
	Trash{1, []TrashedTopic{{Name: "old"}}}.Append(&e)
	f.Add(e.B)
	f.Fuzz(func(t *testing.T, b []byte) {
		if v, err := DecodeTrash(b); err == nil && len(v.Topics)*trashedBytesMin > len(b) {
			t.Errorf("%d topics in %d bytes", len(v.Topics), len(b))
		}
		_, _ = DecodeTopicLife(b)
		_, _ = DecodeRestoration(b)
		_, _ = ReadNumberTag(b)
	})
}
