// Command exports compares gsrc's ONNX files with PyTorch Geometric's export of
// the same two-layer GCN, in one onnxruntime (make bench-exports).
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"

	"github.com/gsrc-dev/gsrc/lab/bench"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "exports:", err)
		os.Exit(1)
	}
}

func run() error {
	o := bench.ExportOptions{Progress: func(s string) { fmt.Fprintln(os.Stderr, s) }}
	flag.StringVar(&o.Python, "python", "python3", "a Python that has lab/bench/baselines/requirements.txt")
	flag.StringVar(&o.Data, "data", bench.DefaultData(), "folder of data sets; what is missing is generated")
	flag.IntVar(&o.Threads, "threads", 0, "threads of onnxruntime, 0 for one per processor")
	flag.Float64Var(&o.Seconds, "seconds", 20, "seconds of rounds for each graph and width")
	flag.StringVar(&o.Keep, "keep", "", "write files and arrays to this folder and keep them")
	graphs := flag.String("graphs", "", "names of graphs separated by commas; default all")
	hidden := flag.String("hidden", "16,128", "widths of the hidden layer")
	flag.Parse()
	if *graphs != "" {
		o.Graphs = strings.Split(*graphs, ",")
	}
	for _, text := range strings.Split(*hidden, ",") {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			return fmt.Errorf("-hidden %s: give widths of at least 1, such as 16,128", *hidden)
		}
		o.Hidden = append(o.Hidden, n)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	r, err := bench.Exports(ctx, o)
	if err != nil {
		return err
	}
	return r.Write(os.Stdout)
}
