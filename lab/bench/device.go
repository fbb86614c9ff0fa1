package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/gsrc-dev/gsrc/ir"
	"github.com/gsrc-dev/gsrc/runtime"
	"github.com/gsrc-dev/gsrc/runtime/cuda"
)

// Device is the GPU that a report is of.
type Device struct {
	Name       string `json:"name"`       // "cuda:0 (NVIDIA H100 80GB HBM3)"
	Capability string `json:"capability"` // "9.0"
	Products   string `json:"products"`   // what multiplies matrices
	Date       string `json:"date"`       // of the measurement, in UTC
}

// DeviceCases lists what can be timed on a GPU: training steps, and the search for
// candidate edges.
func DeviceCases() []Case {
	var cases []Case
	for _, s := range stepList() {
		cases = append(cases, s.toCase())
	}
	return slices.Concat(cases, scaleCases(), searchCases())
}

// The sizes by which a GPU's limits are measured: far more than its caches hold.
const (
	copyBytes   = 1 << 28
	productSide = 4096
)

// runOnGPU times the cases on the GPU of the options, all in this process.
func runOnGPU(ctx context.Context, o Options, cases []Case) (*Report, error) {
	r := &Report{Schema: 1, Version: o.Version, Machine: ThisMachine(o.Threads), Device: &Device{
		Name: o.Device.Name(), Capability: o.Device.Info().Capability(), Products: o.Device.Products(), Date: time.Now().UTC().Format(time.DateOnly),
	}}
	if !o.NoRoofline {
		var err error
		if r.Limits, err = MeasureDevice(o.Device, copyBytes, productSide); err != nil {
			return nil, fmt.Errorf("measuring what %s can do: %w", o.Device.Name(), err)
		}
	}
	for _, c := range cases {
		if err := ctx.Err(); err != nil {
			return r, err
		}
		if o.Progress != nil {
			o.Progress(c.Name)
		}
		x, err := c.inProcess(o)
		if err != nil {
			return r, fmt.Errorf("%s: %w", c.Name, err)
		}
		x.Name = c.Name
		r.Results = append(r.Results, x)
	}
	r.judge()
	return r, nil
}

// MeasureDevice finds what a GPU can do: the rate of a copy of so many bytes within
// its memory, read and written, and that of a product of two square matrices.
func MeasureDevice(d *cuda.Device, bytes, side int) (_ *Roofline, err error) {
	var held []*runtime.Buffer
	defer func() {
		for _, b := range held {
			err = errors.Join(err, d.Release(b))
		}
	}()
	take := func(n int) (*runtime.Buffer, error) {
		b := &runtime.Buffer{DType: ir.F32}
		held = append(held, b)
		return b, d.Reserve(b, n)
	}
	from, err := take(bytes / 4)
	if err != nil {
		return nil, err
	}
	to, err := take(bytes / 4)
	if err != nil {
		return nil, err
	}
	copied, err := d.Time(func() error { return d.Copy(to.Device.Elements, from.Device.Elements, bytes) })
	if err != nil {
		return nil, err
	}
	x, product := runtime.F32(ramp(side*side), side, side), (*runtime.Buffer)(nil)
	held = append(held, x)
	if err := d.ToDevice(x); err != nil {
		return nil, err
	}
	if product, err = take(side * side); err != nil {
		return nil, err
	}
	multiplied, err := d.Time(func() error {
		return d.MatMul(cuda.MatMul{C: product.Device.Elements, A: x.Device.Elements, B: x.Device.Elements, M: side, N: side, K: side})
	})
	if err != nil {
		return nil, err
	}
	n := float64(side)
	return &Roofline{
		MatMul:    2 * n * n * n / multiplied.Seconds() / 1e9,
		Bandwidth: []Bandwidth{{MiB: 2 * float64(bytes) / (1 << 20), GBs: 2 * float64(bytes) / copied.Seconds() / 1e9}},
	}, nil
}

// timeParts times the parts of a step that takes so many milliseconds, each by itself
// by a device's clock. The session's values are lost.
func (t *Stepper) timeParts(d runtime.Timer, step float64) ([]Part, error) {
	times, err := t.Function.Main().Measure(d, uint64(t.step))
	if err != nil {
		return nil, err
	}
	parts := byKind(times, 1)
	took, err := d.Time(t.adam)
	if err != nil {
		return nil, err
	}
	adam := Part{Op: "adam", Count: 1, MS: took.Seconds() * 1e3}
	for _, p := range t.params {
		adam.Cost = adam.Cost.plus(adamCost(p.W.Size()))
	}
	parts = append(parts, adam)
	ofStep(parts, step)
	return parts, nil
}

// writeGPU prints the report of a GPU: all parts of a step, with their work.
func (r *Report) writeGPU(w io.Writer, f Format, parts bool) error {
	d := r.Device
	fmt.Fprintf(w, "%s, compute capability %s, matrix products by %s; gsrc %s, %s\n", d.Name, d.Capability, d.Products, r.Version, d.Date)
	if l := r.Limits; l != nil {
		fmt.Fprintf(w, "limits: matrix product %.0f GFLOP/s, copy %.0f GB/s over %s\n", l.MatMul, l.Bandwidth[0].GBs, mib(l.Bandwidth[0].MiB))
	}
	fmt.Fprintln(w)
	rows := [][]string{{"case", "data", "time", "range, of step", "moved", "computed", "rate", "of limit", "memory"}}
	for _, x := range r.Results {
		moved, computed := "", ""
		if x.Cost != nil {
			moved, computed = work(*x.Cost)
		}
		rows = append(rows, []string{x.Name, x.Data, ms(x.MS), ms(x.MinMS) + " to " + ms(x.MaxMS), moved, computed, rate(x.GFlops, x.GBs) + perSize(x.PerSizeNS), percent(x.Share), memory(x)})
		if !parts {
			continue
		}
		rest := x.MS
		for _, p := range x.Parts {
			rest -= p.MS
			moved, computed := work(p.Cost)
			rows = append(rows, []string{fmt.Sprintf("  %s ×%d", p.Op, p.Count), "", ms(p.MS), percent(p.OfStep), moved, computed, rate(p.GFlops, p.GBs), percent(p.Share), ""})
		}
		if rest > 0 && len(x.Parts) > 0 {
			rows = append(rows, []string{"  between kernels, host", "", ms(rest), percent(rest / x.MS), "", "", "", "", ""})
		}
	}
	return table(w, f, rows)
}

// work prints what is moved and what is computed.
func work(c Cost) (moved, computed string) {
	return mib(c.Bytes / (1 << 20)), fmt.Sprintf("%.3g MFLOP", c.Flops/1e6)
}
