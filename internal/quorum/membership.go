package quorum

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"
	"go.etcd.io/raft/v3/tracker"
	"google.golang.org/protobuf/proto"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/metadata"
	"strandline.dev/internal/peer"
)

// Changes of the voters are made by the leader, one at a time, each as entries that carry the table of voters with them:
//
//	add       learner, with its row; when it has caught up, a joint change makes it a voter
//	replace   the same, and the joint change takes the old directory of the node out
//	remove    a joint change
//
// A joint configuration is left by an entry of its own, which also takes the rows of those that are out from the table. Whoever leads next goes on:
// what is to be done next follows from the configuration, and who wants something asks again.

// wanted is the change that is under way.
type wanted struct {
	membership
	// match is how far the newcomer had come at since, the last time it had moved.
	match uint64
	since time.Time
	// done are told when it is complete, or why it is not made.
	done []chan<- membershipDone
}

// members is the loop's part in changes of the voters.
type members struct {
	want *wanted
	// changeAt is the index of the last change that was proposed here. Nothing is proposed before it is applied.
	changeAt uint64
	// ledSince is when this node began to lead.
	ledSince time.Time
}

// AddVoter makes the data directory of a registered node a voter of the metadata quorum and returns when it is one: it follows as a learner until
// it has caught up. It may be called on any node. Errors: ErrMembership with the reason, ErrNoLeader when
// ctx has ended, ErrStopped.
func (q *Quorum) AddVoter(ctx context.Context, node kafka.NodeID) error {
	b := q.Image().Broker(node)
	if b == nil {
		return fmt.Errorf("%w: node %d is not registered", ErrMembership, node)
	}
	id, err := raftID(b.Directory)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrMembership, err)
	}
	return q.changeVoters(ctx, addVoter, metadata.Voter{RaftID: id, Node: node, Directory: b.Directory, Address: b.ClusterAddress})
}

// RemoveVoter takes a node out of the metadata quorum and returns when it is out. It may be called on any node. Errors as AddVoter.
func (q *Quorum) RemoveVoter(ctx context.Context, node kafka.NodeID) error {
	for _, v := range q.Image().Voters() {
		if v.Node == node {
			return q.changeVoters(ctx, removeVoter, v)
		}
	}
	return fmt.Errorf("%w: node %d is no voter", ErrMembership, node)
}

// changeVoters asks the leader for a change until there is an answer. A change that has been made is made again without effect.
func (q *Quorum) changeVoters(ctx context.Context, kind changeKind, v metadata.Voter) error {
	for {
		ask := &membership{Change: kind, Voter: v}
		led := q.LeadershipChanged()
		leads := q.Leadership()
		var done membershipDone
		err := error(nil)
		switch {
		case leads.Leading:
			done, err = q.changeHere(ctx, *ask)
		case leads.Leader != kafka.NoNode && q.peers != nil:
			err = q.peers.Call(ctx, leads.Leader, ask, &done)
		default:
			done.NotLeader = true
		}
		switch {
		case ctx.Err() != nil:
			return fmt.Errorf("%w: %w", ErrNoLeader, ctx.Err())
		case errors.Is(err, ErrStopped):
			return err
		case err == nil && !done.NotLeader && done.Refusal != "":
			return fmt.Errorf("%w: %s", ErrMembership, done.Refusal)
		case err == nil && !done.NotLeader:
			return nil
		}
		wait := time.NewTimer(changeRetry)
		select {
		case <-led:
		case <-wait.C:
		case <-ctx.Done():
		case <-q.stopped:
			return ErrStopped
		}
		wait.Stop()
	}
}

// answerMembership makes a change for another node.
func (q *Quorum) answerMembership(ctx context.Context, from peer.Identity, m *membership) (peer.Message, error) {
	if m.Change == replaceVoter && (m.Voter.Node != from.Node || m.Voter.Directory != from.Directory) {
		return &membershipDone{Refusal: "a node asks for its own place only"}, nil
	}
	done, err := q.changeHere(ctx, *m)
	return &done, err
}

// changeHere makes a change if this node leads.
func (q *Quorum) changeHere(ctx context.Context, m membership) (membershipDone, error) {
	if !q.inForce() {
		return membershipDone{NotLeader: true}, nil
	}
	done := make(chan membershipDone, 1)
	if err := q.onLoop(ctx, func(l *loop) error { l.begin(m, done); return nil }); err != nil {
		return membershipDone{}, err
	}
	select {
	case d := <-done:
		return d, nil
	case <-q.stopped:
		return membershipDone{}, ErrStopped
	case <-ctx.Done():
		return membershipDone{}, ctx.Err()
	}
}

