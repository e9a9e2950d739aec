package coordinator

import (
	"fmt"

	"strandline.dev/internal/group"
)

// mark proves for the answers of a round that show progress that this was the coordinator when they were asked for: something that was appended
// after the questions came has to be committed before they leave. Every leader of a later epoch has in its log what is committed (I1), so none of
// them can have begun before it. A round with records has its proof; one that only reads appends a record that says nothing. The error is for those
// answers, when the log takes no mark: nothing was decided on it, so the shard goes on.
func (s *shard) mark() error {
	if s.broken || s.since || !s.shows() || s.alone() || !s.makeRoom() {
		return nil
	}
	kv := group.Mark()
	s.batch.Add(s.now().Wall.UnixMilli(), kv.Key, kv.Value, nil)
	err := s.put()
	switch {
	case err == nil:
		return nil
	case isLost(err):
		s.fail(err)
		return nil
	}
	return fmt.Errorf("%w: %w", ErrUncommitted, err)
}

// shows says whether an answer of this round shows progress.
func (s *shard) shows() bool {
	for _, a := range s.held {
		if a.reply.AfterCommit {
			return true
		}
	}
	return false
}

// alone says that no other node has a copy, so that none can have become the coordinator: whoever comes to have one is taken into the ISR by this
// leader only.
func (s *shard) alone() bool {
	t := topicIn(s.c.cfg.Image())
	if t == nil || t.ID != s.tp.Topic || int(s.tp.Partition) >= len(t.Partitions) {
		return false
	}
	replicas := t.Partitions[s.tp.Partition].Replicas
	return len(replicas) == 1 && replicas[0] == s.c.cfg.Node
}
