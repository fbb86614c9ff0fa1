package bench

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/gsrc-dev/gsrc/compiler"
	"github.com/gsrc-dev/gsrc/config"
	"github.com/gsrc-dev/gsrc/data"
	"github.com/gsrc-dev/gsrc/graph"
	"github.com/gsrc-dev/gsrc/ir"
	"github.com/gsrc-dev/gsrc/models"
	"github.com/gsrc-dev/gsrc/passes"
	"github.com/gsrc-dev/gsrc/rng"
	"github.com/gsrc-dev/gsrc/runtime"
	"github.com/gsrc-dev/gsrc/runtime/kernels"
	"github.com/gsrc-dev/gsrc/train"
	"github.com/gsrc-dev/gsrc/train/optim"
)

// Job is a model on a data set.
type Job struct {
	Data    *data.Dataset
	Model   string         // of models.All
	Options models.Options // Features and Classes are those of Data
	Anchors int            // samples of a contrastive step; 0 takes all nodes
	K       int            // nearest neighbours of a node that become candidate edges
	Threads int            // 0 is one for each processor
	Without []string       // passes to leave out

	Device runtime.Device // nil is the CPU
}

// PaperOptions are the options of the ECL-GSR paper's step as the PyTorch
// programs have it: views by Gaussian blur, three layers of 128, τ = 0.1, K = 3
// Langevin steps, structural attributes of the given width. The chain starts from
// noise of its own, and gradients are not clipped.
func PaperOptions(structWidth int) models.Options {
	o := models.Default()
	o.StructWidth, o.Encoder.Layers = structWidth, 3
	o.Views = models.Views{Blur: 0.03}
	o.ECL.Tau, o.ECL.InitNoise, o.ECL.Clip = 0.1, 0.03, 0
	return o
}

// Session is a compiled model bound to data: its functions can be run step by
// step, as training does, without what surrounds the steps.
type Session struct {
	Job
	Program *compiler.Program
	Pool    *kernels.Pool
	Compile time.Duration // what compilation took

	seed      rng.Stream
	params    *optim.Set
	inputs    map[string]*runtime.Buffer
	functions []*runtime.Function
}

