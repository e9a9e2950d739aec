package server

import (
	"context"
	"errors"
	"sync"

	"github.com/twmb/franz-go/pkg/kmsg"

	"strandline.dev/internal/auth"
	"strandline.dev/internal/kafka"
	"strandline.dev/internal/metadata"
)

// handleInitProducerID hands out a producer id that no one had before. Transactions do not exist yet: a transactional id is refused
// for good, with the one code that all clients report as "the broker does not do this".
func (s *Server) handleInitProducerID(ctx context.Context, call *Call) Reply {
	req := call.Request.(*kmsg.InitProducerIDRequest)
	resp := reply[*kmsg.InitProducerIDResponse](req)
	resp.ProducerID, resp.ProducerEpoch = int64(kafka.NoProducerID), -1
	switch {
	case req.TransactionalID != nil && *req.TransactionalID == "":
		resp.ErrorCode = int16(kafka.InvalidRequest)
	case req.TransactionalID != nil:
		resp.ErrorCode = int16(kafka.UnsupportedVersion)
	case req.Version >= 3 && (req.ProducerID < 0) != (req.ProducerEpoch < 0):
		resp.ErrorCode = int16(kafka.InvalidRequest)
	}
	if resp.ErrorCode == 0 && !s.mayProduceIdempotently(call) {
		resp.ErrorCode = int16(kafka.ClusterAuthorizationFailed)
	}
	if resp.ErrorCode != 0 {
		return ready(resp)
	}
	// A client that names its old id to have its epoch raised gets a new id as well: that is Kafka's answer without a transactional id.
	if id, ok := s.ids.take(); ok {
		resp.ProducerID, resp.ProducerEpoch = int64(id), 0
		return ready(resp)
	}
	return background(ctx, producerIDWait, func(ctx context.Context) kmsg.Response {
		id, err := s.ids.refill(ctx, s.allocate)
		if err != nil {
			resp.ErrorCode = int16(s.producerIDCode(err))
			return resp
		}
		resp.ProducerID, resp.ProducerEpoch = int64(id), 0
		return resp
	})
}

// producerIDCode keeps the client retrying: COORDINATOR_NOT_AVAILABLE is the retriable code that every client of this API knows.
func (s *Server) producerIDCode(err error) kafka.ErrorCode {
	if errors.Is(err, errNoProducerIDs) {
		s.cfg.Log.Warn("no producer ids", "error", err)
		return kafka.CoordinatorNotAvailable
	}
	if code := s.code(err, "allocate producer ids"); !code.Retriable() {
		return code
	}
	return kafka.CoordinatorNotAvailable
}

// errNoProducerIDs means that the controller refused a block of producer ids, as it does while this broker's registration is not in force.
var errNoProducerIDs = errors.New("the controller gave no producer ids")

// allocate takes a block of ids from the controller.
func (s *Server) allocate(ctx context.Context) (first, count int64, err error) {
	ev := metadata.AllocateProducerIDs{Node: s.cfg.Node, Epoch: s.cfg.BrokerEpoch(), Count: producerIDBlock}
	answer, _, err := s.cfg.Controller.Submit(ctx, ev)
	if err != nil {
		return 0, 0, err
	}
	block, ok := answer.(metadata.ProducerIDs)
	switch {
	case !ok:
		return 0, 0, errReplyType
	case !block.OK() || block.Count <= 0:
		return 0, 0, errors.Join(errNoProducerIDs, errors.New(block.Message))
	}
	return block.First, block.Count, nil
}

// producerIDs is this node's block of producer ids. What is left of it at a stop is lost: ids are plenty and never reused.
type producerIDs struct {
	mu        sync.Mutex
	next, end int64
	refilling chan struct{} // closed when the refill in progress ends; nil when none is
}

func (p *producerIDs) take() (kafka.ProducerID, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.takeLocked()
}

func (p *producerIDs) takeLocked() (kafka.ProducerID, bool) {
	if p.next >= p.end {
		return kafka.NoProducerID, false
	}
	id := p.next
	p.next++
	return kafka.ProducerID(id), true
}

// refill takes an id, getting a block first when there is none left. Callers that come during a refill wait for it.
func (p *producerIDs) refill(ctx context.Context, allocate func(context.Context) (first, count int64, err error)) (kafka.ProducerID, error) {
	for {
		p.mu.Lock()
		id, ok := p.takeLocked()
		others := p.refilling
		if !ok && others == nil {
			p.refilling = make(chan struct{})
		}
		p.mu.Unlock()
		switch {
		case ok:
			return id, nil
		case others != nil:
			select {
			case <-others:
			case <-ctx.Done():
				return kafka.NoProducerID, ctx.Err()
			}
			continue
		}
		if err := p.fill(ctx, allocate); err != nil {
			return kafka.NoProducerID, err
		}
	}
}

func (p *producerIDs) fill(ctx context.Context, allocate func(context.Context) (first, count int64, err error)) error {
	first, count, err := allocate(ctx)
	p.mu.Lock()
	defer p.mu.Unlock()
	close(p.refilling)
	p.refilling = nil
	if err == nil {
		p.next, p.end = first, first+count
	}
	return err
}

// mayProduceIdempotently: who may write to any topic may, and by Kafka's older rule who has the right on the cluster.
func (s *Server) mayProduceIdempotently(call *Call) bool {
	return s.sees(call, auth.OnCluster(kmsg.ACLOperationIdempotentWrite)) ||
		call.grants.MayAny(kmsg.ACLOperationWrite, kmsg.ACLResourceTypeTopic) || s.mayCluster(call, kmsg.ACLOperationIdempotentWrite)
}
