package data

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"regexp"
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

func (a *array) len() int { return len(a.data) / a.dtype.size }

func (a *array) dims(n int) error {
	if len(a.shape) != n {
		return fmt.Errorf("expected %d dimension(s), found shape %s", n, shapeString(a.shape))
	}
	return nil
}

// gather reads all elements in C order with read.
func gather[T any](a *array, read func([]byte) T) []T {
	n, size := a.len(), a.dtype.size
	out := zeros[T](a.mem, n)
	if a.fortran && len(a.shape) == 2 {
		rows, cols := a.shape[0], a.shape[1]
		i := 0
		for c := range cols {
			for r := range rows {
				out[r*cols+c] = read(a.data[i:])
				i += size
			}
		}
		return out
	}
	for i := range out {
		out[i] = read(a.data[i*size:])
	}
	return out
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
func (a *array) ints() (_ []int64, err error) {
	defer caught(&err)
	read := a.intReader()
	if read == nil {
		return nil, fmt.Errorf("expected integers, found type %s", a.dtype)
	}
	if a.fortran || a.dtype.big || a.dtype.kind != 'i' || a.dtype.size < 4 {
		return gather(a, read), nil
	}
	out := zeros[int64](a.mem, a.len()) // the common cases, four times as fast
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
func (a *array) bools() (_ []bool, err error) {
	defer caught(&err)
	read := a.intReader()
	if read == nil {
		return nil, fmt.Errorf("expected booleans, found type %s", a.dtype)
	}
	return gather(a, func(b []byte) bool { return read(b) != 0 }), nil
}

// float32s returns the elements of a numeric array in C order. A float64 out
// of float32's range becomes an infinity, which Features.Check reports.
func (a *array) float32s() (_ []float32, err error) {
	defer caught(&err)
	o := a.order()
	switch {
	case a.dtype == dtype{kind: 'f', size: 4} && !a.fortran: // the common case, four times as fast
		out := zeros[float32](a.mem, a.len())
		for i := range out {
			out[i] = math.Float32frombits(binary.LittleEndian.Uint32(a.data[4*i:]))
		}
		return out, nil
	case a.dtype.kind == 'f' && a.dtype.size == 4:
		return gather(a, func(b []byte) float32 { return math.Float32frombits(o.Uint32(b)) }), nil
	case a.dtype.kind == 'f' && a.dtype.size == 8:
		return gather(a, func(b []byte) float32 { return float32(math.Float64frombits(o.Uint64(b))) }), nil
	}
	if read := a.intReader(); read != nil {
		return gather(a, func(b []byte) float32 { return float32(read(b)) }), nil
	}
	return nil, fmt.Errorf("expected numbers, found type %s", a.dtype)
}

const npyMagic = "\x93NUMPY"

// npyHeader is what stands before the elements of a .npy file.
type npyHeader struct {
	dtype   dtype
	shape   []int
	fortran bool
	size    int // bytes up to the first element
}

// parseNPY reads a .npy file, versions 1 to 3 of the format (NumPy enhancement
// proposal 1 and its amendments). The array aliases b.
func parseNPY(b []byte) (*array, error) {
	h, err := parseNPYHeader(b)
	if err != nil {
		return nil, err
	}
	return newArray(h.dtype, h.shape, h.fortran, b[h.size:])
}

func parseNPYHeader(b []byte) (npyHeader, error) {
	var h npyHeader
	if len(b) == 0 {
		return h, errors.New("empty")
	}
	if len(b) < 10 || string(b[:6]) != npyMagic {
		return h, errors.New("not a NumPy .npy file: the magic bytes are missing")
	}
	var n, at int
	switch b[6] {
	case 1:
		n, at = int(binary.LittleEndian.Uint16(b[8:])), 10
	case 2, 3:
		if len(b) < 12 {
			return h, errors.New("header is truncated")
		}
		l := binary.LittleEndian.Uint32(b[8:])
		if l > 1<<20 {
			return h, fmt.Errorf("header claims %d bytes", l)
		}
		n, at = int(l), 12
	default:
		return h, fmt.Errorf("version %d of the .npy format is not supported", b[6])
	}
	if n > len(b)-at {
		return h, fmt.Errorf("header of %d bytes is truncated", n)
	}
	h.size = at + n
	p := literal(b[at:h.size])
	if err := p.header(&h); err != nil {
		return h, fmt.Errorf("header: %w", err)
	}
	return h, nil
}

// literal is what is left of the Python dictionary in a .npy header: the three keys that
// the format defines, in any order, and nothing else.
type literal string

// literalToken is a string without escapes, a word or number, or another sign.
var literalToken = regexp.MustCompile(`^('[^']*'|"[^"]*"|[0-9A-Za-z]+|.)`)

func (p *literal) header(h *npyHeader) error {
	if err := p.expect("{"); err != nil {
		return err
	}
	seen := map[string]bool{}
	for p.peek() != "}" {
		key, err := p.str()
		if err != nil {
			return err
		}
		if seen[key] {
			return fmt.Errorf("key %s appears twice", quote(key))
		}
		seen[key] = true
		if err := p.expect(":"); err != nil {
			return err
		}
		switch key {
		case "descr":
			if c := p.peek(); c == "[" || c == "(" {
				return errors.New("structured types are not supported: save plain arrays")
			}
			s, err := p.str()
			if err != nil {
				return err
			}
			if h.dtype, err = parseDtype(s); err != nil {
				return err
			}
		case "fortran_order":
			word := p.next()
			if word != "True" && word != "False" {
				return fmt.Errorf("fortran_order is %s", quote(word))
			}
			h.fortran = word == "True"
		case "shape":
			if h.shape, err = p.tuple(); err != nil {
				return err
			}
		default:
			return fmt.Errorf("unknown key %s", quote(key))
		}
		if p.peek() != "," {
			break
		}
		p.next()
	}
	if err := p.expect("}"); err != nil {
		return err
	}
	if p.peek() != "" {
		return errors.New("text after the dictionary")
	}
	if len(seen) != 3 {
		return errors.New("needs the keys descr, fortran_order and shape")
	}
	return nil
}

// peek returns the next token, empty at the end.
func (p *literal) peek() string {
	*p = literal(strings.TrimLeft(string(*p), " \t\r\n"))
	return literalToken.FindString(string(*p))
}

func (p *literal) next() string {
	t := p.peek()
	*p = (*p)[len(t):]
	return t
}

func (p *literal) expect(token string) error {
	if got := p.next(); got != token {
		return fmt.Errorf("expected '%s', found %s", token, quote(got))
	}
	return nil
}

func (p *literal) str() (string, error) {
	t := p.next()
	switch {
	case t == "'" || t == `"`:
		return "", errors.New("a string does not end")
	case t == "" || t[0] != '\'' && t[0] != '"':
		return "", fmt.Errorf("expected a string, found %s", quote(t))
	}
	return t[1 : len(t)-1], nil
}

// tuple takes a tuple of whole numbers; Python 2 wrote some with a final L.
func (p *literal) tuple() ([]int, error) {
	if err := p.expect("("); err != nil {
		return nil, err
	}
	var out []int
	for p.peek() != ")" {
		word := p.next()
		n, err := strconv.ParseInt(strings.TrimSuffix(word, "L"), 10, strconv.IntSize)
		if err != nil || len(out) == 8 {
			return nil, fmt.Errorf("shape is not a short tuple of whole numbers, but has %s", quote(word))
		}
		out = append(out, int(n))
		if p.peek() != "," {
			break
		}
		p.next()
	}
	return out, p.expect(")")
}
