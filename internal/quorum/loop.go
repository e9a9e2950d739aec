package quorum

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
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
	transport
	members
	// told is what other nodes say about the leader.
	told told
	// offered is a snapshot that raft has just been told of.
	offered *snapshot
	// retires says that a change has taken this directory out of the configuration; what follows from it is still to be done.
	retires bool
	diskWatch
	// opening counts down the ticks in which this node, which formed the cluster, tries to be its first leader.
	opening int
	// leaderless is since when no leader is known, zero while one is.
	leaderless, saidLeaderless time.Time
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
	l.transport = newTransport()
	l.disk = newAppender(start)
	node, err := newCore(q, l.self, l.log, start.snapshot.Index)
	if err != nil {
		return nil, err
	}
	l.node = node
	if start.minted {
		l.opening = openingTicks
	}
	q.newest.Store(&start.snapshot.snapshotID)
	l.publishImage()
	start.snapshot.Image = nil // it would stay for as long as the node runs
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
	// Voters that tick in the same instant time out in the same instant and split the vote. Ids are random: the first tick of each has its own place.
	tick := time.NewTicker(1 + tickEvery*time.Duration(l.self%tickPlaces)/tickPlaces)
	defer tick.Stop()
	rhythm := sync.OnceFunc(func() { tick.Reset(tickEvery) })
	for {
		if err := l.advance(ctx); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			rhythm()
			l.node.Tick()
			l.open()
			l.tickQuiet()
			l.steer()
			l.watchLeader()
			l.watchDisk()
		case p := <-l.q.proposals:
			l.propose(p)
		case a := <-l.q.arrivals:
			if err := l.arrive(a); err != nil {
				return err
			}
		case do := <-l.q.tasks:
			if err := do(l); err != nil {
				return err
			}
		case <-l.disk.out.ready:
			if err := l.collect(); err != nil {
				return err
			}
		}
	}
}

// open campaigns in a new cluster that has no leader yet.
func (l *loop) open() {
	status := l.node.BasicStatus()
	if l.opening == 0 || status.Lead != raft.None {
		l.opening = 0
		return
	}
	l.opening--
	if status.RaftState == raft.StateCandidate {
		return // votes are on their way, and disks in it
	}
	_ = l.node.Campaign() // refused in the middle of a change of voters, of which there is none yet
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
		if done.installed != nil {
			l.installed(done.installed)
		}
		l.written(done)
		l.deliver(done.responses)
	}
	return nil
}

// deliver steps the messages to this node and sends the others. What they stand on is durable.
func (l *loop) deliver(messages []*raftpb.Message) {
	var remote []*raftpb.Message
	for _, m := range messages {
		if m.GetTo() != l.self {
			remote = append(remote, m)
			continue
		}
		// The only errors are about messages from unknown peers.
		_ = l.node.Step(m)
	}
	l.send(remote)
}

// advance carries out what raft wants until it wants nothing more.
func (l *loop) advance(ctx context.Context) error {
	for l.node.HasReady() {
		ready := l.node.Ready()
		if !raft.IsEmptySnap(ready.Snapshot) {
			l.restoring(ready.Snapshot.GetMetadata().GetIndex())
		}
		l.appended(ready.Entries)
		if ready.SoftState != nil || !raft.IsEmptyHardState(ready.HardState) {
			l.publishLeadership(ready.Entries)
		}
		// What goes to others was decided under the configuration before the entries below: it leaves before they are applied.
		l.send(slices.DeleteFunc(slices.Clone(ready.Messages), func(m *raftpb.Message) bool { return raft.IsLocalMsgTarget(m.GetTo()) }))
		for _, m := range ready.Messages {
			switch m.GetTo() {
			case raft.LocalAppendThread:
				l.disk.in.push(l.storageJob(m))
			case raft.LocalApplyThread:
				if err := l.apply(ctx, m.GetEntries()); err != nil {
					return err
				}
				l.deliver(m.GetResponses())
			}
		}
		if l.retires {
			l.retires = false
			if err := l.retire(ctx); err != nil {
				return err
			}
		}
	}
	l.offered = nil
	return nil
}

// restoring notes that raft has put a snapshot in the place of its log.
func (l *loop) restoring(index uint64) {
	l.installing = true
	l.last = index
	l.log.cache, l.log.cacheBytes = nil, 0
	l.q.end.Store(l.last + 1)
}

// storageJob is what raft wants to be durable, with the snapshot that goes with it.
func (l *loop) storageJob(m *raftpb.Message) job {
	l.handedOver(m)
	j := job{message: m}
	if !raft.IsEmptySnap(m.GetSnapshot()) {
		j.install = l.offered
	}
	return j
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

// publishLeadership publishes a change of term or leader; entries are those that raft has appended with it. It comes before the entries of
// that term are applied, so whoever reads an Image first and the leadership second never takes another leader's entry for its own.
func (l *loop) publishLeadership(entries []*raftpb.Entry) {
	status := l.node.BasicStatus()
	now, old := Leadership{Term: status.GetTerm(), Leader: l.nodeOf(status.Lead)}, l.q.Leadership()
	if !l.member() && l.told.term >= now.Term {
		now.Term, now.Leader = l.told.term, l.told.leader
	}
	if status.RaftState == raft.StateLeader {
		now.Leading = true
		now.TermStart = old.TermStart
		if !old.Leading || old.Term != now.Term {
			now.TermStart = firstOfTerm(entries, now.Term)
			l.ledSince, l.changeAt = time.Now(), 0
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

// watchLeader says, now and then, that nobody leads. A learner never campaigns, so raft would let it believe for ever in a leader that sends it
// nothing any more, because it was taken out again.
func (l *loop) watchLeader() {
	if lead := l.node.BasicStatus().Lead; lead != raft.None && lead != l.self && l.silentFor(lead) > aliveWithin {
		_ = l.node.ForgetLeader()
	}
	if l.q.Leadership().Leader != kafka.NoNode {
		if !l.leaderless.IsZero() {
			l.leaderless = time.Time{}
			l.q.waitFor("")
		}
		return
	}
	now := time.Now()
	if l.leaderless.IsZero() {
		l.leaderless, l.saidLeaderless = now, now
	}
	if now.Sub(l.leaderless) < leaderlessPatience {
		return
	}
	why := "a leader of the metadata quorum: its voters are " + describeVoters(l.image.Voters()) + l.unheard()
	l.q.waitFor(why)
	if now.Sub(l.saidLeaderless) >= sayEvery {
		l.saidLeaderless = now
		l.q.log.Warn("the metadata quorum has no leader", "for", now.Sub(l.leaderless).Round(time.Second).String(), "waiting", why)
	}
}

// unheard names the voters that are not heard.
func (l *loop) unheard() string {
	var names []string
	for _, v := range l.image.Voters() {
		if at, ok := l.heard[v.RaftID]; v.RaftID != l.self && (!ok || time.Since(at) > aliveWithin) {
			names = append(names, fmt.Sprintf("node %d", v.Node))
		}
	}
	if len(names) == 0 || !l.member() {
		return ""
	}
	return "; not heard: " + strings.Join(names, ", ")
}

func (l *loop) nodeOf(id uint64) kafka.NodeID {
	if node, ok := l.route(id); ok && id != raft.None {
		return node
	}
	return kafka.NoNode
}
