package client

import (
	"context"
	"errors"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// TestOutcome_UnknownUnlessCertain: an outcome is known only where the record was not sent, or was refused and no answer can have been lost.
func TestOutcome_UnknownUnlessCertain(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for _, c := range []struct {
		name             string
		ctx              context.Context
		err              error
		partition        int32
		requests, breaks int64 // since the attempt began
		unknown, again   bool
	}{
		{"no partition was chosen", ended, context.DeadlineExceeded, -1, 5, 5, false, true},
		{"nothing was sent", ended, context.DeadlineExceeded, 0, 0, 0, false, true},
		{"something was sent", ended, context.DeadlineExceeded, 0, 1, 0, true, true},
		{"a connection ended", ended, context.DeadlineExceeded, 0, 0, 1, true, true},
		{"refused", t.Context(), kerr.MessageTooLarge, 0, 1, 0, false, false},
		{"refused, after a lost answer", t.Context(), kerr.MessageTooLarge, 0, 2, 1, true, false},
		{"refused for now", t.Context(), kerr.NotEnoughReplicas, 0, 1, 0, false, true},
		{"stored, and then too few replicas", t.Context(), kerr.NotEnoughReplicasAfterAppend, 0, 1, 0, true, true},
		{"a leader that lost its place", t.Context(), kerr.NotLeaderForPartition, 0, 1, 0, true, true},
		{"an answer that is not in the table", t.Context(), kerr.KafkaStorageError, 0, 1, 0, true, true},
		{"sequence lost", t.Context(), kerr.OutOfOrderSequenceNumber, 0, 1, 0, true, true},
		{"no such topic", t.Context(), kerr.UnknownTopicOrPartition, -1, 0, 0, false, true},
		{"not allowed, before anything was sent", t.Context(), kerr.TopicAuthorizationFailed, -1, 0, 0, false, false},
		{"closed", t.Context(), kgo.ErrClientClosed, 0, 1, 0, true, false},
		{"stored", t.Context(), nil, 0, 1, 1, false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := &Publisher{wire: &wireCounts{}}
			a := &attempt{}
			a.partition.Store(int64(c.partition))
			p.wire.requests.Store(c.requests)
			p.wire.breaks.Store(c.breaks)
			if got := p.judge(c.ctx, a, nil, c.err); got.unknown != c.unknown || got.again != c.again || got.partition != c.partition {
				t.Errorf("%+v", got)
			}
		})
	}
}

func TestErrors_SayWhatIsKnown(t *testing.T) {
	for _, c := range []struct {
		err                error
		retriable, unknown bool
	}{
		{&PublishError{Err: context.DeadlineExceeded, unknown: true, again: true}, true, true},
		{&PublishError{Err: kerr.MessageTooLarge}, false, false},
		{&PartitionError{Err: &RangeError{Offset: 1, Start: 5, End: 9}}, false, false},
		{&GroupError{Err: context.DeadlineExceeded, last: true, unknown: true}, true, true},
		{&GroupError{Err: kerr.RebalanceInProgress, last: true}, true, false},
		{&GroupError{Err: kerr.GroupAuthorizationFailed}, false, false},
		{errors.New("of somebody else"), false, false},
		{nil, false, false},
	} {
		if Retriable(c.err) != c.retriable || OutcomeUnknown(c.err) != c.unknown {
			t.Errorf("%v: retriable %v, unknown %v", c.err, Retriable(c.err), OutcomeUnknown(c.err))
		}
		if joined := errors.Join(errors.New("x"), c.err); c.err != nil && OutcomeUnknown(joined) != c.unknown {
			t.Errorf("%v", joined)
		}
	}
}
