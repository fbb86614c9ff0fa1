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
