package data

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/gsrc-dev/gsrc/rng"
)

func gz(tb testing.TB, text string) string {
	tb.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write([]byte(text)); err != nil {
		tb.Fatal(err)
	}
	if err := w.Close(); err != nil {
		tb.Fatal(err)
	}
	return b.String()
}

// ogbFiles is a data set in OGB's layout, not yet packed.
func ogbFiles() map[string]string {
	return map[string]string{
		"raw/edge.csv":            "0,1\n1,0\n1,2\n3,3\n3,4\n3,4\n",
		"raw/node-feat.csv":       "0.5,-1,0\n0,0,1e-3\n1,2,3\n4,5,6\n0,0,0\n",
		"raw/node-label.csv":      "0\n2\n1.0\nnan\n2\n",
		"raw/num-node-list.csv":   "5\n",
		"raw/num-edge-list.csv":   "6\n",
		"raw/node_year.csv":       "2001\n2002\n2003\n2004\n2005\n",
		"split/time/train.csv":    "1\n0\n",
		"split/time/valid.csv":    "2\n",
		"split/time/test.csv":     "3\n4\n",
		"mapping/labelidx2ar.csv": "0,cs.AI\n",
	}
}

// packed gives each file of OGB's layout its .gz.
func packed(tb testing.TB, files map[string]string) map[string]string {
	out := map[string]string{}
	for name, text := range files {
		out[name+".gz"] = gz(tb, text)
	}
	return out
}

func TestOGB(t *testing.T) {
	files := ogbFiles()
	for _, path := range []string{writeFiles(t, packed(t, files)), writeFiles(t, files), writeFile(t, "ogbn-tiny.zip", zipFiles(t, "tiny/", packed(t, files)))} {
		ds := mustLoad(t, path, LoadOptions{})
		if ds.Format != "ogb" || !slices.Equal(ds.Graph.Edges, [][2]int32{{0, 1}, {1, 2}, {3, 4}}) || !slices.Equal(ds.Labels, []int32{0, 2, 1, -1, 2}) || ds.Classes != 3 {
			t.Errorf("%v %v %d", ds.Graph.Edges, ds.Labels, ds.Classes)
		}
		if x := ds.X.ToDense(); !slices.Equal(x.Dense, []float32{0.5, -1, 0, 0, 0, 1e-3, 1, 2, 3, 4, 5, 6, 0, 0, 0}) {
			t.Errorf("features %v", x.Dense)
		}
		if got := fmt.Sprint(ds.Splits); got != "[{[0 1] [2] [4] []}]" {
			t.Errorf("splits %s", got)
		}
		if want := (Repairs{DuplicateEdges: 1, ReversedEdges: 1, SelfLoops: 1, Unlabelled: 1, EmptyRows: 1, SplitUnlabelled: 1}); ds.Repairs != want {
			t.Errorf("repairs %+v", ds.Repairs)
		}
		directed := mustLoad(t, path, LoadOptions{Directed: true})
		if !slices.Equal(directed.Graph.Edges, [][2]int32{{0, 1}, {1, 0}, {1, 2}, {3, 4}}) {
			t.Errorf("directed edges %v", directed.Graph.Edges)
		}
		if strings.HasSuffix(path, ".zip") && ds.Name != "ogbn-tiny" {
			t.Errorf("name %s", ds.Name)
		}
	}
	bare := ogbFiles()
	maps.DeleteFunc(bare, func(name, _ string) bool {
		return strings.HasPrefix(name, "split/") || strings.Contains(name, "edge-list")
	})
	if ds := mustLoad(t, writeFiles(t, packed(t, bare)), LoadOptions{}); ds.Splits != nil {
		t.Errorf("splits %v of data without", ds.Splits)
	}
}

// Files that are not read are named, also those that are beside what they were unpacked from.
func TestOGBLeftOut(t *testing.T) {
	files := packed(t, ogbFiles())
	files["raw/edge.csv"], files["raw/edge-feat.csv.gz"] = "0,1\n", gz(t, "1\n")
	wantNotes(t, mustLoad(t, writeFiles(t, files), LoadOptions{}), "raw: left out: edge-feat.csv.gz, edge.csv")
}

// Node features of collections of graphs change nothing of one graph, which is said.
func TestOGBNodeFeatures(t *testing.T) {
	dir := writeFiles(t, packed(t, ogbFiles()))
	plain := mustLoad(t, dir, LoadOptions{NodeFeatures: "auto"}) // as in configurations
	ds := mustLoad(t, dir, LoadOptions{NodeFeatures: FeaturesDegrees})
	if wantNotes(t, ds, "of the kind degrees are of collections of graphs"); len(plain.Notes) != 0 || ds.X.Cols != plain.X.Cols {
		t.Errorf("%d columns, %d without; notes %v", ds.X.Cols, plain.X.Cols, plain.Notes)
	}
}

