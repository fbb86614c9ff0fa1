package charts

import (
	"bytes"
	"context"
	"encoding/xml"
	"fmt"
	"image/png"
	"io"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/gsrc-dev/gsrc"
	"github.com/gsrc-dev/gsrc/data"
	"github.com/gsrc-dev/gsrc/graph"
	"github.com/gsrc-dev/gsrc/metrics"
	"github.com/gsrc-dev/gsrc/rng"
	"github.com/gsrc-dev/gsrc/train"
	"github.com/gsrc-dev/gsrc/train/checkpoint"
	"gonum.org/v1/plot"
)

// trained trains in no time and opens the run again, as gsrc plot does.
func trained(t *testing.T, model string, set ...string) *gsrc.Run {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "run")
	set = append([]string{"synthetic.nodes=120", "synthetic.features=16", "train.pretrain_steps=20", "train.epochs=6", "train.joint_every=3", "model.encoder.hidden=8", "model.encoder.projection=8"}, set...)
	if _, err := gsrc.Train(context.Background(), gsrc.TrainOptions{Model: model, Data: data.Synthetic, Out: dir, Set: set}); err != nil {
		t.Fatal(err)
	}
	run, err := gsrc.OpenRun(dir)
	if err != nil {
		t.Fatal(err)
	}
	return run
}

