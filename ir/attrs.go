package ir

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// What modules, parameters, functions and arguments may have as attributes, as the tables of
// operations say of theirs. None is required.
var (
	moduleAttrs = []AttrSpec{
		{Name: "edge_weights", Kind: BoolAttr, Doc: "weights of edges are read"},
	}
	paramAttrs = []AttrSpec{
		{Name: "init", Kind: StringAttr, OneOf: []string{"glorot", "zeros", "ones", "normal"}, Doc: "how it begins; zeros by default"},
		{Name: "decay", Kind: FloatAttr, Range: nonNegative, Doc: "L2 weight decay"},
		{Name: "group", Kind: StringAttr, OneOf: []string{"classifier", "encoder", "evidence", "statistics"}, Doc: "parameters that share a learning rate"},
		{Name: Fixed, Kind: BoolAttr, Doc: "keeps its value from call to call"},
	}
	funcAttrs = []AttrSpec{
		{Name: "differentiate", Kind: StringAttr, Doc: "the result along whose gradients parameters are moved"},
		{Name: Fixed, Kind: BoolAttr, Doc: "its parameters keep their values from call to call"},
		{Name: "setup", Kind: StringAttr, Doc: "of a pass: the function that computes the hoisted arguments"},
		{Name: "padded", Kind: BoolAttr, Doc: "of a pass: graphs may have rows appended"},
		{Name: "memory", Kind: StringAttr, Doc: "of a pass: how results lie in memory"},
	}
	argAttrs = []AttrSpec{
		{Name: "dynamic", Kind: BoolAttr, Doc: "changes from step to step"},
		{Name: "hoisted", Kind: BoolAttr, Doc: "of a pass: a result of the set-up"},
	}
)

// attrNamed returns the line of a name, or nil.
func attrNamed(specs []AttrSpec, name string) *AttrSpec {
	if i := slices.IndexFunc(specs, func(s AttrSpec) bool { return s.Name == name }); i >= 0 {
		return &specs[i]
	}
	return nil
}

// check checks attributes against the table of what has them.
func (a Attrs) check(specs []AttrSpec) error {
	for _, k := range a.Keys() {
		v, spec := a[k], attrNamed(specs, k)
		if spec == nil {
			var names []string
			for _, s := range specs {
				names = append(names, s.Name)
			}
			return fmt.Errorf("it has no attribute %q (there are %s)%s", k, cmp.Or(strings.Join(names, ", "), "none"), didYouMean(k, names))
		}
		if !spec.Kind.holds(v) {
			return fmt.Errorf("attribute %s=%v is not %s", k, v, spec.Kind)
		}
		if n, ok := number(v); ok && !spec.Range.Holds(n) {
			return fmt.Errorf("attribute %s is %v, want %s", k, v, spec.Range)
		}
		if s, ok := v.(string); ok && spec.OneOf != nil && !slices.Contains(spec.OneOf, s) {
			return fmt.Errorf("attribute %s=%q is none of %s", k, s, strings.Join(spec.OneOf, ", "))
		}
		if f, ok := v.(FuncRef); ok && !validName(string(f)) {
			return fmt.Errorf("attribute %s: function name %q cannot be written", k, string(f))
		}
	}
	return nil
}
