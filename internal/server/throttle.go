package server

import (
	"fmt"
	"math"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/metadata"
	"strandline.dev/internal/quota"
	"strandline.dev/internal/wire"
)

// A client over its quota is answered at once, with throttle_time_ms, and its connection is not read until that time has passed: one that waits by
// itself has waited enough when it goes on, one that does not is made to. The time ends when what was taken is paid for, counted from when it was
// taken: waiting for the answer is part of it.
//
// A door without connections has nobody to make wait, so its publishes and fetches are refused while their client owes anything, with the time
// after which they will not be (R28). What it is told with a publish that was taken is only how long to hold back the answer near the disk limit
// (R89): being refused later is what quotas cost there, and nobody pays twice. Nor does it pay for what was refused, as by a node that does not lead:
// its bytes are counted when they come, so that many publishes at once are seen, and given back with the answer.

// metering counts one request. It is the request's Pending while the answer is parked.
type metering struct {
	server *Server
	call   *Call
	client *quota.Client
	began  time.Time
	parked Pending
	until  time.Time // when everything taken so far is paid for
}

// clientOf is the client that a request counts for, or nil when no quota holds for it. Who has not logged in yet has none: the limits of strangers hold.
func (s *Server) clientOf(call *Call) *quota.Client {
	switch call.Request.Key() {
	case wire.KeySaslHandshake, wire.KeySaslAuthenticate:
		return nil
	case wire.KeyApiVersions:
		if call.guard != nil && call.guard.stranger() {
			return nil
		}
	}
	var was *quota.Client
	if call.guard != nil {
		was = call.guard.client
	}
	c := s.quotas.Client(call.Principal.Name, call.ClientID, was, time.Now())
	if call.guard != nil {
		call.guard.client = c
	}
	return c
}

// meter begins to count a request; nil, when no quota holds for its client, counts nothing. Denied requests count like others (C095).
func (s *Server) meter(call *Call) *metering {
	client := s.clientOf(call)
	if client == nil {
		return nil
	}
	return &metering{server: s, call: call, client: client, began: time.Now()}
}

// begin counts what is known of a request before it is carried out, or refuses it.
func (m *metering) begin(key int16) (no Reply, refused bool) {
	if m == nil {
		return Reply{}, false
	}
	if no, refused := m.refuse(m.began); refused {
		return no, true
	}
	m.call.client = m.client
	switch req := m.call.Request.(type) {
	case *kmsg.ProduceRequest:
		if m.client.Has(metadata.QuotaProduce) {
			m.take(metadata.QuotaProduce, float64(publishedBytes(req)), m.began)
		}
	case *kmsg.FetchRequest:
		m.take(metadata.QuotaFetch, 0, m.began) // what is owed already
	default:
		if no, refused := m.mutate(key, m.began); refused {
			return m.settle(ready(no)), true
		}
	}
	return Reply{}, false
}

// end counts what a request took, and tells its client for how long to wait.
func (m *metering) end(r Reply) Reply {
	if m == nil {
		return r
	}
	m.worked(m.began)
	return m.settle(r)
}

