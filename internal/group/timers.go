package group

import "time"

// timerKind says what a timer does when it is due.
type timerKind uint8

const (
	sessionTimer timerKind = iota + 1 // a member fell silent
	pendingTimer                      // a client did not join with the id it was given
	joinTimer                         // the join phase of a group takes too long, or its initial delay is over
	syncTimer                         // members of a generation did not ask for their assignment
	expiryTimer                       // offsets of a group may have reached their retention
	purgeTimer                        // more offsets of purged topics are to be removed
	growTimer                         // more groups are to get offsets for new partitions

	consumerSessionTimer // a member of a consumer group fell silent
	consumerRevokeTimer  // it does not give up its partitions
)

// isOfConsumers says whether what the timer does is a change of a consumer group.
func (k timerKind) isOfConsumers() bool { return k == consumerSessionTimer || k == consumerRevokeTimer }

// timer belongs to the thing it watches, and is disarmed with it: a timer of a removed member never acts (C114).
type timer struct {
	at     time.Time
	order  uint64 // of arming: ties are broken by it, so that a replay of events gives the same effects
	slot   int    // place in the heap, counted from 1; 0 when not armed
	kind   timerKind
	group  *group
	member *member
	id     string // of a member that is pending, or in a consumer group
}

func (t *timer) isArmed() bool { return t.slot != 0 }

func (t *timer) before(u *timer) bool {
	if t.at.Equal(u.at) {
		return t.order < u.order
	}
	return t.at.Before(u.at)
}

// timers is a binary heap of the armed timers: O(log n) to arm and disarm, O(1) to see the first.
type timers struct {
	heap  []*timer
	armed uint64
}

func (h *timers) first() *timer {
	if len(h.heap) == 0 {
		return nil
	}
	return h.heap[0]
}

// arm sets or moves a timer.
func (h *timers) arm(t *timer, at time.Time) {
	h.armed++
	t.at, t.order = at, h.armed
	if !t.isArmed() {
		h.heap = append(h.heap, t)
		t.slot = len(h.heap)
	}
	h.restore(t.slot - 1)
}

// disarm does nothing to a timer that is not armed.
func (h *timers) disarm(t *timer) {
	if !t.isArmed() {
		return
	}
	i, last := t.slot-1, len(h.heap)-1
	h.swap(i, last)
	h.heap[last] = nil
	h.heap = h.heap[:last]
	t.slot = 0
	if i < last {
		h.restore(i)
	}
}

// restore moves the timer at i to where it belongs.
func (h *timers) restore(i int) {
	for i > 0 && h.heap[i].before(h.heap[(i-1)/2]) {
		h.swap(i, (i-1)/2)
		i = (i - 1) / 2
	}
	for {
		least := i
		for child := 2*i + 1; child <= 2*i+2 && child < len(h.heap); child++ {
			if h.heap[child].before(h.heap[least]) {
				least = child
			}
		}
		if least == i {
			return
		}
		h.swap(i, least)
		i = least
	}
}

func (h *timers) swap(i, j int) {
	h.heap[i], h.heap[j] = h.heap[j], h.heap[i]
	h.heap[i].slot, h.heap[j].slot = i+1, j+1
}
