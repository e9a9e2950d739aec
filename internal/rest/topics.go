package rest

import (
	"context"
	"net/http"
	"sort"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/twmb/franz-go/pkg/kmsg"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/metadata"
)

const (
	dedupWindow = "strandline.dedup.window.ms"
	// dedupWindowDefault is the window of topics that are created here: a client that repeats by record id is what this door is for.
	dedupWindowDefault = "120000"
	retention          = "retention.ms"
)

type createTopic struct {
	Body struct {
		Name              string            `json:"name" minLength:"1" maxLength:"249"`
		PartitionCount    int32             `json:"partitionCount,omitempty" minimum:"1" doc:"without it the broker's default"`
		ReplicationFactor int16             `json:"replicationFactor,omitempty" minimum:"1" maximum:"32767" doc:"without it the broker's default"`
		Retention         string            `json:"retention,omitempty" doc:"how long records are kept, as 36h or 14d; the config retention.ms"`
		Configs           map[string]string `json:"configs,omitempty" doc:"topic configs; strandline.dedup.window.ms is 120000 unless it is given"`
	}
}

type createdTopic struct{ Body createdName }

type listTopics struct {
	Limit     int    `query:"limit" default:"100" minimum:"1" maximum:"1000"`
	PageToken string `query:"pageToken" doc:"nextPageToken of the page before"`
}

type topicSummary struct {
	Name         string `json:"name"`
	TopicID      string `json:"topicId"`
	TopicVersion int64  `json:"topicVersion"`
	Partitions   int    `json:"partitionCount"`
	Internal     bool   `json:"internal"`
}

type listedTopics struct {
	Body struct {
		Topics        []topicSummary `json:"topics"`
		NextPageToken string         `json:"nextPageToken,omitempty" doc:"absent on the last page"`
	}
}

type topicPath struct {
	Topic string `path:"topic"`
}

type describedPartition struct {
	Partition     int32   `json:"partition"`
	Leader        int32   `json:"leader" doc:"-1: none"`
	LeaderEpoch   int32   `json:"leaderEpoch"`
	Replicas      []int32 `json:"replicas"`
	ISR           []int32 `json:"isr"`
	LogStart      int64   `json:"logStart" doc:"-1: unknown"`
	HighWatermark int64   `json:"highWatermark" doc:"-1: unknown"`
	LogEnd        int64   `json:"logEnd" doc:"-1: unknown"`
	Error         string  `json:"error,omitempty"`
}

type describedConfig struct {
	Name      string  `json:"name"`
	Value     *string `json:"value" doc:"null: hidden"`
	Source    string  `json:"source" doc:"topic, or where the default comes from"`
	Sensitive bool    `json:"sensitive,omitempty"`
}

type describedTopic struct {
	ETag string `header:"ETag"`
	Body struct {
		Name              string               `json:"name"`
		TopicID           string               `json:"topicId"`
		TopicVersion      int64                `json:"topicVersion"`
		Owner             string               `json:"owner"`
		Created           time.Time            `json:"created"`
		State             string               `json:"state"`
		Internal          bool                 `json:"internal"`
		ReplicationFactor int                  `json:"replicationFactor"`
		Partitions        []describedPartition `json:"partitions"`
		Configs           []describedConfig    `json:"configs"`
	}
}

// describeTopics registers the routes of topics.
func (d *door) describeTopics(api huma.API) {
	tags := []string{"topics"}
	huma.Register(api, huma.Operation{
		OperationID: "createTopic", Method: http.MethodPost, Path: "/v1/topics", Tags: tags, DefaultStatus: http.StatusCreated,
		Summary: "Create a topic; the answer comes when it is stored by the cluster and usable here",
	}, d.createTopic)
	huma.Register(api, huma.Operation{
		OperationID: "listTopics", Method: http.MethodGet, Path: "/v1/topics", Tags: tags, Summary: "List topics by name, page by page",
	}, d.listTopics)
	huma.Register(api, huma.Operation{
		OperationID: "describeTopic", Method: http.MethodGet, Path: "/v1/topics/{topic}", Tags: tags,
		Summary: "Describe a topic: its configs and where each comes from, its partitions, their leaders and offsets",
	}, d.describeTopic)
}

