// Package infer answers with an export: it predicts, refines graphs, cuts the part of a
// graph that an answer depends on, and keeps a graph in memory that changes ([Graph]).
package infer

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gsrc-dev/gsrc/data"
	"github.com/gsrc-dev/gsrc/export/dist"
	"github.com/gsrc-dev/gsrc/export/manifest"
	"github.com/gsrc-dev/gsrc/export/onnx"
	"github.com/gsrc-dev/gsrc/graph"
	"github.com/gsrc-dev/gsrc/internal/lists"
	"github.com/gsrc-dev/gsrc/internal/rss"
	"github.com/gsrc-dev/gsrc/metrics"
	"github.com/gsrc-dev/gsrc/runtime/kernels"
	"github.com/gsrc-dev/gsrc/runtime/ort"
)

// PredictOptions say how a graph's nodes are classified.
type PredictOptions struct {
	Provider ort.Provider // of onnxruntime; ort.Auto if empty
	Device   int          // number of the GPU, for CUDA
	// MemoryLimit is how many bytes of the GPU's memory are taken for tensors at most; 0
	// is no limit.
	MemoryLimit int64
	Library     *ort.Library     // nil is what is found or fetched
	Threads     int              // 0 is one for each processor
	Load        data.LoadOptions // how to read the data
	// Nodes are the ids of those that are wanted; nil is all of them. The whole graph is
	// classified in any case; Neighbors cuts out what some nodes need.
	Nodes []string
	Log   func(format string, args ...any)
	// Progress hears how many rows are written, or graphs classified; it may be nil.
	Progress func(what string, done, total int)
}

// Wanted returns the numbers of the nodes of a data set that are asked for, nil for all.
func (o *PredictOptions) Wanted(ds *data.Dataset) ([]int, error) {
	if o.Nodes == nil {
		return nil, nil
	}
	return Find(ds, o.Nodes)
}

// Prediction is the outcome of [Predict].
type Prediction struct {
	Classes       []string
	Predicted     []int     // [N] class of each node, or graph
	Probabilities []float32 // [N, len(Classes)]
	// IDs are what the data call their nodes, nil where these are called by number, as
	// graphs are.
	IDs []string
	// Selected are the numbers of the nodes that were asked for, in that order; nil for
	// all.
	Selected []int
	// Graphs tells that graphs were classified, not nodes.
	Graphs bool
	// TrainingGraph tells that the data are what the model was trained on, so
	// that the refined edges of the training were used.
	TrainingGraph bool
	// Edges counts those that the classifier read, each undirected one once.
	Edges int
	// Report judges the nodes (or graphs) whose label the data have and the model
	// knows, by its name; nil where there are none. On the training graph the
	// training nodes are among them, unless they are known.
	Report *metrics.Report
	// Known counts the nodes whose labels the classifier was given, which are not judged.
	Known int
	// Unknown counts the nodes (or graphs) whose label is no class of the model; UnknownLabel is
	// one of these labels.
	Unknown      int
	UnknownLabel string
}

// Predict classifies the nodes of a graph, or the graphs of a collection, with an
// export and writes a file as [Prediction.WriteFile] does: the id (of a graph its
// number, from 0), the predicted label, and the probability of each class. On the
// training graph the classifier reads its refined edges; on another one new
// candidates are found and scored, which an encoder with structural attributes
// cannot do. An empty out writes nothing.
func Predict(ctx context.Context, dist, path, out string, o PredictOptions) (*Prediction, error) {
	if out != "" {
		if _, err := GraphFormat(out); err != nil {
			return nil, err
		}
	}
	if m, err := manifest.Read(dist); err != nil {
		return nil, err
	} else if m.Task == manifest.TaskGraphs {
		return predictGraphs(ctx, dist, path, out, o)
	}
	p, err := newPredictor(dist, path, o)
	if err != nil {
		return nil, err
	}
	defer p.close()
	p.noteFewEdges()
	if _, ok := p.manifest.Models["classifier"]; !ok {
		return nil, fmt.Errorf("%s has no classifier, since the model was trained without labels; gsrc refine and gsrc embed go with it", dist)
	}
	selected, err := o.Wanted(p.ds)
	if err != nil {
		return nil, err
	}
	if !p.onTrainingGraph() {
		if err := p.refinesOthers(); err != nil {
			return nil, err
		}
	}
	if err := p.models(ctx); err != nil { // the classifier is needed in any case
		return nil, err
	}
	if err := p.fits(p.ds.Graph, p.answering(p.info.Graph == "refined" && !p.onTrainingGraph())...); err != nil {
		return nil, err
	}
	r, err := p.run(ctx, selected)
	if err != nil || out == "" {
		return r, err
	}
	return r, r.WriteFile(out, p.progressFor("writing"))
}

