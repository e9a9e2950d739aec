package wire

import (
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"
)

var rewrite = flag.Bool("rewrite", false, "write testdata instead of comparing with it")

// golden compares got with the file of that name in testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *rewrite {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s changed; got\n%s", file, got)
	}
}

// fill sets every field of a kmsg struct to random values, arrays to a few elements.
func fill(rng *rand.Rand, v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if rng.IntN(3) == 0 {
			v.SetZero()
			return
		}
		v.Set(reflect.New(v.Type().Elem()))
		fill(rng, v.Elem())
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[kmsg.Tags]() {
			return
		}
		for i := range v.NumField() {
			if name := v.Type().Field(i).Name; name != "Version" && name != "SnapshotID" {
				fill(rng, v.Field(i))
			}
		}
	case reflect.Slice:
		n := rng.IntN(4)
		v.Set(reflect.MakeSlice(v.Type(), n, n))
		for i := range n {
			e := v.Index(i)
			if e.Addr().CanInterface() {
				if d, ok := e.Addr().Interface().(interface{ Default() }); ok {
					d.Default()
				}
			}
			fill(rng, e)
		}
	case reflect.Array:
		for i := range v.Len() {
			fill(rng, v.Index(i))
		}
	case reflect.Uint16:
		v.SetUint(uint64(rng.IntN(1 << 16)))
	case reflect.String:
		v.SetString(fmt.Sprintf("s%d", rng.IntN(1000)))
	case reflect.Float64:
		v.SetFloat(rng.Float64())
	case reflect.Bool:
		v.SetBool(rng.IntN(2) == 0)
	case reflect.Uint8:
		v.SetUint(rng.Uint64() & 0xff)
	case reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		v.SetInt(rng.Int64N(300) - 1)
	default:
		panic("fill: " + v.Kind().String())
	}
}

// randomRequest is a request with random content, in the version's layout.
func randomRequest(rng *rand.Rand, key, version int16) kmsg.Request {
	req := kmsg.RequestForKey(key)
	req.SetVersion(version)
	fill(rng, reflect.ValueOf(req).Elem())
	return req
}

// eachVersion calls fn for every row of the table and every version of it, those below our minimum included.
func eachVersion(fn func(a API, version int16)) {
	for _, a := range APIs() {
		for v := int16(0); v <= a.Max; v++ {
			fn(a, v)
		}
	}
}

// parseErrors are the only errors that hostile bytes may cause.
func isParseError(err error) bool {
	for _, want := range []error{ErrShort, ErrMalformed, ErrTrailing, ErrBudget, ErrUnknownKey, ErrVersionTooNew, ErrVersionTooOld} {
		if errors.Is(err, want) {
			return true
		}
	}
	return false
}
