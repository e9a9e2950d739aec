package sealed

import (
	"crypto/cipher"
	"crypto/rand"
	"encoding/binary"
	"hash/crc32"
)

// A frame is what one write, or a part of it, adds to a file:
//
//	0   2  magic
//	2   1  kind: 1 bytes, 2 a cut
//	3   1  zero
//	4   4  number of plain bytes, n (0 for a cut)
//	8   8  plain position: where the bytes lie, or where a cut ends the file
//	16  12 nonce, random
//	28  4  CRC32C of the 28 bytes before
//	32  n  the bytes, encrypted
//	..  16 tag
//
// The first 16 bytes, and the name of the directory, are authenticated with the bytes. All integers are big endian.
const (
	frameHeader = 32
	frameTag    = 16
	frameMagic  = 0x5ea1
	kindBytes   = 1
	kindCut     = 2
	nonceAt     = 16
	crcAt       = 28
)

// frame is the header of a frame.
type frame struct {
	kind  uint8
	n     int64
	plain int64
}

func (f frame) size() int64 { return frameHeader + f.n + frameTag }

// parseFrame reads a frame's header; false if it is none.
func parseFrame(b []byte) (frame, bool) {
	if len(b) < frameHeader || binary.BigEndian.Uint16(b) != frameMagic || crc32.Checksum(b[:crcAt], castagnoli) != binary.BigEndian.Uint32(b[crcAt:]) {
		return frame{}, false
	}
	f := frame{kind: b[2], n: int64(binary.BigEndian.Uint32(b[4:])), plain: int64(binary.BigEndian.Uint64(b[8:]))}
	whole := f.kind == kindBytes && f.n > 0 && f.n <= frameMax || f.kind == kindCut && f.n == 0
	return f, whole && f.plain >= 0
}

// sealer encrypts the frames of one file.
type sealer struct {
	key   cipher.AEAD
	bound []byte // authenticated with each frame
}

// appendFrame encrypts bytes for a plain position. ad is scratch for what is authenticated with them.
func (s *sealer) appendFrame(dst []byte, ad *[]byte, kind uint8, plain int64, bytes []byte) []byte {
	start := len(dst)
	dst = binary.BigEndian.AppendUint16(dst, frameMagic)
	dst = append(dst, kind, 0)
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(bytes)))
	dst = binary.BigEndian.AppendUint64(dst, uint64(plain))
	dst = append(dst, make([]byte, crcAt-nonceAt)...)
	h := dst[start:]
	rand.Read(h[nonceAt:])
	dst = binary.BigEndian.AppendUint32(dst, crc32.Checksum(h, castagnoli))
	h = dst[start:]
	return s.key.Seal(dst, h[nonceAt:crcAt], bytes, s.authenticated(ad, h))
}

// openFrame decrypts a whole frame to dst; false if it is not what was written.
func (s *sealer) openFrame(dst []byte, ad *[]byte, b []byte) ([]byte, bool) {
	out, err := s.key.Open(dst, b[nonceAt:crcAt], b[frameHeader:], s.authenticated(ad, b))
	return out, err == nil
}

func (s *sealer) authenticated(ad *[]byte, h []byte) []byte {
	*ad = append(append((*ad)[:0], h[:nonceAt]...), s.bound...)
	return *ad
}
