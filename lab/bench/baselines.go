package bench

import (
	"cmp"
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gsrc-dev/gsrc/config"
	"github.com/gsrc-dev/gsrc/data"
	"github.com/gsrc-dev/gsrc/graph"
	"github.com/gsrc-dev/gsrc/internal/atomicfile"
)

//go:embed baselines/*.py
var baselinePrograms embed.FS

// Baseline is a PyTorch program that does the work of a case.
type Baseline struct {
	Name string   // what a table calls it
	Args []string // program and flags, without data, threads and rounds
}

// baselineWork is a case with the baselines that it is compared with.
type baselineWork struct {
	name      string // of the Case
	heavy     bool
	baselines []Baseline
	// candidates gives the baselines the candidate edges in place of the graph.
	candidates bool
}

// sageBatch is compared with DGL, whose newest version needs a PyTorch of its own
// (baselines/requirements-dgl.txt).
const sageBatch = "batch/sage/products"

func baselineWorks() []baselineWork {
	var works []baselineWork
	for _, s := range stepList() {
		switch {
		case s.model != "ecl-gsr" || s.fn == "joint":
			continue
		case s.recipe:
			works = append(works, baselineWork{name: s.name(), candidates: s.fn == "fit", baselines: []Baseline{{"PyTorch", recipeArgs(s.data, s.fn)}}})
			continue
		}
		w := FindWorkload(s.data)
		width := s.width
		if width < 0 {
			width = w.Features
		}
		size := []string{"--anchors", fmt.Sprint(s.anchors), "--struct", fmt.Sprint(width)}
		baselines := []Baseline{
			{"PyTorch", append([]string{"ecl.py", "--blur", "0.03"}, size...)},
			{"PyTorch, noise in the row space", append([]string{"ecl_rowspace.py"}, size...)},
		}
		if s.name() == "step/ecl/cora/512" {
			baselines = append(baselines, Baseline{"PyTorch Geometric's GCNConv", append([]string{"ecl.py", "--blur", "0.03", "--conv", "pyg"}, size...)})
		}
		works = append(works, baselineWork{name: s.name(), heavy: s.heavy || s.anchors == 0, baselines: baselines})
	}
	for _, name := range []string{"cora", "citeseer", "actor"} {
		works = append(works, baselineWork{name: "epochs/gcn/" + name, baselines: []Baseline{
			{"PyTorch Geometric", []string{"gcn.py"}},
			{"sparse PyTorch", []string{"gcn.py", "--impl", "sparse"}},
		}}, baselineWork{name: "step/gcn/" + name, heavy: true, baselines: []Baseline{
			{"PyTorch Geometric", []string{"gcn.py", "--step"}},
			{"sparse PyTorch", []string{"gcn.py", "--step", "--impl", "sparse"}},
		}})
	}
	for _, c := range learnerCases() {
		works = append(works, baselineWork{name: c.Name, heavy: true, baselines: []Baseline{{"PyTorch", []string{"learners.py", strings.Split(c.Name, "/")[1]}}}})
	}
	for _, c := range [][2]string{{"cora", "16"}, {"cora", "128"}, {"actor", "16"}} {
		name := "inference/gcn/" + c[0] + "/" + c[1]
		args := []string{"gcn.py", "--inference", "--hidden", c[1]}
		works = append(works, baselineWork{name: name + "/compiled", baselines: []Baseline{{"PyTorch Geometric", args}}})
	}
	for _, kind := range []string{"NN", "NT", "TN"} {
		for _, size := range []string{"2708x1433x128", "34493x128x128"} {
			args := append(append([]string{"rates.py", "matmul"}, strings.Split(size, "x")...), "--transpose", kind)
			works = append(works, baselineWork{name: "kernel/matmul/" + kind + "/" + size, baselines: []Baseline{{"PyTorch", args}}})
		}
	}
	works = append(works, baselineWork{name: sageBatch, heavy: true, baselines: []Baseline{{"DGL", []string{"sage.py"}}}})
	return append(works, baselineWork{name: "kernel/exp/2708x2708", baselines: []Baseline{{"PyTorch", []string{"rates.py", "exp", "2708", "2708"}}}})
}

