package rest

import (
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"strandline.dev/internal/metrics"
	"strandline.dev/internal/server"
)

func get(t *testing.T, c Config, method, path string) (int, string, string) {
	t.Helper()
	c.Log = slog.New(slog.DiscardHandler)
	if c.Metrics == nil {
		c.Metrics = metrics.New().Handler()
	}
	c.Detail = metrics.New().DetailHandler()
	c.Server = func() *server.Server { return nil }
	w := httptest.NewRecorder()
	NewServer(c).Handler.ServeHTTP(w, httptest.NewRequest(method, path, nil))
	body, err := io.ReadAll(w.Result().Body)
	if err != nil {
		t.Fatal(err)
	}
	return w.Code, w.Header().Get("Content-Type"), string(body)
}

func TestHealth_ReadyAndNot(t *testing.T) {
	ok := func() error { return nil }
	if code, _, body := get(t, Config{Ready: ok, Live: ok}, "GET", "/readyz"); code != 200 || body != "ok\n" {
		t.Fatalf("ready: %d %q", code, body)
	}
	why := func() error { return errors.New("waits for controller 2@h:1: no answer") }
	code, kind, body := get(t, Config{Ready: why, Live: ok}, "GET", "/readyz")
	var p problem
	if err := json.Unmarshal([]byte(body), &p); err != nil {
		t.Fatal(err)
	}
	if code != http.StatusServiceUnavailable || kind != "application/problem+json" || !strings.Contains(p.Detail, "controller 2@h:1") {
		t.Fatalf("not ready: %d %s %+v", code, kind, p)
	}
	if code, _, _ := get(t, Config{Ready: why, Live: ok}, "GET", "/livez"); code != 200 {
		t.Fatalf("a node that waits is alive, got %d", code)
	}
}

func TestRoutes_UnknownAndMetrics(t *testing.T) {
	ok := func() error { return nil }
	if code, kind, _ := get(t, Config{Ready: ok, Live: ok}, "GET", "/v2/topics"); code != 404 || kind != "application/problem+json" {
		t.Fatalf("unknown route: %d %s", code, kind)
	}
	if code, _, _ := get(t, Config{Ready: ok, Live: ok}, "DELETE", "/metrics"); code == 200 {
		t.Fatal("DELETE /metrics must not answer 200")
	}
	code, _, body := get(t, Config{Ready: ok, Live: ok}, "GET", "/metrics")
	for _, name := range []string{"strandline_produce_ack_seconds_bucket", "strandline_log_truncated_below_hw_total 0", "go_goroutines"} {
		if code != 200 || !strings.Contains(body, name) {
			t.Errorf("metrics: %d, %s missing", code, name)
		}
	}
}
