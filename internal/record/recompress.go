package record

import "encoding/binary"

// Recompress returns the batch with its records in another compression, in bytes of its own and with a new CRC; b itself if that is
// the codec it has. Everything else of the header stays. It decompresses at most limit bytes (0: DecompressedLimit of the batch).
// Errors: ErrCodec, ErrCompressed, ErrTooLarge.
func Recompress(b Batch, codec Codec, limit int) (Batch, error) {
	if b.Codec() == codec {
		return b, nil
	}
	payload, release, err := b.plain(limit)
	if err != nil {
		return nil, err
	}
	defer release()
	out := make([]byte, HeaderSize, HeaderSize+len(payload)/2)
	copy(out, b[:HeaderSize])
	if out, err = Compress(codec, out, payload); err != nil {
		return nil, err
	}
	if len(out) > maxBatchSize {
		return nil, ErrTooLarge
	}
	nb := Batch(out)
	binary.BigEndian.PutUint16(nb[posAttributes:], uint16(b.Attributes())&^codecMask|uint16(codec))
	nb.seal()
	return nb, nil
}

// seal writes the length and the CRC, when everything else is in place.
func (b Batch) seal() {
	binary.BigEndian.PutUint32(b[posLength:], uint32(len(b)-lengthOverhead))
	b.putCRC()
}
