package server

import (
	"errors"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/replica"
	"strandline.dev/internal/storage"
	"strandline.dev/internal/wire"
)

// A door that asks for it is told of each partition of a publish what the protocol's answer cannot say: docs/formats/produce-outcome.md.

// wish is what a publish asks to be told beside the protocol's answer.
type wish struct {
	outcome bool
	ids     bool // the batches carry record ids, which are to be remembered
}

func (p *publish) readWish() {
	if p.req.UnknownTags.Len() == 0 {
		return
	}
	p.req.UnknownTags.Each(func(tag uint32, v []byte) {
		if tag == wire.TagOutcome {
			p.wish = wish{outcome: true, ids: len(v) == 1 && v[0] == 1}
		}
	})
}

// withoutWindow refuses record ids where the topic remembers none: what was promised to be stored once might be stored twice.
func (p *publish) withoutWindow(at slot, to *target) refusal {
	if !p.wish.ids || to.idHeader != "" {
		return refusal{}
	}
	p.tell(at, &wire.Outcome{LeaderEpoch: kafka.NoEpoch, DedupOff: true})
	return refusal{kafka.InvalidRequest, "topic " + to.name + " remembers no record ids; set strandline.dedup.window.ms, or publish without one"}
}

// judged tells what became of one item.
func (p *publish) judged(at slot, r *replica.AppendResult) {
	if !p.wish.outcome {
		return
	}
	o := &wire.Outcome{LeaderEpoch: r.LeaderEpoch, Unknown: r.Err != nil && r.Reached, DiskLimit: errors.Is(r.Err, storage.ErrNoSpace)}
	for i, delta := range r.Cut {
		was := &r.Originals[i]
		o.Repeats = append(o.Repeats, wire.Repeat{Delta: delta, Offset: was.Offset, OtherContent: was.OtherContent})
	}
	p.tell(at, o)
}

func (p *publish) tell(at slot, o *wire.Outcome) {
	p.at(at).UnknownTags.Set(wire.TagOutcome, o.Append(nil))
}
