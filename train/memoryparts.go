package train

import (
	"github.com/gsrc-dev/gsrc/config"
	"github.com/gsrc-dev/gsrc/graph"
	"github.com/gsrc-dev/gsrc/ir"
	"github.com/gsrc-dev/gsrc/models"
	"github.com/gsrc-dev/gsrc/runtime/kernels"
)

// parts adds up what is there beside the functions.
func (p *predictor) parts() {
	x := p.ds.X
	resident := 4*(len(x.RowPtr)+len(x.Col)+len(x.Val)+len(x.Dense)) + 8*len(p.ds.Graph.Edges) + 4*len(p.ds.Graph.Weights) + 4*len(p.ds.Labels)
	inputs := p.g.Bytes()
	if p.ds.Stored != nil {
		resident -= p.ds.MappedBytes()
		if p.g.EdgeOf == nil {
			inputs = 4 * (p.ds.Graph.N + 1)
		}
	}
	p.part("data set", resident)
	if c := p.prog.Func("classify"); c != nil && c.Arg("w") != nil {
		inputs += 4 * max(p.g.E, p.dims["M"])
	}
	if x.IsSparse() {
		inputs += 4 * (x.Cols + 1 + 2*len(x.Val)) // the transpose
	}
	p.part(graphsPart, inputs)
	if c := p.prog.Func("classify"); c != nil && c.Arg(models.KnownLabels) != nil {
		p.part("known labels", 4*p.ds.Graph.N*p.ds.Classes)
	}
	p.candidates()
	for _, f := range p.prog.Funcs {
		if a := f.Arg("x_struct"); a != nil {
			if shape, err := a.Type.Shape(p.dims); err == nil {
				p.part("structural attributes", 4*shape[0]*shape[1])
				break
			}
		}
	}
}

