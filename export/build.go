package export

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/gsrc-dev/gsrc/compiler"
	"github.com/gsrc-dev/gsrc/data/schema"
	"github.com/gsrc-dev/gsrc/export/manifest"
	"github.com/gsrc-dev/gsrc/export/onnx"
	"github.com/gsrc-dev/gsrc/export/parity"
	"github.com/gsrc-dev/gsrc/internal/atomicfile"
	"github.com/gsrc-dev/gsrc/internal/lists"
	"github.com/gsrc-dev/gsrc/ir"
	"github.com/gsrc-dev/gsrc/runtime/ort"
)

// BuildOptions say what to export and how.
type BuildOptions struct {
	// Module is the model as declared; Build compiles what it needs.
	Module *ir.Module
	// Params holds the trained parameters by name, row-major.
	Params map[string][]float32
	// Bounds of the edge probabilities; needed where the model has @score.
	Bounds *manifest.Bounds
	// Sample is the training graph, for the parity check and the test data.
	Sample parity.ExampleInputs
	// Forward is the Compile forward pass that the files are compared with;
	// nil means the float64 reference interpreter. It binds Bounds by itself.
	Forward onnx.Forward
	// Trained is the forward pass with the weights as trained, where Precision is not
	// FP32: Params and Forward are then [onnx.Rounded]. nil means the reference interpreter
	// with Params.
	Trained onnx.Forward

	// Refinement says how the graph is refined that the classifier reads; nil where
	// it reads the graph as it is. Pipeline says whether pipeline.onnx is written,
	// which does it; PipelineAuto if empty.
	Refinement *onnx.Refinement
	Pipeline   PipelineMode

	Lowering     onnx.Lowering
	NoEdgeWeight bool
	// RawWeight is what the classifier takes an edge of the graph as it is for, 0 for 1, and
	// WeightTransform, such as log1p, what was done to the weights that the models read.
	RawWeight       float32
	WeightTransform string
	// SparseX, Symmetrize, Opset and Precision are those of [onnx.ModelOptions].
	SparseX    bool
	Symmetrize bool
	Opset      int
	Precision  onnx.Precision
	// ExternalData is from how many bytes on a weight goes to a file beside its model,
	// such as encoder.data; 0 is DefaultExternalData, and NoExternalData keeps one file.
	ExternalData int

	// Model, Dataset, ConfigHash, Classes, Metrics and Version go into the
	// manifest and the files' metadata.
	Model, Dataset, ConfigHash, Version string
	Classes                             []string
	// Columns say how the columns of x are made of those of a table; nil where they have
	// no names.
	Columns *schema.Schema
	// WithColumns writes the classifier behind the preparation of columns in one more file.
	WithColumns bool
	Metrics     map[string]float64
	// Temperature is what Module divides logits by to calibrate probabilities; 0 where it
	// does not. It goes into the manifest and the files' metadata.
	Temperature float64
	// Files are written beside the models, such as refined_edges.csv, by name.
	Files map[string][]byte

	// Library is the onnxruntime to check with; nil means what ort.Ensure finds
	// or fetches.
	Library *ort.Library
	// Unverified writes the export without a parity check. The manifest says so.
	Unverified bool
	// TestCases has the export carry the test data of every graph that it is checked
	// on, and of faulty ones, for checks in other runtimes; else those of one
	// sub-graph alone.
	TestCases bool
	// Log gets a line for each step; nil drops them.
	Log func(format string, args ...any)
}

// role is one of the files of an export.
type role struct {
	name, fn, task, doc string
}

var roles = []role{
	{"encoder", "encode", "node-embedding", "Embeds the nodes of a graph."},
	{"scorer", "score", "edge-scoring", "Scores pairs of nodes: how likely an edge between them is."},
	{"classifier", "classify", manifest.TaskNodes, "Classifies the nodes of a graph."},
}

