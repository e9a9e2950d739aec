package quorum

import (
	"errors"
	"fmt"
	"slices"
)

// An observer's log holds committed entries only, and all of them are elsewhere too. So it is applied to its end at a start, without asking anybody,
// and what is damaged is fetched again.

// refetch drops a damaged log of an observer.
func (r *recovered) refetch(damage error) error {
	if err := r.rebuild(nil); err != nil {
		return fmt.Errorf("%w; %w", damage, err)
	}
	r.found.copied = nil
	r.tail = tail{term: r.snapshot.Term}
	r.snapshots.forgetBefore(r.snapshot.snapshotID)
	r.lines.Warn("the metadata log was damaged; it begins anew behind the newest snapshot, and the rest is fetched again", "damage", damage, "index", r.snapshot.Index)
	return nil
}

// settleObserver cuts the log behind the snapshot unless it is sure that the log was an observer's when the snapshot was written: the snapshot before it
// says so. A member that is taken out writes the first snapshot without itself, then cuts its log; a crash in between leaves entries that may
// never have been committed.
func (r *recovered) settleObserver() error {
	kept := r.snapshots.kept
	sure := len(r.snapshots.damaged) == 0
	if i := slices.Index(kept, r.snapshot.snapshotID); sure && i > 0 {
		before, err := r.snapshots.read(kept[i-1], true)
		var corrupt *CorruptError
		if err != nil && !errors.As(err, &corrupt) {
			return err
		}
		sure = err == nil && !isMember(before.Conf, r.self)
	}
	if sure || r.log.End() <= r.next() {
		return nil
	}
	if err := r.log.TruncateTo(r.next()); err != nil {
		return fmt.Errorf("cut the metadata log at %d: %w", r.next(), err)
	}
	r.tail = tail{term: r.snapshot.Term}
	r.lines.Info("this directory was taken out of the metadata quorum; entries that may not be committed are dropped", "behind", r.snapshot.Index)
	return nil
}
