package controller

import (
	"context"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/metadata"
)

// LinkConfig is what a Link needs.
type LinkConfig struct {
	// Node is this node.
	Node kafka.NodeID
	// Controller decides while this node leads the quorum.
	Controller *Controller
}

// Link is a node's side of the control plane: changes of the metadata go through it to the active controller, wherever that is.
type Link struct {
	cfg LinkConfig
}

// NewLink returns a link.
func NewLink(c LinkConfig) *Link { return &Link{cfg: c} }

// Submit has an event decided by the active controller and returns its reply when everything the reply tells of is committed; a view at version
// shows it. Errors are those of Controller.Submit: ErrNotController and ErrBusy mean that nothing was decided, ErrUnknownOutcome that it may have been.
func (l *Link) Submit(ctx context.Context, ev metadata.Event) (reply any, version uint64, err error) {
	return l.cfg.Controller.Submit(ctx, ev)
}
