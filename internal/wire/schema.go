package wire

import "math"

// The builders of a schema. since and until narrow a field to versions.
var (
	int8Field   = field{kind: kindFixed, size: 1, max: math.MaxInt16}
	int16Field  = field{kind: kindFixed, size: 2, max: math.MaxInt16}
	int32Field  = field{kind: kindFixed, size: 4, max: math.MaxInt16}
	int64Field  = field{kind: kindFixed, size: 8, max: math.MaxInt16}
	idField     = field{kind: kindFixed, size: 16, max: math.MaxInt16}
	stringField = field{kind: kindString, max: math.MaxInt16}
	bytesField  = field{kind: kindBytes, max: math.MaxInt16}
)

func (f field) since(v int16) field { f.min = v; return f }
func (f field) until(v int16) field { f.max = v; return f }

func arrayOf(fields ...field) field {
	return field{kind: kindArray, max: math.MaxInt16, fields: fields}
}

func listOf(f field) field {
	return field{kind: kindArray, max: math.MaxInt16, fields: []field{f}, bare: true}
}

func nullable(fields ...field) field {
	return field{kind: kindNullable, max: math.MaxInt16, fields: fields}
}

// topicName is how Produce and Fetch name a topic: by name, by id from version 13 on.
func topicName() []field { return []field{stringField.until(12), idField.since(13)} }

// aclFields are a rule of access, and a filter of them.
func aclFields() []field {
	return []field{int8Field, stringField, int8Field.since(1), stringField, stringField, int8Field, int8Field}
}

// schema returns the layout of a request, from version 0 on. It is the flat table of the protocol's request definitions
// (https://kafka.apache.org/protocol), one case per row of the version table; a test holds it against kmsg for every version.
func schema(key int16) ([]field, bool) {
	if key < 0 || int(key) >= len(schemas) || schemas[key] == nil {
		return nil, false
	}
	return schemas[key], true
}