// take counts n of a kind.
func (m *metering) take(k metadata.QuotaKind, n float64, now time.Time) {
	wait := m.client.Take(k, n, now)
	if wait <= 0 {
		return
	}
	until := now.Add(wait)
	if m.until.Before(until) {
		m.server.cfg.Metrics.Throttled(k.String(), m.call.Principal.Name, m.call.ClientID, until.Sub(later(m.until, now)))
		m.until = until
	}
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// worked counts the time since began.
func (m *metering) worked(began time.Time) {
	if m.client.Has(metadata.QuotaRequest) {
		now := time.Now()
		m.take(metadata.QuotaRequest, 100*now.Sub(began).Seconds(), now)
	}
}

// settle counts what an answer carries and tells the client for how long it is to wait; a parked one is waited for.
func (m *metering) settle(r Reply) Reply {
	now := time.Now()
	if r.Pending != nil {
		m.parked = r.Pending
		return Reply{Pending: m, Throttle: max(m.until.Sub(now), 0)}
	}
	if resp, ok := r.Response.(*kmsg.FetchResponse); ok && m.client.Has(metadata.QuotaFetch) {
		m.take(metadata.QuotaFetch, float64(fetchedBytes(resp)), now)
	}
	if resp, published := r.Response.(*kmsg.ProduceResponse); published && m.call.guard == nil {
		m.client.Give(metadata.QuotaProduce, float64(refusedBytes(m.call.Request.(*kmsg.ProduceRequest), resp)), now)
		return r
	}
	r.Throttle = max(r.Throttle, m.until.Sub(now))
	tell(r.Response, r.Throttle)
	return r
}

// tell puts a wait into an answer, if its version has a place for it.
func tell(resp kmsg.Response, wait time.Duration) {
	if t, ok := resp.(kmsg.SetThrottleResponse); ok && wait > 0 {
		t.SetThrottle(throttleMs(wait))
	}
}

// throttleMs is a wait in whole milliseconds, never shorter than it.
func throttleMs(wait time.Duration) int32 {
	return int32(min(math.Ceil(float64(wait)/float64(time.Millisecond)), math.MaxInt32))
}

// Ready is closed when the parked request is.
func (m *metering) Ready() <-chan struct{} { return m.parked.Ready() }

// Deadline is that of the parked request.
func (m *metering) Deadline() time.Time { return m.parked.Deadline() }

// Complete completes the parked request and counts what that takes.
func (m *metering) Complete(late bool) (Reply, bool) {
	began := time.Now()
	r, done := m.parked.Complete(late)
	m.worked(began)
	if !done {
		return Reply{}, false
	}
	return m.settle(r), true
}

// Cancel drops the parked request.
func (m *metering) Cancel() { m.parked.Cancel() }

// publishedBytes are the batches of a publish, as they came.
func publishedBytes(req *kmsg.ProduceRequest) (n int) {
	for i := range req.Topics {
		for j := range req.Topics[i].Partitions {
			n += len(req.Topics[i].Partitions[j].Records)
		}
	}
	return n
}

// refusedBytes are the batches of a publish of which certainly nothing was stored. Only a sender that asked for outcomes is told that.
func refusedBytes(req *kmsg.ProduceRequest, resp *kmsg.ProduceResponse) (n int) {
	if _, asked := wire.Tagged(&req.UnknownTags, wire.TagOutcome); !asked {
		return 0
	}
	for i := range resp.Topics {
		refused := map[int32]bool{}
		for j := range resp.Topics[i].Partitions {
			p := &resp.Topics[i].Partitions[j]
			var o wire.Outcome
			tag, told := wire.Tagged(&p.UnknownTags, wire.TagOutcome)
			certain := !told || o.Decode(tag) == nil && !o.Unknown // without an outcome it was refused before anything was tried
			refused[p.Partition] = p.ErrorCode != 0 && certain
		}
		for j := range req.Topics[i].Partitions {
			if p := &req.Topics[i].Partitions[j]; refused[p.Partition] {
				n += len(p.Records)
			}
		}
	}
	return n
}

// fetchedBytes are the batches of an answer.
func fetchedBytes(resp *kmsg.FetchResponse) (n int) {
	for i := range resp.Topics {
		for j := range resp.Topics[i].Partitions {
			n += len(resp.Topics[i].Partitions[j].RecordBatches)
		}
	}
	return n
}

// refuse answers a publish or a fetch of a door without connections while its client owes anything; nothing is done.
func (m *metering) refuse(now time.Time) (Reply, bool) {
	if m.call.guard != nil {
		return Reply{}, false
	}
	kind := metadata.QuotaProduce
	switch m.call.Request.(type) {
	case *kmsg.ProduceRequest:
	case *kmsg.FetchRequest:
		kind = metadata.QuotaFetch
	default:
		return Reply{}, false
	}
	no, wait := m.server.overQuota(m.client, kind, now)
	if wait <= 0 {
		return Reply{}, false
	}
	var resp kmsg.Response
	if req, ok := m.call.Request.(*kmsg.ProduceRequest); ok {
		resp = refuseProduce(req, no)
	} else {
		r := reply[*kmsg.FetchResponse](m.call.Request)
		r.ErrorCode = int16(no.code)
		resp = r
	}
	tell(resp, wait)
	m.server.cfg.Metrics.Throttled(kind.String(), m.call.Principal.Name, m.call.ClientID, wait)
	return ready(resp), true
}

// overQuota is why a client is refused for what it owes of a kind or of request time, and for how long.
func (s *Server) overQuota(c *quota.Client, kind metadata.QuotaKind, now time.Time) (refusal, time.Duration) {
	wait := c.Wait(kind, now)
	if w := c.Wait(metadata.QuotaRequest, now); w > wait {
		kind, wait = metadata.QuotaRequest, w
	}
	after := time.Duration(throttleMs(wait)) * time.Millisecond
	return refusal{kafka.ThrottlingQuotaExceeded, fmt.Sprintf("over the quota %v on node %v: try again after %v", kind, s.cfg.Node, after)}, wait
}

func refuseProduce(req *kmsg.ProduceRequest, no refusal) *kmsg.ProduceResponse {
	resp := reply[*kmsg.ProduceResponse](req)
	for i := range req.Topics {
		out := kmsg.NewProduceResponseTopic()
		out.Topic, out.TopicID = req.Topics[i].Topic, req.Topics[i].TopicID
		for j := range req.Topics[i].Partitions {
			p := newProduced(req.Topics[i].Partitions[j].Partition)
			p.ErrorCode, p.ErrorMessage = int16(no.code), text(no.message)
			out.Partitions = append(out.Partitions, p)
		}
		resp.Topics = append(resp.Topics, out)
	}
	return resp
}

// ThrottledError means that a door's client is over its quota of request time.
type ThrottledError struct {
	// Wait is how long it is until a request is taken again, Why is for people.
	Wait time.Duration
	Why  string
}

// Error says which quota, and for how long.
func (e *ThrottledError) Error() string { return e.Why }

// overloads refuses a request of a door without connections whose client owes request time.
func (s *Server) overloads(call *Call) error {
	now := time.Now()
	c := s.quotas.Client(call.Principal.Name, call.ClientID, nil, now)
	if c == nil {
		return nil
	}
	no, wait := s.overQuota(c, metadata.QuotaRequest, now)
	if wait <= 0 {
		return nil
	}
	s.cfg.Metrics.Throttled(metadata.QuotaRequest.String(), call.Principal.Name, call.ClientID, wait)
	return &ThrottledError{wait, no.message}
}
