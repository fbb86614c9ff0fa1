package export

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/gsrc-dev/gsrc/compiler"
	"github.com/gsrc-dev/gsrc/export/onnxpb"
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
	Bounds *Bounds
	// Sample is the training graph, for the parity check and the test data.
	Sample Sample
	// Forward is the compiled forward pass that the files are compared with;
	// nil means the float64 reference interpreter.
	Forward Forward

	Lowering     Lowering
	NoEdgeWeight bool

	// Model, Dataset, ConfigHash, Classes, Metrics and Version go into the
	// manifest and the files' metadata.
	Model, Dataset, ConfigHash, Version string
	Classes                             []string
	Metrics                             map[string]float64
	// Files are written beside the models, such as refined_edges.csv, by name.
	Files map[string][]byte

	// Library is the onnxruntime to check with; nil means what ort.Ensure finds
	// or fetches.
	Library *ort.Library
	// Unverified writes the export without a parity check. The manifest says so.
	Unverified bool
	// Log gets a line for each step; nil drops them.
	Log func(format string, args ...any)
}

// role is one of the files of an export.
type role struct {
	name, fn, task, doc string
}

var roles = []role{
	{"encoder", "encode", "node-embedding", "Embeds the nodes of a graph."},
	{"scorer", "score", "edge-scoring", "Scores pairs of nodes by their embeddings: how likely an edge between them is."},
	{"classifier", "classify", "node-classification", "Classifies the nodes of a graph."},
}

var ioDocs = map[string]string{
	"x":                    "raw node features; normalisation is inside the model",
	"x_struct":             "DeepWalk embedding of the training graph; other graphs have none in this basis",
	inputEdgeIndex:         "edges, row 0 sources and row 1 targets, both directions of an undirected edge; duplicates count, self-loops are dropped and one a node is added inside",
	inputEdgeWeight:        "weight of each edge of edge_index",
	inputAdjacency:         "adjacency matrix: (i, j) sums the weights of edges from j to i, zero diagonal; a self-loop a node is added inside",
	"embedding":            "node embeddings",
	"pairs":                "pairs of nodes to score: row 0 with row 1",
	"similarity":           "cosine of the two embeddings",
	"probability":          "probability of the pair as a new edge",
	"probability_existing": "probability of the pair as an edge that exists already",
	"logits":               "unnormalised class scores",
	"probabilities":        "class probabilities, rows sum to 1",
}

// built is one model on its way to the folder.
type built struct {
	role
	fn        *ir.Func
	model     *onnxpb.ModelProto
	data      []byte
	constants map[string]float32
	lowering  Lowering
	weighted  bool // takes edge weights, as an input or within the adjacency matrix
}

// Build writes an export to dir: nothing appears there before everything is
// written and checked, and an earlier export is replaced at once. A runtime that
// disagrees with the compiled forward pass gives a *[ParityError].
func Build(ctx context.Context, dir string, o BuildOptions) (*Manifest, *ParityReport, error) {
	if o.Log == nil {
		o.Log = func(string, ...any) {}
	}
	if err := o.check(); err != nil {
		return nil, nil, err
	}
	models, err := o.models()
	if err != nil {
		return nil, nil, err
	}
	constants := map[string]float32{}
	for _, m := range models {
		maps.Copy(constants, m.constants)
	}
	if o.Forward == nil {
		o.Forward = Interpreter(o.Module, o.Params, constants)
	}
	files := map[string][]byte{}
	for name, data := range o.Files {
		if !filepath.IsLocal(filepath.FromSlash(name)) {
			return nil, nil, fmt.Errorf("the file name %q is outside the folder", name)
		}
		files[name] = data
	}
	manifest := o.manifest(models)
	for _, m := range models {
		files[m.name+".onnx"] = m.data
	}
	report, err := o.checkParity(ctx, models, files)
	if err != nil {
		return nil, report, err
	}
	if files[ParityFile], err = marshalJSON(report); err != nil {
		return nil, nil, err
	}
	for name, data := range files {
		manifest.Files[name] = fileInfo(data)
	}
	if files[ManifestFile], err = marshalJSON(manifest); err != nil {
		return nil, nil, err
	}
	if err := writeFolder(dir, files); err != nil {
		return nil, nil, fmt.Errorf("cannot write the export: %w", err)
	}
	o.Log("wrote %s (%s)", dir, strings.Join(modelNames(models), ", "))
	return manifest, report, nil
}

func modelNames(models []built) []string {
	var list []string
	for _, m := range models {
		list = append(list, m.name+".onnx")
	}
	return list
}

