package main

import (
	"fmt"
	"strconv"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/gsrc-dev/gsrc/data"
)

// checkedFlag is a flag whose text is checked as it is read.
type checkedFlag struct {
	text, kind string
	set        func(string) error
}

func (f *checkedFlag) String() string { return f.text }

func (f *checkedFlag) Type() string { return f.kind }

func (f *checkedFlag) Set(text string) error {
	f.text = text
	return f.set(text)
}

// parsedFlag registers a flag that parse reads; initial is valid.
func parsedFlag[T any](flags *pflag.FlagSet, to *T, name, initial string, parse func(string) (T, error), help string) {
	f := &checkedFlag{kind: "string", set: func(text string) (err error) { *to, err = parse(text); return err }}
	_ = f.Set(initial)
	flags.Var(f, name, help)
}

// numberFlag registers a flag of a number that is not below least.
func numberFlag[T int | int64 | float64](flags *pflag.FlagSet, to *T, name string, initial, least T, help string) {
	*to = initial
	flags.Var(&checkedFlag{fmt.Sprint(initial), fmt.Sprintf("%T", least), func(text string) (err error) {
		what := "whole number"
		switch p := any(to).(type) {
		case *int:
			*p, err = strconv.Atoi(text)
		case *int64:
			*p, err = strconv.ParseInt(text, 10, 64)
		case *float64:
			what = "number"
			*p, err = strconv.ParseFloat(text, 64)
		}
		if err != nil || !(*to >= least) {
			return fmt.Errorf("give a %s of at least %v, not %s", what, least, text)
		}
		return nil
	}}, name, help)
}

// given returns the first of some flags that the command line has; "" where it has none.
func given(c *cobra.Command, names ...string) string {
	for _, name := range names {
		if c.Flags().Changed(name) {
			return name
		}
	}
	return ""
}

// required reports the first of some flags that has no value.
func required(c *cobra.Command, names ...string) error {
	for _, name := range names {
		if f := c.Flags().Lookup(name); f.Value.String() == "" || f.Value.String() == "[]" {
			return usage("--%s is required: %s", name, f.Usage)
		}
	}
	return nil
}

// splitFlag registers a flag that says how nodes are split.
func splitFlag(flags *pflag.FlagSet, to *string, help string) {
	parsedFlag(flags, to, "split", "", func(text string) (string, error) {
		_, err := data.ParseSplit(text)
		return text, err
	}, help)
}
