package data

import (
	"encoding/json"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/gsrc-dev/gsrc/data/catalog"
	"github.com/gsrc-dev/gsrc/graph"
)

func TestLoadRefuses(t *testing.T) {
	empty := t.TempDir()
	text := writeFile(t, "d.json", []byte("{}"))
	other := writeFiles(t, map[string]string{"a.csv": "", "b.csv": ""})
	for _, c := range []struct {
		path string
		err  []string
	}{
		{"", []string{"no data"}},
		{filepath.Join(empty, "none"), []string{"none", "no such file or folder", "synthetic"}},
		{empty, []string{"no data set in this folder: it has nothing", "edges.csv"}},
		{other, []string{"it has a.csv, b.csv"}},
		{text, []string{"d.json", "must be an .npz"}},
		{"testdata/dense.npz", []string{"not a graph data set: it holds arr_0"}},
	} {
		_, err := Load(c.path, LoadOptions{})
		wantError(t, err, c.err...)
	}
	_, err := Load("testdata/csr.npz", LoadOptions{MaxBytes: 1000})
	wantError(t, err, "csr.npz", "more than the 1000 bytes", "--memory")
}

// A pipe in place of a file would hang a reader; a folder would confuse it.
func TestLoadSpecialFiles(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, edgesFile), 0o755); err != nil {
		t.Fatal(err)
	}
	_, err := Load(dir, LoadOptions{})
	wantError(t, err, edgesFile, "not a regular file")
	if runtime.GOOS == "linux" {
		dir := t.TempDir()
		if err := os.Symlink("/dev/zero", filepath.Join(dir, edgesFile)); err != nil {
			t.Fatal(err)
		}
		_, err := Load(dir, LoadOptions{})
		wantError(t, err, edgesFile, "not a regular file")
	}
}

func TestChecksum(t *testing.T) {
	a := mustLoad(t, "testdata/planetoid-p2", LoadOptions{})
	b := mustLoad(t, copyDir(t, "testdata/planetoid-p2"), LoadOptions{})
	if a.Checksum != b.Checksum || len(a.Checksum) != 64 {
		t.Errorf("the same files have the checksums %s and %s", a.Checksum, b.Checksum)
	}
	if c := mustLoad(t, "testdata/planetoid-p3", LoadOptions{}); c.Checksum == a.Checksum {
		t.Error("other files have the same checksum")
	}
	// Content that moves from one file to the next is another input.
	x := writeFiles(t, map[string]string{edgesFile: "source,target\n", nodesFile: "id,x\n1,1\n"})
	y := copyDir(t, x)
	os.WriteFile(filepath.Join(y, edgesFile), []byte("source,target\n\n"), 0o644)
	if mustLoad(t, x, LoadOptions{}).Checksum == mustLoad(t, y, LoadOptions{}).Checksum {
		t.Error("a changed file has the same checksum")
	}
}

func TestDatasetCheck(t *testing.T) {
	sound := func() *Dataset {
		g, _, err := graph.Build(2, []int32{0}, []int32{1}, nil, false)
		if err != nil {
			t.Fatal(err)
		}
		return &Dataset{Graph: g, X: &Features{Rows: 2, Cols: 1, Dense: []float32{1, 2}}, Labels: []int32{0, -1}, Classes: 1}
	}
	if err := sound().Check(); err != nil {
		t.Fatal(err)
	}
	for want, damage := range map[string]func(*Dataset){
		"lacks its graph":    func(d *Dataset) { d.Graph = nil },
		"lacks its graph or": func(d *Dataset) { d.X = nil },
		"no nodes":           func(d *Dataset) { d.Graph.N = 0 },
		"rows of features":   func(d *Dataset) { d.Labels = d.Labels[:1] },
		"has label 1":        func(d *Dataset) { d.Labels[0] = 1 },
		"has label -2":       func(d *Dataset) { d.Labels[0] = -2 },
		"with 2 names":       func(d *Dataset) { d.ClassNames = []string{"a", "b"} },
		"and 1 ids":          func(d *Dataset) { d.NodeIDs = []string{"a"} },
		"split 0":            func(d *Dataset) { d.Splits = []Split{{Train: []int32{1}}} },
		"nodes are numbered": func(d *Dataset) { d.Graph.Edges[0][1] = 7 },
		"[0 1] weighs -1":    func(d *Dataset) { d.Graph.Weights = []float32{-1} },
		"[0 1] weighs NaN":   func(d *Dataset) { d.Graph.Weights = []float32{float32(math.NaN())} },
		"[0 1] weighs +Inf":  func(d *Dataset) { d.Graph.Weights = []float32{float32(math.Inf(1))} },
	} {
		d := sound()
		damage(d)
		wantError(t, d.Check(), want)
	}
}

