package passes

import (
	"math"
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
func pad(m *ir.Module, facts Facts) error {
	if !facts.PadBatches {
		return nil
	}
	for _, f := range m.Funcs {
		if f.Attrs.Str(Setup) != "" || !slices.ContainsFunc(f.Args, func(a *ir.Value) bool { return a.Type.IsGraph() }) {
			continue
		}
		p := &padding{of: map[*ir.Value]fill{}, zeroed: map[*ir.Op][]int{}}
		why := p.dimensions(f)
		if why == "" {
			why = p.follow(f)
		}
		if why != "" {
			facts.say("pad", f, "sizes differ from batch to batch: "+why)
			continue
		}
		p.apply(m, f)
		f.Attrs[Padded] = true
	}
	return nil
}

// fill is what the rows that are appended to a value hold.
type fill struct {
	kind  fillKind
	value float64 // of constants
}

type fillKind uint8

const (
	anything fillKind = iota // also NaN, and what was in the memory before
	numbers                  // finite
	same                     // all the same number
)

var zeros = fill{kind: same}

func (f fill) zero() bool   { return f == zeros }
func (f fill) finite() bool { return f.kind != anything }

// finite is a fill of numbers, or of anything if one of others is.
func finite(xs ...fill) fill {
	for _, x := range xs {
		if !x.finite() {
			return fill{}
		}
	}
	return fill{kind: numbers}
}

// padding is the walk over a function.
type padding struct {
	nodes   ir.Dim   // of all graphs of a batch together
	entries []ir.Dim // of the graphs, and of others on the same nodes
	of      map[*ir.Value]fill
	zeroed  map[*ir.Op][]int // operands that are multiplied by Present
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
		if t := a.Type; t.IsBlock() && (p.grows(t.Targets()) || t.Entries() != p.nodes) {
			return "%" + a.Name + " is " + t.String() + ", not graphs and their nodes"
		}
	}
	return ""
}

// grows reports whether a dimension is one that is appended to, or a sum with one.
func (p *padding) grows(d ir.Dim) bool {
	return slices.ContainsFunc(strings.Split(string(d), "+"), func(term string) bool {
		return ir.Dim(term) == p.nodes || slices.Contains(p.entries, ir.Dim(term))
	})
}

// long reports whether any dimension of a value is.
func (p *padding) long(v *ir.Value) bool {
	return v != nil && slices.ContainsFunc(v.Type.Dims, p.grows)
}

// rows reports whether a value has its first dimension appended to and no other.
func (p *padding) rows(v *ir.Value) bool {
	for k, d := range v.Type.Dims {
		if p.grows(d) != (k == 0) || strings.Contains(string(d), "+") && p.grows(d) {
			return false
		}
	}
	return true
}

// byNode reports whether a value has a row for each node, whose number is known.
func (p *padding) byNode(v *ir.Value) bool { return v.Type.Dims[0] == p.nodes }

// fill of a value. What nothing is appended to is finite, or the run is lost anyway.
func (p *padding) fill(v *ir.Value) fill {
	if p.long(v) {
		return p.of[v]
	}
	if c, ok := constant(v); ok {
		return fill{same, c}
	}
	return fill{kind: numbers}
}

// follow finds what all values have appended. It returns what cannot bear it, or "".
func (p *padding) follow(f *ir.Func) string {
	if f.Arg(Present) != nil {
		return "%" + Present + " is an argument already"
	}
	for _, a := range f.Args {
		if p.long(a) && !a.Type.IsGraph() {
			if !p.rows(a) {
				return "%" + a.Name + " has columns for nodes or entries"
			}
			p.of[a] = zeros
		}
	}
	for _, op := range f.Body {
		if !slices.ContainsFunc(op.Operands, p.long) && !slices.ContainsFunc(op.Results, p.long) {
			continue
		}
		for _, v := range slices.Concat(op.Operands, op.Results) {
			if p.long(v) && !v.Type.IsGraph() && !p.rows(v) {
				return op.String()
			}
		}
		switch op.Name() {
		case "edge_softmax": // rows without entries have their own term only
			p.of[op.Results[1]] = finite(p.fill(op.Operands[2]))
			continue
		case "edge_softmax_grad":
			p.of[op.Results[1]] = finite(p.fill(op.Operands[2]), p.fill(op.Operands[5]), p.fill(op.Operands[7]))
			continue
		}
		if len(op.Results) != 1 {
			return op.String()
		}
		x, ok := p.rule(op)
		if !ok {
			return op.String()
		}
		p.of[op.Result()] = x
	}
	for _, r := range f.Results {
		if p.long(r.Value) {
			return "the result " + r.Name + " has a row for each"
		}
	}
	return ""
}

