package rest

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/twmb/franz-go/pkg/kmsg"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/wire"
)

type deleteTopic struct {
	Topic           string `path:"topic"`
	ExpectedVersion int64  `query:"expectedVersion" minimum:"1" doc:"the topicVersion without which nothing is deleted"`
	IfMatch         string `header:"If-Match" doc:"the same as an ETag"`
}

// Resolve refuses a guard that cannot be read: huma takes an empty one, and one in a query that does not parse, for none.
func (*deleteTopic) Resolve(ctx huma.Context) []error {
	u := ctx.URL()
	q, err := url.ParseQuery(u.RawQuery)
	if given, named := q["expectedVersion"]; err == nil && (!named || len(given) == 1 && given[0] != "") {
		return nil
	}
	return []error{&huma.ErrorDetail{Location: "query.expectedVersion", Message: "is not one version", Value: u.RawQuery}}
}

type deletedTopic struct {
	Body struct {
		DeletionPending  bool       `json:"deletionPending" doc:"false: it is removed at once and cannot be restored"`
		RecoverableUntil *time.Time `json:"recoverableUntil" doc:"null: it cannot be restored"`
	}
}

type restoreTopic struct {
	Topic string `path:"topic"`
	Body  struct {
		As      string `json:"as,omitempty" maxLength:"249" doc:"another name, where the old one is taken"`
		TopicID string `json:"topicId,omitempty" maxLength:"22" doc:"which one, where several of that name were deleted; without it the last"`
	} `required:"false"`
}

type restoredTopic struct{ Body createdName }

// createdName is a topic that is usable now.
type createdName struct {
	Name         string `json:"name"`
	TopicID      string `json:"topicId"`
	TopicVersion int64  `json:"topicVersion"`
}

// describeTopicLife registers the routes of a topic's end.
func (d *door) describeTopicLife(api huma.API) {
	tags := []string{"topics"}
	huma.Register(api, huma.Operation{
		OperationID: "deleteTopic", Method: http.MethodDelete, Path: "/v1/topics/{topic}", Tags: tags, DefaultStatus: http.StatusAccepted,
		Summary: "Delete a topic; until recoverableUntil it can be restored with its records",
	}, d.deleteTopic)
	huma.Register(api, huma.Operation{
		OperationID: "restoreTopic", Method: http.MethodPost, Path: "/v1/topics/{topic}/restore", Tags: tags,
		Summary: "Restore a deleted topic with its id, records and configs",
	}, d.restoreTopic)
}

// expectedVersion is the version that a request demands, by number or as If-Match; 0: any.
func expectedVersion(match string, given int64) (int64, error) {
	tag := strings.TrimSpace(match)
	if tag == "" || tag == "*" {
		return given, nil
	}
	text, err := strconv.Unquote(tag)
	n, err2 := strconv.ParseInt(text, 10, 64)
	if err != nil || err2 != nil || n < 1 || given != 0 && given != n {
		return 0, invalid("header.If-Match", "is not one ETag of this topic, or not the expectedVersion")
	}
	return n, nil
}

func (d *door) deleteTopic(ctx context.Context, in *deleteTopic) (*deletedTopic, error) {
	version, err := expectedVersion(in.IfMatch, in.ExpectedVersion)
	if err != nil {
		return nil, err
	}
	req := kmsg.NewPtrDeleteTopicsRequest()
	req.TimeoutMillis = int32(adminWait / time.Millisecond)
	t := kmsg.NewDeleteTopicsRequestTopic()
	t.Topic = kmsg.StringPtr(in.Topic)
	t.UnknownTags.Set(wire.TagDeletion, wire.NumberTag(version))
	req.Topics = append(req.Topics, t)
	resp, err := askHere[*kmsg.DeleteTopicsResponse](ctx, d, req)
	if err != nil {
		return nil, err
	}
	if len(resp.Topics) != 1 {
		return nil, failed(kafka.UnknownServerError, nil)
	}
	one := &resp.Topics[0]
	if one.ErrorCode != 0 {
		return nil, failed(kafka.ErrorCode(one.ErrorCode), one.ErrorMessage)
	}
	out := &deletedTopic{}
	if tag, there := wire.Tagged(&one.UnknownTags, wire.TagDeletion); there {
		if ms, err := wire.ReadNumberTag(tag); err == nil && ms > 0 {
			until := time.UnixMilli(ms).UTC()
			out.Body.DeletionPending, out.Body.RecoverableUntil = true, &until
		}
	}
	return out, nil
}

func (d *door) restoreTopic(ctx context.Context, in *restoreTopic) (*restoredTopic, error) {
	from := wire.Restoration{Name: in.Topic}
	if in.Body.TopicID != "" {
		id, err := kafka.ParseID(in.Body.TopicID)
		if err != nil || id.IsZero() {
			return nil, invalid("body.topicId", "is not the id of a topic")
		}
		from = wire.Restoration{ID: id}
	}
	as := in.Topic
	if in.Body.As != "" {
		as = in.Body.As
	}
	req := kmsg.NewPtrCreateTopicsRequest()
	req.TimeoutMillis = int32(adminWait / time.Millisecond)
	t := kmsg.NewCreateTopicsRequestTopic()
	t.Topic, t.NumPartitions, t.ReplicationFactor = as, 0, 0
	var e wire.Encoder
	from.Append(&e)
	t.UnknownTags.Set(wire.TagRestoration, e.B)
	req.Topics = append(req.Topics, t)
	resp, err := askHere[*kmsg.CreateTopicsResponse](ctx, d, req)
	if err != nil {
		return nil, err
	}
	if len(resp.Topics) != 1 {
		return nil, failed(kafka.UnknownServerError, nil)
	}
	one := &resp.Topics[0]
	if one.ErrorCode != 0 {
		return nil, failed(kafka.ErrorCode(one.ErrorCode), one.ErrorMessage)
	}
	out := &restoredTopic{createdName{Name: as, TopicID: kafka.TopicID(one.TopicID).String()}}
	if tag, there := wire.Tagged(&one.UnknownTags, wire.TagRestoration); there {
		out.Body.TopicVersion, _ = wire.ReadNumberTag(tag)
	}
	return out, nil
}
