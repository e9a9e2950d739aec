package client

import (
	"context"
	"errors"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// commitOften commits what is done until stop.
func (w *Worker) commitOften(stop <-chan struct{}) {
	tick := time.NewTicker(w.o.CommitEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			_ = w.commit(w.base, w.assigned()) // it has been logged, and the next covers it
		case <-stop:
			return
		}
	}
}

// commit tells the group how far the partitions are done. Commits follow each other: a commit on its way is waited for, so that the position
// at the coordinator never moves back.
func (w *Worker) commit(ctx context.Context, all []*partition) error {
	ctx, cancel := context.WithTimeout(ctx, commitTimeMax)
	defer cancel()
	select {
	case w.turn <- struct{}{}:
		defer func() { <-w.turn }()
	case <-ctx.Done():
		return ctx.Err()
	}
	offsets := map[string]map[int32]kgo.EpochOffset{}
	for _, p := range all {
		if at, ok := p.unsaved(); ok {
			if offsets[p.topic] == nil {
				offsets[p.topic] = map[int32]kgo.EpochOffset{}
			}
			offsets[p.topic][p.id] = at
		}
	}
	if len(offsets) == 0 {
		return nil
	}
	var fault error
	w.client.CommitOffsetsSync(ctx, offsets, func(_ *kgo.Client, _ *kmsg.OffsetCommitRequest, answer *kmsg.OffsetCommitResponse, err error) {
		if err != nil {
			fault = err
			return
		}
		fault = saveAnswered(all, offsets, answer)
	})
	if fault != nil {
		w.o.Log.Warn("a commit was not acknowledged; the next covers it", "error", fault)
	}
	return fault
}

// saveAnswered notes the acknowledged positions and returns the first refusal.
func saveAnswered(all []*partition, offsets map[string]map[int32]kgo.EpochOffset, answer *kmsg.OffsetCommitResponse) error {
	var fault error
	acked := map[topicPartition]bool{}
	for _, t := range answer.Topics {
		for _, p := range t.Partitions {
			err := kerr.ErrorForCode(p.ErrorCode)
			acked[topicPartition{t.Topic, p.Partition}] = err == nil
			if fault == nil {
				fault = err
			}
		}
	}
	for _, p := range all {
		if at, ok := offsets[p.topic][p.id]; ok && acked[topicPartition{p.topic, p.id}] {
			p.save(at.Offset)
		} else if ok && fault == nil {
			fault = errors.New("the answer to a commit lacks a partition")
		}
	}
	return fault
}
