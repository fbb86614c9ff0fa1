package pipeline

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"

	"github.com/gsrc-dev/gsrc/data"
	"github.com/gsrc-dev/gsrc/run"
)

// Unsigned integers have no sign at the borders of signed ones, as ids and as features.
func TestUnsigned(t *testing.T) {
	type row struct {
		ID uint64 `parquet:"id"`
		A  uint32 `parquet:"a"`
		B  uint64 `parquet:"b"`
		C  int32  `parquet:"c"`
	}
	type edge struct {
		Source uint32 `parquet:"source"`
		Target uint64 `parquet:"target"`
	}
	dir := t.TempDir()
	nodes, edges := filepath.Join(dir, "nodes.parquet"), filepath.Join(dir, "edges.parquet")
	if err := parquet.WriteFile(nodes, []row{{1<<63 - 1, 1 << 31, 1 << 63, -1}, {1 << 63, 4e9, 1<<63 - 1, 2}}); err != nil {
		t.Fatal(err)
	}
	if err := parquet.WriteFile(edges, []edge{{1 << 31, 1 << 63}}); err != nil {
		t.Fatal(err)
	}
	ids, x, err := readNodes(t.Context(), Chunk{Path: nodes, Count: 2}, []string{"a", "b", "c"}, 3)
	if err != nil || !slices.Equal(ids, []string{"9223372036854775807", "9223372036854775808"}) || !slices.Equal(x, []float32{1 << 31, 1 << 63, -1, 4e9, 1 << 63, 2}) {
		t.Errorf("%v %v %v", ids, x, err)
	}
	ends, err := readEdges(t.Context(), Chunk{Path: edges, Count: 1})
	if err != nil || !slices.Equal(ends, []string{"2147483648", "9223372036854775808"}) {
		t.Errorf("%v %v", ends, err)
	}
}

// Integers of 32 bits keep their sign, as ids and as features.
func TestNegative(t *testing.T) {
	type row struct {
		ID int32 `parquet:"id"`
		A  int32 `parquet:"a"`
		B  int64 `parquet:"b"`
	}
	type edge struct {
		Source int32 `parquet:"source"`
		Target int64 `parquet:"target"`
	}
	path := filepath.Join(t.TempDir(), "nodes.parquet")
	if err := errors.Join(parquet.WriteFile(path, []row{{-1, -2, -3}}), parquet.WriteFile(path+"e", []edge{{-1, -6}})); err != nil {
		t.Fatal(err)
	}
	ids, x, err := readNodes(t.Context(), Chunk{Path: path, Count: 1}, []string{"a", "b"}, 2)
	if err != nil || !slices.Equal(ids, []string{"-1"}) || !slices.Equal(x, []float32{-2, -3}) {
		t.Errorf("%v %v %v", ids, x, err)
	}
	ends, err := readEdges(t.Context(), Chunk{Path: path + "e", Count: 1})
	if err != nil || !slices.Equal(ends, []string{"-1", "-6"}) {
		t.Errorf("%v %v", ends, err)
	}
}

// Decimals, dates and times are not the numbers that are stored; columns that are not read may have them.
func TestLogicalTypes(t *testing.T) {
	type row struct {
		ID   string `parquet:"id"`
		A    int64  `parquet:"a,decimal(2:18)"`
		B    int64  `parquet:"b,timestamp"`
		C    int64  `parquet:"c"`
		Day  int32  `parquet:"day,date"`
		Kind string `parquet:"kind,enum"`
	}
	type edge struct {
		Source int32 `parquet:"source"`
		Target int32 `parquet:"target,date"`
	}
	path := filepath.Join(t.TempDir(), "nodes.parquet")
	if err := errors.Join(parquet.WriteFile(path, []row{{ID: "a", C: 7}}), parquet.WriteFile(path+"e", []edge{{1, 2}})); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"a": `the column "a" is of type DECIMAL`, "b": `the column "b" is of type TIMESTAMP`, "day": `the column "day" is of type DATE`, "c": ""} {
		_, x, err := readNodes(t.Context(), Chunk{Path: path, Count: 1}, []string{name}, 1)
		if want == "" && (err != nil || x[0] != 7) || want != "" && (err == nil || !strings.Contains(err.Error(), path+": "+want)) {
			t.Errorf("%s: %v %v", name, x, err)
		}
	}
	if _, err := readEdges(t.Context(), Chunk{Path: path + "e", Count: 1}); err == nil || !strings.Contains(err.Error(), `the column "target" is of type DATE`) {
		t.Error(err)
	}
}

