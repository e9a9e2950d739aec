package recordid

import (
	"time"

	"strandline.dev/internal/kafka"
)

// entry is one record that carried an id.
type entry struct {
	id      ID
	content uint32
	offset  kafka.Offset
	at      time.Duration
}

// Table is what one partition remembers of record ids, in the order of the log. Times are readings of one clock that never steps, and
// never fall from call to call; an age is the difference of two. A record counts from when it was appended or, on a replica that learned
// of it later, from then: it may be remembered longer, never shorter.
type Table struct {
	window time.Duration
	// ring holds count entries from head on; first numbers the one at head, and the others count on from there.
	ring        []entry
	head, count int
	first       uint64
	// byID finds the newest record of each id, by its number.
	byID map[ID]uint64
	// older counts entries whose id a newer one has: they had expired where they were led, or came before the window was on.
	older int
	// peak is the largest count since the memory was last taken anew.
	peak int
	// twins is scratch for Judge.
	twins map[ID]int
}

// NewTable returns an empty table with this window.
func NewTable(window time.Duration) *Table { return &Table{window: window, byID: map[ID]uint64{}} }

// Len is the number of records remembered.
func (t *Table) Len() int { return t.count }

// Room says whether the table takes n more ids.
func (t *Table) Room(n int) bool { return t.count+n <= IDsMax }

// SetWindow changes how long ids are remembered. What a shorter window has forgotten does not come back with a longer one.
func (t *Table) SetWindow(window time.Duration) { t.window = window }

// Note adds the ids of a batch that is in the log at base. It judges nothing: the leader did, before it appended. Beyond IDsMax the oldest
// go: the leader had so few when it took the newest, so they had expired (I14).
func (t *Table) Note(base kafka.Offset, carried []Carried, at time.Duration) {
	for i := range carried {
		t.push(entry{id: carried[i].ID, content: carried[i].Content, offset: base + kafka.Offset(carried[i].Delta), at: at})
	}
}

// Follow adds what another table holds behind this one's.
func (t *Table) Follow(o *Table) {
	for i := range o.count {
		t.push(*o.entry(i))
	}
}

func (t *Table) entry(i int) *entry { return &t.ring[(t.head+i)%len(t.ring)] }

func (t *Table) push(e entry) {
	if t.count >= IDsMax {
		t.pop()
	}
	if t.count == len(t.ring) {
		t.resize(max(ringMin, 2*len(t.ring)))
	}
	t.count++
	t.peak = max(t.peak, t.count)
	*t.entry(t.count - 1) = e
	t.index(t.count - 1)
}

// index makes entry i the newest of its id.
func (t *Table) index(i int) {
	id := t.entry(i).id
	if _, again := t.byID[id]; again {
		t.older++
	}
	t.byID[id] = t.first + uint64(i)
}

// pop forgets the oldest entry.
func (t *Table) pop() {
	if e := t.entry(0); t.byID[e.id] == t.first {
		delete(t.byID, e.id)
	} else {
		t.older--
	}
	*t.entry(0) = entry{}
	t.head = (t.head + 1) % len(t.ring)
	t.count--
	t.first++
}

func (t *Table) resize(capacity int) {
	ring := make([]entry, capacity)
	for i := range t.count {
		ring[i] = *t.entry(i)
	}
	t.ring, t.head = ring, 0
}

// Expire forgets the ids whose window has passed, and gives back memory after a peak.
func (t *Table) Expire(now time.Duration) {
	for t.count > 0 && t.expired(t.entry(0), now) {
		t.pop()
	}
	if t.peak > ringMin*shrinkPart && t.count <= t.peak/shrinkPart {
		t.resize(max(ringMin, 2*t.count))
		t.reindex()
		t.peak = t.count
	}
}

func (t *Table) expired(e *entry, now time.Duration) bool { return now-e.at >= t.window }

func (t *Table) reindex() {
	t.byID, t.older = make(map[ID]uint64, t.count), 0
	for i := range t.count {
		t.index(i)
	}
}

// TruncateTo forgets the ids of records at and above end: they are not in the log any more.
func (t *Table) TruncateTo(end kafka.Offset) {
	cut := t.count
	for t.count > 0 && t.entry(t.count-1).offset >= end {
		e := t.entry(t.count - 1)
		if t.byID[e.id] == t.first+uint64(t.count-1) {
			delete(t.byID, e.id)
		}
		*e = entry{}
		t.count--
	}
	if cut != t.count && t.older > 0 {
		t.reindex() // what was cut may have stood for older ones
	}
}

// AdvanceStart forgets the ids of records below start: an answer would name a record that is gone.
func (t *Table) AdvanceStart(start kafka.Offset) {
	for t.count > 0 && t.entry(0).offset < start {
		t.pop()
	}
}

// find is the newest record of an id whose window has not passed, or nil.
func (t *Table) find(id ID, now time.Duration) *entry {
	n, ok := t.byID[id]
	if !ok {
		return nil
	}
	if e := t.entry(int(n - t.first)); !t.expired(e, now) {
		return e
	}
	return nil
}
