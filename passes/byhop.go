package passes

import (
	"fmt"
	"slices"

	"github.com/gsrc-dev/gsrc/ir"
)

// Names of the arguments that [ByHop] adds, by hop from the seeds.
func HopGraph(k int) string   { return fmt.Sprintf("hop%d.block", k) }
func HopRows(k int) string    { return fmt.Sprintf("hop%d.rows", k) }
func HopEntries(k int) string { return fmt.Sprintf("hop%d.entries", k) }

// ByHop has a function that is trained on sampled sub-graphs compute every value for those nodes
// only whose rows reach the seeds. Nodes are in the order in which they are met, so that those
// within k hops are the first ones, and the entries into these the first entries. It returns how
// many hops it divides, each with these arguments, as far as they are read:
//
//	[HopGraph](k)    block of the entries into the nodes within k hops, from those within k + 1
//	[HopRows](k)     the numbers of these nodes, and [HopEntries](k) of these entries: 0, 1, …
//
// The function is one of a module without layers (after the pass lower-gnn), and before autodiff. Its
// argument seeds numbers the first nodes. A product of the rows that an aggregation reads comes after it,
// where there are fewer. Sparse features are not divided. It is an error where a row
// reads more than its neighbours; the products may have moved then, so that callers give a copy.
func ByHop(m *ir.Module, name, seeds string, info DataInfo) (hops int, err error) {
	f := m.Func(name)
	h := &byHop{f: f, info: info, level: map[*ir.Value]int{}}
	for _, a := range f.Args {
		if a.Type.IsGraph() && !a.Type.IsBlock() {
			h.graph = a
		}
	}
	if h.seeds = f.Arg(seeds); h.seeds == nil || h.graph == nil {
		return 0, ir.Errorf(f, "@%s reads no graph, or no seeds", name)
	}
	h.nodes, h.entries = h.graph.Type.Targets(), h.graph.Type.Entries()
	h.aggregateFirst(m)
	if err := h.plan(); err != nil {
		return 0, err
	}
	if h.last == 0 {
		return 0, ir.Errorf(f, "no row of @%s reads another one", name)
	}
	h.divide(m)
	return h.last, nil
}

type byHop struct {
	f              *ir.Func
	info           DataInfo
	graph, seeds   *ir.Value
	nodes, entries ir.Dim
	level          map[*ir.Value]int // how far the nodes, or targets of the entries, are away whose rows are read
	last           int
}

// rows reports whether a value has a row for each node, or for each entry.
func (h *byHop) rows(v *ir.Value) bool { return h.byNode(v) || h.byEntry(v) }

func (h *byHop) byNode(v *ir.Value) bool {
	return v != nil && !v.Type.IsGraph() && v.Type.Rank() > 0 && v.Type.Dims[0] == h.nodes
}

func (h *byHop) byEntry(v *ir.Value) bool {
	return v != nil && !v.Type.IsGraph() && v.Type.Rank() > 0 && v.Type.Dims[0] == h.entries
}

func (h *byHop) sparse(v *ir.Value) bool { return isSparse(v, h.info) || holdsSparse(v, h.info) }

// aggregateFirst writes A(hW) as (Ah)W.
func (h *byHop) aggregateFirst(m *ir.Module) {
	product := func(v *ir.Value) *ir.Op {
		if p := v.Def; p != nil && p.Name() == "matmul" && !p.Bool("ta") && h.byNode(p.Operands[0]) && !h.rows(p.Operands[1]) && !h.sparse(p.Operands[0]) {
			return p
		}
		return nil
	}
	rewrite(m, h.f, func(b *ir.Builder, op *ir.Op) []*ir.Value {
		if op.Name() != "columns" {
			return nil
		}
		if p := product(op.Operands[0]); p != nil && !p.Bool("tb") {
			return one(b.MatMul(p.Operands[0], b.One("columns", op.Attrs.Clone(), p.Operands[1])))
		}
		return nil
	})
	pruneBody(h.f)
	uses := h.f.Uses()
	rewrite(m, h.f, func(b *ir.Builder, op *ir.Op) []*ir.Value {
		if op.Name() != "spmm" || op.Bool("transpose") {
			return nil
		}
		p := product(op.Operands[3])
		if p == nil || uses[p.Result()] != 1 || ir.HeadsOf(op.Operands[1]) > 1 || ir.HeadsOf(op.Operands[2]) > 1 {
			return nil
		}
		sum := b.One("spmm", nil, op.Operands[0], op.Operands[1], op.Operands[2], p.Operands[0])
		return one(b.One("matmul", p.Attrs.Clone(), sum, p.Operands[1]))
	})
	pruneBody(h.f)
}

