package wire

const (
	// frameChunk is what ReadFrame allocates before any byte of a frame has come: most requests fit, and a thousand connections that
	// announce 100 MiB and send nothing hold 4 MiB together (C086).
	frameChunk = 4 << 10

	// maxPreallocated is how many elements of an array of our own messages are allocated at once, whatever the length says.
	maxPreallocated = 1024

	// maxDecodeFactor and minDecodeBudget bound what a decoded request may take: a budget of minDecodeBudget plus this many times
	// the body. kmsg's largest struct per smallest element is near 100 bytes for 4 (a partition of an empty topic in Fetch), and
	// honest requests stay below 10.
	maxDecodeFactor = 16
	minDecodeBudget = 1 << 20
)
