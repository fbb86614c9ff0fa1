// Package optest has the uses of every tensor operation that a device's kernels
// are compared with the reference on, and draws values for their operands.
package optest

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/gsrc-dev/gsrc/graph"
	"github.com/gsrc-dev/gsrc/rng"
)

// Case is one use of an operation: operand types, each with an optional word
// that says what values it takes ("f32[N,F] positive", "i64[B] index:N"; "_" is
// an absent operand), attributes, and result types in the text form.
type Case struct {
	In    []string
	Attrs string
	Out   string
	Also  []string // further arguments, for their dimensions
	Body  string   // replaces the plain use of the operation; results are %y0, …
}

func use(in ...string) Case { return Case{In: in} }

func (c Case) gives(out string) Case { c.Out = out; return c }

func (c Case) with(attrs string) Case { c.Attrs = attrs; return c }

// broadcasts are operand and result shapes by NumPy's rule.
var broadcasts = [][3]string{
	{"[N,F]", "[N,F]", "[N,F]"}, {"[N,F]", "[F]", "[N,F]"}, {"[N,F]", "[N,1]", "[N,F]"}, {"[N,F]", "[1,F]", "[N,F]"},
	{"[N,F]", "[1,1]", "[N,F]"}, {"[N,F]", "[1]", "[N,F]"}, {"[N,F]", "[]", "[N,F]"}, {"[N,1]", "[1,F]", "[N,F]"}, {"[N,1]", "[F]", "[N,F]"},
	{"[N,1]", "[1]", "[N,1]"}, {"[N]", "[N]", "[N]"}, {"[N]", "[1]", "[N]"}, {"[N]", "[]", "[N]"}, {"[1]", "[]", "[1]"}, {"[]", "[]", "[]"},
}

func binaryCases(values string) []Case {
	var cs []Case
	for _, b := range broadcasts {
		x, y, z := "f32"+b[0]+" "+values, "f32"+b[1]+" "+values, "f32"+b[2]
		cs = append(cs, use(x, y).gives(z))
		if b[0] != b[1] {
			cs = append(cs, use(y, x).gives(z))
		}
	}
	return cs
}

func sparseScaling() []Case {
	var cs []Case
	for _, b := range []string{"[]", "[1]", "[F]", "[N,1]", "[1,F]", "[1,1]"} {
		cs = append(cs, use("csr[N,F]", "f32"+b+" positive").gives("csr[N,F]"))
	}
	return cs
}

func unaryCases(values string) []Case {
	var cs []Case
	for _, s := range []string{"[N,F]", "[N]", "[]"} {
		cs = append(cs, use("f32"+s+" "+values).gives("f32"+s))
	}
	return cs
}

func gradCases(attrs string) []Case {
	var cs []Case
	for _, s := range []string{"f32[N,F]", "f32[N]", "f32[]"} {
		cs = append(cs, use(s, s).gives(s).with(attrs))
	}
	return cs
}

func reduceCases() []Case {
	var cs []Case
	for _, r := range [][4]string{
		{"[N,F]", "0", "[F]", "[1,F]"}, {"[N,F]", "1", "[N]", "[N,1]"}, {"[N]", "0", "[]", "[1]"}, {"[N,F]", "all", "[]", "[]"}, {"[N]", "all", "[]", "[]"}, {"[]", "all", "[]", "[]"},
	} {
		cs = append(cs, use("f32"+r[0]).gives("f32"+r[2]).with(fmt.Sprintf("axis=%q", r[1])),
			use("f32"+r[0]).gives("f32"+r[3]).with(fmt.Sprintf("axis=%q, keep=true", r[1])))
	}
	return cs
}

func countCases() []Case {
	var cs []Case
	for _, r := range [][2]string{{"[N,F]", "0"}, {"[N,F]", "1"}, {"[N,F]", "all"}, {"[N]", "0"}, {"[]", "all"}} {
		cs = append(cs, use("f32"+r[0]).gives("f32[]").with(fmt.Sprintf("axis=%q", r[1])))
	}
	return cs
}

