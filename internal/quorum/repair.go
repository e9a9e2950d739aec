package quorum

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"go.etcd.io/raft/v3/raftpb"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/metadata"
	"strandline.dev/internal/sys"
)

// errHole says that an entry behind the newest snapshot cannot be read, or that nobody knows whether there was one.
var errHole = errors.New("an entry behind the newest snapshot is missing or damaged: what cannot be read may be an acknowledged change")

// repair rebuilds a log that storage has taken out of service, or that does not continue the snapshot, if no entry is lost by
// that: the last run ended in order and the snapshot holds everything it had, or log and copy together still hold every entry behind
// the snapshot. The copy gets them first; when they are durable there the log begins anew behind the snapshot, in new files (I11), and
// gets them too. A crash in between leaves a log that is shorter than its copy, which the next start mends. Nothing is applied that raft
// has not committed, so this holds for one voter among several too. Else the damage is returned, and the node refuses by name.
func (r *recovered) repair(damage error) error {
	var entries []*raftpb.Entry
	var err error
	if !r.nothingBehind() {
		entries, err = r.behind()
	}
	seen := tail{term: r.snapshot.Term}
	if err == nil {
		err = seen.judge(r.dir, entries)
	}
	if err == nil {
		err = r.rebuild(entries)
	}
	if err != nil {
		return fmt.Errorf("%w; %w", damage, err)
	}
	r.tail = seen
	// The snapshots before this one have no log behind them any more.
	r.snapshots.forgetBefore(r.snapshot.snapshotID)
	r.lines.Warn("the metadata log was damaged and has been rebuilt; no entry was lost", "damage", damage, "index", uint64(r.log.End())-1)
	return nil
}

// rebuild makes copy and log hold the entries behind the newest snapshot and nothing else.
func (r *recovered) rebuild(entries []*raftpb.Entry) error {
	b := appendCopyHeader(nil, uint64(r.next()))
	for rest := entries; len(rest) > 0; {
		chunk, n, err := encodeChunk(nil, rest)
		if err == nil {
			b, _, err = appendCopyEntries(b, chunk)
		}
		if err != nil {
			return err
		}
		rest = rest[n:]
	}
	name := filepath.Join(r.dir, copyFileName)
	if err := r.store.WithReserve(func() error { return sys.WriteFileAtomic(r.machine.FS, name, b) }); err != nil {
		return err
	}
	if err := r.log.Reset(r.next()); err != nil {
		return err
	}
	return r.appendToLog(entries)
}

// nothingBehind says that the newest snapshot holds everything the last run had, whatever has become of the log's files since.
func (r *recovered) nothingBehind() bool {
	return r.last.clean && r.last.synced != kafka.NoOffset && r.last.synced <= r.next()
}

// behind returns the entries behind the newest snapshot from whichever is whole, the copy or what the log's files still hold. If both
// are, the longer one counts, and where they differ the copy (mend.go).
func (r *recovered) behind() ([]*raftpb.Entry, error) {
	next, c := uint64(r.next()), r.found.copied
	if c == nil || c.first > next || c.end() < next {
		err := r.tail.err
		switch {
		case err != nil && r.found.damage != nil:
			err = fmt.Errorf("%w; %w", err, r.found.damage)
		case err == nil && c != nil && c.end() > next+uint64(len(r.tail.entries)):
			err = fmt.Errorf("%s: the log ends before entry %d, which its copy has: %w", r.newestLogFile(), c.end()-1, errHole)
		}
		return r.tail.entries, err
	}
	kept, read := c.from(next), r.tail.entries
	if r.tail.err != nil || len(read) < len(kept) || !slices.EqualFunc(read[:len(kept)], kept, sameEntry) {
		return kept, nil
	}
	return read, nil
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
