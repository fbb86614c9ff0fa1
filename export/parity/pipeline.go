package parity

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/gsrc-dev/gsrc/export/manifest"
	"github.com/gsrc-dev/gsrc/export/onnx"
	"github.com/gsrc-dev/gsrc/graph"
	"github.com/gsrc-dev/gsrc/internal/lists"
	"github.com/gsrc-dev/gsrc/runtime/kernels"
	"github.com/gsrc-dev/gsrc/runtime/ort"
)

// nearTie is how close to its k-th similarity a pair may be, and how close to the
// threshold a probability, for the pair to be an edge in one computation and none
// in another: they round differently.
const nearTie = 1e-5

// refinement is what a pipeline computes, step by step, by the Compile forward
// pass and package graph.
type refinement struct {
	embedding   ort.Tensor
	rows        ort.Tensor // whose cosine is similarity: the embedding, or rows of their own
	candidates  *graph.Candidates
	probability []float32 // of each candidate
	// last is the similarity of each node's k-th neighbour, and margin the distance
	// to the next; infinite where there is none.
	last, margin []float64
	// chosen are the margins, by which @probability chooses among the candidates of a node: of
	// those in one direction, then of the others.
	chosen  [][]float32
	outputs map[string]ort.Tensor
}

// refine computes what the pipeline file does.
func (o *Options) refine(m *Model, in map[string]ort.Tensor) (*refinement, error) {
	x, index, k := in["x"], in[onnx.InputEdgeIndex], int(in[onnx.InputK].I64[0])
	n := int(x.Shape[0])
	encode := map[string]ort.Tensor{"x": x, onnx.InputEdgeIndex: index}
	if m.Weighted {
		encode[onnx.InputEdgeWeight] = in[onnx.InputEdgeWeight]
	}
	encode, err := m.forwardInputs(encode)
	if err != nil {
		return nil, err
	}
	out, err := o.Forward(cmp.Or(o.Refinement.Rows, "encode"), encode)
	if err != nil {
		return nil, err
	}
	r := &refinement{embedding: out["embedding"], rows: out["embedding"]}
	for _, name := range []string{onnx.OutputSimilarityRows, "rows"} {
		if own, ok := out[name]; ok {
			r.rows = own
		}
	}
	counts, counted := out[onnx.OutputEdgeCounts]
	index = encode[onnx.InputEdgeIndex] // @score judges the edges that it reads
	raw, first, err := undirected(n, index)
	if err != nil {
		return nil, err
	}
	two, _ := graph.TwoStep(nil, raw, o.Refinement.TwoStep)
	near, k, err := graph.JoinNeighbors(n, r.search(n, k), two)
	if err != nil {
		return nil, err
	}
	if r.candidates, err = graph.NewCandidates(raw, near, k, o.Refinement.Mutual); err != nil {
		return nil, err
	}
	c := r.candidates
	r.probability = make([]float32, len(c.Edges))
	if o.Refinement.Together {
		if err := o.weigh(r, x); err != nil {
			return nil, err
		}
		return r, o.finish(m, r, x)
	}
	if len(c.Edges) > 0 {
		u, v := c.Pairs()
		score := map[string]ort.Tensor{"x": x, onnx.InputEdgeIndex: index, "embedding": r.embedding, "pairs": ort.Int64s(append(u, v...), 2, int64(len(u)))}
		if w, ok := encode[onnx.InputEdgeWeight]; ok {
			score[onnx.InputEdgeWeight] = w
		}
		if out, err = o.Forward("score", score); err != nil {
			return nil, err
		}
	}
	edges, judged := out["edge_probability"]
	edge := 0
	for i, existing := range c.Existing {
		r.probability[i] = out["probability"].F32[i]
		if !existing {
			continue
		}
		if judged {
			r.probability[i] = edges.F32[first[edge]]
		} else {
			r.probability[i] = out["probability_existing"].F32[i]
		}
		if counted {
			r.probability[i] *= counts.F32[first[edge]]
		}
		edge++
	}
	return r, o.finish(m, r, x)
}

