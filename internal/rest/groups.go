package rest

import (
	"context"
	"crypto/rand"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/twmb/franz-go/pkg/kmsg"

	"strandline.dev/internal/kafka"
)

// Members that speak HTTP are ordinary members of consumer groups (KIP-848): the coordinator assigns, and what a heartbeat says is all that it knows
// of them. They share groups with Kafka clients that use the consumer protocol.

type joinGroup struct {
	Group string `path:"group" maxLength:"4000"`
	Body  struct {
		Topics   []string `json:"topics" minItems:"1" maxItems:"1000"`
		MemberID string   `json:"memberId,omitempty" maxLength:"100" doc:"of a member that comes again; without it a new one is made"`
	}
}

type heartbeat struct {
	Group  string `path:"group" maxLength:"4000"`
	Member string `path:"member" maxLength:"100"`
	Body   struct {
		Generation int32        `json:"generation" minimum:"1"`
		Owned      []assignment `json:"owned,omitempty" maxItems:"10000" doc:"what this member works on now; say it after each change of assignments, so that what was taken away can go to others"`
	}
}

type leaveGroup struct {
	Group  string `path:"group" maxLength:"4000"`
	Member string `path:"member" maxLength:"100"`
}

// assignment is what a member is to read of one topic.
type assignment struct {
	Topic      string  `json:"topic"`
	Partitions []int32 `json:"partitions"`
}

type member struct {
	Body struct {
		MemberID            string        `json:"memberId"`
		Generation          int32         `json:"generation" doc:"give it with commits and heartbeats"`
		Assignments         *[]assignment `json:"assignments,omitempty" doc:"absent: as before"`
		HeartbeatIntervalMs int32         `json:"heartbeatIntervalMs" doc:"how often to send the heartbeat"`
	}
}

type commitOffset struct {
	Group     string `path:"group" maxLength:"4000"`
	Topic     string `path:"topic"`
	Partition int32  `path:"partition" minimum:"0"`
	Body      struct {
		NextOffset int64  `json:"nextOffset" minimum:"0" doc:"the next record to read: the last one that is processed, and one"`
		Generation int32  `json:"generation,omitempty" default:"-1" minimum:"-1" doc:"of the member; without a member none"`
		MemberID   string `json:"memberId,omitempty" maxLength:"100" doc:"without it the group must have no members"`
	}
}

type committed struct {
	Body struct {
		Committed bool `json:"committed"`
	}
}

type offsetPath struct {
	Group     string `path:"group" maxLength:"4000"`
	Topic     string `path:"topic"`
	Partition int32  `path:"partition" minimum:"0"`
}

type committedOffset struct {
	Body struct {
		NextOffset *int64 `json:"nextOffset" doc:"null: nothing is committed"`
	}
}

// describeGroups registers the routes of groups.
func (d *door) describeGroups(api huma.API) {
	tags := []string{"groups"}
	huma.Register(api, huma.Operation{
		OperationID: "joinGroup", Method: http.MethodPost, Path: "/v1/groups/{group}/members", Tags: tags,
		Summary: "Join a group, or come again; assignments may follow with the first heartbeats",
	}, d.joinGroup)
	huma.Register(api, huma.Operation{
		OperationID: "heartbeat", Method: http.MethodPut, Path: "/v1/groups/{group}/members/{member}", Tags: tags,
		Summary: "Stay in a group and learn of changes",
	}, d.heartbeat)
	huma.Register(api, huma.Operation{
		OperationID: "leaveGroup", Method: http.MethodDelete, Path: "/v1/groups/{group}/members/{member}", Tags: tags, DefaultStatus: http.StatusNoContent,
		Summary: "Leave a group; others get its partitions at once",
	}, d.leaveGroup)
	huma.Register(api, huma.Operation{
		OperationID: "commitOffset", Method: http.MethodPut, Path: "/v1/groups/{group}/offsets/{topic}/{partition}", Tags: tags,
		Summary: "Commit the next offset to read; the answer comes when it is durable",
	}, d.commitOffset)
	huma.Register(api, huma.Operation{
		OperationID: "committedOffset", Method: http.MethodGet, Path: "/v1/groups/{group}/offsets/{topic}/{partition}", Tags: tags,
		Summary: "The next offset to read, as it was committed last",
	}, d.committedOffset)
}