// Shards of tables have the columns' names, and values that are not prepared.
func TestShardsByName(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"nodes.csv": "id,x,depth\na,100,1\nb,250,2\n", "edges.csv": "source,target\na,b\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	ds, err := LoadFor("", dir, false)
	if err == nil {
		err = WriteShards(t.Context(), ds, filepath.Join(dir, "shards"), 1)
	}
	if err != nil {
		t.Fatal(err)
	}
	_, x, err := readNodes(t.Context(), Chunk{Path: filepath.Join(dir, "shards", "nodes-00000-of-00001.parquet"), Count: 2}, []string{"depth", "x"}, 2)
	if err != nil || !slices.Equal(x, []float32{1, 100, 2, 250}) {
		t.Errorf("%v %v", x, err)
	}
}

// Shards for a run are read as its training read the data: without a schema that came later, and not where they do not fit.
// Its classes are called what the training data call them.
func TestShardsAsTrained(t *testing.T) {
	dir := t.TempDir()
	data, runDir := filepath.Join(dir, "data"), filepath.Join(dir, "run")
	write := func(folder, name, text string) {
		t.Helper()
		if err := errors.Join(os.MkdirAll(filepath.Join(dir, folder), 0o755), os.WriteFile(filepath.Join(dir, folder, name), []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	nodes, edges := "id,label,x,y\n", "source,target\n"
	for v := range 40 {
		nodes += fmt.Sprintf("n%d,%d,%d,%d\n", v, v%2+1, v%2, v%3)
		edges += fmt.Sprintf("n%d,n%d\n", v, (v+2)%40)
	}
	write("data", "nodes.csv", nodes)
	write("data", "edges.csv", edges)
	if _, err := run.Train(t.Context(), run.TrainOptions{Model: "gcn", Data: data, Out: runDir, Set: []string{"train.epochs=1", "data.split=random:0.6,0.2,0.2", "data.prepare=false"}}); err != nil {
		t.Fatal(err)
	}
	write("data", "schema.toml", "[nodes]\nignore = [\"y\"]\n")
	ds, err := LoadFor(runDir, data, false)
	if err != nil || len(ds.Notes) == 0 || ds.X.Cols != 2 {
		t.Errorf("data with a schema that came later: %v", err)
	}
	rows, _ := outputOf(t, Predict, shards(t, ds, runDir))
	for _, row := range rows {
		if c := cells(row); c["p_0"] != "" || c["p_1"] == "" || c["p_2"] == "" || c["class"] == "0" {
			t.Fatalf("of the classes 1 and 2: %s", row)
		}
	}
}

// Columns of features are those of the first file, by name in the others.
func TestColumnsOfFirstFile(t *testing.T) {
	type one struct {
		ID   int64 `parquet:"id"`
		A, B float32
	}
	type two struct {
		B, A float32
		ID   int64 `parquet:"id"`
	}
	type less struct {
		ID   int64 `parquet:"id"`
		A, C float32
	}
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	if err := errors.Join(parquet.WriteFile(path("1"), []one{{1, 2, 3}}), parquet.WriteFile(path("2"), []two{{3, 2, 1}}), parquet.WriteFile(path("3"), []less{{1, 2, 3}})); err != nil {
		t.Fatal(err)
	}
	names, err := featureColumns(t.Context(), path("1"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"1", "2"} {
		if _, x, err := readNodes(t.Context(), Chunk{Path: path(name), Count: 1}, names, 2); err != nil || !slices.Equal(x, []float32{2, 3}) {
			t.Errorf("%s: %v %v", name, x, err)
		}
	}
	if _, _, err := readNodes(t.Context(), Chunk{Path: path("3"), Count: 1}, names, 2); err == nil || !strings.Contains(err.Error(), "has no column B") {
		t.Error(err)
	}
}

// A file that others say there is, is missed.
func TestGap(t *testing.T) {
	for list, want := range map[string]string{
		"a/n-00000-of-00003.parquet a/n-00001-of-00003.parquet a/n-00002-of-00003.parquet b-0-of-1 plain.parquet": "",
		"a/n-00000-of-00003.parquet a/n-00002-of-00003.parquet":                                                   "a/n-00001-of-00003 is missing",
		"a/n-00000-of-00003.parquet a/n-00001-of-00003.parquet":                                                   "a/n-00002-of-00003 is missing",
		"a/n-1-of-3 a/n-2-of-3":                           "a/n-0-of-3 is missing",
		"a/n-1-of-3 a/n-2-of-3 a/n-3-of-3":                "",
		"a/n-1-of-3 a/n-3-of-3":                           "a/n-2-of-3 is missing",
		"a/n-0-of-2-b42a.parquet a/n-1-of-2-c1d2.parquet": "",
	} {
		if err := gap(strings.Fields(list)); (err == nil) != (want == "") || err != nil && !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v", list, err)
		}
	}
}

// Undirected edges are listed once, in any direction: a run that reads one refuses them. Files that do not say
// are read as the run was trained, and one without directions reads edges in both.
func TestShardsOfOtherDirection(t *testing.T) {
	ds, err := data.Load("synthetic", other(60))
	if err != nil {
		t.Fatal(err)
	}
	for _, trained := range []bool{false, true} {
		runDir := trainedOnly(t, "gcn", fmt.Sprintf("data.directed=%t", trained)).Dir
		for _, written := range []bool{false, true} {
			ds.Graph.Directed = written
			o := shards(t, ds, runDir)
			o.Out = t.TempDir()
			_, err := Predict(t.Context(), o)
			if refused := err != nil && strings.Contains(err.Error(), "edges-00000-of-00003.parquet has edges without a direction"); refused != (trained && !written) || err != nil && !refused {
				t.Errorf("trained with directions %t, shards with directions %t: %v", trained, written, err)
			}
			if trained && !written {
				paths, _ := filepath.Glob(o.Edges)
				for _, path := range paths {
					rows, err := parquet.ReadFile[edgeRow](path)
					if err := errors.Join(err, parquet.WriteFile(path, rows)); err != nil {
						t.Fatal(err)
					}
				}
				if _, err := Predict(t.Context(), o); err != nil {
					t.Errorf("files that do not say: %v", err)
				}
			}
		}
	}
}

// A feature that is not finite, or is too large for 32 bits, is refused where it is read.
func TestFeaturesNotFinite(t *testing.T) {
	type list struct {
		ID string    `parquet:"id"`
		X  []float32 `parquet:"x"`
	}
	type column struct {
		ID string  `parquet:"id"`
		A  float64 `parquet:"a"`
	}
	path := filepath.Join(t.TempDir(), "nodes.parquet")
	if err := errors.Join(parquet.WriteFile(path+"1", []list{{"a", []float32{1}}, {"b", []float32{float32(math.NaN())}}}), parquet.WriteFile(path+"2", []column{{"a", 1}, {"b", math.Inf(-1)}}),
		parquet.WriteFile(path+"3", []column{{"a", -math.MaxFloat32}, {"b", 1e300}})); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"1": "NaN", "2": "-Inf", "3": "+Inf"} {
		var names []string
		if name != "1" {
			names = []string{"a"}
		}
		if _, _, err := readNodes(t.Context(), Chunk{Path: path + name, Count: 2}, names, 1); err == nil || !strings.Contains(err.Error(), "nodes.parquet"+name+", row 2: a feature is "+want) {
			t.Errorf("want %s: %v", want, err)
		}
	}
}
