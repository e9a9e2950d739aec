package wire

import "github.com/twmb/franz-go/pkg/kmsg"

// FetchEncoder encodes Fetch responses around the records: the records of each partition become a segment of their own and are never
// copied. It is reused from response to response and belongs to one goroutine.
type FetchEncoder struct {
	meta []byte
	segs [][]byte
}

// Encode returns the frame of resp (size, header, body) as segments for net.Buffers, and its size in bytes. The segments alias the
// encoder and resp's records; they are good until the next Encode.
func (e *FetchEncoder) Encode(resp *kmsg.FetchResponse, correlationID int32) (segments [][]byte, size int) {
	panic("being written")
}
