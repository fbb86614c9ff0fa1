package pyg

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
)

// suffixes are the ends of tensors' names that layers have, longest first where one
// ends with another.
var suffixes = []string{
	"module.weight", "module.bias", "module.running_mean", "module.running_var", "module.num_batches_tracked",
	"lin_src.weight", "lin_dst.weight", "lin_edge.weight", "lin_l.weight", "lin_l.bias", "lin_r.weight", "lin_r.bias", "lin.weight", "lin.bias", "res.weight",
	"att_src", "att_dst", "att_edge", "att", "running_mean", "running_var", "num_batches_tracked", "weight", "bias",
}

// kinds lists those of layers.
const kinds = GCN + ", " + GAT + ", " + SAGE + ", " + Linear + " and " + BatchNorm

// group sorts tensors into layers, ordered by name, of which nothing else is known yet.
func group(tensors []Tensor) ([]Layer, error) {
	names := map[string]bool{}
	for _, t := range tensors {
		if names[t.Name] {
			return nil, fmt.Errorf("the tensor %q is there twice", t.Name)
		}
		names[t.Name] = true
	}
	groups := map[string]*Layer{}
	var unknown []string
	for i := range tensors {
		name, suffix := split(tensors[i].Name, names)
		if name == "" || suffix == "" {
			unknown = append(unknown, tensors[i].Name)
			continue
		}
		if groups[name] == nil {
			groups[name] = &Layer{Name: name, Activation: "none", tensors: map[string]*Tensor{}}
		}
		groups[name].tensors[suffix] = &tensors[i]
	}
	if len(unknown) > 0 {
		slices.Sort(unknown)
		return nil, fmt.Errorf("no layer that gsrc knows has the tensors %s; it reads %s", quoted(unknown), kinds)
	}
	if len(groups) == 0 {
		return nil, fmt.Errorf("there are no tensors")
	}
	var list []Layer
	for _, name := range slices.Sorted(maps.Keys(groups)) {
		list = append(list, *groups[name])
	}
	return list, nil
}

// split divides a tensor's name into a layer's and the rest. The weight of a layer
// that is itself called lin is distinguished from that of a GCNConv by its neighbours.
func split(tensor string, names map[string]bool) (layer, suffix string) {
	for _, s := range suffixes {
		if tensor != s && !strings.HasSuffix(tensor, "."+s) {
			continue
		}
		layer = strings.TrimSuffix(strings.TrimSuffix(tensor, s), ".")
		if s == "lin.weight" || s == "lin.bias" {
			if layer == "" || isLinear(layer, names) {
				return strings.TrimPrefix(layer+".lin", "."), strings.TrimPrefix(s, "lin.")
			}
		}
		return layer, strings.TrimPrefix(s, "module.")
	}
	return "", ""
}

// isLinear reports whether layer.lin is a Linear by itself, not the weight of a
// convolution called layer: it has a bias, or layer holds other layers too.
func isLinear(layer string, names map[string]bool) bool {
	own := []string{"lin.weight", "lin.bias", "lin_edge.weight", "lin_l.weight", "lin_l.bias", "lin_r.weight", "res.weight", "att_src", "att_dst", "att_edge", "att", "bias"}
	for n := range names {
		if rest, ok := strings.CutPrefix(n, layer+"."); ok && !slices.Contains(own, rest) {
			return true
		}
	}
	return names[layer+".lin.bias"] && !names[layer+".lin_l.weight"]
}

