// Package passes holds the compiler's passes, one a file: functions from
// module to module, text to text. [All] lists them in order; each line says
// what must have run before it, and why it stands where it does. The order is
// checked when the program starts.
package passes

import (
	"fmt"
	"slices"

	"github.com/gsrc-dev/gsrc/ir"
)

// DataInfo is what a compilation knows about the data beforehand. Passes use
// them to choose between equivalent programs, never to change a result.
type DataInfo struct {
	// SparseArgs names the function arguments whose features are stored sparsely.
	SparseArgs []string
	// Dims are sizes by symbol, such as N, E and B, as far as they are known.
	Dims map[string]int
	// PadBatches has functions on batches of graphs made to tolerate appended nodes and
	// entries, for devices that replay steps of few sizes: see [Padded].
	PadBatches bool
	// Remark, if set, is called with a line that says what a pass decided and why.
	Remark func(pass, line string)
}

// Pass is one step of the compiler.
type Pass struct {
	Name string
	Doc  string // what it does, one line
	Why  string // why it stands where it does
	Run  func(m *ir.Module, info DataInfo) error
	// After names the passes that must stand earlier.
	After []string
	// TrainingOnly passes change how a program runs, not what an exporter would write.
	TrainingOnly bool
	// Formerly is an earlier name, which goes on being accepted.
	Formerly string
	// Required passes make the program runnable; the others make it better, and
	// can be left out.
	Required bool
}

// All is the pipeline, in order.
var All = []Pass{
	{Name: "lower-gsr", Run: lowerGSR, Required: true,
		Doc: "energies, the ECL loss (Eq 5–17), edge probabilities (Eq 18), relaxed Bernoulli and views become tensor operations; distances between two sets of samples become one pairwise_reduce; gsr.sgld_sample becomes a Langevin step (Eq 3) with a grad operation for ∂E/∂ν, unrolled K times",
		Why: "first: what is unrolled must be tensor and gnn operations"},
	{Name: "unroll", Formerly: "unroll-sgld", Run: unroll, After: []string{"lower-gsr"}, Required: true,
		Doc: "unroll operations become copies of their step function, each on the results of the one before: steps of a sampler, which are detached, or of an inner optimizer, which gradients flow through",
		Why: "inlines step functions, so it runs when these are lowered, and before layers are, so that inlined layers are lowered with the rest"},
	{Name: "lower-gnn", Run: lowerGNN, After: []string{"unroll"}, Required: true,
		Doc: "graph layers become spmm, matmul and elementwise operations; a layer that widens aggregates first, one that narrows last",
		Why: "before gradients: only tensor operations have gradient rules"},
	{Name: "restrict", Run: restrict, After: []string{"lower-gnn"}, TrainingOnly: true,
		Doc: "where only some rows of stacked graph layers are read, each layer computes only the rows that reach them",
		Why: "needs layers as spmm; before gradients, so that these are restricted with what they are taken of"},
	{Name: "autodiff", Run: autodiff, After: []string{"lower-gsr", "unroll", "lower-gnn", "restrict"}, Required: true,
		Doc: "every grad operation is resolved in reverse mode, innermost first, then the gradients of functions with the attribute differentiate; nothing is computed that nobody reads",
		Why: "needs tensor operations only; everything after works on plain programs"},
	{Name: "simplify", Run: simplify, After: []string{"autodiff"},
		Doc: "algebraic identities: x·1, x + 0, double negation, stop_gradient and scale_grad once gradients exist",
		Why: "gradient rules leave such identities behind, and the markers have done their work"},
	{Name: "fold", Run: fold, After: []string{"simplify"},
		Doc: "operations on constants become constants",
		Why: "after simplify, which exposes constants"},
	{Name: "project-noise", Run: projectNoise, After: []string{"autodiff", "fold"},
		Doc: "Gaussian noise and Langevin steps that are read only through the first weight are kept in its row space: n×F numbers in place of n×D",
		Why: "needs the sampler's gradients as plain products, to prove how the noise is read; before sparsify, because it frees the features of their noise"},
	{Name: "cse", Run: cse, After: []string{"fold", "project-noise"},
		Doc: "equal operations on equal operands are computed once; random ones are equal if their stream is",
		Why: "after simplify and fold, so that equal things look equal, and after project-noise, which frees the views' products of what differs in them"},
	{Name: "dce", Run: dce, After: []string{"cse"},
		Doc: "operations whose results nobody reads are deleted",
		Why: "after cse, which leaves unread duplicates; before passes that ask who reads a value"},
	{Name: "reassociate", Run: reassociate, After: []string{"autodiff", "project-noise", "cse", "dce"},
		Doc: "sums of products with a common factor become one product, and products with sparse features beside dense ones two, so that the sparse ones stay sparse",
		Why: "after gradients, most of which are such sums, and after project-noise, which adds terms to them; before sparsify, which sees which products have sparse factors"},
	{Name: "streaming", Run: streaming, After: []string{"dce"},
		Doc: "where only a row's energy and its gradient by the row are read, as in a Langevin step, one pass over the distances gives both: pairwise_mean",
		Why: "after dce, when it is known which gradients are read"},
	{Name: "sparsify", Run: sparsify, After: []string{"dce", "project-noise", "reassociate"}, TrainingOnly: true,
		Doc: "features that are stored sparsely stay sparse through scaling, dropout and row normalisation up to their products",
		Why: "after gradients, so that the transposed products are seen too; before hoist, whose results are typed"},
	{Name: "hoist", Run: hoist, After: []string{"sparsify"}, TrainingOnly: true,
		Doc: "what no parameter, no random stream and no per-step argument reaches moves to a set-up function that runs once",
		Why: "near the end: it splits functions, and should see the program that runs"},
	{Name: "pad", Run: pad, After: []string{"autodiff", "streaming", "sparsify", "hoist"}, TrainingOnly: true,
		Doc: "for devices that replay steps, functions on batches of graphs are made to bear nodes and entries that are appended to bring batches to few sizes",
		Why: "needs all sums over rows, those of gradients as well, under their own names; before fuse, which takes what it inserts into products"},
	{Name: "fuse", Run: fuse, After: []string{"autodiff", "reassociate", "restrict", "sparsify", "hoist", "pad"}, TrainingOnly: true,
		Doc: "bias, activation, dropout and what else is done to every element of a product run within it, while it is in the cache; other chains of pointwise operations become one; sums of products accumulate in place",
		Why: "the last to rewrite: other passes know products and sums by their names, and what is hoisted or shared is no part of a chain"},
	{Name: "schedule", Formerly: "plan-memory", Run: scheduleOps, After: []string{"hoist", "fuse"}, TrainingOnly: true,
		Doc: "operations move to where fewer values are alive at one time, and values whose lifetimes do not meet share one arena",
		Why: "last: lifetimes are those of the program that runs"},
}

