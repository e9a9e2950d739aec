package wire

import (
	"encoding/hex"
	"errors"
	"reflect"
	"testing"

	"strandline.dev/internal/kafka"
)

// TestOutcome_Bytes: the bytes of docs/formats/produce-outcome.md, there and back; a cut one is refused.
func TestOutcome_Bytes(t *testing.T) {
	for _, c := range []struct {
		o    Outcome
		want string
	}{
		{Outcome{LeaderEpoch: 7}, "271a00" + "00000007" + "00" + "00" + "01" + "00"},
		{Outcome{LeaderEpoch: kafka.NoEpoch, DedupOff: true}, "271a00" + "ffffffff" + "00" + "01" + "01" + "00"},
		{Outcome{LeaderEpoch: 7, DiskLimit: true}, "271a00" + "00000007" + "00" + "00" + "01" + "010000"},
		{Outcome{LeaderEpoch: 1, Unknown: true, Repeats: []Repeat{{2, 81, true}}},
			"271a00" + "00000001" + "01" + "00" + "02" + "00000002" + "0000000000000051" + "01" + "00"},
	} {
		b := c.o.Append(nil)
		if got := hex.EncodeToString(b); got != c.want {
			t.Errorf("%+v: %s, want %s", c.o, got, c.want)
		}
		var back Outcome
		if err := back.Decode(b); err != nil || len(back.Repeats) != len(c.o.Repeats) || (len(back.Repeats) > 0 && !reflect.DeepEqual(back, c.o)) || back.LeaderEpoch != c.o.LeaderEpoch || back.DiskLimit != c.o.DiskLimit {
			t.Errorf("back: %+v %v", back, err)
		}
		if err := back.Decode(b[:len(b)-1]); !errors.Is(err, ErrShort) {
			t.Errorf("cut: %v", err)
		}
	}
}
