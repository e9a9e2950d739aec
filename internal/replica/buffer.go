package replica

import (
	"math/bits"
	"sync"
)

// FetchBuffer holds the records and results of one Read. The zero value is ready for use; it is for one goroutine at a time.
// Big chunks come from a pool by size class and go back with Release.
type FetchBuffer struct {
	results []FetchResult
	chunks  []*chunk // records are read into the last one
}

type chunk struct{ b []byte }

// chunkPools[i] holds chunks of chunkMin << i bytes.
var chunkPools [chunkClasses]sync.Pool

// Release gives the memory back. Records read into the buffer are invalid from then on.
func (b *FetchBuffer) Release() {
	for i, c := range b.chunks {
		if class, ok := chunkClass(cap(c.b)); ok && chunkMin<<class == cap(c.b) {
			c.b = c.b[:0]
			chunkPools[class].Put(c)
		}
		b.chunks[i] = nil
	}
	b.chunks = b.chunks[:0]
	clear(b.results) // they point into the chunks
	b.results = b.results[:0]
	if cap(b.results) > fetchItemsMax {
		b.results = nil
	}
}

// begin forgets an earlier Read and makes room for n results.
func (b *FetchBuffer) begin(n int) []FetchResult {
	b.Release()
	if cap(b.results) < n {
		b.results = make([]FetchResult, n)
	}
	b.results = b.results[:n]
	return b.results
}

// space returns an empty slice with room for n bytes.
func (b *FetchBuffer) space(n int) []byte {
	if len(b.chunks) > 0 {
		c := b.chunks[len(b.chunks)-1]
		if cap(c.b)-len(c.b) >= n {
			return c.b[len(c.b):len(c.b):cap(c.b)]
		}
	}
	b.chunks = append(b.chunks, newChunk(n))
	return b.chunks[len(b.chunks)-1].b[:0]
}

// keep marks the bytes of used, which began as the result of space, as taken.
func (b *FetchBuffer) keep(used []byte) {
	c := b.chunks[len(b.chunks)-1]
	if free := c.b[len(c.b):cap(c.b)]; len(used) > 0 && len(free) > 0 && &used[0] == &free[0] {
		c.b = c.b[:len(c.b)+len(used)]
	} // else the read needed more than was foreseen and brought its own memory
}

// chunkClass is the smallest class that holds n bytes.
func chunkClass(n int) (int, bool) {
	class := bits.Len(uint(max(n, chunkMin)-1) / chunkMin)
	return class, class < chunkClasses
}

func newChunk(n int) *chunk {
	class, ok := chunkClass(n)
	if !ok {
		return &chunk{b: make([]byte, 0, n)} // rare and large: not worth keeping
	}
	if c, ok := chunkPools[class].Get().(*chunk); ok {
		return c
	}
	return &chunk{b: make([]byte, 0, chunkMin<<class)}
}
