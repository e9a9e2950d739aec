package storage

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/metrics"
	"strandline.dev/internal/sys"
)

// The names in a data directory.
const (
	topicsDir     = "topics"
	metadataDir   = "metadata"
	quarantineDir = "quarantine"
	lockFile      = "lock"
	// droppedSuffix marks a partition directory that a committed record has given up and that is being deleted (I10).
	droppedSuffix = ".dropped"
)

// Dir is one data directory. It exists from OpenDir to Close, and no other process can open it meanwhile.
type Dir struct {
	fs      sys.FS
	path    string
	log     *slog.Logger
	metrics *metrics.Storage
	lock    sys.File
	syncer  *Syncer

	bootID         string // of this run
	previousBootID string // of the last run whose registration was committed
	start          *startSlots
	number         uint64 // start number of this run
	savedNumber    uint64 // start number in the sync-point file as found
	pointsKnown    bool   // the sync-point file or its copy was found whole
	copied         []byte // what the sync-point file's copy on disk holds, nil when unknown; whoever holds saving owns it
	clean          cleanMarker
	isClean        bool

	saving    chan struct{} // holds the one writer of the sync-point file
	openFiles openFiles     // open segment files
	recordIDs atomic.Int64  // record ids that the logs remember
	reserve   reserve
	limit     limit

	mu struct {
		sync.Mutex
		identity Identity
		closed   bool
		// logs holds the open logs; a nil entry is a log being opened.
		logs map[kafka.TopicPartition]*Log
		// points is what the sync-point file says, for closed logs too.
		points map[kafka.TopicPartition]point
		// flushed holds the logs that were closed with everything on disk: the clean marker needs all of them.
		flushed map[kafka.TopicPartition]bool

		saveWanted, savedTicket uint64
		saveErr                 error
	}
}

// OpenDir opens or creates a data directory: it takes the lock, reads or mints the identity, raises and syncs the start number,
// and takes the clean-shutdown marker away. Errors: sys.ErrLocked, ErrForeign, ErrIdentityLost, ErrNoSpace naming
// the directory when a new one finds no room, and those of the file system.
func OpenDir(o DirOptions) (*Dir, error) {
	d, err := openDir(o)
	if sys.IsNoSpace(err) {
		return nil, fmt.Errorf("%w: %s cannot be opened: %w", ErrNoSpace, o.Path, err)
	}
	if err != nil {
		return nil, err
	}
	d.syncer.begin()
	return d, nil
}

// openDir is OpenDir without the syncer's goroutine.
func openDir(o DirOptions) (*Dir, error) {
	d := &Dir{fs: o.Machine.FS, path: filepath.Clean(o.Path), log: o.Log, metrics: o.Metrics, saving: make(chan struct{}, 1)}
	if d.log == nil {
		d.log = slog.New(slog.DiscardHandler)
	}
	if d.metrics == nil {
		d.metrics = metrics.New().Storage
	}
	if o.Machine.BootID != nil {
		d.bootID = clipped(o.Machine.BootID(), bootIDMax)
	}
	d.openFiles.hurried = make(chan struct{})
	if d.openFiles.max = o.OpenFilesMax; d.openFiles.max <= 0 {
		d.openFiles.max = OpenFilesMaxDefault
	}
	d.mu.logs = map[kafka.TopicPartition]*Log{}
	d.mu.flushed = map[kafka.TopicPartition]bool{}
	d.syncer = newSyncer(d)
	if err := d.refuseForeign(); err != nil {
		return nil, err
	}
	if err := d.takeLock(); err != nil {
		return nil, err
	}
	if err := d.load(o); err != nil {
		return nil, errors.Join(err, d.lock.Close())
	}
	return d, nil
}

