package infer

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"unsafe"

	"github.com/gsrc-dev/gsrc/data"
	"github.com/gsrc-dev/gsrc/export/manifest"
	"github.com/gsrc-dev/gsrc/graph"
	"github.com/gsrc-dev/gsrc/runtime/kernels"
)

// RefineOptions say which edges a refined graph has, and how they are listed. The
// zero value is the graph that the classifier was evaluated on, each edge once.
type RefineOptions struct {
	// Data is where the training data of a run are now, if not where they were; of
	// an export, which does not know, the graph to refine.
	Data string
	// Threshold, if not nil, takes the place of the configuration's
	// model.edges.threshold: candidates with a lower probability are no edges. It
	// lies between 0 and 1.
	Threshold *float64
	// BothDirections lists every edge twice, as u → v and as v → u, which is what
	// edge_index is in PyTorch Geometric and in an export. Otherwise an edge is
	// listed once, its first end the node that comes first in the data.
	BothDirections bool
	// KeepRemoved lists the edges that the data have and the refined graph has not,
	// too, with the status removed and the weight 0.
	KeepRemoved bool
	// Ranked lists edges by what refinement does to them: those that it removes, which are
	// listed in any case, and adds, the surest first, and then those that it keeps, the
	// least probable first. Where edges count by their weights it is by the probability without these.
	Ranked bool
	// Streamed leaves RefinedGraph.Edges nil: each row is made when it is written. Ranked rows, those
	// of both directions, and of data whose edges have weights, are listed in any case.
	Streamed bool
	// Predict says how an export reads its data and runs. Of a run Load.Weights alone is read: what
	// became of the weights of edges.
	Predict PredictOptions
	// WeightUnit is what the weight of an edge is that counts in full, of a model that counts edges by
	// their weights; 0 of others. [Refine] sets it.
	WeightUnit float32
}

// RefinedEdge is a row of a refined graph.
type RefinedEdge struct {
	Source, Target int32 // node numbers, 0..N-1
	// Weight in the refined graph: the probability, or 1 where the configuration
	// says model.edges.mode = threshold.
	Weight      float32
	Probability float32 // that the edge is one, as the model has learned it, or as RefineSummary.SameClass says
	DataWeight  float32 // in the data; 0 of new edges
	Status      string  // graph.StatusOld, StatusNew or StatusRemoved
	Candidate   int     // its number in RefinedGraph.Evidence
}

// RefinedGraph is the graph that a model has made of its data: what gsrc refine
// writes. It is undirected, whatever the data are.
type RefinedGraph struct {
	Name    string   // of the data set
	N       int      // number of nodes
	NodeIDs []string // [N] what the data call them, or nil if they have only numbers
	// Offset is nil, or of a collection of graphs, [G+1], where each begins: node v of
	// graph g is node Offset[g] + v here, and files have a column graph in front of v.
	Offset []int32
	// Edges in the order of their source and then of their target, or ranked; nil where they are
	// streamed.
	Edges []RefinedEdge
	// Evidence by source, where the model judges edges by some, with a value for each
	// candidate.
	Evidence []graph.Evidence
	// Weighted tells that edges have weights in the data.
	Weighted bool
	// BothDirections tells that every undirected edge is listed twice.
	BothDirections bool
	Summary        RefineSummary

	rows []int32 // candidates that are written
	row  func(candidate int) RefinedEdge
}

// edge is a row that is written.
func (g *RefinedGraph) edge(i int) RefinedEdge {
	if g.rows != nil {
		return g.row(int(g.rows[i]))
	}
	return g.Edges[i]
}

