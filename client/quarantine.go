package client

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Failure is a record that is set aside, and why.
type Failure struct {
	// ID is the same each time this record fails in this group, "group/topic/partition/offset": a crash between setting aside and commit sets
	// aside once more.
	ID       string
	Group    string
	Record   *kgo.Record
	Attempts int // calls of Process; 0: none, for its schema version
	Err      error
	Time     time.Time
}

func newFailure(group string, r *kgo.Record, why error, attempts int) Failure {
	return Failure{
		ID: fmt.Sprintf("%s/%s/%d/%d", group, r.Topic, r.Partition, r.Offset), Group: group, Record: r, Attempts: attempts, Err: why, Time: time.Now(),
	}
}

// QuarantineTopic makes a WorkerOptions.Quarantine that publishes to a topic: key, value and headers of the record, its record-id replaced by
// Failure.ID, and the headers failure-group, failure-topic, failure-partition, failure-offset, failure-attempts, failure-error, failure-time
// (RFC 3339) and, if it had one, failure-record-id. The topic is to keep records for as long as somebody needs to look.
func QuarantineTopic(p *Publisher, topic string) func(context.Context, Failure) error {
	return func(ctx context.Context, f Failure) error {
		r := &kgo.Record{Topic: topic, Key: f.Record.Key, Value: f.Record.Value}
		id := header(f.Record, p.header)
		r.Headers = slices.DeleteFunc(slices.Clone(f.Record.Headers), func(h kgo.RecordHeader) bool { return h.Key == p.header })
		add := func(name, value string) {
			r.Headers = append(r.Headers, kgo.RecordHeader{Key: name, Value: []byte(value)})
		}
		add("failure-group", f.Group)
		add("failure-topic", f.Record.Topic)
		add("failure-partition", strconv.Itoa(int(f.Record.Partition)))
		add("failure-offset", strconv.FormatInt(f.Record.Offset, 10))
		add("failure-attempts", strconv.Itoa(f.Attempts))
		text := f.Err.Error()
		add("failure-error", text[:min(len(text), errorBytesMax)])
		add("failure-time", f.Time.UTC().Format(time.RFC3339Nano))
		if id != "" {
			add("failure-record-id", id)
		}
		_, err := p.Publish(ctx, f.ID, r)
		return err
	}
}