// progressFor returns a callback that reports progress of one kind.
func (p *predictor) progressFor(what string) func(done, total int) {
	if p.o.Progress == nil {
		return func(int, int) {}
	}
	return func(done, total int) { p.o.Progress(what, done, total) }
}

// predictor is an export and the data that it is used on.
type predictor struct {
	dir      string
	o        PredictOptions
	manifest *manifest.Manifest
	dist     *dist.Dist // nil until models opens it
	info     Info
	ds       *data.Dataset
	x        ort.Tensor  // the features; set by models
	known    *ort.Tensor // labels that the classifier is given, nil where it reads none
	online   bool        // the process does other work, too, and gets processors and memory back
}

// openExport reads the manifest of an export and its other descriptions.
func openExport(dist string, o PredictOptions) (p *predictor, err error) {
	if o.Log == nil {
		o.Log = func(string, ...any) {}
	}
	if o.Provider, err = ort.ParseProvider(string(o.Provider)); err != nil {
		return nil, err
	}
	p = &predictor{dir: dist, o: o}
	if p.manifest, err = manifest.Read(dist); err != nil {
		return nil, err
	}
	for _, name := range append(slices.Collect(maps.Keys(p.manifest.Files)), manifest.FileName) {
		if err := o.Load.Spare(filepath.Join(dist, name)); err != nil {
			return nil, err
		}
	}
	if err := p.readInference(); err != nil {
		return nil, err
	}
	if d := p.info.Directed; d != nil {
		if o.Load.Directed && !*d {
			return nil, DirectedError(dist)
		}
		p.o.Load.Directed = *d
	}
	return p, nil
}

// DirectedError says of the run or export in a folder that --directed was given, and its training was without.
func DirectedError(dir string) error {
	return fmt.Errorf("%s was trained on edges without a direction, and --directed was given: leave it out, or train with --set data.directed=true", dir)
}

// newPredictor reads an export, and the data.
func newPredictor(dist, path string, o PredictOptions) (*predictor, error) {
	p, err := openExport(dist, o)
	if err != nil {
		return nil, err
	}
	if p.manifest.Task == manifest.TaskGraphs {
		return nil, fmt.Errorf("%s: %w", dist, errGraphs)
	}
	// What the model was trained on says how columns are read; an export that does not is
	// of features without names, or of a version that took columns as they are.
	load := p.o.Load
	load.Columns, load.NoPrepare = p.manifest.Columns, load.NoPrepare || p.manifest.Columns == nil && !p.info.Data.Structural
	load.Roles, load.Merge, load.Ignored = p.info.Data.Roles, p.info.Data.Merge, p.info.Data.Ignored
	load.Trained = data.BaseChecksum(p.info.Data.Checksum, p.info.Data.Corruption, p.info.Data.Rewired)
	if load.Weights = p.info.Weights; !p.info.ReadsWeights() {
		load.Weights = data.IgnoreWeights
	}
	if p.info.Data.Structural {
		load.NodeFeatures = data.FeaturesPlaces
	}
	load.GenerateAs(p.info.Data.Synthetic)
	if p.ds, err = data.Load(path, load); err != nil {
		return nil, err
	}
	// Where the sum of equal edges is taken, those without weights are counted.
	weighed := load.Roles.Weight != "" || load.Columns != nil && load.Columns.Roles["weight"] != ""
	counts := weighed && p.ds.Roles.Source != "" && p.ds.Roles.Weight == ""
	switch {
	case counts && p.info.ReadsWeights() && p.ds.Graph.Weights != nil:
		p.o.Log("the model reads weights of edges, and %s has none: every edge weighs 1 each time that it is listed", path)
	case p.ds.Graph.Weights != nil:
	case p.info.Weighted:
		p.o.Log("the model reads weights of edges, and %s has none: every edge weighs 1", path)
	case p.info.WeightUnit > 0:
		p.o.Log("the model reads weights of edges, and %s has none: every edge counts in full", path)
	}
	for _, text := range p.ds.Notes {
		p.o.Log("%s", text)
	}
	if c := p.info.Data.Corruption; c != nil && p.ds.Checksum == c.Checksum {
		if err := p.ds.Corrupt(c.AddEdges, c.RemoveEdges, c.Seed); err != nil {
			return nil, err
		}
		p.o.Log("%s", c.Again())
	}
	switch trained := &p.info.Data; {
	case trained.Structural && (!p.ds.Structural || p.ds.Checksum != trained.Checksum):
		return nil, fmt.Errorf("the model was trained on nodes without features, by their places in %s, and knows nothing of those of %s: train it on these data, or on data with features", trained.Name, path)
	case p.ds.Structural && !trained.Structural:
		return nil, fmt.Errorf("the nodes of %s have no features, and the model was trained on %d", path, p.manifest.NumFeatures)
	}
	p.ds.PlacesAs(p.manifest.NumFeatures)
	if w := p.ds.EmptyWarning(); w != "" {
		p.o.Log("warning: %s", w)
	}
	if have, want := p.ds.X.Cols, p.manifest.NumFeatures; have != want {
		return nil, fmt.Errorf("%s has %d features, the model was trained on %d", path, have, want)
	}
	return p, nil
}

