package rest

import (
	"context"
	"net/http"
	"slices"

	"github.com/danielgtaylor/huma/v2"
	"github.com/twmb/franz-go/pkg/kmsg"

	"strandline.dev/internal/group"
	"strandline.dev/internal/kafka"
	"strandline.dev/internal/wire"
)

type seekGroup struct {
	Group string `path:"group" maxLength:"4000"`
	Body  struct {
		To      string   `json:"to,omitempty" maxLength:"64" doc:"start, end, an offset, +N or -N from what is committed, or the first record not older than @TIME: @2026-01-31T15:04:05Z, @-15m"`
		Topics  []string `json:"topics,omitempty" maxItems:"1000" doc:"only these; without them all that the group has committed in"`
		Execute bool     `json:"execute,omitempty" doc:"move the group; without it nothing is changed"`
		Undo    bool     `json:"undo,omitempty" doc:"put back what the last seek replaced, instead of to"`
	}
}

type soughtGroup struct {
	Body struct {
		Group      string       `json:"group"`
		Undo       bool         `json:"undo"`
		Executed   bool         `json:"executed"`
		Partitions []group.Move `json:"partitions"`
	}
}

// The tag of a seek and its values (docs/formats/group-requests.md).
const (
	seekTag  = 10003
	seekTo   = 1
	seekUndo = 2
)

// describeSeek registers the route by which a group is moved.
func (d *door) describeSeek(api huma.API) {
	huma.Register(api, huma.Operation{
		OperationID: "seekGroup", Method: http.MethodPost, Path: "/v1/groups/{group}/seek", Tags: []string{"groups"},
		Summary: "Say where a seek would put a group without members, and with execute, put it there; undo takes the last one back",
	}, d.seekGroup)
}

func (d *door) seekGroup(ctx context.Context, in *seekGroup) (*soughtGroup, error) {
	b := &in.Body
	var target group.Target
	var err error
	switch {
	case b.Undo && (b.To != "" || len(b.Topics) > 0):
		return nil, invalid("body.undo", "puts back all that the last seek replaced: it excludes to and topics")
	case !b.Undo:
		if target, err = group.ParseTarget(b.To, d.cfg.Wall.Now()); err != nil {
			return nil, invalid("body.to", "want start, end, an offset, +N, -N or @TIME")
		}
	}
	ctx, cancel := context.WithTimeout(ctx, adminWait)
	defer cancel()
	report, err := d.report(ctx, in.Group)
	switch {
	case err != nil:
		return nil, err
	case report.Members > 0:
		p := failed(kafka.NonEmptyGroup, nil)
		p.Detail = "the group is active: its place is its members' to move"
		return nil, p
	}
	out := &soughtGroup{}
	out.Body.Group, out.Body.Undo = in.Group, b.Undo
	if b.Undo {
		out.Body.Partitions = report.Undoing()
	} else if out.Body.Partitions, err = d.planSeek(ctx, report, target, b.Topics); err != nil {
		return nil, err
	}
	if len(out.Body.Partitions) == 0 {
		p := failed(kafka.ResourceNotFound, nil)
		p.Detail = "there is nothing to move: the group has committed nothing, or no seek of it is kept"
		return nil, p
	}
	moving := slices.ContainsFunc(out.Body.Partitions, func(m group.Move) bool { return m.Moves() })
	if b.Execute && (moving || b.Undo) {
		err = d.moveGroup(ctx, in.Group, b.Undo, out.Body.Partitions)
		out.Body.Executed = err == nil
	}
	return out, err
}

// planSeek says where each partition would go.
func (d *door) planSeek(ctx context.Context, report *group.Report, target group.Target, topics []string) ([]group.Move, error) {
	now := report.Places()
	if len(topics) == 0 {
		for at := range now {
			topics = append(topics, at.Topic)
		}
	}
	slices.Sort(topics)
	out := []group.Move{}
	for _, topic := range slices.Compact(topics) {
		wanted := []int64{earliest, latest}
		if target.Kind == group.PositionTime {
			wanted = append(wanted, target.N)
		}
		parts, err := d.bounds(ctx, topic, wanted)
		if err != nil {
			return nil, err
		}
		for i, b := range parts {
			at := group.Place{Topic: topic, Partition: int32(i)}
			out = append(out, target.MoveOf(at, now[at], b.start, b.end, b.first))
		}
	}
	return out, nil
}

