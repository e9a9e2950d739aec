package storage

import "strandline.dev/internal/kafka"

// Promised lists the partition logs that held records by the sync-point file, in order. One of them without a directory has lost what
// it reported (I4): its absence is damage and never a new log (I10).
func (d *Dir) Promised() []kafka.TopicPartition {
	d.mu.Lock()
	defer d.mu.Unlock()
	var held []kafka.TopicPartition
	for _, tp := range sortedTPs(d.mu.points) {
		if p := d.mu.points[tp]; tp != kafka.MetadataPartition && (p.end > p.start || p.damaged) {
			held = append(held, tp)
		}
	}
	return held
}
