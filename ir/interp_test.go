package ir

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/gsrc-dev/gsrc/internal/fmath"
)

// plainRandom gives numbers that can be computed by hand: element i of every
// stream is i/4 uniform and i normal, and the pair {a, b} is (a + b)/10.
type plainRandom struct{}

func (plainRandom) Uniform(_ string, i int) float64        { return float64(i) / 4 }
func (plainRandom) Normal(_ string, i int) float64         { return float64(i) }
func (plainRandom) UniformPair(_ string, a, b int) float64 { return float64(a+b) / 10 }

func tensor(shape []int, data ...float64) Val { return Val{T: &Tensor{Shape: shape, Data: data}} }
func scalar(v float64) Val                    { return Val{T: ScalarTensor(v)} }
func vector(data ...float64) Val              { return tensor([]int{len(data)}, data...) }
func matrix(rows int, data ...float64) Val {
	return tensor([]int{rows, len(data) / max(rows, 1)}, data...)
}

// small is a directed graph of three nodes: 1→0, 2→0, 0→2.
func small() Val { return Val{G: &Graph{N: 3, Row: []int{0, 0, 2}, Col: []int{1, 2, 0}}} }

// joined is a batch of three graphs of two, no and one node.
func joined() Val {
	return Val{G: &Graph{N: 3, Sources: 3, Row: []int{0, 0, 2}, Col: []int{0, 1, 2}}}
}

var (
	ln3   = math.Log(3)
	root3 = math.Sqrt(3)
	root6 = math.Sqrt(6)
	half  = math.Sqrt(0.5)
)

