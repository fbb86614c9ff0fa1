package data

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"

	"github.com/gsrc-dev/gsrc/data/schema"
	"github.com/gsrc-dev/gsrc/data/store"
	"github.com/gsrc-dev/gsrc/graph"
	"github.com/gsrc-dev/gsrc/internal/budget"
	"github.com/gsrc-dev/gsrc/internal/lists"
	"github.com/gsrc-dev/gsrc/internal/rss"
)

// Dataset is an attributed graph, ready for training or prediction.
type Dataset struct {
	Name   string // short name, such as "cora"
	Source string // path it was loaded from, or "synthetic"
	Format string // planetoid, heterophilous, csr-npz, ogb, folder, store or synthetic

	Graph *graph.Graph // N nodes; without self-loops or repeated edges
	// Loops holds the weights of the self-loops that the data list, -1 of nodes that have none
	// [N]; nil where edges have no weights, or none is a loop. Imported models alone read them.
	Loops  []float32
	X      *Features // [N,D], raw
	Labels []int32   // [N], class 0..Classes-1, or -1 if unknown

	Classes    int
	ClassNames []string // [Classes], or nil if classes have only numbers
	NodeIDs    []string // [N], or nil if nodes are called 0..N-1

	// Splits are those that came with the data: none, one public split, or
	// several fixed ones. SplitSpec, if set, takes their place; with a Ratio
	// their validation and test nodes stay.
	Splits    []Split
	SplitSpec *SplitSpec

	// Roles says which columns of the tables of a folder are what, and Columns how the
	// others became X; they are empty for data of other formats. Notes says what was
	// guessed and left out in reading, and Merge what weight edges have that are listed more than once:
	// [MergeFirst] if empty.
	Roles   Roles
	Merge   string
	Columns *schema.Schema
	Notes   []string
	Ignored []string // [Tables.Ignore]

	// Structural tells that the files have no features: X is [graph.Encodings].
	Structural bool

	Repairs  Repairs
	Checksum string // SHA-256 over the input files in a fixed order, in hexadecimal
	Truth    *Truth // what only a generator knows; nil for real data
	// Corruption says how Graph was damaged on purpose; nil if it was not.
	Corruption *Corruption
	// Rewired says which edges took the place of the data's own; nil if none did.
	Rewired *Rewired

	// Stored is the graph store that the data lie in; nil for other formats.
	Stored *store.Store

	transformed bool // weights of edges are not those of the files

	times []float64 // [N], by which SplitSpec splits, NaN where unknown; nil if it does not
}

// Repairs counts what a loader changed or found missing. None of it is an
// error; all of it is shown by gsrc data info.
type Repairs struct {
	// DuplicateEdges counts edges listed again in the same direction. They
	// are merged; the first weight stays, unless Tables.Merge says otherwise.
	DuplicateEdges int `json:"duplicate_edges"`
	// ReversedEdges counts edges of an undirected graph that were also listed
	// in the other direction, and merged. In Planetoid's adjacency lists and
	// in CSR matrices every edge is, so there they are not counted.
	ReversedEdges int `json:"reversed_edges"`
	// OneWayEdges counts edges that an adjacency list or a CSR matrix has in
	// one direction only; they were made undirected.
	OneWayEdges int `json:"one_way_edges"`
	// WeightConflicts counts merged edges whose weights differed, and Merge says what was made
	// of them: Tables.Merge, empty for the first.
	WeightConflicts int    `json:"weight_conflicts"`
	Merge           string `json:"merge,omitempty"`
	// SelfLoops counts edges from a node to itself. They are removed.
	SelfLoops int `json:"self_loops"`
	// MissingNodes counts nodes that the numbering implies and the files say
	// nothing of (the gaps in Citeseer's test index). They stay, without
	// features and label.
	MissingNodes int `json:"missing_nodes"`
	// Unlabelled counts nodes without a label, missing ones included; of a collection, graphs
	// without a class.
	Unlabelled int `json:"unlabelled"`
	// EmptyRows counts nodes whose features are all zero, unless columns were prepared.
	EmptyRows int `json:"empty_rows"`
	// SplitUnlabelled counts entries of a split that were dropped because the
	// node has no label; of a collection, those of its folds.
	SplitUnlabelled int `json:"split_unlabelled"`
}

