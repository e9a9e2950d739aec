package server

import (
	"encoding/binary"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kmsg"

	"strandline.dev/internal/record"
)

// mutate returns the frame of a request with one change, and whether the frame is still a request of that key and version.
func (s *hostileSession) mutate(req kmsg.Request) (frame []byte, byField bool) {
	before := fmt.Sprintf("key %d version %d, ", req.Key(), req.GetVersion())
	switch s.rng.IntN(3) {
	case 0:
		frame, byField = s.frameOf(req), false
		s.what = before + s.mutateBytes(&frame)
	default:
		s.what = before + s.mutateField(req)
		frame, byField = s.frameOf(req), true
	}
	return frame, byField
}

func (s *hostileSession) frameOf(req kmsg.Request) []byte { return s.c.frame(req, s.c.next) }

// numbers are what a field of any width is set to, cut to the width.
var numbers = []int64{
	0, 1, -1, 2, -2, 127, 128, 255, math.MaxInt16, math.MinInt16, math.MaxInt32, math.MinInt32, math.MaxInt64, math.MinInt64, math.MaxInt32 - 1, 1 << 20,
}

func (s *hostileSession) number() int64 {
	if s.rng.IntN(4) == 0 {
		return int64(s.rng.Uint64())
	}
	return numbers[s.rng.IntN(len(numbers))]
}

// mutateBytes changes the frame somewhere behind its size, which mostly fits again afterwards.
func (s *hostileSession) mutateBytes(frame *[]byte) string {
	f := *frame
	at := 4 + s.rng.IntN(len(f)-4)
	left := len(f) - at
	var what string
	switch s.rng.IntN(7) {
	case 0:
		f[at] ^= 1 << s.rng.IntN(8)
		what = "a bit"
	case 1:
		f[at] = byte(s.number())
		what = "a byte"
	case 2:
		n := min(left, 4)
		v := binary.BigEndian.AppendUint32(nil, uint32(s.number()))
		copy(f[at:], v[4-n:])
		what = "a length of four bytes"
	case 3:
		n := min(left, 2)
		v := binary.BigEndian.AppendUint16(nil, uint16(s.number()))
		copy(f[at:], v[2-n:])
		what = "a length of two bytes"
	case 4:
		n := 1 + s.rng.IntN(min(left, 20))
		f = slices.Delete(f, at, at+n)
		what = fmt.Sprint(n, " bytes less")
	case 5:
		more := make([]byte, 1+s.rng.IntN(200))
		for i := range more {
			more[i] = byte(s.rng.IntN(256))
		}
		f = slices.Insert(f, at, more...)
		what = fmt.Sprint(len(more), " bytes more")
	case 6:
		f = slices.Insert(f, at, binary.AppendUvarint(nil, s.rng.Uint64())...)
		what = "a varint more"
	}
	binary.BigEndian.PutUint32(f, uint32(len(f)-4))
	if s.rng.IntN(20) == 0 {
		binary.BigEndian.PutUint32(f, uint32(len(f)-4+s.rng.IntN(100)-50))
		what += " and another size"
	}
	*frame = f
	return fmt.Sprintf("%s at byte %d", what, at)
}

// mutateField changes one field, or the batch inside the request.
func (s *hostileSession) mutateField(req kmsg.Request) string {
	if p, ok := req.(*kmsg.ProduceRequest); ok && s.rng.IntN(2) == 0 {
		return s.mutateBatch(&p.Topics[0].Partitions[0].Records)
	}
	var fields []namedField
	collectFields(reflect.ValueOf(req).Elem(), "", &fields)
	if len(fields) == 0 {
		return "nothing to change"
	}
	f := fields[s.rng.IntN(len(fields))]
	s.set(f.value)
	return fmt.Sprintf("%s = %.60s", f.name, strings.ToValidUTF8(fmt.Sprintf("%v", f.value.Interface()), "?"))
}

// mutateBatch changes a record batch, mostly under a checksum that is right again.
func (s *hostileSession) mutateBatch(records *[]byte) string {
	b := *records
	at := s.rng.IntN(len(b))
	switch s.rng.IntN(3) {
	case 0:
		b[at] ^= 1 << s.rng.IntN(8)
	case 1:
		v := binary.BigEndian.AppendUint64(nil, uint64(s.number()))
		copy(b[at:], v[8-min(len(b)-at, 1<<s.rng.IntN(4)):])
	case 2:
		b = slices.Delete(b, at, at+1+s.rng.IntN(len(b)-at))
	}
	sealed := s.rng.IntN(4) > 0 && len(b) >= record.HeaderSize
	if sealed {
		if s.rng.IntN(2) == 0 {
			binary.BigEndian.PutUint32(b[8:], uint32(len(b)-12))
		}
		mend(b)
	}
	*records = b
	return fmt.Sprintf("the batch at byte %d, checksum mended: %v", at, sealed)
}

// namedField is a place in a request that can be changed.
type namedField struct {
	name  string
	value reflect.Value
}

// collectFields lists every field of a request, those of the elements of arrays included.
func collectFields(v reflect.Value, name string, out *[]namedField) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			f := v.Type().Field(i)
			if !f.IsExported() || f.Name == "Version" || f.Name == "UnknownTags" {
				continue
			}
			collectFields(v.Field(i), name+"."+f.Name, out)
		}
		return
	case reflect.Slice:
		if v.Type().Elem().Kind() != reflect.Uint8 {
			for i := range v.Len() {
				collectFields(v.Index(i), fmt.Sprintf("%s[%d]", name, i), out)
			}
		}
	}
	*out = append(*out, namedField{name, v})
}

// set gives a field another value of its type.
func (s *hostileSession) set(v reflect.Value) {
	switch v.Kind() {
	case reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		v.SetInt(reflect.ValueOf(s.number()).Convert(v.Type()).Int())
	case reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(reflect.ValueOf(s.number()).Convert(v.Type()).Uint())
	case reflect.Bool:
		v.SetBool(!v.Bool())
	case reflect.String:
		v.SetString(s.text())
	case reflect.Pointer:
		if s.rng.IntN(3) == 0 || v.Type().Elem().Kind() != reflect.String {
			v.SetZero()
			return
		}
		text := s.text()
		v.Set(reflect.ValueOf(&text).Convert(v.Type()))
	case reflect.Array:
		v.Index(s.rng.IntN(v.Len())).SetUint(uint64(s.rng.IntN(256)))
	case reflect.Slice:
		s.setSlice(v)
	}
}

func (s *hostileSession) setSlice(v reflect.Value) {
	switch choice := s.rng.IntN(4); {
	case choice == 0:
		v.SetZero()
	case choice == 1 || v.Len() == 0:
		v.Set(reflect.MakeSlice(v.Type(), s.rng.IntN(3), 3))
	case choice == 2:
		v.Set(v.Slice(0, s.rng.IntN(v.Len())))
	default: // the same again and again
		for range 1 << s.rng.IntN(10) {
			v.Set(reflect.Append(v, v.Index(0)))
		}
	}
}

func (s *hostileSession) text() string {
	texts := []string{
		"", "\xff\xfe", "a\x00b", "line\r\nlevel=ERROR", ".", "..", "__consumer_offsets", "__cluster_metadata", "a/b", s.topic, s.group, s.member,
		strings.Repeat("x", 250), strings.Repeat("y", 5000), strings.Repeat("z", math.MaxInt16), "-1", "9223372036854775808", "{}", "*", "%s%n",
	}
	return texts[s.rng.IntN(len(texts))]
}
