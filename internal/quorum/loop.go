package quorum

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/metadata"
)

// loop is the goroutine that owns the raft core. One turn: take what has come in (time, proposals, what the disk has done),
// then carry out what raft wants.
type loop struct {
	q    *Quorum
	node *raft.RawNode
	log  *raftLog
	disk *appender
	self uint64

	image *metadata.Image
	conf  *raftpb.ConfState
	// last is the index of the last entry in raft's log, durable or not.
	last uint64
	// proposed counts the entries proposed since raft was last asked what to do.
	proposed int
	snapshotting
}

func newLoop(q *Quorum, start *recovered) (*loop, error) {
	l := &loop{
		q:     q,
		log:   start.raftLog(),
		self:  start.self,
		image: start.snapshot.Image,
		conf:  start.snapshot.Conf,
		last:  uint64(start.log.End()) - 1,
	}
	l.snapshotting = snapshotting{every: start.snapshotEntries, term: start.snapshot.Term}
	l.disk = newAppender(start)
	node, err := raft.NewRawNode(&raft.Config{
		ID:                        start.self,
		ElectionTick:              electionTicks,
		HeartbeatTick:             heartbeatTicks,
		Storage:                   l.log,
		Applied:                   start.snapshot.Index,
		AsyncStorageWrites:        true,
		MaxSizePerMsg:             messageBytesMax,
		MaxCommittedSizePerReady:  applyBytesMax,
		MaxUncommittedEntriesSize: uncommittedBytesMax,
		MaxInflightMsgs:           inflightMessagesMax,
		MaxInflightBytes:          inflightBytesMax,
		CheckQuorum:               true,
		PreVote:                   true,
		DisableProposalForwarding: true,
		StepDownOnRemoval:         true,
		Logger:                    raftLogger{q.log},
	})
	if err != nil {
		return nil, err
	}
	l.node = node
	return l, nil
}

func (l *loop) run(ctx context.Context) (err error) {
	defer func() {
		// Raft panics when its storage fails. That is a disk error and not a defect: report it as one.
		if l.log.failed != nil {
			recover()
			err = l.log.failed
		}
	}()
	// Nobody else can become leader, so there is nothing to wait for.
	if voters := l.conf.GetVoters(); len(voters) == 1 && voters[0] == l.self {
		if err := l.node.Campaign(); err != nil {
			return err
		}
	}
	tick := time.NewTicker(tickEvery)
	defer tick.Stop()
	for {
		if err := l.advance(ctx); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			l.node.Tick()
			l.tickQuiet()
		case p := <-l.q.proposals:
			l.propose(p)
		case <-l.disk.out.ready:
			if err := l.collect(); err != nil {
				return err
			}
		}
	}
}

// propose hands raft a proposal and those that wait behind it. A proposal that is not the next entry of the term it was
// decided in is refused: its records, and the broker epoch in them, would be wrong.
func (l *loop) propose(p proposal) {
	for range proposalsPerTurn {
		p.answer <- l.proposeOne(p)
		select {
		case p = <-l.q.proposals:
		default:
			return
		}
	}
	p.answer <- l.proposeOne(p)
}

func (l *loop) proposeOne(p proposal) error {
	status := l.node.BasicStatus()
	switch {
	case status.RaftState != raft.StateLeader || status.GetTerm() != p.term:
		return ErrNotLeader
	case p.index != l.last+1:
		return fmt.Errorf("%w: decided for index %d, the next is %d", ErrMoved, p.index, l.last+1)
	}
	err := l.node.Propose(p.data)
	if errors.Is(err, raft.ErrProposalDropped) {
		return ErrBusy
	}
	if err != nil {
		return err
	}
	l.last++
	l.proposed++
	l.q.end.Store(l.last + 1)
	return nil
}

// collect takes what the append goroutine has finished. Raft hears of durable entries and votes here and nowhere else.
func (l *loop) collect() error {
	for _, done := range l.disk.out.take() {
		if done.err != nil {
			return done.err
		}
		if done.snapshot != nil {
			l.snapshotDone(*done.snapshot)
		}
		l.deliver(done.responses)
	}
	return nil
}

// deliver steps the messages to this node. Messages to others need other voters, and Open refuses a table with any; raft
// takes a message that is not sent for a lost one.
func (l *loop) deliver(messages []*raftpb.Message) {
	for _, m := range messages {
		if m.GetTo() == l.self {
			// The only errors are about messages from unknown peers.
			_ = l.node.Step(m)
		}
	}
}

// advance carries out what raft wants until it wants nothing more.
func (l *loop) advance(ctx context.Context) error {
	for l.node.HasReady() {
		ready := l.node.Ready()
		l.appended(ready.Entries)
		l.publishLeadership(ready)
		for _, m := range ready.Messages {
			switch m.GetTo() {
			case raft.LocalAppendThread:
				l.disk.in.push(job{message: m})
			case raft.LocalApplyThread:
				if err := l.apply(ctx, m.GetEntries()); err != nil {
					return err
				}
				l.deliver(m.GetResponses())
			}
		}
	}
	return nil
}

// appended notes the entries that raft has added to its log.
func (l *loop) appended(entries []*raftpb.Entry) {
	if len(entries) == 0 {
		return
	}
	last := entries[len(entries)-1].GetIndex()
	if l.proposed > 0 && last != l.last {
		// Callers were told an index that their records did not get: epochs in them are wrong.
		panic(fmt.Sprintf("quorum: proposals were to end at index %d but raft appended up to %d", l.last, last))
	}
	l.proposed = 0
	l.last = last
	l.log.remember(entries)
	l.q.end.Store(last + 1)
}

// publishLeadership publishes a change of term or leader. It comes before the entries of that term are applied, so whoever
// reads an Image first and the leadership second never takes another leader's entry for its own.
func (l *loop) publishLeadership(ready raft.Ready) {
	if ready.SoftState == nil && raft.IsEmptyHardState(ready.HardState) {
		return
	}
	status := l.node.BasicStatus()
	now, old := Leadership{Term: status.GetTerm(), Leader: l.nodeOf(status.Lead)}, l.q.Leadership()
	if status.RaftState == raft.StateLeader {
		now.Leading = true
		now.TermStart = old.TermStart
		if !old.Leading || old.Term != now.Term {
			now.TermStart = firstOfTerm(ready.Entries, now.Term)
		}
	}
	if now != old {
		l.q.leadership.store(now)
	}
}

// firstOfTerm finds the empty entry with which a leader begins its term. Raft appends it in the step that makes it leader.
func firstOfTerm(entries []*raftpb.Entry, term uint64) uint64 {
	for _, e := range entries {
		if e.GetTerm() == term {
			return e.GetIndex()
		}
	}
	panic(fmt.Sprintf("quorum: leader of term %d without a first entry", term))
}

func (l *loop) nodeOf(id uint64) kafka.NodeID {
	if v, ok := findVoter(l.image.Voters(), id); ok {
		return v.Node
	}
	return kafka.NoNode
}
