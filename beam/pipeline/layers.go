package pipeline

import (
	"slices"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
)

func init() {
	registerTelling[boundaryFn]()
	registerAlone[weighFn]()
	registerAlone[levelFn]()
	registerJoined[levelFn]()
}

// layers runs the parts of a stage on partitions, with an exchange of boundary rows before each
// that reads neighbours. The values that hold names stay beside the stage's results.
func (b *builder) layers(s beam.Scope, states beam.PCollection, name string, hold ...string) beam.PCollection {
	s = s.Scope(name)
	for i, part := range b.stages[name].Parts {
		level := levelFn{b.model, name, i, hold}
		if len(part.Sources) == 0 {
			states, _ = alone(s, name, level, states)
		} else {
			states, _ = joined(s, name, level, states, telling(s, name, boundaryFn{part.Sources}, states))
		}
	}
	return states
}

// boundaryFn sends the rows that other partitions read.
type boundaryFn struct{ Values []string }

func (f boundaryFn) do(c *call, s *state, sent []*table) error {
	for to, rows := range s.readers() {
		t, err := s.some(rows, f.Values)
		if err == nil {
			err = c.tell(to, t)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// levelFn computes a part of a stage, with the rows that were sent where it reads neighbours.
type levelFn struct {
	Model ModelFile
	Stage string
	Part  int
	Hold  []string
}

func (f levelFn) do(c *call, s *state, sent []*table) error {
	return f.Model.use(c, s, sent, func(m *model, s *state, sent []*table) error {
		return s.compute(m, f.Stage, f.Part, f.Hold, sent)
	})
}

// weighFn gives every entry of a partition the same weight.
type weighFn struct {
	Value  string
	Weight float32
}

func (f weighFn) do(_ *call, s *state, _ []*table) error {
	s.put(valuePrefix+f.Value, slices.Repeat([]float32{f.Weight}, len(s.col)), len(s.col))
	return nil
}
