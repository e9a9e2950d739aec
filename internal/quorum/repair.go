package quorum

import (
	"errors"
	"fmt"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/metadata"
)

// errHole says that an entry behind the newest snapshot cannot be read, or that nobody knows whether there was one.
var errHole = errors.New("an entry behind the newest snapshot is missing or damaged: what cannot be read may be an acknowledged change")

// repair rebuilds a log that storage has taken out of service, or that does not continue the snapshot, if no entry is lost by
// that: the last run ended in order and the snapshot holds everything it had, or the files still hold every entry behind the
// snapshot. Those go into a new snapshot; when that is durable the log begins anew behind it, in new files (I11). A sole voter
// may do that: what is in its log is what the next election would commit. Else the damage is returned, and the node refuses
// by name.
func (r *recovered) repair(damage error) error {
	next := r.snapshot
	if !r.nothingBehind() {
		if err := r.replayTail(&next); err != nil {
			return fmt.Errorf("%w; %w", damage, err)
		}
	}
	if next.Index != r.snapshot.Index {
		if err := r.store.WithReserve(func() error { return r.snapshots.write(next) }); err != nil {
			return fmt.Errorf("%w; %w", damage, err)
		}
		r.snapshot = next
	}
	if err := r.log.Reset(kafka.Offset(next.Index + 1)); err != nil {
		return fmt.Errorf("%w; %w", damage, err)
	}
	// The snapshots before this one have no log behind them any more.
	r.snapshots.forgetBefore(next.snapshotID)
	r.tail = tail{term: next.Term}
	r.lines.Warn("the metadata log was damaged and has been rebuilt; no entry was lost", "damage", damage, "index", next.Index)
	return nil
}

// nothingBehind says that the newest snapshot holds everything the last run had, whatever has become of the log's files since.
func (r *recovered) nothingBehind() bool {
	return r.last.clean && r.last.synced != kafka.NoOffset && r.last.synced <= r.next()
}

// replayTail applies the entries behind the newest snapshot to next.
func (r *recovered) replayTail(next *snapshot) error {
	if r.tail.err != nil {
		return r.tail.err
	}
	seen := tail{term: next.Term}
	if err := seen.judge(r.dir, r.tail.entries); err != nil {
		return err
	}
	if seen.changes {
		return fmt.Errorf("a membership change is behind the snapshot: %w", errHole)
	}
	for _, e := range r.tail.entries {
		var err error
		if next.Image, err = applyEntry(next.Image, e.GetIndex(), e.GetData()); err != nil {
			return err
		}
		next.snapshotID = snapshotID{Index: e.GetIndex(), Term: e.GetTerm()}
	}
	return nil
}

// applyEntry applies one entry's records. An entry without records raises the version too: an Image's version is how far its
// node has come.
func applyEntry(image *metadata.Image, index uint64, data []byte) (*metadata.Image, error) {
	var rs []metadata.Record
	if len(data) > 0 {
		var err error
		if rs, err = metadata.DecodeRecords(data); err != nil {
			return nil, err
		}
	}
	return image.Apply(index, rs)
}