// weigh gives the candidates the probabilities that they have beside one another.
func (o *Options) weigh(r *refinement, x ort.Tensor) error {
	c := r.candidates
	u, v := c.Pairs()
	old := make([]float32, 2*len(u))
	for i, existing := range c.Existing {
		if existing {
			old[i], old[len(u)+i] = 1, 1
		}
	}
	n := int64(len(old))
	out, err := o.Forward("probability", map[string]ort.Tensor{"x": x, "embedding": r.embedding,
		onnx.InputEdgeIndex: ort.Int64s(slices.Concat(u, v, v, u), 2, n), onnx.InputEdgeWeight: ort.Float32s(old, n)})
	if err != nil {
		return err
	}
	copy(r.probability, out["probability"].F32)
	for name, margin := range out {
		if strings.HasPrefix(name, onnx.OutputMargin) {
			r.chosen = append(r.chosen, margin.F32)
		}
	}
	return nil
}

// finish drops candidates, and classifies on the rest.
func (o *Options) finish(m *Model, r *refinement, x ort.Tensor) (err error) {
	c := r.candidates
	var src, dst, existing []int64
	var p []float32
	for i, e := range c.Edges {
		if r.probability[i] < float32(o.Refinement.Threshold) {
			continue
		}
		src, dst, p = append(src, int64(e[0])), append(dst, int64(e[1])), append(p, r.probability[i])
		existing = append(existing, 0)
		if c.Existing[i] {
			existing[len(existing)-1] = 1
		}
	}
	size := int64(len(p))
	refined := ort.Int64s(append(src, dst...), 2, size)
	if r.outputs, err = o.classifyRefined(m, x, refined, p); err != nil {
		return err
	}
	r.outputs[onnx.OutputRefinedIndex], r.outputs[onnx.OutputRefinedProb] = refined, ort.Float32s(p, size)
	r.outputs[onnx.OutputRefinedExisting] = ort.Int64s(existing, size)
	return nil
}

// undirected returns the graph of edge_index with each edge once, and for each the
// first place where edge_index lists it.
func undirected(nodes int, index ort.Tensor) (*graph.Graph, []int, error) {
	if err := onnx.CheckIndices(onnx.InputEdgeIndex, index, int64(nodes)); err != nil {
		return nil, nil, err
	}
	e := int(index.Shape[1])
	src, dst := make([]int32, e), make([]int32, e)
	for i := range e {
		src[i], dst[i] = int32(index.I64[i]), int32(index.I64[e+i])
	}
	g, _, err := graph.Build(nodes, src, dst, nil, false)
	if err != nil {
		return nil, nil, err
	}
	at := slices.Repeat([]int{-1}, len(g.Edges))
	for i := range e {
		if k, ok := g.Find(src[i], dst[i]); ok && at[k] < 0 {
			at[k] = i
		}
	}
	return g, at, nil
}

// search finds the k nearest neighbours, [n,k], and notes how clear the choice was.
func (r *refinement) search(n, k int) []int32 {
	pool := kernels.NewPool(0)
	defer pool.Close()
	idx, sim := graph.KNN(pool, r.rows.F32, n, int(r.rows.Shape[1]), k+1)
	near := make([]int32, 0, n*k)
	for i := range n {
		row, s := idx[i*(k+1):(i+1)*(k+1)], sim[i*(k+1):(i+1)*(k+1)]
		near = append(near, row[:k]...)
		last, margin := math.Inf(-1), math.Inf(1)
		if k > 0 && row[k] >= 0 {
			last, margin = float64(s[k-1]), float64(s[k-1])-float64(s[k])
		}
		r.last, r.margin = append(r.last, last), append(r.margin, margin)
	}
	return near
}

// classifyRefined classifies on a refined graph, each edge of which is listed once.
func (o *Options) classifyRefined(m *Model, x, edges ort.Tensor, p []float32) (map[string]ort.Tensor, error) {
	n := len(p)
	lower, upper := edges.I64[:n], edges.I64[n:]
	in := map[string]ort.Tensor{"x": x}
	if onnx.GraphArg(m.Classify) != nil {
		in[onnx.InputEdgeIndex] = ort.Int64s(slices.Concat(lower, upper, upper, lower), 2, int64(2*n))
		w := slices.Concat(p, p)
		if !o.Refinement.Weighted || o.NoEdgeWeight {
			w = slices.Repeat([]float32{1}, 2*n)
		}
		in[onnx.InputEdgeWeight] = ort.Float32s(w, int64(2*n))
	}
	return o.Forward("classify", in)
}

// clear reports whether no choice of r is so close that another computation could
// choose otherwise. Ties of equal rows are none: they go to the lower number.
func (r *refinement) clear(threshold float64) bool {
	for _, d := range r.margin {
		if d != 0 && d < 2*nearTie {
			return false
		}
	}
	for _, m := range slices.Concat(r.chosen...) {
		if m != 0 && math.Abs(float64(m)) < 2*nearTie {
			return false
		}
	}
	for _, p := range r.probability {
		if threshold > 0 && math.Abs(float64(p)-threshold) < 2*nearTie {
			return false
		}
	}
	return true
}

