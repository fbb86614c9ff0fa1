package data

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// FileError says what is wrong with an input file, where, and what to do.
type FileError struct {
	File   string // path as given to Load, joined with the file's name
	Line   int    // 1-based line of a text file; 0 if it does not apply
	Column int    // 1-based byte column in the line; 0 if it does not apply
	Offset int64  // byte offset in a binary file; -1 if it does not apply
	Part   string // array inside an archive, such as "node_labels"
	Text   string // the offending text; "" if there is none
	Msg    string // what is wrong
	Hint   string // what to do about it; may be empty
	Err    error  // the cause, if another package reported it
}

// Error formats the fault as file:line:column: "text": message (hint), without
// control characters: names inside an archive are anyone's.
func (e *FileError) Error() string {
	var b strings.Builder
	b.WriteString(e.File)
	if e.Line > 0 {
		fmt.Fprintf(&b, ":%d", e.Line)
		if e.Column > 0 {
			fmt.Fprintf(&b, ":%d", e.Column)
		}
	}
	if e.Part != "" {
		fmt.Fprintf(&b, ": %s", e.Part)
	}
	if e.Offset >= 0 {
		fmt.Fprintf(&b, ": byte %d", e.Offset)
	}
	b.WriteString(": ")
	if e.Text != "" {
		b.WriteString(quote(e.Text))
		b.WriteString(": ")
	}
	b.WriteString(e.Msg)
	if e.Err != nil {
		if e.Msg != "" {
			b.WriteString(": ")
		}
		b.WriteString(e.Err.Error())
	}
	if e.Hint != "" {
		b.WriteString("; ")
		b.WriteString(e.Hint)
	}
	return printable(b.String())
}

// Unwrap returns the cause.
func (e *FileError) Unwrap() error { return e.Err }

// quote shows a text from a file in an error, shortened and with escapes, so
// that a hostile file cannot write to the terminal.
func quote(s string) string {
	const most = 60
	if len(s) > most {
		end := most
		for end > most-utf8.UTFMax && !utf8.RuneStart(s[end]) {
			end--
		}
		return strconv.Quote(s[:end]) + "…"
	}
	return strconv.Quote(s)
}

// badFile reports a fault of a whole file.
func badFile(file, format string, args ...any) *FileError {
	return &FileError{File: file, Offset: -1, Msg: fmt.Sprintf(format, args...)}
}

// fileFault reports what another reader found wrong with a whole file.
func fileFault(file string, err error) *FileError {
	return &FileError{File: file, Offset: -1, Err: err}
}

func (e *FileError) hint(format string, args ...any) *FileError {
	e.Hint = fmt.Sprintf(format, args...)
	return e
}

// because names the cause.
func (e *FileError) because(err error) *FileError {
	e.Err = err
	return e
}

func (e *FileError) in(part string) *FileError {
	e.Part = part
	return e
}
