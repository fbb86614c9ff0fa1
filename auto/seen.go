package auto

import (
	"math"
	"slices"

	"github.com/gsrc-dev/gsrc/data"
	"github.com/gsrc-dev/gsrc/rng"
)

// Seen are the counts of a graph that decide which candidates there are. Of labels they
// know those of training nodes alone.
type Seen struct {
	Nodes    int     `json:"nodes"`
	Edges    int     `json:"edges"`
	Degree   float64 `json:"mean_degree"`
	Isolated float64 `json:"isolated"` // share of nodes without an edge
	Classes  int     `json:"classes"`
	Weighted bool    `json:"weighted"` // edges have weights that differ
	Directed bool    `json:"directed"`

	TrainNodes int `json:"train_nodes"`
	ValNodes   int `json:"val_nodes"`
	// LabelsPerClass is the median number of training nodes of a class.
	LabelsPerClass int `json:"labels_per_class"`
	// Homophily is the share of edges between training nodes that join nodes of one class;
	// null with fewer than 20 such edges.
	Homophily *float64 `json:"train_homophily"`

	Features int     `json:"features"`
	Kind     string  `json:"kind_of_features"` // counts, values, places (where there are no features: [graph.Encodings]) or none
	Density  float64 `json:"density"`
	// Similarity is the mean cosine of the features of an edge's ends, and Random that of
	// pairs of nodes drawn at random.
	Similarity float64 `json:"similarity_of_ends"`
	Random     float64 `json:"similarity_at_random"`
	// Tampered is whether edges seem to have been added at training nodes to mislead what learns from them: [data.Ends].
	Tampered bool `json:"training_edges_tampered"`
}

const comparable = 10_000 // edges, and pairs, that are compared

// look counts.
func look(ds *data.Dataset, split data.Split, draws rng.Stream) Seen {
	g := ds.Graph.Undirected()
	s := Seen{Nodes: g.N, Edges: g.NumEdges(), Classes: ds.Classes, Weighted: ds.Graph.WeightsDiffer(), Directed: ds.Graph.Directed, TrainNodes: len(split.Train), ValNodes: len(split.Val),
		Features: ds.X.Cols, Density: rounded(ds.X.Density()), Kind: "values"}
	switch {
	case ds.X.NNZ() == 0:
		s.Kind = "none"
	case ds.Structural:
		s.Kind = "places"
	case ds.X.Counts():
		s.Kind = "counts"
	}
	perClass := split.ClassCounts(ds.Labels, ds.Classes)
	slices.Sort(perClass)
	s.LabelsPerClass = perClass[len(perClass)/2]

	share, _ := ds.TrainHomophily(split.Train)
	if h := rounded(share); !math.IsNaN(h) {
		s.Homophily = &h
	}
	for _, d := range g.Degrees() {
		if d == 0 {
			s.Isolated++
		}
	}
	s.Isolated = rounded(s.Isolated / float64(g.N))
	s.Degree = rounded(2 * float64(s.Edges) / float64(g.N))
	if s.Kind != "none" && s.Edges > 0 {
		n, alike := min(s.Edges, comparable), ds.X.Cosine()
		for i := range n {
			e := g.Edges[i*s.Edges/n]
			s.Similarity += alike(e[0], e[1]) / float64(n)
			at := 2 * uint64(i)
			s.Random += alike(int32(draws.Intn(at, g.N)), int32(draws.Intn(at+1, g.N))) / float64(n)
		}
		s.Similarity, s.Random = rounded(s.Similarity), rounded(s.Random)
		s.Tampered = ds.Ends(split).Suspect
	}
	return s
}

func rounded(v float64) float64 { return math.Round(v*1e4) / 1e4 }
