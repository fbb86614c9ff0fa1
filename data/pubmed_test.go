package data

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/gsrc-dev/gsrc/rng"
)

// py2 writes what Python 2 does at protocol 2, as Planetoid's files have it.
type py2 struct{ bytes.Buffer }

func (p *py2) int(n int) { // BININT1, BININT2 or BININT
	switch {
	case n >= 0 && n < 1<<8:
		p.Write([]byte{'K', byte(n)})
	case n >= 0 && n < 1<<16:
		p.Write([]byte{'M', byte(n), byte(n >> 8)})
	default:
		p.WriteByte('J')
		binary.Write(p, binary.LittleEndian, int32(n))
	}
}

func (p *py2) text(s string) { p.Write(append([]byte{'U', byte(len(s))}, s...)) }

// array writes a one- or two-dimensional NumPy array.
func (p *py2) array(dtype string, shape []int, data any) {
	p.WriteString("cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\x00\x85U\x01b\x87R(K\x01")
	for _, n := range shape {
		p.int(n)
	}
	p.WriteByte("\x85\x86"[len(shape)-1])
	p.WriteString("cnumpy\ndtype\n")
	p.text(dtype)
	p.WriteString("K\x00K\x01\x87R(K\x03U\x01<NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb\x89T")
	binary.Write(p, binary.LittleEndian, uint32(binary.Size(data)))
	binary.Write(p, binary.LittleEndian, data)
	p.WriteString("tb")
}

// csr writes rows lo..hi-1 of a sparse matrix as scipy.sparse.csr_matrix.
func (p *py2) csr(cols int, rows [][]int32, value func(i int, j int32) float64) {
	ptr, indices, values := []int32{0}, []int32{}, []float64{}
	for i, row := range rows {
		for _, j := range row {
			indices, values = append(indices, j), append(values, value(i, j))
		}
		ptr = append(ptr, int32(len(indices)))
	}
	p.WriteString("\x80\x02cscipy.sparse.csr\ncsr_matrix\n)\x81}(U\x06_shape")
	p.int(len(rows))
	p.int(cols)
	p.WriteByte(0x86)
	p.text("indptr")
	p.array("i4", []int{len(ptr)}, ptr)
	p.text("indices")
	p.array("i4", []int{len(indices)}, indices)
	p.text("data")
	p.array("f8", []int{len(values)}, values)
	p.WriteString("ub.")
}

// Pubmed is the third of Planetoid's data sets: as large as Cora seven times over,
// and its features are float64 TF-IDF weights. A data set of its kind and size is
// written here, and what is loaded is held against what it was made from.
func TestPubmed(t *testing.T) {
	const (
		nodes, known, test, train, cols, classes = 19717, 18717, 1000, 60, 500, 3
	)
	s := rng.New(1, "pubmed")
	words := make([][]int32, nodes)
	for v := range words {
		for k := range 20 {
			words[v] = append(words[v], int32(s.Sub("words").Intn(uint64(20*v+k), cols)))
		}
		slices.Sort(words[v])
		words[v] = slices.Compact(words[v])
	}
	weight := func(v int, j int32) float64 { return float64(1+(v*7+int(j)*13)%1000) / 8192 }
	class := func(v int) int { return s.Sub("class").Intn(uint64(v), classes) }
	neighbours := make([][]int, nodes)
	edges := 0
	for v := 1; v < nodes; v++ {
		w := s.Sub("edges").Intn(uint64(v), v)
		neighbours[v] = append(neighbours[v], w)
		neighbours[w] = append(neighbours[w], v)
		edges++
	}
	for _, v := range []int{3, 50, 19000} { // Pubmed has three loops
		neighbours[v] = append(neighbours[v], v)
	}
	order := s.Sub("order").Perm(test)

	files := map[string]string{}
	features := func(part string, list []int) {
		rows := make([][]int32, len(list))
		for i, v := range list {
			rows[i] = words[v]
		}
		var p py2
		p.csr(cols, rows, func(i int, j int32) float64 { return weight(list[i], j) })
		files["ind.pubmed."+part] = p.String()
	}
	labels := func(part string, list []int) {
		hot := make([]int32, len(list)*classes)
		for i, v := range list {
			hot[i*classes+class(v)] = 1
		}
		var p py2
		p.WriteString("\x80\x02")
		p.array("i4", []int{len(list), classes}, hot)
		p.WriteString(".")
		files["ind.pubmed."+part] = p.String()
	}
	all := make([]int, known)
	for v := range all {
		all[v] = v
	}
	tests := make([]int, test)
	var index bytes.Buffer
	for i, k := range order {
		tests[i] = known + k
		fmt.Fprintln(&index, tests[i])
	}
	files["ind.pubmed.test.index"] = index.String()
	features("x", all[:train])
	features("allx", all)
	features("tx", tests)
	labels("y", all[:train])
	labels("ally", all)
	labels("ty", tests)
	var g py2
	g.WriteString("\x80\x02ccollections\ndefaultdict\nc__builtin__\nlist\n\x85R(")
	for v, list := range neighbours {
		g.int(v)
		g.WriteString("](")
		for _, w := range list {
			g.int(w)
		}
		g.WriteString("e")
	}
	g.WriteString("u.")
	files["ind.pubmed.graph"] = g.String()

	ds := mustLoad(t, writeFiles(t, files), LoadOptions{})
	in := ds.Info()
	if in.Name != "pubmed" || in.Nodes != nodes || in.Edges != edges || in.Features != cols || in.Classes != classes || in.Splits[0] != (SplitInfo{train, 500, test}) {
		t.Errorf("%+v", in)
	}
	if in.Repairs != (Repairs{SelfLoops: 3}) {
		t.Errorf("repairs %+v", in.Repairs)
	}
	for v := range nodes {
		if int(ds.Labels[v]) != class(v) {
			t.Fatalf("node %d has label %d, want %d", v, ds.Labels[v], class(v))
		}
		lo, hi := ds.X.RowPtr[v], ds.X.RowPtr[v+1]
		if !slices.Equal(ds.X.Col[lo:hi], words[v]) {
			t.Fatalf("node %d has the columns %v, want %v", v, ds.X.Col[lo:hi], words[v])
		}
		for k, j := range words[v] {
			if got := ds.X.Val[int(lo)+k]; math.Float32bits(got) != math.Float32bits(float32(weight(v, j))) {
				t.Fatalf("node %d, column %d is %v, want %v", v, j, got, weight(v, j))
			}
		}
		for _, w := range neighbours[v] {
			if w != v && !ds.Graph.Has(int32(v), int32(w)) {
				t.Fatalf("edge %d–%d is missing", v, w)
			}
		}
	}
}
