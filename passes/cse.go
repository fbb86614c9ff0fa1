package passes

import (
	"fmt"
	"strings"

	"github.com/gsrc-dev/gsrc/ir"
)

// cse computes equal operations once. Random operations take part: within a
// step a stream gives the same numbers wherever it is drawn.
func cse(m *ir.Module, _ Facts) error {
	for _, f := range m.Funcs {
		mergeEqual(m, f)
	}
	return nil
}

// mergeEqual makes readers of an operation that occurs twice read the first.
func mergeEqual(m *ir.Module, f *ir.Func) {
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
	rewrite(m, f, func(_ *ir.Builder, op *ir.Op) []*ir.Value {
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
		if first := seen[key.String()]; first != nil {
			return first.Results
		}
		seen[key.String()] = op
		return nil
	})
}
