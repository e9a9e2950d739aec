package storage

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/sys"
)

const (
	syncPointFile    = "sync-point"
	syncPointMagic   = "SLSP"
	syncPointVersion = 1
	pointBytes       = 96

	pointReplicated = 1 << 0
	pointDamaged    = 1 << 1
)

// point is what the sync-point file says about one log: everything below end is known to be on disk.
type point struct {
	policy    FlushPolicy  // the policy under which ends were reported
	damaged   bool         // a sync failed or damage was found (I11); the marker in the log's directory says what
	start     kafka.Offset // log start
	hw        kafka.Offset // lower bound of the high watermark
	end       kafka.Offset // known synced up to here
	segment   kafka.Offset // base of the segment that end lies in
	pos       int64        // file position of end in it
	firstBase kafka.Offset // base of the oldest segment
	before    int64        // bytes of the segments from firstBase up to segment, exclusive
	// firstAppendMs and lastAppendMs are the append times of the segment that end lies in, up to end; 0 means unknown.
	firstAppendMs, lastAppendMs int64
}

// syncPoints is the content of the file.
type syncPoints struct {
	startNumber uint64
	points      map[kafka.TopicPartition]point
}

func compareTP(a, b kafka.TopicPartition) int {
	return cmp.Or(bytes.Compare(a.Topic[:], b.Topic[:]), cmp.Compare(a.Partition, b.Partition))
}

func sortedTPs[V any](m map[kafka.TopicPartition]V) []kafka.TopicPartition {
	tps := make([]kafka.TopicPartition, 0, len(m))
	for tp := range m {
		tps = append(tps, tp)
	}
	slices.SortFunc(tps, compareTP)
	return tps
}

func encodeSyncPoints(s syncPoints) []byte {
	return appendFrame(make([]byte, 0, 64+len(s.points)*pointBytes), syncPointMagic, syncPointVersion, func(b []byte) []byte {
		b = binary.BigEndian.AppendUint64(b, s.startNumber)
		b = binary.BigEndian.AppendUint32(b, uint32(len(s.points)))
		for _, tp := range sortedTPs(s.points) {
			b = appendPoint(b, tp, s.points[tp])
		}
		return b
	})
}

func appendPoint(b []byte, tp kafka.TopicPartition, p point) []byte {
	var flags uint8
	if p.policy == Replicated {
		flags |= pointReplicated
	}
	if p.damaged {
		flags |= pointDamaged
	}
	b = append(b, tp.Topic[:]...)
	b = binary.BigEndian.AppendUint32(b, uint32(tp.Partition))
	b = append(b, flags, 0, 0, 0)
	for _, v := range []int64{int64(p.start), int64(p.hw), int64(p.end), int64(p.segment), p.pos,
		int64(p.firstBase), p.before, p.firstAppendMs, p.lastAppendMs} {
		b = appendI64(b, v)
	}
	return b
}

func decodeSyncPoints(b []byte) (syncPoints, error) {
	f, err := openFile(b, syncPointMagic, syncPointVersion)
	if err != nil {
		return syncPoints{}, err
	}
	s := syncPoints{startNumber: f.u64()}
	count := int64(f.u32())
	if f.bad || count*pointBytes != int64(len(f.b)) {
		return syncPoints{}, fmt.Errorf("%w: %d entries in %d bytes", errBadFrame, count, len(f.b))
	}
	s.points = make(map[kafka.TopicPartition]point, count)
	for range count {
		tp, p := readPoint(f)
		if !p.plausible() {
			return syncPoints{}, fmt.Errorf("%w: entry of %s contradicts itself", errBadFrame, tp)
		}
		s.points[tp] = p
	}
	return s, nil
}

func readPoint(f *fields) (kafka.TopicPartition, point) {
	var tp kafka.TopicPartition
	copy(tp.Topic[:], f.take(len(tp.Topic)))
	tp.Partition = int32(f.u32())
	flags := f.u8()
	f.take(3)
	p := point{damaged: flags&pointDamaged != 0}
	if flags&pointReplicated != 0 {
		p.policy = Replicated
	}
	p.start, p.hw, p.end, p.segment = kafka.Offset(f.i64()), kafka.Offset(f.i64()), kafka.Offset(f.i64()), kafka.Offset(f.i64())
	p.pos, p.firstBase, p.before = f.i64(), kafka.Offset(f.i64()), f.i64()
	p.firstAppendMs, p.lastAppendMs = f.i64(), f.i64()
	return tp, p
}

