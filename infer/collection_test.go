package infer

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gsrc-dev/gsrc/data"
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
	for _, x := range []struct {
		features []string
		want     string
	}{
		{[]string{"attribute 0", "attribute 1", "attribute 2", "label 4"}, "nodes have no attribute 2,"},
		{[]string{"attribute 0", "label 0 = 4", "label 1 = 4"}, "nodes have no label 0,"},
		{[]string{"degree 1", "degree 2"}, "nodes have no degree,"},
		{[]string{"label 5", "label 6"}, "none of the features"},
	} {
		if _, err := matched(t, two, x.features...); err == nil || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%q: error %v, want one with %q", x.features, err, x.want)
		}
	}
}
