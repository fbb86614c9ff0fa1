package bench

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/sbinet/npyio"

	"github.com/gsrc-dev/gsrc/data"
	"github.com/gsrc-dev/gsrc/metrics"
)

// fakePython makes the test's own program stand for Python.
const fakePython = "GSRC_BENCH_FAKE_PYTHON"

func TestMain(m *testing.M) {
	if log := os.Getenv(fakePython); log != "" {
		os.Exit(pretend(log, os.Args[1:]))
	}
	os.Exit(m.Run())
}

// pretend answers as Python with the baselines would, and notes what it was asked.
func pretend(log string, args []string) int {
	if args[0] == "-W" {
		fmt.Println("Python 9, PyTorch 9")
		return 0
	}
	f, err := os.OpenFile(log, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return 1
	}
	defer f.Close()
	program := filepath.Base(args[0])
	fmt.Fprintln(f, program, strings.Join(args[2:], " "), "OMP="+os.Getenv("OMP_NUM_THREADS"))
	if _, err := os.Stat(filepath.Join(args[1], "x_val.npy")); err != nil {
		fmt.Fprintln(os.Stderr, "no data")
		return 1
	}
	if slices.Contains(args, "sparse") {
		fmt.Fprintln(os.Stderr, "Traceback\nMemoryError: too little")
		return 1
	}
	fmt.Println("some warning\n{\"ms\": 40, \"peak_mib\": 500}")
	return 0
}

func TestBaselinesTakeTurns(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	log := filepath.Join(t.TempDir(), "log")
	t.Setenv(fakePython, log)
	times := []float64{7, 8, 30} // the median counts
	o := Options{Only: "epochs/gcn/cora", Rounds: 3, Threads: 2, Child: func(_ context.Context, name string) (Result, error) {
		f, err := os.OpenFile(log, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
		if err != nil {
			return Result{}, err
		}
		defer f.Close()
		fmt.Fprintln(f, "gsrc", name)
		ms := times[0]
		times = times[1:]
		return Result{MS: ms, PeakMiB: 100 - ms}, nil
	}}
	r, err := Baselines(t.Context(), self, o)
	if err != nil {
		t.Fatal(err)
	}
	asked, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	// Forth, back, forth; a baseline that has failed is left out from then on.
	want := `gsrc epochs/gcn/cora
gcn.py --threads 2 OMP=2
gcn.py --impl sparse --threads 2 OMP=2
gcn.py --threads 2 OMP=2
gsrc epochs/gcn/cora
gsrc epochs/gcn/cora
gcn.py --threads 2 OMP=2
`
	if string(asked) != want {
		t.Errorf("asked\n%s, want\n%s", asked, want)
	}
	x := r.Results[0]
	if x.MS != 8 || x.PeakMiB != 93 || x.Baselines[0] != (BaselineTimes{Name: "PyTorch Geometric", MS: 40, PeakMiB: 500, Ratio: 5}) {
		t.Errorf("compared %+v", x)
	}
	if f := x.Baselines[1].Failed; !strings.Contains(f, "MemoryError: too little") || strings.Contains(f, "Traceback") {
		t.Errorf("the failure is told as %q", f)
	}
	var b bytes.Buffer
	if err := r.Write(&b, Markdown); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"| epochs/gcn/cora |  | 8 ms | 93 MiB | PyTorch Geometric | 40 ms | 500 MiB | 5.00 |", "failed: gcn.py: exit status 1: MemoryError"} {
		if !strings.Contains(b.String(), line) {
			t.Errorf("the table lacks %q:\n%s", line, &b)
		}
	}
}

// On a GPU the programs are told so, and the report names it.
func TestBaselinesOnDevice(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	log := filepath.Join(t.TempDir(), "log")
	t.Setenv(fakePython, log)
	o := Options{Only: "step/gcn/cora", Rounds: 1, Threads: 2, Device: gpu(t), Child: func(_ context.Context, name string) (Result, error) { return Result{MS: 8}, nil }}
	r, err := Baselines(t.Context(), self, o)
	if err != nil {
		t.Fatal(err)
	}
	asked, err := os.ReadFile(log)
	if want := "gcn.py --step --threads 2 --device cuda:0 OMP=2\ngcn.py --step --impl sparse --threads 2 --device cuda:0 OMP=2\n"; err != nil || string(asked) != want {
		t.Errorf("asked\n%s, want\n%s: %v", asked, want, err)
	}
	var b bytes.Buffer
	if err := r.Write(&b, Markdown); err != nil || !strings.Contains(b.String(), o.Device.Name()) {
		t.Errorf("the table does not name the GPU: %v\n%s", err, &b)
	}
	if err := CheckBaselines("epochs/gcn/cora", true); err == nil {
		t.Error("epochs/gcn/cora is no case of a GPU, but it is accepted")
	}
}

