package replica

import (
	"fmt"
	"time"

	"strandline.dev/internal/config"
	"strandline.dev/internal/isr"
	"strandline.dev/internal/kafka"
	"strandline.dev/internal/storage"
)

// assignment is what an Image says about a partition of this node.
type assignment struct {
	state kafka.PartitionState
	topic config.Topic
	// settings are what storage wants to know of topic.
	settings logSettings
	// kept: the topic is deleted and its data is kept.
	kept bool
	// registered: the Image holds the registration of this process, so epochs in it that name this node were granted to it and
	// to no earlier process (I3).
	registered bool
}

// assign brings the partition to what the Image says. It is idempotent. An error leaves it without a leadership; the caller
// tries again later.
func (p *partition) assign(a assignment) error {
	p.mu.Lock()
	defer p.unlock()
	return p.assignLocked(a)
}

func (p *partition) assignLocked(a assignment) error {
	p.mu.assigned = &a
	if p.mu.busy {
		return nil // settled when the log is free again
	}
	p.mu.topic = a.topic
	if p.mu.log != nil && p.mu.settings != a.settings {
		p.mu.log.SetOptions(a.settings.options(p))
		p.mu.settings = a.settings
	}
	if a.state.PartitionEpoch >= p.mu.state.PartitionEpoch {
		p.mu.state = a.state
	}
	p.keepIDsLocked()
	role := p.roleLocked(a)
	if role != Leading {
		if role != p.mu.role {
			p.stepDownLocked(role, reason(role, p.mu.problem))
		}
		switch role {
		case Following:
			p.followLocked()
		case Offline:
			p.damagedLocked()
			p.repairDueLocked()
		}
		return nil
	}
	if p.mu.core != nil && p.mu.core.Epoch() == p.mu.state.LeaderEpoch {
		p.updatedLocked()
		return nil
	}
	return p.leadLocked()
}

func (p *partition) roleLocked(a assignment) Role {
	switch {
	case p.mu.problem != nil:
		return Offline
	case a.kept:
		return Kept
	case !a.registered:
		return Idle
	case p.mu.state.Leader == p.env.node:
		return Leading
	}
	return Following
}

func reason(r Role, problem error) error {
	switch r {
	case Offline:
		return problem
	case Kept:
		return ErrUnknownPartition
	}
	return ErrNotLeader
}

// leadLocked begins a leadership in the epoch of the current state. Even when this node led before it is a loss and a gain:
// everything parked fails and the core is built anew (I3).
func (p *partition) leadLocked() error {
	p.stepDownLocked(Following, ErrNotLeader)
	l := p.mu.log
	if err := l.AssignEpoch(p.mu.state.LeaderEpoch); final(err) {
		p.failLocked(err)
		return nil
	} else if err != nil {
		return fmt.Errorf("%v: begin epoch %d: %w", p.tp, p.mu.state.LeaderEpoch, err)
	}
	// The log start never passes the watermark on a leader, and what recovery cut off is not committed.
	known := min(max(p.mu.hw, l.Start()), l.End())
	core, effects := isr.New(isr.Start{
		Self: p.env.node, State: p.mu.state, End: l.End(), Stored: l.StoredEnd(), HighWatermark: known,
	})
	p.mu.core, p.mu.role = core, Leading
	p.carryOutLocked(effects)
	p.env.metrics.LeaderChanges.Inc()
	return nil
}

// opened takes in the log, opened with the given settings, or why there is none.
func (p *partition) opened(l *storage.Log, s logSettings, err error) {
	p.mu.Lock()
	defer p.unlock()
	p.mu.settings = s
	if err != nil {
		p.failLocked(err)
		return
	}
	p.mu.log = l
	found := l.Recovered()
	p.mu.hw = min(max(found.HighWatermark, l.Start()), l.End())
	if found.Damaged != nil {
		p.failLocked(found.Damaged)
	}
}

// retire ends the partition on this node and hands its log to the caller, to close. Who still finds the partition gets why.
func (p *partition) retire(why error) *storage.Log {
	p.mu.Lock()
	defer p.unlock()
	if p.mu.problem == nil {
		p.mu.problem = why
	}
	p.stepDownLocked(Offline, why)
	l := p.mu.log
	p.mu.log = nil
	return l
}

// unopened says whether there is no log, because it could not be opened.
func (p *partition) unopened() bool {
	p.mu.Lock()
	defer p.unlock()
	return p.mu.log == nil
}

// logSettings are the settings of a log that may change while it is open.
type logSettings struct {
	policy         storage.FlushPolicy
	segmentBytes   int64
	segmentAge     time.Duration
	indexInterval  int64
	producerExpiry time.Duration
	// essential: a topic of the broker's own, which goes on when the disk is full.
	essential bool
}

func settingsOf(t config.Topic, producerExpiry time.Duration) logSettings {
	s := logSettings{
		segmentBytes: t.SegmentBytes, segmentAge: t.SegmentAge, indexInterval: t.IndexInterval, producerExpiry: producerExpiry,
	}
	if t.Flush == config.FlushReplicated {
		s.policy = storage.Replicated
	}
	return s
}

func (s logSettings) options(p *partition) storage.LogOptions {
	return storage.LogOptions{
		Policy: s.policy, SegmentBytes: s.segmentBytes, SegmentAge: s.segmentAge, IndexInterval: s.indexInterval,
		ProducerExpiry: s.producerExpiry, Essential: s.essential, OnStored: p.onStored,
	}
}

// trouble is why the partition is offline, or nil.
func (p *partition) trouble() error {
	p.mu.Lock()
	defer p.unlock()
	return p.mu.problem
}
