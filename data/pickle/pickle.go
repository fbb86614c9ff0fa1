// Package pickle reads Python's pickles and runs no code from them.
package pickle

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/gsrc-dev/gsrc/internal/budget"
)

// What a pickle holds is of these Go types, and those that [Objects] makes:
//
//	nil, bool, int64, float64
//	string     a unicode string
//	Bytes      a bytes object or a Python 2 string; aliases the file
//	Tuple, *List, *Dict
//	Global     a name that has been looked up, not what it stands for
//
// Objects may contain themselves; nothing here walks them without a bound.
type (
	Bytes []byte
	Tuple []any
	List  struct{ Items []any }
	Dict  struct{ Keys, Vals []any }
	// Global is what a name means, as Objects calls it.
	Global string
)

// Objects says what the names in a pickle mean. Whatever it does not know is refused:
// nothing is executed.
type Objects interface {
	// Global returns what a name such as numpy.core.multiarray.scalar means.
	Global(name string) (Global, bool)
	// New makes what a call of a global with arguments stands for.
	New(r *Reader, g Global, args Tuple) (any, error)
	// SetState fills an object that New has made.
	SetState(r *Reader, object, state any) error
}

// Error is a fault of a pickle.
type Error struct {
	Offset int64 // of the opcode
	Err    error
}

func (e *Error) Error() string { return e.Err.Error() }
func (e *Error) Unwrap() error { return e.Err }

// Read reads one pickled object, protocols 2 to 4 (Python's pickletools documents the
// opcodes). The error is an *[Error].
//
// Memory, which is claimed from mem, stays in proportion to the file. Strings and array
// contents alias it, lengths are held against what is left of it, an opcode pushes at
// most one value, memo entries are a map, and what can be made to do more shares a
// budget of the file's size ([Reader.Spend]).
func Read(b []byte, o Objects, mem *budget.Reservation) (any, error) {
	m := Reader{buf: b, objects: o, memo: map[uint64]any{}, budget: len(b), mem: mem}
	v, err := m.run()
	if err != nil {
		return nil, &Error{int64(m.at), err}
	}
	return v, nil
}

// Reader is the pickle virtual machine: a stack, marks into it, and a memo.
type Reader struct {
	objects Objects
	buf     []byte
	pos     int // next byte
	at      int // start of the current opcode, for errors
	stack   []any
	marks   []int
	memo    map[uint64]any
	budget  int // work beyond one step for each byte that is still allowed
	steps   int
	mem     *budget.Reservation
}

// An opcode makes no more than an object, its place on the stack, in a list and in the
// memo, whose entries take most; the memory of that many is claimed at once.
const (
	opcodeBytes   = 160
	opcodesAtOnce = 1 << 10
)

var (
	errTruncated = errors.New("the file ends in the middle: it is truncated or damaged")
	errStack     = errors.New("an operation finds nothing on the stack")
)

// failed is what run panics with, and recovers from: a fault of the file.
type failed struct{ err error }

// check ends the reading at an error.
func check(err error) {
	if err != nil {
		panic(failed{err})
	}
}

func failf(format string, args ...any) { panic(failed{fmt.Errorf(format, args...)}) }

func (m *Reader) run() (v any, err error) {
	defer func() {
		if r := recover(); r != nil {
			f, ok := r.(failed)
			if !ok {
				panic(r)
			}
			v, err = nil, f.err
		}
	}()
	for {
		m.at = m.pos
		if m.steps%opcodesAtOnce == 0 {
			check(m.mem.Grow(opcodesAtOnce * opcodeBytes))
		}
		m.steps++
		op := m.take(1)[0]
		if op == '.' {
			if len(m.stack) != 1 || len(m.marks) != 0 {
				failf("ends with %d objects, not one", len(m.stack))
			}
			if m.pos != len(m.buf) {
				failf("%d bytes follow the end of the object", len(m.buf)-m.pos)
			}
			return m.stack[0], nil
		}
		m.step(op)
	}
}

