// Package record knows the record batch, magic 2: the unit in which records are produced, stored, replicated and fetched.
//
// Knows: the 61-byte batch header and the records behind it, as a view over bytes that are never copied or re-encoded on the
// publish path; what a broker must refuse from a client (Validate, C084-C088, K21-K32); how to build batches; the codecs none,
// gzip, snappy, lz4 and zstd. Format: docs/formats/record-batch.md.
//
// Does not know: partitions, offsets beyond patching them, topics' names, error codes of the protocol (server maps InvalidError.Kind).
//
// Invariants:
//   - I11: VerifyCRC covers every byte after the CRC field; the base offset and the leader epoch lie before it, so a leader
//     patches both in place and the accepted bytes stay the client's bytes.
//   - I14: no length is believed before it was compared with the bytes present; nothing is allocated by a declared size; Validate
//     reads compressed records as a stream with a fixed window, so a decompression bomb costs time up to the cap, not memory.
//   - A Batch from Split or Build holds at least HeaderSize bytes and exactly its own length. The accessors rely on it.
//
// Concurrency: functions are safe for concurrent use on different bytes; a Batch is as shareable as its bytes. Pools are the only
// state.
//
// Files: batch.go (the view), split.go (framing), validate.go and rules.go (what a client may send), walk.go (one pass over
// records without allocation), records.go (iterator), carried.go (records with a certain header), without.go (a batch less some records), compact.go (what compaction leaves of one), builder.go, compress.go and decompress_*.go (codecs), recompress.go,
// limits.go, errors.go.
package record
