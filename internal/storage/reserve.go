package storage

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"

	"strandline.dev/internal/sys"
)

// The reserve is a file of bytes that mean nothing, written while the disk has room. A node cannot start, lead, commit progress or delete
// without a few blocks for its vote, its metadata log and its sync point, and records must never be able to take those (C034). So when a
// write of that kind finds the disk full, the file is removed and the write repeated. From then on, and whenever the file is not whole and
// there is no room to write it, records of user topics are refused by name (P43); everything else goes on in the room that was set free.
// When there is room again the file is written anew, and user records are taken again, without a restart (R90).
const reserveFile = "reserve"

// errReserveGone stops the writing of a reserve that is being spent, or of a node that is stopping.
var errReserveGone = errors.New("the reserve was spent while it was being written")

// reserve is the file's state. One without size is never written and refuses nothing.
type reserve struct {
	dir   *Dir
	size  int64 // bytes of a whole reserve
	space func(string) (sys.Space, error)
	// whole says that all of it is on disk.
	whole atomic.Bool
	// have is how much of it there is.
	have atomic.Int64
	// refusal is why records of user topics are refused, nil while they are taken.
	refusal atomic.Pointer[error]
	// keeping is held by whoever looks after the file.
	keeping chan struct{}
	// unsynced says that its removal is not on disk yet. A power cut that brings the file back does no harm, it is spent again; but some
	// file systems give the room out only then.
	unsynced atomic.Bool

	// mu is held over changes of whole and refusal, and over the removal of the file: who waited for it finds the room.
	mu struct {
		sync.Mutex
		spends uint64
		// writing is the file while it is being written: removing its name alone would not give its room back.
		writing sys.File
	}
}

// openReserve looks at what the last run left. It writes nothing: that is for later, when the node works (KeepReserve).
func (d *Dir) openReserve(o DirOptions) error {
	r := &d.reserve
	r.dir, r.space, r.keeping = d, o.Machine.Space, make(chan struct{}, 1)
	if o.ReserveBytes <= 0 {
		return nil
	}
	r.size = reserveSize(o.ReserveBytes, func() (sys.Space, error) { return r.ask() })
	if err := r.measure(); err != nil {
		return err
	}
	r.admit() //nolint:errcheck // says in log and metric from the beginning what appends will be told
	return nil
}

// reserveSize is limit, or less on a small disk.
func reserveSize(limit int64, ask func() (sys.Space, error)) int64 {
	s, err := ask()
	if err != nil {
		return limit
	}
	return min(limit, max(s.Total/reserveFraction, reserveBytesMin))
}

func (r *reserve) ask() (sys.Space, error) {
	if r.space == nil {
		return sys.Space{}, errors.ErrUnsupported
	}
	return r.space(r.dir.path)
}

func (r *reserve) path() string { return filepath.Join(r.dir.path, reserveFile) }

// measure finds out how much of the reserve is there.
func (r *reserve) measure() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	var have int64
	f, err := r.dir.fs.OpenFile(r.path(), os.O_RDONLY, 0)
	if err == nil {
		var st sys.FileInfo
		st, err = f.Stat()
		have, err = st.Size, errors.Join(err, f.Close())
	}
	if err != nil && !isMissing(err) {
		return err
	}
	r.have.Store(have)
	r.whole.Store(have >= r.size)
	return nil
}

// need is how many bytes must be free before the rest of the reserve is written: as much again is left for what the node is to go on with.
// That also keeps a node at the brink from changing its mind with every record.
func (r *reserve) need() int64 { return 2*r.size - min(r.have.Load(), r.size) }

// room says whether the rest of the reserve can be written. Where nobody can tell, trying does.
func (r *reserve) room() (usable int64, ok bool) {
	s, err := r.ask()
	return s.Usable, err != nil || s.Usable >= r.need()
}