// candidates adds up what candidate edges take, and the search for them.
func (p *predictor) candidates() {
	if !refines(p.prog) {
		return
	}
	n, m := p.ds.Graph.N, p.dims["M"]
	// By entry: the structure and marks; by edge, of which there are half as many, ends,
	// mark and probability, twice for the kept ones.
	// What chunks read of entries, and of edges beside the kept ones their probabilities, is in files.
	entry, edge := 12+4, 2*(8+1+4)
	if p.inFiles() {
		entry, edge = 0, edge-4
	}
	p.part("candidate edges", 4*2*n+entry*m+edge*m/2)
	for _, f := range []*ir.Func{p.prog.Func("pretrain"), p.prog.Func("joint")} {
		if f == nil {
			continue
		}
		for _, a := range f.Args {
			if f.Result(models.NextPrefix+a.Name) == nil {
				continue
			}
			if ofCandidates(f, a.Name) { // by entry; by edge before and behind a search, with their ends
				p.part("what steps hand on", 4*m+(4+4+8)*m/2)
			} else if shape, err := a.Type.Shape(p.dims); err == nil && len(shape) == 2 {
				p.part("what steps hand on", 4*shape[0]*shape[1])
			}
		}
	}
	if p.cfg.Model.Edges.Judge == models.JudgeEvidence {
		declared := declaredEvidenceBytes
		if p.prog.Param(models.EvidenceSpectrum) != nil {
			declared += declaredSpectrumBytes
		}
		p.part("evidence as declared", declared)
	}
	shape := p.embedding()
	if shape == nil {
		return
	}
	if weighsEdges(p.cfg, p.prog) {
		// By edge; by entry of the graph; by candidate and by its two entries.
		bytes := 4*m/2 + 4*m
		if p.inFiles() {
			bytes = 0
		}
		p.part("evidence for edges", 4*len(p.ds.Graph.Edges)+4*p.g.E+bytes)
	}
	if p.cfg.Model.Edges.Judge == models.JudgeEvidence {
		// By pair judged at a time, its ends and weight; by new candidate, its ends and
		// probability, the ends twice when others are found; logits; by entry, its weight.
		phase, edges := "", len(p.ds.Graph.Edges)
		if p.once {
			phase = "evidence"
			names, _, _ := models.EvidenceOf(func(param string) bool { return p.prog.Param(param) != nil })
			looked := edges
			if looksAtSome(edges, len(names)) {
				looked = mostLooked
			}
			p.partOf(phase, "evidence for edges by source", 3*4*looked*len(names))
		}
		pairs := 20 * min(evidenceChunk, max(newPairs, m/2))
		if !p.inFiles() {
			pairs += 20*max(0, m/2-edges) + 4*max(edges, m/2-edges)
			p.part("weights of edges to judge by", 4*p.g.E)
		}
		p.partOf(phase, "pairs to judge", pairs)
		if p.cfg.Model.Edges.Disguised {
			p.partOf("evidence", "pairs that wrong edges may look like", 24*min(edges, evidenceSample))
		}
		p.pool = p.pool.Max(regressionScratch())
	}
	near, width := searches(p.prog)*n*min(p.cfg.MostCandidates(), n), 0
	if p.prog.Func("similar") != nil {
		width = p.ds.X.Cols
	}
	for _, by := range p.cfg.Similarities() {
		if by == config.SimilarityEmbedding {
			width = max(width, shape[1])
		} else {
			width = max(width, models.EvidenceWidth(p.ds.X.Cols, marks(p.ds)))
		}
	}
	// Normalised rows; neighbours and their pairs, with the sorter's copies; lists of those
	// that do not depend on the encoder, apart and joined.
	index, pool := graph.SearchScratch(n, width, min(p.cfg.Candidates.K, n), graph.Index(p.cfg.Candidates.Index))
	if index > 0 { // it begins with the graph
		index += p.ds.Graph.UndirectedBytes()
	}
	search, lists := 4*n*width+8*n+8*len(p.ds.Graph.Edges)+index, (8+2*12)*near
	if p.searchedFirst() || p.inFiles() {
		if p.cfg.Model.Edges.Judge == models.JudgeEvidence {
			// The lists that regressions are fitted to, with similarities; of nodes drawn, pairs.
			const listed = newNearest + newTwoStep
			search, lists = max(search+max(lists, 8*newNearest*n), 8*listed*n+40*listed*min(n, newNodes)), 0
		}
		p.partOf("search", "search for candidates", search+lists)
	} else {
		p.part("search for candidates", search+lists)
	}
	if p.settled {
		p.kept()
	}
	if p.cfg.Model.Edges.Judge == models.JudgeEvidence {
		p.part("candidates known beforehand", 4*near)
	}
	p.pool = p.pool.Max(pool)
}

const graphsPart = "graphs and transposed features"

// farther returns how many candidates are two steps away, which depends on the graph alone.
func farther(g *graph.Graph, cfg *config.Config) (n int, err error) {
	k := min(cfg.Candidates.TwoStep, g.N)
	if k == 0 {
		return 0, nil
	}
	found, _ := graph.TwoStep(kernels.NewPool(cfg.Train.Threads), g, k)
	c, err := graph.NewCandidates(g, found, k, cfg.Candidates.Mutual)
	if err != nil {
		return 0, err
	}
	return len(c.Edges) - len(g.Edges), nil
}

// searches returns how many searches of nearest neighbours candidates come from.
func searches(prog *ir.Module) int {
	n := 0
	if prog.Func("similar") != nil {
		n++
	}
	if f := prog.Func("encode"); f != nil {
		if n++; f.Result(models.AlsoEmbedding) != nil {
			n++
		}
	}
	return n
}

// inFiles reports whether what is known of candidates' entries is in files.
func (p *predictor) inFiles() bool {
	return p.cfg.Train.Sampler == neighbors && refines(p.prog)
}

// embedding returns the shape [N, F] of what new candidates are searched by, nil where
// none are.
func (p *predictor) embedding() []int {
	by, name := p.prog.Func("encode"), "embedding"
	if by == nil {
		by, name = p.prog.Func("similar"), "rows"
	}
	if !refines(p.prog) || by == nil || by.Result(name) == nil || p.cfg.Candidates.Structure == "raw" {
		return nil
	}
	shape, err := by.Result(name).Type.Shape(p.dims)
	if err != nil || len(shape) != 2 {
		return nil
	}
	return shape
}
