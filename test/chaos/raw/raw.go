// Package raw is a Kafka client of one connection that does nothing by itself: no retry, no metadata, no waiting.
//
// Knows: frames and headers. Does not know: what a request means, or where it should go. Measurements and watchers use it where a full
// client would hide what the broker did.
//
// Concurrency: a Conn carries one request at a time; Close may be called at any time and ends the request.
package raw

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// responseBytesMax bounds a response; nothing asked for here is larger.
const responseBytesMax = 64 << 20

// Versions are pinned, so that what is measured does not change with the client library. Those that are missing take the newest.
var versions = map[int16]int16{
	0:  12, // Produce: by topic name, with hints of the new leader
	3:  12, // Metadata
	55: 1,  // DescribeQuorum
}

// Conn is one connection.
type Conn struct {
	conn        net.Conn
	correlation int32
	buf         []byte
}

// Dial connects.
func Dial(ctx context.Context, address string) (*Conn, error) {
	var d net.Dialer
	c, err := d.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	return &Conn{conn: c}, nil
}

// Close ends the connection and with it a request on it.
func (c *Conn) Close() { _ = c.conn.Close() }

var format = kmsg.NewRequestFormatter(kmsg.FormatterClientID("strandline-raw"))

// Do sends a request and reads its response. After an error the connection is of no more use.
func (c *Conn) Do(ctx context.Context, req kmsg.Request) (kmsg.Response, error) {
	version, pinned := versions[req.Key()]
	if !pinned {
		version = req.MaxVersion()
	}
	req.SetVersion(version)
	if end, ok := ctx.Deadline(); ok {
		_ = c.conn.SetDeadline(end)
	} else {
		_ = c.conn.SetDeadline(time.Time{})
	}
	if ctx.Done() != nil {
		stop := context.AfterFunc(ctx, func() { _ = c.conn.SetDeadline(time.Unix(1, 0)) })
		defer stop()
	}
	c.correlation++
	c.buf = format.AppendRequest(c.buf[:0], req, c.correlation)
	if _, err := c.conn.Write(c.buf); err != nil {
		return nil, err
	}
	body, err := c.read()
	if err != nil {
		return nil, err
	}
	resp := req.ResponseKind()
	resp.SetVersion(version)
	if resp.IsFlexible() {
		if len(body) == 0 || body[0] != 0 {
			return nil, errors.New("the response header has tags; none are known")
		}
		body = body[1:]
	}
	return resp, resp.ReadFrom(body)
}

func (c *Conn) read() ([]byte, error) {
	var head [8]byte
	if _, err := io.ReadFull(c.conn, head[:]); err != nil {
		return nil, err
	}
	n, correlation := binary.BigEndian.Uint32(head[:4]), int32(binary.BigEndian.Uint32(head[4:]))
	switch {
	case n < 4 || n > responseBytesMax:
		return nil, fmt.Errorf("a response of %d bytes", n)
	case correlation != c.correlation:
		return nil, fmt.Errorf("correlation id %d, want %d", correlation, c.correlation)
	}
	body := make([]byte, n-4)
	_, err := io.ReadFull(c.conn, body)
	return body, err
}

// Ask dials, sends one request and closes.
func Ask(ctx context.Context, address string, req kmsg.Request) (kmsg.Response, error) {
	c, err := Dial(ctx, address)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	return c.Do(ctx, req)
}
