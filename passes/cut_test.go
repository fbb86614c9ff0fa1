package passes_test

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/gsrc-dev/gsrc/compiler"
	"github.com/gsrc-dev/gsrc/ir"
	"github.com/gsrc-dev/gsrc/models"
	"github.com/gsrc-dev/gsrc/passes"
)

// Every encoder and classifier of the zoo that can be cut gives the nodes of two partitions
// what it gives them as a whole, when only rows of sources are exchanged.
func TestCut(t *testing.T) {
	const n = 9
	r := rand.New(rand.NewPCG(1, 2))
	g := &ir.Graph{N: n}
	for i := range n {
		for j := range n {
			if i != j && (i+j)%3 == 0 || i == 4 && j == 5 {
				g.Row, g.Col = append(g.Row, i), append(g.Col, j)
			}
		}
	}
	random := func(shape []int) *ir.Tensor {
		x := ir.NewTensor(shape...)
		for i := range x.Data {
			x.Data[i] = r.Float64() + 0.1
		}
		return x
	}
	cuts := 0
	for _, model := range models.All {
		for kind, o := range variants(model) {
			if o.StructWidth, o.Edges.Judge = 0, models.JudgeEmbedding; kind != "struct and blur" && model.Name != "ecl-gsr" || model.Build == nil {
				continue
			}
			m := model.Build(o)
			for _, name := range []string{"encode", "classify"} {
				if m.Func(name) == nil {
					continue
				}
				prog, err := compiler.Compile(m, compiler.Options{Target: compiler.Inference, Funcs: []string{name}})
				if err != nil {
					t.Fatal(err)
				}
				p, err := passes.Cut(prog.Module, name)
				if err != nil {
					t.Errorf("%s, %s: %v", model.Name, kind, err)
					continue
				}
				cuts++
				f := prog.Module.Func(name)
				bind := map[string]int{"N": n, "E": len(g.Row), "M": len(g.Row)}
				in, ps := map[string]ir.Val{}, map[string]*ir.Tensor{}
				for _, a := range f.Args {
					if a.Type.IsGraph() {
						in[a.Name] = ir.Val{G: g}
						continue
					}
					shape, err := a.Type.Shape(bind)
					if err != nil {
						t.Fatal(err)
					}
					in[a.Name] = ir.Val{T: random(shape)}
				}
				for _, v := range prog.Module.Params {
					shape, err := v.Type.Shape(nil)
					if err != nil {
						t.Fatal(err)
					}
					ps[v.Name] = random(shape)
				}
				want := interpret(t, prog.Module, f, in, ps, source{})
				got := runParts(t, p, f, g, in, ps, [][]int{{1, 4, 6}, {0, 2, 3, 5, 7, 8}})
				for result, w := range want {
					compare(t, model.Name+", "+kind+", @"+name+" "+result, got[p.Results[result]], w.T, 1e-12)
				}
			}
		}
	}
	if cuts < 15 {
		t.Errorf("only %d functions could be cut", cuts)
	}
}

// runParts runs the parts on the nodes of each partition, and returns values by name for all nodes.
func runParts(t *testing.T, p *passes.Parts, f *ir.Func, g *ir.Graph, in map[string]ir.Val, ps map[string]*ir.Tensor, partitions [][]int) map[string]*ir.Tensor {
	t.Helper()
	values := map[string]*ir.Tensor{}
	byEntry := map[string]bool{}
	for name, v := range in {
		if v.T != nil {
			values[name] = v.T
			byEntry[name] = f.Arg(name).Type.Rank() > 0 && f.Arg(name).Type.Dims[0] != f.Args[0].Type.Dims[0] && f.Arg(name).Type.Dims[0] != "N"
		}
	}
	rows := func(x *ir.Tensor, list []int) *ir.Tensor {
		y := ir.NewTensor(append([]int{len(list)}, x.Shape[1:]...)...)
		w := len(x.Data) / x.Shape[0]
		for i, v := range list {
			copy(y.Data[i*w:(i+1)*w], x.Data[v*w:])
		}
		return y
	}
	for _, part := range p.List {
		fn := p.Module.Func(part.Func)
		made := map[string]*ir.Tensor{}
		if part.All {
			args := map[string]ir.Val{}
			for _, name := range slices.Concat(part.Own, part.Sums) {
				args[name] = ir.Val{T: values[name]}
			}
			for name, v := range interpret(t, p.Module, fn, args, ps, source{}) {
				values[name] = v.T
			}
			continue
		}
		for _, own := range partitions {
			block := &ir.Graph{N: len(own)}
			list := slices.Clone(own)
			var entries []int
			for i, v := range own {
				for e, target := range g.Row {
					if target != v {
						continue
					}
					at := slices.Index(list, g.Col[e])
					if at < 0 {
						at = len(list)
						list = append(list, g.Col[e])
					}
					block.Row, block.Col = append(block.Row, i), append(block.Col, at)
					entries = append(entries, e)
				}
			}
			block.Sources = len(list)
			args := map[string]ir.Val{}
			for _, a := range fn.Args {
				if a.Type.IsGraph() {
					args[a.Name] = ir.Val{G: block}
				} else if v := values[a.Name]; v != nil && (a.Type.Rank() == 0 || slices.Contains(part.Sums, a.Name)) {
					args[a.Name] = ir.Val{T: v}
				}
			}
			for _, name := range part.Own {
				which := own
				if byEntry[name] {
					which = entries
				}
				args[name] = ir.Val{T: rows(values[name], which)}
			}
			for _, name := range part.Sources {
				args[passes.SourcesOf(name)] = ir.Val{T: rows(values[name], list)}
			}
			for name, v := range interpret(t, p.Module, fn, args, ps, source{}) {
				which, all := own, g.N
				if fn.Result(name).Type.Dims[0] != "N" {
					which, all = entries, len(g.Row)
					byEntry[name] = true
				}
				if made[name] == nil {
					made[name] = ir.NewTensor(append([]int{all}, v.T.Shape[1:]...)...)
				}
				w := len(made[name].Data) / all
				for i, at := range which {
					copy(made[name].Data[at*w:(at+1)*w], v.T.Data[i*w:(i+1)*w])
				}
			}
		}
		for name, x := range made {
			values[name] = x
		}
	}
	return values
}

