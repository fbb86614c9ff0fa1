package passes

import (
	"fmt"
	"slices"

	"github.com/gsrc-dev/gsrc/ir"
)

// Parts are a function that was cut at its message passing, see [Cut].
type Parts struct {
	Module *ir.Module // with a function for each part and nothing else
	List   []Part     // in the order in which they run
	// Results names the value that each result of the function is. Parts give it, or it
	// is an argument.
	Results map[string]string
}

// Part is a piece of a function that was cut. Its arguments are the graph, a block whose
// targets are some nodes and whose entries are all that lead to them; those of the function's
// arguments that have no rows; and values with a row for each node or entry by their names.
type Part struct {
	Func string   // its function
	Own  []string // values it reads of its targets and their entries, or of all nodes
	// Sources are values it reads of the nodes that entries come from, which are
	// arguments of the name [SourcesOf]. Their first rows are those of the targets.
	Sources []string
	Sums    []string // values without rows that it reads of parts before
	Gives   []string // values that later parts read, or that are results
	All     bool     // it reads the rows of all nodes at once, and no graph, and gives values without rows
}

// ReadsAll returns an error if a part reads all nodes, which those that lie apart cannot.
func (p *Parts) ReadsAll() error {
	for _, part := range p.List {
		if part.All {
			return fmt.Errorf("@%s reads of %%%s all nodes", part.Func, part.Own[0])
		}
	}
	return nil
}

// SourcesOf names the argument with the rows of a value for the sources of a block.
func SourcesOf(value string) string { return value + ".sources" }

// Cut divides a function of the tensor level on one graph where it reads neighbours, so that
// nodes that lie apart can be computed apart: between two parts the rows of the sources are
// exchanged, and nothing else. A row depends on the same numbers in the same order as in the
// whole function. A value without rows that depends on all nodes is computed between two parts,
// by one that reads all rows ([Part.All]). It is an error if a row depends otherwise on more than its
// node, its entries and the nodes that these come from.
//
// What has a row for each entry, and sparse matrices, are computed again in every part that
// reads them: they are not kept.
func Cut(m *ir.Module, name string) (*Parts, error) {
	if m.Func(name) == nil {
		return nil, fmt.Errorf("module %s has no function @%s", m.Name, name)
	}
	m = WithSetup(m, name)
	f := m.Func(name)
	c := &cutter{f: f, level: map[*ir.Value]int{}, free: map[*ir.Value]bool{}, ofAll: map[*ir.Value]bool{}, given: map[*ir.Value]bool{}}
	if err := c.plan(); err != nil {
		return nil, err
	}
	p := &Parts{Module: m, Results: map[string]string{}}
	for _, r := range f.Results {
		p.Results[r.Name] = r.Value.Name
	}
	m.Funcs = nil
	for level := range c.last + 1 {
		for _, all := range []bool{true, false} {
			if part := c.part(m, level, all); len(part.Gives) > 0 {
				p.List = append(p.List, part)
			}
		}
	}
	if err := scheduleOps(m, DataInfo{}); err != nil {
		return nil, err
	}
	if err := ir.Verify(m); err != nil {
		return nil, fmt.Errorf("@%s, cut: %w", name, err)
	}
	return p, nil
}

// WithSetup returns a copy of the module in which a function computes itself what its set-up does.
func WithSetup(m *ir.Module, name string) *ir.Module {
	m = m.Clone()
	f := m.Func(name)
	setup := m.Func(f.Attrs.Str(Setup))
	if setup == nil {
		return m
	}
	with, taken := map[*ir.Value]*ir.Value{}, map[string]bool{}
	for _, v := range append(results(f), f.Args...) {
		taken[v.Name] = true
	}
	for _, a := range setup.Args {
		with[a] = f.Arg(a.Name)
	}
	for _, r := range setup.Results {
		with[f.Arg(r.Name)] = r.Value
	}
	f.Args = slices.DeleteFunc(f.Args, func(a *ir.Value) bool { return a.Attrs.Bool(Hoisted) })
	for _, v := range results(setup) {
		if taken[v.Name] {
			v.Name = Setup + "." + v.Name
		}
	}
	f.Body = append(setup.Body, f.Body...)
	f.Replace(with)
	delete(f.Attrs, Setup)
	return m
}

