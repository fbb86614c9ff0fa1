package train

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gsrc-dev/gsrc/ir"
	"github.com/gsrc-dev/gsrc/models"
	"github.com/gsrc-dev/gsrc/runtime"
	"github.com/gsrc-dev/gsrc/train/checkpoint"
)

// carry hands the results next.NAME of a function on: they are the arguments NAME of the next
// step, or what the parameter of that name then is. Those named p are the probabilities of
// candidates.
func carry(t *nodeSteps, f *function) error {
	e := t.edges
	for _, r := range t.prog.Func(f.Name()).Results {
		name, ok := strings.CutPrefix(r.Name, models.NextPrefix)
		if !ok {
			continue
		}
		if p := t.optim.Lookup(name); p != nil {
			t.prog.outdate(nil)
			if err := t.device.Assign(p.Value, f.Result(r.Name)); err != nil {
				return err
			}
			continue
		}
		from, err := f.Read(r.Name)
		if err != nil {
			return err
		}
		if name == "p" {
			if e.p, err = t.found.set.OfEdges(e.p, from.F32); err != nil {
				return err
			}
			if err := t.give(e.p, 0, 1); err != nil {
				return err
			}
			continue
		}
		b := e.carried[name]
		if b == nil {
			if e.carried == nil {
				e.carried = map[string]*runtime.Buffer{}
			}
			b = runtime.F32(nil, 0)
			e.carried[name] = b
		}
		b.F32 = append(b.F32[:0], from.F32...)
		b.Dims = append(b.Dims[:0], from.Dims...)
		if err := t.prog.bind(name, b); err != nil {
			return err
		}
	}
	return nil
}

// startCarrying has @begin give what the first step reads.
func startCarrying(t *nodeSteps) error {
	f, err := t.prog.run("begin", 0)
	if err != nil {
		return err
	}
	return carry(t, f)
}

// chooseCarrying chooses candidates by the current encoder. What steps carry of candidates
// stays with these; without any, @begin gives it.
func chooseCarrying(t *nodeSteps) error {
	e, x := t.edges, &t.found
	var before [][2]int32
	values := map[string][]float32{}
	if e.carried != nil {
		cand, err := t.candidateSet().Host()
		if err != nil {
			return err
		}
		before = slices.Clone(cand.Edges)
		for name, b := range e.carried {
			if !ofCandidates(t.prog.Func("pretrain"), name) {
				continue
			}
			if values[name], err = x.set.OfEdges(nil, b.F32); err != nil {
				return err
			}
		}
	}
	if err := t.pool.Until(t.ctx, t.choose); err != nil {
		return err
	}
	e.chosen = true
	if e.carried == nil {
		return startCarrying(t)
	}
	cand, err := x.set.Host()
	if err != nil {
		return err
	}
	for name, b := range e.carried {
		if old := values[name]; old != nil {
			now := make([]float32, len(cand.Edges))
			for i, j := 0, 0; i < len(now) && j < len(old); {
				switch at, was := cand.Edges[i], before[j]; {
				case at == was:
					now[i] = old[j]
					i, j = i+1, j+1
				case slices.Compare(at[:], was[:]) < 0:
					i++
				default:
					j++
				}
			}
			b.F32 = x.set.Structure().Spread(b.F32[:0], now)
			b.Dims[0] = len(b.F32)
		}
		if err := t.prog.bind(name, b); err != nil {
			return err
		}
	}
	return nil
}

// ofCandidates reports whether an argument has a value for each entry of the candidates.
func ofCandidates(f *ir.Func, name string) bool {
	c, a := f.Arg("c"), f.Arg(name)
	return c != nil && a != nil && a.Type.Rank() > 0 && a.Type.Dims[0] == c.Type.Dims[1]
}

// restoreCarried takes what steps had handed on when a checkpoint was written.
func restoreCarried(t *trainer, f *checkpoint.File) error {
	if t.prog.estimates() || t.prog.stepsGraph() {
		if err := restoreGraph(t, f); err != nil {
			return err
		}
	}
	all := map[string]*runtime.Buffer{}
	for _, fn := range []*ir.Func{t.prog.Func("pretrain"), t.prog.Func("joint")} {
		if fn == nil {
			continue
		}
		for _, r := range fn.Results {
			name, ok := strings.CutPrefix(r.Name, models.NextPrefix)
			if !ok || name == "p" || t.optim.Lookup(name) != nil {
				continue
			}
			v, err := f.Carried(name)
			if v == nil || err != nil { // none behind the contrastive steps, or before the first joint one
				return err
			}
			all[name] = v
			if err := t.prog.bind(name, v); err != nil {
				return err
			}
		}
	}
	if len(all) > 0 {
		t.edges.carried = all
	}
	return nil
}

// restoreGraph takes the probabilities of the candidates that a checkpoint has, which no
// later state of the parameters gives again.
func restoreGraph(t *trainer, f *checkpoint.File) error {
	p, err := f.Carried("p")
	if p == nil || err != nil {
		return err
	}
	r := t.steps.(refiner)
	if len(p.F32) != r.count() {
		return fmt.Errorf("%d probabilities of %d candidates", len(p.F32), r.count())
	}
	return r.give(p.F32, 0, 1)
}
