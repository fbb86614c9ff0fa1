package data

import (
	"archive/zip"
	"bytes"
	"fmt"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sbinet/npyio/npy"
	"gonum.org/v1/gonum/mat"
)

// What npyio, an independent implementation, writes.
func TestNPYAgainstNpyio(t *testing.T) {
	write := func(v any) *array {
		t.Helper()
		var b bytes.Buffer
		if err := npy.Write(&b, v); err != nil {
			t.Fatal(err)
		}
		a, err := parseNPY(b.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	if got, err := write([]float32{1, -2.5}).float32s(); err != nil || !slices.Equal(got, []float32{1, -2.5}) {
		t.Error(got, err)
	}
	if got, err := write([]float64{1, -2.5}).float32s(); err != nil || !slices.Equal(got, []float32{1, -2.5}) {
		t.Error(got, err)
	}
	a := write(mat.NewDense(2, 3, []float64{1, 2, 3, 4, 5, 6}))
	if got, err := a.float32s(); err != nil || !slices.Equal(got, []float32{1, 2, 3, 4, 5, 6}) || !slices.Equal(a.shape, []int{2, 3}) {
		t.Error(got, a.shape, err)
	}
	for _, v := range []any{[]int8{-1, 2}, []int16{-1, 2}, []int32{-1, 2}, []int64{-1, 2}} {
		if got, err := write(v).ints(); err != nil || !slices.Equal(got, []int64{-1, 2}) {
			t.Error(got, err)
		}
	}
	for _, v := range []any{[]uint8{255, 2}, []uint16{255, 2}, []uint32{255, 2}, []uint64{255, 2}} {
		if got, err := write(v).ints(); err != nil || !slices.Equal(got, []int64{255, 2}) {
			t.Error(got, err)
		}
	}
	if got, err := write([]bool{true, false}).bools(); err != nil || !slices.Equal(got, []bool{true, false}) {
		t.Error(got, err)
	}
	if got, err := write([]uint64{math.MaxUint64}).ints(); err != nil || got[0] != math.MaxInt64 {
		t.Error("an integer beyond int64 should saturate:", got, err)
	}
}

func TestNPYHeader(t *testing.T) {
	head := func(text string) []byte {
		return []byte(npyMagic + "\x01\x00" + string([]byte{byte(len(text)), byte(len(text) >> 8)}) + text)
	}
	for _, c := range []struct {
		name string
		data []byte
		err  string // "" is a valid file
	}{
		{"any order", append(head(`{"shape":(2,),"fortran_order":True,"descr":"<i2"}`), 1, 0, 2, 0), ""},
		{"python 2 long", append(head("{'descr': '|u1', 'fortran_order': False, 'shape': (2L,), }\n"), 1, 2), ""},
		{"scalar", append(head("{'descr': '|u1', 'fortran_order': False, 'shape': ()}"), 1), ""},
		{"no elements", head("{'descr': '<f8', 'fortran_order': False, 'shape': (0, 3)}"), ""},
		{"empty", nil, "empty"},
		{"magic", []byte("not a numpy file"), "magic"},
		{"short", []byte(npyMagic), "magic"},
		{"version", []byte(npyMagic + "\x09\x00\x00\x00\x00\x00"), "version 9"},
		{"version 2 short", []byte(npyMagic + "\x02\x00\x00\x00"), "truncated"},
		{"version 2 huge", []byte(npyMagic + "\x02\x00\xff\xff\xff\xff"), "header claims"},
		{"header short", []byte(npyMagic + "\x01\x00\xff\x00{'descr'"), "truncated"},
		{"no dictionary", head("hello"), "expected '{'"},
		{"empty dictionary", head("{}"), "needs the keys"},
		{"lacks shape", head("{'descr': '<f4', 'fortran_order': False}"), "needs the keys"},
		{"key twice", head("{'descr': '<f4', 'descr': '<f4'}"), "twice"},
		{"unknown key", head("{'evil': 1}"), "unknown key"},
		{"order", head("{'fortran_order': None}"), "fortran_order"},
		{"structured", head("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,)}"), "structured"},
		{"objects", head("{'descr': '|O', 'fortran_order': False, 'shape': (1,)}"), "not supported"},
		{"half floats", head("{'descr': '<f2', 'fortran_order': False, 'shape': (1,)}"), "not supported"},
		{"negative", head("{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}"), "shape"},
		{"fraction", head("{'descr': '<f4', 'fortran_order': False, 'shape': (1.5,)}"), "expected ')'"},
		{"huge number", head("{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,)}"), "shape"},
		{"overflow", head("{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296,4294967296,4294967296)}"), "impossible shape"},
		{"overflow to 0", head("{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904,4)}"), "impossible shape"},
		{"dimensions", head("{'descr': '|u1', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,1)}"), "short tuple"},
		{"open string", head("{'descr"), "does not end"},
		{"open tuple", head("{'shape': (1,"), "shape"},
		{"trailing text", head("{'descr': '|u1', 'fortran_order': False, 'shape': (0,)} x"), "after the dictionary"},
		{"data short", append(head("{'descr': '<f4', 'fortran_order': False, 'shape': (2,)}"), 0, 0, 0, 0), "needs 8 bytes, the file has 4"},
		{"data long", append(head("{'descr': '|u1', 'fortran_order': False, 'shape': (1,)}"), 0, 0), "needs 1 bytes, the file has 2"},
	} {
		_, err := parseNPY(c.data)
		if c.err == "" {
			if err != nil {
				t.Errorf("%s: %v", c.name, err)
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: error %v, want %q", c.name, err, c.err)
		}
	}
}

func TestFortranOrder(t *testing.T) {
	a, err := newArray(dtype{kind: 'u', size: 1}, []int{2, 3}, true, []byte{1, 4, 2, 5, 3, 6})
	if err != nil {
		t.Fatal(err)
	}
	if got, _ := a.ints(); !slices.Equal(got, []int64{1, 2, 3, 4, 5, 6}) {
		t.Error(got)
	}
}

func TestHeterophilous(t *testing.T) {
	ds := mustLoad(t, "testdata/heterophilous.npz", LoadOptions{})
	if got, want := fmt.Sprint(ds.Graph.Edges), "[[0 1] [1 2] [3 4] [5 6]]"; got != want {
		t.Errorf("edges %s, want %s", got, want)
	}
	if want := (Repairs{DuplicateEdges: 1, ReversedEdges: 1, SelfLoops: 1}); ds.Repairs != want {
		t.Errorf("repairs %+v, want %+v", ds.Repairs, want)
	}
	if len(ds.Splits) != 2 || !slices.Equal(ds.Splits[0].Train, []int32{0, 1, 2, 3}) || !slices.Equal(ds.Splits[0].Test, []int32{4, 5, 6, 7}) || !slices.Equal(ds.Splits[1].Train, []int32{4, 5, 6, 7}) {
		t.Errorf("splits %v", ds.Splits)
	}
	if ds.X.IsSparse() || ds.X.Dense[5] != 0 || ds.X.Dense[6] != 1 {
		t.Errorf("features %v", ds.X)
	}
	if ds.Name != "heterophilous" || ds.Format != "heterophilous" || ds.Classes != 2 {
		t.Errorf("%s, %s, %d classes", ds.Name, ds.Format, ds.Classes)
	}

	directed := mustLoad(t, "testdata/heterophilous.npz", LoadOptions{Directed: true})
	if got, want := fmt.Sprint(directed.Graph.Edges), "[[0 1] [1 0] [1 2] [3 4] [5 6]]"; got != want {
		t.Errorf("directed edges %s, want %s", got, want)
	}
}

// Weights of edges are read, and what is not is named.
func TestNPZWeights(t *testing.T) {
	load := func(name, shape string, w []float32, o LoadOptions) (*Dataset, error) {
		a := hetero()
		a["edges"] = npyBytes("<i8", "(3, 2)", []int64{0, 1, 1, 2, 2, 2})
		a[name] = npyBytes("<f4", shape, w)
		a["notes"] = npyBytes("<f4", "(1,)", []float32{1})
		return Load(writeFile(t, "d.npz", pack(t, a)), o)
	}
	for _, name := range []string{"edge_weight", "edge_weights"} {
		ds, err := load(name, "(3, 1)", []float32{0.5, 2, 3}, LoadOptions{})
		if err != nil || fmt.Sprint(ds.Graph.Weights, ds.Loops) != "[0.5 2] [-1 -1 3]" {
			t.Fatalf("%+v, %v", ds, err)
		}
		var text strings.Builder
		if err := ds.Info().WriteText(&text); err != nil || !strings.Contains(text.String(), "notes       d.npz: left out: notes\n") {
			t.Errorf("%v, said\n%s", err, text.String())
		}
	}
	if ds, err := load("edge_weight", "(3,)", []float32{1, 1, 1}, LoadOptions{}); err != nil || ds.Graph.Weights != nil {
		t.Errorf("weights of 1: %v", err)
	}
	if ds, err := load("edge_weight", "(2,)", []float32{1, 2}, LoadOptions{Weights: IgnoreWeights}); err != nil || !strings.Contains(fmt.Sprint(ds.Notes), "edge_weight") {
		t.Errorf("ignored: %v", err)
	}
	_, err := load("edge_weight", "(2,)", []float32{1, 2}, LoadOptions{})
	wantError(t, err, `"edge_weight"`, "expected the shape [3]", "found [2]", "--ignore-weights")
	_, err = load("edge_weight", "(3,)", []float32{1, -2, 3}, LoadOptions{})
	wantError(t, err, "edge 1: weight -2", "--ignore-weights")
}

func TestCSRParts(t *testing.T) {
	ds := mustLoad(t, "testdata/csr.npz", LoadOptions{})
	if got, want := fmt.Sprint(ds.Graph.Edges), "[[0 1] [2 3] [4 5]]"; got != want {
		t.Errorf("edges %s, want %s", got, want)
	}
	if want := (Repairs{OneWayEdges: 2, SelfLoops: 1}); ds.Repairs != want {
		t.Errorf("repairs %+v, want %+v", ds.Repairs, want)
	}
	if ds.Graph.Weights != nil {
		t.Error("an adjacency matrix of ones has no weights")
	}
	for k, v := range ds.X.ToDense().Dense {
		if v != float32(k%5) {
			t.Errorf("feature %d is %v", k, v)
		}
	}
	_, err := ds.SplitFor(0)
	wantError(t, err, "csr.npz", "--split per-class:20,500,1000")
}

// hetero is a sound archive of 3 nodes, to be damaged.
func hetero() map[string][]byte {
	return map[string][]byte{
		"node_features": npyBytes("<f4", "(3, 2)", []float32{1, 0, 0, 1, 1, 1}),
		"node_labels":   npyBytes("<i8", "(3,)", []int64{0, 1, -1}),
		"edges":         npyBytes("<i8", "(1, 2)", []int64{0, 1}),
		"train_masks":   npyBytes("|b1", "(1, 3)", []byte{1, 0, 0}),
		"val_masks":     npyBytes("|b1", "(1, 3)", []byte{0, 1, 0}),
		"test_masks":    npyBytes("|b1", "(1, 3)", []byte{0, 0, 1}),
	}
}

// csrData is a sound archive of 2 nodes, to be damaged.
func csrData() map[string][]byte {
	return map[string][]byte{
		"adj_data":     npyBytes("<f4", "(2,)", []float32{2, 2}),
		"adj_indices":  npyBytes("<i4", "(2,)", []int32{1, 0}),
		"adj_indptr":   npyBytes("<i8", "(3,)", []int64{0, 1, 2}),
		"adj_shape":    npyBytes("<i8", "(2,)", []int64{2, 2}),
		"attr_data":    npyBytes("<f4", "(3,)", []float32{1, 2, 3}),
		"attr_indices": npyBytes("<i4", "(3,)", []int32{2, 0, 2}),
		"attr_indptr":  npyBytes("<i8", "(3,)", []int64{0, 1, 3}),
		"attr_shape":   npyBytes("<i8", "(2,)", []int64{2, 3}),
		"labels":       npyBytes("<i8", "(2,)", []int64{0, 1}),
	}
}

func pack(tb testing.TB, arrays map[string][]byte) []byte {
	var parts []part
	for name, b := range arrays {
		parts = append(parts, part{name, b})
	}
	slices.SortFunc(parts, func(a, b part) int { return strings.Compare(a.name, b.name) })
	return npzBytes(tb, parts...)
}

func TestNPZFaults(t *testing.T) {
	f4, i8, b1 := "<f4", "<i8", "|b1"
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	for _, c := range []struct {
		name  string
		base  func() map[string][]byte
		array string
		data  []byte // nil removes the array
		err   []string
	}{
		{"no features", hetero, "node_features", nil, []string{`array "node_features" is missing`, "the file has edges"}},
		{"no labels", hetero, "node_labels", nil, []string{"node_labels", "missing"}},
		{"no edges", hetero, "edges", nil, []string{"edges", "missing"}},
		{"one mask gone", hetero, "val_masks", nil, []string{"splits need all of"}},
		{"NaN feature", hetero, "node_features", npyBytes(f4, "(3, 2)", []float32{1, 0, 0, nan, 1, 1}), []string{"node_features", "node 1 in column 1 is NaN"}},
		{"infinite feature", hetero, "node_features", npyBytes(f4, "(3, 2)", []float32{1, 0, 0, 1, inf, 1}), []string{"node 2 in column 0 is +Inf"}},
		{"float64 beyond float32", hetero, "node_features", npyBytes("<f8", "(3, 2)", []float64{1e300, 0, 0, 1, 1, 1}), []string{"node 0 in column 0 is +Inf"}},
		{"flat features", hetero, "node_features", npyBytes(f4, "(6,)", make([]float32, 6)), []string{"node_features", "expected 2 dimension(s), found shape [6]"}},
		{"text features", hetero, "node_features", npyBytes("|S4", "(3, 2)", make([]byte, 24)), []string{"node_features", "expected numbers, found type |S4"}},
		{"no columns", hetero, "node_features", npyBytes(f4, "(3, 0)", nil), []string{"node_features", "0 feature columns"}},
		{"no nodes", hetero, "node_features", npyBytes(f4, "(0, 2)", nil), []string{"node_features", "no nodes"}},
		{"float labels", hetero, "node_labels", npyBytes(f4, "(3,)", []float32{0, 1, 0}), []string{"node_labels", "expected integers, found type <f4"}},
		{"label too large", hetero, "node_labels", npyBytes(i8, "(3,)", []int64{0, 1, 3}), []string{"node_labels", "label 3 of node 2 is out of range"}},
		{"label too small", hetero, "node_labels", npyBytes(i8, "(3,)", []int64{0, -2, 1}), []string{"label -2 of node 1 is out of range"}},
		{"labels of other nodes", hetero, "node_labels", npyBytes(i8, "(2,)", []int64{0, 1}), []string{"node_labels", "expected the shape [3], found [2]"}},
		{"edge beyond", hetero, "edges", npyBytes(i8, "(1, 2)", []int64{0, 3}), []string{"edges", "row 0 joins 0 and 3", "0 to 2"}},
		{"edge negative", hetero, "edges", npyBytes(i8, "(1, 2)", []int64{-1, 1}), []string{"row 0 joins -1 and 1"}},
		{"edges transposed", hetero, "edges", npyBytes(i8, "(2, 3)", make([]int64, 6)), []string{"edges", "expected the shape [E,2], found [2,3]; save edges.T, one edge a row"}},
		{"mask of other nodes", hetero, "val_masks", npyBytes(b1, "(1, 2)", []byte{0, 1}), []string{"val_masks", "[splits,3], found [1,2]"}},
		{"fewer masks", hetero, "val_masks", npyBytes(b1, "(2, 3)", make([]byte, 6)), []string{"val_masks", "has 2 splits, train_masks has 1"}},
		{"masks overlap", hetero, "val_masks", npyBytes(b1, "(1, 3)", []byte{1, 1, 0}), []string{"split 0", "node 0 is in both the train and the val split"}},
		{"mask of floats", hetero, "val_masks", npyBytes(f4, "(1, 3)", make([]float32, 3)), []string{"val_masks", "expected booleans"}},
		{"not npy", hetero, "edges", []byte("hello, this is text"), []string{"edges", "magic bytes"}},
		{"array cut", hetero, "edges", npyBytes(i8, "(1, 2)", []int64{0}), []string{"edges", "needs 16 bytes, the file has 8"}},

		{"no adjacency data", csrData, "adj_data", nil, []string{"adj_data", "missing"}},
		{"no labels", csrData, "labels", nil, []string{"labels", "missing"}},
		{"pointers decrease", csrData, "attr_indptr", npyBytes(i8, "(3,)", []int64{0, 4, 3}), []string{"attr_*", "decrease at row 1"}},
		{"pointers short", csrData, "attr_indptr", npyBytes(i8, "(2,)", []int64{0, 3}), []string{"2 rows needs 3 row pointers, found 2"}},
		{"pointers end", csrData, "attr_indptr", npyBytes(i8, "(3,)", []int64{0, 1, 2}), []string{"run from 0 to 2, its entries from 0 to 3"}},
		{"pointers start", csrData, "adj_indptr", npyBytes(i8, "(3,)", []int64{1, 1, 2}), []string{"adj_*", "run from 1 to 2"}},
		{"column beyond", csrData, "attr_indices", npyBytes("<i4", "(3,)", []int32{3, 0, 2}), []string{"3 columns has an entry in column 3"}},
		{"column negative", csrData, "adj_indices", npyBytes("<i4", "(2,)", []int32{-1, 0}), []string{"entry in column -1"}},
		{"values short", csrData, "attr_data", npyBytes(f4, "(2,)", []float32{1, 2}), []string{"3 column indices but 2 values"}},
		{"NaN value", csrData, "attr_data", npyBytes(f4, "(3,)", []float32{1, nan, 3}), []string{"node 1 in column 0 is NaN"}},
		{"negative weight", csrData, "adj_data", npyBytes(f4, "(2,)", []float32{1, -1}), []string{"edge from 1 to 0", "weight -1"}},
		{"NaN weight", csrData, "adj_data", npyBytes(f4, "(2,)", []float32{nan, 1}), []string{"edge from 0 to 1", "weight NaN"}},
		{"shape of three", csrData, "adj_shape", npyBytes(i8, "(3,)", []int64{2, 2, 2}), []string{"adj_shape", "expected two sizes"}},
		{"shape negative", csrData, "adj_shape", npyBytes(i8, "(2,)", []int64{-2, 2}), []string{"adj_shape", "expected two sizes"}},
		{"not square", csrData, "adj_shape", npyBytes(i8, "(2,)", []int64{2, 3}), []string{"2 nodes has the shape [2,3]"}},
		{"too wide", csrData, "attr_shape", npyBytes(i8, "(2,)", []int64{2, 1 << 30}), []string{"attr_*", "not supported"}},
		{"float pointers", csrData, "attr_indptr", npyBytes(f4, "(3,)", []float32{0, 1, 3}), []string{"indptr: expected integers"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			arrays := c.base()
			arrays[c.array] = c.data
			if c.data == nil {
				delete(arrays, c.array)
			}
			path := writeFile(t, "d.npz", pack(t, arrays))
			ds, err := Load(path, LoadOptions{})
			wantError(t, err, append(c.err, "d.npz")...)
			if ds != nil {
				t.Error("half a data set came with the error")
			}
		})
	}
}

func TestNPZSound(t *testing.T) {
	ds := mustLoad(t, writeFile(t, "d.npz", pack(t, hetero())), LoadOptions{})
	// Node 2 has no label, so the test split loses it.
	if ds.Repairs.SplitUnlabelled != 1 || ds.Repairs.Unlabelled != 1 || len(ds.Splits[0].Test) != 0 {
		t.Errorf("repairs %+v, split %v", ds.Repairs, ds.Splits[0])
	}

	ds = mustLoad(t, writeFile(t, "d.npz", pack(t, csrData())), LoadOptions{})
	if !slices.Equal(ds.Graph.Weights, []float32{2}) {
		t.Errorf("weights %v, want one of 2", ds.Graph.Weights)
	}

	// No edges, no splits.
	arrays := hetero()
	arrays["edges"] = npyBytes("<i8", "(0, 2)", nil)
	delete(arrays, "train_masks")
	delete(arrays, "val_masks")
	delete(arrays, "test_masks")
	ds = mustLoad(t, writeFile(t, "d.npz", pack(t, arrays)), LoadOptions{})
	if len(ds.Graph.Edges) != 0 || ds.Splits != nil {
		t.Errorf("edges %v, splits %v", ds.Graph.Edges, ds.Splits)
	}

	// A single split may be one-dimensional.
	arrays = hetero()
	for _, n := range []string{"train_masks", "val_masks", "test_masks"} {
		arrays[n] = npyBytes("|b1", "(3,)", make([]byte, 3))
	}
	if ds = mustLoad(t, writeFile(t, "d.npz", pack(t, arrays)), LoadOptions{}); len(ds.Splits) != 1 {
		t.Errorf("splits %v", ds.Splits)
	}
}

// loadNPZ is Load of an .npz file held in memory.
func loadNPZ(b []byte, maxBytes int64) (*Dataset, error) {
	l := newLoader(LoadOptions{MaxBytes: maxBytes})
	ds, err := l.parseNPZ("d.npz", b)
	if err != nil {
		return nil, err
	}
	return ds, ds.finish()
}

// Cut anywhere, an archive is an error.
func TestNPZTruncated(t *testing.T) {
	for _, name := range []string{"heterophilous.npz", "csr.npz"} {
		whole := mustRead(t, filepath.Join("testdata", name))
		if _, err := loadNPZ(whole, 1<<30); err != nil {
			t.Fatal(err)
		}
		for n := range whole {
			if _, err := loadNPZ(whole[:n], 1<<30); err == nil || !strings.Contains(err.Error(), "d.npz") {
				t.Fatalf("%s cut to %d of %d bytes: %v", name, n, len(whole), err)
			}
		}
	}
}

// Any byte flipped gives an error or a whole data set, never a panic.
func TestNPZFlipped(t *testing.T) {
	whole := mustRead(t, "testdata/heterophilous.npz")
	sound := 0
	for n := range whole {
		b := slices.Clone(whole)
		b[n] ^= 0xff
		if ds, err := loadNPZ(b, 1<<30); err == nil {
			sound++
			if err := ds.Check(); err != nil {
				t.Fatalf("byte %d: %v", n, err)
			}
		}
	}
	// What does not matter is time stamps and the like; the data itself has
	// checksums.
	if sound > len(whole)/2 {
		t.Errorf("%d of %d damaged files load", sound, len(whole))
	}
}

func TestZipBombs(t *testing.T) {
	zeros := func(n int) []byte {
		return append(npyBytes("|u1", fmt.Sprintf("(%d,)", n), nil), make([]byte, n)...)
	}
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for i := range 20 { // 20 MiB out of 20 KiB
		f, _ := w.Create(fmt.Sprintf("a%d.npy", i))
		f.Write(zeros(1 << 20))
	}
	w.Close()
	bomb := b.Bytes()
	_, err := Load(writeFile(t, "bomb.npz", bomb), LoadOptions{MaxBytes: 10 << 20})
	wantError(t, err, "bomb.npz", "unpacks to more than 10.0 MiB")

	// The sizes in the directory are lies: nothing is allocated by them.
	for _, c := range []struct {
		name string
		lie  func(size uint64) uint64
		err  string
	}{
		{"claims too much", func(uint64) uint64 { return 1 << 40 }, "no compression gives"},
		{"claims less", func(n uint64) uint64 { return n - 1 }, "needs 1048576 bytes, the file has 1048575"},
	} {
		got := allocated(func() { _, err = openAndUnpack(lieAboutSize(bomb, c.lie)) })
		wantError(t, err, c.err)
		if got > 64<<20 { // the honest members take 20 MiB, twice as they grow
			t.Errorf("%s: allocated %d bytes", c.name, got)
		}
	}

	// Two entries that share one stream, as overlapping zip bombs do.
	_, err = openAndUnpack(overlap(t, incompressible(4096)))
	wantError(t, err, "overlap")

	_, err = openAndUnpack(npzBytes(t, part{"a", zeros(1)}, part{"a", zeros(1)}))
	wantError(t, err, "appears twice")

	parts := make([]part, maxParts+1)
	for i := range parts {
		parts[i].name = fmt.Sprint(i)
	}
	_, err = openAndUnpack(npzBytes(t, parts...))
	wantError(t, err, "at most 4096")

	_, err = openAndUnpack(nil)
	wantError(t, err, "empty")
	_, err = openAndUnpack([]byte("PK but not a zip"))
	wantError(t, err, "not a readable .npz")
}

func openAndUnpack(b []byte) ([]*array, error) {
	a, err := newLoader(LoadOptions{}).openNPZ("a.npz", b)
	if err != nil {
		return nil, err
	}
	var out []*array
	for _, n := range a.names {
		arr, err := a.array(n)
		if err != nil {
			return nil, err
		}
		out = append(out, arr)
	}
	return out, nil
}

// directoryEntry is the offset of the last entry of a zip's directory.
func directoryEntry(b []byte) int { return bytes.LastIndex(b, []byte("PK\x01\x02")) }

// lieAboutSize changes the unpacked size of the last member.
func lieAboutSize(b []byte, lie func(uint64) uint64) []byte {
	b = slices.Clone(b)
	field := b[directoryEntry(b)+24:]
	size := uint64(field[0]) | uint64(field[1])<<8 | uint64(field[2])<<16 | uint64(field[3])<<24
	size = min(lie(size), math.MaxUint32-1)
	for i := range 4 {
		field[i] = byte(size >> (8 * i))
	}
	return b
}

// overlap makes an archive whose second member points at the first one's bytes.
func overlap(tb testing.TB, data []byte) []byte {
	b := npzBytes(tb, part{"a", data}, part{"b", []byte{1}})
	first, second := bytes.Index(b, []byte("PK\x01\x02")), directoryEntry(b)
	copy(b[second+16:second+28], b[first+16:first+28]) // checksum and sizes
	copy(b[second+42:second+46], b[first+42:first+46]) // offset
	return b
}

func incompressible(n int) []byte {
	b := make([]byte, n)
	s := uint32(1)
	for i := range b {
		s = s*1664525 + 1013904223
		b[i] = byte(s >> 24)
	}
	return b
}

func FuzzNPZ(f *testing.F) {
	f.Add(pack(f, hetero()))
	f.Add(pack(f, csrData()))
	for _, n := range []string{"csc.npz", "dense.npz", "csr.npz", "heterophilous.npz", "folder-npz/features.npz"} {
		f.Add(mustRead(f, filepath.Join("testdata", n)))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if a, err := newLoader(LoadOptions{MaxBytes: 1 << 20}).openNPZ("f.npz", b); err == nil {
			got := allocated(func() {
				for _, n := range a.names {
					a.array(n)
				}
			})
			// Decompression itself needs some 50 KiB a member.
			if most := uint64(8<<20 + len(a.names)<<17); got > most {
				t.Errorf("allocated %d bytes for %d of input", got, len(b))
			}
		}
		if ds, err := loadNPZ(b, 1<<20); err == nil {
			if err := ds.Check(); err != nil {
				t.Errorf("a data set that is not valid came out: %v", err)
			}
			ds.Info()
		}
	})
}

// FuzzNPZArrays replaces one array of a sound archive: mutations of a whole zip
// rarely get past its checksums.
func FuzzNPZArrays(f *testing.F) {
	bases := []map[string][]byte{hetero(), csrData()}
	var names [2][]string
	for i, base := range bases {
		for n := range base {
			names[i] = append(names[i], n)
		}
		slices.Sort(names[i])
		for k, n := range names[i] {
			f.Add(i, k, base[n])
		}
	}
	f.Add(1, 0, npyBytes("<f4", "(2,)", []float32{float32(math.NaN()), -1}))
	f.Add(0, 1, npyBytes("|S4", "(3, 2)", make([]byte, 24)))
	f.Fuzz(func(t *testing.T, base, array int, b []byte) {
		base &= 1
		arrays := maps.Clone(bases[base])
		arrays[names[base][uint(array)%uint(len(names[base]))]] = b
		packed := pack(t, arrays)
		var ds *Dataset
		var err error
		got := allocated(func() { ds, err = loadNPZ(packed, 1<<20) })
		if most := uint64(2<<20 + 256*len(packed)); got > most {
			t.Errorf("allocated %d bytes for %d of input", got, len(packed))
		}
		if err == nil {
			if err := ds.Check(); err != nil {
				t.Errorf("a data set that is not valid came out: %v", err)
			}
			ds.Info()
		}
	})
}

func FuzzNPY(f *testing.F) {
	f.Add(npyBytes("<f4", "(3, 2)", []float32{1, 0, 0, 1, 1, 1}))
	f.Add(npyBytes("|b1", "(1, 3)", []byte{1, 0, 0}))
	f.Add(mustRead(f, "testdata/folder-npy/features.npy"))
	f.Fuzz(func(t *testing.T, b []byte) {
		a, err := parseNPY(b)
		if err != nil {
			return
		}
		if v, err := a.ints(); err == nil && len(v) != a.len() {
			t.Error("wrong number of integers")
		}
		if v, err := a.float32s(); err == nil && len(v) != a.len() {
			t.Error("wrong number of floats")
		}
		denseFeatures(a)
	})
}
