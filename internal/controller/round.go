package controller

import (
	"errors"
	"fmt"
	"time"

	"strandline.dev/internal/metadata"
	"strandline.dev/internal/quorum"
)

// entry is the raft entry that a round is building.
type entry struct {
	index   uint64
	records []metadata.Record
	bytes   int
	// calls are the parked answers that stand on this entry's records.
	calls int
	// registers says that a broker's registration is in it: the next one needs another index.
	registers bool
}

// errReignOver ends a reign whose proposal was refused.
var errReignOver = errors.New("a proposal was refused")

// round decides calls on the working Image and proposes their records. The reign is over when it returns with c.reign nil.
func (c *Controller) round(calls []*call) {
	e := &entry{index: c.reign.last + 1}
	for i, one := range calls {
		if !one.take() {
			continue // the caller has gone, and has been told so
		}
		if err := c.decide(e, one); err != nil {
			c.refused(calls[i+1:], err)
			return
		}
	}
	if err := c.propose(e); err != nil {
		c.refused(nil, err)
	}
}

// refused ends the reign after a proposal that the quorum did not take. undecided are calls that were not looked at.
func (c *Controller) refused(undecided []*call, err error) {
	for _, one := range undecided {
		one.answer <- answer{err: ErrNotController}
	}
	c.endReign(err.Error())
}

// decide decides one call and adds its records to the entry, which is proposed first when they would not fit. An error means
// that the reign is over and this call has been answered.
func (c *Controller) decide(e *entry, one *call) error {
	r := c.reign
	ev, err := c.stamp(one.event, e.index)
	if err != nil {
		one.answer <- answer{err: err}
		return nil
	}
	_, registers := ev.(metadata.RegisterBroker)
	d := r.working.Decide(ev)
	if c.early(time.Now(), d.Reply) {
		one.answer <- answer{err: errEarly}
		return nil
	}
	size := sizeOf(d.Records)
	if len(e.records) > 0 && (e.bytes+size > quorum.EntryBytesMax || registers && e.registers) {
		if err := c.propose(e); err != nil {
			one.answer <- answer{err: ErrNotController}
			return err
		}
		// The decision was made for the index of the entry that is full.
		if ev, err = c.stamp(one.event, e.index); err != nil {
			one.answer <- answer{err: err}
			return nil
		}
		d = r.working.Decide(ev)
		size = sizeOf(d.Records)
	}
	before := r.working
	if err := c.tryApply(e.index, d.Records); err != nil {
		one.answer <- answer{err: err}
		return nil
	}
	e.registers = e.registers || registers
	c.registered(ev, d.Reply)
	if size <= quorum.EntryBytesMax {
		e.add(d.Records, size)
		r.park(one, d.Reply, e)
		r.parked[len(r.parked)-1].admin = len(d.Records) > 0 && administrative(ev)
		return nil
	}
	r.working = before
	return c.split(e, one, d)
}

// tryApply applies records to the working Image. A failure is a defect of the rules; it changes nothing and costs one call,
// where an appended record that cannot be applied would stop every node (C080).
func (c *Controller) tryApply(index uint64, rs []metadata.Record) error {
	if len(rs) == 0 {
		return nil
	}
	image, err := c.reign.working.Apply(index, rs)
	if err != nil {
		c.log.Error("a decision's records cannot be applied; nothing was changed", "err", err)
		return fmt.Errorf("%w: %w", ErrRefused, err)
	}
	c.reign.working = image
	return nil
}

// split proposes a decision that is larger than an entry, as several. The entry is empty when it comes here.
func (c *Controller) split(e *entry, one *call, d metadata.Decision) error {
	first := e.index
	for rs := d.Records; len(rs) > 0; {
		n, size := prefix(rs)
		if err := c.propose(e); err != nil {
			one.answer <- answer{err: fmt.Errorf("%w: %w", ErrUnknownOutcome, err)}
			return err
		}
		if err := c.tryApply(e.index, rs[:n]); err != nil {
			// The whole has been tried a moment ago, and grouping does not change what Apply does.
			one.answer <- answer{err: fmt.Errorf("%w: %w", ErrUnknownOutcome, err)}
			return err
		}
		e.add(rs[:n], size)
		rs = rs[n:]
	}
	c.reign.park(one, d.Reply, e)
	p := &c.reign.parked[len(c.reign.parked)-1]
	p.first, p.admin = first, administrative(one.event)
	return nil
}

// prefix returns how many records fit into one entry, at least one, and their size in bytes.
func prefix(rs []metadata.Record) (n, size int) {
	for ; n < len(rs); n++ {
		one := sizeOf(rs[n : n+1])
		if n > 0 && size+one > quorum.EntryBytesMax {
			break
		}
		size += one
	}
	return n, size
}

// propose hands the entry to the quorum and begins the next. An empty entry is no proposal.
func (c *Controller) propose(e *entry) error {
	r := c.reign
	if len(e.records) == 0 {
		return nil
	}
	if err := c.quorum.Propose(r.term, e.index, e.records); err != nil {
		// Nothing of this entry was appended: its callers need not wonder.
		kept := len(r.parked) - e.calls
		for _, p := range r.parked[kept:] {
			if p.first != 0 {
				p.call.answer <- answer{err: fmt.Errorf("%w: part of it was proposed: %w", ErrUnknownOutcome, err)}
				continue
			}
			p.call.answer <- answer{err: notAppended(err)}
		}
		r.parked = r.parked[:kept]
		return fmt.Errorf("%w: %w", errReignOver, err)
	}
	r.last = e.index
	r.inFlight = append(r.inFlight, flight{index: e.index, bytes: e.bytes})
	r.inFlightBytes += e.bytes
	*e = entry{index: e.index + 1}
	return nil
}

// notAppended is what a caller hears when its entry was refused.
func notAppended(err error) error {
	if errors.Is(err, quorum.ErrBusy) {
		return fmt.Errorf("%w: %w", ErrBusy, err)
	}
	// Also when the index was taken by an entry of the quorum itself: this reign is over, the next one of this node begins at once.
	return fmt.Errorf("%w: %w", ErrNotController, err)
}

func (e *entry) add(rs []metadata.Record, size int) {
	e.records = append(e.records, rs...)
	e.bytes += size
}

// park lets a reply wait for the entry that is being built, or, when that is empty so far, for the last one proposed: the
// decision was made on an Image that holds it.
func (r *reign) park(one *call, reply any, e *entry) {
	p := parked{call: one, reply: reply, index: r.last}
	if len(e.records) > 0 {
		// Also a call without records of its own: it was decided after those that the entry holds.
		p.index = e.index
		e.calls++
	}
	r.parked = append(r.parked, p)
}

func sizeOf(rs []metadata.Record) int {
	if len(rs) == 0 {
		return 0
	}
	return len(metadata.EncodeRecords(nil, rs))
}
