// Command gsrc-beam uses trained models of gsrc on graphs of any size, by Apache Beam.
package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"slices"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/log"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/runners"
	_ "github.com/apache/beam/sdks/v2/go/pkg/beam/x/beamx" // all runners and file systems

	"github.com/gsrc-dev/gsrc/beam/pipeline"
	"github.com/gsrc-dev/gsrc/data"
	"github.com/gsrc-dev/gsrc/internal/budget"
	"github.com/gsrc-dev/gsrc/internal/nearest"
	"github.com/gsrc-dev/gsrc/run"
)

const usage = `gsrc-beam uses a trained run of gsrc on a graph in Parquet files, by Apache Beam.

  gsrc-beam predict --model RUN --nodes PATTERN --edges PATTERN --out FOLDER
  gsrc-beam embed   --model RUN --nodes PATTERN --edges PATTERN --out FOLDER
  gsrc-beam refine  --model RUN --nodes PATTERN --edges PATTERN --out FOLDER
  gsrc-beam shards  --data PATH --out FOLDER [--model RUN]

Flags, those of Beam's Go SDK among them:
`

func main() {
	var o pipeline.Options
	flag.StringVar(&o.Run, "model", "", "directory of the trained run; shards: whose columns are written, all without it")
	flag.StringVar(&o.Nodes, "nodes", "", "pattern of the nodes' Parquet files: id, and a list x of the features or a column each")
	flag.StringVar(&o.Edges, "edges", "", "pattern of the edges' Parquet files: source and target")
	flag.StringVar(&o.Out, "out", "", "folder for the output")
	flag.Int64Var(&o.Partitions, "partitions", 0, "number of partitions; 0 is one for every 16,384 nodes")
	flag.BoolVar(&o.Directed, "directed", false, "shards: keep the direction of edges; the others do as the run did in training")
	flag.StringVar(&o.Search, "search", "auto", "how near nodes are found: exact, buckets, or auto, which is exact up to 200,000 nodes")
	flag.IntVar(&o.Copies, "copies", 0, "buckets that a node is in; 0 is 8 to 32, as many as a sample needs to find 95 % of near nodes")
	measure := flag.Bool("stages", false, "print what each stage was sent, and what it took of processors")
	source := flag.String("data", "", "shards: a graph in any form that gsrc reads")
	files := flag.Int("files", 4, "shards: files of nodes, and of edges")
	level := flag.String("log_level", "none", "what the SDK logs: none, debug, info, warn or error")
	memory := flag.String("memory", "", "memory that Prism may take in this process, such as 4GiB; empty is what the process may use")
	flag.Usage = func() {
		fmt.Fprint(flag.CommandLine.Output(), usage)
		flag.PrintDefaults()
	}
	command, args := "", os.Args[1:]
	if len(args) > 0 && args[0] != "" && args[0][0] != '-' {
		command, args = args[0], args[1:]
	}
	_ = flag.CommandLine.Parse(args) // exits where it fails
	if command != "" && flag.NArg() > 0 {
		fmt.Fprintln(os.Stderr, "gsrc-beam:", tooMany(flag.Arg(0)))
		os.Exit(2)
	}
	if err := cmp.Or(refuseUndirected(flag.CommandLine, o.Run), refuseUnwaited(flag.CommandLine)); err != nil {
		fail(err)
	}
	beam.Init() // of a worker, does not return
	if slog.SetDefault(slog.New(slog.DiscardHandler)); *level != "none" {
		log.SetupLogging(*level, "text")
	} else {
		log.SetLogger(lastWords{})
	}
	if *runners.Runner == "" {
		*runners.Runner = "prism"
	}
	if err := checkRunner(*runners.Runner); err != nil {
		fail(err)
	}
	ctx := context.Background()
	var err error
	if *memory != "" {
		if o.Memory, err = budget.Parse(*memory); err != nil {
			fail(err)
		}
	}
	switch command {
	case "predict":
		err = do(ctx, o, *measure, pipeline.Predict)
	case "embed":
		err = do(ctx, o, *measure, pipeline.Embed)
	case "refine":
		err = do(ctx, o, *measure, pipeline.Refine)
	case "shards":
		var ds *data.Dataset
		if ds, err = pipeline.LoadFor(o.Run, *source, o.Directed); err == nil {
			for _, text := range ds.Notes {
				fmt.Fprintln(os.Stderr, text)
			}
			err = pipeline.WriteShards(ctx, ds, o.Out, *files)
		}
	default:
		flag.Usage()
		fmt.Fprintln(os.Stderr, "\ngsrc-beam:", unknown(command))
		os.Exit(2)
	}
	if err != nil {
		fail(err)
	}
}

