package peer

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"time"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/wire"
)

// Serve accepts connections of other nodes on l until ctx ends or Close is called; then it closes l and the accepted connections, and
// returns nil when their goroutines have ended. It returns an error when the listener fails for good.
func (p *Peers) Serve(ctx context.Context, l net.Listener) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(p.ctx, cancel)()
	defer context.AfterFunc(ctx, func() { l.Close() })()
	defer l.Close()
	var accepted sync.WaitGroup
	defer accepted.Wait()
	defer cancel()
	pause := acceptPauseMin
	for {
		nc, err := l.Accept()
		switch {
		case err == nil:
			pause = acceptPauseMin
			if p.full(nc) {
				nc.Close()
				continue
			}
			accepted.Go(func() { p.welcome(ctx, nc) })
			continue
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, net.ErrClosed):
			return err
		}
		p.cfg.Log.Warn("accepting a connection of another node failed; retrying", "error", err, "pause", pause)
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pause):
		}
		pause = min(2*pause, acceptPauseMax)
	}
}

// full counts a new connection, or says that there are too many.
func (p *Peers) full(nc net.Conn) bool {
	if p.open.Add(1) <= acceptedMax {
		if p.unknown.Add(1) <= unknownMax {
			return false
		}
		p.unknown.Add(-1)
	}
	p.open.Add(-1)
	p.lines.refused(nc.RemoteAddr().String(), reasonTooMany, fmt.Sprintf("%d connections, %d of them without a hello", p.open.Load(), p.unknown.Load()))
	return true
}

// welcome hears the hello of an accepted connection, answers it, and runs the connection.
func (p *Peers) welcome(ctx context.Context, nc net.Conn) {
	defer p.open.Add(-1)
	stop := context.AfterFunc(ctx, func() { nc.Close() })
	c, why, err := p.hear(ctx, nc)
	p.unknown.Add(-1)
	stop()
	switch {
	case ctx.Err() != nil:
		nc.Close()
		return
	case err != nil:
		nc.Close()
		if why != "" {
			p.lines.refused(nc.RemoteAddr().String(), why, err.Error())
		}
		return
	}
	if !p.remember(c) {
		c.end(errClosed)
		return
	}
	defer p.forget(c)
	stop = context.AfterFunc(ctx, func() { c.end(errClosed) })
	defer stop()
	c.run()
}

// hear reads a hello and answers it. With an error comes the reason, "" for one that needs no line.
func (p *Peers) hear(ctx context.Context, nc net.Conn) (*conn, string, error) {
	if err := nc.SetDeadline(time.Now().Add(helloMax)); err != nil {
		return nil, "", err
	}
	raw := nc
	if p.cfg.TLS != nil {
		t := tls.Server(nc, serverTLS(p.cfg.TLS.Set()))
		if err := t.HandshakeContext(ctx); err != nil {
			if errors.Is(err, io.EOF) {
				return nil, "", err
			}
			return nil, reasonTLS, err
		}
		nc = t
	}
	r := bufio.NewReaderSize(nc, readBuffer)
	there, err := readHello(nc, r)
	if err != nil {
		return nil, reasonOf(err), err
	}
	self := p.cfg.Self()
	why, text := p.judge(nc, self, there)
	if why == "" && there.expected != kafka.NoNode && there.expected != self.Node {
		why, text = reasonExpected, fmt.Sprintf("node %v was expected behind this address, and this is node %v", there.expected, self.Node)
	}
	answer := &hello{version: protocolVersion, self: self, class: there.class, expected: kafka.NoNode, refusal: text}
	if _, err := nc.Write(newFrame(kindHello, 0, 0, answer).head); err != nil {
		return nil, "", err
	}
	if why != "" {
		return nil, why, fmt.Errorf("%w: %s", ErrDenied, text)
	}
	if err := nc.SetDeadline(time.Time{}); err != nil {
		return nil, "", err
	}
	return p.newConn(connEnds{nc: nc, raw: raw, r: r, self: self, there: there.self, class: there.class, accepted: true, passing: there.passing}), "", nil
}

// reasonOf names why a first frame is not taken; "" for one that ends before it begins, as a port scan does.
func reasonOf(err error) string {
	var stranger *strangerError
	switch {
	case errors.As(err, &stranger) && stranger.kafka():
		return reasonKafka
	case errors.Is(err, wire.ErrHTTP):
		return reasonHTTP
	case errors.Is(err, wire.ErrTLS):
		return reasonTLS
	case errors.Is(err, os.ErrDeadlineExceeded):
		return reasonSilent
	case err == io.EOF:
		return ""
	}
	return reasonFrame
}
