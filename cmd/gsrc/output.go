package main

import (
	"bytes"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// output is standard output or error as all commands write to it. It remembers the
// first failure and returns it from then on, since a result that was not written whole must not
// end in success, so that what only prints need not look. It shows control characters as \x1b
// and so on: names, labels and documentation come from files, and must not control the terminal.
type output struct {
	mu   sync.Mutex
	to   io.Writer
	held []byte // the beginning of a character that is still to come
	err  error
}

// Write writes text. Line breaks and tabs stay.
func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	text := p
	if len(o.held) > 0 {
		text = append(o.held, p...)
		o.held = nil
	}
	if !utf8.FullRune(text[lastRune(text):]) {
		i := lastRune(text)
		o.held, text = append([]byte(nil), text[i:]...), text[:i]
	}
	if _, err := o.send(visible(text, "\n\t")); err != nil {
		return 0, err
	}
	return len(p), nil
}

// flush writes what Write held back.
func (o *output) flush() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.send(visible(o.held, ""))
	o.held = nil
}

func (o *output) send(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, o.err
	}
	n, err := o.to.Write(p)
	if o.err == nil {
		o.err = err
	}
	return n, o.err
}

// bytes returns a writer of data rather than text: a file that goes to standard output.
func (o *output) bytes() io.Writer { return (*rawOutput)(o) }

type rawOutput output

func (o *rawOutput) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return (*output)(o).send(p)
}

// lastRune returns where the last character of text begins, or may begin; 0 if text is empty.
func lastRune(text []byte) int {
	i := max(len(text)-1, 0)
	for n := 0; i > 0 && n < utf8.UTFMax-1 && !utf8.RuneStart(text[i]); n++ {
		i--
	}
	return i
}

// visible returns text with its control characters, those of keep excepted, and the
// bytes that are no UTF-8 as escape sequences of Go.
func visible(text []byte, keep string) []byte {
	control := func(r rune) bool { return unicode.IsControl(r) && !strings.ContainsRune(keep, r) }
	if !bytes.ContainsFunc(text, func(r rune) bool { return control(r) || r == utf8.RuneError }) {
		return text
	}
	var b []byte
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRune(text[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			b = fmt.Appendf(b, `\x%02x`, text[i])
		case control(r):
			quoted := strconv.QuoteRune(r)
			if r >= 0x7f {
				quoted = fmt.Sprintf(`'\u%04x'`, r) // JSON has these as they are, and this is JSON
			}
			b = append(b, quoted[1:len(quoted)-1]...)
		default:
			b = append(b, text[i:i+size]...)
		}
		i += size
	}
	return b
}

// line returns a string of a file as it can stand within a line or a table.
func line(s string) string { return string(visible([]byte(s), "")) }
