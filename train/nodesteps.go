package train

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"slices"

	"github.com/gsrc-dev/gsrc/config"
	"github.com/gsrc-dev/gsrc/data"
	"github.com/gsrc-dev/gsrc/graph"
	"github.com/gsrc-dev/gsrc/internal/atomicfile"
	"github.com/gsrc-dev/gsrc/internal/rss"
	"github.com/gsrc-dev/gsrc/internal/safetensors"
	"github.com/gsrc-dev/gsrc/internal/scratch"
	"github.com/gsrc-dev/gsrc/ir"
	"github.com/gsrc-dev/gsrc/models"
	"github.com/gsrc-dev/gsrc/runtime"
	"github.com/gsrc-dev/gsrc/runtime/kernels"
	"github.com/gsrc-dev/gsrc/train/checkpoint"
)

// nodeSteps trains on one graph: all steps but contrastive ones on samples of edges read
// the whole of it.
type nodeSteps struct {
	*trainer
	ds            *data.Dataset
	batches       *batcher          // of contrastive steps, nil before the first
	scored        []runtime.Scoring // training and validation nodes
	found         nodeEdges
	judge         *evidence                   // nil where it judges no edges
	sampled       map[string]*sampled         // what draws batches, by function; empty where steps read the whole graph
	chunked       map[string]*runtime.Chunked // functions that run over chunks of nodes; empty where all nodes are at once
	files         *scratch.Files              // of what is known of candidates' entries, nil where that is in memory
	nodes, labels []int64                     // what is learned from
	stop          func() error                // ends an evaluation over chunks; nil where what runs over them is part of a step
}

func (t *nodeSteps) function(name string) (_ *function, err error) {
	if t.cfg.Train.Sampler != neighbors {
		return t.prog.function(name)
	}
	s := t.sampled[name]
	if s == nil {
		stopSampling(t) // only one function's batches and values are there at a time
		if s, err = newSampled(t, name); err != nil {
			return nil, err
		}
		t.sampled[name] = s
	}
	return s.f, nil
}

// stopSampling gives back what draws batches, and what is computed on them.
func stopSampling(t *nodeSteps) {
	for name, s := range t.sampled {
		n := held(s.f.Function)
		s.close()
		delete(t.sampled, name)
		collect(n)
	}
}

// reserve has nothing to do: all steps are of one size.
func (t *nodeSteps) reserve(...string) error { return nil }

func (t *nodeSteps) epoch(f *function, epoch int) (float64, error) {
	if s := t.sampled[f.Name()]; s != nil {
		return s.run(epoch)
	}
	step := t.state.Step()
	if f.Name() == "joint" && f.reads["anchors"] {
		if err := t.prepareBatches(); err != nil {
			return 0, err
		}
		if err := t.batches.bindWhole(step); err != nil {
			return 0, err
		}
	}
	if f.Name() != "joint" || !t.prog.stepsGraph() {
		return t.step(f, step)
	}
	if t.edges.carried == nil {
		if err := startCarrying(t); err != nil {
			return 0, err
		}
		t.prog.drop("begin")
	}
	loss, err := t.step(f, step)
	if err != nil {
		return 0, err
	}
	return loss, carry(t, f)
}

func (t *nodeSteps) evaluate() (score, error) {
	defer rss.Leave(rss.Enter("evaluation"))
	t.stop = t.ctx.Err
	defer func() { t.stop = nil }()
	if by := t.cfg.Train.Select; by == "accuracy" || by == "loss" {
		c, err := t.runClassifier()
		if err != nil {
			return score{}, err
		}
		s, err := t.scoreLogits(c.Result("logits"))
		if err == nil && !t.judgedOnce {
			_, _, err = t.read(c)
		}
		return s, err
	}
	logits, _, err := t.classify()
	if err != nil {
		return score{}, err
	}
	return t.score(logits), nil
}

// evaluated returns what the classifier is evaluated on, the graph and its weights by entry
// (nil: ones), and reports whether they have changed.
func (t *nodeSteps) evaluated() (g, w *runtime.Buffer, changed bool, err error) {
	if t.edges == nil {
		return t.prog.inputs["g"], t.prog.inputs["w"], false, nil
	}
	changed, err = t.weigh()
	return t.prog.inputs["c"], t.found.w, changed, err
}

