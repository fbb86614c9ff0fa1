package run

import (
	"context"
	"fmt"
	"slices"

	"github.com/gsrc-dev/gsrc/compiler"
	"github.com/gsrc-dev/gsrc/export/onnx"
	"github.com/gsrc-dev/gsrc/graph"
	"github.com/gsrc-dev/gsrc/internal/lists"
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
	p, err := compiler.Compile(onnx.WithMargins(m), compiler.Options{Target: compiler.Inference, Funcs: have})
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
	entries, err := c.bind(f, inputs)
	if err != nil {
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
			out[result] = onnx.EdgeValues(b.F32, entries, int(inputs["edge_index"].Shape[1]))
			continue
		}
		// The next run overwrites it.
		out[result] = ort.Float32s(slices.Clone(b.F32), lists.Map(b.Dims, func(d int) int64 { return int64(d) })...)
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
// edges follow. It returns where edge_index lists the entries of the graph.
func (c *compiledForward) bind(f *runtime.Function, inputs map[string]ort.Tensor) (entries []int, err error) {
	fn := f.Main().Func()
	args, entries, err := onnx.Arguments(fn, inputs, c.constants)
	if err != nil {
		return nil, err
	}
	for _, structures := range []bool{true, false} {
		for i, a := range fn.Args {
			if a.Type.IsGraph() != structures {
				continue
			}
			if err := f.Bind(a.Name, bufferOf(a, args[i])); err != nil {
				return nil, err
			}
		}
	}
	return entries, nil
}

// bufferOf is an argument as the kernels read it.
func bufferOf(a *ir.Value, arg onnx.Argument) *runtime.Buffer {
	switch {
	case a.Type.IsBlock():
		return runtime.Block(structureOf(arg.Graph))
	case a.Type.IsGraph():
		return runtime.Graph(structureOf(arg.Graph))
	}
	t := arg.Tensor
	dims := lists.Map(t.Shape, func(d int64) int { return int(d) })
	if t.DType == ort.Int64 {
		return runtime.I64(t.I64, dims...)
	}
	return runtime.F32(t.F32, dims...)
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
