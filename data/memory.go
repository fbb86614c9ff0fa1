package data

import (
	"errors"
	"fmt"
	"slices"
	"unsafe"

	"github.com/gsrc-dev/gsrc/graph"
	"github.com/gsrc-dev/gsrc/internal/budget"
)

// The readers claim memory from the loader's reservation before they allocate what a
// file makes them allocate, and give back what they have let go of. A nil reservation
// has no limit. Memory that is refused is a panic, and so are faults of texts of numbers, of
// arrays and of graph stores, as in package encoding/gob. It ends at caught, or at within,
// which says what file it is.

// failed is what ends reading.
type failed struct{ err error }

// claim takes n bytes, and panics where there are not as many.
func claim(mem *budget.Reservation, n int64) {
	if err := mem.Grow(n); err != nil {
		panic(failed{err})
	}
}

func failf(format string, args ...any) { panic(failed{fmt.Errorf(format, args...)}) }

// failure is the error of a panic.
func failure(p any) error {
	f, ok := p.(failed)
	if !ok {
		panic(p)
	}
	return f.err
}

// caught, deferred, returns what has ended reading.
func caught(err *error) {
	if p := recover(); p != nil {
		*err = failure(p)
	}
}

// within is caught in reading a file, which the error names.
func within(file string, err *error) {
	if p := recover(); p != nil {
		*err = inFile(file, 0, failure(p))
	}
}

// inFile says where an error is that does not say so.
func inFile(file string, line int, err error) *FileError {
	e, ok := err.(*FileError)
	if !ok {
		e = fileFault(file, err)
		e.Line = line
	}
	return e
}

// room returns list with room for n elements more. The list must have been empty, or
// come from room: what it takes is claimed.
func room[T any](mem *budget.Reservation, list []T, n int) []T {
	if cap(list)-len(list) >= n {
		return list
	}
	size := int64(unsafe.Sizeof(*new(T)))
	grown := max(len(list)+n, len(list)+len(list)/2, 16)
	claim(mem, budget.Mul(int64(grown), size))
	bigger := make([]T, len(list), grown)
	copy(bigger, list)
	mem.Shrink(int64(cap(list)) * size)
	return bigger
}

// push appends to a list that comes from [room].
func push[T any](mem *budget.Reservation, list *[]T, v T) {
	if len(*list) == cap(*list) {
		*list = room(mem, *list, 1)
	}
	*list = append(*list, v)
}

// zeros returns a list of n zeros.
func zeros[T any](mem *budget.Reservation, n int) []T {
	claim(mem, budget.Mul(int64(n), int64(unsafe.Sizeof(*new(T)))))
	return make([]T, n)
}

// filled returns a list of n times v.
func filled[T any](mem *budget.Reservation, n int, v T) []T {
	claim(mem, budget.Mul(int64(n), int64(unsafe.Sizeof(v))))
	return slices.Repeat([]T{v}, n)
}

// taking claims n bytes for as long as do runs.
func taking(mem *budget.Reservation, n int64, do func() error) error {
	claim(mem, n)
	defer mem.Shrink(n)
	return do()
}

// bytes returns the memory of the matrix.
func (f *Features) bytes() int64 {
	return 4 * int64(cap(f.RowPtr)+cap(f.Col)+cap(f.Val)+cap(f.Dense))
}

func graphBytes(g *graph.Graph) int64 { return 8*int64(cap(g.Edges)) + 4*int64(cap(g.Weights)) }

// limited is caught where all that is at a path is read: the error says what to do.
func limited(path string, err *error) {
	if p := recover(); p != nil {
		*err = failure(p)
	}
	*err = overBudget(path, *err)
}

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
