package pipeline

import (
	"context"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/core/graph"

	"github.com/gsrc-dev/gsrc/data"
)

// No engine here fails bundles when it is told to. This runner does, of one element each: it processes each
// element of each stage twice or more, in an order drawn anew, until it has let an attempt end; the output of
// those that it breaks off, after the first or the last element that they emit, is lost.
const retryingRunner = "retrying"

func init() { beam.RegisterRunner(retryingRunner, runRetrying) }

type (
	element  []any // value, or key and value, or key and lists of values
	brokeOff struct{}
)

func runRetrying(ctx context.Context, p *beam.Pipeline) (beam.PipelineResult, error) {
	edges, _, err := p.Build()
	if err != nil {
		return nil, err
	}
	r := rand.New(rand.NewPCG(3, 4))
	of := map[*graph.Node][]element{}
	for len(edges) > 0 {
		// One whose inputs are there.
		at := slices.IndexFunc(edges, func(e *graph.MultiEdge) bool {
			return !slices.ContainsFunc(e.Input, func(in *graph.Inbound) bool { _, ok := of[in.From]; return !ok })
		})
		e := edges[at]
		edges = slices.Delete(edges, at, at+1)
		var ins, outs [][]element
		for _, in := range e.Input {
			ins = append(ins, of[in.From])
		}
		switch e.Op {
		case graph.Impulse:
			outs = [][]element{{{e.Value}}}
		case graph.Reshuffle:
			outs = ins
		case graph.Flatten:
			outs = [][]element{slices.Concat(ins...)}
		case graph.CoGBK:
			outs = [][]element{grouped(r, ins)}
		case graph.ParDo:
			outs, err = process(ctx, r, e, ins)
		default:
			err = fmt.Errorf("%s is not known", e.Op)
		}
		if err != nil {
			return nil, err
		}
		for i, out := range e.Output {
			list := slices.Clone(outs[i])
			r.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
			of[out.To] = list
		}
	}
	return nil, nil
}

func grouped(r *rand.Rand, ins [][]element) (out []element) {
	by := map[any][][]any{}
	for i, in := range ins {
		for _, x := range in {
			if by[x[0]] == nil {
				by[x[0]] = make([][]any, len(ins))
			}
			by[x[0]][i] = append(by[x[0]][i], x[1])
		}
	}
	for key, lists := range by {
		x := element{key}
		for _, list := range lists {
			x = append(x, list)
		}
		out = append(out, x)
	}
	return out
}

func process(ctx context.Context, r *rand.Rand, e *graph.MultiEdge, ins [][]element) ([][]element, error) {
	f := reflect.ValueOf(e.DoFn.Recv).MethodByName("ProcessElement")
	outs := make([][]element, len(e.Output))
	for _, x := range ins[0] {
		for attempt := range 3 {
			var most int // elements that are emitted before it is broken off
			switch {
			case attempt == 0:
				most = 1
			case attempt == 1 && r.IntN(2) == 0:
				most = 1 << r.IntN(6)
			default:
				most = -1
			}
			got, err := attemptAt(ctx, f, x, ins[1:], len(e.Output), most)
			if err != nil {
				return nil, err
			}
			if got == nil {
				continue
			}
			if attempt == 1 && r.IntN(2) == 0 {
				continue // it ended, and this was not learnt
			}
			for i := range got {
				outs[i] = append(outs[i], got[i]...)
			}
			break
		}
	}
	return outs, nil
}

// attemptAt calls a DoFn with an element and side inputs. It returns nil where it was broken off.
func attemptAt(ctx context.Context, f reflect.Value, x element, sides [][]element, outputs, most int) (out [][]element, err error) {
	out = make([][]element, outputs)
	lists := [][]any{}
	for _, v := range x {
		if list, ok := v.([]any); ok {
			lists = append(lists, list)
		}
	}
	for _, side := range sides {
		list := []any{}
		for _, v := range side {
			list = append(list, v[0])
		}
		lists = append(lists, list)
	}
	var args []reflect.Value
	emitters, emitted, next := 0, 0, 0
	for i := range f.Type().NumIn() {
		switch t := f.Type().In(i); {
		case t.Kind() != reflect.Func && t == reflect.TypeFor[context.Context]():
			args = append(args, reflect.ValueOf(ctx))
		case t.Kind() != reflect.Func:
			args = append(args, reflect.ValueOf(x[next]))
			next++
		case t.NumOut() == 1: // an iterator
			list := lists[0]
			lists = lists[1:]
			args = append(args, reflect.MakeFunc(t, func(to []reflect.Value) []reflect.Value {
				more := len(list) > 0
				if more {
					to[0].Elem().Set(reflect.ValueOf(list[0]))
					list = list[1:]
				}
				return []reflect.Value{reflect.ValueOf(more)}
			}))
		default:
			at := emitters
			emitters++
			args = append(args, reflect.MakeFunc(t, func(values []reflect.Value) []reflect.Value {
				var y element
				for _, v := range values {
					if b, ok := v.Interface().([]byte); ok {
						y = append(y, slices.Clone(b)) // as if it were sent
					} else {
						y = append(y, v.Interface())
					}
				}
				out[at] = append(out[at], y)
				if emitted++; emitted == most {
					panic(brokeOff{})
				}
				return nil
			}))
		}
	}
	defer func() {
		switch p := recover().(type) {
		case nil:
		case brokeOff:
			out = nil
		default:
			panic(p)
		}
	}()
	if result := f.Call(args); len(result) > 0 && !result[len(result)-1].IsNil() {
		return nil, result[len(result)-1].Interface().(error)
	}
	return out, nil
}

// Bundles that are retried, and elements in any order, give the bytes of a run without.
func TestRetriedBundles(t *testing.T) {
	defer func(was string) { *runner = was }(*runner)
	ds, err := data.Load("synthetic", other(400))
	if err != nil {
		t.Fatal(err)
	}
	small(t)
	hubs(t, 12)
	o := shards(t, ds, trainedOnly(t, "ecl-gsr", "candidates.similarity=evidence+embedding", "candidates.two_step=10", "model.encoder.hidden=16").Dir)
	o.Partitions = 5
	for search, make := range map[string]maker{SearchExact: Predict, SearchBuckets: Refine} {
		o.Search = search
		*runner = "prism"
		want, sum := outputOf(t, make, o)
		*runner = retryingRunner
		got, again := outputOf(t, make, o)
		if !slices.Equal(want, got) || !reflect.DeepEqual(sum, again) {
			t.Errorf("%s search: bundles were retried, and the output differs", search)
		}
	}
}
