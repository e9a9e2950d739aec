package replica

import (
	"errors"
	"slices"

	"strandline.dev/internal/isr"
	"strandline.dev/internal/kafka"
	"strandline.dev/internal/record"
)

// The leader's side of one partition: what its followers have, and when they are to hear something.

// followed is one partition in the session of one follower. It is guarded by the partition's lock, but for listed and behind, which are the
// session's.
type followed struct {
	s *session
	p *partition
	// epoch is the leader epoch that the follower named the partition in, offset where it fetches: its log's end, verified.
	epoch  kafka.LeaderEpoch
	offset kafka.Offset
	// waiting: the follower has everything, and the next append is news for it.
	waiting bool
	// hw and start are what the follower was told last in this session. stale: the session knows that they are older than what is.
	hw, start kafka.Offset
	stale     bool

	listed bool // in s.ready
	behind bool // in s.stale
}

// follow takes in where a follower is, and judges its log. The code is codeOK when the follower's log is the beginning of ours; ready says
// that there is more for it.
func (p *partition) follow(f *followed, e *fetchEntry, broker kafka.BrokerEpoch) (a answerEntry, ready bool) {
	p.mu.Lock()
	defer p.unlock()
	a = answerEntry{tp: p.tp, epoch: e.epoch, hw: kafka.NoOffset, start: kafka.NoOffset}
	if f.s.over() {
		a.code = codeNotLeader // the follower has begun another session, and named the partition there
		return a, false
	}
	p.dropFollowerLocked(f.s.node)
	if a.code = p.servesLocked(e.epoch, f.s.node); a.code != codeOK {
		return a, false
	}
	l := p.mu.log
	extent := isr.Extent{Start: l.Start(), End: l.End(), Known: l.EpochEndFor(e.last)}
	a.start = extent.Start
	verdict, at := isr.Compare(e.offset, e.last, extent)
	switch verdict {
	case isr.Diverges: // I5: before anything of the same fetch counts, and without a watermark
		a.code, a.diverging = codeDiverges, at
		return a, false
	case isr.TooOld:
		a.code = codeTooOld
		return a, false
	}
	f.epoch, f.offset = e.epoch, e.offset
	f.waiting = e.offset == extent.End
	p.mu.followers = append(p.mu.followers, f)
	from := isr.Origin{Node: f.s.node, Broker: broker, Epoch: e.epoch, Sequence: e.sequence}
	p.carryOutLocked(p.mu.core.Reported(from, e.stored, e.start))
	p.carryOutLocked(p.mu.core.Fetched(from, e.offset))
	p.startsKnownLocked()
	if f.hw < p.mu.core.HighWatermark() || f.start < extent.Start {
		p.behindLocked(f, false) // a partition without traffic would never tell
	}
	return a, !f.waiting
}

// servesLocked says whether this node answers a follower in the epoch it names.
func (p *partition) servesLocked(epoch kafka.LeaderEpoch, node kafka.NodeID) answerCode {
	switch err := p.leadsLocked(epoch); {
	case err == nil && !slices.Contains(p.mu.state.Replicas, node):
		return codeNotHeld
	case err == nil:
		return codeOK
	default:
		return codeOf(err)
	}
}

func codeOf(err error) answerCode {
	switch {
	case errors.Is(err, ErrFencedEpoch):
		return codeFenced
	case errors.Is(err, ErrUnknownEpoch):
		return codeUnknownEpoch
	case errors.Is(err, ErrUnknownPartition):
		return codeNotHeld
	case errors.Is(err, ErrStorage):
		return codeStorage
	case errors.Is(err, ErrOutOfRange):
		return codeTooOld
	}
	return codeNotLeader
}

// progress takes in what a follower stores.
func (p *partition) progress(node kafka.NodeID, broker kafka.BrokerEpoch, s *standing) {
	p.mu.Lock()
	defer p.unlock()
	if p.mu.core == nil {
		return
	}
	p.carryOutLocked(p.mu.core.Reported(isr.Origin{Node: node, Broker: broker, Epoch: s.epoch, Sequence: s.sequence}, s.stored, s.start))
	p.startsKnownLocked()
}

// portion is what serve gives a follower of one partition.
type portion uint8