func (d *door) createTopic(ctx context.Context, in *createTopic) (*createdTopic, error) {
	b := &in.Body
	req := kmsg.NewPtrCreateTopicsRequest()
	req.TimeoutMillis = int32(adminWait / time.Millisecond)
	t := kmsg.NewCreateTopicsRequestTopic()
	t.Topic, t.NumPartitions, t.ReplicationFactor = b.Name, -1, -1
	if b.PartitionCount > 0 {
		t.NumPartitions = b.PartitionCount
	}
	if b.ReplicationFactor > 0 {
		t.ReplicationFactor = b.ReplicationFactor
	}
	configs, err := createConfigs(b.Configs, b.Retention)
	if err != nil {
		return nil, err
	}
	t.Configs = configs
	req.Topics = append(req.Topics, t)
	resp, err := askHere[*kmsg.CreateTopicsResponse](ctx, d, req)
	if err != nil {
		return nil, err
	}
	if len(resp.Topics) != 1 {
		return nil, failed(kafka.UnknownServerError, nil)
	}
	if made := &resp.Topics[0]; made.ErrorCode != 0 {
		return nil, failed(kafka.ErrorCode(made.ErrorCode), made.ErrorMessage)
	}
	out := &createdTopic{}
	out.Body.Name, out.Body.TopicID, out.Body.TopicVersion = b.Name, kafka.TopicID(resp.Topics[0].TopicID).String(), metadata.FirstVersion
	return out, nil
}

// createConfigs are the configs of a new topic, in the order of their names.
func createConfigs(given map[string]string, keep string) ([]kmsg.CreateTopicsRequestTopicConfig, error) {
	if len(given) > configsMax {
		return nil, invalid("body.configs", "has more than "+strconv.Itoa(configsMax)+" entries")
	}
	all := map[string]string{dedupWindow: dedupWindowDefault}
	for name, value := range given {
		all[name] = value
	}
	if keep != "" {
		ms, err := readRetention(keep)
		if _, twice := given[retention]; twice || err != nil {
			return nil, invalid("body.retention", "is a time such as 36h or 14d, and not given together with the config retention.ms")
		}
		all[retention] = strconv.FormatInt(ms, 10)
	}
	out := make([]kmsg.CreateTopicsRequestTopicConfig, 0, len(all))
	for name, value := range all {
		c := kmsg.NewCreateTopicsRequestTopicConfig()
		c.Name, c.Value = name, &value
		out = append(out, c)
	}
	sort.Slice(out, func(i, j int) bool { return out[i].Name < out[j].Name })
	return out, nil
}

// readRetention reads a time such as 36h or 14d, in milliseconds.
func readRetention(text string) (int64, error) {
	if days, ok := strings.CutSuffix(text, "d"); ok {
		n, err := strconv.ParseUint(days, 10, 16)
		return int64(n) * (24 * time.Hour).Milliseconds(), err
	}
	t, err := time.ParseDuration(text)
	if err == nil && t <= 0 {
		err = strconv.ErrRange
	}
	return t.Milliseconds(), err
}

// listTopics lists what the caller may describe.
func (d *door) listTopics(ctx context.Context, in *listTopics) (*listedTopics, error) {
	s, err := d.broker()
	if err != nil {
		return nil, err
	}
	out := &listedTopics{}
	out.Body.Topics = []topicSummary{}
	names := s.TopicNames(in.PageToken, in.Limit+1)
	if len(names) > in.Limit {
		names = names[:in.Limit]
		out.Body.NextPageToken = names[in.Limit-1]
	}
	if len(names) == 0 {
		return out, nil
	}
	resp, err := askHere[*kmsg.MetadataResponse](ctx, d, metadataOf(names...))
	if err != nil {
		return nil, err
	}
	for i := range resp.Topics {
		t := &resp.Topics[i]
		if t.Topic == nil || len(t.Partitions) == 0 {
			continue // not for this caller, or gone since
		}
		one := topicSummary{Name: *t.Topic, TopicID: kafka.TopicID(t.TopicID).String(), Partitions: len(t.Partitions), Internal: t.IsInternal}
		if view := s.Topic(*t.Topic); view.Topic != nil {
			one.TopicVersion = view.Topic.Version
		}
		out.Body.Topics = append(out.Body.Topics, one)
	}
	sort.Slice(out.Body.Topics, func(i, j int) bool { return out.Body.Topics[i].Name < out.Body.Topics[j].Name })
	return out, nil
}

func metadataOf(names ...string) *kmsg.MetadataRequest {
	req := kmsg.NewPtrMetadataRequest()
	req.AllowAutoTopicCreation = false
	for _, name := range names {
		t := kmsg.NewMetadataRequestTopic()
		t.Topic = kmsg.StringPtr(name)
		req.Topics = append(req.Topics, t)
	}
	return req
}