var errNoNodes = errors.New("the graph has no nodes")

// maxClasses bounds what a file may claim; per-class tables are made of it.
const maxClasses = 1 << 16

// LoadOptions says how to read a data set. The zero value is an undirected
// graph with the splits that come with the data.
type LoadOptions struct {
	// Directed keeps the direction of edges.
	Directed bool
	// Split draws splits instead of taking those that come with the data:
	// "per-class:20,500,1000", "random:0.6,0.2,0.2" or "ratio:0.05"; see
	// ParseSplit.
	Split string
	// Seed is the seed of the synthetic graph, of corruption, and of the split whose training nodes Edges
	// reads; Synthetic.Seed is not used. Splits are drawn by Dataset.SplitFor with a seed of their own.
	Seed uint64
	// AddEdges and RemoveEdges corrupt the graph after it was read: see
	// Dataset.Corrupt.
	AddEdges, RemoveEdges float64
	// Edges puts others in the place of the graph's edges, after these were corrupted: see
	// graph.ParseRewiring; empty leaves them as they are.
	Edges string
	// Synthetic describes the graph that the path "synthetic" generates; nil
	// is graph.DefaultCSBM().
	Synthetic *graph.CSBM
	// NodeFeatures says what the nodes of a collection of graphs are described
	// by: FeaturesAuto (the zero value) and the other constants of that kind. Of those
	// FeaturesPlaces and FeaturesRoles, which no collection has, say something of one graph.
	NodeFeatures NodeFeatures
	// Tables says how tables of nodes and edges are read.
	Tables Tables
	// Weights says what becomes of the weights of edges.
	Weights EdgeWeights
	// NoPrepare takes the columns of tables as numbers, as they are.
	NoPrepare bool
	// Columns are those of a model that the features are for: columns are found by name
	// and prepared as those of the model's training were. nil fits new ones.
	Columns *schema.Schema
	// Roles, Merge and Ignored are those of the [Dataset] that a model was trained on, which hold where
	// neither Tables nor a schema.toml say otherwise. Those of Columns hold where there are no Roles.
	Roles   Roles
	Merge   string
	Ignored []string
	// Trained is the Checksum of what a model was trained on: tables that have it by themselves are read
	// without a schema.toml, which was written later, and a store has it that was converted from them without loss.
	Trained string
	// Output, if not empty, is a file that is to be written: reading it is refused.
	Output string
	// MaxBytes is how many bytes of memory loading may take: the files, what they
	// unpack to, and the data set made of them. What would take more is refused before
	// it is allocated. 0 is what the process may use: the limit of its cgroup,
	// GOMEMLIMIT, or else most of the machine's memory.
	MaxBytes int64
}

// GenerateAs has the synthetic graph generated as that of a model's training, by its seed unless there is
// another; nil leaves it as it is.
func (o *LoadOptions) GenerateAs(training *graph.CSBM) {
	if training == nil || o.Synthetic != nil {
		return
	}
	if o.Synthetic = training; o.Seed == 0 {
		o.Seed = training.Seed
	}
}

// Spare refuses a path that is the file to be written.
func (o *LoadOptions) Spare(path string) error {
	out, err := os.Stat(o.Output)
	if err != nil {
		return nil
	}
	if read, err := os.Stat(path); err != nil || !os.SameFile(out, read) {
		return nil
	}
	return badFile(path, "the output would replace this file, which is read").hint("write to another file")
}

// Synthetic is the path that stands for a generated graph. A folder of that
// name is reached as "./synthetic".
const Synthetic = "synthetic"

// ErrCollection is the cause of the error of [Load] where there is a collection of graphs.
var ErrCollection = errors.New("a collection of graphs, where one graph is wanted")

