package storage

import (
	"errors"
	"io"
	"os"
	"slices"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/record"
	"strandline.dev/internal/sys"
)

// cleanedSuffix is that of a segment that compaction writes, until it takes the place of the old ones.
const cleanedSuffix = ".cleaned"

// rewritten is a segment as compaction wants it, in a file of its own, synced.
type rewritten struct {
	sources []*segment
	file    sys.File
	path    string
	base    kafka.Offset
	end     kafka.Offset
	size    int64
	index   *index
	times   segmentTimes
	// gap is the run of offsets without records that is not written yet.
	gap struct {
		base, end kafka.Offset
		epoch     kafka.LeaderEpoch
	}
	buf        []byte
	before     int64
	records    int64 // removed
	tombstones int64 // left
	purged     int64 // tombstones removed
}

// rewrite filters the first of the segments, and with Merge as many of those behind it as fit in one. It returns the rest.
func (c *compaction) rewrite(segments []*segment, upTo kafka.Offset) (g *rewritten, rest []*segment, err error) {
	first := segments[0]
	g = &rewritten{path: first.beside(cleanedSuffix), base: first.base, end: first.base, times: noTimes}
	c.log.mu.Lock()
	largest := c.log.mu.opts.SegmentBytes
	g.index = newIndex(c.log.mu.opts.IndexInterval)
	c.log.mu.Unlock()
	if g.file, err = c.log.dir.fs.OpenFile(g.path, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600); err != nil {
		return nil, nil, diskError(err)
	}
	for rest = segments; len(rest) > 0; rest = rest[1:] {
		s := rest[0]
		// Half full is full: nobody knows before how much of the next one stays.
		if len(g.sources) > 0 && (!c.policy.Merge || g.size+int64(len(g.buf)) > largest/2) {
			break
		}
		if err = c.filter(g, s, upTo); err != nil {
			break
		}
	}
	if err == nil {
		err = g.finish()
	}
	if err = errors.Join(err, g.file.Close()); err != nil {
		_ = removeIfThere(c.log.dir.fs, g.path) // swept at the next open
		return nil, nil, diskError(err)
	}
	return g, rest, nil
}

// filter adds what stays of a segment.
func (c *compaction) filter(g *rewritten, s *segment, upTo kafka.Offset) error {
	c.log.mu.Lock()
	t := c.log.timesLocked(s)
	c.log.mu.Unlock()
	if g.times.firstAppendMs == 0 {
		g.times.firstAppendMs = t.firstAppendMs
	}
	g.times.lastAppendMs = max(g.times.lastAppendMs, t.lastAppendMs)
	g.sources, g.before = append(g.sources, s), g.before+s.size
	return c.eachBatch(s, func(b record.Batch) error {
		if b.IsFiller() {
			return g.skip(b)
		}
		kept := b
		if superseding(b) {
			var err error
			if kept, err = c.retain(g, b, upTo); err != nil {
				return err
			}
		}
		switch known := slices.Contains(c.remembered[b.ProducerID()], b.BaseOffset()); {
		case kept == nil && known:
			return g.add(record.Emptied(b))
		case kept == nil, b.Count() == 0 && !known:
			return g.skip(b)
		}
		return g.add(kept)
	})
}

// retain is the batch with the records that stay, nil if none does. What lies at or behind upTo was not looked at, and stays.
func (c *compaction) retain(g *rewritten, b record.Batch, upTo kafka.Offset) (record.Batch, error) {
	kept, _, err := record.Retain(b, decompressMax, func(r *record.Record) bool {
		at := b.BaseOffset() + kafka.Offset(r.OffsetDelta)
		if r.Key == nil || at >= upTo {
			return true
		}
		tombstone := r.Value == nil
		if c.keys.superseded(r.Key, at) {
			g.records++
			return false
		}
		if tombstone && at < c.horizon {
			g.records++
			g.purged++
			return false
		}
		if tombstone {
			g.tombstones++
		}
		return true
	})
	return kept, err
}

// skip leaves out a batch: its offsets join the gap before it. A gap does not cross leader epochs, so that the log still says where each
// began (C015, I5).
func (g *rewritten) skip(b record.Batch) error {
	if g.gap.end > g.gap.base && g.gap.epoch == b.LeaderEpoch() && b.NextOffset()-g.gap.base <= record.FillerSpanMax {
		g.gap.end = b.NextOffset()
		return nil
	}
	if err := g.fill(); err != nil {
		return err
	}
	g.gap.base, g.gap.end, g.gap.epoch = b.BaseOffset(), b.NextOffset(), b.LeaderEpoch()
	return nil
}

// fill writes the gap as one filler.
func (g *rewritten) fill() error {
	gap := g.gap
	g.gap.end = g.gap.base
	if gap.end == gap.base {
		return nil
	}
	return g.put(record.Filler(gap.base, gap.end, gap.epoch))
}

// add writes a batch behind the gap.
func (g *rewritten) add(b record.Batch) error {
	if err := g.fill(); err != nil {
		return err
	}
	return g.put(b)
}

func (g *rewritten) put(b record.Batch) error {
	h := headerOf(b)
	g.times.maxTimestamp = max(g.times.maxTimestamp, h.newest())
	g.index.add(h.Base, g.size+int64(len(g.buf)), g.times.lastAppendMs, h.newest())
	g.buf = append(g.buf, b...)
	g.end = h.End
	if len(g.buf) >= compactBuffer {
		return g.flush()
	}
	return nil
}

func (g *rewritten) flush() error {
	n, err := g.file.WriteAt(g.buf, g.size)
	if err == nil && n < len(g.buf) {
		err = io.ErrShortWrite
	}
	g.size += int64(n)
	g.buf = g.buf[:0]
	return err
}

// finish writes what is left and syncs the file.
func (g *rewritten) finish() error {
	if err := g.fill(); err != nil {
		return err
	}
	if err := g.flush(); err != nil {
		return err
	}
	g.buf = nil
	return g.file.Sync()
}

// changed says whether the new file is worth taking the place of the old ones.
func (g *rewritten) changed() bool { return len(g.sources) > 1 || g.size != g.before || g.records > 0 }
