package data

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/gsrc-dev/gsrc/graph"
	"github.com/gsrc-dev/gsrc/internal/budget"
	"github.com/gsrc-dev/gsrc/internal/lists"
)

// Collection is many attributed graphs, each with a label of its own: what graph
// classification learns from. [Collection.Batch] joins some of them into one
// graph, [Collection.FoldsFor] says which to train and to judge on.
type Collection struct {
	Name   string // short name in lower case, such as "mutag"
	Source string // path it was loaded from
	Format string // tu or gin-text

	Graphs []*graph.Graph // [G], each with nodes 0..N_g-1, without self-loops or repeated edges
	// X is [ΣN_g, D]: the rows of graph g are Offset[g] to Offset[g+1], not
	// included.
	X      *Features
	Offset []int32 // [G+1]
	Labels []int32 // [G], class 0..Classes-1, or -1 where it is unknown

	Classes    int
	ClassNames []string // [Classes] as the files call them; nil if they are 0..Classes-1

	// FeatureNames says for each column of X what it holds, such as "label 3" or
	// "degree 12".
	FeatureNames []string

	// EdgeLabels is nil, or for each graph the label of each of its edges, as the
	// file has them; of an edge listed in both directions, the first one's.
	EdgeLabels [][]int64

	Folds []Split // those that came with the data; Val is empty

	// Unused names what the files have and X leaves out.
	Unused   []string
	Repairs  Repairs
	Checksum string // SHA-256 over the input files, in hexadecimal
}

// NodeFeatures says what describes the nodes of a collection.
type NodeFeatures string

// What may describe nodes. Labels become one-hot columns, one for each value that
// occurs, in ascending order; so do degrees.
const (
	// FeaturesAuto is labels where there are any, else attributes, else degrees:
	// what "How powerful are graph neural networks" (Xu et al., ICLR 2019) does.
	FeaturesAuto       NodeFeatures = ""
	FeaturesLabels     NodeFeatures = "labels"
	FeaturesAttributes NodeFeatures = "attributes"
	FeaturesBoth       NodeFeatures = "both" // attributes, then labels
	FeaturesDegrees    NodeFeatures = "degrees"
	// FeaturesPlaces is of data sets of one graph: [Dataset.DescribeByPlaces].
	FeaturesPlaces NodeFeatures = "places"
	// FeaturesRoles is of data sets of one graph, too: the first [graph.RoleWidth] columns of these, by which
	// nodes are alike where the graph around them is, wherever they are in it.
	FeaturesRoles NodeFeatures = "roles"
)

// Structural reports whether nodes are described by the graph in the place of features that they have.
func (f NodeFeatures) Structural() bool { return f == FeaturesPlaces || f == FeaturesRoles }

// ParseNodeFeatures reads one of the constants; "auto" is the empty one.
func ParseNodeFeatures(s string) (NodeFeatures, error) {
	switch f := NodeFeatures(s); f {
	case "auto":
		return FeaturesAuto, nil
	case FeaturesAuto, FeaturesLabels, FeaturesAttributes, FeaturesBoth, FeaturesDegrees, FeaturesPlaces, FeaturesRoles:
		return f, nil
	}
	return "", fmt.Errorf("node features %s: write auto, labels, attributes, both or degrees, or of one graph places or roles", quote(s))
}

// LoadCollection reads the collection of graphs at path: a TU data set, a folder
// or the .zip as downloaded, or a file in GIN's text format, by itself, in a
// folder or a .zip. Bad input gives a *FileError. It returns a complete
// collection or an error, never a part.
func LoadCollection(path string, opts LoadOptions) (*Collection, error) {
	l := newLoader(opts)
	r, err := l.recognise(path)
	if err != nil {
		return nil, overBudget(path, err)
	}
	if r.collection == nil {
		return nil, badFile(path, "one graph, where a collection of graphs is wanted").hint("data.Load reads it")
	}
	return l.finishCollection(path, r)
}

