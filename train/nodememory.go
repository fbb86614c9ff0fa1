package train

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/gsrc-dev/gsrc/config"
	"github.com/gsrc-dev/gsrc/data"
	"github.com/gsrc-dev/gsrc/graph"
	"github.com/gsrc-dev/gsrc/internal/budget"
	"github.com/gsrc-dev/gsrc/ir"
	"github.com/gsrc-dev/gsrc/models"
	"github.com/gsrc-dev/gsrc/passes"
	"github.com/gsrc-dev/gsrc/rng"
	"github.com/gsrc-dev/gsrc/runtime"
)

// Forecast estimates what no one can know beforehand from above: blocks by those
// of the run's own first steps, candidate edges by k for each node of which 80 % are new
// (of embeddings' nearest neighbours a third and more choose each other, or are
// neighbours already).
func (n nodeTask) Forecast(d runtime.Device, prog *ir.Module, cfg *config.Config, split data.Split, limit int64) (*Forecast, error) {
	p, err := n.predict(d, prog, cfg, split)
	if err != nil {
		return nil, err
	}
	if d != nil {
		p.onDevice()
		return &p.f, nil
	}
	p.parts()
	p.host()
	if limit <= 0 {
		limit = math.MaxInt
	}
	if int64(p.f.Peak) > limit && p.once && !p.settled && cfg.Train.Sampler != neighbors {
		p.takeTurns()
	}
	if cfg.Train.Sampler == neighbors && (refines(prog) || int64(p.f.Peak) > limit) {
		err = p.chunks(int(limit))
	}
	return &p.f, err
}

// predictor forecasts training on one graph.
type predictor struct {
	forecaster
	loaded map[string]int // bytes on the device of what is bound, by name
	ds     *data.Dataset
	g      *graph.Structure
	dims   map[string]int
	train  []int64 // training nodes
	outer  []int64 // nodes of the outer problem
	val    int     // how many validation nodes
	split  data.Split
	once   bool // candidates are judged by evidence, and chosen once

	settled bool // their probabilities are those of an encoder that is then given back
}

// predict forecasts what functions hold on a device.
func (n nodeTask) predict(d runtime.Device, prog *ir.Module, cfg *config.Config, split data.Split) (*predictor, error) {
	ds := n.Dataset
	st, err := n.structure(cfg, prog)
	if err != nil {
		return nil, err
	}
	p := &predictor{forecaster: newForecaster(d, prog, cfg), loaded: map[string]int{}, ds: ds, g: st, dims: n.DataInfo(d, cfg, split).Dims, val: len(split.Val), split: split}
	p.train, p.outer = numbers(nil, mostTrained(cfg, split, ds.Graph.N, ds.Classes)), numbers(nil, split.Outer)
	if split.Outer == nil {
		p.outer = numbers(nil, split.Halved().Outer)
	}
	p.dims["N"], p.dims["T"] = ds.Graph.N, len(p.train)
	if cfg.Train.Sampler == "edges" { // both ends of each seed edge, if no two share one
		p.dims["B"] = min(2*cfg.Train.BatchEdges, ds.Graph.N)
	}
	entries := p.g.E
	p.dims["M"] = entries
	if refines(prog) && cfg.Candidates.Structure != "raw" {
		two, err := farther(ds.Graph, cfg)
		if err != nil {
			return nil, err
		}
		p.dims["M"] = min(2*(len(ds.Graph.Edges)+two+searches(prog)*ds.Graph.N*cfg.Candidates.K*80/100), ds.Graph.N*max(0, ds.Graph.N-1))
	}
	for _, x := range runs(prog, cfg) {
		if err := p.run(x); err != nil {
			return nil, err
		}
	}
	if d != nil || cfg.Model.Edges.Judge != models.JudgeEvidence || p.embedding() == nil {
		return p, nil
	}
	p.dims["P"] = min(evidenceChunk, p.dims["M"]/2)
	if err := p.judges(); err != nil {
		return p, err
	}
	return p, p.givenBack()
}

