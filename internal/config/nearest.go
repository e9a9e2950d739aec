package config

import (
	"slices"
	"strings"
)

// Nearest returns the name in the scope that looks most like the given one, or "" when none is close.
func Nearest(scope Scope, name string) string {
	var names []string
	for _, s := range All(scope) {
		names = append(names, s.Name)
	}
	return nearestOf(name, names)
}

// NearestOf is Nearest among given names, which it sorts.
func NearestOf(name string, names []string) string { return nearestOf(name, names) }

func nearestOf(name string, names []string) string {
	best, bestDistance := "", suggestDistanceMax+1
	slices.Sort(names)
	for _, n := range names {
		if d := nameDistance(name, n); d < bestDistance {
			best, bestDistance = n, d
		}
	}
	return best
}

// nameDistance is 1 when one name is the other's without a usual prefix, else the edit distance. Distances over a third of the name are no
// likeness.
func nameDistance(a, b string) int {
	a, b = strings.ToLower(a), strings.ToLower(b)
	for _, prefix := range []string{"strandline.", "log.", "kafka."} {
		if strings.TrimPrefix(b, prefix) == a || strings.TrimPrefix(a, prefix) == b {
			return 1
		}
	}
	d := editDistance(a, b)
	if d*3 > max(len(a), len(b)) {
		return suggestDistanceMax + 1
	}
	return d
}

// editDistance counts the insertions, deletions and replacements between two texts. Inputs are cut at 128 bytes: names are shorter (I14).
func editDistance(a, b string) int {
	const longest = 128
	a, b = a[:min(len(a), longest)], b[:min(len(b), longest)]
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replace := diagonal
			if a[i] != b[j] {
				replace++
			}
			diagonal = row[j+1]
			row[j+1] = min(replace, row[j]+1, diagonal+1)
		}
	}
	return row[len(b)]
}
