package pyg

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gsrc-dev/gsrc/internal/safetensors"
	"github.com/gsrc-dev/gsrc/ir"
)

// FuzzRead reads state dicts that nobody meant: a stack or an error, and no panic.
func FuzzRead(f *testing.F) {
	files, err := filepath.Glob(filepath.Join("testdata", "*.safetensors"))
	if err != nil || len(files) == 0 {
		f.Fatal(files, err)
	}
	for _, path := range files {
		text, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text, "activation=elu,conv1.concat=false", "")
	}
	f.Fuzz(func(t *testing.T, text []byte, settings, order string) {
		file, err := safetensors.Parse(text)
		if err != nil {
			return
		}
		var tensors []Tensor
		for _, x := range file.Tensors {
			data, ok := x.Data.([]float32)
			if !ok {
				return
			}
			tensors = append(tensors, Tensor{x.Name, x.Shape, data})
		}
		o := Options{}
		for _, s := range strings.Split(settings, ",") {
			key, value, _ := strings.Cut(s, "=")
			o.Settings = append(o.Settings, Setting{key, value})
		}
		if order != "" {
			o.Order = strings.Split(order, ",")
		}
		s, err := Read(tensors, o)
		if err != nil {
			return
		}
		m := s.Module("pyg", false)
		if _, err := ir.Parse("module", m.String()); err != nil {
			t.Errorf("the program does not parse: %v\n%s", err, m)
		}
		for _, p := range m.Params {
			dims, err := p.Type.Shape(nil)
			if err != nil {
				t.Fatal(err)
			}
			n := 1
			for _, d := range dims {
				n *= d
			}
			if have := len(s.Params[p.Name]); have != n {
				t.Errorf("parameter %s is %s and has %d numbers", p.Name, p.Type, have)
			}
		}
		if len(m.Params) != len(s.Params) {
			t.Errorf("%d parameters are declared, %d filled", len(m.Params), len(s.Params))
		}
	})
}

// Names alone give the order, or an error.
func TestOrder(t *testing.T) {
	linear := func(names ...string) []Tensor {
		var list []Tensor
		for _, n := range names {
			list = append(list, Tensor{n + ".weight", []int{2, 2}, make([]float32, 4)})
		}
		return list
	}
	for _, x := range []struct {
		names []string
		given []string
		want  string // names in order, or a part of the error
	}{
		{[]string{"l10", "l9", "l1"}, nil, "l1 l9 l10"},
		{[]string{"net.3", "net.0"}, nil, "net.0 net.3"},
		{[]string{"out", "a.1", "a.0"}, nil, "a.0 a.1 out"},
		{[]string{"a.0", "b.0"}, nil, "do not say which layer runs first"},
		{[]string{"a.0", "b.0"}, []string{"b.0", "a.0"}, "b.0 a.0"},
		{[]string{"a.0", "b.0"}, []string{"b.0", "b.0"}, "twice"},
		{[]string{"a.0"}, []string{"c"}, `names "c"`},
		{[]string{"a.99999999999999999999", "b"}, nil, "do not say"},
	} {
		s, err := Read(linear(x.names...), Options{Order: x.given})
		var have []string
		if err == nil {
			for _, l := range s.Layers {
				have = append(have, l.Name)
			}
		}
		if err == nil && !slices.Equal(have, strings.Fields(x.want)) || err != nil && !strings.Contains(err.Error(), x.want) {
			t.Errorf("%v ordered as %v gives %v, %v; want %s", x.names, x.given, have, err, x.want)
		}
	}
}
