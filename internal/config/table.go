package config

import (
	"cmp"
	"math"
	"slices"
)

// The whole table: rows by scope in name order, and by name. A broker row for each topic config that has a synonym is made from the topic
// row, so that a default, a limit or a refusal is written once.
var (
	nodeRows   = normalize(ScopeNode, append(nodeTable(), accessTable()...))
	topicRows  = normalize(ScopeTopic, topicTable())
	brokerRows = normalize(ScopeBroker, append(brokerTable(), inheritedRows(topicTable())...))

	rowsByName = map[Scope]map[string]*Setting{
		ScopeNode: byName(nodeRows), ScopeBroker: byName(brokerRows), ScopeTopic: byName(topicRows),
	}
)

// All returns the rows of one scope in name order. They are not to be changed.
func All(scope Scope) []*Setting {
	var out []*Setting
	for _, s := range rowsOf(scope) {
		if !s.hidden {
			out = append(out, s)
		}
	}
	return out
}

// Lookup returns the row with the name, or nil.
func Lookup(scope Scope, name string) *Setting {
	if s := rowsByName[scope][name]; s != nil && !s.hidden {
		return s
	}
	return nil
}

func rowsOf(scope Scope) []*Setting {
	switch scope {
	case ScopeNode:
		return nodeRows
	case ScopeBroker:
		return brokerRows
	case ScopeTopic:
		return topicRows
	}
	return nil
}

func normalize(scope Scope, table []Setting) []*Setting {
	rows := make([]*Setting, 0, len(table))
	for i := range table {
		s := &table[i]
		s.Scope = scope
		if s.Max == 0 {
			s.Max = math.MaxInt64
		}
		if scope == ScopeTopic {
			s.Live = true
		}
		rows = append(rows, s)
	}
	slices.SortFunc(rows, func(a, b *Setting) int { return cmp.Compare(a.Name, b.Name) })
	return rows
}

func byName(rows []*Setting) map[string]*Setting {
	m := make(map[string]*Setting, len(rows))
	for _, s := range rows {
		m[s.Name] = s
	}
	return m
}

// inheritedRows makes the broker settings that give topic configs their defaults.
func inheritedRows(topics []Setting) []Setting {
	var out []Setting
	for _, t := range topics {
		if t.Synonym == "" {
			continue
		}
		b := t
		b.Name, b.Synonym, b.topic, b.Live = t.Synonym, "", nil, true
		b.Doc = "Default of the topic config " + t.Name + ": " + t.Doc
		out = append(out, b)
	}
	return out
}

// dev is a default under `dev`.
func dev(value string) *string { return &value }
