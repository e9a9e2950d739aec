package quorum

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/metadata"
)

// How a node with an empty directory, or with a table that has never been in force, comes to a cluster: it asks the configured controllers, again
// and again, and each answers what it holds. Nothing is pushed, so a node that crashes and comes back goes on where the others are.
//
//	empty, listed:      a cluster that runs somewhere is joined; a table that names this directory is stored; if all answered
//	                    and all are empty, the lowest node id mints cluster id and table.
//	empty, not listed:  a cluster that runs somewhere is joined.
//	holds a table:      Raft starts when every node of the table has confirmed that it holds it, or one already runs it.
//
// A node tells its directory id when it is durable, and a table when that is. Raft starts after meta.json names the cluster, so a directory
// without a cluster id has never voted.

// answers is what the other controllers said in one round.
type answers struct {
	got  []formingAnswer
	not  []string // those that did not answer, and why
	want int
}

// form brings the directory into a cluster that runs. It returns with ctx's error if that does not happen before ctx ends.
func (q *Quorum) form(ctx context.Context) error {
	said := time.Now()
	for wait := askFirst; ; wait = min(2*wait, askEvery) {
		round := q.ask(ctx)
		if err := ctx.Err(); err != nil {
			return err
		}
		why, err := q.settle(ctx, round)
		if err != nil {
			return err
		}
		if why == "" {
			q.waitFor("")
			return nil
		}
		q.waitFor(why)
		if time.Since(said) >= sayEvery {
			said = time.Now()
			q.log.Info("waiting for a cluster", "for", why)
		}
		if !pause(ctx, wait) {
			return ctx.Err()
		}
	}
}

// ask asks all other listed controllers at once.
func (q *Quorum) ask(ctx context.Context) answers {
	others := q.configured.others()
	out := answers{want: len(others)}
	got, errs := make([]formingAnswer, len(others)), make([]error, len(others))
	ctx, cancel := context.WithTimeout(ctx, askWaitMax)
	defer cancel()
	var all sync.WaitGroup
	for i, c := range others {
		all.Go(func() {
			errs[i] = q.peers.CallAddress(ctx, c.address, &formingAsk{Controllers: q.configured.text()}, &got[i])
			if errs[i] == nil && got[i].Node != c.node {
				errs[i] = fmt.Errorf("node %d is there", got[i].Node)
			}
		})
	}
	all.Wait()
	for i, c := range others {
		if errs[i] == nil {
			out.got = append(out.got, got[i])
		} else {
			out.not = append(out.not, fmt.Sprintf("node %d at %s (%s)", c.node, c.address, shortReason(errs[i])))
		}
	}
	return out
}

// shortReason is why a node did not answer, without the call it did not answer to.
func shortReason(err error) string {
	for inner := errors.Unwrap(err); inner != nil; inner = errors.Unwrap(err) {
		err = inner
	}
	return err.Error()
}

// answerForming says what this node holds.
func (q *Quorum) answerForming(*formingAsk) *formingAnswer {
	image := q.Image()
	return &formingAnswer{
		Node: q.node, Directory: q.start.store.Identity().DirectoryID, Controllers: q.configured.text(),
		Cluster: image.ClusterID(), Running: q.inForce(), Table: image.Voters(),
	}
}

// settle takes the next step that the answers allow, if any. why says what is waited for, "" when the directory is in a cluster that runs.
func (q *Quorum) settle(ctx context.Context, a answers) (why string, err error) {
	if q.Image().ClusterID() != "" {
		return q.confirm(a), nil
	}
	if why := differentClusters(a.got); why != "" {
		return why, nil
	}
	for _, one := range a.got {
		if one.Cluster != "" {
			return q.join(ctx, one, a)
		}
	}
	switch {
	case !q.configured.listed():
		return "a controller that knows a cluster" + a.missing(), nil
	case len(a.got) < a.want:
		return "all controllers, to form a cluster" + a.missing(), nil
	}
	for _, one := range a.got {
		if !slices.Equal(one.Controllers, q.configured.text()) {
			return fmt.Sprintf("one list of controllers: cluster.controllers is %s here and %s on node %d",
				strings.Join(q.configured.text(), ","), strings.Join(one.Controllers, ","), one.Node), nil
		}
	}
	if lowest := q.configured.list[0].node; lowest != q.node {
		return fmt.Sprintf("node %d to form a cluster", lowest), nil
	}
	if err := q.start.mint(q.configured, a.got); err != nil {
		return "", err
	}
	q.start.minted = true
	if err := q.hold(); err != nil {
		return "", err
	}
	return q.confirm(a), nil
}

