package onnx

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/gsrc-dev/gsrc/export/onnxpb"
	"github.com/gsrc-dev/gsrc/ir"
)

// ModelOptions say how a function is written.
type ModelOptions struct {
	// Lowering of message passing; DegreeBuckets if empty.
	Lowering Lowering
	// NoEdgeWeight leaves the input edge_weight out: every edge weighs 1.
	NoEdgeWeight bool
	// SparseX takes the argument x as a matrix in CSR: the inputs x_indptr, int64
	// [num_nodes+1], x_indices, int64 [num_stored], and x_values, f32 [num_stored].
	SparseX bool
	// Symmetrize makes the graph undirected inside: edge_index may list an edge in
	// either direction or in both, and more than once; see [Symmetrize].
	Symmetrize bool
	// Opset is the version of the operator set, 17 to 21; OpsetVersion if 0.
	Opset int
	// Precision of the stored weights; FP32 if empty. The dense form takes no other.
	Precision Precision
	// Constants replaces scalar arguments by numbers, such as the frozen bounds
	// of the edge probabilities.
	Constants map[string]float32
	// Name and Doc describe the graph; Name is the function's if empty.
	Name, Doc string
	// Metadata becomes metadata_props, sorted by key.
	Metadata map[string]string
	// Docs holds the doc strings of inputs and outputs by name.
	Docs map[string]string
	// ProducerVersion is written beside the producer's name.
	ProducerVersion string
}

var ErrDensePrecision = errors.New("the dense form is for runtimes with few operators and stores weights in float32 alone; take degree-buckets, precomputed-buckets or scatter for fp16 and int8")

// EvidencePrefix begins the names of a scorer's outputs that are evidence for pairs, by
// source; those for edges have edge_ in front of it.
const EvidencePrefix = "evidence_"

// The names of what a graph argument becomes.
const (
	InputEdgeIndex  = "edge_index"
	InputEdgeWeight = "edge_weight"
	InputAdjacency  = "adjacency"
)

// InputKnownLabels is the classifier's input f32 [num_nodes,classes] for the labels that are
// known: a one in the column of a node's class, zeros for nodes whose labels are not.
const InputKnownLabels = "known_labels"

// ArgSelfLoops is the argument f32[N] of functions that read the weights of self-loops. It is no
// input: edge_index lists the loops, and edge_weight weighs them.
const ArgSelfLoops = "self_loops"

// Model writes an IR function of tensor operations as an ONNX model. params
// holds the parameters by name, row-major. A graph argument becomes the input
// edge_index, int64 [2,num_edges] (or adjacency, f32 [num_nodes,num_nodes], in
// the dense form), and an argument over its edges edge_weight, f32 [num_edges];
// [PrecomputedBuckets] adds the tables. Other arguments keep their names. Equal arguments give equal bytes.
func Model(fn *ir.Func, params map[string][]float32, o ModelOptions) (*onnxpb.ModelProto, error) {
	m, _, err := StagedModel(fn, params, o)
	return m, err
}

// StagedModel is Model, and tells the model's stages, nil where it has none.
func StagedModel(fn *ir.Func, params map[string][]float32, o ModelOptions) (_ *onnxpb.ModelProto, _ *Stages, err error) {
	if o.Lowering, err = ParseLowering(string(o.Lowering)); err != nil {
		return nil, nil, err
	}
	if o.Lowering == Auto {
		return nil, nil, fmt.Errorf("@%s: the lowering auto needs a graph to choose by; name one", fn.Name)
	}
	if o.Opset, err = CheckOpset(o.Opset); err != nil {
		return nil, nil, err
	}
	if o.Precision, err = ParsePrecision(string(o.Precision)); err != nil {
		return nil, nil, err
	}
	if o.Lowering == Dense && o.Precision != FP32 {
		return nil, nil, fmt.Errorf("@%s: %w", fn.Name, ErrDensePrecision)
	}
	e := newEmitter(newBuilder(cmp.Or(o.Name, fn.Name), o.Doc), fn, params, o)
	e.opset = o.Opset
	defer emitted(&err)
	e.inputs(o)
	for _, r := range fn.Results {
		if err := e.reserve(r.Name); err != nil {
			return nil, nil, fmt.Errorf("@%s: %w", fn.Name, err)
		}
	}
	values := map[string]tensor{}
	e.under(partName(fn.Name), func() { e.results(values) })
	for _, r := range fn.Results {
		e.output(values[r.Name], r.Name, o.Docs[r.Name])
	}
	e.nameSizes()
	m := e.finish(o)
	if plan, err := planStages(fn); err == nil && !e.dense() && !o.Symmetrize {
		s := e.stages(plan)
		if s != nil {
			s.addSums(m.Graph, plan, e.sums, e.weight)
		}
		return m, s, nil
	}
	return m, e.cosine(m), nil
}

