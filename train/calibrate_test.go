package train

import (
	"testing"

	"github.com/gsrc-dev/gsrc/metrics"
	"github.com/gsrc-dev/gsrc/rng"
)

// A temperature is kept where either half of the validation nodes says what is good for the
// other, and not where it fits the nodes that it was fitted on alone.
func TestTemperatureGeneralises(t *testing.T) {
	const n, classes = 400, 3
	r := rng.New(1, "logits")
	logits := make([]float32, n*classes)
	for i := range logits {
		logits[i] = float32(3 * r.Normal(uint64(i)))
	}
	nodes := make([]int32, n)
	for i := range nodes {
		nodes[i] = int32(i)
	}
	draw := func(temperature func(i int) float64) []int32 {
		labels := make([]int32, n)
		for i := range labels {
			u := r.Sub("labels").Uniform(uint64(i))
			for p := metrics.Tempered(logits[i*classes:][:classes], classes, temperature(i)); labels[i] < classes-1 && u > p[labels[i]]; labels[i]++ {
				u -= p[labels[i]]
			}
		}
		return labels
	}
	for _, x := range []struct {
		what        string
		temperature func(i int) float64
		want        bool
	}{
		{"too sure", func(int) float64 { return 3 }, true},
		{"too careful", func(int) float64 { return 0.3 }, true},
		{"right already", func(int) float64 { return 1 }, false},
		{"halves that differ", func(i int) float64 { return [2]float64{0.4, 3}[i%2] }, false},
	} {
		labels := draw(x.temperature)
		if got := generalises(logits, metrics.Tempered(logits, classes, 1), make([]float32, len(logits)), metrics.Argmax(logits, classes), classes, labels, nodes); got != x.want {
			t.Errorf("%s: kept %v, want %v", x.what, got, x.want)
		}
	}
}
