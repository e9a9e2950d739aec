package server

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"strandline.dev/internal/config"
	"strandline.dev/internal/kafka"
	"strandline.dev/internal/metadata"
	"strandline.dev/internal/wire"
)

// describeConfigs asks for all configs of one resource.
func (c *testClient) describeConfigs(kind kmsg.ConfigResourceType, name string, version int16) kmsg.DescribeConfigsResponseResource {
	c.t.Helper()
	r := kmsg.NewPtrDescribeConfigsRequest()
	r.Version, r.IncludeSynonyms, r.IncludeDocumentation = version, version >= 1, version >= 3
	r.Resources = append(r.Resources, kmsg.DescribeConfigsRequestResource{ResourceType: kind, ResourceName: name})
	return ask[*kmsg.DescribeConfigsResponse](c, r).Resources[0]
}

// setOn lists "name=value" of what is set on a topic itself, as a tool finds it in that version.
func (c *testClient) setOn(topic string, version int16) (set []string) {
	c.t.Helper()
	r := c.describeConfigs(kmsg.ConfigResourceTypeTopic, topic, version)
	if r.ErrorCode != 0 {
		c.t.Fatalf("describe %s: %v", topic, kafka.ErrorCode(r.ErrorCode))
	}
	for _, e := range r.Configs {
		if (version == 0 && !e.IsDefault) || (version > 0 && e.Source == kmsg.ConfigSourceDynamicTopicConfig) {
			set = append(set, e.Name+"="+str(e.Value))
		} else if version > 0 && e.Source != kmsg.ConfigSourceDefaultConfig {
			c.t.Errorf("%s in version %d: %v, want the default", e.Name, version, e.Source)
		}
	}
	return set
}

// other is an accepted value of a topic config that is not its default; false when there is none.
func other(s *config.Setting) (string, bool) {
	if s.Fixed != "" {
		return "", false
	}
	candidates := append(slices.Clone(s.Enum), "true", "0.25", "any-text", "")
	if n, err := strconv.ParseInt(s.Default, 10, 64); err == nil {
		candidates = []string{strconv.FormatInt(n-1, 10), strconv.FormatInt(n+1, 10)}
	}
	for _, v := range candidates {
		if v != s.Default && s.Check(v) == nil {
			return v, true
		}
	}
	return "", false
}

// TestTerraformQuietness: a topic is created with a value of every config that has one; reading it back shows exactly these as set and
// all else as defaults; setting the same again, in either way, changes nothing; what is taken back is a default again.
func TestTerraformQuietness(t *testing.T) {
	b := newTestBroker(t, testOptions{})
	c := b.dial()
	var wanted, args []string
	for _, s := range config.All(config.ScopeTopic) {
		if v, ok := other(s); ok {
			wanted, args = append(wanted, s.Name+"="+v), append(args, s.Name, v)
		}
	}
	if len(wanted) < 25 {
		t.Fatalf("only %d configs can be set: %v", len(wanted), wanted)
	}
	created := ask[*kmsg.CreateTopicsResponse](c, newCreate("quiet", 3, args...)).Topics[0]
	if created.ErrorCode != 0 || created.NumPartitions != 3 || created.ReplicationFactor != 1 {
		t.Fatalf("%v %s", kafka.ErrorCode(created.ErrorCode), str(created.ErrorMessage))
	}
	quiet := func(when string) {
		t.Helper()
		for version := range int16(5) {
			if got := c.setOn("quiet", version); !slices.Equal(got, wanted) {
				t.Errorf("%s, version %d: set are\n%v\nwant\n%v", when, version, got, wanted)
			}
		}
		m := ask[*kmsg.MetadataResponse](c, withVersion(request(wire.KeyMetadata, "quiet", kafka.TopicID{}, nil), 12)).Topics[0]
		if len(m.Partitions) != 3 || len(m.Partitions[0].Replicas) != 1 || m.TopicID != created.TopicID {
			t.Errorf("%s: %+v", when, m)
		}
		if v := b.quorum.Image().Topic("quiet").Version; v != 1 {
			t.Errorf("%s: the topic has version %d, want 1: something was changed", when, v)
		}
	}
	quiet("as created")
	var answered []string
	for _, e := range created.Configs {
		if e.Source == int8(kmsg.ConfigSourceDynamicTopicConfig) {
			answered = append(answered, e.Name+"="+str(e.Value))
		}
	}
	if !slices.Equal(answered, wanted) {
		t.Errorf("CreateTopics answered\n%v\nwant\n%v", answered, wanted)
	}
	for _, key := range []int16{wire.KeyIncrementalAlterConfigs, wire.KeyAlterConfigs} {
		if code := firstError(ask[kmsg.Response](c, alterAll(key, "quiet", wanted))); code != 0 {
			t.Fatalf("setting the same again: %v", code)
		}
		quiet(fmt.Sprintf("set again by key %d", key))
	}
	// Taken back, one is a default again, and the others stay.
	if code := firstError(ask[kmsg.Response](c, alterAll(wire.KeyAlterConfigs, "quiet", wanted[1:]))); code != 0 {
		t.Fatalf("taking one back: %v", code)
	}
	if got := c.setOn("quiet", 4); !slices.Equal(got, wanted[1:]) {
		t.Errorf("after taking %s back: %v", wanted[0], got)
	}
	// A default that somebody sets is set: the tool that set it must find it.
	c.create("explicit", 1, "retention.ms", "1209600000", "min.insync.replicas", "1", "cleanup.policy", "delete")
	if got := c.setOn("explicit", 4); strings.Join(got, " ") != "cleanup.policy=delete min.insync.replicas=1 retention.ms=1209600000" {
		t.Errorf("explicit defaults: %v", got)
	}
	c.create("bare", 1)
	if got := c.setOn("bare", 4); len(got) != 0 {
		t.Errorf("nothing was set, and %v is", got)
	}
}