var ioDocs = map[string]string{
	"x":                        "raw node features; normalisation is inside the model",
	onnx.InputIndptr:           "raw node features in CSR: where the row of each node begins, and the number of entries at the end; normalisation is inside the model",
	onnx.InputIndices:          "column of each stored feature, row after row, no column twice in a row",
	onnx.InputValues:           "stored features, row after row",
	"x_struct":                 "DeepWalk embedding of the training graph; other graphs have none in this basis",
	onnx.InputEdgeIndex:        "edges, row 0 sources and row 1 targets, both directions of an undirected edge; duplicates count, self-loops are dropped and one a node is added inside",
	onnx.InputEdgeWeight:       "weight of each edge of edge_index",
	onnx.InputKnownLabels:      "labels that are known: a one in the column of a node's class; a row of zeros where none is known",
	onnx.InputGraphIDs:         "graph of each node, numbered from 0; a number that no node has is a graph without nodes",
	onnx.InputDegree:           "table: number of edges into each node, without self-loops",
	onnx.InputOrder:            "table: positions of edges in edge_index, row after row of 1, 2, 4, … 64; num_edges where a row is filled up",
	onnx.InputOrderRows:        "table: number of rows of each width in order",
	onnx.InputSegments:         "table: rows of 64 of order that belong to one node, by rows of 4, 16 and 64; their number where a row is filled up",
	onnx.InputSegmentRows:      "table: number of rows of each width in segments",
	onnx.InputRest:             "table: rows of 64 of segments that belong to one node; their number where a row is filled up",
	onnx.InputRestore:          "table: row of each node among those of order, a row of zeros, those of segments and those of rest",
	onnx.InputAdjacency:        "adjacency matrix: (i, j) sums the weights of edges from j to i, zero diagonal; a self-loop a node is added inside",
	"embedding":                "node embeddings",
	onnx.OutputEdgeCounts:      "what each edge of edge_index counts, by its weight: its probability is multiplied by it; 0 of self-loops",
	onnx.OutputSimilarityRows:  "rows of the nodes by whose cosine neighbours are searched that may become edges",
	"pairs":                    "pairs of nodes to score: row 0 with row 1",
	"similarity":               "cosine of the two embeddings",
	"probability":              "probability of the pair as a new edge",
	"probability_existing":     "probability of the pair as an edge that exists already",
	"edge_probability":         "probability of each edge of edge_index as an edge, by evidence that leaves it out; 0 of self-loops",
	"logits":                   "unnormalised class scores",
	"probabilities":            "class probabilities, rows sum to 1",
	onnx.InputK:                "how many of each node's nearest neighbours may become new edges; the training's is in the metadata",
	onnx.OutputRefinedIndex:    "edges of the refined graph, each once, row 0 the lower node and row 1 the higher, sorted",
	onnx.OutputRefinedProb:     "probability of each refined edge",
	onnx.OutputRefinedExisting: "1 where edge_index holds the refined edge, in either direction, 0 where it is new",
}

// built is one model on its way to the folder.
type built struct {
	parity.Model
	task, doc string
	fn        *ir.Func
	constants map[string]float32
	parts     *onnx.PipelineParts // of the pipeline
	stages    *onnx.Stages
}

