package train

import (
	"github.com/gsrc-dev/gsrc/config"
	"github.com/gsrc-dev/gsrc/data"
	"github.com/gsrc-dev/gsrc/ir"
	"github.com/gsrc-dev/gsrc/runtime"
)

// PredictGraphMemory forecasts the memory of training a compiled program on
// batches of graphs, from the largest batch that can come: see [PredictMemory].
func PredictGraphMemory(prog *ir.Module, c *data.Collection, cfg *config.Config) (*Forecast, error) {
	b := newGraphBatch(c)
	if err := b.join(largest(c, nil, cfg.Train.BatchGraphs, nodesOf)); err != nil {
		return nil, err
	}
	in := map[string]*runtime.Buffer{"x": b.x, "g": b.g, "batch": b.batch, "labels": b.labels, "w": b.w}
	f := &Forecast{Phase: "train"}
	for _, name := range []string{"train", "classify"} {
		fn := prog.Func(name)
		if fn == nil {
			continue
		}
		args := map[string]*runtime.Buffer{}
		for _, a := range fn.Args {
			args[a.Name] = in[a.Name]
		}
		mem, err := runtime.PredictMemory(prog, name, args)
		if err != nil {
			return nil, err
		}
		m := FunctionMemory{Name: name, Phase: "train", Arena: mem.Main.Bytes, Setup: mem.Setup.Bytes, Live: mem.Main.Live, Unshared: mem.Main.Unshared}
		f.Functions = append(f.Functions, m)
		f.Peak += m.Bytes() + opBytes*mem.Main.Operations
	}
	add := func(name string, bytes int) {
		f.Parts = append(f.Parts, MemoryPart{name, bytes})
		f.Peak += bytes
	}
	x := c.X
	add("data set", 4*(len(x.RowPtr)+len(x.Col)+len(x.Val)+len(x.Dense))+8*c.NumEdges()+4*len(c.Labels))
	edges := 0
	for _, g := range largest(c, nil, cfg.Train.BatchGraphs, edgesOf) {
		edges += len(c.Graphs[g].Edges)
	}
	add("a batch and its structure", (8+2*(4+4+4+4))*edges+40*b.st.N)
	params := 0
	for _, v := range prog.Params {
		shape, err := v.Type.Shape(nil)
		if err != nil {
			return nil, err
		}
		size := 4
		for _, d := range shape {
			size *= d
		}
		params += size
	}
	add("parameters", params)
	add("Adam's moments and the best parameters", 3*params)
	ops := 0
	for _, fn := range prog.Funcs {
		ops += len(fn.Body)
	}
	add("compiled module and the rest", ops*moduleOpBytes+fixedBytes)
	return f, nil
}
