package graph

import "math"

// Found compares a set of edges that was found with one that was wanted.
type Found struct {
	Hits   int // edges in both
	Found  int // edges found
	Wanted int // edges that should have been found
}

// Precision is Hits/Found; NaN if nothing was found.
func (f Found) Precision() float64 { return ratio(f.Hits, f.Found) }

// Recall is Hits/Wanted; NaN if nothing was wanted.
func (f Found) Recall() float64 { return ratio(f.Hits, f.Wanted) }

func ratio(a, b int) float64 {
	if b == 0 {
		return math.NaN()
	}
	return float64(a) / float64(b)
}

// CompareEdges compares two sorted edge lists without duplicates, as
// [Graph].Edges are.
func CompareEdges(found, wanted [][2]int32) Found {
	return Found{Hits: len(found) - len(withoutEdges(found, wanted)), Found: len(found), Wanted: len(wanted)}
}

// Quality says how well a refined graph undoes the damage of an observed one.
type Quality struct {
	// Dropped: of the observed edges that the refined graph lacks, how many
	// are wrong (not in the truth), and how many wrong ones there are.
	Dropped Found
	// Recovered: of the refined graph's edges that were not observed, how many
	// are in the truth, and how many true edges were not observed.
	Recovered Found
}

// EdgeQuality compares a refined graph with the observed one it was made from
// and the truth. The three must agree on the nodes and on being directed.
func EdgeQuality(observed, truth, refined *Graph) Quality {
	return Quality{
		Dropped:   CompareEdges(Difference(observed, refined), Difference(observed, truth)),
		Recovered: CompareEdges(Difference(refined, observed), Difference(truth, observed)),
	}
}

// Difference returns the edges of a that b lacks, sorted.
func Difference(a, b *Graph) [][2]int32 { return withoutEdges(a.Edges, b.Edges) }

func withoutEdges(a, b [][2]int32) [][2]int32 {
	var out [][2]int32
	j := 0
	for _, e := range a {
		for j < len(b) && edgeLess(b[j], e) {
			j++
		}
		if j == len(b) || b[j] != e {
			out = append(out, e)
		}
	}
	return out
}
