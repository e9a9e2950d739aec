package storage

import (
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"
)

// The limit is where records of user topics end, before the disk does (R89): what disk.limit.bytes and disk.limit.percent allow, and in any
// case the capacity less what metadata and group progress need (reserve.need). A publish asks on each append, so the good case is two loads:
// `written` counts what appends have added, and each measuring says at which count the limit is reached. Removals are seen by the next measuring
// only, and bytes appended during one may count twice, so that the estimate errs towards refusing. Nothing is ever removed to make room (I9).
//
//   - From the last part before the limit on (slowBytesMax) publishes are slowed, more the nearer it is.
//   - At the limit publishes are refused, until some room (resumeBytes) is below it again: no restart, and no change of mind with every record.
//   - Copies of what others lead may take half of that room more, because their leaders have accepted those records. Then they end too, and this
//     replica leaves the ISR by its lag.
//   - Internal topics and metadata have no limit but the disk itself, and behind that the reserve.
type limit struct {
	dir            *Dir
	bytes, percent int64 // 0: none
	// written counts the bytes of appends in this process. At slow publishes are slowed, at stop refused, at copies copies are.
	written, slow, stop, copies atomic.Int64
	// refusal is why publishes are refused, nil while they are taken.
	refusal atomic.Pointer[error]

	mu struct {
		sync.Mutex
		bound Bound
		// held is what the directory's files had when `written` was heldAt.
		held, heldAt int64
		// walked is when that was found out, and walk how long it took.
		walked time.Time
		walk   time.Duration
	}
}

// Bound is what is in use, whoever uses it, and from how much on records of user topics are refused.
type Bound struct {
	Used, Limit int64
	// Setting is what says so; "" is the capacity of the disk.
	Setting string
}

func (b Bound) room() int64 { return b.Limit - b.Used }

// resume is how much room there must be below a limit that was reached before publishes are taken again.
func (b Bound) resume() int64 { return min(resumeBytesMax, b.Limit/limitFraction) }

// LimitError says that records are refused because a disk limit is reached. It is an ErrNoSpace.
type LimitError struct{ why string }

func (e *LimitError) Error() string { return e.why }

// Unwrap returns ErrNoSpace.
func (e *LimitError) Unwrap() error { return ErrNoSpace }

