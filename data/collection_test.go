package data

import (
	"archive/zip"
	"bytes"
	"fmt"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/gsrc-dev/gsrc/graph"
)

// tuFiles is a TU data set with all that the format has: a triangle, an edge with
// a loop, and a path whose nodes are not in one run of the indicator.
func tuFiles() map[string]string {
	return map[string]string{
		"DS_A.txt":               "1, 2\n2, 1\n2, 3\n3, 2\n1, 3\n3, 1\n4, 5\n5, 4\n5, 5\n6, 7\n7, 6\n7, 8\n",
		"DS_graph_indicator.txt": "1\n1\n1\n2\n2\n3\n3\n3\n",
		"DS_graph_labels.txt":    "1\n-1\n1\n",
		"DS_node_labels.txt":     "5\n3\n5\n3\n3\n9\n5\n3\n",
		"DS_node_attributes.txt": "0.5, 1\n0, 0\n1, 1e-3\n2, 2\n0, 1\n3, 0\n0, 0\n1, 1\n",
		"DS_edge_labels.txt":     "7\n7\n8\n8\n7\n7\n0\n1\n4\n2\n2\n3\n",
		"DS_edge_attributes.txt": "1\n",
	}
}

// ginLines is the same graphs in GIN's format.
const ginLines = `3
3 1
5 2 1 2
3 2 0 2
5 2 0 1
2 -1
3 1 1
3 2 0 1
3 1
9 1 1
5 2 0 2
3 1 1
`

func loadCollection(tb testing.TB, path string, opts LoadOptions) *Collection {
	tb.Helper()
	c, err := LoadCollection(path, opts)
	if err != nil {
		tb.Fatal(err)
	}
	return c
}

// zipFiles makes a .zip whose members lie in one folder.
func zipFiles(tb testing.TB, folder string, files map[string]string) []byte {
	tb.Helper()
	return zipWith(tb, zip.Deflate, folder, files)
}

func zipWith(tb testing.TB, method uint16, folder string, files map[string]string) []byte {
	tb.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		f, err := w.CreateHeader(&zip.FileHeader{Name: folder + name, Method: method})
		if err == nil {
			_, err = f.Write([]byte(files[name]))
		}
		if err != nil {
			tb.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		tb.Fatal(err)
	}
	return b.Bytes()
}

func checkSample(t *testing.T, c *Collection) {
	t.Helper()
	want := [][][2]int32{{{0, 1}, {0, 2}, {1, 2}}, {{0, 1}}, {{0, 1}, {1, 2}}}
	for g, one := range c.Graphs {
		if !slices.Equal(one.Edges, want[g]) {
			t.Errorf("graph %d has the edges %v, want %v", g, one.Edges, want[g])
		}
	}
	if !slices.Equal(c.Labels, []int32{1, 0, 1}) || !slices.Equal(c.ClassNames, []string{"-1", "1"}) || c.Classes != 2 {
		t.Errorf("labels %v, classes %v", c.Labels, c.ClassNames)
	}
	if !slices.Equal(c.FeatureNames, []string{"label 3", "label 5", "label 9"}) {
		t.Errorf("features %v", c.FeatureNames)
	}
	x := c.X.ToDense()
	if !slices.Equal(x.Dense, []float32{0, 1, 0, 1, 0, 0, 0, 1, 0, 1, 0, 0, 1, 0, 0, 0, 0, 1, 0, 1, 0, 1, 0, 0}) {
		t.Errorf("one-hot labels %v", x.Dense)
	}
	if c.Repairs.SelfLoops != 1 {
		t.Errorf("repairs %+v, want one self-loop", c.Repairs)
	}
}

