package run

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/gsrc-dev/gsrc/compiler"
	"github.com/gsrc-dev/gsrc/export/onnx"
	"github.com/gsrc-dev/gsrc/graph"
	"github.com/gsrc-dev/gsrc/ir"
	"github.com/gsrc-dev/gsrc/models"
	"github.com/gsrc-dev/gsrc/runtime"
	"github.com/gsrc-dev/gsrc/runtime/kernels"
	"github.com/gsrc-dev/gsrc/runtime/ort"
)

// compiledForward runs the inference functions of a module on the kernels that
// it was trained with: what its export is held against.
type compiledForward struct {
	module    *ir.Module // compiled for inference
	params    map[string][]float32
	constants map[string]float32 // arguments that an exported model has frozen
	pool      *kernels.Pool
	ctx       context.Context // ends what it computes; may be nil
	fns       map[string]*runtime.Function
	entries   []int // of edge_index by entry of the graph that was bound last
}

// exportable are the functions that an export is made of.
var exportable = []string{"encode", "score", "classify"}

func newForward(m *ir.Module, params map[string][]float32, constants map[string]float32, threads int) (*compiledForward, error) {
	have := slices.DeleteFunc(slices.Clone(exportable), func(name string) bool { return m.Func(name) == nil })
	if len(have) == 0 {
		return nil, fmt.Errorf("module @%s has none of the functions @encode, @score and @classify: there is nothing to run", m.Name)
	}
	if models.WeighsTogether(m) {
		have = append(have, "probability")
		if m.Func("similar") != nil {
			have = append(have, "similar")
		}
	}
	p, err := compiler.Compile(m, compiler.Options{Target: compiler.Inference, Funcs: have})
	if err != nil {
		return nil, err
	}
	return &compiledForward{module: p.Module, params: params, constants: constants, pool: kernels.NewPool(threads), fns: map[string]*runtime.Function{}}, nil
}

// forward runs the functions of the run's model on its training graph.
func (r *Run) forward(threads int) (*compiledForward, error) {
	f, err := newForward(exported(r.Trained, r.Data), r.Trained.Params, nil, threads)
	if err == nil {
		f.ctx = r.ctx
	}
	return f, err
}

// Close ends the threads.
func (c *compiledForward) Close() {
	for _, f := range c.fns {
		f.Close()
	}
	c.pool.Close()
}

// Run is an onnx.Forward.
func (c *compiledForward) Run(name string, inputs map[string]ort.Tensor) (map[string]ort.Tensor, error) {
	f, err := c.function(name)
	if err != nil {
		return nil, err
	}
	if err := c.bind(f, inputs); err != nil {
		return nil, fmt.Errorf("@%s: %w", name, err)
	}
	if err := c.pool.Until(c.ctx, func() error { return f.Run(0) }); err != nil {
		return nil, err
	}
	out := map[string]ort.Tensor{}
	fn := f.Main().Func()
	for _, result := range f.Outputs() {
		b := f.Output(result)
		if onnx.OfEdges(fn, fn.Result(result)) {
			out[result] = onnx.EdgeValues(b.F32, c.entries, int(inputs["edge_index"].Shape[1]))
			continue
		}
		t := ort.Float32s(slices.Clone(b.F32)) // the next run overwrites it
		for _, d := range b.Dims {
			t.Shape = append(t.Shape, int64(d))
		}
		out[result] = t
	}
	return out, nil
}

func (c *compiledForward) function(name string) (*runtime.Function, error) {
	if f := c.fns[name]; f != nil {
		return f, nil
	}
	f, err := runtime.NewFunction(c.module, name, runtime.Options{Pool: c.pool})
	if err != nil {
		return nil, err
	}
	c.fns[name] = f
	for _, p := range c.module.Params {
		data, ok := c.params[p.Name]
		dims, err := p.Type.Shape(nil)
		if err != nil {
			return nil, err
		}
		if want := (&runtime.Buffer{Dims: dims}).Size(); !ok || len(data) != want {
			return nil, fmt.Errorf("parameter $%s is %s, there are %d numbers for it", p.Name, p.Type, len(data))
		}
		if err := f.Bind(p.Name, runtime.F32(data, dims...)); err != nil {
			return nil, err
		}
	}
	return f, nil
}