// RefineSummary says what refinement did. Undirected edges count once.
type RefineSummary struct {
	Threshold float64    `json:"threshold"` // candidates below it are no edges
	Before    GraphStats `json:"before"`
	After     GraphStats `json:"after"`
	Kept      int        `json:"kept"`    // edges in both graphs
	New       int        `json:"new"`     // edges in the refined graph only
	Removed   int        `json:"removed"` // edges in the data only
	// SameClass tells that probabilities are not those that edges are some, but that their ends are of
	// one class: model.edges.same_class.
	SameClass bool `json:"same_class,omitempty"`
	// Weighed tells that edges count by their weights: probabilities are those by evidence times what edges count.
	Weighed bool `json:"weighed,omitempty"`
	// RemovedPrecision is how many of the removed edges are none by their probabilities, apart from what they count
	// by their weights, or with SameClass join two classes, the mean of 1 − p; nil where none is removed, or what is
	// removed may be so for its weight and the classes tell of the others alone. Probabilities of new edges rank them, and
	// are too high to be taken for shares: nothing in a graph tells how many edges it lacks.
	RemovedPrecision *float64 `json:"removed_precision,omitempty"`
	// RemovedWrong is how many of the removed edges are none, and Wrong how many of all edges
	// before, as of edges that are removed at random; nil where the truth is not known.
	RemovedWrong *float64 `json:"removed_wrong,omitempty"`
	Wrong        *float64 `json:"wrong,omitempty"`
}

// GraphStats are figures of one graph.
type GraphStats struct {
	Edges      int     `json:"edges"`
	MeanDegree float64 `json:"mean_degree"` // neighbours of a node, weights aside
	Isolated   int     `json:"isolated"`    // nodes without a neighbour
	// Homophily is the share of the edges that join nodes of one class, of the
	// refined graph that of the edges' weight; nil without an edge between labelled
	// nodes.
	Homophily *float64 `json:"homophily"`
}

// streams reports whether rows are made when they are written.
func (o *RefineOptions) streams() bool { return o.Streamed && !o.Ranked && !o.BothDirections }

// RowBytes is what listing a candidate takes: its place or row, and it in the refined graph.
func (o *RefineOptions) RowBytes() int64 {
	const inGraph, size = 24, int64(unsafe.Sizeof(RefinedEdge{}))
	switch {
	case o.streams():
		return inGraph + 4
	case o.BothDirections:
		return inGraph + 2*size
	}
	return inGraph + size
}

// unrefined is what a refined graph is made of: one graph, or a collection as one.
type unrefined struct {
	name, source string
	g            *graph.Graph
	ids          []string
	labels       []int32 // of the nodes; nil if they have none
	offset       []int32
	truth        *graph.Graph // without wrong edges; nil where it is not known
}

// Dataset lists the edges of what was learned for a data set.
func (o *RefineOptions) Dataset(learned *graph.Refined, ds *data.Dataset) (*RefinedGraph, error) {
	return o.table(learned, unrefined{name: ds.Name, source: ds.Source, g: ds.Graph, ids: ds.NodeIDs, labels: ds.Labels, truth: ds.Truth.Undamaged()})
}

// Collection lists the edges of what was learned for a collection of graphs.
func (o *RefineOptions) Collection(learned *graph.Refined, c *data.Collection) (*RefinedGraph, error) {
	return o.table(learned, unrefined{name: c.Name, source: c.Source, g: c.Union(), offset: c.Offset})
}

// Refine returns the graph that an export makes of data: of the training graph that which
// the training has learned; for another graph new candidates are found and scored in
// onnxruntime, which an encoder with structural attributes cannot do.
func Refine(ctx context.Context, dir string, o RefineOptions) (*RefinedGraph, error) {
	if o.Data == "" {
		return nil, fmt.Errorf("%s is an export, which does not know where its data are; name the graph to refine with --data", dir)
	}
	if m, err := manifest.Read(dir); err != nil {
		return nil, err
	} else if m.Task == manifest.TaskGraphs {
		return refineCollection(ctx, dir, o)
	}
	x, err := newPredictor(dir, o.Data, o.Predict)
	if err != nil {
		return nil, err
	}
	defer x.close()
	x.noteFewEdges()
	if x.info.Graph == "raw" {
		return nil, fmt.Errorf("the model in %s classifies on the graph as it is and refines nothing", dir)
	}
	if x.onTrainingGraph() && o.Threshold != nil && *o.Threshold < x.info.Threshold {
		return nil, fmt.Errorf("the threshold %v is below %v, with which the model was trained, and an export keeps no candidates below that; refine with the run instead", *o.Threshold, x.info.Threshold)
	}
	if !x.onTrainingGraph() {
		if err := x.refinesOthers(); err != nil {
			return nil, err
		}
		if err := x.models(ctx); err != nil {
			return nil, err
		}
		if err := x.fits(x.ds.Graph, x.refining()...); err != nil {
			return nil, err
		}
	}
	refined, err := x.refined(ctx)
	if err != nil {
		return nil, err
	}
	if refined.Evidence == nil && x.manifest.JudgesByEvidence() {
		if err := x.models(ctx); err != nil {
			return nil, err
		}
		if _, refined.Evidence, err = Scorer(x.dist.ScoreByEvidence).Candidates(x.x, x.ds.Graph, refined.Candidates, &x.info); err != nil {
			return nil, err
		}
	}
	if x.info.SameClass {
		if err := x.models(ctx); err != nil {
			return nil, err
		}
		if err := x.fits(x.ds.Graph, "classifier"); err != nil {
			return nil, err
		}
		p, err := x.on(refined.Graph(), nil)
		if err != nil {
			return nil, err
		}
		refined = refined.OfOneClass(p.Probabilities, len(p.Classes))
	}
	o.Predict.Load.Weights, o.WeightUnit = x.info.Weights, x.info.WeightUnit
	return o.Dataset(refined, x.ds)
}

