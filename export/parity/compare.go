package parity

import (
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strings"

	"github.com/gsrc-dev/gsrc/export/onnx"
	"github.com/gsrc-dev/gsrc/runtime/kernels"
	"github.com/gsrc-dev/gsrc/runtime/ort"
)

// SchemaVersion is the version of parity.json.
const SchemaVersion = 1

// FileName is the name of a report in an export.
const FileName = "parity.json"

// Report is parity.json: how far the runtimes are from the compiler's own
// forward pass.
type Report struct {
	SchemaVersion int    `json:"schema_version"`
	Bound         string `json:"bound"` // of models without a tolerance of their own
	// Runtimes holds the version of each runtime that took part.
	Runtimes map[string]string `json:"runtimes"`
	Cases    []Case            `json:"cases"`
	// Precision tells what fewer bits for weights do; nil where they are float32.
	Precision *PrecisionReport `json:"precision,omitempty"`
	// Refusals are graphs with an edge to a node that there is not, each of which
	// a runtime must refuse.
	Refusals []Refusal `json:"refusals,omitempty"`
}

func newReport() *Report {
	return &Report{SchemaVersion: SchemaVersion, Bound: "max|a-b| <= 1e-5 + 1e-4*max|b|", Runtimes: map[string]string{}, Cases: []Case{}}
}

// add adds a comparison, and tells the error of it, which may be nil, what was compared.
func (r *Report) add(c Case, bad *Error) *Error {
	r.Cases = append(r.Cases, c)
	return bad.of(c)
}

// Refusal is one model that refused one faulty graph in one runtime.
type Refusal struct {
	Model   string `json:"model"`
	Case    string `json:"case"`
	Runtime string `json:"runtime"`
}

// Case is one model on one graph in one runtime.
type Case struct {
	Model   string   `json:"model"`
	Case    string   `json:"case"`
	Runtime string   `json:"runtime"`
	Nodes   int      `json:"nodes"`
	Edges   int      `json:"edges"`
	Outputs []Output `json:"outputs"`
}

// Output compares one output.
type Output struct {
	Name string `json:"name"`
	// MaxAbs is max|a − b|, MaxRel that over max|b|, Bound what MaxAbs may be.
	MaxAbs float64 `json:"max_abs"`
	MaxRel float64 `json:"max_rel"`
	Bound  float64 `json:"bound"`
	OK     bool    `json:"ok"`
	// Ulps counts elements by their distance in units in the last place, the
	// float32 numbers from one to the other: entry 0 the equal ones, entry i those
	// with a distance from 2^(i-1) to 2^i - 1. It ends with the largest distance.
	Ulps []int `json:"ulps"`
	// Argmax is the agreement in the largest of each row; absent but for logits and
	// probabilities.
	Argmax *Agreement `json:"argmax,omitempty"`
}

// Agreement counts rows whose largest element is at the same place on both sides.
type Agreement struct {
	Agree int `json:"agree"`
	Rows  int `json:"rows"`
}

// Error says where a runtime and the compiler's forward pass differ by
// more than the bound.
type Error struct {
	Model, Case, Runtime, Output string
	Index                        int // position in the output, row-major; -1 where shapes differ
	Got, Want                    float64
	MaxAbs, Bound                float64
	Detail                       string
	// More counts the further outputs that are out of bounds.
	More int
}

func (e *Error) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s.onnx in %s on %q: output %s ", e.Model, e.Runtime, e.Case, e.Output)
	if e.Detail != "" {
		b.WriteString(e.Detail)
	} else {
		fmt.Fprintf(&b, "differs from the compiled forward pass: %g at position %d where %g was computed; the largest difference %.3g is above the bound %.3g",
			e.Got, e.Index, e.Want, e.MaxAbs, e.Bound)
	}
	if e.More > 0 {
		fmt.Fprintf(&b, " (and %d more outputs are out of bounds)", e.More)
	}
	return b.String()
}

// of says in e, unless that is nil, where it was found.
func (e *Error) of(c Case) *Error {
	if e != nil {
		e.Model, e.Case, e.Runtime = c.Model, c.Case, c.Runtime
	}
	return e
}