// run forecasts one function, with the samples of several steps where the
// sizes of its values depend on them.
func (p *predictor) run(x running) error {
	f := p.prog.Func(x.name)
	dims := p.dims
	if f.Name == "classify" && refines(p.prog) { // evaluated on the candidates
		dims = maps.Clone(p.dims)
		dims["E"] = dims["M"]
	}
	in := map[string]*runtime.Buffer{}
	stored, batches := len(p.ds.X.Val), 0
	if p.cfg.Train.Sampler == neighbors && slices.Contains(drawing(p.prog, p.cfg), f.Name) {
		var err error
		if dims, stored, batches, err = p.batch(f, in); err != nil {
			return err
		}
	}
	fns := withSetup(p.prog, f)
	for _, fn := range fns {
		for _, a := range fn.Args {
			if a.Attrs.Bool("hoisted") || in[a.Name] != nil {
				continue
			}
			switch {
			case a.Name == "g" && dims["E"] == p.g.E:
				in["g"] = runtime.Graph(p.g)
			case a.Name == "c" && slices.ContainsFunc(fns, func(f *ir.Func) bool { return f.Arg("c") != nil && samplesBlocks(f, f.Arg("c")) }):
				if err := affordable("the graph of candidate edges", budget.Mul(64, int64(p.dims["M"]))); err != nil {
					return err
				}
				in["c"] = runtime.Graph(p.candidateGraph())
			case a.Name == "anchors": // those that are drawn follow
				in["anchors"] = runtime.I64(make([]int64, p.dims["B"]), p.dims["B"])
			case a.Name == "train_idx":
				in["train_idx"] = runtime.I64(p.train, len(p.train))
			case a.Name == models.OuterIdx:
				in[a.Name] = runtime.I64(p.outer, len(p.outer))
			default:
				shape, err := a.Type.Shape(dims)
				if err != nil {
					return fmt.Errorf("train: @%s: the size of %%%s: %w", f.Name, a.Name, err)
				}
				size := runtime.Extent{Dims: shape}
				if a.Type.Layout == ir.CSR {
					size.Stored = stored
				}
				in[a.Name] = size.Buffer(a.Type)
			}
		}
	}
	steps := 1
	if slices.ContainsFunc(f.Body, func(op *ir.Op) bool { return op.Def.Sizes }) {
		steps = drawn
	}
	var draws []map[string]*runtime.Buffer
	if in["anchors"] != nil && batches == 0 {
		for step := range steps {
			a, err := newAnchorSampler(runtime.NewCPU(nil), rng.New(uint64(p.cfg.Train.Seed), "anchors"), p.ds.Graph.N, p.dims["B"])
			if err == nil {
				err = a.draw(uint64(step))
			}
			if err != nil {
				return err
			}
			draws = append(draws, map[string]*runtime.Buffer{"anchors": a.out})
		}
	}
	if batches > 0 {
		draws = append(draws, nil) // others will be larger
	}
	p.load(f, in)
	err := p.function(x, in, draws...)
	if err == nil {
		p.f.Functions[len(p.f.Functions)-1].Blocks += batches
	}
	return err
}

// batch is a batch as those of a function whose steps draw: the sizes of its inputs, which it adds
// to in where they count beside their sizes, how many elements of sparse features it has, and the
// bytes that two take.
func (p *predictor) batch(f *ir.Func, in map[string]*runtime.Buffer) (dims map[string]int, stored, bytes int, err error) {
	fresh := (p.dims["M"] - p.g.E + p.g.N - 1) / max(1, p.g.N)
	list, training, err := nodeTask{p.ds}.firstBatch(p.prog, f.Name, p.cfg, p.split, fresh)
	if err != nil {
		return nil, 0, 0, err
	}
	b, graphs := list[0], map[string]*graph.NeighborBatch{"g": list[0]}
	if refines(p.prog) {
		graphs = map[string]*graph.NeighborBatch{"c": list[0], "g": list[1]}
	}
	if b == nil {
		b = list[1]
	}
	if list[0] != nil && list[1] != nil {
		list[0].Extend(list[1].N)
	}
	seeds := indices[int64](b.Reach[0])
	for name, x := range map[string][]int64{"train_idx": seeds[:training], passes.DrawnSeeds: seeds, "anchors": seeds[training:]} {
		in[name] = runtime.I64(x, len(x))
	}
	dims = map[string]int{"T": training, "SEEDS": len(seeds), "B": len(seeds) - training}
	hops := 0
	for name, b := range graphs {
		if b == nil {
			continue
		}
		if dims["N"] = max(dims["N"], b.N); name == "c" {
			dims["M"] = b.E
		} else {
			dims["E"] = b.E
		}
		for k := range len(b.Reach) - 1 {
			if f.Arg(passes.HopGraph(k)) == nil && f.Arg(passes.HopRows(k)) == nil && f.Arg(passes.HopEntries(k)) == nil {
				continue
			}
			h := &graph.Structure{}
			b.Hop(k, h)
			hops += h.Bytes() - 4*(h.N+1+h.E) // its rows are the batch's
			in[passes.HopGraph(k)] = runtime.Block(h)
			in[passes.HopRows(k)], in[passes.HopEntries(k)] = runtime.I64(make([]int64, h.N), h.N), runtime.I64(make([]int64, h.E), h.E)
		}
		if in[passes.HopGraph(0)] == nil {
			b.Transpose()
		}
		in[name] = runtime.Graph(&b.Structure)
		bytes += 2*(b.Bytes()+8*b.E) + 8*b.E + 8*p.ds.Graph.N // two batches, with what their entries weigh, and the sampler's marks
	}
	width := 4 * p.ds.X.Cols
	if p.ds.X.IsSparse() { // in proportion, and some more
		stored = min(len(p.ds.X.Val), 2*len(p.ds.X.Val)/p.ds.Graph.N*dims["N"]+1)
		width = 16 * (2*len(p.ds.X.Val)/p.ds.Graph.N + 1)
	}
	bytes += 2 * (dims["N"]*width*17/16 + hops)
	return dims, stored, bytes, nil
}

