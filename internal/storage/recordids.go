package storage

import (
	"time"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/record"
	"strandline.dev/internal/recordid"
)

// identities is what one log remembers of record ids: a cache of what its records say, moved with its end and its start. It is on no disk:
// recordids_load.go reads it back.
type identities struct {
	table  *recordid.Table // nil: none are kept
	header string
	window time.Duration
	// ready: table has all that the log has. Until then it has what was appended since a load began.
	ready bool
	// generation changes when what a load has read so far says nothing any more.
	generation uint64
	// counted is what of the directory's count is this log's.
	counted int
	since   time.Time // where the table's clock begins
}

// now is the table's clock: monotonic, so that no step of the wall clock forgets an id (I12).
func (k *identities) now() time.Duration { return time.Since(k.since) }

// KeepRecordIDs has the log remember, for window, the record ids that its records carry in the header; 0 ends that. due says that those in
// the log have to be read first: call LoadRecordIDs. The caller keeps appends off.
func (l *Log) KeepRecordIDs(window time.Duration, header string) (due bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	k := &l.mu.ids
	switch {
	case window <= 0 || l.mu.closed:
		l.beginIDsLocked(identities{})
		return false
	case k.table == nil || k.header != header || window > k.window:
		l.beginIDsLocked(identities{
			table: recordid.NewTable(window), header: header, window: window, ready: l.mu.start == l.mu.end, since: time.Now(),
		})
	case window < k.window:
		k.window = window
		k.table.SetWindow(window)
	}
	return !k.ready
}

// beginIDsLocked replaces what is remembered. A load that is under way will find that it was for nothing.
func (l *Log) beginIDsLocked(k identities) {
	k.generation, k.counted = l.mu.ids.generation+1, l.mu.ids.counted
	l.mu.ids = k
	l.countIDsLocked()
}

// countIDsLocked keeps the directory's count of remembered ids (I14).
func (l *Log) countIDsLocked() {
	k, n := &l.mu.ids, 0
	if k.table != nil {
		n = k.table.Len()
	}
	l.dir.recordIDs.Add(int64(n - k.counted))
	k.counted = n
}

// JudgeRecordIDs finds the repeats among the records of a batch of count records, of which carried have ids. It changes nothing. The caller
// holds off other appends from here to AppendIdentified. Errors: ErrIDsLoading, ErrIDsFull when the ids of the batch could not be
// remembered, ErrTooLarge when they never can.
func (l *Log) JudgeRecordIDs(carried []recordid.Carried, count int32) (recordid.Verdict, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	k := &l.mu.ids
	if k.table == nil || !k.ready {
		return recordid.Verdict{}, ErrIDsLoading
	}
	now := k.now()
	k.table.Expire(now)
	l.countIDsLocked()
	v := k.table.Judge(carried, count, now)
	switch {
	case v.Fresh > recordid.IDsMax:
		return recordid.Verdict{}, ErrTooLarge
	case v.Fresh > 0 && (!k.table.Room(v.Fresh) || l.dir.recordIDs.Load()+int64(v.Fresh) > recordIDsMax):
		return recordid.Verdict{}, ErrIDsFull
	}
	return v, nil
}

// RecordIDs is the number of record ids that the log remembers; ready says that these are all that it has within the window.
func (l *Log) RecordIDs() (remembered int, ready bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	k := &l.mu.ids
	if k.table == nil {
		return 0, false
	}
	k.table.Expire(k.now())
	l.countIDsLocked()
	return k.table.Len(), k.ready
}

// noteIDsLocked remembers the ids of a batch that was appended at base.
func (l *Log) noteIDsLocked(base kafka.Offset, carried []recordid.Carried) {
	k := &l.mu.ids
	if k.table == nil || len(carried) == 0 {
		return
	}
	now := k.now()
	k.table.Expire(now)
	k.table.Note(base, carried, now)
	l.countIDsLocked()
}

// idsOf reads the ids of batches that are about to be appended with their offsets given, batch by batch; nil when none are kept. A batch that
// cannot be read has none: its checksum is looked at later, and its leader has judged its records.
func (l *Log) idsOf(batches []byte) [][]recordid.Carried {
	l.mu.Lock()
	kept, header := l.mu.ids.table != nil, l.mu.ids.header
	l.mu.Unlock()
	if !kept {
		return nil
	}
	var out [][]recordid.Carried
	for rest := batches; len(rest) > 0; {
		b, after, err := record.Split(rest)
		if err != nil {
			return out
		}
		carried, err := recordid.Read(b, header, decompressMax)
		if err != nil {
			l.dir.log.Warn("the record ids of a batch cannot be read", "log", l.tp.String(), "offset", b.BaseOffset(), "error", err)
		}
		out, rest = append(out, carried), after
	}
	return out
}

// cutIDsLocked: the log ends at end now.
func (l *Log) cutIDsLocked(end kafka.Offset) {
	k := &l.mu.ids
	if k.table == nil {
		return
	}
	k.generation++
	k.table.TruncateTo(end)
	l.countIDsLocked()
}

// forgetIDsLocked: the log is empty, so the empty table is all there is.
func (l *Log) forgetIDsLocked() {
	k := l.mu.ids
	if k.table == nil {
		return
	}
	k.table, k.ready = recordid.NewTable(k.window), true
	l.beginIDsLocked(k)
}

// startIDsLocked: the log starts at its start now, and what was below it is deleted.
func (l *Log) startIDsLocked() {
	if k := &l.mu.ids; k.table != nil {
		k.table.AdvanceStart(l.mu.start)
		l.countIDsLocked()
	}
}
