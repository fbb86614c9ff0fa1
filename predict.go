package gsrc

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/gsrc-dev/gsrc/data"
	"github.com/gsrc-dev/gsrc/export"
	"github.com/gsrc-dev/gsrc/graph"
	"github.com/gsrc-dev/gsrc/internal/atomicfile"
	"github.com/gsrc-dev/gsrc/runtime/kernels"
	"github.com/gsrc-dev/gsrc/runtime/ort"
	"github.com/gsrc-dev/gsrc/runtime/train"
)

// PredictOptions say how a graph's nodes are classified.
type PredictOptions struct {
	Provider ort.Provider     // of onnxruntime; ort.Auto if empty
	Library  *ort.Library     // nil is what is found or fetched
	Threads  int              // 0 is one for each processor
	Load     data.LoadOptions // how to read the data
	Log      func(format string, args ...any)
}

// Prediction is the outcome of [Predict].
type Prediction struct {
	Classes       []string
	Predicted     []int     // [N] class of each node
	Probabilities []float32 // [N, len(Classes)]
	// TrainingGraph tells that the data are what the model was trained on, so
	// that the refined edges of the training were used.
	TrainingGraph bool
	// Edges counts those that the classifier read, each undirected one once.
	Edges int
	// Known and Right count the nodes whose label the data have, and those of
	// them that were predicted so. Both are 0 where the classes are others.
	Known, Right int
}

// Predict classifies the nodes of a graph with an export and writes a CSV file:
// id, label (the predicted one), and the probability of each class. On the
// training graph the classifier reads its refined edges; on another one new
// candidates are found and scored, which an encoder with structural attributes
// cannot do. An empty out writes nothing.
func Predict(ctx context.Context, dist, path, out string, o PredictOptions) (*Prediction, error) {
	if o.Log == nil {
		o.Log = func(string, ...any) {}
	}
	var err error
	if o.Provider, err = ort.ParseProvider(string(o.Provider)); err != nil {
		return nil, err
	}
	p := &predictor{dir: dist, o: o}
	if p.manifest, err = export.ReadManifest(dist); err != nil {
		return nil, err
	}
	if err := p.readInference(); err != nil {
		return nil, err
	}
	if p.ds, err = data.Load(path, o.Load); err != nil {
		return nil, err
	}
	if have, want := p.ds.X.Cols, p.manifest.NumFeatures; have != want {
		return nil, fmt.Errorf("%s has %d features, the model was trained on %d", path, have, want)
	}
	if p.o.Library == nil {
		lib, err := ort.Ensure(ctx, o.Log)
		if err != nil {
			return nil, err
		}
		p.o.Library = &lib
	}
	p.dist, err = export.Open(dist, ort.Options{Provider: o.Provider, Threads: o.Threads, Library: p.o.Library, Log: o.Log})
	if err != nil {
		return nil, err
	}
	defer p.dist.Close()
	r, err := p.run(ctx)
	if err != nil || out == "" {
		return r, err
	}
	return r, atomicfile.Write(out, func(w io.Writer) error { return r.writeCSV(w, p.ds) })
}

type predictor struct {
	dir      string
	o        PredictOptions
	manifest *export.Manifest
	dist     *export.Dist
	info     inference
	ds       *data.Dataset
	x        ort.Tensor
}

func (p *predictor) readInference() error {
	path := filepath.Join(p.dir, inferenceFile)
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s lacks %s: it was not made by gsrc build", p.dir, inferenceFile)
	}
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, &p.info); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if p.info.SchemaVersion != 1 || p.info.Graph != "raw" && p.info.Graph != "refined" || p.info.K < 0 {
		return fmt.Errorf("%s: schema version %d with graph %q is not what this gsrc writes", path, p.info.SchemaVersion, p.info.Graph)
	}
	return nil
}

