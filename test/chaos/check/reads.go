package check

import (
	"sort"
	"time"
)

// polls checks what readers were given (P2, P3, P7, P8).
func (j *judge) polls() {
	type session struct {
		Key
		n int
	}
	last := map[session]int64{}
	committed := j.committed()
	for _, p := range j.h.Polls {
		j.observe("polled", p.Key, p.Offset, p.Value)
		s := session{p.Key, p.Session}
		before, ok := last[s]
		last[s] = p.Offset
		if !ok {
			continue
		}
		if p.Offset <= before {
			j.violated("P7", p.Key, "session %d was given offset %d after %d", p.Session, p.Offset, before)
			continue
		}
		at := committed[p.Key]
		i := sort.Search(len(at), func(i int) bool { return at[i] > before })
		if i < len(at) && at[i] < p.Offset && at[i] >= j.cut[p.Key] {
			j.violated("P7", p.Key, "session %d was given %d after %d: offset %d lies between", p.Session, p.Offset, before, at[i])
		}
	}
	// What was visible is committed (P8: all readers see prefixes of the one log), so it is in every final log.
	for i := range j.h.Replicas {
		r := &j.h.Replicas[i]
		held := make(map[int64]bool, len(r.Entries))
		for _, e := range r.Entries {
			held[e.Offset] = true
		}
		for _, p := range j.h.Polls {
			if p.Key == r.Key && p.Offset >= r.Start && !held[p.Offset] {
				j.violated("P8", p.Key, "session %d was given offset %d, which node %d does not have", p.Session, p.Offset, r.Node)
			}
		}
	}
}

// committed lists the offsets that the final logs hold below their high watermarks, in order.
func (j *judge) committed() map[Key][]int64 {
	seen := map[Key]map[int64]bool{}
	for i := range j.h.Replicas {
		r := &j.h.Replicas[i]
		if seen[r.Key] == nil {
			seen[r.Key] = map[int64]bool{}
		}
		for _, e := range r.Entries {
			if e.Offset < r.HighWatermark {
				seen[r.Key][e.Offset] = true
			}
		}
	}
	out := map[Key][]int64{}
	for k, at := range seen {
		for offset := range at {
			out[k] = append(out[k], offset)
		}
		sort.Slice(out[k], func(a, b int) bool { return out[k][a] < out[k][b] })
	}
	return out
}

// watches checks the ends that clients were shown: above every record without a sequence that a leader up to the client's epoch had
// acknowledged before the question (P9), and never going back for a client (P10).
func (j *judge) watches() {
	acked := j.ackedByEnd()
	byBegin := append([]Watch(nil), j.h.Watches...)
	sort.Slice(byBegin, func(a, b int) bool { return byBegin[a].Begin < byBegin[b].Begin })
	type state struct {
		next    int
		highest map[int32]int64 // by the leader epoch of the record
	}
	keys := map[Key]*state{}
	for _, w := range byBegin {
		k := keys[w.Key]
		if k == nil {
			k = &state{highest: map[int32]int64{}}
			keys[w.Key] = k
		}
		for list := acked[w.Key]; k.next < len(list) && list[k.next].end < w.Begin; k.next++ {
			one := list[k.next]
			if old, ok := k.highest[one.epoch]; !ok || one.offset > old {
				k.highest[one.epoch] = one.offset
			}
		}
		highest := int64(-1)
		for epoch, offset := range k.highest {
			if epoch <= w.Epoch {
				highest = max(highest, offset)
			}
		}
		if w.HighWatermark <= highest {
			j.violated("P9", w.Key, "client %d was shown the end %d in epoch %d after offset %d had been acknowledged", w.Client, w.HighWatermark, w.Epoch, highest)
		}
	}
	j.backwards()
}

// ackedOffset is a confirmed acks=all record: since when, where, and the epoch of the leader that appended it.
type ackedOffset struct {
	end    time.Duration
	offset int64
	epoch  int32
}

// ackedByEnd lists the confirmed records without a sequence of each partition in the order in which they were. One with a sequence may have been
// appended by one leader and confirmed, when it was sent again, by a later one, which nobody can tell. Of deleted records the epoch is not
// known, so they do not count; another that is in no final log, which is a violation too, counts for every epoch.
func (j *judge) ackedByEnd() map[Key][]ackedOffset {
	type place struct {
		Key
		offset int64
	}
	epochs := map[place]int32{}
	for i := range j.h.Replicas {
		r := &j.h.Replicas[i]
		for _, e := range r.Entries {
			epochs[place{r.Key, e.Offset}] = e.Epoch
		}
	}
	out := map[Key][]ackedOffset{}
	for i := range j.h.Sends {
		s := &j.h.Sends[i]
		epoch, known := epochs[place{s.Key, s.Offset}]
		if s.Outcome == OK && s.All && s.Producer == 0 && s.Offset >= 0 && (known || s.Offset >= j.cut[s.Key]) {
			out[s.Key] = append(out[s.Key], ackedOffset{s.End, s.Offset, epoch})
		}
	}
	for _, list := range out {
		sort.Slice(list, func(a, b int) bool { return list[a].end < list[b].end })
	}
	return out
}

func (j *judge) backwards() {
	type who struct {
		Key
		client int
	}
	series := map[who][]Watch{}
	for _, w := range j.h.Watches {
		at := who{w.Key, w.Client}
		series[at] = append(series[at], w)
	}
	for at, ws := range series {
		sort.Slice(ws, func(a, b int) bool { return ws[a].Begin < ws[b].Begin })
		for i := 1; i < len(ws); i++ {
			if ws[i-1].End <= ws[i].Begin && ws[i].HighWatermark < ws[i-1].HighWatermark {
				j.violated("P10", at.Key, "client %d was shown %d, then %d", at.client, ws[i-1].HighWatermark, ws[i].HighWatermark)
			}
		}
	}
}
