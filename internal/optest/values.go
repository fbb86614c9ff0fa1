package optest

import (
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/gsrc-dev/gsrc/graph"
	"github.com/gsrc-dev/gsrc/ir"
	"github.com/gsrc-dev/gsrc/rng"
	"github.com/gsrc-dev/gsrc/runtime/kernels"
)

// Value is an argument: a dense tensor of F32 or I64, a sparse matrix of F32 in
// RowPtr and Col, a Graph, or a block, which is a Graph of three Dims.
type Value struct {
	Dims        []int
	F32         []float32
	I64         []int64
	RowPtr, Col []int32
	Graph       *graph.Structure
}

var farScales = []float32{1, 1e20, 1e-18, math.MaxFloat32, 1e-40, 1e12, 0, 1e-12, math.SmallestNonzeroFloat32, 1e-38, 3e38}

// RandomValue draws a value of a type whose dimensions are bound.
func RandomValue(t testing.TB, ty ir.Type, values string, bind map[string]int, s rng.Stream) *Value {
	t.Helper()
	shape, err := ty.Shape(bind)
	if err != nil {
		t.Fatal(err)
	}
	n := 1
	for _, d := range shape {
		n *= d
	}
	word, bound, _ := strings.Cut(values, ":")
	if ty.DType == ir.I64 {
		data := make([]int64, n)
		for i := range data {
			data[i] = int64(s.Intn(uint64(i), max(1, bind[bound])))
		}
		return &Value{Dims: shape, I64: data}
	}
	value := func(i int) float32 {
		v := kernels.NormalAt(s, uint64(i))
		switch word {
		case "positive":
			v = 0.3 + float32(2*s.Uniform(uint64(i)))
		case "prob":
			v = 0.02 + float32(0.96*s.Uniform(uint64(i)))
		case "flag":
			v = float32(s.Uint32(uint64(i)) % 2)
		case "huge":
			v *= 300
		case "far": // rows of magnitudes from the smallest float32 to the largest
			row := i / max(1, shape[len(shape)-1])
			v = max(-1, min(1, v)) * farScales[row%len(farScales)]
		case "coarse": // so that equal elements occur
			v = float32(math.Round(float64(v)))
		}
		return v
	}
	if ty.Layout == ir.CSR {
		rowPtr, col, vals := []int32{0}, []int32{}, []float32{}
		for i := range n {
			if s.Sub("pattern").Uniform(uint64(i)) < 0.3 {
				col, vals = append(col, int32(i%shape[1])), append(vals, value(i))
			}
			if (i+1)%shape[1] == 0 {
				rowPtr = append(rowPtr, int32(len(col)))
			}
		}
		for len(rowPtr) < shape[0]+1 {
			rowPtr = append(rowPtr, int32(len(col)))
		}
		return &Value{Dims: shape, RowPtr: rowPtr, Col: col, F32: vals}
	}
	data := make([]float32, n)
	for i := range data {
		data[i] = value(i)
	}
	switch word {
	case "definite":
		gram(data, shape[0], shape[0], 0.3)
	case "singular":
		gram(data, shape[0], 2, 0)
	case "upper":
		for i := range data {
			switch r, c := i/shape[1], i%shape[1]; {
			case r > c:
				data[i] = 0
			case r == c:
				data[i] = 1 + float32(math.Abs(float64(data[i])))
			default:
				data[i] /= float32(shape[0])
			}
		}
	}
	return &Value{Dims: shape, F32: data}
}

// gram replaces the matrix x by xᵀx/n + ridge·I of its first rows.
func gram(x []float32, n, rows int, ridge float64) {
	a := make([]float32, n*n)
	for i := range n {
		for j := range n {
			s := 0.0
			for k := range min(rows, n) {
				s += float64(x[k*n+i]) * float64(x[k*n+j]) / float64(n)
			}
			if i == j {
				s += ridge
			}
			a[i*n+j] = float32(s)
		}
	}
	copy(x, a)
}

// randomMembers divides nodes among graphs, some of which may have none.
func randomMembers(graphs, nodes int, s rng.Stream) *graph.Structure {
	offset := make([]int32, graphs+1)
	for g := range graphs {
		offset[g] = int32(s.Intn(uint64(g), nodes+1))
	}
	offset[0], offset[graphs] = 0, int32(nodes)
	slices.Sort(offset)
	st := &graph.Structure{}
	st.RebuildBatchIndex(offset)
	return st
}

// Arguments draws values for a function's arguments; words says what values
// they take.
func Arguments(t testing.TB, f *ir.Func, words map[string]string, sz Sizes, s rng.Stream) map[string]*Value {
	t.Helper()
	bind := map[string]int{}
	maps.Copy(bind, sz)
	args := map[string]*Value{}
	for _, a := range f.Args {
		if a.Type.IsBlock() { // which graph of a batch every node is of
			graphs, nodes := bind[string(a.Type.Dims[0])], bind[string(a.Type.Sources())]
			g := randomMembers(graphs, nodes, s.Sub(a.Name))
			args[a.Name] = &Value{Dims: []int{graphs, nodes, nodes}, Graph: g}
		} else if a.Type.IsGraph() {
			g := RandomGraph(t, bind[string(a.Type.Dims[0])], bind[string(a.Type.Dims[1])], s.Sub(a.Name))
			bind[string(a.Type.Dims[1])] = g.E
			args[a.Name] = &Value{Dims: []int{g.N, g.E}, Graph: g}
		}
	}
	for d, n := range bind {
		if n < 0 { // edge values without their graph
			bind[d] = 9
		}
	}
	for _, a := range f.Args {
		if !a.Type.IsGraph() {
			args[a.Name] = RandomValue(t, a.Type, words[a.Name], bind, s.Sub(a.Name))
		}
	}
	return args
}
