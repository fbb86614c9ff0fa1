package models

import (
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/gsrc-dev/gsrc/ir"
)

// Every value of every option ends in a program or in an error that names the option or
// the size, and never in a panic: ranges are those of the operation table.
func TestEveryOptionHasItsRange(t *testing.T) {
	ints := []int64{math.MinInt32, -1, 0, 1, 2, 1000, 1001, 1_000_001, math.MaxInt32}
	floats := []float64{-math.MaxFloat64, -1, -1e-300, 0, 1e-300, 0.5, 1, 2, math.MaxFloat64}
	for i := range All {
		m := &All[i]
		o := Default()
		o.Features, o.Classes = 5, 3
		var options func(prefix string, section reflect.Value)
		try := func(name string, graphs bool) {
			p, err := m.Program(o, graphs)
			var outside *RangeError
			var large *ir.SizeError
			switch {
			case errors.As(err, &large):
			case errors.As(err, &outside):
				if outside.Option != name {
					t.Errorf("%s: %s: the error is about %s", m.Name, name, outside.Option)
				}
			case err != nil:
				t.Errorf("%s: %s: %v", m.Name, name, err)
			case p == nil:
				t.Errorf("%s: %s: no program and no error", m.Name, name)
			}
		}
		options = func(prefix string, section reflect.Value) {
			for k := range section.NumField() {
				f, v := section.Type().Field(k), section.Field(k)
				name := prefix + f.Tag.Get("toml")
				if name == "-" || !f.IsExported() {
					continue
				}
				old := reflect.New(v.Type()).Elem()
				old.Set(v)
				switch v.Kind() {
				case reflect.Struct:
					options(name+".", v)
				case reflect.Int:
					for _, n := range ints {
						if n == 1000 && m.Name != "gcn" && f.Name != "Steps" { // one of each is enough
							continue
						}
						v.SetInt(n)
						try(name, m.Graphs != nil && n%2 == 0)
					}
				case reflect.Float64:
					for _, x := range floats {
						v.SetFloat(x)
						try(name, false)
					}
				case reflect.String:
					v.SetString("nonsense")
					try(name, false)
				}
				v.Set(old)
			}
		}
		options("", reflect.ValueOf(&o).Elem())
	}
}

// An option's range is that of the attribute which it becomes.
func TestRangesAreThoseOfTheTable(t *testing.T) {
	var walk func(typ reflect.Type)
	walk = func(typ reflect.Type) {
		for i := range typ.NumField() {
			f := typ.Field(i)
			if f.Type.Kind() == reflect.Struct {
				walk(f.Type)
			}
			if r := f.Tag.Get("range"); r != "" && ir.Attr(r) == nil && (ranges[r] == ir.Range{}) {
				t.Errorf("%s has the range %q, which no operation has", f.Name, r)
			}
		}
	}
	walk(reflect.TypeFor[Options]())
	o := Default()
	o.ECL.Steps = 1001
	if err := o.Validate(); err == nil || !strings.Contains(err.Error(), "ecl.sgld_steps must be between 0 and 1000") {
		t.Errorf("1001 steps: %v", err)
	}
}

// What is repeated too often together is an error, too.
func TestLargeProgramsAreRefused(t *testing.T) {
	m, err := Lookup("grand")
	if err != nil {
		t.Fatal(err)
	}
	o := Default()
	o.Features, o.Classes, o.Layers, o.Edges.Samples, o.Propagation.Order = 5, 3, 1000, 1000, 1000
	var large *ir.SizeError
	if _, err := m.Program(o, false); !errors.As(err, &large) || !strings.Contains(err.Error(), "fewer layers") {
		t.Errorf("%v", err)
	}
}