// recipeArgs makes the baseline's step that of gsrc train ecl-gsr on a data set.
func recipeArgs(data, fn string) []string {
	c, err := config.Load("ecl-gsr", data, "", nil)
	if err != nil {
		panic(err) // built-in defaults are valid
	}
	o := c.Model
	if fn == "pretrain" {
		return strings.Fields(fmt.Sprintf("ecl.py --anchors %d --struct %d --layers %d --tau %g --clip %g --blur %g --mask %g --drop %g",
			c.Train.Anchors, c.DeepWalk.Width, o.Encoder.Layers, o.ECL.Tau, o.ECL.Clip, o.Views.Blur, o.Views.Mask, o.Views.Edges))
	}
	return strings.Fields(fmt.Sprintf("fit.py --norm %s --hidden %d --order %d --samples %d --nodes %g --input %g --dropout %g --temperature %g --sharpen %g --consistency %g",
		o.Norm, o.Hidden, o.Propagation.Order, o.Edges.Samples, o.Propagation.DropNodes, o.InputDropout, o.Dropout, o.Edges.Temperature, o.Edges.Sharpen, o.Edges.Consistency))
}

// BaselineReport compares gsrc with PyTorch on the same work. Field names are stable;
// times are in milliseconds, memory in MiB.
type BaselineReport struct {
	Schema  int              `json:"schema"` // 1
	Version string           `json:"version"`
	Machine Machine          `json:"machine"`
	Device  *Device          `json:"device,omitempty"` // the GPU that all of it was timed on
	Python  string           `json:"python"`           // versions of what the baselines import
	Rounds  int              `json:"rounds"`
	Results []BaselineResult `json:"results"`
}

// BaselineResult is one piece of work.
type BaselineResult struct {
	Work      string          `json:"work"`
	Data      string          `json:"data,omitempty"`
	MS        float64         `json:"ms"` // of gsrc: the median over the rounds of a round's median
	PeakMiB   float64         `json:"peak_mib"`
	Baselines []BaselineTimes `json:"peers"`
}

// BaselineTimes are those of one baseline.
type BaselineTimes struct {
	Name    string  `json:"name"`
	MS      float64 `json:"ms"`
	PeakMiB float64 `json:"peak_mib"`
	Ratio   float64 `json:"ratio"` // of its time to gsrc's
	Failed  string  `json:"failed,omitempty"`
}

// Baselines times gsrc and the PyTorch programs in the folder baselines with a Python that
// has their requirements, in turn: in each round gsrc and every baseline do the work in
// a process of their own, the next round in the opposite order. Options.Child is
// required but with Options.Device, on which both then work, gsrc by default in this process;
// Rounds is 3 if 0. Data are handed to the baselines as gsrc has read or generated them.
func Baselines(ctx context.Context, python string, o Options) (*BaselineReport, error) {
	o.Rounds = cmp.Or(o.Rounds, 3)
	works, err := selectBaselines(o.Only, o.Device != nil)
	if err != nil {
		return nil, err
	}
	r := &BaselineReport{Schema: 1, Version: o.Version, Machine: ThisMachine(o.Threads), Rounds: o.Rounds}
	versions := pytorchVersions
	if len(works) == 1 && works[0].name == sageBatch {
		versions = dglVersions
	}
	py, err := newPythonRunner(ctx, python, r.Machine.Threads, versions)
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(py.dir)
	r.Python = py.says
	cases := Cases()
	if o.Device != nil {
		cases, r.Device = DeviceCases(), describe(o.Device)
		py.device, _, _ = strings.Cut(o.Device.Name(), " ")
		if own := o; o.Child == nil {
			own.Rounds = 5
			o.Child = func(ctx context.Context, name string) (Result, error) {
				c, err := Select(cases, name)
				if err != nil {
					return Result{}, err
				}
				return c[0].measure(ctx, own)
			}
		}
	}
	for _, w := range works {
		c, err := Select(cases, w.name)
		if err != nil {
			return r, err
		}
		if o.Progress != nil {
			o.Progress(w.name)
		}
		folder := filepath.Join(py.dir, "data")
		if c[0].workload != nil {
			ds, err := c[0].workload.Load(o.Data)
			if err != nil {
				return r, err
			}
			st := ds.Graph.Structure()
			if w.candidates {
				if st, err = candidatesOf(ds, o.Threads); err != nil {
					return r, err
				}
			}
			if err := writeArrays(folder, ds, st); err != nil {
				return r, err
			}
		}
		x, err := w.compare(ctx, o, py, folder)
		if err != nil {
			return r, fmt.Errorf("%s: %w", w.name, err)
		}
		r.Results = append(r.Results, x)
	}
	return r, nil
}

