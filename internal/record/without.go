package record

import "slices"

// Without returns the batch without the records that have the given offset deltas, in bytes of its own and with a new CRC: Retain of the
// others, or Emptied. What is missing is as compaction leaves it. deltas are in order. It decompresses at most maxDecompressed bytes (0:
// DecompressedLimit of the batch). Errors: those of Records.
func Without(b Batch, deltas []int32, maxDecompressed int) (Batch, error) {
	kept, count, err := Retain(b, maxDecompressed, func(r *Record) bool {
		_, cut := slices.BinarySearch(deltas, r.OffsetDelta)
		return !cut
	})
	switch {
	case err != nil:
		return nil, err
	case count == 0:
		return Emptied(b), nil
	case count == int(b.Count()):
		return slices.Clone(b), nil
	}
	return kept, nil
}
