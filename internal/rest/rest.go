package rest

import (
	"encoding/json"
	"log/slog"
	"net/http"
)

// Config is what the HTTP door is given.
type Config struct {
	// Ready returns nil when the node accepts work, else the reason it does not, in words for an operator.
	Ready func() error
	// Live returns nil unless the node is beyond help and should be restarted.
	Live func() error
	// Metrics serves the Prometheus exposition.
	Metrics http.Handler
	// Log receives the server's own errors.
	Log *slog.Logger
}

// NewServer returns an HTTP server with bounded headers, times and bodies (I14). The caller gives it a listener.
func NewServer(c Config) *http.Server {
	return &http.Server{
		Handler:           http.MaxBytesHandler(routes(c), bodyBytesMax),
		ReadHeaderTimeout: headerTimeMax,
		ReadTimeout:       requestTimeMax,
		WriteTimeout:      requestTimeMax,
		IdleTimeout:       idleTimeMax,
		MaxHeaderBytes:    headerBytesMax,
		ErrorLog:          slog.NewLogLogger(c.Log.Handler(), slog.LevelDebug),
	}
}

func routes(c Config) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /livez", health(c.Live))
	mux.HandleFunc("GET /readyz", health(c.Ready))
	mux.Handle("GET /metrics", c.Metrics)
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		writeProblem(w, http.StatusNotFound, "no such route; this release serves /livez, /readyz and /metrics")
	})
	return mux
}

// health answers 200 "ok", or 503 with the reason.
func health(check func() error) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		if err := check(); err != nil {
			writeProblem(w, http.StatusServiceUnavailable, err.Error())
			return
		}
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_, _ = w.Write([]byte("ok\n"))
	}
}

// problem is an RFC 9457 problem document.
type problem struct {
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail"`
}

func writeProblem(w http.ResponseWriter, status int, detail string) {
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(problem{Type: "about:blank", Title: http.StatusText(status), Status: status, Detail: detail})
}
