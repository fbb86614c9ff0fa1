// Package metrics says how good predicted classes and their probabilities are, with
// more than accuracy: what a rare class gets (macro-F1, the confusion matrix), how
// well probabilities rank (AUC) and whether they can be taken at their word
// (calibration error, Brier score, log-likelihood).
//
//	predicted := metrics.Argmax(logits, classes)
//	r := metrics.Evaluate(predicted, probabilities, classes, labels, testNodes)
//	fmt.Println(r.MacroF1, r.ECE)
package metrics

import (
	"math"
	"slices"

	"github.com/gsrc-dev/gsrc/internal/fmath"
	"github.com/gsrc-dev/gsrc/runtime/kernels"
)

// Bins is the number of bins of confidence, all of the same width, that
// [Report.ECE] is made of (Guo et al. 2017).
const Bins = 15

// MaxConfusion is the number of classes up to which a [Report] has a confusion
// matrix.
const MaxConfusion = 100

// Report holds predictions against labels. Accuracy, macro-F1 and AUC are in
// percent.
type Report struct {
	Nodes    int     `json:"nodes"` // how many were judged; of a collection, graphs
	Accuracy float64 `json:"acc"`
	// MacroF1 is the mean over classes of 2·TP/(2·TP + FP + FN), every class alike.
	// Classes that are neither a label nor a prediction do not count.
	MacroF1 float64 `json:"macro_f1"`
	// AUC is the mean over classes of the area under the ROC curve of the class
	// against all others, every class alike. Null if no class could be judged.
	AUC *float64 `json:"auc"`
	// AUCLeftOut lists the classes that AUC leaves out, since none or all of the
	// nodes have them as their label.
	AUCLeftOut []int `json:"auc_left_out,omitempty"`
	// ECE, the expected calibration error, is the mean distance, as a share,
	// between the probability of the predicted class and the accuracy of the nodes
	// with a similar one ([Bins] bins).
	ECE float64 `json:"ece"`
	// Brier is the mean over nodes of Σ over classes of (probability − [label])²,
	// between 0 and 2.
	Brier float64 `json:"brier"`
	// NLL is the mean of −ln of the label's probability, in nats. Probabilities
	// below the smallest normal float32 count as that.
	NLL float64 `json:"nll"`
	// Confusion [classes, classes] counts nodes by label (row) and prediction
	// (column). Absent with more than MaxConfusion classes.
	Confusion [][]int `json:"confusion,omitempty"`
}

// Argmax returns the column of the largest element of each row of scores [rows,
// classes], the first of equal ones, and -1 for a row that has a NaN.
func Argmax(scores []float32, classes int) []int32 {
	out := make([]int32, len(scores)/classes)
	for i := range out {
		row := scores[i*classes:][:classes]
		if out[i] = int32(kernels.Top(row)); slices.ContainsFunc(row, isNaN) {
			out[i] = -1
		}
	}
	return out
}

// Evaluate judges the predictions of nodes, which must all have a label in [0,
// classes). predicted and labels are [N], probabilities [N, classes] with rows
// that add up to 1. It returns nil without nodes. Where a probability of a node is NaN, so are
// all figures, and AUC is null.
func Evaluate(predicted []int32, probabilities []float32, classes int, labels, nodes []int32) *Report {
	if len(nodes) == 0 {
		return nil
	}
	if anyNaN(probabilities, classes, nodes) {
		nan := math.NaN()
		return &Report{Nodes: len(nodes), Accuracy: nan, MacroF1: nan, ECE: nan, Brier: nan, NLL: nan}
	}
	c := Count(predicted, classes, labels, nodes)
	r := &Report{Nodes: len(nodes), Accuracy: 100 * float64(c.AllRight) / float64(len(nodes)), MacroF1: c.macroF1()}
	auc, left := AUC(probabilities, classes, labels, nodes)
	if r.AUCLeftOut = left; !math.IsNaN(auc) {
		r.AUC = &auc
	}
	r.calibration(predicted, probabilities, classes, labels, nodes)
	if classes <= MaxConfusion {
		r.Confusion = make([][]int, classes)
		for i := range r.Confusion {
			r.Confusion[i] = make([]int, classes)
		}
		for _, v := range nodes {
			r.Confusion[labels[v]][predicted[v]]++
		}
	}
	return r
}

func isNaN(x float32) bool { return x != x }

// anyNaN reports whether a row of a node has a NaN.
func anyNaN(rows []float32, classes int, nodes []int32) bool {
	return slices.ContainsFunc(nodes, func(v int32) bool { return slices.ContainsFunc(rows[int(v)*classes:][:classes], isNaN) })
}

// MacroF1 is [Report.MacroF1] by itself; NaN without nodes.
func MacroF1(predicted []int32, classes int, labels, nodes []int32) float64 {
	return Count(predicted, classes, labels, nodes).macroF1()
}