func matmulCases() []Case {
	var cs []Case
	for _, a := range []string{"f32", "csr"} {
		for _, l := range []string{"[M,K]", "[K,M]"} {
			for _, r := range []string{"[K,N]", "[N,K]"} {
				cs = append(cs, use(a+l, "f32"+r).gives("f32[M,N]").with(fmt.Sprintf("ta=%v, tb=%v", l == "[K,M]", r == "[N,K]")))
			}
		}
	}
	return cs
}

func spmmCases() []Case {
	var cs []Case
	for _, tr := range []bool{false, true} {
		for _, a := range []string{"_", "f32[E]"} {
			for _, s := range []string{"_", "f32[N]"} {
				cs = append(cs, use("graph<N,E>", a, s, "f32[N,F]").gives("f32[N,F]").with(fmt.Sprintf("transpose=%v", tr)))
			}
		}
		for _, heads := range []int{1, 3, 8} {
			for _, width := range []int{1, 7, 8, 40} {
				values, rows := fmt.Sprintf("[E,%d]", heads), fmt.Sprintf("f32[N,%d]", heads*width)
				cs = append(cs, use("graph<N,E>", "f32"+values, fmt.Sprintf("f32[N,%d]", heads), rows).gives(rows).with(fmt.Sprintf("transpose=%v", tr)))
			}
		}
		cs = append(cs, use("graph<N,E>", "_", "f32[N,2]", "f32[N,6]").gives("f32[N,6]").with(fmt.Sprintf("transpose=%v", tr)),
			use("graph<N,E>", "f32[E,2]", "_", "f32[N,6]").gives("f32[N,6]").with(fmt.Sprintf("transpose=%v", tr)))
	}
	return cs
}

// softmaxGradCases give the gradient the results that it is of.
func softmaxGradCases() []Case {
	var cs []Case
	for _, heads := range []string{"", ",1", ",8"} {
		for _, w := range []string{"", "flag", "prob"} {
			for _, ct := range []string{"%x3, %x4", "%x3, _", "_, %x4"} {
				e, s, weight := "f32[E"+heads+"]", "f32[N"+heads+"]", "_"
				c := Case{In: []string{"graph<N,E>", e, s, e, s}, Out: strings.Join([]string{e, s, "f32[E]"}, ", ")}
				if w != "" {
					c.In, weight = append(c.In, "f32[E] "+w), "%x5"
				}
				c.Body = fmt.Sprintf("  %%a, %%self = edge_softmax %%x0, %%x1, %%x2, %s : %s, %s\n", weight, e, s) +
					fmt.Sprintf("  %%y0, %%y1, %%y2 = edge_softmax_grad %%x0, %%x1, %%x2, %s, %%a, %%self, %s : %s\n", weight, ct, c.Out)
				cs = append(cs, c)
			}
		}
	}
	return cs
}

// entryPairs takes the entries for pairs.
func entryPairs() Case {
	c := use("graph<N,E>", "f32[E]", "f32[N]").gives("f32[E]")
	c.Body = "  %pairs = edge_pairs %x0 : i64[2,E]\n  %y0 = common_neighbors %x0, %x1, %x2, %pairs : f32[E]\n"
	return c
}

// fieldCases aggregate over a block, there and back.
func fieldCases() []Case {
	c := Case{In: []string{"graph<N,E>", "i64[B] index:N", "f32[N,F]", "f32[E]", "f32[N]"}, Out: "f32[B,F], f32[s,F], f32[e], f32[s,F]"}
	c.Body = `  %block, %sources, %entries = sample_block %x0, %x1 : graph<B,e,s>, i64[s], i64[e]
  %h = gather %x2, %sources : f32[s,F]
  %a = gather %x3, %entries : f32[e]
  %d = gather %x4, %x1 : f32[B]
  %y0 = spmm %block, %a, %d, %h : f32[B,F]
  %y1 = spmm %block, %a, %d, %y0 {transpose=true} : f32[s,F]
  %y2 = sddmm %block, %y0, %h : f32[e]
  %next, %more, %other = sample_block %x0, %sources : graph<s,f,r>, i64[r], i64[f]
  %h2 = gather %x2, %more : f32[r,F]
  %y3 = spmm %next, _, _, %h2 : f32[s,F]
`
	return []Case{c}
}

