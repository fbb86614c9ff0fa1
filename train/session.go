package train

import (
	"context"
	"fmt"
	"slices"

	"github.com/gsrc-dev/gsrc/config"
	"github.com/gsrc-dev/gsrc/data"
	"github.com/gsrc-dev/gsrc/graph"
	"github.com/gsrc-dev/gsrc/ir"
	"github.com/gsrc-dev/gsrc/runtime"
)

// Session makes the steps of a training run on one graph, as the run itself makes them,
// without what surrounds them: for measurements. Structural attributes are random numbers.
type Session struct{ t *trainer }

// NewSession readies a job on one graph as [Train] does; its task is [Nodes] of ds.
func NewSession(ds *data.Dataset, job Job, cfg *config.Config, opts Options) (*Session, error) {
	job.Task = Nodes(ds)
	cfg = cfg.Clone()
	cfg.Train.PretrainSteps = 1 << 30 // steps may come without end
	t, err := newTrainer(context.Background(), job, cfg, opts)
	if err != nil {
		return nil, err
	}
	in := t.prog.inputs
	if !slices.ContainsFunc(t.prog.Funcs, func(f *ir.Func) bool { a := f.Arg("x"); return a != nil && a.Type.Layout == ir.CSR }) {
		x := ds.X.ToDense() // the pass that keeps features sparse was left out
		in["x"] = runtime.F32(x.Dense, x.Rows, x.Cols)
	}
	if in["w"] == nil {
		in["w"] = runtime.F32(ds.Graph.Structure().Spread(nil, nil), in["g"].Dims[1])
	}
	if width := cfg.DeepWalk.Width; width > 0 {
		in["x_struct"] = runtime.Zeros(ds.Graph.N, width)
		t.pool.Normal(in["x_struct"].F32, t.stream("x_struct"))
	}
	return &Session{t}, nil
}

// Close ends the session's threads, and gives back all memory on its device.
func (s *Session) Close() { s.t.close() }

// Profile has the functions that are made from now on measure their operations.
func (s *Session) Profile() { s.t.prog.options.Profile = true }

// Function returns a function of the program with its inputs bound, the candidate edges by
// the untrained encoder among them.
func (s *Session) Function(name string) (*runtime.Function, error) {
	f, err := s.function(name)
	if err != nil {
		return nil, err
	}
	return f.Function, nil
}

func (s *Session) function(name string) (*function, error) {
	t := s.t
	def := t.prog.Func(name)
	if def == nil {
		return nil, fmt.Errorf("model %s has no function @%s", t.job.Model, name)
	}
	if def.Arg("c") != nil && !t.edges.chosen {
		if _, err := s.Candidates(); err != nil {
			return nil, err
		}
	}
	return t.steps.function(name)
}

// Candidates returns the candidate edges by the untrained encoder.
func (s *Session) Candidates() (*graph.Structure, error) {
	r := s.t.steps.(refiner)
	if err := r.begin(); err != nil {
		return nil, err
	}
	if err := (algorithm1{s.t, r}).refresh(); err != nil {
		return nil, err
	}
	return s.t.prog.inputs["c"].Graph, nil
}

// Step makes the next training step of a function and returns its loss.
func (s *Session) Step(name string) (loss float64, err error) {
	f, err := s.function(name)
	if err != nil {
		return 0, err
	}
	if r, ok := s.t.steps.(refiner); ok && name == "pretrain" {
		if f.ahead == nil {
			if err := r.startContrast(f); err != nil {
				return 0, err
			}
		}
		loss, err = r.contrast(f)
	} else {
		loss, err = s.t.steps.epoch(f, s.t.state.Pretrained)
	}
	s.t.state.Pretrained++
	return loss, err
}

// Adam moves the parameters of a function once more along the gradients of its last step.
func (s *Session) Adam(name string) error {
	for _, u := range s.t.prog.fns[name].updates {
		if err := u.group.Step(s.t.device, u.adam); err != nil {
			return err
		}
	}
	return nil
}

// Moved returns the sizes of the parameters that a function moves.
func (s *Session) Moved(name string) (sizes []int) {
	for _, u := range s.t.prog.fns[name].updates {
		for _, p := range u.adam {
			sizes = append(sizes, p.W.Size())
		}
	}
	return sizes
}