// similarity is the cosine of two nodes.
func (r *refinement) similarity(u, v int64) float64 {
	f := int(r.rows.Shape[1])
	a, b := r.rows.F32[int(u)*f:int(u+1)*f], r.rows.F32[int(v)*f:int(v+1)*f]
	var ab, aa, bb float64
	for i, x := range a {
		y := float64(b[i])
		ab, aa, bb = ab+float64(x)*y, aa+float64(x)*float64(x), bb+y*y
	}
	return ab / math.Sqrt(aa*bb)
}

// tied tells that @probability could choose otherwise among the candidates of a node of candidate i:
// this one and another are as near as the k-th.
func (r *refinement) tied(i int) bool {
	pairs := r.candidates.Edges
	for _, m := range r.chosen {
		for side := range 2 { // m[j] is of the entry into the second node, m[len(pairs)+j] of that into the first
			tied := func(j, side int) bool { return math.Abs(float64(m[side*len(pairs)+j])) <= nearTie }
			others := 0
			for j, e := range pairs {
				for s := range 2 {
					if e[1-s] == pairs[i][1-side] && tied(j, s) {
						others++
					}
				}
			}
			if tied(i, side) && others > 1 {
				return true
			}
		}
	}
	return false
}

// excused tells that a pair may be an edge or not: it is as near as the k-th
// neighbour of one of its nodes, or another that @probability chooses among, or as
// probable as the threshold.
func (r *refinement) excused(u, v int64, threshold, edges float64) bool {
	s := r.similarity(u, v)
	if math.Abs(s-r.last[u]) <= nearTie || math.Abs(s-r.last[v]) <= nearTie {
		return true
	}
	i, ok := r.find(u, v)
	return ok && (r.tied(i) || threshold > 0 && math.Abs(float64(r.probability[i])-threshold) <= nearTie+edges)
}

// find returns which of the candidates a pair is.
func (r *refinement) find(u, v int64) (int, bool) {
	return slices.BinarySearchFunc(r.candidates.Edges, [2]int32{int32(u), int32(v)}, func(a, b [2]int32) int {
		return slices.Compare(a[:], b[:])
	})
}

// compareRefined holds a pipeline's outputs against the reference's. Edges that one
// has and the other has not must be near ties; probabilities are compared on the
// edges of both, and the classes with those of the classifier on the very edges
// that the file found.
func (o *Options) compareRefined(m *Model, r *refinement, x ort.Tensor, got map[string]ort.Tensor) ([]Output, *Error, error) {
	index, p, existing := got[onnx.OutputRefinedIndex], got[onnx.OutputRefinedProb], got[onnx.OutputRefinedExisting]
	size := int64(len(p.F32))
	if index.Check() != nil || existing.Check() != nil || !slices.Equal(index.Shape, []int64{2, size}) || !slices.Equal(existing.Shape, []int64{size}) {
		return nil, &Error{Output: onnx.OutputRefinedIndex, Index: -1, Detail: fmt.Sprintf("has the shape %v beside %d probabilities and existing %v", index.Shape, size, existing.Shape)}, nil
	}
	want, within := r.outputs, onnx.Exact
	within.Edges = m.Within.Edges
	wantIndex, wantP := want[onnx.OutputRefinedIndex].I64, want[onnx.OutputRefinedProb].F32
	w := len(wantP)
	edges := Output{Name: onnx.OutputRefinedIndex, OK: true}
	var bad *Error
	differ := func(u, v int64, detail string) {
		if min(u, v) >= 0 && max(u, v) < int64(len(r.last)) && r.excused(u, v, o.Refinement.Threshold, within.Edges) {
			return
		}
		edges.MaxAbs++
		edges.OK = false
		if bad == nil {
			bad = &Error{Output: onnx.OutputRefinedIndex, Index: -1, Detail: fmt.Sprintf("%s the edge %d-%d, which is no near tie", detail, u, v)}
		}
	}
	var a, b []float32 // probabilities of the edges of both
	same := true
	i, j := 0, 0
	for i < int(size) || j < w {
		order := 0
		switch {
		case i == int(size):
			order = 1
		case j == w:
			order = -1
		default:
			order = slices.Compare([]int64{index.I64[i], index.I64[int(size)+i]}, []int64{wantIndex[j], wantIndex[w+j]})
		}
		switch {
		case order < 0:
			differ(index.I64[i], index.I64[int(size)+i], "has")
			same = false
			i++
		case order > 0:
			differ(wantIndex[j], wantIndex[w+j], "lacks")
			same = false
			j++
		default:
			if existing.I64[i] != want[onnx.OutputRefinedExisting].I64[j] {
				differ(-1, -1, fmt.Sprintf("has %d as refined_existing of edge %d, not", existing.I64[i], i))
			}
			if c, ok := r.find(wantIndex[j], wantIndex[w+j]); ok && math.Abs(float64(p.F32[i]-wantP[j])) > nearTie+within.Edges && r.tied(c) {
				same = false // chosen by one of its nodes here, by both there
			}
			a, b = append(a, p.F32[i]), append(b, wantP[j])
			i, j = i+1, j+1
		}
	}
	n := int64(len(a))
	got, want = maps.Clone(got), maps.Clone(want)
	got[onnx.OutputRefinedProb], want[onnx.OutputRefinedProb] = ort.Float32s(a, n), ort.Float32s(b, n)
	if (!same || within.Edges > 0) && bad == nil {
		classes, err := o.classifyRefined(m, x, index, p.F32)
		if err != nil {
			return nil, nil, err
		}
		maps.Copy(want, classes)
	}
	names := []string{"logits", "probabilities"}
	if same || !o.Refinement.Together { // where one edge more changes the probabilities of others
		names = append(names, onnx.OutputRefinedProb)
	}
	outputs, worst := compareOutputs(got, want, names, within)
	return append(outputs, edges), bad.and(worst), nil
}

