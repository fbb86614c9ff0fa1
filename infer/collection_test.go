package infer

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gsrc-dev/gsrc/data"
	"github.com/gsrc-dev/gsrc/export"
	"github.com/gsrc-dev/gsrc/internal/budget"
	"github.com/gsrc-dev/gsrc/internal/orttest"
	"github.com/gsrc-dev/gsrc/runtime/ort"
)

// ginText writes a collection in GIN's format and returns its path.
func ginText(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "g.txt")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// matched reads a collection as a model with these features does.
func matched(t *testing.T, text string, features ...string) (*data.Collection, error) {
	t.Helper()
	p := &predictor{o: PredictOptions{Log: func(string, ...any) {}}}
	p.info.Features = features
	c, err := data.LoadCollection(ginText(t, text), data.LoadOptions{NodeFeatures: data.FeaturesBoth})
	if err != nil {
		t.Fatal(err)
	}
	return c, p.matchFeatures(c)
}

// A value that no node has is 0 of all; what was not measured is not.
func TestFeaturesByName(t *testing.T) {
	const two = "1\n3 0\n4 1 1 0.5 -1\n7 1 0 0 2\n4 0 3 0\n"
	c, err := matched(t, two, "attribute 1", "attribute 0", "label 1", "label 4")
	if err != nil {
		t.Fatal(err)
	}
	if want := []float32{-1, 0.5, 0, 1, 2, 0, 0, 0, 0, 3, 0, 1}; !slices.Equal(c.X.ToDense().Dense, want) {
		t.Errorf("features are %v, want %v", c.X.ToDense().Dense, want)
	}
	if c, err = matched(t, two, "label 5", "label 6"); err != nil || c.X.Cols != 2 || c.X.NNZ() != 0 {
		t.Errorf("labels that the training had none of: %v, %v", c.X, err)
	}
	for _, x := range []struct {
		features []string
		want     string
	}{
		{[]string{"attribute 0", "attribute 1", "attribute 2", "label 4"}, "nodes have no attribute 2,"},
		{[]string{"attribute 0", "label 0 = 4", "label 1 = 4"}, "nodes have no label 0,"},
		{[]string{"degree 1", "degree 2"}, "nodes have no degree,"},
	} {
		if _, err := matched(t, two, x.features...); err == nil || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%q: error %v, want one with %q", x.features, err, x.want)
		}
	}
}

// paths is a collection of paths of 3 to 6 nodes in GIN's format, whose nodes have a tag and an attribute.
func paths(graphs int, tag func(node int) int) string {
	var b strings.Builder
	fmt.Fprintln(&b, graphs)
	for g := range graphs {
		n := 3 + g%4
		fmt.Fprintln(&b, n, g%2)
		for v := range n {
			fmt.Fprintf(&b, "%d %d", tag(v), min(1, v)+min(1, n-1-v))
			if v > 0 {
				fmt.Fprint(&b, " ", v-1)
			}
			if v < n-1 {
				fmt.Fprint(&b, " ", v+1)
			}
			fmt.Fprintf(&b, " %d.5\n", g%2)
		}
	}
	return b.String()
}

// What describes nodes is what described the training's, whatever these data alone would have chosen.
func TestFeaturesAsInTraining(t *testing.T) {
	orttest.Need(t)
	varied, same := ginText(t, paths(40, func(v int) int { return v % 3 })), ginText(t, paths(12, func(int) int { return 1 }))
	for _, x := range []struct{ train, predict, want string }{{varied, same, "labels"}, {same, varied, "attributes"}} {
		dist := Train(t, filepath.Join(t.TempDir(), "run"), "gin", x.train, export.BuildOptions{}, "train.epochs=1").Dist
		info, err := os.ReadFile(filepath.Join(dist, InfoFile))
		if err != nil || !strings.Contains(string(info), fmt.Sprintf(`"node_features": %q`, x.want)) {
			t.Errorf("nodes are not described by %s: %v, %s", x.want, err, info)
		}
		if _, err := Predict(t.Context(), dist, x.predict, "", PredictOptions{Provider: ort.CPU, Threads: 1}); err != nil {
			t.Errorf("trained by %s: %v", x.want, err)
		}
		if x.want != "attributes" {
			continue
		}
		_, err = Predict(t.Context(), dist, ginText(t, "1\n2 0\n0 1 1\n0 1 0\n"), "", PredictOptions{Provider: ort.CPU, Threads: 1})
		if err == nil || !strings.Contains(err.Error(), "the nodes have no attributes, and the model in "+dist+" was trained on nodes that have; give data with attributes") {
			t.Errorf("without attributes: %v", err)
		}
	}
}

// Batches of a collection are as small as the limit asks for, a graph that does not fit by itself is
// refused before any runs, and features in another order take no more than they did.
func TestCollectionWithinMemory(t *testing.T) {
	orttest.Need(t)
	label := func(v int) int { return v % 3 }
	small, many := ginText(t, paths(40, label)), ginText(t, paths(2000, label))
	const nodes = 12000
	var b strings.Builder
	fmt.Fprintf(&b, "1\n%d 0\n", nodes)
	for v := range nodes {
		fmt.Fprintf(&b, "%d 1 %d 0.5\n", label(v), (v+1)%nodes)
	}
	long := ginText(t, b.String())
	for _, model := range []string{"gin", "ecl-gsr"} {
		dist := Train(t, filepath.Join(t.TempDir(), "run"), model, small, export.BuildOptions{}, "train.epochs=1", "train.pretrain_steps=1").Dist
		o := PredictOptions{Provider: ort.CPU, Threads: 1, Load: data.LoadOptions{MaxBytes: 8 << 20}}
		var over *budget.ExceededError
		if _, err := Predict(t.Context(), dist, long, "", o); !errors.As(err, &over) || !strings.Contains(err.Error(), "in onnxruntime takes") {
			t.Errorf("%s within 8 MiB: %v", model, err)
		}
		if model == "ecl-gsr" {
			if _, err := Refine(t.Context(), dist, RefineOptions{Data: long, Predict: o}); !errors.As(err, &over) || !strings.Contains(err.Error(), "in onnxruntime takes") {
				t.Errorf("refining within 8 MiB: %v", err)
			}
		}
		divided, err := Predict(t.Context(), dist, many, "", o)
		if err != nil {
			t.Fatalf("%s within 8 MiB: %v", model, err)
		}
		o.Load.MaxBytes = 1 << 30
		whole, err := Predict(t.Context(), dist, many, "", o)
		if err != nil {
			t.Fatalf("%s within 1 GiB: %v", model, err)
		}
		near := func(p, q float32) bool { return math.Abs(float64(p-q)) < 1e-5 }
		if !slices.EqualFunc(divided.Probabilities, whole.Probabilities, near) {
			t.Errorf("%s predicts otherwise in small batches", model)
		}
	}
	c, err := matched(t, paths(200, func(v int) int { return v }), "label 0", "label 1", "attribute 0")
	if err != nil || !c.X.IsSparse() {
		t.Errorf("features are dense, or %v", err)
	}
}
