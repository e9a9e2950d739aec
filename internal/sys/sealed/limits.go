package sealed

const (
	// frameMax is the largest frame: what a small read has to decrypt at most.
	frameMax = 64 << 10
	// markEvery is the distance of two marks in the plain bytes: with frameMax it bounds the block that a read takes in.
	markEvery = 64 << 10
	// blockMax bounds a block in the file: frames that a cut has taken back lie there too.
	blockMax = 1 << 20
	// writeMax is the most that is written to a file at a time, a header and a frame: bytes that are still in the processor's cache when the
	// kernel copies them.
	writeMax = headerBytes + frameHeader + frameMax + frameTag
	// writingsMax is how many buffers of that size are kept for the next writes.
	writingsMax = 16
	// keyringMax bounds a keyring file, keysMax the keys in it, keyIDMax the name of one.
	keyringMax = 64 << 10
	keysMax    = 256
	keyIDMax   = 63
)
