package metrics

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// TestR176_R177_R183_Backlogs: a group is the sum, the oldest, the soonest and the worst of its partitions; what is unknown is not 0, and no
// name that a client chose breaks the page.
func TestR176_R177_R183_Backlogs(t *testing.T) {
	r := New()
	states := []string{"none", "well", "away", "bad"}
	r.Broker.Backlogs.Set(states, []Backlog{
		{Group: "g", Topic: "t", Partition: 0, State: 3, Known: true, Lag: 3, Oldest: time.Minute, LossIn: time.Hour, Expires: true, Trend: 0.5, HasTrend: true},
		{Group: "g", Topic: "t", Partition: 1, State: 1, Known: true, Lag: 4, Oldest: time.Second, LossIn: time.Minute, Expires: true, Trend: -2, HasTrend: true},
		{Group: "g", Topic: "t", Partition: 2, State: 2},
		{Group: "whole", Topic: "t", Partition: 0, State: 1, Known: true, Trend: 0.5, HasTrend: true},
		{Group: "whole", Topic: "t", Partition: 1, State: 1, Known: true, Trend: -2, HasTrend: true},
		{Group: "young", Topic: "t", Partition: 0, State: 1, Known: true, Trend: 0.5, HasTrend: true},
		{Group: "young", Topic: "t", Partition: 1, State: 1, Known: true},
		{Group: "away", Topic: "t", Partition: 0, State: 2},
		{Group: "\xff", Topic: "t", State: 1, Known: true}, {Group: "\xfe", Topic: "t", State: 1, Known: true},
	})
	page := func(h http.Handler) string {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
		if w.Code != http.StatusOK {
			t.Fatal(w.Body)
		}
		return w.Body.String()
	}
	for text, want := range map[string]string{
		`strandline_group_lag_records{group="g"} 7`:                         page(r.Handler()),
		`strandline_group_oldest_unprocessed_seconds{group="g"} 60`:         page(r.Handler()),
		`strandline_group_time_to_loss_seconds{group="g"} 60`:               page(r.Handler()),
		`strandline_group_unknown_partitions{group="g"} 1`:                  page(r.Handler()),
		`strandline_group_lag_trend_records_per_second{group="whole"} -1.5`: page(r.Handler()),
		`strandline_group_state{group="g",state="well"} 0`:                  page(r.Handler()),
		`strandline_group_state{group="g",state="away"} 0`:                  page(r.Handler()),
		`strandline_group_state{group="g",state="bad"} 1`:                   page(r.Handler()),
		`strandline_group_state{group="away",state="away"} 1`:               page(r.Handler()),
		`strandline_group_lag_records{group="g",partition="1",topic="t"} 4`: page(r.DetailHandler()),
	} {
		if !strings.Contains(want, text+"\n") {
			t.Errorf("%s is missing", text)
		}
	}
	for _, text := range []string{`lag_records{group="away"}`, `second{group="away"}`, `second{group="?"}`, `second{group="g"}`, `second{group="young"}`, `state="none"`} {
		if strings.Contains(page(r.Handler()), text) {
			t.Errorf("%s is there: what is unknown has a number", text)
		}
	}
	many := make([]Backlog, 2*groupLabelsMax)
	for i := range many {
		many[i] = Backlog{Group: strings.Repeat("x", i+1), State: 1, Known: true, Lag: 1}
	}
	r.Broker.Backlogs.Set(states, many)
	if n := strings.Count(page(r.Handler()), "strandline_group_lag_records{"); n != groupLabelsMax+1 {
		t.Errorf("%d groups have lines", n)
	}
	if n := strings.Count(page(r.Handler()), "strandline_group_state{"); n != 3*(groupLabelsMax+1) {
		t.Errorf("%d lines of states", n)
	}
}
