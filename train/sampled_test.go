package train

import (
	"context"
	"errors"
	"math"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/gsrc-dev/gsrc/config"
	"github.com/gsrc-dev/gsrc/data"
	"github.com/gsrc-dev/gsrc/data/store"
	"github.com/gsrc-dev/gsrc/graph"
	"github.com/gsrc-dev/gsrc/internal/budget"
	"github.com/gsrc-dev/gsrc/ir"
	"github.com/gsrc-dev/gsrc/models"
)

// On all neighbours, in one batch, a step is that of the whole graph but for rounding.
func TestAllNeighborsAreTheWholeGraph(t *testing.T) {
	ds := synthetic(t, 3)
	for _, model := range []string{"sage", "gcn", "gcn of smoothed predictions", "gin", "gat", "gcnii", "acm"} {
		model, smoothed, _ := strings.Cut(model, " of ")
		plain := []string{"train.epochs=3", "model.dropout=0", "model.input_dropout=0", "model.gat.attention_dropout=0"}
		if smoothed != "" { // which reads more neighbours than the loss does
			plain = append(plain, "model.smooth.alpha=0.8", "train.fanouts=100,100")
		}
		want := run(t, model, ds, Options{}, plain...)
		got := run(t, model, ds, Options{}, append(plain, "train.sampler=neighbors")...)
		cfg := configure(t, model, append(plain, "train.sampler=neighbors")...)
		module, err := Nodes(ds).Module(model, cfg)
		if err != nil {
			t.Fatal(err)
		}
		given, err := Train(t.Context(), Job{Model: model, Module: module, Task: Nodes(ds)}, cfg, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(given.Trained.Params, got.Trained.Params) {
			t.Errorf("%s: the zoo's own program as the job's has other parameters", model)
		}
		tr := started(t, Job{Model: model, Task: Nodes(ds)}, configure(t, model, append(plain, "train.sampler=neighbors")...), Options{})
		if _, err := tr.steps.function("train"); err != nil {
			t.Fatal(err)
		}
		if n := tr.steps.(*nodeSteps).sampled["train"].hops; n < 2 {
			t.Errorf("%s: a step is divided by %d hops", model, n)
		}
		tr.close()
		for name, w := range want.Trained.Params {
			for i, v := range got.Trained.Params[name] {
				if !(math.Abs(float64(v-w[i])) <= 2e-4) {
					t.Fatalf("%s: parameter %s is %v, on the whole graph %v", model, name, v, w[i])
				}
			}
		}
	}
}

// Programs of one's own get the weights of what is drawn as the zoo's do, and a function of which a
// part cannot is named.
func TestDrawnWeightsInPrograms(t *testing.T) {
	ds := synthetic(t, 3)
	for _, c := range []struct {
		model, set string
		unweighed  []string
	}{
		{"gcn", "", nil}, {"gin", "", nil}, {"gcnii", "", nil}, {"acm", "", nil}, {"grand", "", nil}, {"linear", "model.linear.steps=2", nil},
		{"sage", "", nil}, {"gat", "", nil}, {"mlp", "", nil},
		{"ecl-gsr", "train.joint_every=0", nil}, {"ecl-gsr", "model.classifier=gat", nil}, {"ecl-gsr", "model.encoder.kind=gat", nil}, {"ecl-gsr", "model.views.drop_edges=0", []string{"pretrain", "joint"}},
		{"ecl-gsr", "candidates.structure=raw", nil},
	} {
		sets := []string{"train.sampler=neighbors", "train.fanout=2", "train.epochs=3", "train.pretrain_steps=3", "train.joint_every=1"}
		if c.set != "" {
			sets = append(sets, c.set)
		}
		cfg := configure(t, c.model, sets...)
		module, err := Nodes(ds).Module(c.model, cfg)
		if err != nil {
			t.Fatal(err)
		}
		var warned []string
		got, err := Train(t.Context(), Job{Model: "mine.gsr", Module: module, Task: Nodes(ds)}, cfg, Options{Warn: func(s string) { warned = append(warned, s) }})
		if err != nil {
			t.Fatal(err)
		}
		var unweighed []string
		for _, s := range warned {
			if name, _, ok := strings.Cut(s, " sums over neighbours"); ok {
				unweighed = append(unweighed, strings.TrimPrefix(name, "@"))
			}
		}
		if !slices.Equal(unweighed, c.unweighed) {
			t.Errorf("%s %s: it warns %q", c.model, c.set, warned)
		}
		if c.model == "sage" || c.model == "gat" || strings.HasPrefix(c.set, "model.") && c.model == "ecl-gsr" { // the zoo has other operations on weights, or none
			continue
		}
		if want := run(t, c.model, ds, Options{}, sets...); !reflect.DeepEqual(got.Trained.Params, want.Trained.Params) {
			t.Errorf("%s %s: the zoo's own program as one of the user's has other parameters", c.model, c.set)
		}
	}
}

// What a program does with values of entries decides whether weights of what is drawn can be given to it.
func TestDrawnWeightsAreGivenOnce(t *testing.T) {
	ds := synthetic(t, 3)
	weighted := *ds
	weighted.Graph = &graph.Graph{N: ds.Graph.N, Edges: ds.Graph.Edges, Weights: make([]float32, len(ds.Graph.Edges))}
	for i := range weighted.Graph.Weights {
		weighted.Graph.Weights[i] = 1 + float32(i%4)
	}
	program := func(attrs, param, args, body string) string {
		sum := func(of string) string {
			return "  %h = matmul %x, $" + param + " : f32[N,hidden]\n" + of + "  %l = matmul %s, $v : f32[N,classes]\n"
		}
		return "module @mine" + attrs + "\nparam $" + param + ": f32[features,hidden] {group=\"classifier\", init=\"glorot\"}\nparam $v: f32[hidden,classes] {group=\"classifier\", init=\"glorot\"}\n" +
			"func @train(%x: f32[N,features], %g: graph<N,E>, %train_idx: i64[T], %labels: i64[T]" + args + ") -> (loss: f32[]) {differentiate=\"loss\"} {\n" + sum(body) +
			"  %rows = gather %l, %train_idx : f32[T,classes]\n  %xent = cross_entropy %rows, %labels : f32[]\n  return %xent\n}\n" +
			"func @classify(%x: f32[N,features], %g: graph<N,E>) -> (logits: f32[N,classes], probabilities: f32[N,classes]) {\n" + sum("  %s = spmm %g, _, _, %h : f32[N,hidden]\n") + "  %p = softmax %l : f32[N,classes]\n  return %l, %p\n}\n"
	}
	normed := "  %a, %self = gnn.sym_norm %g, _ : f32[E], f32[N]\n"
	plain := "  %s = spmm %g, _, _, %h : f32[N,hidden]\n"
	for name, c := range map[string]struct {
		text, says string // what is warned of, or the error
		ds         *data.Dataset
	}{
		"a place that is free":            {program("", "u", "", normed+"  %s = spmm %g, %a, %self, %h : f32[N,hidden]\n"), "", ds},
		"of weights that are not read":    {program("", "u", "", plain), "", &weighted},
		"edges dropped after the norm":    {program("", "u", "", normed+"  %k = gsr.drop_edges %g {rate=0.0, stream=\"k\"} : f32[E]\n  %b = mul %a, %k : f32[E]\n  %s = spmm %g, %b, %self, %h : f32[N,hidden]\n"), "more than one might", ds},
		"ones that are no weights":        {program("", "u", "", "  %o = edge_ones %g : f32[E]\n  %q = sub %o, %o : f32[E]\n  %s = spmm %g, %q, _, %h : f32[N,hidden]\n"), "more than one might", ds},
		"a parameter of their name":       {program("", "w", "", plain), "no weight of edges reaches", ds},
		"sums into a block":               {program("", "u", "", "  %b, %src, %ent = sample_block %g, %train_idx : graph<T,e,s>, i64[s], i64[e]\n  %hs = gather %h, %src : f32[s,hidden]\n  %y = spmm %b, _, _, %hs : f32[T,hidden]\n  %s = scatter_add %y, %train_idx : f32[N,hidden]\n"), "no weight of edges reaches", ds},
		"weights that are not declared":   {program("", "u", ", %w: f32[E]", "  %s = spmm %g, %w, _, %h : f32[N,hidden]\n"), "{edge_weights=true}", ds},
		"weights that are squared":        {program(" {edge_weights=true}", "u", ", %w: f32[E]", "  %q = square %w : f32[E]\n  %s = spmm %g, %q, _, %h : f32[N,hidden]\n"), "multiply what is summed by %w once", &weighted},
		"weights that are scaled":         {program(" {edge_weights=true}", "u", ", %w: f32[E]", "  %q = scale_grad %w {factor=0.5} : f32[E]\n  %s = spmm %g, %q, _, %h : f32[N,hidden]\n"), "", &weighted},
		"weights that are declared":       {program(" {edge_weights=true}", "u", ", %w: f32[E]", "  %s = spmm %g, %w, _, %h : f32[N,hidden]\n"), "", &weighted},
		"rows by other numbers":           {program("", "u", "", "  %s0 = spmm %g, _, _, %h : f32[N,hidden]\n  %hr = gather %h, %labels : f32[T,hidden]\n  %z = reduce_mean %hr {axis=\"all\"} : f32[]\n  %s = add %s0, %z : f32[N,hidden]\n"), "reads all rows of %h (gather)", ds},
		"sums over entries out of a node": {program("", "u", "", "  %s = spmm %g, _, _, %h {transpose=true} : f32[N,hidden]\n"), "sums %h over the entries out of a node (spmm {transpose=true})", ds},
	} {
		params := map[string][]float32{}
		for _, sampler := range []string{"full", "neighbors"} {
			var warned []string
			cfg := configure(t, "gcn", "train.epochs=1", "train.fanout=0", "train.sampler="+sampler)
			module, err := ir.ParseNamed("mine.gsr", c.text, ir.Names{Values: map[string]any{"features": int64(ds.X.Cols), "hidden": int64(8), "classes": int64(ds.Classes)}})
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			got, err := Train(t.Context(), Job{Model: "mine.gsr", Module: module, Task: Nodes(c.ds)}, cfg, Options{Warn: func(s string) {
				if strings.Contains(s, "sums over neighbours") {
					warned = append(warned, s)
				}
			}})
			if err != nil {
				warned = append(warned, err.Error())
			} else {
				params[sampler] = got.Trained.Params["v"]
			}
			if sampler == "neighbors" && (len(warned) == 0) != (c.says == "") || len(warned) > 0 && !strings.Contains(warned[0], c.says) {
				t.Errorf("%s: it says %q, want %q", name, warned, c.says)
			}
		}
		others := 0
		for i, v := range params["neighbors"] {
			if math.Abs(float64(v-params["full"][i])) > 2e-4 {
				others++
			}
		}
		if others > 2 && !strings.Contains(name, "block") { // a gradient of rounding alone moves a parameter as far as any
			t.Errorf("%s: %d of %d parameters are other ones with all neighbours than on the whole graph", name, others, len(params["full"]))
		}
	}
}

// A loss may read neighbours, or values of edges, where predictions read none.
func TestDrawnForTheLoss(t *testing.T) {
	ds := synthetic(t, 3)
	weighted := *ds
	weighted.Graph = &graph.Graph{N: ds.Graph.N, Edges: ds.Graph.Edges, Weights: make([]float32, len(ds.Graph.Edges))}
	for i := range weighted.Graph.Weights {
		weighted.Graph.Weights[i] = 1 + float32(i%4)
	}
	module, err := ir.ParseNamed("mine.gsr", `module @mine {edge_weights=true}
param $v: f32[features,classes] {group="classifier", init="glorot"}
func @train(%x: f32[N,features], %g: graph<N,E>, %w: f32[E], %train_idx: i64[T], %labels: i64[T]) -> (loss: f32[]) {differentiate="loss"} {
  %q = square %w : f32[E]
  %s = edge_sum %g, %q {side="dst"} : f32[N]
  %c = unsqueeze %s : f32[N,1]
  %l = matmul %x, $v : f32[N,classes]
  %y = mul %l, %c : f32[N,classes]
  %rows = gather %y, %train_idx : f32[T,classes]
  %xent = cross_entropy %rows, %labels : f32[]
  return %xent
}
func @classify(%x: f32[N,features], %g: graph<N,E>) -> (logits: f32[N,classes], probabilities: f32[N,classes]) {
  %l = matmul %x, $v : f32[N,classes]
  %p = softmax %l : f32[N,classes]
  return %l, %p
}
`, ir.Names{Values: map[string]any{"features": int64(ds.X.Cols), "classes": int64(ds.Classes)}})
	if err != nil {
		t.Fatal(err)
	}
	job := Job{Model: "mine.gsr", Module: module, Task: Nodes(&weighted)}
	tr := started(t, job, configure(t, "gcn", "train.sampler=neighbors", "train.fanouts=4"), Options{})
	defer tr.close()
	if fanouts, err := drawnBy(tr, "train"); err != nil || !slices.Equal(fanouts, []int{4}) {
		t.Errorf("%v neighbours are drawn, error %v; want 4 of one hop", fanouts, err)
	}
}

// Batches with drawn neighbours give the same bits for any number of threads, from memory
// and from a store, and after an interruption.
func TestNeighborsDeterminism(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	if err := data.Convert(data.Synthetic, dir, data.ConvertOptions{Load: data.LoadOptions{Seed: 2}}); err != nil {
		t.Fatal(err)
	}
	stored, err := data.Load(dir, data.LoadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	memory, err := data.Load(data.Synthetic, data.LoadOptions{Seed: 2})
	if err != nil {
		t.Fatal(err)
	}
	sets := []string{"train.sampler=neighbors", "train.fanouts=4,3", "train.batch_nodes=16", "train.epochs=6"}
	want := run(t, "sage", memory, Options{}, append(sets, "train.threads=1")...)
	for name, ds := range map[string]*data.Dataset{"memory": memory, "a store": stored} {
		got := run(t, "sage", ds, Options{}, append(sets, "train.threads=3")...)
		if !reflect.DeepEqual(got.Trained.Params, want.Trained.Params) || !reflect.DeepEqual(got.Trained.Logits, want.Trained.Logits) {
			t.Errorf("from %s the result is another one", name)
		}
	}
	if got := run(t, "sage", memory, Options{}, append(sets, "train.seed=1")...); reflect.DeepEqual(got.Trained.Params, want.Trained.Params) {
		t.Error("another seed gives the same parameters")
	}

	at := filepath.Join(t.TempDir(), "run")
	cfg := configure(t, "sage", append(sets, "train.threads=2")...)
	job := Job{Model: "sage", Task: Nodes(stored)}
	interruptAt(t, job, cfg, Options{Dir: at}, func(e Event) bool { return e.Step == 3 })
	res, err := Train(context.Background(), job, cfg, Options{Dir: at, Resume: true})
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(res.Trained.Params, want.Trained.Params) {
		t.Error("the run that was resumed ends elsewhere")
	}
}

func TestNeighborsRefuse(t *testing.T) {
	ds := synthetic(t, 1)
	for _, c := range []struct{ model, set, words string }{
		{"grcn", "train.fanouts=5,5", "learns edges"},
		{"ecl-gsr", "model.known_labels=0.5", "it reads known_labels"},
		{"sage", "train.fanouts=5", "sage reads neighbours 2 steps away"},
		{"sage", "train.fanouts=5,x", "a number for each layer"},
	} {
		cfg, err := config.Load(c.model, data.Synthetic, "", []string{"train.sampler=neighbors", c.set})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Train(context.Background(), Job{Model: c.model, Task: Nodes(ds)}, cfg, Options{}); err == nil || !strings.Contains(err.Error(), c.words) {
			t.Errorf("%s with %s: the error is %v", c.model, c.set, err)
		}
	}
}

// A step on a batch that reads all rows of a value would read those of the batch in silence.
func TestNeighborsRefuseAllRows(t *testing.T) {
	ds := synthetic(t, 1)
	for _, c := range []struct{ model, function string }{{"gcn", "train"}, {"mlp", "train"}, {"ecl-gsr", "fit"}, {"ecl-gsr", "pretrain"}, {"ecl-gsr", "joint"}} {
		cfg := configure(t, c.model, "train.sampler=neighbors", "train.epochs=2", "train.pretrain_steps=2", "train.joint_every=1")
		zoo, err := Nodes(ds).Module(c.model, cfg)
		if err != nil {
			t.Fatal(err)
		}
		for rows, refused := range map[string]bool{"%x": true, "gather %x, %anchors": false} {
			if rows != "%x" && zoo.Func(c.function).Arg("anchors") == nil {
				continue
			}
			m := zoo.Clone()
			f := m.Func(c.function)
			b := ir.NewBuilder(m, f).At(len(f.Body))
			x := f.Arg("x")
			if rows != "%x" {
				x = b.One("gather", nil, x, f.Arg("anchors"))
			}
			f.Results[0].Value = b.Add(f.Results[0].Value, b.One("reduce_mean", ir.Attrs{"axis": "all"}, x))
			_, err = Train(t.Context(), Job{Model: c.model, Module: m, Task: Nodes(ds)}, cfg, Options{})
			if says := err != nil && strings.Contains(err.Error(), "@"+c.function+" reads all rows of %x (reduce_mean)"); says != refused || !says && err != nil {
				t.Errorf("%s with the mean of %s in @%s: the error is %v", c.model, rows, c.function, err)
			}
		}
	}
}

// What a model learns from drawn neighbours is as good on the whole graph.
func TestNeighborsLearn(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	o := store.Planted{Nodes: 3000, Edges: 20000, Classes: 4, Community: 50, Homophily: 0.8, Locality: 0.5, Features: 16, Signal: 0.3, Train: 300, Val: 200}
	if err := store.Generate(dir, o, store.Options{}); err != nil {
		t.Fatal(err)
	}
	ds, err := data.Load(dir, data.LoadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, model := range []string{"sage", "gcn", "gin"} {
		whole := run(t, model, ds, Options{}, "train.epochs=40")
		drawn := run(t, model, ds, Options{}, "train.epochs=20", "train.sampler=neighbors", "train.fanouts=10,10", "train.batch_nodes=100")
		if *drawn.TestAcc < *whole.TestAcc-4 {
			t.Errorf("%s: test accuracy %.1f, on the whole graph %.1f", model, *drawn.TestAcc, *whole.TestAcc)
		}
	}
}

// With all neighbours and all nodes in one batch, and nothing drawn that depends on the order
// of nodes, ecl-gsr learns what it learns on the whole graph but for rounding: contrastive steps
// with Langevin steps in them, and those of the classifier on both samples.
func TestAllNeighborsRefineTheSame(t *testing.T) {
	ds := synthetic(t, 3)
	for _, sets := range [][]string{
		{"candidates.structure=raw", "candidates.keep=1"},
		{"candidates.structure=raw", "candidates.keep=1", "model.classifier=gat", "model.gat.attention_dropout=0"},
		{"model.edges.judge=embedding", "model.edges.old_lo=0.9999998", "model.edges.old_hi=0.9999999", "model.edges.new_lo=1e-8", "model.edges.new_hi=1e-7", "model.classifier=sage"},
	} {
		sets = append(sets, "train.epochs=3", "train.joint_every=0", "train.pretrain_steps=4", "train.anchors=0", "model.dropout=0", "model.input_dropout=0", "model.views.drop_edges=0",
			"model.ecl.sgld_noise=0", "model.ecl.sgld_init=0", "train.fanout=0")
		want := run(t, "ecl-gsr", ds, Options{}, sets...)
		got := run(t, "ecl-gsr", ds, Options{}, append(sets, "train.sampler=neighbors")...)
		for name, w := range want.Trained.Params {
			for i, v := range got.Trained.Params[name] {
				if !(math.Abs(float64(v-w[i])) <= 2e-4) {
					t.Fatalf("%v: parameter %s is %v, on the whole graph %v", sets, name, v, w[i])
				}
			}
		}
		a, b := got.Trained.Refined, want.Trained.Refined
		if len(a.Probability) < 150 || !(math.Abs(float64(len(a.Probability)-len(b.Probability))) <= 2) {
			t.Errorf("%v: %d candidates, on the whole graph %d", sets, len(a.Probability), len(b.Probability))
		}
		if d := a.Lo - b.Lo; !(d <= 1e-4 && d >= -1e-4) {
			t.Errorf("%v: the least cosine is %v, on the whole graph %v", sets, a.Lo, b.Lo)
		}
	}
}

// Networks that read no neighbours, as encoder or classifier, and options that a step must be
// given something for: ecl-gsr takes its steps, and learns.
func TestNeighborsRefineAnything(t *testing.T) {
	ds := synthetic(t, 2)
	for _, set := range []string{"model.classifier=mlp", "model.classifier=linear", "model.encoder.kind=mlp", "deepwalk.width=8", "candidates.structure=raw", "train.self_training=1", "model.edges.samples=1"} {
		res := run(t, "ecl-gsr", ds, Options{}, set, "train.sampler=neighbors", "train.batch_nodes=16", "train.anchors=20", "train.epochs=12", "train.pretrain_steps=3", "train.joint_every=4",
			"model.edges.judge=embedding", "candidates.two_step=0")
		if res.ValAcc < 50 {
			t.Errorf("%s: %.1f %% of the validation nodes are right", set, res.ValAcc)
		}
	}
}

// Batches of ecl-gsr, joint steps among them, give the same bits for any number of threads, chunks
// of any size, and after interruptions in both phases.
func TestNeighborsRefineDeterminism(t *testing.T) {
	ds := synthetic(t, 2)
	for _, judge := range []string{"evidence", "embedding"} {
		sets := []string{"train.sampler=neighbors", "train.fanouts=4,3", "train.batch_nodes=16", "train.anchors=20", "train.epochs=5", "train.pretrain_steps=6", "train.joint_every=2", "train.refresh_every=3",
			"model.edges.judge=" + judge, "train.checkpoint_every=1"}
		want := run(t, "ecl-gsr", ds, Options{}, append(sets, "train.threads=1")...)
		job := Job{Model: "ecl-gsr", Task: Nodes(ds)}
		cfg := configure(t, "ecl-gsr", append(sets, "train.threads=3")...)
		at := filepath.Join(t.TempDir(), "run")
		for _, stop := range []string{"pretrain", "fit"} {
			interruptAt(t, job, cfg, Options{Dir: at, Resume: stop == "fit"}, func(e Event) bool { return e.Phase == stop && e.Step == 3 })
		}
		res, err := Train(context.Background(), job, cfg, Options{Dir: at, Resume: true})
		if err != nil {
			t.Fatal(err)
		}
		if res.Hash != want.Hash || !reflect.DeepEqual(res.Trained.Logits, want.Trained.Logits) || !reflect.DeepEqual(res.Trained.Embedding, want.Trained.Embedding) {
			t.Errorf("judge %s: interrupted, on three threads, the run ends elsewhere", judge)
		}
		tr := started(t, job, cfg, Options{})
		least, err := Nodes(ds).Forecast(nil, tr.prog.Module, tr.cfg, tr.split, 1)
		tr.close()
		if err != nil {
			t.Fatal(err)
		}
		if got := run(t, "ecl-gsr", ds, Options{Memory: int64(least.Peak)}, sets...); got.Hash != want.Hash {
			t.Errorf("judge %s: in the least memory the result is another one", judge)
		}
	}
}

// interruptAt trains until an event, and has the run interrupted there.
func interruptAt(t *testing.T, job Job, cfg *config.Config, o Options, at func(Event) bool) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	o.Observer = watch(func(e Event) {
		if at(e) {
			cancel()
		}
	})
	if _, err := Train(ctx, job, cfg, o); err == nil || !strings.Contains(err.Error(), "interrupted") {
		t.Fatalf("the error is %v", err)
	}
}

// What a run on batches takes is forecast as the run itself does, and models that batches cannot
// train are refused.
func TestPredictMemoryOfBatches(t *testing.T) {
	ds := synthetic(t, 3)
	for model, refused := range map[string]string{"sage": "", "ecl-gsr": "", "idgl": "it learns edges"} {
		cfg := configure(t, model, "train.sampler=neighbors", "train.fanout=3", "train.batch_nodes=16")
		got, err := PredictMemory(Job{Model: model, Task: Nodes(ds)}, cfg, Options{}, 0)
		if refused != "" {
			if err == nil || !strings.Contains(err.Error(), refused) {
				t.Errorf("%s: the error is %v, want %q", model, err, refused)
			}
			continue
		}
		if err != nil {
			t.Fatalf("%s: %v", model, err)
		}
		tr := started(t, Job{Model: model, Task: Nodes(ds)}, cfg, Options{})
		want, _ := forecastOf(t, tr)
		tr.close()
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: the forecast is\n%sthe run's\n%s", model, got.Table(), want.Table())
		}
	}
}

// Over chunks of nodes a graph whose spectrum evidence reads has the bits of the whole. Where memory lacks room for these
// it is refused before nodes two steps away are looked for, with what would do.
func TestSpectrumBelowALimit(t *testing.T) {
	cfg := graph.DefaultCSBM()
	cfg.Nodes, cfg.Degree, cfg.CommunitySize = 1000, 40, 0
	ds, err := data.Load("synthetic", data.LoadOptions{Synthetic: &cfg, Seed: 4})
	if err != nil {
		t.Fatal(err)
	}
	job := Job{Model: "ecl-gsr", Task: Nodes(ds)}
	sets := []string{"train.sampler=neighbors", "train.fanouts=4,4", "train.batch_nodes=16", "train.joint_every=0", "model.classifier=gcn", "model.edges.judge=evidence", "candidates.two_step=50"}
	less, err := PredictMemory(job, configure(t, "ecl-gsr", append(sets, "candidates.two_step=0")...), Options{}, 1)
	if err != nil {
		t.Fatal(err)
	}
	all, err := PredictMemory(job, configure(t, "ecl-gsr", sets...), Options{}, 1)
	if err != nil {
		t.Fatal(err)
	}
	for limit, need := range map[int]int{less.Peak - 1: less.Peak, all.Peak - 1: all.Peak} {
		var e *budget.ExceededError
		_, err = Train(t.Context(), job, configure(t, "ecl-gsr", sets...), Options{Memory: int64(limit)})
		if !errors.As(err, &e) || e.Need != int64(need) {
			t.Errorf("with %d bytes, of the forecasts %d and %d: %v", limit, less.Peak, all.Peak, err)
		}
	}
	if less.Peak >= all.Peak {
		t.Errorf("the forecasts are %d and %d", less.Peak, all.Peak)
	}
	want, got := run(t, "ecl-gsr", ds, Options{}, sets...), run(t, "ecl-gsr", ds, Options{Memory: int64(all.Peak)}, sets...)
	if want.Trained.Params[models.EvidenceSpectrum] == nil || all.Chunk == 0 || got.Hash != want.Hash || !slices.Equal(got.Trained.Refined.Probability, want.Trained.Refined.Probability) {
		t.Error("over chunks the result is another one, or there are none")
	}
}
