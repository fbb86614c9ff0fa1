package models

import (
	"fmt"
	"strings"

	"github.com/gsrc-dev/gsrc/internal/budget"
	"github.com/gsrc-dev/gsrc/internal/nearest"
	"github.com/gsrc-dev/gsrc/ir"
)

// UnknownError says that a name is neither a model's nor a .gsr file's.
type UnknownError struct{ Name string }

func (e *UnknownError) Error() string {
	var names []string
	for _, m := range All {
		names = append(names, m.Name)
	}
	if n := nearest.Of(e.Name, names); n != "" {
		return fmt.Sprintf("no model %q; did you mean %q?", e.Name, n)
	}
	return fmt.Sprintf("no model %q; there are %s, or give a .gsr file", e.Name, strings.Join(names, ", "))
}

// IsFile reports whether a model argument names a file in the text form of
// the IR, not a model of the zoo.
func IsFile(model string) bool { return strings.HasSuffix(model, ".gsr") }

// Check returns an *UnknownError if model is neither a model's name
// nor that of a .gsr file. It does not open the file.
func Check(model string) error {
	if IsFile(model) {
		return nil
	}
	for _, m := range All {
		if m.Name == model {
			return nil
		}
	}
	return &UnknownError{model}
}

// Build returns the program of a model: that of the zoo under this name, built
// with the options (whose sizes must be set), or what a .gsr file declares,
// whatever the options.
func Build(model string, o Options) (*ir.Module, error) {
	if err := Check(model); err != nil {
		return nil, err
	}
	if IsFile(model) {
		return Read(model)
	}
	m, err := Lookup(model)
	if err != nil {
		return nil, err
	}
	if o.Features < 1 || o.Classes < 1 {
		return nil, fmt.Errorf("model %s needs the number of features and classes, have %d and %d", model, o.Features, o.Classes)
	}
	p, err := m.Program(o, false)
	if err != nil {
		return nil, fmt.Errorf("model %s: %w", model, err)
	}
	return p, nil
}

// Read reads a .gsr file, a program in the text form of package ir. A
// fault of syntax is an *ir.SyntaxError, others name function and operation.
func Read(path string) (*ir.Module, error) {
	text, err := budget.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("model file: %w", err)
	}
	return ir.Parse(path, string(text))
}