func (l *loader) finishCollection(path string, r reader) (_ *Collection, err error) {
	defer limited(path, &err)
	if l.opts.NodeFeatures, err = ParseNodeFeatures(string(l.opts.NodeFeatures)); err != nil {
		return nil, err
	}
	if l.opts.NodeFeatures.Structural() {
		return nil, fmt.Errorf("%s: nodes are described by %s in data sets of one graph; this is a collection of graphs", path, l.opts.NodeFeatures)
	}
	if l.opts.AddEdges != 0 || l.opts.RemoveEdges != 0 {
		return nil, fmt.Errorf("%s: edges are added and removed in data sets of one graph; this is a collection of graphs", path)
	}
	if l.opts.Edges != "" {
		return nil, fmt.Errorf("%s: edges are made of features in data sets of one graph (data.edges); this is a collection of graphs", path)
	}
	if l.opts.Split != "" {
		return nil, badFile(path, "split %s: a collection of graphs is split into folds of graphs, one for each seed", quote(l.opts.Split)).hint("leave --split out")
	}
	if err := l.withoutTables(path); err != nil {
		return nil, err
	}
	c, err := r.collection()
	if err != nil {
		return nil, err
	}
	c.Checksum = l.checksum()
	c.Repairs.EmptyRows = c.X.EmptyRows()
	c.Repairs.Unlabelled = len(c.Graphs) - len(labelled(c.Labels))
	if err := c.Check(); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return c, nil
}

// Nodes returns how many nodes all graphs have together.
func (c *Collection) Nodes() int { return int(c.Offset[len(c.Offset)-1]) }

// NumEdges returns how many edges all graphs have together, undirected ones once.
func (c *Collection) NumEdges() int {
	n := 0
	for _, g := range c.Graphs {
		n += len(g.Edges)
	}
	return n
}

// Union returns all graphs as one, without edges between them: node v of graph g is node
// Offset[g] + v. Weights are left out.
func (c *Collection) Union() *graph.Graph {
	u := &graph.Graph{N: c.Nodes(), Edges: make([][2]int32, 0, c.NumEdges()), Directed: c.Graphs[0].Directed}
	for g, one := range c.Graphs {
		base := c.Offset[g]
		for _, e := range one.Edges {
			u.Edges = append(u.Edges, [2]int32{e[0] + base, e[1] + base})
		}
	}
	return u
}

// GraphOf returns the graph that row v of X belongs to.
func (c *Collection) GraphOf(v int32) int {
	g, found := slices.BinarySearch(c.Offset, v)
	if !found {
		g--
	}
	return g
}

// cut divides a graph without edges between its parts, which begin at offset.
func cut(union *graph.Graph, offset []int32) []*graph.Graph {
	parts := make([]*graph.Graph, len(offset)-1)
	edges := union.Edges
	for g := range parts {
		lo, hi := offset[g], offset[g+1]
		n, _ := slices.BinarySearchFunc(edges, hi, func(e [2]int32, v int32) int { return int(e[0]) - int(v) })
		own := edges[:n:n]
		edges = edges[n:]
		for i := range own {
			own[i][0] -= lo
			own[i][1] -= lo
		}
		parts[g] = &graph.Graph{N: int(hi - lo), Edges: own, Directed: union.Directed}
	}
	return parts
}

// Check verifies what the rest of gsrc relies on.
func (c *Collection) Check() error {
	n := len(c.Graphs)
	if n == 0 {
		return errors.New("the collection has no graphs")
	}
	if len(c.Offset) != n+1 || c.Offset[0] != 0 || len(c.Labels) != n || c.EdgeLabels != nil && len(c.EdgeLabels) != n {
		return fmt.Errorf("%d graphs, but %d offsets, %d labels and %d lists of edge labels", n, len(c.Offset), len(c.Labels), len(c.EdgeLabels))
	}
	for g, one := range c.Graphs {
		if one.N == 0 || int(c.Offset[g+1]-c.Offset[g]) != one.N {
			return fmt.Errorf("graph %d has %d nodes and %d rows of features", g, one.N, c.Offset[g+1]-c.Offset[g])
		}
		if err := one.Validate(); err != nil {
			return fmt.Errorf("graph %d: %w", g, err)
		}
		if c.Labels[g] < -1 || int(c.Labels[g]) >= c.Classes {
			return fmt.Errorf("graph %d has label %d, classes are 0 to %d", g, c.Labels[g], c.Classes-1)
		}
		if c.EdgeLabels != nil && len(c.EdgeLabels[g]) != len(one.Edges) {
			return fmt.Errorf("graph %d has %d edges and %d edge labels", g, len(one.Edges), len(c.EdgeLabels[g]))
		}
	}
	if c.X == nil || c.X.Rows != c.Nodes() || c.X.Cols != len(c.FeatureNames) {
		return errors.New("the features do not fit the nodes")
	}
	if c.Classes > maxClasses || c.ClassNames != nil && len(c.ClassNames) != c.Classes {
		return fmt.Errorf("%d classes with %d names", c.Classes, len(c.ClassNames))
	}
	for i, f := range c.Folds {
		if err := f.check(c.Labels); err != nil {
			return fmt.Errorf("fold %d: %w", i+1, err)
		}
	}
	return c.X.Check()
}