func (o *BuildOptions) check() error {
	if o.Module == nil {
		return errors.New("no module to export")
	}
	var err error
	if o.Lowering, err = ParseLowering(string(o.Lowering)); err != nil {
		return err
	}
	if err := o.Sample.check(); err != nil {
		return fmt.Errorf("the graph to check the export on: %w", err)
	}
	if n := o.Sample.nodes(); o.Lowering == Dense && n > maxDenseNodes {
		return fmt.Errorf("the dense lowering is for small graphs: %d nodes need a matrix of %d MiB; take buckets or flat", n, n*n>>18)
	}
	return nil
}

// maxDenseNodes bounds the adjacency matrix of the parity check to 400 MB.
const maxDenseNodes = 10_000

// models compiles and writes every function that the module has a file for.
func (o *BuildOptions) models() ([]built, error) {
	var list []built
	for _, r := range roles {
		if o.Module.Func(r.fn) == nil {
			continue
		}
		p, err := compiler.Compile(o.Module, compiler.Options{Target: compiler.Inference, Funcs: []string{r.fn}})
		if err != nil {
			return nil, err
		}
		m := built{role: r, fn: p.Module.Func(r.fn), constants: map[string]float32{}, lowering: o.Lowering}
		if err := o.bindConstants(&m); err != nil {
			return nil, err
		}
		switch g := graphArg(m.fn); {
		case g == nil && o.Lowering == Dense:
			m.lowering = Buckets // nothing to lower; vectors may stay vectors
		case g != nil && !o.NoEdgeWeight:
			m.weighted = slices.ContainsFunc(m.fn.Args, func(a *ir.Value) bool { return overEdges(a, g) })
		}
		m.model, err = Model(m.fn, o.Params, ModelOptions{
			Lowering: m.lowering, NoEdgeWeight: o.NoEdgeWeight, Constants: m.constants,
			Name: o.Model + "_" + r.name, Doc: r.doc, Docs: ioDocs, Metadata: o.metadata(m), ProducerVersion: o.Version,
		})
		if err != nil {
			return nil, err
		}
		if m.data, err = Marshal(m.model); err != nil {
			return nil, err
		}
		o.Log("lowered @%s to %s.onnx: %d nodes, %.1f MiB", r.fn, r.name, len(m.model.Graph.Node), float64(len(m.data))/(1<<20))
		list = append(list, m)
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("module %s has none of the functions @encode, @score and @classify: there is nothing to export", o.Module.Name)
	}
	return list, nil
}

// graphArg returns the graph argument of a function, or nil.
func graphArg(fn *ir.Func) *ir.Value {
	for _, a := range fn.Args {
		if a.Type.IsGraph() {
			return a
		}
	}
	return nil
}

// overEdges reports whether v has a value for each edge of g.
func overEdges(v, g *ir.Value) bool {
	return !v.Type.IsGraph() && v.Type.Rank() == 1 && v.Type.Dims[0] == g.Type.Dims[1]
}

// bindConstants freezes the bounds of the edge probabilities.
func (o *BuildOptions) bindConstants(m *built) error {
	for _, name := range []string{"lo", "hi"} {
		a := m.fn.Arg(name)
		if a == nil || a.Type.Rank() != 0 {
			continue
		}
		if o.Bounds == nil {
			return fmt.Errorf("@%s needs the bounds of the edge probabilities, and none were given", m.role.fn)
		}
		m.constants[name] = o.Bounds.Lo
		if name == "hi" {
			m.constants[name] = o.Bounds.Hi
		}
	}
	return nil
}

