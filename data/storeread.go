package data

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"unsafe"

	"github.com/gsrc-dev/gsrc/data/schema"
	"github.com/gsrc-dev/gsrc/data/store"
	"github.com/gsrc-dev/gsrc/graph"
	"github.com/gsrc-dev/gsrc/internal/budget"
	"github.com/gsrc-dev/gsrc/internal/scratch"
)

// aboutStore is what the header of a graph store keeps of a data set beside its arrays.
type aboutStore struct {
	From       string         `json:"from"` // the format that it was converted from
	Checksum   string         `json:"checksum"`
	Plain      bool           `json:"plain,omitempty"` // it holds all of what has the checksum
	Asked      bool           `json:"asked,omitempty"` // options said how tables are read
	ClassNames []string       `json:"class_names,omitempty"`
	Roles      Roles          `json:"roles"`
	Merge      string         `json:"merge,omitempty"`
	Columns    *schema.Schema `json:"columns,omitempty"`
	Notes      []string       `json:"notes,omitempty"`
	SplitSpec  *SplitSpec     `json:"split_spec,omitempty"`
	Repairs    Repairs        `json:"repairs"`
}

// store reads a graph store: edges, labels and dense features in float32 stay in the mapped
// files, which remain open as long as the process runs, as does one that has others in float32. What has to have another form in
// memory is claimed from the budget.
func (l *loader) store(dir string) (*Dataset, error) {
	if err := l.opts.Spare(filepath.Join(dir, store.HeaderFile)); err != nil {
		return nil, err
	}
	s, err := store.Open(dir)
	if err != nil {
		return nil, err
	}
	var ds *Dataset
	err = store.Guard(func() (err error) {
		ds, err = l.fromStore(dir, s)
		return err
	})
	if err != nil {
		_ = s.Close()
		return nil, err
	}
	return ds, nil
}

func (l *loader) fromStore(dir string, s *store.Store) (_ *Dataset, err error) {
	defer caught(&err)
	about := &aboutStore{}
	if len(s.About) > 0 {
		if err := json.Unmarshal(s.About, about); err != nil {
			return nil, badFile(dir, "%s says nothing of the data that can be read", store.HeaderFile)
		}
	}
	if about.Columns != nil && about.Merge == "" { // where earlier versions kept it
		about.Merge = about.Columns.Merge
	}
	if s.Directed != l.opts.Directed {
		if s.Directed {
			return nil, badFile(dir, "the store has directed edges, and undirected ones are read").hint("convert the data without --directed; or give it here, unless the model was trained without it")
		}
		return nil, badFile(dir, "the store has undirected edges, and directed ones are read: by --directed, or because the model was trained on such").hint("convert the data with --directed, or leave it out if the model needs no directions")
	}
	if want := l.opts.Columns; want != nil && about.Columns != nil {
		a, _ := json.Marshal(want.Columns)
		b, _ := json.Marshal(about.Columns.Columns)
		if !bytes.Equal(a, b) {
			return nil, badFile(dir, "the features of the store have other names, or another order, than those of the model, or were prepared in another way").hint("give the data that the store was made of")
		}
	}
	if err := l.edgesAlike(dir, s.Directed, about); err != nil {
		return nil, err
	}
	n := int(s.Nodes)
	id, notes := s.ID, about.Notes
	if about.Checksum != "" && about.Checksum == l.opts.Trained {
		if about.Plain && l.readAlike(about) {
			id = about.Checksum
		} else {
			notes = append(notes, fmt.Sprintf("%s was converted from what the model was trained on, but in float16, with other options or by an earlier version of gsrc: it is taken as other data; to have it taken as the same convert it anew, or give what it was converted from", dir))
		}
	}
	ds := &Dataset{Name: s.Name, Source: dir, Format: "store", Checksum: id, Classes: s.Classes, ClassNames: about.ClassNames,
		Roles: about.Roles, Merge: about.Merge, Columns: about.Columns, Notes: notes, SplitSpec: about.SplitSpec, Repairs: about.Repairs, Stored: s}
	g := &graph.Graph{N: n, Directed: s.Directed}
	ds.Graph = g
	if ends := stored[int32](s, "edges"); len(ends) > 0 {
		g.Edges = unsafe.Slice((*[2]int32)(unsafe.Pointer(&ends[0])), len(ends)/2)
	}
	g.Weights = stored[float32](s, "weights")
	if s.Has("weights") {
		if g.Weights == nil {
			g.Weights = []float32{}
		}
		if l.opts.Weights == LogWeights { // which changes them
			g.Weights = copied(l.mem, g.Weights)
		}
		l.storedLoops(ds, s)
	}
	ds.Labels = stored[int32](s, "labels")
	ds.X = l.storedFeatures(dir, s)
	ds.NodeIDs = l.storedIDs(s)
	for k := range s.Splits {
		var split Split
		for i, part := range split.parts() {
			*part = copied(l.mem, stored[int32](s, fmt.Sprintf("%s_%d", partNames[i], k)))
		}
		ds.Splits = append(ds.Splits, split)
	}
	l.storedTruth(ds, s)
	return ds, nil
}

