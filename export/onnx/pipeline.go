package onnx

import (
	"strings"

	"github.com/gsrc-dev/gsrc/export/onnxpb"
	"github.com/gsrc-dev/gsrc/ir"
)

// Refinement says how a refined graph follows from embeddings and scores.
type Refinement struct {
	// K is how many of each node's nearest neighbours the training looked at: what
	// the parity check uses. The file takes k as an input.
	K int
	// Similarity is candidates.similarity, TwoStep candidates.two_step. The pipeline knows
	// one similarity at a time: see [Refinement.Elsewhere].
	Similarity string
	TwoStep    int
	// Mutual makes a pair that is no edge a candidate only where each of its nodes
	// is among the nearest of the other.
	Mutual bool
	// Candidates with a probability below Threshold are no edges.
	Threshold float64
	// Weighted tells that an edge of the refined graph weighs its probability;
	// otherwise it weighs 1.
	Weighted bool
	// SameClass is model.edges.same_class: the refined graph that is written has edges between
	// nodes of one class. Classifiers read it without that.
	SameClass bool
	// Rows is the function whose result neighbours are searched by, @encode if empty.
	Rows string
	// Together tells that @probability gives all candidates their probabilities, not @score pairs.
	Together bool
}

// Elsewhere says which of the candidates the pipeline cannot find, "" where it finds all.
func (r Refinement) Elsewhere() string {
	if strings.Contains(r.Similarity, "+") {
		return "candidates are near by " + r.Similarity + " (candidates.similarity), and neighbours are searched by one of these there"
	}
	return ""
}

// MaxPipelineNodes is how many nodes a graph may have that pipeline.onnx refines.
// All pairs are compared: at the bound 2^30 of them, some 270 GFLOP with embeddings
// of 128 columns, in 16 blocks of 256 MiB. The file refuses larger graphs.
const MaxPipelineNodes = 1 << 15

const (
	MetadataTwoStep = "two_step" // of a pipeline: candidates.two_step
	InputK          = "k"
	// OutputSimilarityRows, of an encoder, are rows of the nodes by whose cosine neighbours
	// are searched, f32[N,·]; where there are none, it is the embedding.
	OutputSimilarityRows = "similarity_rows"
	// OutputEdgeCounts, of an encoder that counts edges by their weights in the data, is what
	// each counts, f32[num_edges], by which the probability of an existing edge is multiplied.
	OutputEdgeCounts      = "edge_counts"
	OutputRefinedIndex    = "refined_edge_index"
	OutputRefinedProb     = "refined_probability"
	OutputRefinedExisting = "refined_existing"
	refinedEdges          = "num_refined_edges"
)

// PipelineParts are the functions that a pipeline is made of. Score judges pairs of nodes apart or,
// without it, Weigh all candidates, whose weights depend on one another. Encode gives an embedding,
// rows to search neighbours by, or both.
type PipelineParts struct{ Encode, Score, Weigh, Classify *ir.Func }

// Pipeline writes the functions and what is between them as one model: embeds the
// nodes, finds candidates for edges, scores them, and classifies on the refined graph.
func Pipeline(parts PipelineParts, params map[string][]float32, r Refinement, o ModelOptions) (_ *onnxpb.ModelProto, err error) {
	docs := o.Docs
	b := newBuilder(o.Name, o.Doc)
	b.opset = o.Opset
	for _, name := range []string{"logits", "probabilities", OutputRefinedIndex, OutputRefinedProb, OutputRefinedExisting} {
		if err := b.reserve(name); err != nil {
			return nil, err
		}
	}
	enc := newEmitter(b, parts.Encode, params, o)
	inputs := o // the encoder takes no constants, and its weights are part of the model
	inputs.Constants, inputs.NoEdgeWeight = nil, false
	defer emitted(&err)
	enc.inputs(inputs)
	k := b.input(InputK, docs[InputK], Int64Type, fixed(1))
	b.under("encoder", enc.run)
	var h tensor
	if r := enc.fn.Result("embedding"); r != nil {
		h = enc.lookup(r).t
	}
	s := search{b: b, list: enc.list, nodes: boundedNodes(b, enc.list.nodes)}
	b.in("k", func() {
		k = b.binary("Add", k, b.refusal(b.compare("Less", k, b.int64Const(0)), "k_is_not_negative", "fails where k is negative"))
	})
	rows := h
	if own := enc.fn.Result(OutputSimilarityRows); own != nil {
		rows = enc.lookup(own).t
	}
	c := s.candidates(s.nearest(rows, k), r.TwoStep, r.Mutual)
	var p tensor
	if parts.Score != nil {
		p = scoreCandidates(enc, parts.Score, params, h, c, o)
	} else {
		p = weighCandidates(enc, parts.Weigh, params, h, c, o)
	}
	b.in("refined", func() {
		if counts := enc.fn.Result(OutputEdgeCounts); counts != nil {
			p = c.judged(b, p, enc.perEdge(enc.lookup(counts).edge))
		}
		if r.Threshold > 0 {
			p = c.atLeast(b, p, float32(r.Threshold))
		}
	})
	cls := newEmitter(b, parts.Classify, params, o)
	bindRefined(cls, enc, c, p, r.Weighted && !o.NoEdgeWeight)
	b.under("classifier", cls.run)
	for _, r := range cls.fn.Results {
		b.output(cls.lookup(r.Value).t, r.Name, docs[r.Name])
	}
	edges := named(refinedEdges)
	output := func(t tensor, name string, dims ...dim) {
		t.dims = dims
		b.output(t, name, docs[name])
	}
	output(c.pairs(b), OutputRefinedIndex, fixed(2), edges)
	output(p, OutputRefinedProb, edges)
	var existing tensor
	b.in("refined", func() { existing = b.cast(c.existing, Int64Type) })
	output(existing, OutputRefinedExisting, edges)
	b.nameSizes()
	return b.finish(o), nil
}

