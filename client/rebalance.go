package client

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// onAssigned begins with new partitions. kgo remembers pauses across assignments, so what an earlier one paused is resumed.
func (w *Worker) onAssigned(_ context.Context, client *kgo.Client, assigned map[string][]int32) {
	<-w.built
	w.mu.Lock()
	defer w.mu.Unlock()
	for topic, ids := range assigned {
		for _, id := range ids {
			w.partitions[topicPartition{topic, id}] = w.newPartition(topic, id)
		}
	}
	client.ResumeFetchPartitions(assigned)
}

// onRevoked gives partitions up in good order: the group waits until this returns.
func (w *Worker) onRevoked(_ context.Context, _ *kgo.Client, revoked map[string][]int32) {
	<-w.built
	if err := w.giveUp(w.remove(revoked)); err != nil {
		w.o.Log.Warn("partitions were given up in haste", "error", err)
	}
}

// onLost drops partitions that have another owner already: what is in progress is cancelled, and nothing is committed.
func (w *Worker) onLost(_ context.Context, _ *kgo.Client, lost map[string][]int32) {
	<-w.built
	for _, p := range w.remove(lost) {
		p.close()
		p.cancel()
	}
}

func (w *Worker) remove(revoked map[string][]int32) []*partition {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []*partition
	for topic, ids := range revoked {
		for _, id := range ids {
			key := topicPartition{topic, id}
			if p := w.partitions[key]; p != nil {
				out = append(out, p)
				delete(w.partitions, key)
			}
		}
	}
	return out
}

// giveUp lets no further record begin, lets the functions in progress end, or ends their context, and commits what is done. It may be called
// twice for a partition. The error tells a commit that was not acknowledged, or ErrAbandoned.
func (w *Worker) giveUp(all []*partition) error {
	if len(all) == 0 {
		return nil
	}
	for _, p := range all {
		p.close()
	}
	if !waitIdle(all, w.o.DrainMax) {
		for _, p := range all {
			p.cancel()
		}
	}
	var abandoned error
	if !waitIdle(all, cancelTimeMax) {
		abandoned = fmt.Errorf("worker of group %q: %w", w.o.Group, ErrAbandoned)
	}
	err := w.commit(context.WithoutCancel(w.base), all)
	for _, p := range all {
		p.cancel()
	}
	if err != nil {
		var refused *kerr.Error
		err = &GroupError{Group: w.o.Group, Err: err, last: true, unknown: !errors.As(err, &refused)}
	}
	return errors.Join(err, abandoned)
}

// waitIdle waits until no function works on the partitions; false: it took too long.
func waitIdle(all []*partition, most time.Duration) bool {
	end := time.NewTimer(most)
	defer end.Stop()
	for _, p := range all {
		select {
		case <-p.idle:
		case <-end.C:
			return false
		}
	}
	return true
}
