package server

import (
	"encoding/hex"
	"reflect"
	"testing"
	"time"

	"strandline.dev/internal/kafka"
)

// TestForward_Bytes: a forwarded request and its answer, there and back; a cut one is refused.
func TestForward_Bytes(t *testing.T) {
	m := forwarded{
		who: kafka.Principal{Type: "User", Name: "a"}, client: "rest", from: "h:1", listener: "", wait: time.Second, key: 3, version: 12, body: []byte{9},
	}
	b := m.Append(nil)
	const want = "4e5200" + "05" + "55736572" + "02" + "61" + "05" + "72657374" + "04" + "683a31" + "01" + "000000003b9aca00" + "0003" + "000c" + "0209" + "00"
	if got := hex.EncodeToString(b); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	var back forwarded
	if err := back.Decode(b); err != nil || !reflect.DeepEqual(back, m) {
		t.Errorf("%+v %v", back, err)
	}
	if back.Decode(b[:len(b)-1]) == nil {
		t.Error("a cut request is taken")
	}
	a := forwardedAnswer{[]byte{1, 2}}
	if err := a.Decode(a.Append(nil)); err != nil || len(a.body) != 2 {
		t.Errorf("%+v %v", a, err)
	}
}
