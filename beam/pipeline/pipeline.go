// Package pipeline uses a trained model on graphs of any size, as pipelines of Apache Beam:
// the nodes are divided into partitions, the model's functions are cut at their message passing
// (passes.Cut) and run by gsrc's own executor, and before each layer partitions exchange the rows
// that they read of each other. An element of a pipeline is a partition, or what one partition
// sends to another.
//
// The output does not depend on the number of partitions, nor on the order of elements.
package pipeline

import (
	"cmp"
	"context"
	"fmt"
	"hash/crc32"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/options/jobopts"

	"github.com/gsrc-dev/gsrc/compiler"
	"github.com/gsrc-dev/gsrc/export/onnx"
	"github.com/gsrc-dev/gsrc/internal/budget"
	"github.com/gsrc-dev/gsrc/internal/rss"
	"github.com/gsrc-dev/gsrc/models"
	"github.com/gsrc-dev/gsrc/passes"
	"github.com/gsrc-dev/gsrc/run"
)

// Options say what is done with which graph.
type Options struct {
	Run string // directory of the trained run
	// Nodes and Edges are patterns of Parquet files. Those of nodes have a column id and the
	// features, either a list of floats called x or a column of numbers each; those of edges
	// have columns source and target, which are ids of nodes.
	Nodes, Edges string
	Out          string // folder for the output
	Partitions   int64  // 0 is one for every 16,384 nodes
	Directed     bool   // edges lead from source to target only; of shards, or as the run was trained, which is taken from it
	Memory       int64  // bytes that Prism may take in this process; 0 is what the process may use
	Search       string // how near nodes are found: exact, buckets, or auto, which is exact up to [graph.ApproximateAbove] nodes; empty is auto
	Copies       int    // buckets that a node is in; 0 is 8 to 32, as many as a sample needs for [WantedRecall]

	columns []string            // names of the features, nil where they have none but a list
	width   int                 // number of features
	order   func([]Chunk)       // of tests: the order of elements
	changed func(*run.Deployed) // likewise the model
}

// The kinds of output.
const (
	kindPredictions = "predictions"
	kindEmbedding   = "embedding"
	kindRefined     = "refined"
)

const nodesOfPartition = 16 << 10

// Predict makes a pipeline that classifies the nodes of a graph.
func Predict(ctx context.Context, o Options) (*Pipeline, error) {
	return newPipeline(ctx, o, kindPredictions)
}

// Embed makes a pipeline that writes what the model's encoder makes of the nodes.
func Embed(ctx context.Context, o Options) (*Pipeline, error) {
	return newPipeline(ctx, o, kindEmbedding)
}

// Refine makes a pipeline that writes the graph that the model makes of another one.
func Refine(ctx context.Context, o Options) (*Pipeline, error) {
	return newPipeline(ctx, o, kindRefined)
}

// Pipeline is a pipeline that is ready to run.
type Pipeline struct {
	Beam   *beam.Pipeline
	Layout Layout
	Edges  int64 // rows of the edges' files
	Width  int   // features
	// When it has run, what its functions took in this process, and the process in all, the engine included
	// where it runs here.
	Stages  []Stage
	CPU     time.Duration
	options Options
	prism   prismNeeds
	model   []byte
}

// given reports the flag of an option that is missing.
func given(flag, value, doc string) error {
	if value == "" {
		return fmt.Errorf("--%s is missing: give the %s", flag, doc)
	}
	return nil
}