// bound is what a partition holds, [start, end), and the first offset of a time.
type bound struct{ start, end, first int64 }

// bounds asks the leaders what the partitions of a topic hold; one that is not known is an error, since a seek must not guess.
func (d *door) bounds(ctx context.Context, topic string, timestamps []int64) ([]bound, error) {
	resp, err := askHere[*kmsg.MetadataResponse](ctx, d, metadataOf(topic))
	if err != nil {
		return nil, err
	}
	if len(resp.Topics) != 1 {
		return nil, failed(kafka.UnknownServerError, nil)
	}
	t := &resp.Topics[0]
	if code := kafka.ErrorCode(t.ErrorCode); code != kafka.None {
		return nil, failed(code, nil)
	}
	led := map[int32][]int32{}
	for i := range t.Partitions {
		p := &t.Partitions[i]
		if p.Leader < 0 {
			return nil, failed(kafka.LeaderNotAvailable, nil)
		}
		led[p.Leader] = append(led[p.Leader], p.Partition)
	}
	out := make([]bound, len(t.Partitions))
	for node, list := range led {
		for _, timestamp := range timestamps {
			found, err := d.listOffsets(ctx, kafka.NodeID(node), topic, list, timestamp)
			if err != nil {
				return nil, err
			}
			for i, n := range list {
				if found[i].err != nil {
					return nil, found[i].err
				}
				out[n].take(timestamp, found[i].offset)
			}
		}
	}
	return out, nil
}

func (b *bound) take(timestamp, offset int64) {
	switch {
	case timestamp == earliest:
		b.start = offset
	case timestamp == latest:
		b.end = offset
	case offset < 0: // no record is that young
		b.first = b.end
	default:
		b.first = offset
	}
}

// moveGroup moves the group. The request is sent once: a seek that is done twice would keep itself as what it replaced.
func (d *door) moveGroup(ctx context.Context, name string, undo bool, moves []group.Move) error {
	req := kmsg.NewPtrOffsetCommitRequest()
	req.SetVersion(committedByName)
	req.Group = name
	mode := byte(seekUndo)
	if !undo {
		mode = seekTo
		for i := range moves {
			addMove(req, &moves[i])
		}
	}
	req.UnknownTags.Set(seekTag, []byte{mode})
	resp, err := askGroup[*kmsg.OffsetCommitResponse](ctx, d, name, req)
	if err != nil {
		return err
	}
	tag, _ := wire.Tagged(&resp.UnknownTags, seekTag)
	r := wire.NewDecoder(tag)
	r.ExpectHeader(seekTag, 0)
	code := kafka.ErrorCode(r.Int16())
	r.Int32() // how many partitions moved
	r.Tags(nil)
	switch {
	case r.Done() != nil:
		return failed(kafka.UnknownServerError, nil)
	case code == kafka.None:
		return nil
	}
	p := failed(code, nil)
	if code.Retriable() || code == kafka.UnknownServerError {
		p.Outcome, p.Detail = outcomeUnknown, "whether the group was moved is not known: "+code.String()+"; see where it is before you repeat this"
	}
	return p
}

func addMove(req *kmsg.OffsetCommitRequest, m *group.Move) {
	if !m.Moves() {
		return
	}
	if n := len(req.Topics); n == 0 || req.Topics[n-1].Topic != m.Topic {
		t := kmsg.NewOffsetCommitRequestTopic()
		t.Topic = m.Topic
		req.Topics = append(req.Topics, t)
	}
	t := &req.Topics[len(req.Topics)-1]
	p := kmsg.NewOffsetCommitRequestTopicPartition()
	p.Partition, p.Offset = m.Partition, *m.To
	t.Partitions = append(t.Partitions, p)
}
