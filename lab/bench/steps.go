package bench

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/gsrc-dev/gsrc/config"
	"github.com/gsrc-dev/gsrc/internal/rss"
	"github.com/gsrc-dev/gsrc/models"
	"github.com/gsrc-dev/gsrc/runtime"
	"github.com/gsrc-dev/gsrc/train"
)

type stepCase struct {
	data    string
	model   string
	fn      string
	recipe  bool // the options that gsrc train has for the data set; otherwise the paper's step
	anchors int
	width   int // of X^s; −1 is as wide as X
	heavy   bool
}

func (s stepCase) name() string {
	if s.model != "ecl-gsr" {
		return fmt.Sprintf("step/%s/%s", s.model, s.data)
	}
	if s.recipe {
		return fmt.Sprintf("step/recipe/%s/%s", s.data, s.fn)
	}
	batch := "full"
	if s.anchors > 0 {
		batch = fmt.Sprint(s.anchors)
	}
	if s.width >= 0 {
		batch += fmt.Sprintf("+%d", s.width)
	}
	return fmt.Sprintf("step/ecl/%s/%s", s.data, batch)
}

func (s stepCase) doc() string {
	switch {
	case s.model == "gcn":
		return "a training step of the two-layer GCN"
	case s.model == "gat":
		return "a training step of the two-layer GAT, 8 heads of 8"
	case s.recipe:
		return "a step of @" + s.fn + " with the options that gsrc train ecl-gsr has for the data set (masked columns, dropped edges)"
	case s.anchors == 0:
		return "the paper's pre-training step, all nodes as samples"
	}
	return "the paper's pre-training step: two blurred views, K = 3, three layers of 128"
}

// job returns the options of the step on loaded data.
func (s stepCase) job(e *env) (Job, error) {
	j := Job{Data: e.ds, Model: s.model, Threads: e.Threads, Anchors: s.anchors, Without: e.Without}
	if e.Device != nil {
		j.Device = e.Device
	}
	switch {
	case s.recipe:
		c, err := config.Load(s.model, s.data, "", nil)
		if err != nil {
			return j, err
		}
		j.Options, j.Anchors, j.K = c.Model, c.Train.Anchors, c.Candidates.K
		if s.model == "ecl-gsr" {
			j.Options.StructWidth = c.DeepWalk.Width
		}
	case s.model == "gcn":
		j.Options = models.Default()
	default:
		width := s.width
		if width < 0 {
			width = e.ds.X.Cols
		}
		j.Options = PaperOptions(width)
	}
	return j, nil
}

func stepList() []stepCase {
	ecl := func(data string, anchors, width int, heavy bool) stepCase {
		return stepCase{data: data, model: "ecl-gsr", fn: "pretrain", anchors: anchors, width: width, heavy: heavy}
	}
	list := []stepCase{
		ecl("cora", 512, -1, false), ecl("cora", 512, 128, false), ecl("cora", 0, -1, false),
		ecl("citeseer", 512, -1, false), ecl("actor", 512, -1, false), ecl("actor", 0, -1, true),
		ecl("amazon_cs", 512, 128, true), ecl("coauthor_phy", 512, 128, true),
	}
	for _, data := range []string{"cora", "citeseer"} {
		for _, fn := range []string{"pretrain", "joint", "fit"} {
			list = append(list, stepCase{data: data, model: "ecl-gsr", fn: fn, recipe: true})
		}
	}
	for _, data := range []string{"cora", "citeseer", "actor"} {
		list = append(list, stepCase{data: data, model: "gcn", fn: "train"}, stepCase{data: data, model: "gat", fn: "train", recipe: true})
	}
	return list
}

// functionSteps are the steps of one function.
func functionSteps() (cases []Case) {
	for _, s := range stepList() {
		cases = append(cases, s.toCase())
	}
	return cases
}

func stepCases() []Case {
	cases := functionSteps()
	for _, data := range []string{"cora", "citeseer", "actor"} {
		cases = append(cases, Case{Name: "epochs/gcn/" + data, Doc: "200 epochs of the two-layer GCN, each with an evaluation pass", Alone: true,
			workload: FindWorkload(data), run: gcnEpochs})
	}
	for _, data := range []string{"arxiv", "products"} {
		cases = append(cases, Case{Name: "batch/sage/" + data, Doc: "a step of three layers of GraphSAGE, 256 wide, on 1024 nodes with 15, 10 and 5 drawn neighbours, and its drawing", Alone: true,
			Heavy: data == "products", workload: FindWorkload(data), run: sampledBatch})
	}
	return cases
}

