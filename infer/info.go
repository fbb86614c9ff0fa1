package infer

import (
	"github.com/gsrc-dev/gsrc/data"
	"github.com/gsrc-dev/gsrc/graph"
	"github.com/gsrc-dev/gsrc/runtime/kernels"
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