func (p *predictor) run(ctx context.Context) (*Prediction, error) {
	p.x = features(p.ds)
	r := &Prediction{Classes: p.manifest.Classes, TrainingGraph: p.ds.Checksum == p.info.Data.Checksum && p.ds.Graph.N == p.info.Data.Nodes}
	g := p.ds.Graph
	var err error
	switch {
	case p.info.Graph == "raw":
		p.o.Log("classifying on the graph as it is, %d edges", g.NumEdges())
		g = &graph.Graph{N: g.N, Edges: g.Edges, Directed: g.Directed, Weights: slices.Repeat([]float32{p.info.RawWeight}, len(g.Edges))}
	case r.TrainingGraph:
		if g, err = p.refinedEdges(); err != nil {
			return nil, err
		}
		p.o.Log("classifying on the refined graph of the training, %d edges", g.NumEdges())
	case !p.manifest.Inductive:
		return nil, fmt.Errorf("%s is not the graph that the model was trained on (%s), and its encoder reads structural attributes (x_struct), whose columns mean something for that graph only; train with --set deepwalk.width=0 for a model that serves other graphs", p.ds.Source, p.info.Data.Name)
	default:
		if g, err = p.newEdges(ctx); err != nil {
			return nil, err
		}
		p.o.Log("classifying on newly refined edges, %d for the graph's %d", g.NumEdges(), p.ds.Graph.NumEdges())
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	r.Edges = g.NumEdges()
	index, w := weighted(g)
	weights := &w
	if !p.manifest.EdgeWeight { // the export has none: every edge counts the same
		weights = nil
	}
	outputs, err := p.dist.Classify(p.x, index, weights)
	if err != nil {
		return nil, fmt.Errorf("classifier: %w", err)
	}
	probs := outputs["probabilities"]
	if k := len(r.Classes); len(probs.Shape) != 2 || int(probs.Shape[0]) != g.N || int(probs.Shape[1]) != k {
		return nil, fmt.Errorf("the classifier gave probabilities of shape %v, want [%d %d]", probs.Shape, g.N, k)
	}
	r.Probabilities = probs.F32
	r.choose(p.ds)
	return r, nil
}

// refinedEdges reads the graph that the training refined.
func (p *predictor) refinedEdges() (*graph.Graph, error) {
	path := filepath.Join(p.dir, refinedFile)
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	nodes := make(map[string]int32, p.ds.Graph.N)
	for i := range p.ds.Graph.N {
		nodes[p.ds.NodeID(i)] = int32(i)
	}
	rows := csv.NewReader(f)
	rows.FieldsPerRecord = 4
	if _, err := rows.Read(); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	var src, dst []int32
	var w []float32
	for {
		row, err := rows.Read()
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		if row[3] == train.StatusRemoved {
			continue
		}
		u, okU := nodes[row[0]]
		v, okV := nodes[row[1]]
		prob, err := strconv.ParseFloat(row[2], 32)
		if line, _ := rows.FieldPos(0); !okU || !okV || err != nil {
			return nil, fmt.Errorf("%s:%d: %q is no edge of the data's nodes with a probability", path, line, row)
		}
		if p.info.Mode == "threshold" {
			prob = 1
		}
		src, dst, w = append(src, u), append(dst, v), append(w, float32(prob))
	}
	g, _, err := graph.Build(p.ds.Graph.N, src, dst, w, false)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return g, nil
}

// newEdges finds candidates for a graph that was not trained on, and gives them
// probabilities.
func (p *predictor) newEdges(ctx context.Context) (*graph.Graph, error) {
	h, err := p.dist.Encode(p.x, nil, edgeIndex(p.ds.Graph.Structure()))
	if err != nil {
		return nil, fmt.Errorf("encoder: %w", err)
	}
	if len(h.Shape) != 2 || int(h.Shape[0]) != p.ds.Graph.N {
		return nil, fmt.Errorf("the encoder gave an embedding of shape %v for %d nodes", h.Shape, p.ds.Graph.N)
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	pool := kernels.NewPool(p.o.Threads)
	defer pool.Close()
	var search graph.Neighbors
	near, _, _ := search.Search(pool, h.F32, int(h.Shape[0]), int(h.Shape[1]), p.info.K, graph.IndexAuto)
	c, err := graph.NewCandidates(p.ds.Graph, near, p.info.K, p.info.Mutual)
	if err != nil {
		return nil, err
	}
	u, v := c.Pairs()
	out, err := p.dist.Score(h, ort.Int64s(append(u, v...), 2, int64(len(c.Edges))))
	if err != nil {
		return nil, fmt.Errorf("scorer: %w", err)
	}
	fresh, old := out["probability"].F32, out["probability_existing"].F32
	if len(fresh) != len(c.Edges) || len(old) != len(c.Edges) {
		return nil, fmt.Errorf("the scorer gave %d and %d probabilities for %d pairs", len(fresh), len(old), len(c.Edges))
	}
	r := train.Refined{Candidates: c, Probability: make([]float32, len(c.Edges)), Mode: p.info.Mode, Threshold: p.info.Threshold}
	for i, existing := range c.Existing {
		r.Probability[i] = fresh[i]
		if existing {
			r.Probability[i] = old[i]
		}
	}
	return r.Graph(), nil
}

// choose picks each node's most probable class, the first of equal ones.
func (r *Prediction) choose(ds *data.Dataset) {
	k := len(r.Classes)
	same := slices.Equal(r.Classes, classNames(ds))
	r.Predicted = make([]int, ds.Graph.N)
	for i := range r.Predicted {
		row := r.Probabilities[i*k : (i+1)*k]
		for c, v := range row {
			if v > row[r.Predicted[i]] {
				r.Predicted[i] = c
			}
		}
		if label := int(ds.Labels[i]); same && label >= 0 {
			r.Known++
			if label == r.Predicted[i] {
				r.Right++
			}
		}
	}
}

func (r *Prediction) writeCSV(w io.Writer, ds *data.Dataset) error {
	c := csv.NewWriter(w)
	row := []string{"id", "label"}
	for _, class := range r.Classes {
		row = append(row, "p_"+class)
	}
	if err := c.Write(row); err != nil {
		return err
	}
	k := len(r.Classes)
	for i, class := range r.Predicted {
		row = append(row[:0], ds.NodeID(i), r.Classes[class])
		for _, v := range r.Probabilities[i*k : (i+1)*k] {
			row = append(row, strconv.FormatFloat(float64(v), 'g', -1, 32))
		}
		if err := c.Write(row); err != nil {
			return err
		}
	}
	c.Flush()
	return c.Error()
}
