package run

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/gsrc-dev/gsrc/config"
	"github.com/gsrc-dev/gsrc/data"
	"github.com/gsrc-dev/gsrc/export"
	"github.com/gsrc-dev/gsrc/export/manifest"
	"github.com/gsrc-dev/gsrc/export/onnx"
	"github.com/gsrc-dev/gsrc/export/parity"
	"github.com/gsrc-dev/gsrc/infer"
	"github.com/gsrc-dev/gsrc/internal/shell"
	"github.com/gsrc-dev/gsrc/internal/version"
	"github.com/gsrc-dev/gsrc/ir"
	"github.com/gsrc-dev/gsrc/models"
	"github.com/gsrc-dev/gsrc/runtime/ort"
	"github.com/gsrc-dev/gsrc/train"
)

// ParityError says where an exported model and the compiled forward pass differ
// by more than the bound.
type ParityError = parity.Error

// BuildOptions say how a run is exported. The zero value is a good default.
type BuildOptions struct {
	// Lowering of message passing: onnx.DegreeBuckets (the default), onnx.PrecomputedBuckets,
	// onnx.Scatter, onnx.Dense, or onnx.Auto to choose by the training graph.
	Lowering onnx.Lowering
	// NoEdgeWeight leaves out the classifier's edge weights: every edge counts
	// the same.
	NoEdgeWeight bool
	// SparseX has encoder and classifier take the features in CSR.
	SparseX bool
	// Symmetrize has encoder and classifier make the graph undirected inside, so that
	// edge_index may list each edge in one direction.
	Symmetrize bool
	// Pipeline says whether pipeline.onnx is written, which refines and classifies in
	// one: export.PipelineAuto (the default) where the model allows it,
	// export.PipelineOn or an error, export.PipelineOff.
	Pipeline export.PipelineMode
	// WithColumns writes the classifier behind the preparation of a table's columns in one
	// more file.
	WithColumns bool
	// Opset is the version of ONNX's operator set, 17 to 21; 17 if 0.
	Opset int
	// Precision of the stored weights: onnx.FP32 (the default), onnx.FP16 or
	// onnx.INT8.
	Precision onnx.Precision
	// ExternalData is from how many bytes on a weight goes to a file beside its model;
	// 0 is onnx.DefaultExternalData, onnx.NoExternalData keeps one file.
	ExternalData int
	// Data is where the training data are now, if not where they were.
	Data string
	// Uncalibrated leaves probabilities the softmax of the logits as trained.
	Uncalibrated bool
	// Unverified writes the export without running it in onnxruntime; the
	// manifest says so.
	Unverified bool
	// TestCases has the export carry the inputs and outputs of every graph that it is
	// checked on, and faulty ones, for checks in other runtimes.
	TestCases bool
	// Library is the onnxruntime to check with; nil is what is found or fetched.
	Library *ort.Library
	// Threads of the compiled forward pass; 0 is one for each processor.
	Threads int
	Log     func(format string, args ...any) // gets a line for each step; may be nil
}

// Build exports the run to a folder: ONNX files, manifest.json, parity.json,
// test data, refined edges. Every model is run in onnxruntime and compared with
// the compiled forward pass, on the training graph and on others; the error is a
// *[ParityError] where they differ, and the folder is then not written. An
// earlier export in the folder is replaced.
func (r *Run) Build(ctx context.Context, out string, o BuildOptions) (*manifest.Manifest, error) {
	if err := cmp.Or(export.CheckFolder(out), ort.CheckThreads(o.Threads)); err != nil { // before data are read
		return nil, err
	}
	b, constants, err := r.exportOptions(o)
	if err != nil {
		return nil, err
	}
	rounded, err := onnx.Rounded(b.Module, b.Params, b.Precision)
	if err != nil {
		return nil, err
	}
	f, err := newForward(b.Module, rounded, constants, o.Threads)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b.Forward = f.Run
	if b.Precision != onnx.FP32 {
		trained, err := newForward(b.Module, b.Params, constants, o.Threads)
		if err != nil {
			return nil, err
		}
		defer trained.Close()
		b.Trained = trained.Run
	}
	manifest, _, err := export.Build(ctx, out, b)
	return manifest, err
}

// Exportable returns the error of [Run.Build] where that refuses the run with any options, nil
// where it does not. The run's data are read if they have not been yet.
func (r *Run) Exportable() error {
	if err := r.LoadData(""); err != nil {
		return err
	}
	x := r.Trained.Refined
	return refusal(r.Trained.Model, r.task.Info(), r.Trained.Module, x == nil || x.Raw)
}