// Build writes an export to dir: nothing appears there before everything is
// written and checked, and an earlier export is replaced at once. A runtime that
// disagrees with the Compile forward pass gives a *[parity.Error].
func Build(ctx context.Context, dir string, o BuildOptions) (*manifest.Manifest, *parity.Report, error) {
	if o.Log == nil {
		o.Log = func(string, ...any) {}
	}
	if err := cmp.Or(CheckFolder(dir), o.check()); err != nil {
		return nil, nil, err
	}
	unlock, err := manifest.LockFolder(dir)
	if err != nil {
		return nil, nil, err
	}
	defer unlock()
	models, err := o.lowered()
	if err != nil {
		return nil, nil, err
	}
	constants := map[string]float32{}
	for _, m := range models {
		maps.Copy(constants, m.constants)
	}
	rounded, err := onnx.Rounded(o.Module, o.Params, o.Precision)
	if err != nil {
		return nil, nil, err
	}
	// The interpreter computes what nobody reads, too: evidence for the edges of an encoder
	// that reads none, say, which on a large graph takes it hours.
	live, err := compiler.Compile(onnx.WithMargins(o.Module), compiler.Options{Passes: []string{"dce"}})
	if err != nil {
		return nil, nil, err
	}
	reference := onnx.Interpreter(live.Module, rounded, constants)
	if o.Forward == nil {
		o.Forward = reference
	}
	if o.Trained == nil {
		o.Trained = onnx.Interpreter(live.Module, o.Params, constants)
	}
	files := map[string][]byte{}
	for name, data := range o.Files {
		if !filepath.IsLocal(filepath.FromSlash(name)) {
			return nil, nil, fmt.Errorf("the file name %q is outside the folder", name)
		}
		files[name] = data
	}
	for _, m := range models {
		files[m.Name+".onnx"] = m.Data
		if m.Weights != nil {
			files[m.WeightsFile()] = m.Weights
		}
	}
	if err := o.addPreprocess(ctx, models, files); err != nil {
		return nil, nil, err
	}
	checked := lists.Of(len(models), func(i int) *parity.Model { return &models[i].Model })
	check := o.checks()
	check.Reference = reference
	report, err := check.Check(ctx, checked, files)
	if err != nil {
		return nil, report, err
	}
	m := o.manifest(models)
	o.reportPrecision(m, report.Precision)
	if files[parity.FileName], err = atomicfile.JSON(report); err != nil {
		return nil, nil, err
	}
	for name, data := range files {
		m.Files[name] = manifest.NewFileInfo(data)
	}
	if files[manifest.FileName], err = m.Marshal(); err != nil {
		return nil, nil, err
	}
	if err := atomicfile.WriteFolder(dir, files, CheckFolder, func(path string, data []byte) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		return atomicfile.WriteSynced(path, data)
	}); err != nil {
		return nil, nil, fmt.Errorf("cannot write the export: %w", err)
	}
	m.Dir = dir
	o.Log("wrote %s (%s)", dir, strings.Join(lists.Map(models, func(m built) string { return m.Name + ".onnx" }), ", "))
	return m, report, nil
}

// checks says against what the models are checked.
func (o *BuildOptions) checks() parity.Options {
	return parity.Options{Sample: o.Sample, Forward: o.Forward, Trained: o.Trained, Refinement: o.Refinement, NoEdgeWeight: o.NoEdgeWeight,
		Lowering: o.Lowering, Symmetrize: o.Symmetrize, Precision: o.Precision, Library: o.Library, Unverified: o.Unverified, TestCases: o.TestCases, Log: o.Log}
}

// lowered compiles the functions and writes them as models, and decides on the
// lowering where it is auto.
func (o *BuildOptions) lowered() ([]built, error) {
	programs, err := o.programs()
	if err != nil {
		return nil, err
	}
	if o.Lowering == onnx.Auto {
		n := 0
		for _, p := range programs {
			n += o.messages(p)
		}
		o.Lowering = onnx.ChooseLowering(n)
		o.Log("lowering %s: %d numbers travel along the edges of the training graph", o.Lowering, n)
	}
	models, err := o.models(programs)
	if err != nil {
		return nil, err
	}
	return o.addPipeline(models, programs)
}

func (o *BuildOptions) check() error {
	if o.Module == nil {
		return errors.New("no module to export")
	}
	var err error
	if o.Lowering, err = onnx.ParseLowering(string(o.Lowering)); err != nil {
		return err
	}
	if o.Opset, err = onnx.CheckOpset(o.Opset); err != nil {
		return err
	}
	if o.Precision, err = onnx.ParsePrecision(string(o.Precision)); err != nil {
		return err
	}
	if o.ExternalData < onnx.NoExternalData || o.ExternalData > math.MaxInt32 {
		return fmt.Errorf("ExternalData is %d: give a size in bytes below 2 GiB, 0 for %d MiB, or NoExternalData (%d)", o.ExternalData, onnx.DefaultExternalData>>20, onnx.NoExternalData)
	}
	if o.Precision != onnx.FP32 && o.Lowering == onnx.Dense {
		return onnx.ErrDensePrecision
	}
	if o.Pipeline, err = ParsePipelineMode(string(o.Pipeline)); err != nil {
		return err
	}
	if o.SparseX && o.Lowering == onnx.Dense {
		return errors.New("features in CSR take gathers, which the dense lowering does without; take degree-buckets, precomputed-buckets or scatter")
	}
	if o.Symmetrize && o.Lowering == onnx.Dense {
		return onnx.ErrDenseSymmetric
	}
	if err := o.Sample.Check(); err != nil {
		return fmt.Errorf("the graph to check the export on: %w", err)
	}
	if n := o.Sample.Nodes(); o.Lowering == onnx.Dense && n > onnx.MaxDenseNodes {
		return onnx.DenseRefusal(n)
	}
	return nil
}

