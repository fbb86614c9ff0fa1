// Package dist runs the models of an export in onnxruntime: it checks and loads the files,
// brings a graph into the form that they take, and bounds the memory of a run.
package dist

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/gsrc-dev/gsrc/export/manifest"
	"github.com/gsrc-dev/gsrc/export/onnx"
	"github.com/gsrc-dev/gsrc/runtime/ort"
)

// Dist is an export folder that is being used for inference. It may be used by
// many goroutines at once.
type Dist struct {
	Manifest *manifest.Manifest
	dir      string
	options  ort.Options
	ctx      context.Context // runs end with it; see During

	*loaded
}

// loaded are the models of an export that are in memory.
type loaded struct {
	mu       sync.Mutex
	sessions map[string]*ort.Session
	closed   bool
}

// Open reads an export folder. Each model is loaded when it is first used, and its files
// are checked then: against their checksums, and against the manifest.
func Open(dir string, o ort.Options) (*Dist, error) {
	m, err := manifest.Read(dir)
	if err != nil {
		return nil, err
	}
	return OpenManifest(m, o), nil
}

// OpenManifest is [Open] of the export that the manifest was read from.
func OpenManifest(m *manifest.Manifest, o ort.Options) *Dist {
	return &Dist{Manifest: m, dir: m.Dir, options: o, ctx: context.Background(), loaded: &loaded{sessions: map[string]*ort.Session{}}}
}

// During returns the same export for work that ends early when ctx does: a run stops
// after the operator that it is at, and returns the error of ctx.
func (d *Dist) During(ctx context.Context) *Dist {
	other := *d
	other.ctx = ctx
	return &other
}

// Close frees the loaded models. What is asked afterwards fails with ort.ErrClosed.
func (d *Dist) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closed = true
	var err error
	for _, s := range d.sessions {
		err = errors.Join(err, s.Close())
	}
	clear(d.sessions)
	return err
}

// Warm loads all models now and runs each on the export's test data, where these are
// there, so that a file that cannot be used is found and nobody waits for a first run.
func (d *Dist) Warm() error {
	for _, role := range slices.Sorted(maps.Keys(d.Manifest.Models)) {
		s, err := d.session(role)
		if err != nil {
			return err
		}
		info := d.Manifest.Models[role]
		if _, err := os.Stat(d.Manifest.Path(info.TestData)); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		in, err := d.Manifest.TestTensors(info.TestData, "input", info.Inputs)
		if err == nil {
			_, err = s.Run(in)
		}
		if err != nil {
			return fmt.Errorf("the %s does not run on the export's test data: %w", role, err)
		}
	}
	return nil
}

func (d *Dist) session(role string) (*ort.Session, error) {
	if _, ok := d.Manifest.Models[role]; !ok {
		return nil, fmt.Errorf("%s has no %s; it has %s", d.dir, role, strings.Join(slices.Sorted(maps.Keys(d.Manifest.Models)), ", "))
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil, fmt.Errorf("%s was closed: %w", d.dir, ort.ErrClosed)
	}
	if s := d.sessions[role]; s != nil {
		return s, nil
	}
	s, err := d.Manifest.Session(role, d.options)
	if err != nil {
		return nil, err
	}
	d.sessions[role] = s
	return s, nil
}

// Encode embeds the nodes of a graph: x float32 [N,D], xStruct float32 [N,S]
// for an encoder that reads it and nil otherwise, edgeIndex int64 [2,E], weight
// float32 [E] for an encoder that reads it (one that was trained on edges that were judged
// before, or with their weights in the data, after the transform that Manifest.WeightTransform
// names) or nil for ones. It returns embedding, float32 [N,F], and, where candidates for edges are
// near by something else, similarity_rows, float32 [N,·], which say by what.
func (d *Dist) Encode(x ort.Tensor, xStruct *ort.Tensor, edgeIndex ort.Tensor, weight *ort.Tensor) (map[string]ort.Tensor, error) {
	in := map[string]ort.Tensor{"x": x}
	switch {
	case xStruct != nil && d.Manifest.Inductive:
		return nil, errors.New("this encoder reads no structural attributes; leave x_struct out")
	case xStruct == nil && !d.Manifest.Inductive:
		return nil, errors.New("this encoder reads x_struct, the DeepWalk embedding of its training graph: walks on another graph land in another basis, so it serves no other graph; train with structural width 0 for an encoder that does")
	case xStruct != nil:
		in["x_struct"] = *xStruct
	}
	return d.run("encoder", in, &edgeIndex, weight)
}