func (p point) plausible() bool {
	return p.start >= 0 && p.end >= 0 && p.firstBase >= 0 && p.firstBase <= p.segment && p.segment <= p.end && p.pos >= 0 && p.before >= 0
}

// loadPoints reads the sync-point file, or its copy if it is damaged or missing. With both lost that is still no reason to refuse: each
// log is then scanned from its first segment that is not known to be sealed, and counts as `replicated`, the policy that promises
// less (I4).
func (d *Dir) loadPoints() error {
	s, _, err := d.readPoints(syncPointFile)
	c, b, copyErr := d.readPoints(syncPointCopy)
	if copyErr == nil {
		d.copied = b
	} else if !isMissing(copyErr) {
		d.log.Warn("the copy of the sync-point file cannot be used and is written anew", "dir", d.path, "error", copyErr)
	}
	switch {
	case err == nil:
	case copyErr == nil:
		d.log.Warn("the sync-point file cannot be used; its copy is", "dir", d.path, "error", err)
		s = c
	case errors.Is(err, errBadFrame) || errors.Is(err, sys.ErrTooLarge):
		d.log.Warn("the sync-point file is damaged; logs are scanned", "dir", d.path, "error", err)
		fallthrough
	case isMissing(err):
		d.mu.points = map[kafka.TopicPartition]point{}
		return nil
	default:
		return err
	}
	d.mu.points, d.savedNumber, d.pointsKnown = s.points, s.startNumber, true
	return nil
}

func (d *Dir) readPoints(name string) (s syncPoints, b []byte, err error) {
	if b, err = sys.ReadFile(d.fs, filepath.Join(d.path, name), syncPointFileMax); err == nil {
		s, err = decodeSyncPoints(b)
	}
	return s, b, err
}

// SavePoints writes the sync-point file; hw gives the high watermark known for a partition (NoOffset when none) and is called
// without locks. Replicated logs become marked as such by it, and their stored end rises to their written end. It also closes
// idle file handles. The owner calls it at most every five seconds.
func (d *Dir) SavePoints(hw func(kafka.TopicPartition) kafka.Offset) error {
	for _, l := range d.openLogs() {
		if hw != nil {
			l.raiseHighWatermark(hw(l.tp))
		}
		l.remark()
		l.housekeep()
	}
	return d.save()
}

// mustSave is save for what may not wait until the disk has room: a start that is raised so that segments can go, a truncation, the end.
func (d *Dir) mustSave() error { return d.WithReserve(d.save) }

// save writes the file so that everything that was true when it was called is on disk when it returns nil. Callers that come
// together share one write.
func (d *Dir) save() error {
	d.mu.Lock()
	d.mu.saveWanted++
	ticket := d.mu.saveWanted
	d.mu.Unlock()
	d.saving <- struct{}{}
	defer func() { <-d.saving }()

	d.mu.Lock()
	if d.mu.savedTicket >= ticket {
		err := d.mu.saveErr
		d.mu.Unlock()
		return err
	}
	covered := d.mu.saveWanted
	d.mu.Unlock()

	err := d.writePoints()
	d.mu.Lock()
	d.mu.savedTicket, d.mu.saveErr = covered, err
	d.mu.Unlock()
	return err
}

func (d *Dir) writePoints() error {
	logs := d.openLogs()
	points := make([]point, len(logs))
	for i, l := range logs {
		points[i] = l.point()
	}
	d.mu.Lock()
	for i, l := range logs {
		if d.mu.logs[l.tp] == l {
			d.mu.points[l.tp] = points[i]
		}
	}
	b, last := encodeSyncPoints(syncPoints{startNumber: d.number, points: d.mu.points}), d.mu.closed
	d.mu.Unlock()
	if err := sys.WriteFileAtomic(d.fs, filepath.Join(d.path, syncPointFile), b); err != nil {
		return err
	}
	if err := d.copyPoints(b, last); err != nil {
		return err
	}
	for i, l := range logs {
		l.pointSaved(points[i])
	}
	return nil
}

// openLogs lists the open logs in the order of their names.
func (d *Dir) openLogs() []*Log {
	d.mu.Lock()
	defer d.mu.Unlock()
	logs := make([]*Log, 0, len(d.mu.logs))
	for _, tp := range sortedTPs(d.mu.logs) {
		if l := d.mu.logs[tp]; l != nil {
			logs = append(logs, l)
		}
	}
	return logs
}