func TestBaselinesSayWhatPythonLacks(t *testing.T) {
	_, err := Baselines(t.Context(), filepath.Join(t.TempDir(), "python"), Options{Only: "kernel/exp"})
	if err == nil || !strings.Contains(err.Error(), "make bench-baselines") {
		t.Errorf("without Python the error is %v", err)
	}
	if _, err := LinkPredictors(t.Context(), filepath.Join(t.TempDir(), "python"), data.Synthetic, 0, "out.csv"); err == nil || !strings.Contains(err.Error(), "requirements.txt") {
		t.Errorf("without Python the error is %v", err)
	}
	if err := CheckBaselines("compile/gcn", false); err == nil {
		t.Error("compile/gcn has no baseline, but it is accepted")
	}
}

// Every comparison names a case that there is and programs that are there.
func TestBaselineWorks(t *testing.T) {
	for _, w := range baselineWorks() {
		c, err := Select(Cases(), w.name)
		if err != nil || len(c) != 1 || c[0].Name != w.name {
			t.Errorf("%s is not one case: %v", w.name, err)
		}
		for _, p := range w.baselines {
			if _, err := baselinePrograms.Open("baselines/" + p.Args[0]); err != nil {
				t.Errorf("%s: %v", w.name, err)
			}
		}
	}
}

// The baseline of the default recipe does what the defaults say.
func TestRecipeArgs(t *testing.T) {
	for fn, want := range map[string]string{
		"pretrain": "ecl.py --anchors 512 --struct 0 --layers 2 --tau 0.5 --clip 1 --blur 0 --mask 0.3 --drop 0.3",
		"fit":      "fit.py --norm l1 --hidden 32 --order 8 --samples 4 --nodes 0.5 --input 0.5 --dropout 0.5 --temperature 0.5 --sharpen 0.5 --consistency 1",
	} {
		if got := strings.Join(recipeArgs("cora", fn), " "); got != want {
			t.Errorf("@%s: %s, want %s", fn, got, want)
		}
	}
	ds, err := FindWorkload("cora").Generate()
	if err != nil {
		t.Fatal(err)
	}
	c, err := candidatesOf(ds, 1)
	if err != nil {
		t.Fatal(err)
	}
	if e := 2 * ds.Graph.NumEdges(); c.N != ds.Graph.N || c.E <= e || c.E > e+4*c.N {
		t.Errorf("%d candidate entries beside %d of the graph with %d nodes, want up to 2 more neighbours a node", c.E, e, c.N)
	}
}

func TestWriteArrays(t *testing.T) {
	ds, err := tiny.Generate()
	if err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join(t.TempDir(), "data")
	if err := writeArrays(folder, ds, ds.Graph.Structure()); err != nil {
		t.Fatal(err)
	}
	read := func(name string, into any) {
		f, err := os.Open(filepath.Join(folder, name+".npy"))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if err := npyio.Read(f, into); err != nil {
			t.Fatal(err)
		}
	}
	var sizes, labels []int64
	var ptr, col []int32
	read("sizes", &sizes)
	read("labels", &labels)
	read("a_ptr", &ptr)
	read("a_col", &col)
	if !slices.Equal(sizes, []int64{60, 30, 3}) || len(labels) != 20 || len(ptr) != 61 || len(col) != 2*ds.Graph.NumEdges() {
		t.Errorf("sizes %v, %d labels, %d offsets, %d entries", sizes, len(labels), len(ptr), len(col))
	}
}

// baselines returns a folder with the baselines' programs, what runs them, and a graph of a few nodes.
func baselines(t *testing.T) (dir string, py *pythonRunner, ds *data.Dataset) {
	t.Helper()
	python := os.Getenv("BASELINES_PYTHON")
	if python == "" {
		t.Skip("set BASELINES_PYTHON to a Python that has lab/bench/baselines/requirements.txt")
	}
	ds, err := tiny.Generate()
	if err != nil {
		t.Fatal(err)
	}
	dir = t.TempDir()
	if err := os.CopyFS(dir, baselinePrograms); err != nil {
		t.Fatal(err)
	}
	return dir, &pythonRunner{path: python, dir: dir, threads: 2}, ds
}

