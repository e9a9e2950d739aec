package wire

import (
	"encoding/binary"
	"math"
)

// kind is the wire type of a field.
type kind uint8

const (
	kindFixed    kind = iota // size bytes
	kindString               // int16 length, or compact
	kindBytes                // int32 length, or compact
	kindArray                // int32 length, or compact; elements are structs of fields, or one bare primitive
	kindNullable             // a struct behind a byte that is negative for null
)

// field describes one field of a request for the scan that runs before kmsg decodes: what is where, in which versions.
type field struct {
	kind     kind
	min, max int16
	size     int
	// fields are the elements' fields of kindArray and the struct's of kindNullable.
	fields []field
	// bare is true for arrays of primitives, whose elements have no tags.
	bare bool
}

// scanner walks over a request by its schema without building anything. It finds the end of the body (kmsg ignores bytes behind it),
// lengths that lie, and what the decoded form would cost (C084, K17).
type scanner struct {
	b        []byte
	version  int16
	flexible bool
	// cost is an estimate of the memory that kmsg will take, in bytes.
	cost, budget int64
	err          error
}

// scanRequest checks that body is exactly one request of this key and version whose decoded form stays below budget bytes. Errors:
// ErrUnknownKey, ErrShort, ErrMalformed, ErrTrailing, ErrBudget.
func scanRequest(key, version int16, body []byte, budget int64) error {
	fields, ok := schema(key)
	if !ok {
		return ErrUnknownKey
	}
	s := scanner{b: body, version: version, flexible: isFlexible(key, version), budget: budget}
	s.structure(fields)
	if s.err == nil && len(s.b) > strayBytes(key, version) {
		s.err = ErrTrailing
	}
	return s.err
}

// strayBytes is how many bytes may stand behind a request. librdkafka (seen in 2.11 and 2.16) leaves three behind a flexible Metadata
// request for all topics: it keeps room for a four-byte count and writes a one-byte one. Everything else must end where it ends (K14).
func strayBytes(key, version int16) int {
	if key == KeyMetadata && isFlexible(key, version) {
		return 3
	}
	return 0
}

func (s *scanner) structure(fields []field) {
	for i := range fields {
		f := &fields[i]
		if s.version < f.min || s.version > f.max {
			continue
		}
		s.one(f)
		if s.err != nil {
			return
		}
	}
	if s.flexible {
		s.tags()
	}
}

func (s *scanner) one(f *field) {
	switch f.kind {
	case kindFixed:
		s.skip(int64(f.size))
	case kindString:
		s.skip(max(s.length(2), 0))
	case kindBytes:
		s.skip(max(s.length(4), 0))
	case kindArray:
		s.array(f)
	case kindNullable:
		if len(s.b) == 0 {
			s.fail(ErrShort)
			return
		}
		present := int8(s.b[0]) >= 0
		s.b = s.b[1:]
		if present {
			s.spend(structCost)
			s.structure(f.fields)
		}
	}
}

func (s *scanner) array(f *field) {
	n := s.length(4)
	// Every element takes at least a byte, so a length beyond the rest is a lie whatever follows.
	if n > int64(len(s.b)) {
		s.fail(ErrShort)
	}
	if n <= 0 || s.err != nil {
		return
	}
	if f.bare {
		s.spend(n * primitiveCost)
	} else {
		s.spend(n * structCost)
	}
	for range n {
		if s.err != nil {
			return
		}
		if f.bare {
			s.one(&f.fields[0])
		} else {
			s.structure(f.fields)
		}
	}
}

// tags skips a tag section. Unknown tags are never an error; kmsg keeps them, so they cost.
func (s *scanner) tags() {
	n := s.uvarint()
	if n > int64(len(s.b)/2) {
		s.fail(ErrShort)
	}
	s.spend(n * tagCost)
	for range n {
		if s.err != nil {
			return
		}
		s.uvarint()
		s.skip(s.uvarint())
	}
}

// length reads the length of a string, bytes or array: classic of width bytes, or compact. -1 is null.
func (s *scanner) length(width int) int64 {
	if s.flexible {
		return s.uvarint() - 1
	}
	if len(s.b) < width {
		s.fail(ErrShort)
		return 0
	}
	var n int64
	if width == 2 {
		n = int64(int16(binary.BigEndian.Uint16(s.b)))
	} else {
		n = int64(int32(binary.BigEndian.Uint32(s.b)))
	}
	s.b = s.b[width:]
	if n < -1 {
		s.fail(ErrMalformed)
		return 0
	}
	return n
}

// uvarint reads an unsigned varint of at most 32 bits. Longer ones are malformed (K18).
func (s *scanner) uvarint() int64 {
	if len(s.b) > 0 && s.b[0] < 0x80 {
		v := s.b[0]
		s.b = s.b[1:]
		return int64(v)
	}
	v, n := binary.Uvarint(s.b)
	switch {
	case n == 0 && len(s.b) < binary.MaxVarintLen32:
		s.fail(ErrShort)
		return 0
	case n <= 0 || n > binary.MaxVarintLen32 || v > math.MaxUint32:
		s.fail(ErrMalformed)
		return 0
	}
	s.b = s.b[n:]
	return int64(v)
}

func (s *scanner) skip(n int64) {
	if n > int64(len(s.b)) {
		s.fail(ErrShort)
		return
	}
	if s.err == nil {
		s.b = s.b[n:]
	}
}

// spend counts what the decoded form will take; a budget of 0 means none.
func (s *scanner) spend(n int64) {
	s.cost += n
	if s.budget > 0 && s.cost > s.budget {
		s.fail(ErrBudget)
	}
}

func (s *scanner) fail(err error) {
	if s.err == nil {
		s.err = err
	}
	s.b = nil
}
