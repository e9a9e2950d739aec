package metadata

import (
	"maps"
	"math"
	"slices"
	"time"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/wire"
)

// coder walks over a message in both directions, so that what is written and what is read cannot differ: with d nil it appends to e, else it
// fills in from d. Records have two hand-written halves instead, because their layouts must be readable apart from today's structs.
type coder struct {
	e *wire.Encoder
	d *wire.Decoder
}

// small and wide are the integers that travel in 4 and 8 bytes.
type small interface{ ~int8 | ~int16 | ~int32 }

type wide interface{ ~int | ~int64 | ~uint64 }

func num32[T small](c *coder, v *T) {
	if c.d == nil {
		c.e.Int32(int32(*v))
		return
	}
	n := c.d.Int32()
	if *v = T(n); int32(*v) != n {
		c.d.Fail(wire.ErrMalformed)
	}
}

func num64[T wide](c *coder, v *T) {
	if c.d == nil {
		c.e.Int64(int64(*v))
		return
	}
	*v = T(c.d.Int64())
}

func (c *coder) float(v *float64) {
	n := math.Float64bits(*v)
	num64(c, &n)
	*v = math.Float64frombits(n)
}

func (c *coder) bool(v *bool) {
	if c.d == nil {
		c.e.Bool(*v)
		return
	}
	*v = c.d.Bool()
}

func (c *coder) text(v *string) {
	if c.d == nil {
		c.e.String(*v)
		return
	}
	*v = c.d.String()
}

func (c *coder) maybe(v **string) {
	if c.d == nil {
		c.e.NullableString(*v)
		return
	}
	*v = c.d.NullableString()
}

// bytes does not keep what it was decoded from; the empty slice is nil.
func (c *coder) bytes(v *[]byte) {
	if c.d == nil {
		c.e.Bytes(*v)
		return
	}
	*v = ownBytes(c.d)
}

func (c *coder) id(v *kafka.ID) {
	if c.d == nil {
		c.e.ID(*v)
		return
	}
	*v = c.d.ID()
}

// time keeps milliseconds, as records do. The zero time is 0.
func (c *coder) time(v *time.Time) {
	var ms int64
	if !v.IsZero() {
		ms = v.UnixMilli()
	}
	num64(c, &ms)
	if c.d != nil && ms != 0 {
		*v = time.UnixMilli(ms).UTC()
	}
}

func (c *coder) tp(v *kafka.TopicPartition) {
	c.id(&v.Topic)
	num32(c, &v.Partition)
}

// end closes a struct; unknown tags are skipped.
func (c *coder) end() {
	if c.d == nil {
		c.e.NoTags()
		return
	}
	c.d.Tags(nil)
}

// array walks over a list whose elements take at least least bytes each.
func array[T any](c *coder, list *[]T, least int, one func(*coder, *T)) {
	if c.d != nil {
		*list = wire.ReadArray(c.d, least, func(*wire.Decoder) T {
			var v T
			one(c, &v)
			return v
		})
		return
	}
	c.e.ArrayLen(len(*list))
	for i := range *list {
		one(c, &(*list)[i])
	}
}

func (c *coder) nodes(list *[]kafka.NodeID) { array(c, list, 4, num32[kafka.NodeID]) }

func (c *coder) tps(list *[]kafka.TopicPartition) { array(c, list, 20, (*coder).tp) }

// entry is one pair of a map, in key order on the wire.
type entry[V any] struct {
	key   string
	value V
}

func dictionary[V any](c *coder, m *map[string]V, value func(*coder, *V)) {
	var list []entry[V]
	for _, k := range slices.Sorted(maps.Keys(*m)) {
		list = append(list, entry[V]{k, (*m)[k]})
	}
	array(c, &list, 2, func(c *coder, e *entry[V]) {
		c.text(&e.key)
		value(c, &e.value)
	})
	if c.d == nil || len(list) == 0 {
		return
	}
	*m = make(map[string]V, len(list))
	for i, e := range list {
		if i > 0 && e.key <= list[i-1].key { // one value has one encoding
			c.d.Fail(wire.ErrMalformed)
		}
		(*m)[e.key] = e.value
	}
}