// join stores the table that another node holds, if it is of this directory too; or joins its cluster as an observer, if that runs.
func (q *Quorum) join(ctx context.Context, one formingAnswer, a answers) (why string, err error) {
	r := q.start
	if v, ok := findVoter(one.Table, r.self); ok && v.Directory == r.store.Identity().DirectoryID && q.configured.describes(one.Table) {
		if err := r.storeTable(one.Cluster, one.Table, q.node); err != nil {
			return "", err
		}
		if err := q.hold(); err != nil {
			return "", err
		}
		return q.confirm(a), nil
	}
	if !one.Running {
		return fmt.Sprintf("cluster %s, which node %d holds: its table (%s) does not name this directory %s, and it does not run yet; if it was never in use, empty the data directories of its nodes",
			one.Cluster, one.Node, describeVoters(one.Table), r.store.Identity().DirectoryID.Hex()), nil
	}
	address := q.configured.addressOf(one.Node)
	snap, err := pullSnapshot(ctx, func(ctx context.Context, ask *pieceAsk, answer *piece) error {
		return q.peers.CallAddress(ctx, address, ask, answer)
	}, nil)
	if err != nil {
		return fmt.Sprintf("the metadata of node %d: %v", one.Node, err), nil
	}
	if snap.Image.ClusterID() != one.Cluster {
		return fmt.Sprintf("the metadata of cluster %s: node %d sent that of %s", one.Cluster, one.Node, snap.Image.ClusterID()), nil
	}
	if err := r.joinWith(snap, q.node); err != nil {
		return "", err
	}
	if err := q.hold(); err != nil {
		return "", err
	}
	q.log.Info("joined a cluster", "cluster", one.Cluster, "node", q.node, "directory", r.store.Identity().DirectoryID.Hex(), "from", one.Node)
	return "", nil
}

// hold publishes what the directory holds from now on.
func (q *Quorum) hold() error {
	if err := q.start.beginCopy(); err != nil {
		return fmt.Errorf("begin the copy of the metadata log: %w", err)
	}
	id := q.start.snapshot.snapshotID
	q.position.Store(&position{index: id.Index, term: id.Term})
	q.newest.Store(&id)
	q.end.Store(uint64(q.start.log.End()))
	q.image.store(q.start.snapshot.Image)
	return nil
}

// confirm says which nodes of the table have not confirmed it; "" when Raft may start.
func (q *Quorum) confirm(a answers) (why string) {
	image := q.Image()
	confirmed := map[kafka.NodeID]bool{q.node: true}
	for _, one := range a.got {
		if one.Cluster != image.ClusterID() {
			continue
		}
		if one.Running {
			return ""
		}
		confirmed[one.Node] = slices.ContainsFunc(image.Voters(), func(v metadata.Voter) bool { return v.Directory == one.Directory })
	}
	var missing []string
	for _, v := range image.Voters() {
		if !confirmed[v.Node] {
			missing = append(missing, fmt.Sprintf("node %d (directory %s)", v.Node, v.Directory.Hex()))
		}
	}
	if len(missing) == 0 {
		return ""
	}
	return fmt.Sprintf("cluster %s to be confirmed by %s%s", image.ClusterID(), strings.Join(missing, ", "), a.missing())
}

// differentClusters names answers that do not agree; nobody can say which one is meant.
func differentClusters(got []formingAnswer) string {
	for i := range got {
		for j := range i {
			if a, b := got[j], got[i]; a.Cluster != "" && b.Cluster != "" && a.Cluster != b.Cluster {
				return fmt.Sprintf("one cluster: node %d belongs to %s and node %d to %s", a.Node, a.Cluster, b.Node, b.Cluster)
			}
		}
	}
	return ""
}

// missing names those that did not answer.
func (a answers) missing() string {
	if len(a.not) == 0 {
		return ""
	}
	return "; no answer from " + strings.Join(a.not, ", ")
}
