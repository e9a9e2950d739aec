// Package interop runs foreign Kafka clients against the built binary named by STRANDLINE_BIN.
//
// Knows: franz-go, librdkafka (through confluent-kafka-go, which brings a static copy, and through Debian's kcat) and kfake,
// the fake broker used as a second opinion. Does not know: anything inside the broker.
//
// It is its own module, so that cgo and foreign clients stay out of the broker's dependencies.
package interop