func TestTU(t *testing.T) {
	files := tuFiles()
	folder := loadCollection(t, writeFiles(t, files), LoadOptions{})
	packed := loadCollection(t, writeFile(t, "DS.zip", zipFiles(t, "DS/", files)), LoadOptions{})
	for _, c := range []*Collection{folder, packed} {
		checkSample(t, c)
		if c.Name != "ds" || c.Format != "tu" || c.Repairs.OneWayEdges != 1 {
			t.Errorf("name %s, format %s, repairs %+v", c.Name, c.Format, c.Repairs)
		}
		if got := fmt.Sprint(c.EdgeLabels); got != "[[7 7 8] [0] [2 3]]" {
			t.Errorf("edge labels %s", got)
		}
		if got := strings.Join(c.Unused, "; "); got != "node attributes, 2 columns; DS_edge_attributes.txt" {
			t.Errorf("unused %q", got)
		}
	}
}

// A folder with two data sets is read as neither.
func TestSeveralTU(t *testing.T) {
	files := tuFiles()
	for name, text := range tuFiles() {
		files["A"+name] = text
	}
	for _, path := range []string{writeFiles(t, files), writeFile(t, "x.zip", zipFiles(t, "", files))} {
		_, err := LoadCollection(path, LoadOptions{})
		wantError(t, err, path, "several TU data sets: ADS, DS")
	}
}

// That attributes are not scaled is said where it matters.
func TestScaleWarning(t *testing.T) {
	for large, want := range map[string]bool{"2": false, "1e5": true} {
		files := tuFiles()
		files["DS_node_attributes.txt"] = strings.Replace(files["DS_node_attributes.txt"], "1", large, 1)
		c := loadCollection(t, writeFiles(t, files), LoadOptions{NodeFeatures: FeaturesAttributes})
		if got := strings.Join(c.Warnings(Split{}), "\n"); strings.Contains(got, "attributes are taken as they are") != want {
			t.Errorf("%s: %q", large, got)
		}
	}
}

// Nodes of a graph need not follow each other in the indicator.
func TestTUInterleaved(t *testing.T) {
	c := loadCollection(t, writeFiles(t, map[string]string{
		"D_A.txt":               "1,3\n3,1\n2,4\n4,2\n4,5\n5,4",
		"D_graph_indicator.txt": "1\n2\n1\n2\n2",
		"D_graph_labels.txt":    "0\n1",
		"D_node_labels.txt":     "1\n2\n3\n4\n5",
	}), LoadOptions{})
	if got := fmt.Sprint(c.Graphs[0].Edges, c.Graphs[1].Edges); got != "[[0 1]] [[0 1] [1 2]]" {
		t.Errorf("edges %s", got)
	}
	x := c.X.ToCSR()
	if !slices.Equal(x.Col, []int32{0, 2, 1, 3, 4}) {
		t.Errorf("labels in columns %v", x.Col)
	}
}

func TestNodeFeatures(t *testing.T) {
	dir := writeFiles(t, tuFiles())
	for _, c := range []struct {
		want  NodeFeatures
		names string
		row0  []float32
	}{
		{FeaturesLabels, "label 3, label 5, label 9", []float32{0, 1, 0}},
		{FeaturesAttributes, "attribute 0, attribute 1", []float32{0.5, 1}},
		{FeaturesBoth, "attribute 0, attribute 1, label 3, label 5, label 9", []float32{0.5, 1, 0, 1, 0}},
		{FeaturesDegrees, "degree 1, degree 2", []float32{0, 1}},
	} {
		got := loadCollection(t, dir, LoadOptions{NodeFeatures: c.want})
		if kind := FeaturesNamed(got.FeatureNames); kind != c.want && c.want != FeaturesAuto {
			t.Errorf("%s: the columns are those of %s", c.want, kind)
		}
		if names := strings.Join(got.FeatureNames, ", "); names != c.names {
			t.Errorf("%s: columns %s", c.want, names)
		}
		if row := got.X.ToDense().Dense[:got.X.Cols]; !slices.Equal(row, c.row0) {
			t.Errorf("%s: row 0 is %v, want %v", c.want, row, c.row0)
		}
	}
	bare := tuFiles()
	delete(bare, "DS_node_labels.txt")
	if c := loadCollection(t, writeFiles(t, bare), LoadOptions{}); c.featureKind() != "node attributes" {
		t.Errorf("without labels there are %s", c.featureKind())
	}
	delete(bare, "DS_node_attributes.txt")
	if c := loadCollection(t, writeFiles(t, bare), LoadOptions{}); c.featureKind() != "degrees" {
		t.Errorf("without labels and attributes there are %s", c.featureKind())
	}
	_, err := LoadCollection(writeFiles(t, bare), LoadOptions{NodeFeatures: FeaturesLabels})
	wantError(t, err, "the nodes have no labels")
	_, err = LoadCollection(dir, LoadOptions{NodeFeatures: "colours"})
	wantError(t, err, "colours", "labels, attributes, both or degrees")
}

