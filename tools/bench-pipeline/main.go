// Command pipeline times the pipeline.onnx of an export in onnxruntime, in turn with
// its own matrix products, which are what it cannot do without:
//
//	go run ./tools/bench-pipeline -dist DIR -data PATH
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"

	"github.com/gsrc-dev/gsrc/lab/bench"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "pipeline:", err)
		os.Exit(1)
	}
}

func run() error {
	var o bench.PipelineOptions
	flag.StringVar(&o.Dist, "dist", "", "folder of an export with pipeline.onnx")
	flag.StringVar(&o.Data, "data", "", "the graph to run it on")
	flag.IntVar(&o.Threads, "threads", 0, "threads of onnxruntime, 0 for one per processor")
	flag.Float64Var(&o.Seconds, "seconds", 20, "seconds of rounds")
	flag.Parse()
	if o.Dist == "" || o.Data == "" {
		return fmt.Errorf("say what to time with -dist DIR -data PATH")
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	r, err := bench.Pipeline(ctx, o)
	if err != nil {
		return err
	}
	return r.Write(os.Stdout)
}
