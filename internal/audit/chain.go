package audit

import "fmt"

// Chain follows the entries of one partition. The zero value begins anywhere: what retention has removed is not missed.
type Chain struct {
	begun bool
	next  uint64
	last  Hash
}

// Follow checks that the stored entry at an offset continues the chain, and returns it. After an error the chain goes on behind that entry.
func (c *Chain) Follow(offset int64, value []byte) (Entry, error) {
	was := *c
	c.begun, c.next, c.last = true, uint64(offset)+1, HashOf(value)
	var e Entry
	switch err := e.Decode(value); {
	case err != nil:
		return e, fmt.Errorf("%w: offset %d cannot be read: %w", ErrBroken, offset, err)
	case was.begun && was.next != uint64(offset):
		return e, fmt.Errorf("%w: entries %d to %d are missing", ErrBroken, was.next, offset-1)
	case e.Sequence != uint64(offset):
		return e, fmt.Errorf("%w: offset %d has entry %d", ErrBroken, offset, e.Sequence)
	case was.begun && e.Previous != was.last, offset == 0 && e.Previous != Hash{}:
		return e, fmt.Errorf("%w: entry %d does not follow the entry before it: one of the two was changed", ErrBroken, offset)
	}
	return e, nil
}

// Removed says that retention has removed what is below an offset: the chain begins there anew, unless it has been followed as far.
func (c *Chain) Removed(below int64) {
	if below > 0 && c.next < uint64(below) {
		*c = Chain{next: uint64(below)}
	}
}

// Head is the next sequence and the hash of the last entry: whoever keeps it elsewhere can tell later that nothing up to there was taken away.
// The hash is known only where an entry was read.
func (c *Chain) Head() (next uint64, last Hash, known bool) { return c.next, c.last, c.begun }