func TestGINText(t *testing.T) {
	file := writeFile(t, "DS.txt", []byte(ginLines))
	c := loadCollection(t, file, LoadOptions{})
	checkSample(t, c)
	if c.Name != "ds" || c.Format != "gin-text" || c.Source != file {
		t.Errorf("name %s, format %s, source %s", c.Name, c.Format, c.Source)
	}
	folds := map[string]string{"DS.txt": ginLines, "10fold_idx/test_idx-1.txt": "2\n", "10fold_idx/train_idx-1.txt": "1\n0\n", "10fold_idx/test_idx-2.txt": "0\n1\n", "10fold_idx/train_idx-2.txt": "2\n"}
	for _, path := range []string{writeFiles(t, folds), writeFile(t, "x.zip", zipFiles(t, "some/where/", folds))} {
		c := loadCollection(t, path, LoadOptions{})
		checkSample(t, c)
		if got := fmt.Sprint(c.Folds); got != "[{[0 1] [] [2] []} {[2] [] [0 1] []}]" {
			t.Errorf("folds %s", got)
		}
		if got, _ := c.FoldsFor(7); len(got) != 2 {
			t.Errorf("%d folds for a run, the data have 2", len(got))
		}
	}
	// The folder or the .zip may have another name than the file.
	other := map[string]string{"README.md": "", "graphs.txt": ginLines}
	for _, path := range []string{writeFiles(t, other), writeFile(t, "x.zip", zipFiles(t, "", other))} {
		if c := loadCollection(t, path, LoadOptions{}); c.Name != "graphs" || c.Source != path {
			t.Errorf("name %s, source %s", c.Name, c.Source)
		}
	}
	_, err := LoadCollection(writeFiles(t, map[string]string{"notes.txt": "2 graphs\n"}), LoadOptions{})
	wantError(t, err, "it has notes.txt", "one .txt in GIN's format")
	// Tags that are all the same say nothing, unless they are asked for; attributes follow the neighbours.
	c = loadCollection(t, writeFile(t, "a.txt", []byte("1\n2 0\n7 1 1 0.5\n7 1 0 3\n")), LoadOptions{NodeFeatures: FeaturesBoth})
	if got := strings.Join(c.FeatureNames, ", "); got != "attribute 0, label 7" {
		t.Errorf("columns %s", got)
	}
	c = loadCollection(t, writeFile(t, "a.txt", []byte("1\n2 0\n0 1 1 0.5 -2\n0 1 0 1e-3 7\n")), LoadOptions{})
	if c.featureKind() != "node attributes" || !slices.Equal(c.X.ToDense().Dense, []float32{0.5, -2, 1e-3, 7}) {
		t.Errorf("%s %v", c.featureKind(), c.X)
	}
	c = loadCollection(t, writeFile(t, "a.txt", []byte("1\n3 0\n0 1 1\n0 2 0 2\n0 1 1\n")), LoadOptions{})
	if got := strings.Join(c.FeatureNames, ", "); got != "degree 1, degree 2" {
		t.Errorf("columns %s", got)
	}
}

