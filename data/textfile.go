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
// that a large file is never held unpacked. A fault is a panic, which within makes an
// error of.
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
	err     error  // why it cannot be opened
	release func() // of what r reads; may be called again
}

// newTextFile reads from r. left counts what may be read yet; nil is no limit. What the
// text makes the reader hold is claimed from mem.
func newTextFile(file string, r io.Reader, left *int64, mem *budget.Reservation) *textFile {
	return &textFile{file: file, r: bufio.NewReaderSize(r, 1<<16), left: left, mem: mem, release: func() {}}
}

// close ends the reading. What was not read is not looked at.
func (t *textFile) close() { t.release() }

// next goes to the next line that is not blank; false at the end of the file.
func (t *textFile) next() bool {
	for t.read() {
		if t.more() {
			return true
		}
	}
	return false
}

// each calls line on every line, up to a fault, which it returns. What a line is of is told by its
// number, so that one that is blank is a fault, but at the end.
func (t *textFile) each(line func()) (err error) {
	defer t.within(&err)
	for last := 0; t.next(); last = t.n {
		if blank := last + 1; blank < t.n {
			e := badFile(t.file, "the line is blank, and what stands behind it would be taken for that of the line before").hint("write what is missing there, or remove the line")
			e.Line = blank
			panic(failed{e})
		}
		line()
	}
	return nil
}

func (t *textFile) read() bool {
	if t.err != nil {
		panic(failed{t.err})
	}
	line, err := t.r.ReadSlice('\n')
	t.spill = t.spill[:0]
	for err == bufio.ErrBufferFull {
		t.keep(line)
		line, err = t.r.ReadSlice('\n')
	}
	if len(t.spill) > 0 {
		t.keep(line)
		line = t.spill
	} else {
		t.spend(len(line))
	}
	t.n++
	if err != nil && err != io.EOF {
		e := fileFault(t.file, err)
		e.Line, e.Hint = t.n, "the file is truncated or damaged; fetch it again"
		panic(failed{e})
	}
	if err == io.EOF && len(line) == 0 {
		t.n--
		t.line = nil
		return false
	}
	if t.n == 1 {
		line = bytes.TrimPrefix(line, []byte("\xef\xbb\xbf"))
	}
	line = bytes.TrimSuffix(line, []byte("\n"))
	t.line, t.pos, t.last = bytes.TrimSuffix(line, []byte("\r")), 0, 0
	if bytes.IndexByte(t.line, '\r') >= 0 {
		panic(failed{oldMac(t.file, t.n)})
	}
	return true
}

func (t *textFile) keep(part []byte) {
	t.spend(len(part))
	t.spill = append(room(t.mem, t.spill, len(part)), part...)
}

func (t *textFile) spend(n int) {
	if t.left == nil {
		return
	}
	if *t.left -= int64(n); *t.left < 0 {
		panic(failed{badFile(t.file, "unpacks to more text than may be read").hint("if it really is that large, raise the limit with --memory")})
	}
}

// within is [within] for what is read of the text.
func (t *textFile) within(err *error) {
	if p := recover(); p != nil {
		*err = inFile(t.file, t.n, failure(p))
	}
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
func (t *textFile) int(what string) int64 {
	if !t.more() {
		t.fail("the line ends where %s should be", what)
	}
	line, i := t.line, t.pos
	negative := line[i] == '-'
	if negative {
		i++
	}
	v, first := int64(0), i
	for ; i < len(line) && '0' <= line[i] && line[i] <= '9'; i++ {
		if i-first >= 18 {
			t.fail("expected %s, a whole number, and this is too large for one", what)
		}
		v = 10*v + int64(line[i]-'0')
	}
	if i == first || i < len(line) && !separator(line[i]) {
		t.fail("expected %s, a whole number", what)
	}
	t.pos = i
	if negative {
		v = -v
	}
	return v
}

// index takes the next whole number, which has to be in lo..hi-1.
func (t *textFile) index(what string, lo, hi int) int {
	v := t.int(what)
	switch {
	case hi <= lo:
		t.fail("there is no %s", what)
	case v < int64(lo) || v >= int64(hi):
		t.fail("there is no such %s: they are numbered %d to %d", what, lo, hi-1)
	}
	return int(v)
}

// edge takes the two nodes that a line consists of, each in lo..hi-1.
func (t *textFile) edge(lo, hi int) (u, v int) {
	u, v = t.index("node", lo, hi), t.index("node", lo, hi)
	t.end("two nodes")
	return u, v
}

// float takes the next number of the line, which has to be finite.
func (t *textFile) float(what string) float32 {
	s := t.field()
	v, err := strconv.ParseFloat(string(s), 32)
	switch {
	case len(s) == 0:
		t.fail("the line ends where %s should be", what)
	case err != nil || math.IsNaN(v) || math.IsInf(v, 0):
		t.fail("%s is not a finite number", what)
	}
	return float32(v)
}

func (t *textFile) end(expected string) {
	if t.more() {
		t.fail("the line goes on after what it should hold: %s", expected)
	}
}

// fail ends the reading at the number that was read last.
func (t *textFile) fail(format string, args ...any) { panic(failed{t.fault(format, args...)}) }

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

func (t *textFile) short(format string, args ...any) *FileError {
	e := badFile(t.file, format, args...).hint("the file is truncated, or belongs to other data")
	e.Line = t.n
	return e
}

// columns reads a file of lines with equally many numbers, and returns how many
// lines and columns there are. take reads one number.
func (t *textFile) columns(most int, take func()) (rows, cols int, err error) {
	err = t.each(func() {
		c := 0
		for ; t.more(); c++ {
			if rows > 0 && c == cols || c == most {
				panic(failed{t.fault("the line has more than %d numbers", c).hint("every line has as many as the first, and %d at most", most)})
			}
			take()
		}
		if rows == 0 {
			cols = c
		}
		if c != cols {
			panic(failed{t.fault("the line has %d numbers, the first has %d", c, cols).hint("a last line that is too short means a truncated file")})
		}
		if rows++; rows == math.MaxInt32 {
			panic(failed{badFile(t.file, "more than %d lines", math.MaxInt32)})
		}
	})
	return rows, cols, err
}

// matrix reads a whole file of numbers, row by row, each by take, which gets what they are.
func matrix[T any](t *textFile, what string, most int, take func(t *textFile, what string) T) (values []T, rows, cols int, err error) {
	rows, cols, err = t.columns(most, func() { push(t.mem, &values, take(t, what)) })
	if err == nil && rows == 0 {
		err = badFile(t.file, "the file is empty")
	}
	return values, rows, cols, err
}

func hinted(err error, format string, args ...any) error {
	var fe *FileError
	if errors.As(err, &fe) && fe.Hint == "" {
		fe.hint(format, args...)
	}
	return err
}
