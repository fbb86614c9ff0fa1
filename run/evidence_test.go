package run

import (
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/gsrc-dev/gsrc/compiler"
	"github.com/gsrc-dev/gsrc/config"
	"github.com/gsrc-dev/gsrc/ir"
	"github.com/gsrc-dev/gsrc/models"
	"github.com/gsrc-dev/gsrc/rng"
	"github.com/gsrc-dev/gsrc/runtime"
	"github.com/gsrc-dev/gsrc/runtime/ort"
)

// judgingModule is an ecl-gsr that judges edges by evidence, of a graph with many edges or few.
func judgingModule(t *testing.T, features int, dense bool) *ir.Module {
	t.Helper()
	cfg, err := config.Load("ecl-gsr", "synthetic", "", []string{"model.edges.judge=evidence"})
	if err != nil {
		t.Fatal(err)
	}
	o := cfg.Model
	o.Features, o.Classes, o.Dense = features, 2, dense
	model, err := models.Lookup("ecl-gsr")
	if err != nil {
		t.Fatal(err)
	}
	m, err := model.Program(o, false)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// Every source judges an edge as it judges the same pair in the graph without the edge;
// parameters that are not fitted give finite numbers; with any number of threads all
// is the same to the bit; and a self-loop changes nothing.
func TestEvidenceLeavesTheEdgeOut(t *testing.T) {
	const nodes, features = 14, 6
	m := judgingModule(t, features, false)
	r := rng.New(3, "evidence test")
	draw := uint64(0)
	normal := func(n int) []float32 {
		x := make([]float32, n)
		for i := range x {
			x[i] = float32(r.Intn(draw, 2001))/1000 - 1
			draw++
		}
		return x
	}
	params := map[string][]float32{}
	for _, p := range m.Params {
		dims, err := p.Type.Shape(nil)
		if err != nil {
			t.Fatal(err)
		}
		params[p.Name] = runtime.Zeros(dims...).F32
	}
	fitted := maps.Clone(params)
	fitted[models.EvidenceProjection] = normal(len(params[models.EvidenceProjection]))
	x := ort.Float32s(normal(nodes*features), nodes, features)
	var edges [][2]int64
	for u := range int64(nodes - 1) { // the last node has no edge
		for v := range u {
			if draw++; r.Intn(draw, 4) == 0 || v == u-1 && u%3 == 0 {
				edges = append(edges, [2]int64{v, u})
			}
		}
	}
	index := func(leave int) ort.Tensor {
		var src, dst []int64
		for i, e := range edges {
			if i != leave {
				src, dst = append(src, e[0], e[1]), append(dst, e[1], e[0])
			}
		}
		return ort.Int64s(append(src, dst...), 2, int64(len(src)))
	}
	by := func(m *ir.Module, params map[string][]float32, threads int, index ort.Tensor, pair [2]int64) map[string]ort.Tensor {
		t.Helper()
		f, err := newForward(m, params, nil, threads)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		out, err := f.Run("score", map[string]ort.Tensor{"x": x, "edge_index": index, "pairs": ort.Int64s(pair[:], 2, 1)})
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	score := func(params map[string][]float32, threads int, index ort.Tensor, pair [2]int64) map[string]ort.Tensor {
		t.Helper()
		return by(m, params, threads, index, pair)
	}
	whole := score(fitted, 1, index(-1), edges[0])
	for name, v := range score(fitted, 4, index(-1), edges[0]) {
		if !slices.Equal(v.F32, whole[name].F32) {
			t.Errorf("%s is another with 4 threads", name)
		}
	}
	for i, e := range edges {
		without := score(fitted, 1, index(i), e)
		for _, source := range models.EvidenceSources {
			want := without["evidence_"+source].F32[0]
			for side := range 2 {
				if got := whole["edge_evidence_"+source].F32[2*i+side]; !(math.Abs(float64(got-want)) <= 1e-5) {
					t.Errorf("%s of the edge %v is %v; without the edge the pair has %v", source, e, got, want)
				}
			}
		}
	}
	looped := index(-1)
	looped = ort.Int64s(slices.Concat([]int64{2}, looped.I64[:len(looped.I64)/2], []int64{2}, looped.I64[len(looped.I64)/2:]), 2, looped.Shape[1]+1)
	for name, v := range score(fitted, 1, looped, edges[0]) {
		if strings.HasPrefix(name, "edge_") && (v.F32[0] != 0 || !slices.Equal(v.F32[1:], whole[name].F32)) {
			t.Errorf("a self-loop changes %s", name)
		}
	}
	for name, v := range score(params, 1, index(-1), edges[0]) {
		for _, v := range v.F32 {
			if math.IsNaN(float64(v)) || math.IsInf(float64(v), 0) {
				t.Fatalf("%s of parameters that are not fitted is %v", name, v)
			}
		}
	}

	// Without robust evidence all is the same to the bit where the gate is closed, and there
	// is less to compute.
	drawn := maps.Clone(fitted)
	for name, v := range drawn {
		if strings.HasPrefix(name, "evidence.") && name != models.EvidenceGate {
			drawn[name] = normal(len(v))
		}
	}
	closed := models.CloseGate(m)
	for _, gate := range []float32{0, 0.5} {
		drawn[models.EvidenceGate] = []float32{gate}
		same, want := true, by(closed, drawn, 1, index(-1), edges[0])
		for name, v := range score(drawn, 1, index(-1), edges[0]) {
			same = same && slices.Equal(v.F32, want[name].F32)
		}
		if same != (gate == 0) {
			t.Errorf("with the gate at %v the module without robust evidence gives the same: %v", gate, same)
		}
	}
	operations := func(m *ir.Module) int {
		p, err := compiler.Compile(m, compiler.Options{Target: compiler.Inference, Funcs: []string{"score"}})
		if err != nil {
			t.Fatal(err)
		}
		return len(p.Module.Func("score").Body)
	}
	if all, some := operations(m), operations(closed); some > all*2/3 {
		t.Errorf("%d operations of %d are left where the gate is closed", some, all)
	}
}

// The source spectrum is that of a program in float64 that makes the matrices whole, with any
// number of threads.
func TestSpectrum(t *testing.T) {
	const nodes, features, rank = 50, 40, 32
	m := judgingModule(t, features, true)
	r := rng.New(4, "spectrum test")
	params := map[string][]float32{}
	for i, p := range m.Params {
		dims, err := p.Type.Shape(nil)
		if err != nil {
			t.Fatal(err)
		}
		params[p.Name] = runtime.Zeros(dims...).F32
		if p.Name == models.EvidenceProjection || p.Name == models.EvidenceSpectrum {
			for k := range params[p.Name] {
				params[p.Name][k] = float32(r.Normal(uint64(10_000*i + k)))
			}
		}
	}
	x := make([]float32, nodes*features)
	for i := range x {
		x[i] = float32(r.Normal(uint64(1_000_000 + i)))
	}
	type matrix [][]float64
	zeros := func(n, m int) matrix {
		x := make(matrix, n)
		for i := range x {
			x[i] = make([]float64, m)
		}
		return x
	}
	// Three communities, and a node without edges.
	adjacency := zeros(nodes, nodes)
	var src, dst []int64
	for u := range nodes - 1 {
		for v := range u {
			if u%3 == v%3 && r.Intn(uint64(nodes*u+v), 4) > 0 || r.Intn(uint64(nodes*u+v), 20) == 0 {
				adjacency[u][v], adjacency[v][u] = 1, 1
				src, dst = append(src, int64(u), int64(v)), append(dst, int64(v), int64(u))
			}
		}
	}
	times := func(a, b matrix) matrix {
		y := zeros(len(a), len(b[0]))
		for i := range a {
			for k, v := range a[i] {
				for j := range b[k] {
					y[i][j] += v * b[k][j]
				}
			}
		}
		return y
	}
	transposed := func(a matrix) matrix {
		y := zeros(len(a[0]), len(a))
		for i := range a {
			for j, v := range a[i] {
				y[j][i] = v
			}
		}
		return y
	}
	given := func(of []float32, n, m int) matrix {
		y := zeros(n, m)
		for i := range of {
			y[i/m][i%m] = float64(of[i])
		}
		return y
	}
	z := times(given(x, nodes, features), given(params[models.EvidenceProjection], features, features))
	degree := make([]float64, nodes)
	for u := range nodes {
		length := 0.0
		for _, v := range z[u] {
			length += v * v
		}
		for k := range z[u] {
			z[u][k] /= math.Sqrt(length)
		}
		for _, v := range adjacency[u] {
			degree[u] += v
		}
	}
	s := zeros(nodes, nodes)
	for u := range nodes {
		for v := range nodes {
			s[u][v] = adjacency[u][v] / math.Sqrt(max(1, degree[u])*max(1, degree[v]))
		}
	}
	orthonormal := func(x matrix) matrix {
		gram := times(transposed(x), x)
		flat, root := make([]float64, rank*rank), make([]float64, rank*rank)
		for i := range flat {
			flat[i] = gram[i/rank][i%rank]
		}
		ir.SpectralMap(root, flat, make([]float64, rank*rank), rank, "soft_inverse_sqrt", 1e-2)
		y := zeros(rank, rank)
		for i, v := range root {
			y[i/rank][i%rank] = v
		}
		return times(x, y)
	}
	q := orthonormal(times(z, given(params[models.EvidenceSpectrum], features, rank)))
	for range 4 {
		q = orthonormal(times(s, times(s, q)))
	}
	q = orthonormal(q)
	p := times(q, transposed(q))
	low := times(p, times(s, p))
	index := ort.Int64s(slices.Concat(src, dst), 2, int64(len(src)))
	var pairs []int64
	for end := range 2 {
		for u := range nodes {
			for v := range nodes {
				pairs = append(pairs, int64([]int{u, v}[end]))
			}
		}
	}
	var first map[string]ort.Tensor
	for _, threads := range []int{1, 4} {
		f, err := newForward(m, params, nil, threads)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		out, err := f.Run("score", map[string]ort.Tensor{"x": ort.Float32s(x, nodes, features), "edge_index": index, "pairs": ort.Int64s(pairs, 2, nodes*nodes)})
		if err != nil {
			t.Fatal(err)
		}
		if first == nil {
			first = out
		}
		for name, v := range out {
			if !slices.Equal(v.F32, first[name].F32) {
				t.Errorf("%s is another with 4 threads", name)
			}
		}
	}
	at := func(u, v int, own float64) float64 {
		x := math.Sqrt(max(1, degree[u])*max(1, degree[v]))*low[u][v] - own*(p[u][u]+p[v][v]-p[u][u]*p[v][v]-p[u][v]*p[u][v])
		return math.Log(0.1 + max(0, x))
	}
	for u := range nodes {
		for v := range nodes {
			if got, want := first["evidence_spectrum"].F32[nodes*u+v], at(u, v, 0); !(math.Abs(float64(got)-want) <= 2e-4) {
				t.Errorf("the pair %d–%d has %v, want %v", u, v, got, want)
			}
		}
	}
	for i := range src {
		if got, want := first["edge_evidence_spectrum"].F32[i], at(int(src[i]), int(dst[i]), 1); !(math.Abs(float64(got)-want) <= 2e-4) {
			t.Errorf("the edge %d–%d has %v, want %v", src[i], dst[i], got, want)
		}
	}
}
