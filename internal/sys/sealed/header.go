package sealed

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"hash/crc32"
)

// The header of a sealed file has 256 bytes:
//
//	0   4  magic
//	4   2  version
//	6   2  length of the wrapped data key, w
//	8   1  length of the key's name, k
//	9   k  name of the key that wraps it
//	72  w  the wrapped data key
//	.. zeros
//	252 4  CRC32C of everything before
const (
	headerBytes   = 256
	headerMagic   = "SEAL"
	headerVersion = 1
	wrappedAt     = 72
	wrappedMax    = headerBytes - 4 - wrappedAt
)

// newHeader makes a data key and appends its header.
func newHeader(dst []byte, keys Keys, bound []byte) (*sealer, []byte, error) {
	id, err := keys.Newest()
	if err != nil {
		return nil, dst, err
	}
	dataKey := make([]byte, keyBytes)
	rand.Read(dataKey)
	wrapped, err := keys.Wrap(id, dataKey, bound)
	if err != nil {
		return nil, dst, err
	}
	if len(wrapped) > wrappedMax || len(id) > keyIDMax {
		return nil, dst, errors.New("the wrapped key does not fit in a file's header")
	}
	h := make([]byte, headerBytes)
	copy(h, headerMagic)
	binary.BigEndian.PutUint16(h[4:], headerVersion)
	binary.BigEndian.PutUint16(h[6:], uint16(len(wrapped)))
	h[8] = uint8(len(id))
	copy(h[9:], id)
	copy(h[wrappedAt:], wrapped)
	binary.BigEndian.PutUint32(h[headerBytes-4:], crc32.Checksum(h[:headerBytes-4], castagnoli))
	a, err := newAEAD(dataKey)
	return &sealer{a, bound}, append(dst, h...), err
}

// readHeader splits a header; false if it is none that was written.
func readHeader(h []byte) (id string, wrapped []byte, ok bool) {
	if len(h) < headerBytes || string(h[:4]) != headerMagic || binary.BigEndian.Uint16(h[4:]) != headerVersion ||
		crc32.Checksum(h[:headerBytes-4], castagnoli) != binary.BigEndian.Uint32(h[headerBytes-4:]) {
		return "", nil, false
	}
	w, k := int(binary.BigEndian.Uint16(h[6:])), int(h[8])
	if w > wrappedMax || k > keyIDMax {
		return "", nil, false
	}
	return string(h[9 : 9+k]), h[wrappedAt : wrappedAt+w], true
}

// openHeader gives the data key of a header. Errors: ErrNoKeys and those of Keys.
func openHeader(keys Keys, id string, wrapped, bound []byte) (*sealer, error) {
	if keys == nil {
		return nil, ErrNoKeys
	}
	dataKey, err := keys.Unwrap(id, wrapped, bound)
	if err != nil {
		return nil, err
	}
	if len(dataKey) != keyBytes {
		return nil, ErrWrongKey
	}
	a, err := newAEAD(dataKey)
	return &sealer{a, bound}, err
}