// Score scores pairs of nodes: embedding float32 [N,F], pairs int64 [2,P]. It
// returns the outputs by name, such as similarity and probability, float32 [P].
func (d *Dist) Score(embedding, pairs ort.Tensor) (map[string]ort.Tensor, error) {
	if len(embedding.Shape) == 2 {
		if err := onnx.CheckIndices("pairs", pairs, embedding.Shape[0]); err != nil {
			return nil, err
		}
	}
	return d.run("scorer", map[string]ort.Tensor{"embedding": embedding, "pairs": pairs}, nil, nil)
}

// ScoreByEvidence scores pairs of nodes, int64 [2,P], and the edges of a graph, by a scorer
// that was trained to judge by evidence: x float32 [N,D], edgeIndex int64 [2,E]. It returns
// the outputs by name, such as probability, float32 [P], and edge_probability, float32 [E].
// weight, float32 [E], is for one that counts the weights of edges; nil is ones.
func (d *Dist) ScoreByEvidence(x, edgeIndex, pairs ort.Tensor, weight *ort.Tensor) (map[string]ort.Tensor, error) {
	if len(x.Shape) == 2 {
		if err := onnx.CheckIndices("pairs", pairs, x.Shape[0]); err != nil {
			return nil, err
		}
	}
	return d.run("scorer", map[string]ort.Tensor{"x": x, "pairs": pairs}, &edgeIndex, weight)
}

// Classify classifies the nodes of a graph: x float32 [N,D], edgeIndex int64
// [2,E], weight float32 [E] or nil for Manifest.RawWeight each, ones if that is 0. A model without a graph ignores
// the edges. It returns logits and probabilities, float32 [N,C].
func (d *Dist) Classify(x, edgeIndex ort.Tensor, weight *ort.Tensor) (map[string]ort.Tensor, error) {
	return d.ClassifyKnowing(x, edgeIndex, weight, nil)
}

// ReadsLabels reports whether the classifier takes known labels.
func (d *Dist) ReadsLabels() bool { return d.Manifest.ReadsLabels() }

// ClassifyKnowing is [Dist.Classify] with the labels that are known, float32 [N,C], for a
// classifier that reads them: a one in the column of a node's class, zeros for nodes whose
// labels are not known. nil knows none.
func (d *Dist) ClassifyKnowing(x, edgeIndex ort.Tensor, weight, known *ort.Tensor) (map[string]ort.Tensor, error) {
	in := map[string]ort.Tensor{"x": x}
	switch {
	case !d.ReadsLabels() && known != nil:
		return nil, errors.New("this classifier reads no labels; leave known_labels out")
	case d.ReadsLabels() && len(x.Shape) == 2:
		n, c := x.Shape[0], int64(len(d.Manifest.Classes))
		if known == nil {
			known = new(ort.Float32s(make([]float32, n*c), n, c))
		}
		if err := known.Check(); err != nil || known.DType != ort.Float32 || !slices.Equal(known.Shape, []int64{n, c}) {
			return nil, fmt.Errorf("known_labels is %v of shape %v, want float32 [%d %d]: nodes, classes", known.DType, known.Shape, n, c)
		}
		in[onnx.InputKnownLabels] = *known
	}
	return d.run("classifier", in, &edgeIndex, weight)
}

// Refine does all in one, by pipeline.onnx: it embeds the nodes of a graph, finds
// candidates for edges among each node's k nearest neighbours, scores them, and
// classifies the nodes on the refined graph. x is float32 [N,D], edgeIndex int64
// [2,E], weight float32 [E] what the encoder reads of each edge, or
// nil for ones. It returns refined_edge_index, int64 [2,R], refined_probability,
// float32 [R], refined_existing, int64 [R], and logits and probabilities, float32
// [N,C].
func (d *Dist) Refine(x, edgeIndex ort.Tensor, weight *ort.Tensor, k int) (map[string]ort.Tensor, error) {
	if k < 0 {
		return nil, fmt.Errorf("k is %d; give the number of neighbours, 0 or more", k)
	}
	if len(x.Shape) == 2 && x.Shape[0] > onnx.MaxPipelineNodes {
		return nil, fmt.Errorf("the graph has %d nodes; pipeline.onnx compares all pairs and takes at most %d: use encoder, scorer and classifier one after another, where the export has these, or gsrc refine and gsrc predict with the run", x.Shape[0], onnx.MaxPipelineNodes)
	}
	return d.run("pipeline", map[string]ort.Tensor{"x": x, onnx.InputK: ort.Int64s([]int64{int64(k)}, 1)}, &edgeIndex, weight)
}