func fusedCases() []Case {
	wide := use("f32[N,F]", "f32[F]", "f32[N,1]", "f32[]", "f32[1,F]", "f32[1,1]", "f32[1]").gives("f32[N,F]")
	return []Case{
		wide.with(`expr="add(mul(x0, x1), elu(sub(x2, add(x3, mul(x4, sub(x5, x6))))))"`),
		use("f32[N,F]").gives("f32[N,F]").with(`expr="add(x0, mul(normal(), 0.01))", stream="a"`),
		use("f32[N,1]", "f32[F]").gives("f32[N,F]").with(`expr="dropout(tanh(mul(x0, x1)), 0.4)", stream="a"`),
		use("f32[N]", "f32[N]").gives("f32[N]").with(`expr="t0 = square(maximum(x0, 0.5)); t1 = sub(t0, x1); greater(div(t1, t0), sigmoid(mul(t1, t1)))"`),
		use("f32[N]", "f32[N]").gives("f32[N]").with(`expr="leaky_relu_grad(x0, elu_grad(x1, relu_grad(x0, leaky_relu(neg(x1), 0.1))), 0.2)"`),
		use("f32[N] positive").gives("f32[N]").with(`expr="add(pow(log(exp(x0)), -1.0), minimum(sqrt(x0), rsqrt(x0)))"`),
		use("f32[N]").gives("f32[N]").with(`expr="mul(less(uniform(), 0.5), greater_equal(x0, 0.1))", stream="a"`),
		use("f32[]").gives("f32[]").with(`expr="x0"`),
		Case{Out: "f32[N]", Attrs: `expr="3.0"`, Also: []string{"f32[N]"}},
		Case{Out: "f32[N,F]", Attrs: `expr="mul(normal(), exp(0.5))", stream="a"`, Also: []string{"f32[N,F]"}},
	}
}

func matmulFusedCases() []Case {
	var cs []Case
	for _, a := range []string{"f32", "csr"} {
		cs = append(cs,
			use(a+"[M,K]", "f32[K,N]", "_", "f32[N]").gives("f32[M,N]").with(`expr="elu(add(p, x0))"`),
			use(a+"[K,M]", "f32[N,K]", "f32[M,N]").gives("f32[M,N]").with("ta=true, tb=true"),
			use(a+"[M,K]", "f32[K,N]", "f32[M,N]", "f32[M,N]", "f32[M,1]").gives("f32[M,N]").with(`expr="dropout(mul(elu_grad(x0, p), x1), 0.4)", stream="a"`),
			use(a+"[M,K]", "f32[K,N]", "_", "f32[N]", "f32[1]").gives("f32[M,N]").with(`expr="t0 = relu(add(x0, p)); add(sub(t0, x1), mul(t0, normal()))", stream="a"`),
			use(a+"[M,K]", "f32[K,N]").gives("f32[M,N]").with(`expr="relu(p)"`),
			use(a+"[M,K]", "f32[K,N]", "_", "f32[N]").gives("f32[M,N]").with(`expr="t0 = add(p, x0); mul(p, elu(t0))"`),
			use(a+"[M,K]", "f32[K,N]", "_", "f32[]").gives("f32[M,N]").with(`expr="mul(x0, 2.0)"`),
			use(a+"[M,K]", "f32[K,N]").gives("f32[M,N]"))
	}
	// The sum lies over its operand, or may not because that is read again.
	over := use("f32[M,K]", "f32[K,N]", "f32[M,N]").gives("f32[M,N], f32[M,N]")
	over.Body = `  %c = add %x2, %x2 : f32[M,N]
  %y0 = matmul_fused %x0, %x1, %c : f32[M,N]
  %d = add %y0, %x2 : f32[M,N]
  %y1 = matmul_fused %x0, %x1, %d, %d {expr="mul(p, x0)"} : f32[M,N]
`
	return append(cs, over)
}