// noteFewEdges is [FewEdges] of a model that reads edges.
func (p *predictor) noteFewEdges() {
	reads := p.info.Graph == "refined" || slices.ContainsFunc(p.manifest.Models["classifier"].Inputs, func(in manifest.IOInfo) bool {
		return in.Name == onnx.InputEdgeIndex || in.Name == onnx.InputAdjacency
	})
	if text := FewEdges(p.ds, p.info.Data.Nodes, p.info.Data.Edges); reads && text != "" {
		p.o.Log("%s", text)
	}
}

// models opens the export in onnxruntime, and makes ready what it takes.
func (p *predictor) models(ctx context.Context) error {
	if p.dist != nil {
		return nil
	}
	var err error
	if p.o.Library, err = p.o.Library.OrEnsure(ctx, p.o.Log); err != nil {
		return err
	}
	if p.ds != nil {
		p.x = Features(p.ds)
	}
	// On one graph each model runs once: what it took would be held while others run.
	once := p.ds != nil
	p.dist = dist.OpenManifest(p.manifest, ort.Options{Provider: p.o.Provider, Device: p.o.Device, MemoryLimit: p.o.MemoryLimit, Threads: p.o.Threads, Library: p.o.Library, Log: p.o.Log, Yield: p.online, Release: p.online || once})
	return nil
}

func (p *predictor) close() {
	if p.dist != nil {
		p.dist.Close()
	}
}

// onTrainingGraph tells that the data are what the model was trained on.
func (p *predictor) onTrainingGraph() bool {
	return p.ds.Checksum == p.info.Data.Checksum && p.ds.Graph.N == p.info.Data.Nodes
}

// withTrainingNodes tells that the nodes of the data are those of the training, which may have left edges out.
func (p *predictor) withTrainingNodes() bool {
	r := p.info.Data.Rewired
	return p.onTrainingGraph() || r != nil && p.ds.Checksum == r.Checksum && p.ds.Graph.N == p.info.Data.Nodes
}

