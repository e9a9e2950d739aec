package replica

import (
	"errors"
	"fmt"
	"time"

	"strandline.dev/internal/isr"
	"strandline.dev/internal/kafka"
	"strandline.dev/internal/record"
	"strandline.dev/internal/storage"
)

// The follower's side of one partition: what it says to its leader, and what it does with the answers.

// followLocked makes the partition follow its leader in the present epoch, if it has one.
func (p *partition) followLocked() {
	leader, epoch := p.mu.state.Leader, p.mu.state.LeaderEpoch
	if pl := p.mu.pull; pl != nil && pl.from.leader == leader && pl.epoch == epoch {
		return
	}
	p.unfollowLocked()
	if leader != kafka.NoNode && p.mu.log != nil {
		p.mu.pull = p.env.repl.follow(p, leader, epoch)
	}
}

func (p *partition) unfollowLocked() {
	if p.mu.pull != nil {
		p.mu.pull.end()
		p.mu.pull = nil
	}
}

// standingLocked is what the leader is told now. The sequence is taken together with what it stands for.
func (p *partition) standingLocked(pl *pull) standing {
	l := p.mu.log
	pl.stored, pl.start = l.StoredEnd(), l.Start()
	return standing{tp: p.tp, epoch: pl.epoch, sequence: p.env.repl.sequence.Add(1), stored: pl.stored, start: pl.start}
}

// stand fills the entry of the next fetch; false when the partition is not to be fetched in this epoch, or not now.
func (p *partition) stand(pl *pull, e *fetchEntry) bool {
	p.mu.Lock()
	defer p.unlock()
	if p.mu.pull != pl || p.mu.busy {
		return false // whoever is busy has it fetched again
	}
	e.offset, e.last = p.mu.log.End(), p.mu.log.LatestEpoch()
	e.standing = p.standingLocked(pl)
	return true
}

// report fills the entry of a report; false when the leader knows already.
func (p *partition) report(pl *pull, s *standing) bool {
	p.mu.Lock()
	defer p.unlock()
	if p.mu.pull != pl || p.mu.busy || (pl.stored == p.mu.log.StoredEnd() && pl.start == p.mu.log.Start()) {
		return false
	}
	*s = p.standingLocked(pl)
	return true
}

// unreport has a report that was not sent made again.
func (p *partition) unreport(pl *pull) {
	p.mu.Lock()
	defer p.unlock()
	if p.mu.pull == pl {
		pl.stored = kafka.NoOffset
		pl.from.dirty(pl)
	}
}

// toldLocked has the leader told of a stored end or log start that moved.
func (p *partition) toldLocked() {
	if pl := p.mu.pull; pl != nil && (pl.stored != p.mu.log.StoredEnd() || pl.start != p.mu.log.Start()) {
		pl.from.dirty(pl)
	}
}

// next is what follows from an answer.
type next uint8

const (
	// rest: there is nothing to fetch until the leader has more; it knows where we are.
	rest next = iota
	// goOn: fetch on at once.
	goOn
	// retry: fetch again after a pause.
	retry
)

// absorb does what the leader's answer asks for. What it says counts only in the epoch it was asked in. full is why no records may be
// appended now, or nil.
func (p *partition) absorb(pl *pull, a *answerEntry, full error) next {
	switch a.code {
	case codeOK:
		return p.absorbRecords(pl, a, full)
	case codeDiverges:
		return p.absorbCut(pl, a.diverging)
	case codeTooOld:
		return p.absorbStart(pl, a.start)
	}
	return retry
}

// absorbRecords appends what came, and takes over the watermark and the log start. The leader has found this log free of divergence up to
// where it was fetched (I5).
func (p *partition) absorbRecords(pl *pull, a *answerEntry, full error) next {
	p.mu.Lock()
	defer p.unlock()
	if p.mu.pull != pl || p.mu.busy {
		return rest
	}
	l, then := p.mu.log, rest
	if len(a.records) > 0 {
		if full != nil {
			return p.followFailedLocked(full, "append")
		}
		if then = goOn; beginsInside(l, a.records) {
			return p.beginInsideLocked(pl, a)
		}
		if _, err := l.AppendReplicated(a.records, time.UnixMilli(a.appendedMs)); err != nil {
			if errors.Is(err, storage.ErrNoSpace) {
				p.mu.hw = isr.FollowerWatermark(p.mu.hw, a.hw, l.Start(), l.End()) // never below the log start, also when this node leads next
				p.followStartLocked(a.start)                                       // which is what makes room here (R90)
			}
			return p.followFailedLocked(err, "append")
		}
		p.env.metrics.ReplicatedBytes.Add(float64(len(a.records)))
	}
	hw := isr.FollowerWatermark(p.mu.hw, a.hw, l.Start(), l.End())
	if hw != p.mu.hw || then == goOn {
		p.mu.hw = hw
		p.touch()
	}
	p.followStartLocked(a.start)
	return then
}

