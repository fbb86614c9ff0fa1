package train

import (
	"errors"
	"slices"

	"github.com/gsrc-dev/gsrc/graph"
	"github.com/gsrc-dev/gsrc/internal/rss"
	"github.com/gsrc-dev/gsrc/models"
	"github.com/gsrc-dev/gsrc/runtime"
	"github.com/gsrc-dev/gsrc/train/checkpoint"
)

// steps feeds the functions of a program with the data of a task, step by step, and judges
// what the model computes.
type steps interface {
	// release frees what the steps have made on the device.
	release()
	// function returns a function of the program as the steps run it.
	function(name string) (*function, error)
	// reserve runs functions on the largest inputs that can come, without learning from
	// them, so that the memory they take serves all others.
	reserve(names ...string) error
	// epoch makes the steps of an epoch, from 0, and returns the last one's loss.
	epoch(f *function, epoch int) (float64, error)
	// evaluate judges the current parameters.
	evaluate() (score, error)
	// confident returns, of each class, the n nodes that the classifier is most confident of
	// and their classes; learn makes such nodes further training nodes.
	confident(n int) ([][2]int32, error)
	learn(added [][2]int32) error
	// final returns what the kept state computes for all that is classified, and enters in
	// the model what else the task leaves.
	final(m *Model) (logits, probs *runtime.Buffer, err error)
}

// refiner is steps of a task on which Algorithm 1 works.
type refiner interface {
	steps
	// begin provides what is computed once, from the data alone.
	begin() error
	// startContrast readies the contrastive steps, contrast makes the next one.
	startContrast(f *function) error
	contrast(f *function) (float64, error)
	// choose searches candidates by the current encoder, or takes the existing edges where
	// nothing is learned; set takes those of a checkpoint. The probabilities must follow.
	choose() error
	set(cand *graph.Candidates) error
	// infer computes the probabilities by the current encoder; give takes given ones, with
	// the bounds of the cosine that they were normalised with.
	infer() error
	give(p []float32, lo, hi float32) error
	// count returns how many candidates there are. fetch brings them and their
	// probabilities to the host.
	count() int
	fetch() error
}

// edges are the candidate edges and their probabilities, as the host last fetched them.
type edges struct {
	cand   *graph.Candidates
	p      []float32 // [C] probability of each candidate
	lo, hi float32   // bounds of the cosine that p was normalised with

	prior  *graph.EdgePrior // of existing edges, nil where the configuration wants none
	counts []float32        // [E] what existing edges count by their weights, nil where all do alike
	unit   float32          // the weight of one that counts in full, 0 where all do alike

	chosen   bool // there are candidates
	fresh    bool // the probabilities belong to the current encoder
	embedded bool // so does the embedding that is kept, if one is
	fixed    bool // the existing edges are the candidates, and nothing is learned

	// carried are arguments of @pretrain that its steps hand on, by name; nil where it has none.
	carried map[string]*runtime.Buffer
}

// kept copies the edges, into the memory of k unless that is nil.
func (e *edges) kept(k *checkpoint.Edges) *checkpoint.Edges {
	if k == nil {
		k = &checkpoint.Edges{Candidates: &graph.Candidates{}}
	}
	k.Candidates.CopyFrom(e.cand)
	k.Probability, k.Lo, k.Hi = append(k.Probability[:0], e.p...), e.lo, e.hi
	return k
}

// threshold is the probability below which a candidate is no edge; where nothing
// is learned every edge stays.
func (t *trainer) threshold() float64 {
	if t.edges.fixed {
		return 0
	}
	return t.cfg.Model.Edges.Threshold
}

// supervise trains @train and evaluates @classify on the graph as it is.
func (t *trainer) supervise() error {
	f, err := t.steps.function("train")
	if err != nil {
		return err
	}
	if err := t.steps.reserve("train"); err != nil {
		return err
	}
	return t.epochs("train", func(epoch int) (*function, float64, error) {
		t.raiseRamp(epoch)
		loss, err := t.steps.epoch(f, epoch)
		return f, loss, err
	}, t.steps.evaluate)
}

// algorithm1 is Algorithm 1 of ECL-GSR: pre-training, candidates, and the alternation of
// classifier and joint steps.
type algorithm1 struct {
	*trainer
	refiner refiner
}

func (t algorithm1) run() error {
	if err := t.contrast(); err != nil {
		return err
	}
	if t.epochsLeft() {
		if err := t.refresh(); err != nil {
			return err
		}
		names := []string{"fit"}
		if t.joins() {
			names = append(names, "joint")
		}
		if err := t.steps.reserve(names...); err != nil {
			return err
		}
	}
	return t.epochs("fit", t.epoch, func() (score, error) {
		if err := t.refresh(); err != nil {
			return score{}, err
		}
		return t.steps.evaluate()
	})
}

// unsupervised makes the contrastive steps, and keeps the encoder and the graph that they
// lead to.
func (t algorithm1) unsupervised() error {
	if t.edges.fixed {
		return errors.New("train: without labels there is nothing to train on the graph as it is (candidates.structure = raw)")
	}
	if err := t.contrast(); err != nil {
		return err
	}
	if err := t.refresh(); err != nil {
		return err
	}
	if err := t.optim.Keep(t.device); err != nil {
		return err
	}
	if err := t.refiner.fetch(); err != nil {
		return err
	}
	t.best = t.edges.kept(t.best)
	return t.checkpoint()
}