// numberClasses numbers classes by ascending value. The names are nil where the values are 0, 1, …
// already.
func numberClasses(mem *budget.Reservation, raw []int64) (labels []int32, names []string, classes int, err error) {
	defer caught(&err)
	values := distinct(mem, raw, 1, 0)
	if len(values) > maxClasses {
		return nil, nil, 0, fmt.Errorf("%d different classes; at most %d are supported", len(values), maxClasses)
	}
	labels = zeros[int32](mem, len(raw))
	for i, v := range raw {
		k, _ := slices.BinarySearch(values, v)
		labels[i] = int32(k)
	}
	if len(values) == 0 || values[0] == 0 && values[len(values)-1] == int64(len(values)-1) {
		return labels, nil, len(values), nil
	}
	names = lists.Map(values, func(v int64) string { return strconv.FormatInt(v, 10) })
	return labels, names, len(values), nil
}

// distinct returns the values of column c of a matrix with that many columns, each
// once, ascending.
func distinct(mem *budget.Reservation, values []int64, cols, c int) []int64 {
	seen := map[int64]struct{}{}
	var out []int64
	for i := c; i < len(values); i += cols {
		if _, ok := seen[values[i]]; ok {
			continue
		}
		if len(out)%entriesAtOnce == 0 {
			claim(mem, entriesAtOnce*entryBytes)
			defer mem.Shrink(entriesAtOnce * entryBytes)
		}
		seen[values[i]] = struct{}{}
		out = append(out, values[i])
	}
	slices.Sort(out)
	return out
}

// An entry of a map from one number to another takes so much, its place in a list and
// room to grow included; that many are claimed at once.
const (
	entryBytes    = 96
	entriesAtOnce = 1 << 12
)

// nameBytes is what the name of a column takes, such as "label 12345".
const nameBytes = 64

// described is what the files of a collection say of the nodes.
type described struct {
	labels    []int64 // [ΣN, labelCols]
	labelCols int
	attrs     *Features // dense [ΣN, A], or nil
}

// LackingError says which of labels and attributes was asked for that nodes do not have.
type LackingError string

func (e LackingError) Error() string { return "the nodes have no " + string(e) }

// describe makes X of what the files say of the nodes and what is asked for.
func (c *Collection) describe(want NodeFeatures, d described, mem *budget.Reservation) (err error) {
	defer within(c.Source, &err)
	if want == FeaturesAuto {
		switch {
		case d.labelCols > 0:
			want = FeaturesLabels
		case d.attrs != nil:
			want = FeaturesAttributes
		default:
			want = FeaturesDegrees
		}
	}
	useLabels := want == FeaturesLabels || want == FeaturesBoth
	useAttrs := want == FeaturesAttributes || want == FeaturesBoth
	var lacking LackingError
	switch {
	case useLabels && d.labelCols == 0:
		lacking = "labels"
	case useAttrs && d.attrs == nil:
		lacking = "attributes"
	}
	if lacking != "" {
		return badFile(c.Source, "").because(lacking).hint("leave the choice of node features out, or take degrees")
	}
	var left *Features
	if useAttrs {
		left = d.attrs
		claim(mem, nameBytes*int64(left.Cols))
		c.FeatureNames = lists.Of(left.Cols, func(j int) string { return "attribute " + strconv.Itoa(j) })
	} else if d.attrs != nil {
		c.Unused = append(c.Unused, fmt.Sprintf("node attributes, %d columns", d.attrs.Cols))
	}
	var codes []int64
	cols, word := 0, "label"
	switch {
	case useLabels:
		codes, cols = d.labels, d.labelCols
	case want == FeaturesDegrees:
		claim(mem, 8*int64(c.Nodes()))
		codes, cols, word = c.degrees(), 1, "degree"
	}
	if !useLabels && d.labelCols > 0 {
		c.Unused = append(c.Unused, "node labels")
	}
	if cols == 0 {
		if c.X, err = left.compact(mem); err != nil {
			return fileFault(c.Source, err)
		}
		return nil
	}
	x, names, err := oneHot(mem, c.Nodes(), codes, cols, word, left)
	if err != nil {
		return fileFault(c.Source, err)
	}
	c.X, c.FeatureNames = x, append(c.FeatureNames, names...)
	return nil
}

