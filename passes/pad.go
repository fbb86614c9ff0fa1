package passes

import (
	"slices"
	"strings"

	"github.com/gsrc-dev/gsrc/ir"
)

// Padded is the attribute of functions that take batches with nodes and entries
// appended to them. The nodes appended have no entries and are of no graph, their
// features are zeros, and the entries appended are of no node; Present tells the
// function which nodes the batch has itself.
const (
	Padded  = "padded"
	Present = "batch.present" // an argument [N]: 1 for the batch's own nodes, 0 for appended ones
)

// pad makes functions on batches of graphs compute the same where nodes and entries
// are appended, so that batches of many sizes can be brought to a few, and steps on
// them be replayed. It follows what appended rows hold: most operations compute rows
// apart from each other. Where rows are summed up that are not zero, they are
// multiplied by Present first, and counts become those of the batch's own nodes. A
// function with an operation that bears no appended rows stays as it is.
func pad(m *ir.Module, info DataInfo) error {
	if !info.PadBatches {
		return nil
	}
	for _, f := range m.Funcs {
		if f.Attrs.Str(Setup) != "" || !slices.ContainsFunc(f.Args, func(a *ir.Value) bool { return a.Type.IsGraph() }) {
			continue
		}
		p := &padding{}
		p.Padding = ir.Padding{Grows: p.grows, Masks: p.masks, Of: map[*ir.Value]ir.PadValue{}}
		why := p.dimensions(f)
		if why == "" {
			why = p.follow(f)
		}
		if why != "" {
			info.say("pad", f, "sizes differ from batch to batch: "+why)
			continue
		}
		p.apply(m, f)
		f.Attrs[Padded] = true
	}
	return nil
}

// padding is the pass on one function.
type padding struct {
	ir.Padding
	nodes   ir.Dim   // of all graphs of a batch together
	entries []ir.Dim // of the graphs, and of others on the same nodes
}

// dimensions finds those that are appended to, by the graphs that the function takes.
// It returns what is in the way, or "".
func (p *padding) dimensions(f *ir.Func) string {
	for _, a := range f.Args {
		t := a.Type
		if !t.IsGraph() {
			continue
		}
		if p.nodes != "" && p.nodes != t.Sources() {
			return "graphs on different nodes"
		}
		p.nodes = t.Sources()
		if !t.IsBlock() {
			p.entries = append(p.entries, t.Entries())
		}
	}
	for _, d := range append([]ir.Dim{p.nodes}, p.entries...) {
		if _, fixed := d.Size(); fixed || strings.Contains(string(d), "+") {
			return "a graph whose sizes are no symbols"
		}
	}
	if slices.Contains(p.entries, p.nodes) {
		return "a graph with as many entries as nodes"
	}
	for _, a := range f.Args {
		if t := a.Type; t.IsBlock() && (p.Appended(t.Targets()) || t.Entries() != p.nodes) {
			return "%" + a.Name + " is " + t.String() + ", not graphs and their nodes"
		}
	}
	return ""
}

// grows tells the dimensions that are appended to.
func (p *padding) grows(d ir.Dim) bool { return d == p.nodes || slices.Contains(p.entries, d) }

// masks tells the values that have a row for each node, whose number is known.
func (p *padding) masks(v *ir.Value) bool {
	return v.Type.Dims[0] == p.nodes && v.Type.DType == ir.F32 && !isCSR(v)
}

// follow finds what all values have appended. It returns what cannot tolerate it, or "".
func (p *padding) follow(f *ir.Func) string {
	if f.Arg(Present) != nil {
		return "%" + Present + " is an argument already"
	}
	for _, a := range f.Args {
		if p.Long(a) && !a.Type.IsGraph() {
			if !p.Rows(a) {
				return "%" + a.Name + " has columns for nodes or entries"
			}
			p.Of[a] = ir.PadValue{Kind: ir.PadConstant} // zeros
		}
	}
	for _, op := range f.Body {
		if !p.Visit(op) {
			return op.String()
		}
	}
	for _, r := range f.Results {
		if p.Long(r.Value) {
			return "the result " + r.Name + " has a row for each"
		}
	}
	return ""
}

// apply multiplies what must be zero by Present, and divides by the number of nodes
// that are present.
func (p *padding) apply(m *ir.Module, f *ir.Func) {
	b := ir.NewBuilder(m, f)
	present := b.DynamicArg(Present, ir.T(ir.F32, p.nodes))
	present.Name = Present
	b.At(0)
	column := b.One("unsqueeze", nil, present)
	nodes := b.Sum(present)
	first := b.Pos()
	with := map[*ir.Value]*ir.Value{} // from here on
	for i := first; i < len(f.Body); i++ {
		op := f.Body[i]
		b.At(i)
		for k, v := range op.Operands {
			if slices.Contains(p.Zeroed[op], k) {
				mask := present
				if v.Type.Rank() == 2 {
					mask = column
				}
				with[v] = b.Mul(v, mask)
			}
			if with[v] != nil {
				op.Operands[k] = with[v]
			}
		}
		var y *ir.Value
		if name := op.Name(); (name == "reduce_mean" || name == "count") && p.Long(op.Operands[0]) && op.Str("axis") != "1" {
			if name == "count" {
				y = p.counted(b, op, nodes)
			} else {
				y = b.Div(b.OneTyped("reduce_sum", op.Attrs, op.Result().Type, op.Operands[0]), p.counted(b, op, nodes))
			}
		}
		i = b.Pos()
		if y != nil {
			f.Body = slices.Delete(f.Body, i, i+1)
			f.Replace(map[*ir.Value]*ir.Value{op.Result(): y})
			i--
		}
	}
	if f.Uses()[column] == 0 {
		f.Body = slices.DeleteFunc(f.Body, func(op *ir.Op) bool { return op == column.Def })
	}
	if f.Uses()[nodes] == 0 {
		f.Body = slices.DeleteFunc(f.Body, func(op *ir.Op) bool { return op == nodes.Def })
	}
}

// counted is the number of elements that an operation reduces to one.
func (p *padding) counted(b *ir.Builder, op *ir.Op, nodes *ir.Value) *ir.Value {
	x := op.Operands[0].Type
	if op.Str("axis") == "0" || x.Rank() == 1 {
		return nodes
	}
	width, _ := x.Dims[1].Size()
	return b.Scale(nodes, float64(width))
}
