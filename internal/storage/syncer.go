package storage

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"strandline.dev/internal/sys"
)

// Syncer makes the partition logs of one data directory durable, in rounds. A round takes all logs with new bytes, syncs up to
// parallelSyncsMax files in parallel or more of them by one SyncAll, and tells the waiters. The next round starts at once: the sync
// in progress is the window in which appends collect. After a round of roundBytesBig it starts roundPause later: who publishes as fast as that does
// not wait for a round but for the processor, of which each takes its share, however many bytes it has.
type Syncer struct {
	dir  *Dir
	wake chan struct{} // capacity 1
	done chan struct{}
	// since is the start of the round in progress, nil between rounds.
	since atomic.Pointer[time.Time]

	mu struct {
		sync.Mutex
		dirty    []*Log // Log.mu.queued says that a log is in it
		notices  []*Log
		caches   []*Log
		writing  bool // a goroutine writes caches
		inline   bool // tests: runAll does everything on the caller's goroutine
		running  bool
		stopping bool
	}
}

func newSyncer(d *Dir) *Syncer {
	s := &Syncer{dir: d, wake: make(chan struct{}, 1), done: make(chan struct{})}
	s.mu.inline = true
	return s
}

// begin starts the syncer's goroutine.
func (s *Syncer) begin() {
	s.mu.Lock()
	s.mu.inline, s.mu.running = false, true
	s.mu.Unlock()
	go s.run()
}

func (s *Syncer) run() {
	defer close(s.done)
	for range s.wake {
		for bytes, some := s.round(); some; bytes, some = s.round() {
			if bytes >= roundBytesBig {
				time.Sleep(roundPause)
			}
		}
		s.mu.Lock()
		stopping := s.mu.stopping
		s.mu.Unlock()
		if stopping {
			return
		}
	}
}

// stop ends the goroutines. The logs are closed by then, so what is queued has nothing left to do.
func (s *Syncer) stop() {
	s.mu.Lock()
	s.mu.stopping = true
	running := s.mu.running
	s.mu.Unlock()
	s.signal()
	if running {
		<-s.done
	}
}

func (s *Syncer) signal() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

func (s *Syncer) enqueue(l *Log) {
	s.mu.Lock()
	s.mu.dirty = append(s.mu.dirty, l)
	s.mu.Unlock()
	s.signal()
}

// enqueueNotice has OnStored called. Log.mu.noticed says that a log is in the list.
func (s *Syncer) enqueueNotice(l *Log) {
	s.mu.Lock()
	s.mu.notices = append(s.mu.notices, l)
	s.mu.Unlock()
	s.signal()
}

// enqueueCaches has a log's cache files written by a goroutine that ends when there are none left. Log.mu is held.
func (s *Syncer) enqueueCaches(l *Log) {
	if l.mu.caches.queued {
		return
	}
	l.mu.caches.queued = true
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.caches = append(s.mu.caches, l)
	if !s.mu.writing && !s.mu.inline && !s.mu.stopping {
		s.mu.writing = true
		go s.writeCaches()
	}
}

func (s *Syncer) writeCaches() {
	var failed cacheFailures
	defer func() { failed.tell(s.dir.log) }()
	for {
		s.mu.Lock()
		if len(s.mu.caches) == 0 {
			s.mu.writing = false
			s.mu.Unlock()
			return
		}
		l := s.mu.caches[0]
		s.mu.caches = s.mu.caches[1:]
		s.mu.Unlock()
		l.writeCachesFor(&failed)
	}
}

// RoundSince is the start of the round in progress; ok is false between rounds. A watchdog that sees the same start for too
// long knows that the disk hangs.
func (s *Syncer) RoundSince() (start time.Time, ok bool) {
	if t := s.since.Load(); t != nil {
		return *t, true
	}
	return time.Time{}, false
}

// round does what is queued. It says how many bytes were synced, and whether there was anything.
func (s *Syncer) round() (bytes int64, some bool) {
	s.mu.Lock()
	dirty, notices := s.mu.dirty, s.mu.notices
	s.mu.dirty, s.mu.notices = nil, nil
	if most := s.dir.openFiles.roundMax(); len(dirty) > most {
		dirty, s.mu.dirty = dirty[:most:most], dirty[most:]
	}
	s.mu.Unlock()
	for _, l := range notices {
		l.tellStored()
	}
	if len(dirty) > 0 {
		began := time.Now()
		s.since.Store(&began)
		bytes = s.flush(dirty)
		s.since.Store(nil)
		s.dir.metrics.Fsync.Observe(time.Since(began).Seconds())
	}
	return bytes, len(dirty)+len(notices) > 0
}

// dequeued notes that the log's entry in the queue has been taken. Only the syncer calls it: if a direct Sync did, the next append
// would put the log into the queue a second time, and a round would wait for a log that it holds itself.
func (l *Log) dequeued() {
	l.mu.Lock()
	l.mu.queued = false
	l.mu.Unlock()
}

// flush syncs what is new in the logs, and says how much that was.
func (s *Syncer) flush(logs []*Log) (bytes int64) {
	jobs := make([]*flushJob, 0, len(logs))
	files := make([]sys.File, 0, len(logs))
	var newDir *flushJob
	for _, l := range logs {
		l.dequeued()
		if j := l.beginFlush(); j != nil {
			jobs, files, bytes = append(jobs, j), append(files, j.files...), bytes+j.bytes
			if j.newDir {
				newDir = j
			}
		}
	}
	errs := s.syncFiles(files)
	var parentErr error
	if newDir != nil {
		parentErr = s.dir.syncParent(newDir.log.tp) // all partition directories have one parent
	}
	gone := s.dir.gone()
	for _, j := range jobs {
		err := errors.Join(errs[:len(j.files)]...)
		errs = errs[len(j.files):]
		if j.newDir {
			err = decisive(err, parentErr)
		}
		_ = j.end(decisive(err, gone)) // the log keeps it
		// Without io: the receiver may wait for a lock whose holder waits for io.
		j.log.tellStored()
	}
	return bytes
}

// syncFiles makes the files durable and returns one result for each.
func (s *Syncer) syncFiles(files []sys.File) []error {
	if len(files) > parallelSyncsMax {
		err := s.dir.fs.SyncAll(s.dir.path)
		if err == nil {
			return make([]error, len(files))
		}
		errs := syncEach(files)
		if errors.Is(err, errors.ErrUnsupported) || sys.IsTooManyFiles(err) || errors.Join(errs...) != nil {
			return errs // each file by itself, or the culprits are named
		}
		// Nothing names the culprit: every file of the round may be the one (I11).
		for i := range errs {
			errs[i] = err
		}
		return errs
	}
	return syncEach(files)
}

// syncEach syncs every file once, at most parallelSyncsMax at a time.
func syncEach(files []sys.File) []error {
	errs := make([]error, len(files))
	if len(files) == 1 {
		errs[0] = files[0].Sync()
		return errs
	}
	var next atomic.Int64
	var wg sync.WaitGroup
	for range min(len(files), parallelSyncsMax) {
		wg.Go(func() {
			for i := next.Add(1) - 1; i < int64(len(files)); i = next.Add(1) - 1 {
				errs[i] = files[i].Sync()
			}
		})
	}
	wg.Wait()
	return errs
}

// runAll does on the caller's goroutine everything that is queued, caches included. It is for directories without goroutines.
func (s *Syncer) runAll() {
	for _, some := s.round(); some; _, some = s.round() {
	}
	s.mu.Lock()
	logs := s.mu.caches
	s.mu.caches = nil
	s.mu.Unlock()
	for _, l := range logs {
		l.writeCaches()
	}
}
