package models

import "github.com/gsrc-dev/gsrc/ir"

// EdgeCounts is the result of an exported @encode that says what each edge counts, f32[E].
const EdgeCounts = "edge_counts"

// CountWeights returns a module that was trained with [Weighted] edges and reads what they
// count, w of @encode and @score, with their weights in the data in its place: an edge of
// weight unit counts in full, see graph.RelativeWeights. Where @score does not judge edges,
// @encode gives what they count.
func CountWeights(m *ir.Module, unit float64) *ir.Module {
	m = m.Clone()
	for _, name := range []string{"encode", "score"} {
		f := m.Func(name)
		if f == nil || f.Arg("w") == nil {
			continue
		}
		b := ir.NewBuilder(m, f).At(0)
		w := f.Arg("w")
		restore := b.Named("counts")
		counts := b.One("minimum", nil, b.Div(w, b.Const(unit)), b.Const(1))
		counts = b.One("maximum", nil, counts, b.Const(MinEvidence))
		restore()
		f.ReplaceFrom(b.Pos(), map[*ir.Value]*ir.Value{w: counts})
		if m.Func("score").Arg("g") == nil {
			f.Results = append(f.Results, ir.Result{Name: EdgeCounts, Value: counts})
		}
	}
	return m
}
