package quorum

import (
	"errors"
	"fmt"
	"os"

	"go.etcd.io/raft/v3/raftpb"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/metadata"
	"strandline.dev/internal/record"
	"strandline.dev/internal/storage"
)

// errHole says that an entry behind the newest snapshot cannot be read.
var errHole = errors.New("an entry behind the newest snapshot is missing or damaged")

// repair rebuilds a log that storage has taken out of service, if no entry is lost by that: the damage lies below the newest
// snapshot, or is a sync that failed while every byte is readable. Everything behind the snapshot goes into a new snapshot;
// when that is durable the log begins anew behind it, in new files (I11). A sole voter may do that: what is in its log is
// what the next election would commit. If anything is missing the damage is returned, and the node refuses by name.
func (r *recovered) repair(damage error) error {
	tail, err := r.readTail()
	if err != nil {
		return errors.Join(damage, err)
	}
	next := r.snapshot
	for _, e := range tail {
		if e.GetType() != raftpb.EntryNormal {
			return errors.Join(damage, fmt.Errorf("entry %d changes the membership: %w", e.GetIndex(), errHole))
		}
		if next.Image, err = applyEntry(next.Image, e.GetIndex(), e.GetData()); err != nil {
			return errors.Join(damage, err)
		}
		next.snapshotID = snapshotID{Index: e.GetIndex(), Term: e.GetTerm()}
	}
	if next.Index != r.snapshot.Index {
		if err := r.snapshots.write(next); err != nil {
			return errors.Join(damage, err)
		}
		r.snapshot = next
	}
	if err := r.log.Reset(kafka.Offset(next.Index + 1)); err != nil {
		return errors.Join(damage, err)
	}
	// The snapshots before this one have no log behind them any more.
	r.snapshots.forgetBefore(next.snapshotID)
	r.lines.Warn("the metadata log was damaged and has been rebuilt; no entry was lost", "damage", damage, "index", next.Index)
	return nil
}

// readTail reads the entries behind the newest snapshot from the log's files, whatever their state. The log itself serves
// only what lies below the damage.
func (r *recovered) readTail() ([]*raftpb.Entry, error) {
	var tail []*raftpb.Entry
	next := kafka.Offset(r.snapshot.Index + 1)
	reached := kafka.NoOffset
	err := storage.DumpLog(r.machine.FS, r.dir, func(d storage.DumpedBatch) error {
		whole := d.Header.Bytes > 0
		if whole {
			reached = d.Header.End
		}
		switch {
		case whole && d.Header.End <= next:
			return nil // in the snapshot
		case !whole, d.Checksum != nil, d.Header.Base != next, d.Header.Bytes > segmentBytes:
			return fmt.Errorf("%s: byte %d: %w", d.File, d.Pos, errHole)
		}
		e, err := r.readEntry(d)
		if err != nil {
			return err
		}
		tail = append(tail, e)
		next++
		return nil
	})
	if reached == kafka.NoOffset && !r.voted {
		reached = next // the vote comes before the first entry, so there never was one
	}
	if err == nil && reached != next {
		err = fmt.Errorf("%s: the log ends at %d: %w", r.dir, reached, errHole)
	}
	return tail, err
}

func (r *recovered) readEntry(d storage.DumpedBatch) (*raftpb.Entry, error) {
	f, err := r.machine.FS.OpenFile(d.File, os.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b := make([]byte, d.Header.Bytes)
	if _, err := f.ReadAt(b, d.Pos); err != nil {
		return nil, err
	}
	batch, err := record.Single(b)
	if err != nil {
		return nil, err
	}
	// Verified by the dump, of bytes read a moment earlier.
	if err := batch.VerifyCRC(); err != nil {
		return nil, err
	}
	return decodeEntry(batch)
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
