package data

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"

	"github.com/gsrc-dev/gsrc/data/store"
	"github.com/gsrc-dev/gsrc/graph"
	"github.com/gsrc-dev/gsrc/internal/budget"
	"github.com/gsrc-dev/gsrc/internal/scratch"
)

// converted writes the data at path as a store and reads that.
func converted(t *testing.T, path string, o ConvertOptions) *Dataset {
	t.Helper()
	out := filepath.Join(t.TempDir(), "store")
	if err := Convert(path, out, o); err != nil {
		t.Fatal(err)
	}
	ds, err := Load(out, LoadOptions{Directed: o.Load.Directed, Weights: o.Load.Weights})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ds.Stored.Close() }) // Windows deletes no file that is open
	return ds
}

// TestStoresHoldWhatWasRead converts data of every format, which then are the same.
func TestStoresHoldWhatWasRead(t *testing.T) {
	folder := func(files map[string]string) string {
		dir := t.TempDir()
		for name, text := range files {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		return dir
	}
	nodes := "id,label,split,a,b\nann,x,train,1,0.5\nbob,y,val,2,\ncy,x,test,4,3\ndee,,,0,1\n"
	weighted := folder(map[string]string{"nodes.csv": nodes, "edges.csv": "source,target,weight\nann,bob,2\nbob,ann,3\nann,bob,4\ncy,cy,7\ncy,cy,8\ndee,cy,0.5\nbob,cy,1\n"})
	for _, x := range []struct {
		name, path string
		o          ConvertOptions
	}{
		{name: "tables", path: weighted},
		{name: "directed", path: weighted, o: ConvertOptions{Load: LoadOptions{Directed: true}}},
		{name: "sum", path: weighted, o: ConvertOptions{Load: LoadOptions{Tables: Tables{Merge: MergeSum}}}},
		{name: "mean, directed", path: weighted, o: ConvertOptions{Load: LoadOptions{Directed: true, Tables: Tables{Merge: MergeMean}}}},
		{name: "counts", path: folder(map[string]string{"nodes.csv": nodes, "edges.csv": "source,target\nann,bob\nbob,ann\nann,bob\ncy,dee\n"}), o: ConvertOptions{Load: LoadOptions{Tables: Tables{Merge: MergeSum}}}},
		{name: "no edges", path: folder(map[string]string{"nodes.csv": nodes, "edges.csv": "source,target\n"})},
		{name: "npy", path: "testdata/folder-npy"}, {name: "npz", path: "testdata/folder-npz"},
		{name: "csr", path: "testdata/csr.npz"}, {name: "heterophilous", path: "testdata/heterophilous.npz"},
		{name: "planetoid", path: "testdata/planetoid-p2"},
		{name: "synthetic", path: Synthetic, o: ConvertOptions{Load: LoadOptions{Seed: 3}}},
		{name: "synthetic, directed", path: Synthetic, o: ConvertOptions{Load: LoadOptions{Seed: 3, Directed: true}}},
	} {
		t.Run(x.name, func(t *testing.T) {
			want, err := Load(x.path, x.o.Load)
			if err != nil {
				t.Fatal(err)
			}
			got := converted(t, x.path, x.o)
			if got.Stored == nil || got.Format != "store" {
				t.Error("they are not in a store")
			}
			got.Repairs.EmptyRows = want.Repairs.EmptyRows
			for _, p := range [][3]any{
				{"graph", got.Graph, want.Graph}, {"features", got.X, want.X}, {"labels", got.Labels, want.Labels}, {"loops", got.Loops, want.Loops},
				{"classes", got.ClassNames, want.ClassNames}, {"ids", got.NodeIDs, want.NodeIDs}, {"repairs", got.Repairs, want.Repairs},
				{"roles", got.Roles, want.Roles}, {"columns", got.Columns, want.Columns}, {"split", got.SplitSpec, want.SplitSpec},
			} {
				if !same(p[1], p[2]) {
					t.Errorf("%s: %+v, want %+v", p[0], p[1], p[2])
				}
			}
			sameRows(t, got.Rows(), want.Rows())
			if len(got.Splits) != len(want.Splits) {
				t.Fatalf("%d splits, want %d", len(got.Splits), len(want.Splits))
			}
			for i := range got.Splits {
				if !same(got.Splits[i], want.Splits[i]) {
					t.Errorf("split %d: %v, want %v", i, got.Splits[i], want.Splits[i])
				}
			}
		})
	}
}

// sameRows compares the entries into all nodes, and what a store says that they weigh.
func sameRows(t *testing.T, stored, want graph.Rows) {
	t.Helper()
	for v := range int32(want.Nodes()) {
		sources, weights, err := stored.Row(v)
		if err != nil {
			t.Fatal(err)
		}
		wantSources, wantWeights, _ := want.Row(v)
		if !slices.Equal(sources, wantSources) || !slices.Equal(weights, wantWeights) {
			t.Errorf("entries into node %d: %v, %v, want %v, %v", v, sources, weights, wantSources, wantWeights)
		}
		total := float64(len(sources))
		if weights != nil {
			total = 0
			for _, w := range weights {
				total += float64(w)
			}
		}
		totals, err := stored.(graph.Totals).Totals(nil, []int32{v})
		if err != nil || totals[0] != total {
			t.Errorf("entries into node %d weigh %v (%v), want %v", v, totals, err, total)
		}
	}
}

// same compares texts, so that a nil slice is an empty one.
func same(a, b any) bool {
	return reflect.DeepEqual(a, b) || fmt.Sprintf("%+v", deref(a)) == fmt.Sprintf("%+v", deref(b))
}

// TestConvertResumes breaks conversions off in every stage, by a folder where a file is to be written; the store is that of one in a go.
func TestConvertResumes(t *testing.T) {
	nodes := "id,label,split,a,b\nann,x,train,1,0.5\nbob,y,val,2,\ncy,x,test,4,3\ndee,,,0,1\n"
	tables := map[string]string{"nodes.csv": nodes, "edges.csv": "src,target,weight,memo,more\nann,bob,2,m,1\nbob,ann,3,m,2\nann,bob,4,k,3\ncy,cy,7,k,4\ndee,cy,0.5,m,5\n"}
	bare := map[string]string{"nodes.csv": nodes, "edges.csv": "ann,bob,2\nbob,ann,3\ndee,cy,0.5\n"}
	var rows bytes.Buffer
	if err := parquet.Write(&rows, []parquetEdge{{"ann", "bob", 2}, {"bob", "ann", 3}, {"dee", "cy", 0.5}}); err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		name, path string
		o          LoadOptions
	}{
		{name: "tables", path: writeFiles(t, tables), o: LoadOptions{Tables: Tables{Merge: MergeSum, Ignore: []string{"memo"}}}},
		{name: "ignored weights", path: writeFiles(t, tables), o: LoadOptions{Weights: IgnoreWeights}},
		{name: "no header", path: writeFiles(t, bare), o: LoadOptions{Tables: Tables{Merge: MergeMean}}},
		{name: "parquet", path: writeFiles(t, map[string]string{"nodes.csv": nodes, "edges.parquet": rows.String()}), o: LoadOptions{Tables: Tables{Merge: MergeMax}}},
		{name: "ogb", path: writeFiles(t, packed(t, ogbFiles()))},
		{name: "npy", path: "testdata/folder-npy"}, {name: "npz", path: "testdata/folder-npz"},
		{name: "csr", path: "testdata/csr.npz"}, {name: "heterophilous", path: "testdata/heterophilous.npz"},
		{name: "planetoid", path: "testdata/planetoid-p2"}, {name: "synthetic", path: Synthetic},
	} {
		t.Run(x.name, func(t *testing.T) {
			t.Parallel()
			x.o.MaxBytes = 64 << 20
			o := ConvertOptions{Load: x.o}
			whole := filepath.Join(t.TempDir(), "store")
			if err := Convert(x.path, whole, o); err != nil {
				t.Fatal(err)
			}
			files, err := os.ReadDir(whole)
			if err != nil {
				t.Fatal(err)
			}
			key := Synthetic
			if x.path != Synthetic {
				if key, err = fingerprint(x.path); err != nil {
					t.Fatal(err)
				}
			}
			key = fmt.Sprintf("%s%s half %v", key, o.Load.identity(x.path), o.Half)
			for _, file := range []string{"pairs.run0", "edges.bin", "indptr.bin", "labels.bin", store.HeaderFile} {
				out := filepath.Join(t.TempDir(), "store")
				begun, err := json.Marshal(map[string]string{"key": key}) // or else the folder is cleared
				if err == nil {
					err = os.MkdirAll(filepath.Join(out+".partial", file), 0o755)
				}
				if err := errors.Join(err, os.WriteFile(filepath.Join(out+".partial", "build.json"), begun, 0o644)); err != nil {
					t.Fatal(err)
				}
				if err := Convert(x.path, out, o); err == nil {
					t.Fatalf("%s did not break it off", file)
				}
				if err := errors.Join(os.Remove(filepath.Join(out+".partial", file)), Convert(x.path, out, o)); err != nil {
					t.Fatalf("after %s: %v", file, err)
				}
				for _, f := range files {
					want, err := os.ReadFile(filepath.Join(whole, f.Name()))
					got, bad := os.ReadFile(filepath.Join(out, f.Name()))
					if err := errors.Join(err, bad); err != nil || !bytes.Equal(got, want) {
						t.Errorf("after %s, %s is another: %v\n%s\n%s", file, f.Name(), err, got, want)
					}
				}
			}
		})
	}
}