// programs compiles every function that the module has a file for.
func (o *BuildOptions) programs() ([]built, error) {
	var list []built
	for _, r := range roles {
		if o.Module.Func(r.fn) == nil {
			continue
		}
		fn, err := o.compiled(r.fn)
		if err != nil {
			return nil, err
		}
		m := built{Model: parity.Model{Name: r.name, Func: r.fn}, task: r.task, doc: r.doc, fn: fn, constants: map[string]float32{}}
		if onnx.BatchArg(m.fn) != nil {
			m.task, m.doc = manifest.TaskGraphs, "Classifies the graphs of a batch."
		}
		list = append(list, m)
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("module %s has none of the functions @encode, @score and @classify: there is nothing to export", o.Module.Name)
	}
	return list, nil
}

func (o *BuildOptions) compiled(name string) (*ir.Func, error) {
	p, err := compiler.Compile(o.Module, compiler.Options{Target: compiler.Inference, Funcs: []string{name}})
	if err != nil {
		return nil, err
	}
	return p.Module.Func(name), nil
}

// docs are the doc strings of inputs and outputs.
func (o *BuildOptions) docs(m *built) map[string]string {
	docs := maps.Clone(ioDocs)
	if m.Symmetric {
		docs[onnx.InputEdgeIndex] = "edges, row 0 and row 1, in one direction or in both: the graph is made undirected inside, an edge counts once, self-loops are dropped and one a node is added"
		docs[onnx.InputEdgeWeight] = "weight of each edge of edge_index; of an edge that is listed more than once, the first"
	}
	switch classifies := m.Name == "classifier"; {
	case classifies && o.RawWeight != 0:
		docs[onnx.InputEdgeWeight] += fmt.Sprintf("; an edge of the graph as it is weighs %v", o.RawWeight)
	case o.WeightTransform != "" && !(classifies && o.Refinement != nil):
		docs[onnx.InputEdgeWeight] += fmt.Sprintf("; %s of its weight in the data", o.WeightTransform)
	}
	for _, r := range m.fn.Results {
		if source, ok := strings.CutPrefix(r.Name, onnx.EvidencePrefix); ok {
			docs[r.Name] = "evidence for each pair, by " + source
		} else if source, ok := strings.CutPrefix(r.Name, "edge_"+onnx.EvidencePrefix); ok {
			docs[r.Name] = "evidence for each edge of edge_index without the edge itself, by " + source + "; 0 of self-loops"
		}
	}
	return docs
}

// messages counts the numbers that travel along edges of the sample in one call.
func (o *BuildOptions) messages(m built) int {
	graph := onnx.GraphArg(m.fn)
	edges, width := o.Sample.Edges, 0
	if m.Name == "classifier" && o.Sample.Refined != nil {
		edges = *o.Sample.Refined
	}
	for _, op := range m.fn.Body {
		switch {
		case graph == nil || len(op.Operands) == 0 || op.Operands[0] != graph:
		case op.Name() == "spmm":
			n, _ := op.Result().Type.Dims[1].Size()
			width += n
		case op.Name() == "edge_softmax":
			return math.MaxInt32 // maxima over edges take the tables anyway
		}
	}
	return width * int(edges.Shape[1])
}

