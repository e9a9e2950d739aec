package main

import (
	"cmp"
	"slices"
)

// topKeys counts keys in bounded memory, by the space-saving sketch (Metwally, Agrawal, El Abbadi 2005): a new key takes over the smallest counter
// and its count, so that no count is too low, and each is too high by at most what it took over. Every key with more than 1/topKeysMax of all is in it.
type topKeys struct {
	total    int64
	counters map[string]*keyCount
}

// topKeysMax is how many keys have counters.
const topKeysMax = 128

// keyCount is what the sketch knows of a key: it came between Count-Over and Count times.
type keyCount struct {
	Key   string `json:"key"`
	Count int64  `json:"count"`
	Over  int64  `json:"over,omitempty"`
}

func (t *topKeys) add(key string) {
	t.total++
	if t.counters == nil {
		t.counters = map[string]*keyCount{}
	}
	if c := t.counters[key]; c != nil {
		c.Count++
		return
	}
	if len(t.counters) < topKeysMax {
		t.counters[key] = &keyCount{Key: key, Count: 1}
		return
	}
	var least *keyCount
	for _, c := range t.counters {
		if least == nil || c.Count < least.Count {
			least = c
		}
	}
	delete(t.counters, least.Key)
	t.counters[key] = &keyCount{Key: key, Count: least.Count + 1, Over: least.Count}
}

// top returns the n most frequent keys that are sure to have come more than once.
func (t *topKeys) top(n int) []keyCount {
	var out []keyCount
	for _, c := range t.counters {
		if c.Count-c.Over > 1 {
			out = append(out, *c)
		}
	}
	slices.SortFunc(out, func(a, b keyCount) int { return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Key, b.Key)) })
	return out[:min(n, len(out))]
}