func spmmFusedCases() []Case {
	var cs []Case
	for _, tr := range []string{"transpose=true", "transpose=false"} {
		cs = append(cs,
			use("graph<N,E>", "f32[E]", "f32[N]", "f32[N,F]", "_", "f32[F]").gives("f32[N,F]").with(`expr="relu(add(p, x0))", `+tr),
			use("graph<N,E>", "_", "f32[N]", "f32[N,F]", "f32[N,F]", "f32[N,F]", "f32[F]").gives("f32[N,F]").with(`expr="relu_grad(x0, dropout(add(p, x1), 0.4))", stream="a", `+tr),
			use("graph<N,E>", "f32[E]", "_", "f32[N,F]", "f32[N,F]").gives("f32[N,F]").with(tr),
			use("graph<N,E>", "f32[E,2]", "f32[N,2]", "f32[N,16]", "f32[N,16]", "f32[16]").gives("f32[N,16]").with(`expr="elu(add(p, x0))", `+tr))
	}
	return cs
}

// pairGradCases give the gradient the saved results that it is made for.
func pairGradCases() []Case {
	var cs []Case
	for _, absent := range []int{0, 1, 2, 4, 8, 7, 15} { // bits: which cotangents
		c := Case{In: []string{"f32[N,F]", "f32[N,F]"}, Out: "f32[N,F], f32[N,F]"}
		ct := make([]string, 4)
		for k, shape := range []string{"[N]", "[N]", "[N]", "[]"} {
			ct[k] = "_"
			if absent&(1<<k) == 0 {
				ct[k] = fmt.Sprintf("%%x%d", len(c.In))
				c.In = append(c.In, "f32"+shape)
			}
		}
		c.Body = fmt.Sprintf(`  %%row, %%col, %%diag, %%sq = pairwise_reduce %%x0, %%x1 {tau=0.7} : f32[N], f32[N], f32[N], f32[]
  %%y0, %%y1 = pairwise_reduce_grad %%x0, %%x1, %%row, %%col, %s {tau=0.7} : f32[N,F], f32[N,F]
`, strings.Join(ct, ", "))
		cs = append(cs, c)
	}
	return cs
}

// pairSelfGradCases runs the gradient with the products that its operation leaves.
func pairSelfGradCases() []Case {
	return []Case{{In: []string{"f32[N,F]", "f32[N]"}, Out: "f32[N,F]", Body: `  %row = pairwise_self %x0 {tau=0.7} : f32[N]
  %y0 = pairwise_self_grad %x0, %row, %x1 {tau=0.7} : f32[N,F]
`}}
}

func broadcastToCases() []Case {
	var cs []Case
	for _, b := range [][2]string{{"[]", "[N,F]"}, {"[F]", "[N,F]"}, {"[1]", "[N,F]"}, {"[N,1]", "[N,F]"}, {"[1,F]", "[N,F]"}, {"[1,1]", "[N,F]"}, {"[N,F]", "[N,F]"}, {"[]", "[N]"}, {"[1]", "[N]"}, {"[N]", "[N]"}, {"[]", "[]"}} {
		c := use("f32" + b[0]).gives("f32" + b[1])
		c.Also = []string{"f32" + b[1]}
		cs = append(cs, c)
		c.In = []string{"i64" + b[0] + " index:N"}
		cs = append(cs, c.gives("i64"+b[1]))
	}
	return cs
}

func declaredCases(attrs string, types ...string) []Case {
	var cs []Case
	for _, ty := range types {
		cs = append(cs, Case{Out: ty, Attrs: attrs, Also: []string{ty + " index:N"}})
	}
	return cs
}

func normalizeCases() []Case {
	var cs []Case
	for _, x := range []string{"f32[N,F]", "f32[N,F] far", "csr[N,F]", "csr[N,F] far"} {
		out, _, _ := strings.Cut(x, " ")
		cs = append(cs, use(x).gives(out), use(x).gives(out).with("eps=3.0"))
	}
	return cs
}

