// Package lists makes lists of others.
package lists

import "slices"

// Map returns what f makes of each element of a list; nil of an empty one.
func Map[T, U any](list []T, f func(T) U) []U {
	out := slices.Grow([]U(nil), len(list))
	for _, x := range list {
		out = append(out, f(x))
	}
	return out
}
