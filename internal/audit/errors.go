package audit

import "errors"

// ErrUnavailable: the audit trail does not take entries at present, so nothing may be changed; nothing was.
var ErrUnavailable = errors.New("the audit trail is not available, so nothing was changed: see why in the broker's log, and try again")

// ErrBroken: an entry of a chain is missing, changed or unreadable.
var ErrBroken = errors.New("the audit chain is broken")

// ErrTooMany: more entries match than are held at once.
var ErrTooMany = errors.New("too many entries of the audit trail match")

// errElsewhere: this node does not lead the chain's partition.
var errElsewhere = errors.New("this node does not lead the chain")