func sizedGrad(name, x string) []Case {
	c := use(x, "f32[N,F]").gives("f32[N,F]")
	c.Body = fmt.Sprintf("  %%n = %s %%x0 : f32[N,F]\n  %%y0 = %s_grad %%x0, %%n, %%x1 : f32[N,F]\n", name, name)
	return []Case{c}
}

// Cases has every tensor operation's cases; TestTable fails on a missing line.
var Cases = map[string][]Case{
	"add": binaryCases(""), "sub": binaryCases(""), "maximum": binaryCases(""), "minimum": binaryCases(""), "logaddexp": binaryCases(""),
	"greater": binaryCases("coarse"), "greater_equal": binaryCases("coarse"), "less": binaryCases("coarse"),
	"mul": append(binaryCases(""), sparseScaling()...),
	"div": append(binaryCases("positive"), sparseScaling()...),

	"neg": unaryCases(""), "exp": unaryCases(""), "square": unaryCases(""), "sigmoid": unaryCases(""), "tanh": unaryCases(""),
	"relu": unaryCases(""), "elu": unaryCases(""),
	"log": unaryCases("positive"), "sqrt": unaryCases("positive"), "rsqrt": unaryCases("positive"),
	"leaky_relu":      {use("f32[N,F]").gives("f32[N,F]"), use("f32[N]").gives("f32[N]").with("slope=0.7")},
	"pow":             {use("f32[N,F] positive").gives("f32[N,F]").with("exponent=1.7"), use("f32[N] positive").gives("f32[N]").with("exponent=-2.0"), use("f32[] positive").gives("f32[]").with("exponent=0.5")},
	"relu_grad":       gradCases(""),
	"elu_grad":        gradCases(""),
	"leaky_relu_grad": append(gradCases(""), gradCases("slope=0.7")...),
	"stop_gradient":   append(unaryCases(""), use("csr[N,F]").gives("csr[N,F]")),
	"scale_grad":      {use("f32[N,F]").gives("f32[N,F]").with("factor=0.01")},
	"fill":            declaredCases("value=2.5", "f32[N,F]", "f32[N]", "f32[]"),

	"reduce_sum": reduceCases(), "reduce_mean": reduceCases(), "reduce_max": reduceCases(), "reduce_min": reduceCases(), "logsumexp": reduceCases(),
	"count":             countCases(),
	"broadcast_to":      broadcastToCases(),
	"unsqueeze":         {use("f32[N]").gives("f32[N,1]"), use("i64[N] index:N").gives("i64[N,1]")},
	"squeeze":           {use("f32[N,1]").gives("f32[N]"), use("i64[N,1] index:N").gives("i64[N]")},
	"softmax":           {use("f32[N,F]").gives("f32[N,F]")},
	"log_softmax":       {use("f32[N,F]").gives("f32[N,F]")},
	"l1_normalize":      normalizeCases(),
	"l2_normalize":      normalizeCases(),
	"l2_normalize_grad": append(sizedGrad("l2_normalize", "f32[N,F]"), sizedGrad("l2_normalize", "f32[N,F] far")...),

	"matmul":       matmulCases(),
	"to_dense":     {use("csr[N,F]").gives("f32[N,F]"), use("f32[N,F]").gives("f32[N,F]")},
	"spectral_map": {use("f32[F,F] definite").gives("f32[F,F]").with(`map="soft_inverse_sqrt", amount=0.0001`), use("f32[F,F] definite").gives("f32[F,F]").with(`map="inverse_sqrt", amount=0.000001`), use("f32[F,F] definite").gives("f32[F,F]").with(`map="shrink", amount=0.3`)},
	"cholesky":     {use("f32[F,F] definite").gives("f32[F,F]"), use("f32[F,F] singular").gives("f32[F,F]"), use("f32[F,F] definite").gives("f32[F,F]").with("ridge=0.001")},
	"solve_upper":  {use("f32[F,F] upper", "f32[F,B]").gives("f32[F,B]")},
	"concat":       {use("f32[N,3]", "f32[N,2]").gives("f32[N,5]"), use("f32[N,0]", "f32[N,2]").gives("f32[N,2]")},
	"columns":      {use("f32[N,5]").gives("f32[N,3]").with("from=1, width=3"), use("f32[N,5]").gives("f32[N,0]").with("from=5, width=0")},
	"slice":        {use("f32[5,F]").gives("f32[3,F]").with("from=1, count=3"), use("f32[5]").gives("f32[2]").with("from=3, count=2"), use("f32[5,F]").gives("f32[0,F]").with("from=5, count=0")},
	"stack":        {use("f32[3,F]", "f32[2,F]").gives("f32[5,F]"), use("f32[0]", "f32[2]").gives("f32[2]")},
	"gather":       {use("f32[N,F]", "i64[B] index:N").gives("f32[B,F]"), use("f32[N]", "i64[B] index:N").gives("f32[B]"), use("i64[N] index:N", "i64[B] index:N").gives("i64[B]"), use("i64[N,F] index:N", "i64[B] index:N").gives("i64[B,F]")},
	"argsort":      {use("f32[N]").gives("i64[N]"), use("f32[N] coarse").gives("i64[N]")},
	"scatter_add":  {Case{In: []string{"f32[B,F]", "i64[B] index:N"}, Out: "f32[N,F]", Also: []string{"f32[N]"}}, Case{In: []string{"f32[B]", "i64[B] index:N"}, Out: "f32[N]", Also: []string{"f32[N]"}}},

	"fused_elementwise": fusedCases(),
	"matmul_fused":      matmulFusedCases(),
	"spmm_fused":        spmmFusedCases(),

	"spmm":         spmmCases(),
	"sample_block": fieldCases(),
	"sddmm": {use("graph<N,E>", "f32[N,F]", "f32[N,F]").gives("f32[E]"), use("graph<N,E>", "f32[N,24]", "f32[N,24]").gives("f32[E,3]").with("heads=3"),
		use("graph<N,E>", "f32[N,56]", "f32[N,56]").gives("f32[E,8]").with("heads=8")},
	"spmax":      {use("graph<N,E>", "f32[N,F]").gives("f32[N,F]"), use("graph<N,E>", "f32[N,F] coarse").gives("f32[N,F]")},
	"spmax_grad": {use("graph<N,E>", "f32[N,F] coarse", "f32[N,F] coarse", "f32[N,F]").gives("f32[N,F]")},
	"edge_softmax": {use("graph<N,E>", "f32[E]", "f32[N]").gives("f32[E], f32[N]"), use("graph<N,E>", "f32[E,8]", "f32[N,8]", "f32[E] flag").gives("f32[E,8], f32[N,8]"),
		use("graph<N,E>", "f32[E,3] huge", "f32[N,3] huge", "f32[E] prob").gives("f32[E,3], f32[N,3]"), use("graph<N,E>", "f32[E,F]", "f32[N,F]").gives("f32[E,F], f32[N,F]")},
	"edge_softmax_grad": softmaxGradCases(),
	"group_sum":         {use("f32[N,6]").gives("f32[N,3]").with("groups=3"), use("f32[N,64]").gives("f32[N,8]").with("groups=8")},
	"group_repeat":      {use("f32[N,3]").gives("f32[N,6]").with("times=2"), use("f32[N,8]").gives("f32[N,64]").with("times=8")},
	"edge_gather": {use("graph<N,E>", "f32[N]").gives("f32[E]").with(`side="dst"`), use("graph<N,E>", "f32[N]").gives("f32[E]").with(`side="src"`),
		use("graph<N,E>", "f32[N,F]").gives("f32[E,F]").with(`side="dst"`), use("graph<N,E>", "f32[N,F]").gives("f32[E,F]").with(`side="src"`)},
	"edge_kth": {use("graph<N,E>", "f32[E]").gives("f32[N]").with("k=1"), use("graph<N,E>", "f32[E] coarse").gives("f32[N]").with("k=3")},
	"edge_sum": {use("graph<N,E>", "f32[E]").gives("f32[N]").with(`side="dst"`), use("graph<N,E>", "f32[E]").gives("f32[N]").with(`side="src"`),
		use("graph<N,E>", "f32[E,F]").gives("f32[N,F]").with(`side="dst"`), use("graph<N,E>", "f32[E,F]").gives("f32[N,F]").with(`side="src"`)},
	"edge_ones":        {use("graph<N,E>").gives("f32[E]")},
	"pair_dot":         {use("f32[N,F]", "i64[2,B] index:N").gives("f32[B]"), use("f32[N,F]", "i64[2,B] index:N", "f32[N,F]").gives("f32[B]")},
	"pair_gather":      {use("f32[N]", "i64[2,B] index:N").gives("f32[B]").with(`end="first"`), use("f32[N]", "i64[2,B] index:N").gives("f32[B]").with(`end="second"`)},
	"edge_pairs":       {use("graph<N,E>").gives("i64[2,E]")},
	"common_neighbors": {use("graph<N,E>", "_", "f32[N]", "i64[2,B] index:N").gives("f32[B]"), use("graph<N,E>", "f32[E]", "f32[N]", "i64[2,B] index:N").gives("f32[B]"), entryPairs()},
	"neighbor_kernel":  {use("graph<N,E>", "_", "f32[N,F]", "i64[2,B] index:N").gives("f32[B]").with("tau=0.7, most=3"), use("graph<N,E>", "f32[E]", "f32[N,F]", "i64[2,B] index:N").gives("f32[B]").with("tau=2, most=100")},

	"normal":       declaredCases(`stream="a"`, "f32[N,F]", "f32[N]", "f32[]"),
	"uniform":      declaredCases(`stream="a"`, "f32[N,F]", "f32[N]", "f32[]"),
	"edge_uniform": {use("graph<N,E>").gives("f32[E]").with(`stream="a"`)},
	"dropout": {use("f32[N,F]").gives("f32[N,F]").with(`rate=0.4, stream="a"`), use("f32[N]").gives("f32[N]").with(`rate=0.0, stream="a"`),
		use("csr[N,F]").gives("csr[N,F]").with(`rate=0.5, stream="a"`)},

	"pairwise_reduce":      {use("f32[N,F]", "f32[N,F]").gives("f32[N], f32[N], f32[N], f32[]").with("tau=0.7")},
	"pairwise_reduce_grad": pairGradCases(),
	"pairwise_mean":        {use("f32[N,F]", "f32[N,F]").gives("f32[N], f32[N], f32[N,F]").with("tau=0.7"), use("f32[N,F]", "f32[N,F]").gives("f32[N], f32[N], f32[N,F]").with("tau=0.02")},
	"pairwise_mean_grad": {use("f32[N,F]", "f32[N,F]", "f32[N,F]", "f32[N]", "f32[N]").gives("f32[N,F]").with("tau=0.7"),
		use("f32[N,F]", "f32[N,F]", "f32[N,F]", "f32[N]", "_").gives("f32[N,F]").with("tau=0.7")},
	"pairwise_self":      {use("f32[N,F]").gives("f32[N]").with("tau=0.7")},
	"pairwise_self_grad": pairSelfGradCases(),
	"cross_entropy":      {use("f32[N,F]", "i64[N] index:F").gives("f32[]")},
	"cross_entropy_grad": {use("f32[N,F]", "i64[N] index:F", "f32[]").gives("f32[N,F]")},
}