func TestConvertHalf(t *testing.T) {
	want, err := Load("testdata/folder-npy", LoadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	got := converted(t, "testdata/folder-npy", ConvertOptions{Half: true})
	for i, v := range want.X.ToDense().Dense {
		if !(math.Abs(float64(got.X.ToDense().Dense[i]-v)) <= math.Abs(float64(v))/2048+1e-7) {
			t.Fatalf("value %d is %v, was %v", i, got.X.Dense[i], v)
		}
	}
}

func TestConvertRefuses(t *testing.T) {
	out := filepath.Join(t.TempDir(), "store")
	refused := func(path string, o ConvertOptions, words string) {
		t.Helper()
		if err := Convert(path, out, o); err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("the error is %v, want %q in it", err, words)
		}
		if store.Is(out) {
			t.Error("it left a store")
		}
	}
	var exceeded *budget.ExceededError
	if err := Convert("testdata/folder-npy", out, ConvertOptions{Load: LoadOptions{MaxBytes: 1000}}); !errors.As(err, &exceeded) {
		t.Errorf("the error is %v", err)
	}
	bad := t.TempDir()
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(bad, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("nodes.csv", "id,label,a\n1,x,1\n2,y,2\n")
	write("edges.csv", "source,target\n1,2\n1,3\n")
	refused(bad, ConvertOptions{}, "edges.csv:3:3")
	write("edges.csv", "source,target\n1,2\n")
	write("nodes.csv", "id,label,a\n1,x,1\n2,y,70000\n")
	refused(bad, ConvertOptions{Half: true, Load: LoadOptions{NoPrepare: true}}, "node 1 in column 0 is 70000")
	if err := Convert(bad, out, ConvertOptions{}); err != nil { // after those that failed
		t.Fatal(err)
	}
	if err := Convert(out, out+"2", ConvertOptions{}); err == nil || !strings.Contains(err.Error(), "already") {
		t.Errorf("the error is %v", err)
	}
	if _, err := Load(out, LoadOptions{Directed: true}); err == nil || !strings.Contains(err.Error(), "because the model was trained on such") || !strings.Contains(err.Error(), "convert the data with --directed") {
		t.Errorf("the error is %v", err)
	}
	large := filepath.Join(bad, "features.npy")
	if os.WriteFile(large, nil, 0o644) == nil && os.Truncate(large, 1<<43) == nil && scratch.Free(out) < 1<<42 {
		if err := Convert(bad, out+"4", ConvertOptions{}); err == nil || !strings.Contains(err.Error(), "take 4.0 TiB of the disk or more") {
			t.Errorf("the error is %v", err)
		}
		os.Remove(large)
	}
	collection := filepath.Join(t.TempDir(), "x.txt")
	if err := os.WriteFile(collection, []byte("1\n2 0\n0 1 1\n0 1 0\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := Convert(collection, out+"3", ConvertOptions{}); err == nil || !strings.Contains(err.Error(), "collection") {
		t.Errorf("the error is %v", err)
	}
}

// deref is what a pointer points to.
func deref(x any) any {
	if v := reflect.ValueOf(x); v.Kind() == reflect.Pointer && !v.IsNil() {
		return v.Elem().Interface()
	}
	return x
}

// Features in float16 that would fill more than a quarter of the memory lie in a file in float32, and are the same.
func TestHalvesInAFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store")
	o := store.Planted{Nodes: 3000, Edges: 6000, Classes: 3, Community: 50, Homophily: 0.8, Locality: 0.5, Features: 64, Signal: 0.3, Train: 10, Val: 10, Half: true}
	if err := store.Generate(path, o, store.Options{}); err != nil {
		t.Fatal(err)
	}
	var ds [2]*Dataset
	for i, limit := range []int64{0, 2 << 20} {
		var err error
		if ds[i], err = Load(path, LoadOptions{MaxBytes: limit}); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = ds[i].Stored.Close() })
	}
	if n := ds[1].MappedBytes() - ds[0].MappedBytes(); n != 4*64*3000 {
		t.Errorf("%d bytes more are in files", n)
	}
	if !slices.Equal(ds[0].X.Dense, ds[1].X.Dense) || len(ds[0].X.Dense) != 64*3000 {
		t.Error("the features are others")
	}
	if x := ds[1].X.Append(make([]float32, 64)); x.inFile || x.Rows != 3001 {
		t.Error("what was added to is said to be in a file")
	}
}

