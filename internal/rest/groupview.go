package rest

import (
	"context"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/twmb/franz-go/pkg/kmsg"

	"strandline.dev/internal/group"
	"strandline.dev/internal/kafka"
	"strandline.dev/internal/wire"
)

type groupPath struct {
	Group string `path:"group" maxLength:"4000"`
}

type groupPartition struct {
	Topic                  string `json:"topic"`
	Partition              int32  `json:"partition"`
	Committed              *int64 `json:"committed" doc:"the next record to read; null: nothing is committed"`
	LogStart               *int64 `json:"logStart" doc:"null: the leader does not answer"`
	End                    *int64 `json:"end"`
	Lag                    *int64 `json:"lag" doc:"records not read; null: unknown"`
	OldestUnprocessedAgeMs *int64 `json:"oldestUnprocessedAgeMs"`
	TimeToLossMs           *int64 `json:"timeToLossMs" doc:"until retention passes the oldest record that is not read; null: never, or unknown"`
	State                  string `json:"state"`
	Why                    string `json:"why" doc:"the rule that gives this state"`
}

type describedGroup struct {
	Body struct {
		Group      string           `json:"group"`
		Members    int              `json:"members"`
		State      string           `json:"state" doc:"the worst of the partitions"`
		Partitions []groupPartition `json:"partitions"`
	}
}

// describeGroupViews registers the routes for those who look after groups.
func (d *door) describeGroupViews(api huma.API) {
	tags := []string{"groups"}
	huma.Register(api, huma.Operation{
		OperationID: "describeGroup", Method: http.MethodGet, Path: "/v1/groups/{group}", Tags: tags,
		Summary: "What a group has not read: lag, age of the oldest record, time to its loss; also without members",
	}, d.describeGroup)
	huma.Register(api, huma.Operation{
		OperationID: "deleteGroup", Method: http.MethodDelete, Path: "/v1/groups/{group}", Tags: tags, DefaultStatus: http.StatusNoContent,
		Summary: "Delete a group without members, and its offsets",
	}, d.deleteGroup)
}

func (d *door) describeGroup(ctx context.Context, in *groupPath) (*describedGroup, error) {
	ctx, cancel := context.WithTimeout(ctx, adminWait)
	defer cancel()
	r, err := d.report(ctx, in.Group)
	if err != nil {
		return nil, err
	}
	if r.State == 0 {
		return nil, failed(kafka.GroupIDNotFound, nil)
	}
	out := &describedGroup{}
	out.Body.Group, out.Body.Members, out.Body.State, out.Body.Partitions = in.Group, r.Members, r.State.String(), []groupPartition{}
	for i := range r.Partitions {
		out.Body.Partitions = append(out.Body.Partitions, partitionOfGroup(&r.Partitions[i]))
	}
	return out, nil
}

// report asks where a group is.
func (d *door) report(ctx context.Context, name string) (*group.Report, error) {
	req := kmsg.NewPtrOffsetFetchRequest()
	req.SetVersion(readByName)
	req.UnknownTags.Set(group.ReportType, []byte{1})
	g := kmsg.NewOffsetFetchRequestGroup()
	g.Group = name
	req.Groups = append(req.Groups, g)
	resp, err := askGroup[*kmsg.OffsetFetchResponse](ctx, d, name, req)
	if err != nil {
		return nil, err
	}
	if len(resp.Groups) != 1 {
		return nil, failed(kafka.UnknownServerError, nil)
	}
	if code := kafka.ErrorCode(resp.Groups[0].ErrorCode); code != kafka.None {
		return nil, failed(code, nil)
	}
	tag, there := wire.Tagged(&resp.Groups[0].UnknownTags, group.ReportType)
	r := &group.Report{}
	if !there || r.Decode(tag) != nil {
		return nil, failed(kafka.UnknownServerError, nil)
	}
	return r, nil
}

// partitionOfGroup leaves out what is not known: no number is made up.
func partitionOfGroup(p *group.PartitionReport) groupPartition {
	out := groupPartition{Topic: p.Topic, Partition: p.Partition, State: p.State.String(), Why: p.Rule}
	number := func(n int64) *int64 { return &n }
	if p.Committed >= 0 {
		out.Committed = number(int64(p.Committed))
	}
	if !p.Known {
		return out
	}
	out.LogStart, out.End = number(int64(p.Start)), number(int64(p.End))
	if p.Lag < 0 {
		return out
	}
	out.Lag = number(p.Lag)
	if p.Lag > 0 {
		out.OldestUnprocessedAgeMs = number(int64(p.Oldest / time.Millisecond))
	}
	if p.Expires {
		out.TimeToLossMs = number(int64(p.LossIn / time.Millisecond))
	}
	return out
}

func (d *door) deleteGroup(ctx context.Context, in *groupPath) (*struct{}, error) {
	ctx, cancel := context.WithTimeout(ctx, adminWait)
	defer cancel()
	req := kmsg.NewPtrDeleteGroupsRequest()
	req.Groups = []string{in.Group}
	resp, err := askGroup[*kmsg.DeleteGroupsResponse](ctx, d, in.Group, req)
	if err != nil {
		return nil, err
	}
	if len(resp.Groups) != 1 {
		return nil, failed(kafka.UnknownServerError, nil)
	}
	if code := kafka.ErrorCode(resp.Groups[0].ErrorCode); code != kafka.None {
		return nil, failed(code, nil)
	}
	return nil, nil
}