// Load reads the data set at path; the package comment lists the formats. Where
// nothing is at path and it is the name of a public data set, a copy on this machine
// is read; see package catalog. Bad input gives a *FileError. It returns a complete data set or an error, never a
// part.
func Load(path string, opts LoadOptions) (*Dataset, error) {
	l, r, err := open(path, opts)
	if err != nil {
		return nil, err
	}
	if r.dataset == nil {
		return nil, fileFault(path, ErrCollection).hint("gsrc data info shows it, data.LoadCollection reads it")
	}
	return l.finish(path, r)
}

// finish reads a data set and fills in what every format has in common.
func (l *loader) finish(path string, r reader) (_ *Dataset, err error) {
	defer limited(path, &err)
	defer rss.Leave(rss.Enter("reading data"))
	ds, err := r.dataset()
	if err != nil {
		return nil, err
	}
	if err := l.unread(path, ds); err != nil {
		return nil, err
	}
	if c := l.opts.Columns; c != nil && len(c.Columns) > 0 && ds.Columns == nil {
		if ds.X.Cols != c.Width() {
			return nil, badFile(path, "has %d features without names, and the model reads %d columns by their names, such as %s, or the %d features that they become", ds.X.Cols, len(c.Columns), quote(c.Columns[0].Name), c.Width()).hint("give a folder with a table of nodes")
		}
		ds.Notes = append(ds.Notes, "features without names are taken as prepared already, in the order of the model's")
	}
	if c := ds.Columns; c != nil && l.opts.Columns == nil && l.opts.Trained != "" && !l.opts.NodeFeatures.Structural() {
		ds.Notes = append(ds.Notes, fmt.Sprintf("the model's features have no names, so the columns of %s are taken in their order: %s", path, quoteSome(lists.Map(c.Columns, func(x schema.Column) string { return x.Name }))))
	}
	if f, _ := ParseNodeFeatures(string(l.opts.NodeFeatures)); f != FeaturesAuto && !f.Structural() {
		ds.Notes = append(ds.Notes, fmt.Sprintf("node features of the kind %s are of collections of graphs, and change nothing here; of one graph there are %s and %s", f, FeaturesPlaces, FeaturesRoles))
	}
	if l.split != nil {
		ds.SplitSpec = l.split
	}
	if l.opts.Weights == WeightsAsTheyAre {
		ds.noteWeights()
	}
	if weighted := ds.Graph.Weights != nil || ds.Stored == nil && ds.Roles.Weight != ""; weighted && l.opts.Weights == IgnoreWeights && l.opts.Trained != "" && l.opts.Roles.Weight == "" {
		ds.Notes = append(ds.Notes, fmt.Sprintf("the model reads no weights of edges: those that %s has are left out", path))
	}
	l.opts.Weights.Apply(ds)
	if ds.Checksum == "" {
		ds.Checksum = l.checksum()
	}
	if err := ds.finish(); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if l.opts.NodeFeatures.Structural() {
		if err := taking(l.mem, graph.EncodingBytes(ds.Graph.N), ds.DescribeByPlaces); err != nil {
			return nil, err
		}
	}
	if err := l.corrupt(ds); err != nil {
		return nil, err
	}
	if l.opts.NodeFeatures == FeaturesRoles {
		ds.PlacesAs(graph.RoleWidth)
	}
	edges, err := graph.ParseRewiring(l.opts.Edges)
	if err != nil {
		return nil, fmt.Errorf("the edges of %s %w", path, err)
	}
	if err := taking(l.mem, edges.Bytes(ds.Graph.N, ds.X.Attributes()), func() error { return ds.Rewire(l.opts.Edges, l.opts.Seed) }); err != nil {
		return nil, err
	}
	// What is read for a training, or as that of a model, has the seed of its synthetic graph.
	if x := l.opts.Synthetic; l.opts.Seed != 0 && (x == nil || x.Seed != l.opts.Seed) && ds.SplitSpec == nil && !ds.Seeded() {
		ds.Notes = append(ds.Notes, fmt.Sprintf("the seed %d changes nothing of %s: it is for graphs that are generated or damaged, and for splits that are drawn", l.opts.Seed, path))
	}
	return ds, nil
}

