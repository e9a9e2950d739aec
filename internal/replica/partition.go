package replica

import (
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"strandline.dev/internal/config"
	"strandline.dev/internal/isr"
	"strandline.dev/internal/kafka"
	"strandline.dev/internal/metrics"
	"strandline.dev/internal/storage"
)

// surroundings is what every partition of a host shares.
type surroundings struct {
	node    kafka.NodeID
	log     *slog.Logger
	metrics *metrics.Broker
	repl    *replication
	// touched is set when offsets moved, and taken by the writer of the sync-point file: an idle node writes nothing.
	touched atomic.Bool
}

// partition is one partition on this node, in whatever role.
type partition struct {
	tp  kafka.TopicPartition
	env *surroundings
	// damaged and unclean say what was found when the log was opened (I4). Set before the partition is shared.
	damaged, unclean bool
	// shut is why the log could not be opened, or nil. Set with them.
	shut error

	// news says that storage has reported a stored end or a failure that no holder of the lock has taken in yet.
	news atomic.Bool
	// failed is the first failure storage reported; only a new log ends it (I11).
	failed atomic.Pointer[storageFailure]

	mu struct {
		sync.Mutex
		log      *storage.Log // nil when it could not be opened
		settings logSettings
		role     Role
		problem  error // why the role is Offline
		topic    config.Topic
		state    kafka.PartitionState
		core     *isr.Leader  // set exactly while role is Leading
		hw       kafka.Offset // the high watermark while core is nil
		lost     time.Time    // when this node last ended a leadership; zero for never in this process
		waits    waitList
		woken    woken
		stall    stall
		failing  failing

		// assigned is what the metadata says, as far as this node has heard; unsettled: it has not come about yet.
		assigned  *assignment
		unsettled bool
		// busy: somebody changes the log without holding the lock, because it waits for the disk. Nothing else touches the log then, and a
		// new assignment waits.
		busy bool
		// damage is how far the repair of a damaged log is.
		damage damage

		// followers are set while role is Leading: where each follower is. proposeAfter is when an ISR change may be proposed again after a
		// refusal, startsKnown is closed when a follower's log start moves.
		followers    []*followed
		proposeAfter time.Time
		startsKnown  chan struct{}

		// pull is set while role is Following and there is a leader; leaderStart is the log start it has told.
		pull        *pull
		leaderStart kafka.Offset
	}
}

type storageFailure struct{ err error }

func newPartition(tp kafka.TopicPartition, env *surroundings) *partition {
	p := &partition{tp: tp, env: env}
	p.mu.state.Leader, p.mu.state.LeaderEpoch, p.mu.state.PartitionEpoch = kafka.NoNode, kafka.NoEpoch, -1
	return p
}

// onStored is called by storage, without its locks, when a stored end has moved or a sync has failed for good. It may be
// called while this very partition is locked by the caller of storage, and the syncer must not wait for anybody's append, so
// it never blocks: it leaves a note. Either nobody holds the lock, then it takes the note in itself; or somebody does, and
// looks for notes after letting go (unlock). Told as a sequence: note set, TryLock fails, holder unlocks, holder sees note.
func (p *partition) onStored(_ kafka.Offset, err error) {
	if err != nil {
		p.failed.CompareAndSwap(nil, &storageFailure{err: err})
	}
	p.news.Store(true)
	if p.mu.TryLock() {
		p.unlock()
	}
}

// unlock takes in what storage has reported meanwhile, lets go of the partition and tells the owners of woken waits. Every
// holder of p.mu ends with it.
func (p *partition) unlock() {
	for {
		if p.news.Load() {
			p.takeNewsLocked()
		}
		told := p.mu.woken
		p.mu.woken = woken{}
		p.mu.Unlock()
		told.fire()
		if !p.news.Load() || !p.mu.TryLock() {
			return // whoever holds it now looks for news when letting go
		}
	}
}

func (p *partition) takeNewsLocked() {
	p.news.Store(false) // before looking: what comes after is news again
	if f := p.failed.Load(); f != nil {
		p.failLocked(f.err)
		return
	}
	if p.mu.log == nil {
		return // still being opened
	}
	p.storedLocked()
}

// storedLocked tells the core the log's stored end, asked for now and not taken from a callback: a callback may be of an
// earlier epoch (I3).
func (p *partition) storedLocked() {
	stored := p.mu.log.StoredEnd()
	p.mu.stall.progress(stored)
	if p.mu.core == nil {
		p.toldLocked()
		return
	}
	p.carryOutLocked(p.mu.core.Stored(stored))
}

// carryOutLocked does what the core asks for.
func (p *partition) carryOutLocked(e isr.Effects) {
	if e.BelowMinISR {
		p.failProducesLocked(ErrNotEnoughReplicasAfterAppend)
		p.wakeFetchesLocked()
	}
	if e.Advanced {
		p.touch()
		p.wakeLocked()
		p.advancedLocked(false)
	}
	if e.Lost {
		p.env.log.Error("a replica has lost records that it had stored: it leaves the ISR", "partition", p.tp.String(), "replica", e.LostReplica)
	}
	if e.Change {
		p.changeDueLocked()
	}
}

func (p *partition) touch() {
	if !p.env.touched.Load() {
		p.env.touched.Store(true)
	}
}

// failLocked takes the partition offline: its log can not be trusted (I4, I11). With other replicas it is reported and built anew
// (repair.go), else it stays so for good in this process.
func (p *partition) failLocked(cause error) {
	if p.mu.problem != nil {
		return
	}
	p.env.log.Error("partition offline", "partition", p.tp.String(), "err", cause)
	p.mu.damage = found
	p.mu.problem = fmt.Errorf("%w: %v is offline: %v", ErrStorage, p.tp, cause)
	p.stepDownLocked(Offline, p.mu.problem)
	p.damagedLocked()
}

// stepDownLocked ends a leadership, if there is one, and fails everything parked (I3).
func (p *partition) stepDownLocked(role Role, why error) {
	if p.mu.core != nil {
		p.mu.hw = p.mu.core.HighWatermark()
		p.mu.core = nil
		p.mu.lost = time.Now()
	}
	p.mu.role = role
	p.mu.stall = stall{}
	p.failAllLocked(why)
	p.endFollowersLocked()
	p.startsKnownLocked()
	p.unfollowLocked()
}

// hwLocked is the high watermark as far as this node knows it.
func (p *partition) hwLocked() kafka.Offset {
	if p.mu.core != nil {
		return p.mu.core.HighWatermark()
	}
	return p.mu.hw
}

// leadsLocked says whether this node leads, and in the epoch the client believes in.
func (p *partition) leadsLocked(current kafka.LeaderEpoch) error {
	switch {
	case p.mu.role == Leading:
	case p.mu.problem != nil:
		return p.mu.problem
	case p.mu.role == Kept:
		return ErrUnknownPartition
	default:
		return ErrNotLeader
	}
	if current == kafka.NoEpoch || current == p.mu.state.LeaderEpoch {
		return nil
	}
	if current < p.mu.state.LeaderEpoch {
		return ErrFencedEpoch
	}
	return ErrUnknownEpoch
}
