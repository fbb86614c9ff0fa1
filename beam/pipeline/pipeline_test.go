package pipeline

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/apache/beam/sdks/v2/go/container/tools"
	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	_ "github.com/apache/beam/sdks/v2/go/pkg/beam/io/filesystem/memfs"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/log"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/options/jobopts"
	_ "github.com/apache/beam/sdks/v2/go/pkg/beam/runners/prism"
	_ "github.com/apache/beam/sdks/v2/go/pkg/beam/runners/universal"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/util/grpcx"
	"github.com/parquet-go/parquet-go"

	"github.com/gsrc-dev/gsrc/data"
	"github.com/gsrc-dev/gsrc/export/manifest"
	"github.com/gsrc-dev/gsrc/graph"
	"github.com/gsrc-dev/gsrc/infer"
	"github.com/gsrc-dev/gsrc/internal/orttest"
	"github.com/gsrc-dev/gsrc/models"
	"github.com/gsrc-dev/gsrc/run"
)

// "make conformance-flink" runs these tests on Flink.
var (
	runner    = flag.String("runner", "prism", "runner of Beam's SDK")
	provision = flag.String("provision_endpoint", "", "where a worker that an engine started learns the other addresses")
)

func TestMain(m *testing.M) {
	flag.Parse()
	if *provision != "" {
		ctx := grpcx.WriteWorkerID(context.Background(), flag.Lookup("id").Value.String())
		info, err := tools.ProvisionInfo(ctx, *provision)
		if err == nil {
			err = errors.Join(flag.Set("logging_endpoint", info.GetLoggingEndpoint().GetUrl()), flag.Set("control_endpoint", info.GetControlEndpoint().GetUrl()))
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	beam.Init()
	log.SetupLogging("error", "text")
	nodesOfChunk, edgesOfChunk = 70, 150 // so that small graphs have many elements
	os.Exit(m.Run())
}

// other is a graph that no model was trained on.
func other(nodes int) data.LoadOptions {
	cfg := graph.DefaultCSBM()
	cfg.Nodes = nodes
	return data.LoadOptions{Synthetic: &cfg, Seed: 5}
}

// trained trains a model on a small graph, and exports it.
func trained(t *testing.T, model string, set ...string) (runDir, dist string) {
	t.Helper()
	r := trainedOnly(t, model, set...)
	return r.Dir, exported(t, r)
}

func trainedOnly(t *testing.T, model string, set ...string) *run.Run {
	t.Helper()
	set = append([]string{"synthetic.nodes=300", "train.epochs=3", "train.pretrain_steps=3"}, set...)
	r, err := run.Train(t.Context(), run.TrainOptions{Model: model, Data: "synthetic", Out: filepath.Join(t.TempDir(), "run"), Set: set})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func exported(t *testing.T, r *run.Run) (dist string) {
	t.Helper()
	dist = filepath.Join(t.TempDir(), "dist")
	lib := orttest.Need(t)
	if _, err := r.Build(t.Context(), dist, run.BuildOptions{Unverified: true, Library: &lib}); err != nil {
		t.Fatal(err)
	}
	return dist
}

// shards writes a graph in several files, and returns the options for it.
func shards(t *testing.T, ds *data.Dataset, runDir string) Options {
	t.Helper()
	dir := t.TempDir()
	if err := WriteShards(t.Context(), ds, dir, 3); err != nil {
		t.Fatal(err)
	}
	return Options{Run: runDir, Nodes: dir + "/nodes-*.parquet", Edges: dir + "/edges-*.parquet"}
}

// Shards are written to an empty folder, or beside what an earlier command left that did not end.
func TestWriteShards(t *testing.T) {
	ds, err := data.Load("synthetic", data.LoadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "nodes-00003-of-00004.parquet"+unfinished), nil, 0o666); err != nil {
		t.Fatal(err)
	}
	if err := WriteShards(t.Context(), ds, dir, 2); err != nil {
		t.Fatal(err)
	}
	if names, err := filepath.Glob(dir + "/*"); err != nil || len(names) != 4 {
		t.Errorf("files %v, %v", names, err)
	}
	if err := WriteShards(t.Context(), ds, dir, 2); err == nil || !strings.Contains(err.Error(), "is not empty: it has ") {
		t.Errorf("a folder with shards: %v", err)
	}
}

// A folder whose name looks like a pattern is one; where folders are listed by patterns it is refused.
func TestFolderLikePattern(t *testing.T) {
	for _, name := range []string{"o[1]", "o*", "o?"} {
		dir := filepath.Join(t.TempDir(), name)
		if _, err := leftovers(t.Context(), dir); err != nil {
			t.Errorf("%s, which is not there: %v", name, err)
		}
		if err := errors.Join(os.Mkdir(dir, 0o777), os.WriteFile(filepath.Join(dir, SummaryFile), nil, 0o666)); err != nil {
			t.Fatal(err)
		}
		if _, err := leftovers(t.Context(), dir); err == nil || !strings.Contains(err.Error(), "is not empty: it has "+SummaryFile) {
			t.Errorf("%s, which has a summary: %v", name, err)
		}
		if _, err := leftovers(t.Context(), "memfs://"+name); err == nil || !strings.Contains(err.Error(), "for a pattern") {
			t.Errorf("memfs://%s: %v", name, err)
		}
	}
}

// A pipeline, or shards, that are refused leave alone what another writes to the folder; it is refused while that
// one runs, and not finished where another has ended.
func TestFolderOfAnother(t *testing.T) {
	o := killable(t)
	o.Out = filepath.Join(t.TempDir(), "out")
	theirs := filepath.Join(o.Out, modelName)
	if err := errors.Join(os.Mkdir(o.Out, 0o777), os.WriteFile(theirs, nil, 0o666)); err != nil {
		t.Fatal(err)
	}
	unread := o
	unread.Nodes = "nothing-*.parquet"
	if _, err := Predict(t.Context(), unread); err == nil || !strings.Contains(err.Error(), "nothing-*") {
		t.Errorf("nodes that are not there: %v", err)
	}
	unlock, err := manifest.LockFolder(o.Out)
	if err != nil {
		t.Fatal(err)
	}
	p, err := Predict(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Run(t.Context(), *runner); err == nil || !strings.Contains(err.Error(), "is using "+o.Out) {
		t.Errorf("a folder that another writes to: %v", err)
	}
	ds, err := data.Load("synthetic", other(100))
	if err != nil {
		t.Fatal(err)
	}
	if err := WriteShards(t.Context(), ds, o.Out, 1); err == nil || !strings.Contains(err.Error(), "is using "+o.Out) {
		t.Errorf("shards to a folder that another writes to: %v", err)
	}
	if _, err := os.Stat(theirs); err != nil {
		t.Errorf("what another has written is gone: %v", err)
	}
	unlock()
	if _, err := p.Run(t.Context(), *runner); err != nil {
		t.Error(err)
	}
	if err := os.WriteFile(filepath.Join(o.Out, SummaryFile+unfinished), []byte("{}"), 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := finish(t.Context(), o.Out); err == nil || !strings.Contains(err.Error(), "has a summary.json by now") {
		t.Errorf("an output that is there: %v", err)
	}
}

// A process that ends while it writes a file leaves it in the folder of the output, from which the next removes it.
func TestEndedWhileWriting(t *testing.T) {
	t.Setenv("TMPDIR", filepath.Join(t.TempDir(), "nowhere"))
	out := filepath.Join(t.TempDir(), "out")
	path := join(out, "a.parquet"+unfinished)
	if err := writeFile(t.Context(), path, func(file string) error {
		names, err := leftovers(t.Context(), out)
		if err != nil || len(names) != 1 {
			t.Errorf("while a file is written: %v %v", names, err)
		}
		return errors.Join(os.WriteFile(file, nil, 0o666), os.CopyFS(join(out, "killed"+unfinished), os.DirFS(filepath.Dir(file))))
	}); err != nil {
		t.Fatal(err)
	}
	if names, err := leftovers(t.Context(), out); err != nil || !slices.Equal(names, []string{"a.parquet" + unfinished, "killed" + unfinished}) {
		t.Errorf("when it is written: %v %v", names, err)
	}
	unlock, err := prepare(t.Context(), out)
	if err != nil {
		t.Fatal(err)
	}
	unlock()
	if names, err := list(t.Context(), out); err != nil || len(names) != 0 {
		t.Errorf("before the next: %v %v", names, err)
	}
}

// What is missing of the options, or wrong, is named as its flag is.
func TestRefusedOptions(t *testing.T) {
	good := Options{Run: "run", Nodes: "nodes", Edges: "edges", Out: "out"}
	for want, change := range map[string]func(*Options){
		"--model is missing":  func(o *Options) { o.Run = "" },
		"--nodes is missing":  func(o *Options) { o.Nodes = "" },
		"--edges is missing":  func(o *Options) { o.Edges = "" },
		"--out is missing":    func(o *Options) { o.Out = "" },
		"--partitions is -5;": func(o *Options) { o.Partitions = -5 },
	} {
		o := good
		change(&o)
		if _, err := Predict(t.Context(), o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	if err := WriteShards(t.Context(), nil, "", 1); err == nil || !strings.Contains(err.Error(), "--out is missing") {
		t.Errorf("shards: %v", err)
	}
}

type maker func(context.Context, Options) (*Pipeline, error)

// output runs a pipeline and returns its rows in the order of its files, as text.
func outputOf(t *testing.T, make maker, o Options) (rows []string, sum *Summary) {
	t.Helper()
	o.Out = filepath.Join(t.TempDir(), "out")
	p, err := make(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if sum, err = p.Run(t.Context(), *runner); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(o.Out, SummaryFile))
	var read Summary
	if err == nil {
		err = json.Unmarshal(text, &read)
	}
	if err != nil || len(read.Shards) != int(p.Layout.Partitions) {
		t.Fatalf("%s: %v, %d shards", SummaryFile, err, len(read.Shards))
	}
	left, err := filepath.Glob(o.Out + "/*" + unfinished)
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v %v", left, err)
	}
	for _, s := range sum.Shards {
		list := readRows(t, filepath.Join(o.Out, s.File))
		if len(list) != s.Rows {
			t.Errorf("%s has %d rows, the summary says %d", s.File, len(list), s.Rows)
		}
		rows = append(rows, list...)
	}
	return rows, sum
}

// readRows returns the rows of a Parquet file as texts, floats by their bits.
func readRows(t *testing.T, path string) (rows []string) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	file, err := parquet.OpenFile(f, info.Size())
	if err != nil {
		t.Fatal(err)
	}
	names := file.Schema().Columns()
	for _, g := range file.RowGroups() {
		r := g.Rows()
		buffer := make([]parquet.Row, 100)
		for {
			n, err := r.ReadRows(buffer)
			for _, row := range buffer[:n] {
				var b strings.Builder
				for _, v := range row {
					fmt.Fprintf(&b, "%s=", names[v.Column()][0])
					if v.Kind() == parquet.Float {
						fmt.Fprintf(&b, "%08x ", math.Float32bits(v.Float()))
					} else {
						fmt.Fprintf(&b, "%v ", v)
					}
				}
				rows = append(rows, b.String())
			}
			if err != nil {
				break
			}
		}
		r.Close()
	}
	return rows
}

// cells parses rows as readRows gives them.
func cells(row string) map[string]string {
	m := map[string]string{}
	for _, f := range strings.Fields(row) {
		name, value, _ := strings.Cut(f, "=")
		m[name] = value
	}
	return m
}

func float(t *testing.T, s string) float32 {
	t.Helper()
	var bits uint32
	if _, err := fmt.Sscanf(s, "%x", &bits); err != nil {
		t.Fatalf("%q: %v", s, err)
	}
	return math.Float32frombits(bits)
}

// same runs a pipeline with one partition, and with more and shuffled elements, and fails
// where a byte of the rows, sorted, differs.
func same(t *testing.T, make maker, o Options, partitions ...int64) (rows []string, sum *Summary) {
	t.Helper()
	o.Partitions = 1
	rows, sum = outputOf(t, make, o)
	r := rand.New(rand.NewPCG(1, 2))
	for _, p := range partitions {
		o.Partitions = p
		o.order = func(c []Chunk) { r.Shuffle(len(c), func(i, j int) { c[i], c[j] = c[j], c[i] }) }
		more, s := outputOf(t, make, o)
		if slices.Sort(more); len(more) != len(rows) {
			t.Fatalf("%d partitions gave %d rows, one gave %d", p, len(more), len(rows))
		}
		for i, row := range slices.Sorted(slices.Values(rows)) {
			if row != more[i] {
				t.Fatalf("%d partitions, row %d: %s, with one partition %s", p, i, more[i], row)
			}
		}
		if s.Nodes != sum.Nodes || s.Edges != sum.Edges || !slices.Equal(s.Searches, sum.Searches) || (s.Refined == nil) != (sum.Refined == nil) || s.Refined != nil && *s.Refined != *sum.Refined {
			t.Errorf("%d partitions: %+v, with one %+v", p, s, sum)
		}
	}
	return rows, sum
}

// close fails where a float of rows differs from what one machine gives.
func close(t *testing.T, rows []string, column string, want func(i int) float32) {
	t.Helper()
	for i, row := range rows {
		if got := float(t, cells(row)[column]); !(math.Abs(float64(got-want(i))) <= 1e-5*(1+math.Abs(float64(want(i))))) {
			t.Fatalf("row %d, %s: %v, one machine gives %v", i, column, got, want(i))
		}
	}
}

func checkPredictions(t *testing.T, rows []string, sum *Summary, want *infer.Prediction, edges int) {
	t.Helper()
	if len(rows) != len(want.Predicted) || int(sum.Edges) != edges {
		t.Fatalf("%d rows and %d edges for %d and %d", len(rows), sum.Edges, len(want.Predicted), edges)
	}
	for c, class := range want.Classes {
		close(t, rows, "p_"+class, func(i int) float32 { return want.Probabilities[i*len(want.Classes)+c] })
	}
}

func TestPredict(t *testing.T) {
	lib := orttest.Need(t)
	load := other(400)
	ds, err := data.Load("synthetic", load)
	if err != nil {
		t.Fatal(err)
	}
	for _, model := range []string{"gcn", "sage", "gat"} {
		runDir, dist := trained(t, model)
		want, err := infer.Predict(t.Context(), dist, "synthetic", "", infer.PredictOptions{Load: load, Library: &lib})
		if err != nil {
			t.Fatal(err)
		}
		partitions := []int64{3}
		if model == "gcn" {
			partitions = append(partitions, 16)
		}
		rows, sum := same(t, Predict, shards(t, ds, runDir), partitions...)
		checkPredictions(t, rows, sum, want, ds.Graph.NumEdges())
	}
}

// Cora, by columns with names of their own and in the training's numbers.
func TestPredictCora(t *testing.T) {
	root := os.Getenv("GSRC_DATA")
	if root == "" {
		t.Skip("GSRC_DATA names no folder of data sets")
	}
	path := filepath.Join(root, "planetoid", "cora")
	runDir := filepath.Join(t.TempDir(), "run")
	r, err := run.Train(t.Context(), run.TrainOptions{Model: "gcn", Data: path, Out: runDir, Set: []string{"train.epochs=3"}})
	if err != nil {
		t.Fatal(err)
	}
	rows, sum := same(t, Predict, shards(t, r.Data, runDir), 3)
	_, p, _, err := r.Classify(0)
	if err != nil {
		t.Fatal(err)
	}
	if int(sum.Edges) != r.Data.Graph.NumEdges() || len(rows) != r.Data.Graph.N {
		t.Errorf("%d rows, %d edges", len(rows), sum.Edges)
	}
	if r.Result.Calibration == nil { // else probabilities are those of other logits
		close(t, rows, "p_0", func(i int) float32 { return p[i*r.Data.Classes] })
	}
}

var byEmbedding = []string{"model.edges.judge=embedding", "candidates.two_step=0", "candidates.similarity=embedding", "deepwalk.width=0", "model.encoder.hidden=16"}

func TestRefine(t *testing.T) {
	lib := orttest.Need(t)
	load := other(400)
	ds, err := data.Load("synthetic", load)
	if err != nil {
		t.Fatal(err)
	}
	predict := infer.PredictOptions{Load: load, Library: &lib}
	evidence := []string{"candidates.similarity=evidence", "candidates.two_step=10", "candidates.mutual=false", "model.encoder.hidden=16"}
	t.Run("embedding", func(t *testing.T) {
		runDir, dist := trained(t, "ecl-gsr", byEmbedding...)
		checkRefined(t, shards(t, ds, runDir), dist, "synthetic", predict, 3)
	})
	t.Run("evidence", func(t *testing.T) {
		runDir, _ := trained(t, "ecl-gsr", evidence...)
		checkRefined(t, shards(t, ds, runDir), runDir, "synthetic", predict, 3, 16)
	})
	t.Run("two similarities", func(t *testing.T) {
		runDir, _ := trained(t, "ecl-gsr", append(evidence, "candidates.similarity=features+embedding")...)
		checkRefined(t, shards(t, ds, runDir), runDir, "synthetic", predict, 3)
	})
	t.Run("robust evidence", func(t *testing.T) {
		hubs(t, 8) // most nodes
		runDir, _ := trained(t, "ecl-gsr", append(evidence, "candidates.similarity=embedding", "candidates.mutual=true")...)
		o := shards(t, ds, runDir)
		r, err := run.Open(runDir)
		if err != nil {
			t.Fatal(err)
		}
		r.Trained.Params[models.EvidenceGate][0] = 0.7
		o.changed = func(d *run.Deployed) { d.Params = r.Trained.Params }
		checkRefined(t, o, exported(t, r), "synthetic", predict, 3, 16)
	})
}

// small has buckets of few rows, so that small graphs have many.
func small(t *testing.T) {
	t.Helper()
	was := rowsOfBucket
	rowsOfBucket = 40
	t.Cleanup(func() { rowsOfBucket = was })
}

// Near nodes are found by the same buckets whatever the partitions, with the same recall, and where every node is
// in every bucket nothing is missed.
func TestSearchByBuckets(t *testing.T) {
	ds, err := data.Load("synthetic", other(400))
	if err != nil {
		t.Fatal(err)
	}
	small(t)
	o := shards(t, ds, trainedOnly(t, "ecl-gsr", "candidates.similarity=evidence+embedding", "candidates.two_step=0", "candidates.mutual=false", "model.encoder.hidden=16").Dir)
	o.Partitions = 3
	exact, sum := outputOf(t, Refine, o)
	if want := []Search{{Rows: "embedding", By: SearchExact}, {Rows: "evidence", By: SearchExact}}; !slices.Equal(sum.Searches, want) {
		t.Errorf("%+v", sum.Searches)
	}
	o.Search, o.Copies = SearchBuckets, 2
	_, sum = same(t, Refine, o, 3, 16)
	for _, s := range sum.Searches {
		if s.By != SearchBuckets || s.Buckets != 20 || s.Copies != 2 || s.Full != 0 || s.Queries != int(recallQueries) || s.Recall < 0.3 || s.Recall > 0.95 {
			t.Errorf("%+v", s)
		}
	}
	o.Copies = 0
	was := copiesOfNode
	copiesOfNode = 2
	_, sum = outputOf(t, Refine, o)
	copiesOfNode = was
	for _, s := range sum.Searches {
		if s.Copies <= 2 || s.Recall < WantedRecall {
			t.Errorf("the number of copies was not raised until most neighbours are found: %+v", s)
		}
	}
	o.Copies = 1000
	rows, sum := outputOf(t, Refine, o)
	if !slices.Equal(rows, exact) || sum.Searches[0].Recall != 1 || sum.Searches[1].Recall != 1 {
		t.Errorf("every node is in every bucket, and the output is not that of an exact search: %+v", sum.Searches)
	}
}

func TestWhichSearch(t *testing.T) {
	for _, x := range []struct {
		o     Options
		nodes int64
		want  buckets
	}{
		{Options{}, graph.ApproximateAbove, buckets{}},
		{Options{}, graph.ApproximateAbove + 1, buckets{4096, 8, 32}},
		{Options{Search: SearchExact}, 1e6, buckets{}},
		{Options{Search: SearchBuckets, Copies: 3}, 10, buckets{4096, 3, 3}},
		{Options{}, 1e8, buckets{10000, 8, 32}},
	} {
		if got, err := x.o.buckets(x.nodes); err != nil || got != x.want {
			t.Errorf("%d nodes: %+v, %v", x.nodes, got, err)
		}
	}
	for _, o := range []Options{{Search: "trees"}, {Copies: -1}, {Search: SearchExact, Copies: 8}} {
		if _, err := o.buckets(10); err == nil {
			t.Errorf("%+v was accepted", o)
		}
	}
}

// Cora, with its own options.
func TestRefineCora(t *testing.T) {
	root := os.Getenv("GSRC_DATA")
	if root == "" {
		t.Skip("GSRC_DATA names no folder of data sets")
	}
	path := filepath.Join(root, "planetoid", "cora")
	runDir := filepath.Join(t.TempDir(), "run")
	r, err := run.Train(t.Context(), run.TrainOptions{Model: "ecl-gsr", Data: path, Out: runDir, Set: []string{"train.epochs=3", "train.pretrain_steps=3", "train.joint_every=0"}})
	if err != nil {
		t.Fatal(err)
	}
	checkRefined(t, shards(t, r.Data, runDir), runDir, "", infer.PredictOptions{}, 5)
}

// checkRefined holds the embedding, refined graph and predictions of a pipeline against those that a
// run or an export in a directory gives on one machine.
func checkRefined(t *testing.T, o Options, dir, data string, predict infer.PredictOptions, partitions ...int64) {
	t.Helper()
	h, err := run.Embed(t.Context(), dir, data, predict)
	if err != nil {
		t.Fatal(err)
	}
	rows, _ := same(t, Embed, o, 3)
	for c := range h.Width {
		close(t, rows, fmt.Sprintf("e%d", c), func(i int) float32 { return h.Values[i*h.Width+c] })
	}

	want, err := run.Refine(t.Context(), dir, infer.RefineOptions{Data: data, KeepRemoved: true, Predict: predict})
	if err != nil {
		t.Fatal(err)
	}
	rows, sum := same(t, Refine, o, partitions...)
	if *sum.Refined != (Counts{want.Summary.Kept, want.Summary.New, want.Summary.Removed, sum.Refined.Near}) || want.Summary.New == 0 {
		t.Errorf("%+v, one machine: %+v", *sum.Refined, want.Summary)
	}
	differ := 0
	p := map[string]infer.RefinedEdge{}
	for _, e := range want.Edges {
		p[fmt.Sprint(e.Source, " ", e.Target, " ", e.Status)] = e
	}
	for _, row := range rows {
		x := cells(row)
		e, ok := p[x["source"]+" "+x["target"]+" "+x["status"]]
		if !ok || !(math.Abs(float64(e.Probability-float(t, x["probability"]))) <= 1e-5) || !(math.Abs(float64(e.Weight-float(t, x["weight"]))) <= 1e-5) {
			differ++
			continue
		}
		for _, by := range want.Evidence {
			if got := float(t, x["evidence_"+by.Source]); !(math.Abs(float64(got-by.Values[e.Candidate])) <= 1e-4) {
				t.Fatalf("%s, %s: %v, one machine %v", row, by.Source, got, by.Values[e.Candidate])
			}
		}
	}
	if differ > len(rows)/10000 || len(rows) != len(want.Edges) {
		t.Errorf("%d of %d edges differ from those of one machine, which are %d", differ, len(rows), len(want.Edges))
	}

	predicted, err := run.Predict(t.Context(), dir, data, "", predict)
	if err != nil {
		t.Fatal(err)
	}
	rows, sum = same(t, Predict, o, 3)
	checkPredictions(t, rows, sum, predicted, predicted.Edges)
}

// GRCN, whose edges are judged each by itself, refines, embeds and predicts.
func TestGRCN(t *testing.T) {
	ds, err := data.Load("synthetic", other(100))
	if err != nil {
		t.Fatal(err)
	}
	o := shards(t, ds, trainedOnly(t, "grcn", "train.pretrain_steps=0").Dir)
	for _, make := range []maker{Embed, Refine, Predict} {
		o.Out = t.TempDir()
		if _, err := make(t.Context(), o); err != nil {
			t.Error(err)
		}
	}
}

// What cannot be cut is refused by name, before anything is read or written.
func TestRefused(t *testing.T) {
	ds, err := data.Load("synthetic", other(100))
	if err != nil {
		t.Fatal(err)
	}
	var o Options
	for _, x := range []struct {
		set, directed string
		given         bool
		want          string
	}{
		{"synthetic.degree=40", "false", false, "(spectrum)"},
		{"synthetic.degree=8", "true", false, "with directed edges"},
		{"synthetic.degree=8", "false", true, "--directed was given"},
	} {
		runDir := filepath.Join(t.TempDir(), "run")
		if _, err := run.Train(t.Context(), run.TrainOptions{Model: "ecl-gsr", Data: "synthetic", Out: runDir, Set: []string{"synthetic.nodes=300", "train.epochs=1", "train.pretrain_steps=1", "synthetic.community_size=0", x.set, "data.directed=" + x.directed}}); err != nil {
			t.Fatal(err)
		}
		ds.Graph.Directed = x.directed == "true"
		o = shards(t, ds, runDir)
		o.Out, o.Directed = t.TempDir(), x.given
		for _, make := range []maker{Embed, Refine} {
			if _, err := make(t.Context(), o); err == nil || !strings.Contains(err.Error(), x.want) {
				t.Errorf("%s %s: %v", x.set, x.directed, err)
			}
		}
	}
	o.Directed, o.changed = false, func(d *run.Deployed) { d.Judging, d.Refinement.SameClass = nil, true }
	if _, err := Refine(t.Context(), o); err == nil || !strings.Contains(err.Error(), "model.edges.same_class") {
		t.Errorf("edges between nodes of one class: %v", err)
	}
	o.changed = nil
	if err := os.WriteFile(filepath.Join(o.Out, "other"), nil, 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := Refine(t.Context(), o); err == nil || !strings.Contains(err.Error(), "not empty") {
		t.Errorf("a folder with files: %v", err)
	}
	o = shards(t, ds, trainedOnly(t, "idgl", "train.pretrain_steps=0").Dir)
	o.Out = t.TempDir()
	if _, err := Embed(t.Context(), o); err == nil || !strings.Contains(err.Error(), "has no encoder that was trained") {
		t.Errorf("nodes are embedded by idgl, which has no encoder: %v", err)
	}
}

// Bad files end in an error that says where, and leave nothing that looks whole.
func TestBadFiles(t *testing.T) {
	runDir := filepath.Join(t.TempDir(), "run")
	if _, err := run.Train(t.Context(), run.TrainOptions{Model: "gcn", Data: "synthetic", Out: runDir, Set: []string{"synthetic.nodes=300", "train.epochs=1"}}); err != nil {
		t.Fatal(err)
	}
	ds, err := data.Load("synthetic", other(200))
	if err != nil {
		t.Fatal(err)
	}
	write := func(path string, rows any) {
		t.Helper()
		var err error
		switch rows := rows.(type) {
		case []edgeRow:
			err = parquet.WriteFile(path, rows)
		case []nodeRow:
			err = parquet.WriteFile(path, rows)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for want, damage := range map[string]func(dir string){
		`edges-z.parquet, row 2: no node is called "nobody"`: func(dir string) {
			write(dir+"/edges-z.parquet", []edgeRow{{"1", "2"}, {"3", "nobody"}})
		},
		`the node "7" is there twice: `: func(dir string) {
			write(dir+"/nodes-z.parquet", []nodeRow{{ID: "7", X: make([]float32, ds.X.Cols)}})
		},
		"nodes-z.parquet, row 1: there are 3 features, the model reads 128": func(dir string) {
			write(dir+"/nodes-z.parquet", []nodeRow{{ID: "new", X: make([]float32, 3)}})
		},
	} {
		o := shards(t, ds, runDir)
		damage(filepath.Dir(o.Nodes))
		o.Out, o.Partitions = filepath.Join(t.TempDir(), "out"), 3
		p, err := Predict(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		if _, err = p.Run(t.Context(), *runner); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q: %v", want, err)
		}
		if whole := looksWhole(t, o.Out); len(whole) > 0 {
			t.Errorf("%v are left and look whole", whole)
		}
	}
}

// looksWhole returns files of an output that are there under their own names.
func looksWhole(t *testing.T, out string) (names []string) {
	t.Helper()
	_ = filepath.WalkDir(out, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && !strings.Contains(path, unfinished) {
			names = append(names, path)
		}
		return nil
	})
	return names
}

// until waits until a file matches a pattern, or something has ended.
func until(t *testing.T, pattern string, ended <-chan error) (names []string) {
	t.Helper()
	for range 60_000 {
		if names, _ = filepath.Glob(pattern); len(names) > 0 || len(ended) > 0 {
			return names
		}
		time.Sleep(time.Millisecond)
	}
	t.Fatalf("there is no file %s", pattern)
	return nil
}

// A program that is killed, at any moment, leaves an output that is whole, or has no summary; what is
// started again with the folder of the latter ends in the bytes of one that was not killed.
func TestKilledProgram(t *testing.T) {
	const options = "GSRC_BEAM_OPTIONS"
	if text := os.Getenv(options); text != "" {
		var o Options
		if err := json.Unmarshal([]byte(text), &o); err != nil {
			t.Fatal(err)
		}
		p, err := Predict(t.Context(), o)
		if err == nil {
			_, err = p.Run(t.Context(), *runner)
		}
		if err != nil {
			t.Fatal(err)
		}
		return
	}
	o := killable(t)
	want, _ := outputOf(t, Predict, o)
	killed := 0
	for _, moment := range []string{modelName, "*-00000-*" + unfinished, SummaryFile + unfinished} {
		for _, partitions := range []int64{16, o.Partitions} { // 16 leave files of other names
			o := o
			o.Partitions, o.Out = partitions, filepath.Join(t.TempDir(), "out")
			text, err := json.Marshal(o)
			if err != nil {
				t.Fatal(err)
			}
			c := exec.Command(os.Args[0], append([]string{"-test.run=^TestKilledProgram$"}, os.Args[1:]...)...)
			c.Env = append(os.Environ(), options+"="+string(text))
			if err := c.Start(); err != nil {
				t.Fatal(err)
			}
			ended := make(chan error, 1)
			go func() { ended <- c.Wait() }()
			until(t, filepath.Join(o.Out, moment), ended)
			_ = c.Process.Kill() // it may have ended
			if err := <-ended; err == nil {
				continue // it was faster
			}
			killed++
			if text, err := os.ReadFile(filepath.Join(o.Out, SummaryFile)); err == nil { // it had only the model to remove
				var sum Summary
				if err := json.Unmarshal(text, &sum); err != nil || !slices.Equal(rowsOfShards(t, o.Out, &sum), want) {
					t.Errorf("killed at %s, the output has a summary and other rows, %v", moment, err)
				}
				continue
			}
			o.Partitions = 3
			checkAgain(t, o, want)
		}
	}
	if killed == 0 {
		t.Error("each program had ended before it was killed")
	}
}

func killable(t *testing.T) Options {
	t.Helper()
	runDir := filepath.Join(t.TempDir(), "run")
	if _, err := run.Train(t.Context(), run.TrainOptions{Model: "gcn", Data: "synthetic", Out: runDir, Set: []string{"synthetic.nodes=300", "train.epochs=1"}}); err != nil {
		t.Fatal(err)
	}
	ds, err := data.Load("synthetic", other(400))
	if err != nil {
		t.Fatal(err)
	}
	o := shards(t, ds, runDir)
	o.Partitions = 3
	return o
}

// rowsOfShards returns the rows of an output's files.
func rowsOfShards(t *testing.T, out string, sum *Summary) (rows []string) {
	t.Helper()
	for _, s := range sum.Shards {
		rows = append(rows, readRows(t, filepath.Join(out, s.File))...)
	}
	return rows
}

// checkAgain runs a pipeline into a folder that has something left, and compares.
func checkAgain(t *testing.T, o Options, want []string) {
	t.Helper()
	p, err := Predict(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	sum, err := p.Run(t.Context(), *runner)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(rowsOfShards(t, o.Out, sum), want) {
		t.Error("run again, it gave other rows")
	}
	if all, err := filepath.Glob(o.Out + "/*"); err != nil || len(all) != len(sum.Shards)+1 {
		t.Errorf("beside %d files of rows there are %v, %v", len(sum.Shards), all, err)
	}
}

// A worker that is killed ends the job with an error, of an engine whose workers are processes.
func TestKilledWorker(t *testing.T) {
	if *runner != "universal" {
		t.Skip(`workers of Prism are this process; "make conformance-flink" runs this test`)
	}
	o := killable(t)
	want, _ := outputOf(t, Predict, o)
	dir := t.TempDir()
	script := filepath.Join(dir, "worker")
	text := "#!/bin/sh\ncd " + dir + " && echo $$ >new-$$ && mv new-$$ pid-$$\nexec " + os.Args[0] + " -worker \"$@\"\n"
	if err := os.WriteFile(script, []byte(text), 0o777); err != nil {
		t.Fatal(err)
	}
	environment, config, binary := *jobopts.EnvironmentType, *jobopts.EnvironmentConfig, *jobopts.WorkerBinary
	defer func() {
		*jobopts.EnvironmentType, *jobopts.EnvironmentConfig, *jobopts.WorkerBinary = environment, config, binary
	}()
	*jobopts.EnvironmentType, *jobopts.EnvironmentConfig, *jobopts.WorkerBinary = "PROCESS", `{"command": "`+script+`"}`, os.Args[0]
	for _, moment := range []string{dir + "/pid-*", "*-00000-*" + unfinished} {
		o.Out = filepath.Join(t.TempDir(), "out")
		if !filepath.IsAbs(moment) {
			moment = filepath.Join(o.Out, moment)
		}
		p, err := Predict(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() {
			_, err := p.Run(t.Context(), *runner)
			ended <- err
		}()
		until(t, moment, ended)
		for _, name := range until(t, dir+"/pid-*", ended) {
			var pid int
			if text, err := os.ReadFile(name); err == nil {
				if _, err := fmt.Sscan(string(text), &pid); err == nil {
					if worker, err := os.FindProcess(pid); err == nil {
						_ = worker.Kill() // it may have ended
					}
				}
			}
			os.Remove(name)
		}
		if err := <-ended; err == nil {
			t.Errorf("killed at %s, it ended well", moment)
		}
		if whole := looksWhole(t, o.Out); len(whole) > 0 {
			t.Errorf("%v are left and look whole", whole)
		}
		checkAgain(t, o, want)
	}
}

// What Prism cannot hold is refused before it runs, with advice.
func TestMemory(t *testing.T) {
	x := &Pipeline{Layout: Layout{Nodes: 1e9, Partitions: 16}, Edges: 1e10, prism: prismNeeds{node: 5000, edge: 600}}
	if _, err := x.Run(t.Context(), "prism"); err == nil || !strings.Contains(err.Error(), "Flink") {
		t.Errorf("a billion nodes: %v", err)
	}
}

// A partition gives the same bytes whatever the order of what it is sent.
func TestOrderOfMessages(t *testing.T) {
	l := Layout{Nodes: 10, Partitions: 3}
	for v := range l.Nodes {
		if p := l.owner(v); v < l.start(p) || v >= l.start(p+1) {
			t.Errorf("node %d is of partition %d, which has %d to %d", v, p, l.start(p), l.start(p+1))
		}
	}
	ptr, col := rowsOf(4, 3, []int64{4, 9, 6, 1, 4, 2, 4, 9, 6, 0})
	if !slices.Equal(ptr, []int32{0, 2, 2, 4}) || !slices.Equal(col, []int64{2, 9, 0, 1}) {
		t.Errorf("entries %v %v", ptr, col)
	}
	s := newState(l, 1, ptr, col)
	if !slices.Equal(s.to, []int32{0, 0, 2}) || !slices.Equal(s.rows, []int32{0, 2, 0}) {
		t.Errorf("sent rows %v to %v", s.rows, s.to)
	}
	s.put(valuePrefix+"h", []float32{1, 2, 3}, 3, 1)
	a, b := newTable(), newTable()
	a.put("node", []int64{0, 1, 2}, 3)
	a.put(valuePrefix+"h", []float32{10, 11, 12}, 3, 1)
	b.put("node", []int64{9}, 1)
	b.put(valuePrefix+"h", []float32{19}, 1, 1)
	outside := s.outside(s.col)
	if local := s.local(s.col, outside); !slices.Equal(local, []int32{5, 6, 3, 4}) {
		t.Errorf("sources are numbered %v", local)
	}
	for _, sent := range [][]*table{{a, b}, {b, a}} {
		got, _, err := s.gather("h", outside, outside, sent)
		if err != nil || !slices.Equal(got, []float32{1, 2, 3, 10, 11, 12, 19}) {
			t.Errorf("gathered %v, %v", got, err)
		}
	}
	if _, _, err := s.gather("h", outside, outside, []*table{a}); err == nil {
		t.Error("a row that was not sent is not missed")
	}
	list := newEntries()
	list.add(9, []int64{2, 4, 8}, nil, 0, 3)
	list.put(b, entriesPrefix)
	list = newEntries()
	list.add(0, []int64{1, 6}, nil, 0, 2)
	list.add(1, []int64{0, 4}, nil, 0, 2)
	list.put(a, entriesPrefix)
	for _, sent := range [][]*table{{a, b}, {b, a}} {
		g := s.around(&surroundings{known: joinEntries(sent, entriesPrefix), near: newEntries(), pieces: &pieces{}}, 0, hubEntries)
		if !slices.Equal(g.outside, []int64{0, 1, 2, 8, 9}) || !slices.Equal(g.In.RowPtr, []int32{0, 2, 4, 4, 6, 6, 8, 8, 11}) || !slices.Equal(g.In.Col, []int32{1, 5, 0, 3, 2, 7, 0, 1, 2, 3, 6}) {
			t.Errorf("around a partition: %v %v %v", g.outside, g.In.RowPtr, g.In.Col)
		}
		for i := range g.N {
			if int(g.number(g.node(i))) != i {
				t.Errorf("node %d has the number %d and not %d", g.node(i), g.number(g.node(i)), i)
			}
		}
	}
}

// What a model computed on a partition stays when it computes on one of another size.
func TestPartitionsOfTwoSizes(t *testing.T) {
	o := killable(t)
	o.Out = filepath.Join(t.TempDir(), "out")
	p, err := Predict(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	m, err := parseModel(p.model)
	if err != nil {
		t.Fatal(err)
	}
	const stage = "classify"
	partition := func(n int) *state { // nodes in a row
		ptr, col := []int32{0}, []int64{}
		for i := range n {
			if i > 0 {
				col = append(col, int64(i-1))
			}
			ptr = append(ptr, int32(len(col)))
		}
		s := newState(Layout{int64(n), 1}, 0, ptr, col)
		s.put(valuePrefix+"x", make([]float32, n*p.Width), n, p.Width)
		s.put(valuePrefix+"w", make([]float32, len(col)), len(col))
		return s
	}
	first, second := partition(5), partition(4)
	for i := range m.stages[stage].Parts {
		for _, s := range []*state{first, second} {
			if err := s.compute(m, stage, i, nil, nil); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := first.bytes(); err != nil {
			t.Errorf("after part %d: %v", i, err)
		}
	}
}

// What each stage was sent is counted, and what it took.
func TestStages(t *testing.T) {
	o := killable(t)
	o.Out = filepath.Join(t.TempDir(), "out")
	p, err := Predict(t.Context(), o)
	if err == nil {
		_, err = p.Run(t.Context(), *runner)
	}
	if err != nil {
		t.Fatal(err)
	}
	names, took := []string{}, time.Duration(0)
	for _, s := range p.Stages {
		names, took = append(names, s.Name), took+s.CPU
		if s.Calls == 0 || s.CPU < 0 || (s.Messages == 0) != (s.Bytes == 0) || s.Largest > s.Bytes {
			t.Errorf("%+v", s)
		}
		if s.Name == "write" && (s.Calls != 4 || s.Messages != 3) { // a partition's file, and the summary
			t.Errorf("%+v", s)
		}
	}
	if !slices.Equal(names, []string{"classify", "ingest", "write"}) || took <= 0 || took > p.CPU {
		t.Errorf("%v took %v of %v", names, took, p.CPU)
	}
}
