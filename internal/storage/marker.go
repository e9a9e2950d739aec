package storage

import (
	"errors"
	"os"
	"path/filepath"

	"strandline.dev/internal/sys"
)

const (
	damagedMagic   = "SLDM"
	damagedVersion = 1
)

// damage takes the log out of service and leaves the marker that keeps it so across restarts (I11). The first one stays.
func (l *Log) damage(c *CorruptError) {
	l.mu.Lock()
	first := l.mu.damaged == nil
	if first {
		l.mu.damaged = c
	}
	l.mu.Unlock()
	if !first {
		return
	}
	l.dir.log.Error("log is damaged and takes no more records", "log", l.tp.String(), "file", c.File, "pos", c.Pos, "why", c.Why)
	l.mark(c)
	if err := l.dir.mustSave(); err != nil {
		l.dir.log.Error("the damage could not be noted in the sync-point file", "log", l.tp.String(), "error", err)
	}
}

// keepJudgement has the damage that opening found outlive this process, before the log is handed out: the next start may know less than
// this one (a sync point further back, the same boot id, fewer files).
func (l *Log) keepJudgement() {
	l.dir.mu.Lock()
	p, known := l.dir.mu.points[l.tp]
	l.dir.mu.Unlock()
	l.mu.Lock()
	c := l.mu.damaged
	if c != nil && known {
		p.damaged = true
		l.mu.judged = &p
	}
	l.mu.Unlock()
	if c == nil {
		return
	}
	if there, err := sys.Exists(l.dir.fs, filepath.Join(l.path, damagedFile)); err == nil && there && l.dir.fs.SyncDir(l.path) == nil {
		return
	}
	l.mark(c)
}

// mark writes the damage marker. Devices that fail do not fail once: if not all of it works the marker is made in whatever way is left,
// and SavePoints repeats it until it is known to be on disk.
func (l *Log) mark(c *CorruptError) {
	err := l.markDurably(c)
	if err != nil {
		l.dir.log.Error("the damage marker could not be written and will be tried again", "log", l.tp.String(), "error", err)
		l.markSomehow()
	}
	l.mu.Lock()
	l.mu.unmarked = err != nil
	l.mu.Unlock()
}

func (l *Log) markDurably(c *CorruptError) error {
	name := filepath.Join(l.path, damagedFile)
	err := l.dir.WithReserve(func() error { return sys.WriteFileAtomic(l.dir.fs, name, encodeDamage(c)) })
	// A log whose directory was missing has a new one.
	return errors.Join(err, l.dir.syncParent(l.tp))
}

// markSomehow makes a file with the marker's name, whose presence counts whatever its content: an empty one, or, where not even that finds
// room, a cache by another name.
func (l *Log) markSomehow() {
	name := filepath.Join(l.path, damagedFile)
	if f, err := l.dir.fs.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600); err == nil {
		f.Close() //nolint:errcheck // nothing was written
		return
	}
	caches := []string{epochsFile}
	if ls, err := l.list(); err == nil {
		for _, s := range ls.segments {
			caches = append(caches, offsetName(s.base, indexSuffix))
		}
	}
	for _, cache := range caches {
		if l.dir.fs.Rename(filepath.Join(l.path, cache), name) == nil {
			return
		}
	}
}

// remark repeats mark where it failed. A log whose files somebody works on has to wait: what it waits for may be a reset.
func (l *Log) remark() {
	select {
	case l.io <- struct{}{}:
	default:
		return
	}
	defer l.unlockIO()
	l.remarkIO()
}

// remarkIO is remark for a caller that holds io.
func (l *Log) remarkIO() {
	l.mu.Lock()
	c, due := l.mu.damaged, l.mu.unmarked && !l.mu.closed
	l.mu.Unlock()
	if due && c != nil {
		l.mark(c)
	}
}

// encodeDamage is the content of the damage marker. Its presence counts, whatever its content.
func encodeDamage(c *CorruptError) []byte {
	return appendFrame(nil, damagedMagic, damagedVersion, func(b []byte) []byte {
		b = appendText(b, clipped(filepath.Base(c.File), reasonMax))
		b = appendI64(b, c.Pos)
		return appendText(b, clipped(c.Why, reasonMax))
	})
}

// readDamage returns what the marker says, or nil when there is none.
func readDamage(fsys sys.FS, dir string) (*CorruptError, error) {
	name := filepath.Join(dir, damagedFile)
	b, err := sys.ReadFile(fsys, name, stateFileMax)
	if isMissing(err) {
		return nil, nil
	}
	if err != nil && !errors.Is(err, sys.ErrTooLarge) {
		return nil, err
	}
	c := &CorruptError{File: dir, Why: "a damage marker was found that cannot be read"}
	if f, err := openFile(b, damagedMagic, damagedVersion); err == nil {
		file, pos, why := f.text(reasonMax), f.i64(), f.text(reasonMax)
		if f.done() {
			c = &CorruptError{File: filepath.Join(dir, file), Pos: pos, Why: why}
		}
	}
	return c, nil
}