func (t *nodeSteps) final(m *Model) (logits, probs *runtime.Buffer, err error) {
	defer rss.Leave(rss.Enter("evaluation"))
	t.stop = t.ctx.Err
	defer func() { t.stop = nil }()
	for _, name := range []string{"fit", "joint"} {
		if t.prog.held(name) >= large {
			t.prog.drop(name)
		}
	}
	if t.edges != nil && !t.edges.fixed && t.prog.Func("encode") != nil {
		h, err := t.encode()
		if err == nil {
			h, err = t.device.Export(h)
		}
		if err != nil {
			return nil, nil, err
		}
		if m.Embedding, m.EmbeddingWidth = h.F32, h.Dims[1]; t.chunk == 0 { // or else see leaveFiles
			m.Embedding = slices.Clone(h.F32)
		}
		if t.prog.held("encode") >= large {
			h = nil
			t.prog.drop("encode")
		}
		if t.readsStruct() {
			m.Struct, m.StructWidth = t.prog.inputs["x_struct"].F32, t.cfg.DeepWalk.Width
		}
	}
	if !unsupervised(t.module) {
		if logits, probs, err = t.classify(); err != nil {
			return nil, nil, err
		}
	}
	if t.chunk > 0 {
		leaveFiles(t, m, logits, probs)
	}
	return logits, probs, nil
}

