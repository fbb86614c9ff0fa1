package export

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/gsrc-dev/gsrc/export/onnxpb"
	"github.com/gsrc-dev/gsrc/ir"
)

// pipeline.onnx does in one file what the encoder, a search for near neighbours,
// the scorer and the classifier do one after another: from features and graph to
// the refined graph, with the probability of each edge, and to the classes of the
// nodes on it.

// Refinement says how a refined graph follows from embeddings and scores.
type Refinement struct {
	// K is how many of each node's nearest neighbours the training looked at: what
	// the parity check uses. The file takes k as an input.
	K int
	// Mutual makes a pair that is no edge a candidate only where each of its nodes
	// is among the nearest of the other.
	Mutual bool
	// Candidates with a probability below Threshold are no edges.
	Threshold float64
	// Weighted tells that an edge of the refined graph weighs its probability;
	// otherwise it weighs 1.
	Weighted bool
	// Judged tells that the encoder's edge weights are evidence for the edges, by
	// which the probabilities of those that exist are multiplied.
	Judged bool
}

// PipelineMode says whether pipeline.onnx is written.
type PipelineMode string

const (
	PipelineAuto PipelineMode = "auto" // where the model allows it
	PipelineOn   PipelineMode = "on"   // or else it is an error
	PipelineOff  PipelineMode = "off"
)

// ParsePipelineMode reads a mode; the empty string is PipelineAuto.
func ParsePipelineMode(s string) (PipelineMode, error) {
	switch m := PipelineMode(s); m {
	case "":
		return PipelineAuto, nil
	case PipelineAuto, PipelineOn, PipelineOff:
		return m, nil
	}
	return "", fmt.Errorf("unknown pipeline mode %q: choose auto, on or off", s)
}

// MaxPipelineNodes is how many nodes a graph may have that pipeline.onnx refines.
// All pairs are compared: at the bound 2^30 of them, some 270 GFLOP with embeddings
// of 128 columns, in 16 blocks of 256 MiB. The file refuses larger graphs.
const MaxPipelineNodes = 1 << 15

const (
	pipelineName          = "pipeline"
	inputK                = "k"
	outputRefinedIndex    = "refined_edge_index"
	outputRefinedProb     = "refined_probability"
	outputRefinedExisting = "refined_existing"
	taskPipeline          = "graph-refinement"
	refinedEdges          = "num_refined_edges"
)

var pipelineRole = role{pipelineName, "classify", taskPipeline, "Refines a graph and classifies its nodes: embeds them, finds candidates for edges among near neighbours, scores them, and classifies on the refined graph."}

// parts are the functions that a pipeline is made of.
type parts struct{ encode, score, classify *ir.Func }

// pipelineParts finds them, or says why there is no pipeline.
func (o *BuildOptions) pipelineParts(programs []built) (parts, error) {
	var p parts
	for _, m := range programs {
		switch m.name {
		case "encoder":
			p.encode = m.fn
		case "scorer":
			p.score = m.fn
		case "classifier":
			p.classify = m.fn
		}
	}
	switch {
	case o.Refinement == nil || p.encode == nil || p.score == nil || p.classify == nil:
		return p, fmt.Errorf("the model classifies on the graph as it is, so there is nothing to refine")
	case batchArg(p.classify) != nil:
		return p, fmt.Errorf("the model classifies whole graphs, whose neighbours are searched in each graph by itself")
	case p.encode.Arg("x_struct") != nil:
		return p, fmt.Errorf("the encoder reads x_struct, the DeepWalk embedding of its training graph, which other graphs do not have; train with deepwalk.width = 0")
	case o.Lowering == Dense:
		return p, fmt.Errorf("the dense lowering has no edge_index; take buckets, host-buckets or flat")
	case o.Precision == INT8:
		return p, fmt.Errorf("products in 8 bits round similarities, so that chance would choose among near neighbours; take fp16 or leave --int8 out")
	case o.Sample.nodes() > MaxPipelineNodes:
		return p, fmt.Errorf("the training graph has %d nodes, and all pairs of nodes are compared: at most %d", o.Sample.nodes(), MaxPipelineNodes)
	case graphArg(p.encode) == nil:
		return p, fmt.Errorf("the encoder reads no graph")
	}
	for _, want := range []struct {
		fn   *ir.Func
		args []string
		outs []string
	}{
		{p.encode, []string{"x"}, []string{"embedding"}},
		{p.score, []string{"embedding", "pairs"}, []string{"probability", "probability_existing"}},
		{p.classify, []string{"x"}, []string{"logits", "probabilities"}},
	} {
		for _, name := range want.args {
			if want.fn.Arg(name) == nil {
				return p, fmt.Errorf("@%s has no argument %s", want.fn.Name, name)
			}
		}
		for _, name := range want.outs {
			if result(want.fn, name) == nil {
				return p, fmt.Errorf("@%s gives no %s", want.fn.Name, name)
			}
		}
	}
	return p, nil
}

