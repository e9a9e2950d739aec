package config

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"
)

// Broker holds the broker settings under Kafka's names. The zero value is not useful: see DefaultBroker. It is immutable.
//
// It has many fields because each is one row of a table; nothing else reads as clearly at the place of use.
type Broker struct {
	NumPartitions            int32
	DefaultReplicationFactor int16
	AutoCreateTopics         bool
	DeleteTopicEnable        bool
	FetchMaxBytes            int   // largest fetch answer, bytes
	FetchSessionSlots        int   // fetch sessions kept
	SocketRequestMaxBytes    int   // largest frame, bytes
	QueuedMaxRequestBytes    int64 // memory for requests in flight, bytes
	ConnectionsMaxIdle       time.Duration
	ConnectionsMax           int
	MaxRequestPartitionLimit int    // partitions in one DescribeTopicPartitions answer
	ProtocolCap              string // release whose API versions are served at most, or NoProtocolCap
	CopyRate                 int64  // bytes a second to replicas that are not in sync
	ProducerIDExpiration     time.Duration
	GroupMinSessionTimeout   time.Duration
	GroupMaxSessionTimeout   time.Duration
	GroupInitialRebalance    time.Duration
	GroupMaxSize             int
	ConsumerGroupSession     time.Duration
	ConsumerGroupHeartbeat   time.Duration
	ConsumerGroupMaxSize     int
	ConsumerGroupAssignors   []string
	ConsumerGroupMigration   string // bidirectional, upgrade, downgrade or disabled
	OffsetMetadataMaxBytes   int
	OffsetsRetention         time.Duration
	OffsetsTopicPartitions   int32
	OffsetsTopicReplication  int16
	// MessageMaxBytes is the largest record batch a topic accepts by default, bytes.
	MessageMaxBytes int

	// dev says that the defaults are those of `dev`.
	dev bool
	// node, cluster and static are the values set for this broker, for all brokers, and in strandline.yaml, as text. The first one that
	// has a name wins. Never changed once set.
	node, cluster, static map[string]string
}

// alias is a broker setting that sets another one in a larger unit.
type alias struct {
	name, of string
	unit     time.Duration
}

// aliases in the order of their precedence.
var aliases = []alias{
	{"log.retention.minutes", "log.retention.ms", time.Minute},
	{"log.retention.hours", "log.retention.ms", time.Hour},
	{"log.roll.hours", "log.roll.ms", time.Hour},
}

// DefaultBroker returns the defaults, of `dev` or of `serve`.
func DefaultBroker(dev bool) Broker {
	b, err := ResolveBroker(nil, dev)
	if err != nil {
		panic(fmt.Sprintf("config: a default of the table is not valid: %v", err))
	}
	return b
}

// ResolveBroker returns the broker settings for the values of the "kafka:" section, keyed by Kafka's names. The error names the first fault
// and wraps ErrUnknown or ErrInvalid.
func ResolveBroker(static map[string]string, dev bool) (Broker, error) {
	if err := checkAll(ScopeBroker, static); err != nil {
		return Broker{}, err
	}
	b := Broker{dev: dev, static: withAliases(static)}
	return b, b.resolve()
}

// WithPreset returns the settings as if strandline.yaml also said values, where it says nothing itself. A field that is set directly would
// last only until the next change of the dynamic values.
func (b Broker) WithPreset(values map[string]string) (Broker, error) {
	static := maps.Clone(values)
	maps.Copy(static, b.static)
	return ResolveBroker(static, b.dev)
}

// WithDynamic returns the settings with the dynamic values of AlterConfigs on top: those for all brokers, then those for this one. On an
// error (a value written by a newer release) the result is b.
func (b Broker) WithDynamic(cluster, node map[string]string) (Broker, error) {
	next := b
	next.cluster, next.node = withAliases(cluster), withAliases(node)
	if err := next.resolve(); err != nil {
		return b, err
	}
	return next, nil
}

// ValidateBroker checks broker settings as a client sends them in AlterConfigs. The error wraps ErrUnknown, ErrInvalid or ErrReadOnly.
func ValidateBroker(values map[string]string) error {
	if err := checkAll(ScopeBroker, values); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if !Lookup(ScopeBroker, name).Live {
			return fmt.Errorf("%s %w; set it under \"kafka:\" in strandline.yaml and restart", name, ErrReadOnly)
		}
	}
	return nil
}

// checkAll checks values against the rows of a scope, in name order so that the first fault is always the same.
func checkAll(scope Scope, values map[string]string) error {
	for _, name := range slices.Sorted(maps.Keys(values)) {
		s := Lookup(scope, name)
		if s == nil {
			return &UnknownError{Key: name, Nearest: Nearest(scope, name), Where: scope.String()}
		}
		if err := s.Check(values[name]); err != nil {
			return err
		}
	}
	return nil
}

// withAliases returns a copy in which hours and minutes have set the milliseconds, where those are not set themselves.
func withAliases(values map[string]string) map[string]string {
	out := maps.Clone(values)
	for _, a := range aliases {
		n, err := strconv.ParseInt(values[a.name], 10, 64)
		if _, taken := out[a.of]; taken || err != nil {
			continue
		}
		if n >= 0 {
			n *= a.unit.Milliseconds()
		}
		out[a.of] = strconv.FormatInt(n, 10)
	}
	return out
}

// resolve fills the fields from the layers.
func (b *Broker) resolve() error {
	for _, s := range brokerRows {
		if s.broker == nil {
			continue
		}
		value, _ := b.value(s)
		if err := s.store(s.broker(b), value); err != nil {
			return err
		}
	}
	maxBytes, _ := b.value(rowsByName[ScopeBroker]["message.max.bytes"])
	minutes, _ := b.value(rowsByName[ScopeBroker]["offsets.retention.minutes"])
	b.MessageMaxBytes, _ = strconv.Atoi(maxBytes)
	n, _ := strconv.ParseInt(minutes, 10, 64)
	b.OffsetsRetention = time.Duration(n) * time.Minute
	return nil
}

// value returns the value of a setting as text, and where it comes from.
func (b *Broker) value(s *Setting) (string, Source) {
	layers := b.layers(s)
	return *layers[0].Value, layers[0].Source
}

// layers lists the values of a setting, the one that counts first. The last one is the default.
func (b *Broker) layers(s *Setting) []Synonym {
	out := make([]Synonym, 0, 4)
	for _, l := range []struct {
		values map[string]string
		source Source
	}{{b.node, SourceBroker}, {b.cluster, SourceClusterDefault}, {b.static, SourceStatic}} {
		if v, ok := l.values[s.Name]; ok {
			out = append(out, Synonym{Name: s.Name, Value: &v, Source: l.source})
		}
	}
	v := s.DefaultFor(b.dev)
	return append(out, Synonym{Name: s.Name, Value: &v, Source: SourceDefault})
}