// Exportable is [Run.Exportable] of what a training would make.
func (s *Setup) Exportable() error {
	return refusal(s.Model, s.task.Info(), s.Module, s.Config.Candidates.Structure == "raw")
}

// exportServes tells whether an export of the run can be made, and classifies other graphs. The data
// are not read.
func (r *Run) exportServes() bool {
	t, c := r.Trained, &r.Trained.Config.Data
	x := refinementOf(t)
	if refusal(t.Model, train.TaskInfo{About: r.info.Data, Directed: c.Directed}, t.Module, x == nil) != nil {
		return false
	}
	if x != nil && t.Module.Func("score") == nil { // an export refines by pipeline.onnx, which takes no known labels, or not at all
		if f := t.Module.Func("classify"); !x.Together || f != nil && f.Arg(models.KnownLabels) != nil {
			return false
		}
	}
	return r.info.Inductive && !data.NodeFeatures(c.NodeFeatures).Structural()
}

// orExport adds to err, which keeps the run from being used on other graphs, that an export can be, where it can.
func (r *Run) orExport(err error) error {
	if err == nil || !r.exportServes() {
		return err
	}
	return fmt.Errorf("%w; or make an export, and use that: gsrc build %s --out DIR", err, shell.Quote(r.Dir))
}

// refusal is why a training of a module on data is not exported.
func refusal(model string, info train.TaskInfo, module *ir.Module, raw bool) error {
	if info.Directed && !raw && module.Func(models.EncodeJudging) != nil {
		return errors.New("the model was trained on a directed graph, whose edges it judges by evidence regardless of their directions, and an export would judge by these: train it on data that are read without --directed, or with --set model.edges.judge=embedding")
	}
	if !info.Rewired.Inductive() {
		return fmt.Errorf("the model was trained on edges that take the place of the data's (data.edges=%s), and an export would be given others; train it without data.edges to export it", info.Rewired.Edges)
	}
	if models.ClassifiesEmbedding(module) {
		return fmt.Errorf("the classifier of %s reads what the encoder makes of the training graph, and an export cannot hand that on yet; the graph that was learned is in refined_edges.csv of the run, and can train any other model", model)
	}
	return nil
}

// exportOptions says what is exported, and which arguments are frozen to what.
func (r *Run) exportOptions(o BuildOptions) (b export.BuildOptions, constants map[string]float32, err error) {
	if err := r.LoadData(o.Data); err != nil {
		return b, nil, err
	}
	if err := r.Exportable(); err != nil {
		return b, nil, err
	}
	info := r.task.Info()
	if o.Symmetrize && info.Directed {
		return b, nil, errors.New("the model was trained on a directed graph, and --symmetrize makes graphs undirected inside the export: its answers would be others; export it without that option")
	}
	t := r.Trained
	module := exported(t, r.Data)
	c := r.Result.Calibration
	if o.Uncalibrated {
		c = nil
	}
	if c != nil {
		module = models.Temper(module, c.Temperature)
	}
	if x := t.Refined; o.NoEdgeWeight && x != nil && !x.Raw && x.Mode == "expected" {
		return b, nil, errors.New("the model weighs the edges of its refined graph by their probabilities, and --no-edge-weight makes every edge count the same: its answers would be others; export it without that option, or train it with --set model.edges.mode=threshold")
	}
	if o.NoEdgeWeight && weighted(t) {
		return b, nil, errors.New("the model was trained with the weights of the edges, and --no-edge-weight makes every edge count the same: its answers would be others; export it without that option, or train it with --ignore-weights")
	}
	b = export.BuildOptions{
		Module: module, Params: t.Params, Lowering: o.Lowering, NoEdgeWeight: o.NoEdgeWeight, SparseX: o.SparseX, Symmetrize: o.Symmetrize, Opset: o.Opset, Precision: o.Precision, ExternalData: o.ExternalData,
		Model: t.Model, Dataset: r.Result.Data, ConfigHash: t.Config.Hash(), Version: version.String(),
		Classes: infer.ClassNames(info.ClassNames, info.Classes), Metrics: map[string]float64{},
		Pipeline: o.Pipeline, WithColumns: o.WithColumns, Refinement: refinementOf(t),
		Files: map[string][]byte{}, Library: o.Library, Unverified: o.Unverified, TestCases: o.TestCases, Log: o.Log,
	}
	if r.Result.Val != nil {
		b.Metrics["val_acc"] = r.Result.ValAcc
	}
	if r.Result.TestAcc != nil {
		b.Metrics["test_acc"] = *r.Result.TestAcc
	}
	if c != nil {
		b.Temperature = c.Temperature
		b.Metrics["calibration_error"], b.Metrics["calibration_error_uncalibrated"] = c.After, c.Before
	}
	constants = map[string]float32{}
	if x := t.Refined; x != nil && !x.Raw {
		b.Bounds = &manifest.Bounds{Lo: x.Lo, Hi: x.Hi}
		constants["lo"], constants["hi"] = x.Lo, x.Hi
	}
	return b, constants, r.task.describe(&b, t, r.testSplit(o.Precision))
}

