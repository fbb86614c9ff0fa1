package train

import (
	"fmt"
	"math"

	"github.com/gsrc-dev/gsrc/ir"
	"github.com/gsrc-dev/gsrc/rng"
	"github.com/gsrc-dev/gsrc/runtime"
)

// param is a parameter with what the optimizer keeps of it.
type param struct {
	name  string
	group string
	decay float32
	shape []int
	w     []float32 // current value, bound to every function that reads it
	m, v  []float32 // Adam's moments
	best  []float32 // value at the kept epoch
	buf   *runtime.Buffer

	// The others as buffers, for a device with a memory of its own.
	mBuf, vBuf, bestBuf *runtime.Buffer
}

// group is the parameters that share a learning rate and a count of steps.
type group struct {
	name  string
	lr    float64 // of the current epoch
	first float64 // of the first one
	steps int
}

// newParams initialises the parameters of a module, each from a stream of its
// own name.
func newParams(m *ir.Module, seed uint64) ([]*param, error) {
	var ps []*param
	for _, v := range m.Params {
		p := &param{name: v.Name, group: v.Attrs.Str("group"), decay: float32(v.Attrs.Float("decay"))}
		n := 1
		for _, d := range v.Type.Dims {
			size, ok := d.Size()
			if !ok {
				return nil, fmt.Errorf("train: parameter $%s has the type %s; parameters need fixed sizes", v.Name, v.Type)
			}
			p.shape = append(p.shape, size)
			n *= size
		}
		if v.Type.DType != ir.F32 || v.Type.Layout != ir.Dense {
			return nil, fmt.Errorf("train: parameter $%s has the type %s; parameters are dense f32 tensors", v.Name, v.Type)
		}
		p.w, p.m, p.v, p.best = make([]float32, n), make([]float32, n), make([]float32, n), make([]float32, n)
		if err := initialise(p.w, p.shape, v.Attrs.Str("init"), rng.New(seed, "init").Sub(v.Name)); err != nil {
			return nil, fmt.Errorf("train: parameter $%s: %w", v.Name, err)
		}
		copy(p.best, p.w)
		p.buf = runtime.F32(p.w, p.shape...)
		p.mBuf, p.vBuf, p.bestBuf = runtime.F32(p.m, p.shape...), runtime.F32(p.v, p.shape...), runtime.F32(p.best, p.shape...)
		ps = append(ps, p)
	}
	return ps, nil
}

// initialise fills w. glorot is uniform within ±√(6/(fan in + fan out)) (Glorot
// and Bengio 2010), where a vector has a fan out of 1; normal is standard normal.
func initialise(w []float32, shape []int, how string, s rng.Stream) error {
	switch how {
	case "zeros", "":
	case "ones":
		for i := range w {
			w[i] = 1
		}
	case "normal":
		for i := range w {
			w[i] = float32(s.Normal(uint64(i)))
		}
	case "glorot":
		fans := 1
		if len(shape) > 0 {
			fans = shape[0] + 1
		}
		if len(shape) > 1 {
			fans = shape[len(shape)-2] + shape[len(shape)-1]
		}
		limit := float32(math.Sqrt(6 / float64(max(1, fans))))
		for i := range w {
			w[i] = (2*s.Uniform(uint64(i)) - 1) * limit
		}
	default:
		return fmt.Errorf("initialiser %q is unknown; there are glorot, zeros, ones and normal", how)
	}
	return nil
}