func TestOGBErrors(t *testing.T) {
	for _, c := range []struct {
		file, text string
		want       []string
	}{
		{"raw/edge.csv", "0,5\n", []string{"edge.csv.gz:1:3", "no such node", "0 to 4"}},
		{"raw/edge.csv", "0,1\n0\n", []string{"edge.csv.gz:2", "the line ends"}},
		{"raw/edge.csv", "source,target\n", []string{"edge.csv.gz:1:1", `"source"`, "whole number"}},
		{"raw/edge.csv", "0,1\n", []string{"edge.csv.gz", "has 1 edges, raw/num-edge-list says otherwise"}},
		{"raw/node-feat.csv", "1,2\n1\n", []string{"node-feat.csv.gz:2", "has 1 numbers"}},
		{"raw/node-feat.csv", "1,inf\n", []string{"node-feat.csv.gz:1:3", "finite"}},
		{"raw/node-feat.csv", "1\n2\n", []string{"node-feat.csv.gz", "describes 2 nodes", "says 5"}},
		{"raw/node-feat.csv", "", []string{"node-feat.csv.gz", "empty"}},
		{"raw/node-label.csv", "0\n1\n", []string{"node-label.csv.gz", "has 2 labels, there are 5 nodes"}},
		{"raw/node-label.csv", "0,1\n", []string{"node-label.csv.gz", "has 2 labels for each node", "several labels"}},
		{"raw/node-label.csv", "0.5\n", []string{"node-label.csv.gz:1", "expected a class"}},
		{"raw/node-label.csv", "0\n1\n2\n3\n9\n", []string{"node-label.csv.gz", "label 9 of node 4 is out of range"}},
		{"raw/num-node-list.csv", "2\n3\n", []string{"holds 2 graphs", "TU"}},
		{"raw/num-node-list.csv", "2000000000\n", []string{"describes 5 nodes", "says 2000000000"}},
		{"split/time/train.csv", "7\n", []string{"train.csv.gz:1", "no such node"}},
		{"split/time/train.csv", "2\n", []string{"split 0", "node 2 is in both the train and the val split"}},
		{"split/random/train.csv", "2\n", []string{"holds several splits: random, time"}},
	} {
		files := ogbFiles()
		files[c.file] = c.text
		dir := writeFiles(t, packed(t, files))
		_, err := Load(dir, LoadOptions{})
		wantError(t, err, c.want...)
		if strings.Count(err.Error(), dir) > 1 {
			t.Errorf("the file stands twice in %v", err)
		}
	}
	files := packed(t, ogbFiles())
	whole := files["raw/node-feat.csv.gz"]
	for _, c := range []struct {
		name, text string
		want       []string
	}{
		{"raw/node-feat.csv.gz", whole[:len(whole)-9], []string{"node-feat.csv.gz", "unexpected EOF", "truncated"}},
		{"raw/node-feat.csv.gz", "1,2\n", []string{"node-feat.csv.gz", "not a gzip file"}},
		{"raw/node-feat.csv.gz", gz(t, strings.Repeat("0,", 1<<20)), []string{"node-feat.csv.gz", "more than the 1.0 MiB", "--memory"}},
	} {
		bad := maps.Clone(files)
		bad[c.name] = c.text
		_, err := Load(writeFiles(t, bad), LoadOptions{MaxBytes: 1 << 20})
		wantError(t, err, c.want...)
	}
	delete(files, "raw/node-feat.csv.gz")
	_, err := Load(writeFiles(t, files), LoadOptions{})
	wantError(t, err, "the nodes have no features", "ogbn-proteins")
}

// BenchmarkLoadOGB reads a data set of a tenth of ogbn-arxiv's nodes, with its
// number of features and edges per node.
func BenchmarkLoadOGB(b *testing.B) {
	const nodes, cols, edges = 16_934, 128, 116_624
	s := rng.New(1, "ogb")
	files := map[string]string{"raw/num-node-list.csv": fmt.Sprintln(nodes)}
	var feat, edge, label strings.Builder
	for v := range nodes {
		for c := range cols {
			fmt.Fprintf(&feat, "%.6f", s.Uniform(uint64(v*cols+c))-0.5)
			feat.WriteByte(",\n"[c/(cols-1)])
		}
		fmt.Fprintln(&label, v%40)
	}
	for e := range edges {
		fmt.Fprintf(&edge, "%d,%d\n", s.Intn(uint64(2*e), nodes), s.Intn(uint64(2*e+1), nodes))
	}
	files["raw/node-feat.csv"], files["raw/edge.csv"], files["raw/node-label.csv"] = feat.String(), edge.String(), label.String()
	path := writeFiles(b, packed(b, files))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Load(path, LoadOptions{}); err != nil {
			b.Fatal(err)
		}
	}
}