// A function that reads sums over all nodes is cut around them, which those that lie apart cannot compute.
func TestCutAroundSums(t *testing.T) {
	m, err := ir.Parse("sums", `module @m

func @f(%x: f32[N,2], %g: graph<N,E>, %w: f32[E]) -> (y: f32[N,2], s: f32[2,2], z: f32[2,2]) {
  %z = matmul %x, %x {ta=true} : f32[2,2]
  %h = spmm %g, %w, _, %x : f32[N,2]
  %gram = matmul %h, %h {ta=true} : f32[2,2]
  %twice = add %gram, %z : f32[2,2]
  %q = matmul %h, %twice : f32[N,2]
  %k = spmm %g, %w, _, %q : f32[N,2]
  %s = matmul %q, %k {ta=true} : f32[2,2]
  %y = matmul %k, %s : f32[N,2]
  return %y, %s, %z
}
`)
	if err != nil {
		t.Fatal(err)
	}
	p, err := passes.Cut(m, "f")
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, part := range p.List {
		if part.All {
			all = append(all, strings.Join(part.Own, "+")+">"+strings.Join(part.Gives, "+"))
		}
	}
	if got := strings.Join(all, " "); got != "x>z h>twice q+k>s" {
		t.Errorf("sums are computed by %s", got)
	}
	if p.ReadsAll() == nil {
		t.Error("the parts are said to be for nodes that lie apart")
	}
	g := &ir.Graph{N: 5, Row: []int{0, 1, 1, 3, 4}, Col: []int{1, 0, 4, 3, 1}}
	x, w := ir.NewTensor(5, 2), ir.NewTensor(5)
	for i := range x.Data {
		x.Data[i] = float64(i%7) - 2.5
	}
	for i := range w.Data {
		w.Data[i] = float64(i) / 3
	}
	in := map[string]ir.Val{"x": {T: x}, "g": {G: g}, "w": {T: w}}
	got := runParts(t, p, m.Func("f"), g, in, nil, [][]int{{1, 4}, {0, 2, 3}})
	for name, v := range interpret(t, m, m.Func("f"), in, nil, source{}) {
		compare(t, name, got[p.Results[name]], v.T, 1e-12)
	}
}

// What reads more than neighbours and sums is refused, and says what.
func TestCutRefuses(t *testing.T) {
	for what, body := range map[string]string{
		"all nodes":      "%y = matmul %x, %x {tb=true} : f32[N,N]",
		"sums of nodes":  "%s = matmul %x, %x {ta=true} : f32[2,2]\n  %y = matmul %s, %x {tb=true} : f32[2,N]",
		"all entries":    "%o = edge_ones %g : f32[E]\n  %y = reduce_sum %o {axis=\"all\"} : f32[]",
		"pairs of nodes": "%p = edge_pairs %g : i64[2,E]\n  %y = pair_dot %x, %p : f32[E]",
	} {
		m, err := ir.Parse(what, "module @m\n\nfunc @f(%x: f32[N,2], %g: graph<N,E>) -> (y: "+body[strings.LastIndex(body, ": ")+2:]+") {\n  "+body+"\n  return %y\n}\n")
		if err != nil {
			t.Fatal(err)
		}
		if p, err := passes.Cut(m, "f"); err == nil {
			t.Errorf("reading %s was cut into %d parts", what, len(p.List))
		} else {
			t.Log(err)
			if !strings.HasPrefix(err.Error(), what+":") {
				t.Errorf("%q does not say where", err)
			}
		}
	}
}
