package data

import (
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gsrc-dev/gsrc/graph"
)

// npz reads a data set from one .npz file, in either of the two layouts.
func (l *loader) npz(path string) (*Dataset, error) {
	b, err := l.file(path)
	if err != nil {
		return nil, err
	}
	defer l.done(b)
	return l.parseNPZ(path, b)
}

// parseNPZ reads a data set from the bytes of an .npz file.
func (l *loader) parseNPZ(path string, b []byte) (_ *Dataset, err error) {
	defer within(path, &err)
	a, err := l.openNPZ(path, b)
	if err != nil {
		return nil, err
	}
	var ds *Dataset
	switch {
	case a.has("node_features") || a.has("node_labels"):
		ds = l.heterophilous(a)
	case a.has("adj_indptr") || a.has("attr_indptr"):
		ds = l.csrParts(a)
	default:
		return nil, badFile(path, "not a graph data set: it holds %s", nameList(a.names)).hint("expected node_features, node_labels, edges or adj_data, adj_indices, adj_indptr, adj_shape, attr_…, labels")
	}
	ds.Name = strings.TrimSuffix(filepath.Base(path), filepath.Ext(path))
	ds.Source = path
	if left := slices.DeleteFunc(a.names, func(name string) bool { return a.read[name] }); len(left) > 0 {
		ds.Notes = append(ds.Notes, filepath.Base(path)+": left out: "+nameList(left))
	}
	return ds, nil
}

// heterophilous reads the layout of the heterophilous benchmarks (Platonov et
// al., "A critical look at the evaluation of GNNs under heterophily", ICLR
// 2023): node_features [N,D], node_labels [N], edges [E,2] and, if there are
// splits, train_masks, val_masks and test_masks [S,N].
func (l *loader) heterophilous(a *archive) *Dataset {
	ds := &Dataset{Format: "heterophilous"}
	var err error
	ds.X, err = denseFeatures(a.get("node_features"))
	a.check("node_features", err)
	n := ds.X.Rows
	if n == 0 {
		a.check("node_features", errNoNodes)
	}
	ds.setLabels(a, "node_labels", n)

	edges := a.get("edges")
	if len(edges.shape) != 2 || edges.shape[1] != 2 {
		err := fmt.Errorf("expected the shape [E,2], found %s", shapeString(edges.shape))
		if len(edges.shape) == 2 && edges.shape[0] == 2 {
			err = fmt.Errorf("%w; save edges.T, one edge a row", err)
		}
		a.check("edges", err)
	}
	ends, err := edges.ints()
	a.check("edges", err)
	edges.done()
	m := len(ends) / 2
	a.check("edges", l.mem.Grow(8*int64(m)))
	list := &edgeList{src: make([]int32, m), dst: make([]int32, m)}
	for i := range list.src {
		u, v := ends[2*i], ends[2*i+1]
		if u < 0 || v < 0 || u >= int64(n) || v >= int64(n) {
			a.failf("edges", "row %d joins %d and %d, nodes are numbered 0 to %d", i, u, v, n-1)
		}
		list.src[i], list.dst[i] = int32(u), int32(v)
	}
	l.mem.Shrink(8 * int64(cap(ends)))
	if l.opts.Weights != IgnoreWeights {
		list.w = a.edgeWeights(m)
	}
	a.check("edges", l.graph(ds, list, n, false))
	ds.Splits = maskSplits(a, n)
	return ds
}

// edgeWeights reads one number for each of m edges, if there is such an array; nil if there is
// none, or all are 1.
func (a *archive) edgeWeights(m int) []float32 {
	for _, name := range []string{"edge_weight", "edge_weights"} {
		if !a.has(name) {
			continue
		}
		arr := a.get(name)
		var err error
		var w, found []float32
		if len(arr.shape) == 0 || arr.shape[0] != m || arr.len() != m {
			err = fmt.Errorf("expected the shape [%d], a number for each edge, found %s", m, shapeString(arr.shape))
		} else if w, err = arr.float32s(); err == nil {
			arr.done()
		}
		for i, x := range w {
			if err = checkWeight(x); err != nil {
				err = fmt.Errorf("edge %d: %w", i, err)
				break
			}
			if x != 1 {
				found = w
			}
		}
		if err != nil {
			panic(failed{fileFault(a.file, err).in(quote(name)).hint("--ignore-weights leaves weights out")})
		}
		return found
	}
	return nil
}

