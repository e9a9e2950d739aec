package main

import (
	"fmt"
	"strconv"
	"time"

	"strandline.dev/internal/plan"
)

// printLoad shows what was measured, topics and nodes.
func (p printer) printLoad(m *measuredLoad) error {
	fmt.Fprintf(p.w, "measured over %.1f s: %s records a second into %d partitions\n\n", m.WindowSeconds, plan.Number(m.Rate), m.Partitions)
	var rows [][]string
	for _, t := range m.Topics {
		retention := "not told"
		switch {
		case t.RetentionSeconds < 0:
			retention = "for ever"
		case t.RetentionSeconds > 0:
			retention = plan.Time(time.Duration(t.RetentionSeconds * float64(time.Second)))
		}
		hot := "-"
		if t.Rate > 0 {
			hot = fmt.Sprintf("%d: %.0f%%", t.HotPartition, 100*t.HotPart)
		}
		rows = append(rows, []string{
			t.Topic, strconv.Itoa(t.Partitions), strconv.Itoa(t.Replicas), plan.Number(t.Rate), plan.Bytes(t.RecordBytes), plan.Bytes(t.StoredBytes), retention, hot,
		})
	}
	if err := p.table([]string{"TOPIC", "PARTITIONS", "REPLICAS", "RECORDS/S", "A RECORD", "STORED", "RETENTION", "BUSIEST"}, rows); err != nil {
		return err
	}
	rows = nil
	for _, n := range m.Nodes {
		disk := "-"
		if n.DiskBytes > 0 {
			disk = plan.Bytes(n.DiskBytes)
		}
		rows = append(rows, []string{strconv.Itoa(int(n.Node)), orDash(n.Rack), plan.Number(n.Rate), plan.Bytes(n.StoredBytes), disk})
	}
	if err := p.section([]string{"NODE", "RACK", "RECORDS/S LED", "STORED", "DISK"}, rows); err != nil {
		return err
	}
	_, err := fmt.Fprintln(p.w)
	return err
}

// notes say what the measurement does not know, and what was taken instead.
func (m *measuredLoad) notes(in plan.Inputs, given func(string) bool) []string {
	var out []string
	if !given("peak") {
		out = append(out, "the peak is taken to be the measured rate; give --peak")
	}
	switch {
	case given("groups"):
	case m.FanOut >= 0:
		out = append(out, "how often a record is read is that of the node behind --http within the window")
	default:
		out = append(out, fmt.Sprintf("each of the %d consumer groups is taken to read everything; give --http to measure it, or --groups", m.Groups))
	}
	var forEver, compacted []string
	for _, t := range m.Topics {
		if t.RetentionSeconds < 0 {
			forEver = append(forEver, t.Topic)
		}
		if t.Compacted {
			compacted = append(compacted, t.Topic)
		}
	}
	if len(forEver) > 0 && !given("retention") {
		out = append(out, "kept for ever, planned as if for "+plan.Time(plan.Reference().Retention)+": "+firstOf(forEver))
	}
	if len(compacted) > 0 {
		out = append(out, "compacted, so they store less than is planned: "+firstOf(compacted))
	}
	if m.HotPart > 0 && in.HotPart == m.HotPart {
		out = append(out, fmt.Sprintf("the busiest partition, %s-%d, gets %s%% of the bytes", m.HotTopic, m.HotPartition, plan.Number(100*m.HotPart)))
	}
	return out
}
