package gsrc_test

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/gsrc-dev/gsrc/compiler"
	"github.com/gsrc-dev/gsrc/data"
	"github.com/gsrc-dev/gsrc/graph"
	"github.com/gsrc-dev/gsrc/models"
	"github.com/gsrc-dev/gsrc/passes"
	"github.com/gsrc-dev/gsrc/rng"
	"github.com/gsrc-dev/gsrc/runtime"
	"github.com/gsrc-dev/gsrc/runtime/kernels"
)

// bench is a compiled model bound to a data set: the training step alone, as
// the programs that time PyTorch on the same work have it.
type bench struct {
	b       *testing.B
	ds      *data.Dataset
	program *compiler.Program
	pool    *kernels.Pool
	seed    rng.Stream
	inputs  map[string]*runtime.Buffer
}

// load reads a data set below GSRC_DATA, or skips.
func load(b *testing.B, name string) *data.Dataset {
	root := os.Getenv("GSRC_DATA")
	if root == "" {
		root = filepath.Join("..", "shared", "datasets")
	}
	path := filepath.Join(root, name)
	if _, err := os.Stat(path); err != nil {
		b.Skipf("no data set at %s: set GSRC_DATA", path)
	}
	ds, err := data.Load(path, data.LoadOptions{})
	if err != nil {
		b.Fatal(err)
	}
	return ds
}

func newBench(b *testing.B, ds *data.Dataset, model string, threads, anchors int, o models.Options, without ...string) *bench {
	o.Features, o.Classes = ds.X.Cols, ds.Classes
	m, err := models.Lookup(model)
	if err != nil {
		b.Fatal(err)
	}
	facts := passes.Facts{SparseArgs: []string{"x"}, Dims: map[string]int{"N": ds.Graph.N, "E": ds.Graph.Structure().E, "B": anchors}}
	p, err := compiler.Compile(m.Build(o), compiler.Options{Facts: facts, Without: without})
	if err != nil {
		b.Fatal(err)
	}
	s := &bench{b: b, ds: ds, program: p, pool: kernels.NewPool(threads), seed: rng.New(0, "bench"), inputs: map[string]*runtime.Buffer{}}
	b.Cleanup(s.pool.Close)
	for _, p := range p.Module.Params {
		shape, _ := p.Type.Shape(nil)
		w := runtime.Zeros(shape...)
		if p.Attrs.Str("init") == "glorot" {
			s.pool.Uniform(w.F32, s.seed.Sub(p.Name))
			a := float32(math.Sqrt(6 / float64(shape[0]+shape[1])))
			for i := range w.F32 {
				w.F32[i] = a * (2*w.F32[i] - 1)
			}
		}
		s.inputs[p.Name] = w
	}
	x := ds.X.ToCSR()
	if s.inputs["x"], err = runtime.Sparse(ds.Graph.N, x.Cols, x.RowPtr, x.Col, x.Val); err != nil {
		b.Fatal(err)
	}
	g := ds.Graph.Structure()
	s.inputs["g"] = runtime.Graph(g)
	w := runtime.Zeros(g.E)
	for i := range w.F32 {
		w.F32[i] = 1
	}
	s.inputs["w"] = w
	if o.StructWidth > 0 {
		s.inputs["x_struct"] = runtime.Zeros(ds.Graph.N, o.StructWidth)
		s.pool.Normal(s.inputs["x_struct"].F32, s.seed.Sub("x_struct"))
	}
	if len(ds.Splits) > 0 {
		var idx, labels []int64
		for _, i := range ds.Splits[0].Train {
			idx, labels = append(idx, int64(i)), append(labels, int64(ds.Labels[i]))
		}
		s.inputs["train_idx"], s.inputs["labels"] = runtime.I64(idx, len(idx)), runtime.I64(labels, len(labels))
	}
	return s
}

