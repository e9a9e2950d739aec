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
func DescribeTopic(overrides map[string]string, broker Broker, dev bool) []Entry {
	out := make([]Entry, 0, len(topicRows))
	for _, s := range topicRows {
		if s.hidden {
			continue
		}
		out = append(out, entry(s, topicLayers(s, overrides, &broker, dev)))
	}
	return out
}

// topicLayers lists the values behind a topic config, the one that counts first.
func topicLayers(s *Setting, overrides map[string]string, broker *Broker, dev bool) []Synonym {
	var layers []Synonym
	if v, ok := overrides[s.Name]; ok {
		layers = append(layers, Synonym{Name: s.Name, Value: &v, Source: SourceTopic})
	}
	if s.Synonym != "" {
		return append(layers, broker.layers(rowsByName[ScopeBroker][s.Synonym])...)
	}
	v := s.DefaultFor(dev)
	if fixed, ok := overrides[defaultMinInsync]; ok && s.Name == MinInsyncKey {
		v = fixed
	}
	return append(layers, Synonym{Name: s.Name, Value: &v, Source: SourceDefault})
}

// DescribeBroker describes every broker setting, in name order.
func DescribeBroker(broker Broker) []Entry {
	out := make([]Entry, 0, len(brokerRows))
	for _, s := range brokerRows {
		out = append(out, entry(s, broker.layers(s)))
	}
	return out
}

// entry describes a setting whose values are known. A value that is empty by default is "no value", which the protocol writes as null.
func entry(s *Setting, layers []Synonym) Entry {
	e := Entry{
		Name: s.Name, Value: layers[0].Value, Source: layers[0].Source, Type: s.Type.Wire(),
		Doc: s.Doc, ReadOnly: !s.Live, Sensitive: s.Secret, Synonyms: layers,
	}
	if e.Source == SourceDefault && *e.Value == "" && s.Type != List {
		e.Value, e.Synonyms = nil, nil
	}
	if s.Secret {
		e.Value = nil
		for i := range e.Synonyms {
			e.Synonyms[i].Value = nil
		}
	}
	return e
}