// unknown says what is wrong with a command that is none.
func unknown(command string) string {
	if command == "" {
		return "the first argument must be a command: predict, embed, refine or shards"
	}
	return fmt.Sprintf("no command %q%s", command, nearest.Hint(command, []string{"predict", "embed", "refine", "shards"}))
}

// tooMany says that an argument is none of a flag.
func tooMany(arg string) string {
	return fmt.Sprintf("%q is one argument too many; put patterns of files in quotes, or the shell gives the files in their place", arg)
}

// refuseUndirected refuses --directed=false for a run that was trained on a directed graph.
func refuseUndirected(flags *flag.FlagSet, dir string) (err error) {
	flags.Visit(func(f *flag.Flag) {
		if f.Name == "directed" && f.Value.String() == "false" && dir != "" {
			err = run.RefuseUndirected(dir)
		}
	})
	return err
}

// refuseUnwaited refuses the SDK's flags by which a job does not run, or is not waited for.
func refuseUnwaited(flags *flag.FlagSet) (err error) {
	flags.Visit(func(f *flag.Flag) {
		if (f.Name == "dry_run" || f.Name == "async") && f.Value.String() == "true" {
			err = fmt.Errorf("--%s was given: gsrc-beam runs the job and waits for its end, when files of the output get their names; leave the flag out", f.Name)
		}
	})
	return err
}

// runnerNames are what the SDK calls the runners that run a pipeline; it ends the process where one has another name.
var runnerNames = []string{"prism", "direct", "universal", "portable", "flink", "spark", "dataflow",
	"PrismRunner", "DirectRunner", "PortableRunner", "FlinkRunner", "SparkRunner", "DataflowRunner"}

// checkRunner returns an error where no runner has a name.
func checkRunner(name string) error {
	if slices.Contains(runnerNames, name) {
		return nil
	}
	return fmt.Errorf("--runner is %q, which is none%s", name, nearest.Hint(name, runnerNames))
}

// lastWords logs nothing but why the SDK ends the process.
type lastWords struct{}

func (lastWords) Log(_ context.Context, severity log.Severity, _ int, text string) {
	if severity == log.SevFatal {
		fmt.Fprintln(os.Stderr, "gsrc-beam:", text)
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "gsrc-beam:", err)
	os.Exit(1)
}

func do(ctx context.Context, o pipeline.Options, measure bool, build func(context.Context, pipeline.Options) (*pipeline.Pipeline, error)) error {
	p, err := build(ctx, o)
	if err != nil {
		return err
	}
	sum, err := p.Run(ctx, *runners.Runner)
	if err != nil {
		return err
	}
	fmt.Printf("%s: %d nodes, %d edges, %d files of %s\n", o.Out, sum.Nodes, sum.Edges, len(sum.Shards), sum.Kind)
	if measure {
		fmt.Printf("%-12s %8s %9s %12s %12s %12s\n", "stage", "calls", "messages", "MB sent", "MB a call", "CPU seconds")
		rest := p.CPU
		for _, s := range p.Stages {
			fmt.Printf("%-12s %8d %9d %12.1f %12.1f %12.2f\n", s.Name, s.Calls, s.Messages, float64(s.Bytes)/1e6, float64(s.Largest)/1e6, s.CPU.Seconds())
			rest -= s.CPU
		}
		fmt.Printf("%-12s %57.2f\n", "the rest", rest.Seconds())
	}
	for _, s := range sum.Searches {
		if s.By == pipeline.SearchExact {
			fmt.Printf("candidates by %s: exact search\n", s.Rows)
			continue
		}
		fmt.Printf("candidates by %s: %d buckets, %d of them split, each node in %d; recall %.3f of %d nodes drawn\n", s.Rows, s.Buckets, s.Full, s.Copies, s.Recall, s.Queries)
		if s.Recall < pipeline.WantedRecall {
			fmt.Printf("candidates by %s: recall is below %g; more --copies find more\n", s.Rows, pipeline.WantedRecall)
		}
	}
	return nil
}