// alterAll sets all of these "name=value".
func alterAll(key int16, topic string, configs []string) kmsg.Request {
	name, value, _ := strings.Cut(configs[0], "=")
	r := newAlter(key, topic, name, value)
	for _, one := range configs[1:] {
		name, value, _ := strings.Cut(one, "=")
		switch r := r.(type) {
		case *kmsg.AlterConfigsRequest:
			r.Resources[0].Configs = append(r.Resources[0].Configs, kmsg.AlterConfigsRequestResourceConfig{Name: name, Value: &value})
		case *kmsg.IncrementalAlterConfigsRequest:
			r.Resources[0].Configs = append(r.Resources[0].Configs, kmsg.IncrementalAlterConfigsRequestResourceConfig{Name: name, Value: &value})
		}
	}
	return r
}

// Sources and synonyms of a broker setting at every layer, for the broker itself and for all brokers.
func TestDescribeConfigs_BrokerLayers(t *testing.T) {
	b := newTestBroker(t, testOptions{broker: map[string]string{"log.retention.ms": "1000"}})
	c := b.dial()
	c.create("orders", 1)
	describe := func(kind kmsg.ConfigResourceType, resource, name string) string {
		r := c.describeConfigs(kind, resource, 4)
		i := slices.IndexFunc(r.Configs, func(e kmsg.DescribeConfigsResponseResourceConfig) bool { return e.Name == name })
		if r.ErrorCode != 0 || i < 0 {
			return "none"
		}
		e := &r.Configs[i]
		if e.ConfigType != kmsg.ConfigTypeLong || str(e.Documentation) == "" || e.ReadOnly || e.IsSensitive {
			t.Errorf("%s of %q: %+v", name, resource, e)
		}
		out := fmt.Sprintf("%s/%d:", str(e.Value), e.Source)
		for _, syn := range e.ConfigSynonyms {
			out += fmt.Sprintf(" %s=%s/%d", syn.Name, str(syn.Value), syn.Source)
		}
		return out
	}
	set := func(broker, value string) {
		t.Helper()
		r := withVersion(newAlter(wire.KeyIncrementalAlterConfigs, broker, "log.retention.ms", value), 1).(*kmsg.IncrementalAlterConfigsRequest)
		r.Resources[0].ResourceType = kmsg.ConfigResourceTypeBroker
		if code := firstError(ask[kmsg.Response](c, r)); code != 0 {
			t.Fatalf("set for %q: %v", broker, code)
		}
	}
	const kind, topic = kmsg.ConfigResourceTypeBroker, kmsg.ConfigResourceTypeTopic
	check := func(when, ofOne, ofAll, ofTopic string) {
		t.Helper()
		for _, one := range []struct{ what, got, want string }{
			{"broker 1", describe(kind, "1", "log.retention.ms"), ofOne},
			{"all brokers", describe(kind, "", "log.retention.ms"), ofAll},
			{"a topic", describe(topic, "orders", "retention.ms"), ofTopic},
		} {
			if one.got != one.want {
				t.Errorf("%s, %s: %s\nwant %s", when, one.what, one.got, one.want)
			}
		}
	}
	base := " log.retention.ms=1000/4 log.retention.ms=1209600000/5"
	check("from the file", "1000/4:"+base, "none", "1000/4:"+base)
	set("", "2000")
	base = " log.retention.ms=2000/3" + base
	check("for all brokers", "2000/3:"+base, "2000/3:"+base, "2000/3:"+base)
	set("1", "3000")
	check("for this broker too", "3000/2: log.retention.ms=3000/2"+base, "2000/3:"+base, "3000/2: log.retention.ms=3000/2"+base)
}

