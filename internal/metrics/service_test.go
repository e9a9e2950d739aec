package metrics

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestR34_ClientsCannotGrowThePage: whatever clients call themselves, the lines about them are bounded, and every failure is counted.
func TestR34_ClientsCannotGrowThePage(t *testing.T) {
	r := New()
	const failures = clientFailuresMax + 500
	for i := range failures {
		r.Broker.ProduceFailed("t", fmt.Sprintf("\xff%d", i), "MESSAGE_TOO_LARGE")
	}
	r.Broker.ProduceFailed("t", strings.Repeat("x", 1000), "MESSAGE_TOO_LARGE")
	w := httptest.NewRecorder()
	r.DetailHandler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
	if n := strings.Count(w.Body.String(), "\nstrandline_client_produce_failures_total{"); n != clientFailuresMax+1 {
		t.Errorf("%d lines, want %d", n, clientFailuresMax+1)
	}
	if !strings.Contains(w.Body.String(), `{client="other",reason="MESSAGE_TOO_LARGE",topic="other"} 501`) {
		t.Error("failures beyond the bound are not counted")
	}
}

// TestR159_AScrapeIsOfOneMoment: while requests are counted, none of which failed, no scrape shows one that did.
func TestR159_AScrapeIsOfOneMoment(t *testing.T) {
	r := New()
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			default:
				r.Broker.Publishes.Served(false)
			}
		}
	}()
	for range 100 {
		w := httptest.NewRecorder()
		r.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
		_, total, _ := strings.Cut(w.Body.String(), "\nstrandline_publish_requests_total ")
		_, good, _ := strings.Cut(w.Body.String(), "\nstrandline_publish_requests_good_total ")
		total, _, _ = strings.Cut(total, "\n")
		good, _, _ = strings.Cut(good, "\n")
		if total != good || good == "" {
			t.Errorf("%q requests, of which %q were good", total, good)
		}
	}
	close(stop)
	<-stopped
	r.Broker.Fetches.Served(true)
	r.Broker.Fetches.Served(false)
	w := httptest.NewRecorder()
	r.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
	for _, line := range []string{"strandline_fetch_requests_total 2", "strandline_fetch_requests_good_total 1"} {
		if !strings.Contains(w.Body.String(), "\n"+line+"\n") {
			t.Errorf("no line %q", line)
		}
	}
}
