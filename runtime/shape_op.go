package runtime

import (
	"fmt"

	"github.com/gsrc-dev/gsrc/graph"
)

// shapeOp is an operation whose results' sizes depend on its operands' elements:
// sample_block. It runs before the others, when inputs are loaded, so that all
// sizes are known before memory is given out; its results have memory of their
// own that lasts.
type shapeOp struct {
	*Instruction
	block graph.Block
	from  *shapeOp   // whose sources the targets are, nil if they are an input
	in    [2]*Buffer // graph, targets
	out   []*slot    // block, sources, entries

	most [2]int // targets and entries that there have been

	seen [2]stamp // what the block was found for, where inputs change only when they are bound
}

// addShapeOp checks that the operation reads nothing but inputs and what other
// shape operations find.
func (p *program) addShapeOp(o *Instruction) error {
	s := &shapeOp{Instruction: o}
	for i, v := range o.Op.Operands {
		if v.Def != nil && !v.Def.Def.Sizes {
			return fmt.Errorf("%%%s is computed by the program: sizes can depend on its inputs only", v.Name)
		}
		s.in[i] = o.In[i]
	}
	for _, before := range p.shapeOps {
		if before.out[1].view == s.in[1] {
			s.from = before
		}
	}
	s.out = o.outs
	p.shapeOps = append(p.shapeOps, s)
	return nil
}

// resize makes the sizes of its results those of a block.
func (p *program) resize(s *shapeOp, targets, entries, sources int) {
	block, nodes, numbers := s.out[0].view, s.out[1].view, s.out[2].view
	for _, d := range [...]struct {
		b    *Buffer
		i, n int
	}{{block, 0, targets}, {block, 1, entries}, {block, 2, sources}, {nodes, 0, sources}, {numbers, 0, entries}} {
		p.resized = p.resized || d.b.Dims[d.i] != d.n
		d.b.Dims[d.i] = d.n
	}
	s.most = [2]int{max(s.most[0], targets), max(s.most[1], entries)}
}