var schemas = [...][]field{
	KeyProduce: {
		stringField.since(3), // transactional id
		int16Field,           // acks
		int32Field,           // timeout
		arrayOf(append(topicName(), arrayOf(int32Field, bytesField))...),
	},
	KeyFetch: {
		int32Field.until(14), // replica id
		int32Field,           // max wait
		int32Field,           // min bytes
		int32Field.since(3),  // max bytes
		int8Field.since(4),   // isolation level
		int32Field.since(7),  // session id
		int32Field.since(7),  // session epoch
		arrayOf(append(topicName(), arrayOf(
			int32Field,
			int32Field.since(9),  // current leader epoch
			int64Field,           // fetch offset
			int32Field.since(12), // last fetched epoch
			int64Field.since(5),  // log start offset
			int32Field,           // max bytes
		))...),
		arrayOf(append(topicName(), listOf(int32Field))...).since(7), // forgotten topics
		stringField.since(11), // rack
	},
	KeyListOffsets: {
		int32Field,         // replica id
		int8Field.since(2), // isolation level
		arrayOf(stringField, arrayOf(
			int32Field,
			int32Field.since(4), // current leader epoch
			int64Field,          // timestamp
			int32Field.until(0), // max offsets
		)),
		int32Field.since(10), // timeout
	},
	KeyMetadata: {
		arrayOf(idField.since(10), stringField),
		int8Field.since(4),           // allow auto topic creation
		int8Field.since(8).until(10), // cluster operations
		int8Field.since(8),           // topic operations
	},
	KeyOffsetCommit: {
		stringField,                  // group
		int32Field.since(1),          // generation
		stringField.since(1),         // member
		stringField.since(7),         // instance
		int64Field.since(2).until(4), // retention
		arrayOf(stringField.until(9), idField.since(10), arrayOf(
			int32Field,
			int64Field,
			int64Field.since(1).until(1), // timestamp
			int32Field.since(6),          // leader epoch
			stringField,                  // metadata
		)),
	},
	KeyOffsetFetch: {
		stringField.until(7), // group
		arrayOf(stringField, listOf(int32Field)).until(7),
		arrayOf(
			stringField,          // group
			stringField.since(9), // member
			int32Field.since(9),  // member epoch
			arrayOf(stringField.until(9), idField.since(10), listOf(int32Field)),
		).since(8),
		int8Field.since(7), // require stable
	},
	KeyFindCoordinator: {
		stringField.until(3),
		int8Field.since(1), // type
		listOf(stringField).since(4),
	},
	KeyJoinGroup: {
		stringField,          // group
		int32Field,           // session time-out
		int32Field.since(1),  // rebalance time-out
		stringField,          // member
		stringField.since(5), // instance
		stringField,          // protocol type
		arrayOf(stringField, bytesField),
		stringField.since(8), // reason
	},
	KeyHeartbeat: {
		stringField,          // group
		int32Field,           // generation
		stringField,          // member
		stringField.since(3), // instance
	},
	KeyLeaveGroup: {
		stringField,          // group
		stringField.until(2), // member
		arrayOf(stringField, stringField, stringField.since(5)).since(3), // member, instance, reason
	},
	KeySyncGroup: {
		stringField,          // group
		int32Field,           // generation
		stringField,          // member
		stringField.since(3), // instance
		stringField.since(5), // protocol type
		stringField.since(5), // protocol
		arrayOf(stringField, bytesField),
	},
	KeyDescribeGroups: {
		listOf(stringField),
		int8Field.since(3), // authorized operations
	},
	KeyListGroups: {
		listOf(stringField).since(4), // states
		listOf(stringField).since(5), // types
	},
	KeySaslHandshake: {stringField},
	KeyApiVersions: {
		stringField.since(3), // software name
		stringField.since(3), // software version
		stringField.since(5), // cluster id
		int32Field.since(5),  // node id
	},
	KeyCreateTopics: {
		arrayOf(stringField, int32Field, int16Field,
			arrayOf(int32Field, listOf(int32Field)), // assignments
			arrayOf(stringField, stringField)),      // configs
		int32Field,         // timeout
		int8Field.since(1), // validate only
	},
	KeyDeleteTopics: {
		listOf(stringField).until(5),
		arrayOf(stringField, idField).since(6),
		int32Field, // timeout
	},
	KeyDeleteRecords: {
		arrayOf(stringField, arrayOf(int32Field, int64Field)),
		int32Field, // timeout
	},
	KeyInitProducerID: {
		stringField, // transactional id
		int32Field,  // timeout
		int64Field.since(3),
		int16Field.since(3),
	},
	KeyOffsetForLeaderEpoch: {
		int32Field.since(3), // replica id
		arrayOf(stringField, arrayOf(int32Field, int32Field.since(2), int32Field)),
	},
	KeyDescribeACLs: aclFields(),
	KeyCreateACLs:   {arrayOf(aclFields()...)},
	KeyDeleteACLs:   {arrayOf(aclFields()...)},
	KeyDescribeConfigs: {
		arrayOf(int8Field, stringField, listOf(stringField)),
		int8Field.since(1), // synonyms
		int8Field.since(3), // documentation
	},
	KeyAlterConfigs: {
		arrayOf(int8Field, stringField, arrayOf(stringField, stringField)),
		int8Field, // validate only
	},
	KeyDescribeLogDirs: {
		arrayOf(stringField, listOf(int32Field)),
	},
	KeySaslAuthenticate: {bytesField},
	KeyCreatePartitions: {
		arrayOf(stringField, int32Field, arrayOf(listOf(int32Field))),
		int32Field, // timeout
		int8Field,  // validate only
	},
	KeyDeleteGroups: {
		listOf(stringField),
	},
	KeyElectLeaders: {
		int8Field.since(1), // election type
		arrayOf(stringField, listOf(int32Field)),
		int32Field, // timeout
	},
	KeyIncrementalAlterConfigs: {
		arrayOf(int8Field, stringField, arrayOf(stringField, int8Field, stringField)),
		int8Field, // validate only
	},
	KeyAlterPartitionReassignments: {
		int32Field,         // timeout
		int8Field.since(1), // another replication factor is allowed
		arrayOf(stringField, arrayOf(int32Field, listOf(int32Field))),
	},
	KeyListPartitionReassignments: {
		int32Field, // timeout
		arrayOf(stringField, listOf(int32Field)),
	},
	KeyOffsetDelete: {
		stringField, // group
		arrayOf(stringField, arrayOf(int32Field)),
	},
	KeyDescribeClientQuotas: {
		arrayOf(stringField, int8Field, stringField), // type, match, name
		int8Field, // strict
	},
	KeyAlterClientQuotas: {
		arrayOf(
			arrayOf(stringField, stringField),            // type, name
			arrayOf(stringField, int64Field, int8Field)), // key, value, removed
		int8Field, // validate only
	},
	KeyDescribeUserScram: {arrayOf(stringField)},
	KeyAlterUserScram: {
		arrayOf(stringField, int8Field),                                     // removed
		arrayOf(stringField, int8Field, int32Field, bytesField, bytesField), // set
	},
	KeyDescribeQuorum: {
		arrayOf(stringField, arrayOf(int32Field)),
	},
	KeyUpdateFeatures: {
		int32Field, // timeout
		arrayOf(stringField, int16Field,
			int8Field.until(0),  // downgrade is allowed
			int8Field.since(1)), // upgrade type
		int8Field.since(1), // validate only
	},
	KeyDescribeCluster: {
		int8Field,
		int8Field.since(1), // endpoint type
		int8Field.since(2), // fenced brokers
	},
	KeyDescribeProducers: {
		arrayOf(stringField, listOf(int32Field)),
	},
	KeyUnregisterBroker: {int32Field},
	KeyConsumerGroupHeartbeat: {
		stringField,          // group
		stringField,          // member
		int32Field,           // member epoch
		stringField,          // instance
		stringField,          // rack
		int32Field,           // rebalance time-out
		listOf(stringField),  // topics
		stringField.since(1), // regular expression
		stringField,          // assignor
		arrayOf(idField, listOf(int32Field)),
	},
	KeyConsumerGroupDescribe: {
		listOf(stringField),
		int8Field, // authorised operations
	},
	KeyAddRaftVoter: {
		stringField, // cluster id
		int32Field,  // timeout
		int32Field,  // voter
		idField,     // its directory
		arrayOf(stringField, stringField, int16Field),
		int8Field.since(1), // answer when committed
	},
	KeyRemoveRaftVoter: {stringField, int32Field, idField},
	KeyDescribeTopicPartitions: {
		arrayOf(stringField),
		int32Field, // partition limit
		nullable(stringField, int32Field),
	},
}
