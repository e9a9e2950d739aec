package client

import (
	"context"
	"errors"
	"slices"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// refusals are the answers of a group that joining again does not change.
var refusals = []error{
	kerr.GroupAuthorizationFailed, kerr.TopicAuthorizationFailed, kerr.ClusterAuthorizationFailed, kerr.SaslAuthenticationFailed,
	kerr.FencedInstanceID, kerr.InvalidGroupID, kerr.InconsistentGroupProtocol, kerr.GroupMaxSizeReached, kerr.UnsupportedVersion,
	kerr.UnsupportedAssignor, kerr.InvalidSessionTimeout, kerr.InvalidRegularExpression,
}

// poll hands records to their partitions until ctx ends (nil) or the group refuses the worker. Between a poll and AllowRebalance no partition
// is given up, so what was polled belongs to this worker. The last poll is not followed by AllowRebalance: the drain comes first.
func (w *Worker) poll(ctx context.Context) error {
	for {
		fetches := w.client.PollRecords(ctx, pollRecordsMax)
		if ctx.Err() != nil {
			return nil
		}
		for _, fault := range fetches.Errors() {
			if err := w.judge(fault); err != nil {
				return err
			}
		}
		fetches.EachPartition(func(f kgo.FetchTopicPartition) {
			if p := w.find(f.Topic, f.Partition); p != nil && len(f.Records) > 0 {
				p.push(f.Records)
			}
		})
		w.client.AllowRebalance()
	}
}

// judge decides what an error of a fetch or of the group means. It returns an error only if the worker is to end.
func (w *Worker) judge(fault kgo.FetchError) error {
	p := w.find(fault.Topic, fault.Partition)
	var lost *kgo.ErrDataLoss
	var broker *kerr.Error
	var session *kgo.ErrGroupSession
	switch {
	case p == nil && (errors.Is(fault.Err, kgo.ErrClientClosed) || isRefusal(fault.Err)):
		return &GroupError{Group: w.o.Group, Err: fault.Err}
	case p == nil || errors.As(fault.Err, &session):
		w.o.Log.Warn("the group is not reached or was left; the worker joins again", "topic", fault.Topic, "error", fault.Err)
	case errors.Is(fault.Err, kerr.OffsetOutOfRange):
		w.outOfRange(p)
	case errors.As(fault.Err, &lost):
		p.stop(lost.ConsumedTo, &RangeError{Offset: lost.ConsumedTo, Start: -1, End: lost.ResetTo})
	case errors.Is(fault.Err, kerr.UnknownTopicID), errors.As(fault.Err, &broker) && !broker.Retriable:
		p.stop(p.position(), fault.Err)
	default:
		w.o.Log.Warn("a fetch failed; it is tried again", "topic", p.topic, "partition", p.id, "error", fault.Err)
	}
	return nil
}

func isRefusal(err error) bool {
	return slices.ContainsFunc(refusals, func(r error) bool { return errors.Is(err, r) })
}

// outOfRange asks which offsets the partition has, beside the poll loop, and stops it.
func (w *Worker) outOfRange(p *partition) {
	if !p.halt() {
		return // it has been asked for
	}
	w.asking.Go(func() {
		fault := &RangeError{Offset: p.position(), Start: -1, End: -1}
		ctx, cancel := context.WithTimeout(p.ctx, rangeTimeMax)
		defer cancel()
		admin := kadm.NewClient(w.client)
		starts, err := admin.ListStartOffsets(ctx, p.topic)
		ends, errEnds := admin.ListEndOffsets(ctx, p.topic)
		start, ok := starts.Lookup(p.topic, p.id)
		end, okEnds := ends.Lookup(p.topic, p.id)
		if errors.Join(err, errEnds, start.Err, end.Err) == nil && ok && okEnds {
			fault.Start, fault.End = start.Offset, end.Offset
		}
		p.stop(fault.Offset, fault)
	})
}
