package train

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/gsrc-dev/gsrc/graph"
	"github.com/gsrc-dev/gsrc/runtime"
)

// refining is Algorithm 1: pre-training, candidates, and the alternation of
// classifier and joint steps.
type refining struct {
	*trainer
	raw     bool // the graph stays as it is: the baseline of the same classifier
	batches *batcher
}

func (t *refining) run() error {
	if t.raw {
		if err := t.rawEdges(); err != nil {
			return err
		}
	} else {
		if err := t.structure(); err != nil {
			return err
		}
		if t.edges == nil {
			t.edges = &edges{}
		}
		if err := t.findEdgePrior(); err != nil {
			return err
		}
		if err := t.pretrain(); err != nil {
			return err
		}
	}
	if err := t.epochs("fit", t.epoch, t.evaluate); err != nil {
		return err
	}
	return t.checkpoint()
}

// rawEdges makes the existing edges the only candidates, all with the same
// probability.
func (t *refining) rawEdges() error {
	cand, err := graph.NewCandidates(t.task.Data.Graph, nil, 0, false)
	if err != nil {
		return err
	}
	t.edges = &edges{fixed: true}
	if err := t.setCandidates(cand); err != nil {
		return err
	}
	p := make([]float32, len(cand.Edges))
	for i := range p {
		p[i] = float32(t.cfg.Candidates.Keep)
	}
	return t.setProbabilities(p, 0, 0)
}

// structure provides X^s where the program reads it.
func (t *refining) structure() error {
	width := t.cfg.DeepWalk.Width
	if width == 0 || t.inputs["x_struct"] != nil {
		return nil
	}
	x, err := t.deepWalk()
	if err != nil {
		return err
	}
	t.inputs["x_struct"] = runtime.F32(x, t.task.Data.Graph.N, width)
	return nil
}

// deepWalk computes the structural attributes, or reads them from the run
// directory, where it leaves them for a resumption.
func (t *refining) deepWalk() ([]float32, error) {
	if x, err := t.readStruct(); x != nil || err != nil {
		return x, err
	}
	t.state.Phase = "deepwalk"
	d := t.cfg.DeepWalk
	x, err := graph.DeepWalk(t.pool, t.task.Data.Graph, graph.DeepWalkOptions{
		Dim: d.Width, WalksPerNode: d.Walks, WalkLength: d.Length, Window: d.Window, Negatives: d.Negatives, Epochs: d.Epochs, Seed: t.seed(),
		Progress: func(done, total int) error {
			t.observe(done, total, math.NaN())
			return t.ctx.Err()
		},
	})
	if err != nil {
		return nil, err
	}
	return x, t.writeStruct(x)
}

// pretrain makes the contrastive steps.
func (t *refining) pretrain() error {
	if t.state.Pretrained >= t.cfg.Train.PretrainSteps {
		return nil
	}
	if err := t.prepareBatches(); err != nil {
		return err
	}
	f, err := t.function("pretrain")
	if err != nil {
		return err
	}
	// Where the device queues a step, the host draws the next one's samples meanwhile.
	f.ahead = func(step int) error {
		if step >= t.cfg.Train.PretrainSteps {
			return nil
		}
		if err := t.batches.bind(f, step); err != nil {
			return err
		}
		return f.Prepare()
	}
	return t.contrastive(f, func() (float64, error) { return t.contrast(f) })
}

// contrastive makes the contrastive steps that are left with f, each by step.
func (t *trainer) contrastive(f *function, step func() (float64, error)) error {
	total := t.cfg.Train.PretrainSteps
	t.state.Phase = "pretrain"
	for t.state.Pretrained < total {
		if err := t.ctx.Err(); err != nil {
			return err
		}
		loss, err := step()
		if err != nil {
			return err
		}
		t.state.Pretrained++
		if t.state.Pretrained%t.cfg.Train.LogEvery == 0 || t.state.Pretrained == total {
			if err := t.record(f, nil); err != nil {
				return err
			}
		}
		t.observe(t.state.Pretrained, total, loss)
		every := t.cfg.Train.CheckpointEvery
		if every > 0 && t.state.Pretrained%every == 0 || t.state.Pretrained == total {
			if err := t.checkpoint(); err != nil {
				return err
			}
		}
	}
	t.drop("pretrain")
	return nil
}

