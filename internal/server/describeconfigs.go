package server

import (
	"context"
	"slices"
	"strconv"

	"github.com/twmb/franz-go/pkg/kmsg"

	"strandline.dev/internal/auth"
	"strandline.dev/internal/config"
	"strandline.dev/internal/kafka"
	"strandline.dev/internal/metadata"
)

// handleDescribeConfigs describes topics, this broker, and the dynamic settings of all brokers (resource name ""). Where a value comes from
// is told exactly: tools that compare what is set with what they set must see no difference that nobody made.
func (s *Server) handleDescribeConfigs(_ context.Context, call *Call) Reply {
	req := call.Request.(*kmsg.DescribeConfigsRequest)
	resp := reply[*kmsg.DescribeConfigsResponse](req)
	img := s.cfg.Image()
	for i := range req.Resources {
		r := &req.Resources[i]
		out := kmsg.NewDescribeConfigsResponseResource()
		out.ResourceType, out.ResourceName = r.ResourceType, r.ResourceName
		entries, no := s.describe(img, r)
		if code := s.mayConfigs(call, kmsg.ACLOperationDescribeConfigs, metadata.ResourceKind(r.ResourceType), r.ResourceName); code != kafka.None {
			entries, no = nil, refusal{code: code}
		}
		if i >= adminItemsMax {
			entries, no = nil, tooManyItems
		}
		out.ErrorCode, out.ErrorMessage = int16(no.code), text(no.message)
		for j := range entries {
			if len(r.ConfigNames) == 0 || slices.Contains(r.ConfigNames, entries[j].Name) {
				out.Configs = append(out.Configs, describedConfig(&entries[j], req))
			}
		}
		resp.Resources = append(resp.Resources, out)
	}
	return ready(resp)
}

func (s *Server) describe(img *metadata.Image, r *kmsg.DescribeConfigsRequestResource) ([]config.Entry, refusal) {
	switch r.ResourceType {
	case kmsg.ConfigResourceTypeTopic:
		t := img.Topic(r.ResourceName)
		switch {
		case t != nil && t.State == metadata.StateReady:
			return config.DescribeTopic(t.Configs, *s.broker(), s.cfg.Dev), refusal{}
		case !validTopicName(r.ResourceName):
			return nil, refusal{kafka.InvalidTopicException, "not a topic name"}
		}
		return nil, refusal{kafka.UnknownTopicOrPartition, "no such topic"}
	case kmsg.ConfigResourceTypeBroker:
		return s.describeBroker(img, r.ResourceName)
	case kmsg.ConfigResourceTypeClientMetrics, kmsg.ConfigResourceTypeGroupConfig:
		if r.ResourceName == "" {
			return nil, refusal{kafka.InvalidRequest, "the resource has no name"}
		}
		return nil, refusal{} // nothing can be set on these, so nothing is
	}
	return nil, refusal{kafka.InvalidRequest, "resource type " + strconv.Itoa(int(r.ResourceType)) + " has no configs here"}
}

func (s *Server) describeBroker(img *metadata.Image, name string) ([]config.Entry, refusal) {
	switch name {
	case s.cfg.Node.String():
		return append(config.DescribeBroker(*s.broker()), s.accessEntries()...), refusal{}
	case "":
		// What is set for all brokers, whatever is set for this one besides.
		all, err := s.broker().WithDynamic(img.BrokerConfigs(kafka.NoNode), nil)
		if err != nil {
			return nil, refusal{s.code(err, "describe configs"), err.Error()}
		}
		return slices.DeleteFunc(config.DescribeBroker(all), func(e config.Entry) bool { return e.Source != config.SourceClusterDefault }), refusal{}
	}
	return nil, refusal{kafka.InvalidRequest, "this is broker " + s.cfg.Node.String() + "; a broker's settings are read from itself"}
}

// accessEntries are the settings of strandline.yaml that decide beside the ACLs, under Kafka's names: who may read them can tell what somebody may do.
func (s *Server) accessEntries() []config.Entry {
	o := s.cfg.Access.Options()
	text := func(name, value, preset, doc string, kind config.Type) config.Entry {
		e := config.Entry{Name: name, Source: config.SourceStatic, Type: kind.Wire(), Doc: doc, ReadOnly: true}
		if value == preset {
			e.Source = config.SourceDefault
		}
		if value != "" {
			e.Value, e.Synonyms = &value, []config.Synonym{{Name: name, Value: &value, Source: e.Source}}
		}
		return e
	}
	return []config.Entry{
		text(auth.KafkaAllowIfNone, strconv.FormatBool(o.AllowIfNone), "false", "auth.allow.if.no.acl of this node.", config.Bool),
		text(auth.KafkaSupers, auth.SuperText(o.Supers), "", "auth.super.users of this node.", config.String),
	}
}

func describedConfig(e *config.Entry, req *kmsg.DescribeConfigsRequest) kmsg.DescribeConfigsResponseResourceConfig {
	c := kmsg.NewDescribeConfigsResponseResourceConfig()
	c.Name, c.ReadOnly, c.IsSensitive = e.Name, e.ReadOnly, e.Sensitive
	c.Source, c.IsDefault = kmsg.ConfigSource(e.Source), e.Source == config.SourceDefault
	c.ConfigType = kmsg.ConfigType(e.Type)
	if !e.Sensitive {
		c.Value = e.Value
	}
	if req.IncludeDocumentation {
		c.Documentation = &e.Doc
	}
	if !req.IncludeSynonyms {
		return c
	}
	for _, syn := range e.Synonyms {
		o := kmsg.NewDescribeConfigsResponseResourceConfigConfigSynonym()
		o.Name, o.Source = syn.Name, kmsg.ConfigSource(syn.Source)
		if !e.Sensitive {
			o.Value = syn.Value
		}
		c.ConfigSynonyms = append(c.ConfigSynonyms, o)
	}
	return c
}
