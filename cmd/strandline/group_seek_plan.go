package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"strandline.dev/internal/group"
	"strandline.dev/internal/wire"
)

// The tag of a seek and its values (docs/formats/group-requests.md).
const (
	seekTag  = 10003
	seekTo   = 1
	seekUndo = 2
)

// plan says where each partition would go.
func (k *seeking) plan(ctx context.Context, target group.Target, topics []string) ([]group.Move, error) {
	now := k.report.Places()
	if topics = slices.Compact(slices.Sorted(slices.Values(topics))); len(topics) == 0 {
		for at := range now {
			topics = append(topics, at.Topic)
		}
		slices.Sort(topics)
		topics = slices.Compact(topics)
	}
	if len(topics) == 0 {
		return nil, &failure{what: fmt.Sprintf("group %s has committed nothing", k.group), todo: "see `strandline group list`, or name the topics with --topics"}
	}
	lists, err := k.offsets(ctx, target, topics)
	if err != nil {
		return nil, k.explain(err, "group %s not moved", k.group)
	}
	var out []group.Move
	for _, topic := range topics {
		for _, partition := range slices.Sorted(maps.Keys(lists.starts[topic])) {
			e, err := lists.extent(topic, partition)
			if err != nil {
				return nil, err
			}
			at := group.Place{Topic: topic, Partition: partition}
			out = append(out, target.MoveOf(at, now[at], e.start, e.end, e.from))
		}
	}
	return out, nil
}

// offsets asks where the partitions of topics begin and end and, for a time, which offset is the first of it.
func (k *seeking) offsets(ctx context.Context, target group.Target, topics []string) (l offsetLists, err error) {
	details, err := k.admin.ListTopics(ctx, topics...)
	if err != nil {
		return l, err
	}
	k.ids = map[string]kadm.TopicID{}
	for _, topic := range topics {
		d, ok := details[topic]
		switch {
		case !ok:
			return l, kerr.UnknownTopicOrPartition
		case d.Err != nil:
			return l, d.Err
		}
		k.ids[topic] = d.ID
	}
	if l.starts, l.ends, err = k.bounds(ctx, topics); err == nil && target.Kind == group.PositionTime {
		l.times, err = k.admin.ListOffsetsAfterMilli(ctx, target.N, topics...)
	}
	return l, err
}

// planUndo says where the partitions were before the last seek.
func (k *seeking) planUndo() ([]group.Move, error) {
	if len(k.report.Undo) == 0 {
		return nil, k.refused(errNothingToUndo)
	}
	return k.report.Undoing(), nil
}

var errNothingToUndo = errors.New("no seek of it is kept")

// execute moves the group. The request is sent once: a seek that is done twice would keep itself as what it replaced.
func (k *seeking) execute(ctx context.Context, g *soughtGroup) error {
	req := kmsg.NewPtrOffsetCommitRequest()
	req.Group = k.group
	mode := byte(seekUndo)
	if !g.Undo {
		mode, req.Topics = seekTo, seekTopics(g.Partitions, k.ids)
	}
	req.UnknownTags.Set(seekTag, []byte{mode})
	resp, err := req.RequestWith(ctx, k.client.Broker(int(k.coordinator)))
	if err != nil {
		return k.unknown(err)
	}
	code, err := seekOutcome(resp)
	switch {
	case err != nil:
		return k.unknown(err)
	case code == nil:
		g.Executed = true
		return nil
	}
	return k.refused(code)
}

// seekTopics are the partitions that move. An older version of the request names topics by name, a newer one by id.
func seekTopics(partitions []group.Move, ids map[string]kadm.TopicID) (out []kmsg.OffsetCommitRequestTopic) {
	for i := range partitions {
		p := &partitions[i]
		if !p.Moves() {
			continue
		}
		if len(out) == 0 || out[len(out)-1].Topic != p.Topic {
			t := kmsg.NewOffsetCommitRequestTopic()
			t.Topic, t.TopicID = p.Topic, ids[p.Topic]
			out = append(out, t)
		}
		to := kmsg.NewOffsetCommitRequestTopicPartition()
		to.Partition, to.Offset = p.Partition, *p.To
		out[len(out)-1].Partitions = append(out[len(out)-1].Partitions, to)
	}
	return out
}

// seekOutcome reads what the broker said; nil is done.
func seekOutcome(resp *kmsg.OffsetCommitResponse) (code, err error) {
	err = errors.New("the answer does not say")
	resp.UnknownTags.Each(func(tag uint32, v []byte) {
		if tag != seekTag {
			return
		}
		d := wire.NewDecoder(v)
		d.ExpectHeader(seekTag, 0)
		code = kerr.ErrorForCode(d.Int16())
		d.Int32() // how many partitions moved
		d.Tags(nil)
		err = d.Done()
	})
	return code, err
}
