package export

import (
	"errors"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/gsrc-dev/gsrc/export/dist"
	"github.com/gsrc-dev/gsrc/export/onnx"
	"github.com/gsrc-dev/gsrc/internal/onnxtest"
	"github.com/gsrc-dev/gsrc/runtime/ort"
)

func openDist(t *testing.T, model string, change func(*BuildOptions)) (*dist.Dist, BuildOptions) {
	t.Helper()
	o := buildOptions(t, model)
	o.Unverified = true
	if change != nil {
		change(&o)
	}
	dir := filepath.Join(t.TempDir(), "dist")
	if _, _, err := Build(t.Context(), dir, o); err != nil {
		t.Fatal(err)
	}
	d, err := dist.Open(dir, ort.Options{Provider: ort.CPU, Threads: 1, Library: o.Library})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d, o
}

// An export that was closed loads nothing again.
func TestDistClosed(t *testing.T) {
	d, o := openDist(t, "gcn/struct=0/l1", nil)
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Classify(o.Sample.X, o.Sample.Edges, nil); !errors.Is(err, ort.ErrClosed) {
		t.Errorf("error %v, want that it was closed", err)
	}
}

// TestDist uses an export as an application does, in every form, and compares
// with the reference.
func TestDist(t *testing.T) {
	for _, l := range []onnx.Lowering{onnx.DegreeBuckets, onnx.Scatter, onnx.Dense} {
		t.Run(string(l), func(t *testing.T) {
			d, o := openDist(t, "ecl-gsr/struct=3/l1", func(o *BuildOptions) { o.Lowering = l })
			s := o.Sample
			forward := onnx.Interpreter(o.Module, o.Params, map[string]float32{"lo": o.Bounds.Lo, "hi": o.Bounds.Hi})
			encoded, err := d.Encode(s.X, s.Struct, s.Edges, s.EdgeWeights)
			if err != nil {
				t.Fatal(err)
			}
			embedding := encoded["embedding"]
			want, err := forward("encode", map[string]ort.Tensor{"x": s.X, "x_struct": *s.Struct, "edge_index": s.Edges})
			if err != nil {
				t.Fatal(err)
			}
			onnxtest.Compare(t, "encode", encoded, want)
			pairs := ort.Int64s([]int64{0, 1, 2, 3, 4, 5}, 2, 3)
			scores, err := d.Score(embedding, pairs)
			if err != nil {
				t.Fatal(err)
			}
			if want, err = forward("score", map[string]ort.Tensor{"embedding": embedding, "pairs": pairs}); err != nil {
				t.Fatal(err)
			}
			onnxtest.Compare(t, "score", scores, want)
			for _, weight := range []*ort.Tensor{nil, s.Weights} {
				in := map[string]ort.Tensor{"x": s.X, "edge_index": *s.Refined}
				if weight != nil {
					in["edge_weight"] = *weight
				}
				if want, err = forward("classify", in); err != nil {
					t.Fatal(err)
				}
				var wg sync.WaitGroup
				for range 3 {
					wg.Go(func() {
						got, err := d.Classify(s.X, *s.Refined, weight)
						if err != nil {
							t.Error(err)
							return
						}
						onnxtest.Compare(t, "classify", got, want)
					})
				}
				wg.Wait()
			}
		})
	}
}

func TestDistRefuses(t *testing.T) {
	transductive, o := openDist(t, "ecl-gsr/struct=3/l1", nil)
	inductive, _ := openDist(t, "ecl-gsr/struct=0/l1", func(o *BuildOptions) { o.NoEdgeWeight = true })
	gcn, _ := openDist(t, "gcn/struct=0/l1", nil)
	s := o.Sample
	embedding := ort.Float32s(make([]float32, 5*5), 5, 5)
	index := func(v ...int64) ort.Tensor { return ort.Int64s(v, 2, int64(len(v)/2)) }
	tests := []struct {
		name string
		run  func() error
		want string
	}{
		{"another graph", func() error { _, err := transductive.Encode(s.X, nil, s.Edges, nil); return err }, "serves no other graph"},
		{"needless x_struct", func() error { _, err := inductive.Encode(s.X, s.Struct, s.Edges, s.EdgeWeights); return err }, "leave x_struct out"},
		{"no such model", func() error { _, err := gcn.Score(embedding, index(0, 1)); return err }, "has no scorer; it has classifier"},
		{"negative node", func() error { _, err := gcn.Classify(s.X, index(0, -1), nil); return err }, "row 1, column 0 is -1"},
		{"node too large", func() error { _, err := gcn.Classify(s.X, index(0, 200), nil); return err }, "outside the nodes 0 to 199"},
		{"pair out of range", func() error { _, err := inductive.Score(embedding, index(0, 5)); return err }, "outside the nodes 0 to 4"},
		{"weights not taken", func() error { _, err := inductive.Classify(s.X, *s.Refined, s.Weights); return err }, "built without edge weights"},
		{"weights of another length", func() error { _, err := gcn.Classify(s.X, index(0, 1), s.Weights); return err }, "edge_weight is"},
		{"no nodes", func() error {
			_, err := gcn.Classify(ort.Float32s(nil, 0, onnxtest.Features), index(), nil)
			return err
		}, "no nodes"},
		{"features of another width", func() error { _, err := gcn.Classify(ort.Float32s(make([]float32, 4), 2, 2), index(), nil); return err }, "the model wants"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if err := test.run(); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want one with %q", err, test.want)
			}
		})
	}
	if _, err := dist.Open(t.TempDir(), ort.Options{}); err == nil || !strings.Contains(err.Error(), "no export") {
		t.Errorf("error %v, want that the folder is no export", err)
	}
}
