package runtime

import (
	"fmt"
	"strings"

	"github.com/gsrc-dev/gsrc/ir"
)

// symbols are the sizes of a function's symbolic dimensions. Dimensions are
// parsed once, so that a change of sizes from step to step costs no allocation.
type symbols struct {
	index map[string]int
	names []string
	size  []int // −1 where not bound
}

// dim is a parsed dimension: a number plus symbols.
type dim struct {
	text  ir.Dim
	fixed int
	terms []int // symbols added to fixed
	whole int   // of a sum: the sum itself as a symbol, else −1
}

func newSymbols() *symbols { return &symbols{index: map[string]int{}} }

func (s *symbols) symbol(name string) int {
	i, ok := s.index[name]
	if !ok {
		i = len(s.size)
		s.index[name] = i
		s.names = append(s.names, name)
		s.size = append(s.size, -1)
	}
	return i
}

func (s *symbols) parse(ds []ir.Dim) []dim {
	var out []dim
	for _, d := range ds {
		e := dim{text: d, whole: -1}
		parts := strings.Split(string(d), "+")
		for _, part := range parts {
			if n, ok := ir.Dim(part).Size(); ok {
				e.fixed += n
			} else {
				e.terms = append(e.terms, s.symbol(part))
			}
		}
		if len(parts) > 1 && len(e.terms) > 0 {
			e.whole = s.symbol(string(d))
		}
		out = append(out, e)
	}
	return out
}

func (s *symbols) reset() {
	for i := range s.size {
		s.size[i] = -1
	}
}

// value returns the size of d, or false where a symbol is not bound.
func (s *symbols) value(d *dim) (int, bool) {
	if d.whole >= 0 && s.size[d.whole] >= 0 {
		return s.size[d.whole], true
	}
	n := d.fixed
	for _, t := range d.terms {
		if s.size[t] < 0 {
			return 0, false
		}
		n += s.size[t]
	}
	return n, true
}

// bind checks an input's sizes and enters those of its symbols.
func (s *symbols) bind(v *ir.Value, ds []dim, sizes []int) error {
	if len(ds) != len(sizes) {
		return fmt.Errorf("%s is %s, got shape %v", v.Ref(), v.Type, sizes)
	}
	for i := range ds {
		d := &ds[i]
		want, ok := s.value(d)
		switch {
		case ok && want != sizes[i]:
			return fmt.Errorf("%s is %s with %s = %d, got shape %v", v.Ref(), v.Type, d.text, want, sizes)
		case ok:
		case d.whole >= 0:
			s.size[d.whole] = sizes[i]
		default:
			s.size[d.terms[0]] = sizes[i]
		}
	}
	return nil
}
