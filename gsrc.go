// Package gsrc trains graph neural networks that refine their own graph, and
// exports what was trained as ONNX. It is the front of the packages below it,
// and all that the gsrc command can do.
//
//	run, err := gsrc.Train(ctx, gsrc.TrainOptions{Model: "ecl-gsr", Data: "synthetic", Out: "runs/first"})
//	fmt.Println(*run.Result.TestAcc, *run.Result.EdgesAfter)
//	_, err = run.Build(ctx, "dist/first", gsrc.BuildOptions{})
//	_, err = gsrc.Predict(ctx, "dist/first", "synthetic", "pred.csv", gsrc.PredictOptions{})
//
// # A newcomer's map
//
//   - [Prepare] reads data, resolves the configuration for it and builds the
//     program of a model; [Train] runs it. [TrainRuns] repeats that over seeds or
//     fixed splits, [Resume] goes on with a run that was stopped, [OpenRun] reads
//     one that has ended.
//   - [Run.Build] exports a run; it fails with a [*ParityError] where onnxruntime
//     does not compute what was trained. [Verify] repeats the check anywhere.
//   - [Predict] classifies the nodes of a graph with an export.
//   - [Run.Refine] gives the graph that a run has learned, [Refine] also that of an
//     export; [RefinedGraph.WriteFile] writes it as CSV, Parquet, npz or JSON. [Run.Embed]
//     gives the embedding; package lab/charts draws a run.
//   - [Demo] does all of that on generated graphs whose wrong and hidden edges are
//     known.
//
// The packages below can be used by themselves: ir, passes and compiler for
// programs, models for the zoo, data and graph for graphs, train for
// training, export for ONNX, runtime/ort for onnxruntime.
package gsrc