// Graphs may be without a class, all of them or some, and take no part in folds then.
func TestGraphsWithoutAClass(t *testing.T) {
	files := tuFiles()
	delete(files, "DS_graph_labels.txt")
	files["10fold_idx/test_idx-1.txt"], files["10fold_idx/train_idx-1.txt"] = "2\n", "0\n1\n"
	c := loadCollection(t, writeFiles(t, files), LoadOptions{})
	if !slices.Equal(c.Labels, []int32{-1, -1, -1}) || c.Classes != 0 || len(c.Graphs) != 3 || !slices.Equal(c.Offset, []int32{0, 3, 5, 8}) {
		t.Errorf("labels %v, %d classes, offsets %v", c.Labels, c.Classes, c.Offset)
	}
	_, err := c.SplitFor(0)
	wantError(t, err, "no graph of ds has a class", "_graph_labels.txt is missing")
	text := strings.Replace(strings.Replace(ginLines, "3 1\n5", "3\n5", 1), "2 -1\n", "2 4\n", 1)
	c = loadCollection(t, writeFiles(t, map[string]string{"DS.txt": text, "10fold_idx/test_idx-1.txt": "2\n", "10fold_idx/train_idx-1.txt": "0\n1\n"}), LoadOptions{})
	if got := fmt.Sprint(c.Folds); got != "[{[1] [] [2] []}]" {
		t.Errorf("folds %s", got)
	}
	if !slices.Equal(c.Labels, []int32{-1, 1, 0}) || !slices.Equal(c.ClassNames, []string{"1", "4"}) || !slices.Equal(c.Info().ClassCounts, []int{1, 1}) {
		t.Errorf("labels %v of %v, %v", c.Labels, c.ClassNames, c.Info().ClassCounts)
	}
	c = loadCollection(t, writeFiles(t, map[string]string{"DS.txt": text, "10fold_idx/test_idx-1.txt": "1\n2\n", "10fold_idx/train_idx-1.txt": "0\n"}), LoadOptions{})
	if got := fmt.Sprint(c.Folds); got != "[{[] [] [1 2] []}]" {
		t.Errorf("folds %s", got)
	}
	_, err = c.SplitFor(0)
	wantError(t, err, "ds: fold 0 has no training graph with a class", "another fold")
	if c.Repairs.Unlabelled != 1 || c.Repairs.SplitUnlabelled != 1 {
		t.Errorf("repairs %+v", c.Repairs)
	}
	c.Folds = nil
	var b strings.Builder
	if err := c.Info().WriteText(&b); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"12 or more graphs with a class are needed, and there are 2\n", " 1 graphs without a class\n", " 1 entries of the folds dropped, of graphs without a class\n"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%q is missing in\n%s", want, b.String())
		}
	}
	c.Folds = []Split{{Train: []int32{1, 2}}}
	_, err = c.SplitFor(0)
	wantError(t, err, "ds: fold 0 has no test graph with a class")
	folds, err := c.DrawFolds(2, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range folds {
		if len(f.Train) != 1 || len(f.Test) != 1 || slices.Contains(append(f.Train, f.Test...), 0) {
			t.Errorf("fold %v", f)
		}
	}
	if got := strings.Join(c.Warnings(folds[0]), "\n"); !strings.Contains(got, "1 of 3 graphs have no class, and take no part in training") {
		t.Errorf("warnings %s", got)
	}
}

// Graphs without a class take no more memory than those with one.
func TestMemoryOfGraphsWithoutAClass(t *testing.T) {
	const n = 1 << 16
	read := func(head string) uint64 {
		file := writeFile(t, "DS.txt", []byte(strconv.Itoa(n)+"\n"+strings.Repeat(head+"\n0 0\n", n)))
		return allocated(func() { loadCollection(t, file, LoadOptions{}) })
	}
	if with, without := read("1 0"), read("1"); without > with {
		t.Errorf("%d bytes allocated, with classes %d", without, with)
	}
}

