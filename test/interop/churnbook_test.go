package interop

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// churnBook is what members and watchers have said of each partition.
type churnBook struct {
	now   func() time.Time
	mu    sync.Mutex
	fed   bool
	parts map[int32]*churnPartition
	wrong []string
	lines map[string]int // by kind
	last  []string       // the newest lines
	feeds int            // that have ended
}

type churnPartition struct {
	values    map[int64]int64 // offset to value, as confirmed to the publisher
	end       int64           // of what is confirmed
	read      map[int64]bool
	committed int64 // the highest confirmed
	at        time.Time
	shown     int64                // the last answer to the question for it
	owner     string               // who committed last
	since     time.Time            // of the owner's first commit
	given     map[string]time.Time // who was given the partition when
	begun     map[string]time.Time // of the commit that a member waits for
	next      map[string]int64     // what a member reads next, of those that have it
}

func newChurnBook() *churnBook {
	return &churnBook{now: time.Now, parts: map[int32]*churnPartition{}, lines: map[string]int{}}
}

func (b *churnBook) part(p int32) *churnPartition {
	k := b.parts[p]
	if k == nil {
		k = &churnPartition{values: map[int64]int64{}, read: map[int64]bool{}, given: map[string]time.Time{}, begun: map[string]time.Time{}, next: map[string]int64{}}
		b.parts[p] = k
	}
	return k
}

func (b *churnBook) problem(format string, args ...any) {
	if len(b.wrong) < 50 {
		b.wrong = append(b.wrong, b.now().Format("15:04:05.000 ")+fmt.Sprintf(format, args...))
	}
}

func (b *churnBook) published(p int32, offset, value int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	k := b.part(p)
	k.values[offset], k.end = value, max(k.end, offset+1)
}

// line takes in a line of a member: "assigned P", "revoked P", "lost P", "read P OFFSET VALUE", "committing P OFFSET", "committed P OFFSET" or
// "refused ...".
func (b *churnBook) line(member, line string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	f := strings.Fields(line)
	if len(f) == 0 {
		return
	}
	b.lines[f[0]]++
	if f[0] != "read" {
		b.last = append(b.last, b.now().Format("15:04:05.000 ")+member+" "+line)
		b.last = b.last[max(0, len(b.last)-200):]
	}
	if f[0] == "refused" {
		return
	}
	var numbers []int64
	for _, w := range f[1:] {
		v, err := strconv.ParseInt(w, 10, 64)
		if err != nil {
			b.problem("%s says %q", member, line)
			return
		}
		numbers = append(numbers, v)
	}
	want := map[string]int{"assigned": 1, "revoked": 1, "lost": 1, "read": 3, "committing": 2, "committed": 2}[f[0]]
	if want == 0 || len(numbers) != want {
		b.problem("%s says %q", member, line)
		return
	}
	b.event(member, f[0], int32(numbers[0]), numbers[1:])
}

func (b *churnBook) event(member, what string, p int32, more []int64) {
	k, now := b.part(p), b.now()
	switch what {
	case "assigned":
		k.given[member] = now
		delete(k.next, member)
	case "revoked", "lost":
		delete(k.next, member)
	case "read":
		offset := more[0]
		if next, ok := k.next[member]; ok && offset != next {
			b.problem("partition %d: %s read offset %d after %d", p, member, offset, next-1)
		}
		if v, ok := k.values[offset]; ok && v != more[1] {
			b.problem("partition %d: %s read %d at offset %d, where %d was published", p, member, more[1], offset, v)
		}
		k.next[member], k.read[offset] = offset+1, true
	case "committing":
		k.begun[member] = now
	case "committed":
		b.commit(k, p, member, more[0], now)
	}
}

// commit notes a confirmed commit. P29: who has the partition no longer commits no more, once the next has.
func (b *churnBook) commit(k *churnPartition, p int32, member string, offset int64, now time.Time) {
	if k.owner != member {
		if k.owner != "" && k.given[member].Before(k.since) && k.begun[member].After(k.since.Add(heardLate)) {
			b.problem("partition %d: %s committed %d, begun %v after %s, who was given it later, first had", p, member, offset, k.begun[member].Sub(k.since), k.owner)
		}
		k.owner, k.since = member, now
	}
	if offset < k.committed && k.begun[member].After(k.at.Add(heardLate)) {
		b.problem("partition %d: %s committed %d after %d", p, member, offset, k.committed)
	}
	k.committed, k.at = max(k.committed, offset), now
}

// confirmed are the highest confirmed commits.
func (b *churnBook) confirmed() map[int32]int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	out := map[int32]int64{}
	for p, k := range b.parts {
		out[p] = k.committed
	}
	return out
}

// asked notes the group's place as the coordinator told it, after commits up to least had been confirmed (P30).
func (b *churnBook) asked(p int32, at, least int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	k := b.part(p)
	if at < least {
		b.problem("partition %d: the group's place is %d, and %d had been confirmed", p, at, least)
	}
	if at < k.shown {
		b.problem("partition %d: the group's place went from %d back to %d", p, k.shown, at)
	}
	k.shown = max(k.shown, at)
	b.lines["places asked for"]++
}

// shared says which partition nobody has committed to since a time, or who has none: there are as many members as partitions.
func (b *churnBook) shared(since time.Time, members []string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	owners := map[string]int32{}
	for p := range int32(len(members)) {
		k := b.part(p)
		if k.at.Before(since) {
			return fmt.Errorf("partition %d: nothing committed since %v; its last owner is %s", p, k.at.Format("15:04:05.000"), k.owner)
		}
		owners[k.owner] = p
	}
	for _, m := range members {
		if _, ok := owners[m]; !ok {
			return fmt.Errorf("%s has no partition; those who have: %v", m, owners)
		}
	}
	return nil
}

func (b *churnBook) stopFeeding() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.fed = true
}

func (b *churnBook) isFed() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.fed
}

func (b *churnBook) done() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.feeds++
}

// behind says what is left to be committed when publishing has ended.
func (b *churnBook) behind(partitions int32) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.feeds < int(partitions) {
		return errors.New("publishers wait for answers")
	}
	for p := range partitions {
		if k := b.part(p); k.committed < k.end {
			return fmt.Errorf("partition %d: %d of %d", p, k.committed, k.end)
		}
	}
	return nil
}

// judge returns what was wrong; P34: whatever was published has been read.
func (b *churnBook) judge(partitions int32) []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	out := slices.Clone(b.wrong)
	for p := range partitions {
		k := b.part(p)
		missed := 0
		for offset := range k.values {
			if !k.read[offset] {
				missed++
			}
		}
		if missed > 0 || k.shown > k.end {
			out = append(out, fmt.Sprintf("partition %d: %d of %d records were read by nobody; the group's place %d", p, missed, k.end, k.shown))
		}
	}
	return out
}

func (b *churnBook) counts() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return fmt.Sprint(b.lines)
}

func (b *churnBook) tail() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return strings.Join(append(slices.Clone(b.wrong), b.last[max(0, len(b.last)-60):]...), "\n")
}
