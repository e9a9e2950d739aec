package metadata

import (
	"iter"
	"slices"
)

// table is a persistent sorted map: two levels, an outer list of chunks. Copying a table value is a snapshot. A change copies the outer list and
// one chunk, so with 10,000 entries it costs some 200 words, not 10,000.
//
// Within one draft the copies are made once: a chunk that carries the draft's owner is changed in place. An owner is used by one draft and then
// dropped, so that what a published Image points to never changes again.
type table[K, V any] struct {
	compare func(a, b K) int
	chunks  []*chunk[K, V]
	size    int
	owner   *owner
}

type chunk[K, V any] struct {
	owner *owner
	keys  []K
	vals  []V
}

// owner is the identity of a draft. It has a size, so that two owners have two addresses.
type owner struct{ _ byte }

// chunkMax is the length at which a chunk is split: near the square root of 10,000 entries, where both levels cost the same to copy.
const chunkMax = 128

// chunkOf is the index of the chunk that holds k or would get it.
func (t *table[K, V]) chunkOf(k K) int {
	i, _ := slices.BinarySearchFunc(t.chunks, k, func(c *chunk[K, V], k K) int { return t.compare(c.keys[len(c.keys)-1], k) })
	return min(i, max(len(t.chunks)-1, 0))
}

// same says that two tables are one: neither has been changed since the other was copied from it.
func (t *table[K, V]) same(other *table[K, V]) bool {
	return t.size == other.size && (t.size == 0 || &t.chunks[0] == &other.chunks[0])
}

// get returns the value of a key.
func (t *table[K, V]) get(k K) (V, bool) {
	var zero V
	if len(t.chunks) == 0 {
		return zero, false
	}
	c := t.chunks[t.chunkOf(k)]
	i, ok := slices.BinarySearchFunc(c.keys, k, t.compare)
	if !ok {
		return zero, false
	}
	return c.vals[i], true
}

// set gives a key a value.
func (t *table[K, V]) set(o *owner, k K, v V) {
	t.own(o)
	if len(t.chunks) == 0 {
		t.chunks = append(t.chunks, &chunk[K, V]{owner: o, keys: []K{k}, vals: []V{v}})
		t.size++
		return
	}
	at := t.chunkOf(k)
	c := t.ownChunk(o, at)
	i, ok := slices.BinarySearchFunc(c.keys, k, t.compare)
	if ok {
		c.vals[i] = v
		return
	}
	c.keys, c.vals = slices.Insert(c.keys, i, k), slices.Insert(c.vals, i, v)
	t.size++
	if len(c.keys) > chunkMax {
		t.split(o, at)
	}
}

// remove forgets a key.
func (t *table[K, V]) remove(o *owner, k K) {
	if _, ok := t.get(k); !ok {
		return
	}
	t.own(o)
	at := t.chunkOf(k)
	c := t.ownChunk(o, at)
	i, _ := slices.BinarySearchFunc(c.keys, k, t.compare)
	c.keys, c.vals = slices.Delete(c.keys, i, i+1), slices.Delete(c.vals, i, i+1)
	t.size--
	if len(c.keys) == 0 {
		t.chunks = slices.Delete(t.chunks, at, at+1)
	}
}

// split halves a chunk.
func (t *table[K, V]) split(o *owner, at int) {
	c := t.chunks[at]
	half := len(c.keys) / 2
	right := &chunk[K, V]{owner: o, keys: slices.Clone(c.keys[half:]), vals: slices.Clone(c.vals[half:])}
	clear(c.keys[half:])
	clear(c.vals[half:])
	c.keys, c.vals = c.keys[:half], c.vals[:half]
	t.chunks = slices.Insert(t.chunks, at+1, right)
}

func (t *table[K, V]) own(o *owner) {
	if t.owner != o {
		t.chunks, t.owner = slices.Clone(t.chunks), o
	}
}

func (t *table[K, V]) ownChunk(o *owner, at int) *chunk[K, V] {
	c := t.chunks[at]
	if c.owner != o {
		c = &chunk[K, V]{owner: o, keys: slices.Clone(c.keys), vals: slices.Clone(c.vals)}
		t.chunks[at] = c
	}
	return c
}

// all yields the entries in key order. The receiver is a copy, so that the table may be changed by the loop.
func (t table[K, V]) all() iter.Seq2[K, V] {
	return func(yield func(K, V) bool) {
		for _, c := range t.chunks {
			for i, k := range c.keys {
				if !yield(k, c.vals[i]) {
					return
				}
			}
		}
	}
}

// from yields the entries whose keys are not below k, in key order.
func (t table[K, V]) from(k K) iter.Seq2[K, V] {
	return func(yield func(K, V) bool) {
		if len(t.chunks) == 0 {
			return
		}
		at := t.chunkOf(k)
		i, _ := slices.BinarySearchFunc(t.chunks[at].keys, k, t.compare)
		for _, c := range t.chunks[at:] {
			for ; i < len(c.keys); i++ {
				if !yield(c.keys[i], c.vals[i]) {
					return
				}
			}
			i = 0
		}
	}
}
