//go:build cgo

package ort

import (
	"errors"
	"fmt"
	"runtime"
	"sync"

	onnxruntime "github.com/yalue/onnxruntime_go"
)

// Bound is a session with inputs that stay: they are copied to the device once, and
// outputs have their memory already. It is for runs over and over, such as
// measurements. Its methods may be called by many goroutines; runs follow one another.
type Bound struct {
	mu      sync.Mutex
	s       *Session
	binding *onnxruntime.IoBinding
	values  []onnxruntime.Value
	pinner  runtime.Pinner // of the values' memory
	outputs map[string]Tensor
}

// Bind runs the model once, which warms it up and tells the outputs' shapes, and binds
// the inputs, whose data must not change, and memory for outputs of these shapes.
func (s *Session) Bind(inputs map[string]Tensor) (*Bound, error) {
	outputs, err := s.Run(inputs)
	if err != nil {
		return nil, err
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.session == nil {
		return nil, ErrClosed
	}
	b := &Bound{s: s, outputs: outputs}
	if b.binding, err = s.session.CreateIoBinding(); err != nil {
		return nil, err
	}
	add := func(name string, t Tensor, bind func(string, onnxruntime.Value) error) error {
		v, err := toValue(t, &b.pinner)
		if err == nil {
			b.values = append(b.values, v)
			err = bind(name, v)
		}
		if err != nil {
			return fmt.Errorf("%s cannot be bound: %w", name, err)
		}
		return nil
	}
	for _, io := range s.inputs {
		err = errors.Join(err, add(io.Name, inputs[io.Name], b.binding.BindInput))
	}
	for _, io := range s.outputs {
		if len(io.Dims) == 0 {
			err = errors.Join(err, fmt.Errorf("%s cannot be bound: it is a single number", io.Name))
			continue
		}
		err = errors.Join(err, add(io.Name, outputs[io.Name], b.binding.BindOutput))
	}
	if err != nil {
		return nil, errors.Join(err, b.Close())
	}
	return b, nil
}

// Run runs the model on the bound inputs. The outputs' data are overwritten by the
// next run.
func (b *Bound) Run() (map[string]Tensor, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.s.mu.RLock()
	defer b.s.mu.RUnlock()
	if b.binding == nil || b.s.session == nil {
		return nil, ErrClosed
	}
	if err := b.s.session.RunWithBinding(b.binding); err != nil {
		return nil, &RunError{err}
	}
	return b.outputs, nil
}

// Outputs are the tensors that runs write to.
func (b *Bound) Outputs() map[string]Tensor { return b.outputs }

// Close frees the binding; the session stays open. It comes before the session's.
func (b *Bound) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.binding == nil {
		return nil
	}
	err := b.binding.Destroy()
	destroy(b.values)
	b.pinner.Unpin()
	b.binding, b.values = nil, nil
	return err
}
