package passes

import (
	"fmt"
	"maps"
	"slices"

	"github.com/gsrc-dev/gsrc/ir"
)

// fuse puts chains of pointwise operations into one operation that runs over
// memory once: where a matrix product or an spmm begins the chain into that, as
// what is done to every element while it is in the cache, else into a
// fused_elementwise.
//
// A value disappears only if nobody outside the chain reads it, and a chain takes
// nothing that would keep more values alive than it saves. Sums of products are
// accumulated: matmul_fused adds to its operand c, whose memory it takes over.
func fuse(m *ir.Module, info DataInfo) error {
	for _, f := range m.Funcs {
		dropWithoutDraw(m, f)
		scatterLate(m, f)
		u := &fuser{m: m, f: f, taken: map[*ir.Op]*chain{}}
		u.survey()
		for _, op := range f.Body {
			u.growProduct(op)
		}
		for i := len(f.Body) - 1; i >= 0; i-- {
			u.growElementwise(f.Body[i])
		}
		u.write()
		if len(u.chains) > 0 {
			info.say("fuse", f, u.remark())
		}
	}
	return nil
}

// fuser is the pass on one function.
type fuser struct {
	m       *ir.Module
	f       *ir.Func
	at      map[*ir.Op]int
	readers map[*ir.Value][]*ir.Op // a nil reader is the caller
	chains  []*chain
	taken   map[*ir.Op]*chain
}

// chain is a group of operations that becomes one.
type chain struct {
	product *ir.Op   // that the chain begins with, or nil
	ops     []*ir.Op // pointwise
	root    *ir.Op   // the last
	draws   int
}

// chainMax bounds the operations of a chain, whose registers share a cache.
const chainMax = 24

func (u *fuser) survey() {
	u.at, u.readers = map[*ir.Op]int{}, map[*ir.Value][]*ir.Op{}
	for i, op := range u.f.Body {
		u.at[op] = i
		for k, v := range op.Operands {
			if v != nil && !slices.Contains(op.Operands[:k], v) {
				u.readers[v] = append(u.readers[v], op)
			}
		}
	}
	for _, r := range u.f.Results {
		u.readers[r.Value] = append(u.readers[r.Value], nil)
	}
}

// fits reports whether a chain whose elements have type t may hold op.
func (u *fuser) fits(c *chain, op *ir.Op, t ir.Type) bool {
	if op == nil || u.taken[op] != nil || slices.Contains(c.ops, op) || len(c.ops) >= chainMax {
		return false
	}
	if op.Name() == "broadcast_to" {
		return op.Result().Type.Equal(t)
	}
	return op.Def.InExpr && op.Result().Type.Equal(t) && t.Layout == ir.Dense && t.DType.IsFloat() &&
		!slices.ContainsFunc(op.Operands, func(v *ir.Value) bool { return v.Type.Layout != ir.Dense || v.Type.IsGraph() }) &&
		(!op.Def.Random || c.draws == 0 && op.Str("stream") != "")
}

func (c *chain) add(op *ir.Op) {
	c.ops = append(c.ops, op)
	if op.Def.Random {
		c.draws++
	}
}

// within reports whether every reader of v is in the chain.
func (u *fuser) within(c *chain, v *ir.Value) bool {
	return !slices.ContainsFunc(u.readers[v], func(op *ir.Op) bool { return op == nil || !slices.Contains(c.ops, op) })
}

// growProduct makes the chain that begins with a product: its reader, that one's
// reader and so on, while there is one alone and everything else that it reads is
// there before the product. So the product keeps its place, and of two products
// that are added the later one adds.
func (u *fuser) growProduct(op *ir.Op) {
	if op.Name() != "matmul" && op.Name() != "spmm" {
		return
	}
	c := &chain{product: op}
	t := op.Result().Type
	for v := op.Result(); ; v = c.root.Result() {
		rs := u.readers[v]
		if len(rs) != 1 || !u.fits(c, rs[0], t) || rs[0].Name() == "broadcast_to" {
			break
		}
		grown := &chain{product: op, ops: slices.Clone(c.ops), draws: c.draws, root: rs[0]}
		grown.add(rs[0])
		if !u.bring(grown, rs[0], v, t) {
			break
		}
		c = grown
	}
	u.keep(c, len(c.ops) > 0)
}

// bring reports whether all that op reads beside v is there before the chain's
// product; operations that make it of such values for the chain alone join it.
func (u *fuser) bring(c *chain, op *ir.Op, v *ir.Value, t ir.Type) bool {
	for _, x := range op.Operands {
		if _, isConst := constant(x); x == v || x.Def == nil || isConst || u.at[x.Def] < u.at[c.product] {
			continue
		}
		if !u.fits(c, x.Def, t) || !u.within(c, x) {
			return false
		}
		c.add(x.Def)
		if !u.bring(c, x.Def, nil, t) {
			return false
		}
	}
	return true
}

// growElementwise makes the chain that ends with a pointwise operation.
func (u *fuser) growElementwise(root *ir.Op) {
	if len(root.Results) != 1 || root.Name() == "broadcast_to" {
		return
	}
	c, t := &chain{root: root}, root.Result().Type
	if !u.fits(c, root, t) {
		return
	}
	c.add(root)
	for changed := true; changed; {
		changed = false
		for _, op := range slices.Clone(c.ops) {
			for _, x := range op.Operands {
				if u.fits(c, x.Def, t) && u.within(c, x) && u.cheap(c, x.Def) {
					c.add(x.Def)
					changed = true
				}
			}
		}
	}
	u.keep(c, len(c.ops) > 1)
}

