package replica

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/peer"
)

// fetchers are the leaders that this node follows, by node.
type fetchers struct {
	mu sync.Mutex
	by map[kafka.NodeID]*fetcher
}

// fetcher follows one leader, for all partitions that it leads and this node holds a copy of: one goroutine fetches, another one reports what
// is stored, also while a fetch is parked at the leader. Trouble with one partition is that partition's: it is left out of the fetches, and
// tried again after a pause that grows.
type fetcher struct {
	r      *replication
	leader kafka.NodeID
	wake   chan struct{} // something is due
	report chan struct{} // something is dirty, or the leader is to be poked

	mu struct {
		sync.Mutex
		pulls map[kafka.TopicPartition]*pull
		// due are to be named in the next fetch, dirty in the next report; forget are to be taken out of the session.
		due, dirty []*pull
		forget     []kafka.TopicPartition
		// fetching: a fetch is under way in that session, and what becomes due meanwhile pokes the leader, once.
		fetching bool
		poke     bool
		session  uint64
	}

	// round and the rest belong to the fetching goroutine. Round 0 begins a session.
	round   uint32
	request fetchRequest
	reply   fetchAnswer
}

// pull is one partition that this node follows, in one leader epoch.
type pull struct {
	p     *partition
	from  *fetcher
	epoch kafka.LeaderEpoch

	// stored and start are what the leader was last told. Guarded by the partition's lock.
	stored, start kafka.Offset

	// Guarded by the fetcher's lock. dead: no longer followed in this epoch.
	isDue, isDirty, dead bool
	// failures in a row. The fetching goroutine's.
	failures int
}

// follow begins to follow a partition. Its lock is held. It returns nil when the host is stopping.
func (r *replication) follow(p *partition, leader kafka.NodeID, epoch kafka.LeaderEpoch) *pull {
	f := r.fetcher(leader)
	if f == nil {
		return nil
	}
	pl := &pull{p: p, from: f, epoch: epoch, stored: kafka.NoOffset, start: kafka.NoOffset}
	f.mu.Lock()
	if old := f.mu.pulls[p.tp]; old != nil {
		old.dead = true
	}
	f.mu.pulls[p.tp] = pl
	f.mu.Unlock()
	f.due(pl)
	return pl
}

// fetcher returns the one that follows a leader, or nil when the host is stopping.
func (r *replication) fetcher(leader kafka.NodeID) *fetcher {
	r.fetchers.mu.Lock()
	defer r.fetchers.mu.Unlock()
	if r.life.Err() != nil || r.peers == nil {
		return nil
	}
	f := r.fetchers.by[leader]
	if f == nil {
		f = &fetcher{r: r, leader: leader, wake: make(chan struct{}, 1), report: make(chan struct{}, 1)}
		f.mu.pulls = map[kafka.TopicPartition]*pull{}
		r.fetchers.by[leader] = f
		r.running.Go(func() { f.run(r.life) })
		r.running.Go(func() { f.reports(r.life) })
	}
	return f
}

// end stops following. The partition's lock is held.
func (pl *pull) end() {
	f := pl.from
	f.mu.Lock()
	defer f.mu.Unlock()
	if pl.dead = true; f.mu.pulls[pl.p.tp] == pl {
		delete(f.mu.pulls, pl.p.tp)
		f.mu.forget = append(f.mu.forget, pl.p.tp)
	}
}

// due has a partition named in the next fetch, and the next fetch begin. A partition's lock may be held.
func (f *fetcher) due(pl *pull) {
	f.mu.Lock()
	poke := false
	if !pl.dead && !pl.isDue {
		pl.isDue = true
		f.mu.due = append(f.mu.due, pl)
		poke = f.mu.fetching && !f.mu.poke
		f.mu.poke = f.mu.poke || poke
	}
	f.mu.Unlock()
	wake(f.wake)
	if poke {
		wake(f.report)
	}
}

// dirty has the stored end of a partition reported. Its lock is held.
func (f *fetcher) dirty(pl *pull) {
	f.mu.Lock()
	tell := !pl.dead && !pl.isDirty
	if tell {
		pl.isDirty = true
		f.mu.dirty = append(f.mu.dirty, pl)
	}
	f.mu.Unlock()
	if tell {
		wake(f.report)
	}
}

// run fetches until ctx ends.
func (f *fetcher) run(ctx context.Context) {
	pause := followPauseMin
	for ctx.Err() == nil {
		if !f.compose() {
			select {
			case <-ctx.Done():
			case <-f.wake:
			}
			continue
		}
		err := f.fetch(ctx)
		if err == nil {
			pause = followPauseMin
			continue
		}
		f.round = 0 // whatever the leader has heard, it hears all again
		f.r.log.Debug("fetch from a leader failed", "leader", f.leader, "error", err, "pause", pause)
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
		pause = min(2*pause, followPauseMax)
	}
}

var (
	errSession = errors.New("the leader does not know the fetch session")
	errBroker  = errors.New("the leader knows a newer registration of this node")
)

// fetch sends the composed request and takes in the answer.
func (f *fetcher) fetch(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, f.request.wait+followAnswerMax)
	defer cancel()
	f.reply.parts = f.reply.parts[:0]
	err := f.r.peers.Call(ctx, f.leader, &f.request, &f.reply)
	f.mu.Lock()
	f.mu.fetching = false
	f.mu.Unlock()
	switch {
	case err != nil:
		return err
	case f.reply.fault == faultSession:
		return errSession
	case f.reply.fault != faultNone:
		return errBroker
	}
	f.round++
	f.takeAll()
	return nil
}