// testSplit is the test split of the run, where the accuracy on it is to be measured
// because weights are stored with less precision; nil where the data have none.
func (r *Run) testSplit(p onnx.Precision) []int32 {
	if p == onnx.FP32 {
		return nil
	}
	labels := r.task.Info().Labels
	return slices.DeleteFunc(slices.Clone(r.Trained.Split.Test), func(v int32) bool { return labels[v] < 0 })
}

// refinementOf is how a run refines graphs, nil if it does not.
func refinementOf(t *train.Model) *onnx.Refinement {
	x := t.Refined
	if x == nil || x.Raw {
		return nil
	}
	c, rows := t.Config.Candidates, ""
	if t.Module.Func("similar") != nil {
		rows = "similar"
	}
	return &onnx.Refinement{Rows: rows, Together: models.WeighsTogether(t.Module), K: c.K, Similarity: strings.Join(t.Config.Similarities(), "+"), TwoStep: c.TwoStep, Mutual: c.Mutual, Threshold: x.Threshold, Weighted: x.Mode != "threshold", SameClass: t.Config.Model.Edges.SameClass}
}

// exported returns the module without the functions that were not trained, since an
// encoder that took no part has nothing to say, and with an @encode that judges edges by
// itself where evidence does. Robust evidence is left out where it is not read. Functions
// that count edges by their weights in ds read these as they are.
func exported(t *train.Model, ds *data.Dataset) *ir.Module {
	if m := models.WithoutEstimate(t.Module); m != t.Module {
		return m
	}
	judging := t.Refined != nil && t.Module.Func(models.EncodeJudging) != nil
	unit := weightUnit(t, ds)
	if !judging && unit == 0 && (t.Refined == nil || !t.Refined.Raw) {
		return t.Module
	}
	m := t.Module.Clone()
	if gate, ok := t.Params[models.EvidenceGate]; ok && gate[0] == 0 {
		m = models.CloseGate(m)
	}
	if t.Refined.Raw {
		m.Funcs = slices.DeleteFunc(m.Funcs, func(f *ir.Func) bool { return f.Name != "classify" })
		return m
	}
	if judging {
		models.EncodeByItself(m, t.Config.Candidates.Similarity)
	}
	if unit > 0 {
		m = models.CountWeights(m, float64(unit))
	}
	return m
}

// addInfo puts what inference needs beside the models among the files of an export.
func addInfo(b *export.BuildOptions, info *infer.Info) error {
	if b.WeightTransform = string(info.Weights); info.RawWeight != 1 {
		b.RawWeight = info.RawWeight
	}
	text, err := json.MarshalIndent(info, "", "  ")
	b.Files[infer.InfoFile] = append(text, '\n')
	return err
}

// describeRefinement says which graph the classifier reads.
func describeRefinement(info *infer.Info, t *train.Model) {
	switch x := t.Refined; {
	case x == nil:
	case !x.Raw:
		info.Graph, info.RawWeight = "refined", 0
		info.K, info.Mutual, info.Mode, info.Threshold = t.Config.Candidates.K, t.Config.Candidates.Mutual, x.Mode, x.Threshold
		info.SameClass = t.Config.Model.Edges.SameClass
		info.Similarity, info.TwoStep = strings.Join(t.Config.Similarities(), "+"), t.Config.Candidates.TwoStep
		if info.Similarity == config.SimilarityEmbedding {
			info.Similarity = ""
		}
	case x.Mode == "expected":
		info.RawWeight = float32(t.Config.Candidates.Keep)
	}
}

// IsInterrupted reports whether an error is that of work that ctx stopped.
func IsInterrupted(ctx context.Context, err error) bool {
	return errors.Is(err, train.ErrInterrupted) || ctx.Err() != nil && errors.Is(err, ctx.Err())
}