func (s *bench) function(name string) *runtime.Function {
	f, err := runtime.NewFunction(s.program.Module, name, runtime.Options{Pool: s.pool, Seed: s.seed})
	if err != nil {
		s.b.Fatal(err)
	}
	for _, in := range f.Inputs() {
		if buf := s.inputs[in]; buf != nil {
			if err := f.Bind(in, buf); err != nil {
				s.b.Fatal(err)
			}
		}
	}
	return f
}

// optimizer returns one Adam step over the gradients of a function.
func (s *bench) optimizer(f *runtime.Function, lr float32) func() {
	var ps []kernels.AdamParam
	t := 0
	return func() {
		if ps == nil {
			for _, p := range s.program.Module.Params {
				if g := f.Output(passes.GradPrefix + p.Name); g != nil {
					w := s.inputs[p.Name].F32
					ps = append(ps, kernels.AdamParam{W: w, G: g.F32, M: make([]float32, len(w)), V: make([]float32, len(w)), WeightDecay: float32(p.Attrs.Float("decay"))})
				}
			}
		}
		t++
		s.pool.AdamStep(ps, lr, 0.9, 0.999, 1e-8, t)
	}
}

func (s *bench) run(f *runtime.Function, step int) {
	if err := f.Run(uint64(step)); err != nil {
		s.b.Fatal(err)
	}
}

// BenchmarkGCN is 200 epochs of the two-layer GCN, each with an evaluation
// pass: the work of the peers gcn_pyg.py and gcn_sparse.py.
func BenchmarkGCN(b *testing.B) {
	for _, name := range []string{"planetoid/cora", "planetoid/citeseer", "heterophilous/actor.npz"} {
		for _, threads := range []int{1, 2} {
			b.Run(fmt.Sprintf("%s/threads=%d", name, threads), func(b *testing.B) {
				s := newBench(b, load(b, name), "gcn", threads, 0, models.Default())
				train, classify := s.function("train"), s.function("classify")
				adam := s.optimizer(train, 0.01)
				for b.Loop() {
					for epoch := range 200 {
						s.run(train, epoch)
						adam()
						s.run(classify, epoch)
					}
				}
			})
		}
	}
}

// BenchmarkECLStep is one pre-training step: two blurred views, K = 3 Langevin
// steps, 3 × 128 GCN, projector, Eq 13/15/17 and Adam, as ecl_torch.py has it;
// with and without the project-noise pass.
func BenchmarkECLStep(b *testing.B) {
	for _, c := range []struct {
		data             string
		anchors, struct_ int
	}{
		{"planetoid/cora", 512, 1433}, {"planetoid/cora", 512, 128}, {"planetoid/cora", 0, 1433}, {"planetoid/citeseer", 512, 3703}, {"heterophilous/actor.npz", 512, 932},
	} {
		for _, without := range [][]string{nil, {"project-noise"}} {
			b.Run(fmt.Sprintf("%s/anchors=%d/struct=%d/without=%v", c.data, c.anchors, c.struct_, without), func(b *testing.B) {
				ds := load(b, c.data)
				o := models.Default()
				o.StructWidth, o.Encoder.Layers = c.struct_, 3
				o.Views = models.Views{Blur: 0.03}
				// The chain starts from noise of its own, as the peer's does: started from
				// a view it would share that view's forward pass.
				o.ECL.Tau, o.ECL.InitNoise, o.ECL.Clip = 0.1, 0.03, 0
				n := ds.Graph.N
				batch := c.anchors
				if batch == 0 {
					batch = n
				}
				s := newBench(b, ds, "ecl-gsr", 2, batch, o, without...)
				anchors := runtime.I64(make([]int64, batch), batch)
				s.inputs["anchors"] = anchors
				f := s.function("pretrain")
				adam := s.optimizer(f, 1e-3)
				step := 0
				one := func() {
					for i, a := range graph.Anchors(s.seed.Sub("anchors"), uint64(step), n, batch) {
						anchors.I64[i] = int64(a)
					}
					s.run(f, step)
					adam()
					step++
				}
				one()
				for b.Loop() {
					one()
				}
			})
		}
	}
}
