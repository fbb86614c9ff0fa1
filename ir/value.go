package ir

import (
	"fmt"
	"slices"
)

// Tensor is a reference value: float64 elements in row-major order, whatever
// the element type (booleans are 0 and 1).
type Tensor struct {
	Shape []int
	Data  []float64
}

// NewTensor returns a zero tensor.
func NewTensor(shape ...int) *Tensor {
	n := 1
	for _, s := range shape {
		n *= s
	}
	return &Tensor{Shape: slices.Clone(shape), Data: make([]float64, n)}
}

// ScalarTensor returns a tensor of rank 0.
func ScalarTensor(v float64) *Tensor { return &Tensor{Data: []float64{v}} }

// Clone copies the tensor.
func (t *Tensor) Clone() *Tensor {
	return &Tensor{Shape: slices.Clone(t.Shape), Data: slices.Clone(t.Data)}
}

// Rows and Cols view a tensor as a matrix: rank 2 as it is, rank 1 as one row,
// rank 0 as one element.
func (t *Tensor) Rows() int {
	if len(t.Shape) == 2 {
		return t.Shape[0]
	}
	return 1
}

// Cols returns the number of columns in the matrix view.
func (t *Tensor) Cols() int {
	if len(t.Shape) == 0 {
		return 1
	}
	return t.Shape[len(t.Shape)-1]
}

// Row returns row i of the matrix view.
func (t *Tensor) Row(i int) []float64 { c := t.Cols(); return t.Data[i*c : (i+1)*c] }

// Graph is a reference graph structure: entry e goes from source Col[e] to
// target Row[e]; entries are sorted by target, then source. A block has Sources
// sources, of which the N targets are the first, and its entries are sorted by
// target alone.
type Graph struct {
	N        int
	Row, Col []int
	Sources  int // 0: a whole graph, whose N nodes are both
}

// sources returns the number of sources.
func (g *Graph) sources() int { return max(g.N, g.Sources) }

// Validate checks the entries against N and their order.
func (g *Graph) Validate() error {
	if len(g.Row) != len(g.Col) {
		return fmt.Errorf("graph has %d targets and %d sources", len(g.Row), len(g.Col))
	}
	for e := range g.Row {
		if g.Row[e] < 0 || g.Row[e] >= g.N || g.Col[e] < 0 || g.Col[e] >= g.sources() {
			return fmt.Errorf("graph entry %d is (%d, %d), outside 0..%d", e, g.Row[e], g.Col[e], g.sources()-1)
		}
		if e > 0 && (g.Row[e-1] > g.Row[e] || g.Sources == 0 && g.Row[e-1] == g.Row[e] && g.Col[e-1] > g.Col[e]) {
			return fmt.Errorf("graph entry %d is out of order", e)
		}
	}
	return nil
}

// Val is a tensor or a graph.
type Val struct {
	T *Tensor
	G *Graph
}

// Random gives the elements of named streams. The interpreter and the kernels
// draw the same numbers when they are given the same source.
type Random interface {
	// Uniform returns element i of the stream, in [0, 1).
	Uniform(stream string, i int) float64
	// Normal returns element i of the stream, standard normal.
	Normal(stream string, i int) float64
	// UniformPair returns the stream's number of the unordered pair {a, b}.
	UniformPair(stream string, a, b int) float64
}

// EvalCtx is what a reference evaluation sees.
type EvalCtx struct {
	Op     *Op
	In     []Val
	Out    []Val
	Shapes [][]int // resolved shapes of the results
	Random Random
	// Base holds the operands at the point where a gradient is taken, while In
	// moves around it, and is nil elsewhere. What stops a gradient reads it.
	Base    []Val
	baseOut []Val
	interp  *interp
	// gradient evaluates the grad operation, which needs its whole function.
	gradient func() error
}

// eval evaluates the operation.
func (c *EvalCtx) eval() (err error) {
	defer failed(&err)
	c.Op.Def.Eval(c)
	return nil
}

// T returns operand i as a tensor, nil where it is absent.
func (c *EvalCtx) T(i int) *Tensor {
	if i >= len(c.In) {
		return nil
	}
	return c.In[i].T
}

// atBase returns operand i at the point where a gradient is taken: T(i) with
// its gradient stopped.
func (c *EvalCtx) atBase(i int) *Tensor {
	if c.Base != nil {
		return c.Base[i].T
	}
	return c.T(i)
}

// detached sets the results to those of the point where a gradient is taken,
// and reports whether there is one.
func (c *EvalCtx) detached() bool {
	if c.Base == nil {
		return false
	}
	copy(c.Out, c.baseOut)
	return true
}

// G returns operand i as a graph.
func (c *EvalCtx) G(i int) *Graph { return c.In[i].G }

// New returns a zero tensor of the shape of result i and makes it the result.
func (c *EvalCtx) New(i int) *Tensor {
	t := NewTensor(c.Shapes[i]...)
	c.Out[i] = Val{T: t}
	return t
}

// Set makes t result i.
func (c *EvalCtx) Set(i int, t *Tensor) { c.Out[i] = Val{T: t} }
