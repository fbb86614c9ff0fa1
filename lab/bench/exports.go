package bench

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/gsrc-dev/gsrc/compiler"
	"github.com/gsrc-dev/gsrc/data"
	"github.com/gsrc-dev/gsrc/export/onnx"
	"github.com/gsrc-dev/gsrc/ir"
	"github.com/gsrc-dev/gsrc/models"
	"github.com/gsrc-dev/gsrc/rng"
	"github.com/gsrc-dev/gsrc/runtime/ort"
	"github.com/sbinet/npyio"
)

// exportGraphs are the graphs that exports are compared on; the last two are
// generated in the sizes of Amazon Computers and ogbn-arxiv.
var exportGraphs = []Workload{
	*FindWorkload("cora"), *FindWorkload("actor"),
	{Name: "amazon_cs-size", Nodes: 13752, Edges: 245861, Features: 767, Stored: 3675081, Classes: 10},
	{Name: "arxiv-size", Nodes: 169343, Edges: 1166243, Features: 128, Stored: 128 * 169343, Classes: 40},
}

// ExportOptions say what [Exports] compares.
type ExportOptions struct {
	Python  string   // with lab/bench/baselines/requirements.txt
	Data    string   // folder of data sets; what is missing is generated
	Graphs  []string // names; empty: all
	Hidden  []int    // widths of the hidden layer; empty: 16 and 128
	Threads int      // 0 is one for each processor
	Seconds float64  // that a graph's rounds may take; 0 is 20
	// Keep is a folder that files and arrays are written to and left in; empty: a
	// temporary one.
	Keep string
	// Progress is called with what is being compared; may be nil.
	Progress func(string)
}

// ExportReport holds the times of exported two-layer GCNs in onnxruntime, PyG's
// and gsrc's, all with the same weights, in turn, each in a process of its own.
type ExportReport struct {
	Schema  int            `json:"schema"` // 1
	Machine Machine        `json:"machine"`
	Python  string         `json:"python"`
	Results []ExportResult `json:"results"`
}

// ExportResult is one graph and width.
type ExportResult struct {
	Graph  string `json:"graph"`
	Nodes  int    `json:"nodes"`
	Edges  int    `json:"edges"` // entries, both directions
	Hidden int    `json:"hidden"`
	Rounds int    `json:"rounds"`
	// TablesMS is the least time in which the tables of host-buckets were built, once
	// for the graph.
	TablesMS float64       `json:"tables_ms"`
	Files    []ExportTimes `json:"files"`
}

// ExportTimes are those of one file: the least and the median time of a call in
// milliseconds, the ratio of the least time of PyG's export to it, and how far the
// logits are from PyG's own forward pass. Tables and features in CSR are made before.
type ExportTimes struct {
	Name     string  `json:"name"`
	MS       float64 `json:"ms"`
	MedianMS float64 `json:"median_ms"`
	Ratio    float64 `json:"ratio"`
	// TablesRatio is Ratio with the making of the tables added to one call; equal to
	// it where a file takes no tables.
	TablesRatio float64 `json:"tables_ratio"`
	// CPUMS is the least processor time of a call, and CPURatio the ratio of PyG's to
	// it. Other programs on the machine disturb it less; with more than one thread it
	// counts their waiting for each other too.
	CPUMS      float64 `json:"cpu_ms"`
	CPURatio   float64 `json:"cpu_ratio"`
	Difference float64 `json:"difference"`
	Nodes      int     `json:"nodes"` // of the ONNX graph
	Bytes      int64   `json:"bytes"` // of the file
}

// inputEdges is the file of edge_index, [2,E].
const inputEdges = "edge_index.npy"

// exportForms are the forms of gsrc's export that are timed. Those of sparse
// features are left out where features are dense, and those of fewer bits on large
// graphs, where every open file keeps gigabytes.
var exportForms = []struct {
	name string
	onnx.ModelOptions
}{
	{"buckets", onnx.ModelOptions{Lowering: onnx.DegreeBuckets}},
	{"buckets-fp16", onnx.ModelOptions{Lowering: onnx.DegreeBuckets, Precision: onnx.FP16}},
	{"buckets-int8", onnx.ModelOptions{Lowering: onnx.DegreeBuckets, Precision: onnx.INT8}},
	{"buckets-sparse-x", onnx.ModelOptions{Lowering: onnx.DegreeBuckets, SparseX: true}},
	{"host-buckets", onnx.ModelOptions{Lowering: onnx.PrecomputedBuckets}},
	{"host-buckets-sparse-x", onnx.ModelOptions{Lowering: onnx.PrecomputedBuckets, SparseX: true}},
}