// CheckBaselines reports what is wrong with patterns for [Baselines], on a GPU or not.
func CheckBaselines(patterns string, device bool) error {
	_, err := selectBaselines(patterns, device)
	return err
}

func selectBaselines(patterns string, device bool) ([]baselineWork, error) {
	var cases []Case
	there := DeviceCases()
	for _, w := range baselineWorks() {
		if !device || slices.ContainsFunc(there, func(c Case) bool { return c.Name == w.name }) {
			cases = append(cases, Case{Name: w.name, Heavy: w.heavy})
		}
	}
	chosen, err := Select(cases, patterns)
	if err != nil {
		return nil, fmt.Errorf("nothing with baselines is called %q", patterns)
	}
	return slices.DeleteFunc(baselineWorks(), func(w baselineWork) bool {
		return !slices.ContainsFunc(chosen, func(c Case) bool { return c.Name == w.name })
	}), nil
}

func (w baselineWork) compare(ctx context.Context, o Options, py *pythonRunner, folder string) (BaselineResult, error) {
	x := BaselineResult{Work: w.name}
	var own []float64
	theirs := make([][]float64, len(w.baselines))
	x.Baselines = make([]BaselineTimes, len(w.baselines))
	for i, p := range w.baselines {
		x.Baselines[i].Name = p.Name
	}
	turn := func(i int) error {
		if i < 0 {
			r, err := o.Child(ctx, w.name)
			if err != nil {
				return err
			}
			own, x.PeakMiB, x.Data = append(own, r.MS), max(x.PeakMiB, r.PeakMiB), r.Data
			return nil
		}
		t := &x.Baselines[i]
		if t.Failed != "" {
			return nil
		}
		var reply BaselineTimes
		err := py.run(ctx, folder, w.baselines[i].Args, &reply)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			t.Failed = err.Error()
			return nil
		}
		theirs[i], t.PeakMiB = append(theirs[i], reply.MS), max(t.PeakMiB, reply.PeakMiB)
		return nil
	}
	for round := range o.Rounds {
		for k := range len(w.baselines) + 1 {
			i := k - 1
			if round%2 == 1 {
				i = len(w.baselines) - 1 - k
			}
			if err := turn(i); err != nil {
				return x, err
			}
		}
	}
	x.MS = median(own)
	for i := range x.Baselines {
		if t := &x.Baselines[i]; t.Failed == "" {
			t.MS = median(theirs[i])
			t.Ratio = t.MS / x.MS
		}
	}
	return x, nil
}

type pythonRunner struct {
	path    string
	dir     string // has the programs, and is to be removed
	threads int
	device  string // as PyTorch names it, empty for the CPU
	says    string // the versions of what it has
}

