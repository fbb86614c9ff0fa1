// Package gsrc trains graph neural networks that refine their own graph, and
// exports what was trained as ONNX. It is the front of the packages below it.
//
//	run, err := gsrc.Train(ctx, gsrc.TrainOptions{Model: "ecl-gsr", Data: "synthetic", Out: "runs/first"})
//	fmt.Println(*run.Result.TestAcc, *run.Result.EdgesAfter)
//	_, err = run.Build(ctx, "dist/first", gsrc.BuildOptions{})
//	_, err = gsrc.Predict(ctx, "dist/first", "synthetic", "pred.csv", gsrc.PredictOptions{})
//
// [Train] trains, [Auto] chooses a model before, [Resume] goes on with a run that was stopped, [OpenRun] reads one that
// has ended and [Import] makes one of weights from elsewhere. [Run.Build] exports a run,
// and [Verify] repeats its check anywhere. [Predict] classifies with an export, [Refine]
// gives the graph that a run or an export makes of its data, and [OpenGraph] keeps a graph
// in memory that answers while it changes.
//
// The packages below can be used by themselves: run and infer are what this one puts
// forward; ir, passes and compiler for programs, models for the zoo, data and graph for
// graphs, train for training, export for ONNX, runtime/ort for onnxruntime.
package gsrc

import (
	"context"

	"github.com/gsrc-dev/gsrc/auto"
	"github.com/gsrc-dev/gsrc/export/manifest"
	"github.com/gsrc-dev/gsrc/export/parity"
	"github.com/gsrc-dev/gsrc/infer"
	"github.com/gsrc-dev/gsrc/internal/version"
	"github.com/gsrc-dev/gsrc/run"
	"github.com/gsrc-dev/gsrc/train"
)

// Training; see package run.
type (
	TrainOptions  = run.TrainOptions
	ResumeOptions = run.ResumeOptions
	ImportOptions = run.ImportOptions
	BuildOptions  = run.BuildOptions
	Setup         = run.Setup
	Run           = run.Run
	OptionError   = run.OptionError
	Result        = train.Result
	VerifyOptions = parity.VerifyOptions
	ParityError   = parity.Error
	AutoOptions   = auto.Options
	AutoRun       = auto.Run
)

// Inference with an export; see package infer.
type (
	PredictOptions = infer.PredictOptions
	Prediction     = infer.Prediction
	Embedding      = infer.Embedding
	RefineOptions  = infer.RefineOptions
	RefinedGraph   = infer.RefinedGraph
	GraphOptions   = infer.GraphOptions
	Graph          = infer.Graph
	Update         = infer.Update
)

// Prepare reads data, resolves options and builds the program; [Setup.Train] trains it.
func Prepare(o TrainOptions) (*Setup, error) { return run.Prepare(o) }

// Train trains a model.
func Train(ctx context.Context, o TrainOptions) (*Run, error) { return run.Train(ctx, o) }

// TrainRuns trains with the seeds 0 to runs-1.
func TrainRuns(ctx context.Context, o TrainOptions, runs int, done func(*Run) error) ([]*Result, error) {
	return run.TrainRuns(ctx, o, runs, done)
}

// Resume goes on with the run in a directory.
func Resume(ctx context.Context, dir string, o ResumeOptions) (*Run, error) {
	return run.Resume(ctx, dir, o)
}

// Auto chooses a model for a graph by counts of it and on resplits of its training and validation
// nodes, and trains it; see package auto.
func Auto(ctx context.Context, o AutoOptions) (*AutoRun, error) { return auto.Train(ctx, o) }

// ResumeAuto goes on with a run of [Auto] that was stopped before its end; one that has ended is opened and
// evaluated, as by [Resume].
func ResumeAuto(ctx context.Context, dir string, o AutoOptions) (*AutoRun, error) {
	return auto.Resume(ctx, dir, o)
}

// OpenRun reads a finished run from its directory.
func OpenRun(dir string) (*Run, error) { return run.Open(dir) }

// Import makes a run of weights that were trained elsewhere.
func Import(ctx context.Context, o ImportOptions) (*Run, error) { return run.Import(ctx, o) }

// Verify checks an export on this machine; see [parity.Verify].
func Verify(ctx context.Context, dist string, o VerifyOptions) (*manifest.Manifest, *parity.Report, error) {
	return parity.Verify(ctx, dist, o)
}

// Predict classifies the nodes of a graph with a run or an export, or the graphs of a collection with an export.
func Predict(ctx context.Context, dist, path, out string, o PredictOptions) (*Prediction, error) {
	return run.Predict(ctx, dist, path, out, o)
}

// Refine returns the graph that the model of a run or an export makes of its data.
func Refine(ctx context.Context, dir string, o RefineOptions) (*RefinedGraph, error) {
	return run.Refine(ctx, dir, o)
}

// Embed returns the embedding of nodes by the encoder of a run or an export.
func Embed(ctx context.Context, dir, path string, o PredictOptions) (*Embedding, error) {
	return run.Embed(ctx, dir, path, o)
}

// OpenGraph keeps a graph in memory with an export, to answer for its nodes while it
// changes.
func OpenGraph(ctx context.Context, dist, path string, o GraphOptions) (*Graph, error) {
	return infer.OpenGraph(ctx, dist, path, o)
}

// Version returns the version of gsrc that this program is built with.
func Version() string { return version.String() }

// IsInterrupted reports whether an error is that of work that ctx stopped.
func IsInterrupted(ctx context.Context, err error) bool { return run.IsInterrupted(ctx, err) }