// followStartLocked has the log start follow the leader's.
func (p *partition) followStartLocked(start kafka.Offset) {
	if to := min(start, p.mu.log.End()); to > p.mu.log.Start() {
		p.mu.leaderStart = to
		p.env.repl.starts.add(p)
	}
}

// beginsInside says that the log is empty and begins inside the first batch: its leader's log start lies there.
func beginsInside(l *storage.Log, records []byte) bool {
	b, _, err := record.Split(records)
	return err == nil && l.Start() == l.End() && b.BaseOffset() < l.End()
}

// beginInsideLocked begins the log anew with the whole batch that its start lies in, and raises the start to where it was: a log holds whole
// batches only.
func (p *partition) beginInsideLocked(pl *pull, a *answerEntry) next {
	l, start, known := p.mu.log, p.mu.log.Start(), p.mu.hw
	b, _, _ := record.Split(a.records)
	return p.workLocked(pl, "begin inside a batch", func() error {
		if err := l.Reset(b.BaseOffset()); err != nil {
			return err
		}
		if _, err := l.AppendReplicated(a.records, time.UnixMilli(a.appendedMs)); err != nil {
			return err
		}
		return l.AdvanceStart(start)
	}, func() { p.mu.hw = isr.FollowerWatermark(known, a.hw, l.Start(), l.End()) })
}

// absorbCut cuts the log where it parts from the leader's (I5).
func (p *partition) absorbCut(pl *pull, at kafka.EpochEnd) next {
	p.mu.Lock()
	defer p.unlock()
	if p.mu.pull != pl || p.mu.busy {
		return rest
	}
	l := p.mu.log
	start, end, known := l.Start(), l.End(), p.mu.hw
	to, anew := isr.CutAt(at, l.EpochEndFor(at.Epoch), start, end)
	cut := func() error { return l.TruncateTo(to) }
	if anew {
		cut = func() error { return l.Reset(to) }
	}
	return p.workLocked(pl, "truncate", cut, func() {
		if l.End() == end && !anew {
			return // only the epochs part, above all records: nothing was cut
		}
		p.env.log.Info("log truncated to where it parts from the leader's", "partition", p.tp.String(), "leader", pl.from.leader,
			"epoch", pl.epoch, "from", end, "to", l.End(), "watermark", known)
		p.env.metrics.Truncations.Inc()
		p.mu.hw = min(known, l.End())
		if p.mu.hw < known { // only an operator's recovery from a replica that lacks records leads here
			p.env.metrics.TruncatedBelowHW.Inc()
			p.env.log.Error("records below the high watermark were truncated: the leader does not have them", "partition", p.tp.String(),
				"watermark", known, "end", l.End())
		}
	})
}

// absorbStart begins the log anew where the leader's starts, if all of it lies below. An end above the leader's is no reason (C014).
func (p *partition) absorbStart(pl *pull, start kafka.Offset) next {
	p.mu.Lock()
	defer p.unlock()
	if p.mu.pull != pl || p.mu.busy {
		return rest
	}
	l := p.mu.log
	if !isr.Outdated(start, l.End()) {
		return retry
	}
	return p.workLocked(pl, "begin anew", func() error { return l.Reset(start) }, func() {
		p.env.log.Info("log begins anew at the leader's start", "partition", p.tp.String(), "leader", pl.from.leader, "start", start)
		p.mu.hw = start
	})
}

// workLocked changes the log in a way that waits for the disk, which is not done under the lock. Meanwhile the partition is busy: nothing else
// touches the log, and what the metadata says waits. done runs under the lock afterwards.
func (p *partition) workLocked(pl *pull, what string, work func() error, done func()) next {
	p.mu.busy = true
	p.unlock()
	err := work()
	p.mu.Lock()
	p.mu.busy = false
	then := goOn
	if err == nil {
		done()
		p.touch()
	} else {
		then = p.followFailedLocked(err, what)
	}
	p.settleLocked()
	return then
}

// settleLocked does what the metadata said while the partition was busy.
func (p *partition) settleLocked() {
	if p.mu.assigned == nil {
		return
	}
	if err := p.assignLocked(*p.mu.assigned); err != nil {
		p.mu.unsettled = true // tried again at the next tick
		p.env.log.Warn("a partition is not what the metadata says; trying again", "partition", p.tp.String(), "err", err)
	}
}

// followFailedLocked sorts out the errors of changing a follower's log: what makes the log useless takes it offline, the rest is tried again.
// Bytes that came damaged are the leader's or the network's, and damage nothing here.
func (p *partition) followFailedLocked(err error, what string) next {
	switch {
	case errors.Is(err, storage.ErrClosed) || p.mu.log == nil:
		return rest
	case errors.Is(err, storage.ErrSyncFailed) || p.mu.log.Damaged() != nil:
		p.failLocked(fmt.Errorf("%s: %w", what, err))
		return rest
	}
	if times, due := p.mu.failing.note(errors.Is(err, storage.ErrNoSpace), time.Now()); due {
		p.env.log.Warn("following a leader failed", "partition", p.tp.String(), "doing", what, "times", times, "err", err)
	}
	return retry
}
