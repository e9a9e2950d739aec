package metadata

import (
	"time"

	"strandline.dev/internal/config"
)

// Limits of what a client can make the metadata hold (I14, R6). Each refusal names the limit.
const (
	// TopicNameLenMax is Kafka's: a name of 249 bytes, "-", and a partition number make a file name.
	TopicNameLenMax = 249
	// PartitionsPerTopicMax bounds one topic.
	PartitionsPerTopicMax = config.PartitionsPerTopicMax
	// PartitionsMax bounds the cluster: each partition is some 200 bytes in the Image of every node and a directory on its replicas.
	PartitionsMax = 200_000
	// ReplicationFactorMax bounds the replicas of a partition.
	ReplicationFactorMax = config.ReplicationFactorMax
	// ProducerIDBlockMax bounds one block of producer ids: a broker asks again long before an int64 runs out.
	ProducerIDBlockMax = 1 << 20
	// ACLsMax bounds the rules of access: some 200 bytes each on every node. ScramCredentialsMax bounds those of users, some 300 bytes each.
	ACLsMax             = 20_000
	ScramCredentialsMax = 20_000
	// ScramIterationsMin and ScramIterationsMax are Kafka's: fewer are guessed too fast, more would let a client keep others busy.
	ScramIterationsMin = 4096
	ScramIterationsMax = 16384
	// scramSecretMin is the least length of ScramSecret: that of the hash made with it.
	scramSecretMin = 32
	// aclTextMax bounds names, principals, hosts and salts in ACLs and credentials.
	aclTextMax = 512
	// QuotasMax bounds the quotas, some 150 bytes each on every node, and quotaNameMax the names in them: client ids are longer than users.
	QuotasMax    = 20_000
	quotaNameMax = 1024
	// listenersMax and rolesMax bound what a registration can carry.
	listenersMax = config.ListenersMax
	rolesMax     = 4
	// textLenMax bounds a text in a registration: addresses, racks and boot ids are shorter.
	textLenMax = 1024
	// holderSilence is how long the holder of a node id must not have been heard before a node with another directory, or with a start number that
	// is not higher, may take the id over: longer than any pause of a process that is still there (architecture section 7, Forming).
	holderSilence = 10 * time.Second
)
