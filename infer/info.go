package infer

import (
	"slices"

	"github.com/gsrc-dev/gsrc/data"
	"github.com/gsrc-dev/gsrc/graph"
	"github.com/gsrc-dev/gsrc/runtime/kernels"
	"github.com/gsrc-dev/gsrc/runtime/ort"
)

// The files that an export has beside those of package export.
const (
	RefinedFile = "refined_edges.csv"
	InfoFile    = "inference.json"
	PriorFile   = "evidence.json" // a graph.Calibration
)

// Info is inference.json: what inference needs beside the models.
type Info struct {
	SchemaVersion int `json:"schema_version"`
	// Data is the training graph, which is told by its checksum.
	Data struct {
		Name     string `json:"name"`
		Checksum string `json:"checksum"`
		Nodes    int    `json:"nodes"`
		// Structural tells that its nodes have no features but their places in it.
		Structural bool `json:"structural,omitempty"`
		// Corruption says how it was made from data of another checksum.
		Corruption *data.Corruption `json:"corruption,omitempty"`
	} `json:"data"`
	// Graph says which one the classifier reads: raw, or refined (candidates
	// with probabilities).
	Graph string `json:"graph"`
	// RawWeight is the weight of every edge where Graph is raw.
	RawWeight float32 `json:"raw_weight"`
	// Weighted tells that the classifier reads the weights that edges have in the data, and
	// Weights what becomes of these before.
	Weighted bool             `json:"weighted,omitempty"`
	Weights  data.EdgeWeights `json:"weights,omitempty"`
	// WeightUnit, above 0, tells that existing edges count by their weights in the data, as
	// graph.RelativeWeights has it, where the graph is refined or Graph is raw and RawWeight
	// what an edge weighs that counts in full.
	WeightUnit float32 `json:"weight_unit,omitempty"`
	// Loops tells that it reads the weights of self-loops, too.
	Loops bool `json:"self_loops,omitempty"`
	// How candidates are found and weighted where Graph is refined: each node's
	// K nearest neighbours by the embedding, of both ends if Mutual; those with a
	// probability of at least Threshold are edges, which weigh their probability
	// (Mode expected) or 1 (Mode threshold).
	K         int     `json:"k,omitempty"`
	Mutual    bool    `json:"mutual,omitempty"`
	Mode      string  `json:"mode,omitempty"`
	Threshold float64 `json:"threshold,omitempty"`
	// Similarity, where it is not the embedding's, and TwoStep say how further candidates
	// are found: candidates.similarity and candidates.two_step.
	Similarity string `json:"similarity,omitempty"`
	TwoStep    int    `json:"two_step,omitempty"`
	// Evidence says that existing edges have a prior by attributes, see
	// graph.EdgePrior: their probabilities are multiplied by it, and the encoder takes
	// it as edge weights.
	Evidence *PriorInfo `json:"evidence,omitempty"`

	// Known are the nodes of the training graph whose labels the classifier reads: the
	// training nodes. Absent where it reads none.
	Known []int32 `json:"known_nodes,omitempty"`

	// Features, of a classifier of graphs, names the columns of x, and NodeFeatures
	// the option by which they were made: columns of other data are found by name.
	Features     []string `json:"features,omitempty"`
	NodeFeatures string   `json:"node_features,omitempty"`
}

// PriorInfo are the parameters of graph.EdgePrior.
type PriorInfo struct {
	Rounds   int     `json:"rounds"`
	Strength float64 `json:"distrust,omitempty"`
	Seed     uint64  `json:"seed"`
	// Calibration names the file with what the training graph has shown, for edges of
	// other graphs. It is empty in exports of earlier versions: there each graph is its
	// own calibration.
	Calibration string `json:"calibration,omitempty"`

	calibration *graph.Calibration // the file's content
}

// Prior is the prior of the edges of data: by attributes, by their weights, or both; nil where
// the model has none, or judges by evidence.
func (x *Info) Prior(pool *kernels.Pool, ds *data.Dataset, judges bool) (*graph.EdgePrior, error) {
	prior, err := x.Evidence.Prior(pool, ds)
	if err != nil || x.WeightUnit == 0 || judges {
		return prior, err
	}
	g := ds.Graph.Undirected()
	counts := graph.RelativeWeights(x.dataWeights(g), x.WeightUnit)
	if prior == nil {
		return &graph.EdgePrior{Graph: g, P: counts}, nil
	}
	prior.Count(counts)
	return prior, nil
}

// ReadsWeights tells that the model reads the weights of edges.
func (x *Info) ReadsWeights() bool { return x.Weighted || x.WeightUnit > 0 }

// dataWeights are the weights of the edges of a graph: where it has none every edge weighs
// what counts in full.
func (x *Info) dataWeights(g *graph.Graph) []float32 {
	if g.Weights == nil {
		return slices.Repeat([]float32{x.WeightUnit}, len(g.Edges))
	}
	return g.Weights
}

// EntryWeights are the weights of the edges that encoder and scorer read, in the order of a
// structure of g: the prior by attributes, or the weights in the data; nil for ones. Edges in
// both directions weigh what the graph without directions has.
func (x *Info) EntryWeights(prior *graph.EdgePrior, g *graph.Graph, st *graph.Structure) *ort.Tensor {
	if x.Evidence == nil && x.WeightUnit > 0 {
		u := g.Undirected()
		prior = &graph.EdgePrior{Graph: u, P: x.dataWeights(u)}
	}
	return EntryWeights(prior, g, st)
}

// Prior estimates the prior of the edges of data, nil where the model has none.
func (e *PriorInfo) Prior(pool *kernels.Pool, ds *data.Dataset) (*graph.EdgePrior, error) {
	switch {
	case e == nil:
		return nil, nil
	case e.calibration != nil:
		return e.calibration.Prior(pool, ds.Graph, ds.X.Attributes(), e.Strength)
	}
	return graph.NewEdgePrior(pool, ds.Graph, ds.X.Attributes(), e.Rounds, e.Strength, e.Seed), nil
}