// results emits the operations, and returns the results by name in values.
func (e *emitter) results(values map[string]tensor) {
	e.run()
	for _, r := range e.fn.Results {
		if t := r.Value.Type; t.IsGraph() || e.overEdges(r.Value) && (e.dense() || t.Rank() > 1) {
			panic(emitErrorf("@%s: result %s is %s, which the %s lowering cannot return", e.fn.Name, r.Name, t, e.lowering))
		}
		v := e.lookup(r.Value)
		if v.edge != nil {
			v.t = e.ofGiven(v.edge)
		}
		values[r.Name] = v.t
	}
}

// ofGiven returns values of the edges that edge_index lists, f32 [num_edges]; 0 of
// self-loops.
func (e *emitter) ofGiven(v *edgeValue) tensor {
	t, l := e.perEdge(v), e.list
	if l.entry.name != "" {
		t = e.gather(e.concat(0, t, e.floats("const", []float32{0}, 1)), l.entry)
	} else if l.loop.name != "" {
		t = e.op("Where", float32Type, t.dims, []tensor{l.loop, e.floatConst(0), t})
	}
	t.dims = []dim{named("num_edges")}
	return t
}

// finish returns the graph as a model.
func (b *builder) finish(o ModelOptions) *onnxpb.ModelProto {
	b.prune()
	model := &onnxpb.ModelProto{
		IrVersion: IRVersion(b.opset), ProducerName: "gsrc", ProducerVersion: o.ProducerVersion,
		DocString: o.Doc, Graph: b.graph,
		OpsetImport: []*onnxpb.OperatorSetIdProto{{Version: int64(b.opset)}},
	}
	for _, k := range slices.Sorted(maps.Keys(o.Metadata)) {
		model.MetadataProps = append(model.MetadataProps, &onnxpb.StringStringEntryProto{Key: k, Value: o.Metadata[k]})
	}
	return model
}

// inputs declares the graph's inputs and builds what message passing shares.
func (e *emitter) inputs(o ModelOptions) {
	var weights []*ir.Value
	e.batch = BatchArg(e.fn)
	for _, a := range e.fn.Args {
		if a.Type.IsGraph() && a != e.batch {
			if e.graph != nil {
				panic(emitErrorf("@%s has more than one graph argument (%s and %s); one can be written", e.fn.Name, e.graph.Name, a.Name))
			}
			e.graph = a
			e.dims[a.Type.Dims[0]], e.dims[a.Type.Dims[1]] = "num_nodes", "num_edges"
		}
	}
	var index, ids *tensor
	for _, a := range e.fn.Args {
		switch {
		case a == e.batch:
			ids = new(e.batchInput(o))
		case a.Type.IsGraph():
			index = new(e.graphInput(o))
		case e.overEdges(a):
			weights = append(weights, a)
		case a.Name == ArgSelfLoops:
		default:
			e.plainInput(a, o)
		}
	}
	e.checkPairs()
	for name := range o.Constants {
		if e.fn.Arg(name) == nil {
			panic(emitErrorf("@%s has no argument %q to make a constant of", e.fn.Name, name))
		}
	}
	for _, w := range weights {
		if w.Type.Rank() != 1 {
			panic(emitErrorf("@%s: argument %s is %s; of values of the edges a vector can be written", e.fn.Name, w.Name, w.Type))
		}
	}
	if len(weights) > 1 {
		panic(emitErrorf("@%s has %d arguments over the edges; one can be written", e.fn.Name, len(weights)))
	}
	if len(weights) == 1 && !o.NoEdgeWeight {
		e.weighted = true
		if !e.dense() {
			t := e.input(InputEdgeWeight, o.Docs[InputEdgeWeight], float32Type, named("num_edges"))
			e.in("edges", func() {
				e.weight = new(e.ofLength(t, e.sizeOf(*index, 1), "edge_weight_has_every_edge", "fails where edge_weight has not as many numbers as there are edges"))
			})
		}
	}
	if index != nil {
		e.connect(*index, o)
	}
	if ids != nil {
		e.connectBatch(*ids)
	}
	for _, w := range weights {
		v := &edgeValue{}
		switch {
		case e.weight != nil:
			v.base = e.weight
		case e.weighted: // dense
			v.base = index
		}
		e.values[w] = value{edge: v}
	}
}

func (e *emitter) graphInput(o ModelOptions) tensor {
	if e.dense() {
		return e.input(InputAdjacency, o.Docs[InputAdjacency], float32Type, named("num_nodes"), named("num_nodes"))
	}
	return e.input(InputEdgeIndex, o.Docs[InputEdgeIndex], Int64Type, fixed(2), named("num_edges"))
}

