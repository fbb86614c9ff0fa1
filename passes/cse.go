package passes

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gsrc-dev/gsrc/ir"
)

// cse computes equal operations once. Random operations take part: within a
// step a stream gives the same numbers wherever it is drawn.
func cse(m *ir.Module, _ DataInfo) error {
	for _, f := range m.Funcs {
		mergeEqual(f)
	}
	return nil
}

// mergeEqual makes readers of an operation that occurs twice read the first.
func mergeEqual(f *ir.Func) {
	ids := map[*ir.Value]int{}
	id := func(v *ir.Value) int {
		if v == nil {
			return -1
		}
		if _, ok := ids[v]; !ok {
			ids[v] = len(ids)
		}
		return ids[v]
	}
	seen := map[string]*ir.Op{}
	with := map[*ir.Value]*ir.Value{} // all at once: one by one takes time in the square of the program
	f.Body = slices.DeleteFunc(f.Body, func(op *ir.Op) bool {
		for i, v := range op.Operands {
			if first := with[v]; first != nil {
				op.Operands[i] = first
			}
		}
		var key strings.Builder
		key.WriteString(op.Name())
		for _, v := range op.Operands {
			fmt.Fprintf(&key, " %d", id(v))
		}
		for _, k := range op.Attrs.Keys() {
			fmt.Fprintf(&key, " %s=%#v", k, op.Attrs[k])
		}
		for _, r := range op.Results {
			fmt.Fprintf(&key, " %s", r.Type)
		}
		first := seen[key.String()]
		if first == nil {
			seen[key.String()] = op
			return false
		}
		for i, r := range op.Results {
			with[r] = first.Results[i]
		}
		return true
	})
	for i, r := range f.Results {
		if first := with[r.Value]; first != nil {
			f.Results[i].Value = first
		}
	}
}
