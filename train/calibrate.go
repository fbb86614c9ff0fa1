package train

import (
	"math"

	"github.com/gsrc-dev/gsrc/metrics"
)

// Calibration is the temperature by which logits are divided to make probabilities that can
// be taken at their word (Guo et al. 2017), and what it brings on what it was not fitted on.
type Calibration struct {
	Temperature float64 `json:"temperature"`
	// Fitted is how many validation nodes it was fitted on: all, if there are test nodes
	// to measure it on, else every other one.
	Fitted int `json:"fitted"`
	// Measured is how many others there are, Before and After their expected calibration
	// error without and with the temperature, NLLBefore and NLLAfter the mean of −ln of
	// the label's probability.
	Measured  int     `json:"measured"`
	Before    float64 `json:"ece_before"`
	After     float64 `json:"ece"`
	NLLBefore float64 `json:"nll_before"`
	NLLAfter  float64 `json:"nll"`
}

// generalises reports whether temperatures that are fitted on either half of nodes make the
// labels of the other half likelier, and the calibration error of all smaller by more than the
// standard error of a share: probabilities that are good already stay. It leaves in room what
// the nodes' probabilities are with the other half's temperature.
func generalises(logits, probabilities, room []float32, predicted []int32, classes int, labels, nodes []int32) bool {
	half := halves(nodes)
	for k := range half {
		temperature := metrics.FitTemperature(logits, classes, labels, half[1-k])
		for _, v := range half[k] {
			at := int(v) * classes
			metrics.TemperedTo(room[at:at+classes], logits[at:at+classes], classes, temperature)
		}
	}
	before, after := metrics.Evaluate(predicted, probabilities, classes, labels, nodes), metrics.Evaluate(predicted, room, classes, labels, nodes)
	return after.NLL < before.NLL && after.ECE < before.ECE-0.5/math.Sqrt(float64(len(nodes)))
}

// halves are every other node, from the first and from the second on.
func halves(nodes []int32) (half [2][]int32) {
	for i, v := range nodes {
		half[i%2] = append(half[i%2], v)
	}
	return half
}

// leastGain is how much likelier, in nats, a temperature has to make the labels it is fitted
// on: with less it does not differ from 1 (likelihood-ratio test at 5 %).
const leastGain = 1.92

// calibrate fits a temperature to the logits of the kept model.
func (t *verdict) calibrate(logits, probabilities []float32, predicted []int32) *Calibration {
	fit, rest, classes := t.split.Val, t.split.Test, t.info.Classes
	if len(rest) == 0 {
		half := halves(fit)
		fit, rest = half[0], half[1]
	}
	if len(fit) < fewNodes || classes < 2 || len(rest) == 0 {
		return nil
	}
	c := &Calibration{Temperature: metrics.FitTemperature(logits, classes, t.info.Labels, fit), Fitted: len(fit), Measured: len(rest)}
	if t.room == nil {
		t.room = make([]float32, len(logits))
	}
	tempered := metrics.TemperedTo(t.room, logits, classes, c.Temperature)
	report := func(p []float32, nodes []int32) *metrics.Report {
		return metrics.Evaluate(predicted, p, classes, t.info.Labels, nodes)
	}
	if gain := report(probabilities, fit).NLL - report(tempered, fit).NLL; gain*float64(len(fit)) < leastGain || !generalises(logits, probabilities, tempered, predicted, classes, t.info.Labels, fit) {
		return nil
	}
	before, after := report(probabilities, rest), report(tempered, rest)
	c.Before, c.After, c.NLLBefore, c.NLLAfter = before.ECE, after.ECE, before.NLL, after.NLL
	return c
}