// rule is what the result of an operation has appended. It reports false of an
// operation that is not known to bear appended rows.
func (p *padding) rule(op *ir.Op) (fill, bool) {
	x, y := op.Operands, op.Result()
	at := func(i int) fill { return p.fill(x[i]) }
	switch name := op.Name(); name {
	case "fill":
		return fill{same, op.Float("value")}, true
	case "edge_ones":
		return fill{same, 1}, true
	case "normal", "uniform":
		return fill{kind: numbers}, true
	case "edge_uniform", "edge_gather", "sddmm":
		return fill{}, true // kernels may go through the rows of the graph only
	case "edge_sum", "spmax", "spmax_grad":
		return zeros, true // of no entries
	case "spmm":
		return p.aggregated(op), true
	case "matmul":
		switch {
		case isCSR(x[0]):
			return zeros, !p.long(x[1]) || op.Bool("ta")
		case !op.Bool("ta"):
			if at(0).zero() {
				return zeros, !p.long(x[1])
			}
			return finite(at(0)), !p.long(x[1])
		}
		return fill{}, at(0).zero() && at(1).finite() || at(0).finite() && p.clear(op, 1)
	case "reduce_sum", "reduce_mean":
		if op.Str("axis") == "1" {
			return p.pointwise(op, at(0)), true
		}
		return fill{}, (name == "reduce_sum" || p.byNode(x[0])) && p.clear(op, 0)
	case "count":
		return fill{}, p.byNode(x[0]) && op.Str("axis") != "1"
	case "broadcast_to", "unsqueeze", "squeeze", "stop_gradient", "scale_grad", "to_dense", "columns", "concat",
		"l1_normalize", "l2_normalize", "softmax", "log_softmax", "group_sum", "group_repeat":
		if isCSR(y) || isCSR(x[0]) {
			return zeros, true
		}
		var xs []fill
		for i := range x {
			xs = append(xs, at(i))
		}
		return p.pointwise(op, xs...), p.long(y)
	case "l2_normalize_grad":
		return p.pointwise(op, at(2)), p.long(y)
	default:
		if !ir.Pointwise(name) {
			return fill{}, false
		}
		if isCSR(y) {
			return zeros, true
		}
		var xs []fill
		for i := range x {
			xs = append(xs, at(i))
		}
		return p.pointwise(op, xs...), true
	}
}

// aggregated is what a sum over entries has appended: rows without entries, to which
// their own term may come.
func (p *padding) aggregated(op *ir.Op) fill {
	s, h := p.fill(op.Operands[2]), p.fill(op.Operands[3])
	if op.Operands[2] == nil || s.zero() && h.finite() || h.zero() && s.finite() {
		return zeros
	}
	return finite(s, h)
}

// clear makes an operand zero in its appended rows where it is not.
func (p *padding) clear(op *ir.Op, i int) bool {
	v := op.Operands[i]
	if p.fill(v).zero() {
		return true
	}
	if !p.fill(v).finite() || !p.byNode(v) || v.Type.DType != ir.F32 || isCSR(v) {
		return false
	}
	p.zeroed[op] = append(p.zeroed[op], i)
	p.of[v] = zeros // for all that read it from here on
	return true
}

// pointwise is the fill of what is computed element by element, or row by row, of
// operands.
func (p *padding) pointwise(op *ir.Op, x ...fill) fill {
	if foldable[op.Name()] && !slices.ContainsFunc(x, func(f fill) bool { return f.kind != same }) {
		c := &ir.EvalCtx{Op: op, Out: make([]ir.Val, 1), Shapes: [][]int{nil}}
		for _, f := range x {
			c.In = append(c.In, ir.Val{T: ir.ScalarTensor(f.value)})
		}
		if op.Def.Eval(c) != nil {
			return fill{}
		}
		y := c.Out[0].T.Data[0]
		if math.IsNaN(y) || math.Abs(y) > math.MaxFloat32 {
			return fill{}
		}
		return fill{same, y}
	}
	all := finite(x...)
	switch op.Name() {
	case "greater", "greater_equal", "less":
		return fill{kind: numbers} // of NaN as well
	case "mul":
		if all.finite() && (x[0].zero() || x[1].zero()) {
			return zeros
		}
	case "relu_grad", "elu_grad", "leaky_relu_grad":
		if all.finite() && x[1].zero() {
			return zeros
		}
	case "div":
		// Where a number by which true rows are divided is 0, these are lost anyway.
		if y := op.Operands[1]; p.long(y) && (x[1].kind != same || x[1].zero()) {
			return fill{}
		}
		if all.finite() && x[0].zero() {
			return zeros
		}
	case "exp", "log", "sqrt", "rsqrt", "pow", "logaddexp":
		return fill{}
	case "broadcast_to", "unsqueeze", "squeeze", "stop_gradient", "scale_grad", "columns", "concat":
		if x[0].kind == same && !slices.ContainsFunc(x, func(f fill) bool { return f != x[0] }) {
			return x[0]
		}
	case "reduce_sum", "reduce_mean", "dropout", "group_sum", "group_repeat", "l1_normalize", "l2_normalize", "l2_normalize_grad":
		if x[0].zero() {
			return zeros
		}
	}
	return all
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
			if slices.Contains(p.zeroed[op], k) {
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
		switch op.Name() {
		case "reduce_mean":
			if x := op.Operands[0]; p.long(x) && op.Str("axis") != "1" {
				y = b.Div(b.OneTyped("reduce_sum", op.Attrs, op.Result().Type, x), p.counted(b, op, nodes))
			}
		case "count":
			if p.long(op.Operands[0]) {
				y = p.counted(b, op, nodes)
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