// joins reports whether the encoder trains together with the classifier.
func (t algorithm1) joins() bool { return !t.edges.fixed && t.cfg.Train.JointEvery > 0 }

// pretrain makes the contrastive steps that are left.
func (t algorithm1) pretrain() error {
	total := t.cfg.Train.PretrainSteps
	if t.state.Pretrained >= total {
		return nil
	}
	f, err := t.steps.function("pretrain")
	if err != nil {
		return err
	}
	if err := t.refiner.startContrast(f); err != nil {
		return err
	}
	t.state.Phase = "pretrain"
	rss.Enter("pretrain")
	for t.state.Pretrained < total {
		if err := t.ctx.Err(); err != nil {
			return err
		}
		loss, err := t.refiner.contrast(f)
		if err != nil {
			return err
		}
		t.state.Pretrained++
		if t.state.Pretrained%t.cfg.Train.LogEvery == 0 || t.state.Pretrained == total {
			if err := t.record(made(t.trainer, f), nil); err != nil {
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
	t.prog.drop("pretrain")
	return nil
}

// epoch trains the classifier on samples of the candidates, every so often
// together with the encoder.
func (t algorithm1) epoch(epoch int) (*function, float64, error) {
	c := t.cfg.Train
	if (t.joins() || t.prog.estimates() && !t.edges.fixed) && c.RefreshEvery > 0 && epoch > 0 && epoch%c.RefreshEvery == 0 {
		if err := t.choose(); err != nil {
			return nil, 0, err
		}
	}
	name := "fit"
	if t.joins() && (epoch+1)%c.JointEvery == 0 {
		name = "joint"
	}
	if !t.edges.chosen || t.judged(name) {
		if err := t.refresh(); err != nil {
			return nil, 0, err
		}
	}
	f, err := t.steps.function(name)
	if err != nil {
		return nil, 0, err
	}
	t.raiseRamp(epoch)
	loss, err := t.steps.epoch(f, epoch)
	if err == nil && name == "joint" {
		loss = t.classifierLoss(f, loss)
		t.edges.fresh, t.edges.embedded = t.prog.stepsGraph(), false
	}
	return f, loss, err
}

// judged reports whether a function reads what [refiner.infer] gives, or its batches are drawn by that.
func (t algorithm1) judged(name string) bool {
	f := t.prog.Func(name)
	return f == nil || t.cfg.Train.Sampler == neighbors || slices.ContainsFunc([]string{"p", "lo", "hi", "embedding", models.AlsoEmbedding}, func(arg string) bool { return f.Arg(arg) != nil })
}

// classifierLoss is the classifier's part of the loss of a joint step, which is what steps of
// the classifier alone report; loss if the step does not say.
func (t algorithm1) classifierLoss(f *function, loss float64) float64 {
	sum, found := 0.0, false
	for _, x := range f.terms {
		switch x.name {
		case "xent":
			sum, found = sum+float64(x.value), true
		case "consistency":
			sum += float64(float64(x.value*t.prog.inputs["ramp"].F32[0]) * t.cfg.Model.Edges.Consistency)
		}
	}
	if !found {
		return loss
	}
	return sum
}

// contrast trains the encoder before the classifier.
func (t algorithm1) contrast() error {
	if t.edges.fixed {
		return nil
	}
	if err := t.refiner.begin(); err != nil {
		return err
	}
	if err := t.pretrain(); err != nil {
		return err
	}
	t.chooseAnew()
	return nil
}

// chooseAnew has candidates chosen by the encoder that pre-training led to, where it worked on
// candidates itself.
func (t algorithm1) chooseAnew() {
	if f := t.prog.Func("pretrain"); f != nil && f.Arg("c") != nil && t.state.Epoch == 0 {
		t.edges.chosen = false
	}
}

func (t algorithm1) choose() error {
	err := t.pool.Until(t.ctx, t.refiner.choose)
	t.edges.chosen = err == nil
	return err
}

// refresh makes the probabilities those of the current encoder (Eq 18).
func (t algorithm1) refresh() error {
	if !t.edges.chosen {
		if err := t.choose(); err != nil {
			return err
		}
	}
	switch n := t.refiner.count(); {
	case t.edges.fresh:
		return nil
	case t.edges.fixed:
		p := slices.Repeat([]float32{float32(t.cfg.Candidates.Keep)}, n)
		for i, c := range t.edges.counts {
			p[i] *= c
		}
		return t.refiner.give(p, 0, 0)
	case n == 0: // no candidates, no bounds
		return t.refiner.give([]float32{}, 0, 0)
	}
	return t.refiner.infer()
}

// refined is the learned graph of the kept epoch, which evaluation then reads.
func (t *trainer) refined() (*graph.Refined, error) {
	k, r := t.best, t.steps.(refiner)
	if err := r.set(k.Candidates); err != nil {
		return nil, err
	}
	if err := r.give(k.Probability, k.Lo, k.Hi); err != nil {
		return nil, err
	}
	return &graph.Refined{Raw: t.edges.fixed, Candidates: k.Candidates, Probability: k.Probability, Lo: k.Lo, Hi: k.Hi, Mode: t.cfg.Model.Edges.Mode, Threshold: t.threshold()}, nil
}

// errLacksWeights is the error of an @refine without the result that is read.
var errLacksWeights = errors.New("train: @refine has no result w with a weight for each entry of p")