// Counts has for each class how many nodes have it as label, as prediction, and as
// both, and how many nodes are right.
type Counts struct {
	Labelled, Chosen, Right []int // [classes]
	AllRight                int
}

// Count counts what nodes, all of which have a label, are predicted to be; -1 is nothing.
func Count(predicted []int32, classes int, labels, nodes []int32) *Counts {
	c := &Counts{Labelled: make([]int, classes), Chosen: make([]int, classes), Right: make([]int, classes)}
	for _, v := range nodes {
		c.Labelled[labels[v]]++
		if predicted[v] >= 0 { // or there is none
			c.Chosen[predicted[v]]++
		}
		if labels[v] == predicted[v] {
			c.Right[labels[v]]++
			c.AllRight++
		}
	}
	return c
}

func (c *Counts) macroF1() float64 {
	sum, classes := 0.0, 0
	for i, right := range c.Right {
		if all := c.Labelled[i] + c.Chosen[i]; all > 0 { // 2·TP + FP + FN
			sum += float64(2*right) / float64(all)
			classes++
		}
	}
	return 100 * sum / float64(classes)
}

// AUC is [Report.AUC] by itself, NaN where that is null or a probability of a node is NaN, and
// the classes that it leaves out.
func AUC(probabilities []float32, classes int, labels, nodes []int32) (auc float64, leftOut []int) {
	if anyNaN(probabilities, classes, nodes) {
		return math.NaN(), nil
	}
	order := make([]uint64, len(nodes)) // probability, then whether the node is of the class
	sum, judged := 0.0, 0
	for c := range classes {
		for i, v := range nodes {
			order[i] = ascending(probabilities[int(v)*classes+c]) << 1
			if int(labels[v]) == c {
				order[i]++
			}
		}
		slices.Sort(order)
		// The area is the share of pairs of one node of the class and one of the others in
		// which the former has the higher probability; equal ones count half. wins counts
		// halves: it is exact.
		var wins, positive, negative int
		for i := 0; i < len(order); {
			var here [2]int // of the others, of the class
			for x := order[i] >> 1; i < len(order) && order[i]>>1 == x; i++ {
				here[order[i]&1]++
			}
			wins += here[1] * (2*negative + here[0])
			negative, positive = negative+here[0], positive+here[1]
		}
		if positive == 0 || negative == 0 {
			leftOut = append(leftOut, c)
			continue
		}
		sum += float64(wins) / float64(2*positive*negative)
		judged++
	}
	return 100 * sum / float64(judged), leftOut
}

// ascending is a number that orders as x does, NaN before all others.
func ascending(x float32) uint64 {
	if x != x {
		return 0
	}
	b := math.Float32bits(x + 0) // of -0 that of 0
	if b>>31 != 0 {
		return uint64(^b)
	}
	return uint64(b | 1<<31)
}

// calibration fills in what compares probabilities with what happened.
func (r *Report) calibration(predicted []int32, probabilities []float32, classes int, labels, nodes []int32) {
	const smallest = 0x1p-126 // normal float32
	confidence, right := make([]float32, 0, len(nodes)), make([]bool, 0, len(nodes))
	for _, v := range nodes {
		row, label := probabilities[int(v)*classes:][:classes], labels[v]
		for c, p := range row {
			d := float64(p)
			if int32(c) == label {
				d--
			}
			r.Brier += float64(d * d)
		}
		r.NLL -= fmath.Log(math.Max(float64(row[label]), smallest))
		confidence, right = append(confidence, row[predicted[v]]), append(right, predicted[v] == label)
	}
	n := float64(len(nodes))
	r.ECE, r.Brier, r.NLL = CalibrationError(Reliability(confidence, right, Bins)), r.Brier/n, r.NLL/n
}

// Bin is a bin of a reliability diagram: what has a probability in (i/bins, (i+1)/bins].
type Bin struct {
	Count int     // how many fall into it
	Sum   float64 // of their probabilities
	True  float64 // how many of them are so
}

// Reliability sorts probabilities in [0, 1] into bins of the same width, with how many of
// those in each are true. 0 is in the first bin.
func Reliability(probability []float32, is []bool, bins int) []Bin {
	out := make([]Bin, bins)
	for i, x := range probability {
		p := float64(x)
		b := &out[min(max(int(math.Ceil(p*float64(bins)))-1, 0), bins-1)]
		b.Count, b.Sum = b.Count+1, b.Sum+p
		if is[i] {
			b.True++
		}
	}
	return out
}

// CalibrationError is the mean distance, as a share, between the probabilities of what is
// in a bin and the share of it that is true; NaN of empty bins.
func CalibrationError(bins []Bin) float64 {
	sum, n := 0.0, 0
	for _, b := range bins {
		sum += math.Abs(b.Sum - b.True)
		n += b.Count
	}
	return sum / float64(n)
}
