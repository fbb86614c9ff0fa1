package data

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/gsrc-dev/gsrc/internal/budget"
)

// textFile reads a text file of numbers a line at a time and knows where each
// number stands. Numbers are separated by commas, spaces or tabs. It streams, so
// that a large file is never held unpacked.
type textFile struct {
	file string
	r    *bufio.Reader
	line []byte // the current line, without its line break
	n    int    // number of the current line, from 1
	pos  int    // next byte of the line
	last int    // where the number that was read last begins

	spill   []byte // holds a line that is longer than the reader's buffer
	left    *int64 // bytes that the whole load may still unpack
	mem     *budget.Reservation
	err     error  // why next had no line, if that is not the end of the file
	release func() // of what r reads; may be called again
}

// newTextFile reads from r. left counts what may be read yet; nil is no limit. What the
// text makes the reader hold is claimed from mem.
func newTextFile(file string, r io.Reader, left *int64, mem *budget.Reservation) *textFile {
	return &textFile{file: file, r: bufio.NewReaderSize(r, 1<<16), left: left, mem: mem}
}

// close ends the reading. What was not read is not looked at.
func (t *textFile) close() { t.release() }

// next goes to the next line that is not blank; false at the end of the file or at a fault, t.err.
func (t *textFile) next() (ok bool) {
	for {
		if ok, t.err = t.read(); !ok || t.more() {
			return ok
		}
	}
}

// each calls line on every line that is not blank.
func (t *textFile) each(line func() error) error {
	for t.next() {
		if err := line(); err != nil {
			return err
		}
	}
	return t.err
}

// read reads one line.
func (t *textFile) read() (bool, error) {
	line, err := t.r.ReadSlice('\n')
	t.spill = t.spill[:0]
	for err == bufio.ErrBufferFull {
		if err := t.keep(line); err != nil {
			return false, err
		}
		line, err = t.r.ReadSlice('\n')
	}
	if len(t.spill) > 0 {
		if err := t.keep(line); err != nil {
			return false, err
		}
		line = t.spill
	} else if err := t.spend(len(line)); err != nil {
		return false, err
	}
	t.n++
	if err != nil && err != io.EOF {
		e := fileFault(t.file, err)
		e.Line, e.Hint = t.n, "the file is truncated or damaged; fetch it again"
		return false, e
	}
	if err == io.EOF && len(line) == 0 {
		t.n--
		t.line = nil
		return false, nil
	}
	if t.n == 1 {
		line = bytes.TrimPrefix(line, []byte("\xef\xbb\xbf"))
	}
	line = bytes.TrimSuffix(line, []byte("\n"))
	t.line, t.pos, t.last = bytes.TrimSuffix(line, []byte("\r")), 0, 0
	if bytes.IndexByte(t.line, '\r') >= 0 {
		return false, oldMac(t.file, t.n)
	}
	return true, nil
}

// keep adds to a long line.
func (t *textFile) keep(part []byte) error {
	if err := t.spend(len(part)); err != nil {
		return err
	}
	spill, err := room(t.mem, t.spill, len(part))
	if err != nil {
		return t.over(err)
	}
	t.spill = append(spill, part...)
	return nil
}

func (t *textFile) spend(n int) error {
	if t.left == nil {
		return nil
	}
	if *t.left -= int64(n); *t.left < 0 {
		return badFile(t.file, "unpacks to more text than may be read").hint("if it really is that large, raise the limit with --memory")
	}
	return nil
}

// over reports memory that what is read would take.
func (t *textFile) over(err error) error {
	e := fileFault(t.file, err)
	e.Line = t.n
	return e
}

// keep appends a value that was read from t to a list; see [room].
func keep[T any](t *textFile, list *[]T, v T) error {
	if len(*list) == cap(*list) {
		grown, err := room(t.mem, *list, 1)
		if err != nil {
			return t.over(err)
		}
		*list = grown
	}
	*list = append(*list, v)
	return nil
}

func separator(c byte) bool { return c == ' ' || c == ',' || c == '\t' }

// more reports whether the line has another number, and goes to it.
func (t *textFile) more() bool {
	for t.pos < len(t.line) && separator(t.line[t.pos]) {
		t.pos++
	}
	t.last = t.pos
	return t.pos < len(t.line)
}

// field takes the next text between separators; empty at the end of the line.
func (t *textFile) field() []byte {
	t.more()
	for t.pos < len(t.line) && !separator(t.line[t.pos]) {
		t.pos++
	}
	return t.line[t.last:t.pos]
}

