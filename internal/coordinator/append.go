package coordinator

import (
	"fmt"
	"time"

	"strandline.dev/internal/group"
	"strandline.dev/internal/record"
	"strandline.dev/internal/replica"
)

// step lets the core decide on one event, and takes its effects: records go into the batch and into the state at once, so that the next
// event is decided on top of them; replies are held until the batch is appended.
//
// The records of a step are in one batch, all or none, unless they are more than a batch holds: those begin an epoch, and any prefix of them is
// a state from which a coordinator that takes over goes on.
//
// The core sees its own records before the log does. That is safe because nothing of a round leaves the shard before the append, and
// a shard whose append fails is thrown away.
func (s *shard) step(ev group.Event, now group.Moment) {
	e := s.core.Step(ev, now)
	ms := now.Wall.UnixMilli()
	if s.batch.Count() > 0 && s.batch.Size()+sizeOf(e.Records) > batchBytesMax {
		s.append()
	}
	for _, kv := range e.Records {
		if s.batch.Count() > 0 && s.batch.Size()+len(kv.Key)+len(kv.Value) > batchBytesMax {
			s.append()
		}
		if s.broken {
			return
		}
		s.batch.Add(ms, kv.Key, kv.Value, nil)
		if err := s.core.Apply(kv.Key, kv.Value, now.Wall); err != nil {
			s.fail(fmt.Errorf("a record of our own cannot be applied: %w", err))
			return
		}
	}
	for _, r := range e.Replies {
		if w := s.waits[r.Token]; w != nil { // else nobody waits any more
			delete(s.waits, r.Token)
			s.held = append(s.held, answer{w, r})
		}
	}
	s.tell(e.Notes)
}

func sizeOf(records []group.KV) (n int) {
	for _, kv := range records {
		n += len(kv.Key) + len(kv.Value)
	}
	return n
}

// send ends a round: the batch is appended and the answers are let go.
func (s *shard) send() {
	s.append()
	unmarked := s.mark()
	s.since = false
	if !s.broken && s.last != nil && isReady(s.last) {
		if err := s.last.Results()[0].Err; err != nil {
			s.fail(err)
		} else {
			s.last = nil
			s.proved.Store(true)
		}
	}
	now := s.now().Mono
	for i, a := range s.held {
		o := outcome{response: a.reply.Response, at: now}
		switch {
		case s.broken:
			o = outcome{err: ErrNotCoordinator}
		case a.reply.AfterCommit && unmarked != nil:
			o = outcome{err: unmarked}
		case a.reply.AfterCommit:
			o.commit = s.last // everything appended so far is committed when the newest batch is
		}
		a.wait.decide(o)
		s.held[i] = answer{}
	}
	s.held = s.held[:0]
}

// append appends the batch, in this shard's epoch only (I3).
func (s *shard) append() {
	if s.broken || s.batch.Count() == 0 || !s.makeRoom() {
		return
	}
	if err := s.put(); err != nil {
		s.fail(err)
	}
}

// put hands the batch to the log. An error means that nothing was appended.
func (s *shard) put() error {
	b := s.batch.Build()
	if s.batch.Reset(); len(b) > batchKeep {
		s.batch = record.NewBuilder(record.None)
	}
	p := s.c.cfg.Replicas.Append([]replica.AppendItem{{TP: s.tp, Batch: b, Within: &s.epoch}}, replica.AcksAll, commitWaitMax)
	if isReady(p) && p.Results()[0].Err != nil {
		return p.Results()[0].Err
	}
	s.last, s.since = p, true
	s.flights = append(s.flights, p)
	return nil
}

// makeRoom waits until fewer than flightsMax batches are uncommitted. False when the shard is over: one that gets nothing committed for
// commitWaitMax is, and what waits in its inbox is told so.
func (s *shard) makeRoom() bool {
	for len(s.flights) > 0 && (isReady(s.flights[0]) || len(s.flights) >= flightsMax) {
		oldest := s.flights[0]
		late := time.NewTimer(commitWaitMax)
		select {
		case <-oldest.Ready():
		case <-late.C:
			s.fail(ErrUncommitted)
		case <-s.gone:
			s.broken = true
		}
		if late.Stop(); s.broken {
			return false
		}
		if err := oldest.Results()[0].Err; err != nil {
			s.fail(err)
			return false
		}
		s.flights = append(s.flights[:0], s.flights[1:]...)
	}
	return true
}

// fail ends the shard because of its log. It may have decided what the log does not have.
func (s *shard) fail(cause error) {
	s.broken = true
	s.c.replace(s, cause)
}

func isReady(p *replica.Produce) bool {
	select {
	case <-p.Ready():
		return true
	default:
		return false
	}
}
