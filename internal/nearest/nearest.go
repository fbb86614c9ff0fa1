// Package nearest finds the name that a mistyped one was meant to be.
package nearest

import (
	"fmt"
	"strings"
)

// Of returns the known name with the fewest edits (insertions, deletions,
// replacements, swaps of neighbours) from name, ignoring case, the first of
// equals; "" if none is near enough to be meant.
func Of(name string, known []string) string {
	best, least := "", len(name)/3+2
	for _, k := range known {
		if len(name)-len(k) >= least { // so many edits at least; the name may be a whole text
			continue
		}
		if d := distance(strings.ToLower(name), strings.ToLower(k)); d < least && d < len(k) {
			best, least = k, d
		}
	}
	return best
}

// Hint returns `; did you mean "x"?`, or `; there are a, b, c` where no name is
// near.
func Hint(name string, known []string) string {
	if n := Of(name, known); n != "" {
		return fmt.Sprintf("; did you mean %q?", n)
	}
	if len(known) == 0 {
		return ""
	}
	return "; there are " + strings.Join(known, ", ")
}

// distance is the optimal string alignment distance.
func distance(a, b string) int {
	before, prev, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range prev {
		prev[j] = j
	}
	for i := range len(a) {
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			row[j+1] = min(prev[j+1]+1, row[j]+1, prev[j]+cost)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		before, prev, row = prev, row, before
	}
	return prev[len(b)]
}
