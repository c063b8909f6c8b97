// Package spelling finds what a person most likely meant by a word that is not known.
package spelling

import (
	"slices"
	"strings"
)

// Nearest returns the known name that a person most likely meant, or none.
func Nearest(name string, known []string) string {
	plain := func(s string) string { return strings.ToLower(strings.NewReplacer("_", "", "-", "").Replace(s)) }
	best, least := "", len(name)/3+1
	for _, k := range known {
		if plain(k) == plain(name) || len(name) >= 4 && strings.HasPrefix(plain(k), plain(name)) {
			return k
		}
		if d := distance(plain(name), plain(k)); d < least || d == least && best == "" {
			best, least = k, d
		}
	}
	return best
}

// distance counts the characters to insert, delete, replace or swap with their neighbour.
func distance(a, b string) int {
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last, row = last, row, slices.Clone(before)
	}
	return last[len(b)]
}