func newPipeline(ctx context.Context, o Options, kind string) (*Pipeline, error) {
	if err := cmp.Or(given("model", o.Run, "directory of a trained run"), given("nodes", o.Nodes, "pattern of the nodes' Parquet files"),
		given("edges", o.Edges, "pattern of the edges' Parquet files"), given("out", o.Out, "folder for the output")); err != nil {
		return nil, err
	}
	if o.Partitions < 0 {
		return nil, fmt.Errorf("--partitions is %d; give a number from 1 on, or 0, which is one for every 16,384 nodes", o.Partitions)
	}
	r, err := run.Open(o.Run)
	if err != nil {
		return nil, err
	}
	if err := r.CheckDirected(o.Directed); err != nil {
		return nil, err
	}
	d, err := r.Deploy()
	if err != nil {
		return nil, err
	}
	if kind == kindPredictions {
		if d.Classes, err = r.ClassNames(); err != nil {
			return nil, err
		}
	}
	o.Directed = d.Directed
	if o.changed != nil {
		o.changed(d)
	}
	if _, err := leftovers(ctx, o.Out); err != nil {
		return nil, err
	}
	o.width = d.Features
	if d.Columns != nil {
		o.columns = d.Columns.Features()
	}
	nodes, n, err := chunks(ctx, o.Nodes, nodesOfChunk, func(*parquetFile) error { return nil })
	if err != nil {
		return nil, err
	}
	edges, e, err := chunks(ctx, o.Edges, edgesOfChunk, func(f *parquetFile) error {
		if mark, _ := f.Lookup(directedKey); mark == "false" && d.Directed {
			return fmt.Errorf("%s has edges without a direction, and %s was trained on edges with one: write the shards with gsrc-beam shards --model %s, or with --directed", f.path, o.Run, o.Run)
		}
		return nil // a run without directions reads any edges in both, as it does on one machine
	})
	if err != nil {
		return nil, err
	}
	if n == 0 {
		return nil, fmt.Errorf("%s: there are no nodes", o.Nodes)
	}
	if o.columns == nil {
		if o.columns, err = featureColumns(ctx, nodes[0].Path); err != nil {
			return nil, err
		}
	}
	l := Layout{Nodes: n, Partitions: o.Partitions}
	if l.Partitions == 0 {
		l.Partitions = (n + nodesOfPartition - 1) / nodesOfPartition
	}
	l.Partitions = min(l.Partitions, n)

	if o.order != nil {
		o.order(nodes)
		o.order(edges)
	}
	p, s := beam.NewPipelineWithRoot()
	x := &Pipeline{Beam: p, Layout: l, Edges: e, Width: o.width, options: o}
	out := &output{Kind: kind, Model: d.Model, Out: o.Out, Layout: l, Directed: o.Directed, Classes: d.Classes, Refinement: d.Refinement}
	return x, x.build(s, d, out, nodes, edges)
}

// builder makes the pipeline.
type builder struct {
	scope    beam.Scope
	d        *run.Deployed
	layout   Layout
	directed bool
	stages   map[string]*stage
	evidence *run.Evidence // that judges edges; nil: embeddings do
	near     int           // neighbours of a node that evidence looks for the nearest of
	model    ModelFile
	out      *output
	buckets  buckets // by which near nodes are found; Size is 0 where all are compared
	reports  []beam.PCollection
}

func (x *Pipeline) build(s beam.Scope, d *run.Deployed, out *output, nodes, edges []Chunk) error {
	b := &builder{scope: s, d: d, layout: x.Layout, stages: map[string]*stage{}, out: out}
	var err error
	if b.buckets, err = x.options.buckets(x.Layout.Nodes); err != nil {
		return err
	}
	refines, encodes := d.Refinement != nil, false
	if refines {
		encodes = out.Kind == kindEmbedding || d.Judging == nil || slices.Contains(similarities(d.Refinement), embeddingValue)
	}
	if err := b.compile(refines, encodes); err != nil {
		return err
	}
	if refines && x.options.Directed && (d.Judging != nil || out.Kind != kindEmbedding && d.Refinement.TwoStep > 0) {
		if encodes {
			return fmt.Errorf("%s was trained with directed edges, which it reads in their direction where it encodes, and in both where it judges or finds them: use gsrc on one machine", d.Model)
		}
		x.options.Directed, out.Directed = false, false // a refined graph has no directions
	}
	b.directed = x.options.Directed
	x.prism = b.prismNeeds()
	if x.model, err = blob(d, b.stages); err != nil {
		return err
	}
	b.model = ModelFile{join(x.options.Out, modelName), crc32.ChecksumIEEE(x.model)}
	states := ingest(s, &x.options, x.Layout, nodes, edges)
	if encodes {
		if b.evidence != nil {
			states = b.rewire(b.judge(b.pairs(s, states, []string{"x"}), false), onnx.Refinement{Weighted: true})
		}
		states = b.layers(s, states, "encode", "x")
	}
	switch {
	case out.Kind == kindEmbedding:
	case refines:
		states = b.refine(states)
	default:
		states, _ = alone(s, "ingest", weighFn{"w", d.RawWeight}, states)
	}
	if out.Kind == kindPredictions {
		if refines {
			states = b.rewire(states, *d.Refinement)
		}
		states = b.layers(s, states, "classify")
	}
	out.write(s, states, b.reports)
	return nil
}

