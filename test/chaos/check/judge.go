package check

import (
	"fmt"
	"sort"
)

// Judge returns every violation, each beginning with the name of the property, in a fixed order. Empty means that all promises that
// the history can show were kept.
func Judge(h *History) []string {
	j := &judge{h: h, values: map[uint64]*Send{}, truth: map[Key]map[int64]uint64{}, cut: map[Key]int64{}}
	j.sends()
	j.cuts()
	j.logs()
	j.promised()
	j.order()
	j.realTime()
	j.polls()
	j.watches()
	j.commits()
	sort.Strings(j.bad)
	return j.bad
}

type judge struct {
	h      *History
	values map[uint64]*Send
	// truth is what each offset holds by the first observation; every other must agree (P2, P19).
	truth map[Key]map[int64]uint64
	// cut is the highest log start that anybody asked for: below it records may be gone.
	cut map[Key]int64
	bad []string
}

func (j *judge) violated(property string, k Key, format string, args ...any) {
	j.bad = append(j.bad, fmt.Sprintf("%s %s/%d: %s", property, k.Topic, k.Partition, fmt.Sprintf(format, args...)))
}

func (j *judge) sends() {
	for i := range j.h.Sends {
		s := &j.h.Sends[i]
		j.values[s.Value] = s
		if s.Outcome != OK {
			continue
		}
		if s.Offset >= 0 {
			j.observe("acknowledged", s.Key, s.Offset, s.Value)
		}
		if s.All && s.Replicas > 0 && s.Replicas < s.Needed {
			j.violated("P18", s.Key, "value %d was acknowledged with %d replicas in sync, %d are needed", s.Value, s.Replicas, s.Needed)
		}
	}
}

// observe checks one sight of (offset, value) against the earlier ones and against what was sent.
func (j *judge) observe(how string, k Key, offset int64, value uint64) {
	at := j.truth[k]
	if at == nil {
		at = map[int64]uint64{}
		j.truth[k] = at
	}
	if old, seen := at[offset]; seen && old != value {
		j.violated("P2", k, "offset %d: %s with value %d, seen before with %d", offset, how, value, old)
		return
	}
	at[offset] = value
	switch s := j.values[value]; {
	case s == nil:
		j.violated("P3", k, "offset %d: value %d was never sent", offset, value)
	case s.Key != k:
		j.violated("P3", k, "offset %d: value %d was sent to %s/%d", offset, value, s.Topic, s.Partition)
	case s.Outcome == Failed:
		j.violated("P3", k, "offset %d: value %d was refused", offset, value)
	}
}

func (j *judge) cuts() {
	asked := map[Key]int64{}
	for _, c := range j.h.Cuts {
		if c.Outcome != Failed {
			asked[c.Key] = max(asked[c.Key], c.To)
		}
	}
	j.cut = asked
}

// logs checks each final log by itself and all of one partition against each other (P12, P13, P19, P4).
func (j *judge) logs() {
	for i := range j.h.Replicas {
		r := &j.h.Replicas[i]
		if r.Start > j.cut[r.Key] {
			j.violated("P19", r.Key, "node %d begins at %d, nobody asked for more than %d", r.Node, r.Start, j.cut[r.Key])
		}
		if r.Start > r.HighWatermark {
			j.violated("P19", r.Key, "node %d: log start %d is above the high watermark %d", r.Node, r.Start, r.HighWatermark)
		}
		last, epoch := int64(-1), int32(-1)
		for _, e := range r.Entries {
			if e.Offset <= last {
				j.violated("P19", r.Key, "node %d: offset %d follows %d", r.Node, e.Offset, last)
			}
			if e.Epoch < epoch {
				j.violated("P13", r.Key, "node %d offset %d: leader epoch %d follows %d", r.Node, e.Offset, e.Epoch, epoch)
			}
			last, epoch = e.Offset, e.Epoch
			if e.Offset < r.HighWatermark { // above it nothing is promised, and a cut-off replica may differ
				j.observe(fmt.Sprintf("in the log of node %d", r.Node), r.Key, e.Offset, e.Value)
			}
		}
		j.once(r)
	}
	j.epochs()
}

