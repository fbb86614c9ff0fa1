package runtime

import (
	"errors"
	"fmt"
	"maps"
	goruntime "runtime"
	"slices"

	"github.com/gsrc-dev/gsrc/graph"
	"github.com/gsrc-dev/gsrc/internal/scratch"
	"github.com/gsrc-dev/gsrc/ir"
	"github.com/gsrc-dev/gsrc/passes"
	"github.com/gsrc-dev/gsrc/runtime/kernels"
)

// Chunked runs a function that was cut ([passes.Cut]) on a graph whose values memory has no
// room for: part after part, each over chunks of nodes. What a part gives for all nodes lies in
// files on a disk, as long as later parts read it. Parts that read all rows do so in these files.
// The bits are those of the whole function.
// It runs on the CPU, and is used by one goroutine at a time.
type Chunked struct {
	parts  *passes.Parts
	opts   Options
	dir    string
	room   int
	inputs map[string]*Buffer
	values map[string]*stored // what parts gave
	nodes  int
	graph  *graph.Structure // nil where the function reads none

	Stop func() error // asked before each chunk, unless it is nil: an error ends the run
}

// stored is a value with a row for each node, in a file.
type stored struct {
	*Buffer
	free func() error
}

// NewChunked readies a function whose chunks may take room bytes, beside rows of scratch in
// a folder. Options.Device is not asked.
func NewChunked(parts *passes.Parts, dir string, room int, opts Options) *Chunked {
	opts.Device = CPU
	return &Chunked{parts: parts, dir: dir, room: room, opts: opts, inputs: map[string]*Buffer{}, values: map[string]*stored{}}
}

// Bind gives an argument or parameter of the function its value, with a row for each node or
// entry if it has rows. Values by entry that are not bound are ones.
func (c *Chunked) Bind(name string, b *Buffer) { c.inputs[name] = b }

// Result returns a result of the last run, which lies in a file until the next one or Close.
func (c *Chunked) Result(name string) *Buffer { return c.value(c.parts.Results[name]) }

// Close gives the files back.
func (c *Chunked) Close() error {
	var errs []error
	for name, v := range c.values {
		errs = append(errs, v.free())
		delete(c.values, name)
	}
	return errors.Join(errs...)
}

// Run computes the function.
func (c *Chunked) Run() error {
	if err := c.Close(); err != nil {
		return err
	}
	for i := range c.parts.List {
		if err := c.part(&c.parts.List[i]); err != nil {
			return fmt.Errorf("runtime: @%s over chunks of nodes: %w", c.parts.List[i].Func, err)
		}
		if err := c.drop(i); err != nil {
			return err
		}
	}
	return nil
}

// drop gives the values back that nothing reads behind a part.
func (c *Chunked) drop(at int) error {
	for name, v := range c.values {
		read := slices.Contains(slices.Collect(maps.Values(c.parts.Results)), name)
		for _, p := range c.parts.List[at+1:] {
			read = read || slices.Contains(p.Own, name) || slices.Contains(p.Sources, name) || slices.Contains(p.Sums, name)
		}
		if !read {
			delete(c.values, name)
			if err := v.free(); err != nil {
				return err
			}
		}
	}
	return nil
}

// value returns what is there of all nodes or entries.
func (c *Chunked) value(name string) *Buffer {
	if v := c.values[name]; v != nil {
		return v.Buffer
	}
	return c.inputs[name]
}

// part runs one part.
func (c *Chunked) part(p *passes.Part) error {
	fn := c.parts.Module.Func(p.Func)
	if err := c.size(p, fn); err != nil {
		return err
	}
	f, err := NewFunction(c.parts.Module, p.Func, c.opts)
	if err != nil {
		return err
	}
	defer func() {
		f.Close()
		goruntime.GC() // the next part takes this memory, instead of more
	}()
	if p.All {
		return c.all(p, f)
	}
	ch := &chunk{c: c, f: f, fn: fn}
	if err := ch.prepare(p); err != nil {
		return err
	}
	cost, err := partCost(c.parts.Module, fn, c.stored())
	if err != nil {
		return err
	}
	for lo, hi := 0, cost.end(c.rowPtr(), c.nodes, 0, c.room); lo < c.nodes; {
		if c.Stop != nil {
			if err := c.Stop(); err != nil {
				return err
			}
		}
		next := cost.end(c.rowPtr(), c.nodes, hi, c.room)
		ch.ahead(hi, next)
		if err := ch.run(lo, hi); err != nil {
			return err
		}
		lo, hi = hi, next
	}
	return nil
}