// admit says why records of user topics are refused, or nil. Every append asks, so the good case is one load. While the first reserve is
// still being written they are taken as long as there is room for it too.
func (r *reserve) admit() error {
	if r.size == 0 || r.whole.Load() {
		return nil
	}
	if why := r.refusal.Load(); why != nil {
		return *why
	}
	usable, ok := r.room()
	if ok {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.whole.Load() {
		return nil
	}
	return r.refuseLocked(usable)
}

// refuseLocked has user records refused from now on, or renews the numbers in the reason.
func (r *reserve) refuseLocked(usable int64) error {
	id := r.dir.Identity()
	err := fmt.Errorf("%w: node %d takes no records of user topics until %d bytes are free for %s, now %d are",
		ErrNoSpace, id.NodeID, r.need(), r.dir.path, usable)
	if r.refusal.Swap(&err) == nil {
		r.dir.metrics.ReserveSpent.Set(1)
		r.dir.noteRefusal()
		r.dir.log.Error("the disk is full: records of user topics are refused; reads, commits, retention and deletion go on",
			"dir", r.dir.path, "free", usable, "resumes at", r.need())
	}
	return err
}

// spend removes the reserve for a write that must not fail for want of space. It syncs nothing: an append calls it under its partition's
// lock.
func (r *reserve) spend() {
	if r.size == 0 {
		return
	}
	r.mu.Lock()
	r.mu.spends++
	r.whole.Store(false)
	var err error
	if r.mu.writing != nil {
		err = r.mu.writing.Truncate(0)
	}
	err = errors.Join(err, removeIfThere(r.dir.fs, r.path()))
	if err == nil {
		r.have.Store(0)
		r.unsynced.Store(true)
	}
	usable, _ := r.room()
	r.refuseLocked(usable) //nolint:errcheck // the state, not an outcome
	r.mu.Unlock()
	r.dir.limit.look()
	if err != nil {
		r.dir.log.Error("the reserve cannot be given up", "file", r.path(), "error", err)
	}
}

func (r *reserve) syncRemoval() {
	if !r.unsynced.Swap(false) {
		return
	}
	if err := r.dir.fs.SyncDir(r.dir.path); err != nil {
		r.dir.log.Warn("the removal of the reserve is not synced", "file", r.path(), "error", err)
	}
}

// Refusal is why records of user topics are refused for want of space, wrapping ErrNoSpace, or nil. The metadata log and logs that are
// Essential are never refused.
func (d *Dir) Refusal() error {
	if err := d.limit.admit(0); err != nil {
		return err
	}
	return d.reserve.admit()
}

// noteRefusal has the metric say whether records of user topics are refused.
func (d *Dir) noteRefusal() {
	refused := 0.0
	if d.limit.refusal.Load() != nil || d.reserve.refusal.Load() != nil {
		refused = 1
	}
	d.metrics.PublishesRefused.Set(refused)
}

// WithReserve does a write that must not fail because records have filled the disk: if it meets a full disk the reserve is given up and it
// is done once more. write must bear repetition. No lock of a Log is held by the caller.
func (d *Dir) WithReserve(write func() error) error {
	err := write()
	if d.reserve.size == 0 || !wantsRoom(err) {
		return err
	}
	d.reserve.spend()
	d.reserve.syncRemoval()
	return write()
}

// wantsRoom says that an operation would succeed with more space. A sync that failed never does (I11).
func wantsRoom(err error) bool { return err != nil && isNoSpace(err) && !errors.Is(err, ErrSyncFailed) }

// KeepReserve brings the reserve to its size if there is room, and says whether user records are refused (log, metric, Refusal). It is
// called every few seconds while the node runs, and returns early when ctx ends.
func (d *Dir) KeepReserve(ctx context.Context) {
	r := &d.reserve
	if r.size == 0 {
		return
	}
	r.keeping <- struct{}{}
	defer func() { <-r.keeping }()
	r.syncRemoval()
	r.mu.Lock()
	spends := r.mu.spends
	r.mu.Unlock()
	err := r.measure()
	if err == nil && !r.whole.Load() {
		err = r.write(ctx, spends)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case errors.Is(err, errReserveGone):
	case isNoSpace(err):
		usable, _ := r.room()
		r.refuseLocked(usable) //nolint:errcheck // the state, not an outcome
	case err != nil:
		d.log.Warn("the reserve could not be written", "file", r.path(), "error", err)
	case r.mu.spends == spends:
		r.whole.Store(true)
		if r.refusal.Swap(nil) != nil {
			d.metrics.ReserveSpent.Set(0)
			d.noteRefusal()
			d.log.Info("there is room again: the reserve is whole", "dir", d.path, "reserve", r.size)
		}
	}
}

// write writes what is missing, in pieces, each synced: nobody else's sync waits for all of it.
func (r *reserve) write(ctx context.Context, spends uint64) (err error) {
	if _, ok := r.room(); !ok {
		return ErrNoSpace
	}
	f, err := r.beginWriting()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.endWriting(f)) }()
	piece := noise(min(reservePiece, r.size))
	for at := r.have.Load(); at < r.size; {
		if ctx.Err() != nil {
			return errReserveGone
		}
		if _, ok := r.room(); !ok {
			return ErrNoSpace // the last bytes are not for the reserve to take
		}
		n, err := r.writePiece(f, piece[:min(int64(len(piece)), r.size-at)], at, spends)
		at += int64(n)
		if err != nil {
			r.grown(spends, at)
			return err
		}
		if err := f.Sync(); err != nil {
			// Nobody knows what the disk holds of it: it is written from the beginning.
			return errors.Join(err, removeIfThere(r.dir.fs, r.path()))
		}
		r.grown(spends, at)
	}
	return r.dir.fs.SyncDir(r.dir.path)
}

// beginWriting opens the file and endWriting closes it, both under the lock: a file that is open and known to nobody would keep its room
// when its name is removed.
func (r *reserve) beginWriting() (sys.File, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f, err := r.dir.fs.OpenFile(r.path(), os.O_RDWR|os.O_CREATE, 0o600)
	r.mu.writing = f
	return f, err
}

func (r *reserve) endWriting(f sys.File) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mu.writing = nil
	return f.Close()
}

// writePiece writes to the page cache, under the lock: whoever spends the reserve then finds all of its room, and nothing is written after.
func (r *reserve) writePiece(f sys.File, b []byte, at int64, spends uint64) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.mu.spends != spends {
		return 0, errReserveGone
	}
	return f.WriteAt(b, at)
}

// grown notes a piece, unless the file is gone meanwhile.
func (r *reserve) grown(spends uint64, have int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.mu.spends == spends {
		r.have.Store(have)
	}
}

// noise is n bytes that no file system can store in less room: zeros would be kept as a hole by one that compresses.
func noise(n int64) []byte {
	b := make([]byte, n)
	x := uint64(0x9e3779b97f4a7c15)
	for i := range b {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
		b[i] = byte(x >> 32)
	}
	return b
}
