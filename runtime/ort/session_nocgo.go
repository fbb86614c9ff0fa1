//go:build !cgo

package ort

import "context"

const haveCgo = false

// Session is a model loaded in onnxruntime. Without cgo there is none.
type Session struct{}

// Open returns [ErrNoCgo] in a program built without cgo.
func Open(string, Options) (*Session, error) { return nil, ErrNoCgo }

// OpenBytes returns [ErrNoCgo] in a program built without cgo.
func OpenBytes([]byte, Options) (*Session, error) { return nil, ErrNoCgo }

// Run returns [ErrNoCgo] in a program built without cgo.
func (*Session) Run(map[string]Tensor) (map[string]Tensor, error) { return nil, ErrNoCgo }

// RunContext returns [ErrNoCgo] in a program built without cgo.
func (*Session) RunContext(context.Context, map[string]Tensor) (map[string]Tensor, error) {
	return nil, ErrNoCgo
}

// Inputs is empty in a program built without cgo.
func (*Session) Inputs() []IO { return nil }

// Outputs is empty in a program built without cgo.
func (*Session) Outputs() []IO { return nil }

// Metadata is empty in a program built without cgo.
func (*Session) Metadata() map[string]string { return nil }

// Provider is empty in a program built without cgo.
func (*Session) Provider() Provider { return "" }

// Close does nothing in a program built without cgo.
func (*Session) Close() error { return nil }

// Bound is a session with inputs that stay. Without cgo there is none.
type Bound struct{}

// Bind returns [ErrNoCgo] in a program built without cgo.
func (*Session) Bind(map[string]Tensor) (*Bound, error) { return nil, ErrNoCgo }

// Run returns [ErrNoCgo] in a program built without cgo.
func (*Bound) Run() (map[string]Tensor, error) { return nil, ErrNoCgo }

// Outputs is empty in a program built without cgo.
func (*Bound) Outputs() map[string]Tensor { return nil }

// Close does nothing in a program built without cgo.
func (*Bound) Close() error { return nil }

func load(Library) (string, error) { return "", ErrNoCgo }

func probeCUDA() error { return ErrNoCgo }

// Trim does nothing in a program built without cgo.
func Trim() {}
