package replica

import (
	"fmt"

	"strandline.dev/internal/kafka"
)

// The wait list. Everything that waits for a partition waits here: an acks=all publish until the high watermark has passed
// its end, a fetch until more than its offset is visible. A list belongs to one partition, and a wait lives in one leader
// epoch: with the next epoch all of them fail (I3, C011), so a wait is never woken by the records of another leader.
//
// A wait's node is part of its Produce or FetchWait: parking allocates nothing here and no goroutine waits. All fields are
// guarded by the partition's lock. Waking has two steps: under the lock a wait is taken off the list and its outcome is
// written; after the lock is let go its owner is told (fire), so that whoever wakes up does not run into the lock.

// wait is one parked request's interest in one partition. Exactly one of produce and fetch is set.
type wait struct {
	prev, next *wait
	p          *partition
	epoch      kafka.LeaderEpoch
	// at is the visible end that wakes it.
	at     kafka.Offset
	listed bool

	produce *Produce
	index   int // the item of produce that this is

	fetch *FetchWait
	from  kafka.Offset // the fetch offset
	bytes int64        // how many visible bytes have been counted for it
	limit int64        // how many of them may count
}

// waitList keeps waits in the order of at. Fetches wait just above the watermark, publishes near the end of the log, so
// fetches are inserted from the front and publishes from the back; both are found there in a step or two.
type waitList struct {
	front, back *wait
	length      int
}

func (l *waitList) insert(w *wait) {
	if w.fetch != nil {
		after := l.front
		for after != nil && after.at <= w.at {
			after = after.next
		}
		l.insertBefore(w, after)
		return
	}
	before := l.back
	for before != nil && before.at > w.at {
		before = before.prev
	}
	if before == nil {
		l.insertBefore(w, l.front)
		return
	}
	l.insertBefore(w, before.next)
}

// insertBefore puts w in front of next; nil means at the back.
func (l *waitList) insertBefore(w, next *wait) {
	prev := l.back
	if next != nil {
		prev = next.prev
	}
	w.prev, w.next, w.listed = prev, next, true
	if prev != nil {
		prev.next = w
	} else {
		l.front = w
	}
	if next != nil {
		next.prev = w
	} else {
		l.back = w
	}
	l.length++
}

func (l *waitList) remove(w *wait) {
	if w.prev != nil {
		w.prev.next = w.next
	} else {
		l.front = w.next
	}
	if w.next != nil {
		w.next.prev = w.prev
	} else {
		l.back = w.prev
	}
	w.prev, w.next, w.listed = nil, nil, false
	l.length--
}

// woken is a chain of waits taken off a list, linked by next, whose owners are still to be told.
type woken struct{ first *wait }

func (k *woken) add(w *wait) {
	w.next = k.first
	k.first = w
}

// fire tells the owners. Called without locks.
func (k *woken) fire() {
	for w := k.first; w != nil; {
		next := w.next // read first: the owner may be gone once it knows
		w.next = nil
		if w.produce != nil {
			w.produce.done()
		} else {
			w.fetch.fire()
		}
		w = next
	}
	k.first = nil
}

// wakeLocked takes off the list everything that waited for an end up to the watermark.
func (p *partition) wakeLocked() {
	hw, epoch := p.mu.core.HighWatermark(), p.mu.core.Epoch()
	for w := p.mu.waits.front; w != nil && w.at <= hw; w = p.mu.waits.front {
		if w.epoch != epoch {
			panic(fmt.Sprintf("replica: %v: a wait of epoch %d is listed in epoch %d (I3)", p.tp, w.epoch, epoch))
		}
		p.mu.waits.remove(w)
		if w.fetch != nil && !p.countLocked(w) {
			p.mu.waits.insert(w) // now behind hw
			continue
		}
		p.mu.woken.add(w)
	}
}

// countLocked adds what became visible for a fetch, and reports whether the fetch now has enough. If not, w.at is the next
// end worth looking at.
func (p *partition) countLocked(w *wait) bool {
	hw := p.mu.core.HighWatermark()
	visible := p.visibleLocked(w.fetch.readCommitted)
	w.at = max(hw, w.from) + 1
	if p.mu.core.Withheld() {
		w.at = max(w.at, p.mu.core.EpochStart())
		return false
	}
	if visible <= w.from {
		return false
	}
	n := min(max(1, p.mu.log.SizeBetween(w.from, visible)), w.limit)
	grown := n - w.bytes
	w.bytes = n
	return w.fetch.enough(grown)
}

// failProducesLocked fails the parked publishes.
func (p *partition) failProducesLocked(err error) {
	for w := p.mu.waits.front; w != nil; {
		next := w.next
		if w.produce != nil {
			p.mu.waits.remove(w)
			w.produce.fail(w.index, err)
			p.mu.woken.add(w)
		}
		w = next
	}
}

// wakeFetchesLocked wakes the parked fetches, to look again.
func (p *partition) wakeFetchesLocked() {
	for w := p.mu.waits.front; w != nil; {
		next := w.next
		if w.fetch != nil {
			p.mu.waits.remove(w)
			p.mu.woken.add(w)
		}
		w = next
	}
}

// failAllLocked ends every wait: the epoch they were parked in is over (I3).
func (p *partition) failAllLocked(err error) {
	p.failProducesLocked(err)
	p.wakeFetchesLocked()
}