// scoreCandidates writes the scorer on the candidates: the probability of each. One that
// judges edges reads the encoder's graph and features.
func scoreCandidates(enc *emitter, fn *ir.Func, params map[string][]float32, h tensor, c *candidates, o ModelOptions) tensor {
	b := enc.builder
	e := newEmitter(b, fn, params, o)
	e.graph, e.list, e.forward, e.nodes = GraphArg(fn), enc.list, enc.forward, enc.nodes
	for _, a := range e.fn.Args {
		switch v, isConstant := o.Constants[a.Name]; {
		case a == e.graph:
		case e.overEdges(a):
			e.values[a] = value{edge: &edgeValue{base: enc.weight}}
		case a.Name == "pairs":
			e.values[a] = value{t: c.pairs(b)}
		case isConstant:
			e.values[a] = value{t: e.scalar(float64(v))}
		default:
			e.values[a] = e.encoded(enc, a, &h)
		}
	}
	b.under("scorer", e.run)
	p := e.lookup(e.fn.Result("probability")).t
	if e.graph != nil {
		p = c.ofEdges(b, e.perEdge(e.lookup(e.fn.Result("edge_probability")).edge), p)
	} else {
		old := e.lookup(e.fn.Result("probability_existing"))
		p = b.op("Where", float32Type, c.existing.dims, []tensor{c.existing, old.t, p})
	}
	return b.rename(p, "candidates/probability", "probability of each candidate, by whether it exists already")
}

// weighCandidates writes what gives all candidates their probabilities, from the graph that they are.
func weighCandidates(enc *emitter, fn *ir.Func, params map[string][]float32, h tensor, c *candidates, o ModelOptions) (p tensor) {
	b := enc.builder
	e := newEmitter(b, fn, params, o)
	e.nodes, e.graph = enc.nodes, GraphArg(fn)
	e.connectPairs(enc, c, "candidate")
	for _, a := range e.fn.Args {
		switch {
		case a == e.graph:
		case e.overEdges(a):
			old := b.cast(c.existing, float32Type)
			old = b.rename(b.concat(0, old, old), "candidates/old", "ones of the candidates that edge_index holds, in both directions")
			e.values[a], e.weighted = value{edge: &edgeValue{base: &old}}, true
		default:
			e.values[a] = e.encoded(enc, a, &h)
		}
	}
	b.under("scorer", e.run)
	b.in("candidates", func() {
		both := e.perEdge(e.lookup(e.fn.Result("probability")).edge)
		p = b.op("Slice", float32Type, c.lower.dims, []tensor{both, b.int64s(0), b.sizeOf(c.lower, 0), b.int64s(0)})
	})
	return b.rename(p, "candidates/probability", "probability of each candidate, beside the others")
}

// encoded is what an argument reads that the encoder has: the features or, unless h is nil, the embedding.
func (e *emitter) encoded(enc *emitter, a *ir.Value, h *tensor) value {
	switch {
	case a.Name == SparseArg:
		return enc.values[enc.fn.Arg(SparseArg)]
	case a.Name == "embedding" && h != nil:
		return value{t: *h}
	}
	panic(emitErrorf("@%s has the argument %s, which nothing in the pipeline gives", e.fn.Name, a.Name))
}

// connectPairs makes pairs of nodes the graph of e, in both directions.
func (e *emitter) connectPairs(enc *emitter, c *candidates, scope string) {
	b := e.builder
	b.in(scope, func() {
		both := func(x, y tensor, name, doc string) tensor {
			return b.rename(b.concat(0, x, y), scope+"/"+name, doc+" of the "+scope+" edges, in both directions")
		}
		e.list = &edgeList{b: b, src: both(c.lower, c.upper, "source", "sources"), dst: both(c.upper, c.lower, "target", "targets"),
			nodes: enc.list.nodes, sources: enc.list.nodes, nodeDim: enc.list.nodeDim, lower: c.lower, upper: c.upper}
		e.list.into = e.list.dst
	})
	b.under(scope, func() {
		if e.lowering == Scatter {
			e.forward = newScatter(e.list)
		} else {
			e.forward = newBuckets(e.list)
		}
	})
}

// bindRefined gives the classifier its arguments: the encoder's features, and the
// refined graph in both directions.
func bindRefined(cls, enc *emitter, c *candidates, p tensor, weighted bool) {
	b := cls.builder
	cls.nodes = enc.nodes
	cls.graph = GraphArg(cls.fn)
	if g := cls.graph; g != nil {
		cls.dims = map[ir.Dim]string{g.Type.Dims[0]: "num_nodes"}
	}
	for _, a := range cls.fn.Args {
		switch {
		case a == cls.graph:
			cls.connectPairs(enc, c, "refined")
		case cls.overEdges(a):
			w := &edgeValue{}
			if weighted {
				w.base, cls.weighted = new(b.rename(b.concat(0, p, p), "refined/weight", "weights of the refined edges, in both directions")), true
			}
			cls.values[a] = value{edge: w}
		default:
			cls.values[a] = cls.encoded(enc, a, nil)
		}
	}
}