// A model that was trained on what a store was converted from takes the store as that, unless
// something of it is other.
func TestStoreOfTraining(t *testing.T) {
	path := t.TempDir()
	for name, text := range map[string]string{"nodes.csv": "id,label,age\na,cat,3\nb,dog,4\nc,cat,5.5\nd,dog,3\n", "edges.csv": "source,target\na,b\nb,c\nc,d\n"} {
		if err := os.WriteFile(filepath.Join(path, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := Load(path, LoadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		o    ConvertOptions
		same bool
	}{
		{"plain", ConvertOptions{}, true},
		{"half", ConvertOptions{Half: true}, false},
		{"split", ConvertOptions{Load: LoadOptions{Split: "random:0.6,0.2,0.2"}}, false},
		{"raw columns", ConvertOptions{Load: LoadOptions{NoPrepare: true}}, false},
		{"no weights", ConvertOptions{Load: LoadOptions{Weights: IgnoreWeights}}, false},
	} {
		out := filepath.Join(t.TempDir(), "store")
		if err := Convert(path, out, c.o); err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		columns := want.Columns
		if c.name == "raw columns" {
			columns = nil
		}
		ds, err := Load(out, LoadOptions{Trained: want.Checksum, Columns: columns})
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		told := slices.ContainsFunc(ds.Notes, func(s string) bool { return strings.Contains(s, "taken as other data") })
		if got := ds.Checksum == want.Checksum; got != c.same || told == c.same {
			t.Errorf("%s: the training data %v, told %v", c.name, got, told)
		}
		if ds, err = Load(out, LoadOptions{Trained: "another"}); err != nil || ds.Checksum == want.Checksum {
			t.Errorf("%s: has the checksum of its source for another model, or %v", c.name, err)
		}
	}
}

// A conversion of Parquet that memory lacks room for says how much would do.
func TestConvertSaysWhatMemoryWouldDo(t *testing.T) {
	var nodes []parquetNode
	var edges []parquetEdge
	for i := range 200_000 {
		nodes = append(nodes, parquetNode{ID: fmt.Sprint("node number ", i), Split: "train", Age: int32(i), Share: float64(i) / 7})
		edges = append(edges, parquetEdge{fmt.Sprint("node number ", i), fmt.Sprint("node number ", i*7%200_000), 1})
	}
	var n, e bytes.Buffer
	if err := errors.Join(parquet.Write(&n, nodes), parquet.Write(&e, edges)); err != nil {
		t.Fatal(err)
	}
	dir := writeFiles(t, map[string]string{"nodes.parquet": n.String(), "edges.parquet": e.String()})
	convert := func(memory int64) error {
		return Convert(dir, filepath.Join(t.TempDir(), "store"), ConvertOptions{Load: LoadOptions{MaxBytes: memory}})
	}
	err := convert(47 << 20)
	_, about, _ := strings.Cut(fmt.Sprint(err), "--memory to about ")
	about, _, _ = strings.Cut(about, " MiB")
	mib, parseErr := strconv.ParseFloat(about, 64)
	if parseErr != nil || mib > 250 {
		t.Fatalf("error %v", err)
	}
	if err := convert(int64(mib * (1 << 20))); err != nil {
		t.Error(err)
	}
}
