package client

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// work processes the records of a lane, in order, until there are none or the partition halts.
func (p *partition) work(l *lane) {
	if p.w.o.Delivery == AtMostOnce {
		p.workAhead(l)
		return
	}
	for records := p.take(l, 1); records != nil; records = p.take(l, 1) {
		r := records[0]
		err := p.handle(r)
		switch {
		case err == nil:
			p.finish(r)
		case p.ctx.Err() == nil:
			p.stop(r.Offset, err)
		}
	}
}

// workAhead commits records before it processes them. What fails is reported and gone: that is what at most once means.
func (p *partition) workAhead(l *lane) {
	for records := p.take(l, aheadMax); records != nil; records = p.take(l, aheadMax) {
		if !p.commitAhead(records) {
			continue // the partition has been given up, and take says so
		}
		for _, r := range records {
			if err := p.handle(r); err != nil {
				p.w.o.Log.Error("a record is lost (AtMostOnce)", "topic", p.topic, "partition", p.id, "offset", r.Offset, "error", err)
			}
		}
	}
}

// commitAhead tries until the commit is acknowledged; false: the partition was given up or stopped before.
func (p *partition) commitAhead(records []*kgo.Record) bool {
	for _, r := range records {
		p.finish(r)
	}
	end := records[len(records)-1].Offset + 1
	for attempt := 0; !p.isSaved(end); attempt++ {
		if attempt > 0 && !p.w.rest(p.ctx, attempt) {
			return false
		}
		if p.isHalted() {
			return false
		}
		_ = p.w.commit(p.ctx, []*partition{p}) // it has been logged
	}
	return true
}

func (p *partition) isHalted() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.halted
}

// handle processes a record or sets it aside; the error is why the partition is to stop, or that it was given up.
func (p *partition) handle(r *kgo.Record) error {
	o := &p.w.o
	if version := header(r, SchemaVersionHeader); o.KnownSchema != nil && !o.KnownSchema(version) {
		return p.refuse(o.OnUnknownSchema, r, &SchemaError{Version: version}, 0)
	}
	attempts, err := p.attempt(func() error { return o.Process(p.ctx, r) })
	if err == nil || p.ctx.Err() != nil {
		return err
	}
	return p.refuse(o.OnPoison, r, &PoisonError{Attempts: attempts, Err: err}, attempts)
}

// refuse does with a record what the options say.
func (p *partition) refuse(action Action, r *kgo.Record, why error, attempts int) error {
	if action != SetAside {
		return why
	}
	f := newFailure(p.w.o.Group, r, why, attempts)
	if _, err := p.attempt(func() error { return p.w.o.Quarantine(p.ctx, f) }); err != nil {
		return errors.Join(why, err)
	}
	p.w.o.Log.Warn("a record is set aside", "topic", p.topic, "partition", p.id, "offset", r.Offset, "failure", f.ID, "error", why)
	return nil
}

// attempt calls do until it succeeds, says that it is of no use, or has failed often enough. A call has a slot, a rest between calls has not.
func (p *partition) attempt(do func() error) (attempts int, err error) {
	for attempts = 1; ; attempts++ {
		select {
		case p.w.slots <- struct{}{}:
		case <-p.ctx.Done():
			return attempts, p.ctx.Err()
		}
		err = do()
		<-p.w.slots
		var judged interface{ Retriable() bool }
		hopeless := errors.As(err, &judged) && !judged.Retriable()
		if err == nil || hopeless || attempts == p.w.o.Attempts || p.ctx.Err() != nil {
			return attempts, err
		}
		p.w.o.Log.Warn("an attempt failed", "topic", p.topic, "partition", p.id, "attempt", attempts, "error", err)
		if !p.w.rest(p.ctx, attempts) {
			return attempts, err
		}
	}
}

// rest pauses after an attempt; false: ctx has ended.
func (w *Worker) rest(ctx context.Context, attempt int) bool {
	pause := time.NewTimer(backoff(w.o.BackoffMin, w.o.BackoffMax, attempt))
	defer pause.Stop()
	select {
	case <-pause.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// backoff doubles from least to most, and is spread by chance over the upper half, so that workers do not keep step.
func backoff(least, most time.Duration, attempt int) time.Duration {
	pause := least
	for range min(attempt-1, 62) {
		if pause = min(2*pause, most); pause == most {
			break
		}
	}
	return pause/2 + rand.N(pause/2+1)
}

// header is the value of a record's first header of that name, or "".
func header(r *kgo.Record, name string) string {
	for _, h := range r.Headers {
		if h.Key == name {
			return string(h.Value)
		}
	}
	return ""
}
