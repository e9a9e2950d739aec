package load

import (
	"context"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"strandline.dev/test/chaos/check"
	"strandline.dev/test/chaos/raw"
)

// adminMax bounds an administrative request.
const adminMax = 5 * time.Second

// deleteRecords asks the leader to begin a partition at an offset. It is noted before it is asked for.
func (l *Load) deleteRecords(k check.Key, to int64) {
	l.R.Deleted(check.Cut{Key: k, To: to, Outcome: check.Unknown})
	n := &line{r: l.routes, k: k}
	defer n.drop()
	ctx, cancel := context.WithTimeout(l.ctx, adminMax)
	defer cancel()
	conn, _ := n.open(ctx)
	if conn == nil {
		return
	}
	req := kmsg.NewPtrDeleteRecordsRequest()
	req.TimeoutMillis = int32(adminMax.Milliseconds())
	t := kmsg.NewDeleteRecordsRequestTopic()
	t.Topic = k.Topic
	p := kmsg.NewDeleteRecordsRequestTopicPartition()
	p.Partition, p.Offset = k.Partition, to
	t.Partitions = append(t.Partitions, p)
	req.Topics = append(req.Topics, t)
	r, err := conn.Do(ctx, req)
	if err != nil {
		return
	}
	switch code := r.(*kmsg.DeleteRecordsResponse).Topics[0].Partitions[0].ErrorCode; {
	case code == 0:
		l.count("deletions of records")
	case !retriable(code) && kerr.ErrorForCode(code) != kerr.OffsetOutOfRange:
		l.problem("%s/%d: DeleteRecords to %d was refused: %v", k.Topic, k.Partition, to, kerr.ErrorForCode(code))
	}
}

// churn creates topics, adds partitions and deletes topics again.
func (l *Load) churn() {
	for i := 0; pause(l.ctx, time.Second); i++ {
		name := fmt.Sprintf("churn-%d", i)
		l.admin("create", name, l.createRequest(name))
		switch i % 3 {
		case 0:
			grow := kmsg.NewPtrCreatePartitionsRequest()
			grow.TimeoutMillis = int32(adminMax.Milliseconds())
			t := kmsg.NewCreatePartitionsRequestTopic()
			t.Topic, t.Count = name, 3
			grow.Topics = append(grow.Topics, t)
			l.admin("grow", name, grow)
		case 1:
			del := kmsg.NewPtrDeleteTopicsRequest()
			del.TimeoutMillis = int32(adminMax.Milliseconds())
			t := kmsg.NewDeleteTopicsRequestTopic()
			t.Topic = &name
			del.Topics = append(del.Topics, t)
			l.admin("delete", name, del)
		}
	}
}

func (l *Load) createRequest(name string) *kmsg.CreateTopicsRequest {
	req := kmsg.NewPtrCreateTopicsRequest()
	req.TimeoutMillis = int32(adminMax.Milliseconds())
	t := kmsg.NewCreateTopicsRequestTopic()
	t.Topic, t.NumPartitions, t.ReplicationFactor = name, 2, 3
	req.Topics = append(req.Topics, t)
	return req
}

// admin makes one request of a random node and notes what must be true of the topic from then on.
func (l *Load) admin(what, name string, req kmsg.Request) {
	ctx, cancel := context.WithTimeout(l.ctx, adminMax+time.Second)
	defer cancel()
	r, err := raw.Ask(ctx, anyOf(l.o.Brokers), req)
	if err != nil {
		l.forget(name)
		return
	}
	var code int16
	switch resp := r.(type) {
	case *kmsg.CreateTopicsResponse:
		code = resp.Topics[0].ErrorCode
	case *kmsg.CreatePartitionsResponse:
		code = resp.Topics[0].ErrorCode
	case *kmsg.DeleteTopicsResponse:
		code = resp.Topics[0].ErrorCode
	}
	l.mu.Lock()
	known := l.topics[name]
	l.mu.Unlock()
	switch err := kerr.ErrorForCode(code); {
	case code == 0:
		l.count("topics: " + what)
		l.must(name, what != "delete")
	case kerr.IsRetriable(err), err == kerr.InvalidReplicationFactor, err == kerr.UnknownTopicOrPartition && !known:
		l.count(fmt.Sprintf("topics: %s answered %v", what, err))
		if what != "grow" {
			l.forget(name)
		}
	default:
		l.problem("%s %s: %v", what, name, err)
	}
}

func (l *Load) must(name string, exist bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.topics[name] = exist
}

// forget says that nothing is known about a topic.
func (l *Load) forget(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.topics, name)
}

// Topics says which topics of the churn must exist (true) and which must not (false).
func (l *Load) Topics() map[string]bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := map[string]bool{}
	for name, exist := range l.topics {
		out[name] = exist
	}
	return out
}