// step executes one opcode. Each case is named as pickletools names it.
func (m *Reader) step(op byte) {
	switch op {
	case 0x80: // PROTO
		if p := m.take(1)[0]; p > 4 {
			failf("pickle protocol %d is not supported; save with protocol 2 to 4", p)
		}
	case 0x95: // FRAME: only a hint for buffered reading
		m.length(op)
	case '(': // MARK
		m.marks = append(m.marks, len(m.stack))
	case '0': // POP
		if n := len(m.marks); n > 0 && m.marks[n-1] == len(m.stack) {
			m.marks = m.marks[:n-1]
		} else {
			m.pop()
		}
	case '1': // POP_MARK
		m.popMark()
	case '2': // DUP
		m.push(m.top())
	case 'N': // NONE
		m.push(nil)
	case 0x88, 0x89: // NEWTRUE, NEWFALSE
		m.push(op == 0x88)
	case 'K': // BININT1
		m.push(int64(m.take(1)[0]))
	case 'M': // BININT2
		m.push(int64(binary.LittleEndian.Uint16(m.take(2))))
	case 'J': // BININT
		m.push(int64(int32(binary.LittleEndian.Uint32(m.take(4)))))
	case 'G': // BINFLOAT
		m.push(math.Float64frombits(binary.BigEndian.Uint64(m.take(8))))
	case 0x8a, 0x8b: // LONG1, LONG4
		m.push(long(m.sized(op)))
	case 'U', 'C', 'T', 'B', 0x8e: // SHORT_BINSTRING, SHORT_BINBYTES, BINSTRING, BINBYTES, BINBYTES8
		m.push(Bytes(m.sized(op)))
	case 0x8c, 'X', 0x8d: // SHORT_BINUNICODE, BINUNICODE, BINUNICODE8
		b := m.sized(op)
		check(m.mem.Grow(int64(len(b))))
		m.push(string(b))
	case ')': // EMPTY_TUPLE
		m.push(Tuple(nil))
	case ']': // EMPTY_LIST
		m.push(&List{})
	case '}': // EMPTY_DICT
		m.push(&Dict{})
	case 0x85, 0x86, 0x87: // TUPLE1, TUPLE2, TUPLE3
		n := int(op - 0x84)
		if len(m.stack)-m.floor() < n {
			panic(failed{errStack})
		}
		t := append(Tuple(nil), m.stack[len(m.stack)-n:]...)
		m.stack = m.stack[:len(m.stack)-n]
		m.push(t)
	case 't': // TUPLE
		m.push(append(Tuple(nil), m.popMark()...))
	case 'l': // LIST
		m.push(&List{Items: append([]any(nil), m.popMark()...)})
	case 'd': // DICT
		d := &Dict{}
		d.update(m.popMark()...)
		m.push(d)
	case 'a': // APPEND
		m.extend(m.pop())
	case 'e': // APPENDS
		m.extend(m.popMark()...)
	case 's': // SETITEM
		v, k := m.pop(), m.pop()
		m.dict().update(k, v)
	case 'u': // SETITEMS
		items := m.popMark()
		m.dict().update(items...)
	case 'q', 'r': // BINPUT, LONG_BINPUT
		m.memo[m.number(op)] = m.top()
	case 0x94: // MEMOIZE
		m.memo[uint64(len(m.memo))] = m.top()
	case 'h', 'j': // BINGET, LONG_BINGET
		key := m.number(op)
		v, ok := m.memo[key]
		if !ok {
			failf("memo entry %d was never stored", key)
		}
		m.push(v)
	case 'c': // GLOBAL
		module, name := m.line(), m.line()
		m.pushGlobal(module, name)
	case 0x93: // STACK_GLOBAL
		name, ok1 := m.pop().(string)
		module, ok2 := m.pop().(string)
		if !ok1 || !ok2 {
			failf("a global's name is not a string")
		}
		m.pushGlobal(module, name)
	case 'R', 0x81: // REDUCE, NEWOBJ
		args, callee := m.pop(), m.pop()
		m.push(m.construct(callee, args))
	case 'b': // BUILD
		state := m.pop()
		check(m.objects.SetState(m, m.top(), state))
	default:
		failf("opcode 0x%02x is not supported: this is no pickle of protocol 2 to 4", op)
	}
}

// long is an integer in two's complement, little-endian.
func long(b []byte) int64 {
	if len(b) > 8 {
		failf("an integer of %d bytes is out of range", len(b))
	}
	var whole [8]byte
	copy(whole[8-len(b):], b)
	return int64(binary.LittleEndian.Uint64(whole[:])) >> (64 - 8*len(b)) // with the sign
}

func (m *Reader) extend(items ...any) {
	l, ok := m.top().(*List)
	if !ok {
		failf("appends to %s, not to a list", Describe(m.top()))
	}
	l.Items = append(l.Items, items...)
}

func (m *Reader) dict() *Dict {
	d, ok := m.top().(*Dict)
	if !ok {
		failf("sets an item of %s, not of a dict", Describe(m.top()))
	}
	return d
}

// update sets items from key, value, key, …
func (d *Dict) update(items ...any) {
	if len(items)%2 != 0 {
		failf("a dict item has no value")
	}
	for i := 0; i < len(items); i += 2 {
		d.Keys = append(d.Keys, items[i])
		d.Vals = append(d.Vals, items[i+1])
	}
}

