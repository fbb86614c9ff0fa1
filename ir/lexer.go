package ir

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// SyntaxError is an error in the text form, with its place.
type SyntaxError struct {
	File      string // "" where the text came from memory
	Line, Col int    // 1-based, Col in characters
	Near      string // the offending text
	Msg       string
	Err       error // what Msg is the text of, where that is an error of its own
}

func (e *SyntaxError) Unwrap() error { return e.Err }

func (e *SyntaxError) Error() string {
	file := e.File
	file = cmp.Or(file, "module")
	s := fmt.Sprintf("%s:%d:%d: %s", file, e.Line, e.Col, e.Msg)
	if e.Near != "" {
		s += fmt.Sprintf(" (at %q)", e.Near)
	}
	return s
}

type tokenKind uint8

const (
	tokEOF tokenKind = iota
	tokIdent
	tokNumber
	tokString
	tokPunct
)

type token struct {
	kind      tokenKind
	text      string
	line, col int
}

type lexer struct {
	src       string
	pos       int
	line, col int
}

func isIdentByte(c byte) bool {
	return c == '_' || c == '.' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}

func (l *lexer) advance(n int) {
	for range n {
		switch c := l.src[l.pos]; {
		case c == '\n':
			l.line++
			l.col = 1
		case c&0xC0 != 0x80: // not within a character of several bytes
			l.col++
		}
		l.pos++
	}
}

func (l *lexer) skip() {
	for l.pos < len(l.src) {
		switch c := l.src[l.pos]; {
		case c == ' ' || c == '\t' || c == '\n' || c == '\r':
			l.advance(1)
		case strings.HasPrefix(l.src[l.pos:], "//"):
			for l.pos < len(l.src) && l.src[l.pos] != '\n' {
				l.advance(1)
			}
		default:
			return
		}
	}
}

// next returns the next token; a malformed one is an error.
func (l *lexer) next() (token, *SyntaxError) {
	l.skip()
	t := token{line: l.line, col: l.col}
	if l.pos >= len(l.src) {
		return t, nil
	}
	rest := l.src[l.pos:]
	n := 1
	switch c := rest[0]; {
	case c == '"':
		quoted, err := strconv.QuotedPrefix(rest)
		if err != nil {
			return t, &SyntaxError{Line: t.line, Col: t.col, Near: firstLine(rest), Msg: "the string does not end"}
		}
		n, t.kind = len(quoted), tokString
	case isIdentByte(c) && (c < '0' || c > '9') && c != '.':
		for n < len(rest) && isIdentByte(rest[n]) {
			n++
		}
		t.kind = tokIdent
	case '0' <= c && c <= '9' || c == '-' && len(rest) > 1 && rest[1] != '>' || c == '+' && strings.HasPrefix(rest, "+Inf"):
		for n < len(rest) && (isIdentByte(rest[n]) || (rest[n] == '-' || rest[n] == '+') && (rest[n-1] == 'e' || rest[n-1] == 'E')) {
			n++
		}
		t.kind = tokNumber
	case strings.HasPrefix(rest, "->"):
		n, t.kind = 2, tokPunct
	case strings.IndexByte("@%$(){}[]<>,:=+", c) >= 0:
		t.kind = tokPunct
	default:
		_, size := utf8.DecodeRuneInString(rest)
		return t, &SyntaxError{Line: t.line, Col: t.col, Near: rest[:size], Msg: "unexpected character"}
	}
	t.text = rest[:n]
	l.advance(n)
	return t, nil
}

func firstLine(s string) string {
	s, _, _ = strings.Cut(s, "\n")
	if len(s) > 30 {
		s = strings.ToValidUTF8(s[:30], "")
	}
	return s
}
