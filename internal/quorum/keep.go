package quorum

import (
	"errors"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"

	"strandline.dev/internal/sys"
)

// snapshots are the snapshot files of one metadata directory. The last two stay: until the newer one is proven readable by
// a start, the older one and the log behind it are what a damaged newer one is repaired from.
type snapshots struct {
	fs  sys.FS
	dir string
	log *slog.Logger
	// kept are the snapshots that were readable when they were last looked at, oldest first.
	kept []snapshotID
	// damaged are files with a snapshot's name that are of no use. They go when a newer snapshot is durable.
	damaged []snapshotID
	// staged is a snapshot whose installation was interrupted (install.go).
	staged *snapshot
}

// openSnapshots reads the newest valid snapshot. found is false when no file has a snapshot's name; when there are some and
// none is valid, the error is the *CorruptError of the newest.
func openSnapshots(fsys sys.FS, dir string, log *slog.Logger) (s *snapshots, newest snapshot, found bool, err error) {
	s = &snapshots{fs: fsys, dir: dir, log: log}
	files, err := fsys.ReadDir(dir)
	if err != nil {
		return nil, snapshot{}, false, err
	}
	var ids []snapshotID
	for _, f := range files {
		if id, ok := parseSnapshotName(f.Name); ok && !f.IsDir {
			ids = append(ids, id)
		}
		if (strings.HasSuffix(f.Name, snapshotSuffix+".tmp") || strings.HasSuffix(f.Name, stagedSuffix+".tmp")) && !f.IsDir {
			// An interrupted write: nobody will finish it, and each has another name (I14).
			if err := fsys.Remove(filepath.Join(dir, f.Name)); err != nil {
				log.Warn("a temporary snapshot could not be removed", "file", f.Name, "error", err)
			}
		}
	}
	if s.staged, err = s.readStaged(files); err != nil {
		return nil, snapshot{}, false, err
	}
	slices.SortFunc(ids, snapshotID.compare)
	var first *CorruptError
	for _, id := range slices.Backward(ids) {
		snap, err := s.read(id, !found)
		var corrupt *CorruptError
		switch {
		case errors.As(err, &corrupt):
			log.Warn("a metadata snapshot is damaged; an older one is used", "file", corrupt.File, "why", corrupt.Why)
			s.damaged = append(s.damaged, id)
			if first == nil {
				first = corrupt
			}
			continue
		case err != nil:
			return nil, snapshot{}, false, err
		}
		s.kept = append(s.kept, id)
		if !found {
			newest, found = snap, true
		}
	}
	slices.Reverse(s.kept)
	if s.staged != nil {
		return s, *s.staged, true, nil // it replaces whatever else there is
	}
	if !found && first != nil {
		return nil, snapshot{}, false, first
	}
	return s, newest, found, nil
}

// read verifies a snapshot, and decodes it if whole. A file that is not what was written is a *CorruptError.
func (s *snapshots) read(id snapshotID, whole bool) (snapshot, error) {
	name := filepath.Join(s.dir, id.file())
	b, err := sys.ReadFile(s.fs, name, snapshotFileMax)
	if errors.Is(err, sys.ErrTooLarge) {
		return snapshot{}, &CorruptError{File: name, Why: err.Error()}
	}
	if err != nil {
		return snapshot{}, err
	}
	snap := snapshot{snapshotID: id}
	if err = intact(b); err == nil && whole {
		snap, err = decodeSnapshot(b)
	}
	if err == nil && snap.snapshotID != id {
		err = errSnapshotIndex
	}
	if err != nil {
		return snapshot{}, &CorruptError{File: name, Why: err.Error()}
	}
	return snap, nil
}

// write makes a snapshot durable.
func (s *snapshots) write(snap snapshot) error {
	b, err := encodeSnapshot(snap)
	if err != nil {
		return err
	}
	if err := sys.WriteFileAtomic(s.fs, filepath.Join(s.dir, snap.file()), b); err != nil {
		return err
	}
	// The replay of the log may have led to a snapshot where a damaged one was: it is good now, and must not be pruned.
	s.damaged = slices.DeleteFunc(s.damaged, func(id snapshotID) bool { return id == snap.snapshotID })
	if n := len(s.kept); n == 0 || s.kept[n-1].compare(snap.snapshotID) < 0 {
		s.kept = append(s.kept, snap.snapshotID)
	}
	return nil
}

// covered is the index up to which (inclusive) the log may be dropped: what the oldest snapshot to keep holds. It is 0
// while there are fewer than snapshotsKept.
func (s *snapshots) covered() uint64 {
	if len(s.kept) < snapshotsKept {
		return 0
	}
	return s.kept[len(s.kept)-snapshotsKept].Index
}

// prune removes what is older than the snapshots to keep, and damaged files. A file that stays after a crash is removed
// next time, so nothing is synced.
func (s *snapshots) prune() {
	remove := s.damaged
	s.damaged = nil
	if n := len(s.kept) - snapshotsKept; n > 0 {
		remove = append(remove, s.kept[:n]...)
		s.kept = slices.Clone(s.kept[n:])
	}
	for _, id := range remove {
		name := filepath.Join(s.dir, id.file())
		if err := s.fs.Remove(name); err != nil {
			s.log.Warn("an old metadata snapshot cannot be removed; the next snapshot does not try again", "file", name, "err", err)
		}
	}
}

// forgetBefore removes the snapshots before id, which must be durable.
func (s *snapshots) forgetBefore(id snapshotID) {
	for len(s.kept) > 0 && s.kept[0].compare(id) < 0 {
		s.damaged = append(s.damaged, s.kept[0])
		s.kept = s.kept[1:]
	}
	s.prune()
}