func TestCollectionErrors(t *testing.T) {
	change := func(file, text string) map[string]string {
		files := tuFiles()
		files[file] = text
		return files
	}
	with := func(file, text string) map[string]string {
		return map[string]string{"DS.txt": ginLines, "10fold_idx/test_idx-1.txt": "2\n", "10fold_idx/train_idx-1.txt": "0\n1\n", file: text}
	}
	without := tuFiles()
	delete(without, "DS_A.txt")
	unplaced := tuFiles()
	delete(unplaced, "DS_graph_indicator.txt")
	unlabelled := tuFiles()
	delete(unlabelled, "DS_graph_labels.txt")
	unlabelled["DS_graph_indicator.txt"] = "1\n2000000000\n"
	for _, c := range []struct {
		files map[string]string
		want  []string
	}{
		{without, []string{"DS_A.txt", "missing", "a TU data set has", "where the classes are known, DS_graph_labels.txt"}},
		{unlabelled, []string{"DS_graph_indicator.txt", "lists 2 nodes of 2000000000 graphs"}},
		{change("DS_A.txt", "1, 2\n2, x\n"), []string{"DS_A.txt:2:4", `"x"`, "whole number"}},
		{change("DS_A.txt", "1, 9\n"), []string{"DS_A.txt:1:4", "no such node", "1 to 8"}},
		{change("DS_A.txt", "0, 1\n"), []string{"DS_A.txt:1:1", "no such node"}},
		{change("DS_A.txt", "1\n"), []string{"DS_A.txt:1", "the line ends"}},
		{change("DS_A.txt", "1, 2, 3\n"), []string{"DS_A.txt:1:7", "goes on"}},
		{change("DS_A.txt", "1, 4\n"), []string{"DS_A.txt:1", "joins node 1 of graph 1 and node 4 of graph 2"}},
		{change("DS_A.txt", "1, 99999999999999999999\n"), []string{"DS_A.txt:1:4", "too large"}},
		{change("DS_graph_indicator.txt", "1\n4\n"), []string{"indicator.txt:2", "no such graph"}},
		{change("DS_graph_indicator.txt", "1\n1\n3\n"), []string{"indicator.txt", "no node is of graph 2"}},
		{unplaced, []string{"DS_graph_indicator.txt: the file is missing", "a TU data set has DS_A.txt"}},
		{change("DS_graph_indicator.txt", ""), []string{"indicator.txt", "no node is of graph 1"}},
		{change("DS_graph_labels.txt", "1.5\n1\n1\n"), []string{"graph_labels.txt:1", "whole number", "real numbers"}},
		{change("DS_graph_labels.txt", "1\n\n-1\n1\n"), []string{"graph_labels.txt:2", "blank"}},
		{change("DS_graph_indicator.txt", "\n \n1\n"), []string{"indicator.txt:1", "blank"}},
		{change("DS_A.txt", "1, 2\n\n\n2, 1\n"), []string{"DS_A.txt:2", "blank"}},
		{change("DS_graph_labels.txt", "\n"), []string{"graph_labels.txt", "empty"}},
		{change("DS_node_labels.txt", "1\n"), []string{"node_labels.txt:1", "describes 1 nodes, DS_graph_indicator.txt has 8", "truncated"}},
		{change("DS_node_labels.txt", "1\n2,3\n"), []string{"node_labels.txt:2", "more than 1 numbers"}},
		{change("DS_node_attributes.txt", "1, 2\n3\n"), []string{"node_attributes.txt:2", "has 1 numbers, the first has 2"}},
		{change("DS_node_attributes.txt", "1, 2\n"), []string{"node_attributes.txt:1", "describes 1 nodes, DS_graph_indicator.txt has 8"}},
		{change("DS_node_attributes.txt", "nan\n"), []string{"node_attributes.txt:1:1", "not a finite number"}},
		{change("DS_edge_labels.txt", "1\n"), []string{"edge_labels.txt", "has 1 lines"}},
		{with("10fold_idx/test_idx-1.txt", "3\n"), []string{"test_idx-1.txt:1:1", "no such graph", "0 to 2"}},
		{with("10fold_idx/test_idx-1.txt", "2\n2\n"), []string{"test_idx-1.txt:2", "twice"}},
		{with("10fold_idx/test_idx-1.txt", ""), []string{"test_idx-1.txt", "empty"}},
		{with("10fold_idx/train_idx-1.txt", "2\n"), []string{"train_idx-1.txt", "in the test part of the same fold"}},
		{with("10fold_idx/test_idx-3.txt", "1\n"), []string{"10fold_idx", "test_idx-2.txt is missing"}},
		{with("10fold_idx/test_idx-x.txt", "1\n"), []string{"test_idx-x.txt", "number of a fold"}},
		{with("10fold_idx/test_idx-2.txt", "2\n"), []string{"train_idx-2.txt", "missing"}},
		{with("DS.txt", ""), []string{"DS.txt", "empty"}},
		{with("DS.txt", "a b\n"), []string{"DS.txt:1:1", "number of graphs", "TU data set"}},
		{with("DS.txt", "0\n"), []string{"0 graphs"}},
		{with("DS.txt", "2\n1 0\n0 0\n"), []string{"DS.txt:3", "ends after 1 of 2 graphs", "truncated"}},
		{with("DS.txt", "1\n2 0\n0 0\n"), []string{"DS.txt:3", "ends after 1 of the 2 nodes of graph 0"}},
		{with("DS.txt", "1\n1 0\n0 0\n7\n"), []string{"DS.txt:4", "goes on after the last of its 1 graphs"}},
		{with("DS.txt", "1\n0 0\n"), []string{"a graph of 0 nodes"}},
		{with("DS.txt", "1\n1 0\n0 2 0\n"), []string{"DS.txt:3", "the line ends where node should be"}},
		{with("DS.txt", "1\n1 0\n0 1 1\n"), []string{"DS.txt:3:5", "no such node"}},
		{with("DS.txt", "1\n1 0\n0 -1\n"), []string{"cannot have -1 neighbours"}},
		{with("DS.txt", "1\n2 0\n0 0\n0 0 1\n"), []string{"DS.txt:4", "has 1 attributes", "the first node has 0"}},
		{with("DS.txt", "1\n2000000000 0\n0 999999999 1\n"), []string{"the line ends"}},
	} {
		for _, path := range []string{writeFiles(t, c.files), writeFile(t, "DS.zip", zipFiles(t, "DS/", c.files))} {
			var err error
			if got := allocated(func() { _, err = LoadCollection(path, LoadOptions{}) }); got > 8<<20 {
				t.Errorf("%v: %d bytes allocated", err, got)
			}
			wantError(t, err, c.want...)
			checkFault(t, err)
		}
	}
	for want, o := range map[string]LoadOptions{"these data have no tables": {Tables: Tables{Label: "nosuch"}}, "split into folds of graphs": {Split: "random:0.6,0.2,0.2"}} {
		_, _, err := LoadAny(writeFiles(t, tuFiles()), o)
		wantError(t, err, want, "leave --")
	}
	_, err := Load(writeFiles(t, tuFiles()), LoadOptions{})
	wantError(t, err, "a collection of graphs, where one graph is wanted", "gsrc data info")
	_, err = LoadCollection("testdata/csr.npz", LoadOptions{})
	wantError(t, err, "one graph, where a collection", "data.Load")
	_, err = LoadCollection(writeFile(t, "a.zip", []byte("PK nothing")), LoadOptions{})
	wantError(t, err, "a.zip", "not a readable .zip", "fetch it again")
	_, err = LoadCollection(writeFile(t, "a.zip", zipFiles(t, "", map[string]string{"a.csv": "", "b.csv": ""})), LoadOptions{})
	wantError(t, err, "no data set in this archive: it has a.csv, b.csv")
	_, err = LoadCollection(writeFile(t, "a.zip", zipFiles(t, "", nil)), LoadOptions{})
	wantError(t, err, "holds no files")
}