// TestValues holds the reference evaluation against values computed by hand.
func TestValues(t *testing.T) {
	h := matrix(3, 1, 2, 3, 4, 5, 6)
	m23 := matrix(2, 1, 2, 3, 4, 5, 6)
	shared := &Graph{N: 4, Row: []int{0, 0, 0, 0, 0, 1, 1, 1}, Col: []int{0, 1, 2, 2, 3, 0, 2, 3}}
	for _, c := range []struct {
		args string // argument list; types of the results follow from the operation
		op   string
		in   []Val
		want [][]float64
	}{
		{"%a: f32[2,2], %b: f32[2]", "sub %a, %b : f32[2,2]", []Val{matrix(2, 1, 2, 3, 4), vector(10, 20)}, [][]float64{{-9, -18, -7, -16}}},
		{"%a: f32[2,2], %b: f32[2,1]", "div %a, %b : f32[2,2]", []Val{matrix(2, 1, 2, 3, 4), matrix(2, 2, 4)}, [][]float64{{0.5, 1, 0.75, 1}}},
		{"%a: f32[2,1], %b: f32[1,2]", "mul %a, %b : f32[2,2]", []Val{matrix(2, 2, 3), matrix(1, 5, 7)}, [][]float64{{10, 14, 15, 21}}},
		{"%a: f32[3], %b: f32[]", "maximum %a, %b : f32[3]", []Val{vector(-1, 0, 2), scalar(0)}, [][]float64{{0, 0, 2}}},
		{"%a: f32[2], %b: f32[2]", "logaddexp %a, %b : f32[2]", []Val{vector(0, 1000), vector(ln3, 1000)}, [][]float64{{math.Log(4), 1000 + math.Ln2}}},
		{"%a: f32[3], %b: f32[]", "greater %a, %b : f32[3]", []Val{vector(1, 2, 3), scalar(2)}, [][]float64{{0, 0, 1}}},
		{"%a: f32[3], %b: f32[]", "greater_equal %a, %b : f32[3]", []Val{vector(1, 2, 3), scalar(2)}, [][]float64{{0, 1, 1}}},
		{"%a: f32[3], %b: f32[]", "less %a, %b : f32[3]", []Val{vector(1, 2, 3), scalar(2)}, [][]float64{{1, 0, 0}}},
		{"%x: f32[3]", "sigmoid %x : f32[3]", []Val{vector(0, ln3, -1000)}, [][]float64{{0.5, 0.75, 0}}},
		{"%a: f32[2,2], %b: f32[2], %c: f32[2,1]", `fused_elementwise %a, %b, %c {expr="t0 = sub(x0, x1); mul(t0, add(t0, mul(x2, 10.0)))"} : f32[2,2]`,
			[]Val{matrix(2, 1, 2, 3, 4), vector(0, 1), matrix(2, 1, 2)}, [][]float64{{11, 11, 69, 69}}},
		{"%a: f32[1,2], %b: f32[2,2], %c: f32[1,2], %d: f32[2]", `matmul_fused %a, %b, %c, %d {expr="relu(add(p, x0))"} : f32[1,2]`,
			[]Val{matrix(1, 1, 2), matrix(2, 1, 2, 3, 4), matrix(1, 100, 200), vector(-7, -1000)}, [][]float64{{100, 0}}},
		{"%x: f32[2]", "elu %x : f32[2]", []Val{vector(2, -math.Ln2)}, [][]float64{{2, -0.5}}},
		{"%x: f32[2]", "leaky_relu %x {slope=0.1} : f32[2]", []Val{vector(2, -3)}, [][]float64{{2, -0.3}}},
		{"%x: f32[2]", "rsqrt %x : f32[2]", []Val{vector(4, 0.25)}, [][]float64{{0.5, 2}}},
		{"%x: f32[2]", "pow %x {exponent=1.5} : f32[2]", []Val{vector(4, 9)}, [][]float64{{8, 27}}},
		{"%x: f32[2]", "scale_grad %x {factor=0.01} : f32[2]", []Val{vector(4, 9)}, [][]float64{{4, 9}}},
		{"", "fill {value=-2} : f32[2,2]", nil, [][]float64{{-2, -2, -2, -2}}},

		{"%x: f32[2,3]", `reduce_sum %x {axis="0"} : f32[3]`, []Val{m23}, [][]float64{{5, 7, 9}}},
		{"%x: f32[2,3]", `reduce_sum %x {axis="1", keep=true} : f32[2,1]`, []Val{m23}, [][]float64{{6, 15}}},
		{"%x: f32[2,3]", `reduce_mean %x {axis="all"} : f32[]`, []Val{m23}, [][]float64{{3.5}}},
		{"%x: f32[0,3]", `reduce_mean %x {axis="0"} : f32[3]`, []Val{matrix(0).resize(0, 3)}, [][]float64{{0, 0, 0}}},
		{"%x: f32[2,3]", `reduce_max %x {axis="1"} : f32[2]`, []Val{m23}, [][]float64{{3, 6}}},
		{"%x: f32[2,3]", `reduce_min %x {axis="0"} : f32[3]`, []Val{m23}, [][]float64{{1, 2, 3}}},
		{"%x: f32[0]", `reduce_min %x {axis="0"} : f32[]`, []Val{vector()}, [][]float64{{math.Inf(1)}}},
		{"%x: f32[2,2]", `logsumexp %x {axis="1"} : f32[2]`, []Val{matrix(2, 0, 0, 1000, 1000)}, [][]float64{{math.Ln2, 1000 + math.Ln2}}},
		{"%x: f32[0]", `logsumexp %x {axis="all"} : f32[]`, []Val{vector()}, [][]float64{{math.Inf(-1)}}},
		{"%x: f32[2,3]", `count %x {axis="1"} : f32[]`, []Val{m23}, [][]float64{{3}}},
		{"%x: f32[0,3]", `count %x {axis="0"} : f32[]`, []Val{matrix(0).resize(0, 3)}, [][]float64{{1}}},
		{"%x: f32[2,1]", "broadcast_to %x : f32[2,2]", []Val{matrix(2, 1, 2)}, [][]float64{{1, 1, 2, 2}}},
		{"%x: f32[1,2]", "softmax %x : f32[1,2]", []Val{matrix(1, 0, ln3)}, [][]float64{{0.25, 0.75}}},
		{"%x: f32[1,2]", "log_softmax %x : f32[1,2]", []Val{matrix(1, 10, 10+ln3)}, [][]float64{{math.Log(0.25), math.Log(0.75)}}},
		{"%x: f32[2,2]", "l2_normalize %x : f32[2,2]", []Val{matrix(2, 3, 4, 0, 0)}, [][]float64{{0.6, 0.8, 0, 0}}},
		{"%x: f32[2,2], %dy: f32[2,2]", "l2_normalize_grad %x, %x, %dy : f32[2,2]", []Val{matrix(2, 0, 0, 3e-13, 4e-13), matrix(2, 3, 4, 3, 4)}, [][]float64{{0, 0, 0, 0}}},
		{"%x: f32[1,2], %dy: f32[1,2]", "l2_normalize_grad %x, %x, %dy {eps=0.5} : f32[1,2]", []Val{matrix(1, 0, 0), matrix(1, 3, 4)}, [][]float64{{6, 8}}},
		{"%x: f32[2,2]", "l1_normalize %x : f32[2,2]", []Val{matrix(2, 1, -3, 0, 0)}, [][]float64{{0.25, -0.75, 0, 0}}},

		{"%a: f32[2,2], %b: f32[2,1]", "matmul %a, %b : f32[2,1]", []Val{matrix(2, 1, 2, 3, 4), matrix(2, 5, 6)}, [][]float64{{17, 39}}},
		{"%a: f32[2,2], %b: f32[1,2]", "matmul %a, %b {ta=true, tb=true} : f32[2,1]", []Val{matrix(2, 1, 2, 3, 4), matrix(1, 5, 6)}, [][]float64{{23, 34}}},
		{"%a: f32[2,1], %b: f32[2,2]", "concat %a, %b : f32[2,3]", []Val{matrix(2, 1, 2), matrix(2, 3, 4, 5, 6)}, [][]float64{{1, 3, 4, 2, 5, 6}}},
		{"%x: f32[2,3]", "columns %x {from=1, width=1} : f32[2,1]", []Val{m23}, [][]float64{{2, 5}}},
		{"%x: f32[2,3]", "slice %x {from=1, count=1} : f32[1,3]", []Val{m23}, [][]float64{{4, 5, 6}}},
		{"%x: f32[3]", "slice %x {from=0, count=2} : f32[2]", []Val{vector(1, 2, 3)}, [][]float64{{1, 2}}},
		{"%a: f32[1,2], %b: f32[2,2]", "stack %a, %b : f32[3,2]", []Val{matrix(1, 1, 2), matrix(2, 3, 4, 5, 6)}, [][]float64{{1, 2, 3, 4, 5, 6}}},
		{"%x: f32[2,3], %i: i64[3]", "gather %x, %i : f32[3,3]", []Val{m23, vector(1, 0, 1)}, [][]float64{{4, 5, 6, 1, 2, 3, 4, 5, 6}}},
		{"%x: f32[3], %i: i64[3]", "scatter_add %x, %i : f32[4]", []Val{vector(1, 2, 3), vector(2, 0, 2)}, [][]float64{{2, 0, 4, 0}}},
		{"%x: f32[4]", `dropout %x {rate=0.5, stream="s"} : f32[4]`, []Val{vector(1, 2, 3, 4)}, [][]float64{{0, 0, 6, 8}}},
		{"", `normal {stream="s"} : f32[3]`, nil, [][]float64{{0, 1, 2}}},

		{"%g: graph<N,E>, %a: f32[E], %s: f32[N], %h: f32[N,2]", "spmm %g, %a, %s, %h : f32[N,2]", []Val{small(), vector(2, 3, 5), vector(1, 10, 100), h}, [][]float64{{22, 28, 30, 40, 505, 610}}},
		{"%g: graph<N,E>, %a: f32[E], %s: f32[N], %h: f32[N,2]", "spmm %g, %a, %s, %h {transpose=true} : f32[N,2]", []Val{small(), vector(2, 3, 5), vector(1, 10, 100), h}, [][]float64{{26, 32, 32, 44, 503, 606}}},
		{"%g: graph<N,E>, %h: f32[N,2]", "spmm %g, _, _, %h : f32[N,2]", []Val{small(), h}, [][]float64{{8, 10, 0, 0, 1, 2}}},
		{"%g: graph<N,E>, %h: f32[N,2]", "spmax %g, %h : f32[N,2]", []Val{small(), h}, [][]float64{{5, 6, 0, 0, 1, 2}}},
		{"%g: graph<N,E>, %h: f32[N,2], %y: f32[N,2], %d: f32[N,2]", "spmax_grad %g, %h, %y, %d : f32[N,2]", []Val{small(), h, matrix(3, 5, 6, 0, 0, 1, 2), matrix(3, 1, 2, 3, 4, 5, 6)}, [][]float64{{5, 6, 0, 0, 1, 2}}},
		{"%g: graph<N,E>, %p: f32[N,2], %q: f32[N,2]", "sddmm %g, %p, %q : f32[E]", []Val{small(), h, matrix(3, 1, 0, 0, 1, 1, 1)}, [][]float64{{2, 3, 5}}},
		{"%g: graph<N,E>, %v: f32[N]", `edge_gather %g, %v {side="dst"} : f32[E]`, []Val{small(), vector(7, 8, 9)}, [][]float64{{7, 7, 9}}},
		{"%g: graph<N,E>, %v: f32[N]", `edge_gather %g, %v {side="src"} : f32[E]`, []Val{small(), vector(7, 8, 9)}, [][]float64{{8, 9, 7}}},
		{"%g: graph<N,E>, %w: f32[E]", `edge_sum %g, %w {side="dst"} : f32[N]`, []Val{small(), vector(2, 3, 5)}, [][]float64{{5, 0, 5}}},
		{"%g: graph<N,E>, %w: f32[E]", `edge_sum %g, %w {side="src"} : f32[N]`, []Val{small(), vector(2, 3, 5)}, [][]float64{{5, 2, 3}}},
		// Scores as logarithms: 0 sees 1 and 2 with 2 and 3, itself with 5; the weights double and remove.
		{"%g: graph<N,E>, %e: f32[E], %s: f32[N]", "edge_softmax %g, %e, %s : f32[E], f32[N]", []Val{small(), vector(math.Ln2, ln3, 1000), vector(math.Log(5), -7, 1000)}, [][]float64{{0.2, 0.3, 0.5}, {0.5, 1, 0.5}}},
		{"%g: graph<N,E>, %e: f32[E], %s: f32[N], %w: f32[E]", "edge_softmax %g, %e, %s, %w : f32[E], f32[N]", []Val{small(), vector(math.Ln2, 1000, 9), vector(math.Log(4), math.Inf(-1), math.Inf(-1)), vector(2, 0, 1)}, [][]float64{{0.5, 0, 1}, {0.5, 0, 0}}},
		{"%g: graph<N,E>, %e: f32[E,2], %s: f32[N,2]", "edge_softmax %g, %e, %s : f32[E,2], f32[N,2]", []Val{small(), matrix(3, math.Ln2, 0, ln3, 0, 0, ln3), matrix(3, math.Log(5), 0, 0, 0, 0, 0)},
			[][]float64{{0.2, 1. / 3, 0.3, 1. / 3, 0.5, 0.75}, {0.5, 1. / 3, 1, 1, 0.5, 0.25}}},
		{"%g: graph<N,E>, %e: f32[E], %s: f32[N], %a: f32[E], %b: f32[N], %d: f32[E]", "edge_softmax_grad %g, %e, %s, _, %a, %b, %d : f32[E], f32[N], f32[E]",
			[]Val{small(), vector(math.Ln2, ln3, 0), vector(math.Log(5), 0, 0), vector(0.2, 0.3, 0.5), vector(0.5, 1, 0.5), vector(10, 0, 4)}, [][]float64{{1.6, -0.6, 1}, {-1, 0, -1}, {1.6, -0.6, 1}}},
		{"%g: graph<N,E>, %w: f32[E]", "edge_kth %g, %w {k=2} : f32[N]", []Val{small(), vector(3, 2, 5)}, [][]float64{{2, 0, 5}}},
		{"%a: f32[2,2]", `spectral_map %a {map="shrink", amount=0.5} : f32[2,2]`, []Val{matrix(2, 2, 1, 1, 2)}, [][]float64{{1.5, 1, 1, 1.5}}},
		{"%a: f32[2,2]", `spectral_map %a {map="inverse_sqrt", amount=0.5} : f32[2,2]`, []Val{matrix(2, 5, 3, 3, 5)}, [][]float64{{math.Sqrt2 / 8, math.Sqrt2 / 8, math.Sqrt2 / 8, math.Sqrt2 / 8}}},
		{"%x: f32[4]", "argsort %x : i64[4]", []Val{vector(3, 1, 2, 1)}, [][]float64{{1, 3, 2, 0}}},
		{"%x: f32[2,4]", "group_sum %x {groups=2} : f32[2,2]", []Val{matrix(2, 1, 2, 3, 4, 5, 6, 7, 8)}, [][]float64{{3, 7, 11, 15}}},
		{"%x: f32[2,2]", "group_repeat %x {times=2} : f32[2,4]", []Val{matrix(2, 1, 2, 3, 4)}, [][]float64{{1, 1, 2, 2, 3, 3, 4, 4}}},
		{"%g: graph<N,E>, %a: f32[E,2], %s: f32[N,2], %h: f32[N,2]", "spmm %g, %a, %s, %h : f32[N,2]", []Val{small(), matrix(3, 2, 1, 3, 1, 5, 0), matrix(3, 1, 0, 10, 0, 100, 1), h}, [][]float64{{22, 10, 30, 0, 505, 6}}},
		{"%g: graph<N,E>, %p: f32[N,2], %q: f32[N,2]", "sddmm %g, %p, %q {heads=2} : f32[E,2]", []Val{small(), h, matrix(3, 1, 0, 0, 1, 1, 1)}, [][]float64{{0, 2, 1, 2, 5, 0}}},
		{"%g: graph<N,E>", `edge_uniform %g {stream="s"} : f32[E]`, []Val{small()}, [][]float64{{0.1, 0.2, 0.2}}},
		{"%p: f32[3,2], %i: i64[2,2]", "pair_dot %p, %i : f32[2]", []Val{h, matrix(2, 0, 2, 1, 2)}, [][]float64{{11, 61}}},
		{"%p: f32[3,2], %i: i64[2,2], %q: f32[3,2]", "pair_dot %p, %i, %q : f32[2]", []Val{h, matrix(2, 0, 2, 1, 2), matrix(3, 0, 0, 1, 10, 2, 20)}, [][]float64{{21, 130}}},
		{"%v: f32[3], %i: i64[2,2]", `pair_gather %v, %i {end="first"} : f32[2]`, []Val{vector(7, 8, 9), matrix(2, 0, 2, 1, 2)}, [][]float64{{7, 9}}},
		{"%v: f32[3], %i: i64[2,2]", `pair_gather %v, %i {end="second"} : f32[2]`, []Val{vector(7, 8, 9), matrix(2, 0, 2, 1, 2)}, [][]float64{{8, 9}}},
		{"%g: graph<N,E>", "edge_pairs %g : i64[2,E]", []Val{small()}, [][]float64{{0, 0, 2, 1, 2, 0}}},
		// 0 and 1 share 2, which enters 0 twice, and 3. What the two are to each other and to themselves does not count.
		{"%g: graph<N,E>, %a: f32[E], %v: f32[N], %i: i64[2,3]", "common_neighbors %g, %a, %v, %i : f32[3]",
			[]Val{{G: shared}, vector(9, 9, 2, 3, 5, 9, 7, 11), vector(1, 1, 10, 100), matrix(2, 0, 0, 3, 1, 0, 0)}, [][]float64{{5*7*10 + 5*11*100, 25*10 + 25*100 + 81, 0}}},
		{"%g: graph<N,E>, %v: f32[N], %i: i64[2,1]", "common_neighbors %g, _, %v, %i : f32[1]", []Val{{G: shared}, vector(1, 1, 10, 100), matrix(2, 1, 0)}, [][]float64{{2*10 + 100}}},
		{"%g: graph<N,E>, %a: f32[E], %x: f32[N,1], %i: i64[2,1]", "neighbor_kernel %g, %a, %x, %i {tau=0.5, most=5} : f32[1]", []Val{{G: shared}, vector(9, 9, 2, 3, 5, 9, 7, 11), matrix(4, 1, 1, 1+ln3/2, 1), matrix(2, 0, 1)}, [][]float64{{7*3 + 11 + (2+3)*3 + 5}}},
		// Of five entries the first and the third, of three the first and the second.
		{"%g: graph<N,E>, %x: f32[N,1], %i: i64[2,1]", "neighbor_kernel %g, _, %x, %i {tau=0.5, most=2} : f32[1]", []Val{{G: shared}, matrix(4, 1, 1, 1+ln3/2, 1), matrix(2, 0, 1)}, [][]float64{{3 + 3}}},

		{"%p: f32[2,1], %q: f32[2,1]", "pairwise_mean %p, %q {tau=2} : f32[2], f32[2], f32[2,1]", []Val{matrix(2, 0, 1), matrix(2, 0, 3)}, [][]float64{{-4.5, -0.5}, {0, 4}, {3, 0}}},
		{"%p: f32[2,1], %q: f32[2,1], %m: f32[2,1], %r: f32[2], %d: f32[2]", "pairwise_mean_grad %p, %q, %m, %r, %d {tau=2} : f32[2,1]", []Val{matrix(2, 0, 1), matrix(2, 0, 3), matrix(2, 3, 0), vector(1, 2), vector(5, 1)}, [][]float64{{3, -6}}},
		{"%p: f32[2,1]", "pairwise_self %p {tau=2} : f32[2]", []Val{matrix(2, 1, 4)}, [][]float64{{-4.5, -4.5}}},
		{"%p: f32[2,1], %r: f32[2], %d: f32[2]", "pairwise_self_grad %p, %r, %d {tau=2} : f32[2,1]", []Val{matrix(2, 1, 4), vector(-4.5, -4.5), vector(1, 2)}, [][]float64{{9, -9}}},
		{"%p: f32[2,1], %q: f32[2,1]", "pairwise_reduce %p, %q {tau=2} : f32[2], f32[2], f32[2], f32[]", []Val{matrix(2, 0, 1), matrix(2, 0, 3)}, [][]float64{{-4.5, -0.5}, {-0.5, -4.5}, {0, 4}, {82}}},
		{"%x: f32[2,2], %l: i64[2]", "cross_entropy %x, %l : f32[]", []Val{matrix(2, 0, ln3, 0, ln3), vector(1, 0)}, [][]float64{{-(math.Log(0.75) + math.Log(0.25)) / 2}}},
		{"%x: f32[0,2], %l: i64[0]", "cross_entropy %x, %l : f32[]", []Val{matrix(0).resize(0, 2), vector()}, [][]float64{{0}}},
		{"%x: f32[2,2], %l: i64[2], %d: f32[]", "cross_entropy_grad %x, %l, %d : f32[2,2]", []Val{matrix(2, 0, ln3, 0, ln3), vector(1, 0), scalar(4)}, [][]float64{{0.5, -0.5, -1.5, 1.5}}},

		{"%x: f32[1,2], %w: f32[2,1], %b: f32[1]", `gnn.linear %x, %w, %b {act="relu"} : f32[1,1]`, []Val{matrix(1, 1, 2), matrix(2, 3, 4), vector(-20)}, [][]float64{{0}}},
		{"%g: graph<N,E>", "gnn.sym_norm %g : f32[E], f32[N]", []Val{small()}, [][]float64{{1 / root3, 1 / root6, 1 / root6}, {1. / 3, 1, 0.5}}},
		{"%g: graph<N,E>, %w: f32[E]", "gnn.sym_norm %g, %w : f32[E], f32[N]", []Val{small(), vector(2, 3, 5)}, [][]float64{{2 / root6, 0.5, 5. / 6}, {1. / 6, 1, 1. / 6}}},
		{"%g: graph<N,E>, %x: f32[N,1], %w: f32[1,1], %b: f32[1]", `gnn.gcn_conv %g, _, %x, %w, %b {act="relu"} : f32[N,1]`, []Val{small(), matrix(3, 1, 2, 3), matrix(1, 2), vector(-2)},
			[][]float64{{4/root3 + 6/root6 + 2./3 - 2, 2, 2/root6 + 3 - 2}}},
		{"%g: graph<N,E>, %x: f32[N,1], %w: f32[1,2]", "gnn.sage_conv %g, _, %x, %w : f32[N,1]", []Val{small(), matrix(3, 1, 2, 3), matrix(1, 1, 10)}, [][]float64{{26, 2, 13}}},
		{"%g: graph<N,E>, %w: f32[E], %x: f32[N,1], %v: f32[1,1], %b: f32[1]", `gnn.gin_conv %g, %w, %x, %v, %b {eps=0.5} : f32[N,1]`, []Val{small(), vector(2, 3, 5), matrix(3, 1, 2, 3), matrix(1, 10), vector(1)},
			[][]float64{{10*(1.5+2*2+3*3) + 1, 31, 10*(4.5+5) + 1}}},
		{"%g: graph<N,E>, %x: f32[N,1], %w: f32[1,1], %a: f32[1], %b: f32[1]", "gnn.gat_conv %g, _, %x, %w, %a, %b : f32[N,1]", []Val{small(), matrix(3, 0, math.Ln2, 0), matrix(1, 1), vector(1), vector(0)}, [][]float64{{math.Ln2 / 2, math.Ln2, 0}}},
		{"%g: graph<N,E>, %u: f32[E], %x: f32[N,1], %w: f32[1,2], %a: f32[2], %b: f32[2], %c: f32[1]", `gnn.gat_conv %g, %u, %x, %w, %a, %b, %c {combine="mean", heads=2} : f32[N,1]`,
			[]Val{small(), vector(3, 1, 1), matrix(3, 0, math.Ln2, 0), matrix(1, 1, -1), vector(1, -5), vector(0, 0), vector(7)}, [][]float64{{7 + math.Ln2*(0.75-96./98)/2, 7, 7}}},

		{"%b: graph<G,N,N>, %h: f32[N,2]", "gnn.readout %b, %h : f32[G,2]", []Val{joined(), h}, [][]float64{{4, 6, 0, 0, 5, 6}}},
		{"%b: graph<G,N,N>, %h: f32[N,2]", `gnn.readout %b, %h {mode="mean"} : f32[G,2]`, []Val{joined(), h}, [][]float64{{2, 3, 0, 0, 5, 6}}},
		{"%b: graph<G,N,N>, %h: f32[N,2]", `gnn.readout %b, %h {mode="max"} : f32[G,2]`, []Val{joined(), h}, [][]float64{{3, 4, 0, 0, 5, 6}}},

		{"%x: f32[2,2]", `gsr.gaussian_blur %x {sigma=0.5, stream="s"} : f32[2,2]`, []Val{matrix(2, 1, 1, 1, 1)}, [][]float64{{1, 1.5, 2, 2.5}}},
		{"%x: f32[2,3]", `gsr.mask_features %x {rate=0.3, stream="s"} : f32[2,3]`, []Val{m23}, [][]float64{{0, 0, 3, 0, 0, 6}}},
		{"%g: graph<N,E>", `gsr.drop_edges %g {rate=0.15, stream="s"} : f32[E]`, []Val{small()}, [][]float64{{0, 1, 1}}},
		{"%z: f32[2,1], %y: f32[2,1]", "gsr.energy %z, %y {tau=2} : f32[2]", []Val{matrix(2, 0, 1), matrix(2, 0, 3)}, [][]float64{{-math.Log(1 + math.Exp(-4.5)), -math.Log(math.Exp(-0.5) + math.Exp(-2))}}},
		{"%g: graph<N,E>, %h: f32[N,2], %o: f32[E]", "gsr.edge_probability %g, %h, %o : f32[E], f32[], f32[]", []Val{small(), matrix(3, 1, 0, 0, 1, 1, 1), vector(1, 0, 1)}, [][]float64{{0.5, 0.5, 0.9}, {0}, {half}}},
		// Bounds an ulp of float32 apart tell of nothing: all edges are the least similar of their kind.
		{"%g: graph<N,E>, %h: f32[N,2], %o: f32[E], %a: f32[], %b: f32[]", "gsr.edge_probability %g, %h, %o, %a, %b : f32[E], f32[], f32[]", []Val{small(), matrix(3, 1, 0, 1, 0, 1, 0), vector(1, 0, 1), scalar(1 - 0x1p-24), scalar(1)},
			[][]float64{{0.5 + 0.4*0x1p-24/1e-5, 0.1 + 0.4*0x1p-24/1e-5, 0.5 + 0.4*0x1p-24/1e-5}, {1 - 0x1p-24}, {1}}},
		{"%g: graph<N,E>, %h: f32[N,2], %o: f32[E], %a: f32[], %b: f32[]", "gsr.edge_probability %g, %h, %o, %a, %b {new_lo=0.25} : f32[E], f32[], f32[]", []Val{small(), matrix(3, 1, 0, 0, 1, 1, 1), vector(1, 0, 1), scalar(0), scalar(1)},
			[][]float64{{0.5, 0.25 + 0.25*half, 0.5 + 0.4*half}, {0}, {1}}},
		{"%h: f32[3,2], %p: i64[2,2], %a: f32[], %b: f32[]", "gsr.pair_probability %h, %p, %a, %b : f32[2], f32[2], f32[2]", []Val{matrix(3, 1, 0, 0, 1, 1, 1), matrix(2, 0, 0, 2, 1), scalar(0.2), scalar(0.5)},
			[][]float64{{half, 0}, {0.5, 0.1}, {0.9, 0.5}}},
		// u is 0.1, 0.2, 0.2: a one where p·u > (1−p)(1−u).
		{"%g: graph<N,E>, %p: f32[E]", `gsr.relaxed_bernoulli %g, %p {stream="s"} : f32[E]`, []Val{small(), vector(0.89, 0.81, 0.79)}, [][]float64{{0, 1, 0}}},
		{"%a: f32[1,2], %b: f32[1,2]", "gsr.consistency %a, %b : f32[]", []Val{matrix(1, 0, ln3), matrix(1, ln3, 0)}, [][]float64{{0.125}}},
		{"%a: f32[1,2]", "gsr.consistency %a {temperature=0.5} : f32[]", []Val{matrix(1, 0, ln3)}, [][]float64{{0.045}}},
		{"%a: f32[2,2]", "gsr.consistency %a {confidence=0.6, temperature=0.5} : f32[]", []Val{matrix(2, 0, ln3, 0.1, 0)}, [][]float64{{0.0225}}},
		{"%p: f32[3]", "gsr.refine %p : f32[3]", []Val{vector(0.4, 0.5, 0.6)}, [][]float64{{0.4, 0.5, 0.6}}},
		{"%p: f32[3]", `gsr.refine %p {mode="threshold"} : f32[3]`, []Val{vector(0.4, 0.5, 0.6)}, [][]float64{{0, 1, 1}}},
	} {
		t.Run(c.op[:strings.IndexAny(c.op, " ")], func(t *testing.T) {
			var names, results []string
			types := strings.Split(c.op[strings.LastIndex(c.op, " : ")+3:], ", ")
			for i, ty := range types {
				names = append(names, fmt.Sprintf("%%y%d", i))
				results = append(results, fmt.Sprintf("y%d: %s", i, ty))
			}
			list := strings.Join(names, ", ")
			out := run(t, "module @m func @f("+c.args+") -> ("+strings.Join(results, ", ")+") {\n"+list+" = "+c.op+"\nreturn "+list+"\n}", c.in, nil)
			for i, want := range c.want {
				if got := out[i].T.Data; !slices.EqualFunc(got, want, func(a, b float64) bool { return near(a, b, 1e-14) }) {
					t.Errorf("%s:\n got %v\nwant %v", c.op, got, want)
				}
			}
		})
	}
}

