package graph

import "slices"

// MaxWeight is what an edge of data weighs at most: the weights at a node, of as many edges as a
// graph may have, add up to less than the largest float32 then, beyond which all answers are alike.
const MaxWeight = 1e29

// leastRelative is what an edge counts at least, so that its probability is above 0.
const leastRelative = 1e-3

// WeightUnit returns the mean weight of the edges, which is what an edge weighs that counts in
// full, see [RelativeWeights]. It is 1 where there is none, or it is 0.
func (g *Graph) WeightUnit() float32 {
	sum := 0.0
	for _, w := range g.Weights {
		sum += float64(w)
	}
	if !(sum > 0) {
		return 1
	}
	return float32(sum / float64(len(g.Weights)))
}

// WeightsDiffer reports whether weights tell edges apart.
func (g *Graph) WeightsDiffer() bool {
	return slices.ContainsFunc(g.Weights, func(w float32) bool { return w != g.Weights[0] })
}

// RelativeWeights returns what edges of these weights count: as much as the edge weighs in the
// given unit, within [0.001, 1], as a probability that it is one.
func RelativeWeights(weights []float32, unit float32) []float32 {
	out := make([]float32, len(weights))
	for i, w := range weights {
		out[i] = max(leastRelative, min(1, w/unit))
	}
	return out
}

// Counts returns what the edges of an undirected graph count by their weights in its own unit:
// ones where the weights do not differ.
func (g *Graph) Counts() []float32 {
	if !g.WeightsDiffer() {
		return slices.Repeat([]float32{1}, len(g.Edges))
	}
	return RelativeWeights(g.Weights, g.WeightUnit())
}
