package metrics

import (
	"math"
	"math/rand/v2"
	"testing"
)

// drawn are n rows of logits, and labels drawn from the softmax of the logits divided by t.
func drawn(n, classes int, t float64) (logits []float32, labels, nodes []int32) {
	r := rand.New(rand.NewPCG(1, 2))
	for i := range n {
		row := make([]float32, classes)
		for c := range row {
			row[c] = float32(3 * r.NormFloat64())
		}
		logits = append(logits, row...)
		u, label := r.Float64(), 0
		for p := Tempered(row, classes, t); label < classes-1 && u > float64(p[label]); label++ {
			u -= float64(p[label])
		}
		labels, nodes = append(labels, int32(label)), append(nodes, int32(i))
	}
	return logits, labels, nodes
}

func TestFitTemperature(t *testing.T) {
	for _, want := range []float64{0.3, 1, 2.5} {
		logits, labels, nodes := drawn(4000, 5, want)
		got := FitTemperature(logits, 5, labels, nodes)
		if !(math.Abs(got-want) <= 0.1*want) {
			t.Errorf("the temperature is %v, the labels were drawn with %v", got, want)
		}
		predicted := Argmax(logits, 5)
		before := Evaluate(predicted, Tempered(logits, 5, 1), 5, labels, nodes)
		after := Evaluate(predicted, Tempered(logits, 5, got), 5, labels, nodes)
		if after.ECE > 0.03 || after.NLL > before.NLL+1e-6 || after.Accuracy != before.Accuracy || want != 1 && after.ECE > before.ECE/3 {
			t.Errorf("temperature %v: calibration error %v → %v, log-likelihood %v → %v", want, before.ECE, after.ECE, before.NLL, after.NLL)
		}
		// No other temperature is likelier, but for what is spread over the classes.
		for _, other := range []float64{got * 0.9, got * 1.1} {
			if r := Evaluate(predicted, Tempered(logits, 5, other), 5, labels, nodes); r.NLL < after.NLL-1e-4 {
				t.Errorf("temperature %v has %v, less than the fitted one's %v", other, r.NLL, after.NLL)
			}
		}
	}
	// Nodes that are all right, or all wrong, leave a temperature within the bounds.
	logits := []float32{4, 0, 0, 4, 4, 0}
	for _, labels := range [][]int32{{0, 1, 0}, {1, 0, 1}} {
		if got := FitTemperature(logits, 2, labels, []int32{0, 1, 2}); got < MinTemperature || got > MaxTemperature || math.IsNaN(got) {
			t.Errorf("labels %v: %v", labels, got)
		}
	}
	for _, flat := range [][]float32{{1, 1, 1, 1}, {1e30, -1e30, -1e30, 1e30}} {
		if got := FitTemperature(flat, 2, []int32{0, 0}, []int32{0, 1}); !(got >= MinTemperature && got <= MaxTemperature) {
			t.Errorf("logits %v: %v", flat, got)
		}
	}
}
