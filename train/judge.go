package train

import (
	"fmt"
	"slices"

	"github.com/gsrc-dev/gsrc/compiler"
	"github.com/gsrc-dev/gsrc/graph"
	"github.com/gsrc-dev/gsrc/internal/scratch"
	"github.com/gsrc-dev/gsrc/ir"
	"github.com/gsrc-dev/gsrc/models"
	"github.com/gsrc-dev/gsrc/passes"
	"github.com/gsrc-dev/gsrc/runtime"
	"github.com/gsrc-dev/gsrc/runtime/kernels"
	"github.com/gsrc-dev/gsrc/train/optim"
)

// Judge judges edges and candidates of any graph by evidence that was fitted in a training, over
// chunks of nodes. It is used by one goroutine at a time.
type Judge struct {
	*evidence
	Counts []float32 // [E] what edges count by their weights; nil: all as much
	least  int
}

// JudgeFunctions are the functions of a model by which edges are judged; open tells that robust
// evidence says something.
func JudgeFunctions(open bool) []string {
	names := []string{"rows", models.SourcesFunc, models.ExistingFunc, models.MissingFunc}
	if open {
		names = append(names, models.ExistingFunc+models.Weighed, models.MissingFunc+models.Weighed)
		for r := range models.EvidenceRounds {
			names = append(names, models.WeightFunc(r+1))
		}
	}
	return names
}

// NewJudge readies a model, as it was trained, for an undirected graph, of which st has the rows.
// inputs are parameters and x. chunks is asked before all nodes are looked at, for chunks that take
// so much at least, and leave room beside.
func NewJudge(m *ir.Module, inputs map[string]*runtime.Buffer, g *graph.Graph, st *graph.Structure, about passes.DataInfo, pool *kernels.Pool, chunks func(least, beside int) (runtime.Chunks, error)) (*Judge, error) {
	names := JudgeFunctions(inputs[models.EvidenceGate].F32[0] != 0)
	p, err := compiler.Compile(m, compiler.Options{Target: compiler.Training, Funcs: names, Data: about})
	if err != nil {
		return nil, err
	}
	e := newEvidence(&program{Module: p.Module, params: &optim.Set{}, inputs: inputs}, pool, g, st)
	least, beside, err := e.needs(names)
	if err != nil {
		return nil, err
	}
	e.chunks, e.files, e.once = func() (runtime.Chunks, error) { return chunks(least, beside) }, &scratch.Files{}, true
	return &Judge{evidence: e, least: least + beside}, nil
}

// Least is the memory that judging takes at least.
func (j *Judge) Least() int64 { return int64(j.least) }

// needs returns what chunks of nodes take at least, and what functions do that judge pairs.
func (e *evidence) needs(names []string) (least, beside int, err error) {
	room := chunkRoom{degree: e.st.MostEntries()}
	if x := e.prog.inputs["x"]; x.Sparse != nil {
		room.stored = len(x.Sparse.Values)/max(1, e.st.N) + 1
	}
	of := func(t ir.Type, dims ...int) *runtime.Buffer { return runtime.Extent{Dims: dims}.Buffer(t) }
	pairs := of(ir.T(ir.F32, "P"), evidenceChunk)
	in := map[string]*runtime.Buffer{"x": e.prog.inputs["x"], "g": runtime.Graph(e.st), "a": of(ir.T(ir.F32, "E"), e.st.E),
		"pairs": of(ir.T(ir.I64, "2", "P"), 2, evidenceChunk), "w": pairs, "logit": pairs, "more": pairs}
	for _, name := range names {
		ofNodes := name
		if name != "rows" {
			ofNodes = e.prog.Func(name).Attrs.Str(passes.Setup)
			m, err := runtime.PredictMemory(runtime.CPU, e.prog.Module, name, in)
			if err != nil {
				return 0, 0, err
			}
			beside = max(beside, m.Main.Bytes+m.Pool.Bytes(e.pool.Threads()))
		}
		if err := room.of(e.prog.Module, ofNodes); err != nil {
			return 0, 0, err
		}
	}
	return room.least, beside, nil
}

// chunkRoom is what chunks of nodes take at least, of some functions.
type chunkRoom struct {
	degree, stored int // entries and elements of sparse features that a node has
	least          int
}

// of adds a function of all nodes.
func (r *chunkRoom) of(m *ir.Module, name string) error {
	parts, err := passes.Cut(m, name)
	if err != nil {
		return fmt.Errorf("train: @%s cannot be computed over chunks of nodes: %w", name, err)
	}
	room, err := runtime.LeastRoom(parts, r.degree, r.stored)
	r.least = max(r.least, room)
	return err
}

// Edges returns how likely the edges of the graph are some.
func (j *Judge) Edges() ([]float32, error) {
	var err error
	if j.edges == nil {
		err = j.judgeEdges(j.Counts)
	}
	return j.edges, err
}

// Candidates returns how likely candidates are edges, in a file.
func (j *Judge) Candidates(c *graph.Candidates) ([]float32, error) {
	if _, err := j.Edges(); err != nil {
		return nil, err
	}
	return j.ofCandidates(nil, c)
}

// Sources returns the evidence for candidates by source, in files.
func (j *Judge) Sources(c *graph.Candidates) (sources []graph.Evidence, err error) {
	for _, name := range slices.Sorted(slices.Values(j.names)) {
		v, err := j.floats(nil, len(c.Edges))
		if err != nil {
			return nil, err
		}
		sources = append(sources, graph.Evidence{Source: name, Values: v})
	}
	if err := j.weigh(nil); err != nil {
		return nil, err
	}
	defer j.release()
	return sources, j.over(models.SourcesFunc, len(c.Edges), func(i int) (pair [2]int32, w float32) {
		if c.Existing[i] {
			w = 1
		}
		return c.Edges[i], w
	}, func(f *runtime.Function, _ int) {
		for k := range sources {
			sources[k].Values = append(sources[k].Values, f.Result(sources[k].Source).F32...)
		}
	})
}
