package graph

import "slices"

// Refined is a learned graph: candidate edges with probabilities.
type Refined struct {
	// Raw says that nothing was learned: the candidates are the raw graph's
	// edges, all with the same probability.
	Raw         bool
	Candidates  *Candidates
	Probability []float32 // [C] of each candidate
	// Lo and Hi are the frozen bounds of the cosine in Eq 18.
	Lo, Hi float32
	// Mode is expected (an edge weighs its probability) or threshold (it weighs
	// 1); candidates with a probability below Threshold are no edges.
	Mode      string
	Threshold float64
	// SameClass tells that probabilities are those that both ends are of one class: see OfOneClass.
	SameClass bool
	// Evidence is what sources say of the candidates; nil where it is not known.
	Evidence []Evidence
}

// Evidence is what one source says of candidates; the larger, the more it is for an edge.
type Evidence struct {
	Source string
	Values []float32 // [C]
}

// Weights returns each candidate's weight in the refined graph, 0 for those that
// are not in it.
func (r *Refined) Weights() []float32 {
	w := make([]float32, len(r.Probability))
	for i := range w {
		w[i] = r.Weight(i)
	}
	return w
}

// Weight is that of candidate i.
func (r *Refined) Weight(i int) float32 {
	switch p := r.Probability[i]; {
	case p < float32(r.Threshold):
		return 0
	case r.Mode == "threshold":
		return 1
	default:
		return p
	}
}

// Judged is the source of evidence that says how likely a pair is an edge, where its probability says
// something else: what [Refined.OfOneClass] says, or this times what the edge counts by its weight.
const Judged = "judged"

// OfOneClass returns the refined graph whose edges join nodes of one class: the probability of those
// that r has is Σ_c p(u,c)·p(v,c), p being how likely nodes are of each class, [N, classes] row-major.
func (r *Refined) OfOneClass(p []float32, classes int) *Refined {
	x := *r
	x.SameClass = true
	x.Probability = make([]float32, len(r.Probability))
	for i, e := range r.Candidates.Edges {
		if r.Weight(i) == 0 {
			continue
		}
		u, v := p[int(e[0])*classes:][:classes], p[int(e[1])*classes:][:classes]
		for c := range u {
			x.Probability[i] += float32(u[c] * v[c])
		}
	}
	x.Evidence = append(slices.Clone(r.Evidence), Evidence{Judged, r.Probability})
	return &x
}

// NumEdges returns how many edges the refined graph has.
func (r *Refined) NumEdges() int {
	n := 0
	for _, p := range r.Probability {
		if p >= float32(r.Threshold) {
			n++
		}
	}
	return n
}

// Graph returns the refined graph. Its edges have weights in the mode expected.
func (r *Refined) Graph() *Graph {
	w := r.Weights()
	keep := make([]bool, len(w))
	for i, p := range r.Probability {
		keep[i] = p >= float32(r.Threshold)
	}
	if r.Mode == "threshold" {
		w = nil
	}
	g, err := r.Candidates.Select(keep, w)
	if err != nil {
		panic(err) // the lengths are those of the candidates
	}
	return g
}

// The status of an edge in a refined graph.
const (
	StatusOld     = "old"     // in the raw and in the refined graph
	StatusNew     = "new"     // in the refined graph only
	StatusRemoved = "removed" // in the raw graph only
)

// Status returns the status of candidate i, or "" if it is in neither graph.
func (r *Refined) Status(i int) string {
	kept := r.Probability[i] >= float32(r.Threshold)
	switch {
	case r.Candidates.Existing[i] && kept:
		return StatusOld
	case r.Candidates.Existing[i]:
		return StatusRemoved
	case kept:
		return StatusNew
	}
	return ""
}
