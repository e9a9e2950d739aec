package storage

import (
	"errors"
	"os"
	"path/filepath"
	"slices"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/sys"
)

// A log can be emptied and go on: by a cut through the batch that its start lies in, or when a power cut took the bytes below its start.
// What it knows of producers stays, for their acknowledged batches may be repeated (I12), though all of its files go. So that state is
// in a file that a reset does not delete, before the reset begins. The file has the format of a producer snapshot.
const keptFile = "producers.kept"

// keepState writes the producer state that a reset to start is to keep, or makes sure that there is none of an earlier attempt.
func (l *Log) keepState(start kafka.Offset, keep *producers) error {
	name := filepath.Join(l.path, keptFile)
	if keep != nil {
		b := encodeProducers(keep, start)
		return l.dir.WithReserve(func() error { return sys.WriteFileAtomic(l.dir.fs, name, b) })
	}
	if there, err := sys.Exists(l.dir.fs, name); err != nil || !there {
		return err
	}
	return errors.Join(removeIfThere(l.dir.fs, name), l.dir.fs.SyncDir(l.path))
}

// restoreState makes what keepState wrote the snapshot at the new start. The kept file stays until the intent is gone: a crash before that
// wipes the log once more.
func (l *Log) restoreState(start kafka.Offset) error {
	b, err := sys.ReadFile(l.dir.fs, filepath.Join(l.path, keptFile), cacheFileMax)
	if isMissing(err) {
		return nil
	}
	if err != nil {
		return err
	}
	if _, at, err := decodeProducers(b); err != nil || at != start {
		l.dir.log.Warn("the producer state that a reset was to keep cannot be read and is lost", "log", l.tp.String(), "error", err)
		return nil
	}
	name := filepath.Join(l.path, offsetName(start, producersSuffix))
	return l.dir.WithReserve(func() error { return sys.WriteFileAtomic(l.dir.fs, name, b) })
}

// keepProducers keeps the producer state of a log that is to begin anew at start, above all that is left of it. A snapshot may know
// batches that are lost: they were committed, and their records are deleted.
func (r *recovery) keepProducers(start kafka.Offset) error {
	segments := slices.Concat(r.below, r.segments)
	p, from, _ := r.l.loadProducers(sortOffsets(r.ls.snapshots), segments[0].base, start)
	for _, s := range segments {
		if s.end <= from {
			continue
		}
		if err := r.noteSegment(&p, s, from); err != nil {
			r.l.dir.log.Warn("producer state below the log start is lost", "log", r.l.tp.String(), "error", err)
		}
	}
	return r.l.keepState(start, &p)
}

func (r *recovery) noteSegment(p *producers, s *segment, from kafka.Offset) error {
	f, err := r.l.dir.fs.OpenFile(s.path, os.O_RDONLY, 0)
	if err != nil {
		return err
	}
	atMs := r.ls.modified[s].UnixMilli() // never earlier than an append
	err = walkRange(f, s.size, from, s.end, func(h BatchHeader) string {
		p.note(h, atMs)
		return ""
	})
	return errors.Join(asCorrupt(s.path, err), f.Close())
}