// cutter finds the level of every value: how many exchanges come before it.
type cutter struct {
	f     *ir.Func
	graph *ir.Value // nil where the function reads none
	nodes ir.Dim
	level map[*ir.Value]int
	last  int
	free  map[*ir.Value]bool // follows from the entries alone
	ofAll map[*ir.Value]bool // has no rows, and depends on them
	given map[*ir.Value]bool // computed values that another level reads, and results
}

func (c *cutter) plan() error {
	for _, a := range c.f.Args {
		if !a.Type.IsGraph() {
			continue
		}
		if a.Type.IsBlock() || c.graph != nil {
			return ir.Errorf(a, "@%s cannot be cut: it reads more than one graph", c.f.Name)
		}
		c.graph, c.nodes = a, a.Type.Targets()
	}
	if c.graph == nil && len(c.f.Args) > 0 && c.f.Args[0].Type.Rank() > 0 {
		c.nodes = c.f.Args[0].Type.Dims[0]
	}
	for _, op := range c.f.Body {
		if err := c.operation(op); err != nil {
			return err
		}
	}
	used := map[*ir.Value]int{} // the last level that reads a value
	for _, op := range slices.Backward(c.f.Body) {
		level := c.level[op.Results[0]]
		for _, r := range op.Results {
			if c.again(r) {
				level = max(level, used[r])
			}
		}
		for i, v := range op.Operands {
			if v == nil || v.Def == nil || !c.rows(v) && !c.ofAll[v] {
				continue
			}
			if c.ofAll[v] && !c.ofAll[op.Results[0]] {
				c.given[v] = true
			}
			used[v] = max(used[v], level)
			if op.Reads(i) == ir.ReadSources || level > c.level[v] && !c.again(v) {
				c.given[v] = true
			}
		}
	}
	for _, r := range c.f.Results {
		if r.Value.Def != nil && (c.rows(r.Value) || c.ofAll[r.Value]) {
			c.given[r.Value] = true
		}
	}
	return nil
}

func (c *cutter) operation(op *ir.Op) error {
	refuse := func(v *ir.Value, why string) error {
		return ir.Errorf(op, "@%s cannot be cut: %s reads of %%%s %s", c.f.Name, op.Name(), v.Name, why)
	}
	if op.Draws() {
		return ir.Errorf(op, "@%s cannot be cut: %s draws random numbers", c.f.Name, op.Name())
	}
	level, free, ofAll := 0, true, false
	rows := slices.ContainsFunc(op.Results, c.rows)
	for i, v := range op.Operands {
		if v == nil || v.Type.IsGraph() {
			continue
		}
		read := op.Reads(i)
		level = max(level, c.level[v])
		free, ofAll = free && !c.ofAll[v], ofAll || c.ofAll[v]
		if c.rows(v) {
			free = free && c.free[v]
			switch {
			case read == ir.ReadAll && (rows || c.again(v)):
				return refuse(v, "all nodes")
			case read == ir.ReadAll:
				free, ofAll = false, true
				if v.Def != nil {
					level = max(level, c.level[v]+1)
				}
			case read == ir.ReadPairs:
				return refuse(v, "pairs of nodes")
			}
		}
		if read == ir.ReadSources {
			if free = false; op.Attrs.Bool("transpose") {
				return refuse(v, "the nodes that entries lead to")
			}
			level = max(level, c.level[v]+1)
		}
	}
	for _, r := range op.Results {
		if r.Type.Rank() > 1 && slices.ContainsFunc(r.Type.Dims[1:], c.counts) {
			return ir.Errorf(op, "@%s cannot be cut: %%%s has a column for each node", c.f.Name, r.Name)
		}
		c.level[r], c.free[r], c.ofAll[r] = level, free, ofAll && !rows
	}
	c.last = max(c.last, level)
	return nil
}