// sparseFeatures tells that at most one in ten features is not zero.
func sparseFeatures(ds *data.Dataset) bool {
	return ds.X.Dense == nil && 10*len(ds.X.Col) <= ds.X.Rows*ds.X.Cols
}

type exportedFile struct {
	Name string `json:"name"`
	File string `json:"file"`
	// Inputs are the shapes of those that it has beside features and edge_index; their
	// numbers are in FILE.INPUT.npy.
	Inputs map[string][]int64 `json:"inputs"`
}

// Exports times PyG's export of a two-layer GCN and gsrc's exports of the same
// network, in onnxruntime.
func Exports(ctx context.Context, o ExportOptions) (*ExportReport, error) {
	if len(o.Hidden) == 0 {
		o.Hidden = []int{16, 128}
	}
	o.Seconds = cmp.Or(o.Seconds, 20)
	r := &ExportReport{Schema: 1, Machine: ThisMachine(o.Threads)}
	py, err := newPythonRunner(ctx, o.Python, r.Machine.Threads, pytorchVersions)
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(py.dir)
	r.Python = py.says
	for _, name := range o.Graphs {
		if !slices.ContainsFunc(exportGraphs, func(w Workload) bool { return w.Name == name }) {
			return nil, fmt.Errorf("no graph is called %q; there are cora, actor, amazon_cs-size and arxiv-size", name)
		}
	}
	for _, w := range exportGraphs {
		if o.Graphs != nil && !slices.Contains(o.Graphs, w.Name) {
			continue
		}
		ds, err := w.Load(o.Data)
		if err != nil {
			return r, err
		}
		folder := filepath.Join(py.dir, "data")
		if o.Keep != "" {
			folder = filepath.Join(o.Keep, w.Name)
		}
		for _, hidden := range o.Hidden {
			if o.Progress != nil {
				o.Progress(fmt.Sprintf("%s, %d hidden", w.Name, hidden))
			}
			x, err := timeExports(ctx, py, folder, ds, hidden, o.Seconds)
			if err != nil {
				return r, err
			}
			x.Graph = w.Name
			r.Results = append(r.Results, x)
		}
	}
	return r, nil
}

// timeExports writes a graph and its exports to a folder and times them; the result
// lacks the graph's name.
func timeExports(ctx context.Context, py *pythonRunner, folder string, ds *data.Dataset, hidden int, seconds float64) (ExportResult, error) {
	st := ds.Graph.Structure()
	if err := writeArrays(folder, ds, st); err != nil {
		return ExportResult{}, err
	}
	tables, err := writeExports(folder, ds, hidden)
	if err != nil {
		return ExportResult{}, err
	}
	x := ExportResult{TablesMS: 1e3 * tables.Seconds(), Nodes: ds.Graph.N, Edges: st.E, Hidden: hidden}
	if err := py.run(ctx, folder, []string{"exports.py", "--hidden", fmt.Sprint(hidden), "--seconds", fmt.Sprint(seconds)}, &x); err != nil {
		return ExportResult{}, err
	}
	for i := range x.Files {
		f := &x.Files[i]
		if f.TablesRatio = f.Ratio; strings.HasPrefix(f.Name, string(onnx.PrecomputedBuckets)) {
			f.TablesRatio *= f.MS / (f.MS + x.TablesMS)
		}
	}
	return x, nil
}

