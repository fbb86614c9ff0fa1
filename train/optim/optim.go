// Package optim has the parameters of a training run, how they begin, and the optimizer
// that moves them: Adam (Kingma and Ba 2015) with L2 weight decay that is coupled to the
// gradient, and a learning rate for each group of parameters.
package optim

import (
	"fmt"
	"math"

	"github.com/gsrc-dev/gsrc/ir"
	"github.com/gsrc-dev/gsrc/rng"
	"github.com/gsrc-dev/gsrc/runtime"
)

// Adam's constants.
const (
	beta1   = 0.9
	beta2   = 0.999
	epsilon = 1e-8
)

// Param is a parameter with what a run keeps of it, buffers of one shape.
type Param struct {
	Name  string
	Group *Group
	Decay float32         // of the L2 weight decay
	Value *runtime.Buffer // bound to every function that reads it
	M, V  *runtime.Buffer // Adam's moments
	Best  *runtime.Buffer // the value at the kept epoch
}

// Buffers returns all that a run keeps of the parameter.
func (p *Param) Buffers() [4]*runtime.Buffer { return [4]*runtime.Buffer{p.Value, p.M, p.V, p.Best} }

// Group is the parameters that share a learning rate and a count of steps.
type Group struct {
	Name  string
	LR    float64 // of the current epoch
	Steps int
	first float64 // the learning rate of the first epoch
}

// Set is the parameters of a module, in its order, and their groups by name.
type Set struct {
	Params []*Param
	Groups map[string]*Group
}

// New initialises the parameters of a module, each from a stream of its own name. lr gives
// the learning rate of a group.
func New(m *ir.Module, seed uint64, lr func(group string) float64) (*Set, error) {
	s := &Set{Groups: map[string]*Group{}}
	for _, v := range m.Params {
		shape, err := v.Type.Shape(nil)
		if err != nil {
			return nil, fmt.Errorf("train: parameter $%s has the type %s; parameters need fixed sizes", v.Name, v.Type)
		}
		if v.Type.DType != ir.F32 || v.Type.Layout != ir.Dense {
			return nil, fmt.Errorf("train: parameter $%s has the type %s; parameters are dense f32 tensors", v.Name, v.Type)
		}
		name := v.Attrs.Str("group")
		g := s.Groups[name]
		if g == nil {
			g = &Group{Name: name, LR: lr(name), first: lr(name)}
			s.Groups[name] = g
		}
		p := &Param{Name: v.Name, Group: g, Decay: float32(v.Attrs.Float("decay")),
			Value: runtime.Zeros(shape...), M: runtime.Zeros(shape...), V: runtime.Zeros(shape...), Best: runtime.Zeros(shape...)}
		if err := initialise(p.Value.F32, shape, v.Attrs.Str("init"), rng.New(seed, "init").Sub(v.Name)); err != nil {
			return nil, fmt.Errorf("train: parameter $%s: %w", v.Name, err)
		}
		copy(p.Best.F32, p.Value.F32)
		s.Params = append(s.Params, p)
	}
	return s, nil
}

// Lookup returns the parameter of a name, nil if there is none.
func (s *Set) Lookup(name string) *Param {
	for _, p := range s.Params {
		if p.Name == name {
			return p
		}
	}
	return nil
}

// Halve sets the learning rates of an epoch, from 0, where they halve after every so many
// epochs; with every = 0 they stay.
func (s *Set) Halve(epoch, every int) {
	if every <= 0 {
		return
	}
	for _, g := range s.Groups {
		g.LR = math.Ldexp(g.first, -(epoch / every))
	}
}

// Steps returns how many steps each group has made.
func (s *Set) Steps() map[string]int {
	steps := map[string]int{}
	for name, g := range s.Groups {
		steps[name] = g.Steps
	}
	return steps
}

// Step moves parameters of the group along their gradients, on the device.
func (g *Group) Step(d runtime.Device, params []runtime.AdamParam) error {
	g.Steps++
	return d.Adam(params, float32(g.LR), beta1, beta2, epsilon, g.Steps)
}

// each calls f with every buffer.
func (s *Set) each(f func(*runtime.Buffer) error) error {
	for _, p := range s.Params {
		for _, b := range p.Buffers() {
			if err := f(b); err != nil {
				return err
			}
		}
	}
	return nil
}

// ToDevice gives the buffers to a device, unless it has them. From then on those of the
// host are as old as the last ToHost, where the device has a memory of its own.
func (s *Set) ToDevice(d runtime.Device) error { return s.each(d.ToDevice) }

// ToHost copies the buffers back to the host.
func (s *Set) ToHost(d runtime.Device) error { return s.each(d.CopyToHost) }

// Keep makes the current parameters the best ones.
func (s *Set) Keep(d runtime.Device) error {
	for _, p := range s.Params {
		if err := d.Assign(p.Best, p.Value); err != nil {
			return err
		}
	}
	return nil
}

// Restore makes the best parameters the current ones, on the host as well.
func (s *Set) Restore(d runtime.Device) error {
	if err := s.ToHost(d); err != nil {
		return err
	}
	for _, p := range s.Params {
		copy(p.Value.F32, p.Best.F32)
		if err := d.CopyToDevice(p.Value); err != nil {
			return err
		}
	}
	return nil
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
