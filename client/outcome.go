package client

import (
	"context"
	"errors"
	"net"
	"slices"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// outcome is what is known after one attempt.
type outcome struct {
	record    *kgo.Record // as stored
	partition int32       // -1: none was chosen
	err       error
	unknown   bool // the record may be stored
	again     bool // another attempt may succeed
}

// wireCounts counts what decides whether a record can have reached a broker, for all of a publisher. A count that moved for another record
// makes an outcome unknown that was not; never the reverse.
type wireCounts struct {
	requests atomic.Int64 // Produce requests that were answered, or could not be written or read
	breaks   atomic.Int64 // connections that ended, and with them maybe answers
}

// OnBrokerE2E is kgo.HookBrokerE2E. It comes before the records of the request are told.
func (c *wireCounts) OnBrokerE2E(_ kgo.BrokerMetadata, key int16, _ kgo.BrokerE2E) {
	if key == 0 {
		c.requests.Add(1)
	}
}

// OnBrokerDisconnect is kgo.HookBrokerDisconnect. It comes before the requests of the connection are told.
func (c *wireCounts) OnBrokerDisconnect(kgo.BrokerMetadata, net.Conn) { c.breaks.Add(1) }

// OnProduceRecordPartitioned is kgo.HookProduceRecordPartitioned: from here on the record may be sent.
func (c *wireCounts) OnProduceRecordPartitioned(r *kgo.Record, _ int32) {
	if a, ok := r.Context.Value(attemptKey{}).(*attempt); ok {
		a.partition.Store(int64(r.Partition))
	}
}

// attempt is what one attempt began with, and the partition that was chosen, or -1.
type attempt struct {
	partition        atomic.Int64
	requests, breaks int64
}

type attemptKey struct{}

// send makes one attempt, which ends with ctx: kgo itself sends a batch again, with the same sequence number, until it knows.
func (p *Publisher) send(ctx context.Context, r kgo.Record) outcome {
	a := &attempt{requests: p.wire.requests.Load(), breaks: p.wire.breaks.Load()}
	a.partition.Store(-1)
	done := make(chan error, 1)
	p.client.Produce(context.WithValue(ctx, attemptKey{}, a), &r, func(_ *kgo.Record, err error) { done <- err })
	select {
	case err := <-done:
		return p.judge(ctx, a, &r, err)
	case <-ctx.Done():
	}
	takeBack := time.NewTimer(takeBackMax)
	defer takeBack.Stop()
	select {
	case err := <-done:
		return p.judge(ctx, a, &r, err)
	case <-takeBack.C: // it is on its way, or kgo could not take it back; r is kgo's from here
		return outcome{partition: int32(a.partition.Load()), err: ctx.Err(), unknown: true, again: true}
	}
}

// judge says what the end of an attempt means.
func (p *Publisher) judge(ctx context.Context, a *attempt, r *kgo.Record, err error) outcome {
	o := outcome{record: r, partition: int32(a.partition.Load()), err: err}
	if err == nil {
		return o
	}
	var code *kerr.Error
	switch {
	case o.partition < 0, p.wire.requests.Load() == a.requests && p.wire.breaks.Load() == a.breaks:
		// No Produce request has ended since, and kgo tells nothing of a record whose request is on its way: none had this record.
	case errors.As(err, &code) && slices.Contains(certain, code):
		// The last answer was a refusal; an earlier one may have been lost with its connection.
		o.unknown = p.wire.breaks.Load() != a.breaks
	default:
		o.unknown = true
	}
	refused := errors.As(err, &code) && !code.Retriable && (o.partition < 0 || slices.Contains(certain, code))
	o.again = !refused && !errors.Is(err, kgo.ErrClientClosed) && !errors.Is(err, context.Canceled)
	if ctx.Err() != nil && !refused {
		o.again = true // with more time
	}
	return o
}

// certain are the answers after which a record is not stored, at least not by the request they answer. NOT_LEADER_OR_FOLLOWER is none: a
// leader may have stored the record and then lost its place.
var certain = []*kerr.Error{
	kerr.MessageTooLarge, kerr.RecordListTooLarge, kerr.InvalidRecord, kerr.CorruptMessage, kerr.InvalidTimestamp, kerr.InvalidTopicException,
	kerr.InvalidRequiredAcks, kerr.UnsupportedCompressionType, kerr.UnsupportedForMessageFormat, kerr.UnsupportedVersion, kerr.PolicyViolation,
	kerr.NotEnoughReplicas, kerr.ThrottlingQuotaExceeded, kerr.TopicAuthorizationFailed, kerr.ClusterAuthorizationFailed,
}