// edgesAlike refuses a store whose edges were read of a table in another way than those of a model's
// training, where that makes the model another graph of them.
func (l *loader) edgesAlike(dir string, directed bool, about *aboutStore) error {
	was, is := l.opts.Roles, about.Roles
	if was.Source == "" || is.Source == "" {
		return nil // nothing is known of one of them
	}
	differ := func(a, b string) bool { // names that tables have given
		return a != "" && b != "" && was.Source != unnamed[0] && is.Source != unnamed[0] && !strings.EqualFold(a, b)
	}
	const give = ", or give the table that it was made of"
	if directed && differ(is.Source, was.Source) && (strings.EqualFold(is.Source, was.Target) || strings.EqualFold(is.Target, was.Source)) {
		return badFile(dir, "its edges lead from the column %s to %s, and those that the model was trained on from %s to %s", quote(is.Source), quote(is.Target), quote(was.Source), quote(was.Target)).hint("convert the data with --source %s --target %s%s", was.Source, was.Target, give)
	}
	if l.opts.Weights == IgnoreWeights {
		return nil
	}
	usual := func(weight string) bool { return byName([]string{weight}, weightNames) >= 0 }
	if differ(is.Weight, was.Weight) && !(usual(is.Weight) && usual(was.Weight)) {
		return badFile(dir, "the weights of its edges are those of the column %s, and the model was trained on those of %s", quote(is.Weight), quote(was.Weight)).hint("convert the data with --weight %s%s", was.Weight, give)
	}
	merge, trained := cmp.Or(about.Merge, MergeFirst), cmp.Or(l.opts.Merge, MergeFirst)
	if r := &about.Repairs; merge != trained && r.DuplicateEdges+r.ReversedEdges > 0 {
		return badFile(dir, "edges that are listed more than once were merged with --merge %s, and those that the model was trained on with --merge %s", merge, trained).hint("convert the data with --merge %s%s", trained, give)
	}
	return nil
}

// readAlike tells that tables were read, and prepared, as those of a model's training were.
func (l *loader) readAlike(about *aboutStore) bool {
	a, b := l.opts.Columns, about.Columns
	switch {
	case a == nil && b == nil && l.opts.Roles == (Roles{}): // of an earlier version
		return !about.Asked
	case a == nil && b == nil:
		return l.opts.Roles == about.Roles && cmp.Or(l.opts.Merge, MergeFirst) == cmp.Or(about.Merge, MergeFirst)
	case a == nil || b == nil:
		return false
	}
	x, y := *a, *b
	x.Gaps, y.Gaps = nil, nil // which an export alone has
	p, _ := json.Marshal(x)
	q, _ := json.Marshal(y)
	return bytes.Equal(p, q)
}

// stored returns the whole of an array, nil where there is none. That it is damaged ends reading.
func stored[T int32 | int64 | uint64 | uint16 | uint8 | float32](s *store.Store, name string) []T {
	x, err := store.All[T](s, name)
	if err != nil {
		panic(failed{err})
	}
	return x
}

// copied returns a copy in memory that is claimed.
func copied[T any](mem *budget.Reservation, x []T) []T {
	return append(room(mem, []T(nil), len(x)), x...)
}

func (l *loader) storedLoops(ds *Dataset, s *store.Store) {
	loops := stored[uint64](s, "loops")
	if len(loops) == 0 {
		return
	}
	ds.Loops = filled[float32](l.mem, ds.Graph.N, -1)
	for _, x := range loops {
		if x>>32 < uint64(len(ds.Loops)) {
			ds.Loops[x>>32] = math.Float32frombits(uint32(x))
		}
	}
}

func (l *loader) storedFeatures(dir string, s *store.Store) *Features {
	f := &Features{Rows: int(s.Nodes), Cols: s.Features}
	switch {
	case !s.Has("x"):
		at := stored[int64](s, "x_indptr")
		f.RowPtr = room(l.mem, f.RowPtr, len(at))
		for i, p := range at {
			if p < 0 || p > 1<<31-1 || i > 0 && p < at[i-1] {
				panic(failed{badFile(dir, "has row pointers of features out of order, or more than 2³¹ values")})
			}
			f.RowPtr = append(f.RowPtr, int32(p))
		}
		f.Col, f.Val = stored[int32](s, "x_col"), stored[float32](s, "x_val")
		return f
	case s.Type("x") == store.Float32:
		f.Dense = stored[float32](s, "x")
		return f
	}
	half := stored[uint16](s, "x")
	// In float32 they may take a quarter of the memory; what is more lies on a disk, if there is one.
	if 4*int64(len(half)) > l.mem.Total()/4 {
		if near, err := scratch.Dir(); err == nil {
			f.Dense, _, err = scratch.Floats(near, len(half))
			f.inFile = err == nil
		}
	}
	if !f.inFile {
		f.Dense = zeros[float32](l.mem, len(half))
	}
	store.FromHalf(f.Dense, half)
	return f
}

// storedIDs returns what nodes are called: texts in the mapped file.
func (l *loader) storedIDs(s *store.Store) []string {
	if !s.Has("ids_indptr") {
		return nil
	}
	at, text := stored[int64](s, "ids_indptr"), stored[uint8](s, "ids")
	ids := room(l.mem, []string(nil), len(at)-1)
	for i := range len(at) - 1 {
		if at[i] < 0 || at[i] > at[i+1] || at[i+1] > int64(len(text)) {
			panic(failed{badFile(s.Dir(), "has names of nodes out of order")})
		}
		id := text[at[i]:at[i+1]]
		ids = append(ids, unsafe.String(unsafe.SliceData(id), len(id)))
	}
	return ids
}

// storedTruth is the graph without the edges that a generator has planted, once somebody
// compares with it.
func (l *loader) storedTruth(ds *Dataset, s *store.Store) {
	planted := stored[uint8](s, "planted")
	if len(planted) == 0 {
		return
	}
	edges, t := ds.Graph.Edges, &graph.Graph{N: ds.Graph.N, Directed: ds.Graph.Directed}
	ds.Truth = &Truth{planted: func() *graph.Graph {
		if l.mem.Grow(8*int64(len(planted))) != nil {
			return nil
		}
		for i, e := range edges {
			if planted[i] == 0 {
				t.Edges = append(t.Edges, e)
			}
		}
		return t
	}}
}
