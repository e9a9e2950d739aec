package config

import (
	"math"
	"time"
)

// Limits of values and of what input can grow (I14).
const (
	// PartitionsPerTopicMax bounds one topic: a topic's partitions are one immutable array in the metadata Image, which is copied
	// when one of them changes.
	PartitionsPerTopicMax = 10_000
	// ReplicationFactorMax bounds the replicas of a partition. Kafka's own limit is int16; beyond a dozen copies nothing is gained.
	ReplicationFactorMax = 32
	// ValueLenMax bounds the text of one value, in bytes, so that a config cannot fill a metadata entry.
	ValueLenMax = 16 << 10
	// NodeIDMax is the largest node id; the wire has an int32.
	NodeIDMax = math.MaxInt32
	// RecordOverheadMax is what a batch of one record may need beside key, value and headers, in bytes: 61 for the batch header, the
	// rest for the lengths of the record and of its headers. The default of max.message.bytes is the default of
	// strandline.max.record.bytes plus this, so that a record of exactly the largest size is accepted (R21).
	RecordOverheadMax = 64 << 10
	// ListenersMax bounds the listeners of a node: each costs a socket, and a dozen is more than any network has views.
	ListenersMax = 16
	// canaryIntervalMin is the shortest canary.interval: what is measured more often would be load.
	canaryIntervalMin = time.Second
	// suggestDistanceMax is the edit distance up to which an unknown name gets a suggestion.
	suggestDistanceMax = 6
)
