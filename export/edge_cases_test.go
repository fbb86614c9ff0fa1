package export

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/gsrc-dev/gsrc/export/manifest"
	"github.com/gsrc-dev/gsrc/export/onnx"
	"github.com/gsrc-dev/gsrc/export/parity"
	"github.com/gsrc-dev/gsrc/runtime/ort"
)

// pairs lists the edges of a case with their weights, sorted.
func sortedEdges(t ort.Tensor, w *ort.Tensor) [][3]float64 {
	e := len(t.I64) / 2
	list := make([][3]float64, e)
	for k := range list {
		list[k] = [3]float64{float64(t.I64[k]), float64(t.I64[e+k])}
		if w != nil {
			list[k][2] = float64(w.F32[k])
		}
	}
	slices.SortFunc(list, func(a, b [3]float64) int { return slices.Compare(a[:], b[:]) })
	return list
}

func TestAwkwardFamily(t *testing.T) {
	o := buildOptions(t, "ecl-gsr/struct=3/l1")
	cases := map[string]parity.ExampleInputs{}
	for _, c := range parity.Examples(o.Sample, onnx.DegreeBuckets, false) {
		if err := c.Check(); err != nil {
			t.Errorf("%s: %v", c.Name, err)
		}
		if c.Refined == nil || c.Weights == nil || c.Struct == nil {
			t.Errorf("%s lacks something that the training graph has", c.Name)
		}
		cases[c.Name] = c.ExampleInputs
	}
	sub, edges := cases["sub-graph"], func(name string) int { s := cases[name]; return len(s.Refined.I64) / 2 }
	e, n := edges("sub-graph"), sub.Nodes()
	for name, want := range map[string]int{"no edges": 0, "one edge": 1, "duplicate edges": 2 * e, "self-loops, each twice": e + 4*n/2, "unsorted edges": e, "one node": 0, "hub": 200_000} {
		if name == "one node" {
			want = edges(name) // its self-loops, if any
		}
		if got := edges(name); got != want {
			t.Errorf("%s has %d edges, want %d", name, got, want)
		}
	}
	shuffled := cases["unsorted edges"]
	if slices.Equal(shuffled.Refined.I64, sub.Refined.I64) || !slices.Equal(sortedEdges(*shuffled.Refined, shuffled.Weights), sortedEdges(*sub.Refined, sub.Weights)) {
		t.Error("the unsorted edges are not those of the sub-graph in another order")
	}
	for _, x := range sortedEdges(*cases["one direction"].Refined, nil) {
		if x[0] >= x[1] {
			t.Fatalf("%v is not in the one direction", x)
		}
	}
	into, from := 0, map[int64]bool{}
	hub := cases["hub"].Refined.I64
	for k, v := range hub[len(hub)/2:] {
		if v == 0 {
			into++
			from[hub[k]] = true
		}
	}
	if into != 100_000 || len(from) != 100_000 {
		t.Errorf("%d edges from %d nodes lead into the hub", into, len(from))
	}
	// Many features: fewer nodes, as many edges.
	wide := parity.ExampleInputs{X: ort.Float32s(make([]float32, 3*2048), 3, 2048), Edges: ort.Int64s(nil, 2, 0)}
	cases = map[string]parity.ExampleInputs{}
	for _, c := range parity.Examples(wide, onnx.DegreeBuckets, false) {
		cases[c.Name] = c.ExampleInputs
	}
	star := cases["hub"]
	if star.Nodes() > 1<<23/2048+1 || len(star.Edges.I64) != 400_000 || star.Check() != nil {
		t.Errorf("a hub with many features has %d nodes and %d edges (%v)", star.Nodes(), len(star.Edges.I64)/2, star.Check())
	}
}

// TestTestCases builds an export with all its test cases: they lie in the folder,
// verify runs them, and an edge to no node is refused by the file.
func TestTestCases(t *testing.T) {
	for _, test := range []struct {
		model    string
		lowering onnx.Lowering
	}{
		{"gcn/struct=0/l1", onnx.DegreeBuckets}, {"gcn/struct=0/l1", onnx.PrecomputedBuckets}, {"gcn/struct=0/l1", onnx.Scatter}, {"gcn/struct=0/l1", onnx.Dense},
		{"gat/struct=0/l2", onnx.PrecomputedBuckets}, // the numbers of whose nodes nothing but the guard reads
	} {
		lowering := test.lowering
		t.Run(test.model+"/"+string(lowering), func(t *testing.T) {
			o := buildOptions(t, test.model)
			o.Lowering, o.TestCases, o.SparseX = lowering, true, lowering == onnx.Scatter
			dir := filepath.Join(t.TempDir(), "dist")
			m, built, err := Build(t.Context(), dir, o)
			if err != nil {
				t.Fatal(err)
			}
			refused := 5
			if lowering == onnx.Dense {
				refused = 0 // edges come as a matrix
			}
			if len(built.Refusals) != refused {
				t.Errorf("%d faulty graphs were refused, want %d", len(built.Refusals), refused)
			}
			folders := map[string]bool{}
			var names []string
			for _, c := range m.Models["classifier"].TestCases {
				folders[c.Data], names = true, append(names, c.Name)
				_, err := os.Stat(filepath.Join(dir, c.Data, "output_0.pb"))
				if c.Refused != (err != nil) {
					t.Errorf("%s: refused is %v, and its outputs: %v", c.Name, c.Refused, err)
				}
			}
			if want := len(parity.Examples(o.Sample, lowering, false)) + refused; len(folders) != want || len(names) != want {
				t.Errorf("%d folders for %d cases, want %d", len(folders), len(names), want)
			}
			_, report, err := parity.Verify(t.Context(), dir, parity.VerifyOptions{Provider: ort.CPU, Library: o.Library})
			if err != nil {
				t.Fatal(err)
			}
			if len(report.Refusals) != refused || len(report.Cases) != len(built.Cases) {
				t.Errorf("verify ran %d cases and %d faulty ones, the build %d and %d", len(report.Cases), len(report.Refusals), len(built.Cases), refused)
			}
		})
	}
}

// TestVerifyWantsRefusals claims of a right graph that it must be refused.
func TestVerifyWantsRefusals(t *testing.T) {
	o := buildOptions(t, "gcn/struct=0/l1")
	o.TestCases = true
	dir := filepath.Join(t.TempDir(), "dist")
	m, _, err := Build(t.Context(), dir, o)
	if err != nil {
		t.Fatal(err)
	}
	info := m.Models["classifier"]
	i := slices.IndexFunc(info.TestCases, func(c manifest.TestCase) bool { return c.Name == "one edge" })
	info.TestCases = slices.Clone(info.TestCases)
	info.TestCases[i].Refused = true
	models := maps.Clone(m.Models)
	models["classifier"] = info
	m.Models = models
	text, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, manifest.FileName), text, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, _, err := parity.Verify(t.Context(), dir, parity.VerifyOptions{Provider: ort.CPU, Library: o.Library}); err == nil {
		t.Error("a graph that was to be refused and was not passed")
	}
}