func (p *predictor) readInference() error {
	if line := p.manifest.Unchecked(); line != "" {
		p.o.Log("%s", line)
	}
	path := filepath.Join(p.dir, InfoFile)
	if _, ok := p.manifest.Files[InfoFile]; !ok {
		return fmt.Errorf("%s lacks %s: it was not made by gsrc build", p.dir, InfoFile)
	}
	text, err := p.manifest.ReadFile(InfoFile)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, &p.info); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if p.info.Evidence != nil {
		return fmt.Errorf("%s: edges are judged by attributes alone (model.edges.judge=attributes), which gsrc does no more; train the model with evidence, which has them among its sources, and build it anew", path)
	}
	if x := &p.info; x.Data.Nodes < 0 || !(x.RawWeight >= 0 && x.RawWeight <= 1) || !(x.WeightUnit >= 0) || !(x.Threshold >= 0 && x.Threshold <= 1) || x.Mode != "" && x.Mode != "expected" && x.Mode != "threshold" {
		return fmt.Errorf("%s: %d nodes, raw weight %v, weight unit %v, threshold %v, mode %q: one of them is out of range", path, x.Data.Nodes, x.RawWeight, x.WeightUnit, x.Threshold, x.Mode)
	}
	if p.info.SchemaVersion != 1 || p.info.Graph != "raw" && p.info.Graph != "refined" || p.info.K < 0 {
		return fmt.Errorf("%s: schema version %d with graph %q is not what this gsrc writes", path, p.info.SchemaVersion, p.info.Graph)
	}
	return nil
}

// run classifies the graph's nodes, of which the selected are wanted and judged; nil is
// all.
func (p *predictor) run(ctx context.Context, selected []int) (*Prediction, error) {
	defer rss.Leave(rss.Enter("models in onnxruntime"))
	g, err := p.graph(ctx)
	if err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return p.on(g, selected)
}

// on is run with the graph that the classifier reads.
func (p *predictor) on(g *graph.Graph, selected []int) (*Prediction, error) {
	r := &Prediction{Classes: p.manifest.Classes, TrainingGraph: p.onTrainingGraph(), Selected: selected, Edges: g.NumEdges()}
	index, weights := WeightedEdges(g)
	if p.info.Loops && p.ds.Loops != nil {
		index, weights = WithLoops(index, weights, p.ds.Loops)
	}
	labels := p.ds.Labels
	if p.dist.ReadsLabels() {
		p.known, labels, r.Known = p.knownLabels()
	}
	logits, probabilities, err := p.classify(g.N, p.x, index, &weights, nil)
	if err != nil {
		return nil, err
	}
	return r, r.Judge(p.ds, logits, probabilities, labels)
}

// Judge fills in what follows from what a classifier gave for the nodes of a data set, [N,
// classes], and their labels. It is a *[FiniteError] if that is not finite.
func (r *Prediction) Judge(ds *data.Dataset, logits, probabilities []float32, labels []int32) error {
	r.Probabilities, r.IDs = probabilities, ds.NodeIDs
	node := func(row int) string { return fmt.Sprintf("node %q", ds.NodeID(row)) }
	if v := notFinite(len(r.Classes), logits, probabilities); v >= 0 {
		return &FiniteError{What: node(v), Largest: largest(ds.X, node)}
	}
	if r.Selected != nil {
		wanted := slices.Repeat([]int32{-1}, len(labels))
		for _, v := range r.Selected {
			wanted[v] = labels[v]
		}
		labels = wanted
	}
	r.choose(labels, ClassNames(ds.ClassNames, ds.Classes))
	return nil
}

// knownLabels returns the labels that the classifier is given: those of the training nodes
// on the training graph, all that the data have on another, and their count. The others are
// left to be judged.
func (p *predictor) knownLabels() (known *ort.Tensor, judged []int32, count int) {
	c := len(p.manifest.Classes)
	number := classNumbers(p.manifest.Classes)
	names := ClassNames(p.ds.ClassNames, p.ds.Classes)
	given := p.info.Known
	if !p.withTrainingNodes() {
		given = nil
		for v, label := range p.ds.Labels {
			if label >= 0 {
				given = append(given, int32(v))
			}
		}
	}
	t := ort.Float32s(make([]float32, p.ds.Graph.N*c), int64(p.ds.Graph.N), int64(c))
	judged = slices.Clone(p.ds.Labels)
	for _, v := range given {
		if int(v) >= len(judged) || v < 0 || judged[v] < 0 {
			continue
		}
		if k, ok := number(names[judged[v]]); ok {
			t.F32[int(v)*c+k], judged[v] = 1, -1
			count++
		}
	}
	p.o.Log("the classifier is given the known labels of %d nodes, which are not judged", count)
	return &t, judged, count
}

