package controller

import "time"

const (
	// inboxMax bounds the events that wait for a decision. Above it Submit answers ErrBusy: an admin client that floods is
	// told so at once. A round takes some 10 us an event, so this is some 10 ms of work.
	inboxMax = 1024
	// roundEventsMax bounds the events of one round, so that a leadership change is noticed in between.
	roundEventsMax = 256
	// parkedMax bounds the answers that wait for commits. Above it no round begins: the disk is slower than the callers.
	parkedMax = 4096
	// inFlightBytesMax bounds the records that are proposed and not yet committed. It is below raft's own bound plus one
	// round, so raft does not refuse.
	inFlightBytesMax = 16 << 20
	// expireEvery is the time between looks at the trash: a topic is purged at most that late. A look costs nothing while
	// nothing has expired.
	expireEvery = time.Second
)
