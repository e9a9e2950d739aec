package storage

import (
	"encoding/binary"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"sort"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/sys"
)

const (
	epochsMagic   = "SLEP"
	epochsVersion = 1
)

// epochStart says where a leader epoch begins.
type epochStart struct {
	epoch kafka.LeaderEpoch
	start kafka.Offset
}

// epochs are the leader epochs of a log, oldest first; epoch and start rise strictly.
type epochs []epochStart

// note records that epoch e holds at offset. Two epochs that start at the same offset: the older one has no records and goes.
func (es epochs) note(e kafka.LeaderEpoch, at kafka.Offset) epochs {
	if n := len(es); n > 0 && es[n-1].epoch >= e {
		return es
	}
	for len(es) > 0 && es[len(es)-1].start >= at {
		es = es[:len(es)-1]
	}
	if len(es) >= epochsMax {
		es = slices.Delete(es, 0, len(es)/8)
	}
	return append(es, epochStart{e, at})
}

// truncate drops the epochs that begin at or behind end.
func (es epochs) truncate(end kafka.Offset) epochs {
	for len(es) > 0 && es[len(es)-1].start >= end {
		es = es[:len(es)-1]
	}
	return es
}

// advance drops the epochs that end at or before start; the one that holds start begins there.
func (es epochs) advance(start kafka.Offset) epochs {
	for len(es) > 1 && es[1].start <= start {
		es = es[1:]
	}
	if len(es) > 0 && es[0].start < start {
		es = append(epochs{{es[0].epoch, start}}, es[1:]...)
	}
	return es
}

func (es epochs) latest() kafka.LeaderEpoch {
	if len(es) == 0 {
		return kafka.NoEpoch
	}
	return es[len(es)-1].epoch
}

func (es epochs) at(off kafka.Offset) kafka.LeaderEpoch {
	i := sort.Search(len(es), func(i int) bool { return es[i].start > off })
	if i == 0 {
		return kafka.NoEpoch
	}
	return es[i-1].epoch
}

// span is the epoch that off was written in, and where it ends. Batches are checked against it when they are read: the field lies
// outside their checksum.
func (es epochs) span(off kafka.Offset) (kafka.LeaderEpoch, kafka.Offset) {
	i := sort.Search(len(es), func(i int) bool { return es[i].start > off })
	end := kafka.Offset(math.MaxInt64)
	if i < len(es) {
		end = es[i].start
	}
	if i == 0 {
		return kafka.NoEpoch, end
	}
	return es[i-1].epoch, end
}

// endFor is the largest epoch at or below e and where it ends.
func (es epochs) endFor(e kafka.LeaderEpoch, end kafka.Offset) kafka.EpochEnd {
	i := sort.Search(len(es), func(i int) bool { return es[i].epoch > e })
	if i == 0 {
		return kafka.EpochEnd{Epoch: kafka.NoEpoch, End: kafka.NoOffset}
	}
	if i < len(es) {
		end = es[i].start
	}
	return kafka.EpochEnd{Epoch: es[i-1].epoch, End: end}
}

// encodeEpochs is the content of the epochs file: complete up to covered.
func encodeEpochs(es epochs, covered kafka.Offset) []byte {
	return appendFrame(nil, epochsMagic, epochsVersion, func(b []byte) []byte {
		b = appendI64(b, int64(covered))
		b = binary.BigEndian.AppendUint32(b, uint32(len(es)))
		for _, e := range es {
			b = binary.BigEndian.AppendUint32(b, uint32(e.epoch))
			b = appendI64(b, int64(e.start))
		}
		return b
	})
}

func decodeEpochs(b []byte) (epochs, kafka.Offset, error) {
	f, err := openFile(b, epochsMagic, epochsVersion)
	if err != nil {
		return nil, 0, err
	}
	covered := kafka.Offset(f.i64())
	count := int64(f.u32())
	if f.bad || count > epochsMax || count*12 != int64(len(f.b)) {
		return nil, 0, fmt.Errorf("%w: %d epochs in %d bytes", errBadFrame, count, len(f.b))
	}
	es := make(epochs, 0, count)
	for i := range count {
		e := epochStart{kafka.LeaderEpoch(int32(f.u32())), kafka.Offset(f.i64())}
		if e.epoch < 0 || e.start < 0 || e.start > covered || (i > 0 && (e.epoch <= es[i-1].epoch || e.start <= es[i-1].start)) {
			return nil, 0, fmt.Errorf("%w: epoch entry %d is out of order", errBadFrame, i)
		}
		es = append(es, e)
	}
	return es, covered, nil
}

// loadEpochs reads the epochs file as far as it speaks of offsets up to end; without a usable one, nothing is covered. ahead says that
// it speaks of more: of records that a crash took.
func (l *Log) loadEpochs(from, end kafka.Offset) (es epochs, covered kafka.Offset, ahead bool) {
	name := filepath.Join(l.path, epochsFile)
	b, err := sys.ReadFile(l.dir.fs, name, cacheFileMax)
	if err != nil {
		return nil, from, false
	}
	es, covered, err = decodeEpochs(b)
	if err != nil {
		l.dir.log.Warn("the epochs file is damaged and is rebuilt", "file", name, "error", err)
		return nil, from, false
	}
	if ahead = covered > end; ahead {
		// Also one that starts exactly at the end: its records may have been among them.
		es, covered = es.truncate(end), end
	}
	return es, max(covered, from), ahead
}

// LatestEpoch is the newest leader epoch of the log, or NoEpoch.
func (l *Log) LatestEpoch() kafka.LeaderEpoch {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.mu.epochs.latest()
}

// EpochEndFor is the largest known epoch at or below e and the offset at which it ends; {NoEpoch, NoOffset} when there is none.
func (l *Log) EpochEndFor(e kafka.LeaderEpoch) kafka.EpochEnd {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.mu.epochs.endFor(e, l.mu.end)
}

// EpochAt is the leader epoch that the record at off was written in, or NoEpoch.
func (l *Log) EpochAt(off kafka.Offset) kafka.LeaderEpoch {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.mu.epochs.at(off)
}

// AssignEpoch records that leader epoch e begins at the log's end, before any record of it exists: an idle partition must be
// able to answer for its newest epoch (C015). An older epoch is ErrInvalidAppend. A crash forgets an epoch without records, and the
// registration that follows raises it again.
func (l *Log) AssignEpoch(e kafka.LeaderEpoch) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.writableLocked(); err != nil {
		return err
	}
	latest := l.mu.epochs.latest()
	if e < latest {
		return fmt.Errorf("%w: epoch %d after %d", ErrInvalidAppend, e, latest)
	}
	if e > latest {
		// No reason to write the epochs file, which is a cache: every start assigns an epoch to every log.
		l.mu.epochs = l.mu.epochs.note(e, l.mu.end)
	}
	return nil
}