// So many graphs as a run needs are enough for every seed, and what is known of fewer says so.
func TestLeastGraphs(t *testing.T) {
	c := &Collection{Name: "c", Classes: 1, Labels: make([]int32, leastGraphs)}
	for range leastGraphs {
		c.Graphs = append(c.Graphs, &graph.Graph{N: 1})
	}
	for seed := range uint64(20) {
		if _, err := c.SplitFor(seed); err != nil {
			t.Error(err)
		}
	}
	c.Graphs, c.Labels = c.Graphs[1:], c.Labels[1:]
	_, err := c.SplitFor(0)
	wantError(t, err, "c has 11 graphs", "12 or more are needed")
	var b strings.Builder
	if err := (CollectionInfo{Graphs: 11}).WriteText(&b); err != nil || !strings.Contains(b.String(), "none can be drawn: 12 or more graphs with a class are needed") {
		t.Errorf("%v: %s", err, b.String())
	}
}

func TestDrawFolds(t *testing.T) {
	c := &Collection{Name: "c", Classes: 3}
	for g := range 103 {
		c.Labels = append(c.Labels, int32(min(g%7, 2)))
		c.Graphs = append(c.Graphs, &graph.Graph{N: 1})
	}
	folds, err := c.FoldsFor(1)
	if err != nil || len(folds) != FoldCount {
		t.Fatalf("%d folds, %v", len(folds), err)
	}
	seen := make([]int, len(c.Graphs))
	perClass := make([][]int, c.Classes)
	for _, f := range folds {
		if err := f.check(c.Labels); err != nil {
			t.Error(err)
		}
		if len(f.Train)+len(f.Test) != len(c.Graphs) || len(f.Test) < 10 || len(f.Test) > 11 {
			t.Errorf("a fold of %d and %d", len(f.Train), len(f.Test))
		}
		count := make([]int, c.Classes)
		for _, g := range f.Test {
			seen[g]++
			count[c.Labels[g]]++
		}
		for k, n := range count {
			perClass[k] = append(perClass[k], n)
		}
	}
	for g, n := range seen {
		if n != 1 {
			t.Errorf("graph %d is tested %d times", g, n)
		}
	}
	for k, counts := range perClass {
		if slices.Max(counts)-slices.Min(counts) > 1 {
			t.Errorf("class %d is in the folds %v times", k, counts)
		}
	}
	again, _ := c.FoldsFor(1)
	other, _ := c.FoldsFor(2)
	if fmt.Sprint(folds) != fmt.Sprint(again) || fmt.Sprint(folds) == fmt.Sprint(other) {
		t.Error("folds are not those of their seed")
	}

	s, err := c.Holdout(folds[3], 10, 5)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.check(c.Labels); err != nil {
		t.Error(err)
	}
	if n := len(s.Val); n < 9 || n > 10 || len(s.Train)+n != len(folds[3].Train) || !slices.Equal(s.Test, folds[3].Test) {
		t.Errorf("held out %d of %d", n, len(folds[3].Train))
	}
	if _, err := c.DrawFolds(1, 0); err == nil {
		t.Error("one fold was drawn")
	}
	if _, err := c.Holdout(Split{Train: []int32{1}}, 2, 0); err == nil {
		t.Error("half of one graph was held out")
	}
}

