package replica

import (
	"context"
	"errors"
	"slices"
	"time"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/record"
	"strandline.dev/internal/recordid"
	"strandline.dev/internal/storage"
)

// Record ids (I12). A leader asks its log whether records of a batch repeat what is stored; the leader and the followers in sync have their
// logs remember ids while batches arrive, so that any of them can go on as leader. One that has just started reads one window back first
// (recordids_load.go of storage), and until then publishes with ids are refused, to be retried; all others go on.

// keepIDsLocked has the log remember record ids, or not, as topic and role want it.
func (p *partition) keepIDsLocked() {
	if p.mu.log == nil {
		return
	}
	a, self := p.mu.assigned, p.env.node
	window := p.mu.topic.DedupWindow
	if p.mu.problem != nil || a == nil || a.kept || (p.mu.state.Leader != self && !slices.Contains(p.mu.state.ISR, self)) {
		window = 0 // a follower that catches up reads what it needs when it has
	}
	if p.mu.log.KeepRecordIDs(window, p.mu.topic.DedupHeader) {
		p.env.repl.ids.add(p)
	}
}

// loadIDs reads the record ids of partitions back.
func (r *replication) loadIDs(ctx context.Context, ps []*partition) (failed bool) {
	failures := make([]bool, len(ps))
	parallel(len(ps), func(i int) { failures[i] = ps[i].loadIDs(ctx) })
	return slices.Contains(failures, true)
}

func (p *partition) loadIDs(ctx context.Context) (failed bool) {
	p.mu.Lock()
	l := p.mu.log
	p.unlock()
	if l == nil {
		return false
	}
	began := time.Now()
	err := l.LoadRecordIDs(ctx)
	switch {
	case err == nil:
		if n, ready := l.RecordIDs(); ready && n > 0 {
			p.env.log.Info("record ids read back", "partition", p.tp.String(), "ids", n, "took", time.Since(began).String())
		}
		return false
	case errors.Is(err, storage.ErrClosed) || ctx.Err() != nil:
		return false
	}
	p.mu.Lock()
	defer p.unlock()
	if final(err) {
		p.failLocked(err)
		return false
	}
	p.env.log.Warn("record ids could not be read; trying again", "partition", p.tp.String(), "err", err)
	p.env.repl.ids.add(p)
	return true
}

// repeats is what is known of the record ids of one batch before it is appended.
type repeats struct {
	recordid.Verdict
	carried []recordid.Carried
}

// judgeIDsLocked looks the ids of a batch up. Without ids, or where the topic keeps none, there are no repeats.
func (p *partition) judgeIDsLocked(it *AppendItem) (repeats, error) {
	r := repeats{carried: it.IDs}
	if p.mu.topic.DedupWindow <= 0 {
		return repeats{}, nil
	}
	if header := p.mu.topic.DedupHeader; it.IDHeader != header {
		var err error
		if r.carried, err = recordid.Read(it.Batch, header, p.decompressMaxLocked(it.Batch)); err != nil {
			return repeats{}, err
		}
	}
	if len(r.carried) == 0 {
		return r, nil
	}
	var err error
	r.Verdict, err = p.mu.log.JudgeRecordIDs(r.carried, it.Batch.Count())
	return r, err
}

// storeIdentifiedLocked appends what of a batch with record ids is not stored yet, and fills r. It returns the end that must be committed
// before the publish is confirmed: the originals', where there is nothing to append.
func (p *partition) storeIdentifiedLocked(r *AppendResult, it *AppendItem, rep *repeats, now time.Time) (kafka.Offset, error) {
	if len(rep.Cut) == 0 {
		return p.appendLocked(r, it.Batch, rep.carried, now)
	}
	p.env.metrics.Retries.Inc()
	r.Repeat, r.OtherContent, r.Cut, r.Originals = rep.All, rep.OtherContent, rep.Cut, rep.Originals
	if rep.All && it.Batch.ProducerID() == kafka.NoProducerID {
		rep.answer(r)
		return rep.End, nil
	}
	// What repeats is cut out. The batch of an idempotent producer is appended even when nothing of it is left: its next one goes on behind
	// this sequence, on this leader and on any later one.
	b, err := record.Without(it.Batch, rep.Cut, p.decompressMaxLocked(it.Batch))
	if err != nil {
		return 0, p.appendErrorLocked(err)
	}
	end, err := p.appendLocked(r, b, rep.fresh(), now)
	if err == nil && rep.All {
		rep.answer(r)
	}
	return end, err
}

// decompressMaxLocked bounds what a batch may decompress to; what validation let in is below it.
func (p *partition) decompressMaxLocked(b record.Batch) int {
	return record.DecompressedLimit(max(p.mu.topic.MaxBatchBytes, len(b)))
}

// fresh are the ids of the records that stay.
func (r *repeats) fresh() []recordid.Carried {
	return slices.DeleteFunc(slices.Clone(r.carried), func(c recordid.Carried) bool {
		_, cut := slices.BinarySearch(r.Cut, c.Delta)
		return cut
	})
}

// answer tells where the originals of a batch of repeats are, once they are committed.
func (r *repeats) answer(to *AppendResult) {
	to.Base, to.TimestampMs = r.Base, -1
	if r.Base == kafka.NoOffset {
		to.Err = ErrRepeats
	}
}

// originalsLocked answers a repeated sequence, which is stored at base, by its record ids where those say more: a batch that had nothing but
// repeats when it came first has left a hole there, and the ids name the records.
func (p *partition) originalsLocked(r *AppendResult, it *AppendItem, base kafka.Offset) error {
	rep, err := p.judgeIDsLocked(it)
	switch {
	case errors.Is(err, storage.ErrIDsFull):
		return nil // ids that are not remembered any more
	case err != nil || !rep.All || rep.First == kafka.NoOffset || rep.End > base:
		return err
	}
	rep.answer(r)
	return nil
}
