package config

import (
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/gsrc-dev/gsrc/graph"
	"github.com/gsrc-dev/gsrc/models"
)

var devicePattern = regexp.MustCompile(`^(cpu|auto|cuda(:[0-9]{1,3})?)$`)

// ranges are those that a tag range of an option may name.
var ranges = map[string]func(v float64) bool{
	"at least 0":                   func(v float64) bool { return v >= 0 },
	"at least 1":                   func(v float64) bool { return v >= 1 },
	"at least 2":                   func(v float64) bool { return v >= 2 },
	"greater than 0":               func(v float64) bool { return v > 0 },
	"between 0 and 1":              func(v float64) bool { return v >= 0 && v <= 1 },
	"greater than 0 and at most 1": func(v float64) bool { return v > 0 && v <= 1 },
	"between 0 and 1024":           func(v float64) bool { return v >= 0 && v <= 1024 },
}

func asFloat(f reflect.Value) float64 {
	if f.Kind() == reflect.Int {
		return float64(f.Int())
	}
	return f.Float()
}

// Validate checks every option's range; the error names the option and what it
// must be.
func (c *Config) Validate() error {
	out := func(key, want string) error {
		return fmt.Errorf("%s must be %s, got %s", key, want, c.Value(key))
	}
	for _, name := range KeyNames() {
		f, k, err := c.field(name)
		if err != nil {
			return err
		}
		if k.OneOf != nil && !slices.Contains(k.OneOf, f.String()) {
			choices := slices.Clone(k.OneOf)
			if i := slices.Index(choices, ""); i >= 0 {
				choices[i] = `""`
			}
			return fmt.Errorf("%s must be one of %s, got %q", name, strings.Join(choices, ", "), f.String())
		}
		if within := ranges[k.Range]; within != nil && !within(asFloat(f)) {
			return out(name, k.Range)
		}
	}
	if err := c.Model.Validate(); err != nil {
		var outside *models.RangeError
		if !errors.As(err, &outside) {
			return err
		}
		return out("model."+outside.Option, outside.Want)
	}
	if _, err := graph.ParseRewiring(c.Data.Edges); err != nil {
		return fmt.Errorf("data.edges %w", err)
	}
	t, s := c.Train, c.Synthetic
	similar := strings.Split(c.Candidates.Similarity, "+")
	for i, part := range similar {
		if slices.Contains(similar[:i], part) || !slices.Contains([]string{SimilarityEmbedding, SimilarityFeatures, SimilarityEvidence}, part) {
			return out("candidates.similarity", "embedding, features or evidence, or some of them joined by +")
		}
	}
	for _, b := range []struct {
		key  string
		ok   bool
		want string
	}{
		{"train.anchors", t.Anchors == 0 || t.Anchors >= 2, "0, or at least 2: a sample is contrasted with the others"},
		{"train.device", devicePattern.MatchString(t.Device), "cpu, auto, cuda, or cuda:1 and so on"},
		{"synthetic.classes", s.Classes >= 2 && s.Classes <= s.Nodes, "between 2 and the number of nodes"},
	} {
		if !b.ok {
			return out(b.key, b.want)
		}
	}
	return nil
}