// refuseLabels returns an error where the classifier reads known labels or weights of
// self-loops, and what is asked for does not give them.
func (p *predictor) refuseLabels(what string) error {
	if p.info.Loops {
		return fmt.Errorf("the classifier of %s reads the weights of self-loops, which %s cannot give it yet; gsrc predict does, for a whole graph", p.dir, what)
	}
	if p.manifest.ReadsLabels() {
		return fmt.Errorf("the classifier of %s reads known labels, which %s cannot give it yet; gsrc predict does, for a whole graph", p.dir, what)
	}
	return nil
}

// classify runs the classifier on the nodes of a graph or of a part of one, or with ids on
// the graphs of a batch. It returns logits and probabilities, [rows, classes].
func (p *predictor) classify(rows int, x, index ort.Tensor, weights, ids *ort.Tensor) (logits, probabilities []float32, err error) {
	if !p.manifest.EdgeWeight { // the export has none: every edge counts the same
		weights = nil
	}
	var out map[string]ort.Tensor
	if ids != nil {
		out, err = p.dist.ClassifyGraphs(x, index, weights, *ids)
	} else {
		out, err = p.dist.ClassifyKnowing(x, index, weights, p.known)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("classifier: %w", err)
	}
	c := len(p.manifest.Classes)
	for _, name := range []string{"logits", "probabilities"} {
		if t := out[name]; len(t.Shape) != 2 || int(t.Shape[0]) != rows || int(t.Shape[1]) != c {
			return nil, nil, fmt.Errorf("the classifier gave %s of shape %v, want [%d %d]", name, t.Shape, rows, c)
		}
	}
	return out["logits"].F32, out["probabilities"].F32, nil
}

// graph returns the graph that the classifier reads.
func (p *predictor) graph(ctx context.Context) (*graph.Graph, error) {
	g := p.ds.Graph
	if p.info.Weighted {
		p.o.Log("classifying on the graph as it is, %d edges with weights", g.NumEdges())
		return g, nil
	}
	if p.info.Graph == "raw" {
		p.o.Log("classifying on the graph as it is, %d edges", g.NumEdges())
		raw := &graph.Graph{N: g.N, Edges: g.Edges, Directed: g.Directed, Weights: slices.Repeat([]float32{p.info.RawWeight}, len(g.Edges))}
		if unit := p.info.WeightUnit; unit > 0 {
			for i, c := range graph.RelativeWeights(p.info.dataWeights(g), unit) {
				raw.Weights[i] *= c
			}
		}
		return raw, nil
	}
	refined, err := p.refined(ctx)
	if err != nil {
		return nil, err
	}
	g = refined.Graph()
	if p.onTrainingGraph() {
		p.o.Log("classifying on the refined graph of the training, %d edges", g.NumEdges())
	} else {
		p.o.Log("classifying on newly refined edges, %d for the graph's %d", g.NumEdges(), p.ds.Graph.NumEdges())
	}
	return g, nil
}

// refined returns the refined graph of the data: the training's, or a new one.
func (p *predictor) refined(ctx context.Context) (*graph.Refined, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	others := p.refinesOthers()
	switch {
	case p.onTrainingGraph():
		text, err := p.manifest.ReadFile(RefinedFile)
		if err != nil {
			return nil, err
		}
		return p.ds.ReadRefined(filepath.Join(p.dir, RefinedFile), bytes.NewReader(text), p.info.Mode, p.info.Threshold)
	case others != nil:
		return nil, others
	case !p.manifest.Inductive:
		return nil, fmt.Errorf("%s is not the graph that the model was trained on (%s), and its encoder reads structural attributes (x_struct), whose columns mean something for that graph only; train with --set deepwalk.width=0 for a model that serves other graphs", p.ds.Source, p.info.Data.Name)
	}
	if err := p.models(ctx); err != nil {
		return nil, err
	}
	if p.together() {
		return p.refineTogether()
	}
	pool := kernels.NewPool(p.o.Threads)
	defer pool.Close()
	return p.refine(pool, p.x, p.ds.Graph, nil, p.info.Prior(p.ds, p.manifest.JudgesByEvidence()))
}

// together tells that the weights of candidates depend on one another: pipeline.onnx alone finds the
// edges of other graphs then.
func (p *predictor) together() bool {
	_, apart := p.manifest.Models["scorer"]
	_, pipeline := p.manifest.Models["pipeline"]
	return pipeline && !apart
}

