package main

import (
	"fmt"

	"strandline.dev/internal/recordid"
)

const (
	dedupWindowConfig = "strandline.dedup.window.ms"
	dedupHeaderConfig = "strandline.dedup.header"
	// dedupWindowDefault is what topics made by the command line get: two minutes cover a client's retries and a restart of it.
	dedupWindowDefault = "120000"
)

// repeatMeaning says in words what becomes of a record whose id was there before; "" when the broker does not tell.
func repeatMeaning(d describedTopic) string {
	value := func(name string) string {
		for _, c := range d.Configs {
			if c.Name == name && c.Value != nil {
				return *c.Value
			}
		}
		return ""
	}
	switch window := value(dedupWindowConfig); window {
	case "":
		return ""
	case "0":
		return "record ids: not remembered (" + dedupWindowConfig + "=0), a retried record may be stored twice"
	default:
		var total int64
		for _, p := range d.Partitions {
			if p.RecordIDs != nil {
				total += *p.RecordIDs
			}
		}
		return fmt.Sprintf("record ids: header %s, remembered for %s ms in each partition by itself; now %d, at most %d in one partition",
			value(dedupHeaderConfig), window, total, recordid.IDsMax)
	}
}