// plan finds the level of every value.
func (h *byHop) plan() error {
	for _, r := range h.f.Results {
		if h.rows(r.Value) {
			return ir.Errorf(h.f, "the result %s of @%s has a row for each node", r.Name, h.f.Name)
		}
	}
	for changed := true; changed; {
		changed = false
		want := func(v *ir.Value, k int) {
			if old, ok := h.level[v]; !ok || k > old {
				h.level[v], changed = k, true
			}
		}
		for _, op := range slices.Backward(h.f.Body) {
			if h.first(op) {
				want(op.Operands[0], 0)
				continue
			}
			if op.Name() == "grad" { // a row of the gradient for each of what it is taken by
				for i, r := range op.Results {
					if x := op.Operands[i+1]; h.rows(x) {
						want(x, h.level[r])
						want(r, h.level[x])
					}
				}
				continue
			}
			k, live := 0, !h.rows(op.Results[0])
			for _, r := range op.Results {
				if at, ok := h.level[r]; ok {
					k, live = max(k, at), true
				}
			}
			if !live {
				continue
			}
			for _, v := range op.Operands {
				if h.rows(v) && h.sparse(v) { // computed for all of its rows
					k = max(k, h.level[v])
				}
			}
			for _, r := range op.Results {
				if h.rows(r) {
					want(r, k)
				}
			}
			for i, v := range op.Operands {
				if !h.rows(v) {
					continue
				}
				switch read := op.Reads(i); {
				case !h.rows(op.Results[0]) || op.Name() == "spmm" && op.Bool("transpose") || read == ir.ReadAll || read == ir.ReadPairs:
					return ir.Errorf(op, "%s reads of %%%s more than a node's neighbours", op.Name(), v.Name)
				case read == ir.ReadSources:
					want(v, k+1)
				default:
					want(v, k)
				}
			}
		}
		for _, k := range h.level {
			h.last = max(h.last, k)
		}
		for _, a := range h.f.Args {
			if h.rows(a) {
				want(a, h.last)
			}
		}
		for _, op := range h.f.Body {
			if op.Draws() && slices.Contains(op.Operands, h.graph) { // by the numbers of both ends, in the whole of a batch
				want(op.Results[0], h.last)
			}
		}
	}
	return nil
}

// first reports whether an operation takes the rows of the seeds.
func (h *byHop) first(op *ir.Op) bool {
	return op.Name() == "gather" && op.Operands[1] == h.seeds && h.byNode(op.Operands[0])
}

// divide gives every value the rows of its level.
func (h *byHop) divide(m *ir.Module) {
	nodes, entries := h.nodes, h.entries
	dim := func(kind ir.Dim, k int) ir.Dim {
		switch {
		case k >= h.last:
			return kind
		case kind == nodes && k == 0:
			return h.seeds.Type.Dims[0]
		}
		return ir.Dim(fmt.Sprintf("%s_hop%d", kind, k))
	}
	added := map[string]*ir.Value{}
	arg := func(name string, t ir.Type) *ir.Value {
		if added[name] == nil {
			added[name] = &ir.Value{Name: name, Type: t}
			h.f.Args = append(h.f.Args, added[name])
		}
		return added[name]
	}
	kinds := map[*ir.Value]ir.Dim{} // before types are changed
	for v := range h.level {
		kinds[v] = v.Type.Dims[0]
	}
	type place struct {
		v *ir.Value
		k int
	}
	gathered := map[place]*ir.Value{}
	rewrite(m, h.f, func(b *ir.Builder, op *ir.Op) []*ir.Value {
		at := func(v *ir.Value, k int) *ir.Value {
			if h.level[v] == k {
				return v
			}
			if gathered[place{v, k}] == nil {
				index := arg(HopRows(k), ir.T(ir.I64, dim(nodes, k)))
				if kinds[v] == entries {
					index = arg(HopEntries(k), ir.T(ir.I64, dim(entries, k)))
				}
				gathered[place{v, k}] = b.One("gather", nil, v, index)
			}
			return gathered[place{v, k}]
		}
		if op.Name() == "gather" && op.Operands[1] == h.seeds && kinds[op.Operands[0]] == nodes {
			return one(at(op.Operands[0], 0))
		}
		k, ok := h.level[op.Results[0]]
		if !ok {
			return nil
		}
		for i, v := range op.Operands {
			switch {
			case v == h.graph && k < h.last:
				op.Operands[i] = arg(HopGraph(k), ir.BlockType(dim(nodes, k), dim(entries, k), dim(nodes, k+1)))
			case v != nil && kinds[v] != "" && op.Reads(i) == ir.ReadSources:
				op.Operands[i] = at(v, k+1)
			case v != nil && kinds[v] != "":
				op.Operands[i] = at(v, k)
			}
		}
		for _, r := range op.Results {
			if kinds[r] != "" {
				r.Type = r.Type.WithDims(append([]ir.Dim{dim(kinds[r], k)}, r.Type.Dims[1:]...)...)
			}
		}
		return nil
	})
	pruneBody(h.f)
}