func (l *loader) corrupt(ds *Dataset) error {
	if l.opts.AddEdges == 0 && l.opts.RemoveEdges == 0 {
		return nil
	}
	// The numbers of the edges drawn, the new edges and the two graphs, sorted. There are
	// no more edges than pairs of nodes: Corrupt says so.
	n := float64(ds.Graph.N)
	drawn := int64(64 * min(float64(len(ds.Graph.Edges))*(1+l.opts.AddEdges), n*n))
	if ds.Structural {
		drawn += graph.EncodingBytes(ds.Graph.N)
	}
	return taking(l.mem, drawn, func() error { return ds.Corrupt(l.opts.AddEdges, l.opts.RemoveEdges, l.opts.Seed) })
}

// SplitFor returns the split of a run. If splits are drawn it is the one of
// that seed; of several fixed splits it is number seed modulo their count; a
// single public split serves every seed. Where SplitSpec has a Ratio, the
// training nodes of that fixed split are redrawn.
func (d *Dataset) SplitFor(seed uint64) (Split, error) {
	if d.Classes == 0 {
		return Split{}, fmt.Errorf("%s has no labels, so there is nothing to train on; add a label column to nodes.csv", d.called())
	}
	spec := d.SplitSpec
	var s Split
	var err error
	switch {
	case spec != nil && spec.Time != "" && d.times == nil: // of a graph store
		return Split{}, fmt.Errorf("%s keeps no times, by which %s splits; give the tables that it was made of", d.called(), spec)
	case spec != nil && spec.Time != "":
		s, err = spec.byTime(d.Labels, d.times)
	case spec != nil && spec.Ratio == 0:
		s, err = spec.draw(d.Labels, d.Classes, d.ClassNames, seed)
	case len(d.Splits) == 0 && spec != nil:
		return Split{}, fmt.Errorf("%s comes without a split, whose validation and test nodes %s would keep; use random:%g,0.2,0.2", d.called(), spec, spec.Ratio)
	case len(d.Splits) == 0:
		how := "give one with --split per-class:20,500,1000 or random:0.6,0.2,0.2 (data.split), or a split column in nodes.csv"
		if d.Source == "" { // it was made in memory
			how = "set Splits, or SplitSpec to what ParseSplit makes of a data.split such as random:0.6,0.2,0.2"
		}
		return Split{}, fmt.Errorf("%s comes without a split into train, val and test; %s", d.called(), how)
	default:
		if s = d.Splits[seed%uint64(len(d.Splits))]; spec != nil {
			s, err = spec.drawTraining(s, d.Labels, d.Classes, seed)
		}
	}
	if err != nil {
		return Split{}, fmt.Errorf("%s: %w", d.called(), err)
	}
	return s, nil
}

// fewEdges between training nodes say nothing of homophily.
const fewEdges = 20

// TrainHomophily returns the share of edges between training nodes that join nodes of one class,
// and what that would be if their ends were matched at random. Both are NaN where there are fewer
// than 20 such edges.
func (d *Dataset) TrainHomophily(train []int32) (share, chance float64) {
	labels := slices.Repeat([]int32{-1}, d.Graph.N)
	for _, v := range train {
		labels[v] = d.Labels[v]
	}
	g, between, ends := d.Graph.Undirected(), 0., make([]float64, d.Classes)
	for _, e := range g.Edges {
		if u, v := labels[e[0]], labels[e[1]]; u >= 0 && v >= 0 {
			between++
			ends[u]++
			ends[v]++
		}
	}
	if between < fewEdges {
		return math.NaN(), math.NaN()
	}
	for _, n := range ends {
		chance += float64(n / (2 * between) * (n / (2 * between)))
	}
	return g.Homophily(labels), chance
}

// Seeded tells whether another seed has other data: they are generated, damaged on purpose, or cut where
// nodes train.
func (d *Dataset) Seeded() bool {
	return d.Source == Synthetic || d.Corruption != nil || d.Rewired != nil && d.Rewired.bySplit
}

// called is where the data are from, or their name.
func (d *Dataset) called() string { return cmp.Or(d.Source, d.Name, "the data set") }

