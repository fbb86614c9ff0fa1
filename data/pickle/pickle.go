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
// memo, whose entries take most; the memory of so many is claimed at once.
const (
	opcodeBytes   = 160
	opcodesAtOnce = 1 << 10
)

var (
	errTruncated = errors.New("the file ends in the middle: it is truncated or damaged")
	errStack     = errors.New("an operation finds nothing on the stack")
)

func (m *Reader) run() (any, error) {
	for {
		m.at = m.pos
		if m.steps%opcodesAtOnce == 0 {
			if err := m.mem.Grow(opcodesAtOnce * opcodeBytes); err != nil {
				return nil, err
			}
		}
		m.steps++
		if m.pos == len(m.buf) {
			return nil, errTruncated
		}
		op := m.buf[m.pos]
		m.pos++
		if op == '.' {
			if len(m.stack) != 1 || len(m.marks) != 0 {
				return nil, fmt.Errorf("ends with %d objects, not one", len(m.stack))
			}
			if m.pos != len(m.buf) {
				return nil, fmt.Errorf("%d bytes follow the end of the object", len(m.buf)-m.pos)
			}
			return m.stack[0], nil
		}
		if err := m.step(op); err != nil {
			return nil, err
		}
	}
}

// step executes one opcode. Each case is named as pickletools names it.
func (m *Reader) step(op byte) error {
	switch op {
	case 0x80: // PROTO
		b, err := m.take(1)
		if err == nil && b[0] > 4 {
			err = fmt.Errorf("pickle protocol %d is not supported; save with protocol 2 to 4", b[0])
		}
		return err
	case 0x95: // FRAME: only a hint for buffered reading
		b, err := m.take(8)
		if err == nil && binary.LittleEndian.Uint64(b) > uint64(len(m.buf)-m.pos) {
			err = errTruncated
		}
		return err
	case '(': // MARK
		m.marks = append(m.marks, len(m.stack))
		return nil
	case '0': // POP
		if n := len(m.marks); n > 0 && m.marks[n-1] == len(m.stack) {
			m.marks = m.marks[:n-1]
			return nil
		}
		_, err := m.pop()
		return err
	case '1': // POP_MARK
		_, err := m.popMark()
		return err
	case '2': // DUP
		v, err := m.top()
		if err != nil {
			return err
		}
		return m.push(v)
	case 'N': // NONE
		return m.push(nil)
	case 0x88, 0x89: // NEWTRUE, NEWFALSE
		return m.push(op == 0x88)
	case 'K', 'M', 'J', 'G', 0x8a, 0x8b:
		return m.number(op)
	case 'U', 'T', 'C', 'B', 0x8e: // SHORT_BINSTRING, BINSTRING, SHORT_BINBYTES, BINBYTES, BINBYTES8
		b, err := m.sized(op)
		if err != nil {
			return err
		}
		return m.push(Bytes(b))
	case 'X', 0x8c, 0x8d: // BINUNICODE, SHORT_BINUNICODE, BINUNICODE8
		b, err := m.sized(op)
		if err != nil {
			return err
		}
		if err := m.mem.Grow(int64(len(b))); err != nil {
			return err
		}
		return m.push(string(b))
	case ')', 't', 0x85, 0x86, 0x87, ']', 'l', 'a', 'e', '}', 'd', 's', 'u':
		return m.container(op)
	case 'q', 'r', 0x94, 'h', 'j':
		return m.memoise(op)
	case 'c': // GLOBAL
		module, err := m.line()
		if err != nil {
			return err
		}
		name, err := m.line()
		if err != nil {
			return err
		}
		return m.pushGlobal(module, name)
	case 0x93: // STACK_GLOBAL
		name, err := m.pop()
		if err != nil {
			return err
		}
		module, err := m.pop()
		if err != nil {
			return err
		}
		ms, ok1 := module.(string)
		ns, ok2 := name.(string)
		if !ok1 || !ok2 {
			return errors.New("a global's name is not a string")
		}
		return m.pushGlobal(ms, ns)
	case 'R', 0x81: // REDUCE, NEWOBJ
		args, err := m.pop()
		if err != nil {
			return err
		}
		callee, err := m.pop()
		if err != nil {
			return err
		}
		v, err := m.construct(callee, args)
		if err != nil {
			return err
		}
		return m.push(v)
	case 'b': // BUILD
		state, err := m.pop()
		if err != nil {
			return err
		}
		obj, err := m.top()
		if err != nil {
			return err
		}
		return m.objects.SetState(m, obj, state)
	}
	return fmt.Errorf("opcode 0x%02x is not supported: this is no pickle of protocol 2 to 4", op)
}