// maskSplits reads the three arrays of masks; without all three there are no
// splits.
func maskSplits(a *archive, n int) []Split {
	names := [3]string{"train_masks", "val_masks", "test_masks"}
	switch {
	case !a.has(names[0]) && !a.has(names[1]) && !a.has(names[2]):
		return nil
	case !a.has(names[:]...):
		failf("splits need all of %s", strings.Join(names[:], ", "))
	}
	var splits []Split
	for p, name := range names {
		arr := a.get(name)
		if len(arr.shape) == 1 { // a single split
			arr.shape = []int{1, arr.shape[0]}
		}
		if len(arr.shape) != 2 || arr.shape[1] != n {
			a.failf(name, "expected the shape [splits,%d], found %s", n, shapeString(arr.shape))
		}
		mask, err := arr.bools()
		a.check(name, err)
		arr.done()
		count := arr.shape[0]
		// A slice for each split, and the marked nodes, whose list grows by halves.
		a.check(name, a.mem.Grow(24*int64(count)+10*int64(len(mask))))
		if p == 0 {
			splits = make([]Split, count)
		}
		if count != len(splits) {
			a.failf(name, "has %d splits, %s has %d", count, names[0], len(splits))
		}
		for s := range splits {
			var nodes []int32
			for v, in := range mask[s*n : (s+1)*n] {
				if in {
					nodes = append(nodes, int32(v))
				}
			}
			*splits[s].parts()[p] = nodes
		}
		a.mem.Shrink(int64(len(mask)))
	}
	return splits
}

// setLabels reads class numbers [N].
func (d *Dataset) setLabels(a *archive, name string, n int) {
	arr := a.get(name)
	if len(arr.shape) != 1 || arr.shape[0] != n {
		a.failf(name, "expected the shape [%d], found %s", n, shapeString(arr.shape))
	}
	raw, err := arr.ints()
	a.check(name, err)
	arr.done()
	d.Labels, d.Classes, err = classLabels(a.mem, raw)
	a.check(name, err)
}

// csrParts reads a graph and its attributes as two SciPy CSR matrices in parts:
// adj_data, adj_indices, adj_indptr, adj_shape, attr_…, and labels [N].
func (l *loader) csrParts(a *archive) *Dataset {
	ds := &Dataset{Format: "csr-npz"}
	var err error
	ds.X, err = a.csr("attr_").features()
	a.check("attr_*", err)
	n := ds.X.Rows
	if n == 0 {
		a.check("attr_*", errNoNodes)
	}
	ds.setLabels(a, "labels", n)

	list, err := a.csr("adj_").edges(n)
	a.check("adj_*", err)
	a.check("adj_*", l.graph(ds, list, n, true))
	return ds
}

func (a *archive) csr(prefix string) *csrMatrix {
	shape := a.get(prefix + "shape")
	dims, err := shape.ints()
	shape.done()
	if err != nil || len(dims) != 2 || dims[0] < 0 || dims[1] < 0 || dims[0] > math.MaxInt32 || dims[1] > math.MaxInt32 {
		a.failf(prefix+"shape", "expected two sizes, found shape %s of type %s", shapeString(shape.shape), shape.dtype)
	}
	c := &csrMatrix{shape: []int{int(dims[0]), int(dims[1])}}
	for _, name := range []string{"indptr", "indices", "data"} {
		*c.arrays()[name] = a.get(prefix + name)
	}
	return c
}

// checkWeight refuses edge weights that no normalisation, nor a sum of them, can take.
func checkWeight(w float32) error {
	if !(w >= 0 && w <= graph.MaxWeight) {
		return fmt.Errorf("weight %v is not a number from 0 to %g", w, graph.MaxWeight)
	}
	return nil
}