// once finds values that one log holds twice (P4).
func (j *judge) once(r *Replica) {
	at := map[uint64]int64{}
	for _, e := range r.Entries {
		if first, twice := at[e.Value]; twice && j.values[e.Value] != nil && j.values[e.Value].Producer != 0 {
			j.violated("P4", r.Key, "node %d: value %d is at offsets %d and %d", r.Node, e.Value, first, e.Offset)
		}
		at[e.Value] = e.Offset
	}
}

// epochs compares the leader epochs of committed records between replicas: one leader wrote each (P12).
func (j *judge) epochs() {
	type place struct {
		k      Key
		offset int64
	}
	seen := map[place]int32{}
	for i := range j.h.Replicas {
		r := &j.h.Replicas[i]
		for _, e := range r.Entries {
			if e.Offset >= r.HighWatermark {
				continue
			}
			p := place{r.Key, e.Offset}
			if old, ok := seen[p]; ok && old != e.Epoch {
				j.violated("P12", r.Key, "offset %d has leader epoch %d on node %d and %d elsewhere", e.Offset, e.Epoch, r.Node, old)
			}
			seen[p] = e.Epoch
		}
	}
}

// promised looks for every acknowledged record on every replica (P1).
func (j *judge) promised() {
	held := map[Key][]map[int64]uint64{}
	nodes := map[Key][]*Replica{}
	for i := range j.h.Replicas {
		r := &j.h.Replicas[i]
		at := make(map[int64]uint64, len(r.Entries))
		for _, e := range r.Entries {
			at[e.Offset] = e.Value
		}
		held[r.Key], nodes[r.Key] = append(held[r.Key], at), append(nodes[r.Key], r)
	}
	for i := range j.h.Sends {
		s := &j.h.Sends[i]
		if s.Outcome != OK || !s.All || s.Offset < 0 || s.Offset < j.cut[s.Key] {
			continue
		}
		if len(nodes[s.Key]) == 0 {
			j.violated("P1", s.Key, "acknowledged value %d: there is no log", s.Value)
			continue
		}
		for n, at := range held[s.Key] {
			if v, ok := at[s.Offset]; !ok || v != s.Value {
				j.violated("P1", s.Key, "node %d: acknowledged value %d is not at offset %d", nodes[s.Key][n].Node, s.Value, s.Offset)
			}
		}
	}
}

// placed is a send with the offset at which its value is.
type placed struct {
	*Send
	at int64
}

// found returns the sends whose value has an offset, by acknowledgement or in a log, a Key at a time in the order of the history.
func (j *judge) found() map[Key][]placed {
	where := map[uint64]int64{}
	for k, at := range j.truth {
		for offset, v := range at {
			if s := j.values[v]; s != nil && s.Key == k {
				where[v] = offset
			}
		}
	}
	out := map[Key][]placed{}
	for i := range j.h.Sends {
		s := &j.h.Sends[i]
		if at, ok := where[s.Value]; ok {
			out[s.Key] = append(out[s.Key], placed{s, at})
		}
	}
	return out
}

// order checks the order within each producer (P5).
func (j *judge) order() {
	for k, sends := range j.found() {
		last := map[int]placed{}
		for _, s := range sends {
			if s.Producer == 0 {
				continue
			}
			if before, ok := last[s.Producer]; ok && s.at <= before.at {
				j.violated("P5", k, "producer %d sent %d before %d, offsets %d and %d", s.Producer, before.Value, s.Value, before.at, s.at)
			}
			last[s.Producer] = s
		}
	}
}

// realTime checks that a send begun after another was confirmed has a higher offset (P6).
func (j *judge) realTime() {
	for k, sends := range j.found() {
		byEnd := make([]placed, 0, len(sends))
		for _, s := range sends {
			if s.Outcome == OK {
				byEnd = append(byEnd, s)
			}
		}
		sort.Slice(byEnd, func(a, b int) bool { return byEnd[a].End < byEnd[b].End })
		sort.Slice(sends, func(a, b int) bool { return sends[a].Begin < sends[b].Begin })
		highest, n := placed{at: -1}, 0
		for _, s := range sends {
			for n < len(byEnd) && byEnd[n].End < s.Begin {
				if byEnd[n].at > highest.at {
					highest = byEnd[n]
				}
				n++
			}
			if s.at < highest.at {
				j.violated("P6", k, "value %d at %d was sent after value %d at %d had been confirmed", s.Value, s.at, highest.Value, highest.at)
			}
		}
	}
}