const (
	// nothing: there is nothing to say.
	nothing portion = iota
	// served: the entry is filled.
	served
	// catchingUp: the follower is not in sync, and its turn comes after those that are.
	catchingUp
	// noRoom: there was no room for the next batch.
	noRoom
)

// serve fills the entry of a follower that is ready, within the room that is left. Followers that are not in sync are put off unless catchUp.
func (p *partition) serve(f *followed, room fetchRoom, most int, catchUp bool, a *answerEntry) portion {
	p.mu.Lock()
	*a = answerEntry{tp: p.tp, epoch: f.epoch, hw: kafka.NoOffset, start: kafka.NoOffset}
	if a.code = p.servesLocked(f.epoch, f.s.node); a.code != codeOK {
		p.unlock()
		return served
	}
	l, c := p.mu.log, p.mu.core
	end := l.End()
	a.hw, a.start = c.HighWatermark(), l.Start()
	if f.offset == end {
		f.waiting = true
		fresh := f.stale
		f.tell(a)
		p.unlock()
		if fresh {
			return served
		}
		return nothing
	}
	if !catchUp && !slices.Contains(p.mu.state.ISR, f.s.node) {
		p.unlock()
		return catchingUp
	}
	hw, start := f.hw, f.start
	f.tell(a)
	it := FetchItem{TP: p.tp, Offset: f.offset, MaxBytes: most}
	p.unlock()
	var err error
	a.records, err = p.readLog(l, &it, end, room)
	switch {
	case err != nil:
		a.code, a.hw, a.records = codeOf(err), kafka.NoOffset, nil
	case len(a.records) == 0:
		p.untold(f, hw, start)
		return noRoom
	default:
		a.appendedMs = l.AppendedBy(lastOf(a.records)).UnixMilli()
	}
	return served
}

// tell notes what the follower is told. The partition's lock is held.
func (f *followed) tell(a *answerEntry) { f.hw, f.start, f.stale = a.hw, a.start, false }

// untold takes back what the follower was to be told in an answer that there was no room for.
func (p *partition) untold(f *followed, hw, start kafka.Offset) {
	p.mu.Lock()
	defer p.unlock()
	f.hw, f.start = hw, start
	p.behindLocked(f, false)
}

// behindLocked notes that a follower knows an older watermark or log start. urgent: it is to know now.
func (p *partition) behindLocked(f *followed, urgent bool) {
	if !f.stale || urgent {
		f.stale = true
		f.s.fallBehind(f, urgent)
	}
}

// newsFor fills the entry of a follower that is to be told the watermark and the log start only.
func (p *partition) newsFor(f *followed, a *answerEntry) bool {
	p.mu.Lock()
	defer p.unlock()
	if !f.stale || p.servesLocked(f.epoch, f.s.node) != codeOK {
		return false // told meanwhile, or about to hear that this is over
	}
	*a = answerEntry{tp: p.tp, epoch: f.epoch, hw: p.mu.core.HighWatermark(), start: p.mu.log.Start()}
	f.tell(a)
	return true
}

// forgetFollower takes a follower off.
func (p *partition) forgetFollower(node kafka.NodeID) {
	p.mu.Lock()
	defer p.unlock()
	p.dropFollowerLocked(node)
}

func (p *partition) dropFollowerLocked(node kafka.NodeID) {
	p.mu.followers = slices.DeleteFunc(p.mu.followers, func(f *followed) bool { return f.s.node == node })
}

// appendedLocked tells the followers that wait that there are records.
func (p *partition) appendedLocked() {
	for _, f := range p.mu.followers {
		if f.waiting {
			f.waiting = false
			f.s.push(f)
		}
	}
}

// advancedLocked notes that the followers know an older watermark or log start. urgent: they are to know now.
func (p *partition) advancedLocked(urgent bool) {
	for _, f := range p.mu.followers {
		p.behindLocked(f, urgent)
	}
}

// endFollowersLocked has every follower told that this leadership is over.
func (p *partition) endFollowersLocked() {
	for _, f := range p.mu.followers {
		f.waiting = false
		f.s.push(f)
	}
	p.mu.followers = nil
}

// lastOf is the offset behind whole batches. They come from a log that has verified them.
func lastOf(batches []byte) kafka.Offset {
	end := kafka.NoOffset
	for len(batches) > 0 {
		b, rest, err := record.Split(batches)
		if err != nil {
			break
		}
		end, batches = b.NextOffset(), rest
	}
	return end
}
