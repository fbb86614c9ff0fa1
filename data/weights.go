package data

import (
	"fmt"
	"math"
	"slices"

	"github.com/gsrc-dev/gsrc/internal/fmath"
)

// EdgeWeights says what becomes of the weights of edges.
type EdgeWeights string

const (
	WeightsAsTheyAre EdgeWeights = ""
	IgnoreWeights    EdgeWeights = "ignore" // every edge weighs 1
	LogWeights       EdgeWeights = "log1p"  // ln(1 + w)
)

// Check refuses what is none of the constants.
func (e EdgeWeights) Check() error {
	if e == WeightsAsTheyAre || e == IgnoreWeights || e == LogWeights {
		return nil
	}
	return fmt.Errorf("edge weights %q: give ignore or log1p, or leave it out", string(e))
}

// Of returns what becomes of a weight.
func (e EdgeWeights) Of(w float32) float32 {
	switch e {
	case IgnoreWeights:
		return 1
	case LogWeights:
		return float32(fmath.Log(1 + float64(w)))
	}
	return w
}

// Apply changes the weights of the graph's edges.
func (e EdgeWeights) Apply(d *Dataset) {
	switch e {
	case IgnoreWeights:
		d.Graph.Weights, d.Loops = nil, nil
	case LogWeights:
		d.transformed = true
		for _, w := range [][]float32{d.Graph.Weights, d.Loops} {
			for i, x := range w {
				if x >= 0 { // -1 is no loop
					w[i] = e.Of(x)
				}
			}
		}
	}
}

// heavyTail is how many times the median the largest weight is, from which on a note says so.
const heavyTail = 100

// noteWeights reports weights of which a few outweigh all others.
func (d *Dataset) noteWeights() {
	w := slices.Clone(d.Graph.Weights)
	if len(w) == 0 {
		return
	}
	slices.Sort(w)
	median, largest := w[len(w)/2], w[len(w)-1]
	if float64(largest) > heavyTail*math.Max(float64(median), 0) && largest > 0 {
		d.Notes = append(d.Notes, fmt.Sprintf("the weights of edges have a heavy tail (median %.4g, largest %.4g), so few edges outweigh all others; --weight-transform log1p takes their logarithms", median, largest))
	}
}
