package infer

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"github.com/gsrc-dev/gsrc/data"
	"github.com/gsrc-dev/gsrc/graph"
	"github.com/gsrc-dev/gsrc/internal/fmath"
	"github.com/gsrc-dev/gsrc/runtime/ort"
)

// The files that an export has beside those of package export.
const (
	RefinedFile = "refined_edges.csv"
	InfoFile    = "inference.json"
)

// Info is inference.json: what inference needs beside the models.
type Info struct {
	SchemaVersion int `json:"schema_version"`
	// Data is the training graph, which is told by its checksum.
	Data struct {
		Name     string `json:"name"`
		Checksum string `json:"checksum"`
		Nodes    int    `json:"nodes"`
		// Edges is 0 in exports of earlier versions, which do not tell.
		Edges int `json:"edges,omitempty"`
		// Structural tells that its nodes have no features but their places in it.
		Structural bool `json:"structural,omitempty"`
		// Corruption says how it was made from data of another checksum.
		Corruption *data.Corruption `json:"corruption,omitempty"`
		// Rewired says which edges took the place of the data's own, if any did.
		Rewired *data.Rewired `json:"rewired,omitempty"`
		// Roles says which columns of its tables are what, Merge what weight edges have that are listed
		// more than once, and Ignored which columns were left out; exports of earlier versions have the first
		// two with their columns alone.
		Roles   data.Roles `json:"roles,omitzero"`
		Merge   string     `json:"merge,omitempty"`
		Ignored []string   `json:"ignored,omitempty"`
		// Synthetic made it, where a generator did; absent in exports of earlier versions.
		Synthetic *graph.CSBM `json:"synthetic,omitempty"`
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
	// Directed tells whether edges of the training graph have a direction, which those of other data
	// keep then; nil in exports of a version that did not tell of undirected ones.
	Directed *bool `json:"directed,omitempty"`
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
	// SameClass tells that the refined graph that is written has edges between nodes of one class:
	// model.edges.same_class.
	SameClass bool `json:"same_class,omitempty"`
	// Evidence is there in exports that judge edges by attributes alone, as earlier versions had it.
	Evidence json.RawMessage `json:"evidence,omitempty"`

	// Known are the nodes whose labels the classifier reads on the training graph: the training
	// nodes. On another graph it reads all labels. Absent where it reads none.
	Known []int32 `json:"known_nodes,omitempty"`

	// Features, of a classifier of graphs, names the columns of x, and NodeFeatures
	// what they describe nodes by, which exports of earlier versions have as auto: columns of other data are found by name.
	Features     []string `json:"features,omitempty"`
	NodeFeatures string   `json:"node_features,omitempty"`
}

// Directed reports whether an export says that its model was trained on a directed graph.
func Directed(dir string) bool {
	p, err := openExport(dir, PredictOptions{})
	return err == nil && p.info.Directed != nil && *p.info.Directed
}

// FewEdges says that a data set has no edges, or less than a tenth of those that a node of the training graph had;
// it is empty where neither is so.
func FewEdges(ds *data.Dataset, nodes, edges int) string {
	have, had := float64(ds.Graph.NumEdges())/float64(max(1, ds.Graph.N)), float64(edges)/float64(max(1, nodes))
	if !(have < had/10) {
		return ""
	}
	short := func(x float64) string { // to two digits, and 120 in place of 1.2e+02
		x, _ = strconv.ParseFloat(strconv.FormatFloat(x, 'g', 2, 64), 64)
		return fmt.Sprint(x)
	}
	return fmt.Sprintf("%s has %s edges a node, and the training had %s: answers rest on neighbours, so give the whole graph; gsrc predict --nodes names the nodes that are asked for", ds.Source, short(have), short(had))
}

// Prior is what the edges of data count by their weights; nil where they have none, or evidence
// counts them.
func (x *Info) Prior(ds *data.Dataset, judges bool) *graph.EdgePrior {
	if x.WeightUnit == 0 || judges {
		return nil
	}
	g := ds.Graph.Undirected()
	return &graph.EdgePrior{Graph: g, P: graph.RelativeWeights(x.dataWeights(g), x.WeightUnit)}
}

// ReadsWeights tells that the model reads the weights of edges.
func (x *Info) ReadsWeights() bool { return x.Weighted || x.WeightUnit > 0 }

// inData returns a weight in the data of which e makes w: that with the fewest digits, since several
// numbers may have the same logarithm.
func inData(e data.EdgeWeights, w float32) float32 {
	if e != data.LogWeights {
		return w
	}
	given := fmath.Expm1(float64(w))
	for digits := 1; digits < 9; digits++ {
		short, err := strconv.ParseFloat(strconv.FormatFloat(given, 'g', digits, 32), 32)
		if err == nil && e.Of(float32(short)) == w {
			return float32(short)
		}
	}
	return float32(given)
}

// dataWeights are the weights of the edges of a graph: where it has none every edge weighs
// what counts in full.
func (x *Info) dataWeights(g *graph.Graph) []float32 {
	if g.Weights == nil {
		return slices.Repeat([]float32{x.WeightUnit}, len(g.Edges))
	}
	return g.Weights
}

// EntryWeights are the weights in the data of the edges that encoder and scorer read, in the
// order of a structure of g; nil for ones. Edges in both directions weigh what the graph without
// directions has.
func (x *Info) EntryWeights(g *graph.Graph, st *graph.Structure) *ort.Tensor {
	if x.WeightUnit == 0 {
		return nil
	}
	u := g.Undirected()
	prior := &graph.EdgePrior{Graph: u, P: x.dataWeights(u)}
	return new(ort.Float32s(prior.OfEntries(nil, g, st, nil), int64(st.E)))
}