// newPythonRunner unpacks the programs into a folder and checks that a Python has what they need:
// versions is a program that prints what it imports.
func newPythonRunner(ctx context.Context, python string, threads int, versions string) (*pythonRunner, error) {
	dir, err := os.MkdirTemp("", "gsrc-baselines-")
	if err != nil {
		return nil, err
	}
	p := &pythonRunner{path: python, dir: dir, threads: threads}
	if err = os.CopyFS(dir, baselinePrograms); err == nil {
		if p.says, err = p.command(ctx, "-W", "ignore", "-c", versions); err != nil {
			err = fmt.Errorf("%s lacks what the baselines need (see lab/bench/baselines/requirements.txt, or let \"make bench-baselines\" install it): %w", python, err)
		}
	}
	if err != nil {
		os.RemoveAll(dir)
		return nil, err
	}
	return p, nil
}

// command returns what a program prints. An error has the last line of its complaint.
func (p *pythonRunner) command(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, p.path, args...)
	// As many threads as gsrc, in every library.
	cmd.Env = append(os.Environ(), fmt.Sprint("OMP_NUM_THREADS=", p.threads), fmt.Sprint("MKL_NUM_THREADS=", p.threads), fmt.Sprint("OPENBLAS_NUM_THREADS=", p.threads))
	out, err := cmd.Output()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		err = fmt.Errorf("%w: %s", err, lastLine(string(exit.Stderr)))
	}
	return strings.TrimSpace(string(out)), err
}

// pytorchVersions is a program that prints the versions of what timed baselines need.
const pytorchVersions = `import sys, torch, torch_geometric, scipy, onnxruntime
print("Python %d.%d.%d, PyTorch %s, PyTorch Geometric %s, SciPy %s, onnxruntime %s" % (*sys.version_info[:3], torch.__version__, torch_geometric.__version__, scipy.__version__, onnxruntime.__version__))`

// dglVersions is such a program for [sageBatch].
const dglVersions = `import sys, torch, dgl
print("Python %d.%d.%d, PyTorch %s, DGL %s" % (*sys.version_info[:3], torch.__version__, dgl.__version__))`

// run runs a baseline and reads the JSON that it prints into reply.
func (p *pythonRunner) run(ctx context.Context, folder string, args []string, reply any) error {
	text, err := p.output(ctx, folder, args)
	if err != nil {
		return err
	}
	if err := json.Unmarshal([]byte(text), reply); err != nil {
		return fmt.Errorf("%s printed %q: %w", args[0], text, err)
	}
	return nil
}

// output returns the last line that a program prints. Programs that read data get
// the folder first.
func (p *pythonRunner) output(ctx context.Context, folder string, args []string) (string, error) {
	line := []string{filepath.Join(p.dir, "baselines", args[0])}
	if args[0] != "rates.py" {
		line = append(line, folder)
	}
	line = append(append(line, args[1:]...), "--threads", fmt.Sprint(p.threads))
	if p.device != "" {
		line = append(line, "--device", p.device)
	}
	out, err := p.command(ctx, line...)
	if err != nil {
		return "", fmt.Errorf("%s: %w", args[0], err)
	}
	return lastLine(out), nil
}

func lastLine(text string) string {
	text = strings.TrimSpace(text)
	return text[strings.LastIndexByte(text, '\n')+1:]
}

// LinkPredictors scores the edges of a data set, and pairs that have none, by plain link
// predictors (baselines/edges.py) with a Python that has NumPy, SciPy and scikit-learn, and
// writes a CSV file, which it returns: source, target, status (old, new) and a column
// evidence_NAME for each predictor, high for what is likely an edge.
func LinkPredictors(ctx context.Context, python, path string, seed int, out string) ([]byte, error) {
	ds, err := data.Load(path, data.LoadOptions{})
	if err != nil {
		return nil, err
	}
	// With more threads the trees wait for one another where processors are shared.
	py, err := newPythonRunner(ctx, python, 1, "import numpy, scipy, sklearn")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(py.dir)
	folder := filepath.Join(py.dir, "data")
	if err := writeArrays(folder, ds, ds.Graph.Structure()); err != nil {
		return nil, err
	}
	return py.scores(ctx, folder, out, "edges.py", "--seed", fmt.Sprint(seed))
}

