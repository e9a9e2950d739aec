package check

import "sort"

// commits checks the committed offsets of groups as registers (P30). The workloads commit rising offsets, one committer a group and
// partition, so the rule is short: an answer holds at least the highest commit confirmed before the question, and at most the highest
// one that was begun before the answer.
func (j *judge) commits() {
	type register struct {
		Key
		group string
	}
	all := map[register][]Commit{}
	for _, c := range j.h.Commits {
		r := register{c.Key, c.Group}
		all[r] = append(all[r], c)
	}
	for r, list := range all {
		sort.Slice(list, func(a, b int) bool { return list[a].Begin < list[b].Begin })
		for _, f := range list {
			if !f.Fetched || f.Outcome != OK {
				continue
			}
			least, most := int64(-1), int64(-1)
			for _, c := range list {
				if c.Fetched || c.Outcome == Failed {
					continue
				}
				if c.Outcome == OK && c.End < f.Begin {
					least = max(least, c.Offset)
				}
				if c.Begin < f.End {
					most = max(most, c.Offset)
				}
			}
			if f.Offset < least {
				j.violated("P30", r.Key, "group %s was told %d after %d had been committed", r.group, f.Offset, least)
			}
			if f.Offset > most {
				j.violated("P30", r.Key, "group %s was told %d, nobody had committed more than %d", r.group, f.Offset, most)
			}
		}
	}
}
