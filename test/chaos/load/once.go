package load

import (
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"strandline.dev/internal/record"
	"strandline.dev/test/chaos/check"
)

// once writes to one partition without sequences, each record tried once: its outcome may stay unknown, and after "failed" it must not
// be there.
func (l *Load) once(k check.Key) {
	n := &line{r: l.routes, k: k}
	defer n.drop()
	rng := l.random(uint64(k.Partition) + 2)
	pace := time.Second * time.Duration(l.partitions()) / time.Duration(l.o.Rate)
	for pause(l.writing, time.Duration(rng.Int64N(2*int64(pace)))) {
		if conn, _ := n.open(l.ctx); conn == nil {
			pause(l.ctx, again)
			continue
		}
		v := l.value()
		b := record.NewBuilder(record.None)
		b.Add(time.Now().UnixMilli(), nil, Value(v), nil)
		at := l.R.Begin(check.Send{Key: k, Value: v, All: true})
		answer, err := n.produce(l.ctx, b.Build())
		switch {
		case err != nil: // unknown
			n.drop()
			n.r.refresh(l.ctx, k.Topic)
		case answer.ErrorCode == 0:
			l.confirmed(at, k, answer.BaseOffset)
		case kerr.ErrorForCode(answer.ErrorCode) == kerr.NotEnoughReplicas: // refused before it was appended
			l.R.Done(at, check.Failed, -1)
			l.count("refused for want of replicas")
		case !retriable(answer.ErrorCode):
			l.problem("%s/%d: a publish was refused: %v", k.Topic, k.Partition, kerr.ErrorForCode(answer.ErrorCode))
		default: // parked work of a deposed leader: unknown
			n.r.learn(k, answer.CurrentLeader.LeaderID, answer.CurrentLeader.LeaderEpoch)
			n.r.refresh(l.ctx, k.Topic)
		}
	}
}
