package ir

import (
	"errors"
	"fmt"
	"strings"
)

// Place is where an operation, a function, an argument or a parameter stands in the text that it
// was parsed from. What passes make of an operation has its place.
type Place struct {
	File      string
	Line, Col int    // as in [SyntaxError]
	Near      string // the word there
}

// fault is an error about something that may have a place.
type fault struct {
	at  any // *Value, *Op or *Func
	err error
}

func (f *fault) Error() string { return f.err.Error() }
func (f *fault) Unwrap() error { return f.err }

func (f *fault) place() *Place {
	switch at := f.at.(type) {
	case *Op:
		return at.Place
	case *Func:
		return at.Place
	case *Value:
		return at.Place
	}
	return nil
}

// At says what an error is about: an *[Op], a *[Func] or a *[Value]. An error that is about
// something with a place already stays as it is. [Placed] then tells the place.
func At(at any, err error) error {
	if f := (*fault)(nil); errors.As(err, &f) && f.place() != nil {
		return err
	}
	return &fault{at, err}
}

// Placed makes an error that is about something with a place a *[SyntaxError]; others, and nil,
// stay as they are.
func Placed(err error) error {
	var f *fault
	if s := (*SyntaxError)(nil); errors.As(err, &s) || !errors.As(err, &f) || f.place() == nil {
		return err
	}
	p := f.place()
	return &SyntaxError{File: p.File, Line: p.Line, Col: p.Col, Near: p.Near, Msg: shortened(err.Error()), Err: err}
}

// Errorf returns an error about an operation, a function, an argument or a parameter, with its place.
func Errorf(at any, format string, args ...any) error {
	return Placed(&fault{at, fmt.Errorf(format, args...)})
}

func faultAt(at any, format string, args ...any) error {
	return At(at, fmt.Errorf(format, args...))
}

const maxMessage = 1000

func shortened(msg string) string {
	if len(msg) > maxMessage {
		return strings.ToValidUTF8(msg[:maxMessage], "") + "…"
	}
	return msg
}