// Every entry of every resource has a type and a text; kinds of resources that have nothing to set are answered, not refused.
func TestDescribeConfigs_EveryResource(t *testing.T) {
	b := newTestBroker(t, testOptions{})
	c := b.dial()
	c.create("orders", 1)
	for _, one := range []struct {
		kind    kmsg.ConfigResourceType
		name    string
		want    kafka.ErrorCode
		entries bool
	}{
		{kmsg.ConfigResourceTypeTopic, "orders", kafka.None, true},
		{kmsg.ConfigResourceTypeTopic, "nope", kafka.UnknownTopicOrPartition, false},
		{kmsg.ConfigResourceTypeTopic, "not a name", kafka.InvalidTopicException, false},
		{kmsg.ConfigResourceTypeBroker, "1", kafka.None, true},
		{kmsg.ConfigResourceTypeBroker, "", kafka.None, false},
		{kmsg.ConfigResourceTypeBroker, "2", kafka.InvalidRequest, false},
		{kmsg.ConfigResourceTypeBroker, "one", kafka.InvalidRequest, false},
		{kmsg.ConfigResourceTypeBrokerLogger, "1", kafka.InvalidRequest, false},
		{kmsg.ConfigResourceTypeClientMetrics, "subscription", kafka.None, false},
		{kmsg.ConfigResourceTypeClientMetrics, "", kafka.InvalidRequest, false},
		{kmsg.ConfigResourceTypeGroupConfig, "group", kafka.None, false},
		{kmsg.ConfigResourceTypeGroupConfig, "", kafka.InvalidRequest, false},
		{99, "x", kafka.InvalidRequest, false},
	} {
		r := c.describeConfigs(one.kind, one.name, 4)
		if code := kafka.ErrorCode(r.ErrorCode); code != one.want || (code != 0) != (str(r.ErrorMessage) != "") || len(r.Configs) > 0 != one.entries {
			t.Errorf("%v %q: %v %q with %d entries", one.kind, one.name, code, str(r.ErrorMessage), len(r.Configs))
		}
		for _, e := range r.Configs {
			if e.ConfigType <= 0 || str(e.Documentation) == "" || e.Source != kmsg.ConfigSourceDefaultConfig || e.Value == nil != (len(e.ConfigSynonyms) == 0) {
				t.Errorf("%q: %+v", one.name, e)
			}
		}
		alter := withVersion(newAlter(wire.KeyIncrementalAlterConfigs, one.name, "x", "y"), 1).(*kmsg.IncrementalAlterConfigsRequest)
		alter.Resources[0].ResourceType = one.kind
		if code := firstError(ask[kmsg.Response](c, alter)); code == 0 {
			t.Errorf("%v %q: an unknown config was set", one.kind, one.name)
		}
	}
	if got := b.quorum.Image().BrokerConfigs(kafka.NoNode); len(got) != 0 {
		t.Errorf("set: %v", got)
	}
	// Names narrow the answer; without synonyms and texts there are none.
	r := kmsg.NewPtrDescribeConfigsRequest()
	r.Version = 4
	r.Resources = append(r.Resources, kmsg.DescribeConfigsRequestResource{
		ResourceType: kmsg.ConfigResourceTypeTopic, ResourceName: "orders", ConfigNames: []string{"retention.ms", "nope"},
	})
	got := ask[*kmsg.DescribeConfigsResponse](c, r).Resources[0].Configs
	if len(got) != 1 || got[0].Name != "retention.ms" || len(got[0].ConfigSynonyms) != 0 || got[0].Documentation != nil {
		t.Errorf("%+v", got)
	}
	if metadata.ResourceKind(kmsg.ConfigResourceTypeBroker) != metadata.ResourceBroker {
		t.Error("the numbers of resource kinds are the protocol's")
	}
}