// contrast makes one contrastive step.
func (t *refining) contrast(f *function) (float64, error) {
	step := t.state.Step()
	if err := t.batches.bind(f, step); err != nil {
		return 0, err
	}
	return t.step(f, step)
}

func (t *refining) prepareBatches() (err error) {
	if t.batches == nil {
		t.batches, err = t.newBatcher()
	}
	return err
}

// epoch trains the classifier on samples of the candidates, every so often
// together with the encoder.
func (t *refining) epoch(epoch int) (*function, float64, error) {
	c := t.cfg.Train
	if !t.raw && c.JointEvery > 0 && c.RefreshEvery > 0 && epoch > 0 && epoch%c.RefreshEvery == 0 {
		if err := t.newCandidates(); err != nil {
			return nil, 0, err
		}
	}
	if err := t.refresh(); err != nil {
		return nil, 0, err
	}
	name := "fit"
	if !t.raw && c.JointEvery > 0 && (epoch+1)%c.JointEvery == 0 {
		name = "joint"
		if err := t.prepareBatches(); err != nil {
			return nil, 0, err
		}
		if err := t.batches.bindWhole(t.state.Step()); err != nil {
			return nil, 0, err
		}
	}
	f, err := t.function(name)
	if err != nil {
		return nil, 0, err
	}
	t.raiseRamp(epoch)
	loss, err := t.step(f, t.state.Step())
	if err == nil && name == "joint" {
		t.edges.fresh = false
	}
	return f, loss, err
}

// encode returns the embedding [N, F] of the current encoder where the device has
// it, valid until the next call.
func (t *trainer) encode() (*runtime.Buffer, error) {
	f, err := t.function("encode")
	if err != nil {
		return nil, err
	}
	if err := f.Run(uint64(t.state.Step())); err != nil {
		return nil, err
	}
	h := f.Result("embedding")
	if h == nil || len(h.Dims) != 2 || h.Dims[0] != t.task.Data.Graph.N {
		return nil, errors.New("train: @encode has no result embedding with a row for each node")
	}
	if ok, err := t.finite(h); err != nil {
		return nil, err
	} else if !ok {
		return nil, t.nonFinite(f, t.state.Step(), "the embedding")
	}
	return h, nil
}

// newCandidates chooses the candidates anew by the current embedding.
func (t *refining) newCandidates() error {
	h, err := t.encode()
	if err != nil {
		return err
	}
	if err := t.device.Candidates(t.candidateSet(), h, candidateOptions(t.cfg)); err != nil {
		return err
	}
	return t.bindCandidates()
}

// refresh makes the probabilities those of the current encoder (Eq 18).
func (t *refining) refresh() error {
	e := t.edges
	if e.set == nil {
		if err := t.newCandidates(); err != nil {
			return err
		}
	}
	if e.fresh || e.fixed {
		return nil
	}
	if e.count() == 0 { // no candidates, no bounds
		return t.setProbabilities([]float32{}, 0, 0)
	}
	h, err := t.encode()
	if err != nil {
		return err
	}
	f, err := t.function("probability")
	if err != nil {
		return err
	}
	if err := f.Bind("embedding", h); err != nil {
		return err
	}
	if err := f.Run(uint64(t.state.Step())); err != nil {
		return err
	}
	p := f.Result("probability")
	e.bounds = [2]*runtime.Buffer{f.Result("lo"), f.Result("hi")}
	if p == nil || slices.Contains(e.bounds[:], nil) {
		return fmt.Errorf("train: @probability lacks one of the results probability, lo, hi; it has %v", f.Outputs())
	}
	t.checked[0] = p
	bad, err := t.device.Finite(e.bounds[:], e.values[:], t.checked[:])
	if err != nil {
		return err
	}
	if bad >= 0 {
		return t.nonFinite(f, t.state.Step(), "an edge probability")
	}
	e.computed, e.lo, e.hi, e.fresh, e.weighed = p, e.values[0], e.values[1], true, false
	return t.bind("p", p)
}

func (t *refining) evaluate() (score, error) {
	if err := t.refresh(); err != nil {
		return score{}, err
	}
	g, w, changed, err := t.refinedGraph()
	if err != nil {
		return score{}, err
	}
	return t.scoreOn(g, w, changed)
}

// interrupted reports whether an error is that of the stopped context.
func interrupted(ctx context.Context, err error) bool {
	return ctx.Err() != nil && errors.Is(err, ctx.Err())
}