func TestInfo(t *testing.T) {
	ds := mustLoad(t, "testdata/folder-npz", LoadOptions{})
	ds.ClassNames[0] = "c\x1bt"
	var b strings.Builder
	if err := ds.Info().WriteText(&b); err != nil {
		t.Fatal(err)
	}
	want := `name        folder-npz
source      testdata/folder-npz (folder)
checksum    sha256 ` + ds.Checksum + `
nodes       4
edges       1 undirected, weighted (gat and all structure learners but ecl-gsr refuse weights that differ)
degree      min 0, mean 0.50, max 1, 2 isolated
homophily   0.0000
features    4 columns, 12 values, density 0.7500, held sparse
roles       id = id, label = label, source = column 1, target = column 2, weight = column 3
tables      nodes.csv: nodes count as unlabelled whose label is "?" (1 nodes); write another word where it is a class
classes     2
  0 c?t                           2  ##############################
  1 dog                           1  ###############
splits      none; training needs --split per-class:20,500,1000 or --split random:0.6,0.2,0.2
repaired    1 edges listed in both directions, merged
            1 merged edges had different weights; the first was kept
            1 nodes without a label
`
	if b.String() != want {
		t.Errorf("got\n%s\nwant\n%s", b.String(), want)
	}

	out, err := json.Marshal(ds.Info())
	if err != nil {
		t.Fatal(err)
	}
	for _, piece := range []string{`"nodes":4`, `"edges":1`, `"homophily":0`, `"class_counts":[2,1]`, `"reversed_edges":1`, `"isolated":2`, `"splits":[]`} {
		if !strings.Contains(string(out), piece) {
			t.Errorf("%s lacks %s", out, piece)
		}
	}
	if strings.Contains(string(out), "truth") {
		t.Error("real data has no truth")
	}
	out, err = json.Marshal(mustLoad(t, "testdata/folder-npy", LoadOptions{}).Info())
	if err != nil || !strings.Contains(string(out), `"homophily":null`) {
		t.Errorf("%s, %v", out, err)
	}
}

func TestInfoSplits(t *testing.T) {
	for path, want := range map[string]string{
		"testdata/heterophilous.npz": "2 fixed: train 4, val 0, test 4\n",
		"testdata/planetoid-p2":      "one: train 2, val 2, test 3\n",
		"testdata/csr.npz":           "none; training needs --split",
	} {
		ds := mustLoad(t, path, LoadOptions{})
		text := func() string {
			var b strings.Builder
			if err := ds.Info().WriteText(&b); err != nil {
				t.Fatal(err)
			}
			return b.String()
		}
		if got := text(); !strings.Contains(got, "splits      "+want) {
			t.Errorf("%s:\n%s", path, got)
		}
		if len(ds.Splits) == 2 {
			ds.Splits[1].Train = ds.Splits[1].Train[:1]
			if got := text(); !strings.Contains(got, "test 4 (the first)\n") {
				t.Errorf("%s:\n%s", path, got)
			}
		}
		ds.SplitSpec = &SplitSpec{PerClass: true, Train: 1, Val: 2, Test: 3}
		if got := text(); !strings.Contains(got, "splits      drawn for each seed: per-class:1,2,3\n") {
			t.Errorf("%s:\n%s", path, got)
		}
	}
	if err := mustLoad(t, "testdata/csr.npz", LoadOptions{}).Info().WriteText(failing{}); err != io.ErrShortWrite {
		t.Errorf("a writer's error is lost: %v", err)
	}
}

type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, io.ErrShortWrite }

// A data set by name, where no folder is known to look for it in.
func TestNoFolderOfDataSets(t *testing.T) {
	for _, name := range []string{catalog.EnvVar, "XDG_CACHE_HOME", "HOME", "LocalAppData"} {
		t.Setenv(name, "")
	}
	_, err := Load("cornell", LoadOptions{})
	if err == nil || !strings.Contains(err.Error(), "no folder of data sets is known") || !strings.Contains(err.Error(), "set GSRC_DATA") {
		t.Errorf("error %v", err)
	}
}

func TestFileErrorText(t *testing.T) {
	e := &FileError{File: "f.npz", Part: `"edges"`, Offset: 12, Text: strings.Repeat("x", 100), Msg: "wrong", Hint: "do this", Err: os.ErrInvalid}
	want := `f.npz: "edges": byte 12: "` + strings.Repeat("x", 60) + `"…: wrong: invalid argument; do this`
	if e.Error() != want {
		t.Errorf("got  %s\nwant %s", e, want)
	}
	if !errors.Is(e, os.ErrInvalid) {
		t.Error("the cause is lost")
	}
}
