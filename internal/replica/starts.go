package replica

import (
	"context"
	"errors"
	"slices"
	"time"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/storage"
)

// Only the leader applies retention and deletes records; followers raise their log start to the leader's. It waits for the disk, and many
// partitions that do it at once share the writes of the sync-point file, so it is not the fetcher that does it.

// raiseStarts raises the log starts of followers to their leaders'.
func (r *replication) raiseStarts(_ context.Context, ps []*partition) (failed bool) {
	failures := make([]bool, len(ps))
	parallel(len(ps), func(i int) { failures[i] = ps[i].raiseStart() })
	return slices.Contains(failures, true)
}

func (p *partition) raiseStart() (failed bool) {
	p.mu.Lock()
	l, to, follows := p.mu.log, p.mu.leaderStart, p.mu.pull != nil && !p.mu.busy
	p.unlock()
	if !follows || to <= l.Start() {
		return false // over; the leader of now tells its start with its first answer
	}
	err := l.AdvanceStart(min(to, l.End()))
	p.mu.Lock()
	defer p.unlock()
	switch {
	case err == nil && p.mu.log == l:
		p.mu.hw = min(max(p.mu.hw, l.Start()), l.End())
		p.touch()
		p.toldLocked()
	case err == nil || errors.Is(err, storage.ErrClosed) || errors.Is(err, storage.ErrOutOfRange): // gone or cut meanwhile
	case p.mu.log == l && p.followFailedLocked(err, "raise the log start") == retry:
		p.env.repl.starts.add(p)
		return true
	}
	return false
}

// startMoved has the followers told of a higher log start, now.
func (p *partition) startMoved() {
	p.mu.Lock()
	defer p.unlock()
	p.advancedLocked(true)
}

// startsKnownLocked tells whoever waits for the followers' log starts to look again.
func (p *partition) startsKnownLocked() {
	if p.mu.startsKnown != nil {
		close(p.mu.startsKnown)
		p.mu.startsKnown = nil
	}
}

// awaitStart waits until every member of the maximal ISR has raised its log start to at least `to`: from then on no clean election brings the
// records below it back. It fails when this leadership ends (I3), or ctx.
func (p *partition) awaitStart(ctx context.Context, epoch kafka.LeaderEpoch, to kafka.Offset) error {
	limit := time.NewTimer(startWaitMax)
	defer limit.Stop()
	for {
		p.mu.Lock()
		if p.mu.core == nil || p.mu.core.Epoch() != epoch {
			p.unlock()
			return ErrNotLeader
		}
		if to <= 0 || p.mu.core.StartHeld(p.mu.log.Start()) >= to { // no log starts below 0
			p.unlock()
			return nil
		}
		if p.mu.startsKnown == nil {
			p.mu.startsKnown = make(chan struct{})
		}
		known := p.mu.startsKnown
		p.unlock()
		select {
		case <-known:
		case <-limit.C:
			return ErrTimedOut
		case <-ctx.Done():
			return ErrTimedOut
		}
	}
}