// begin takes a wanted change, or answers at once.
func (l *loop) begin(m membership, done chan<- membershipDone) {
	if !l.q.Leadership().Leading {
		done <- membershipDone{NotLeader: true}
		return
	}
	if l.want != nil {
		if l.want.Change != m.Change || l.want.Voter != m.Voter || len(l.want.done) >= changeWaitersMax {
			done <- membershipDone{Refusal: fmt.Sprintf("another change of the voters is under way, of node %d", l.want.Voter.Node)}
			return
		}
		l.want.done = append(l.want.done, done)
		return
	}
	if why := l.refuses(m); why != "" {
		done <- membershipDone{Refusal: why}
		return
	}
	l.want = &wanted{membership: m, since: time.Now(), done: []chan<- membershipDone{done}}
	l.steer()
}

// refuses says why a change is not begun, "" when it may be.
func (l *loop) refuses(m membership) string {
	voters := l.conf.GetVoters()
	isVoter := slices.Contains(voters, m.Voter.RaftID)
	id, err := raftID(m.Voter.Directory)
	switch {
	case err != nil || id != m.Voter.RaftID:
		return "the row is not that of a directory"
	case m.Change == removeVoter:
		if isVoter {
			return l.refusesRemoval(m.Voter.RaftID)
		}
		return ""
	case isVoter:
		return ""
	case m.Change == addVoter && len(voters) >= controllersMax:
		return fmt.Sprintf("there are %d controllers, which is the limit", len(voters))
	case m.Change == addVoter:
		if old, ok := l.predecessor(m.Voter); ok {
			return fmt.Sprintf("node %d is a voter with directory %s", old.Node, old.Directory.Hex())
		}
		return ""
	}
	old, ok := l.predecessor(m.Voter)
	if !ok {
		return fmt.Sprintf("node %d is no voter; `cluster add-controller` makes it one", m.Voter.Node)
	}
	if silent := l.silentFor(old.RaftID); silent < replaceSilence {
		return fmt.Sprintf("directory %s of node %d was heard %.1f s ago, or this node leads for no longer; it may be replaced after %s of silence",
			old.Directory.Hex(), old.Node, silent.Seconds(), replaceSilence)
	}
	return ""
}

// refusesRemoval says why a voter may not be taken out: those that remain must be able to decide.
func (l *loop) refusesRemoval(id uint64) string {
	remain, alive := 0, 0
	for _, v := range l.conf.GetVoters() {
		if v == id {
			continue
		}
		remain++
		if v == l.self || l.silentFor(v) < aliveWithin {
			alive++
		}
	}
	switch {
	case remain == 0:
		return "it is the last voter"
	case alive <= remain/2:
		return fmt.Sprintf("of the %d voters that would remain only %d are heard", remain, alive)
	}
	return ""
}

// predecessor is the voter of the same node that has another directory.
func (l *loop) predecessor(v metadata.Voter) (metadata.Voter, bool) {
	for _, row := range l.image.Voters() {
		if row.Node == v.Node && row.RaftID != v.RaftID && slices.Contains(l.conf.GetVoters(), row.RaftID) {
			return row, true
		}
	}
	return metadata.Voter{}, false
}

// steer does the next step of what is to be done about the voters. It is called each tick and after each change.
func (l *loop) steer() {
	leads := l.q.Leadership()
	if !leads.Leading {
		l.giveUp()
		return
	}
	if l.image.Version() < max(leads.TermStart, l.changeAt) {
		return
	}
	switch {
	case len(l.conf.GetVotersOutgoing()) > 0:
		l.proposeChange(&raftpb.ConfChangeV2{}, l.tableOf(slices.Concat(l.conf.GetVoters(), l.conf.GetLearners(), l.conf.GetLearnersNext())))
	case l.want == nil:
		l.dropLearners()
	case l.want.Change == removeVoter:
		l.stepRemoval()
	default:
		l.stepAddition()
	}
}

// giveUp ends what was wanted of this node when it leads no more. A leader that has taken itself out has done what was wanted.
func (l *loop) giveUp() {
	if l.want == nil {
		return
	}
	l.finish(membershipDone{NotLeader: l.want.Change != removeVoter || l.want.Voter.RaftID != l.self || l.member()})
}

func (l *loop) finish(d membershipDone) {
	for _, c := range l.want.done {
		c <- d // each holds one
	}
	l.want = nil
}

func (l *loop) stepRemoval() {
	id := l.want.Voter.RaftID
	switch {
	case slices.Contains(l.conf.GetLearners(), id):
		l.proposeChange(change(raftpb.ConfChangeRemoveNode, id), l.tableWithout(id))
	case slices.Contains(l.conf.GetVoters(), id):
		if why := l.refusesRemoval(id); why != "" {
			l.finish(membershipDone{Refusal: why})
			return
		}
		l.proposeChange(joint(change(raftpb.ConfChangeRemoveNode, id)), l.image.Voters())
	default:
		l.finish(membershipDone{})
	}
}

