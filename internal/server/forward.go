package server

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/peer"
	"strandline.dev/internal/wire"
)

// A Kafka client finds the leader of a partition or the coordinator of a group by itself. A door without connections to every node, such as REST,
// has the request carried out there: it travels as it is, with who asks (I15: the cluster listener takes it from brokers only), and is dispatched by
// Do like any other. It is forwarded once.

const (
	typeForward       = uint16(peer.KindForward)
	typeForwardAnswer = uint16(peer.KindForward) + 0x4000
	// forwardWaitMax bounds how long another node works on a forwarded request.
	forwardWaitMax = 60 * time.Second
)

// forwarded is a request on its way to another node.
type forwarded struct {
	who                    kafka.Principal
	client, from, listener string
	wait                   time.Duration
	key, version           int16
	body                   []byte
}

// forwardedAnswer is the response, in the request's version; empty for a request that has none.
type forwardedAnswer struct{ body []byte }

func (*forwarded) Kind() peer.Kind       { return peer.KindForward }
func (*forwardedAnswer) Kind() peer.Kind { return peer.KindForward }

// Append implements peer.Message.
func (m *forwarded) Append(b []byte) []byte {
	e := wire.Encoder{B: b}
	e.Header(typeForward, 0)
	e.String(m.who.Type)
	e.String(m.who.Name)
	e.String(m.client)
	e.String(m.from)
	e.String(m.listener)
	e.Int64(int64(m.wait))
	e.Int16(m.key)
	e.Int16(m.version)
	e.Bytes(m.body)
	e.NoTags()
	return e.B
}

// Decode implements peer.Message.
func (m *forwarded) Decode(b []byte) error {
	d := wire.NewDecoder(b)
	d.ExpectHeader(typeForward, 0)
	m.who = kafka.Principal{Type: d.String(), Name: d.String()}
	m.client, m.from, m.listener = d.String(), d.String(), d.String()
	m.wait = time.Duration(d.Int64())
	m.key, m.version, m.body = d.Int16(), d.Int16(), d.Bytes()
	d.Tags(nil)
	return d.Done()
}

// Append implements peer.Message.
func (m *forwardedAnswer) Append(b []byte) []byte {
	e := wire.Encoder{B: b}
	e.Header(typeForwardAnswer, 0)
	e.Bytes(m.body)
	e.NoTags()
	return e.B
}

// Decode implements peer.Message.
func (m *forwardedAnswer) Decode(b []byte) error {
	d := wire.NewDecoder(b)
	d.ExpectHeader(typeForwardAnswer, 0)
	m.body = d.Bytes()
	d.Tags(nil)
	return d.Done()
}

// errNotServing answers a forwarded request that came before this node takes any.
var errNotServing = errors.New("the node takes no requests of clients yet")

// Forwarder is this node's way to have a request carried out on another one, and theirs to this one. It is made before other nodes are heard, and
// refuses what they ask until its Server is there.
type Forwarder struct {
	peers  *peer.Peers // nil: there are no other nodes
	server atomic.Pointer[Server]
}

// NewForwarder takes the requests that other nodes forward; peers is nil on a node that is alone.
func NewForwarder(peers *peer.Peers) *Forwarder {
	f := &Forwarder{peers: peers}
	if peers != nil {
		peers.HandleRequest(peer.KindForward, func() peer.Message { return &forwarded{} }, func(ctx context.Context, from peer.Identity, m peer.Message) (peer.Message, error) {
			return f.carryOut(ctx, from, m.(*forwarded))
		})
	}
	return f
}

func (f *Forwarder) carryOut(ctx context.Context, from peer.Identity, m *forwarded) (peer.Message, error) {
	s := f.server.Load()
	if s == nil {
		return nil, errNotServing
	}
	req, err := wire.NewRequest(m.key, m.version)
	if err == nil {
		err = wire.DecodeRequest(req, m.body)
	}
	if err != nil {
		return nil, fmt.Errorf("a request that node %v forwards: %w", from.Node, err)
	}
	ctx, cancel := context.WithTimeout(ctx, min(max(m.wait, 0), forwardWaitMax))
	defer cancel()
	call := &Call{Principal: m.who, Request: req, ClientID: m.client, Peer: m.from, Listener: m.listener}
	r, err := Await(ctx, s.Do(ctx, call))
	if err != nil {
		return nil, err
	}
	a := &forwardedAnswer{}
	if r.Response != nil {
		a.body = r.Response.AppendTo(nil)
	}
	if r.Release != nil {
		r.Release()
	}
	return a, nil
}

// Ask has a request carried out by a node, this one or another, and waits for its answer until ctx ends. Errors: those of peer.Peers.Call, of which
// peer.ErrUnreachable means that nothing was done; a *ThrottledError, by which nothing was done either; else ctx's, and then, as in every other case, what was done is not known.
func (s *Server) Ask(ctx context.Context, node kafka.NodeID, call *Call) (kmsg.Response, error) {
	if err := s.overloads(call); err != nil {
		return nil, err
	}
	if node == s.cfg.Node || s.cfg.Forwarder == nil || s.cfg.Forwarder.peers == nil {
		r, err := Await(ctx, s.Do(ctx, call))
		return r.Response, err
	}
	wait := forwardWaitMax
	if d, ok := ctx.Deadline(); ok {
		wait = time.Until(d)
	}
	m := &forwarded{
		who: call.Principal, client: call.ClientID, from: call.Peer, listener: call.Listener, wait: wait,
		key: call.Request.Key(), version: call.Request.GetVersion(), body: call.Request.AppendTo(nil),
	}
	var a forwardedAnswer
	if err := s.cfg.Forwarder.peers.Call(ctx, node, m, &a); err != nil {
		return nil, err
	}
	resp := call.Request.ResponseKind()
	if err := resp.ReadFrom(a.body); err != nil {
		return nil, fmt.Errorf("the answer of node %v: %w", node, err)
	}
	return resp, nil
}

// Read is Ask for requests whose answer points into buffers of this node: it is good until release, which is never nil.
func (s *Server) Read(ctx context.Context, node kafka.NodeID, call *Call) (resp kmsg.Response, release func(), err error) {
	release = func() {}
	if node != s.cfg.Node {
		resp, err = s.Ask(ctx, node, call)
		return resp, release, err
	}
	r, err := Await(ctx, s.Do(ctx, call))
	if r.Release != nil {
		release = r.Release
	}
	return r.Response, release, err
}
