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
func (d *Dir) DropLog(tp kafka.TopicPartition) error {
	if tp == kafka.MetadataPartition {
		return fmt.Errorf("%w: the metadata log is never dropped", ErrInvalidAppend)
	}
	d.abandon(tp)
	for _, path := range []string{d.partitionPath(tp), d.quarantinePath(tp)} {
		if err := d.WithReserve(func() error { return d.dropDir(path) }); err != nil {
			return fmt.Errorf("drop log %s: %w", path, err)
		}
	}
	d.mu.Lock()
	delete(d.mu.points, tp)
	delete(d.mu.flushed, tp)
	d.mu.Unlock()
	d.countQuarantined()
	return nil
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

func (d *Dir) dropDir(path string) error {
	dropped := path + droppedSuffix
	if err := sys.RemoveAll(d.fs, dropped); err != nil {
		return err
	}
	if err := d.fs.Rename(path, dropped); isMissing(err) {
		return nil
	} else if err != nil {
		return err
	}
	if err := d.fs.SyncDir(filepath.Dir(path)); err != nil {
		return err
	}
	if err := sys.RemoveAll(d.fs, dropped); err != nil {
		return err
	}
	return d.fs.SyncDir(filepath.Dir(path))
}

// finishDrops deletes what a crash left of dropped logs.
func (d *Dir) finishDrops() error {
	for _, under := range []string{topicsDir, quarantineDir} {
		list, err := d.fs.ReadDir(filepath.Join(d.path, under))
		if err != nil {
			return err
		}
		for _, e := range list {
			name, dropped := strings.CutSuffix(e.Name, droppedSuffix)
			if _, ours := parsePartitionDir(name); !dropped || !ours {
				continue
			}
			if err := sys.RemoveAll(d.fs, filepath.Join(d.path, under, e.Name)); err != nil {
				return err
			}
		}
	}
	return nil
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
