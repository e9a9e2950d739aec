package record

const (
	// minRecordSize is the smallest record: a one-byte length, attributes, two deltas, null key, null value, no headers. A count
	// above payload/minRecordSize is a lie, found before anything is walked.
	minRecordSize = 7

	// minDecompressedLimit is the floor of the cap on what one batch may decompress to (C088). Text compresses 10-20 times, so a
	// full default batch of 1 MiB stays well below it.
	minDecompressedLimit = 32 << 20

	// decompressedRatio raises that cap for topics with larger batches.
	decompressedRatio = 16

	// windowSize is the part of decompressed records that Validate looks at a time: larger than a snappy or lz4 block of Kafka's
	// clients, small enough for the second-level cache.
	windowSize = 64 << 10

	// maxEmptyReads ends a reader that neither gives bytes nor says why.
	maxEmptyReads = 100

	// maxZstdWindow is the largest window held while a zstd frame is read as a stream: level 19 of the reference encoder uses it.
	maxZstdWindow = 8 << 20

	// maxZstdDeclared is the largest window that a zstd frame may declare: level 22 of the reference encoder. It is not allocated.
	maxZstdDeclared = 128 << 20

	// zstdWhole is the output up to which a zstd payload is decoded in one call: a full default batch.
	zstdWhole = 1 << 20

	// zstdEncodeWindow keeps the history of our own zstd encoders small; batches are rarely larger.
	zstdEncodeWindow = 1 << 20

	// maxSnappyRatio is above what the snappy format can express (64 bytes copied by a 3-byte element), so that a declared length
	// beyond it is refused before a buffer of that length is taken.
	maxSnappyRatio = 22

	// maxPooledBuffer is the largest buffer that goes back to a pool: one bomb must not stay in memory for ever.
	maxPooledBuffer = 4 << 20

	// maxBatchSize is what the length field of a batch can say.
	maxBatchSize = 1<<31 - 1
)

// DecompressedLimit is the cap, in bytes, on what a batch may decompress to on a topic whose batches are at most maxBatchBytes:
// 16 times that, at least 32 MiB.
func DecompressedLimit(maxBatchBytes int) int {
	return max(minDecompressedLimit, decompressedRatio*min(maxBatchBytes, maxBatchSize/decompressedRatio))
}
