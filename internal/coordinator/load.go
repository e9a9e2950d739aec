package coordinator

import (
	"errors"
	"fmt"
	"time"

	"strandline.dev/internal/group"
	"strandline.dev/internal/kafka"
	"strandline.dev/internal/record"
	"strandline.dev/internal/replica"
)

// open loads the shard and begins to serve. If that fails the shard is over.
func (s *shard) open() {
	defer close(s.loaded)
	select {
	case <-s.gone:
		return
	default:
	}
	core := group.NewShard(s.c.coreConfig())
	began := time.Now()
	records, err := s.replay(core)
	switch {
	case err == nil:
	case errors.Is(err, ErrUnreadable):
		s.c.cfg.Log.Error("the progress of groups cannot be read; their coordinator waits and guesses nothing", "partition", s.tp.Partition, "error", err)
		s.fail(err)
		return
	default:
		s.fail(err)
		return
	}
	s.core = core
	s.step(group.Loaded{}, s.now())
	_, s.grown = s.c.grownSince(0)
	if !s.broken {
		s.step(group.TopicsWidened{Width: s.c.widthOf, Catalog: s.catalog()}, s.now())
	}
	if ids := s.c.purgingTopics(); len(ids) > 0 && !s.broken {
		s.step(group.TopicsDeleted{IDs: ids}, s.now())
	}
	s.send()
	s.mu.Lock()
	if s.mu.phase == loading {
		s.mu.phase = serving
	}
	s.mu.Unlock()
	if records > 0 {
		s.c.cfg.Log.Info("a group coordinator is loaded", "partition", s.tp.Partition, "epoch", s.epoch, "records", records, "took", time.Since(began))
	}
}

// purgingTopics are the topics that the newest Image names as purged; an offset under such an id may have been committed to the log after
// the purge was.
func (c *Coordinator) purgingTopics() []kafka.TopicID {
	c.mu.Lock()
	defer c.mu.Unlock()
	var ids []kafka.TopicID
	for id := range c.mu.purging {
		ids = append(ids, id)
	}
	return ids
}

// coreConfig takes over the broker settings in force.
func (c *Coordinator) coreConfig() group.Config {
	b := c.cfg.Broker()
	return group.Config{
		SessionMin: b.GroupMinSessionTimeout, SessionMax: b.GroupMaxSessionTimeout,
		InitialDelay: b.GroupInitialRebalance, MaxSize: b.GroupMaxSize,
		MetadataMax: b.OffsetMetadataMaxBytes, OffsetRetention: b.OffsetsRetention,
		ConsumerSession: b.ConsumerGroupSession, ConsumerInterval: b.ConsumerGroupHeartbeat,
		ConsumerMaxSize: b.ConsumerGroupMaxSize, Assignors: b.ConsumerGroupAssignors, Migration: group.Migration(b.ConsumerGroupMigration),
	}
}

// replay reads the log from its start to the end it has now and applies every record. Nobody else appends in this epoch, so that end
// stands. What is not committed yet is waited for.
func (s *shard) replay(core *group.Shard) (records int, err error) {
	st, ok := s.c.cfg.Replicas.Describe(s.tp)
	if !ok || st.Role != replica.Leading || st.Epoch != s.epoch {
		return 0, fmt.Errorf("the host does not lead in epoch %d: %w", s.epoch, replica.ErrNotLeader)
	}
	next, stuck := st.Start, 0
	for next < st.End {
		end, n, err := s.replaySome(core, next)
		switch {
		case errors.Is(err, replica.ErrOffsetNotAvailable) || err == nil && end == next:
			if stuck++; stuck > loadStuckMax {
				return records, fmt.Errorf("offset %d of %d does not become readable", next, st.End)
			}
			if !s.awaitCommit(next) {
				return records, replica.ErrNotLeader
			}
			continue
		case err != nil:
			return records, err
		}
		next, stuck = end, 0
		records += n
	}
	return records, nil
}

// replaySome reads a part of the log and applies it; end is where the next one starts.
func (s *shard) replaySome(core *group.Shard, from kafka.Offset) (end kafka.Offset, records int, err error) {
	select {
	case s.c.loads <- struct{}{}:
		defer func() { <-s.c.loads }()
	case <-s.gone:
		return from, 0, replica.ErrNotLeader
	}
	var buf replica.FetchBuffer
	defer buf.Release()
	r := &s.c.cfg.Replicas.Read(s.fetch(from), replica.FetchOptions{MaxBytes: loadBytes}, &buf)[0]
	switch {
	case r.Err == nil:
	case errors.Is(r.Err, replica.ErrStorage), errors.Is(r.Err, replica.ErrOutOfRange):
		return from, 0, unreadable(from, r.Err)
	default:
		return from, 0, r.Err
	}
	for left := r.Records; len(left) > 0; {
		var b record.Batch
		if b, left, err = record.Split(left); err != nil {
			return from, records, unreadable(from, err)
		}
		if b.NextOffset() <= from {
			continue
		}
		n, err := applyBatch(core, b)
		if err != nil {
			return from, records, unreadable(b.BaseOffset(), err)
		}
		records += n
		from = b.NextOffset()
	}
	return from, records, nil
}

// unreadable is the error of a log that says nothing certain. Its cause is text: what it was decides nothing any more.
func unreadable(at kafka.Offset, cause error) error {
	return fmt.Errorf("%w: offset %d: %v", ErrUnreadable, at, cause)
}

// errTransactional is what a release without transactions finds in the log of one that has them.
var errTransactional = errors.New("a transactional batch, which this release cannot judge")

// applyBatch applies the records of one batch.
func applyBatch(core *group.Shard, b record.Batch) (records int, err error) {
	switch {
	case b.IsTransactional():
		return 0, errTransactional
	case b.IsControl():
		return 0, nil
	}
	for r, err := range b.Records(0) {
		if err != nil {
			return records, err
		}
		if err := core.Apply(r.Key, r.Value, time.UnixMilli(b.Timestamp(&r))); err != nil {
			return records, err
		}
		records++
	}
	return records, nil
}

// awaitCommit waits until more than the offset may be read; false when the shard is over.
func (s *shard) awaitCommit(from kafka.Offset) bool {
	w := s.c.cfg.Replicas.Park(s.fetch(from), replica.FetchOptions{MaxBytes: loadBytes}, 1)
	defer w.Cancel()
	select {
	case <-w.Ready():
		return true
	case <-s.gone:
		return false
	}
}

// fetch asks for the log in this shard's epoch.
func (s *shard) fetch(from kafka.Offset) []replica.FetchItem {
	return []replica.FetchItem{{TP: s.tp, Offset: from, CurrentEpoch: s.epoch, LastFetchedEpoch: kafka.NoEpoch, MaxBytes: loadBytes}}
}
