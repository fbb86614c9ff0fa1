package passes

import (
	"fmt"
	"slices"

	"github.com/gsrc-dev/gsrc/ir"
)

// Names of the arguments that [OnDrawn] adds, as far as they are read.
const (
	// DrawnSeeds i64[SEEDS] numbers the nodes whose predictions count: 0, 1, …
	DrawnSeeds = "seeds"
	// DrawnWeights f32[M] is by entry of the candidates what a drawn one stands for.
	DrawnWeights = "drawn"
	// DrawnLo and DrawnHi are the bounds of the cosine in Eq 18, which drawn entries do not tell.
	DrawnLo, DrawnHi = "drawn_lo", "drawn_hi"
)

// OnDrawn has a function of a refining model compute on a sub-graph of drawn neighbours what it
// is meant to compute on the whole graph: samples of edges weigh what they stand for,
// predictions are those of the seeds alone, also where they are held against each other, and
// edge probabilities have bounds that are given. The module is one before all passes.
func OnDrawn(m *ir.Module, name string) error {
	f := m.Func(name)
	if f == nil {
		return fmt.Errorf("module %s has no function @%s", m.Name, name)
	}
	added := map[string]*ir.Value{}
	arg := func(name string, t ir.Type) *ir.Value {
		if added[name] == nil {
			added[name] = &ir.Value{Name: name, Type: t, Attrs: ir.Attrs{"dynamic": true}}
			f.Args = append(f.Args, added[name])
		}
		return added[name]
	}
	labelled := f.Arg("train_idx")
	rewrite(m, f, func(b *ir.Builder, op *ir.Op) []*ir.Value {
		ofSeeds := func(v *ir.Value) *ir.Value {
			return b.One("gather", nil, v, arg(DrawnSeeds, ir.T(ir.I64, "SEEDS")))
		}
		switch {
		case op.Name() == "gsr.relaxed_bernoulli":
			return one(b.Mul(b.One(op.Name(), op.Attrs.Clone(), op.Operands...), arg(DrawnWeights, op.Operands[1].Type)))
		case op.Name() == "gsr.consistency":
			var of []*ir.Value
			for _, v := range op.Operands {
				of = append(of, ofSeeds(v))
			}
			return one(b.One(op.Name(), op.Attrs.Clone(), of...))
		case op.Name() == "gather" && labelled != nil && op.Operands[1] == labelled:
			return one(b.One("gather", nil, ofSeeds(op.Operands[0]), labelled))
		case op.Name() == "gsr.edge_probability":
			op.Operands[3], op.Operands[4] = arg(DrawnLo, ir.Scalar()), arg(DrawnHi, ir.Scalar())
		}
		return nil
	})
	return ir.Verify(m)
}

// WeighDrawn gives a function that has the graph %g without weights these, f32[E], where its operations
// have a place for them: what a drawn entry stands for, as if it weighed so in the data. It reports whether all
// sums over neighbours are weighed, those of candidates by samples. The module is one before all passes.
func WeighDrawn(m *ir.Module, name string) (all bool, err error) {
	f := m.Func(name)
	w, g := f.Arg("w"), f.Arg("g")
	if w != nil {
		g = nil // as its author has it
	} else if g != nil {
		w = &ir.Value{Name: "w", Type: ir.T(ir.F32, g.Type.Entries())}
		f.Args = slices.Insert(f.Args, slices.Index(f.Args, g)+1, w)
	}
	weighed := map[*ir.Value]bool{w: w != nil}
	var nodes, entries []ir.Dim
	for _, a := range f.Args {
		if a.Type.IsGraph() {
			nodes, entries = append(nodes, a.Type.Targets()), append(entries, a.Type.Entries())
		}
	}
	rowsOf := func(v *ir.Value, of []ir.Dim) bool { return v.Type.Rank() > 0 && slices.Contains(of, v.Type.Dims[0]) }
	all = true
	rewrite(m, f, func(b *ir.Builder, op *ir.Op) []*ir.Value {
		if g != nil && slices.Index(op.Operands, g) == 0 {
			switch op.Name() {
			case "edge_ones":
				return one(w)
			case "gsr.drop_edges":
				kept := b.Mul(b.One(op.Name(), op.Attrs.Clone(), op.Operands...), w)
				weighed[kept] = true
				return one(kept)
			}
			for i, place := range op.Def.Operands {
				if place.Optional && (place.Name == "w" || place.Read == ir.ReadEntries) && (i >= len(op.Operands) || op.Operands[i] == nil) {
					op.Operands = append(op.Operands, make([]*ir.Value, max(0, i+1-len(op.Operands)))...)
					op.Operands[i] = w
				}
			}
		}
		counts := op.Name() == "gsr.relaxed_bernoulli" || slices.ContainsFunc(op.Operands, func(v *ir.Value) bool { return weighed[v] })
		for _, r := range op.Results {
			weighed[r] = counts && rowsOf(r, entries)
		}
		sums := slices.ContainsFunc(op.Operands, func(v *ir.Value) bool { return v != nil && v.Type.IsGraph() }) && rowsOf(op.Results[0], nodes)
		all = all && (counts || !sums)
		return nil
	})
	return all, ir.Verify(m)
}
