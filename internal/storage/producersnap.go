package storage

import (
	"encoding/binary"
	"fmt"
	"path/filepath"
	"slices"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/sys"
)

const (
	producersMagic   = "SLPS"
	producersVersion = 1
)

// encodeProducers is the content of a producer snapshot: the state at offset.
func encodeProducers(p *producers, offset kafka.Offset) []byte {
	return appendFrame(nil, producersMagic, producersVersion, func(b []byte) []byte {
		b = appendI64(b, int64(offset))
		b = binary.BigEndian.AppendUint32(b, uint32(len(p.byID)))
		for _, id := range p.sorted() {
			b = appendProducer(b, id, p.byID[id])
		}
		return b
	})
}

func appendProducer(b []byte, id kafka.ProducerID, s *producerState) []byte {
	b = appendI64(b, int64(id))
	b = binary.BigEndian.AppendUint16(b, uint16(s.epoch))
	b = appendI64(b, s.lastAppendMs)
	b = appendI64(b, int64(s.openTransaction))
	b = binary.BigEndian.AppendUint32(b, uint32(s.coordinatorEpoch))
	b = append(b, uint8(s.count))
	for _, k := range s.batches[:s.count] {
		b = binary.BigEndian.AppendUint32(b, uint32(k.FirstSequence))
		b = binary.BigEndian.AppendUint32(b, uint32(k.LastSequence))
		b = appendI64(b, int64(k.Base))
		b = appendI64(b, int64(k.End))
		b = appendI64(b, k.TimestampMs)
	}
	return b
}

func decodeProducers(b []byte) (producers, kafka.Offset, error) {
	f, err := openFile(b, producersMagic, producersVersion)
	if err != nil {
		return producers{}, 0, err
	}
	offset := kafka.Offset(f.i64())
	count := int64(f.u32())
	const smallest = 8 + 2 + 8 + 8 + 4 + 1
	if f.bad || offset < 0 || count*smallest > int64(len(f.b)) {
		return producers{}, 0, fmt.Errorf("%w: %d producers in %d bytes", errBadFrame, count, len(f.b))
	}
	p := producers{byID: make(map[kafka.ProducerID]*producerState, count)}
	for range count {
		id, s := readProducer(f)
		if f.bad || id < 0 {
			return producers{}, 0, fmt.Errorf("%w: a producer entry that contradicts itself", errBadFrame)
		}
		p.byID[id] = s
	}
	if !f.done() || int64(len(p.byID)) != count {
		return producers{}, 0, fmt.Errorf("%w: wrong length of a producer snapshot", errBadFrame)
	}
	return p, offset, nil
}

func readProducer(f *fields) (kafka.ProducerID, *producerState) {
	id := kafka.ProducerID(f.i64())
	s := newProducerState(kafka.ProducerEpoch(f.u16()))
	s.lastAppendMs, s.openTransaction, s.coordinatorEpoch = f.i64(), kafka.Offset(f.i64()), int32(f.u32())
	n := int(f.u8())
	if n > producerBatchesMax {
		f.bad = true
		return id, s
	}
	for range n {
		s.push(ProducerBatch{FirstSequence: int32(f.u32()), LastSequence: int32(f.u32()), Base: kafka.Offset(f.i64()), End: kafka.Offset(f.i64()), TimestampMs: f.i64()})
	}
	return id, s
}

// loadProducers returns the newest usable snapshot at or below end, and its offset; with none, an empty state at from. It names those it
// met that are unusable: the caller deletes and forgets them, or they would seem to cover batches that are removed (C048).
func (l *Log) loadProducers(snapshots []kafka.Offset, from, end kafka.Offset) (p producers, at kafka.Offset, unusable []kafka.Offset) {
	for _, at := range slices.Backward(snapshots) {
		if at > end {
			continue
		}
		name := filepath.Join(l.path, offsetName(at, producersSuffix))
		b, err := sys.ReadFile(l.dir.fs, name, cacheFileMax)
		if err == nil {
			var offset kafka.Offset
			if p, offset, err = decodeProducers(b); err == nil && offset == at {
				return p, at, unusable
			}
			if err == nil {
				err = fmt.Errorf("%w: it is of offset %d", errBadFrame, offset)
			}
		}
		l.dir.log.Warn("a producer snapshot cannot be used", "file", name, "error", err)
		unusable = append(unusable, at)
	}
	return newProducers(), from, unusable
}

// forgetSnapshots deletes unusable producer snapshots.
func (l *Log) forgetSnapshots(unusable []kafka.Offset) error {
	for _, at := range unusable {
		if err := removeIfThere(l.dir.fs, filepath.Join(l.path, offsetName(at, producersSuffix))); err != nil {
			return err
		}
		l.mu.Lock()
		l.mu.caches.saved = slices.DeleteFunc(slices.Clone(l.mu.caches.saved), func(o kafka.Offset) bool { return o == at })
		l.mu.Unlock()
	}
	return nil
}