// NodeID returns what node i is called in the data.
func (d *Dataset) NodeID(i int) string {
	if d.NodeIDs == nil {
		return fmt.Sprint(i)
	}
	return d.NodeIDs[i]
}

// finish fills in what every loader has in common and checks the whole.
func (d *Dataset) finish() error {
	for i := range d.Splits {
		dropped := d.Splits[i].dropUnlabelled(d.Labels)
		if d.SplitSpec == nil || d.SplitSpec.Ratio > 0 { // the splits that came with the data count
			d.Repairs.SplitUnlabelled += dropped
		}
	}
	d.Repairs.Unlabelled = 0
	for _, c := range d.Labels {
		if c < 0 {
			d.Repairs.Unlabelled++
		}
	}
	if !d.prepared() {
		d.Repairs.EmptyRows = d.X.EmptyRows()
	}
	return d.Check()
}

// prepared reports whether the features were prepared, so that 0 is the middle of a column.
func (d *Dataset) prepared() bool { return d.Columns != nil && d.Columns.Prepared() }

// Check verifies what the rest of gsrc relies on: sizes that fit together,
// weights of edges from 0 to [graph.MaxWeight], finite features, labels and splits in range.
func (d *Dataset) Check() error {
	if d == nil || d.Graph == nil || d.X == nil {
		return errors.New("the data set lacks its graph or its features")
	}
	n := d.Graph.N
	if n == 0 {
		return errNoNodes
	}
	if err := d.Graph.Validate(); err != nil {
		return err
	}
	for i, w := range d.Graph.Weights {
		if !(w >= 0 && w <= graph.MaxWeight) {
			return fmt.Errorf("the edge %v weighs %v; weights are numbers from 0 to %g", d.Graph.Edges[i], w, graph.MaxWeight)
		}
	}
	if d.X.Rows != n || len(d.Labels) != n || (d.NodeIDs != nil && len(d.NodeIDs) != n) {
		return fmt.Errorf("%d nodes, but %d rows of features, %d labels and %d ids", n, d.X.Rows, len(d.Labels), len(d.NodeIDs))
	}
	if err := d.X.Check(); err != nil {
		return err
	}
	if d.Classes < 0 || d.Classes > maxClasses || (d.ClassNames != nil && len(d.ClassNames) != d.Classes) {
		return fmt.Errorf("%d classes with %d names", d.Classes, len(d.ClassNames))
	}
	for v, c := range d.Labels {
		if c < -1 || int(c) >= d.Classes {
			return fmt.Errorf("node %d has label %d, classes are 0 to %d", v, c, d.Classes-1)
		}
	}
	for i, s := range d.Splits {
		if err := s.check(d.Labels); err != nil {
			return fmt.Errorf("split %d: %w", i, err)
		}
	}
	return nil
}

// dropUnlabelled removes nodes without a label and returns how many there were.
func (s *Split) dropUnlabelled(labels []int32) int {
	dropped := 0
	for _, p := range s.parts() {
		all := len(*p)
		*p = slices.DeleteFunc(*p, func(v int32) bool { return v >= 0 && int(v) < len(labels) && labels[v] < 0 })
		dropped += all - len(*p)
	}
	return dropped
}

// classLabels turns class numbers from a file into labels, which take their place in mem, and
// counts the classes. -1 is unknown.
func classLabels(mem *budget.Reservation, raw []int64) (_ []int32, _ int, err error) {
	defer caught(&err)
	labels := zeros[int32](mem, len(raw))
	top := int64(-1)
	for v, c := range raw {
		// No data set has more classes than nodes; a wild number is a fault.
		if c < -1 || c >= int64(len(raw)) || c > math.MaxInt32 {
			return nil, 0, fmt.Errorf("label %d of node %d is out of range: with %d nodes labels are 0 to %d, or -1 for unknown", c, v, len(raw), len(raw)-1)
		}
		labels[v] = int32(c)
		top = max(top, c)
	}
	mem.Shrink(8 * int64(cap(raw)))
	return labels, int(top) + 1, nil
}