// writeExports writes the GCN of a width in every form that is compared, its
// weights for PyG, and the inputs that a form has beside x and edge_index. It returns
// how long the tables of host-buckets took.
func writeExports(folder string, ds *data.Dataset, hidden int) (time.Duration, error) {
	o := models.Default()
	o.Features, o.Classes, o.Hidden, o.Norm = ds.X.Cols, ds.Classes, hidden, "none"
	m, err := models.Lookup("gcn")
	if err != nil {
		return 0, err
	}
	p, err := compiler.Compile(m.Build(o), compiler.Options{Target: compiler.Inference, Funcs: []string{"classify"}})
	if err != nil {
		return 0, err
	}
	params := map[string][]float32{}
	for i, v := range p.Module.Params {
		shape, err := v.Type.Shape(nil)
		if err != nil {
			return 0, err
		}
		params[v.Name] = drawn(v, shape)
		if err := writeArray(filepath.Join(folder, fmt.Sprintf("param%d.npy", i)), params[v.Name]); err != nil {
			return 0, err
		}
	}
	// Edges in any order, as a user may have them.
	st := ds.Graph.Structure()
	src, dst := st.EdgeIndex()
	edges := make([]int64, 2*st.E)
	for i, k := range rng.New(0, "bench.exports").Sub("edges").Perm(st.E) {
		edges[i], edges[st.E+i] = src[k], dst[k]
	}
	if err := writeArray(filepath.Join(folder, inputEdges), edges); err != nil {
		return 0, err
	}
	fn := p.Module.Func("classify")
	var tables *onnx.Tables
	took := time.Duration(math.MaxInt64)
	for range 10 {
		begin := time.Now()
		if tables, err = onnx.BuildTables(ds.Graph.N, ort.Int64s(edges, 2, int64(st.E))); err != nil {
			return 0, err
		}
		took = min(took, time.Since(begin))
	}
	var files []exportedFile
	for _, f := range exportForms {
		if f.SparseX && !sparseFeatures(ds) || f.Precision != onnx.FP32 && st.E > 1<<20 {
			continue
		}
		f.NoEdgeWeight = true
		model, err := onnx.Model(fn, params, f.ModelOptions)
		if err != nil {
			return 0, err
		}
		text, err := onnx.Marshal(model)
		if err != nil {
			return 0, err
		}
		x := exportedFile{Name: f.name, File: f.name + ".onnx", Inputs: map[string][]int64{}}
		if err := os.WriteFile(filepath.Join(folder, x.File), text, 0o644); err != nil {
			return 0, err
		}
		files = append(files, x)
		if f.Lowering != onnx.PrecomputedBuckets {
			continue
		}
		for input, v := range tables.Inputs() {
			if err := writeArray(filepath.Join(folder, x.File+"."+input+".npy"), v.I64); err != nil {
				return 0, err
			}
			x.Inputs[input] = v.Shape
		}
	}
	text, err := json.Marshal(files)
	if err != nil {
		return 0, err
	}
	return took, os.WriteFile(filepath.Join(folder, "files.json"), text, 0o644)
}

// drawn are Glorot's weights, and biases that are not zero.
func drawn(v *ir.Value, shape []int) []float32 {
	r := rng.New(0, "bench.exports").Sub(v.Name)
	shape = append(shape, 1) // a vector has a fan out of 1
	bound := float32(math.Sqrt(6 / float64(shape[0]+shape[1])))
	out := make([]float32, shape[0]*shape[1])
	for i := range out {
		out[i] = bound * (2*r.Uniform(uint64(i)) - 1)
	}
	return out
}

func writeArray(path string, v any) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	w := bufio.NewWriterSize(f, 1<<20) // npyio writes number by number
	if err = npyio.Write(w, v); err == nil {
		err = w.Flush()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return nil
}

// Write prints the comparison as a table in Markdown.
func (r *ExportReport) Write(w io.Writer) error {
	fmt.Fprintf(w, "%s, %d threads; least times in turn, each file in a process of its own\n\n", r.Python, r.Machine.Threads)
	rows := [][]string{{"graph", "nodes", "edges", "hidden", "file", "operators", "KiB", "ms", "median", "PyG's over it", "with tables", "CPU", "PyG's over it", "difference"}}
	for _, x := range r.Results {
		first := []string{x.Graph, fmt.Sprint(x.Nodes), fmt.Sprint(x.Edges), fmt.Sprint(x.Hidden)}
		for _, f := range x.Files {
			rows = append(rows, append(first, f.Name, fmt.Sprint(f.Nodes), fmt.Sprint(f.Bytes>>10), ms(f.MS), ms(f.MedianMS), fmt.Sprintf("%.2f", f.Ratio), fmt.Sprintf("%.2f", f.TablesRatio), ms(f.CPUMS), fmt.Sprintf("%.2f", f.CPURatio), fmt.Sprintf("%.1e", f.Difference)))
			first = []string{"", "", "", ""}
		}
	}
	if err := table(w, Markdown, rows); err != nil {
		return err
	}
	fmt.Fprintln(w)
	for _, x := range r.Results {
		fmt.Fprintf(w, "Building the tables of host-buckets took %s on %s, once for the graph.\n", ms(x.TablesMS), x.Graph)
	}
	return nil
}