func (e *emitter) plainInput(a *ir.Value, o ModelOptions) {
	defer about(a)
	if c, ok := o.Constants[a.Name]; ok {
		if a.Type.Rank() != 0 {
			panic(emitErrorf("@%s: argument %s is %s; only scalars become constants", e.fn.Name, a.Name, a.Type))
		}
		e.values[a] = value{t: e.scalar(float64(c))}
		return
	}
	dtype, err := dtypeOf(a.Type.DType)
	if err != nil {
		panic(emitErrorf("@%s: argument %s: %w", e.fn.Name, a.Name, err))
	}
	dims := make([]dim, a.Type.Rank())
	for i, d := range a.Type.Dims {
		if dims[i] = e.dim(d); !dims[i].isFixed() && dims[i].name == "" {
			dims[i] = named(strings.ToLower(string(d)))
		}
	}
	if e.dense() && len(dims) != 2 {
		panic(emitErrorf("@%s: argument %s is %s; the dense form takes matrices", e.fn.Name, a.Name, a.Type))
	}
	if a.Name == SparseArg && o.SparseX {
		e.sparseInput(a, o)
		return
	}
	t := e.input(a.Name, o.Docs[a.Name], dtype, dims...)
	e.values[a] = value{t: t}
	if e.nodes != nil || e.nodeOnes != nil || len(dims) == 0 || a.Type.Dims[0] != e.nodeDim() {
		return
	}
	if e.dense() {
		if dtype == float32Type {
			e.in("nodes", func() {
				// Ones for every node, without Shape.
				zeros := e.matmul(t, e.floats("zeros", make([]float32, t.width()), t.width(), 1))
				e.nodeOnes = new(e.rename(e.binary("Add", zeros, e.scalar(1)), "nodes/ones", "a one for every node"))
			})
		}
		return
	}
	e.nodes = new(e.rename(e.sizeOf(t, 0), "nodes/count", "number of nodes"))
}

// checkPairs has the file refuse pairs of nodes that there are not: onnxruntime reads
// negative numbers from the end.
func (e *emitter) checkPairs() {
	a := e.fn.Arg("pairs")
	if a == nil || a.Type.DType != ir.I64 || e.nodes == nil {
		return
	}
	b := e.builder
	b.in("pairs", func() {
		pairs := e.values[a].t
		zero := b.refusal(b.outside(pairs, *e.nodes), "pairs_are_within_the_nodes", "fails where pairs holds a number that no node has")
		e.values[a] = value{t: b.rename(b.binary("Add", pairs, zero), "pairs/checked", "pairs of nodes that there are")}
	})
}

// connect builds the aggregation over the graph input.
func (e *emitter) connect(index tensor, o ModelOptions) {
	if e.dense() {
		if o.Symmetrize {
			panic(emitError{ErrDenseSymmetric})
		}
		if e.nodeOnes == nil {
			panic(emitErrorf("@%s has a graph but no features over its nodes", e.fn.Name))
		}
		if e.fn.Arg(ArgSelfLoops) != nil {
			panic(emitErrorf("@%s counts the weights of self-loops, and the adjacency matrix of the dense form has none; take another lowering", e.fn.Name))
		}
		e.forward = &denseSum{b: e.builder, adjacency: index, ones: *e.nodeOnes}
		return
	}
	if e.nodes == nil {
		panic(emitErrorf("@%s has a graph but no features over its nodes", e.fn.Name))
	}
	e.list = newEdgeList(e.builder, index, *e.nodes, named("num_nodes"))
	if a := e.fn.Arg(ArgSelfLoops); a != nil && e.weight != nil {
		e.values[a] = value{t: e.list.loopWeights(*e.weight)}
	}
	if o.Symmetrize {
		e.list, e.weight = e.list.symmetric(e.weight)
		delete(e.dims, e.graph.Type.Dims[1]) // num_edges is of the input
	}
	switch e.lowering {
	case Scatter:
		e.forward = newScatter(e.list)
	case PrecomputedBuckets:
		e.forward = newPrecomputedBuckets(e.list, o.Docs)
	default:
		e.forward = newBuckets(e.list)
	}
}

// maxProtobuf is where protobuf's own limit lies.
const maxProtobuf = 2<<30 - 1

// Marshal returns the bytes of a model, the same for the same model.
func Marshal(m *onnxpb.ModelProto) ([]byte, error) {
	if n := proto.Size(m); n > maxProtobuf {
		return nil, fmt.Errorf("the model takes %d bytes, and an ONNX file holds at most 2 GiB: let more weights go to the file beside it (--external-data)", n)
	}
	return proto.MarshalOptions{Deterministic: true}.Marshal(m)
}