// compile makes the stages.
func (b *builder) compile(refines, encodes bool) error {
	d := b.d
	cut := func(name string) error {
		parts, err := d.Cut(name, compiler.Inference, passes.DataInfo{})
		if err == nil {
			if err = parts.ReadsAll(); err != nil {
				err = fmt.Errorf("%s cannot be used in parts of a graph: %w", d.Model, err)
			}
		}
		if err == nil {
			b.stages[name] = newStage(parts)
		}
		return err
	}
	switch {
	case b.out.Kind == kindEmbedding:
		if err := d.Embeds(); err != nil {
			return err
		}
	case b.out.Kind == kindRefined || refines && b.out.Kind != kindEmbedding:
		if err := d.InParts(); err != nil {
			return err
		}
		if b.out.Kind == kindRefined && d.Refinement.SameClass {
			return fmt.Errorf("the model %s writes edges between nodes of one class (model.edges.same_class), for which it would classify the nodes before: refine with gsrc refine, or train the model with --set model.edges.same_class=false", d.Model)
		}
	}
	switch {
	case d.Judging != nil:
		e, err := d.Evidence()
		if err != nil {
			return err
		}
		b.evidence, b.near = e, nearGraph(e.Pairs)
		b.stages["rows"], b.stages[tablesStage], b.stages[pairsStage] = newStage(e.Rows), newStage(e.Tables), &stage{Text: e.Pairs.String()}
		for i, tables := range e.Rounds {
			b.stages[models.WeightFunc(i+1)] = newStage(tables)
		}
	case refines && b.out.Kind != kindEmbedding:
		p, err := compiler.Compile(d.Module, compiler.Options{Target: compiler.Inference, Funcs: []string{"score"}})
		if err != nil {
			return err
		}
		b.stages["score"] = &stage{Text: p.Module.String()}
	}
	if encodes {
		if err := cut("encode"); err != nil {
			return err
		}
	}
	if b.out.Kind != kindPredictions {
		return nil
	}
	if d.Module.Func("classify") == nil {
		return fmt.Errorf("the model %s has no classifier", d.Model)
	}
	return cut("classify")
}

// Run runs the pipeline on a runner of Beam's SDK. Files of the output get their names when it
// has ended without an error, the summary last.
func (x *Pipeline) Run(ctx context.Context, runner string) (*Summary, error) {
	if strings.HasPrefix(strings.ToLower(runner), "prism") && (inProcess || *jobopts.Endpoint == "") {
		inProcess = true
		if err := x.fits(); err != nil {
			return nil, err
		}
	}
	unlock, err := prepare(ctx, x.options.Out)
	if err != nil {
		return nil, err
	}
	defer unlock()
	if err := writeFile(ctx, join(x.options.Out, modelName), func(path string) error { return os.WriteFile(path, x.model, 0o666) }); err != nil {
		return nil, err
	}
	_, began := stages(), rss.CPU()
	if _, err := beam.Run(ctx, runner, x.Beam); err != nil {
		// The SDK puts plans and stages before what a function said.
		text := err.Error()
		if at := strings.LastIndex(text, "failed:\n"); at >= 0 {
			return nil, fmt.Errorf("the pipeline failed: %s", strings.TrimSpace(text[at+len("failed:\n"):]))
		}
		return nil, err
	}
	x.Stages, x.CPU = stages(), rss.CPU()-began
	return finish(ctx, x.options.Out)
}

// inProcess tells that the SDK has started Prism, and given its flags the address.
var inProcess bool

// prismNeeds is what Prism, which keeps the elements of all stages in memory, takes in bytes.
type prismNeeds struct{ node, nodeOfPartition, edge int64 }

// prismNeeds are as they were measured (docs/beam.md): of features, rows by which nodes are compared or
// judged, entries and candidates some copies for each stage that holds them. Where evidence judges, each
// partition is sent rows of most nodes.
func (b *builder) prismNeeds() prismNeeds {
	features := int64(b.d.Features)
	if b.evidence == nil && (b.d.Refinement == nil || b.out.Kind == kindEmbedding) {
		return prismNeeds{node: 600 + 40*features, edge: 600}
	}
	p := prismNeeds{node: 600 + 160*features, edge: 2100}
	if b.evidence != nil {
		width := int64(models.EvidenceWidth(b.d.Features, 0))
		p.node, p.nodeOfPartition = p.node+460*width, 55*width
	}
	if b.buckets.Size > 0 { // rows, and lists of near nodes, of each copy
		p.node += int64(b.buckets.Copies) * (6*int64(b.d.Features) + 24*int64(b.d.Refinement.K))
	}
	if b.stages["encode"] != nil {
		width, _ := b.d.Module.Func("encode").Result("embedding").Type.Dims[1].Size()
		p.node += 90 * int64(width)
	}
	return p
}

// fits returns an error where Prism, in this process, would take more memory than there is, and has
// garbage collected before it does.
func (x *Pipeline) fits() error {
	have := x.options.Memory
	if have == 0 {
		have, _ = budget.Default()
	}
	need := x.Layout.Nodes*(x.prism.node+x.prism.nodeOfPartition*(x.Layout.Partitions-1)) + x.Edges*x.prism.edge
	if need <= have {
		debug.SetMemoryLimit(have)
		return nil
	}
	return fmt.Errorf("the runner Prism keeps the whole graph in memory, about %s for %d nodes with %d features and %d edges, of which there are %s: use a graph store on one machine (docs/scale.md), or Flink (--runner=universal --endpoint=HOST:PORT, docs/beam.md)",
		budget.Format(need), x.Layout.Nodes, x.Width, x.Edges, budget.Format(have))
}