// askGroup has a request carried out by the coordinator of a group.
func askGroup[R kmsg.Response](ctx context.Context, d *door, group string, req kmsg.Request) (R, error) {
	var none R
	find := kmsg.NewPtrFindCoordinatorRequest()
	find.CoordinatorKeys = []string{group}
	found, err := askHere[*kmsg.FindCoordinatorResponse](ctx, d, find)
	if err != nil {
		return none, err
	}
	if len(found.Coordinators) != 1 {
		return none, failed(kafka.UnknownServerError, nil)
	}
	c := &found.Coordinators[0]
	if c.ErrorCode != 0 {
		return none, failed(kafka.ErrorCode(c.ErrorCode), c.ErrorMessage)
	}
	return ask[R](ctx, d, kafka.NodeID(c.NodeID), req)
}

func (d *door) joinGroup(ctx context.Context, in *joinGroup) (*member, error) {
	id := in.Body.MemberID
	if id == "" {
		var random kafka.ID
		_, _ = rand.Read(random[:]) // never fails
		id = random.String()
	}
	req := kmsg.NewPtrConsumerGroupHeartbeatRequest()
	req.Group, req.MemberID, req.MemberEpoch = in.Group, id, 0
	req.RebalanceTimeoutMillis = int32(rebalanceMax / time.Millisecond)
	req.SubscribedTopicNames = in.Body.Topics
	req.Topics = []kmsg.ConsumerGroupHeartbeatRequestTopic{}
	return d.beat(ctx, req)
}

func (d *door) heartbeat(ctx context.Context, in *heartbeat) (*member, error) {
	s, err := d.broker()
	if err != nil {
		return nil, err
	}
	req := kmsg.NewPtrConsumerGroupHeartbeatRequest()
	req.Group, req.MemberID, req.MemberEpoch, req.RebalanceTimeoutMillis = in.Group, in.Member, in.Body.Generation, -1
	if in.Body.Owned != nil {
		req.Topics = []kmsg.ConsumerGroupHeartbeatRequestTopic{}
	}
	for _, a := range in.Body.Owned {
		t := kmsg.NewConsumerGroupHeartbeatRequestTopic()
		t.TopicID, t.Partitions = s.Topic(a.Topic).ID, a.Partitions
		req.Topics = append(req.Topics, t)
	}
	return d.beat(ctx, req)
}

// beat sends a heartbeat, and names the topics of the answer.
func (d *door) beat(ctx context.Context, req *kmsg.ConsumerGroupHeartbeatRequest) (*member, error) {
	ctx, cancel := context.WithTimeout(ctx, adminWait)
	defer cancel()
	resp, err := askGroup[*kmsg.ConsumerGroupHeartbeatResponse](ctx, d, req.Group, req)
	if err != nil {
		return nil, err
	}
	if resp.ErrorCode != 0 {
		return nil, failed(kafka.ErrorCode(resp.ErrorCode), resp.ErrorMessage)
	}
	out := &member{}
	out.Body.MemberID, out.Body.Generation, out.Body.HeartbeatIntervalMs = req.MemberID, resp.MemberEpoch, resp.HeartbeatIntervalMillis
	if resp.Assignment == nil {
		return out, nil
	}
	list, err := d.named(ctx, resp.Assignment.Topics)
	out.Body.Assignments = &list
	return out, err
}

