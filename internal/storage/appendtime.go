package storage

import (
	"time"

	"strandline.dev/internal/kafka"
)

// AppendedBy is a time by which every record below end had been appended to the log by its leader: what a follower takes over for them
// with AppendReplicated. It is never earlier than the append, so that a record lives as long there as here or longer, never shorter
// (I9): the last append time of the segment that end lies in or at the end of, as retention counts here.
func (l *Log) AppendedBy(end kafka.Offset) time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return time.UnixMilli(l.timesLocked(l.mu.segments[l.findLocked(max(end-1, 0))]).lastAppendMs)
}