// bind gives a function its arguments from a model's inputs: graphs first, whose entries values of
// edges follow.
func (c *compiledForward) bind(f *runtime.Function, inputs map[string]ort.Tensor) error {
	fn := f.Main().Func()
	for _, structures := range []bool{true, false} {
		for _, a := range fn.Args {
			if a.Type.IsGraph() != structures {
				continue
			}
			b, err := c.argument(fn, a, inputs)
			if err == nil {
				err = f.Bind(a.Name, b)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// graph is the graph of edge_index, of as many nodes as what has a row for each node says.
func (c *compiledForward) graph(fn *ir.Func, g *ir.Value, inputs map[string]ort.Tensor) (*ir.Graph, error) {
	nodes := -1
	for _, a := range fn.Args {
		if t, ok := inputs[a.Name]; ok && !a.Type.IsGraph() && a.Type.Rank() == 2 && a.Type.Dims[0] == g.Type.Dims[0] {
			nodes = int(t.Shape[0])
		}
	}
	index, ok := inputs["edge_index"]
	if !ok || nodes < 0 {
		return nil, errors.New("it needs edge_index and a matrix with a row for each node")
	}
	x, entries, err := onnx.Graph(nodes, index)
	c.entries = entries
	return x, err
}

// weights are those of edges, in the order of entries.
func (c *compiledForward) weights(inputs map[string]ort.Tensor) []float32 {
	w := make([]float32, len(c.entries))
	given, ok := inputs["edge_weight"]
	for k, i := range c.entries {
		w[k] = 1
		if ok {
			w[k] = given.F32[i]
		}
	}
	return w
}

// argument makes an argument of a model's inputs.
func (c *compiledForward) argument(fn *ir.Func, a *ir.Value, inputs map[string]ort.Tensor) (*runtime.Buffer, error) {
	g := onnx.GraphArg(fn)
	switch {
	case a.Type.IsBlock(): // it leads from nodes to their graphs
		ids, ok := inputs["graph_ids"]
		if !ok {
			return nil, errors.New("input graph_ids is missing")
		}
		members, err := onnx.Batch(ids)
		if err != nil {
			return nil, err
		}
		return runtime.Block(structureOf(members)), nil
	case a.Type.IsGraph():
		x, err := c.graph(fn, a, inputs)
		if err != nil {
			return nil, err
		}
		return runtime.Graph(structureOf(x)), nil
	case a.Name == onnx.ArgSelfLoops:
		var weight *ort.Tensor
		if t, ok := inputs["edge_weight"]; ok {
			weight = &t
		}
		loops := onnx.LoopWeights(int(inputs["x"].Shape[0]), inputs["edge_index"], weight)
		return runtime.F32(loops, len(loops)), nil
	case g != nil && onnx.OverEdges(a, g):
		w := c.weights(inputs)
		return runtime.F32(w, len(w)), nil
	}
	if v, ok := c.constants[a.Name]; ok {
		return runtime.Scalar(v), nil
	}
	t, ok := inputs[a.Name]
	if !ok {
		return nil, fmt.Errorf("input %s is missing", a.Name)
	}
	if err := t.Check(); err != nil {
		return nil, fmt.Errorf("input %s: %w", a.Name, err)
	}
	var dims []int
	for _, d := range t.Shape {
		dims = append(dims, int(d))
	}
	if t.DType == ort.Int64 {
		return runtime.I64(t.I64, dims...), nil
	}
	return runtime.F32(t.F32, dims...), nil
}

// structureOf makes the structure of a graph that may have entries in one
// direction only, and repeated ones, which edge_index may hold and data may not.
func structureOf(g *ir.Graph) *graph.Structure {
	e := len(g.Row)
	sources := g.N
	if g.Sources > 0 { // of a block
		sources = g.Sources
	}
	in := &kernels.CSR{Rows: g.N, Cols: sources, RowPtr: make([]int32, g.N+1), Col: make([]int32, e)}
	edgeOf := make([]int32, e)
	for p := range g.Row {
		in.RowPtr[g.Row[p]+1]++
		in.Col[p] = int32(g.Col[p])
		edgeOf[p] = int32(p)
	}
	for i := range g.N {
		in.RowPtr[i+1] += in.RowPtr[i]
	}
	return &graph.Structure{N: g.N, E: e, In: in, Out: kernels.Transpose(in), EdgeOf: edgeOf}
}
