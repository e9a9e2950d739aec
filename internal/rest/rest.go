package rest

import (
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"

	"strandline.dev/internal/auth"
	"strandline.dev/internal/kafka"
	"strandline.dev/internal/server"
	"strandline.dev/internal/sys"
)

// Config is what the HTTP door is given.
type Config struct {
	// Ready returns nil when the node accepts work, else the reason it does not, in words for an operator.
	Ready func() error
	// Live returns nil unless the node is beyond help and should be restarted.
	Live func() error
	// Metrics serves the Prometheus exposition.
	Metrics http.Handler
	// Detail serves what there is about each partition.
	Detail http.Handler
	// Server returns the dispatcher, nil while the node starts: then /v1 answers 503.
	Server func() *server.Server
	// Node is this node's id.
	Node kafka.NodeID
	// Authenticator finds out who clients are, and Access says whether anybody must be; Names turn verified certificates into principals, nil: they
	// are not asked for.
	Authenticator *auth.Authenticator
	Access        *auth.Authorizer
	Names         *auth.NameRules
	Wall          sys.Wall
	// Log receives the server's own errors.
	Log *slog.Logger
}

// door is the HTTP door of a node.
type door struct {
	cfg     Config
	bodies  atomic.Int64 // bytes of bodies in work
	open    atomic.Int64 // connections
	keyless atomic.Uint32
	known   identities

	auditing atomic.Int32 // reads of the audit trail
}

// NewServer returns an HTTP server with bounded headers, times, bodies and connections (I14). The caller gives it a listener.
func NewServer(c Config) *http.Server {
	d := &door{cfg: c}
	return &http.Server{
		Handler:           d.guard(d.routes()),
		ReadHeaderTimeout: headerTimeMax,
		ReadTimeout:       requestTimeMax,
		WriteTimeout:      requestTimeMax + answerTimeMax,
		IdleTimeout:       idleTimeMax,
		MaxHeaderBytes:    headerBytesMax,
		ConnState:         d.counted,
		ErrorLog:          slog.NewLogLogger(c.Log.Handler(), slog.LevelDebug),
	}
}

// counted closes connections above connectionsMax (H17).
func (d *door) counted(nc net.Conn, s http.ConnState) {
	switch s {
	case http.StateNew:
		if d.open.Add(1) > connectionsMax {
			_ = nc.Close()
		}
	case http.StateClosed, http.StateHijacked:
		d.open.Add(-1)
	}
}

// routes are all that this door answers.
func (d *door) routes() *http.ServeMux {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /livez", health(d.cfg.Live))
	mux.HandleFunc("GET /readyz", health(d.cfg.Ready))
	mux.Handle("GET /metrics", d.cfg.Metrics)
	mux.Handle("GET /metrics/detail", d.cfg.Detail)
	d.describe(mux)
	return mux
}

// health answers 200 "ok", or 503 with the reason.
func health(check func() error) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		if err := check(); err != nil {
			refuse(http.StatusServiceUnavailable, "NOT_READY", err.Error()).write(w)
			return
		}
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_, _ = w.Write([]byte("ok\n"))
	}
}