// metadata describes a file to whoever finds it without its manifest.
func (o *BuildOptions) metadata(m built) map[string]string {
	text := func(v any) string {
		b, err := json.Marshal(v)
		if err != nil {
			return ""
		}
		return string(b)
	}
	md := map[string]string{
		"task": m.task, "model": o.Model, "gsrc_version": o.Version, "dataset": o.Dataset, "config_hash": o.ConfigHash,
		"metrics":      text(finiteMetrics(o.Metrics)),
		"num_features": strconv.FormatInt(o.Sample.X.Shape[1], 10),
		"inductive":    strconv.FormatBool(o.inductive()),
	}
	if m.task == "node-classification" {
		md["class_labels"] = text(o.Classes)
	}
	var norms []string
	for _, op := range m.fn.Body {
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
	if graphArg(m.fn) != nil {
		md["lowering"] = string(m.lowering)
		md["self_loops"] = "dropped from the input, one a node added inside the model"
	}
	return md
}

// finiteMetrics leaves out what JSON cannot hold.
func finiteMetrics(m map[string]float64) map[string]float64 {
	out := map[string]float64{}
	for k, v := range m {
		if finite(v) == v {
			out[k] = v
		}
	}
	return out
}

func (o *BuildOptions) inductive() bool {
	for _, r := range roles {
		if fn := o.Module.Func(r.fn); fn != nil && fn.Arg("x_struct") != nil {
			return false
		}
	}
	return true
}

func (o *BuildOptions) manifest(models []built) *Manifest {
	m := &Manifest{
		SchemaVersion: SchemaVersion, Generator: "gsrc", Version: o.Version, Model: o.Model,
		Inductive: o.inductive(), Lowering: o.Lowering, Opset: OpsetVersion, IRVersion: IRVersion,
		NumFeatures: int(o.Sample.X.Shape[1]), Classes: o.Classes, Dataset: o.Dataset, ConfigHash: o.ConfigHash,
		Metrics: finiteMetrics(o.Metrics), Models: map[string]ModelInfo{}, Files: map[string]FileInfo{}, Verified: !o.Unverified,
	}
	if m.Classes == nil {
		m.Classes = []string{}
	}
	for _, b := range models {
		m.Models[b.name] = ModelInfo{File: b.name + ".onnx", Inputs: ioInfos(b.model.Graph.Input), Outputs: ioInfos(b.model.Graph.Output),
			TestData: testDataDir + "/" + b.name}
		if len(b.constants) > 0 {
			m.Bounds = o.Bounds
		}
		m.EdgeWeight = m.EdgeWeight || b.weighted
	}
	return m
}

// inputs picks from a case what a model takes, in the sparse form; embedding is
// that of the encoder.
func (m *built) inputs(c parityCase, embedding ort.Tensor) map[string]ort.Tensor {
	in := map[string]ort.Tensor{}
	for _, p := range m.model.Graph.Input {
		switch p.Name {
		case "x":
			in["x"] = c.X
		case "x_struct":
			if c.Struct != nil {
				in["x_struct"] = *c.Struct
			}
		case "embedding":
			in["embedding"] = embedding
		case "pairs":
			in["pairs"] = c.scoredPairs()
		case inputEdgeIndex, inputAdjacency:
			in[inputEdgeIndex] = c.Edges
			if m.name == "classifier" && c.Refined != nil {
				in[inputEdgeIndex] = *c.Refined
			}
		}
	}
	if m.weighted {
		e := in[inputEdgeIndex].Shape[1]
		in[inputEdgeWeight] = ort.Float32s(slices.Repeat([]float32{1}, int(e)), e)
		if c.Weights != nil {
			in[inputEdgeWeight] = *c.Weights
		}
	}
	return in
}

// modelInputs turns inputs of the sparse form into what the file takes.
func (m *built) modelInputs(in map[string]ort.Tensor) (map[string]ort.Tensor, error) {
	index, hasGraph := in[inputEdgeIndex]
	if m.lowering != Dense || !hasGraph {
		return in, nil
	}
	var weight *ort.Tensor
	if w, ok := in[inputEdgeWeight]; ok {
		weight = &w
	}
	a, err := Adjacency(int(in["x"].Shape[0]), index, weight)
	if err != nil {
		return nil, err
	}
	out := maps.Clone(in)
	delete(out, inputEdgeIndex)
	delete(out, inputEdgeWeight)
	out[inputAdjacency] = a
	return out, nil
}

func (m *built) outputNames() []string {
	var list []string
	for _, out := range m.model.Graph.Output {
		list = append(list, out.Name)
	}
	return list
}

// checkParity runs every model on every case in every runtime, and adds the
// test data to files.
func (o *BuildOptions) checkParity(ctx context.Context, models []built, files map[string][]byte) (*ParityReport, error) {
	report := &ParityReport{SchemaVersion: SchemaVersion, Bound: "max|a-b| <= 1e-5 + 1e-4*max|b|", Runtimes: map[string]string{}, Cases: []ParityCase{}}
	sessions := map[string]*ort.Session{}
	if !o.Unverified {
		var err error
		if sessions, err = o.openSessions(ctx, models, report); err != nil {
			return report, err
		}
		defer func() {
			for _, s := range sessions {
				s.Close()
			}
		}()
	}
	var first *ParityError
	for _, c := range parityCases(o.Sample) {
		if o.Unverified && c.name != testCase {
			continue
		}
		var embedding ort.Tensor
		for i := range models {
			if err := ctx.Err(); err != nil {
				return report, err
			}
			m := &models[i]
			in := m.inputs(c, embedding)
			want, err := o.Forward(m.role.fn, in)
			if err != nil {
				return report, fmt.Errorf("the compiled forward pass of @%s on %q: %w", m.role.fn, c.name, err)
			}
			if e, ok := want["embedding"]; ok {
				embedding = e
			}
			in, err = m.modelInputs(in)
			if err != nil {
				return report, err
			}
			if c.name == testCase {
				if err := m.addTestData(files, in, want); err != nil {
					return report, err
				}
			}
			if o.Unverified {
				continue
			}
			for _, rt := range m.runtimes(sessions[m.name]) {
				got, err := rt.run(in)
				if err != nil {
					return report, fmt.Errorf("%s.onnx in %s on %q: %w", m.name, rt.name, c.name, err)
				}
				outputs, bad := compareOutputs(got, want, m.outputNames())
				report.Cases = append(report.Cases, ParityCase{Model: m.name, Case: c.name, Runtime: rt.name, Nodes: c.nodes(),
					Edges: edgeCount(m, c), Outputs: outputs})
				if bad != nil {
					bad.Model, bad.Case, bad.Runtime = m.name, c.name, rt.name
					if first == nil {
						first = bad
					} else {
						first.More += 1 + bad.More
					}
				}
			}
		}
	}
	if first != nil {
		return report, first
	}
	if !o.Unverified {
		o.Log("parity: %d comparisons within bounds", len(report.Cases))
	}
	return report, nil
}

func edgeCount(m *built, c parityCase) int {
	if m.name == "classifier" && c.Refined != nil {
		return int(c.Refined.Shape[1])
	}
	return int(c.Edges.Shape[1])
}

// goVersion is the release of onnx-go that go.mod pins.
const goVersion = "0.5.0"

func (o *BuildOptions) openSessions(ctx context.Context, models []built, report *ParityReport) (map[string]*ort.Session, error) {
	lib := o.Library
	if lib == nil {
		found, err := ort.Ensure(ctx, o.Log)
		if err != nil {
			return nil, fmt.Errorf("the export cannot be checked: %w", err)
		}
		lib = &found
	}
	report.Runtimes["onnxruntime"] = lib.Version
	sessions := map[string]*ort.Session{}
	for _, m := range models {
		// The CPU and one thread: the report is the same on every run.
		s, err := ort.OpenBytes(m.data, ort.Options{Provider: ort.CPU, Threads: 1, Library: lib})
		if err != nil {
			for _, open := range sessions {
				open.Close()
			}
			return nil, fmt.Errorf("%s.onnx: %w", m.name, err)
		}
		sessions[m.name] = s
		if m.lowering == Dense {
			report.Runtimes["onnx-go"] = goVersion
		}
	}
	return sessions, nil
}

// engine is a runtime that a model can run in.
type engine struct {
	name string
	run  func(map[string]ort.Tensor) (map[string]ort.Tensor, error)
}

func (m *built) runtimes(s *ort.Session) []engine {
	list := []engine{{"onnxruntime", s.Run}}
	if m.lowering == Dense {
		list = append(list, engine{"onnx-go", func(in map[string]ort.Tensor) (map[string]ort.Tensor, error) { return RunGo(m.data, in) }})
	}
	return list
}

// addTestData writes inputs and outputs in ONNX's layout for test data.
func (m *built) addTestData(files map[string][]byte, in, want map[string]ort.Tensor) error {
	add := func(kind string, infos []*onnxpb.ValueInfoProto, values map[string]ort.Tensor) error {
		for i, info := range infos {
			p, err := tensorProto(info.Name, values[info.Name])
			if err != nil {
				return err
			}
			data, err := proto.MarshalOptions{Deterministic: true}.Marshal(p)
			if err != nil {
				return err
			}
			files[fmt.Sprintf("%s/%s/%s_%d.pb", testDataDir, m.name, kind, i)] = data
		}
		return nil
	}
	if err := add("input", m.model.Graph.Input, in); err != nil {
		return err
	}
	return add("output", m.model.Graph.Output, want)
}

// writeFolder puts files into dir at once: they are written and synced beside
// it first. A folder that is no export is never replaced.
func writeFolder(dir string, files map[string][]byte) (err error) {
	dir, err = filepath.Abs(dir)
	if err != nil {
		return err
	}
	if err := replaceable(dir); err != nil {
		return err
	}
	parent := filepath.Dir(dir)
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return err
	}
	tmp, err := os.MkdirTemp(parent, "."+filepath.Base(dir)+".*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	if err := os.Chmod(tmp, 0o755); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		path := filepath.Join(tmp, "new", filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := writeSynced(path, files[name]); err != nil {
			return err
		}
	}
	if err := os.Rename(dir, filepath.Join(tmp, "old")); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.Rename(filepath.Join(tmp, "new"), dir); err != nil {
		// Put the earlier export back rather than leave nothing.
		return errors.Join(err, ignoreMissing(os.Rename(filepath.Join(tmp, "old"), dir)))
	}
	return nil
}

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

func replaceable(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(entries) == 0 {
		return nil
	}
	if err != nil {
		return err
	}
	if _, err := ReadManifest(dir); err != nil {
		return fmt.Errorf("%s is not empty and holds no export of gsrc; choose another folder", dir)
	}
	return nil
}

func writeSynced(path string, data []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}