// resize gives an empty tensor its shape.
func (v Val) resize(shape ...int) Val { v.T.Shape = shape; return v }

// run parses a module and interprets its function @f.
func run(t *testing.T, src string, args []Val, params map[string]*Tensor) []Val {
	t.Helper()
	m, err := Parse("", src)
	if err != nil {
		t.Fatalf("%v\n%s", err, src)
	}
	out, err := Interpret(m, "f", args, params, plainRandom{})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestECLLoss holds gsr.ecl_loss against Eq 13, 15 and 17, written down again
// as sums of exponentials over three samples.
func TestECLLoss(t *testing.T) {
	const n, tau, alpha, beta = 3, 0.8, 0.3, 0.05
	z := [n][2]float64{{0.1, 0.2}, {0.9, -0.3}, {-0.4, 0.5}}
	zp := [n][2]float64{{0.15, 0.1}, {1.1, -0.2}, {-0.2, 0.7}}
	zs := [n][2]float64{{0.3, 0.3}, {0.7, 0.1}, {-0.6, 0.2}}
	e := func(a, b [2]float64) float64 { // E(ν, ν′), Proposition 1
		return (math.Pow(a[0]-b[0], 2) + math.Pow(a[1]-b[1], 2)) / tau
	}
	marginal := func(a [2]float64) float64 { // E(ν), Theorem 1
		return -math.Log(math.Exp(-e(a, zp[0])) + math.Exp(-e(a, zp[1])) + math.Exp(-e(a, zp[2])))
	}
	type options struct {
		positive, paper, sampled bool
	}
	direct := func(o options) (disc, gen, reg float64) {
		for i := range n {
			// Eq 15: the two views of sample i against the other samples' views.
			for _, view := range [][2][n][2]float64{{z, zp}, {zp, z}} {
				own, other := view[0], view[1]
				p := math.Exp(-e(own[i], other[i]))
				negatives := 0.0
				for m := range n {
					if m != i {
						negatives += math.Exp(-e(own[i], other[m])) + math.Exp(-e(own[i], own[m]))
					}
				}
				if o.positive {
					negatives += p
				}
				disc -= math.Log(p/(negatives/(2*n))) / (2 * n)
			}
			if o.sampled {
				gen += (marginal(z[i]) - marginal(zs[i])) / n
			}
			for m := range n {
				switch {
				case m == i:
				case o.paper:
					reg += math.Pow(e(z[i], zp[m]), 2) / (2 * n)
				default:
					reg += math.Pow(tau*e(z[i], zp[m]), 2) / (n * (n - 1))
				}
			}
		}
		return disc, gen, reg
	}
	flat := func(x [n][2]float64) Val { return matrix(n, x[0][0], x[0][1], x[1][0], x[1][1], x[2][0], x[2][1]) }
	for _, o := range []options{{}, {sampled: true}, {positive: true}, {paper: true, sampled: true}} {
		for _, discriminative := range []bool{true, false} {
			attrs := fmt.Sprintf("{tau=%v, alpha=%v, beta=%v, positive=%v, discriminative=%v", tau, alpha, beta, o.positive, discriminative)
			if o.paper {
				attrs += `, reg="paper"`
			}
			zstar := "_"
			if o.sampled {
				zstar = "%zs"
			}
			out := run(t, `module @m func @f(%z: f32[N,2], %zp: f32[N,2], %zs: f32[N,2]) -> (l: f32[], d: f32[], g: f32[], r: f32[]) {
				%l, %d, %g, %r = gsr.ecl_loss %z, %zp, `+zstar+attrs+`} : f32[], f32[], f32[], f32[]
				return %l, %d, %g, %r
			}`, []Val{flat(z), flat(zp), flat(zs)}, nil)
			disc, gen, reg := direct(o)
			want := []float64{alpha*gen + beta*reg, disc, gen, reg}
			if discriminative {
				want[0] += disc
			}
			for i, name := range []string{"loss", "disc", "gen", "reg"} {
				if got := out[i].T.Data[0]; !near(got, want[i], 1e-13) {
					t.Errorf("%+v, discriminative %v: %s is %.15g, directly %.15g", o, discriminative, name, got, want[i])
				}
			}
		}
	}
}

// TestSGLD samples from E(ν) = ½Σ(ν − t)², whose gradient is ν − t (Eq 3).
func TestSGLD(t *testing.T) {
	const step, noise, steps = 0.4, 0.01, 3
	src := `module @m
		func @energy(%nu: f32[N,2], %t: f32[N,2]) -> (e: f32[]) {
			%d = sub %nu, %t : f32[N,2]
			%sq = square %d : f32[N,2]
			%sum = reduce_sum %sq {axis="all"} : f32[]
			%c = fill {value=0.5} : f32[]
			%e = mul %c, %sum : f32[]
			return %e
		}
		func @f(%nu: f32[N,2], %t: f32[N,2]) -> (y: f32[N,2]) {
			%y = gsr.sgld_sample %nu, %t {energy=@energy, steps=3, step=0.4, noise=0.01, clip=CLIP, stream="s"} : f32[N,2]
			return %y
		}`
	target := []float64{0, 1, -1, 2}
	for _, clip := range []float64{0, 0.7} {
		start := matrix(2, 1, 1, 1, 1)
		out := run(t, strings.Replace(src, "CLIP", fmt.Sprint(clip), 1), []Val{start, matrix(2, target...)}, nil)
		nu := []float64{1, 1, 1, 1}
		for range steps {
			for row := range 2 {
				g := []float64{nu[2*row] - target[2*row], nu[2*row+1] - target[2*row+1]}
				if norm := math.Hypot(g[0], g[1]); clip > 0 && norm > clip {
					g[0], g[1] = g[0]*clip/norm, g[1]*clip/norm
				}
				for k := range g {
					nu[2*row+k] += -step/2*g[k] + noise*float64(2*row+k)
				}
			}
		}
		for i, want := range nu {
			if got := out[0].T.Data[i]; !near(got, want, 1e-10) {
				t.Errorf("clip %v, element %d: %.12g, want %.12g", clip, i, got, want)
			}
		}
		if start.T.Data[0] != 1 {
			t.Error("the start was changed")
		}
	}
}

// TestGrad holds what the grad operation differentiates, and what it does not:
// stopped and scaled values, and gradients themselves.
func TestGrad(t *testing.T) {
	x := []float64{1.5, -0.5}
	for _, c := range []struct {
		name, body string
		want       []float64 // by %x
	}{
		{"cube", "%a = mul %x, %x : f64[2]\n%b = mul %a, %x : f64[2]", []float64{3 * 1.5 * 1.5, 3 * 0.25}},
		{"stopped", "%s = stop_gradient %x : f64[2]\n%b = mul %s, %x : f64[2]", x},
		{"stopped within", "%q = square %x : f64[2]\n%s = stop_gradient %q : f64[2]\n%b = mul %s, %x : f64[2]", []float64{2.25, 0.25}},
		{"scaled", "%s = scale_grad %x {factor=0.5} : f64[2]\n%b = square %s : f64[2]", x},
		{"parameter", "%b = mul %x, $w : f64[2]", []float64{3, 5}},
		{"gradient", "%q = square %x : f64[2]\n%e = reduce_sum %q {axis=\"all\"} : f64[]\n%g = grad %e, %x : f64[2]\n%b = mul %g, %x : f64[2]", []float64{6, -2}},
		{"gradient with a stopped value", "%s = stop_gradient %x : f64[2]\n%q = square %x : f64[2]\n%p = mul %q, %s : f64[2]\n%e = reduce_sum %p {axis=\"all\"} : f64[]\n%g = grad %e, %x : f64[2]\n%b = mul %g, %x : f64[2]", []float64{9, 1}},
		{"stopped gradient", "%q = square %x : f64[2]\n%e = reduce_sum %q {axis=\"all\"} : f64[]\n%g = grad %e, %x : f64[2]\n%s = stop_gradient %g : f64[2]\n%b = mul %s, %x : f64[2]", []float64{3, -1}},
		{"gradient with a scaled value", "%s = scale_grad %x {factor=0.3} : f64[2]\n%p = mul %s, %x : f64[2]\n%e = reduce_sum %p {axis=\"all\"} : f64[]\n%b = grad %e, %x : f64[2]", []float64{0.6, 0.6}},
		{"independent", "%b = square $w : f64[2]", []float64{0, 0}},
	} {
		out := run(t, "module @m param $w: f64[2] func @f(%x: f64[2]) -> (d: f64[2]) {\n"+c.body+`
			%y = reduce_sum %b {axis="all"} : f64[]
			%d = grad %y, %x : f64[2]
			return %d
		}`, []Val{vector(x...)}, map[string]*Tensor{"w": vector(3, 5).T})
		for i, want := range c.want {
			if got := out[0].T.Data[i]; !near(got, want, 1e-7) {
				t.Errorf("%s: element %d is %.10g, want %.10g", c.name, i, got, want)
			}
		}
	}
	// By a parameter and by a value in between.
	out := run(t, `module @m param $w: f64[2] func @f(%x: f64[2]) -> (dw: f64[2], da: f64[2]) {
		%a = mul %x, $w : f64[2]
		%b = square %a : f64[2]
		%y = reduce_sum %b {axis="all"} : f64[]
		%dw, %da = grad %y, $w, %a : f64[2], f64[2]
		return %dw, %da
	}`, []Val{vector(x...)}, map[string]*Tensor{"w": vector(3, 5).T})
	for i, want := range []float64{2 * 3 * 1.5 * 1.5, 2 * 5 * 0.25, 2 * 4.5, 2 * -2.5} {
		if got := out[i/2].T.Data[i%2]; !near(got, want, 1e-9) {
			t.Errorf("element %d: %.10g, want %.10g", i, got, want)
		}
	}
}

// TestGradOfGSR holds what a gradient through an operation of the paper's level
// stops: the bounds of Eq 18, the target of the consistency term, and the hard
// sample of the relaxed Bernoulli.
func TestGradOfGSR(t *testing.T) {
	grad := func(args, op string, in ...Val) []float64 {
		return run(t, "module @m func @f("+args+") -> (d: f32[3]) {\n"+op+`
			%y = reduce_sum %b {axis="all"} : f32[]
			%d = grad %y, %p : f32[3]
			return %d
		}`, in, nil)[0].T.Data
	}
	// Straight through: dw/dp is that of s = sigmoid((logit p + logit u)/T).
	p, u := []float64{0.3, 0.9, 0.6}, []float64{0.1, 0.2, 0.2}
	got := grad("%p: f32[3], %g: graph<N,3>", `%b = gsr.relaxed_bernoulli %g, %p {stream="s", temperature=2} : f32[3]`, vector(p...), small())
	for i := range p {
		logit := func(x float64) float64 { return math.Log(x / (1 - x)) }
		s := fmath.Sigmoid((logit(p[i]) + logit(u[i])) / 2)
		if want := s * (1 - s) / 2 / (p[i] * (1 - p[i])); !near(got[i], want, 1e-8) {
			t.Errorf("relaxed_bernoulli: element %d is %.10g, want %.10g", i, got[i], want)
		}
	}

	// One sample: q is stopped, so the gradient is that of Σ(p − q)² at fixed q.
	logits := []float64{0.2, -0.4, 0.9}
	dc := run(t, `module @m func @f(%x: f32[1,3]) -> (d: f32[1,3]) {
		%y = gsr.consistency %x {temperature=0.5} : f32[]
		%d = grad %y, %x : f32[1,3]
		return %d
	}`, []Val{matrix(1, logits...)}, nil)[0].T.Data
	ps, q := make([]float64, 3), make([]float64, 3)
	softmaxRow(ps, logits)
	for i := range q {
		q[i] = ps[i] * ps[i] / (ps[0]*ps[0] + ps[1]*ps[1] + ps[2]*ps[2])
	}
	for j := range dc {
		want := 0.0
		for i := range ps {
			dp := -ps[i] * ps[j]
			if i == j {
				dp += ps[i]
			}
			want += 2 * (ps[i] - q[i]) * dp
		}
		if !near(dc[j], want, 1e-9) {
			t.Errorf("consistency: element %d is %.10g, want %.10g", j, dc[j], want)
		}
	}

	// Eq 18 with its bounds stopped has the gradient of Eq 18 with the same
	// bounds given.
	h := matrix(3, 1, 0.2, -0.3, 1, 0.8, 0.9)
	src := `module @m func @f(%h: f32[N,2], %g: graph<N,E>, %o: f32[E], %lo: f32[], %hi: f32[]) -> (d: f32[N,2], lo: f32[], hi: f32[]) {
		%p, %l, %u = gsr.edge_probability %g, %h, %o BOUNDS : f32[E], f32[], f32[]
		%q = square %p : f32[E]
		%y = reduce_sum %q {axis="all"} : f32[]
		%d = grad %y, %h : f32[N,2]
		return %d, %l, %u
	}`
	in := []Val{h, {G: &Graph{N: 3, Row: []int{0, 0, 1, 1, 2, 2}, Col: []int{1, 2, 0, 2, 0, 1}}}, vector(1, 0, 1, 1, 0, 1), scalar(0), scalar(0)}
	own := run(t, strings.Replace(src, "BOUNDS", "", 1), in, nil)
	in[3], in[4] = Val{T: own[1].T}, Val{T: own[2].T}
	given := run(t, strings.Replace(src, "BOUNDS", ", %lo, %hi", 1), in, nil)
	if slices.Max(given[0].T.Data) < 1e-3 {
		t.Errorf("edge_probability: there is no gradient: %v", given[0].T.Data)
	}
	if !slices.Equal(own[0].T.Data, given[0].T.Data) {
		t.Errorf("edge_probability: the gradient is %v, with its bounds given %v", own[0].T.Data, given[0].T.Data)
	}
}

// TestInterpretErrors holds what is refused, and that the message says where.
func TestInterpretErrors(t *testing.T) {
	m, err := Parse("", `module @m
		param $w: f32[3,2]
		func @f(%x: f32[N,3], %g: graph<N,E>, %a: f32[E]) -> (y: f32[N,2]) {
			%h = matmul %x, $w : f32[N,2]
			%y = spmm %g, %a, _, %h : f32[N,2]
			return %y
		}
		func @labels(%x: f32[N,2], %l: i64[N]) -> (y: f32[]) {
			%y = cross_entropy %x, %l : f32[]
			return %y
		}
		func @labels_grad(%x: f32[N,2], %l: i64[N], %d: f32[]) -> (y: f32[N,2]) {
			%y = cross_entropy_grad %x, %l, %d : f32[N,2]
			return %y
		}
		func @gather(%x: f32[N,2], %i: i64[B]) -> (y: f32[B,2]) {
			%y = gather %x, %i : f32[B,2]
			return %y
		}
		func @scatter(%x: f32[N], %i: i64[N]) -> (y: f32[2]) {
			%y = scatter_add %x, %i : f32[2]
			return %y
		}
		func @pairs(%x: f32[N,2], %i: i64[2,P], %c: f32[]) -> (y: f32[P], s: f32[P]) {
			%y = pair_dot %x, %i : f32[P]
			%s, %n, %o = gsr.pair_probability %x, %i, %c, %c : f32[P], f32[P], f32[P]
			return %y, %s
		}
		func @ends(%v: f32[N], %i: i64[2,P]) -> (y: f32[P]) {
			%y = pair_gather %v, %i {end="second"} : f32[P]
			return %y
		}
		func @common(%g: graph<N,E>, %v: f32[N], %i: i64[2,P]) -> (y: f32[P]) {
			%y = common_neighbors %g, _, %v, %i : f32[P]
			return %y
		}
		func @pairs2(%x: f32[N,2], %i: i64[2,P], %c: f32[]) -> (s: f32[P]) {
			%s, %n, %o = gsr.pair_probability %x, %i, %c, %c : f32[P], f32[P], f32[P]
			return %s
		}
		func @random() -> (y: f32[2]) {
			%y = normal {stream="s"} : f32[2]
			return %y
		}
		func @huge() -> (y: f32[]) {
			%c = fill {value=1} : f32[2000000000,2000000000]
			%y = reduce_sum %c {axis="all"} : f32[]
			return %y
		}
		func @sum(%x: f32[N+E], %a: f32[N], %b: f32[E]) -> (y: f32[N+E]) {
			return %x
		}
		func @parameter() -> (w: f32[3,2]) {
			return $w
		}
		func @energy(%nu: f32[N,2], %i: i64[N]) -> (e: f32[]) {
			%r = gather %nu, %i : f32[N,2]
			%e = reduce_sum %r {axis="all"} : f32[]
			return %e
		}
		func @sample(%nu: f32[N,2], %i: i64[N]) -> (y: f32[N,2]) {
			%y = gsr.sgld_sample %nu, %i {energy=@energy, step=1, noise=0, stream="s"} : f32[N,2]
			return %y
		}
		func @overflow(%x: f32[N]) -> (y: f32[N+N]) {
			%y = fill {value=0} : f32[N+N]
			return %y
		}`)
	if err != nil {
		t.Fatal(err)
	}
	w := map[string]*Tensor{"w": NewTensor(3, 2)}
	x, a := matrix(3, make([]float64, 9)...), vector(1, 1, 1)
	broken := func(row, col []int) Val { return Val{G: &Graph{N: 3, Row: row, Col: col}} }
	pairs := func(v float64) []Val { return []Val{matrix(1, 1, 1), matrix(2, 0, v), scalar(0)} }
	for _, c := range []struct {
		fn     string
		args   []Val
		params map[string]*Tensor
		want   string
	}{
		{"g", nil, nil, "module m has no function @g"},
		{"f", []Val{x}, w, "@f takes 3 arguments, got 1"},
		{"f", []Val{x, small(), a}, nil, "@f: matmul: $w has no value; give it in params"},
		{"f", []Val{x, small(), a}, map[string]*Tensor{"w": NewTensor(2, 2)}, "parameter w is f32[3,2] with 3 = 3, got shape [2 2]"},
		{"f", []Val{x, small(), a}, map[string]*Tensor{"w": nil}, "parameter w is a tensor, got a graph or nothing"},
		{"f", []Val{vector(1, 2, 3), small(), a}, w, "@f: argument x is f32[N,3], got shape [3]"},
		{"f", []Val{matrix(3, 1, 2, 3, 4, 5, 6), small(), a}, w, "@f: argument x is f32[N,3] with 3 = 3, got shape [3 2]"},
		{"f", []Val{matrix(2, 1, 2, 3, 4, 5, 6), small(), a}, w, "@f: argument g is graph<N,E> with N = 2, got shape [3 3]"},
		{"f", []Val{x, small(), vector(1)}, w, "@f: argument a is f32[E] with E = 3, got shape [1]"},
		{"f", []Val{x, x, a}, w, "@f: argument g is a graph, got a tensor"},
		{"f", []Val{small(), small(), a}, w, "@f: argument x is a tensor, got a graph or nothing"},
		{"f", []Val{tensor([]int{3, 3}, 1), small(), a}, w, "@f: argument x has shape [3 3], but 1 elements"},
		{"f", []Val{tensor([]int{-1, -1}, 1), small(), a}, w, "@f: argument x has shape [-1 -1], but 1 elements"},
		{"f", []Val{x, broken([]int{0, 1}, []int{1}), a}, w, "@f: argument g: graph has 2 targets and 1 sources"},
		{"f", []Val{x, broken([]int{0, 3}, []int{1, 0}), a}, w, "graph entry 1 is (3, 0), outside 0..2"},
		{"f", []Val{x, broken([]int{0, -1}, []int{1, 0}), a}, w, "graph entry 1 is (-1, 0), outside 0..2"},
		{"f", []Val{x, broken([]int{1, 0}, []int{0, 1}), a}, w, "graph entry 1 is out of order"},
		{"f", []Val{x, broken([]int{0, 0}, []int{2, 1}), a}, w, "graph entry 1 is out of order"},
		{"labels", []Val{matrix(1, 0, 0), vector(2)}, nil, "@labels: cross_entropy: label 2 of row 0 is outside 0..1"},
		{"labels_grad", []Val{matrix(1, 0, 0), vector(-1), scalar(1)}, nil, "cross_entropy_grad: label -1 of row 0 is outside 0..1"},
		{"gather", []Val{matrix(1, 0, 0), vector(0, 1)}, nil, "@gather: gather: index 1 at position 1 is outside 0..0"},
		{"scatter", []Val{vector(1, 2), vector(0, 2)}, nil, "@scatter: scatter_add: index 2 at position 1 is outside 0..1"},
		{"pairs", pairs(1), nil, "@pairs: pair_dot: pair 0 is (0, 1), outside 0..0"},
		{"ends", []Val{vector(1), matrix(2, 0, 1)}, nil, "@ends: pair_gather: pair 0 is (0, 1), outside 0..0"},
		{"common", []Val{small(), vector(1, 1, 1), matrix(2, -1, 1)}, nil, "@common: common_neighbors: pair 0 is (-1, 1), outside 0..2"},
		{"pairs2", pairs(-1), nil, "@pairs2: gsr.pair_probability: pair 0 is (0, -1), outside 0..0"},
		{"random", nil, nil, "@random: normal: the operation is random, but no random source was given"},
		{"huge", nil, nil, "@huge: fill: a result of shape [2000000000 2000000000] is too large to interpret"},
		{"sum", []Val{vector(1, 2), vector(1), vector(1, 2)}, nil, "@sum: argument x is f32[N+E] with N+E = 3, got shape [2]"},
		{"parameter", nil, nil, "@parameter: result w: $w has no value; give it in params"},
	} {
		_, err := Interpret(m, c.fn, c.args, c.params, nil)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("@%s: got %v, want %q", c.fn, err, c.want)
		}
	}
	if _, err := Interpret(m, "sample", []Val{matrix(1, 0, 0), vector(5)}, nil, plainRandom{}); err == nil || !strings.Contains(err.Error(), "@sample: @energy: gather: index 5") {
		t.Errorf("an error within the energy function: %v", err)
	}
	if out, err := Interpret(m, "sum", []Val{vector(1, 2, 3), vector(1), vector(1, 2)}, nil, nil); err != nil || len(out[0].T.Data) != 3 {
		t.Errorf("a sum of symbols that fits: %v, %v", out, err)
	}
}