// floor is the lowest stack position that the current mark lets one reach.
func (m *Reader) floor() int {
	if n := len(m.marks); n > 0 {
		return m.marks[n-1]
	}
	return 0
}

func (m *Reader) push(v any) { m.stack = append(m.stack, v) }

func (m *Reader) top() any {
	if len(m.stack) <= m.floor() {
		panic(failed{errStack})
	}
	return m.stack[len(m.stack)-1]
}

func (m *Reader) pop() any {
	v := m.top()
	m.stack = m.stack[:len(m.stack)-1]
	return v
}

// popMark removes and returns everything above the last mark. The result is
// valid until the next push.
func (m *Reader) popMark() []any {
	n := len(m.marks)
	if n == 0 {
		failf("an operation finds no mark on the stack")
	}
	from := m.marks[n-1]
	m.marks = m.marks[:n-1]
	items := m.stack[from:]
	m.stack = m.stack[:from]
	return items
}

// take returns the next n bytes of the file.
func (m *Reader) take(n int) []byte {
	if n > len(m.buf)-m.pos {
		panic(failed{errTruncated})
	}
	b := m.buf[m.pos : m.pos+n : m.pos+n]
	m.pos += n
	return b
}

// widths are how many bytes the number has that follows an opcode: a length, or a place in the memo.
var widths = [256]uint8{
	'U': 1, 'C': 1, 0x8c: 1, 0x8a: 1, 'T': 4, 'B': 4, 'X': 4, 0x8b: 4, 0x8d: 8, 0x8e: 8, 0x95: 8,
	'q': 1, 'h': 1, 'r': 4, 'j': 4,
}

// number reads the number that follows an opcode.
func (m *Reader) number(op byte) uint64 {
	var whole [8]byte
	copy(whole[:], m.take(int(widths[op])))
	return binary.LittleEndian.Uint64(whole[:])
}

// length reads how many bytes follow.
func (m *Reader) length(op byte) int {
	n := m.number(op)
	if n > uint64(len(m.buf)-m.pos) {
		panic(failed{errTruncated})
	}
	return int(n)
}

// sized returns the bytes whose length stands before them.
func (m *Reader) sized(op byte) []byte { return m.take(m.length(op)) }

func (m *Reader) line() string {
	n := bytes.IndexByte(m.buf[m.pos:], '\n')
	if n < 0 {
		panic(failed{errTruncated})
	}
	return strings.TrimSuffix(string(m.take(n + 1)[:n]), "\r")
}

// Spend takes n bytes from the budget for what is more than a step for each byte: copies.
func (m *Reader) Spend(n int) error {
	if err := m.mem.Grow(int64(n)); err != nil {
		return err
	}
	if n > m.budget {
		return errors.New("builds more data than the file holds; refusing to unpack a bomb")
	}
	m.budget -= n
	return nil
}

func (m *Reader) pushGlobal(module, name string) {
	g, ok := m.objects.Global(module + "." + name)
	if !ok {
		failf("refers to %+.60q, which is not data; gsrc runs no code from files", module+"."+name)
	}
	m.push(g)
}

func (m *Reader) construct(callee, args any) any {
	g, ok := callee.(Global)
	if !ok {
		failf("calls %s", Describe(callee))
	}
	t, ok := args.(Tuple)
	if !ok {
		failf("calls %s with %s", string(g), Describe(args))
	}
	v, err := m.objects.New(m, g, t)
	check(err)
	return v
}

// Text returns a short string of either kind: a name. Long ones are refused, so
// that a file cannot have the same megabytes copied again and again.
func Text(v any) (string, bool) {
	switch s := v.(type) {
	case string:
		return s, len(s) <= 256
	case Bytes:
		if len(s) <= 256 {
			return string(s), true
		}
	}
	return "", false
}

// Describe names a value's type, and its number or name, for an error. It does not look
// inside containers. Objects may say what they are by a method Describe.
func Describe(v any) string {
	switch x := v.(type) {
	case nil:
		return "None"
	case bool:
		return fmt.Sprintf("the boolean %t", x)
	case int64:
		return fmt.Sprintf("the integer %d", x)
	case float64:
		return fmt.Sprintf("the number %g", x)
	case string, Bytes:
		if s, ok := Text(x); ok {
			return fmt.Sprintf("the string %+.60q", s)
		}
		return "a long string"
	case Tuple:
		return fmt.Sprintf("a tuple of %d", len(x))
	case *List:
		return fmt.Sprintf("a list of %d", len(x.Items))
	case *Dict:
		return fmt.Sprintf("a dict of %d", len(x.Keys))
	case Global:
		return string(x)
	case interface{ Describe() string }:
		return x.Describe()
	}
	return "an unknown object"
}