// Sizes are those of the cases' symbols. A negative E asks for a random
// undirected graph, and a positive one for a directed graph of E entries.
type Sizes map[string]int

// CaseSizes are what every case is run at.
var CaseSizes = []Sizes{
	{"N": 0, "F": 0, "E": 0, "B": 0, "M": 0, "K": 0},
	{"N": 1, "F": 1, "E": 0, "B": 1, "M": 1, "K": 1},
	{"N": 2, "F": 1, "E": 1, "B": 3, "M": 1, "K": 2},
	{"N": 0, "F": 3, "E": 0, "B": 0, "M": 2, "K": 0},
	{"N": 4, "F": 0, "E": 0, "B": 0, "M": 0, "K": 3},
	{"N": 5, "F": 3, "E": 4, "B": 2, "M": 4, "K": 7},
	{"N": 23, "F": 17, "E": -1, "B": 40, "M": 19, "K": 33},
	{"N": 310, "F": 65, "E": -1, "B": 97, "M": 130, "K": 70},
}

// Source is the module that uses an operation once.
func (c Case) Source(name string) string {
	var args, operands []string
	for i, spec := range slices.Concat(c.In, c.Also) {
		ty, _, _ := strings.Cut(spec, " ")
		if ty == "_" {
			operands = append(operands, "_")
			continue
		}
		args = append(args, fmt.Sprintf("%%x%d: %s", i, ty))
		if i < len(c.In) {
			operands = append(operands, fmt.Sprintf("%%x%d", i))
		}
	}
	var results, names []string
	for i, ty := range splitTypes(c.Out) {
		results = append(results, fmt.Sprintf("r%d: %s", i, ty))
		names = append(names, fmt.Sprintf("%%y%d", i))
	}
	body := c.Body
	if body == "" {
		attrs := ""
		if c.Attrs != "" {
			attrs = " {" + c.Attrs + "}"
		}
		body = fmt.Sprintf("  %s = %s %s%s : %s\n", strings.Join(names, ", "), name, strings.Join(operands, ", "), attrs, c.Out)
	}
	return fmt.Sprintf("module @case\n\nfunc @f(%s) -> (%s) {\n%s  return %s\n}\n", strings.Join(args, ", "), strings.Join(results, ", "), body, strings.Join(names, ", "))
}

