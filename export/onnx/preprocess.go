package onnx

import (
	"fmt"
	"math"
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/gsrc-dev/gsrc/data/schema"
	"github.com/gsrc-dev/gsrc/export/onnxpb"
)

const (
	doubleType = onnxpb.TensorProto_DOUBLE
	stringType = onnxpb.TensorProto_DataType(8)
)

// mlDomain is that of the operators for tables; version 2 of LabelEncoder takes texts to
// numbers.
const mlDomain, mlVersion = "ai.onnx.ml", 2

// Preprocess writes the preparation of columns as a model: an input for each column by its
// name, [num_nodes], and the matrix of features, float32 [num_nodes, Width]. A category is
// text, empty at a gap; every other column is float64, NaN at a gap: booleans are 0 and 1,
// times seconds since 1970. output names the matrix: "x", or "x_prepared" where a column has
// that name.
func Preprocess(s *schema.Schema, o ModelOptions) (m *onnxpb.ModelProto, output string, err error) {
	b := newBuilder(o.Name, o.Doc)
	if b.opset, err = CheckOpset(o.Opset); err != nil {
		return nil, "", err
	}
	inputs := make([]tensor, len(s.Columns))
	for i := range s.Columns {
		c := &s.Columns[i]
		dtype := doubleType
		if c.Kind == schema.Category {
			dtype = stringType
		}
		inputs[i] = b.input(c.Name, "column of the table: "+c.About(), dtype, named("num_nodes"))
	}
	output = "x"
	if b.reserve(output) != nil {
		if output = "x_prepared"; b.reserve(output) != nil {
			return nil, "", fmt.Errorf("columns are called x and x_prepared; rename one")
		}
	}
	var parts []tensor
	for i := range s.Columns {
		b.in(fmt.Sprintf("column_%d", i), func() { parts = append(parts, b.column(&s.Columns[i], inputs[i])...) })
	}
	x := b.concat(1, parts...)
	b.output(x, output, "features as the models take them")
	m = b.finish(o)
	m.OpsetImport = append(m.OpsetImport, &onnxpb.OperatorSetIdProto{Domain: mlDomain, Version: mlVersion})
	return m, output, nil
}

// JoinColumns returns a model that takes columns in the place of input x of model: what
// [Preprocess] writes, and model behind it. Both must be of one operator set.
func JoinColumns(prepare, model *onnxpb.ModelProto) (*onnxpb.ModelProto, error) {
	const x, scope = "x", "columns/"
	prepare, joined := proto.Clone(prepare).(*onnxpb.ModelProto), proto.Clone(model).(*onnxpb.ModelProto)
	g := joined.Graph
	taken := outputsOf(g.Node)
	taken[x] = true
	at := slices.IndexFunc(g.Input, func(v *onnxpb.ValueInfoProto) bool { return v.Name == x })
	if at < 0 {
		return nil, fmt.Errorf("columns cannot be joined to a model without an input x; take the two files apart, preprocess.onnx and the model")
	}
	g.Input = slices.Delete(g.Input, at, at+1)
	for _, v := range slices.Concat(g.Input, g.Output) {
		taken[v.Name] = true
	}
	for _, t := range g.Initializer {
		taken[t.Name] = true
	}
	keep := map[string]bool{x: true}
	for _, v := range prepare.Graph.Input {
		if taken[v.Name] {
			return nil, fmt.Errorf("the column %q has the name of a value of the model; rename it to have it in one file with the model", v.Name)
		}
		keep[v.Name] = true
	}
	rename := func(name string) string {
		if keep[name] || name == "" {
			return name
		}
		return scope + name
	}
	p := prepare.Graph
	for _, n := range p.Node {
		n.Name = scope + n.Name
		for _, names := range [][]string{n.Input, n.Output} {
			for i := range names {
				names[i] = rename(names[i])
			}
		}
	}
	for _, t := range p.Initializer {
		t.Name = rename(t.Name)
	}
	for _, v := range p.ValueInfo {
		v.Name = rename(v.Name)
	}
	g.Input, g.Node = append(p.Input, g.Input...), append(p.Node, g.Node...)
	g.Initializer, g.ValueInfo = append(p.Initializer, g.Initializer...), append(p.ValueInfo, g.ValueInfo...)
	g.ValueInfo = append(g.ValueInfo, p.Output[0])
	joined.OpsetImport = append(joined.OpsetImport, prepare.OpsetImport[1:]...)
	return joined, nil
}

// column returns the features of a column, each [num_nodes, n] float32.
func (b *builder) column(c *schema.Column, in tensor) (parts []tensor) {
	feature := func(t tensor) { parts = append(parts, b.unsqueeze(b.cast(t, float32Type), 1)) }
	if c.Kind == schema.Category {
		n := len(c.Categories)
		keys := &onnxpb.AttributeProto{Name: "keys_strings", Type: onnxpb.AttributeProto_STRINGS}
		for _, v := range c.Categories {
			keys.Strings = append(keys.Strings, []byte(v))
		}
		code := b.filledInt(b.sizeOf(in, 0), 0, in.dims...)
		if n > 0 {
			code = b.op("LabelEncoder", Int64Type, in.dims, []tensor{in}, keys, intsAttr("values_int64s", upTo(n)...), intAttr("default_int64", int64(n)))
			b.graph.Node[len(b.graph.Node)-1].Domain = mlDomain
		}
		hit := b.compare("Equal", b.unsqueeze(code, 1), b.ints("const", upTo(n+1), 1, n+1))
		return []tensor{b.cast(hit, float32Type)}
	}
	if c.Kind == schema.Value {
		feature(in)
		return parts
	}
	gap := b.op("IsNaN", boolType, in.dims, []tensor{in})
	fill := c.Center
	if c.Kind == schema.Boolean {
		fill = c.Fill
	}
	x := b.op("Where", doubleType, in.dims, []tensor{gap, b.double(fill), in})
	if c.Kind == schema.Boolean {
		feature(x)
	} else {
		y, center, scale := x, c.Center, c.Scale
		if float32(center) == 0 && center != 0 { // onnxruntime takes that for 0, and leaves the subtraction out
			_, exp := math.Frexp(scale)
			unit := math.Ldexp(1, min(-exp, 1000))
			y, center, scale = b.binary("Mul", x, b.double(unit)), center*unit, scale*unit
		}
		z := b.binary("Div", b.binary("Sub", y, b.double(center)), b.double(scale))
		feature(b.op("Clip", doubleType, z.dims, []tensor{z, b.double(-schema.Clip), b.double(schema.Clip)}))
	}
	if c.Missing {
		feature(gap)
	}
	for _, p := range c.Cycles {
		turns := b.binary("Div", x, b.double(schema.Periods[p]))
		turns = b.binary("Sub", turns, b.unary("Floor", turns))
		angle := b.binary("Mul", b.cast(turns, float32Type), b.floatConst(2*math.Pi))
		for _, f := range []string{"Sin", "Cos"} {
			feature(b.op("Where", float32Type, in.dims, []tensor{gap, b.floatConst(0), b.unary(f, angle)}))
		}
	}
	return parts
}

// double is a constant scalar.
func (b *builder) double(v float64) tensor {
	return b.doubles([]float64{v})
}
