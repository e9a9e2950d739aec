package sim

import "strandline.dev/internal/kafka"

// entry is a record: who wrote it, and what.
type entry struct {
	epoch kafka.LeaderEpoch
	value uint64
}

// disk is a log as it lies on a disk, cached or not. Offsets are half-open.
type disk struct {
	start   kafka.Offset
	entries []entry
	// synced is the end of what a power cut leaves.
	synced kafka.Offset
	// hw is the watermark that the last sync-point file holds.
	hw kafka.Offset
}

func (d *disk) end() kafka.Offset { return d.start + kafka.Offset(len(d.entries)) }

func (d *disk) at(o kafka.Offset) entry { return d.entries[o-d.start] }

// last is the epoch of the last record, NoEpoch for an empty log.
func (d *disk) last() kafka.LeaderEpoch {
	if len(d.entries) == 0 {
		return kafka.NoEpoch
	}
	return d.entries[len(d.entries)-1].epoch
}

// epochEnd is the largest epoch at or below one, and where it ends.
func (d *disk) epochEnd(of kafka.LeaderEpoch) kafka.EpochEnd {
	for i := len(d.entries) - 1; i >= 0; i-- {
		if d.entries[i].epoch <= of {
			return kafka.EpochEnd{Epoch: d.entries[i].epoch, End: d.start + kafka.Offset(i) + 1}
		}
	}
	return kafka.EpochEnd{Epoch: kafka.NoEpoch, End: kafka.NoOffset}
}

func (d *disk) append(e ...entry) { d.entries = append(d.entries, e...) }

// cut drops the records from an offset on.
func (d *disk) cut(to kafka.Offset) {
	to = max(to, d.start)
	if to < d.end() {
		d.entries = d.entries[:to-d.start]
	}
	d.synced = min(d.synced, d.end())
	d.hw = min(d.hw, d.end())
}

// reset drops everything and begins at an offset.
func (d *disk) reset(start kafka.Offset) { *d = disk{start: start, synced: start, hw: start} }

// advance raises the log start.
func (d *disk) advance(to kafka.Offset) {
	if to <= d.start {
		return
	}
	n := min(int(to-d.start), len(d.entries))
	d.entries = append([]entry(nil), d.entries[n:]...)
	d.start = to
	d.synced, d.hw = max(d.synced, to), max(d.hw, to)
}
