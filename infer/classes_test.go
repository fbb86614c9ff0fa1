package infer

import (
	"slices"
	"testing"
)

// Labels are found by their names, or as whole numbers, whichever way either side writes them.
func TestClassesThatAreWholeNumbers(t *testing.T) {
	for _, x := range []struct {
		classes, labels []string
		want            []int32
	}{
		{[]string{"0", "1", "10"}, []string{"1.0", "10.0", "0.00", "1.5", "01"}, []int32{1, 2, 0, -1, -1}},
		{[]string{"0.0", "1.0", "10.0"}, []string{"1", "10", "0.0"}, []int32{1, 2, 0}},
		{[]string{"1", "1.0", "v1.0"}, []string{"1.0", "1", "v1", "v1.0"}, []int32{1, 0, -1, 2}},
	} {
		number := classNumbers(x.classes)
		unknown := 0
		for i, name := range x.labels {
			c, ok := number(name)
			if !ok {
				c = -1
				unknown++
			}
			if c != int(x.want[i]) {
				t.Errorf("%q of %q is class %d, want %d", name, x.classes, c, x.want[i])
			}
		}
		labels := make([]int32, len(x.labels))
		for i := range labels {
			labels[i] = int32(i)
		}
		r := &Prediction{Classes: x.classes, Probabilities: slices.Repeat([]float32{0.25}, len(labels)*len(x.classes))}
		if r.choose(labels, x.labels); r.Unknown != unknown || (r.UnknownLabel != "") != (unknown > 0) {
			t.Errorf("%q of %q: %d unknown, such as %q", x.labels, x.classes, r.Unknown, r.UnknownLabel)
		}
	}
}
