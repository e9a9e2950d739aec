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

	// sessionTimeoutDefault is how long a broker may be silent before it is fenced.
	sessionTimeoutDefault = 2 * time.Second
	// checkEvery is the time between looks at the sessions: a silent broker is fenced at most that late. A look that comes later by more than
	// checkLateMax means that this process did not run.
	checkEvery   = 100 * time.Millisecond
	checkLateMax = 300 * time.Millisecond
	// takeOverMax bounds the dialling before a reign: a node that answers neither yes nor no has a session to lose.
	takeOverMax = 300 * time.Millisecond
	// goneMax bounds the broken connections that wait to be looked at. A cluster has fewer nodes.
	goneMax = 256
	// tendEvery is the time between looks at what brokers that drain and internal topics need.
	tendEvery = time.Second
	// drainMovesMax bounds the partitions that are on their way off brokers that drain, raiseMovesMax those of one internal topic: each is copied
	// whole, beside the publishing.
	drainMovesMax = 8
	raiseMovesMax = 50
	// balanceEvery is the time between rounds that give leaderships back to preferred leaders, balanceMax bounds one round: every partition that
	// changes its leader pauses for its clients.
	balanceEvery = 10 * time.Second
	balanceMax   = 64

	// heartbeatEvery is the time between a broker's heartbeats, heartbeatMax bounds the wait for one's answer.
	heartbeatEvery = 150 * time.Millisecond
	heartbeatMax   = 500 * time.Millisecond
	// retryMin and retryMax bound the pause before an event that was not decided is sent again.
	retryMin = 20 * time.Millisecond
	retryMax = 250 * time.Millisecond
	// attemptMax bounds one attempt to have an event decided that may be repeated.
	attemptMax = 2 * time.Second
	// answerGrace is how long a node that is not the active controller any more may take to answer what must not be sent a second time.
	answerGrace = 500 * time.Millisecond
	// endsMax bounds the partitions of one question for what replicas hold, endsWaitMax the wait for the answers.
	endsMax     = 10_000
	endsWaitMax = 5 * time.Second
	// recoverEvery is the time between looks, under `dev`, at partitions that have lost every candidate.
	recoverEvery = 2 * time.Second
	// waitLineEvery is the time between log lines of a node that waits for its registration.
	waitLineEvery = 5 * time.Second
)

// probePauses are the pauses before each dial to a broker whose connection has broken.
var probePauses = [...]time.Duration{0, 10 * time.Millisecond, 40 * time.Millisecond, 150 * time.Millisecond}