// takeAll brings the answer to its partitions. Logs that are to be cut come last, many at once: each waits for the disk, and after another node
// led all partitions of this one, each of them may.
func (f *fetcher) takeAll() {
	files := fileRoom{dir: f.r.dir}
	var cuts []*answerEntry
	for i := range f.reply.parts {
		if a := &f.reply.parts[i]; a.code == codeDiverges || a.code == codeTooOld {
			cuts = append(cuts, a)
		} else {
			f.take(a, &files)
		}
	}
	var next atomic.Int64
	var running sync.WaitGroup
	for range min(len(cuts), cutsMax) {
		running.Go(func() {
			files := fileRoom{dir: f.r.dir}
			for i := next.Add(1) - 1; i < int64(len(cuts)); i = next.Add(1) - 1 {
				f.take(cuts[i], &files)
			}
		})
	}
	running.Wait()
}

// compose makes the next request. It reports false when nothing is followed.
func (f *fetcher) compose() bool {
	pulls, forget, any := f.begin()
	if !any {
		f.round = 0
		return false
	}
	q := &f.request
	q.broker, q.round = kafka.BrokerEpoch(f.r.broker.Load()), f.round
	q.wait, q.maxBytes, q.partitionBytes, q.catchUpBytes = followWait, followBytes, followPartitionBytes, catchUpBytes
	if f.round == 0 {
		q.wait = 0 // a poke for a session that has not begun yet would be lost
	}
	q.forget, q.parts = append(q.forget[:0], forget...), q.parts[:0]
	for _, pl := range pulls {
		var e fetchEntry
		if pl.p.stand(pl, &e) {
			q.parts = append(q.parts, e)
		}
	}
	return true
}

// begin takes what the next request names: everything, when it begins a session. any says whether anything is followed.
func (f *fetcher) begin() (pulls []*pull, forget []kafka.TopicPartition, any bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	pulls, forget = f.mu.due, f.mu.forget
	f.mu.due, f.mu.forget = nil, nil
	for _, pl := range pulls {
		pl.isDue = false
	}
	if f.round == 0 {
		f.mu.session = f.r.sequence.Add(1)
		pulls, forget = nil, nil
		for _, pl := range f.mu.pulls {
			pulls = append(pulls, pl)
		}
	}
	if len(pulls) > entriesMax {
		for _, pl := range pulls[entriesMax:] {
			pl.isDue = true
			f.mu.due = append(f.mu.due, pl)
		}
		pulls = pulls[:entriesMax]
	}
	f.request.session = f.mu.session
	any = len(f.mu.pulls) > 0
	f.mu.fetching, f.mu.poke = any, false
	return pulls, forget, any
}

// take brings the answer for one partition to it. While too many files are open it waits before it brings records, and fetches no more
// meanwhile.
func (f *fetcher) take(a *answerEntry, files *fileRoom) {
	f.mu.Lock()
	pl := f.mu.pulls[a.tp]
	f.mu.Unlock()
	if pl == nil || pl.epoch != a.epoch {
		return // not followed any more, or in another epoch
	}
	var full error
	if len(a.records) > 0 {
		full = files.await()
	}
	switch pl.p.absorb(pl, a, full) {
	case goOn:
		pl.failures = 0
		f.due(pl)
	case rest:
		pl.failures = 0
	case retry:
		pause := min(retryPauseMin<<min(pl.failures, 16), retryPauseMax)
		pl.failures++
		time.AfterFunc(pause, func() { f.due(pl) })
	}
}

// reports tells the leader what is stored, until ctx ends. One message tells of everything that a group sync has stored meanwhile.
func (f *fetcher) reports(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-f.report:
		}
		for f.reportOnce(ctx) {
		}
	}
}

// reportOnce sends one message and says whether there is more.
func (f *fetcher) reportOnce(ctx context.Context) (more bool) {
	f.mu.Lock()
	n := min(len(f.mu.dirty), entriesMax)
	pulls := f.mu.dirty[:n:n]
	f.mu.dirty = f.mu.dirty[n:]
	for _, pl := range pulls {
		pl.isDirty = false
	}
	m := &progressReport{broker: kafka.BrokerEpoch(f.r.broker.Load())}
	if f.mu.fetching && f.mu.poke {
		m.session = f.mu.session
	}
	more = len(f.mu.dirty) > 0
	f.mu.Unlock()
	for _, pl := range pulls {
		var st standing
		if pl.p.report(pl, &st) {
			m.parts = append(m.parts, st)
		}
	}
	if len(m.parts) == 0 && m.session == 0 {
		return more
	}
	if err := f.r.peers.Send(f.leader, m); err == nil {
		return more
	} else if !errors.Is(err, peer.ErrBusy) {
		return more // the connection is gone: the next session tells all
	}
	// Too much waits to be sent: the same again, after a moment.
	for _, pl := range pulls {
		pl.p.unreport(pl)
	}
	select {
	case <-ctx.Done():
		return false
	case <-time.After(followPauseMin):
		return true
	}
}
