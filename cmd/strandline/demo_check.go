package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// auditor reads partitions from offset 0 with a client of its own.
type auditor struct {
	link   *demoLink
	events map[int32][]event
}

func newAuditor(link *demoLink) *auditor {
	return &auditor{link: link, events: map[int32][]event{}}
}

// readAll reads the partitions from offset 0 up to their ends.
func (u *auditor) readAll(ctx context.Context, ends map[int32]int64) error {
	offsets := make(map[int32]kgo.Offset, len(ends))
	var left int64
	for p, end := range ends {
		offsets[p] = kgo.NewOffset().At(0)
		left += end
	}
	client, err := kgo.NewClient(append(u.link.options("audit"),
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{demoTopic: offsets}),
		kgo.ConsumeResetOffset(kgo.NoResetOffset()), kgo.FetchMaxWait(100*time.Millisecond),
	)...)
	if err != nil {
		return err
	}
	defer client.Close()
	for left > 0 {
		fetches := client.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			return err
		}
		fetches.EachRecord(func(r *kgo.Record) {
			u.events[r.Partition] = append(u.events[r.Partition], event{offset: r.Offset, id: recordID(r), value: r.Value})
			if r.Offset < ends[r.Partition] {
				left--
			}
		})
	}
	return nil
}

// verdict is one line of the table, and of `demo -o json`.
type verdict struct {
	Guarantee  string `json:"guarantee"`
	Checked    string `json:"checked"`
	Violations int    `json:"violations"`
	Held       bool   `json:"held"`
}

// check compares what was promised with what is there.
func (st *story) check() []verdict {
	published, acked := int(st.orders.published.Load()), st.orders.acknowledged()
	f := st.auditFindings(acked)
	count := func(guarantee string, violations int, format string, args ...any) verdict {
		return verdict{Guarantee: guarantee, Checked: fmt.Sprintf(format, args...), Violations: violations, Held: violations == 0}
	}
	// shown is for a chapter: one that had nothing to show proves nothing.
	shown := func(anything bool, v verdict) verdict {
		v.Held = v.Held && anything
		return v
	}
	return []verdict{
		shown(published > 0, count("every event is acknowledged in the end", published-len(acked), "%d published, %d acknowledged", published, len(acked))),
		count("acknowledged events are stored, where the answer said", f.lost, "%d acknowledged, %d lost", len(acked), f.lost),
		count("nothing is stored twice (lost response, repeats, kill -9)", f.duplicated, "%d stored, %d duplicated", f.stored, f.duplicated),
		count("nothing is stored that was not published", f.foreign, "%d stored, %d foreign", f.stored, f.foreign),
		count("order is kept in every partition", f.outOfOrder, "%d partitions, %d orders, %d events out of order", len(st.audit.events), f.orders, f.outOfOrder),
		count("offsets are dense in every partition", f.gaps, "%d partitions, %d gaps", len(st.audit.events), f.gaps),
		shown(st.repeated > 0, count("a repeated record id is answered with its first offset", st.repeatWrong,
			"%d repeated, %d answered otherwise", st.repeated, st.repeatWrong)),
		shown(st.led > 0, count("partitions go on without their dead leader", st.led-st.goingOn, "%d lost it, %d go on, the last after %v", st.led, st.goingOn, st.gap)),
		shown(st.restarted, count("a dead broker catches up by itself", demoPartitions-st.caughtUp, "%d of %d partitions with %d replicas in sync", st.caughtUp, demoPartitions, demoReplicas)),
		st.fulfillment.verdict(acked),
		st.analytics.verdict(acked),
		shown(st.redelivered > 0, count("a crash before the commit delivers again, never loses",
			max(0, st.redelivered-st.fulfillment.redelivered), "%d uncommitted, %d delivered again", st.redelivered, st.fulfillment.redelivered)),
		shown(st.replayed > 0, count("a replay gives the same events again", st.replayWrong, "%d replayed, %d different", st.replayed, st.replayWrong)),
	}
}

// findings are what the audit counted.
type findings struct{ stored, lost, duplicated, foreign, outOfOrder, gaps, orders int }

func (st *story) auditFindings(acked map[string]place) findings {
	var f findings
	copies := make(map[string]int, len(acked))
	next := make(map[string]int)     // the event number each order should have next
	home := make(map[string]int32)   // the partition of each order
	stored := make(map[place]string) // what is at each offset
	for p := range int32(demoPartitions) {
		last := -1 // the total of the event before, in this partition
		for i, e := range st.audit.events[p] {
			f.stored++
			stored[place{p, e.offset}] = e.id
			if e.offset != int64(i) {
				f.gaps++
			}
			if copies[e.id]++; copies[e.id] > 1 {
				f.duplicated++
				continue
			}
			if _, ours := acked[e.id]; !ours {
				f.foreign++
			}
			var o orderEvent
			if json.Unmarshal(e.value, &o) != nil || o.id() != e.id {
				f.foreign++
				continue
			}
			at, known := home[o.Order]
			if (known && at != p) || o.Number != next[o.Order] || o.Total <= last {
				f.outOfOrder++
			}
			home[o.Order], next[o.Order], last = p, o.Number+1, o.Total
		}
	}
	for id, at := range acked {
		if stored[at] != id {
			f.lost++
		}
	}
	f.orders = len(home)
	return f
}

// verdict says whether this reader got every acknowledged event, with one effect each, in order.
func (r *reader) verdict(acked map[string]place) verdict {
	r.mu.Lock()
	defer r.mu.Unlock()
	lost := 0
	for id := range acked {
		if r.seen[id] == 0 {
			lost++
		}
	}
	effects := 0
	for _, events := range r.effects {
		effects += len(events)
	}
	doubled := effects - len(r.seen)
	violations := lost + r.outOfOrder + doubled
	return verdict{
		Guarantee:  r.name + " reads everything, in order",
		Checked:    fmt.Sprintf("%d read, %d lost, %d out of order, %d effects doubled", len(r.seen), lost, r.outOfOrder, doubled),
		Violations: violations, Held: violations == 0,
	}
}

// printVerdicts prints the table; an error unless everything held.
func (a *app) printVerdicts(p printer, verdicts []verdict) error {
	var rows [][]string
	broken := 0
	for _, v := range verdicts {
		held := "yes"
		if !v.Held {
			held = "NO"
			broken++
		}
		if p.json {
			if err := p.object(v); err != nil {
				return err
			}
			continue
		}
		rows = append(rows, []string{held, v.Guarantee, v.Checked})
	}
	if !p.json {
		fmt.Fprintln(p.w)
		if err := p.table([]string{"HELD", "GUARANTEE", "COUNTED"}, rows); err != nil {
			return err
		}
	}
	if broken > 0 {
		return &failure{what: fmt.Sprintf("%d of %d guarantees did not hold", broken, len(verdicts))}
	}
	if !p.json {
		fmt.Fprintf(p.w, "\nall %d guarantees held\n", len(verdicts))
	}
	return nil
}
