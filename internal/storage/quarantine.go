package storage

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/sys"
)

// DropLogs deletes the data of partitions, also quarantined copies, and returns what it could not delete and why. It is called only for
// committed metadata records that name the topics' ids (I10). The directories are renamed away first, so that a crash leaves all of one or a
// name that the next start finishes deleting. A partition that is not there is no error.
//
// Entries in the sync-point file go before the renamed directories do: an entry without any directory is damage, and a partition that comes
// back would be judged by it. Each step is done for all before the next, since each ends with a sync.
func (d *Dir) DropLogs(tps []kafka.TopicPartition) map[kafka.TopicPartition]error {
	b := dropping{d: d, failed: map[kafka.TopicPartition]error{}}
	for _, tp := range tps {
		if tp == kafka.MetadataPartition {
			b.failed[tp] = fmt.Errorf("%w: the metadata log is never dropped", ErrInvalidAppend)
			continue
		}
		d.abandon(tp)
		b.left = append(b.left, tp)
	}
	b.each(d.renameDropped)
	b.all(func() error { return d.WithReserve(d.syncDropped) })
	full := false
	b.all(func() error {
		err := d.forgetPoints(b.left)
		if full = isNoSpace(err); full {
			return nil
		}
		return err
	})
	b.each(d.removeDropped)
	b.all(func() error { return d.WithReserve(d.syncDropped) })
	d.countQuarantined()
	if full { // there is room now
		b.all(func() error { return d.forgetPoints(b.left) })
	}
	return b.failed
}

// dropping is one DropLogs: left are the partitions for which every step has gone well so far.
type dropping struct {
	d      *Dir
	left   []kafka.TopicPartition
	failed map[kafka.TopicPartition]error
}

// each takes a step with both directories that a partition may have.
func (b *dropping) each(step func(path string) error) {
	var left []kafka.TopicPartition
	for _, tp := range b.left {
		for _, path := range []string{b.d.partitionPath(tp), b.d.quarantinePath(tp)} {
			if err := b.d.WithReserve(func() error { return step(path) }); err != nil {
				b.failed[tp] = fmt.Errorf("drop log %s: %w", path, err)
				break
			}
		}
		if b.failed[tp] == nil {
			left = append(left, tp)
		}
	}
	b.left = left
}

// all takes a step that is one for all partitions.
func (b *dropping) all(step func() error) {
	if len(b.left) == 0 {
		return
	}
	if err := step(); err != nil {
		for _, tp := range b.left {
			b.failed[tp] = fmt.Errorf("drop log %s: %w", b.d.partitionPath(tp), err)
		}
		b.left = nil
	}
}

// syncDropped makes renamed and removed names durable.
func (d *Dir) syncDropped() error {
	for _, under := range []string{topicsDir, quarantineDir} {
		if err := d.fs.SyncDir(filepath.Join(d.path, under)); err != nil {
			return err
		}
	}
	return nil
}

// forgetPoints takes the entries of logs that are being dropped out of the sync-point file.
func (d *Dir) forgetPoints(tps []kafka.TopicPartition) error {
	known := map[kafka.TopicPartition]point{}
	d.mu.Lock()
	for _, tp := range tps {
		if p, ok := d.mu.points[tp]; ok {
			known[tp] = p
		}
		delete(d.mu.points, tp)
		delete(d.mu.flushed, tp)
	}
	d.mu.Unlock()
	if len(known) == 0 {
		return nil
	}
	err := d.mustSave()
	if err != nil { // they may be there yet, and have to go with the next attempt
		for tp, p := range known {
			d.setPoint(tp, p)
		}
	}
	return err
}

// abandon closes a log without flushing it.
func (d *Dir) abandon(tp kafka.TopicPartition) {
	d.mu.Lock()
	l := d.mu.logs[tp]
	if l != nil {
		delete(d.mu.logs, tp)
	}
	d.mu.Unlock()
	if l != nil {
		l.abandon()
	}
}

// renameDropped gives a directory, if it is there, the name by which a start knows that it is to be deleted.
func (d *Dir) renameDropped(path string) error {
	there, err := sys.Exists(d.fs, path)
	if err != nil || !there {
		return err
	}
	if err := d.removeDropped(path); err != nil {
		return err
	}
	return d.fs.Rename(path, path+droppedSuffix)
}