// identify finds out which layer the tensors make.
func (l *Layer) identify() (err error) {
	has := func(name string) bool { return l.tensors[name] != nil }
	if err := l.unsupported(); err != nil {
		return err
	}
	switch {
	case has("att_src"):
		err = l.attention()
	case has("lin_l.weight"):
		l.Kind, l.Root, l.Aggregate = SAGE, has("lin_r.weight"), "mean"
		if err = l.product("lin_l.weight", "lin_l.bias", "lin_r.weight"); err == nil && l.Root {
			err = l.shape("lin_r.weight", l.Out, l.In)
		}
	case has("running_mean"):
		l.Kind, l.Eps = BatchNorm, 1e-5
		if err = l.expect([]string{"running_mean", "running_var"}, []string{"weight", "bias", "num_batches_tracked"}); err != nil {
			break
		}
		l.In = len(l.tensors["running_mean"].Data)
		l.Out = l.In
		for _, name := range []string{"running_mean", "running_var", "weight", "bias"} {
			if err == nil && has(name) {
				err = l.shape(name, l.In)
			}
		}
		if err == nil && has("weight") != has("bias") {
			err = fmt.Errorf("%s has one of weight and bias, and a BatchNorm has both or neither", l.Name)
		}
	case has("lin.weight"):
		l.Kind, l.Normalize, l.SelfLoops = GCN, true, true
		err = l.product("lin.weight", "bias")
	case has("weight") && len(l.tensors["weight"].Shape) == 2:
		l.Kind = Linear
		err = l.product("weight", "bias")
	default:
		err = fmt.Errorf("the tensors %s make no layer that gsrc knows; it reads %s", quoted(l.full()), kinds)
	}
	return err
}

// product reads a weight and the bias that may be beside it; others may be there too.
func (l *Layer) product(weight, bias string, others ...string) error {
	l.Bias = l.tensors[bias] != nil
	err := l.expect([]string{weight}, append(others, bias))
	if err == nil {
		l.Out, l.In, err = l.matrix(weight)
	}
	if err == nil && l.Bias {
		err = l.shape(bias, l.Out)
	}
	return err
}

func (l *Layer) attention() error {
	l.Kind, l.Slope = GAT, 0.2
	// Older versions kept the weight under two names.
	if src, dst := l.tensors["lin_src.weight"], l.tensors["lin_dst.weight"]; src != nil {
		if dst != nil && !(slices.Equal(src.Shape, dst.Shape) && slices.Equal(src.Data, dst.Data)) {
			return fmt.Errorf("%s has different weights for sources and targets (lin_src.weight and lin_dst.weight): a GATConv between two kinds of nodes is not supported", l.Name)
		}
		l.tensors["lin.weight"] = src
		delete(l.tensors, "lin_src.weight")
		delete(l.tensors, "lin_dst.weight")
	}
	if err := l.expect([]string{"lin.weight", "att_src", "att_dst"}, []string{"bias", "res.weight"}); err != nil {
		return err
	}
	t := l.tensors["att_src"]
	if len(t.Shape) != 3 || t.Shape[0] != 1 || t.Shape[1] < 1 || t.Shape[2] < 1 {
		return fmt.Errorf("%s.att_src has the shape %v, and that of a GATConv is [1, heads, columns]", l.Name, t.Shape)
	}
	l.Heads, l.Bias, l.Residual = t.Shape[1], l.tensors["bias"] != nil, l.tensors["res.weight"] != nil
	if err := l.shape("att_dst", t.Shape...); err != nil {
		return err
	}
	all, in, err := l.matrix("lin.weight")
	if err != nil {
		return err
	}
	if l.In = in; all != len(t.Data) {
		return fmt.Errorf("%s.lin.weight has %d rows, and %d heads of %d columns need %d", l.Name, all, l.Heads, t.Shape[2], len(t.Data))
	}
	width := all
	switch {
	case l.Bias:
		width = len(l.tensors["bias"].Data)
		err = l.shape("bias", width)
	case l.Residual:
		width, _, err = l.matrix("res.weight")
	}
	if err == nil && l.Residual {
		err = l.shape("res.weight", width, in)
	}
	if err != nil {
		return err
	}
	if width != all && width != all/l.Heads {
		return fmt.Errorf("%s gives %d columns by its bias, and %d heads of %d columns are %d side by side or %d averaged", l.Name, width, l.Heads, t.Shape[2], all, all/l.Heads)
	}
	l.Concat = width == all
	return nil
}

// unsupported names layers of PyG that are recognised and not read.
func (l *Layer) unsupported() error {
	for _, x := range []struct{ tensor, what string }{
		{"att", "a GATv2Conv (or another layer with one attention vector)"},
		{"att_edge", "a GATConv with edge_dim"},
		{"lin_edge.weight", "a layer with edge features"},
		{"lin_r.bias", "no layer that gsrc knows, such as a TransformerConv or a GATv2Conv"},
	} {
		if l.tensors[x.tensor] != nil {
			return fmt.Errorf("%s is %s by its tensor %s.%s, which is not supported; gsrc reads %s", l.Name, x.what, l.Name, x.tensor, kinds)
		}
	}
	if l.tensors["lin_l.weight"] != nil && l.tensors["lin.weight"] != nil {
		return fmt.Errorf("%s is a SAGEConv with project=True by its tensor %s.lin.weight, which is not supported", l.Name, l.Name)
	}
	return nil
}