// number executes the opcodes that push numbers.
func (m *Reader) number(op byte) error {
	switch op {
	case 'K', 'M', 'J', 'G': // BININT1, BININT2, BININT, BINFLOAT
		width := 1
		switch op {
		case 'M':
			width = 2
		case 'J':
			width = 4
		case 'G':
			width = 8
		}
		b, err := m.take(width)
		if err != nil {
			return err
		}
		switch op {
		case 'K':
			return m.push(int64(b[0]))
		case 'M':
			return m.push(int64(binary.LittleEndian.Uint16(b)))
		case 'J':
			return m.push(int64(int32(binary.LittleEndian.Uint32(b))))
		}
		return m.push(math.Float64frombits(binary.BigEndian.Uint64(b)))
	case 0x8a, 0x8b: // LONG1, LONG4: two's complement, little-endian
		b, err := m.sized(op)
		if err != nil {
			return err
		}
		if len(b) > 8 {
			return fmt.Errorf("an integer of %d bytes is out of range", len(b))
		}
		var v int64
		for i := len(b) - 1; i >= 0; i-- {
			v = v<<8 | int64(b[i])
		}
		if n := len(b); n > 0 && n < 8 { // sign extension
			shift := uint(64 - 8*n)
			v = v << shift >> shift
		}
		return m.push(v)
	}
	return fmt.Errorf("opcode 0x%02x is not supported", op)
}

// container executes the opcodes that make and fill tuples, lists and dicts.
func (m *Reader) container(op byte) error {
	switch op {
	case ')': // EMPTY_TUPLE
		return m.push(Tuple(nil))
	case ']': // EMPTY_LIST
		return m.push(&List{})
	case '}': // EMPTY_DICT
		return m.push(&Dict{})
	case 0x85, 0x86, 0x87: // TUPLE1, TUPLE2, TUPLE3
		n := int(op - 0x84)
		if len(m.stack)-m.floor() < n {
			return errStack
		}
		t := append(Tuple(nil), m.stack[len(m.stack)-n:]...)
		m.stack = m.stack[:len(m.stack)-n]
		return m.push(t)
	case 'a': // APPEND
		v, err := m.pop()
		if err != nil {
			return err
		}
		return m.extend([]any{v})
	case 's': // SETITEM
		v, err := m.pop()
		if err != nil {
			return err
		}
		k, err := m.pop()
		if err != nil {
			return err
		}
		return m.update([]any{k, v})
	}
	items, err := m.popMark()
	if err != nil {
		return err
	}
	switch op {
	case 't': // TUPLE
		return m.push(append(Tuple(nil), items...))
	case 'l': // LIST
		return m.push(&List{Items: append([]any(nil), items...)})
	case 'e': // APPENDS
		return m.extend(items)
	case 'd': // DICT
		items = append([]any(nil), items...) // push below would overwrite them
		if err := m.push(&Dict{}); err != nil {
			return err
		}
		return m.update(items)
	}
	return m.update(items) // SETITEMS
}

// extend appends to the list on top of the stack.
func (m *Reader) extend(items []any) error {
	v, err := m.top()
	if err != nil {
		return err
	}
	l, ok := v.(*List)
	if !ok {
		return fmt.Errorf("appends to %s, not to a list", Describe(v))
	}
	l.Items = append(l.Items, items...)
	return nil
}

// update sets items of the dict on top of the stack from key, value, key, …
func (m *Reader) update(items []any) error {
	v, err := m.top()
	if err != nil {
		return err
	}
	d, ok := v.(*Dict)
	if !ok {
		return fmt.Errorf("sets an item of %s, not of a dict", Describe(v))
	}
	if len(items)%2 != 0 {
		return errors.New("a dict item has no value")
	}
	for i := 0; i < len(items); i += 2 {
		d.Keys = append(d.Keys, items[i])
		d.Vals = append(d.Vals, items[i+1])
	}
	return nil
}

