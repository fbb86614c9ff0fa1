package metrics

import (
	"math"

	"github.com/gsrc-dev/gsrc/internal/fmath"
)

// Bounds of a temperature.
const (
	MinTemperature = 0.01
	MaxTemperature = 100
)

// FitTemperature returns the T by which logits [N, classes] are to be divided so that their
// softmax is likeliest of the labels of nodes (Guo et al. 2017), within [MinTemperature] and
// [MaxTemperature]. A share 1/(n + 2) of each label is spread over all classes, so that n
// nodes that are all right do not make probabilities certain. Classes and their order stay.
// It is NaN where a logit of a node is not finite.
func FitTemperature(logits []float32, classes int, labels, nodes []int32) float64 {
	if len(nodes) == 0 || classes < 2 {
		return 1
	}
	spread := 1 / float64(len(nodes)+2)
	p := make([]float64, classes)
	// slope returns the first two derivatives of the negative log-likelihood in s = 1/T, in
	// which it is convex.
	slope := func(s float64) (first, second float64) {
		for _, v := range nodes {
			row := logits[int(v)*classes:][:classes]
			top, all := math.Inf(-1), 0.0
			for _, z := range row {
				top = max(top, float64(z))
				all += float64(z)
			}
			sum, mean, square := 0.0, 0.0, 0.0
			for c, z := range row {
				p[c] = fmath.Exp(s * (float64(z) - top))
				sum += p[c]
			}
			for c, z := range row { // about the largest, so that squares lose nothing
				d := float64(z) - top
				mean += float64(p[c] * d)
				square += float64(float64(p[c]*d) * d)
			}
			mean, square = mean/sum, square/sum
			first += mean + top - float64((1-spread)*float64(row[labels[v]])) - float64(spread*all)/float64(classes)
			second += square - float64(mean*mean)
		}
		return first, second
	}
	lo, hi := 1./MaxTemperature, 1./MinTemperature
	if f, _ := slope(lo); f >= 0 {
		return MaxTemperature
	} else if f != f {
		return f
	}
	if f, _ := slope(hi); f <= 0 {
		return MinTemperature
	}
	s := 1.0
	for range 60 {
		f, df := slope(s)
		if f > 0 {
			hi = s
		} else {
			lo = s
		}
		next := s - f/df
		if !(next > lo && next < hi) { // also where df is 0
			next = math.Sqrt(lo * hi)
		}
		if math.Abs(next-s) <= 1e-7*s {
			break
		}
		s = next
	}
	return 1 / s
}

// Tempered returns the softmax of logits [N, classes] divided by t.
func Tempered(logits []float32, classes int, t float64) []float32 {
	return TemperedTo(make([]float32, len(logits)), logits, classes, t)
}

// TemperedTo is [Tempered] in memory that is given, of the length of logits.
func TemperedTo(out, logits []float32, classes int, t float64) []float32 {
	for i := 0; i < len(logits); i += classes {
		row := logits[i : i+classes]
		top, sum := math.Inf(-1), 0.0
		for _, z := range row {
			top = max(top, float64(z))
		}
		for _, z := range row {
			sum += fmath.Exp((float64(z) - top) / t)
		}
		for c, z := range row {
			out[i+c] = float32(fmath.Exp((float64(z)-top)/t) / sum)
		}
	}
	return out
}