func (t *nodeSteps) startContrast(f *function) error {
	if t.sampled["pretrain"] != nil {
		return nil
	}
	if err := t.prepareBatches(); err != nil {
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
	return nil
}

func (t *nodeSteps) contrast(f *function) (float64, error) {
	step := t.state.Step()
	if s := t.sampled["pretrain"]; s != nil {
		return s.step(step, nil, nil, step+1 < t.cfg.Train.PretrainSteps)
	}
	if err := t.batches.bind(f, step); err != nil {
		return 0, err
	}
	if !f.reads["c"] {
		return t.step(f, step)
	}
	if every := t.cfg.Train.RefreshEvery; !t.edges.chosen || every > 0 && step%every == 0 {
		if err := chooseCarrying(t); err != nil {
			return 0, err
		}
	}
	loss, err := t.step(f, step)
	if err != nil {
		return 0, err
	}
	return loss, carry(t, f)
}

func (t *nodeSteps) prepareBatches() (err error) {
	if t.batches == nil {
		t.batches, err = newBatcher(t)
	}
	return err
}

// begin provides X^s where the program reads it, and the prior of existing edges where the
// configuration asks for it.
func (t *nodeSteps) begin() error {
	if width := t.cfg.DeepWalk.Width; width > 0 && t.prog.inputs["x_struct"] == nil {
		x, err := t.deepWalk()
		if err != nil {
			return err
		}
		t.prog.inputs["x_struct"] = runtime.F32(x, t.ds.Graph.N, width)
	}
	c, counts := t.cfg.Model.Edges, t.edges.counts
	x := &t.found
	switch c.Judge {
	case models.JudgeEmbedding:
		if counts == nil {
			return nil
		}
		t.edges.prior = &graph.EdgePrior{Graph: t.ds.Graph.Undirected(), P: counts}
	case models.JudgeEvidence:
		t.state.Phase = "evidence"
		rss.Enter("evidence")
		g := t.ds.Graph.Undirected()
		t.judge = newEvidence(t.prog, t.pool, g, g.Structure())
		if t.judge.files = t.files; t.chunk > 0 {
			t.judge.chunks = func() (c runtime.Chunks, err error) {
				c.Room = t.chunk
				c.Dir, err = scratch.Dir(t.opts.Dir)
				return c, err
			}
		}
		if o := t.opts.Observer; o != nil {
			t.judge.told = func(done, total int) {
				o.Observe(Event{Phase: "evidence", Step: done, Total: total, Loss: math.NaN(), ValAcc: math.NaN()})
			}
		}
		t.judge.keep, t.judge.once = searchesAgain(t.cfg), !choosesAgain(t.cfg, t.prog.Module)
		o := candidateOptions(t.cfg, t.ds.Graph.N, t.prog.Module)
		if slices.Contains(t.cfg.Similarities(), config.SimilarityEvidence) && o.K <= newNearest && o.Index.Same(graph.IndexAuto, t.ds.Graph.N) {
			t.judge.k[0] = o.K
		}
		if k := min(t.cfg.Candidates.TwoStep, t.ds.Graph.N); k <= newTwoStep {
			t.judge.k[1] = k
		}
		if p := t.optim.Lookup(models.EvidenceProjection).Value.F32; !slices.ContainsFunc(p, func(v float32) bool { return v != 0 }) { // or else an earlier part of the run has fitted it
			err := t.pool.Until(t.ctx, func() error {
				return t.opts.Evidence.fit(t.judge, t.ds.X.Attributes(), t.ds.Structural, t.ds.Labels, t.split.Train, t.seed())
			})
			if err != nil {
				clear(p)
				return err
			}
			t.judge.release() // of what fitted it
			if err := t.checkpoint(); err != nil {
				return err
			}
		}
		if err := t.pool.Until(t.ctx, func() error { return t.judge.judgeEdges(counts) }); err != nil {
			return err
		}
		t.edges.prior = &graph.EdgePrior{Graph: t.judge.g, P: t.judge.edges}
	}
	if x.set != nil { // from before an interruption
		if err := t.pool.Until(t.ctx, t.bindCandidates); err != nil {
			return err
		}
	}
	return t.prog.bindVector("w", t.edges.prior.OfEntries(nil, t.ds.Graph, t.prog.inputs["g"].Graph, nil))
}

// results are those of a function that has run, where they lie.
type results interface {
	Result(name string) *runtime.Buffer
}

// runClassifier runs the classifier on what it is evaluated on.
func (t *nodeSteps) runClassifier() (results, error) {
	g, w, changed, err := t.evaluated()
	if err != nil {
		return nil, err
	}
	if t.chunk > 0 {
		return runChunked(t, "classify", g, w)
	}
	_, made := t.prog.fns["classify"]
	f, err := t.prog.function("classify")
	if err != nil {
		return nil, err
	}
	if changed || !made {
		if w == nil && f.reads["w"] {
			ones := g.Graph.Spread(nil, nil)
			w = runtime.F32(ones, len(ones))
		}
		if err := bindRead(f, []namedBuffer{{"g", g}, {"w", w}}); err != nil {
			return nil, err
		}
	}
	return f, f.Run(uint64(t.state.Step()))
}

// classify runs the classifier and returns its logits [N, classes] and probabilities, valid
// until the next run.
func (t *nodeSteps) classify() (logits, probs *runtime.Buffer, err error) {
	c, err := t.runClassifier()
	if err != nil {
		return nil, nil, err
	}
	return t.read(c)
}

// read returns what classify does of a classifier that has run.
func (t *nodeSteps) read(c results) (logits, probs *runtime.Buffer, err error) {
	if logits, err = onHost(c, "logits"); err == nil {
		probs, err = onHost(c, "probabilities")
	}
	if err != nil {
		return nil, nil, err
	}
	if err := t.checkLogits(logits); err != nil {
		return nil, nil, err
	}
	if !kernels.Finite(logits.F32) {
		return nil, nil, t.nonFinite(&function{}, t.state.Step(), "a logit of the evaluation")
	}
	return logits, probs, t.checkProbabilities(logits, probs)
}

// onHost is a result where the host sees it, as those of chunks are.
func onHost(c results, name string) (*runtime.Buffer, error) {
	if f, ok := c.(*function); ok {
		return f.Read(name)
	}
	return c.Result(name), nil
}

func (t *nodeSteps) checkLogits(logits *runtime.Buffer) error {
	if n := t.ds.Graph.N; len(logits.Dims) != 2 || logits.Dims[0] != n || logits.Dims[1] != t.info.Classes {
		return fmt.Errorf("train: the logits of @classify have the shape %v, want [%d %d] (nodes, classes)", logits.Dims, n, t.info.Classes)
	}
	return nil
}

// scoreLogits judges the logits that the classifier has just computed where they lie: the
// host gets to see the counts.
func (t *nodeSteps) scoreLogits(logits *runtime.Buffer) (score, error) {
	if err := t.checkLogits(logits); err != nil {
		return score{}, err
	}
	if t.scored == nil {
		for _, nodes := range [][]int32{t.split.Train, t.split.Val} {
			rows, labels := runtime.I64(numbers(nil, nodes), len(nodes)), runtime.I64(answers(nil, t.info.Labels, nodes), len(nodes))
			if err := errors.Join(t.device.ToDevice(rows), t.device.ToDevice(labels)); err != nil {
				return score{}, err
			}
			t.scored = append(t.scored, runtime.Scoring{Rows: rows, Labels: labels, WithLoss: len(t.scored) == 1})
		}
	}
	finite, err := t.device.Score(logits, t.scored)
	if err != nil {
		return score{}, fmt.Errorf("@classify, scoring its logits: %w", err)
	}
	if !finite {
		return score{}, t.nonFinite(&function{}, t.state.Step(), "a logit of the evaluation")
	}
	share := func(s *runtime.Scoring) float64 { return 100 * float64(s.Hits) / float64(s.Rows.Dims[0]) }
	s := score{trainAcc: share(&t.scored[0]), valAcc: share(&t.scored[1]), valLoss: t.scored[1].Loss / float64(len(t.split.Val))}
	s.selectBy(t.cfg.Train.Select)
	return s, nil
}

// deepWalk computes the structural attributes, or reads them from the run
// directory, where it leaves them for a resumption.
func (t *nodeSteps) deepWalk() ([]float32, error) {
	o := deepWalkOptions(t.cfg)
	key := fmt.Sprintf("%s seed %d %+v", t.ds.Checksum, t.cfg.Train.Seed, t.cfg.DeepWalk) // everything that they depend on
	if t.dir != nil {
		switch f, err := safetensors.ReadFile(t.dir.Path(checkpoint.StructFile)); {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return nil, err
		case f.Sealed && f.Metadata["key"] == key:
			return safetensors.Get[float32](f, "x_struct", t.ds.Graph.N, o.Dim)
		}
	}
	t.state.Phase = "deepwalk"
	rss.Enter("deepwalk")
	o.Progress = func(done, total int) error {
		t.observe(done, total, math.NaN())
		return t.ctx.Err()
	}
	x, err := graph.DeepWalk(t.pool, t.ds.Graph, o)
	if err != nil || t.dir == nil {
		return x, err
	}
	f := &safetensors.File{Metadata: map[string]string{"key": key}, Tensors: []safetensors.Tensor{{Name: "x_struct", Shape: []int{t.ds.Graph.N, o.Dim}, Data: x}}}
	return x, atomicfile.Write(t.dir.Path(checkpoint.StructFile), f.Write)
}

func deepWalkOptions(c *config.Config) graph.DeepWalkOptions {
	d := c.DeepWalk
	return graph.DeepWalkOptions{Dim: d.Width, WalksPerNode: d.Walks, WalkLength: d.Length, Window: d.Window, Negatives: d.Negatives, Epochs: d.Epochs, Seed: uint64(c.Train.Seed)}
}

// encode returns the embedding [N, F] of the current encoder where the device has
// it, valid until the next call.
func (t *nodeSteps) encode() (*runtime.Buffer, error) {
	if t.chunk > 0 {
		return encodeChunked(t)
	}
	f, err := t.prog.function("encode")
	if err != nil {
		return nil, err
	}
	if h := t.prog.inputs["embedding"]; h != nil && f.current {
		return h, nil
	}
	if err := f.Run(uint64(t.state.Step())); err != nil {
		return nil, err
	}
	h := f.Result("embedding")
	if h == nil || len(h.Dims) != 2 || h.Dims[0] != t.ds.Graph.N {
		return nil, errors.New("train: @encode has no result embedding with a row for each node")
	}
	t.prog.checked[0] = h
	if bad, err := t.device.Finite(nil, nil, t.prog.checked[:]); err != nil {
		return nil, err
	} else if bad >= 0 {
		return nil, t.nonFinite(f, t.state.Step(), "the embedding")
	}
	if more := f.Result(models.AlsoEmbedding); more != nil {
		if err := t.prog.bind(models.AlsoEmbedding, more); err != nil {
			return nil, err
		}
	}
	f.current = !f.reads["ramp"] && !slices.ContainsFunc(t.prog.Func("encode").Body, (*ir.Op).Draws) // others change without notice
	return h, t.prog.bind("embedding", h)
}
