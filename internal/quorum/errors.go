package quorum

import (
	"errors"
	"fmt"
)

var (
	// ErrNotLeader means that this node does not lead in the term the proposal was decided in. Nothing was appended.
	ErrNotLeader = errors.New("not the leader in this term")
	// ErrMoved means that the log has grown since the proposal was decided: its entry would get another index. Nothing was
	// appended.
	ErrMoved = errors.New("the log has grown since the decision")
	// ErrBusy means that too many bytes wait to be committed. Nothing was appended; it may be retried.
	ErrBusy = errors.New("too many uncommitted metadata records")
	// ErrTooLarge means that the records do not fit into one entry. Nothing was appended; the decision must be split.
	ErrTooLarge = errors.New("metadata entry is too large")
	// ErrStopped means that the quorum does not run any more. Nothing was appended.
	ErrStopped = errors.New("the quorum has stopped")
	// ErrSeveralControllers means that cluster.controllers or the table of voters names other nodes, but this node has no way to reach them.
	ErrSeveralControllers = errors.New("other controllers need a cluster listener")
	// ErrControllers means that cluster.controllers lists an even number or too many.
	ErrControllers = errors.New("the number of controllers must be 1, 3 or 5")
	// ErrNotAVoter means that the directory belongs to a cluster in whose table of voters it is not, and that no other controller is
	// configured that it could follow. It must not vote: its disk was copied, replaced or restored.
	ErrNotAVoter = errors.New("this data directory is not in the table of voters")
	// ErrIdentity means that the metadata and meta.json belong to different clusters or nodes.
	ErrIdentity = errors.New("the metadata belongs to another cluster or node")
	// ErrApply means that a committed record could not be applied: a defect, or a newer release wrote it. The node that
	// reports it stops following the metadata and writes no snapshot of what it has.
	ErrApply = errors.New("a committed metadata record cannot be applied")
	// ErrRestored means that this directory has lost entries that it had acknowledged: an earlier state of its disk was put back. It must
	// be emptied; then it joins anew.
	ErrRestored = errors.New("this data directory was restored to an earlier state")
	// ErrMembership means that a change of the voters is not made, for the reason given.
	ErrMembership = errors.New("the voters are not changed")
	// ErrNoLeader means that no leader has completed the request; what it wants may still come about.
	ErrNoLeader = errors.New("no leader of the metadata quorum has completed the request")

	errNoCluster  = errors.New("this node is in no cluster yet")
	errNoSnapshot = errors.New("there is no snapshot yet")
	errPiece      = errors.New("not a piece of the snapshot asked for")
	errAltered    = errors.New("the bytes are not what was written")
	errNotOffered = errors.New("the snapshot is not wanted here")
	errNoLeader   = errors.New("the node knows no leader")
)

// CorruptError says that a file of the metadata directory is not what was written, and that it cannot be rebuilt without
// guessing: the only snapshot, a log whose tail may have held acknowledged changes, the vote of one voter among several. The node
// refuses to start and names the file.
type CorruptError struct {
	File string // path
	Why  string
}

func (e *CorruptError) Error() string { return fmt.Sprintf("%s: %s", e.File, e.Why) }