func (d *Dir) takeLock() error {
	for _, name := range []string{"", topicsDir, metadataDir, quarantineDir} {
		if err := d.fs.MkdirAll(filepath.Join(d.path, name), 0o700); err != nil {
			return err
		}
	}
	// The directory's own name must survive a power cut too; a parent that cannot be synced (a mount point's, for example) is no
	// reason to refuse.
	if err := d.fs.SyncDir(filepath.Dir(d.path)); err != nil {
		d.log.Debug("the parent of the data directory could not be synced", "dir", d.path, "error", err)
	}
	f, err := d.fs.OpenFile(filepath.Join(d.path, lockFile), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	if err := f.Lock(); err != nil {
		return errors.Join(fmt.Errorf("data directory %s is in use: %w", d.path, err), f.Close())
	}
	d.lock = f
	return d.fs.SyncDir(d.path)
}

func (d *Dir) load(o DirOptions) error {
	minted, err := d.loadIdentity()
	if err != nil {
		return err
	}
	if err := d.openReserve(o); err != nil {
		return err
	}
	if err := d.openLimit(o); err != nil {
		return err
	}
	if err := d.loadPoints(); err != nil {
		return err
	}
	if d.start, err = openStart(d.fs, d.path); err != nil {
		return err
	}
	d.previousBootID = d.start.newest.bootID
	previous := max(d.start.newest.number, d.savedNumber)
	if err := d.takeClean(previous); err != nil {
		return err
	}
	d.number = previous + 1
	// Written in place, which takes room only where a file system copies what it overwrites.
	if err := d.WithReserve(func() error { return d.start.write(d.number, d.previousBootID) }); err != nil {
		return err
	}
	if holds, err := d.holdsData(); err != nil {
		return err
	} else if !d.pointsKnown && (minted || !holds) {
		// From now on a missing sync-point file means damage, not a young directory.
		d.pointsKnown = true
		if err := d.mustSave(); err != nil {
			return err
		}
	}
	if err := d.finishDrops(); err != nil {
		return err
	}
	d.countQuarantined()
	return nil
}

// StartNumber is the number of this start: 1 for the first, and higher for each later one.
func (d *Dir) StartNumber() uint64 { return d.number }

// BootID identifies the operating system's run, or is "" when unreadable.
func (d *Dir) BootID() string { return d.bootID }

// PreviousBootID is the boot id of the last run whose registration was committed, or "".
func (d *Dir) PreviousBootID() string { return d.previousBootID }

// sameBoot says whether the page cache has kept what the previous runs wrote. An unreadable id never matches (I4).
func (d *Dir) sameBoot() bool { return d.bootID != "" && d.bootID == d.previousBootID }

// CommitBootID records this run's boot id, synced. It must be called only after the registration that judged the previous one is
// committed: a crash before that has to be judged by the old id again (I4).
func (d *Dir) CommitBootID() error {
	return d.WithReserve(func() error { return d.start.write(d.number, d.bootID) })
}

// Path is the directory's path.
func (d *Dir) Path() string { return d.path }

// MetadataDir is the path of the metadata log's directory, in which the quorum keeps its vote and snapshots.
func (d *Dir) MetadataDir() string { return filepath.Join(d.path, metadataDir) }

// Syncer makes the partition logs durable.
func (d *Dir) Syncer() *Syncer { return d.syncer }

func (d *Dir) partitionPath(tp kafka.TopicPartition) string {
	if tp == kafka.MetadataPartition {
		return d.MetadataDir()
	}
	return filepath.Join(d.path, topicsDir, tp.String())
}

func (d *Dir) quarantinePath(tp kafka.TopicPartition) string {
	return filepath.Join(d.path, quarantineDir, tp.String())
}

// parsePartitionDir reads "<topic id in hex>-<partition>".
func parsePartitionDir(name string) (kafka.TopicPartition, bool) {
	const idLen = 2 * len(kafka.TopicID{})
	if len(name) < idLen+2 || name[idLen] != '-' {
		return kafka.TopicPartition{}, false
	}
	id, err := kafka.ParseIDHex(name[:idLen])
	if err != nil {
		return kafka.TopicPartition{}, false
	}
	n, err := strconv.ParseInt(name[idLen+1:], 10, 32)
	tp := kafka.TopicPartition{Topic: id, Partition: int32(n)}
	// Only the canonical form: no capitals, no leading zeros, no sign.
	return tp, err == nil && n >= 0 && tp.String() == name
}

// PartitionDirs lists the partitions that have a directory, in order. Foreign names are logged and left alone.
func (d *Dir) PartitionDirs() ([]kafka.TopicPartition, error) { return d.listPartitions(topicsDir) }

func (d *Dir) listPartitions(under string) ([]kafka.TopicPartition, error) {
	list, err := d.fs.ReadDir(filepath.Join(d.path, under))
	if err != nil {
		return nil, err
	}
	var tps []kafka.TopicPartition
	for _, e := range list {
		tp, ok := parsePartitionDir(e.Name)
		switch {
		case ok && e.IsDir:
			tps = append(tps, tp)
		case !strings.HasSuffix(e.Name, droppedSuffix):
			d.log.Warn("a name in the data directory is not a partition's and is left alone", "dir", filepath.Join(d.path, under), "name", e.Name)
		}
	}
	return tps, nil
}

// OpenLog opens the log of a partition, or creates it with its first offset at o.Start. Damage is no error: Log.Damaged
// reports it and the log serves what lies below. Errors: ErrExists when it is open already, ErrClosed, and the file system's.
func (d *Dir) OpenLog(tp kafka.TopicPartition, o LogOptions) (*Log, error) {
	return d.openLog(tp, o, true)
}

// OpenMetadataLog opens the metadata log. It is the same Log, but never in the syncer's queue: its owner calls Sync.
func (d *Dir) OpenMetadataLog(o LogOptions) (*Log, error) {
	o.Essential = true
	return d.openLog(kafka.MetadataPartition, o, false)
}

func (d *Dir) openLog(tp kafka.TopicPartition, o LogOptions, grouped bool) (*Log, error) {
	d.mu.Lock()
	if d.mu.closed {
		d.mu.Unlock()
		return nil, ErrClosed
	}
	if _, open := d.mu.logs[tp]; open {
		d.mu.Unlock()
		return nil, fmt.Errorf("%w: %s is open", ErrExists, tp)
	}
	d.mu.logs[tp] = nil
	delete(d.mu.flushed, tp)
	p, known := d.mu.points[tp]
	d.mu.Unlock()

	var l *Log
	err := d.WithReserve(func() error {
		l = newLog(d, tp, o, grouped) // anew: what a failed attempt found is not built upon
		return l.open(p, known)
	})
	d.mu.Lock()
	defer d.mu.Unlock()
	if err != nil {
		delete(d.mu.logs, tp)
		return nil, fmt.Errorf("open log %s: %w", l.path, err)
	}
	d.mu.logs[tp] = l
	return l, nil
}

// forget takes a closed log out of the table. flushed says that all of it is on disk and p describes it.
func (d *Dir) forget(l *Log, p point, flushed bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.mu.logs[l.tp] == l {
		delete(d.mu.logs, l.tp)
		d.mu.points[l.tp] = p
		d.mu.flushed[l.tp] = flushed
	}
}

// Close closes every log, writes the sync-point file with the true ends, and, if asked and if every log was loaded, flushed and
// undamaged, the clean-shutdown marker. The directory can be opened again afterwards.
func (d *Dir) Close(o CloseOptions) error {
	d.mu.Lock()
	if d.mu.closed {
		d.mu.Unlock()
		return ErrClosed
	}
	d.mu.closed = true
	d.mu.Unlock()
	var errs []error
	errs = append(errs, d.CloseLogs(d.openLogs(), nil)...)
	d.syncer.stop()
	errs = append(errs, d.mustSave())
	if err := errors.Join(errs...); err == nil && o.Clean && d.allFlushed() {
		errs = append(errs, d.WithReserve(func() error { return d.writeClean(o.BrokerEpoch) }))
	}
	return errors.Join(append(errs, d.lock.Close())...)
}

// allFlushed says whether every log in the directory was opened and closed with everything on disk.
func (d *Dir) allFlushed() bool {
	tps, err := d.PartitionDirs()
	if err != nil {
		return false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, tp := range tps {
		if !d.mu.flushed[tp] {
			return false
		}
	}
	flushed, opened := d.mu.flushed[kafka.MetadataPartition]
	return flushed || !opened
}

// isMissing says that a file or directory is not there.
func isMissing(err error) bool { return errors.Is(err, fs.ErrNotExist) }
