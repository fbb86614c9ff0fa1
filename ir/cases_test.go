package ir

import (
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// opCase is one way to use an operation: operands as type literals, each with
// an optional word that says what values it takes ("f32[E] prob"). "_" is an
// absent operand. Every operation needs at least one case; every optional
// operand, attribute variant and broadcast that has a rule of its own another.
type opCase struct {
	in    []string
	attrs Attrs
	out   []string // declared result types, where they are not inferred
	// build replaces the plain use of the operation, where it needs a context.
	build func(b *Builder, args []*Value) []*Value
}

func in(specs ...string) opCase { return opCase{in: specs} }

func (c opCase) with(kv ...any) opCase {
	c.attrs = c.attrs.Clone()
	if c.attrs == nil {
		c.attrs = Attrs{}
	}
	for i := 0; i < len(kv); i += 2 {
		c.attrs[kv[i].(string)] = kv[i+1]
	}
	return c
}

func (c opCase) declared(types ...string) opCase { c.out = types; return c }

// broadcasts are the combinations of operand shapes that NumPy's rule allows.
var broadcasts = [][2]string{
	{"[N,F]", "[N,F]"}, {"[N,F]", "[F]"}, {"[N,F]", "[N,1]"}, {"[N,F]", "[1,F]"}, {"[N,F]", "[1,1]"}, {"[N,F]", "[1]"}, {"[N,F]", "[]"},
	{"[N,1]", "[1,F]"}, {"[N,1]", "[F]"}, {"[N,1]", "[1]"}, {"[1,F]", "[F]"}, {"[N]", "[N]"}, {"[N]", "[1]"}, {"[N]", "[]"}, {"[1]", "[]"}, {"[]", "[]"},
}

func binaryCases(values string) []opCase {
	var cs []opCase
	for _, bc := range broadcasts {
		a, b := "f32"+bc[0]+" "+values, "f32"+bc[1]+" "+values
		cs = append(cs, in(a, b))
		if bc[0] != bc[1] {
			cs = append(cs, in(b, a))
		}
	}
	return cs
}

func scaledSparse() []opCase {
	var cs []opCase
	for _, b := range []string{"[]", "[1]", "[F]", "[N,1]", "[1,F]"} {
		cs = append(cs, in("csr[N,F]", "f32"+b+" positive"))
	}
	return cs
}

func unaryCases(values string) []opCase {
	return []opCase{in("f32[N,F] " + values), in("f32[N] " + values), in("f32[] " + values)}
}

func reduceCases() []opCase {
	var cs []opCase
	for _, keep := range []bool{false, true} {
		cs = append(cs, in("f32[N,F]").with("axis", "0", "keep", keep), in("f32[N,F]").with("axis", "1", "keep", keep),
			in("f32[N]").with("axis", "0", "keep", keep))
	}
	return append(cs, in("f32[N,F]").with("axis", "all"), in("f32[N]").with("axis", "all"), in("f32[]").with("axis", "all"))
}

func matmulCases() []opCase {
	var cs []opCase
	for _, a := range []string{"f32", "csr"} {
		for _, ta := range []bool{false, true} {
			for _, tb := range []bool{false, true} {
				left, right := "[M,K]", "[K,N]"
				if ta {
					left = "[K,M]"
				}
				if tb {
					right = "[N,K]"
				}
				cs = append(cs, in(a+left, "f32"+right).with("ta", ta, "tb", tb))
			}
		}
	}
	return cs
}

func gnnCases(layer ...string) []opCase {
	var cs []opCase
	for _, act := range []string{"none", "relu", "elu", "tanh"} {
		cs = append(cs, in(append([]string{"graph<N,E>", "f32[E] positive"}, layer...)...).with("act", act))
	}
	cs = append(cs, in(append([]string{"graph<N,E>", "_"}, layer...)...))
	return append(cs, in(append([]string{"graph<N,E>", "_"}, layer[:len(layer)-1]...)...))
}

func pairGradCases() []opCase {
	cs := []opCase{in("f32[N,F]", "f32[N,F]", "f32[N]", "f32[N]", "f32[N]", "f32[N]", "f32[N]", "f32[]").with("tau", 0.7)}
	for skip := 4; skip < 8; skip++ {
		c := in(slices.Clone(cs[0].in)...).with("tau", 0.7)
		c.in[skip] = "_"
		cs = append(cs, c)
	}
	return cs
}

func eclCases() []opCase {
	pair := in("f32[N,F]", "f32[N,F]").with("tau", 0.5)
	triple := in("f32[N,F]", "f32[N,F]", "f32[N,F]").with("tau", 0.5)
	return []opCase{pair, triple, triple.with("positive", true), triple.with("discriminative", false, "alpha", 1.0), triple.with("reg", "paper", "beta", 0.5)}
}

// sgldCase samples from E(ν) = Σ (ν − t)²/2 with t captured.
func sgldCase(kv ...any) opCase {
	c := opCase{in: []string{"f32[N,F]", "f32[N,F]"}}.with("energy", FuncRef("energy"), "step", 0.5, "noise", 0.1, "stream", "sgld").with(kv...)
	c.build = func(b *Builder, args []*Value) []*Value {
		e := b.Module.NewFunc("energy")
		nu, t := e.Arg("nu", args[0].Type), e.Arg("t", args[1].Type)
		e.Return("e", e.Scale(e.Sum(e.One("square", nil, e.Sub(nu, t))), 0.5))
		return b.Op("gsr.sgld_sample", c.attrs, args...)
	}
	return c
}

// unrollCase makes steps of gradient descent on Σ s²·(s − t)/3 with noise; the second state
// is 0.9 of itself plus the gradient.
func unrollCase(kv ...any) opCase {
	c := opCase{in: []string{"f32[N,F]", "f32[N,F]", "f32[N,F]"}}.with("step", FuncRef("descend"), "states", 2, "steps", 3).with(kv...)
	c.build = func(b *Builder, args []*Value) []*Value {
		f := b.Module.NewFunc("descend")
		s, v, t := f.Arg("s", args[0].Type), f.Arg("v", args[1].Type), f.Arg("t", args[2].Type)
		loss := f.Scale(f.Sum(f.Mul(f.One("square", nil, s), f.Sub(s, t))), 1.0/3)
		v = f.Add(f.Scale(v, 0.9), f.One("grad", nil, loss, s))
		noise := f.OneTyped("normal", Attrs{"stream": "steps"}, s.Type)
		f.Return("s", f.Sub(f.Add(s, f.Scale(noise, 0.1)), f.Scale(v, 0.1)))
		f.Return("v", v)
		return b.Op("unroll", c.attrs, args...)
	}
	return c
}

// cases holds every operation's cases. A missing line fails TestTable.
var cases = map[string][]opCase{
	"add": binaryCases(""), "sub": binaryCases(""), "maximum": binaryCases(""), "minimum": binaryCases(""), "logaddexp": binaryCases(""),
	"greater": binaryCases(""), "greater_equal": binaryCases(""), "less": binaryCases(""),
	"mul": append(binaryCases(""), scaledSparse()...),
	"div": append(binaryCases("positive"), scaledSparse()...),

	"neg": unaryCases(""), "exp": unaryCases(""), "square": unaryCases(""), "sigmoid": unaryCases(""), "tanh": unaryCases(""),
	"relu": unaryCases(""), "elu": unaryCases(""),
	"log": unaryCases("positive"), "sqrt": unaryCases("positive"), "rsqrt": unaryCases("positive"),
	"leaky_relu":      append(unaryCases(""), in("f32[N,F]").with("slope", 0.7)),
	"pow":             {in("f32[N,F] positive").with("exponent", 1.7), in("f32[N] positive").with("exponent", -2)},
	"relu_grad":       {in("f32[N,F]", "f32[N,F]")},
	"elu_grad":        {in("f32[N,F]", "f32[N,F]")},
	"leaky_relu_grad": {in("f32[N,F]", "f32[N,F]").with("slope", 0.1)},
	"stop_gradient":   append(unaryCases(""), in("csr[N,F]")),
	"scale_grad":      {in("f32[N,F]").with("factor", 0.01), in("f32[]").with("factor", -2)},
	"fill":            {in().with("value", 2.5).declared("f32[3,2]"), in().with("value", -1).declared("f64[]"), in().with("value", 7).declared("i64[4]")},

	"reduce_sum": reduceCases(), "reduce_mean": reduceCases(), "reduce_max": reduceCases(), "reduce_min": reduceCases(), "logsumexp": reduceCases(),
	"count": {in("f32[N,F]").with("axis", "0"), in("f32[N,F]").with("axis", "1"), in("f32[N,F]").with("axis", "all"), in("f32[N]").with("axis", "0"), in("f32[]").with("axis", "all")},
	"broadcast_to": {in("f32[]").declared("f32[3,2]"), in("f32[2]").declared("f32[3,2]"), in("f32[3,1]").declared("f32[3,2]"), in("f32[1,2]").declared("f32[3,2]"),
		in("f32[1]").declared("f32[3]"), in("f32[]").declared("f32[4]"), in("f32[3,2]").declared("f32[3,2]"), in("f32[1,1]").declared("f32[0,2]")},
	"unsqueeze":         {in("f32[N]"), in("i64[N] index")},
	"squeeze":           {in("f32[N,1]")},
	"softmax":           {in("f32[N,F]")},
	"log_softmax":       {in("f32[N,F]")},
	"l2_normalize":      {in("f32[N,F]"), in("f32[N,F]").with("eps", 100.0), in("csr[N,F] full")},
	"l1_normalize":      {in("f32[N,F]"), in("f32[N,F]").with("eps", 100.0), in("csr[N,F] full")},
	"l2_normalize_grad": {in("f32[N,F]", "f32[N,F]", "f32[N,F]")},

	"matmul":       matmulCases(),
	"to_dense":     {in("csr[N,F]"), in("f32[N,F]")},
	"concat":       {in("f32[N,3]", "f32[N,2]"), in("f32[N,0]", "f32[N,2]")},
	"columns":      {in("f32[N,5]").with("from", 1, "width", 3), in("f32[N,5]").with("from", 0, "width", 2), in("f32[N,5]").with("from", 3, "width", 2), in("f32[N,5]").with("from", 0, "width", 5), in("f32[N,5]").with("from", 2, "width", 0)},
	"slice":        {in("f32[5,F]").with("from", 1, "count", 3), in("f32[5]").with("from", 0, "count", 2), in("f32[5,F]").with("from", 3, "count", 2), in("f32[5]").with("from", 0, "count", 5), in("f32[5,F]").with("from", 2, "count", 0)},
	"stack":        {in("f32[3,F]", "f32[2,F]"), in("f32[3]", "f32[2]"), in("f32[0,F]", "f32[2,F]")},
	"cholesky":     {in("f32[N,N] spd")},
	"spectral_map": {in("f32[N,N] spd").with("map", "soft_inverse_sqrt", "amount", 1e-4), in("f32[N,N] spd").with("map", "inverse_sqrt", "amount", 1e-6), in("f32[N,N]").with("map", "shrink", "amount", 0.3)},
	"solve_upper":  {in("f32[N,N] spd", "f32[N,F]")},
	"gather":       {in("f32[N,F]", "i64[B] index"), in("f32[N]", "i64[B] index"), in("i64[N] index", "i64[B] index")},
	"scatter_add":  {in("f32[B,F]", "i64[B] index").declared("f32[6,F]"), in("f32[B]", "i64[B] index").declared("f32[6]")},

	"spmm": {in("graph<N,E>", "f32[E]", "f32[N]", "f32[N,F]"), in("graph<N,E>", "f32[E]", "f32[N]", "f32[N,F]").with("transpose", true),
		in("graph<N,E>", "f32[E]", "_", "f32[N,F]"), in("graph<N,E>", "_", "f32[N]", "f32[N,F]").with("transpose", true), in("graph<N,E>", "_", "_", "f32[N,F]"),
		in("graph<N,E,S>", "f32[E]", "f32[N]", "f32[S,F]"), in("graph<N,E,S>", "f32[E]", "f32[N]", "f32[N,F]").with("transpose", true),
		in("graph<N,E,S>", "_", "_", "f32[S,F]"), in("graph<N,E,S>", "f32[E]", "_", "f32[N,F]").with("transpose", true),
		in("graph<N,E>", "f32[E,2]", "f32[N,2]", "f32[N,6]"), in("graph<N,E,S>", "f32[E,3]", "f32[N,3]", "f32[N,3]").with("transpose", true),
		in("graph<N,E,S>", "f32[E,2]", "_", "f32[S,4]"), in("graph<N,E>", "_", "f32[N,1]", "f32[N,2]")},
	"sddmm": {in("graph<N,E>", "f32[N,F]", "f32[N,F]"), in("graph<N,E,S>", "f32[N,F]", "f32[S,F]"),
		in("graph<N,E>", "f32[N,6]", "f32[N,6]").with("heads", 3), in("graph<N,E,S>", "f32[N,4]", "f32[S,4]").with("heads", 1)},
	"spmax":      {in("graph<N,E>", "f32[N,F]"), in("graph<N,E,S>", "f32[S,F]")},
	"spmax_grad": {in("graph<N,E,S>", "f32[S,F]", "f32[N,F]", "f32[N,F]")},
	"edge_softmax": {in("graph<N,E>", "f32[E]", "f32[N]"), in("graph<N,E>", "f32[E,3]", "f32[N,3]", "f32[E] positive"),
		in("graph<N,E,S>", "f32[E,F]", "f32[N,F]", "_"), in("graph<N,E,S>", "f32[E]", "f32[N]", "f32[E] positive")},
	"edge_softmax_grad": {in("graph<N,E>", "f32[E]", "f32[N]", "_", "f32[E]", "f32[N]", "f32[E]", "f32[N]"),
		in("graph<N,E,S>", "f32[E,3]", "f32[N,3]", "f32[E] positive", "f32[E,3]", "f32[N,3]", "f32[E,3]", "_"),
		in("graph<N,E>", "f32[E]", "f32[N]", "f32[E] positive", "f32[E]", "f32[N]", "_", "f32[N]")},
	"group_sum":        {in("f32[N,6]").with("groups", 3), in("f32[N,4]").with("groups", 4)},
	"group_repeat":     {in("f32[N,3]").with("times", 2), in("f32[N,1]").with("times", 4)},
	"edge_gather":      {in("graph<N,E,S>", "f32[N]").with("side", "dst"), in("graph<N,E,S>", "f32[S]").with("side", "src"), in("graph<N,E>", "f32[N]").with("side", "dst"), in("graph<N,E>", "f32[N]").with("side", "src"), in("graph<N,E>", "f32[N,F]").with("side", "dst"), in("graph<N,E,S>", "f32[S,F]").with("side", "src")},
	"edge_sum":         {in("graph<N,E,S>", "f32[E]").with("side", "dst"), in("graph<N,E,S>", "f32[E]").with("side", "src"), in("graph<N,E>", "f32[E]").with("side", "dst"), in("graph<N,E>", "f32[E]").with("side", "src"), in("graph<N,E,S>", "f32[E,F]").with("side", "dst"), in("graph<N,E>", "f32[E,F]").with("side", "src")},
	"edge_ones":        {in("graph<N,E>")},
	"sample_block":     {in("graph<N,E>", "i64[B] index").declared("graph<B,e,s>", "i64[s]", "i64[e]")},
	"pair_dot":         {in("f32[N,F]", "i64[2,P] index"), in("f32[N,F]", "i64[2,P] index", "f32[N,F]")},
	"pair_gather":      {in("f32[N]", "i64[2,P] index").with("end", "first"), in("f32[N]", "i64[2,P] index").with("end", "second")},
	"edge_kth":         {in("graph<N,E,S>", "f32[E]").with("k", 2), in("graph<N,E>", "f32[E]").with("k", 1)},
	"edge_pairs":       {in("graph<N,E>")},
	"argsort":          {in("f32[N]")},
	"common_neighbors": {in("graph<N,E>", "_", "f32[N]", "i64[2,P] index"), in("graph<N,E>", "f32[E]", "f32[N]", "i64[2,P] index")},
	"neighbor_kernel":  {in("graph<N,E>", "_", "f32[N,F]", "i64[2,P] index").with("tau", 0.7, "most", 3), in("graph<N,E>", "f32[E]", "f32[N,F]", "i64[2,P] index").with("tau", 2.0, "most", 100)},

	"normal":       {in().with("stream", "a").declared("f32[3,2]")},
	"uniform":      {in().with("stream", "a").declared("f64[5]")},
	"edge_uniform": {in("graph<N,E>").with("stream", "a")},
	"dropout":      {in("f32[N,F]").with("rate", 0.4, "stream", "a"), in("csr[N,F]").with("rate", 0.4, "stream", "a"), in("f32[N]").with("rate", 0, "stream", "a")},

	"fused_elementwise": {
		in("f32[N,F]", "f32[F]", "f32[N,1]", "f32[]").with("expr", "add(mul(x0, x1), elu(sub(x2, x3)))").declared("f32[N,F]"),
		in("f32[N,F]").with("expr", "add(x0, mul(normal(), 0.01))", "stream", "a").declared("f32[N,F]"),
		in("f32[N]", "f32[1]").with("expr", "t0 = maximum(x0, 0.5); sub(t0, pow(square(add(t0, x1)), 1.5))").declared("f32[N]"),
		in("f32[]").with("expr", "x0").declared("f32[]"),
	},
	"matmul_fused": {
		in("f32[N,F]", "f32[F,H]", "_", "f32[H]").with("expr", "elu(add(p, x0))"), in("f32[F,N]", "f32[H,F]", "f32[N,H]").with("ta", true, "tb", true),
		in("csr[N,F]", "f32[F,H]", "f32[N,H]", "f32[N,H]", "f32[N,1]").with("expr", "dropout(mul(relu_grad(x0, p), x1), 0.4)", "stream", "a"), in("f32[N,F]", "f32[F,H]"),
	},
	"spmm_fused": {
		in("graph<N,E>", "f32[E,2]", "f32[N,2]", "f32[N,4]", "_", "f32[4]").with("expr", "elu(add(p, x0))"),
		in("graph<N,E>", "f32[E]", "f32[N]", "f32[N,F]", "_", "f32[F]").with("expr", "relu(add(p, x0))"), in("graph<N,E>", "_", "_", "f32[N,F]", "f32[N,F]").with("transpose", true),
		in("graph<N,E>", "_", "_", "f32[N,F]"),
	},

	"grad": {{in: []string{"f32[N,F]", "f32[F]"}, build: func(b *Builder, args []*Value) []*Value {
		return b.Op("grad", nil, b.Sum(b.Mul(args[0], b.Mul(args[0], args[1]))), args[0], args[1])
	}}},
	"pairwise_reduce":      {in("f32[N,F]", "f32[N,F]").with("tau", 0.7)},
	"pairwise_reduce_grad": pairGradCases(),
	"pairwise_mean":        {in("f32[N,F]", "f32[N,F]").with("tau", 0.7)},
	"pairwise_mean_grad":   {in("f32[N,F]", "f32[N,F]", "f32[N,F]", "f32[N]", "f32[N]").with("tau", 0.7), in("f32[N,F]", "f32[N,F]", "f32[N,F]", "f32[N]", "_").with("tau", 0.7)},
	"pairwise_self":        {in("f32[N,F]").with("tau", 0.7)},
	"pairwise_self_grad":   {in("f32[N,F]", "f32[N]", "f32[N]").with("tau", 0.7)},
	"cross_entropy":        {in("f32[N,3]", "i64[N] index:3")},
	"cross_entropy_grad":   {in("f32[N,3]", "i64[N] index:3", "f32[]")},

	"gnn.linear":    {in("f32[N,F]", "f32[F,H]", "f32[H]"), in("f32[N,F]", "f32[F,H]"), in("f32[N,F]", "f32[F,H]").with("act", "relu"), in("csr[N,F]", "f32[F,H]", "f32[H]").with("act", "elu")},
	"gnn.sym_norm":  {in("graph<N,E>"), in("graph<N,E>", "f32[E] positive")},
	"gnn.gcn_conv":  gnnCases("f32[N,F]", "f32[F,H]", "f32[H]"),
	"gnn.sage_conv": gnnCases("f32[N,F]", "f32[F,6]", "f32[3]"),
	"gnn.gin_conv":  append(gnnCases("f32[N,F]", "f32[F,H]", "f32[H]"), in("graph<N,E>", "f32[E] positive", "f32[N,F]", "f32[F,H]", "f32[H]").with("eps", 0.5)),
	"gnn.gat_conv": {in("graph<N,E>", "_", "f32[N,F]", "f32[F,6]", "f32[6]", "f32[6]", "f32[6]").with("heads", 3, "act", "elu"),
		in("graph<N,E>", "f32[E] positive", "csr[N,F]", "f32[F,4]", "f32[4]", "f32[4]", "f32[2]").with("heads", 2, "combine", "mean", "slope", 0.1),
		in("graph<N,E>", "_", "f32[N,F]", "f32[F,4]", "f32[4]", "f32[4]").with("rate", 0.4, "stream", "b", "act", "relu")},

	"gnn.readout": {in("graph<M,N,N>", "f32[N,F]"), in("graph<M,N,N>", "f32[N,F]").with("mode", "mean"), in("graph<M,N,N>", "f32[N,F]").with("mode", "max")},

	"gsr.gaussian_blur":    {in("f32[N,F]").with("sigma", 0.1, "stream", "b"), in("csr[N,F]").with("sigma", 0.1, "stream", "b")},
	"gsr.mask_features":    {in("f32[N,F]").with("rate", 0.3, "stream", "b"), in("csr[N,F]").with("rate", 0.3, "stream", "b")},
	"gsr.drop_edges":       {in("graph<N,E>").with("rate", 0.3, "stream", "b")},
	"gsr.energy":           {in("f32[N,F]", "f32[N,F]").with("tau", 0.5)},
	"gsr.ecl_loss":         eclCases(),
	"unroll":               {unrollCase(), unrollCase("steps", 0), unrollCase("detach", true)},
	"gsr.sgld_sample":      {sgldCase(), sgldCase("steps", 0), sgldCase("clip", 0.3, "steps", 5)},
	"gsr.edge_probability": {in("graph<N,E>", "f32[N,F]", "f32[E] flag"), in("graph<N,E>", "f32[N,F]", "f32[E] flag", "f32[]", "f32[]").with("old_hi", 0.95)},
	"gsr.pair_probability": {in("f32[N,F]", "i64[2,P] index", "f32[]", "f32[]")},
	"gsr.relaxed_bernoulli": {in("graph<N,E>", "f32[E] prob").with("stream", "b"),
		in("graph<N,E>", "f32[E] prob").with("stream", "b", "temperature", 2)},
	"gsr.consistency": {in("f32[N,F]"), in("f32[N,F]", "f32[N,F]", "f32[N,F]").with("temperature", 0.3), in("f32[N,F]", "f32[N,F]").with("confidence", 0.5)},
	"gsr.refine":      {in("f32[E] prob"), in("f32[E] prob").with("mode", "threshold", "threshold", 0.3)},
}

// sizes binds the symbols of the cases. E is bounded by what N nodes can carry.
type sizes map[string]int

var (
	emptySizes = sizes{"N": 0, "F": 0, "E": 0, "B": 0, "P": 0, "M": 0, "K": 0, "H": 0, "S": 0}
	oneSizes   = sizes{"N": 1, "F": 1, "E": 0, "B": 1, "P": 1, "M": 1, "K": 1, "H": 1, "S": 1}
	noEdges    = sizes{"N": 4, "F": 3, "E": 0, "B": 0, "P": 0, "M": 2, "K": 0, "H": 2, "S": 6}
	noFeatures = sizes{"N": 4, "F": 0, "E": 3, "B": 2, "P": 2, "M": 2, "K": 0, "H": 2, "S": 7}
)

func randomSizes(r *rand.Rand) sizes {
	s := sizes{}
	for _, k := range []string{"F", "B", "P", "M", "K", "H"} {
		s[k] = 1 + r.IntN(4)
	}
	s["N"] = 2 + r.IntN(4)
	s["S"] = s["N"] + r.IntN(4)
	s["E"] = 1 + r.IntN(s["N"]*(s["N"]-1))
	return s
}

func allSizes() map[string]sizes {
	m := map[string]sizes{"empty": emptySizes, "one": oneSizes, "no edges": noEdges, "no features": noFeatures}
	for i := range 3 {
		m[fmt.Sprintf("random %d", i)] = randomSizes(rand.New(rand.NewPCG(7, uint64(i))))
	}
	return m
}

// parseType reads a type literal such as "graph<N,E>".
func parseType(t fataler, s string) Type {
	t.Helper()
	m, err := Parse("type", "module @t func @f(%x: "+s+") -> () { return }")
	if err != nil {
		t.Fatalf("type %q: %v", s, err)
	}
	return m.Funcs[0].Args[0].Type
}

// use is a function built of one case, with values for its arguments.
type use struct {
	m    *Module
	b    *Builder
	op   *Op
	args []Val
	x    []*Value // operands as given, nil where absent
}

// build makes the function @f(operands) that uses an operation once. dtype
// replaces f32 in the operands.
func (c opCase) use(t testing.TB, name string, s sizes, dtype string, r *rand.Rand) *use {
	t.Helper()
	u := &use{m: NewModule("case")}
	u.b = u.m.NewFunc("f")
	typ := func(spec string) Type { return parseType(t, strings.Replace(spec, "f32", dtype, 1)) }
	for i, spec := range c.in {
		literal, values, _ := strings.Cut(spec, " ")
		if literal == "_" {
			u.x = append(u.x, nil)
			continue
		}
		ty := typ(literal)
		u.x = append(u.x, u.b.Arg(fmt.Sprintf("x%d", i), ty))
		u.args = append(u.args, randomVal(t, ty, values, i, s, r))
	}
	if c.build != nil {
		c.build(u.b, u.x)
	} else {
		var out []Type
		for _, o := range c.out {
			out = append(out, typ(o))
		}
		u.b.OpTyped(name, c.attrs, out, u.x...)
	}
	u.op = u.b.Func.Body[len(u.b.Func.Body)-1]
	return u
}

// randomVal draws a value of a type. Elements of different operands differ by
// 0.02 at least and none is near 0, so that no kink lies within reach of a
// finite difference.
func randomVal(t testing.TB, ty Type, values string, operand int, s sizes, r *rand.Rand) Val {
	shape, err := ty.Shape(s)
	if err != nil {
		t.Fatal(err)
	}
	if ty.IsBlock() {
		return Val{G: randomBlock(shape[0], shape[1], shape[2], r)}
	}
	if ty.IsGraph() {
		return Val{G: randomGraph(shape[0], shape[1], r)}
	}
	x := NewTensor(shape...)
	for i := range x.Data {
		v := 0.1*float64(2+r.IntN(14)) + 0.01*r.Float64()
		switch {
		case values == "positive":
			v += 0.03 * float64(operand)
		case values == "prob":
			v = 0.1 + 0.8*r.Float64()
		case values == "spd": // symmetric, the diagonal dominant
			row, col := i/shape[1], i%shape[1]
			v = 0.01 * float64(row*col%7)
			if row == col {
				v = 3 + 0.1*float64(row)
			}
		case values == "flag":
			v = float64(r.IntN(2))
		case strings.HasPrefix(values, "index"):
			n := max(s["N"], 1)
			fmt.Sscanf(values, "index:%d", &n)
			v = float64(r.IntN(n))
		default:
			if r.IntN(2) == 0 {
				v = -v
			}
			v += 0.03 * float64(operand)
			if ty.Layout == CSR && values != "full" && r.IntN(2) == 0 {
				v = 0
			}
		}
		x.Data[i] = v
	}
	return Val{T: x}
}

// randomGraph draws e different directed entries between n nodes.
func randomGraph(n, e int, r *rand.Rand) *Graph {
	var all [][2]int
	for i := range n {
		for j := range n {
			if i != j {
				all = append(all, [2]int{i, j})
			}
		}
	}
	r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	all = all[:min(e, len(all))]
	slices.SortFunc(all, func(a, b [2]int) int { return (a[0]-b[0])*n + a[1] - b[1] })
	g := &Graph{N: n}
	for _, p := range all {
		g.Row, g.Col = append(g.Row, p[0]), append(g.Col, p[1])
	}
	return g
}

// randomBlock draws e entries from s sources into n targets.
func randomBlock(n, e, s int, r *rand.Rand) *Graph {
	g := &Graph{N: n, Sources: s}
	for range e {
		g.Row, g.Col = append(g.Row, r.IntN(n)), append(g.Col, r.IntN(s))
	}
	slices.Sort(g.Row)
	return g
}

// testRandom is a source of named streams for tests.
type testRandom uint64

func (s testRandom) at(stream string, i int) *rand.Rand {
	h := fnv.New64a()
	h.Write([]byte(stream))
	return rand.New(rand.NewPCG(uint64(s)^h.Sum64(), uint64(i)))
}

func (s testRandom) Uniform(stream string, i int) float64 { return s.at(stream, i).Float64() }
func (s testRandom) Normal(stream string, i int) float64  { return s.at(stream, i).NormFloat64() }
func (s testRandom) UniformPair(stream string, a, b int) float64 {
	return s.at(stream, min(a, b)<<20|max(a, b)).Float64()
}

// near reports whether two numbers agree to a relative tolerance of the larger
// scale. Equal infinities agree; NaN agrees with nothing.
func near(a, b, tol float64) bool {
	return a == b || math.Abs(a-b) <= tol*math.Max(1, math.Max(math.Abs(a), math.Abs(b)))
}
