package onnx

import (
	"fmt"
	"slices"

	"github.com/gsrc-dev/gsrc/ir"
	"github.com/gsrc-dev/gsrc/runtime/ort"
)

// A model that classifies whole graphs takes a batch of them: the union of the
// graphs as x and edge_index, and graph_ids, which says of which graph each node
// is. In the IR that is a block from the nodes to their graphs; here it is a list
// of edges like another, so that a readout is an aggregation in buckets.

const InputGraphIDs = "graph_ids"

// BatchArg returns the argument of a function that leads from nodes to their
// graphs, or nil.
func BatchArg(fn *ir.Func) *ir.Value {
	for _, a := range fn.Args {
		if a.Type.IsBlock() {
			return a
		}
	}
	return nil
}

// batchInput declares graph_ids.
func (e *emitter) batchInput(o ModelOptions) tensor {
	t := e.batch.Type
	if e.dense() {
		panic(emitErrorf("@%s reads out graphs of a batch, which the dense form cannot; take the degree-buckets, precomputed-buckets or scatter lowering", e.fn.Name))
	}
	if t.Entries() != e.nodeDim() || t.Sources() != e.nodeDim() {
		panic(emitErrorf("@%s: argument %s is %s, want graph<G,%[4]s,%[4]s>", e.fn.Name, e.batch.Name, t, e.nodeDim()))
	}
	e.dims[t.Targets()] = "num_graphs"
	return e.input(InputGraphIDs, o.Docs[InputGraphIDs], Int64Type, named("num_nodes"))
}

// connectBatch builds the aggregation over the nodes of each graph.
func (e *emitter) connectBatch(ids tensor) {
	if e.nodes == nil {
		panic(emitErrorf("@%s has a batch but no features over its nodes", e.fn.Name))
	}
	b := e.builder
	b.in("batch", func() {
		ids = b.ofLength(ids, *e.nodes, "graph_ids_has_every_node", "fails where graph_ids has not as many numbers as there are nodes")
		last := b.reduceOp("ReduceMax", b.concat(0, ids, b.int64s(-1)), []int64{0}, true, fixed(1))
		low := b.reduceOp("ReduceMin", b.concat(0, ids, b.int64s(0)), []int64{0}, true, fixed(1))
		last = b.binary("Add", last, b.refusal(b.compare("Less", low, b.int64Const(0)), "graph_ids_are_not_negative", "fails where graph_ids holds a negative number"))
		graphs := b.rename(b.binary("Add", last, b.int64Const(1)), "batch/graphs", "number of graphs, the largest of graph_ids and one")
		src := b.span(b.squeeze(*e.nodes, 0))
		src.dims = ids.dims
		e.members = newBuckets(&edgeList{b: b, src: src, dst: ids, into: ids, nodes: graphs, sources: *e.nodes, nodeDim: named("num_graphs")})
	})
}

// overBatch reports whether an operation aggregates over the batch's graphs.
func (e *emitter) overBatch(op *ir.Op) bool { return e.batch != nil && op.Operands[0] == e.batch }

// readout writes spmm, spmax, edge_sum and edge_ones over the batch.
func (e *emitter) readout(op *ir.Op) value {
	switch op.Name() {
	case "edge_ones":
		return value{t: e.filledFloat(*e.nodes, 1, named("num_nodes"))}
	case "edge_sum":
		if op.Str("side") == "src" {
			panic(e.unsupported(op, "over a batch it goes from nodes to graphs"))
		}
		sum := e.members.sum(e.column(e.operand(op, 1)), nil)
		return value{t: e.squeeze(sum, 1)}
	case "spmax":
		h := e.operand(op, 1)
		return value{t: e.members.max(h)}
	case "spmm":
		if op.Bool("transpose") || op.Operands[1] != nil || op.Operands[2] != nil {
			panic(e.unsupported(op, "over a batch it is the sum of nodes' rows alone"))
		}
		h := e.operand(op, 3)
		sum := e.members.sum(h, nil)
		return value{t: sum}
	}
	panic(e.unsupported(op, "it is not written over a batch"))
}

func emitSpMax(e *emitter, op *ir.Op) value {
	h := e.operand(op, 1)
	over, ok := e.forward.(*bucketSum)
	if !ok {
		over = newBuckets(e.list)
	}
	return value{t: over.max(h)}
}

// CheckBatch refuses graph_ids that are no numbers of graphs. A graph without nodes
// may stand between others, but N nodes never make more than N graphs: what a batch
// takes is bounded by its size.
func CheckBatch(ids ort.Tensor) error {
	if err := ids.Check(); err != nil {
		return fmt.Errorf("graph_ids: %w", err)
	}
	if ids.DType != ort.Int64 || len(ids.Shape) != 1 {
		return fmt.Errorf("graph_ids is %v of shape %v, want int64 [N]", ids.DType, ids.Shape)
	}
	for v, id := range ids.I64 {
		if n := int64(len(ids.I64)); id < 0 || id >= n {
			return fmt.Errorf("graph_ids: node %d is of graph %d; a batch of %d nodes has at most as many graphs, numbered from 0", v, id, n)
		}
	}
	return nil
}

// Batch reads graph_ids [N] as the exported models do: the block that leads from
// node v to graph ids[v], of as many graphs as the largest number says.
func Batch(ids ort.Tensor) (*ir.Graph, error) {
	if err := CheckBatch(ids); err != nil {
		return nil, err
	}
	g := &ir.Graph{Sources: len(ids.I64)}
	order := make([]int, len(ids.I64))
	for v, id := range ids.I64 {
		g.N = max(g.N, int(id)+1)
		order[v] = v
	}
	slices.SortStableFunc(order, func(a, b int) int { return int(ids.I64[a] - ids.I64[b]) })
	for _, v := range order {
		g.Row, g.Col = append(g.Row, int(ids.I64[v])), append(g.Col, v)
	}
	return g, nil
}
