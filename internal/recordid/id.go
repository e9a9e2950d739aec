package recordid

import (
	"crypto/sha256"
	"hash/crc32"

	"strandline.dev/internal/record"
)

// ID is the first half of the SHA-256 of a record id. The hash is one that nobody finds two inputs of: a record whose id collides with
// another's would be answered as stored and be lost.
type ID [16]byte

// Hash is the ID of a record id as it stands in the header.
func Hash(id []byte) ID {
	sum := sha256.Sum256(id)
	return ID(sum[:16])
}

// Carried is the id of one record of a batch.
type Carried struct {
	ID ID
	// Delta is the record's offset less the batch's base offset.
	Delta int32
	// Content is a checksum of key and value: it tells an id that was used for something else, a mistake of the client's.
	Content uint32
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Read lists the ids that the records of a batch carry in that header, in order. maxDecompressed and errors are those of
// record.Batch.Records.
func Read(b record.Batch, header string, maxDecompressed int) ([]Carried, error) {
	var out []Carried
	err := b.EachWith(header, maxDecompressed, func(r *record.Record, value []byte) {
		if out == nil {
			out = make([]Carried, 0, b.Count()) // the count of a batch that was validated, or whose first record was there
		}
		out = append(out, Carried{ID: Hash(value), Delta: r.OffsetDelta, Content: content(r.Key, r.Value)})
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// content tells null from empty, and where the key ends.
func content(key, value []byte) uint32 {
	seed := uint32(len(key)) << 2
	if key == nil {
		seed |= 1
	}
	if value == nil {
		seed |= 2
	}
	return crc32.Update(crc32.Checksum(key, castagnoli)^seed, castagnoli, value)
}