// ClassifyGraphs classifies the graphs of a batch: x, edgeIndex and weight as
// [Dist.Classify] takes them, of the union of the graphs, and graphIDs, int64 [N],
// the graph of each node; an edge between two graphs is an error. It returns logits
// and probabilities, float32 [G,C], of as many graphs as the largest number says.
func (d *Dist) ClassifyGraphs(x, edgeIndex ort.Tensor, weight *ort.Tensor, graphIDs ort.Tensor) (map[string]ort.Tensor, error) {
	if err := onnx.CheckBatch(graphIDs); err != nil {
		return nil, err
	}
	if len(x.Shape) != 2 || int64(len(graphIDs.I64)) != x.Shape[0] {
		return nil, fmt.Errorf("graph_ids has %d numbers for x of shape %v; want one for each node", len(graphIDs.I64), x.Shape)
	}
	if err := withinGraphs(edgeIndex, graphIDs.I64); err != nil {
		return nil, err
	}
	return d.run("classifier", map[string]ort.Tensor{"x": x, onnx.InputGraphIDs: graphIDs}, &edgeIndex, weight)
}

// withinGraphs refuses an edge between two graphs of a batch.
func withinGraphs(edgeIndex ort.Tensor, ids []int64) error {
	if len(edgeIndex.I64) == 0 {
		return nil
	}
	if err := onnx.CheckIndices(onnx.InputEdgeIndex, edgeIndex, int64(len(ids))); err != nil {
		return err
	}
	for i, v := range edgeIndex.I64[edgeIndex.Shape[1]:] {
		if u := edgeIndex.I64[i]; ids[u] != ids[v] {
			return fmt.Errorf("%s: edge %d joins node %d of graph %d and node %d of graph %d; an edge joins nodes of one graph", onnx.InputEdgeIndex, i, u, ids[u], v, ids[v])
		}
	}
	return nil
}

// run runs a model on a graph.
func (d *Dist) run(role string, in map[string]ort.Tensor, edgeIndex, weight *ort.Tensor) (map[string]ort.Tensor, error) {
	s, err := d.session(role)
	if err != nil {
		return nil, err
	}
	if err := Prepare(d.Manifest, role, in, edgeIndex, weight); err != nil {
		return nil, err
	}
	return s.RunContext(d.ctx, in)
}

// Prepare adds a graph to the inputs of a model, edgeIndex and weight as [Dist.Classify] takes
// them, and brings it and x into the form that the file takes: tables, an adjacency matrix, CSR.
func Prepare(m *manifest.Manifest, role string, in map[string]ort.Tensor, edgeIndex, weight *ort.Tensor) error {
	takes := map[string]bool{}
	for _, io := range m.Models[role].Inputs {
		takes[io.Name] = true
	}
	x, hasX := in["x"]
	if !hasX {
		return nil
	}
	sparse := takes[onnx.InputIndptr]
	if len(x.Shape) != 2 || sparse && int(x.Shape[1]) != m.NumFeatures {
		return fmt.Errorf("x has shape %v, want [nodes, %d]", x.Shape, m.NumFeatures)
	}
	if sparse {
		if err := onnx.AddSparse(in); err != nil {
			return err
		}
	}
	if takes[onnx.InputEdgeIndex] || takes[onnx.InputAdjacency] {
		return addGraph(m, in, takes, x.Shape[0], *edgeIndex, weight)
	}
	return nil
}

func addGraph(m *manifest.Manifest, in map[string]ort.Tensor, takes map[string]bool, nodes int64, edgeIndex ort.Tensor, weight *ort.Tensor) error {
	if nodes == 0 {
		return errors.New("the graph has no nodes")
	}
	if err := onnx.CheckIndices(onnx.InputEdgeIndex, edgeIndex, nodes); err != nil {
		return err
	}
	if err := onnx.CheckWeights(edgeIndex, weight); err != nil {
		return err
	}
	if raw := m.RawWeight; weight == nil && (raw != 0 || takes[onnx.InputEdgeWeight]) {
		weight = new(ort.Float32s(slices.Repeat([]float32{cmp.Or(raw, 1)}, int(edgeIndex.Shape[1])), edgeIndex.Shape[1]))
	}
	if takes[onnx.InputAdjacency] {
		if nodes > onnx.MaxDenseNodes {
			return fmt.Errorf("this export is of the dense form, which takes an adjacency matrix; %d nodes are too many for it: build it with --lowering degree-buckets", nodes)
		}
		a, err := onnx.Adjacency(int(nodes), edgeIndex, weight)
		in[onnx.InputAdjacency] = a
		return err
	}
	in[onnx.InputEdgeIndex] = edgeIndex
	if takes[onnx.InputOrder] {
		if err := onnx.AddTables(in, int(nodes), m.Symmetrize); err != nil {
			return err
		}
	}
	if takes[onnx.InputEdgeWeight] {
		in[onnx.InputEdgeWeight] = *weight
	} else if weight != nil && slices.ContainsFunc(weight.F32, func(w float32) bool { return w != 1 }) {
		return errors.New("this model was built without edge weights; a classifier has them unless it is built with --no-edge-weight")
	}
	return nil
}