// expect checks which tensors a layer has.
func (l *Layer) expect(need, may []string) error {
	var missing, unknown []string
	for _, n := range need {
		if l.tensors[n] == nil {
			missing = append(missing, l.Name+"."+n)
		}
	}
	for _, n := range slices.Sorted(maps.Keys(l.tensors)) {
		if !slices.Contains(need, n) && !slices.Contains(may, n) {
			unknown = append(unknown, l.Name+"."+n)
		}
	}
	switch {
	case len(unknown) > 0:
		return fmt.Errorf("%s is taken for a %s, which has no tensors %s", l.Name, l.Kind, quoted(unknown))
	case len(missing) > 0:
		return fmt.Errorf("%s is taken for a %s, and the tensors %s are missing", l.Name, l.Kind, quoted(missing))
	}
	return nil
}

func (l *Layer) matrix(name string) (rows, cols int, err error) {
	t := l.tensors[name]
	if len(t.Shape) != 2 || t.Shape[0] < 1 || t.Shape[1] < 1 {
		return 0, 0, fmt.Errorf("%s.%s has the shape %v, want [columns out, columns in]", l.Name, name, t.Shape)
	}
	return t.Shape[0], t.Shape[1], nil
}

func (l *Layer) shape(name string, want ...int) error {
	if t := l.tensors[name]; !slices.Equal(t.Shape, want) {
		return fmt.Errorf("%s.%s has the shape %v, want %v", l.Name, name, t.Shape, want)
	}
	return nil
}

func (l *Layer) full() []string {
	var names []string
	for _, n := range slices.Sorted(maps.Keys(l.tensors)) {
		names = append(names, l.Name+"."+n)
	}
	return names
}

func quoted(names []string) string {
	q := make([]string, len(names))
	for i, n := range names {
		q[i] = strconv.Quote(n)
	}
	return strings.Join(q, ", ")
}

// order sorts the layers: as given, or by the last number in their names, a
// BatchNorm behind the layer of its number, and one layer without a number last.
func (s *Stack) order(given []string) error {
	if given != nil {
		return s.reorder(given)
	}
	norm := func(l Layer) int {
		if l.Kind == BatchNorm {
			return 1
		}
		return 0
	}
	slices.SortStableFunc(s.Layers, func(a, b Layer) int {
		return cmp.Or(cmp.Compare(lastNumber(a.Name), lastNumber(b.Name)), cmp.Compare(norm(a), norm(b)))
	})
	for i := 1; i < len(s.Layers); i++ {
		if a, b := s.Layers[i-1], s.Layers[i]; lastNumber(a.Name) == lastNumber(b.Name) && norm(a) == norm(b) {
			return fmt.Errorf("the names %s and %s do not say which layer runs first; say the order of all (%s)", a.Name, b.Name, s.names())
		}
	}
	return nil
}

func (s *Stack) reorder(names []string) error {
	var list []Layer
	for i, n := range names {
		at := slices.IndexFunc(s.Layers, func(l Layer) bool { return l.Name == n })
		switch {
		case at < 0:
			return fmt.Errorf("the order names %q, and there is no such layer; there are %s", n, s.names())
		case slices.Contains(names[:i], n):
			return fmt.Errorf("the order names %q twice", n)
		}
		list = append(list, s.Layers[at])
	}
	for _, l := range s.Layers {
		if !slices.Contains(names, l.Name) {
			return fmt.Errorf("the order leaves out %q", l.Name)
		}
	}
	s.Layers = list
	return nil
}

// lastNumber returns the last number in a name; the largest there is where it has none.
func lastNumber(name string) int {
	digit := func(r rune) bool { return r >= '0' && r <= '9' }
	end := strings.LastIndexFunc(name, digit)
	start := strings.LastIndexFunc(name[:end+1], func(r rune) bool { return !digit(r) }) + 1
	n, err := strconv.Atoi(name[start : end+1])
	if err != nil {
		return math.MaxInt
	}
	return n
}
