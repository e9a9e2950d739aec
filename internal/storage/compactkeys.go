package storage

import (
	"crypto/sha256"

	"strandline.dev/internal/kafka"
)

// keyHash stands for a key in memory. It is cut from a cryptographic hash, because two keys with one hash would cost a record: nobody can
// make such a pair, and by chance there is none (128 bits).
type keyHash [16]byte

func hashKey(key []byte) keyHash {
	sum := sha256.Sum256(key)
	return keyHash(sum[:16])
}

// latestKeys knows the newest offset of each key in a part of a log. It has a bound (I14): when it is full, the part ends there, and what
// lies behind it is for the next pass.
type latestKeys struct {
	limit  int
	latest map[keyHash]kafka.Offset
}

func newLatestKeys(limit int) *latestKeys {
	return &latestKeys{limit: limit, latest: map[keyHash]kafka.Offset{}}
}

// note takes in a record; false means that the map is full and knows nothing of it.
func (k *latestKeys) note(key []byte, at kafka.Offset) bool {
	h := hashKey(key)
	if _, known := k.latest[h]; !known && len(k.latest) >= k.limit {
		return false
	}
	k.latest[h] = at
	return true
}

// superseded says that a newer record has the key of the one at this offset.
func (k *latestKeys) superseded(key []byte, at kafka.Offset) bool {
	newest, known := k.latest[hashKey(key)]
	return known && newest > at
}