// models writes the Compile functions.
func (o *BuildOptions) models(programs []built) ([]built, error) {
	var list []built
	for _, m := range programs {
		m.Lowering = o.Lowering
		m.Judges = slices.ContainsFunc(m.fn.Body, func(op *ir.Op) bool { return op.Name() == "edge_pairs" })
		m.Sparse = o.SparseX && m.fn.Arg(onnx.SparseArg) != nil
		m.Symmetric = o.Symmetrize && onnx.GraphArg(m.fn) != nil
		if err := o.bindConstants(&m); err != nil {
			return nil, err
		}
		switch g := onnx.GraphArg(m.fn); {
		case g == nil && o.Lowering == onnx.Dense:
			m.Lowering = onnx.DegreeBuckets // nothing to lower; vectors may stay vectors
		case g != nil && !o.unweighted(m.Name):
			m.Weighted = slices.ContainsFunc(m.fn.Args, func(a *ir.Value) bool { return onnx.OverEdges(a, g) })
		}
		var err error
		m.Proto, m.stages, err = onnx.StagedModel(m.fn, o.Params, onnx.ModelOptions{
			Lowering: m.Lowering, NoEdgeWeight: o.unweighted(m.Name), Constants: m.constants, SparseX: o.SparseX, Symmetrize: m.Symmetric, Opset: o.Opset, Precision: o.Precision,
			Name: o.Model + "_" + m.Name, Doc: m.doc, Docs: o.docs(&m), Metadata: o.metadata(m), ProducerVersion: o.Version,
		})
		if err != nil {
			return nil, err
		}
		if err := o.seal(&m); err != nil {
			return nil, err
		}
		o.Log("lowered @%s to %s.onnx: %d nodes, %.1f MiB", m.Func, m.Name, len(m.Proto.Graph.Node), float64(len(m.Data)+len(m.Weights))/(1<<20))
		list = append(list, m)
	}
	return list, nil
}

// seal makes a model the bytes of its files.
func (o *BuildOptions) seal(m *built) (err error) {
	if o.ExternalData >= 0 {
		m.Weights = onnx.Externalize(m.Proto, m.WeightsFile(), cmp.Or(o.ExternalData, onnx.DefaultExternalData))
	}
	m.Within = onnx.ToleranceOf(m.Proto)
	if lo, ok := m.constants["lo"]; ok {
		hi := m.constants["hi"]
		if m.Within.Edges = onnx.RoundingOfEdges(o.Module, lo, hi); m.Within.Edges > 0 {
			o.Log("%s.onnx: the training's cosines are within %.2g of one another, so that rounding in float32 may change a probability of an edge by %.2g; the check allows that", m.Name, hi-lo, m.Within.Edges)
		}
	}
	m.Data, err = onnx.Marshal(m.Proto)
	return err
}

// unweighted tells that a model leaves edge weights out. Those that an encoder reads
// are part of the model.
func (o *BuildOptions) unweighted(role string) bool { return o.NoEdgeWeight && role == "classifier" }

// bindConstants freezes the bounds of the edge probabilities.
func (o *BuildOptions) bindConstants(m *built) error {
	for _, name := range []string{"lo", "hi"} {
		a := m.fn.Arg(name)
		if a == nil || a.Type.Rank() != 0 {
			continue
		}
		if o.Bounds == nil {
			return fmt.Errorf("@%s needs the bounds of the edge probabilities, and none were given", m.Func)
		}
		m.constants[name] = o.Bounds.Lo
		if name == "hi" {
			m.constants[name] = o.Bounds.Hi
		}
	}
	return nil
}

// jsonText is JSON for metadata; empty where there is none.
func jsonText(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return ""
	}
	return string(b)
}

// metadata describes a file to whoever finds it without its manifest.
func (o *BuildOptions) metadata(m built) map[string]string {
	md := map[string]string{
		"task": m.task, "model": o.Model, "gsrc_version": o.Version, "dataset": o.Dataset, "config_hash": o.ConfigHash,
		"metrics":   jsonText(finiteMetrics(o.Metrics)),
		"precision": cmp.Or(string(o.Precision), "fp32"), "num_features": strconv.FormatInt(o.Sample.X.Shape[1], 10),
		"inductive": strconv.FormatBool(o.inductive()), "hops": manifest.HopsText(o.hops(m)),
	}
	if o.Columns != nil && m.fn.Arg(onnx.SparseArg) != nil {
		md["columns"] = jsonText(o.Columns)
	}
	if m.Name == "classifier" {
		md["edge_weight"] = strconv.FormatBool(m.Weighted)
		if m.Weighted && o.RawWeight != 0 {
			md["raw_weight"] = strconv.FormatFloat(float64(o.RawWeight), 'g', -1, 32)
		}
	}
	if o.WeightTransform != "" {
		md["weight_transform"] = o.WeightTransform
	}
	if m.task != "node-embedding" && m.task != "edge-scoring" {
		md["class_labels"] = jsonText(o.Classes)
		if o.Temperature != 0 {
			md["temperature"] = strconv.FormatFloat(o.Temperature, 'g', -1, 64)
		}
	}
	body, reads := m.fn.Body, onnx.GraphArg(m.fn) != nil
	if m.parts != nil {
		body, reads = slices.Concat(m.parts.Encode.Body, body), true
		o.pipelineMetadata(md)
	}
	var norms []string
	for _, op := range body {
		switch op.Name() {
		case "l1_normalize":
			norms = append(norms, "l1")
		case "l2_normalize":
			norms = append(norms, "l2")
		}
	}
	slices.Sort(norms)
	norm := "none"
	if norms = slices.Compact(norms); len(norms) > 0 {
		norm = "rows by their " + strings.Join(norms, " and ") + " norm, inside the model"
	}
	md["normalization"] = norm
	if reads {
		md["lowering"] = m.Lowering.Filed()
		md["symmetrize"] = strconv.FormatBool(m.Symmetric)
		md["self_loops"] = "dropped from the input, one a node added inside the model"
	}
	return md
}

