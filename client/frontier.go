package client

import (
	"cmp"
	"slices"

	"github.com/twmb/franz-go/pkg/kgo"
)

// frontier knows what is done of one partition. Records come in the order of offsets and may be finished in any order; the position to
// commit never passes one that is not done.
type frontier struct {
	open []delivery // by offset; the first is not done
	next kgo.EpochOffset
	any  bool // next is set
}

type delivery struct {
	offset int64
	epoch  int32
	done   bool
}

// deliver notes a record that was handed to the partition.
func (f *frontier) deliver(offset int64, epoch int32) {
	f.open = append(f.open, delivery{offset: offset, epoch: epoch})
}

// finish notes that a delivered record is done.
func (f *frontier) finish(offset int64) {
	i, ok := slices.BinarySearchFunc(f.open, offset, func(d delivery, offset int64) int { return cmp.Compare(d.offset, offset) })
	if !ok {
		return
	}
	f.open[i].done = true
	for len(f.open) > 0 && f.open[0].done {
		f.next, f.any = kgo.EpochOffset{Epoch: f.open[0].epoch, Offset: f.open[0].offset + 1}, true
		f.open = f.open[1:]
	}
}

// position is the next record to process after a restart, if anything is done.
func (f *frontier) position() (kgo.EpochOffset, bool) { return f.next, f.any }