func result(fn *ir.Func, name string) *ir.Value {
	for _, r := range fn.Results {
		if r.Name == name {
			return r.Value
		}
	}
	return nil
}

// addPipeline appends the pipeline to the models where it is wanted and can be.
func (o *BuildOptions) addPipeline(models, programs []built) ([]built, error) {
	if o.Pipeline == PipelineOff {
		return models, nil
	}
	p, why := o.pipelineParts(programs)
	if why != nil {
		if o.Pipeline == PipelineOn {
			return nil, fmt.Errorf("pipeline.onnx cannot be written: %w", why)
		}
		if p.encode != nil {
			o.Log("no pipeline.onnx: %v", why)
		}
		return models, nil
	}
	m := built{role: pipelineRole, fn: p.classify, parts: &p, constants: map[string]float32{}, lowering: o.Lowering, sparse: o.SparseX && p.encode.Arg(sparseArg) != nil, symmetric: o.Symmetrize}
	if m.lowering == HostBuckets {
		m.lowering = Buckets // the host does not know the refined graph
	}
	for _, part := range models {
		for name, v := range part.constants {
			m.constants[name] = v
		}
	}
	g := graphArg(p.encode)
	m.weighted = slices.ContainsFunc(p.encode.Args, func(a *ir.Value) bool { return overEdges(a, g) })
	if o.Refinement.Judged && !m.weighted {
		return nil, fmt.Errorf("pipeline.onnx: existing edges are judged by evidence, and the encoder takes none")
	}
	var err error
	if m.model, err = o.pipelineModel(&m); err != nil {
		return nil, fmt.Errorf("pipeline.onnx: %w", err)
	}
	if err := o.seal(&m); err != nil {
		return nil, err
	}
	o.Log("lowered @%s, @%s and @%s to pipeline.onnx: %d nodes, %.1f MiB", p.encode.Name, p.score.Name, p.classify.Name, len(m.model.Graph.Node), float64(len(m.data)+len(m.weights))/(1<<20))
	return append(models, m), nil
}

// pipelineModel writes the three functions and what is between them as one graph.
func (o *BuildOptions) pipelineModel(m *built) (*onnxpb.ModelProto, error) {
	r := o.Refinement
	mo := ModelOptions{Lowering: m.lowering, SparseX: m.sparse, Symmetrize: m.symmetric, Opset: o.Opset, Name: o.Model + "_" + m.name, Doc: m.doc,
		Docs: m.docs(o), Metadata: o.metadata(*m), ProducerVersion: o.Version}
	docs := mo.Docs
	b := newBuilder(mo.Name, mo.Doc)
	b.opset = o.Opset
	for _, name := range []string{"logits", "probabilities", outputRefinedIndex, outputRefinedProb, outputRefinedExisting} {
		if err := b.reserve(name); err != nil {
			return nil, err
		}
	}
	enc := newEmitter(b, m.parts.encode, m.lowering, o.Params)
	enc.precision = o.Precision
	err := enc.inputs(mo)
	if err != nil {
		return nil, err
	}
	k := b.input(inputK, docs[inputK], int64Type, fixed(1))
	b.under("encoder", func() { err = enc.run() })
	if err != nil {
		return nil, err
	}
	h, err := enc.lookup(result(enc.fn, "embedding"))
	if err != nil {
		return nil, err
	}
	s := search{b: b, list: enc.list, nodes: boundedNodes(b, enc.list.nodes)}
	b.in("k", func() {
		k = b.binary("Add", k, b.refusal(b.compare("Less", k, b.int64Const(0)), "k_is_not_negative", "fails where k is negative"))
	})
	near := s.nearest(h.t, k)
	c := s.candidates(near, r.Mutual)
	p, err := o.scores(m, b, h.t, c)
	if err != nil {
		return nil, err
	}
	b.in("refined", func() {
		if r.Judged {
			p = c.judged(b, p, *enc.weight)
		}
		if r.Threshold > 0 {
			p = c.atLeast(b, p, float32(r.Threshold))
		}
	})
	cls := newEmitter(b, m.parts.classify, m.lowering, o.Params)
	cls.precision = o.Precision
	if err := o.bindRefined(cls, enc, c, p); err != nil {
		return nil, err
	}
	b.under("classifier", func() { err = cls.run() })
	if err != nil {
		return nil, err
	}
	for _, r := range cls.fn.Results {
		v, err := cls.lookup(r.Value)
		if err != nil {
			return nil, err
		}
		b.output(v.t, r.Name, docs[r.Name], "Identity")
	}
	edges := named(refinedEdges)
	output := func(t tensor, name string, dims ...dim) {
		t.dims = dims
		b.output(t, name, docs[name], "Identity")
	}
	output(c.pairs(b), outputRefinedIndex, fixed(2), edges)
	output(p, outputRefinedProb, edges)
	var existing tensor
	b.in("refined", func() { existing = b.cast(c.existing, int64Type) })
	output(existing, outputRefinedExisting, edges)
	return b.finish(mo), nil
}