// all runs a part that reads all rows.
func (c *Chunked) all(p *passes.Part, f *Function) error {
	for _, name := range f.Inputs() {
		if err := f.Bind(name, c.value(name)); err != nil {
			return err
		}
		if v := c.values[name]; v != nil {
			scratch.NewAhead(v.F32).InOrder()
		}
	}
	if err := f.Run(0); err != nil {
		return err
	}
	for _, name := range p.Gives {
		b := f.Output(name)
		c.values[name] = &stored{F32(slices.Clone(b.F32), b.Dims...), func() error { return nil }}
	}
	return nil
}

// stored is how many elements of a node's row are stored where features are sparse.
func (c *Chunked) stored() (n int) {
	for _, b := range c.inputs {
		if b.Sparse != nil {
			n = max(n, len(b.Sparse.Values)/max(1, b.Dims[0])+1)
		}
	}
	return n
}

func (c *Chunked) rowPtr() []int32 {
	if c.graph == nil {
		return nil
	}
	return c.graph.In.RowPtr
}

// size finds how many nodes there are: those of the graph, or the rows of the first value.
func (c *Chunked) size(p *passes.Part, fn *ir.Func) error {
	for _, a := range fn.Args {
		b := c.value(a.Name)
		switch {
		case a.Type.IsGraph():
			if b == nil || b.Graph == nil {
				return fmt.Errorf("%s is not bound", a.Ref())
			}
			c.graph, c.nodes = b.Graph, b.Graph.N
			return nil
		case b != nil && c.graph == nil && slices.Contains(p.Own, a.Name) && c.nodes == 0:
			c.nodes = b.Dims[0]
		}
	}
	return nil
}

// chunk is a part as it runs on some nodes after others, with the memory of what is bound.
type chunk struct {
	c       *Chunked
	f       *Function
	fn      *ir.Func
	block   *graph.Structure
	blocked *Buffer
	own     []ownRows
	given   []ownRows
	entries *scratch.Ahead
}

// ownRows is a value of which a chunk reads or gives the rows of its nodes or entries.
type ownRows struct {
	name      string
	all, view *Buffer
	byEntry   bool
	ahead     *scratch.Ahead
}

// width is how many numbers a row has.
func (o *ownRows) width() int { return len(o.all.F32) / max(1, o.all.Dims[0]) }

// span is where its rows are: those of the nodes from lo to hi, or of their entries from first
// to last.
func (o *ownRows) span(lo, hi, first, last int) (from, to int) {
	if o.byEntry {
		return first, last
	}
	return lo, hi
}

