package main

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// demoDialMax bounds one attempt to connect over loopback.
const demoDialMax = 3 * time.Second

// demoLink is the network between the services and the brokers: it can lose a response.
type demoLink struct {
	seeds []string // set before the first client
	mu    sync.Mutex
	lose  chan struct{} // closed when the next response to a Produce was lost; nil when none is to be
}

// options are what every client of the demonstration shares.
func (l *demoLink) options(id string) []kgo.Opt {
	return []kgo.Opt{
		kgo.SeedBrokers(l.seeds...), kgo.ClientID(id), kgo.DisableClientMetrics(),
		kgo.Dialer(l.dial), kgo.MetadataMinAge(50 * time.Millisecond), kgo.RetryBackoffFn(demoBackoff),
	}
}

// demoBackoff is short: the brokers are on this machine, and the demonstration is not to wait for clients that are being polite.
func demoBackoff(attempt int) time.Duration {
	return min(time.Duration(attempt)*25*time.Millisecond, 200*time.Millisecond)
}

func (l *demoLink) dial(ctx context.Context, network, address string) (net.Conn, error) {
	d := net.Dialer{Timeout: demoDialMax}
	conn, err := d.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return &demoConn{Conn: conn, link: l}, nil
}

// loseNextProduceResponse arms the link; the channel is closed when a response has been lost.
func (l *demoLink) loseNextProduceResponse() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lose = make(chan struct{})
	return l.lose
}

// takeLoss says whether the response at hand is the one to lose, and disarms the link.
func (l *demoLink) takeLoss() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lose == nil {
		return false
	}
	close(l.lose)
	l.lose = nil
	return true
}

// demoConn is one connection; produces says that it carries Produce requests, whose key is 0.
type demoConn struct {
	net.Conn
	link     *demoLink
	produces atomic.Bool
}

func (c *demoConn) Write(b []byte) (int, error) {
	wholeFrame := len(b) > 8 && int(binary.BigEndian.Uint32(b))+4 == len(b)
	if wholeFrame && binary.BigEndian.Uint16(b[4:]) == 0 {
		c.produces.Store(true)
	}
	return c.Conn.Write(b)
}

// Read loses a response by taking it off the wire, so that the broker has certainly answered, and cutting the connection.
func (c *demoConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n > 0 && c.produces.Load() && c.link.takeLoss() {
		_ = c.Conn.Close()
		return 0, io.ErrUnexpectedEOF
	}
	return n, err
}