// Plain link predictors find random wrong edges of a graph with communities, list each
// edge once, and give the same again.
func TestLinkPredictors(t *testing.T) {
	python := os.Getenv("BASELINES_PYTHON")
	if python == "" {
		t.Skip("set BASELINES_PYTHON to a Python that has lab/bench/baselines/requirements.txt")
	}
	ds, err := data.Load(data.Synthetic, data.LoadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(t.TempDir(), "below", "out.csv")
	text, err := LinkPredictors(t.Context(), python, data.Synthetic, 0, out)
	if err != nil {
		t.Fatal(err)
	}
	again, err := LinkPredictors(t.Context(), python, data.Synthetic, 0, out)
	if written, _ := os.ReadFile(out); err != nil || string(again) != string(text) || string(written) != string(text) {
		t.Errorf("the same seed gave other scores, %v", err)
	}
	rows, err := csv.NewReader(strings.NewReader(string(text))).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"source", "target", "status", "evidence_cosine_of_tf-idf", "evidence_Adamic-Adar", "evidence_Adamic-Adar_times_cosine", "evidence_logistic_regression_of_four", "evidence_boosted_trees_of_twelve"}; !slices.Equal(rows[0], want) {
		t.Fatalf("columns %v", rows[0])
	}
	var scores []float32
	var wrong, all []int32
	for _, r := range rows[1:] {
		u, _ := strconv.Atoi(r[0])
		v, _ := strconv.Atoi(r[1])
		if ds.Graph.Has(int32(u), int32(v)) != (r[2] == "old") {
			t.Fatalf("%v has the wrong status", r)
		}
		if r[2] == "old" {
			x, err := strconv.ParseFloat(r[7], 32)
			if err != nil {
				t.Fatal(err)
			}
			label := int32(1)
			if ds.Truth.Graph.Has(int32(u), int32(v)) {
				label = 0
			}
			scores, wrong, all = append(scores, float32(x)), append(wrong, label), append(all, int32(len(all)))
		}
	}
	if auc, _ := metrics.AUC(scores, 1, wrong, all); len(all) != ds.Graph.NumEdges() || auc < 70 {
		t.Errorf("%d of %d edges, AUC %.1f", len(all), ds.Graph.NumEdges(), auc)
	}
}

// The baselines themselves, on a graph of a few nodes.
func TestBaselineProgramsRun(t *testing.T) {
	dir, py, ds := baselines(t)
	folder := filepath.Join(dir, "data")
	if err := writeArrays(folder, ds, ds.Graph.Structure()); err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, w := range baselineWorks() {
		for _, p := range w.baselines {
			args := slices.Clone(p.Args)
			for i, a := range args { // small
				switch {
				case a == "--anchors":
					args[i+1] = "16"
				case a == "--struct":
					args[i+1] = "8"
				}
			}
			if args[0] == "rates.py" {
				args = []string{"rates.py", args[1], "8", "9", "10"}
			}
			args = append(args, "--rounds", "1")
			if text, _ := json.Marshal(args); seen[string(text)] {
				continue
			} else {
				seen[string(text)] = true
			}
			var r BaselineTimes
			err := py.run(t.Context(), folder, args, &r)
			if err != nil || !(r.MS > 0) || r.PeakMiB < 1 {
				t.Errorf("%v: %+v, %v", args, r, err)
			}
		}
	}
}

// PyG's export and gsrc's, timed in turn, on the same graph.
func TestExportsProgramRuns(t *testing.T) {
	dir, py, ds := baselines(t)
	r, err := timeExports(t.Context(), py, filepath.Join(dir, "data"), ds, 8, 0.01)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Files) < 5 || r.Files[0].Name != "PyG" || r.Rounds < 2 {
		t.Fatalf("%+v", r)
	}
	for _, f := range r.Files {
		lost := f.Name == "buckets-fp16" || f.Name == "buckets-int8"
		if !(f.MS > 0) || f.MedianMS < f.MS || !(f.Ratio > 0) || f.Nodes < 10 || !lost && f.Difference > 1e-5 {
			t.Errorf("%+v", f)
		}
		if host := strings.HasPrefix(f.Name, "host"); host != (f.TablesRatio < f.Ratio) {
			t.Errorf("%s: ratio %g, with tables %g", f.Name, f.Ratio, f.TablesRatio)
		}
	}
}
