package load

import (
	"context"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"strandline.dev/test/chaos/check"
)

// watcher asks for the end of one partition after the other, carrying the newest leader epoch that it has heard of.
func (l *Load) watcher(client int) {
	lines := map[check.Key]*line{}
	for _, t := range l.o.Topics {
		for p := range t.Partitions {
			k := check.Key{Topic: t.Name, Partition: p}
			lines[k] = &line{r: newRoutes(l.o.Brokers), k: k}
			defer lines[k].drop()
		}
	}
	for l.ctx.Err() == nil {
		for k, n := range lines {
			if !pause(l.ctx, 5*time.Millisecond) {
				return
			}
			l.watch(client, k, n)
		}
	}
}

func (l *Load) watch(client int, k check.Key, n *line) {
	ctx, cancel := context.WithTimeout(l.ctx, tryMax)
	defer cancel()
	conn, epoch := n.open(ctx)
	if conn == nil {
		return
	}
	req := kmsg.NewPtrListOffsetsRequest()
	req.ReplicaID = -1
	t := kmsg.NewListOffsetsRequestTopic()
	t.Topic = k.Topic
	p := kmsg.NewListOffsetsRequestTopicPartition()
	p.Partition, p.CurrentLeaderEpoch, p.Timestamp = k.Partition, epoch, -1
	t.Partitions = append(t.Partitions, p)
	req.Topics = append(req.Topics, t)
	begin := l.R.Now()
	r, err := conn.Do(ctx, req)
	if err != nil {
		n.drop()
		n.r.refresh(l.ctx, k.Topic)
		return
	}
	answer := r.(*kmsg.ListOffsetsResponse).Topics[0].Partitions[0]
	switch {
	case answer.ErrorCode == 0:
		l.R.Watched(check.Watch{Key: k, Client: client, Begin: begin, End: l.R.Now(), HighWatermark: answer.Offset, Epoch: epoch})
		l.count("ends watched")
	case !retriable(answer.ErrorCode):
		l.problem("%s/%d: the end was refused: %v", k.Topic, k.Partition, kerr.ErrorForCode(answer.ErrorCode))
	default:
		l.count("end answered " + kerr.ErrorForCode(answer.ErrorCode).Error())
		n.r.refresh(l.ctx, k.Topic)
	}
}
