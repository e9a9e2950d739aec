package metadata

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"strandline.dev/internal/wire"
)

// filled returns a value of a type in which nothing is zero, so that a field the codec forgets is noticed.
func filled(t reflect.Type, n *int) reflect.Value {
	v := reflect.New(t).Elem()
	*n++
	switch {
	case t == reflect.TypeFor[time.Time]():
		v.Set(reflect.ValueOf(time.UnixMilli(1767225600000 + int64(*n)).UTC()))
		return v
	case t == reflect.TypeFor[time.Duration]():
		v.SetInt(int64(*n) * int64(time.Millisecond))
		return v
	}
	switch t.Kind() {
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		v.SetInt(int64(*n % 100))
	case reflect.Float64:
		v.SetFloat(float64(*n) + 0.5)
	case reflect.Uint8, reflect.Uint64:
		v.SetUint(uint64(*n % 100))
	case reflect.String:
		v.SetString(fmt.Sprintf("s%d", *n))
	case reflect.Array:
		for i := range t.Len() {
			v.Index(i).Set(filled(t.Elem(), n))
		}
	case reflect.Slice:
		v.Set(reflect.Append(v, filled(t.Elem(), n), filled(t.Elem(), n)))
	case reflect.Map:
		v.Set(reflect.MakeMap(t))
		for range 2 {
			v.SetMapIndex(filled(t.Key(), n), filled(t.Elem(), n))
		}
	case reflect.Pointer:
		v.Set(reflect.New(t.Elem()))
		v.Elem().Set(filled(t.Elem(), n))
	case reflect.Struct:
		for i := range t.NumField() {
			v.Field(i).Set(filled(t.Field(i).Type, n))
		}
	default:
		panic(fmt.Sprintf("cannot fill %v", t))
	}
	return v
}

// typeOf is the type that a layout lays out.
func (l layout) typeOf() reflect.Type {
	return reflect.TypeOf(l.decode(&coder{d: wire.NewDecoder(nil)}))
}

// typeName names a type, or the type of a list's elements.
func typeName(t reflect.Type) string {
	if t.Kind() == reflect.Slice {
		return t.Elem().Name() + "s"
	}
	return t.Name()
}

// TestGoldenMessages pins the bytes of every event and reply: nodes of two releases forward them to each other. The values have no zero field, so
// that one the codec leaves out does not survive.
func TestGoldenMessages(t *testing.T) {
	var b strings.Builder
	for what, layouts := range map[string][]layout{"event": eventLayouts, "reply": replyLayouts} {
		for i, l := range layouts {
			if int(l.number) != i+1 {
				t.Errorf("%s %d has number %d", what, i+1, l.number)
			}
		}
	}
	check := func(what string, l layout, back func([]byte) (any, error)) {
		n := 0
		v := filled(l.typeOf(), &n).Interface()
		raw := encodeLaid(nil, []layout{l}, v)
		fmt.Fprintf(&b, "%s %d %s %s\n", what, l.number, typeName(l.typeOf()), hex.EncodeToString(raw))
		if got, err := back(raw); err != nil || !reflect.DeepEqual(got, v) {
			t.Errorf("%s %T does not survive: %v\n%+v\n%+v", what, v, err, v, got)
		}
		zero := reflect.Zero(l.typeOf()).Interface()
		if got, err := back(encodeLaid(nil, []layout{l}, zero)); err != nil || !reflect.DeepEqual(got, zero) {
			t.Errorf("%s: zero %T does not survive: %v, %+v", what, zero, err, got)
		}
		for cut := range raw {
			if _, err := back(raw[:cut]); !errors.Is(err, ErrMessage) {
				t.Errorf("%s %T: %d of %d bytes: %v", what, v, cut, len(raw), err)
			}
		}
		if _, err := back(append(bytes.Clone(raw), 0)); !errors.Is(err, ErrMessage) {
			t.Errorf("%s %T: a byte behind it: %v", what, v, err)
		}
		for at := range 3 {
			other := bytes.Clone(raw)
			other[at] += 100
			if _, err := back(other); !errors.Is(err, ErrMessage) {
				t.Errorf("%s %T: another type or version: %v", what, v, err)
			}
		}
	}
	for _, l := range eventLayouts {
		check("event", l, func(b []byte) (any, error) { return DecodeEvent(b) })
	}
	for _, l := range replyLayouts {
		check("reply", l, DecodeReply)
	}
	golden(t, "messages.txt", b.String())
}

// TestMessages_EveryEventAndReplyHasALayout: an event without one would be a panic on the node that is not the active controller.
func TestMessages_EveryEventAndReplyHasALayout(t *testing.T) {
	src, err := os.ReadFile("event.go")
	if err != nil {
		t.Fatal(err)
	}
	var have, want []string
	for _, l := range eventLayouts {
		have = append(have, l.typeOf().Name())
	}
	for _, m := range regexp.MustCompile(`func \((\w+)\) event\(\)`).FindAllStringSubmatch(string(src), -1) {
		want = append(want, m[1])
	}
	slices.Sort(have)
	slices.Sort(want)
	if !slices.Equal(have, want) || len(want) == 0 {
		t.Errorf("events with a layout: %v\nevents: %v", have, want)
	}
	replies := map[string]bool{}
	for _, l := range replyLayouts {
		replies[strings.TrimSuffix(typeName(l.typeOf()), "s")] = true
	}
	for _, m := range regexp.MustCompile(`Reply: (?:\[\])?(\w+)`).FindAllStringSubmatch(string(src), -1) {
		if !replies[strings.TrimSuffix(m[1], "s")] {
			t.Errorf("reply %s has no layout", m[1])
		}
	}
}

func FuzzDecodeEvent(f *testing.F) {
	fuzzMessages(f, eventLayouts, func(b []byte) (any, error) { return DecodeEvent(b) })
}

func FuzzDecodeReply(f *testing.F) { fuzzMessages(f, replyLayouts, DecodeReply) }

func fuzzMessages(f *testing.F, layouts []layout, decode func([]byte) (any, error)) {
	for _, l := range layouts {
		n := 0
		f.Add(encodeLaid(nil, []layout{l}, filled(l.typeOf(), &n).Interface()))
		f.Add(encodeLaid(nil, []layout{l}, reflect.Zero(l.typeOf()).Interface()))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		v, err := decode(b)
		if err != nil {
			return
		}
		back, err := decode(encodeLaid(nil, layouts, v))
		if err != nil || !reflect.DeepEqual(v, back) {
			t.Fatalf("%v: %+v became %+v", err, v, back)
		}
		if ev, ok := v.(Event); ok { // whatever a node sends, deciding on it is safe
			goldenImage(t).Decide(ev)
		}
	})
}