// cheap reports whether op may run as late as the end of the chain: then its
// operands live until there, and its result does not. Several operands that would
// be dead by then are too many, unless nothing else runs meanwhile.
func (u *fuser) cheap(c *chain, op *ir.Op) bool {
	longer := 0
	for k, x := range op.Operands {
		if !x.Type.Equal(op.Result().Type) || slices.Contains(op.Operands[:k], x) || x.Def == nil {
			continue
		}
		if _, isConst := constant(x); !isConst && !slices.ContainsFunc(u.readers[x], func(r *ir.Op) bool { return r == nil || u.at[r] >= u.at[c.root] }) {
			longer++
		}
	}
	if longer < 2 {
		return true
	}
	for _, between := range u.f.Body[u.at[op]+1 : u.at[c.root]] {
		if !between.Def.Elementwise() && !between.Def.InExpr && !between.Def.ShapeOnly {
			return false
		}
	}
	return true
}

func (u *fuser) keep(c *chain, worth bool) {
	if !worth {
		return
	}
	slices.SortFunc(c.ops, func(a, b *ir.Op) int { return u.at[a] - u.at[b] })
	u.chains = append(u.chains, c)
	for _, op := range c.ops {
		u.taken[op] = c
	}
	if c.product != nil {
		u.taken[c.product] = c
	}
}

// write replaces the operations of every chain by one.
func (u *fuser) write() {
	last := map[*ir.Op]*chain{} // by the operation in whose place the chain is
	for _, c := range u.chains {
		last[c.root] = c
		if c.product != nil {
			delete(last, c.root)
			last[c.product] = c
		}
	}
	old := u.f.Body
	b := ir.NewBuilder(u.m, u.f)
	u.f.Body = nil
	with := map[*ir.Value]*ir.Value{}
	for _, op := range old {
		if c := last[op]; c != nil {
			v := c.build(b)
			v.Name = c.root.Result().Name
			with[c.root.Result()] = v
		} else if u.taken[op] == nil {
			u.f.Body = append(u.f.Body, op)
		}
	}
	u.f.Replace(with)
	pruneBody(u.f) // constants that are written in expressions
}

// build appends the operation that the chain becomes.
func (c *chain) build(b *ir.Builder) *ir.Value {
	var e ir.Expr
	var x []*ir.Value
	results := map[*ir.Value]ir.ExprArg{}
	if c.product != nil {
		results[c.product.Result()] = ir.ExprArg{Kind: ir.ExprProduct}
	}
	arg := func(v *ir.Value) ir.ExprArg {
		if a, ok := results[v]; ok {
			return a
		}
		if n, ok := constant(v); ok {
			return ir.ExprArg{Kind: ir.ExprNumber, Value: n}
		}
		k := slices.Index(x, v)
		if k < 0 {
			k = len(x)
			x = append(x, v)
		}
		return ir.ExprArg{Kind: ir.ExprOperand, Index: k}
	}
	ops := c.ops
	var sum *ir.Value
	if c.product != nil {
		sum, ops = c.summand()
		if sum != nil {
			results[c.ops[len(c.ops)-len(ops)-1].Result()] = ir.ExprArg{Kind: ir.ExprProduct}
		}
	}
	stream := ""
	for _, op := range ops {
		if op.Name() == "broadcast_to" {
			results[op.Result()] = arg(op.Operands[0])
			continue
		}
		s := ir.ExprStep{Def: op.Def, Attr: op.Number()}
		for _, v := range op.Operands {
			s.Args = append(s.Args, arg(v))
		}
		if op.Def.Random {
			stream = op.Str("stream")
		}
		results[op.Result()] = ir.ExprArg{Kind: ir.ExprResult, Index: len(e.Steps)}
		e.Steps = append(e.Steps, s)
	}
	e.Out = results[c.root.Result()]

	attrs := ir.Attrs{}
	if text := e.String(); c.product == nil || text != "p" {
		attrs["expr"] = text
	}
	if stream != "" {
		attrs["stream"] = stream
	}
	t := c.root.Result().Type
	if c.product == nil {
		return b.OneTyped("fused_elementwise", attrs, t, x...)
	}
	maps.Copy(attrs, c.product.Attrs)
	operands := append(slices.Clone(c.product.Operands), sum)
	return b.OneTyped(c.product.Name()+"_fused", attrs, t, append(operands, x...)...)
}

// summand returns what the chain's first operation adds to the product, if it
// does and that has the product's type, and the operations that are left.
func (c *chain) summand() (*ir.Value, []*ir.Op) {
	p := c.product.Result()
	k := slices.IndexFunc(c.ops, func(op *ir.Op) bool { return slices.Contains(op.Operands, p) })
	first := c.ops[k]
	if first.Name() != "add" || k > 0 {
		return nil, c.ops
	}
	other := first.Operands[0]
	if other == p {
		other = first.Operands[1]
	}
	if other == p || !other.Type.Equal(p.Type) {
		return nil, c.ops
	}
	if _, isConst := constant(other); isConst {
		return nil, c.ops
	}
	return other, c.ops[1:]
}

// remark counts what was fused.
func (u *fuser) remark() string {
	products, into, chains, of := 0, 0, 0, 0
	for _, c := range u.chains {
		if c.product != nil {
			products, into = products+1, into+len(c.ops)
		} else {
			chains, of = chains+1, of+len(c.ops)
		}
	}
	return fmt.Sprintf("products: %d, with %d operations in them; sweeps: %d, of %d operations", products, into, chains, of)
}
