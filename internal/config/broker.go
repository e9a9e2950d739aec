package config

import "time"

// Broker holds the broker settings under Kafka's names. The zero value is not useful: see DefaultBroker.
//
// It has many fields because it is one row of a table each; nothing else reads as clearly at the place of use.
type Broker struct {
	NumPartitions            int32
	DefaultReplicationFactor int16
	AutoCreateTopics         bool
	DeleteTopicEnable        bool
	MessageMaxBytes          int // largest record batch, bytes
	FetchMaxBytes            int // largest fetch answer, bytes
	FetchSessionSlots        int // fetch sessions kept
	SocketRequestMaxBytes    int
	QueuedMaxRequestBytes    int64 // memory for requests in flight, bytes
	ConnectionsMaxIdle       time.Duration
	ConnectionsMax           int
	MaxRequestPartitionLimit int // partitions in one DescribeTopicPartitions answer
	ProducerIDExpiration     time.Duration
	RetentionCheckInterval   time.Duration
	GroupMinSessionTimeout   time.Duration
	GroupMaxSessionTimeout   time.Duration
	GroupInitialRebalance    time.Duration
	GroupMaxSize             int
	OffsetMetadataMaxBytes   int
	OffsetsRetention         time.Duration
	OffsetsTopicPartitions   int32
	OffsetsTopicReplication  int16

	// dev says that the defaults are those of `dev`.
	dev bool
	// static, cluster and node are the values set in strandline.yaml, for all brokers, and for this broker, as text.
	static, cluster, node map[string]string
}

// DefaultBroker returns the defaults, of `dev` or of `serve`.
func DefaultBroker(dev bool) Broker { panic("not yet") }

// ResolveBroker returns the broker settings for the values of the "kafka:" section.
func ResolveBroker(static map[string]string, dev bool) (Broker, error) { panic("not yet") }

// WithDynamic returns the settings with the dynamic values of AlterConfigs on top: those for all brokers, then those for this one.
func (b Broker) WithDynamic(cluster, node map[string]string) (Broker, error) { panic("not yet") }

// ValidateBroker checks broker settings as a client sends them in AlterConfigs. The error wraps ErrUnknown, ErrInvalid or ErrReadOnly.
func ValidateBroker(values map[string]string) error { panic("not yet") }
