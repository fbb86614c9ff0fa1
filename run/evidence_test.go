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
	"github.com/gsrc-dev/gsrc/runtime/ort"
)

// Every source judges an edge as it judges the same pair in the graph without the edge;
// parameters that are not fitted give finite numbers; with any number of threads all
// is the same to the bit; and a self-loop changes nothing.
func TestEvidenceLeavesTheEdgeOut(t *testing.T) {
	const nodes, features = 14, 6
	cfg, err := config.Load("ecl-gsr", "synthetic", "", []string{"model.edges.judge=evidence"})
	if err != nil {
		t.Fatal(err)
	}
	o := cfg.Model
	o.Features, o.Classes = features, 2
	model, err := models.Lookup("ecl-gsr")
	if err != nil {
		t.Fatal(err)
	}
	m, err := model.Program(o, false)
	if err != nil {
		t.Fatal(err)
	}
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
		params[p.Name] = make([]float32, product(dims))
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
				if got := whole["edge_evidence_"+source].F32[2*i+side]; math.Abs(float64(got-want)) > 1e-5 {
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
