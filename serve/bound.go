package serve

import (
	"math"
	"slices"

	"github.com/gsrc-dev/gsrc/export/manifest"
	"github.com/gsrc-dev/gsrc/internal/budget"
)

// bound is what a request may take and give, known before any work.
type bound struct {
	rows     int64            // of the request, for the log
	elements map[string]int64 // of each output, at most
	text     int64            // bytes of an element of BYTES, at most
	scratch  int64            // bytes of memory beside what the request holds already
}

// The longest forms of elements in JSON, with the comma: −1.1754944e-38 and what
// strconv writes without an exponent below 1e21; −2^63; a character as \u00ff.
const (
	jsonFloat = 24
	jsonInt   = 21
	jsonChar  = 6
)

// answerBytes bounds the bytes of an answer, of the outputs that are wanted.
func (b *bound) answerBytes(m *Metadata, r *Request, binary formats) int64 {
	type bytes struct{ json, binary int64 } // of an element
	sizes := map[string]bytes{FP32: {jsonFloat, 4}, INT64: {jsonInt, 8}, BYTES: {3 + jsonChar*b.text, 4 + b.text}}
	sum := int64(1 << 10)
	for _, o := range m.Outputs {
		if r.Outputs != nil && !slices.Contains(r.Outputs, o.Name) {
			continue
		}
		each := sizes[o.Datatype].json
		if binary.of(o.Name) {
			each = sizes[o.Datatype].binary
		}
		sum = plus(sum, budget.Mul(b.elements[o.Name], each))
	}
	return sum
}

// bound of a question for nodes: of each its number, and rows of logits and
// probabilities, once as they are gathered and once for the answer.
func (m *nodes) bound(r *Request) (bound, error) {
	n := int64(0)
	for _, in := range r.Inputs {
		n += int64(in.Length())
	}
	classes := m.graph.Manifest().Classes
	b := bound{rows: n, elements: map[string]int64{"label": n, "class": n}}
	for _, name := range []string{"probabilities", "logits"} {
		b.elements[name] = budget.Mul(n, int64(len(classes)))
	}
	for _, name := range classes {
		b.text = max(b.text, int64(len(name)))
	}
	b.scratch = budget.Mul(n, int64(48+16*len(classes)))
	return b, nil
}

// bound of an update: of its rows, once more. What the graph takes is the graph's.
func (m *update) bound(r *Request) (bound, error) {
	b := bound{elements: map[string]int64{"num_nodes": 1, "num_edges": 1}}
	for _, in := range r.Inputs {
		b.scratch += 16 * int64(in.Length())
		if len(in.Shape) > 0 {
			b.rows = max(b.rows, in.Shape[0])
		}
	}
	return b, nil
}

// bound of a run of a file follows from the sizes of the graph.
func (f *file) bound(r *Request) (bound, error) {
	dim := func(name string, axis int) int64 {
		if t := r.input(name); t != nil && len(t.Shape) > axis {
			return t.Shape[axis]
		}
		return 0
	}
	nodes, entries, k := max(dim("x", 0), dim("embedding", 0)), max(dim("edge_index", 1), dim("pairs", 1)), int64(0)
	proposed, walks := int64(0), int64(0) // candidates of each node, and bytes to find them
	if t := r.input("k"); t != nil && len(t.I64) == 1 {
		k = max(0, min(t.I64[0], nodes))
		proposed = k + min(f.scratch.TwoStep, nodes)
		if pairs := budget.Mul(nodes, proposed); pairs > f.maxPairs {
			return bound{}, invalid("%d nodes with k = %d neighbours make %d pairs to judge; this server takes %d (--max-pairs)", nodes, proposed, pairs, f.maxPairs)
		}
		if t := r.input("edge_index"); t != nil {
			walks = f.scratch.Walks(nodes, t.I64)
		}
	}
	b := bound{rows: max(nodes, entries), elements: map[string]int64{}}
	for name, dims := range f.outputs {
		n := int64(1)
		for _, d := range dims {
			size, fixed := manifest.Dimension(d)
			switch {
			case fixed:
			case d == "num_nodes" || d == "num_graphs": // a batch has not more graphs than nodes
				size = nodes
			default:
				size = entries + budget.Mul(nodes, proposed)
			}
			n = budget.Mul(n, size)
		}
		b.elements[name] = n
	}
	common := int64(0)
	if f.scratch.Common() {
		numbers := func(name string) []int64 {
			if t := r.input(name); t != nil {
				return t.I64
			}
			return nil
		}
		common = f.dist.Common(dim("x", 0), numbers("edge_index"), numbers("pairs"), proposed, f.scratch.Near)
	}
	b.scratch = plus(plus(f.scratch.Bytes(nodes, entries, k, common), walks), f.host(nodes, entries))
	return b, nil
}

// plus adds sizes; more than fits is the largest.
func plus(a, b int64) int64 {
	if b > math.MaxInt64-a {
		return math.MaxInt64
	}
	return a + b
}
