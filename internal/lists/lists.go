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

// Of returns what f makes of 0 to n-1.
func Of[T any](n int, f func(i int) T) []T {
	list := make([]T, n)
	for i := range list {
		list[i] = f(i)
	}
	return list
}