// sampledBatch times the only batch of an epoch, so that nothing is drawn meanwhile.
func sampledBatch(e *env) (Result, error) {
	const nodes = 1024
	set := []string{"train.sampler=neighbors", "train.fanouts=15,10,5", fmt.Sprintf("train.batch_nodes=%d", nodes), "model.layers=3", "model.hidden=256", fmt.Sprintf("train.threads=%d", e.Threads)}
	c, err := config.Load("sage", "arxiv", "", set)
	if err != nil {
		return Result{}, err
	}
	split := trainSplit(e.ds)
	split.Train = nil
	seeds := min(nodes, e.ds.Graph.N)
	for i := range seeds {
		split.Train = append(split.Train, int32(i*e.ds.Graph.N/seeds))
	}
	s, err := train.NewSession(e.ds, train.Job{Model: "sage", Split: &split}, c, train.Options{Without: e.Without})
	if err != nil {
		return Result{}, err
	}
	defer s.Close()
	r, err := e.rounds(func() error { _, err := s.Step("train"); return err })
	r.PeakMiB = peakMiB()
	return r, err
}

func (s stepCase) toCase() Case {
	return Case{Name: s.name(), Doc: s.doc(), Heavy: s.heavy, Alone: true, workload: FindWorkload(s.data), run: s.run}
}

// scaleCases show how the cost of a step grows with the graph.
func scaleCases() []Case {
	var cases []Case
	for _, size := range []string{"10k", "100k", "1M", "arxiv"} {
		s := stepCase{data: size, model: "ecl-gsr", fn: "pretrain", anchors: 512}
		if size == "arxiv" {
			s.anchors = 4096
		}
		c := s.toCase()
		c.Name, c.Heavy = "scale/"+size, true
		c.run = func(e *env) (Result, error) {
			r, err := s.run(e)
			r.PerSizeNS = r.MS * 1e6 / float64(e.ds.Graph.N+e.ds.Graph.NumEdges())
			return r, err
		}
		c.Doc = "the paper's step without structural attributes, 512 samples, on a generated graph of average degree 10 with 128 features"
		if size == "arxiv" {
			c.Doc = "the paper's step without structural attributes, 4096 samples, on a generated graph of ogbn-arxiv's size: 169,343 nodes, 1.17 million edges, 128 dense features"
		}
		cases = append(cases, c)
	}
	return cases
}

func (s stepCase) run(e *env) (r Result, err error) {
	j, err := s.job(e)
	if err != nil {
		return r, err
	}
	session, err := NewSession(j)
	if err != nil {
		return r, err
	}
	defer session.Close()
	if e.Device == nil {
		session.Profile()
	}
	f, err := session.Function(s.fn)
	if err != nil {
		return r, err
	}
	steps := 0
	if r, err = e.rounds(func() error { steps++; _, err := session.Step(s.fn); return err }); err != nil {
		return r, err
	}
	r.PlannedMiB = plannedMiB(f)
	r.PeakMiB = peakMiB()
	adam := func() error { return session.Adam(s.fn) }
	var times []runtime.OpTime
	var took time.Duration
	if d := e.Device; d != nil {
		r.PeakMiB = 0 // of the process, not of the device
		if times, err = f.Main().Measure(d, uint64(steps)); err == nil {
			took, err = d.Time(adam)
		}
		r.Parts = parts(times, 1, took, session.Moved(s.fn), r.MS)
		return r, err
	}
	start := time.Now()
	for range 10 {
		if err := adam(); err != nil {
			return r, err
		}
	}
	r.Parts = parts(f.Main().Profile(), steps, time.Since(start)/10, session.Moved(s.fn), 0)
	if s.model == "ecl-gsr" && !s.recipe && s.width != 0 {
		o, anchors := j.Options, min(j.Anchors, e.ds.Graph.N)
		anchors = cmp.Or(anchors, e.ds.Graph.N)
		work := LowerBound(StepSize{Nodes: e.ds.Graph.N, Struct: o.StructWidth, Width: o.Encoder.Hidden, Layers: o.Encoder.Layers, Anchors: anchors, Steps: o.ECL.Steps})
		r.Least = &work
	}
	return r, nil
}

func plannedMiB(f *runtime.Function) float64 {
	bytes := f.Main().Plan().Bytes
	if s := f.Setup(); s != nil {
		bytes += s.Plan().Bytes
	}
	return float64(bytes) / (1 << 20)
}

// peakMiB is the largest resident set of the process so far, 0 where it is not known.
func peakMiB() float64 { return float64(rss.Peak()) / (1 << 20) }

