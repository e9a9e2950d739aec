package wire

const (
	// frameChunk is what ReadFrame allocates before any byte of a frame has come: most requests fit, and a thousand connections that
	// announce 100 MiB and send nothing hold 4 MiB together (C086).
	frameChunk = 4 << 10

	// maxPreallocated is how many elements of an array of our own messages are allocated at once, whatever the length says.
	maxPreallocated = 1024

	// maxDecodedRequest bounds what the structs of one decoded request may take, in bytes of the estimate below: some 150,000
	// partitions or topic names, more than any real client names in one request (C084, K17, K37).
	maxDecodedRequest = 16 << 20

	// structCost is above the size of kmsg's request structs that occur in arrays; the largest is a topic of CreateTopics.
	structCost = 96

	// primitiveCost is the size of the largest element of a bare array: a string.
	primitiveCost = 16

	// tagCost is what kmsg takes to keep one unknown tag in a map.
	tagCost = 64
)