// NewSession compiles the model and binds parameters and data. Close it.
func NewSession(j Job) (*Session, error) {
	j.Options.Features, j.Options.Classes = j.Data.X.Cols, j.Data.Classes
	start := time.Now()
	p, err := compileOnly(j)
	if err != nil {
		return nil, err
	}
	s := &Session{Job: j, Program: p, Compile: time.Since(start), seed: rng.New(0, "bench"), inputs: map[string]*runtime.Buffer{}}
	s.Pool = kernels.NewPool(j.Threads)
	if s.Device == nil {
		s.Device = runtime.NewCPU(s.Pool)
	}
	if err := s.bind(); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// compileOnly builds the model for the data and runs the passes.
func compileOnly(j Job) (*compiler.Program, error) {
	m, err := models.Lookup(j.Model)
	if err != nil {
		return nil, err
	}
	j.Options.Features, j.Options.Classes = j.Data.X.Cols, j.Data.Classes
	return compiler.Compile(m.Build(j.Options), compiler.Options{Data: j.dataInfo(), Without: j.Without})
}

// dataInfo is what training tells the compiler of the data and the steps.
func (j *Job) dataInfo() passes.DataInfo {
	c := &config.Config{}
	c.Train.Sampler, c.Train.Anchors = "full", j.Anchors
	var split data.Split
	if len(j.Data.Splits) > 0 {
		split = j.Data.Splits[0]
	}
	return train.Nodes(j.Data).DataInfo(nil, c, split)
}

// Close ends the session's threads, and gives back all memory on its device.
func (s *Session) Close() error {
	defer s.Pool.Close()
	for _, f := range s.functions {
		f.Close()
	}
	return s.Device.ReleaseAll()
}

// bind makes parameters and the inputs that data decide.
func (s *Session) bind() error {
	var err error
	if s.params, err = optim.New(s.Program.Module, 0, func(string) float64 { return 0 }); err != nil {
		return err
	}
	for _, p := range s.params.Params {
		if err := s.Device.ToDevice(p.Value); err != nil {
			return err
		}
		s.inputs[p.Name] = p.Value
	}
	ds := s.Data
	if x := ds.X; x.IsSparse() {
		if s.inputs["x"], err = runtime.Sparse(x.Rows, x.Cols, x.RowPtr, x.Col, x.Val); err != nil {
			return err
		}
	}
	g := ds.Graph.Structure()
	s.inputs["g"], s.inputs["w"] = runtime.Graph(g), filled(1, g.E)
	if width := s.Options.StructWidth; width > 0 {
		s.inputs["x_struct"] = runtime.Zeros(ds.Graph.N, width)
		s.Pool.Normal(s.inputs["x_struct"].F32, s.seed.Sub("x_struct"))
	}
	idx, labels := trainNodes(ds)
	s.inputs["train_idx"], s.inputs["labels"] = runtime.I64(idx, len(idx)), runtime.I64(labels, len(labels))
	s.inputs["ramp"] = runtime.Scalar(1)
	return nil
}

func filled(v float32, n int) *runtime.Buffer {
	b := runtime.Zeros(n)
	for i := range b.F32 {
		b.F32[i] = v
	}
	return b
}

// candidates binds the candidate edges: those of the graph, and those to the
// nearest neighbours by the embedding of the untrained encoder.
func (s *Session) candidates() error {
	if s.inputs["c"] != nil {
		return nil
	}
	encode, err := s.Function("encode", runtime.Options{})
	if err != nil {
		return err
	}
	if err := encode.Run(0); err != nil {
		return err
	}
	h, err := encode.Read("embedding")
	if err != nil {
		return err
	}
	idx, _ := graph.KNN(s.Pool, h.F32, h.Dims[0], h.Dims[1], s.K)
	c, err := graph.NewCandidates(s.Data.Graph, idx, s.K, false)
	if err != nil {
		return err
	}
	st := c.Graph().Structure()
	old := make([]float32, len(c.Existing))
	for i, existing := range c.Existing {
		if existing {
			old[i] = 1
		}
	}
	s.inputs["c"], s.inputs["old"], s.inputs["p"] = runtime.Graph(st), runtime.F32(st.Spread(nil, old), st.E), filled(0.7, st.E)
	s.inputs["evidence"] = filled(1, st.E)
	return nil
}

// Function makes a function of the program executable and binds all inputs that
// the session knows.
func (s *Session) Function(name string, o runtime.Options) (*runtime.Function, error) {
	o.Pool, o.Seed, o.Device = s.Pool, s.seed, s.Device
	f, err := runtime.NewFunction(s.Program.Module, name, o)
	if err != nil {
		return nil, err
	}
	s.functions = append(s.functions, f)
	names := f.Inputs()
	if slices.Contains(names, "c") {
		if err := s.candidates(); err != nil {
			return nil, err
		}
	}
	for _, in := range names {
		b := s.inputs[in]
		if in == "x" && !readsSparse(f) {
			x := s.Data.X.ToDense()
			b = runtime.F32(x.Dense, x.Rows, x.Cols)
		}
		if b != nil {
			if err := f.Bind(in, b); err != nil {
				return nil, err
			}
		}
	}
	return f, nil
}

// readsSparse reports whether the function takes its features as they are stored.
// Without the pass sparsify it wants them dense.
func readsSparse(f *runtime.Function) bool {
	for _, x := range []*runtime.Executable{f.Main(), f.Setup()} {
		if x != nil && slices.ContainsFunc(x.Func().Args, func(a *ir.Value) bool { return a.Name == "x" && a.Type.Layout == ir.CSR }) {
			return true
		}
	}
	return false
}

// Stepper makes training steps of one function: new anchors, the function, Adam.
type Stepper struct {
	Function *runtime.Function
	// Adam is the time that the host has spent on the optimizer so far.
	Adam time.Duration

	s       *Session
	anchors *runtime.Buffer // nil where the function reads none
	loss    []*runtime.Buffer
	value   []float32
	grads   []*runtime.Buffer
	params  []runtime.AdamParam // nil before the first step
	step    int
	lr      float32
}

// Stepper returns a function's steps. profile measures every operation.
func (s *Session) Stepper(name string, profile bool) (*Stepper, error) {
	st := &Stepper{s: s, lr: 1e-3}
	f := s.Program.Module.Func(name)
	if f == nil {
		return nil, fmt.Errorf("model %s has no function @%s", s.Model, name)
	}
	if slices.ContainsFunc(f.Args, func(a *ir.Value) bool { return a.Name == "anchors" }) {
		n := s.Anchors
		if n == 0 || n > s.Data.Graph.N {
			n = s.Data.Graph.N
		}
		st.anchors = runtime.I64(make([]int64, n), n)
		if n < s.Data.Graph.N {
			st.anchors = &runtime.Buffer{DType: ir.I64, Dims: []int{n}}
			if err := s.Device.Reserve(st.anchors, n); err != nil {
				return nil, err
			}
		} else {
			for i := range st.anchors.I64 {
				st.anchors.I64[i] = int64(i)
			}
		}
		s.inputs["anchors"] = st.anchors
	}
	var err error
	st.Function, err = s.Function(name, runtime.Options{Profile: profile})
	return st, err
}

// draw gives the function the samples of a step.
func (t *Stepper) draw(step int) error {
	n := t.s.Data.Graph.N
	switch {
	case t.anchors == nil:
		return nil
	case t.anchors.Dims[0] < n:
		if err := t.s.Device.DrawAnchors(t.anchors, n, t.s.seed.Sub("anchors").At(uint64(step))); err != nil {
			return err
		}
	}
	return t.Function.Bind("anchors", t.anchors)
}

// Step makes the next step, as training does: what the host gets to see is the loss, and
// whether the gradients are finite, and the samples of the next step are drawn while a
// device that queues work computes.
func (t *Stepper) Step() error {
	first := t.params == nil
	if first {
		if err := t.draw(t.step); err != nil {
			return err
		}
	}
	if err := t.Function.Run(uint64(t.step)); err != nil {
		return err
	}
	if first {
		if err := t.results(); err != nil {
			return err
		}
	}
	if err := t.draw(t.step + 1); err != nil {
		return err
	}
	if err := t.Function.Prepare(); err != nil {
		return err
	}
	bad, err := t.s.Device.Finite(t.loss, t.value, t.grads)
	if err != nil {
		return err
	}
	if bad >= 0 {
		return fmt.Errorf("step %d: a gradient is not finite", t.step)
	}
	t.step++
	start := time.Now()
	err = t.adam()
	t.Adam += time.Since(start)
	return err
}

// results finds what the steps move.
func (t *Stepper) results() error {
	t.loss, t.value = []*runtime.Buffer{t.Function.Result("loss")}, make([]float32, 1)
	for _, p := range t.s.params.Params {
		g := t.Function.Result(passes.GradPrefix + p.Name)
		if g == nil {
			continue
		}
		if err := errors.Join(t.s.Device.ToDevice(p.M), t.s.Device.ToDevice(p.V)); err != nil {
			return err
		}
		t.grads = append(t.grads, g)
		t.params = append(t.params, runtime.AdamParam{W: p.Value, G: g, M: p.M, V: p.V, WeightDecay: p.Decay})
	}
	return nil
}

func (t *Stepper) adam() error {
	return t.s.Device.Adam(t.params, t.lr, 0.9, 0.999, 1e-8, t.step)
}