// memoise executes the opcodes that store to and load from the memo.
func (m *Reader) memoise(op byte) error {
	var key uint64
	switch op {
	case 'q', 'h': // BINPUT, BINGET
		b, err := m.take(1)
		if err != nil {
			return err
		}
		key = uint64(b[0])
	case 'r', 'j': // LONG_BINPUT, LONG_BINGET
		b, err := m.take(4)
		if err != nil {
			return err
		}
		key = uint64(binary.LittleEndian.Uint32(b))
	case 0x94: // MEMOIZE
		key = uint64(len(m.memo))
	}
	if op == 'h' || op == 'j' {
		v, ok := m.memo[key]
		if !ok {
			return fmt.Errorf("memo entry %d was never stored", key)
		}
		return m.push(v)
	}
	v, err := m.top()
	if err != nil {
		return err
	}
	m.memo[key] = v
	return nil
}

// floor is the lowest stack position that the current mark lets one reach.
func (m *Reader) floor() int {
	if n := len(m.marks); n > 0 {
		return m.marks[n-1]
	}
	return 0
}

func (m *Reader) push(v any) error {
	m.stack = append(m.stack, v)
	return nil
}

func (m *Reader) top() (any, error) {
	if len(m.stack) <= m.floor() {
		return nil, errStack
	}
	return m.stack[len(m.stack)-1], nil
}

func (m *Reader) pop() (any, error) {
	v, err := m.top()
	if err == nil {
		m.stack = m.stack[:len(m.stack)-1]
	}
	return v, err
}

// popMark removes and returns everything above the last mark. The result is
// valid until the next push.
func (m *Reader) popMark() ([]any, error) {
	n := len(m.marks)
	if n == 0 {
		return nil, errors.New("an operation finds no mark on the stack")
	}
	from := m.marks[n-1]
	m.marks = m.marks[:n-1]
	items := m.stack[from:]
	m.stack = m.stack[:from]
	return items, nil
}

// take returns the next n bytes of the file.
func (m *Reader) take(n int) ([]byte, error) {
	if n > len(m.buf)-m.pos {
		return nil, errTruncated
	}
	b := m.buf[m.pos : m.pos+n : m.pos+n]
	m.pos += n
	return b, nil
}

// sized returns the bytes whose length stands before them, in as many bytes as
// the opcode says.
func (m *Reader) sized(op byte) ([]byte, error) {
	width := 4
	switch op {
	case 'U', 'C', 0x8c, 0x8a:
		width = 1
	case 0x8d, 0x8e:
		width = 8
	}
	b, err := m.take(width)
	if err != nil {
		return nil, err
	}
	var n uint64
	for i := width - 1; i >= 0; i-- {
		n = n<<8 | uint64(b[i])
	}
	if n > uint64(len(m.buf)-m.pos) {
		return nil, errTruncated
	}
	return m.take(int(n))
}

// line returns the text up to the next newline.
func (m *Reader) line() (string, error) {
	n := bytes.IndexByte(m.buf[m.pos:], '\n')
	if n < 0 {
		return "", errTruncated
	}
	s := string(m.buf[m.pos : m.pos+n])
	m.pos += n + 1
	return strings.TrimSuffix(s, "\r"), nil
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

func (m *Reader) pushGlobal(module, name string) error {
	g, ok := m.objects.Global(module + "." + name)
	if !ok {
		return fmt.Errorf("refers to %+.60q, which is not data; gsrc runs no code from files", module+"."+name)
	}
	return m.push(g)
}

// construct builds what callee(*args) stands for.
func (m *Reader) construct(callee, args any) (any, error) {
	g, ok := callee.(Global)
	if !ok {
		return nil, fmt.Errorf("calls %s", Describe(callee))
	}
	t, ok := args.(Tuple)
	if !ok {
		return nil, fmt.Errorf("calls %s with %s", string(g), Describe(args))
	}
	return m.objects.New(m, g, t)
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