func TestBatch(t *testing.T) {
	for _, kind := range []NodeFeatures{FeaturesLabels, FeaturesBoth} { // sparse or dense
		c := loadCollection(t, writeFiles(t, tuFiles()), LoadOptions{NodeFeatures: kind})
		b, err := c.Batch(nil, []int32{2, 0, 2})
		if err != nil {
			t.Fatal(err)
		}
		if err := b.Graph.Validate(); err != nil {
			t.Error(err)
		}
		if err := b.X.Check(); err != nil {
			t.Error(err)
		}
		if got := fmt.Sprint(b.Graph.N, b.Graph.Edges, b.GraphOf, b.Offset, b.Labels); got != "9 [[0 1] [1 2] [3 4] [3 5] [4 5] [6 7] [7 8]] [0 0 0 1 1 1 2 2 2] [0 3 6 9] [1 1 1]" {
			t.Error(got)
		}
		x, all := b.X.ToDense(), c.X.ToDense()
		row := func(f *Features, i int) []float32 { return f.Dense[i*f.Cols : (i+1)*f.Cols] }
		for i, from := range []int{5, 6, 7, 0, 1, 2, 5, 6, 7} {
			if !slices.Equal(row(x, i), row(all, from)) {
				t.Errorf("row %d is %v, want %v", i, row(x, i), row(all, from))
			}
		}
		big, small := []int32{0, 1, 2}, []int32{1}
		if n := testing.AllocsPerRun(20, func() {
			for _, list := range [][]int32{big, small} {
				if b, err = c.Batch(b, list); err != nil {
					t.Fatal(err)
				}
			}
		}); n != 0 {
			t.Errorf("%v allocations for a batch into one that was larger", n)
		}
	}
	c := loadCollection(t, writeFiles(t, tuFiles()), LoadOptions{})
	c.Graphs[1].Weights = []float32{0.5}
	b, err := c.Batch(nil, []int32{0, 1})
	if err != nil || !slices.Equal(b.Graph.Weights, []float32{1, 1, 1, 0.5}) {
		t.Errorf("weights %v, %v", b, err)
	}
	if b, err = c.Batch(b, []int32{0}); err != nil || b.Graph.Weights != nil {
		t.Errorf("weights of a batch without them: %v, %v", b.Graph.Weights, err)
	}
	for _, bad := range [][]int32{nil, {3}, {-1}} {
		if _, err := c.Batch(nil, bad); err == nil {
			t.Errorf("a batch of %v", bad)
		}
	}
}

