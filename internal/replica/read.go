package replica

import (
	"errors"
	"fmt"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/storage"
)

// Read reads what is visible now of each item into dst, in the order of the items, and never waits. The results live in dst,
// as long as its records do. The files are read outside the partition and log locks.
func (h *Host) Read(items []FetchItem, o FetchOptions, dst *FetchBuffer) []FetchResult {
	results := dst.begin(len(items))
	left, empty := o.MaxBytes, true
	for i := range items {
		r := &results[i]
		*r = failedFetch()
		p := h.partition(items[i].TP)
		if p == nil {
			r.Err = h.absent()
			continue
		}
		r.Err = p.read(&items[i], fetchRoom{o: o, left: left, atLeastOne: empty, dst: dst}, r)
		if r.Err != nil {
			r.hide()
			continue
		}
		left -= len(r.Records)
		empty = empty && len(r.Records) == 0
	}
	return results
}

func failedFetch() FetchResult {
	return FetchResult{
		HighWatermark: kafka.NoOffset, LastStable: kafka.NoOffset, LogStart: kafka.NoOffset,
		Leader: kafka.NoNode, LeaderEpoch: kafka.NoEpoch,
	}
}

// hide makes sure that no offset goes out with an error (C062).
func (r *FetchResult) hide() {
	r.HighWatermark, r.LastStable, r.LogStart, r.Records, r.Diverging = kafka.NoOffset, kafka.NoOffset, kafka.NoOffset, nil, nil
}

// fetchRoom is how much of a fetch is left for the next partition.
type fetchRoom struct {
	o          FetchOptions
	left       int
	atLeastOne bool
	dst        *FetchBuffer
}

// view is one consistent look at a led partition. The log is used after the lock is let go: it guards itself.
type view struct {
	log      *storage.Log
	epoch    kafka.LeaderEpoch
	hw       kafka.Offset
	withheld bool
	settled  bool
}

// look returns a view if this node leads in the epoch the client believes in. leader and epoch are filled in any case.
func (p *partition) look(current kafka.LeaderEpoch, leader *kafka.NodeID, epoch *kafka.LeaderEpoch) (view, error) {
	p.mu.Lock()
	defer p.unlock()
	*leader, *epoch = p.mu.state.Leader, p.mu.state.LeaderEpoch
	if err := p.leadsLocked(current); err != nil {
		return view{}, err
	}
	c := p.mu.core
	return view{
		log: p.mu.log, epoch: c.Epoch(), hw: c.HighWatermark(), withheld: c.Withheld(), settled: c.Settled(),
	}, nil
}

// read is the road of one fetch through one partition: do we lead, does the client's log agree with ours, what is visible,
// the log.
func (p *partition) read(it *FetchItem, room fetchRoom, r *FetchResult) error {
	v, err := p.look(it.CurrentEpoch, &r.Leader, &r.LeaderEpoch)
	if err != nil {
		return err
	}
	start, end := v.log.Start(), v.log.End()
	if it.LastFetchedEpoch != kafka.NoEpoch {
		at := v.log.EpochEndFor(it.LastFetchedEpoch)
		if at.Epoch == kafka.NoEpoch || it.Offset < start {
			return ErrOutOfRange
		}
		if at.Epoch < it.LastFetchedEpoch || at.End < it.Offset {
			r.Diverging = &at
		}
	}
	if r.Diverging == nil && (it.Offset < start || it.Offset > end) {
		return ErrOutOfRange
	}
	if v.withheld {
		return ErrOffsetNotAvailable
	}
	r.HighWatermark, r.LogStart = v.hw, start
	r.LastStable = v.log.LastStable(v.hw)
	upper := r.HighWatermark
	if room.o.ReadCommitted {
		upper = r.LastStable
	}
	if r.Diverging != nil || it.Offset >= upper {
		return nil
	}
	r.Records, err = p.readLog(v.log, it, upper, room)
	return err
}

func (p *partition) readLog(l *storage.Log, it *FetchItem, upper kafka.Offset, room fetchRoom) ([]byte, error) {
	limit := min(it.MaxBytes, room.left)
	if limit <= 0 && !room.atLeastOne {
		return nil, nil
	}
	limit = max(limit, 0)
	foreseen := int(min(int64(limit), l.SizeBetween(it.Offset, upper)+readSlack))
	b, err := l.Read(it.Offset, upper, storage.ReadLimits{MaxBytes: limit, AtLeastOne: room.atLeastOne}, room.dst.space(foreseen))
	if err != nil {
		return nil, p.readError(err)
	}
	room.dst.keep(b)
	p.touch() // files were opened; the writer of the sync-point file closes them when they are idle
	return b, nil
}

// readError sorts out the errors of reading a log.
func (p *partition) readError(err error) error {
	switch {
	case errors.Is(err, storage.ErrOutOfRange):
		return ErrOutOfRange // retention moved the start meanwhile
	case errors.Is(err, storage.ErrClosed):
		return ErrNotLeader // retired meanwhile; the client finds out what happened when it asks again
	case final(err):
		p.mu.Lock()
		p.failLocked(err)
		err = p.mu.problem
		p.unlock()
		return err
	}
	p.env.log.Warn("read failed", "partition", p.tp.String(), "err", err)
	return fmt.Errorf("%w: read %v: %w", ErrStorage, p.tp, err)
}
