package train

import (
	"slices"

	"github.com/gsrc-dev/gsrc/config"
	"github.com/gsrc-dev/gsrc/data"
	"github.com/gsrc-dev/gsrc/graph"
	"github.com/gsrc-dev/gsrc/internal/budget"
	"github.com/gsrc-dev/gsrc/ir"
	"github.com/gsrc-dev/gsrc/passes"
	"github.com/gsrc-dev/gsrc/runtime"
)

// Forecast is that of the largest batch that can come.
func (g graphTask) Forecast(d runtime.Device, prog *ir.Module, cfg *config.Config, _ data.Split, _ int64) (*Forecast, error) {
	p, err := predictGraphs(d, prog, g.Collection, cfg)
	if err != nil {
		return nil, err
	}
	if d != nil {
		p.onDevice()
		return &p.f, nil
	}
	p.parts()
	return p.host(), nil
}

// predictGraphs forecasts what functions hold on a device.
func predictGraphs(d runtime.Device, prog *ir.Module, c *data.Collection, cfg *config.Config) (*graphPredictor, error) {
	p := &graphPredictor{forecaster: newForecaster(d, prog, cfg), loaded: map[*runtime.Buffer]int{}, c: c, batch: newGraphBatch(c, make([]float64, c.Classes))}
	refines := prog.Func("fit") != nil
	if refines {
		if err := p.guessCandidates(); err != nil {
			return nil, err
		}
	}
	every := indices[int32](len(c.Graphs))
	nodes := func(g int32) int { return c.Graphs[g].N }
	if err := p.batch.join(largest(every, cfg.Train.BatchGraphs, nodes), refines); err != nil {
		return nil, err
	}
	if slices.ContainsFunc(prog.Funcs, func(f *ir.Func) bool { return f.Attrs.Bool(passes.Padded) }) {
		p.batch.pad(refines)
	}
	learned := refines && cfg.Candidates.Structure != "raw"
	for _, x := range runs(prog, cfg) {
		if x.name == "refine" { // it runs on the whole collection
			continue
		}
		if err := p.run(x, p.args(x.name)); err != nil {
			return nil, err
		}
	}
	if refines {
		if err := p.wholeCollection(learned); err != nil {
			return nil, err
		}
	}
	for _, g := range largest(every, cfg.Train.BatchGraphs, func(g int32) int { return len(c.Graphs[g].Edges) }) {
		p.edges += len(c.Graphs[g].Edges)
	}
	p.learned = learned
	return p, nil
}

// graphPredictor forecasts training on a collection.
type graphPredictor struct {
	forecaster
	loaded  map[*runtime.Buffer]int // bytes on the device of what is bound
	c       *data.Collection
	batch   *graphBatch
	edges   int  // of a batch, at most
	learned bool // candidates are searched
}

// guessCandidates takes as candidates the edges and, of each node's k nearest of its own
// graph, 80 %, as for one graph: those to the next nodes.
func (p *graphPredictor) guessCandidates() error {
	k := p.cfg.Candidates.K
	if p.cfg.Candidates.Structure == "raw" {
		k = 0
	}
	k = (k*80 + 99) / 100
	if err := affordable("the candidate edges", budget.Mul(64, int64(p.c.Nodes()), int64(k))); err != nil {
		return err
	}
	var near []int32
	for g, n := range p.c.Graphs {
		for v := range n.N {
			for i := range k {
				to := int32(-1)
				if i+2 < n.N {
					to = p.c.Offset[g] + int32((v+i+2)%n.N)
				}
				near = append(near, to)
			}
		}
	}
	cand, err := graph.NewCandidates(p.c.Union().Undirected(), near, k, false)
	if err != nil {
		return err
	}
	p.batch.refined = newCandidateBatch(&collectionEdges{known: &edges{cand: cand, p: make([]float32, len(cand.Edges))}, starts: cand.Starts(nil, p.c.Offset), weights: make([]float32, len(cand.Edges))})
	return nil
}