// A batch holds exactly the edges of its graphs, and none between them.
func TestBatchOfRealGraphs(t *testing.T) {
	c := loadCollection(t, filepath.Join(datasets(t), "graph-classification", "PROTEINS.zip"), LoadOptions{})
	list := make([]int32, len(c.Graphs))
	edges := 0
	for g := range list {
		list[g] = int32(len(list) - 1 - g)
		edges += len(c.Graphs[g].Edges)
	}
	b, err := c.Batch(nil, list)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Graph.Validate(); err != nil {
		t.Error(err)
	}
	if len(b.Graph.Edges) != edges || b.Graph.N != c.Nodes() {
		t.Errorf("%d nodes, %d edges", b.Graph.N, len(b.Graph.Edges))
	}
	for _, e := range b.Graph.Edges {
		if b.GraphOf[e[0]] != b.GraphOf[e[1]] {
			t.Fatalf("edge %v joins two graphs", e)
		}
	}
}

// The facts are those that the collections are published with.
func TestRealCollections(t *testing.T) {
	root := datasets(t)
	for _, want := range []struct {
		name                 string
		graphs, nodes, cols  int
		meanNodes, meanEdges float64
		classes              []int
		kind                 string
		tested, loops        int
	}{
		{"MUTAG", 188, 3371, 7, 17.93, 19.79, []int{63, 125}, "node labels", 180, 0},
		{"PROTEINS", 1113, 43471, 3, 39.06, 72.82, []int{663, 450}, "node labels", 1110, 0},
		// Its authors count the 2837 self-loops too: 2457.78.
		{"COLLAB", 5000, 372474, 369, 74.49, 2457.22, []int{2600, 775, 1625}, "degrees", 5000, 2837},
	} {
		t.Run(want.name, func(t *testing.T) {
			c := loadCollection(t, filepath.Join(root, "graph-classification", want.name+".zip"), LoadOptions{})
			in := c.Info()
			if in.Graphs != want.graphs || in.Nodes != want.nodes || in.Features != want.cols || !slices.Equal(in.ClassCounts, want.classes) || in.FeatureKind != want.kind {
				t.Errorf("%+v", in)
			}
			if !(math.Abs(in.PerGraph.Nodes.Mean-want.meanNodes) <= 0.005) || !(math.Abs(in.PerGraph.Edges.Mean-want.meanEdges) <= 0.005) {
				t.Errorf("mean %v nodes, %v edges", in.PerGraph.Nodes.Mean, in.PerGraph.Edges.Mean)
			}
			if in.Repairs != (Repairs{SelfLoops: want.loops}) {
				t.Errorf("repairs %+v", in.Repairs)
			}
			if in.Folds != 10 || in.Tested != want.tested {
				t.Errorf("%d folds test %d graphs", in.Folds, in.Tested)
			}
		})
	}
}
