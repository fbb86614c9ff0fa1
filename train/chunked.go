package train

import (
	"fmt"
	"slices"

	"github.com/gsrc-dev/gsrc/internal/scratch"
	"github.com/gsrc-dev/gsrc/ir"
	"github.com/gsrc-dev/gsrc/passes"
	"github.com/gsrc-dev/gsrc/runtime"
	"github.com/gsrc-dev/gsrc/runtime/kernels"
)

// runChunked runs a function over chunks of nodes, on the host, of a graph with weights by entry
// (nil: ones), both nil where the inputs of the program have them.
func runChunked(t *nodeSteps, name string, g, w *runtime.Buffer) (*runtime.Chunked, error) {
	m := t.prog.Module
	if name == cosineFunc {
		var err error
		if m, err = cosineProgram(t.prog.Module); err != nil {
			return nil, err
		}
	}
	c := t.chunked[name]
	if c == nil {
		parts, err := passes.Cut(m, name)
		if err != nil {
			return nil, fmt.Errorf("train: %w", err)
		}
		dir, err := scratch.Dir(t.opts.Dir)
		if err != nil {
			return nil, fmt.Errorf("train: %w", err)
		}
		c = runtime.NewChunked(parts, dir, t.chunk, t.prog.options)
		t.chunked[name] = c
	}
	for name, b := range t.prog.inputs {
		c.Bind(name, b)
	}
	if g != nil {
		c.Bind("g", g)
	}
	if w != nil {
		c.Bind("w", w)
	}
	for _, p := range t.optim.Params {
		b, err := t.device.Export(p.Value)
		if err != nil {
			return nil, err
		}
		c.Bind(p.Name, b)
	}
	c.Stop = t.stop
	return c, c.Run()
}

// leaveFiles has what a model keeps outlive the run: copied where a chunk has the room, which
// nothing takes any more, or else in its files, for as long as the process runs.
func leaveFiles(t *nodeSteps, m *Model, logits, probs *runtime.Buffer) {
	rows, n := []*[]float32{&m.Embedding}, len(m.Embedding)
	for _, b := range []*runtime.Buffer{logits, probs} {
		if b != nil {
			rows, n = append(rows, &b.F32), n+len(b.F32)
		}
	}
	if 4*n > t.chunk {
		delete(t.chunked, "encode")
		delete(t.chunked, "classify")
		return
	}
	for _, x := range rows {
		*x = slices.Clone(*x)
	}
}

// cosineFunc gives the cosines of which Eq 18 has the bounds, by entry.
const cosineFunc = "cosine"

func cosineProgram(of *ir.Module) (*ir.Module, error) {
	h := of.Func("encode").Result("embedding")
	return ir.Parse(cosineFunc, fmt.Sprintf(`module @cosine

func @cosine(%%embedding: f32[N,%s], %%c: graph<N,M>) -> (cosine: f32[M]) {
  %%z = l2_normalize %%embedding : f32[N,%[1]s]
  %%cosine = sddmm %%c, %%z, %%z : f32[M]
  return %%cosine
}
`, h.Type.Dims[1]))
}

// encodeChunked is [nodeSteps.encode] over chunks of nodes, with the embedding in a file.
func encodeChunked(t *nodeSteps) (*runtime.Buffer, error) {
	c, err := runChunked(t, "encode", nil, nil)
	if err != nil {
		return nil, err
	}
	h := c.Result("embedding")
	if !kernels.Finite(h.F32) {
		return nil, t.nonFinite(&function{}, t.state.Step(), "the embedding")
	}
	return h, t.prog.bind("embedding", h)
}

// inferChunked is [nodeSteps.infer] with the embedding at hand.
func inferChunked(t *nodeSteps) error {
	c, err := runChunked(t, cosineFunc, nil, nil)
	if err != nil {
		return err
	}
	cos := c.Result("cosine").F32
	lo, hi := slices.Min(cos), slices.Max(cos)
	t.prog.inputs[passes.DrawnLo], t.prog.inputs[passes.DrawnHi] = runtime.Scalar(lo), runtime.Scalar(hi)
	if err := c.Close(); err != nil {
		return err
	}
	t.found.computed = nil // its file is given back
	if c, err = runChunked(t, "probability", nil, nil); err != nil {
		return err
	}
	e, x, p := t.edges, &t.found, c.Result("probability")
	if !kernels.Finite(p.F32) {
		return t.nonFinite(&function{}, t.state.Step(), "an edge probability")
	}
	x.computed, x.weighed, e.lo, e.hi, e.fresh = p, false, lo, hi, true
	return t.prog.bind("p", p)
}
