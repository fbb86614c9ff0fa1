package data

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/gsrc-dev/gsrc/internal/budget"
)

// table reads the rows of a CSV or Parquet file and knows where each field stands.
type table struct {
	file string
	r    interface {
		Read() ([]string, error)
		FieldPos(field int) (line, column int)
	}
	row  []string // current row; valid until the next one
	err  error    // the first fault
	most int      // rows, at most

	mem  *budget.Reservation
	held int64 // what the widest row takes of it
}

// newTable starts on a file held in memory. Fields of CSV are separated by commas and
// may be quoted; a byte order mark is skipped. What the table holds is claimed from mem,
// which close gives back. That the file is no table is in t.err.
func newTable(f tableFile, mem *budget.Reservation) *table {
	t := &table{file: f.path, mem: mem}
	t.err = t.begin(f)
	return t
}

func (t *table) begin(f tableFile) error {
	b := f.bytes
	if f.parquet {
		rows, err := openParquet(b, t.mem)
		if err != nil {
			return parquetFault(t.file, err)
		}
		t.r, t.most = rows, int(rows.count)
		return nil
	}
	b = bytes.TrimPrefix(b, []byte("\xef\xbb\xbf"))
	if len(bytes.TrimSpace(b)) == 0 {
		return badFile(t.file, "the file is empty")
	}
	if e := notUTF8(t.file, b); e != nil {
		return e
	}
	width, fields, lone := widest(b)
	if lone >= 0 {
		return oldMac(t.file, 1+bytes.Count(b[:lone], []byte{'\n'}))
	}
	// The reader keeps a row three times: as it stands, without quotes, and as a string,
	// with room to grow; of a field two positions, its end and a string.
	held := budget.Mul(6, int64(width)) + budget.Mul(96, int64(fields))
	if err := t.mem.Grow(held); err != nil {
		return fileFault(t.file, err)
	}
	r := csv.NewReader(bytes.NewReader(b))
	r.FieldsPerRecord = -1 // checked by the callers, with better errors
	r.ReuseRecord = true
	r.TrimLeadingSpace = true
	t.r, t.held, t.most = r, held, bytes.Count(b, []byte{'\n'})+1
	return nil
}

// notUTF8 is the error of the first byte of a text that is zero or no UTF-8; nil if there is
// none.
func notUTF8(file string, b []byte) *FileError {
	what, text, i := "a zero byte", "", bytes.IndexByte(b, 0)
	if i < 0 {
		if utf8.Valid(b) {
			return nil
		}
		i = 0
		for r, n := utf8.DecodeRune(b); r != utf8.RuneError || n != 1; r, n = utf8.DecodeRune(b[i:]) {
			i += n
		}
		field, _, _ := bytes.Cut(b[i:], []byte{','})
		field, _, _ = bytes.Cut(field, []byte{'\n'})
		what, text = "a byte that is no UTF-8", string(b[1+bytes.LastIndexAny(b[:i], ",\n"):i])+string(field)
	}
	return &FileError{File: file, Line: 1 + bytes.Count(b[:i], []byte{'\n'}), Column: i - bytes.LastIndexByte(b[:i], '\n'), Offset: -1, Text: text, Msg: what + ": this is not a text file in UTF-8", Hint: "save it as CSV, UTF-8"}
}

// parquetFault is the error of a Parquet file that cannot be read, or not in this memory.
func parquetFault(file string, err error) error {
	var exceeded *budget.ExceededError
	if errors.As(err, &exceeded) {
		return fileFault(file, err)
	}
	return badFile(file, "not a table that can be read: %v", err).hint("columns are numbers, booleans or text, without nesting")
}

// oldMac is the error of a text whose lines end in carriage returns alone: what follows
// would be read as part of the first line.
func oldMac(file string, line int) *FileError {
	return &FileError{File: file, Line: line, Offset: -1, Msg: "the line ends in a carriage return alone, as on old Macs", Hint: "save the file with line feeds, for example with: tr '\\r' '\\n'"}
}

func (t *table) close() {
	if p, ok := t.r.(*parquetRows); ok {
		p.close()
	}
	t.mem.Shrink(t.held)
	t.held = 0
}

// widest returns at most how many bytes and fields a row of a CSV text has. A row ends
// with its line, unless that is within quotes. lone is the place of the first carriage return
// outside of quotes that no line feed follows, -1 if there is none.
func widest(b []byte) (width, fields, lone int) {
	start, commas, quoted := 0, 0, false
	for i, c := range b {
		switch {
		case c > ',': // most bytes, and none of those below
		case c == ',':
			commas++
		case c == '"':
			quoted = !quoted
		case c == '\n' && !quoted:
			width, fields = max(width, i-start), max(fields, commas+1)
			start, commas = i+1, 0
		case c == '\r' && !quoted && i+1 < len(b) && b[i+1] != '\n':
			return 0, 0, i
		}
	}
	return max(width, len(b)-start), max(fields, commas+1), -1
}

// next reads a row; false at the end of the file or at a fault, t.err.
func (t *table) next() bool {
	if t.err != nil {
		return false
	}
	row, err := t.r.Read()
	if err == io.EOF {
		return false
	}
	if err != nil {
		if _, ok := t.r.(*parquetRows); ok {
			t.err = parquetFault(t.file, err)
			return false
		}
		e := fileFault(t.file, err)
		var pe *csv.ParseError
		if errors.As(err, &pe) {
			e.Line, e.Column, e.Err = pe.Line, pe.Column, pe.Err
			e.Hint = "quote a field that contains a comma or a quote, and double the quotes inside it"
		}
		t.err = e
		return false
	}
	t.row = row
	_, whole := t.r.(*csv.Reader) // newTable looked at all of the text
	for i := range row {
		row[i] = strings.TrimSpace(row[i])
		if !whole && !utf8.ValidString(row[i]) {
			t.err = t.fault(i, "column %d is not text in UTF-8", i+1).hint("write it as text in UTF-8, or leave it out of the file")
			return false
		}
	}
	return true
}

// line is the line on which the current row starts.
func (t *table) line() int {
	l, _ := t.r.FieldPos(0)
	return l
}

// fault reports a fault of field i of the current row; i may be one past the
// end for a missing field.
func (t *table) fault(i int, format string, args ...any) *FileError {
	e := &FileError{File: t.file, Offset: -1, Msg: fmt.Sprintf(format, args...)}
	if i < len(t.row) {
		e.Line, e.Column = t.r.FieldPos(i)
		e.Text = t.row[i]
	} else {
		e.Line = t.line()
	}
	return e
}

// separatorHint guesses why a row has a single field.
func separatorHint(field string) string {
	for _, c := range []struct{ sep, name string }{{"\t", "tabs"}, {";", "semicolons"}, {" ", "spaces"}} {
		if strings.Contains(field, c.sep) {
			return "fields seem to be separated by " + c.name + "; use commas"
		}
	}
	return "separate fields by commas"
}
