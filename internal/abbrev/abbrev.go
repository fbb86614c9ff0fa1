// Package abbrev shortens names of classes for charts and tables.
package abbrev

import "fmt"

// Names returns names of at most n letters each, n being 4 or more. Longer ones are cut at their ends; those that
// would then look like another are cut in the middle, and begin with their number where that does not tell them apart.
func Names(names []string, n int) []string {
	ends := func(_ int, name []rune) string { return string(name[:n-1]) + "…" }
	middles := func(_ int, name []rune) string {
		head := (n - 1) / 2
		return string(name[:head]) + "…" + string(name[len(name)-(n-1-head):])
	}
	numbered := func(i int, name []rune) string { return ends(i, []rune(fmt.Sprintf("%d: %s", i, string(name)))) }
	out := make([]string, len(names))
	copy(out, names)
	for k, cut := range []func(int, []rune) string{ends, middles, numbered} {
		alike := map[string]int{}
		for _, name := range out {
			alike[name]++
		}
		for i, name := range names {
			if letters := []rune(name); len(letters) > n && (k == 0 || alike[out[i]] > 1) {
				out[i] = cut(i, letters)
			}
		}
	}
	return out
}
