package data

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strconv"

	"github.com/gsrc-dev/gsrc/data/store"
	"github.com/gsrc-dev/gsrc/internal/budget"
	"github.com/gsrc-dev/gsrc/internal/lists"
	"github.com/gsrc-dev/gsrc/internal/scratch"
)

// ConvertOptions say how [Convert] writes a graph store.
type ConvertOptions struct {
	Load LoadOptions // MaxBytes bounds the memory of the whole
	// Half writes dense features in float16.
	Half  bool
	Force bool // replace a store
	// Progress, if not nil, gets how far a stage is, total being 0 where that is not known;
	// its error ends the conversion, which goes on from there when it is called again.
	Progress func(stage string, done, total int64) error
}

// Convert writes the data set at path, of any format but a store's, into a graph store in
// the new folder out. Files are mapped and edges sorted on the disk; tables of nodes, and
// edges in other formats than CSV, Parquet and OGB's, are held in memory. Collections are refused.
func Convert(path, out string, o ConvertOptions) (err error) {
	defer func() { o.suffices(err) }()
	key := Synthetic
	if path != Synthetic {
		var err error
		if path, err = located(path); err == nil {
			key, err = fingerprint(path)
		}
		if err != nil {
			return err
		}
	}
	if o.Load.MaxBytes <= 0 {
		o.Load.MaxBytes, _ = budget.Default()
	}
	if store.Is(path) {
		return badFile(path, "is a graph store already")
	}
	if err := o.room(path, out); err != nil {
		return err
	}
	l, err := newLoading(o.Load)
	if err != nil {
		return err
	}
	b, err := store.New(out, store.Options{Key: fmt.Sprintf("%s%s half %v", key, o.Load.identity(path), o.Half), Memory: o.Load.MaxBytes / 2, Force: o.Force, Progress: o.Progress})
	if err != nil {
		return overBudget(path, err)
	}
	defer b.Close()
	l.mem.Grow(o.Load.MaxBytes / 2) // the builder's
	l.spill = &spill{b: b, dir: out + ".partial", held: map[*byte]bool{}}
	defer l.spill.close()
	return store.Guard(func() error {
		r, err := l.recognise(path)
		if err != nil {
			return overBudget(path, err)
		}
		if r.dataset == nil {
			return badFile(path, "a collection of graphs, and a store holds one graph").hint("collections are read into memory as they are")
		}
		ds, err := l.finish(path, r)
		if err != nil {
			return err
		}
		if path == Synthetic { // its edges are in memory
			if _, err := l.spill.graph(ds.Graph.N, ds.Graph.Directed, false, &Repairs{}, func(_ *store.Edges, add store.Add) error {
				for _, e := range ds.Graph.Edges {
					if err := add(e[0], e[1], 1); err != nil {
						return err
					}
				}
				return nil
			}); err != nil {
				return err
			}
		}
		if l.split != nil && l.split.Time != "" { // the times are not kept
			split, err := ds.SplitFor(o.Load.Seed)
			if err != nil {
				return err
			}
			ds.Splits, ds.SplitSpec = []Split{split}, nil
		}
		// What is else of the options, how tables are read, is compared where the store is read.
		plain := !o.Half && o.Load.Split == "" && o.Load.Weights == WeightsAsTheyAre && o.Load.Edges == "" && o.Load.AddEdges == 0 && o.Load.RemoveEdges == 0
		return ds.writeStore(b, aboutStore{Plain: plain, Asked: !reflect.DeepEqual(o.Load.Tables, Tables{})}, o.Half)
	})
}

// suffices adds to an error about memory what would do, of which half is for sorting edges.
func (o *ConvertOptions) suffices(err error) {
	var exceeded *budget.ExceededError
	var fe *FileError
	if !errors.As(err, &exceeded) || !errors.As(err, &fe) {
		return
	}
	need := exceeded.Need
	if exceeded.Total == o.Load.MaxBytes {
		need -= o.Load.MaxBytes / 2
	}
	if need > 0 && need < 1<<50 {
		fe.Hint = fmt.Sprintf("if it really is that large, raise the limit with --memory to about %s: half of that is for sorting edges, and the other half for reading", budget.Format(need/2*5))
	}
}

