package pipeline

import (
	"context"
	"fmt"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/register"
)

// step is what is done with a partition and the tables that were sent to it: it may change the state, and
// send tables to others. Its exported fields are what workers are given of it.
type step interface {
	do(c *call, s *state, sent []*table) error
}

// call is a step's call with a partition.
type call struct {
	*work
	out func(int64, []byte) // to others
}

// tell sends a table to another partition.
func (c *call) tell(to int64, t *table) error { return c.send(c.out, to, t) }

// The functions of Beam that have a step done. Those of each step are registered.
type (
	// aloneFn gives it a partition by itself.
	aloneFn[F step] struct {
		Stage string
		Step  F
	}
	// joinedFn gives it a partition and what was sent to this.
	joinedFn[F step] aloneFn[F]
	// tellingFn has it send tables, and leaves the partition as it is.
	tellingFn[F step] aloneFn[F]
)

// alone does a step with each partition by itself.
func alone[F step](s beam.Scope, stage string, f F, states beam.PCollection) (after, tables beam.PCollection) {
	return beam.ParDo2(s, &aloneFn[F]{stage, f}, states)
}

// joined does a step with each partition and what was sent to it.
func joined[F step](s beam.Scope, stage string, f F, states, sent beam.PCollection) (after, tables beam.PCollection) {
	return beam.ParDo2(s, &joinedFn[F]{stage, f}, beam.CoGroupByKey(s, states, sent))
}

// telling does a step that changes no partition, and returns what it sends.
func telling[F step](s beam.Scope, stage string, f F, states beam.PCollection) (tables beam.PCollection) {
	return beam.ParDo(s, &tellingFn[F]{stage, f}, states)
}

func registerAlone[F step]() {
	register.DoFn5x1[context.Context, int64, []byte, func(int64, []byte), func(int64, []byte), error](&aloneFn[F]{})
}

func registerJoined[F step]() {
	register.DoFn6x1[context.Context, int64, func(*[]byte) bool, func(*[]byte) bool, func(int64, []byte), func(int64, []byte), error](&joinedFn[F]{})
}

func registerTelling[F step]() {
	register.DoFn4x1[context.Context, int64, []byte, func(int64, []byte), error](&tellingFn[F]{})
}

// run does the step with a state, which it emits afterwards unless after is nil.
func (f *aloneFn[F]) run(ctx context.Context, read func(*work) (*state, error), sent func(*[]byte) bool, after, tables func(int64, []byte)) error {
	work := begin(ctx, f.Stage)
	defer work.end()
	s, err := read(work)
	var list []*table
	if err == nil && sent != nil {
		list, err = work.all(sent)
	}
	if err == nil {
		err = f.Step.do(&call{work, tables}, s, list)
	}
	if err != nil || after == nil {
		return err
	}
	return work.send(after, s.partition, s.table)
}

func (f *aloneFn[F]) ProcessElement(ctx context.Context, _ int64, b []byte, after, tables func(int64, []byte)) error {
	return f.run(ctx, func(*work) (*state, error) { return parseState(b) }, nil, after, tables)
}

func (f *joinedFn[F]) ProcessElement(ctx context.Context, _ int64, states, sent func(*[]byte) bool, after, tables func(int64, []byte)) error {
	return (*aloneFn[F])(f).run(ctx, func(w *work) (*state, error) { return onlyState(w.reads(states)) }, sent, after, tables)
}

func (f *tellingFn[F]) ProcessElement(ctx context.Context, _ int64, b []byte, tables func(int64, []byte)) error {
	return (*aloneFn[F])(f).run(ctx, func(*work) (*state, error) { return parseState(b) }, nil, nil, tables)
}

// onlyState returns the state of an iterator, which must have one.
func onlyState(states func(*[]byte) bool) (*state, error) {
	var b, more []byte
	if !states(&b) {
		return nil, fmt.Errorf("rows were sent to a partition that is not there")
	}
	if states(&more) {
		return nil, fmt.Errorf("a partition is there twice")
	}
	return parseState(b)
}

// outbox collects what is sent to each partition.
type outbox[T any] map[int64]*T

// to is what one of them is sent.
func (o outbox[T]) to(p int64) *T {
	if o[p] == nil {
		o[p] = new(T)
	}
	return o[p]
}

// send has it put into tables, and emits these.
func (o outbox[T]) send(w *work, emit func(int64, []byte), put func(x *T, t *table)) error {
	for p, x := range o {
		t := newTable()
		put(x, t)
		if err := w.send(emit, p, t); err != nil {
			return err
		}
	}
	return nil
}
