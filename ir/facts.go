package ir

import "slices"

// Read says which part of an operand one row of the results is computed from: one
// element of vectors, all of scalars. Passes and executors ask [Op.Reads].
type Read uint8

// The parts of an operand that one row of the results reads.
const (
	ReadAll     Read = iota // all of it, or parts that other operands select
	ReadElement             // elements at the same place, the operand broadcast by NumPy's rule
	ReadRow                 // the same row
	ReadTarget              // the row of the node that the entry leads to
	ReadSources             // the rows of nodes that entries come from: one hop further
	ReadEntries             // the rows of the entries that lead to the node
	ReadPairs               // the rows of the nodes of a pair, of neighbours of both, or of the entries from these
)

// Finiteness says which results are finite, for operands of moderate size (an overflow
// of sums and products is none of the operation's).
type Finiteness uint8

// When results are finite.
const (
	FiniteSometimes  Finiteness = iota // not for all finite operands
	FiniteIfOperands                   // where all operands are
	FiniteAlways                       // even of NaN and infinities
)

// Elementwise reports whether each element of the result is computed from the elements
// at the same place of the operands.
func (d *OpDef) Elementwise() bool {
	return len(d.Operands) > 0 && len(d.Results) == 1 && !slices.ContainsFunc(d.Operands, func(s OperandSpec) bool { return s.Read != ReadElement })
}

// operand returns what is declared of operand i.
func (d *OpDef) operand(i int) *OperandSpec { return &d.Operands[min(i, len(d.Operands)-1)] }

// InPlace reports whether the result may be written over operand i, where that has the
// same type and is not read afterwards.
func (o *Op) InPlace(i int) bool { return len(o.Results) == 1 && o.Def.operand(i).InPlace }

// Reads returns which part of operand i one row of the results is computed from. A
// broadcast operand without rows of its own is read whole.
func (o *Op) Reads(i int) Read {
	read := o.Def.operand(i).Read
	if o.Def.Reads != nil {
		read = o.Def.Reads(o, i)
	}
	if read != ReadElement {
		return read
	}
	x, y := o.Operands[i].Type, o.Results[0].Type
	if x.Rank() < y.Rank() || x.Rank() > 0 && x.Dims[0] != y.Dims[0] {
		return ReadAll
	}
	return ReadElement
}

// ReadsSameRow reports whether one row of the results reads the same row of operand i
// and no other.
func (o *Op) ReadsSameRow(i int) bool {
	r := o.Reads(i)
	return r == ReadElement || r == ReadRow
}

// View reports whether the result is the operand's own memory, from which row on.
func (o *Op) View() (from int, ok bool) {
	if o.Def.View == nil {
		return 0, false
	}
	return o.Def.View(o)
}

// whole is the [OpDef.View] of operations that give their operand under another type.
func whole(*Op) (int, bool) { return 0, true }

// wholeIfSame is that of operations which do so where the type stays the same.
func wholeIfSame(o *Op) (int, bool) { return 0, o.Operands[0].Type.Equal(o.Results[0].Type) }

// elementOf are operands that are read element by element, by kernels that read a place
// before they write it.
func elementOf(names ...string) []OperandSpec {
	specs := operands(names...)
	for i := range specs {
		specs[i].Read, specs[i].InPlace = ReadElement, true
	}
	return specs
}

// rowsOf are operands that are read row by row.
func rowsOf(names ...string) []OperandSpec {
	specs := operands(names...)
	for i := range specs {
		specs[i].Read = ReadRow
	}
	return specs
}

// linear marks operands in which the operation is linear.
func (d OpDef) linear(is ...int) OpDef {
	for _, i := range is {
		d.Operands[i].Linear = true
	}
	return d
}

// finite marks an operation whose results are finite where its operands are.
func (d OpDef) finite() OpDef {
	d.Finite = FiniteIfOperands
	return d
}

// pads gives an operation a rule for appended rows.
func (d OpDef) pads(f func(*Padding, *Op) []PadValue) OpDef {
	d.Pad = f
	return d
}

// inExpressions marks operations that expressions may hold, of which executors have
// steps: see [Expr].
func inExpressions(ds []OpDef) []OpDef {
	for i := range ds {
		ds[i].InExpr = true
	}
	return ds
}