// refineCollection refines the graphs of a collection with an export. What it does to the
// training's it does again: an export keeps no refined graphs of a collection.
func refineCollection(ctx context.Context, dir string, o RefineOptions) (*RefinedGraph, error) {
	p, c, err := newGraphPredictor(ctx, dir, o.Data, o.Predict)
	if err != nil {
		return nil, err
	}
	defer p.close()
	if p.info.Graph == "raw" {
		return nil, fmt.Errorf("the model in %s classifies on the graphs as they are and refines nothing", dir)
	}
	atOnce, err := p.fitsBatches(c, p.refining()...)
	if err != nil {
		return nil, err
	}
	pool := kernels.NewPool(p.o.Threads)
	defer pool.Close()
	all := &graph.Refined{Candidates: &graph.Candidates{N: c.Nodes()}, Mode: p.info.Mode, Threshold: p.info.Threshold}
	err = batches(ctx, c, atOnce, func(graphs []int32, b *data.Batch) error {
		x, _, _, _ := BatchInputs(b)
		r, err := p.refine(pool, x, b.Graph, b.Offset, nil)
		if err != nil {
			return err
		}
		base := c.Offset[graphs[0]]
		for _, e := range r.Candidates.Edges {
			all.Candidates.Edges = append(all.Candidates.Edges, [2]int32{e[0] + base, e[1] + base})
		}
		all.Candidates.Existing = append(all.Candidates.Existing, r.Candidates.Existing...)
		all.Probability = append(all.Probability, r.Probability...)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return o.Collection(all, c)
}

// table lists the edges and counts them.
func (o *RefineOptions) table(learned *graph.Refined, from unrefined) (*RefinedGraph, error) {
	x := *learned
	if o.Threshold != nil {
		if t := *o.Threshold; !(t >= 0 && t <= 1) {
			return nil, fmt.Errorf("the threshold is %v; give a probability between 0 and 1", t)
		}
		x.Threshold = *o.Threshold
	}
	if x.Candidates.N != from.g.N {
		return nil, fmt.Errorf("%s has %d nodes, the refined graph %d", from.source, from.g.N, x.Candidates.N)
	}
	before, after := from.g.Undirected(), x.Graph()
	homophily, refined := math.NaN(), math.NaN()
	if from.labels != nil {
		homophily, refined = before.Homophily(from.labels), after.WeightedHomophily(from.labels)
	}
	g := &RefinedGraph{Name: from.name, N: from.g.N, NodeIDs: from.ids, Offset: from.offset, Weighted: before.Weights != nil, BothDirections: o.BothDirections,
		Summary: RefineSummary{Threshold: x.Threshold, SameClass: x.SameClass, Before: statsOf(before, homophily), After: statsOf(after, refined)}}
	g.Evidence = x.Evidence
	judged := x.Probability // without what edges count by their weights
	if g.Summary.Weighed = o.WeightUnit > 0 && g.Weighted; g.Summary.Weighed && !x.SameClass {
		judged = slices.Clone(judged)
		counts := graph.RelativeWeights(before.Weights, o.WeightUnit)
		for i, e := range x.Candidates.Edges {
			if at, ok := before.Find(e[0], e[1]); ok && judged[i] > 1e-3 { // or else bounded ([models.MinEvidence]): nothing is known
				judged[i] = min(1, judged[i]/counts[at])
			}
		}
		g.Evidence = append(slices.Clone(g.Evidence), graph.Evidence{Source: graph.Judged, Values: judged})
	}
	rowOf := func(i int) RefinedEdge {
		e := x.Candidates.Edges[i]
		row := RefinedEdge{Source: e[0], Target: e[1], Weight: x.Weight(i), Probability: x.Probability[i], Status: x.Status(i), Candidate: i}
		if g.Weighted && row.Status != graph.StatusNew {
			at, _ := before.Find(e[0], e[1])
			row.DataWeight = inData(o.Predict.Load.Weights, before.Weights[at])
		}
		return row
	}
	most := after.NumEdges()
	if o.KeepRemoved || o.Ranked {
		most = len(x.Candidates.Edges)
	}
	switch {
	case o.streams() && !g.Weighted:
		g.rows, g.row = make([]int32, 0, most), rowOf
	case o.BothDirections:
		g.Edges = make([]RefinedEdge, 0, 2*most)
	default:
		g.Edges = make([]RefinedEdge, 0, most)
	}
	truth := from.truth
	if truth != nil {
		truth = truth.Undirected()
	}
	removed, wrong := 0.0, 0 // sum of how sure it is, and how often it is right
	for i, e := range x.Candidates.Edges {
		status := x.Status(i)
		switch status {
		case graph.StatusOld:
			g.Summary.Kept++
		case graph.StatusNew:
			g.Summary.New++
		case graph.StatusRemoved:
			g.Summary.Removed++
			removed += 1 - float64(judged[i])
			if truth != nil && !truth.Has(e[0], e[1]) {
				wrong++
			}
		}
		if status == "" || status == graph.StatusRemoved && !o.KeepRemoved && !o.Ranked {
			continue
		}
		if g.rows != nil {
			g.rows = append(g.rows, int32(i))
			continue
		}
		row := rowOf(i)
		g.Edges = append(g.Edges, row)
		if o.BothDirections {
			row.Source, row.Target = e[1], e[0]
			g.Edges = append(g.Edges, row)
		}
	}
	if o.BothDirections {
		slices.SortFunc(g.Edges, func(a, b RefinedEdge) int {
			return compareEdges([2]int32{a.Source, a.Target}, [2]int32{b.Source, b.Target})
		})
	}
	if n := g.Summary.Removed; n > 0 {
		if removed /= float64(n); !(x.SameClass && g.Summary.Weighed) {
			g.Summary.RemovedPrecision = &removed
		}
		if truth != nil {
			share, all := float64(wrong)/float64(n), float64(len(graph.Difference(before, truth)))/float64(before.NumEdges())
			g.Summary.RemovedWrong, g.Summary.Wrong = &share, &all
		}
	}
	if o.Ranked {
		slices.SortStableFunc(g.Edges, func(a, b RefinedEdge) int {
			return cmp.Compare(b.sureness(judged[b.Candidate]), a.sureness(judged[a.Candidate]))
		})
	}
	return g, nil
}

// sureness orders edges as RefineOptions.Ranked says, by how likely each is one.
func (e *RefinedEdge) sureness(p float32) float64 {
	switch e.Status {
	case graph.StatusRemoved:
		return 1 - float64(p)
	case graph.StatusNew:
		return float64(p)
	}
	return -1 - float64(p)
}

func statsOf(g *graph.Graph, homophily float64) GraphStats {
	s := GraphStats{Edges: g.NumEdges()}
	if g.N > 0 {
		s.MeanDegree = 2 * float64(s.Edges) / float64(g.N)
	}
	for _, d := range g.Degrees() {
		if d == 0 {
			s.Isolated++
		}
	}
	if !math.IsNaN(homophily) {
		s.Homophily = &homophily
	}
	return s
}
