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
	_, err := Lookup(model)
	return err
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