func (l *loop) stepAddition() {
	w := l.want
	id := w.Voter.RaftID
	old, hasOld := l.predecessor(w.Voter)
	switch {
	case slices.Contains(l.conf.GetVoters(), id):
		l.finish(membershipDone{})
	case !slices.Contains(l.conf.GetLearners(), id):
		l.proposeChange(change(raftpb.ConfChangeAddLearnerNode, id), append(l.tableWithout(id), w.Voter))
	case l.caughtUp(id):
		c := change(raftpb.ConfChangeAddNode, id)
		if hasOld {
			c.Changes = append(c.Changes, change(raftpb.ConfChangeRemoveNode, old.RaftID).Changes...)
		}
		l.proposeChange(joint(c), l.image.Voters())
	case time.Since(w.since) > learnerPatience:
		l.finish(membershipDone{Refusal: fmt.Sprintf("node %d does not catch up", w.Voter.Node)})
	}
}

// caughtUp says whether a learner is so near to the end that it counts as a voter at once.
func (l *loop) caughtUp(id uint64) (ok bool) {
	l.node.WithProgress(func(of uint64, _ raft.ProgressType, p tracker.Progress) {
		if of != id {
			return
		}
		if p.Match > l.want.match {
			l.want.match, l.want.since = p.Match, time.Now()
		}
		ok = p.State == tracker.StateReplicate && p.Match+caughtUpEntries >= l.image.Version()
	})
	return ok
}

// dropLearners takes out learners that nobody wants any more and that are silent: a former leader had begun to take them up.
func (l *loop) dropLearners() {
	for _, id := range l.conf.GetLearners() {
		if l.silentFor(id) > learnerPatience {
			l.proposeChange(change(raftpb.ConfChangeRemoveNode, id), l.tableWithout(id))
			return
		}
	}
}

// proposeChange proposes a change with the table that goes with it.
func (l *loop) proposeChange(c *raftpb.ConfChangeV2, table []metadata.Voter) {
	if len(table) > votersMax {
		return
	}
	c.Context = metadata.EncodeRecords(nil, []metadata.Record{metadata.ClusterRecord{ClusterID: l.image.ClusterID(), Voters: table}})
	if err := l.node.ProposeConfChange(c); err != nil {
		return // too much is on its way; the next tick tries again
	}
	l.changeAt = l.last + 1
	l.q.log.Info("changing the voters of the metadata quorum", "change", describeChange(c), "table", describeVoters(table), "index", l.changeAt)
}

func describeChange(c *raftpb.ConfChangeV2) string {
	if len(c.GetChanges()) == 0 {
		return "leave the joint configuration"
	}
	text := ""
	for _, one := range c.GetChanges() {
		text += fmt.Sprintf("%s %x ", one.GetType(), one.GetNodeId())
	}
	return text[:len(text)-1]
}

func change(t raftpb.ConfChangeType, id uint64) *raftpb.ConfChangeV2 {
	return &raftpb.ConfChangeV2{Changes: []*raftpb.ConfChangeSingle{{Type: t.Enum(), NodeId: proto.Uint64(id)}}}
}

// joint makes a change go through a joint configuration that is left by an entry of its own.
func joint(c *raftpb.ConfChangeV2) *raftpb.ConfChangeV2 {
	c.Transition = raftpb.ConfChangeTransitionJointExplicit.Enum()
	return c
}

// tableOf is the rows of some ids.
func (l *loop) tableOf(ids []uint64) []metadata.Voter {
	return slices.DeleteFunc(slices.Clone(l.image.Voters()), func(v metadata.Voter) bool { return !slices.Contains(ids, v.RaftID) })
}

func (l *loop) tableWithout(id uint64) []metadata.Voter {
	return slices.DeleteFunc(slices.Clone(l.image.Voters()), func(v metadata.Voter) bool { return v.RaftID == id })
}

// seekPlace asks for the place of this node's former directory while this node is listed as a controller, is none, and the table has another directory
// for it: its disk was replaced or emptied.
func (q *Quorum) seekPlace(ctx context.Context) {
	if !q.configured.listed() || len(q.configured.list) == 0 {
		return
	}
	var said time.Time
	for pause(ctx, seekEvery) {
		image := q.Image()
		lost := slices.ContainsFunc(image.Voters(), func(v metadata.Voter) bool { return v.Node == q.node && v.RaftID != q.start.self })
		if q.isMember.Load() && !lost || !lost {
			q.placeless.Store(nil)
			continue
		}
		self := metadata.Voter{RaftID: q.start.self, Node: q.node, Directory: q.start.store.Identity().DirectoryID, Address: q.configured.own()}
		one, cancel := context.WithTimeout(ctx, seekWaitMax)
		err := q.changeVoters(one, replaceVoter, self)
		cancel()
		if err == nil || ctx.Err() != nil {
			continue
		}
		why := fmt.Sprintf("the place of node %d in the metadata quorum: %v", q.node, err)
		q.placeless.Store(&why)
		if time.Since(said) >= sayEvery {
			said = time.Now()
			q.log.Info("waiting to become a controller", "for", why)
		}
	}
}