// room refuses a disk that cannot take the numbers of features.npy, which have half the bytes in
// the store or more, or with Half a quarter. Other files say less of what becomes of them.
func (o *ConvertOptions) room(path, out string) error {
	info, err := os.Stat(filepath.Join(path, npyFile))
	if _, begun := os.Stat(filepath.Clean(out) + ".partial"); err != nil || begun == nil { // some of it is there already
		return nil
	}
	need := info.Size() / 2
	if o.Half {
		need /= 2
	}
	if free := scratch.Free(out); need > free {
		return fmt.Errorf("%s: the features of %s take %s of the disk or more, and %s are free; take another disk", out, path, budget.Format(need), budget.Format(free))
	}
	return nil
}

// writeStore writes all but the edges, and ends the build.
func (d *Dataset) writeStore(b *store.Builder, about aboutStore, half bool) error {
	n := int64(d.Graph.N)
	_, err := b.Stage("nodes", func() (string, error) {
		if err := store.PutArray(b, "labels", store.Int32, d.Labels); err != nil {
			return "", err
		}
		for k, s := range d.Splits {
			for i, part := range s.parts() {
				if err := store.PutArray(b, fmt.Sprintf("%s_%d", partNames[i], k), store.Int32, *part); err != nil {
					return "", err
				}
			}
		}
		if d.NodeIDs != nil {
			if err := putIDs(b, d.NodeIDs); err != nil {
				return "", err
			}
		}
		return "", d.X.store(b, half)
	})
	if err != nil {
		return err
	}
	about.From, about.Checksum, about.ClassNames, about.Roles, about.Merge = d.Format, d.Checksum, d.ClassNames, d.Roles, d.Merge
	about.Columns, about.Notes, about.SplitSpec, about.Repairs = d.Columns, d.Notes, d.SplitSpec, d.Repairs
	text, err := json.Marshal(about)
	if err != nil {
		return err
	}
	return b.Finish(store.Header{Name: d.Name, Nodes: n, Directed: d.Graph.Directed, Features: d.X.Cols, Classes: d.Classes, Splits: len(d.Splits), About: text})
}

func putIDs(b *store.Builder, ids []string) error {
	text, err := b.Array("ids", store.Uint8)
	if err != nil {
		return err
	}
	at := int64(0)
	list := []int64{0}
	for _, id := range ids {
		if _, err := text.Write([]byte(id)); err != nil {
			return errors.Join(err, text.Close())
		}
		at += int64(len(id))
		list = append(list, at)
	}
	return errors.Join(text.Close(), store.PutArray(b, "ids_indptr", store.Int64, list))
}

func (f *Features) store(b *store.Builder, half bool) error {
	if f.IsSparse() {
		at := lists.Map(f.RowPtr, func(p int32) int64 { return int64(p) })
		return errors.Join(store.PutArray(b, "x_indptr", store.Int64, at), store.PutArray(b, "x_col", store.Int32, f.Col), store.PutArray(b, "x_val", store.Float32, f.Val))
	}
	kind := store.Float32
	if half {
		kind = store.Float16
	}
	w, err := b.Array("x", kind, int64(f.Cols))
	if err != nil {
		return err
	}
	bits := make([]uint16, f.Cols)
	for i := range f.Rows {
		row := f.Dense[i*f.Cols : (i+1)*f.Cols]
		if half {
			if err = halved(bits, row, i); err == nil {
				err = store.Put(w, bits...)
			}
		} else {
			err = store.Put(w, row...)
		}
		if err != nil {
			return errors.Join(err, w.Close())
		}
	}
	return w.Close()
}

// halved makes bits the features of a node in float16.
func halved(bits []uint16, row []float32, node int) error {
	for j, v := range row {
		var ok bool
		if bits[j], ok = store.ToHalf(v); !ok {
			return fmt.Errorf("the feature of node %d in column %d is %s, beyond the 65504 of float16: write float32", node, j, strconv.FormatFloat(float64(v), 'g', -1, 32))
		}
	}
	return nil
}
