// Package wire knows how bytes on a Kafka connection are framed and how our own messages are encoded.
//
// Knows: frames, request and response headers, the one table of API versions we serve, decoding a request within a budget, the
// Fetch response (encoded around the records, which are never copied), and the codec of our own messages. All other client messages
// are encoded by kmsg. Format of our own messages: docs/formats/wire-codec.md.
//
// Does not know: connections, handlers, what a request means, topics.
//
// Invariants:
//   - I14: a frame's buffer grows with the bytes that arrived, never by the size announced; array lengths are judged against a budget
//     before kmsg allocates for them; DecodeRequest refuses bytes behind the schema.
//   - ApiVersions is always answered with response header v0 (KIP-511), whatever its version.
//   - ApiVersions can promise nothing but what the table in versions.go holds.
//
// Concurrency: functions only; Encoder, Decoder and FetchEncoder belong to one goroutine.
//
// Files: frames.go, header.go, versions.go, releases.go (which versions older releases had), request.go (decode), scan.go and schema.go (its budget), refuse.go (answers to versions below our
// minimum), fetchresponse.go, encoder.go and decoder.go (our own messages), limits.go, errors.go.
package wire