func names(charts []*Chart) (out []string) {
	for _, c := range charts {
		out = append(out, c.Name)
	}
	return out
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestDraw(t *testing.T) {
	for _, c := range []struct {
		model string
		set   []string
		want  []string
	}{
		{"ecl-gsr", []string{"model.edges.judge=embedding"}, []string{"accuracy", "loss", "contrastive", "confusion", "classes", "precision-recall", "calibration", "adjacency", "embedding", "degree", "homophily", "probability"}},
		{"ecl-gsr", []string{"model.edges.judge=embedding", "deepwalk.width=4", "deepwalk.length=10", "model.edges.mode=threshold"}, []string{"accuracy", "loss", "contrastive", "confusion", "classes", "precision-recall", "calibration", "adjacency", "embedding", "degree", "homophily", "probability"}},
		{"ecl-gsr", []string{"model.edges.judge=evidence"}, []string{"accuracy", "loss", "contrastive", "confusion", "classes", "precision-recall", "calibration", "adjacency", "embedding", "degree", "homophily", "probability", "evidence"}},
		{"ecl-gsr", []string{"candidates.structure=raw"}, []string{"accuracy", "loss", "confusion", "classes", "precision-recall", "calibration", "adjacency", "degree", "homophily"}},
		{"gcn", nil, []string{"accuracy", "loss", "confusion", "classes", "precision-recall", "calibration", "adjacency", "degree", "homophily"}},
	} {
		run := trained(t, c.model, c.set...)
		out := filepath.Join(t.TempDir(), "plots")
		drawn, err := Draw(run, out, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if got := names(drawn); !slices.Equal(got, c.want) {
			t.Errorf("%s %v: charts %v, want %v", c.model, c.set, got, c.want)
		}
		if i := slices.Index(names(drawn), "calibration"); !strings.Contains(drawn[i].Caption, fmt.Sprintf("as trained %.3f", run.Result.Test.ECE)) {
			t.Errorf("%s: %q, and in training the error was %.3f", c.model, drawn[i].Caption, run.Result.Test.ECE)
		}
		page := read(t, filepath.Join(out, PageFile))
		for _, chart := range drawn {
			checkXML(t, chart.Name, read(t, filepath.Join(out, chart.Name+".svg")))
			img, err := png.Decode(bytes.NewReader(read(t, filepath.Join(out, chart.Name+".png"))))
			if err != nil {
				t.Fatal(err)
			}
			if img.Bounds().Dx() != 800 {
				t.Errorf("%s is %d pixels wide", chart.Name, img.Bounds().Dx())
			}
			if !bytes.Contains(page, []byte(`<section id="`+chart.Name+`">`)) || chart.Caption == "" {
				t.Errorf("%s is not on the page with a caption", chart.Name)
			}
		}
		if n := bytes.Count(page, []byte("<svg")); n != len(drawn) {
			t.Errorf("%d pictures are on the page, want %d", n, len(drawn))
		}
		// Nothing on the page is fetched: addresses are names of XML alone.
		for _, url := range regexp.MustCompile(`https?://[^"'<\s]*`).FindAllString(string(page), -1) {
			if !strings.HasPrefix(url, "http://www.w3.org/") {
				t.Errorf("the page has the address %s", url)
			}
		}
		for _, tag := range []string{"<script", "<link", "<img", "url(", "@import"} {
			if bytes.Contains(page, []byte(tag)) {
				t.Errorf("the page has %s", tag)
			}
		}

		// Again, in the same and in another folder: the same bytes.
		again := filepath.Join(t.TempDir(), "again")
		opened, err := gsrc.OpenRun(run.Dir)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Draw(opened, again, Options{Threads: 1}); err != nil {
			t.Fatal(err)
		}
		files, err := os.ReadDir(out)
		if err != nil {
			t.Fatal(err)
		}
		if len(files) != 2*len(drawn)+1 {
			t.Errorf("there are %d files for %d charts", len(files), len(drawn))
		}
		for _, f := range files {
			if !bytes.Equal(read(t, filepath.Join(out, f.Name())), read(t, filepath.Join(again, f.Name()))) {
				t.Errorf("%s is other bytes when it is drawn again", f.Name())
			}
		}
	}
}

func checkXML(t *testing.T, name string, text []byte) {
	t.Helper()
	d := xml.NewDecoder(bytes.NewReader(text))
	for {
		token, err := d.Token()
		if err == io.EOF {
			return
		}
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if e, ok := token.(xml.StartElement); ok {
			fills := slices.ContainsFunc(e.Attr, func(a xml.Attr) bool { return a.Name.Local == "preserveAspectRatio" && a.Value == "none" })
			if e.Name.Local == "image" && !fills {
				t.Errorf("%s: an image keeps its own proportions, and lies elsewhere than the axes say", name)
			}
			for _, a := range e.Attr {
				if picture := strings.HasPrefix(a.Value, "data:"); !picture && (strings.Contains(a.Value, "NaN") || strings.Contains(a.Value, "Inf")) {
					t.Fatalf("%s: <%s %s=%q>", name, e.Name.Local, a.Name.Local, a.Value)
				}
			}
		}
	}
}

func TestDrawErrors(t *testing.T) {
	run := trained(t, "gcn")
	if _, err := Draw(&gsrc.Run{}, t.TempDir(), Options{}); err == nil || !strings.Contains(err.Error(), "in memory") {
		t.Errorf("a run in memory: %v", err)
	}
	if _, err := Draw(run, t.TempDir(), Options{Data: "absent"}); err == nil || !strings.Contains(err.Error(), "absent") {
		t.Errorf("data that are not there: %v", err)
	}
	if err := os.WriteFile(filepath.Join(run.Dir, "metrics.jsonl"), []byte("{\"phase\":\"train\"}\nfit\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Draw(run, t.TempDir(), Options{}); err == nil || !strings.Contains(err.Error(), "whole lines") {
		t.Errorf("metrics that are none: %v", err)
	}
	if err := os.Remove(filepath.Join(run.Dir, "metrics.jsonl")); err != nil {
		t.Fatal(err)
	}
	if _, err := Draw(run, t.TempDir(), Options{}); err == nil || !strings.Contains(err.Error(), "the run's metrics") {
		t.Errorf("without metrics: %v", err)
	}
}

// dataset is a graph with labels and nothing else.
func dataset(labels []int32, classes int, edges [][2]int32) *data.Dataset {
	return &data.Dataset{Name: "d", Graph: &graph.Graph{N: len(labels), Edges: edges}, Labels: labels, Classes: classes}
}

// draws makes both forms of a chart.
func draws(t *testing.T, c *Chart) {
	t.Helper()
	var svg, image bytes.Buffer
	if err := c.SVG(&svg); err != nil {
		t.Fatal(err)
	}
	checkXML(t, c.Name, svg.Bytes())
	if err := c.PNG(&image); err != nil {
		t.Fatal(err)
	}
}

func TestSortByClass(t *testing.T) {
	ds := dataset([]int32{1, -1, 0, 1, 0}, 3, nil)
	ds.ClassNames = []string{"a", "b", "c"}
	o := sortByClass(ds)
	if want := []int32{2, 4, 0, 3, 1}; !slices.Equal(o.rank, want) {
		t.Errorf("ranks %v, want %v", o.rank, want)
	}
	if want := []block{{"a", 0, 2}, {"b", 2, 4}, {"no label", 4, 5}}; !slices.Equal(o.blocks, want) {
		t.Errorf("blocks %v, want %v", o.blocks, want)
	}
	// Nodes 0 and 3 are in the third and fourth place, node 2 in the first.
	g := &graph.Graph{N: 5, Edges: [][2]int32{{0, 2}, {0, 3}}, Weights: []float32{0.25, 0.5}}
	want := make([]float64, 25)
	want[2*5], want[2], want[2*5+3], want[3*5+2] = 0.25, 0.25, 0.5, 0.5
	if got := o.bin(g, 5); !slices.Equal(got, want) {
		t.Errorf("bins %v, want %v", got, want)
	}
	sum := 0.0
	for _, v := range o.bin(g, 2) {
		sum += v
	}
	if sum != 1.5 {
		t.Errorf("two bins hold %v, want twice the weight, 1.5", sum)
	}
}

// A graph of 100,000 nodes has a picture of the same size as a small one.
func TestAdjacencyOfALargeGraph(t *testing.T) {
	const n, m = 100_000, 300_000
	labels := make([]int32, n)
	s := rng.New(1, "test")
	for i := range labels {
		labels[i] = int32(s.Intn(uint64(i), 40))
	}
	src, dst := make([]int32, m), make([]int32, m)
	for i := range src {
		src[i], dst[i] = int32(s.Intn(uint64(n+2*i), n)), int32(s.Intn(uint64(n+2*i+1), n))
	}
	g, _, err := graph.Build(n, src, dst, nil, false)
	if err != nil {
		t.Fatal(err)
	}
	ds := dataset(labels, 40, g.Edges)
	h := make([]float32, 8*n)
	for i := range h {
		h[i] = float32(s.Normal(uint64(i)))
	}
	for _, c := range []*Chart{adjacency(ds, g, g), embedding(ds, h, 8), degrees(g, g)} {
		var svg bytes.Buffer
		if err := c.SVG(&svg); err != nil {
			t.Fatal(err)
		}
		if svg.Len() > 1<<20 {
			t.Errorf("%s has %d bytes", c.Name, svg.Len())
		}
	}
	if c := embedding(ds, h, 8); !strings.Contains(c.Caption, "4,000 of 100,000 nodes are drawn") {
		t.Errorf("caption %q", c.Caption)
	}
}

// What has nothing to show gives no chart, and what has little gives one.
func TestPoorGraphs(t *testing.T) {
	none := dataset([]int32{0, 1, 1}, 2, nil)
	if adjacency(none, none.Graph, nil) != nil || degrees(none.Graph, nil) != nil || homophily(none, none.Graph, nil, nil) != nil {
		t.Error("a graph without edges has charts of its edges")
	}
	if c := adjacency(none, none.Graph, &graph.Graph{N: 3, Edges: [][2]int32{{0, 1}}}); c == nil {
		t.Error("an edge that was found is not drawn")
	} else {
		draws(t, c)
	}
	unlabelled := dataset([]int32{-1, -1}, 2, [][2]int32{{0, 1}})
	if homophily(unlabelled, unlabelled.Graph, nil, nil) != nil {
		t.Error("there is a homophily without labels")
	}
	draws(t, adjacency(unlabelled, unlabelled.Graph, nil))
	draws(t, degrees(unlabelled.Graph, none.Graph))
	for name, h := range map[string][]float32{"equal": make([]float32, 6), "not a number": {1, 2, 3, float32(math.NaN()), 5, 6}, "none": nil} {
		if embedding(none, h, 2) != nil {
			t.Errorf("%s: there is an embedding", name)
		}
	}
	if embedding(none, []float32{1, 2, 3}, 1) != nil {
		t.Error("one dimension has two components")
	}
}

func TestPrincipal(t *testing.T) {
	// Points on the line (2, -3)·a with a little across: the line is the first
	// component, its larger loading is positive.
	a := []float64{-2, -1, 0, 1, 3}
	var h []float32
	for i, v := range a {
		e := 0.001 * float64(i%2)
		h = append(h, float32(2*v+3*e+5), float32(-3*v+2*e))
	}
	xy, explained, ok := principal(h, 2, []int{0, 1, 2, 3, 4})
	if !ok || explained[0] < 0.999 || !(math.Abs(explained[0]+explained[1]-1) <= 1e-12) {
		t.Fatalf("explained %v, %v", explained, ok)
	}
	mean := 0.2
	for i, v := range a {
		if want := -math.Sqrt(13) * (v - mean); !(math.Abs(xy[i].X-want) <= 0.01) {
			t.Errorf("point %d is at %v, want %v", i, xy[i].X, want)
		}
	}
}

func TestSample(t *testing.T) {
	if got := sample(3, 5); !slices.Equal(got, []int{0, 1, 2}) {
		t.Errorf("3 of 3: %v", got)
	}
	a := sample(1000, 10)
	if len(a) != 10 || !slices.IsSorted(a) || len(slices.Compact(slices.Clone(a))) != 10 || !slices.Equal(a, sample(1000, 10)) {
		t.Errorf("10 of 1000: %v", a)
	}
}

func TestListedClasses(t *testing.T) {
	place, names := listed(dataset([]int32{0, 1, 1, -1}, 2, nil))
	if !slices.Equal(names, []string{"0", "1"}) || place(1) != 1 || place(-1) != -1 {
		t.Errorf("names %v, places %d %d", names, place(1), place(-1))
	}
	// Of many classes the largest have a look of their own.
	var labels []int32
	for c := range int32(40) {
		for range c + 1 {
			labels = append(labels, c)
		}
	}
	place, names = listed(dataset(labels, 40, nil))
	if len(names) != listedClasses || names[0] != "39" || place(39) != 0 || place(0) != -1 {
		t.Errorf("%d names, first %q, places %d %d", len(names), names[0], place(39), place(0))
	}
	type look struct{ c, shape any }
	seen := map[look]bool{}
	for i := range listedClasses {
		g := glyph(i, 2)
		seen[look{g.Color, g.Shape}] = true
	}
	if len(seen) != listedClasses {
		t.Errorf("%d looks for %d classes", len(seen), listedClasses)
	}
}

func TestAtLeast(t *testing.T) {
	g := &graph.Graph{N: 5, Edges: [][2]int32{{0, 1}, {0, 2}, {1, 2}, {2, 3}}}
	l, isolated := atLeast(g) // degrees 2 2 3 1 0
	xy := l.Values
	if isolated != 1 || len(xy) != 3 || xy[0].X != 1 || xy[0].Y != 0.8 || xy[1].Y != 0.6 || xy[2].X != 3 || xy[2].Y != 0.2 {
		t.Errorf("%v, %d isolated", xy, isolated)
	}
	g = &graph.Graph{N: 3, Edges: [][2]int32{{0, 1}, {0, 2}, {1, 2}}}
	l, _ = atLeast(g)
	if xy = l.Values; len(xy) != 2 || xy[0].X != 1 || xy[0].Y != 1 || xy[1].X != 2 || xy[1].Y != 1 {
		t.Errorf("a triangle: %v", xy)
	}
}

func labels(ticks []plot.Tick) (out []string) {
	for _, t := range ticks {
		if t.Label != "" {
			out = append(out, t.Label)
		}
	}
	return out
}

func TestTicks(t *testing.T) {
	for _, c := range []struct {
		ticker plot.Ticker
		lo, hi float64
		want   []string
	}{
		{steps{}, 0, 100, []string{"0", "20", "40", "60", "80", "100"}},
		{steps{}, -2.7, -1.57, []string{"-2.6", "-2.4", "-2.2", "-2.0", "-1.8", "-1.6"}},
		{steps{}, -0.3, 0.3, []string{"-0.3", "-0.2", "-0.1", "0.0", "0.1", "0.2", "0.3"}},
		{steps{}, 0.001, 0.0035, []string{"0.0010", "0.0015", "0.0020", "0.0025", "0.0030", "0.0035"}},
		{decades{}, 1, 168, []string{"1", "2", "5", "10", "20", "50", "100"}},
		{decades{}, 0.00037, 1, []string{"0.001", "0.01", "0.1", "1"}},
	} {
		if got := labels(c.ticker.Ticks(c.lo, c.hi)); !slices.Equal(got, c.want) {
			t.Errorf("%T from %v to %v: %q, want %q", c.ticker, c.lo, c.hi, got, c.want)
		}
	}
}

func TestCount(t *testing.T) {
	for n, want := range map[int]string{0: "0", 999: "999", 1000: "1,000", 1166243: "1,166,243"} {
		if got := count(n); got != want {
			t.Errorf("%d is written %q", n, got)
		}
	}
}

// Terms come in the order of the paper's equations, unknown ones at the end.
func TestTermsOf(t *testing.T) {
	records := []checkpoint.Record{{Terms: map[string]float32{"reg": 1, "zeta": 2, "loss": 3}}, {Terms: map[string]float32{"alpha": 1, "gen": 2}}}
	if got, want := termsOf(records), []string{"loss", "gen", "reg", "alpha", "zeta"}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// A loss that is not a number leaves a gap and spoils no picture.
func TestCurvesWithGaps(t *testing.T) {
	nan := math.NaN()
	records := []checkpoint.Record{
		{Function: "train", Step: 1, Epoch: 1, Terms: map[string]float32{"loss": float32(nan)}, ValLoss: &nan, ValAcc: &nan, TrainAcc: &nan},
		{Function: "train", Step: 2, Epoch: 2, Terms: map[string]float32{"loss": 1}},
	}
	res := &train.Result{BestEpoch: 2}
	draws(t, losses(records, res, item{"node", "accuracy"}))
	draws(t, accuracies(records, res, item{"graph", "AUC"}))
	if losses(nil, res, item{}) != nil || accuracies(nil, res, item{}) != nil || contrastive(nil) != nil {
		t.Error("there are curves without records")
	}
}

// The caption says what was looked at: of collections no training graphs, and test graphs at each evaluation.
func TestCaptionOfAccuracies(t *testing.T) {
	half := 50.0
	node := []checkpoint.Record{{Function: "train", Step: 1, Epoch: 1, ValAcc: &half, TrainAcc: &half}}
	graph := []checkpoint.Record{{Function: "train", Step: 1, Epoch: 1, ValAcc: &half}}
	for _, c := range []struct {
		chart *Chart
		want  string
	}{
		{accuracies(node, &train.Result{BestEpoch: 1, TestAcc: &half}, item{"node", "AUC"}), "Share of the training and of the validation nodes that are classified right, by epoch. Test nodes are looked at once, at the kept epoch, 1 (the grey line), which is the best in AUC on validation nodes."},
		{accuracies(graph, &train.Result{BestEpoch: 1, TestAcc: &half, TestCurve: []float64{50}}, item{"graph", "accuracy"}), "Share of the validation graphs that are classified right, by epoch. Test graphs are classified at each evaluation, "},
	} {
		if !strings.HasPrefix(c.chart.Caption, c.want) {
			t.Errorf("%q, want %q", c.chart.Caption, c.want)
		}
	}
}

// Too many classes for a matrix have the chart of probabilities alone.
func TestManyClassesAreCalibrated(t *testing.T) {
	j := &judged{part: "test", of: "node", report: &metrics.Report{Nodes: 2}}
	p := []float32{0.1, 0.9, 0.6, 0.4}
	if c := j.calibration(p, p, 0, []int32{1, 1}, []int32{0, 1}); c == nil || !strings.Contains(c.Caption, "as trained 0.350.") {
		t.Errorf("%+v", c)
	}
	if j.confusion() != nil || j.perClass() != nil || j.precisionRecall(p, []int32{1, 1}, []int32{0, 1}) != nil {
		t.Error("there are charts of a matrix that is not there")
	}
}

// One matrix has no scale in common with another.
func TestCaptionOfAdjacency(t *testing.T) {
	ds, g := dataset([]int32{0, 1}, 2, nil), &graph.Graph{N: 2, Edges: [][2]int32{{0, 1}}}
	for after, want := range map[*graph.Graph]bool{nil: false, g: true} {
		if c := adjacency(ds, g, after); strings.Contains(c.Caption, "both matrices") != want {
			t.Errorf("%q", c.Caption)
		}
	}
}

// Classes whose names begin alike have curves, rows, borders and marks of their own.
func TestNamesThatBeginAlike(t *testing.T) {
	ds := dataset([]int32{0, 0, 1, 1}, 2, nil)
	ds.ClassNames = []string{"Department of Computer Science A", "Department of Computer Science B"}
	j := &judged{part: "test", of: "node", report: &metrics.Report{Nodes: 4, Confusion: [][]int{{1, 1}, {1, 1}}}, classes: ds.ClassNames, order: []int{0, 1}}
	h := []float32{0, 1, 1, 0, 2, 1, 3, 3}
	for _, c := range []*Chart{
		j.confusion(), j.perClass(), j.precisionRecall([]float32{0.1, 0.9, 0.4, 0.6, 0.5, 0.5, 0.8, 0.2}, ds.Labels, []int32{0, 1, 2, 3}),
		adjacency(ds, &graph.Graph{N: 4, Edges: [][2]int32{{0, 1}, {2, 3}}}, nil), embedding(ds, h, 2),
	} {
		var svg bytes.Buffer
		if err := c.SVG(&svg); err != nil {
			t.Fatal(err)
		}
		for _, name := range ds.ClassNames {
			if end := regexp.MustCompile(`Dep[a-z ]*…[A-Za-z ]*` + name[len(name)-2:] + `\b`); !end.Match(svg.Bytes()) {
				t.Errorf("%s has no %q", c.Name, name)
			}
		}
	}
}

// Four nodes, of which the first and the third are of class 1, by falling probability: at a
// recall of a half precision is 1, at a full one two thirds.
func TestPrecisionRecall(t *testing.T) {
	j := &judged{part: "test", of: "node", report: &metrics.Report{Nodes: 4, Confusion: [][]int{{1, 1}, {1, 1}}}, classes: []string{"no", "yes"}, order: []int{0, 1}}
	c := j.precisionRecall([]float32{0.1, 0.9, 0.4, 0.6, 0.5, 0.5, 0.8, 0.2}, []int32{1, 0, 1, 0}, []int32{0, 1, 2, 3})
	if want := "no 83.3 %. yes 83.3 %."; !strings.Contains(c.Caption, want) {
		t.Errorf("%q, want %s", c.Caption, want)
	}
}