// GraphForest trains a random forest on statistics of whole graphs (baselines/forest.py) on the
// ten folds of a collection, with a Python that has NumPy, SciPy and scikit-learn, and writes a
// CSV file, which it returns: fold, and accuracy in percent on its test graphs.
func GraphForest(ctx context.Context, python, path, out string) ([]byte, error) {
	py, err := newPythonRunner(ctx, python, 1, "import numpy, scipy, sklearn")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(py.dir)
	return py.scores(ctx, path, out, "forest.py")
}

// scores runs a program that leaves a file, which it writes to out and returns.
func (p *pythonRunner) scores(ctx context.Context, folder, out string, args ...string) ([]byte, error) {
	scores := filepath.Join(p.dir, "scores.csv")
	if _, err := p.output(ctx, folder, append(args, "--out", scores)); err != nil {
		return nil, err
	}
	text, err := os.ReadFile(scores)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Dir(out), 0o755); err != nil {
		return nil, err
	}
	return text, atomicfile.WriteBytes(out, text)
}

// candidatesOf returns the candidate edges that the recipe's steps have.
func candidatesOf(ds *data.Dataset, threads int) (*graph.Structure, error) {
	j, err := stepCase{data: ds.Name, model: "ecl-gsr", recipe: true}.job(&env{Options: Options{Threads: threads}, ds: ds})
	if err != nil {
		return nil, err
	}
	s, err := NewSession(j)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	return s.Candidates()
}

// writeArrays writes a data set as the .npy files that baselines/common.py reads, st
// being its edges.
func writeArrays(folder string, ds *data.Dataset, st *graph.Structure) error {
	if err := os.RemoveAll(folder); err != nil {
		return err
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	x := ds.X.ToCSR()
	train, labels := []int64{}, []int64{}
	for _, v := range trainSplit(ds).Train {
		train, labels = append(train, int64(v)), append(labels, int64(ds.Labels[v]))
	}
	for name, v := range map[string]any{
		"sizes": []int64{int64(ds.Graph.N), int64(x.Cols), int64(ds.Classes)},
		"x_ptr": x.RowPtr, "x_col": x.Col, "x_val": x.Val,
		"a_ptr": st.In.RowPtr, "a_col": st.In.Col, "train": train, "labels": labels,
	} {
		if err := writeArray(filepath.Join(folder, name+".npy"), v); err != nil {
			return err
		}
	}
	return nil
}

// Write prints the comparison as a table.
func (r *BaselineReport) Write(w io.Writer, f Format) error {
	fmt.Fprintf(w, "gsrc %s, %s\n", r.Version, r.Machine)
	if r.Device != nil {
		fmt.Fprintf(w, "%s, %s\n", r.Device, r.Device.Date)
	}
	fmt.Fprintf(w, "%s\nmedians of %d rounds in turn\n\n", r.Python, r.Rounds)
	rows := [][]string{{"work", "data", "gsrc", "memory", "baseline", "its time", "its memory", "ratio"}}
	for _, x := range r.Results {
		first := []string{x.Work, x.Data, ms(x.MS), peak(x.PeakMiB)}
		for _, p := range x.Baselines {
			if p.Failed != "" {
				rows = append(rows, append(first, p.Name, "failed: "+p.Failed, "", ""))
			} else {
				rows = append(rows, append(first, p.Name, ms(p.MS), peak(p.PeakMiB), fmt.Sprintf("%.2f", p.Ratio)))
			}
			first = []string{"", "", "", ""}
		}
	}
	return table(w, f, rows)
}

func peak(v float64) string {
	if v == 0 {
		return ""
	}
	return mib(v)
}
