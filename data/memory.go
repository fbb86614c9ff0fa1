package data

import (
	"errors"
	"unsafe"

	"github.com/gsrc-dev/gsrc/graph"
	"github.com/gsrc-dev/gsrc/internal/budget"
)

// The readers claim memory from the loader's reservation before they allocate what a
// file makes them allocate, and give back what they have let go of. A nil reservation
// has no limit.

// room returns list with room for n elements more. The list must have been empty, or
// come from room: what it takes is claimed.
func room[T any](mem *budget.Reservation, list []T, n int) ([]T, error) {
	if cap(list)-len(list) >= n {
		return list, nil
	}
	size := int64(unsafe.Sizeof(*new(T)))
	grown := max(len(list)+n, len(list)+len(list)/2, 16)
	if err := mem.Grow(budget.Mul(int64(grown), size)); err != nil {
		return nil, err
	}
	bigger := make([]T, len(list), grown)
	copy(bigger, list)
	mem.Shrink(int64(cap(list)) * size)
	return bigger, nil
}

// zeros returns a list of n zeros.
func zeros[T any](mem *budget.Reservation, n int) ([]T, error) {
	if err := mem.Grow(budget.Mul(int64(n), int64(unsafe.Sizeof(*new(T))))); err != nil {
		return nil, err
	}
	return make([]T, n), nil
}

// taking claims n bytes for as long as do runs.
func taking(mem *budget.Reservation, n int64, do func() error) error {
	if err := mem.Grow(n); err != nil {
		return err
	}
	defer mem.Shrink(n)
	return do()
}

// bytes returns the memory of the matrix.
func (f *Features) bytes() int64 {
	return 4 * int64(cap(f.RowPtr)+cap(f.Col)+cap(f.Val)+cap(f.Dense))
}

// graphBytes returns the memory of a graph.
func graphBytes(g *graph.Graph) int64 { return 8*int64(cap(g.Edges)) + 4*int64(cap(g.Weights)) }

// overBudget adds to an error about memory what the file is and what to do.
func overBudget(path string, err error) error {
	var exceeded *budget.ExceededError
	if !errors.As(err, &exceeded) {
		return err
	}
	var fe *FileError
	if !errors.As(err, &fe) {
		fe = fileFault(path, err)
		err = fe
	}
	fe.Hint = "if it really is that large, raise the limit with --memory"
	return err
}