// hops is how far a model sees, nil where that is not known.
func (o *BuildOptions) hops(b built) *int {
	if n, err := onnx.ReceptiveHops(b.fn); err == nil && b.Name != "scorer" && b.parts == nil && !o.Symmetrize {
		return &n
	}
	return nil
}

// finiteMetrics leaves out what JSON cannot hold.
func finiteMetrics(m map[string]float64) map[string]float64 {
	out := map[string]float64{}
	for k, v := range m {
		if !math.IsNaN(v) && !math.IsInf(v, 0) {
			out[k] = v
		}
	}
	return out
}

func (o *BuildOptions) inductive() bool {
	if r := o.Refinement; r != nil && !r.Together && o.Module.Func("score") == nil {
		return false // the edges of the training graph have weights of their own
	}
	for _, r := range roles {
		if fn := o.Module.Func(r.fn); fn != nil && fn.Arg("x_struct") != nil {
			return false
		}
	}
	return true
}

func (o *BuildOptions) manifest(models []built) *manifest.Manifest {
	m := &manifest.Manifest{
		SchemaVersion: manifest.Version, Generator: "gsrc", Version: o.Version, Model: o.Model,
		Inductive: o.inductive(), Lowering: o.Lowering, Opset: o.Opset, IRVersion: int(onnx.IRVersion(o.Opset)), SparseX: o.SparseX, Symmetrize: o.Symmetrize, Precision: o.Precision,
		NumFeatures: int(o.Sample.X.Shape[1]), Classes: o.Classes, Dataset: o.Dataset, ConfigHash: o.ConfigHash, Columns: o.Columns, WeightTransform: o.WeightTransform,
		Metrics: finiteMetrics(o.Metrics), Temperature: o.Temperature, Models: map[string]manifest.ModelInfo{}, Files: map[string]manifest.FileInfo{}, Verified: !o.Unverified,
	}
	if m.Classes == nil {
		m.Classes = []string{}
	}
	for _, b := range models {
		info := manifest.ModelInfo{File: b.Name + ".onnx", Inputs: manifest.NewIOInfos(b.Proto.Graph.Input), Outputs: manifest.NewIOInfos(b.Proto.Graph.Output),
			TestData: manifest.TestDataDir + "/" + b.Name, TestCases: b.TestCases}
		if b.Weights != nil {
			info.Data = b.WeightsFile()
		}
		if b.Within != onnx.Exact {
			info.Tolerance = &b.Within
		}
		info.Hops, info.Stages = o.hops(b), b.stages
		m.Models[b.Name] = info
		if len(b.constants) > 0 {
			m.Bounds = o.Bounds
		}
		if b.Name == "classifier" {
			if m.Task, m.EdgeWeight = b.task, b.Weighted; b.Weighted {
				m.RawWeight = o.RawWeight
			}
		}
	}
	return m
}

// reportPrecision enters the accuracy in the manifest, and tells it.
func (o *BuildOptions) reportPrecision(m *manifest.Manifest, r *parity.PrecisionReport) {
	if r == nil {
		return
	}
	if r.Agreement != nil {
		o.Log("%s: %.2f %% of the classes of the training graph are those of float32", o.Precision, *r.Agreement)
	}
	if t := r.Test; t != nil {
		m.TestAccuracy = t
		o.Log("%s: test accuracy %.2f %% on %d of the test split, in float32 %.2f %%", o.Precision, t.Exported, t.Rows, t.Trained)
	}
}
