package peer

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"time"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/sys"
	"strandline.dev/internal/wire"
)

// protocolVersion is the version of the cluster protocol: of frames, hello and the meaning of kinds. Message versions are their own.
const protocolVersion = 1

// hello begins a connection, both ways.
type hello struct {
	self  Identity
	class Class
	// passing says that the connection is a probe or a single call: that it ends means nothing.
	passing bool
	// expected is the node that the dialer wants behind the address; NoNode: whoever is there.
	expected kafka.NodeID
	// refusal, in the acceptor's hello, says why the dialer's is not accepted; "" accepts it.
	refusal string
	version int16
}

// helloHeader is the type in the codec's header of a hello. Its layout up to the protocol version never changes, so that versions can
// name each other.
const helloHeader = 0x5348

// Kind implements Message.
func (h *hello) Kind() Kind { return kindHello }

// Append implements Message.
func (h *hello) Append(b []byte) []byte {
	e := wire.Encoder{B: b}
	e.Header(helloHeader, 0)
	e.Int16(h.version)
	e.String(h.self.Cluster)
	e.Int32(int32(h.self.Node))
	e.ID(h.self.Directory)
	e.Uint64(h.self.Start)
	e.ID(h.self.Incarnation)
	e.Int8(int8(h.class))
	e.Bool(h.passing)
	e.Int32(int32(h.expected))
	e.String(h.refusal)
	e.NoTags()
	return e.B
}

// Decode implements Message. Of another protocol version only the version is read.
func (h *hello) Decode(b []byte) error {
	d := wire.NewDecoder(b)
	d.ExpectHeader(helloHeader, 0)
	h.version = d.Int16()
	if d.Err() == nil && h.version != protocolVersion {
		return nil
	}
	h.self.Cluster = d.String()
	h.self.Node = kafka.NodeID(d.Int32())
	h.self.Directory = d.ID()
	h.self.Start = d.Uint64()
	h.self.Incarnation = d.ID()
	h.class = Class(d.Int8())
	h.passing = d.Bool()
	h.expected = kafka.NodeID(d.Int32())
	h.refusal = d.String()
	d.Tags(nil)
	if d.Err() == nil && (h.class < Control || h.class > Clients) {
		d.Fail(fmt.Errorf("%w: %v", wire.ErrMalformed, h.class))
	}
	return d.Done()
}

// judge says why the process that said there, over nc, is not accepted by this one, or "". Both sides judge.
func (p *Peers) judge(nc net.Conn, self Identity, there *hello) (reason, text string) {
	class := there.class
	switch {
	case there.version != protocolVersion:
		return reasonVersion, fmt.Sprintf("it speaks version %d of the cluster protocol and this node version %d", there.version, protocolVersion)
	case there.self.Cluster != self.Cluster && there.self.Cluster != "" && self.Cluster != "":
		return reasonCluster, fmt.Sprintf("%v belongs to cluster %s and node %v to cluster %s", there.self, there.self.Cluster, self.Node, self.Cluster)
	case class != Admin && (self.Cluster == "" || there.self.Cluster == "") && !there.passing:
		return reasonForming, fmt.Sprintf("%v and node %v do not both know their cluster yet", there.self, self.Node)
	}
	if text := proven(nc, there.self); text != "" {
		return reasonCertificate, text
	}
	if p.cfg.Admit != nil {
		if err := p.cfg.Admit(there.self); err != nil {
			return reasonAdmit, clip(err.Error())
		}
	}
	return "", ""
}

// greet dials an address and says hello. Errors: ErrUnreachable, ErrRefused, ErrDenied.
func (p *Peers) greet(ctx context.Context, address string, h *hello) (*conn, error) {
	dialCtx, cancel := context.WithTimeout(ctx, dialMax)
	defer cancel()
	nc, err := p.cfg.Net.Dial(dialCtx, address)
	if err != nil {
		if sys.IsRefused(err) {
			return nil, fmt.Errorf("%w at %s", ErrRefused, address)
		}
		return nil, fmt.Errorf("%w: dial %s: %w", ErrUnreachable, address, err)
	}
	c, err := p.greetOn(ctx, nc, h)
	switch {
	case err == nil:
		return c, nil
	case errors.Is(err, ErrDenied):
		p.lines.refused(address, reasonDenied, err.Error())
	default:
		err = fmt.Errorf("%w: hello to %s: %w", ErrUnreachable, address, err)
	}
	nc.Close()
	return nil, err
}

// greetOn exchanges hellos on a fresh connection within helloMax and ctx.
func (p *Peers) greetOn(ctx context.Context, nc net.Conn, h *hello) (*conn, error) {
	if err := nc.SetDeadline(time.Now().Add(helloMax)); err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { nc.SetDeadline(time.Unix(1, 0)) })
	c, err := p.exchange(ctx, nc, h)
	if !stop() {
		err = context.Cause(ctx)
	}
	if err != nil {
		return nil, err
	}
	return c, nc.SetDeadline(time.Time{})
}

// exchange says hello and judges what comes back.
func (p *Peers) exchange(ctx context.Context, raw net.Conn, h *hello) (*conn, error) {
	nc := raw
	if p.cfg.TLS != nil {
		t := tls.Client(raw, clientTLS(p.cfg.TLS.Set()))
		if err := t.HandshakeContext(ctx); err != nil {
			return nil, err
		}
		nc = t
	}
	if _, err := nc.Write(newFrame(kindHello, 0, 0, h).head); err != nil {
		return nil, err
	}
	r := bufio.NewReaderSize(nc, readBuffer)
	there, err := readHello(nc, r)
	if err != nil {
		return nil, err
	}
	there.passing, there.class = h.passing, h.class
	_, why := p.judge(nc, h.self, there)
	switch {
	case there.version == protocolVersion && there.refusal != "":
		return nil, fmt.Errorf("%w by the other side: %s", ErrDenied, clip(there.refusal))
	case why != "":
		return nil, fmt.Errorf("%w: %s", ErrDenied, why)
	case h.expected != kafka.NoNode && there.self.Node != h.expected:
		return nil, fmt.Errorf("%w: node %v was expected and %v answered", ErrDenied, h.expected, there.self)
	}
	return p.newConn(connEnds{nc: nc, raw: raw, r: r, self: h.self, there: there.self, class: h.class, passing: h.passing}), nil
}

// readHello reads the first frame of a connection, which may come from anybody.
func readHello(nc net.Conn, r *bufio.Reader) (*hello, error) {
	head, err := readHeader(r, helloBytesMax)
	if err != nil {
		return nil, err
	}
	if head.kind != kindHello || head.flags != 0 || head.correlation != 0 {
		return nil, &strangerError{head}
	}
	body, err := readBody(nc, r, head.size, nil)
	if err != nil {
		return nil, err
	}
	h := &hello{}
	return h, h.Decode(body)
}

// strangerError is a first frame that is no hello.
type strangerError struct{ head header }

// kafkaKeyMax is above every API key of Kafka and its vendors.
const kafkaKeyMax = 15000

// kafka says that the frame looks like a Kafka client's request.
func (e *strangerError) kafka() bool { return e.head.kind >= 0 && e.head.kind < kafkaKeyMax }

func (e *strangerError) Error() string {
	if e.kafka() {
		return fmt.Sprintf("the first frame looks like a Kafka request with API key %d", int16(e.head.kind))
	}
	return fmt.Sprintf("the first frame is of %v instead of a hello", e.head.kind)
}