// splitTypes splits at the commas outside brackets.
func splitTypes(s string) []string {
	var out []string
	depth, start := 0, 0
	for i, r := range s {
		switch r {
		case '[', '<':
			depth++
		case ']', '>':
			depth--
		case ',':
			if depth == 0 {
				out = append(out, strings.TrimSpace(s[start:i]))
				start = i + 1
			}
		}
	}
	return append(out, strings.TrimSpace(s[start:]))
}

// RandomGraph draws a graph of n nodes: undirected of about 3n edges where e is
// negative, else directed of e edges.
func RandomGraph(t testing.TB, n, e int, s rng.Stream) *graph.Structure {
	t.Helper()
	g := &graph.Graph{N: n, Directed: e >= 0}
	want := e
	if e < 0 {
		want = 3 * n
	}
	has := map[[2]int32]bool{}
	for i := uint64(0); n > 1 && (len(has) < e || e < 0 && i < uint64(want)); i++ {
		u, v := int32(s.Intn(2*i, n)), int32(s.Intn(2*i+1, n))
		if e < 0 && u > v {
			u, v = v, u
		}
		if u != v {
			has[[2]int32{u, v}] = true
		}
	}
	g.Edges = slices.SortedFunc(maps.Keys(has), func(a, b [2]int32) int { return slices.Compare(a[:], b[:]) })
	if err := g.Validate(); err != nil {
		t.Fatal(err)
	}
	return g.Structure()
}

// Words says what values each argument takes, by its name.
func (c Case) Words() map[string]string {
	words := map[string]string{}
	for i, spec := range slices.Concat(c.In, c.Also) {
		_, words[fmt.Sprintf("x%d", i)], _ = strings.Cut(spec, " ")
	}
	return words
}

// Fits reports whether there is anything that the case's indices could point at:
// without, it cannot be run.
func (c Case) Fits(args map[string]*Value, sz Sizes) bool {
	for name, w := range c.Words() {
		if _, bound, ok := strings.Cut(w, ":"); ok && args[name] != nil && len(args[name].I64) > 0 && sz[bound] == 0 {
			return false
		}
	}
	return true
}