// openLimit measures for the first time: a node that starts above its limit refuses from the beginning.
func (d *Dir) openLimit(o DirOptions) error {
	r := &d.limit
	r.dir, r.bytes, r.percent = d, o.LimitBytes, o.LimitPercent
	held, err := int64(0), error(nil)
	if r.bytes > 0 {
		if held, err = d.heldBytes(); err != nil {
			return fmt.Errorf("measure %s for disk.limit.bytes: %w", d.path, err)
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mu.held, r.mu.walked = held, time.Now()
	r.judgeLocked()
	return nil
}

// MeasureRoom finds out anew how much room there is below the limit. It is called about every second, by one goroutine; a directory whose
// files take long to list is listed so much more rarely.
func (d *Dir) MeasureRoom() {
	r := &d.limit
	r.mu.Lock()
	due := r.bytes > 0 && time.Since(r.mu.walked) >= walkPart*r.mu.walk
	r.mu.Unlock()
	var held, at int64
	var err error
	began := time.Now()
	if due {
		at = r.written.Load() // before: what is appended meanwhile counts twice rather than not
		held, err = d.heldBytes()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case err != nil:
		d.log.Warn("the data directory could not be measured", "dir", d.path, "error", err)
		fallthrough // the last measuring and what was written since hold
	case due:
		r.mu.walked, r.mu.walk = time.Now(), time.Since(began)
	}
	if due && err == nil {
		r.mu.held, r.mu.heldAt = held, at
	}
	r.judgeLocked()
}

// judgeLocked sets from where on publishes are slowed and refused, and whether they are refused now.
func (r *limit) judgeLocked() {
	at := r.written.Load()
	b, known := r.tightestLocked(at)
	if !known {
		r.slow.Store(math.MaxInt64)
		r.stop.Store(math.MaxInt64)
		r.copies.Store(math.MaxInt64)
		return
	}
	r.mu.bound = b
	r.stop.Store(at + b.room())
	r.slow.Store(at + b.room() - min(slowBytesMax, b.Limit/slowFraction))
	r.copies.Store(at + b.room() + b.resume()/2)
	switch refused := r.refusal.Load() != nil; {
	case b.room() <= 0 || refused && b.room() < b.resume():
		r.refuseLocked() //nolint:errcheck // the state, not an outcome
	case refused:
		r.refusal.Store(nil)
		r.dir.noteRefusal()
		r.dir.log.Info("there is room below the disk limit again: records of user topics are taken", "dir", r.dir.path, "used", b.Used, "limit", b.Limit)
	}
}

// tightestLocked is the bound that is reached first, false where there is none or nobody can tell.
func (r *limit) tightestLocked(at int64) (tightest Bound, known bool) {
	consider := func(b Bound) {
		if !known || b.room() < tightest.room() {
			tightest, known = b, true
		}
	}
	if r.bytes > 0 {
		consider(Bound{Used: r.mu.held + at - r.mu.heldAt, Limit: r.bytes, Setting: "disk.limit.bytes"})
	}
	s, err := r.dir.reserve.ask()
	if err != nil {
		return tightest, known
	}
	if r.percent > 0 {
		consider(Bound{Used: s.Total - s.Usable, Limit: s.Total / 100 * r.percent, Setting: "disk.limit.percent"})
	}
	if r.dir.reserve.size > 0 {
		consider(Bound{Used: s.Total - s.Usable, Limit: s.Total - r.dir.reserve.need()})
	}
	return tightest, known
}

// refuseLocked has publishes refused from now on, or renews the numbers in the reason.
func (r *limit) refuseLocked() error {
	b := r.mu.bound
	err := error(r.errorOf(b))
	if r.refusal.Swap(&err) == nil {
		r.dir.noteRefusal()
		r.dir.log.Error("the disk limit is reached: records of user topics are refused; reads, commits, retention and deletion go on",
			"dir", r.dir.path, "used", b.Used, "limit", b.Limit, "setting", b.name(), "resumes at", b.Limit-b.resume())
	}
	return err
}

func (b Bound) name() string {
	if b.Setting == "" {
		return "capacity less what metadata needs"
	}
	return b.Setting
}

func (r *limit) errorOf(b Bound) *LimitError {
	where := "on the disk of "
	if b.Setting == "disk.limit.bytes" {
		where = "in "
	}
	return &LimitError{fmt.Sprintf("the disk limit is reached: node %d has %d bytes in use %s%s and may have %d (%s); records of user topics are taken again at %d",
		r.dir.Identity().NodeID, b.Used, where, r.dir.path, b.Limit, b.name(), b.Limit-b.resume())}
}

// admit says why n bytes of a publish are refused, or nil.
func (r *limit) admit(n int) error {
	if why := r.refusal.Load(); why != nil {
		return *why
	}
	if r.written.Load()+int64(n) <= r.stop.Load() {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.judgeLocked()
	if why := r.refusal.Load(); why != nil {
		return *why
	}
	if r.written.Load()+int64(n) <= r.stop.Load() {
		return nil
	}
	return r.refuseLocked()
}

// admitCopy is admit for n bytes that another node has accepted as leader.
func (r *limit) admitCopy(n int) error {
	if r.written.Load()+int64(n) <= r.copies.Load() {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.judgeLocked()
	if r.written.Load()+int64(n) <= r.copies.Load() {
		return nil
	}
	return r.errorOf(r.mu.bound)
}

// look judges anew when something has changed what there is.
func (r *limit) look() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.judgeLocked()
}

// Slowdown is how long a publish is to be slowed because little room is left below the limit. It grows with the square of what is used of that
// last part, so that it begins gently.
func (d *Dir) Slowdown() time.Duration {
	r := &d.limit
	at, slow, stop := r.written.Load(), r.slow.Load(), r.stop.Load()
	if at <= slow || stop <= slow || r.refusal.Load() != nil {
		return 0
	}
	part := min(1, float64(at-slow)/float64(stop-slow))
	return time.Duration(part * part * float64(slowdownMax))
}

// Room is what is in use of the limit that is reached first. An error means that nobody knows.
func (d *Dir) Room() (Bound, error) {
	r := &d.limit
	r.mu.Lock()
	defer r.mu.Unlock()
	r.judgeLocked()
	if b, known := r.tightestLocked(r.written.Load()); known {
		return b, nil
	}
	s, err := d.reserve.ask()
	return Bound{Used: s.Total - s.Usable, Limit: s.Total}, err
}