// describeTopic describes one topic as this node knows it; offsets come from the leaders.
func (d *door) describeTopic(ctx context.Context, in *topicPath) (*describedTopic, error) {
	s, err := d.broker()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, adminWait)
	defer cancel()
	resp, err := askHere[*kmsg.MetadataResponse](ctx, d, metadataOf(in.Topic))
	if err != nil {
		return nil, err
	}
	view := s.Topic(in.Topic)
	if len(resp.Topics) != 1 || view.Topic == nil && resp.Topics[0].ErrorCode == 0 {
		return nil, failed(kafka.UnknownTopicOrPartition, nil)
	}
	if code := kafka.ErrorCode(resp.Topics[0].ErrorCode); code != kafka.None && (view.Topic == nil || len(resp.Topics[0].Partitions) == 0) {
		p := failed(code, nil)
		if p.Status == http.StatusNotFound {
			p.Detail = "there is no topic " + strconv.Quote(in.Topic)
		}
		return nil, p
	}
	t := view.Topic
	out := &describedTopic{ETag: strconv.Quote(strconv.FormatInt(t.Version, 10))}
	b := &out.Body
	b.Name, b.TopicID, b.TopicVersion, b.Owner, b.Created, b.State, b.Internal = t.Name, t.ID.String(), t.Version, t.Owner, t.Created.UTC(), "ready", t.Internal
	for i := range t.Partitions {
		st := &t.Partitions[i]
		b.ReplicationFactor = max(b.ReplicationFactor, len(st.Replicas))
		b.Partitions = append(b.Partitions, describedPartition{
			Partition: int32(i), Leader: int32(st.Leader), LeaderEpoch: int32(st.LeaderEpoch), Replicas: numbers(st.Replicas), ISR: numbers(st.ISR),
			LogStart: -1, HighWatermark: -1, LogEnd: -1,
		})
	}
	if b.Configs, err = d.configsOf(ctx, t.Name); err != nil {
		return nil, err
	}
	d.fillOffsets(ctx, t.Name, b.Partitions)
	for i, end := range s.LogEnds(ctx, t) {
		b.Partitions[i].LogEnd = int64(end)
	}
	return out, nil
}

func numbers(ids []kafka.NodeID) []int32 {
	out := make([]int32, len(ids))
	for i, id := range ids {
		out[i] = int32(id)
	}
	return out
}

// fillOffsets asks every leader for the offsets of the partitions that it leads; a leader that does not answer leaves its reason there.
func (d *door) fillOffsets(ctx context.Context, topic string, parts []describedPartition) {
	led := map[int32][]int32{}
	for i := range parts {
		if n := parts[i].Leader; n >= 0 {
			led[n] = append(led[n], int32(i))
		} else {
			parts[i].Error = kafka.LeaderNotAvailable.String()
		}
	}
	var all sync.WaitGroup
	for node, list := range led {
		all.Go(func() {
			for _, timestamp := range []int64{earliest, latest} {
				found, err := d.listOffsets(ctx, kafka.NodeID(node), topic, list, timestamp)
				for i, n := range list {
					if err == nil && found[i].err == nil && timestamp == earliest {
						parts[n].LogStart = found[i].offset
					} else if err == nil && found[i].err == nil {
						parts[n].HighWatermark = found[i].offset
					} else if err != nil {
						parts[n].Error = err.Error()
					} else {
						parts[n].Error = found[i].err.Error()
					}
				}
			}
		})
	}
	all.Wait()
}

// configsOf are the configs of a topic; none for a caller who may not see them.
func (d *door) configsOf(ctx context.Context, topic string) ([]describedConfig, error) {
	req := kmsg.NewPtrDescribeConfigsRequest()
	one := kmsg.NewDescribeConfigsRequestResource()
	one.ResourceType, one.ResourceName = kmsg.ConfigResourceTypeTopic, topic
	req.Resources = append(req.Resources, one)
	resp, err := askHere[*kmsg.DescribeConfigsResponse](ctx, d, req)
	if err != nil {
		return nil, err
	}
	out := []describedConfig{}
	if len(resp.Resources) != 1 || kafka.ErrorCode(resp.Resources[0].ErrorCode) == kafka.TopicAuthorizationFailed {
		return out, nil
	}
	if r := &resp.Resources[0]; r.ErrorCode != 0 {
		return nil, failed(kafka.ErrorCode(r.ErrorCode), r.ErrorMessage)
	}
	for _, c := range resp.Resources[0].Configs {
		out = append(out, describedConfig{Name: c.Name, Value: c.Value, Source: strings.ToLower(c.Source.String()), Sensitive: c.IsSensitive})
	}
	return out, nil
}