// and returns the first of two errors, which counts the other; both may be nil.
func (e *Error) and(other *Error) *Error {
	if e == nil {
		return other
	}
	if other != nil {
		e.More += 1 + other.More
	}
	return e
}

// compareOutputs compares every output of want; the error is that of the first
// one out of bounds.
func compareOutputs(got, want map[string]ort.Tensor, order []string, within onnx.Tolerance) ([]Output, *Error) {
	var list []Output
	var first *Error
	for _, name := range order {
		o, err := compareOutput(name, got[name], want[name], within)
		list, first = append(list, o), first.and(err)
	}
	return list, first
}

func compareOutput(name string, got, want ort.Tensor, within onnx.Tolerance) (Output, *Error) {
	o := Output{Name: name}
	if got.DType != want.DType || !slices.Equal(got.Shape, want.Shape) || got.DType != ort.Float32 && got.DType != ort.Int64 {
		return o, &Error{Output: name, Index: -1,
			Detail: fmt.Sprintf("is %v of shape %v, computed was %v of shape %v", got.DType, got.Shape, want.DType, want.Shape)}
	}
	for i, w := range want.I64 { // node numbers: equal or wrong
		if d := math.Abs(float64(got.I64[i] - w)); d > 0 {
			o.MaxAbs = d
			return o, &Error{Output: name, Index: i, Got: float64(got.I64[i]), Want: float64(w), MaxAbs: d}
		}
	}
	if want.DType == ort.Int64 {
		o.OK = true
		return o, nil
	}
	largest, at := 0.0, -1
	for i, w := range want.F32 {
		d := math.Abs(float64(got.F32[i]) - float64(w))
		if math.IsNaN(d) {
			d = math.MaxFloat64 // a NaN or infinity on either side is never right
		}
		largest = math.Max(largest, math.Abs(float64(w)))
		if at < 0 || d > o.MaxAbs {
			o.MaxAbs, at = d, i
		}
		o.countUlps(got.F32[i], w)
	}
	if (name == "logits" || name == "probabilities") && len(want.Shape) == 2 {
		o.Argmax = agreement(got.F32, want.F32, int(want.Shape[1]))
	}
	if largest > 0 {
		o.MaxRel = o.MaxAbs / largest
	}
	o.Bound = within.Of(name, largest)
	o.OK = o.MaxAbs <= o.Bound && !math.IsNaN(largest) && !math.IsInf(largest, 0)
	if o.OK {
		return o, nil
	}
	o.Bound, o.MaxRel = finite(o.Bound), finite(o.MaxRel)
	return o, &Error{Output: name, Index: at, Got: float64(got.F32[at]), Want: float64(want.F32[at]), MaxAbs: o.MaxAbs, Bound: o.Bound}
}

// countUlps adds one element to the histogram.
func (o *Output) countUlps(a, b float32) {
	bin := bits.Len64(ulps(a, b))
	for len(o.Ulps) <= bin {
		o.Ulps = append(o.Ulps, 0)
	}
	o.Ulps[bin]++
}

// ulps is how many float32 numbers b is away from a. Zeros are one number; a NaN
// is further from everything than any two numbers are.
func ulps(a, b float32) uint64 {
	if a != a || b != b {
		return 1 << 32
	}
	place := func(v float32) int64 { // of the number in the order of all
		n := int64(math.Float32bits(v) &^ (1 << 31))
		if math.Signbit(float64(v)) {
			return -n
		}
		return n
	}
	d := place(a) - place(b)
	return uint64(max(d, -d))
}

func agreement(a, b []float32, width int) *Agreement {
	r := &Agreement{}
	for i := 0; i+width <= len(b) && width > 0; i += width {
		r.Rows++
		if kernels.Top(a[i:i+width]) == kernels.Top(b[i:i+width]) {
			r.Agree++
		}
	}
	return r
}

// finite keeps JSON, which knows no NaN, able to say that something is wrong.
func finite(v float64) float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return math.MaxFloat64
	}
	return v
}