func init() {
	if err := CheckOrder(All); err != nil {
		panic(err)
	}
}

// CheckOrder reports the first constraint that a pass list breaks. Passes that
// a list leaves out break nothing.
func CheckOrder(list []Pass) error {
	seen := map[string]bool{}
	for _, p := range list {
		if seen[p.Name] {
			return fmt.Errorf("pass %s stands twice", p.Name)
		}
		seen[p.Name] = true
		for _, before := range p.After {
			if !seen[before] && slices.ContainsFunc(list, func(q Pass) bool { return q.Name == before }) {
				return fmt.Errorf("pass %s must stand after %s", p.Name, before)
			}
		}
	}
	return nil
}

// Lookup returns the pass of a name, or of an earlier one, or nil.
func Lookup(name string) *Pass {
	for i := range All {
		if p := &All[i]; p.Name == name || p.Formerly == name && name != "" {
			return p
		}
	}
	return nil
}

// BeforeHops are the passes that come before [ByHop].
func BeforeHops() (names []string) {
	for _, p := range All {
		if p.Name == "restrict" {
			break
		}
		names = append(names, p.Name)
	}
	return names
}

// rewrite calls f for every operation of a function with a builder placed
// before it. Where f returns values they replace the operation's results, and
// the operation is deleted; nil leaves it.
func rewrite(m *ir.Module, f *ir.Func, visit func(b *ir.Builder, op *ir.Op) []*ir.Value) {
	b := ir.NewBuilder(m, f)
	defer placing(b)
	for i := 0; i < len(f.Body); {
		op := f.Body[i]
		b.From(op)
		out := visit(b.At(i), op)
		i = b.Pos()
		if out == nil {
			i++
			continue
		}
		with := map[*ir.Value]*ir.Value{}
		for k, r := range op.Results {
			with[r] = out[k]
		}
		f.Body = slices.Delete(f.Body, i, i+1)
		f.ReplaceFrom(i, with)
	}
}

// placing, deferred, has a panic say which operation was rewritten.
func placing(b *ir.Builder) {
	if r := recover(); r != nil {
		panic(b.Failed(r))
	}
}

// rewriteAll rewrites every function of a module.
func rewriteAll(m *ir.Module, visit func(b *ir.Builder, op *ir.Op) []*ir.Value) error {
	for _, f := range m.Funcs {
		rewrite(m, f, visit)
	}
	return nil
}
