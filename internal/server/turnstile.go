package server

import "runtime"

// turnstile bounds how many large requests are worked on at a time: bytes taken off the socket, batches checked and written. Hundreds of
// connections that publish at once would each be a goroutine that is ready to run, and everything else on the node, a metadata request
// among them, would wait in the scheduler behind all of them; and those of one partition would queue at its lock, which is held while the
// kernel copies a batch. More at a time than there are cores, and some that the disk holds up, would not end sooner. Who waits here has
// its bytes still in the socket, so the clients wait too.
//
// A place is never kept while waiting for a peer: slow or hostile senders would hold all of them. Waiting is first come, first served and
// a connection has one request here at most, so connections get places in turn.
type turnstile chan struct{}

func newTurnstile() turnstile { return make(turnstile, placesPerCore*runtime.GOMAXPROCS(0)) }

// enter waits for a place for x; false means that the connection is gone. Small requests need none.
func (t turnstile) enter(x *exchange) bool {
	if !x.large || x.placed {
		return true
	}
	select {
	case t <- struct{}{}:
		x.placed = true
		return true
	default:
	}
	x.lease.pause(true) // it makes no progress, but the peer is not slow
	defer x.lease.pause(false)
	select {
	case t <- struct{}{}:
		x.placed = true
		return true
	case <-x.lease.gone:
		return false
	}
}

// leave gives x's place back, if it has one.
func (t turnstile) leave(x *exchange) {
	if x.placed {
		x.placed = false
		<-t
	}
}
