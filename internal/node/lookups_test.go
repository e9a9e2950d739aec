package node

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/sys/systest"
)

// TestC062_RESTShowsNoNumberThatIsNotKnown: when the segments of a topic cannot be read, REST shows the lag of its group as null, and refuses a seek to a
// time instead of planning one; the place that is committed is known still.
func TestC062_RESTShowsNoNumberThatIsNotKnown(t *testing.T) {
	clusterBubble(t, 3, withHTTP, func(t *testing.T, c *cluster) {
		cl := c.client()
		defer cl.Close()
		c.leaveBacklog(cl, time.Hour)
		topic := strings.TrimSuffix(kafka.TopicPartition{Topic: c.alive().Image().Topic("orders").ID}.String(), "-0")
		ask := func(method, path, body string) (int, string) {
			t.Helper()
			return httpDo(t, c.net.Host("client"), method, "http://n1:8080"+path, body)
		}
		describe := func(lag, end any) {
			t.Helper()
			status, body := ask(http.MethodGet, "/v1/groups/billing", "")
			var g struct{ Partitions []map[string]any }
			if err := json.Unmarshal([]byte(body), &g); err != nil || status != http.StatusOK || len(g.Partitions) != 3 {
				t.Fatalf("%d %s", status, body)
			}
			for _, p := range g.Partitions {
				if p["lag"] != lag || p["end"] != end || p["committed"] != 2.0 {
					t.Errorf("%v, want lag %v and end %v", p, lag, end)
				}
			}
		}
		const seek, plan = "/v1/groups/billing/seek", `{"to":"@1970-01-01T00:00:04Z"}`
		describe(3.0, 5.0)
		if status, body := ask(http.MethodPost, seek, plan); status != http.StatusOK || strings.Count(body, `"to":0`) != 3 {
			t.Fatalf("%d %s", status, body)
		}
		for _, m := range c.members {
			m.fs.Hook(func(op systest.Op) error {
				if op.Kind == systest.OpRead && strings.Contains(op.Name, topic) {
					return errors.New("failpoint")
				}
				return nil
			})
		}
		describe(nil, nil)
		if status, body := ask(http.MethodPost, seek, plan); status < 500 || strings.Contains(body, `"to"`) {
			t.Errorf("a seek to a time that cannot be looked up: %d %s", status, body)
		}
		for _, m := range c.members {
			m.fs.Hook(nil)
		}
		describe(3.0, 5.0)
	})
}