// parts sums times of operations by kind, with those of the optimizer, which moves
// parameters of the given sizes, longest first, and says how much of a step each is; step
// is 0 where that is their sum.
func parts(times []runtime.OpTime, steps int, adam time.Duration, moved []int, step float64) []Part {
	parts := append(byKind(times, steps), Part{Op: "adam", Count: 1, MS: adam.Seconds() * 1e3})
	for _, n := range moved {
		last := &parts[len(parts)-1]
		last.Cost = last.Cost.plus(adamCost(n))
	}
	if step == 0 {
		for _, p := range parts {
			step += p.MS
		}
	}
	for i := range parts {
		parts[i].OfStep = parts[i].MS / math.Max(step, 1e-9)
	}
	slices.SortStableFunc(parts, func(a, b Part) int { return cmp.Compare(b.MS, a.MS) })
	return parts
}

// byKind sums times of operations that ran in every step by kind of operation.
func byKind(times []runtime.OpTime, steps int) []Part {
	parts := []Part{}
	for _, t := range times {
		if t.Runs < steps { // ran when sizes changed
			continue
		}
		kind := strings.TrimSuffix(t.Op.Name(), "_fused")
		if kind == "matmul" && slices.ContainsFunc(t.In, func(e runtime.Extent) bool { return len(e.Dims) == 2 && e.Stored < e.Dims[0]*e.Dims[1] }) {
			kind = "matmul, sparse"
		}
		i := slices.IndexFunc(parts, func(p Part) bool { return p.Op == kind })
		if i < 0 {
			i, parts = len(parts), append(parts, Part{Op: kind})
		}
		p := &parts[i]
		p.Count++
		p.MS += t.Time.Seconds() * 1e3 / float64(t.Runs)
		p.Cost = p.Cost.plus(opCost(t))
	}
	return parts
}

func adamCost(n int) Cost { return Cost{10 * float64(n), 4 * 7 * float64(n), 4 * 4 * float64(n)} }

// gcnEpochs is the work of the PyTorch program gcn.py.
func gcnEpochs(e *env) (Result, error) {
	s, err := NewSession(Job{Data: e.ds, Model: "gcn", Options: models.Default(), Threads: e.Threads, Without: e.Without})
	if err != nil {
		return Result{}, err
	}
	defer s.Close()
	step, err := s.Function("train")
	if err != nil {
		return Result{}, err
	}
	classify, err := s.Function("classify")
	if err != nil {
		return Result{}, err
	}
	r, err := e.rounds(func() error {
		for epoch := range 200 {
			if _, err := s.Step("train"); err != nil {
				return err
			}
			if err := classify.Run(uint64(epoch)); err != nil {
				return err
			}
		}
		return nil
	})
	r.PlannedMiB, r.PeakMiB = plannedMiB(step), peakMiB()
	return r, err
}

// compileCases time the passes, and what makes the function executable.
func compileCases() []Case {
	var cases []Case
	for _, model := range []string{"ecl-gsr", "gcn"} {
		fn := map[string]string{"ecl-gsr": "joint", "gcn": "train"}[model]
		cases = append(cases, Case{Name: "compile/" + model, Doc: "all passes over all functions, and @" + fn + " made executable", workload: FindWorkload("cora"),
			run: func(e *env) (Result, error) {
				j := Job{Data: e.ds, Model: model, Options: models.Default(), K: 5, Anchors: 512, Threads: e.Threads, Without: e.Without}
				return e.rounds(func() error {
					s, err := j.compileOnly()
					if err != nil {
						return err
					}
					f, err := runtime.NewFunction(s.Module, fn, runtime.Options{})
					if err == nil {
						f.Close()
					}
					return err
				})
			}})
	}
	return cases
}

// inferenceCases time a forward pass over the whole graph. Exported files are timed by
// [Exports].
func inferenceCases() []Case {
	var cases []Case
	for _, c := range []struct {
		model, fn, data string
		hidden          int
	}{{"gcn", "classify", "cora", 16}, {"gcn", "classify", "cora", 128}, {"gcn", "classify", "actor", 16}, {"ecl-gsr", "encode", "cora", 128}} {
		name := fmt.Sprintf("inference/%s/%s/%d", c.model, c.data, c.hidden)
		job := func(e *env) Job {
			o := models.Default()
			if c.model == "gcn" {
				o.Hidden = c.hidden
			}
			return Job{Data: e.ds, Model: c.model, Options: o, Threads: e.Threads}
		}
		cases = append(cases, Case{Name: name + "/compiled", Doc: "@" + c.fn + " over the whole graph", workload: FindWorkload(c.data), run: func(e *env) (Result, error) {
			s, err := NewSession(job(e))
			if err != nil {
				return Result{}, err
			}
			defer s.Close()
			f, err := s.Function(c.fn)
			if err != nil {
				return Result{}, err
			}
			r, err := e.rounds(func() error { return f.Run(0) })
			r.PlannedMiB = plannedMiB(f)
			return r, err
		}})
	}
	return cases
}
