package data

import (
	"fmt"
	"math"

	"github.com/gsrc-dev/gsrc/data/store"
	"github.com/gsrc-dev/gsrc/graph"
	"github.com/gsrc-dev/gsrc/internal/scratch"
)

// storedRows are the rows of a graph store, read where they lie.
type storedRows struct {
	indptr  store.View[int64]
	sources store.View[int32]
	weights store.View[float32]
	ahead   *scratch.Ahead
}

// Rows returns the graph by the entries into its nodes: of a store, where they lie.
func (d *Dataset) Rows() graph.Rows {
	if s := d.Stored; s != nil && d.pristine() {
		r := storedRows{store.ViewOf[int64](s, "indptr"), store.ViewOf[int32](s, "sources"), store.ViewOf[float32](s, "entry_weights"), nil}
		r.ahead = scratch.NewAhead(r.sources.Unchecked())
		return r
	}
	st := d.Graph.Structure()
	r := memoryRows{Structure: st}
	if d.Graph.Weights != nil {
		r.weights = st.Spread(nil, d.Graph.Weights)
	}
	return r
}

// pristine reports whether the graph is that of the store, as it is there.
func (d *Dataset) pristine() bool {
	return d.Corruption == nil && d.Rewired == nil && (d.Graph.Weights == nil) == !d.Stored.Has("weights") && !d.transformed
}

// memoryRows are the rows of a graph in memory.
type memoryRows struct {
	*graph.Structure
	weights []float32
}

func (r memoryRows) Row(v int32) ([]int32, []float32, error) {
	lo, hi := r.In.RowPtr[v], r.In.RowPtr[v+1]
	if r.weights == nil {
		return r.In.Col[lo:hi], nil, nil
	}
	return r.In.Col[lo:hi], r.weights[lo:hi], nil
}

func (r storedRows) Nodes() int { return r.indptr.Len() - 1 }

func (r storedRows) Row(v int32) (sources []int32, weights []float32, err error) {
	at, err := r.indptr.At(int64(v), int64(v)+2)
	if err != nil {
		return nil, nil, err
	}
	if sources, err = r.sources.At(at[0], at[1]); err == nil && r.weights.Len() > 0 {
		weights, err = r.weights.At(at[0], at[1])
	}
	return sources, weights, err
}

// Totals is of [graph.Totals].
func (r storedRows) Totals(to []float64, nodes []int32) ([]float64, error) {
	for _, v := range nodes {
		at, err := r.indptr.At(int64(v), int64(v)+2)
		if err != nil {
			return nil, err
		}
		if r.weights.Len() == 0 {
			to = append(to, float64(at[1]-at[0]))
			continue
		}
		weights, err := r.weights.At(at[0], at[1])
		if err != nil {
			return nil, err
		}
		to = append(to, graph.RowWeight(nil, weights))
	}
	return to, nil
}

// Ahead has the rows of nodes read from the disk that are asked for next.
func (r storedRows) Ahead(nodes []int32) {
	if !r.ahead.Begin() {
		return
	}
	at := r.indptr.Unchecked()
	for _, v := range nodes {
		r.ahead.Want(int(at[v]), int(at[v+1]))
	}
	r.ahead.Read()
}

// Forward returns a structure of the graph for functions that compute no gradients. Of a
// store's undirected graph it is read where it lies; what is made in memory are 4 bytes a node.
func (d *Dataset) Forward() (*graph.Structure, error) {
	s := d.Stored
	if s == nil || !d.pristine() || d.Graph.Directed || s.Entries > math.MaxInt32 {
		return d.Graph.Structure(), nil
	}
	at, err := store.All[int64](s, "indptr")
	if err != nil {
		return nil, err
	}
	col, err := store.All[int32](s, "sources")
	if err != nil {
		return nil, err
	}
	rows := make([]int32, len(at))
	for i, p := range at {
		if p < 0 || p > int64(len(col)) || i > 0 && p < at[i-1] {
			return nil, fmt.Errorf("%s: row pointers are out of order", s.Dir())
		}
		rows[i] = int32(p)
	}
	return graph.Forward(rows, col), nil
}

// ForwardWeights are the weights of the entries of [Dataset.Forward], nil where all are 1.
func (d *Dataset) ForwardWeights(st *graph.Structure) ([]float32, error) {
	if d.Graph.Weights == nil {
		return nil, nil
	}
	if st.EdgeOf == nil {
		return store.All[float32](d.Stored, "entry_weights")
	}
	return st.Spread(nil, d.Graph.Weights), nil
}

// MappedBytes is how much of the data set is no memory of its own, but pages of files.
func (d *Dataset) MappedBytes() (n int) {
	s := d.Stored
	if s == nil {
		return 0
	}
	for _, name := range []string{"edges", "labels", "weights", "x_col", "x_val"} {
		n += int(s.Bytes(name))
	}
	if s.Type("x") == store.Float32 || d.X.inFile {
		n += 4 * len(d.X.Dense)
	}
	return n
}