// refinesOthers returns an error where nothing in the export finds edges of another graph than the training's.
func (p *predictor) refinesOthers() error {
	if _, apart := p.manifest.Models["scorer"]; !apart && !p.together() && p.info.Graph == "refined" {
		if p.info.Known != nil && p.manifest.Inductive {
			return fmt.Errorf("%s refines no graph but that of its training (%s): its classifier reads known labels, as with model.smooth and model.known_labels, which pipeline.onnx does not take; train it without these", p.dir, p.info.Data.Name)
		}
		return fmt.Errorf("%s refines no graph but that of its training (%s), since it has neither scorer.onnx nor pipeline.onnx: the model gave each edge there a weight of its own, or was built with --pipeline=off or a lowering that has none", p.dir, p.info.Data.Name)
	}
	return nil
}

// refineTogether is [predictor.refine] by pipeline.onnx, which does not tell the candidates that it
// drops: edges of the data among them have probability 0.
func (p *predictor) refineTogether() (*graph.Refined, error) {
	g := p.ds.Graph.Undirected()
	out, err := p.dist.Refine(p.x, EdgeIndex(g.Structure()), nil, p.info.K)
	if err != nil {
		return nil, fmt.Errorf("pipeline: %w", err)
	}
	probability := out[onnx.OutputRefinedProb].F32
	n := len(probability)
	index := out[onnx.OutputRefinedIndex].I64
	if len(index) != 2*n {
		return nil, fmt.Errorf("the pipeline gave %d ends of edges and %d probabilities", len(index), n)
	}
	c := &graph.Candidates{N: g.N}
	r := &graph.Refined{Candidates: c, Mode: p.info.Mode, Threshold: p.info.Threshold}
	add := func(e [2]int32, existing bool, q float32) {
		c.Edges, c.Existing, r.Probability = append(c.Edges, e), append(c.Existing, existing), append(r.Probability, q)
	}
	edges := g.Edges // sorted, as those of the pipeline
	for i, q := range probability {
		found := [2]int32{int32(index[i]), int32(index[n+i])}
		for len(edges) > 0 && slices.Compare(edges[0][:], found[:]) < 0 {
			add(edges[0], true, 0)
			edges = edges[1:]
		}
		existing := len(edges) > 0 && edges[0] == found
		if existing {
			edges = edges[1:]
		}
		add(found, existing, q)
	}
	for _, e := range edges {
		add(e, true, 0)
	}
	return r, nil
}

// encode runs the encoder on a graph, and returns what it gives and the graph as it read it.
func (p *predictor) encode(x ort.Tensor, structural *ort.Tensor, g *graph.Graph) (map[string]ort.Tensor, *graph.Graph, error) {
	if p.manifest.JudgesByEvidence() {
		g = g.Undirected() // as it was in training
	}
	st := g.Structure()
	out, err := p.dist.Encode(x, structural, EdgeIndex(st), p.info.EntryWeights(g, st))
	if err != nil {
		return nil, nil, fmt.Errorf("encoder: %w", err)
	}
	h := out["embedding"]
	if len(h.Shape) != 2 || int(h.Shape[0]) != g.N {
		return nil, nil, fmt.Errorf("the encoder gave an embedding of shape %v for %d nodes", h.Shape, g.N)
	}
	if v := notFinite(int(h.Shape[1]), h.F32); v >= 0 {
		if p.ds == nil { // one of many graphs
			return nil, nil, &FiniteError{What: fmt.Sprintf("node %d of a batch of graphs, by the encoder,", v)}
		}
		node := func(row int) string { return fmt.Sprintf("node %q", p.ds.NodeID(row)) }
		return nil, nil, &FiniteError{What: node(v) + ", by the encoder,", Largest: largest(p.ds.X, node)}
	}
	return out, g, nil
}

