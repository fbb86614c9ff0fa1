// Command serving loads a running "gsrc serve" with single-node questions that arrive
// whether or not earlier ones are answered (open loop), while the graph grows and wrong
// bodies come in, and ends the server amid it (make bench-serve). Every answer is then
// held against the whole graph's of the version that it names.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"time"

	"github.com/gsrc-dev/gsrc/lab/bench"
)

func main() {
	o := bench.ServingOptions{Progress: func(s string) { fmt.Fprintln(os.Stderr, s) }}
	flag.StringVar(&o.Gsrc, "gsrc", "bin/gsrc", "the program to load")
	flag.StringVar(&o.Data, "data", defaultData(), "the graph: a path, or the name of a fetched data set")
	flag.Float64Var(&o.Rate, "rate", 2000, "questions a second")
	flag.DurationVar(&o.Time, "time", 15*time.Second, "how long questions come")
	flag.DurationVar(&o.UpdateEvery, "update-every", 500*time.Millisecond, "time between updates of the graph")
	flag.StringVar(&o.Model, "model", "gcn", "the model to train and serve, such as ecl-gsr, for which new edges are found at every update")
	flag.Func("set", "an option of its training, as key=value; may be repeated", func(v string) error { o.Set = append(o.Set, v); return nil })
	flag.IntVar(&o.Versions, "versions", 0, "compare answers of so many versions at most, evenly chosen; 0 for all")
	way := flag.String("way", "both", "how the server updates: incremental, exact (--exact), or both, one after the other")
	p99 := flag.Duration("p99", 0, "fail where the 99th percentile is above; 0 for no bar")
	flag.Parse()
	ways := map[string][]bool{"incremental": {false}, "exact": {true}, "both": {false, true}}[*way]
	if ways == nil {
		fmt.Fprintf(os.Stderr, "serving: -way %q; choose incremental, exact or both\n", *way)
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	for _, o.Exact = range ways {
		r, err := bench.Serving(ctx, o)
		if err == nil {
			r.Write(os.Stdout)
			err = r.Check(*p99)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, "serving:", err)
			os.Exit(1)
		}
	}
}

// defaultData is Cora, from the folder of data sets if one is named.
func defaultData() string {
	if dir := bench.DefaultData(); dir != "" {
		return filepath.Join(dir, "planetoid", "cora")
	}
	return "cora"
}