// ComparePipeline holds a pipeline's outputs against the refinement by the Compile
// forward pass.
func (o *Options) ComparePipeline(m *Model, in, got map[string]ort.Tensor) ([]Output, *Error, error) {
	r, err := o.refine(m, in)
	if err != nil {
		return nil, nil, fmt.Errorf("the refinement by the compiled forward pass: %w", err)
	}
	return o.compareRefined(m, r, in["x"], got)
}

// pipelineInputs are those of a case with that many neighbours.
func (m *Model) pipelineInputs(c Example, k int) map[string]ort.Tensor {
	in := m.inputs(c, ort.Tensor{})
	in[onnx.InputK] = ort.Int64s([]int64{int64(k)}, 1)
	return in
}

// clearCase shrinks a case, and k, until no choice of the refinement is a near tie:
// what is kept as test data must come out the same on every machine.
func (o *Options) clearCase(ctx context.Context, m *Model, c Example) (map[string]ort.Tensor, *refinement, error) {
	for n := c.Nodes(); ; n /= 2 {
		for k := o.Refinement.K; k >= min(1, o.Refinement.K); k-- {
			if err := ctx.Err(); err != nil {
				return nil, nil, err
			}
			in := m.pipelineInputs(c, k)
			r, err := o.refine(m, in)
			if err != nil || r.clear(o.Refinement.Threshold) || n <= 1 {
				return in, r, err
			}
		}
		c.ExampleInputs = c.induced(lists.Of(n/2, func(i int) int { return i }))
	}
}

// checkPipeline is [Options.checkParity] of one case of the pipeline.
func (o *Options) checkPipeline(ctx context.Context, m *Model, c Example, s *ort.Session, files map[string][]byte, report *Report) (*Error, error) {
	in := m.pipelineInputs(c, o.Refinement.K)
	if c.Name == testCase {
		clear, r, err := o.clearCase(ctx, m, c)
		if err == nil {
			if o.Refinement.Together { // else near ties would leave probabilities unchecked
				in = clear
			}
			if clear, err = m.modelInputs(clear); err == nil {
				err = m.addTestCase(files, false, manifest.TestCase{Name: testCase}, clear, r.outputs)
			}
		}
		if err != nil {
			return nil, fmt.Errorf("the test data of the pipeline: %w", err)
		}
	}
	if s == nil {
		return nil, nil
	}
	given, err := m.modelInputs(in)
	if err != nil {
		return nil, err
	}
	got, err := s.Run(given)
	if err != nil {
		return nil, fmt.Errorf("%s.onnx in onnxruntime on %q: %w", m.Name, c.Name, err)
	}
	outputs, bad, err := o.ComparePipeline(m, in, got)
	return report.add(Case{Model: m.Name, Case: c.Name, Runtime: "onnxruntime", Nodes: c.Nodes(), Edges: int(c.Edges.Shape[1]), Outputs: outputs}, bad), err
}
