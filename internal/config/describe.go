package config

// Source says where a described value comes from. The numbers are those of Kafka's DescribeConfigs.
type Source int8

// The sources.
const (
	SourceTopic          Source = 1 // set on the topic
	SourceBroker         Source = 2 // set dynamically on this broker
	SourceClusterDefault Source = 3 // set dynamically for all brokers
	SourceStatic         Source = 4 // strandline.yaml, environment or flag
	SourceDefault        Source = 5
)

// Entry is one described setting.
type Entry struct {
	Name string
	// Value is nil for a secret and for a setting without a value.
	Value  *string
	Source Source
	// Type is Kafka's number for the value type (Type.Wire).
	Type      int8
	Doc       string
	ReadOnly  bool
	Sensitive bool
	// Synonyms lists the values that count, the first one winning, as Kafka orders them.
	Synonyms []Synonym
}

// Synonym is one value behind a described setting.
type Synonym struct {
	Name   string
	Value  *string
	Source Source
}

// DescribeTopic describes every topic config of a topic with the given stored overrides, in name order.
func DescribeTopic(overrides map[string]string, broker Broker, dev bool) []Entry { panic("not yet") }

// DescribeBroker describes every broker setting, in name order.
func DescribeBroker(broker Broker) []Entry { panic("not yet") }