// int takes the next whole number of the line. what names it in the error.
func (t *textFile) int(what string) (int64, error) {
	if !t.more() {
		return 0, t.fault("the line ends where %s should be", what)
	}
	line, i := t.line, t.pos
	negative := line[i] == '-'
	if negative {
		i++
	}
	v, first := int64(0), i
	for ; i < len(line) && '0' <= line[i] && line[i] <= '9'; i++ {
		if i-first >= 18 {
			return 0, t.fault("expected %s, a whole number, and this is too large for one", what)
		}
		v = 10*v + int64(line[i]-'0')
	}
	if i == first || i < len(line) && !separator(line[i]) {
		return 0, t.fault("expected %s, a whole number", what)
	}
	t.pos = i
	if negative {
		v = -v
	}
	return v, nil
}

// index takes the next whole number, which has to be in lo..hi-1.
func (t *textFile) index(what string, lo, hi int) (int, error) {
	v, err := t.int(what)
	if err != nil {
		return 0, err
	}
	if v < int64(lo) || v >= int64(hi) {
		if hi <= lo {
			return 0, t.fault("there is no %s", what)
		}
		return 0, t.fault("there is no such %s: they are numbered %d to %d", what, lo, hi-1)
	}
	return int(v), nil
}

// edge takes the two nodes that a line consists of, each in lo..hi-1.
func (t *textFile) edge(lo, hi int) (u, v int, err error) {
	if u, err = t.index("node", lo, hi); err != nil {
		return 0, 0, err
	}
	if v, err = t.index("node", lo, hi); err != nil {
		return 0, 0, err
	}
	return u, v, t.end("two nodes")
}

// float takes the next number of the line, which has to be finite.
func (t *textFile) float(what string) (float32, error) {
	s := t.field()
	if len(s) == 0 {
		return 0, t.fault("the line ends where %s should be", what)
	}
	v, err := strconv.ParseFloat(string(s), 32)
	if err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
		return 0, t.fault("%s is not a finite number", what)
	}
	return float32(v), nil
}

// end checks that the line has no more numbers.
func (t *textFile) end(expected string) error {
	if t.more() {
		return t.fault("the line goes on after what it should hold: %s", expected)
	}
	return nil
}

// fault reports a fault of the number that was read last.
func (t *textFile) fault(format string, args ...any) *FileError {
	e := &FileError{File: t.file, Line: t.n, Column: t.last + 1, Offset: -1, Msg: fmt.Sprintf(format, args...)}
	rest := t.line[min(t.last, len(t.line)):]
	if i := bytes.IndexAny(rest, ", \t"); i >= 0 {
		rest = rest[:i]
	}
	e.Text = string(rest[:min(len(rest), 100)])
	if strings.IndexByte(e.Text, 0) >= 0 {
		e.Hint = "this is not a text file in UTF-8"
	}
	return e
}

// short reports that the file ends too early.
func (t *textFile) short(format string, args ...any) *FileError {
	e := badFile(t.file, format, args...).hint("the file is truncated, or belongs to other data")
	e.Line = t.n
	return e
}

// columns reads a file of lines with equally many numbers, and returns how many
// lines and columns there are. take reads one number of column c.
func (t *textFile) columns(most int, take func(c int) error) (rows, cols int, err error) {
	err = t.each(func() error {
		c := 0
		for ; t.more(); c++ {
			if rows > 0 && c == cols || c == most {
				return t.fault("the line has more than %d numbers", c).hint("every line has as many as the first, and %d at most", most)
			}
			if err := take(c); err != nil {
				return err
			}
		}
		if rows == 0 {
			cols = c
		}
		if c != cols {
			return t.fault("the line has %d numbers, the first has %d", c, cols).hint("a last line that is too short means a truncated file")
		}
		if rows++; rows == math.MaxInt32 {
			return badFile(t.file, "more than %d lines", math.MaxInt32)
		}
		return nil
	})
	return rows, cols, err
}

// floats reads a whole file as a matrix.
func (t *textFile) floats(what string) (*Features, error) {
	f := &Features{}
	var err error
	f.Rows, f.Cols, err = t.columns(maxCols, func(int) error {
		v, err := t.float(what)
		if err != nil {
			return err
		}
		return keep(t, &f.Dense, v)
	})
	if err != nil {
		return nil, err
	}
	if f.Rows == 0 {
		return nil, badFile(t.file, "the file is empty")
	}
	return f, nil
}

// ints reads a whole file of whole numbers, row by row.
func (t *textFile) ints(what string, most int) (values []int64, cols int, err error) {
	rows, cols, err := t.columns(most, func(int) error {
		v, err := t.int(what)
		if err != nil {
			return err
		}
		return keep(t, &values, v)
	})
	if err == nil && rows == 0 {
		err = badFile(t.file, "the file is empty")
	}
	return values, cols, err
}

// hinted adds advice to a *FileError that has none yet.
func hinted(err error, format string, args ...any) error {
	var fe *FileError
	if errors.As(err, &fe) && fe.Hint == "" {
		fe.hint(format, args...)
	}
	return err
}
