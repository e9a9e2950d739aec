package storage

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/sys"
)

// DropLog deletes a partition's data, also a quarantined copy. It is called only for a committed metadata record that names the
// topic's id (I10). The directory is renamed away first, so that a crash leaves all of it or a name that the next start
// finishes deleting. A partition that is not there is no error.
//
// Its entry in the sync-point file goes before the renamed directory does: an entry without any directory is damage, and a
// partition that comes back would be judged by it.
func (d *Dir) DropLog(tp kafka.TopicPartition) error {
	if tp == kafka.MetadataPartition {
		return fmt.Errorf("%w: the metadata log is never dropped", ErrInvalidAppend)
	}
	d.abandon(tp)
	paths := []string{d.partitionPath(tp), d.quarantinePath(tp)}
	for _, path := range paths {
		if err := d.WithReserve(func() error { return d.renameDropped(path) }); err != nil {
			return fmt.Errorf("drop log %s: %w", path, err)
		}
	}
	err := d.forgetPoint(tp)
	full := isNoSpace(err)
	if err != nil && !full {
		return fmt.Errorf("drop log %s: %w", paths[0], err)
	}
	for _, path := range paths {
		if err := d.WithReserve(func() error { return d.removeDropped(path) }); err != nil {
			return fmt.Errorf("drop log %s: %w", path, err)
		}
	}
	d.countQuarantined()
	if full { // there is room now
		err = d.forgetPoint(tp)
	}
	if err != nil {
		return fmt.Errorf("drop log %s: %w", paths[0], err)
	}
	return nil
}

// forgetPoint takes the entry of a log that is being dropped out of the sync-point file.
func (d *Dir) forgetPoint(tp kafka.TopicPartition) error {
	d.mu.Lock()
	p, known := d.mu.points[tp]
	delete(d.mu.points, tp)
	delete(d.mu.flushed, tp)
	d.mu.Unlock()
	if !known {
		return nil
	}
	err := d.mustSave()
	if err != nil { // it may be there yet, and has to go with the next attempt
		d.setPoint(tp, p)
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
	if err := d.fs.Rename(path, path+droppedSuffix); err != nil {
		return err
	}
	return d.fs.SyncDir(filepath.Dir(path))
}

// removeDropped deletes what renameDropped has left of a directory.
func (d *Dir) removeDropped(path string) error {
	there, err := sys.Exists(d.fs, path+droppedSuffix)
	if err != nil || !there {
		return err
	}
	if err := sys.RemoveAll(d.fs, path+droppedSuffix); err != nil {
		return err
	}
	return d.fs.SyncDir(filepath.Dir(path))
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
	return nil
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