// TestReceptiveField checks block, sources and entries of a small graph, by hand.
func TestReceptiveField(t *testing.T) {
	src := `module @m
func @f(%g: graph<N,E>, %t: i64[B], %x: f32[N,1]) -> (y: f32[B,1], s: i64[s], e: i64[e], back: f32[s,1]) {
  %b, %s, %e = sample_block %g, %t : graph<B,e,s>, i64[s], i64[e]
  %h = gather %x, %s : f32[s,1]
  %y = spmm %b, _, _, %h : f32[B,1]
  %back = spmm %b, _, _, %y {transpose=true} : f32[s,1]
  return %y, %s, %e, %back
}`
	g := Val{G: &Graph{N: 4, Row: []int{0, 0, 1, 3}, Col: []int{1, 3, 2, 0}}}
	out := run(t, src, []Val{g, vector(3, 0, 3), matrix(4, 1, 10, 100, 1000)}, nil)
	for i, want := range [][]float64{{1, 1010, 1}, {3, 0, 3, 1}, {3, 0, 1, 3}, {1010, 2, 0, 1010}} {
		if !slices.Equal(out[i].T.Data, want) {
			t.Errorf("result %d is %v, want %v", i, out[i].T.Data, want)
		}
	}
	m, err := Parse("f", src)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Interpret(m, "f", []Val{g, vector(4), matrix(4, 1, 1, 1, 1)}, nil, nil); err == nil || !strings.Contains(err.Error(), "target 4 at position 0 is outside 0..3") {
		t.Errorf("a target outside the graph: %v", err)
	}
}
