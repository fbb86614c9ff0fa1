package gsrc_test

import (
	"context"
	"fmt"
	"log"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/gsrc-dev/gsrc"
)

// Train a model that refines its graph, and export it as ONNX. Build fails if
// onnxruntime does not compute what was trained.
func Example() {
	dir, err := os.MkdirTemp("", "gsrc-example-")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	ctx := context.Background()
	run, err := gsrc.Train(ctx, gsrc.TrainOptions{
		Model: "ecl-gsr", Data: "synthetic", Out: filepath.Join(dir, "run"), Seed: 1,
		Set: []string{"synthetic.nodes=200", "train.pretrain_steps=20", "train.epochs=20"},
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("refined:", *run.Result.EdgesAfter != run.Result.EdgesBefore)
	manifest, err := run.Build(ctx, filepath.Join(dir, "dist"), gsrc.BuildOptions{Unverified: !haveRuntime})
	if err != nil {
		log.Fatal(err)
	}
	for _, role := range slices.Sorted(maps.Keys(manifest.Models)) {
		fmt.Println(manifest.Models[role].File)
	}
	// Output:
	// refined: true
	// classifier.onnx
	// encoder.onnx
	// pipeline.onnx
	// scorer.onnx
}

// Classify the nodes of a graph with an export, and keep the graph to ask again while it
// changes.
func ExampleOpenGraph() {
	ctx := context.Background()
	dist := "dist/papers" // from Run.Build, or gsrc build
	all, err := gsrc.Predict(ctx, dist, "papers", "pred.csv", gsrc.PredictOptions{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(all.Classes[all.Predicted[0]])

	g, err := gsrc.OpenGraph(ctx, dist, "papers", gsrc.GraphOptions{Journal: "updates"})
	if err != nil {
		log.Fatal(err)
	}
	defer g.Close()
	a, err := g.Update(ctx, gsrc.Update{Sources: []string{"p1"}, Targets: []string{"p4"}})
	if err != nil {
		log.Fatal(err)
	}
	s := g.Snapshot()
	v, err := s.Find("p1")
	if err != nil {
		log.Fatal(err)
	}
	_, probabilities, err := s.Answer([]int{v})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(a.Version, probabilities)
}

// The graph that a run has learned, with the edges that it has dropped.
func ExampleRun_Refine() {
	run, err := gsrc.Train(context.Background(), gsrc.TrainOptions{
		Model: "ecl-gsr", Data: "synthetic", Seed: 1,
		Set: []string{"synthetic.nodes=100", "train.pretrain_steps=5", "train.epochs=5"},
	})
	if err != nil {
		log.Fatal(err)
	}
	g, err := run.Refine(gsrc.RefineOptions{KeepRemoved: true})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(len(g.Edges) == g.Summary.Kept+g.Summary.New+g.Summary.Removed)
	// Output: true
}