// refine finds candidates for graphs that were not trained on, by the encoder, and gives
// them probabilities, by the scorer. offset says where each of several graphs begins that
// stand one after another, as [graph.Neighbors.Within] has it; nil is one graph. prior
// is that of existing edges, nil where the model has none.
func (p *predictor) refine(pool *kernels.Pool, x ort.Tensor, g *graph.Graph, offset []int32, prior *graph.EdgePrior) (*graph.Refined, error) {
	if strings.Contains(p.info.Similarity, "+") {
		return nil, fmt.Errorf("the model finds candidates for edges by %s (candidates.similarity), and an export finds them in other graphs than that of the training by one of these alone; train it with one", p.info.Similarity)
	}
	out, g, err := p.encode(x, nil, g)
	if err != nil {
		return nil, err
	}
	rows, ok := out[onnx.OutputSimilarityRows]
	if !ok {
		rows = out["embedding"]
	}
	c, err := p.info.Candidates(pool, rows.F32, int(rows.Shape[1]), g, offset)
	if err != nil {
		return nil, err
	}
	r := &graph.Refined{Candidates: c, Mode: p.info.Mode, Threshold: p.info.Threshold}
	if len(c.Edges) == 0 {
		return r, nil
	}
	if p.manifest.JudgesByEvidence() {
		r.Probability, r.Evidence, err = Scorer(p.dist.ScoreByEvidence).Candidates(x, g, c, &p.info)
		return r, err
	}
	u, v := c.Pairs()
	if r.Probability, err = p.score(out["embedding"], append(u, v...), c.Existing); err != nil {
		return nil, err
	}
	if prior != nil {
		for i, q := range prior.OfCandidates(nil, c) {
			r.Probability[i] *= q
		}
	}
	return r, nil
}

// Candidates finds candidates for edges by rows [N, width]; offset is as refine has it.
func (i *Info) Candidates(pool *kernels.Pool, rows []float32, width int, g *graph.Graph, offset []int32) (*graph.Candidates, error) {
	search := graph.Neighbors{Near: func() *graph.Structure { return g.Undirected().Structure() }}
	var near []int32
	k := min(i.K, max(0, g.N-1))
	if offset != nil {
		near = search.Within(pool, rows, offset, width, k)
	} else {
		near, _, _ = search.Search(pool, rows, g.N, width, k, graph.IndexAuto)
	}
	if i.TwoStep > 0 {
		found, _ := graph.TwoStep(pool, g, min(i.TwoStep, g.N))
		var err error
		if near, k, err = graph.JoinNeighbors(g.N, near, found); err != nil {
			return nil, err
		}
	}
	return graph.NewCandidates(g, near, k, i.Mutual)
}

// score gives pairs of rows of an embedding their probabilities; ends are the first of each
// pair and then the second.
func (p *predictor) score(h ort.Tensor, ends []int64, existing []bool) ([]float32, error) {
	n := len(ends) / 2
	out, err := p.dist.Score(h, ort.Int64s(ends, 2, int64(n)))
	if err != nil {
		return nil, fmt.Errorf("scorer: %w", err)
	}
	return probabilities(out, existing)
}

// probabilities are what a scorer gave pairs, of which some exist.
func probabilities(out map[string]ort.Tensor, existing []bool) ([]float32, error) {
	probability, old, n := out["probability"].F32, out["probability_existing"].F32, len(existing)
	if len(probability) != n || len(old) != n {
		return nil, fmt.Errorf("the scorer gave %d and %d probabilities for %d pairs", len(probability), len(old), n)
	}
	for i, there := range existing {
		if there {
			probability[i] = old[i]
		}
	}
	return probability, nil
}

// choose picks the most probable class of each node or graph, the first of equal
// ones, and holds them against the labels, numbers of classes of these names.
func (r *Prediction) choose(labels []int32, names []string) {
	predicted := metrics.Argmax(r.Probabilities, len(r.Classes))
	r.Predicted = lists.Map(predicted, func(c int32) int { return int(c) })
	number := classNumbers(r.Classes)
	known := make([]int32, 0, len(labels))
	mapped := make([]int32, len(labels))
	for i, label := range labels {
		if label < 0 {
			continue
		}
		c, ok := number(names[label])
		if !ok {
			r.Unknown++
			r.UnknownLabel = names[label]
			continue
		}
		mapped[i], known = int32(c), append(known, int32(i))
	}
	r.Report = metrics.Evaluate(predicted, r.Probabilities, len(r.Classes), mapped, known)
}