// named names the topics of an assignment; one that is gone since, or not for this caller, is left out.
func (d *door) named(ctx context.Context, topics []kmsg.ConsumerGroupHeartbeatResponseAssignmentTopic) ([]assignment, error) {
	list := []assignment{}
	if len(topics) == 0 {
		return list, nil
	}
	req := kmsg.NewPtrMetadataRequest()
	for i := range topics {
		t := kmsg.NewMetadataRequestTopic()
		t.TopicID = topics[i].TopicID
		req.Topics = append(req.Topics, t)
	}
	resp, err := askHere[*kmsg.MetadataResponse](ctx, d, req)
	if err != nil {
		return nil, err
	}
	names := map[kafka.TopicID]string{}
	for i := range resp.Topics {
		if t := &resp.Topics[i]; t.Topic != nil {
			names[t.TopicID] = *t.Topic
		}
	}
	for i := range topics {
		if name := names[topics[i].TopicID]; name != "" {
			list = append(list, assignment{name, topics[i].Partitions})
		}
	}
	return list, nil
}

func (d *door) leaveGroup(ctx context.Context, in *leaveGroup) (*struct{}, error) {
	req := kmsg.NewPtrConsumerGroupHeartbeatRequest()
	req.Group, req.MemberID, req.MemberEpoch, req.RebalanceTimeoutMillis = in.Group, in.Member, leaveEpoch, -1
	_, err := d.beat(ctx, req)
	return nil, err
}

// leaveEpoch in a heartbeat says that a member leaves.
const leaveEpoch = -1

func (d *door) commitOffset(ctx context.Context, in *commitOffset) (*committed, error) {
	ctx, cancel := context.WithTimeout(ctx, adminWait)
	defer cancel()
	req := kmsg.NewPtrOffsetCommitRequest()
	req.SetVersion(committedByName)
	req.Group, req.Generation, req.MemberID = in.Group, in.Body.Generation, in.Body.MemberID
	t := kmsg.NewOffsetCommitRequestTopic()
	t.Topic = in.Topic
	p := kmsg.NewOffsetCommitRequestTopicPartition()
	p.Partition, p.Offset = in.Partition, in.Body.NextOffset
	t.Partitions = append(t.Partitions, p)
	req.Topics = append(req.Topics, t)
	resp, err := askGroup[*kmsg.OffsetCommitResponse](ctx, d, in.Group, req)
	if err != nil {
		return nil, err
	}
	if len(resp.Topics) != 1 || len(resp.Topics[0].Partitions) != 1 {
		return nil, failed(kafka.UnknownServerError, nil)
	}
	if code := kafka.ErrorCode(resp.Topics[0].Partitions[0].ErrorCode); code != kafka.None {
		return nil, failed(code, nil)
	}
	out := &committed{}
	out.Body.Committed = true
	return out, nil
}

// committedByName and readByName are the newest versions of OffsetCommit and OffsetFetch that name topics by name.
const (
	committedByName = 9
	readByName      = 9
)

func (d *door) committedOffset(ctx context.Context, in *offsetPath) (*committedOffset, error) {
	ctx, cancel := context.WithTimeout(ctx, adminWait)
	defer cancel()
	req := kmsg.NewPtrOffsetFetchRequest()
	req.SetVersion(readByName)
	g := kmsg.NewOffsetFetchRequestGroup()
	g.Group = in.Group
	t := kmsg.NewOffsetFetchRequestGroupTopic()
	t.Topic, t.Partitions = in.Topic, []int32{in.Partition}
	g.Topics = append(g.Topics, t)
	req.Groups = append(req.Groups, g)
	resp, err := askGroup[*kmsg.OffsetFetchResponse](ctx, d, in.Group, req)
	if err != nil {
		return nil, err
	}
	if len(resp.Groups) != 1 {
		return nil, failed(kafka.UnknownServerError, nil)
	}
	if code := kafka.ErrorCode(resp.Groups[0].ErrorCode); code != kafka.None {
		return nil, failed(code, nil)
	}
	out := &committedOffset{}
	if topics := resp.Groups[0].Topics; len(topics) == 1 && len(topics[0].Partitions) == 1 {
		p := &topics[0].Partitions[0]
		if code := kafka.ErrorCode(p.ErrorCode); code != kafka.None {
			return nil, failed(code, nil)
		}
		if p.Offset >= 0 {
			out.Body.NextOffset = &p.Offset
		}
	}
	return out, nil
}
