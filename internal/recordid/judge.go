package recordid

import (
	"time"

	"strandline.dev/internal/kafka"
)

// Verdict says what of a batch is stored already.
type Verdict struct {
	// Cut are the offset deltas of the records that repeat an id of the table, or of an earlier record of the batch; in order.
	Cut []int32
	// Originals are where the records of Cut are stored already, in its order.
	Originals []Original
	// All says that every record of the batch is a repeat.
	All bool
	// Base is the offset of the original of the first record where All holds and the originals lie one behind the other as the repeats do,
	// else NoOffset: then no single offset answers the batch.
	Base kafka.Offset
	// First and End are the half-open range that the originals lie in; both NoOffset when no repeat has one in the log.
	First, End kafka.Offset
	// OtherContent says that a repeat has another key or value than its original: the id was used for two things.
	OtherContent bool
	// Fresh is the number of ids that the batch would add.
	Fresh int
}

// Original is the first record with an id, as one of its repeats sees it.
type Original struct {
	// Offset is its place in the log, or NoOffset when it is an earlier record of the same batch.
	Offset kafka.Offset
	// OtherContent says that it has another key or value than the repeat.
	OtherContent bool
}

// Judge finds the repeats in a batch of count records of which carried have ids. It changes nothing that a later call could see.
func (t *Table) Judge(carried []Carried, count int32, now time.Duration) Verdict {
	v := Verdict{Base: kafka.NoOffset, First: kafka.NoOffset, End: kafka.NoOffset}
	twins := t.twinsOf(carried)
	base, contiguous := kafka.NoOffset, true
	for i := range carried {
		c := &carried[i]
		if e := t.find(c.ID, now); e != nil {
			v.repeat(c, e.offset, e.content)
			if v.First == kafka.NoOffset {
				v.First, v.End, base = e.offset, e.offset+1, e.offset-kafka.Offset(c.Delta)
			}
			v.First, v.End = min(v.First, e.offset), max(v.End, e.offset+1)
			contiguous = contiguous && e.offset == base+kafka.Offset(c.Delta)
			continue
		}
		if first := twins.first(carried, i); first < i {
			v.repeat(c, kafka.NoOffset, carried[first].Content)
			continue
		}
		v.Fresh++
	}
	v.All = count > 0 && len(v.Cut) == int(count)
	if v.All && contiguous {
		v.Base = base
	}
	return v
}

func (v *Verdict) repeat(c *Carried, at kafka.Offset, original uint32) {
	other := c.Content != original
	v.Cut, v.Originals = append(v.Cut, c.Delta), append(v.Originals, Original{at, other})
	v.OtherContent = v.OtherContent || other
}

// twins finds the first record of a batch with an id. It is nil for few ids, which are compared one by one.
type twins map[ID]int

func (t *Table) twinsOf(carried []Carried) twins {
	if len(carried) <= twinsByScan {
		return nil
	}
	if t.twins == nil || len(t.twins) > shrinkPart*len(carried) {
		t.twins = make(map[ID]int, len(carried))
	}
	clear(t.twins)
	for i := range carried {
		if _, again := t.twins[carried[i].ID]; !again {
			t.twins[carried[i].ID] = i
		}
	}
	return t.twins
}

// first is the index of the first record that has the id of record i: i itself, if it has no twin before it.
func (w twins) first(carried []Carried, i int) int {
	if w != nil {
		return w[carried[i].ID]
	}
	for j := range i {
		if carried[j].ID == carried[i].ID {
			return j
		}
	}
	return i
}