// prepare binds what is the same for all chunks, and makes room for what the part gives.
func (ch *chunk) prepare(p *passes.Part) error {
	c := ch.c
	far := map[string]*Buffer{}
	for _, name := range p.Sources {
		far[passes.SourcesOf(name)] = c.value(name)
	}
	var entries ir.Dim
	for _, a := range ch.fn.Args {
		if a.Type.IsGraph() {
			entries = a.Type.Entries()
			in := &kernels.CSR{Cols: c.nodes}
			ch.block = &graph.Structure{In: in, Out: in}
			ch.blocked = Block(ch.block)
			ch.entries = scratch.NewAhead(c.graph.In.Col)
		}
	}
	for _, a := range append(slices.Clone(ch.fn.Args), ch.fn.Params(c.parts.Module)...) {
		if a.Type.IsGraph() {
			continue
		}
		all := c.value(a.Name)
		if x := far[a.Name]; x != nil {
			all = new(*x)
			all.file = scratch.NewAhead(x.F32)
		} else if slices.Contains(p.Own, a.Name) {
			o := ownRows{name: a.Name, all: all, byEntry: a.Type.Dims[0] == entries && entries != ""}
			switch {
			case all == nil && !o.byEntry:
				return fmt.Errorf("%s is not bound", a.Ref())
			case all == nil:
				o.view = &Buffer{DType: ir.F32, Dims: make([]int, 1)}
			default:
				o.view = &Buffer{DType: all.DType, Dims: slices.Clone(all.Dims)}
				o.ahead = scratch.NewAhead(all.F32)
			}
			if all != nil && all.Sparse != nil {
				o.view.Sparse = &SparseMatrix{}
			}
			ch.own = append(ch.own, o)
			continue
		}
		if err := ch.f.Bind(a.Name, all); err != nil {
			return err
		}
	}
	for _, r := range ch.fn.Results {
		shape := []int{c.nodes}
		for _, d := range r.Value.Type.Dims[1:] {
			n, ok := d.Size()
			if !ok {
				return fmt.Errorf("the size of %%%s is not known", r.Name)
			}
			shape = append(shape, n)
		}
		byEntry := r.Value.Type.Dims[0] == entries && entries != ""
		if byEntry {
			shape[0] = c.graph.E
		}
		x, free, err := scratch.Floats(c.dir, count(shape))
		if err != nil {
			return err
		}
		s := &stored{F32(x, shape...), free}
		c.values[r.Name] = s
		ch.given = append(ch.given, ownRows{name: r.Name, all: s.Buffer, byEntry: byEntry, ahead: scratch.NewAhead(x)})
	}
	return nil
}

// ahead has what the part reads for the nodes from lo to hi read from the disk.
func (ch *chunk) ahead(lo, hi int) {
	first, last := 0, 0
	if ptr := ch.c.rowPtr(); ch.block != nil {
		first, last = int(ptr[lo]), int(ptr[hi])
		ch.entries.Range(first, last)
	}
	for i := range ch.own {
		o := &ch.own[i]
		from, to := o.span(lo, hi, first, last)
		if o.all != nil {
			o.ahead.Range(from*o.width(), to*o.width())
		}
	}
}

// run computes the part for the nodes from lo to hi.
func (ch *chunk) run(lo, hi int) error {
	first, last := 0, 0
	if b := ch.block; b != nil {
		all := ch.c.graph.In
		first, last = int(all.RowPtr[lo]), int(all.RowPtr[hi])
		in := b.In
		in.First, in.Rows, in.RowPtr, in.Col = lo, hi-lo, rebase(in.RowPtr, all.RowPtr[lo:hi+1]), all.Col[first:last]
		b.N, b.E = hi-lo, last-first
		ch.blocked.Dims[0], ch.blocked.Dims[1] = b.N, b.E
		for _, a := range ch.fn.Args {
			if a.Type.IsGraph() {
				if err := ch.f.Bind(a.Name, ch.blocked); err != nil {
					return err
				}
			}
		}
	}
	for i := range ch.own {
		o := &ch.own[i]
		from, to := o.span(lo, hi, first, last)
		if o.cut(from, to); o.all == nil {
			o.view.F32 = slices.Grow(o.view.F32[:0], to-from)[:to-from]
			for k := range o.view.F32 {
				o.view.F32[k] = 1
			}
		}
		if err := ch.f.Bind(o.name, o.view); err != nil {
			return err
		}
	}
	if err := ch.f.Run(0); err != nil {
		return err
	}
	for _, o := range ch.given {
		from, _ := o.span(lo, hi, first, last)
		copy(o.all.F32[from*o.width():], ch.f.Output(o.name).F32)
	}
	return nil
}

