package bench

import (
	"errors"
	"fmt"
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
	return slices.Concat(functionSteps(), scaleCases(), searchCases())
}

// The sizes by which a GPU's limits are measured: far more than its caches hold.
const (
	copyBytes   = 1 << 28
	productSide = 4096
)

func describe(d *cuda.Device) *Device {
	return &Device{Name: d.Name(), Capability: d.Info().Capability(), Products: d.Products(), Date: time.Now().UTC().Format(time.DateOnly)}
}

func (d *Device) String() string {
	return fmt.Sprintf("%s, compute capability %s, matrix products by %s", d.Name, d.Capability, d.Products)
}

// MeasureDevice finds what a GPU can do: the rate of a copy of that many bytes within
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
	to, err2 := take(bytes / 4)
	product, err3 := take(side * side)
	x := runtime.F32(ramp(side*side), side, side)
	held = append(held, x)
	if err := errors.Join(err, err2, err3, d.ToDevice(x)); err != nil {
		return nil, err
	}
	copied, err := d.Time(func() error { return d.Copy(to.Device.Elements, from.Device.Elements, bytes) })
	if err != nil {
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