// drawn is how many steps' samples are looked at for the sizes of
// blocks.
const drawn = 32

// running is a function that the training procedure runs, and in which phase.
type running struct{ name, phase string }

// runs returns the functions that the training procedure runs.
func runs(prog *ir.Module, cfg *config.Config) (list []running) {
	c := cfg.Train
	refined := refines(prog)
	learned := refined && cfg.Candidates.Structure != "raw"
	searching := learned && c.PretrainSteps > 0 && prog.Func("begin") != nil // while it pre-trains
	for _, x := range []struct {
		running
		runs bool
	}{
		{running{"begin", "pretrain"}, searching}, {running{"encode", "pretrain"}, searching},
		{running{"pretrain", "pretrain"}, learned && c.PretrainSteps > 0}, {running{"train", "train"}, !refined},
		{running{"fit", "train"}, refined}, {running{"joint", "train"}, learned && c.JointEvery > 0},
		{running{"begin", "train"}, learned && c.JointEvery > 0 && prog.Func("pretrain") == nil},
		{running{"similar", "train"}, learned}, {running{"encode", "train"}, learned}, {running{"probability", "train"}, learned},
		{running{"refine", "train"}, refined}, {running{"classify", "train"}, true},
	} {
		if x.runs && prog.Func(x.name) != nil {
			list = append(list, x.running)
		}
	}
	return list
}

// samplesBlocks reports whether a function samples blocks of a graph.
func samplesBlocks(f *ir.Func, g *ir.Value) bool {
	return slices.ContainsFunc(f.Body, func(op *ir.Op) bool { return op.Def.Sizes && op.Operands[0] == g })
}

// candidateGraph stands for the candidate edges, which nobody knows yet: as many,
// the existing ones among them. The new ones lead far away from a node and its
// neighbours in number, so that blocks in it are not smaller than in the real one.
func (p *predictor) candidateGraph() *graph.Structure {
	n, old := p.ds.Graph.N, p.ds.Graph.Edges
	if p.dims["M"] == p.g.E {
		return p.g
	}
	src, dst := make([]int32, 0, p.dims["M"]/2), make([]int32, 0, p.dims["M"]/2)
	has := make(map[[2]int32]bool, p.dims["M"]/2)
	add := func(u, v int) {
		e := [2]int32{int32(min(u, v)), int32(max(u, v))}
		if u != v && !has[e] && 2*len(src) < p.dims["M"] {
			has[e] = true
			src, dst = append(src, e[0]), append(dst, e[1])
		}
	}
	for _, e := range old {
		add(int(e[0]), int(e[1]))
	}
	// Strides that are multiples of a number without a common factor with n reach
	// every node.
	stride := max(1, n*5/8)
	for gcd(stride, n) != 1 {
		stride++
	}
	for i := 1; i < n && 2*len(src) < p.dims["M"]; i++ {
		for u := range n {
			add(u, (u+i*stride)%n)
		}
	}
	g, _, err := graph.Build(n, src, dst, nil, false)
	if err != nil {
		return p.g // the nodes are in range, so this does not happen
	}
	return g.Structure()
}

func gcd(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// judges are the functions that take most to judge edges, on the host, whatever device trains, and
// those for candidates.
var judges = [2][]string{
	{models.SourcesFunc, models.ExistingFunc, models.ExistingFunc + models.Weighed},
	{models.MissingFunc, models.MissingFunc + models.Weighed},
}

// judges forecasts those: one is there at a time, before what trains is, the latter also beside
// that, where candidates become others.
func (p *predictor) judges() error {
	var most []FunctionMemory
	for k, names := range judges {
		for i, name := range names {
			if err := p.run(running{name, "evidence"}); err != nil {
				return err
			}
			last := len(p.f.Functions) - 1
			f := p.f.Functions[last]
			if p.f.Functions = p.f.Functions[:last]; i == 0 && (k == 0 || searchesAgain(p.cfg)) {
				most = append(most, f)
			} else if x := &most[len(most)-1]; f.Bytes() > x.Bytes() {
				*x = f
			}
		}
	}
	if searchesAgain(p.cfg) {
		most[1].Phase = "train"
	}
	p.f.Functions = append(p.f.Functions, most...)
	return nil
}
