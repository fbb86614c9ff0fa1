package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/gsrc-dev/gsrc"
	"github.com/gsrc-dev/gsrc/data"
	"github.com/gsrc-dev/gsrc/export"
	"github.com/gsrc-dev/gsrc/export/onnx"
	"github.com/gsrc-dev/gsrc/runtime/ort"
)

type subject struct {
	name   string // the model's if empty
	model  string
	graphs bool // of a collection of graphs, not of the nodes of one
	set    []string
	builds []build
}

// build is one export of a subject; the folder is named SUBJECT-NAME.
type build struct {
	name string
	o    gsrc.BuildOptions
}

func lowerings(list ...onnx.Lowering) []build {
	var builds []build
	for _, l := range list {
		builds = append(builds, build{string(l), gsrc.BuildOptions{Lowering: l}})
	}
	return builds
}

var (
	pipeline   = build{"pipeline", gsrc.BuildOptions{Lowering: onnx.DegreeBuckets, Pipeline: export.PipelineOn}}
	symmetrize = build{"symmetrize", gsrc.BuildOptions{Lowering: onnx.DegreeBuckets, Symmetrize: true}}
)

// eclGSR are the settings of an ecl-gsr that judges edges by something.
func eclGSR(judge string) []string {
	return []string{"model.edges.judge=" + judge, "train.pretrain_steps=4", "train.joint_every=3", "model.encoder.hidden=8", "model.encoder.projection=8"}
}

// subjects are small: what counts is that every operator that the exporter writes is
// in one of them.
var subjects = []subject{
	{model: "ecl-gsr", set: eclGSR("evidence"),
		builds: append(lowerings(onnx.DegreeBuckets, onnx.PrecomputedBuckets, onnx.Scatter), pipeline, symmetrize)},
	{name: "ecl-gsr-embedding", model: "ecl-gsr", set: eclGSR("embedding"),
		builds: append(lowerings(onnx.DegreeBuckets, onnx.PrecomputedBuckets, onnx.Scatter, onnx.Dense), pipeline, symmetrize)},
	{model: "gcn", builds: append(lowerings(onnx.DegreeBuckets, onnx.PrecomputedBuckets, onnx.Scatter, onnx.Dense),
		build{"sparse-x", gsrc.BuildOptions{Lowering: onnx.DegreeBuckets, SparseX: true}},
		build{"opset-21", gsrc.BuildOptions{Lowering: onnx.DegreeBuckets, Opset: 21}},
		build{"fp16", gsrc.BuildOptions{Lowering: onnx.DegreeBuckets, Precision: onnx.FP16}},
		build{"int8", gsrc.BuildOptions{Lowering: onnx.DegreeBuckets, Precision: onnx.INT8}})},
	{model: "gat", builds: lowerings(onnx.DegreeBuckets, onnx.PrecomputedBuckets, onnx.Scatter)},
	{model: "sage", builds: lowerings(onnx.DegreeBuckets, onnx.Scatter)},
	{model: "gin", graphs: true, set: []string{"model.hidden=4", "model.layers=2"}, builds: lowerings(onnx.DegreeBuckets, onnx.PrecomputedBuckets)},
}

// quick are the exports that a quick check runs. It builds the others, too.
var quick = []string{"gcn-degree-buckets", "gcn-precomputed-buckets", "gcn-scatter"}

// makeExports trains the subjects for a moment on generated data and exports them with
// their test cases. It returns the folders.
func makeExports(ctx context.Context, out string) ([]string, error) {
	lib, err := ort.Ensure(ctx, logf)
	if err != nil {
		return nil, err
	}
	shapes := filepath.Join(out, "shapes.txt")
	if err := os.MkdirAll(out, 0o755); err != nil {
		return nil, err
	}
	if err := os.WriteFile(shapes, []byte(collection(24)), 0o644); err != nil {
		return nil, err
	}
	var folders []string
	for _, s := range subjects {
		name := cmp.Or(s.name, s.model)
		o := gsrc.TrainOptions{Model: s.model, Data: data.Synthetic, Out: filepath.Join(out, "runs", name), Force: true,
			Set: append([]string{"train.epochs=4"}, s.set...)}
		if s.graphs {
			o.Data = shapes
		} else {
			o.Set = append(o.Set, "synthetic.nodes=120", "synthetic.features=8")
		}
		run, err := gsrc.Train(ctx, o)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		for _, b := range s.builds {
			dir := filepath.Join(out, "dist", name+"-"+b.name)
			b.o.TestCases, b.o.Library = true, &lib
			b.o.Pipeline = cmp.Or(b.o.Pipeline, export.PipelineOff) // once is enough
			if _, err := run.Build(ctx, dir, b.o); err != nil {
				return nil, fmt.Errorf("%s-%s: %w", name, b.name, err)
			}
			folders = append(folders, dir)
		}
	}
	return folders, nil
}

// collection is a text of that many graphs in GIN's format: rings (class 0) and stars
// (class 1), of 3 to 8 nodes.
func collection(graphs int) string {
	var b strings.Builder
	fmt.Fprintln(&b, graphs)
	for g := range graphs {
		n, label := 3+g/2%6, g%2
		fmt.Fprintln(&b, n, label)
		for v := range n {
			if label == 0 {
				fmt.Fprintln(&b, v%2, 2, (v+n-1)%n, (v+1)%n)
				continue
			}
			if v > 0 {
				fmt.Fprintln(&b, 1, 1, 0)
				continue
			}
			fmt.Fprintf(&b, "0 %d", n-1)
			for other := 1; other < n; other++ {
				fmt.Fprint(&b, " ", other)
			}
			fmt.Fprintln(&b)
		}
	}
	return b.String()
}
