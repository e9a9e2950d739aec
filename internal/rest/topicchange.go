package rest

import (
	"context"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/twmb/franz-go/pkg/kmsg"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/wire"
)

type changeTopic struct {
	Topic   string `path:"topic"`
	IfMatch string `header:"If-Match" doc:"the expectedVersion as an ETag"`
	Body    struct {
		ExpectedVersion int64              `json:"expectedVersion,omitempty" minimum:"1" doc:"the topicVersion without which nothing is changed; here or in If-Match"`
		Configs         map[string]*string `json:"configs,omitempty" doc:"configs to set; null takes one back to its default; others stay"`
		PartitionCount  int32              `json:"partitionCount,omitempty" minimum:"1" doc:"the new number of partitions, more than before"`
		ConfirmKeyRemap bool               `json:"confirmKeyRemap,omitempty" doc:"more partitions send most keys to other ones, which cannot be taken back: say true"`
	}
}

type changedTopic struct {
	ETag string `header:"ETag"`
	Body createdName
}

// describeTopicChange registers the route by which a topic is changed.
func (d *door) describeTopicChange(api huma.API) {
	huma.Register(api, huma.Operation{
		OperationID: "changeTopic", Method: http.MethodPatch, Path: "/v1/topics/{topic}", Tags: []string{"topics"},
		Summary: "Change configs of a topic or add partitions, if nobody has changed it since it was described",
	}, d.changeTopic)
}

func (d *door) changeTopic(ctx context.Context, in *changeTopic) (*changedTopic, error) {
	b := &in.Body
	version, err := expectedVersion(in.IfMatch, b.ExpectedVersion)
	switch {
	case err != nil:
		return nil, err
	case version == 0:
		return nil, invalid("body.expectedVersion", "is missing: the topicVersion that GET shows, here or as If-Match")
	case len(b.Configs) == 0 && b.PartitionCount == 0:
		return nil, invalid("body", "changes nothing: give configs or partitionCount")
	case len(b.Configs) > configsMax:
		return nil, invalid("body.configs", "has more than "+strconv.Itoa(configsMax)+" entries")
	case b.PartitionCount > 0 && !b.ConfirmKeyRemap:
		return nil, invalid("body.confirmKeyRemap", "is not true, and more partitions send most keys to other ones, which breaks their order across the change")
	}
	ctx, cancel := context.WithTimeout(ctx, adminWait)
	defer cancel()
	if len(b.Configs) > 0 && b.PartitionCount > 0 { // both or none: what would be refused is refused before anything is changed
		if _, err := d.setConfigs(ctx, in.Topic, b.Configs, version, true); err != nil {
			return nil, err
		}
	}
	if b.PartitionCount > 0 {
		if version, err = d.setPartitions(ctx, in.Topic, b.PartitionCount, version); err != nil {
			return nil, err
		}
	}
	if len(b.Configs) > 0 {
		next, err := d.setConfigs(ctx, in.Topic, b.Configs, version, false)
		if err != nil && b.PartitionCount > 0 {
			p := *asProblem(err)
			p.Outcome, p.Detail = outcomeUnknown, "the partitions were added (topicVersion "+strconv.FormatInt(version, 10)+"), the configs were not set: "+p.Detail
			return nil, &p
		}
		if version = next; err != nil {
			return nil, err
		}
	}
	s, err := d.broker()
	if err != nil {
		return nil, err
	}
	out := &changedTopic{ETag: strconv.Quote(strconv.FormatInt(version, 10))}
	out.Body = createdName{Name: in.Topic, TopicID: s.Topic(in.Topic).ID.String(), TopicVersion: version}
	return out, nil
}

// setConfigs changes configs of a topic under a version, and returns the topic's version then.
func (d *door) setConfigs(ctx context.Context, topic string, configs map[string]*string, version int64, only bool) (int64, error) {
	req := kmsg.NewPtrIncrementalAlterConfigsRequest()
	req.ValidateOnly = only
	one := kmsg.NewIncrementalAlterConfigsRequestResource()
	one.ResourceType, one.ResourceName = kmsg.ConfigResourceTypeTopic, topic
	one.UnknownTags.Set(wire.TagExpected, wire.NumberTag(version))
	for _, name := range slices.Sorted(maps.Keys(configs)) {
		c := kmsg.NewIncrementalAlterConfigsRequestResourceConfig()
		c.Name, c.Value = name, configs[name]
		if c.Value == nil {
			c.Op = kmsg.IncrementalAlterConfigOpDelete
		}
		one.Configs = append(one.Configs, c)
	}
	req.Resources = append(req.Resources, one)
	resp, err := askHere[*kmsg.IncrementalAlterConfigsResponse](ctx, d, req)
	if err != nil {
		return 0, err
	}
	if len(resp.Resources) != 1 {
		return 0, failed(kafka.UnknownServerError, nil)
	}
	r := &resp.Resources[0]
	if r.ErrorCode != 0 {
		return 0, failed(kafka.ErrorCode(r.ErrorCode), r.ErrorMessage)
	}
	return versionIn(&r.UnknownTags, version), nil
}

// setPartitions gives a topic more partitions under a version, and returns the topic's version then.
func (d *door) setPartitions(ctx context.Context, topic string, count int32, version int64) (int64, error) {
	req := kmsg.NewPtrCreatePartitionsRequest()
	req.TimeoutMillis = int32(adminWait / time.Millisecond)
	t := kmsg.NewCreatePartitionsRequestTopic()
	t.Topic, t.Count = topic, count
	t.UnknownTags.Set(wire.TagExpected, wire.NumberTag(version))
	req.Topics = append(req.Topics, t)
	resp, err := askHere[*kmsg.CreatePartitionsResponse](ctx, d, req)
	if err != nil {
		return 0, err
	}
	if len(resp.Topics) != 1 {
		return 0, failed(kafka.UnknownServerError, nil)
	}
	r := &resp.Topics[0]
	if r.ErrorCode != 0 {
		return 0, failed(kafka.ErrorCode(r.ErrorCode), r.ErrorMessage)
	}
	return versionIn(&r.UnknownTags, version), nil
}

// versionIn is the version that an answer tells, else the one that was.
func versionIn(tags *kmsg.Tags, was int64) int64 {
	if version, there, err := wire.Expected(tags); there && err == nil {
		return version
	}
	return was
}