// removeDropped deletes what renameDropped has left of a directory.
func (d *Dir) removeDropped(path string) error {
	there, err := sys.Exists(d.fs, path+droppedSuffix)
	if err != nil || !there {
		return err
	}
	return sys.RemoveAll(d.fs, path+droppedSuffix)
}

// finishDrops deletes what a crash left of dropped logs, entries in the sync-point file first.
func (d *Dir) finishDrops() error {
	var paths []string
	forgotten := false
	for _, under := range []string{topicsDir, quarantineDir} {
		list, err := d.fs.ReadDir(filepath.Join(d.path, under))
		if err != nil {
			return err
		}
		for _, e := range list {
			name, dropped := strings.CutSuffix(e.Name, droppedSuffix)
			tp, ours := parsePartitionDir(name)
			if !dropped || !ours {
				continue
			}
			paths = append(paths, filepath.Join(d.path, under, name))
			live, err := d.holdsLog(tp)
			if err != nil {
				return err
			}
			if _, known := d.mu.points[tp]; known && !live {
				delete(d.mu.points, tp)
				forgotten = true
			}
		}
	}
	if forgotten {
		// On a full disk the removal makes the room, and the next save writes it.
		if err := d.mustSave(); err != nil && !isNoSpace(err) {
			return err
		}
	}
	for _, path := range paths {
		if err := d.removeDropped(path); err != nil {
			return err
		}
	}
	if len(paths) == 0 {
		return nil
	}
	return d.syncDropped()
}

// holdsLog says whether a partition has a directory, in quarantine or elsewhere.
func (d *Dir) holdsLog(tp kafka.TopicPartition) (bool, error) {
	for _, path := range []string{d.partitionPath(tp), d.quarantinePath(tp)} {
		if there, err := sys.Exists(d.fs, path); err != nil || there {
			return there, err
		}
	}
	return false, nil
}

// QuarantineLog puts an unknown partition's directory aside, whole (I10). An open log is closed first; what was wrong with it is logged and
// goes along. An error means that the directory stayed, or that the move is not durable yet: ErrNotFound when there is none, ErrExists,
// naming both, when a quarantined copy is there already.
func (d *Dir) QuarantineLog(tp kafka.TopicPartition) error {
	d.mu.Lock()
	l := d.mu.logs[tp]
	d.mu.Unlock()
	if l != nil {
		if err := l.Close(); err != nil {
			d.log.Warn("a log is set aside although not all of it was good and on disk", "log", tp.String(), "error", err)
		}
	}
	return d.moveDir(d.partitionPath(tp), d.quarantinePath(tp))
}

// RestoreQuarantined moves a quarantined directory back: its topic turned up after all. Errors: ErrNotFound; ErrExists, naming both, when
// the partition has another directory meanwhile, and then somebody has to say which of them counts.
func (d *Dir) RestoreQuarantined(tp kafka.TopicPartition) error {
	return d.moveDir(d.quarantinePath(tp), d.partitionPath(tp))
}

// Quarantined lists the quarantined partitions.
func (d *Dir) Quarantined() ([]kafka.TopicPartition, error) { return d.listPartitions(quarantineDir) }

func (d *Dir) moveDir(from, to string) error {
	if there, err := sys.Exists(d.fs, from); err != nil {
		return err
	} else if !there {
		return fmt.Errorf("%w: %s", ErrNotFound, from)
	}
	if there, err := sys.Exists(d.fs, to); err != nil {
		return err
	} else if there {
		return fmt.Errorf("%w: both %s and %s are there", ErrExists, from, to)
	}
	if err := d.fs.Rename(from, to); err != nil {
		return err
	}
	// The new name first: a crash in between may leave two names, which shows, but never none.
	err := errors.Join(d.fs.SyncDir(filepath.Dir(to)), d.fs.SyncDir(filepath.Dir(from)))
	d.countQuarantined()
	return err
}

func (d *Dir) countQuarantined() {
	if tps, err := d.Quarantined(); err == nil {
		d.metrics.Quarantined.Set(float64(len(tps)))
	}
}