// cut makes the view the rows from lo to hi.
func (o *ownRows) cut(lo, hi int) {
	v, all := o.view, o.all
	v.Dims[0] = hi - lo
	switch {
	case all == nil:
	case all.Sparse != nil:
		m, s := all.Sparse, v.Sparse
		first, last := m.ByRow.RowPtr[lo], m.ByRow.RowPtr[hi]
		var old []int32
		if s.ByRow != nil {
			old = s.ByRow.RowPtr
		}
		// A structure of its own for each chunk: by that a program knows another one.
		s.ByRow = &kernels.CSR{Rows: hi - lo, Cols: m.ByRow.Cols, RowPtr: rebase(old, m.ByRow.RowPtr[lo:hi+1]), Col: m.ByRow.Col[first:last]}
		s.Values = m.Values[first:last]
	case all.DType == ir.I64:
		w := len(all.I64) / max(1, all.Dims[0])
		v.I64 = all.I64[lo*w : hi*w]
	default:
		w := len(all.F32) / max(1, all.Dims[0])
		v.F32 = all.F32[lo*w : hi*w]
	}
}

// rebase copies offsets so that they begin with 0.
func rebase(dst, ptr []int32) []int32 {
	dst = slices.Grow(dst[:0], len(ptr))[:len(ptr)]
	for i, p := range ptr {
		dst[i] = p - ptr[0]
	}
	return dst
}

// chunkCost is how many bytes a node and an entry of a chunk take.
type chunkCost struct{ node, entry int }

// many is how many nodes, or entries, a part is predicted for.
const many = 1 << 12

// partCost predicts the memory of a part, which grows at most so fast with nodes and entries.
// Of a row of sparse features so many elements are stored.
func partCost(m *ir.Module, fn *ir.Func, stored int) (cost chunkCost, err error) {
	for _, at := range []struct {
		nodes, entries int
		cost           *int
		beside         int // offsets; and which entries and rows are of a tile
	}{{many, 0, &cost.node, 16}, {0, many, &cost.entry, 24}} {
		in := map[string]*Buffer{}
		var g ir.Type
		for _, a := range fn.Args {
			if a.Type.IsGraph() {
				g = a.Type
			}
		}
		for _, a := range fn.Args {
			dims := map[string]int{}
			for _, d := range a.Type.Dims {
				if _, fixed := d.Size(); !fixed {
					dims[string(d)] = at.nodes
				}
			}
			if g.IsGraph() {
				dims[string(g.Entries())] = at.entries
			}
			shape, err := a.Type.Shape(dims)
			if err != nil {
				return cost, err
			}
			if in[a.Name] = (Extent{Dims: shape, Stored: at.nodes * stored}).Buffer(a.Type); a.Type.IsGraph() {
				s := &kernels.CSR{Rows: at.nodes, Cols: at.nodes, RowPtr: make([]int32, at.nodes+1), Col: make([]int32, at.entries)}
				in[a.Name].Graph.In, in[a.Name].Graph.Out = s, s
			}
		}
		mem, err := PredictMemory(CPU, m, fn.Name, in)
		if err != nil {
			return cost, err
		}
		*at.cost = mem.Bytes()*9/8/many + at.beside // with the room that arenas leave
	}
	return cost, nil
}

// end returns where a chunk of so much room ends that begins with node lo: it has one at least.
func (k chunkCost) end(ptr []int32, nodes, lo, room int) int {
	hi := lo
	for used := 0; hi < nodes; hi++ {
		used += k.node
		if ptr != nil {
			used += k.entry * int(ptr[hi+1]-ptr[hi])
		}
		if used > room && hi > lo {
			break
		}
	}
	return hi
}

// LeastRoom returns the bytes that chunks of a function take at least: those of a node with
// so many entries, of whose sparse features so many elements are stored, or those of a part that reads
// all rows.
func LeastRoom(parts *passes.Parts, most, stored int) (room int, err error) {
	for _, p := range parts.List {
		k, err := partCost(parts.Module, parts.Module.Func(p.Func), stored)
		if err != nil {
			return 0, err
		}
		if room = max(room, k.node+k.entry*most); p.All {
			room = max(room, many*k.node)
		}
	}
	return room, nil
}
