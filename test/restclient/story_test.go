// Package restclient tells the story of an order with a client that was generated from the broker's own /openapi.json. It is a module of its own, so
// that the generator is no dependency of the broker; .ci/rest generates the client and runs it.
package restclient

import (
	"context"
	"flag"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"strandline.dev/test/restclient/api"
)

var nodes = flag.String("nodes", "", "the HTTP doors of three nodes, with commas between them")

const topic = "generated-story"

// teller tells the story to the nodes.
type teller struct {
	t     *testing.T
	nodes []*api.ClientWithResponses
}

// answer is what every generated answer is.
type answer interface{ StatusCode() int }

// want fails the test unless a call had the status wanted.
func want[A answer](t *teller, step string, status int, a A, err error) A {
	t.t.Helper()
	if err != nil || a.StatusCode() != status {
		t.t.Fatalf("%s: %v, want %d: %+v", step, err, status, a)
	}
	return a
}

// soon repeats a call until it has the status wanted, at each node in turn: what is asked may be true a moment later, or at another node.
func soon[A answer](t *teller, step string, status int, call func(context.Context, *api.ClientWithResponses) (A, error)) A {
	t.t.Helper()
	ctx, cancel := context.WithTimeout(t.t.Context(), time.Minute)
	defer cancel()
	for i := 0; ; i++ {
		a, err := call(ctx, t.nodes[i%len(t.nodes)])
		if err == nil && a.StatusCode() == status {
			return a
		}
		if ctx.Err() != nil {
			return want(t, step, status, a, err)
		}
	}
}

func pointer[T any](v T) *T { return &v }

func recordOf(t *testing.T, key, id string, value any) api.PublishBody {
	t.Helper()
	v := &api.PublishBody_Value{}
	if err := v.FromPublishBodyValue0(api.PublishBodyValue0{Json: value}); err != nil {
		t.Fatal(err)
	}
	return api.PublishBody{RoutingKey: &key, RecordId: &id, Value: v}
}

// publish publishes one record and says where it is.
func (t *teller) publish(step string, r api.PublishBody) api.Stored {
	t.t.Helper()
	var body api.PublishRecordsJSONRequestBody
	if err := body.FromPublishBody(r); err != nil {
		t.t.Fatal(err)
	}
	got := soon(t, step, http.StatusCreated, func(ctx context.Context, c *api.ClientWithResponses) (*api.PublishRecordsResponse, error) {
		return c.PublishRecordsWithResponse(ctx, topic, nil, body)
	})
	at, err := got.JSON201.AsStored()
	if err != nil {
		t.t.Fatal(err)
	}
	return at
}

func (t *teller) leader() (node int32, version int64) {
	d := soon(t, "describe", http.StatusOK, func(ctx context.Context, c *api.ClientWithResponses) (*api.DescribeTopicResponse, error) {
		return c.DescribeTopicWithResponse(ctx, topic)
	})
	return (*d.JSON200.Partitions)[0].Leader, d.JSON200.TopicVersion
}

// TestTheOrderStory: create, publish with a record id, lose the answer, change the leader and publish again, two groups, commit 82, a stale generation,
// out of range, delete with the expected version, restore.
func TestTheOrderStory(t *testing.T) {
	if *nodes == "" {
		t.Fatal("-nodes is missing; .ci/rest gives it")
	}
	s := &teller{t: t}
	for url := range strings.SplitSeq(*nodes, ",") {
		c, err := api.NewClientWithResponses(url)
		if err != nil {
			t.Fatal(err)
		}
		s.nodes = append(s.nodes, c)
	}
	ctx, c := t.Context(), s.nodes[0]
	create := api.CreateTopicJSONRequestBody{
		Name: topic, PartitionCount: pointer[int32](1), ReplicationFactor: pointer[int32](3),
		Configs: &map[string]string{"strandline.delete.recovery.ms": "3600000"},
	}
	made, err := c.CreateTopicWithResponse(ctx, create)
	want(s, "create", http.StatusCreated, made, err)
	again, err := c.CreateTopicWithResponse(ctx, create)
	if want(s, "create again", http.StatusConflict, again, err); again.ApplicationproblemJSON409.Code != "TOPIC_ALREADY_EXISTS" {
		t.Errorf("%+v", again.ApplicationproblemJSON409)
	}
	s.publishing()
	s.groups(c)
	s.reading()
	s.ending(c)
}

