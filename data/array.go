package data

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strconv"
	"strings"

	"github.com/gsrc-dev/gsrc/internal/budget"
)

// dtype is the element type of a NumPy array: a kind as NumPy abbreviates it
// (f, i, u, b, S), the bytes an element takes and the byte order.
type dtype struct {
	kind byte
	size int
	big  bool
}

// parseDtype reads a NumPy type string such as "<f4", "|b1" or "i8".
func parseDtype(s string) (dtype, error) {
	var d dtype
	t := s
	if t != "" && strings.IndexByte("<>=|", t[0]) >= 0 {
		d.big = t[0] == '>'
		t = t[1:]
	}
	if len(t) >= 2 {
		n, err := strconv.ParseUint(t[1:], 10, 16)
		if d.kind, d.size = t[0], int(n); err == nil && d.valid() {
			return d, nil
		}
	}
	return dtype{}, fmt.Errorf("type %s is not supported: save the array as float32, float64, int32, int64 or bool", quote(s))
}

// valid reports whether elements of the type can be read.
func (d dtype) valid() bool {
	return d.kind == 'S' && d.size > 0 || slices.Contains([]string{"b1", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f4", "f8"}, d.name())
}

// name is the type without its byte order, such as "f4".
func (d dtype) name() string { return fmt.Sprintf("%c%d", d.kind, d.size) }

func (d dtype) String() string {
	order := "<"
	switch {
	case d.size == 1 || d.kind == 'S':
		order = "|"
	case d.big:
		order = ">"
	}
	return order + d.name()
}

// array is a NumPy array as a file holds it: data aliases the file's bytes and
// has exactly as many as shape and type ask for (newArray checks).
type array struct {
	dtype   dtype
	shape   []int
	fortran bool
	data    []byte

	mem  *budget.Reservation // what is made of it is claimed here
	held int64               // what data takes of it
}

// done gives back what the array takes, once it was read.
func (a *array) done() {
	a.mem.Shrink(a.held)
	a.held = 0
}

// checkShape checks that a shape and a type need exactly size bytes.
func checkShape(d dtype, shape []int, size uint64) error {
	if len(shape) > 8 {
		return fmt.Errorf("an array of %d dimensions is not supported", len(shape))
	}
	want := uint64(d.size)
	for _, n := range shape {
		hi, lo := bits.Mul64(want, uint64(n))
		if n < 0 || hi != 0 {
			return fmt.Errorf("impossible shape %s", shapeString(shape))
		}
		want = lo
	}
	if want != size {
		return fmt.Errorf("shape %s of type %s needs %d bytes, the file has %d: it is truncated or damaged", shapeString(shape), d, want, size)
	}
	return nil
}

// newArray pairs bytes with a type and a shape that fit them.
func newArray(d dtype, shape []int, fortran bool, data []byte) (*array, error) {
	if err := checkShape(d, shape, uint64(len(data))); err != nil {
		return nil, err
	}
	return &array{dtype: d, shape: shape, fortran: fortran, data: data}, nil
}

// shapeString formats a shape as NumPy does, for errors.
func shapeString(shape []int) string { return strings.ReplaceAll(fmt.Sprint(shape), " ", ",") }

// len returns the number of elements.
func (a *array) len() int { return len(a.data) / a.dtype.size }

// dims checks the number of dimensions.
func (a *array) dims(n int) error {
	if len(a.shape) != n {
		return fmt.Errorf("expected %d dimension(s), found shape %s", n, shapeString(a.shape))
	}
	return nil
}

// gather reads all elements in C order with read.
func gather[T any](a *array, read func([]byte) T) ([]T, error) {
	n, size := a.len(), a.dtype.size
	out, err := zeros[T](a.mem, n)
	if err != nil {
		return nil, err
	}
	if a.fortran && len(a.shape) == 2 {
		rows, cols := a.shape[0], a.shape[1]
		i := 0
		for c := range cols {
			for r := range rows {
				out[r*cols+c] = read(a.data[i:])
				i += size
			}
		}
		return out, nil
	}
	for i := range out {
		out[i] = read(a.data[i*size:])
	}
	return out, nil
}

// order is the array's byte order.
func (a *array) order() binary.ByteOrder {
	if a.dtype.big {
		return binary.BigEndian
	}
	return binary.LittleEndian
}

// intReader returns a reader of one integer or bool element, nil for other types.
func (a *array) intReader() func([]byte) int64 {
	o := a.order()
	switch a.dtype.name() {
	case "b1":
		return func(b []byte) int64 { return int64(min(b[0], 1)) }
	case "i1":
		return func(b []byte) int64 { return int64(int8(b[0])) }
	case "i2":
		return func(b []byte) int64 { return int64(int16(o.Uint16(b))) }
	case "i4":
		return func(b []byte) int64 { return int64(int32(o.Uint32(b))) }
	case "i8":
		return func(b []byte) int64 { return int64(o.Uint64(b)) }
	case "u1":
		return func(b []byte) int64 { return int64(b[0]) }
	case "u2":
		return func(b []byte) int64 { return int64(o.Uint16(b)) }
	case "u4":
		return func(b []byte) int64 { return int64(o.Uint32(b)) }
	case "u8":
		return func(b []byte) int64 { return int64(min(o.Uint64(b), math.MaxInt64)) }
	}
	return nil
}

// ints returns the elements of an integer or bool array in C order. Unsigned
// numbers beyond int64 saturate, which no index or label check lets through.
func (a *array) ints() ([]int64, error) {
	read := a.intReader()
	if read == nil {
		return nil, fmt.Errorf("expected integers, found type %s", a.dtype)
	}
	if a.fortran || a.dtype.big || a.dtype.kind != 'i' || a.dtype.size < 4 {
		return gather(a, read)
	}
	out, err := zeros[int64](a.mem, a.len()) // the common cases, four times as fast
	if err != nil {
		return nil, err
	}
	for i := range out {
		if a.dtype.size == 4 {
			out[i] = int64(int32(binary.LittleEndian.Uint32(a.data[4*i:])))
		} else {
			out[i] = int64(binary.LittleEndian.Uint64(a.data[8*i:]))
		}
	}
	return out, nil
}

// bools returns the elements of a bool or integer array in C order.
func (a *array) bools() ([]bool, error) {
	read := a.intReader()
	if read == nil {
		return nil, fmt.Errorf("expected booleans, found type %s", a.dtype)
	}
	return gather(a, func(b []byte) bool { return read(b) != 0 })
}

// float32s returns the elements of a numeric array in C order. A float64 out
// of float32's range becomes an infinity, which Features.Check reports.
func (a *array) float32s() ([]float32, error) {
	o := a.order()
	switch {
	case a.dtype == dtype{kind: 'f', size: 4} && !a.fortran: // the common case, four times as fast
		out, err := zeros[float32](a.mem, a.len())
		if err != nil {
			return nil, err
		}
		for i := range out {
			out[i] = math.Float32frombits(binary.LittleEndian.Uint32(a.data[4*i:]))
		}
		return out, nil
	case a.dtype.kind == 'f' && a.dtype.size == 4:
		return gather(a, func(b []byte) float32 { return math.Float32frombits(o.Uint32(b)) })
	case a.dtype.kind == 'f' && a.dtype.size == 8:
		return gather(a, func(b []byte) float32 { return float32(math.Float64frombits(o.Uint64(b))) })
	}
	if read := a.intReader(); read != nil {
		return gather(a, func(b []byte) float32 { return float32(read(b)) })
	}
	return nil, fmt.Errorf("expected numbers, found type %s", a.dtype)
}
