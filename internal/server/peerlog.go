package server

import (
	"log/slog"
	"sync"
	"time"

	"strandline.dev/internal/metrics"
)

// reason says why the broker closed or refused a connection; it is a metric label, so the set is closed.
type reason string

const (
	reasonHTTP       reason = "http"
	reasonTLS        reason = "tls"
	reasonFrameSize  reason = "frame_size"
	reasonUnknownAPI reason = "unknown_api"
	reasonVersion    reason = "version"
	reasonMalformed  reason = "malformed"
	reasonBudget     reason = "memory"
	reasonIdle       reason = "idle"
	reasonSlowReader reason = "slow_reader"
	reasonSlowWriter reason = "slow_writer"
	reasonTooMany    reason = "too_many_connections"
	reasonTooFast    reason = "connection_rate"
	reasonAcksNone   reason = "acks_0_error"
	reasonPlaintext  reason = "plaintext"
	reasonHandshake  reason = "tls_handshake"
	reasonStranger   reason = "not_authenticated"
	reasonLogin      reason = "login_failed"
	reasonLoginState reason = "login_state"
	reasonSlowLogin  reason = "slow_login"
	reasonExpired    reason = "session_expired"
	reasonDenied     reason = "denied"      // closes nothing
	reasonClock      reason = "clock_ahead" // closes nothing
	reasonSlow       reason = "slow"        // closes nothing
)

// advice is what the operator should do, for reasons where the cause is on our side or the client's configuration.
var advice = map[reason]string{
	reasonHTTP:      "an HTTP client speaks to the Kafka port: use the http address of this node instead",
	reasonTLS:       "a TLS client speaks to a plaintext listener: set security.protocol=PLAINTEXT there, or enable tls on this listener",
	reasonFrameSize: "not a Kafka client, or a request above socket.request.max.bytes",
	reasonPlaintext: "a client without TLS speaks to a TLS listener: set security.protocol=SSL or SASL_SSL there",
	reasonStranger:  "the listener asks its clients to authenticate: set security.protocol=SASL_SSL (or SASL_PLAINTEXT) and sasl.mechanism there",
	reasonClock:     "set the clock of that client, or send timestamps in milliseconds; message.timestamp.type=LogAppendTime stamps records here",
	reasonTooFast:   "raise connection_creation_rate for that address, or find the client that connects so often",
	reasonTooMany:   "raise the connection limit, or find the client that opens them",
}

// peerLog writes one line about each misbehaving peer, at most peerLinesMax for a reason in peerLinesEvery: a peer must not be able
// to fill the disk with log lines. It counts every one.
type peerLog struct {
	log     *slog.Logger
	metrics *metrics.Broker

	mu    sync.Mutex
	lines map[reason]*lineCount
}

type lineCount struct {
	since      time.Time
	written    int
	suppressed int
}

// closed logs that the connection of peer is closed and why. attrs are slog key-value pairs.
func (p *peerLog) closed(why reason, peer string, attrs ...any) {
	p.metrics.ConnectionsRefused.WithLabelValues(string(why)).Inc()
	if why != reasonLogin { // that has a line of its own
		p.line(why, "closed a connection", peer, attrs...)
	}
}

// line logs something about a peer.
func (p *peerLog) line(why reason, what, peer string, attrs ...any) {
	suppressed, ok := p.admit(why, time.Now())
	if !ok {
		return
	}
	args := append([]any{"peer", peer, "reason", string(why)}, attrs...)
	if a := advice[why]; a != "" {
		args = append(args, "fix", a)
	}
	if suppressed > 0 {
		args = append(args, "more_of_these", suppressed)
	}
	p.log.Warn(what, args...)
}

func (p *peerLog) admit(why reason, now time.Time) (suppressed int, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := p.lines[why]
	if c == nil {
		c = &lineCount{since: now}
		p.lines[why] = c
	}
	if now.Sub(c.since) >= peerLinesEvery {
		suppressed = c.suppressed
		*c = lineCount{since: now}
	}
	if c.written >= peerLinesMax {
		c.suppressed++
		return 0, false
	}
	c.written++
	return suppressed, true
}

// clip cuts client-chosen text for a log line; slog quotes what is not printable.
func clip(s string) string {
	if len(s) > loggedTextMax {
		return s[:loggedTextMax] + "..."
	}
	return s
}
