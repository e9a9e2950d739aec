package rest

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"
	"github.com/twmb/franz-go/pkg/kmsg"

	"strandline.dev/internal/kafka"
)

type listGroups struct {
	Limit     int    `query:"limit" default:"100" minimum:"1" maximum:"1000"`
	PageToken string `query:"pageToken" maxLength:"4000" doc:"nextPageToken of the page before"`
}

type groupSummary struct {
	Group       string `json:"group"`
	State       string `json:"state" doc:"Empty (no members), Stable, or what the group goes through"`
	Type        string `json:"type" doc:"classic or consumer"`
	Coordinator int32  `json:"coordinator" doc:"the node"`
}

type listedGroups struct {
	Body struct {
		Groups        []groupSummary `json:"groups"`
		NextPageToken string         `json:"nextPageToken,omitempty" doc:"absent on the last page"`
	}
}

// describeGroupList registers the route that lists groups.
func (d *door) describeGroupList(api huma.API) {
	huma.Register(api, huma.Operation{
		OperationID: "listGroups", Method: http.MethodGet, Path: "/v1/groups", Tags: []string{"groups"},
		Summary: "List groups by name, page by page, also those without members",
	}, d.listGroups)
}

// listGroups asks every node, since each knows the groups that it coordinates. One that does not answer is an error: a list with a gap would be taken
// for the whole.
func (d *door) listGroups(ctx context.Context, in *listGroups) (*listedGroups, error) {
	ctx, cancel := context.WithTimeout(ctx, adminWait)
	defer cancel()
	nodes, err := d.nodes(ctx)
	if err != nil {
		return nil, err
	}
	out := &listedGroups{}
	out.Body.Groups = []groupSummary{}
	for _, n := range nodes {
		if n.IsFenced {
			continue
		}
		resp, err := ask[*kmsg.ListGroupsResponse](ctx, d, kafka.NodeID(n.NodeID), kmsg.NewPtrListGroupsRequest())
		if err != nil {
			return nil, err
		}
		if code := kafka.ErrorCode(resp.ErrorCode); code != kafka.None {
			return nil, failed(code, nil)
		}
		for i := range resp.Groups {
			if g := &resp.Groups[i]; g.Group > in.PageToken || in.PageToken == "" {
				out.Body.Groups = append(out.Body.Groups, groupSummary{g.Group, g.GroupState, g.GroupType, n.NodeID})
			}
		}
	}
	slices.SortFunc(out.Body.Groups, func(a, b groupSummary) int { return cmp.Compare(a.Group, b.Group) })
	if n := pageOf(out.Body.Groups, in.Limit); n < len(out.Body.Groups) {
		out.Body.Groups = out.Body.Groups[:n]
		out.Body.NextPageToken = out.Body.Groups[n-1].Group
	}
	return out, nil
}

// pageOf is how many groups a page of about limit has: it ends with a name that a request can say.
func pageOf(groups []groupSummary, limit int) int {
	n := min(limit, len(groups))
	for n < len(groups) && utf8.RuneCountInString(groups[n-1].Group) > groupNameMax {
		n++
	}
	return n
}