// counts reports whether a dimension is the number of nodes or of entries.
func (c *cutter) counts(d ir.Dim) bool {
	return d == c.nodes || c.graph != nil && d == c.graph.Type.Entries()
}

// again reports whether a value is computed again where it is read, in the place of being kept.
func (c *cutter) again(v *ir.Value) bool {
	byEntry := c.graph != nil && v.Type.Rank() > 0 && v.Type.Dims[0] == c.graph.Type.Entries()
	return v.Def != nil && (c.free[v] || byEntry || v.Type.Layout == ir.CSR)
}

// rows reports whether a value has a row for each node or entry.
func (c *cutter) rows(v *ir.Value) bool {
	return !v.Type.IsGraph() && v.Type.Rank() > 0 && c.counts(v.Type.Dims[0])
}

// part builds the function of a level, or that which reads all rows before it.
func (c *cutter) part(m *ir.Module, level int, all bool) Part {
	name := fmt.Sprintf("%s.%d", c.f.Name, level)
	if all {
		name += ".all"
	}
	b := m.NewFunc(name)
	part := Part{Func: name, All: all}
	here := map[*ir.Value]*ir.Value{}
	sources := ir.Dim("S")
	if c.graph != nil {
		for c.counts(sources) || slices.ContainsFunc(c.f.Args, func(a *ir.Value) bool { return slices.Contains(a.Type.Dims, sources) }) {
			sources += "_"
		}
		here[c.graph] = b.Arg(c.graph.Name, ir.BlockType(c.nodes, c.graph.Type.Entries(), sources))
	}
	far := map[*ir.Value]*ir.Value{} // rows of sources
	read := func(v *ir.Value, ofSources bool) *ir.Value {
		switch {
		case v == nil || v.Param:
			return v
		case ofSources:
			if far[v] == nil {
				far[v] = b.Arg(SourcesOf(v.Name), v.Type.WithDims(append([]ir.Dim{sources}, v.Type.Dims[1:]...)...))
			}
			return far[v]
		case here[v] == nil:
			here[v] = b.Arg(v.Name, v.Type)
		}
		return here[v]
	}
	for _, op := range c.f.Body {
		at := c.level[op.Results[0]]
		if at > level || (at < level || c.ofAll[op.Results[0]] != all) && !slices.ContainsFunc(op.Results, c.again) {
			continue
		}
		var operands []*ir.Value
		for i, v := range op.Operands {
			operands = append(operands, read(v, v != nil && !v.Type.IsGraph() && op.Reads(i) == ir.ReadSources))
		}
		for i, made := range b.OpTyped(op.Name(), op.Attrs, op.ResultTypes(), operands...) {
			if at == level && c.ofAll[op.Results[i]] == all || c.again(op.Results[i]) {
				here[op.Results[i]] = made
			}
		}
	}
	for v, twin := range here {
		twin.Name = v.Name
	}
	for _, op := range c.f.Body {
		for _, r := range op.Results {
			if c.given[r] && c.level[r] == level && c.ofAll[r] == all {
				b.Return(r.Name, here[r])
				part.Gives = append(part.Gives, r.Name)
			}
		}
	}
	if len(part.Gives) == 0 {
		m.RemoveFunc(part.Func)
		return part
	}
	pruneFunc(b.Func)
	for _, v := range append(slices.Clone(c.f.Args), results(c.f)...) {
		if x := here[v]; x != nil && c.rows(v) && slices.Contains(b.Func.Args, x) {
			part.Own = append(part.Own, v.Name)
		} else if x != nil && c.ofAll[v] && slices.Contains(b.Func.Args, x) {
			part.Sums = append(part.Sums, v.Name)
		}
		if x := far[v]; x != nil && slices.Contains(b.Func.Args, x) {
			part.Sources = append(part.Sources, v.Name)
		}
	}
	return part
}

// results are the values that the operations of a function compute.
func results(f *ir.Func) (list []*ir.Value) {
	for _, op := range f.Body {
		list = append(list, op.Results...)
	}
	return list
}