// args are the arguments of a function on the batch.
func (p *graphPredictor) args(name string) map[string]*runtime.Buffer {
	b := p.batch
	in := map[string]*runtime.Buffer{"x": b.x, "g": b.g, "batch": b.batch, "labels": b.labels, "targets": b.targets, "w": b.w, passes.Present: b.present}
	for _, s := range []string{"ramp", "lo", "hi"} {
		in[s] = runtime.Scalar(0)
	}
	if r := b.refined; r != nil {
		in["c"], in["p"], in["old"] = r.c, &r.p.Buffer, &r.old.Buffer
		if name == "classify" {
			in["g"], in["w"] = r.c, &r.w.Buffer
		}
	}
	return in
}

// wholeCollection forecasts the functions that run on all candidates, @score on as many
// at once as training does.
func (p *graphPredictor) wholeCollection(learned bool) error {
	all := len(p.batch.refined.known.cand.Edges)
	if err := p.run(running{"refine", "train"}, map[string]*runtime.Buffer{"p": runtime.Zeros(all)}); err != nil || !learned || all == 0 {
		return err
	}
	pairs := min(pairsAtOnce, all)
	rows := p.c.Nodes() * pairs / all
	return p.run(running{"score", "train"}, map[string]*runtime.Buffer{"embedding": runtime.Zeros(rows, p.cfg.Model.Encoder.Hidden),
		"pairs": runtime.I64(make([]int64, 2*pairs), 2, pairs), "lo": runtime.Scalar(0), "hi": runtime.Scalar(0)})
}

// run forecasts one function.
func (p *graphPredictor) run(x running, in map[string]*runtime.Buffer) error {
	args := map[string]*runtime.Buffer{}
	for _, a := range p.prog.Func(x.name).Args {
		args[a.Name] = in[a.Name]
	}
	for _, f := range withSetup(p.prog, p.prog.Func(x.name)) {
		for _, a := range f.Args {
			if b := in[a.Name]; b != nil {
				p.loaded[b] = loadedBytes(b)
			}
		}
	}
	return p.function(x, args)
}

// parts adds up what is there beside the functions.
func (p *graphPredictor) parts() {
	c, x := p.c, p.c.X
	p.part("data set", 4*(len(x.RowPtr)+len(x.Col)+len(x.Val)+len(x.Dense))+8*c.NumEdges()+4*len(c.Labels))
	p.part("a batch and its structure", (8+2*(4+4+4+4))*p.edges+40*p.batch.st.N)
	if r := p.batch.refined; r != nil {
		n := len(r.known.cand.Edges)
		// Ends, whether it exists, probability and weight, and all but the weight once
		// more for the kept epoch; and the graphs as one.
		p.part("candidates", n*(8+1+4+4+8+1+4)+8*c.NumEdges())
		p.part("a batch's candidates and their structure", (8+2*(4+4+4+4)+3*(4+2*4))*len(r.g.Edges))
		if p.learned {
			width := 4 * p.cfg.Model.Encoder.Hidden
			p.part("similarities, embedding and pairs", 4*n+c.Nodes()*width+16*min(pairsAtOnce, n))
			p.part("search for neighbours", c.Nodes()*(width+p.cfg.Candidates.K*(4+4+3*8)))
		}
	}
}

// onDevice makes the forecast that of a device's memory: see predictor.onDevice. The
// largest batch comes after smaller ones: memory that has grown has room to grow again, a
// quarter, and pieces of arenas have theirs, a sixteenth and a bit.
func (p *graphPredictor) onDevice() {
	for i := range p.f.Functions {
		p.f.Functions[i].Arena += p.f.Functions[i].Arena * 3 / 8
	}
	inputs := 0
	for _, n := range p.loaded {
		inputs += n + n/4
	}
	p.f.onDevice(p.device, inputs, parameterBytes(p.prog), 0)
}