func (s *teller) publishing() {
	t := s.t
	var records []api.PublishBody
	for i := range 81 {
		records = append(records, recordOf(t, fmt.Sprintf("order-%d", i), fmt.Sprintf("r-%d", i), map[string]int{"order": i}))
	}
	var batch api.PublishRecordsJSONRequestBody
	if err := batch.FromPublishBatch(api.PublishBatch{Records: &records}); err != nil {
		t.Fatal(err)
	}
	soon(s, "publish 0 to 80", http.StatusCreated, func(ctx context.Context, c *api.ClientWithResponses) (*api.PublishRecordsResponse, error) {
		return c.PublishRecordsWithResponse(ctx, topic, nil, batch)
	})
	order := recordOf(t, "order-42", "order-42-created", map[string]any{"order": 42})
	if at := s.publish("publish order-42", order); at.Offset != 81 {
		t.Errorf("order-42 is at %+v", at)
	}
	was, _ := s.leader()
	soon(s, "drain the leader", http.StatusOK, func(ctx context.Context, c *api.ClientWithResponses) (*api.DrainNodeResponse, error) {
		return c.DrainNodeWithResponse(ctx, was)
	})
	for now := was; now == was || now < 0; now, _ = s.leader() {
		if t.Context().Err() != nil {
			t.Fatal("the leader does not change")
		}
	}
	if at := s.publish("publish it again, to another leader", order); at.Offset != 81 || !at.Duplicate {
		t.Errorf("order-42 again: %+v", at)
	}
	soon(s, "put the node back", http.StatusOK, func(ctx context.Context, c *api.ClientWithResponses) (*api.UndrainNodeResponse, error) {
		return c.UndrainNodeWithResponse(ctx, was)
	})
	var other api.PublishRecordsJSONRequestBody
	if err := other.FromPublishBody(recordOf(t, "order-42", "order-42-created", "other")); err != nil {
		t.Fatal(err)
	}
	no := soon(s, "other bytes", http.StatusUnprocessableEntity, func(ctx context.Context, c *api.ClientWithResponses) (*api.PublishRecordsResponse, error) {
		return c.PublishRecordsWithResponse(ctx, topic, nil, other)
	})
	if no.ApplicationproblemJSON422.Code != "RECORD_ID_REUSED" {
		t.Errorf("%+v", no.ApplicationproblemJSON422)
	}
}

func (s *teller) groups(c *api.ClientWithResponses) {
	for _, group := range []string{"fulfillment", "analytics"} {
		member := group + "-1"
		m := soon(s, group+" joins", http.StatusOK, func(ctx context.Context, c *api.ClientWithResponses) (*api.JoinGroupResponse, error) {
			return c.JoinGroupWithResponse(ctx, group, api.JoinGroupJSONRequestBody{Topics: &[]string{topic}, MemberId: &member})
		}).JSON200
		for m.Assignments == nil || len(*m.Assignments) == 0 {
			beat, err := c.HeartbeatWithResponse(s.t.Context(), group, member, api.HeartbeatJSONRequestBody{Generation: m.Generation})
			m = want(s, group+" hears of its partition", http.StatusOK, beat, err).JSON200
		}
		if group == "analytics" {
			continue
		}
		commit := api.CommitOffsetJSONRequestBody{Generation: &m.Generation, MemberId: &member, NextOffset: 82}
		done, err := c.CommitOffsetWithResponse(s.t.Context(), group, topic, 0, commit)
		want(s, "commit 82", http.StatusOK, done, err)
		commit.Generation, commit.NextOffset = pointer[int32](9999), 0
		stale, err := c.CommitOffsetWithResponse(s.t.Context(), group, topic, 0, commit)
		want(s, "a stale generation", http.StatusConflict, stale, err)
	}
	for group, at := range map[string]*int64{"fulfillment": pointer[int64](82), "analytics": nil} {
		got, err := c.CommittedOffsetWithResponse(s.t.Context(), group, topic, 0)
		n := want(s, "the place of "+group, http.StatusOK, got, err).JSON200.NextOffset
		if (n == nil) != (at == nil) || n != nil && *n != *at {
			s.t.Errorf("%s is at %v", group, n)
		}
		left, err := c.LeaveGroupWithResponse(s.t.Context(), group, group+"-1")
		want(s, group+" leaves", http.StatusNoContent, left, err)
	}
}

func (s *teller) reading() {
	read := soon(s, "read record 81", http.StatusOK, func(ctx context.Context, c *api.ClientWithResponses) (*api.FetchRecordsResponse, error) {
		return c.FetchRecordsWithResponse(ctx, topic, 0, &api.FetchRecordsParams{FromOffset: pointer[int64](81)})
	}).JSON200
	if len(*read.Records) != 1 || read.NextOffset != 82 || *(*read.Records)[0].RecordId != "order-42-created" {
		s.t.Errorf("read: %+v", read)
	}
	no := soon(s, "out of range", http.StatusRequestedRangeNotSatisfiable, func(ctx context.Context, c *api.ClientWithResponses) (*api.FetchRecordsResponse, error) {
		return c.FetchRecordsWithResponse(ctx, topic, 0, &api.FetchRecordsParams{FromOffset: pointer[int64](100000)})
	}).ApplicationproblemJSON416
	if no.ValidRange == nil || no.ValidRange.LogStart != 0 || no.ValidRange.HighWatermark != 82 {
		s.t.Errorf("the range: %+v", no)
	}
}

func (s *teller) ending(c *api.ClientWithResponses) {
	ctx := s.t.Context()
	_, version := s.leader()
	other, err := c.DeleteTopicWithResponse(ctx, topic, &api.DeleteTopicParams{ExpectedVersion: pointer(version + 1)})
	want(s, "delete another version", http.StatusConflict, other, err)
	gone, err := c.DeleteTopicWithResponse(ctx, topic, &api.DeleteTopicParams{ExpectedVersion: &version})
	if d := want(s, "delete", http.StatusAccepted, gone, err).JSON202; !d.DeletionPending || d.RecoverableUntil == nil {
		s.t.Errorf("deleted: %+v", d)
	}
	back, err := c.RestoreTopicWithResponse(ctx, topic, api.RestoreTopicJSONRequestBody{})
	want(s, "restore", http.StatusOK, back, err)
	s.reading()
	end, err := c.DeleteTopicWithResponse(ctx, topic, nil)
	want(s, "delete for good", http.StatusAccepted, end, err)
}
