package sim

import (
	"slices"
	"time"

	"strandline.dev/internal/isr"
	"strandline.dev/internal/kafka"
	"strandline.dev/internal/metadata"
)

// lead begins a leadership in the epoch of the present state.
func (r *replica) lead() {
	r.stepDown(leading)
	known := min(max(r.hw, r.disk.start), r.disk.end())
	core, e := isr.New(isr.Start{
		Self: r.n.id, State: r.state, End: r.disk.end(), Stored: r.stored(), HighWatermark: known,
	})
	r.core = core
	r.n.w.trace("%v leads partition %d in epoch %d from %d, watermark %d, ISR %v", r.n, r.p, r.state.LeaderEpoch, r.disk.end(), known, r.state.ISR)
	r.begins()
	r.carry(e)
	r.sync()
}

// carry does what the core asks for.
func (r *replica) carry(e isr.Effects) {
	if e.BelowMinISR {
		r.failWaits()
	}
	if e.Lost {
		r.n.w.rare["lost bytes"]++
	}
	if e.Advanced {
		r.advanced()
		r.wake()
		hw := r.core.HighWatermark()
		for len(r.waits) > 0 && r.waits[0].end <= hw {
			done := r.waits[0].done
			r.waits = r.waits[1:]
			done(true)
		}
	}
	if e.Change {
		r.propose()
	}
}

func (r *replica) tick() {
	if r.core != nil {
		r.carry(r.core.Tick(r.n.w.wall(), r.disk.end(), r.n.w.o.Lag))
	}
}

// propose puts an ISR change to the controller.
func (r *replica) propose() {
	n, w := r.n, r.n.w
	if r.asking {
		return
	}
	open := r.core.Open()
	p, ok := r.core.Propose(func(id kafka.NodeID) (kafka.BrokerEpoch, bool) {
		b := n.image.Broker(id)
		if b == nil || b.Fenced || b.Stopping {
			return 0, false
		}
		return b.Epoch, true
	})
	if !ok {
		return
	}
	if open && p.Shrinks+p.Expands == 0 {
		w.rare["proposal given up"]++
	}
	c := metadata.ISRChange{TP: n.tp(r.p), LeaderEpoch: p.LeaderEpoch, PartitionEpoch: p.PartitionEpoch, Lost: p.Lost}
	for _, m := range p.ISR {
		c.ISR = append(c.ISR, metadata.Member{Node: m.Node, Epoch: m.Broker})
	}
	i := slices.IndexFunc(c.ISR, func(m metadata.Member) bool { return m.Node == n.id })
	c.ISR[i].Epoch = n.epoch
	r.asking = true
	core := r.core
	over := func() bool { return r.core != core }
	n.submit(metadata.AlterISR{Now: w.wall(), Node: n.id, Epoch: n.epoch, Changes: []metadata.ISRChange{c}}, func(reply any) {
		if over() {
			return
		}
		r.asking = false
		res := reply.([]metadata.ISRResult)[0]
		if res.Code == kafka.IneligibleReplica {
			r.core.Refused()
		}
		if res.State.PartitionEpoch > r.state.PartitionEpoch && res.State.LeaderEpoch == r.state.LeaderEpoch {
			r.state = res.State
			r.carry(r.core.Update(res.State))
		}
	})
	w.after(answerMax, n, func() {
		if !over() {
			r.asking = false
		}
	})
}

// publish appends a record for a client.
func (r *replica) publish(value uint64, all bool, done func(offset kafka.Offset, ok, refused bool)) {
	if r.core == nil || all && !r.core.Admits() {
		done(kafka.NoOffset, false, true)
		return
	}
	r.wrote()
	at := r.disk.end()
	r.disk.append(entry{epoch: r.state.LeaderEpoch, value: value})
	r.sync()
	r.wake()
	if !r.n.w.o.Synced[r.p] {
		r.carry(r.core.Stored(r.stored()))
	}
	if !all {
		done(at, true, false)
		return
	}
	if r.core.Committed(at + 1) {
		done(at, true, false)
		return
	}
	r.waits = append(r.waits, wait{end: at + 1, done: func(ok bool) { done(at, ok, false) }})
}

// deleteTo raises the log start, never past the watermark.
func (r *replica) deleteTo(to kafka.Offset) {
	if r.core == nil {
		return
	}
	to = min(to, r.core.HighWatermark())
	if to > r.disk.start {
		t := r.n.w.truth[r.p]
		t.start = max(t.start, to)
		r.disk.advance(to)
	}
}

// fetchWait is how long a fetch is parked.
const fetchWait = 500 * time.Millisecond

// wake answers the parked fetches, a moment later: there is something new.
func (r *replica) wake() {
	if len(r.parked) == 0 {
		return
	}
	parked := r.parked
	r.parked = nil
	r.n.w.after(time.Millisecond, r.n, func() {
		for _, do := range parked {
			do()
		}
	})
}

// fetchRequest is what a follower says.
type fetchRequest struct {
	from          isr.Origin
	at            kafka.Offset
	last          kafka.LeaderEpoch
	stored, start kafka.Offset
}

// fetchAnswer is what its leader says.
type fetchAnswer struct {
	epoch     kafka.LeaderEpoch
	wrong     bool // not the leader, or in another epoch
	verdict   isr.Verdict
	diverging kafka.EpochEnd
	start, hw kafka.Offset
	at        kafka.Offset
	entries   []entry
}

// serve answers a fetch.
func (r *replica) serve(q fetchRequest, answer func(fetchAnswer)) {
	a := fetchAnswer{epoch: q.from.Epoch, at: q.at}
	if r.core == nil || r.core.Epoch() != q.from.Epoch || !slices.Contains(r.state.Replicas, q.from.Node) {
		a.wrong = true
		answer(a)
		return
	}
	a.start = r.disk.start
	known := r.disk.epochEnd(q.last)
	a.verdict, a.diverging = isr.Compare(q.at, q.last, isr.Extent{Start: r.disk.start, End: r.disk.end(), Known: known})
	if a.verdict != isr.Agrees {
		answer(a)
		return
	}
	r.carry(r.core.Reported(q.from, q.stored, q.start))
	if r.core == nil {
		return
	}
	r.carry(r.core.Fetched(q.from, q.at))
	if q.at == r.disk.end() {
		core, w, woken := r.core, r.n.w, false
		wake := func() {
			if woken {
				return
			}
			woken = true
			if r.core != core {
				a.wrong = true
			}
			r.fill(&a)
			answer(a)
		}
		r.parked = append(r.parked, wake)
		w.after(w.between(fetchWait/2, fetchWait), r.n, wake)
		return
	}
	r.fill(&a)
	answer(a)
}

func (r *replica) fill(a *fetchAnswer) {
	if a.wrong || r.core == nil || a.at < r.disk.start {
		a.wrong = true
		return
	}
	a.hw, a.start = r.core.HighWatermark(), r.disk.start
	have := r.disk.entries[a.at-r.disk.start:]
	a.entries = slices.Clone(have[:min(len(have), 1+r.n.w.rng.IntN(64))])
}