func (c *Collection) degrees() []int64 {
	out := make([]int64, 0, c.Nodes())
	for _, g := range c.Graphs {
		for _, d := range g.Degrees() {
			out = append(out, int64(d))
		}
	}
	return out
}

// oneHot makes a column for each value that each column of codes [n, cols] has,
// to the right of left, which may be nil.
func oneHot(mem *budget.Reservation, n int, codes []int64, cols int, word string, left *Features) (*Features, []string, error) {
	entries := int64(n) * int64(cols)
	if left != nil {
		entries += int64(left.NNZ())
		claim(mem, 4*int64(n+1)+8*int64(left.NNZ()))
		left = left.ToCSR()
	}
	if entries > math.MaxInt32 {
		return nil, nil, fmt.Errorf("more than %d values", math.MaxInt32)
	}
	claim(mem, 4*int64(n+1)+8*entries)
	f := &Features{Rows: n, RowPtr: make([]int32, 1, n+1), Col: make([]int32, 0, entries), Val: make([]float32, 0, entries)}
	if left != nil {
		f.Cols = left.Cols
	}
	var names []string
	column := make([]map[int64]int32, cols)
	for c := range column {
		column[c] = map[int64]int32{}
		values := distinct(mem, codes, cols, c)
		claim(mem, (entryBytes+nameBytes)*int64(len(values)))
		for _, v := range values {
			column[c][v] = int32(f.Cols)
			name := word + " " + strconv.FormatInt(v, 10)
			if cols > 1 {
				name = word + " " + strconv.Itoa(c) + " = " + strconv.FormatInt(v, 10)
			}
			names = append(names, name)
			if f.Cols++; f.Cols > maxCols {
				return nil, nil, fmt.Errorf("the nodes have more than %d different labels", maxCols)
			}
		}
	}
	for i := range n {
		if left != nil {
			lo, hi := left.RowPtr[i], left.RowPtr[i+1]
			f.Col, f.Val = append(f.Col, left.Col[lo:hi]...), append(f.Val, left.Val[lo:hi]...)
		}
		for c, v := range codes[i*cols : (i+1)*cols] {
			f.Col, f.Val = append(f.Col, column[c][v]), append(f.Val, 1)
		}
		f.RowPtr = append(f.RowPtr, int32(len(f.Col)))
	}
	f, err := f.compact(mem)
	return f, names, err
}

// FeaturesNamed returns what nodes are described by where the columns of X have these names, as
// [FeaturesAuto] chose it.
func FeaturesNamed(names []string) NodeFeatures {
	has := func(word string) bool {
		return slices.ContainsFunc(names, func(name string) bool { return strings.HasPrefix(name, word+" ") })
	}
	switch labels, attributes := has("label"), has("attribute"); {
	case labels && attributes:
		return FeaturesBoth
	case labels:
		return FeaturesLabels
	case attributes:
		return FeaturesAttributes
	}
	return FeaturesDegrees
}

// featureKind says in a few words what the columns of X hold.
func (c *Collection) featureKind() string {
	var kinds []string
	for _, name := range c.FeatureNames {
		word, _, _ := strings.Cut(name, " ")
		if k := map[string]string{"label": "node labels", "degree": "degrees", "attribute": "node attributes"}[word]; !slices.Contains(kinds, k) {
			kinds = append(kinds, k)
		}
	}
	return strings.Join(kinds, " and ")
}
