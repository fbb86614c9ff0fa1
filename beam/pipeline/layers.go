package pipeline

import (
	"context"
	"slices"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/register"
)

func init() {
	register.DoFn5x1[context.Context, int64, []byte, func(int64, []byte), func(int64, []byte), error](&boundaryFn{})
	register.DoFn4x1[context.Context, int64, []byte, func(int64, []byte), error](&weighFn{})
	register.DoFn4x1[context.Context, int64, []byte, func(int64, []byte), error](&levelFn{})
	register.DoFn5x1[context.Context, int64, func(*[]byte) bool, func(*[]byte) bool, func(int64, []byte), error](&joinedLevelFn{})
}

// layers runs the parts of a stage on partitions, with an exchange of boundary rows before each
// that reads neighbours. The values that hold names stay beside the stage's results.
func (b *builder) layers(s beam.Scope, states beam.PCollection, name string, hold ...string) beam.PCollection {
	s = s.Scope(name)
	for i, part := range b.stages[name].Parts {
		l := level{b.model, name, i, hold}
		if len(part.Sources) == 0 {
			states = beam.ParDo(s, &levelFn{l}, states)
			continue
		}
		kept, rows := beam.ParDo2(s, &boundaryFn{name, part.Sources}, states)
		states = beam.ParDo(s, &joinedLevelFn{l}, beam.CoGroupByKey(s, kept, rows))
	}
	return states
}

// boundaryFn sends the rows that other partitions read.
type boundaryFn struct {
	Stage  string
	Values []string
}

func (f *boundaryFn) ProcessElement(ctx context.Context, p int64, b []byte, states, rows func(int64, []byte)) error {
	work := begin(ctx, f.Stage)
	defer work.end()
	states, rows = work.sends(states), work.sends(rows)
	s, err := parseState(b)
	if err != nil {
		return err
	}
	states(p, b)
	return s.boundary(f.Values, false, 0, func(to int64, t *table) error { return send(rows, to, t) })
}

// level is a part of a stage.
type level struct {
	Model ModelFile
	Stage string
	Part  int
	Hold  []string
}

func (l *level) run(ctx context.Context, s *state, sent []*table) ([]byte, error) {
	m, err := l.Model.open(ctx)
	if err == nil {
		err = s.compute(m, l.Stage, l.Part, slices.Clone(l.Hold), sent)
	}
	if err != nil {
		return nil, err
	}
	return s.bytes()
}

// levelFn computes a part that reads no neighbours.
type levelFn struct{ Level level }

func (f *levelFn) ProcessElement(ctx context.Context, p int64, b []byte, emit func(int64, []byte)) error {
	work := begin(ctx, f.Level.Stage)
	defer work.end()
	emit = work.sends(emit)
	s, err := parseState(b)
	if err != nil {
		return err
	}
	if b, err = f.Level.run(ctx, s, nil); err == nil {
		emit(p, b)
	}
	return err
}

// joinedLevelFn computes a part with the rows that were sent.
type joinedLevelFn struct{ Level level }

func (f *joinedLevelFn) ProcessElement(ctx context.Context, p int64, states, rows func(*[]byte) bool, emit func(int64, []byte)) error {
	work := begin(ctx, f.Level.Stage)
	defer work.end()
	states, rows, emit = work.reads(states), work.reads(rows), work.sends(emit)
	s, sent, err := received(states, rows)
	if err != nil {
		return err
	}
	b, err := f.Level.run(ctx, s, sent)
	if err == nil {
		emit(p, b)
	}
	return err
}

// weighFn gives every entry of a partition the same weight.
type weighFn struct {
	Value  string
	Weight float32
}

func (f *weighFn) ProcessElement(ctx context.Context, p int64, b []byte, emit func(int64, []byte)) error {
	work := begin(ctx, "ingest")
	defer work.end()
	emit = work.sends(emit)
	s, err := parseState(b)
	if err != nil {
		return err
	}
	s.put(valuePrefix+f.Value, slices.Repeat([]float32{f.Weight}, len(s.col)), len(s.col))
	return send(emit, p, s.table)
}
