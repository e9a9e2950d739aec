package chaos

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"strandline.dev/internal/record"
	"strandline.dev/test/chaos/check"
	"strandline.dev/test/chaos/load"
)

// replicas reads what each node holds of each partition, off the disks of nodes that have stopped. All replicas were in sync and nobody
// wrote when ends were asked for, so the high watermark of each is the leader's end.
func (tr *trial) replicas(ends map[check.Key]bounds) (out []check.Replica) {
	tr.t.Helper()
	for _, n := range tr.c.Nodes {
		if !n.Broker {
			continue
		}
		for k, b := range ends {
			entries, err := readReplica(filepath.Join(n.Dir, "topics", b.dir), b.start)
			if err != nil {
				tr.t.Errorf("node %d, %s/%d: %v", n.ID, k.Topic, k.Partition, err)
			}
			out = append(out, check.Replica{Key: k, Node: n.ID, Start: b.start, HighWatermark: b.end, Entries: entries})
		}
	}
	return out
}

// readReplica reads the records of a log from an offset on. Every batch must be whole (P20).
func readReplica(dir string, from int64) (out []check.Entry, err error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.log"))
	if err != nil {
		return nil, err
	}
	slices.Sort(files) // named by base offset, all of one length
	for _, file := range files {
		rest, err := os.ReadFile(file)
		if err != nil {
			return out, err
		}
		for len(rest) > 0 {
			var b record.Batch
			if b, rest, err = record.Split(rest); err == nil {
				err = b.VerifyCRC()
			}
			if err != nil {
				return out, fmt.Errorf("%s, %d bytes before its end: %w", filepath.Base(file), len(rest), err)
			}
			for r, err := range b.Records(0) {
				if err != nil {
					return out, fmt.Errorf("%s: %w", filepath.Base(file), err)
				}
				v, ok := load.ParseValue(r.Value)
				if !ok {
					return out, fmt.Errorf("%s: offset %d holds bytes that nobody sent", filepath.Base(file), int64(b.BaseOffset())+int64(r.OffsetDelta))
				}
				if at := int64(b.BaseOffset()) + int64(r.OffsetDelta); at >= from {
					out = append(out, check.Entry{Offset: at, Value: v, Epoch: int32(b.LeaderEpoch())})
				}
			}
		}
	}
	return out, nil
}