// scores writes the scorer on the candidates: the probability of each.
func (o *BuildOptions) scores(m *built, b *builder, h tensor, c *candidates) (tensor, error) {
	e := newEmitter(b, m.parts.score, m.lowering, o.Params)
	e.precision = o.Precision
	for _, a := range e.fn.Args {
		switch v, isConstant := m.constants[a.Name]; {
		case a.Name == "embedding":
			e.values[a] = value{t: h}
		case a.Name == "pairs":
			e.values[a] = value{t: c.pairs(b)}
		case isConstant:
			e.values[a] = value{t: e.scalar(float64(v))}
		default:
			return tensor{}, fmt.Errorf("@%s has the argument %s, which nothing in the pipeline gives", e.fn.Name, a.Name)
		}
	}
	var err error
	b.under("scorer", func() { err = e.run() })
	if err != nil {
		return tensor{}, err
	}
	fresh, err := e.lookup(result(e.fn, "probability"))
	if err != nil {
		return tensor{}, err
	}
	old, err := e.lookup(result(e.fn, "probability_existing"))
	if err != nil {
		return tensor{}, err
	}
	p := b.op("Where", float32Type, c.existing.dims, []tensor{c.existing, old.t, fresh.t})
	return b.rename(p, "candidates/probability", "probability of each candidate, by whether it exists already"), nil
}

// bindRefined gives the classifier its arguments: the encoder's features, and the
// refined graph in both directions.
func (o *BuildOptions) bindRefined(cls, enc *emitter, c *candidates, p tensor) error {
	b := cls.builder
	cls.nodes = enc.nodes
	cls.graph = graphArg(cls.fn)
	if g := cls.graph; g != nil {
		cls.dims = map[ir.Dim]string{g.Type.Dims[0]: "num_nodes"}
	}
	for _, a := range cls.fn.Args {
		switch {
		case a == cls.graph:
			b.in("refined", func() {
				both := func(x, y tensor, name, doc string) tensor {
					return b.rename(b.concat(0, x, y), "refined/"+name, doc)
				}
				cls.list = &edgeList{b: b, src: both(c.lower, c.upper, "source", "sources of the refined edges, in both directions"),
					dst: both(c.upper, c.lower, "target", "targets of the refined edges, in both directions"), nodes: enc.list.nodes, sources: enc.list.nodes, nodeDim: enc.list.nodeDim}
				cls.list.into = cls.list.dst
			})
			b.under("refined", func() {
				if cls.lowering == Flat {
					cls.forward = newFlat(cls.list)
				} else {
					cls.forward = newBuckets(cls.list)
				}
			})
		case cls.overEdges(a):
			w := &edgeValue{}
			if o.Refinement.Weighted && !o.NoEdgeWeight {
				t := b.rename(b.concat(0, p, p), "refined/weight", "weights of the refined edges, in both directions")
				w.base, cls.weighted = &t, true
			}
			cls.values[a] = value{edge: w}
		case a.Name == sparseArg:
			cls.values[a] = enc.values[enc.fn.Arg(sparseArg)]
		default:
			return fmt.Errorf("@%s has the argument %s, which nothing in the pipeline gives", cls.fn.Name, a.Name)
		}
	}
	return nil
}

// pipelineMetadata describes how the pipeline refines.
func (o *BuildOptions) pipelineMetadata(md map[string]string) {
	r := o.Refinement
	md["k"] = strconv.Itoa(r.K)
	md["mutual"] = strconv.FormatBool(r.Mutual)
	md["threshold"] = strconv.FormatFloat(r.Threshold, 'g', -1, 64)
	md["refined_weight"] = "1"
	if r.Weighted && !o.NoEdgeWeight {
		md["refined_weight"] = "probability"
	}
	md["max_nodes"] = strconv.Itoa(MaxPipelineNodes)
}
