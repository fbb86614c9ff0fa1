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

// WeighDrawn returns a module whose function, which has the graph %g without weights, has these, %w f32[E],
// where its operations have a place for them: what a drawn entry stands for, as if it weighed so in
// the data. A function whose values of entries do more than fill such places, or be factors of what sums
// add, is left as it is: they might count twice. It reports whether all sums over neighbours are weighed
// once, by %w of its own where the function has it, those of candidates by samples. The module is one before
// all passes.
func WeighDrawn(m *ir.Module, name string) (weighed *ir.Module, all bool) {
	weighed = m.Clone()
	f := weighed.Func(name)
	g := f.Arg("g")
	if f.Arg("w") == nil && g != nil && !slices.ContainsFunc(m.Params, func(p *ir.Value) bool { return p.Name == "w" }) {
		w := &ir.Value{Name: "w", Type: ir.T(ir.F32, g.Type.Entries())}
		f.Args = slices.Insert(f.Args, slices.Index(f.Args, g)+1, w)
		if once, all := weigh(weighed, f, g, w); once && ir.Verify(weighed) == nil {
			return weighed, all
		}
	}
	weighed = m.Clone()
	once, all := weigh(weighed, weighed.Func(name), nil, weighed.Func(name).Arg("w"))
	return m, once && all
}

// weigh fills the places for weights of a graph, if it is given, and reports whether each sum is of
// values that weights reach at most once, and whether it reaches all.
func weigh(m *ir.Module, f *ir.Func, g, w *ir.Value) (once, all bool) {
	once, all = true, true
	weighed := map[*ir.Value]bool{w: w != nil}
	rewrite(m, f, func(b *ir.Builder, op *ir.Op) []*ir.Value {
		var graph *ir.Value
		if len(op.Operands) > 0 && op.Operands[0] != nil && op.Operands[0].Type.IsGraph() {
			graph = op.Operands[0]
		}
		if graph != nil && graph == g {
			switch op.Name() {
			case "edge_ones":
				return one(w)
			case "gsr.drop_edges":
				kept := b.Mul(b.One(op.Name(), op.Attrs.Clone(), op.Operands...), w)
				weighed[kept] = true
				return one(kept)
			}
		}
		var calls *ir.Func
		for _, a := range op.Attrs {
			if ref, ok := a.(ir.FuncRef); ok {
				calls = m.Func(string(ref))
			}
		}
		reached := 0
		for i, place := range op.Def.Operands {
			takes := graph != nil && place.Optional && (place.Name == "w" || place.Read == ir.ReadEntries)
			if takes && graph == g && (i >= len(op.Operands) || op.Operands[i] == nil) {
				op.Operands = append(op.Operands, make([]*ir.Value, max(0, i+1-len(op.Operands)))...)
				op.Operands[i] = w
			}
			if i < len(op.Operands) && weighed[op.Operands[i]] {
				reached++
				once = once && (takes || place.Linear || calls != nil)
			}
		}
		once = once && reached < 2
		counts := reached > 0 || op.Name() == "gsr.relaxed_bernoulli" || calls != nil && slices.ContainsFunc(op.Operands, func(v *ir.Value) bool { return weighed[v] })
		sums := graph != nil && sameRows(op.Results[0], graph.Type.Targets())
		for _, r := range op.Results {
			weighed[r] = counts && slices.ContainsFunc(f.Args, func(a *ir.Value) bool { return a.Type.IsGraph() && sameRows(r, a.Type.Entries()) })
		}
		if sums || calls != nil && slices.ContainsFunc(calls.Args, func(v *ir.Value) bool { return v.Type.IsGraph() }) {
			all = all && counts
		}
		return nil
	})
	return once, all
}

func sameRows(v *ir.Value, rows ir.Dim) bool { return v.Type.Rank() > 0 && v.Type.Dims[0] == rows }
